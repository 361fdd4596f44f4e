"""Start-up frames, the peer as Initiator: RFC 5044 section 7.1, RFC 6581 sections 6 and 9."""

import select
import socket

import wire
from case import case, not_asked, seen
from cases_responder import PIECES
from peer import PeerError
from wire import A, B, C, C_WRITE, D_READ, M, R, S

NEVER_ASKS = {"siw": "siw never asks for the peer-to-peer model (spec/siw 2.10)"}
PLAIN = {"WEFT_EXT": "off"}
P2P = {"WEFT_P2P": "on", "WEFT_EXT": "off"}
NOT_THERE = "iw_cm copies private data that siw does not have"


def outcome(event):
    return event if event == "ESTABLISHED" else "no connection"


# --- the Request

def request_has(name, rfc, sentence, expects, look, data=b"", **more):
    @case(name, rfc, sentence, expects, **more)
    def _(t):
        t.called(ird=4, ord=2, data=data)
        return look(t.request)


request_has("initiator.key", "5044 7.1.1", "The Request's key", "MPA ID Req Frame", lambda r: r.key.decode())
request_has("initiator.rev", "6581 6", "A Request with the enhanced block has revision 2 and S=1", "rev 2 S=1",
            lambda r: f"rev {r.rev} S={int(bool(r.flags & S))}")
request_has("initiator.r", "5044 7.1.1", "The Request has R=0", "R=0", lambda r: f"R={int(bool(r.flags & R))}")
request_has("initiator.m", "5044 7.1.1", "The Request has M=0: who does without markers asks for none", "M=0",
            lambda r: f"M={int(bool(r.flags & M))}")
request_has("initiator.crc", "5044 4.4", "By default a connection uses the CRC: C=1", "C=1",
            lambda r: f"C={int(bool(r.flags & C))}", siw=("C=0", "siw asks for no CRC unless its module is told to"))
request_has("initiator.no_kinds", "6581 9.2", "Without A there is no RTR frame in the Request", "none",
            lambda r: "some" if not r.rtr & A and (r.rtr or r.kinds) else "none")
request_has("initiator.reserved", "5044 7.1.1", "Reserved bits of the Request's flags are 0", "00",
            lambda r: f"{r.flags & 0x0F:02x}",
            differs={"weft": ("05", "it asks for weft's extension (spec/mpa 2.7), and a peer on this host for memory "
                                     "(spec/same-host 2.1); option ext=off does neither")})
request_has("initiator.reserved_plain", "5044 7.1.1", "Reserved bits of the Request's flags are 0", "00",
            lambda r: f"{r.flags & 0x0F:02x}", options=PLAIN)
request_has("initiator.ird_ord", "6581 9.1", "The Request has the IRD and ORD that the program wants", "IRD 4 ORD 2",
            lambda r: f"IRD {r.ird} ORD {r.ord}")
request_has("initiator.private_data", "5044 7.1.1", "The Request has the program's private data behind the enhanced block",
            "right",
            lambda r: "right" if r.data == wire.pattern(200, 5) else r.data.hex(), data=wire.pattern(200, 5))


@case("initiator.waits", "5044 7.1.2", "The Initiator sends nothing behind the Request before it has the Reply",
      "silent; ESTABLISHED")
def _(t):
    c = t.called()
    silent = c.is_silent(0.2)
    c.says(wire.reply())
    return seen("silent" if silent else "not silent", t.event())


# --- the Reply

@case("initiator.reply_bytewise", "5044 7.1.2", "TCP may cut a Reply anywhere", "ESTABLISHED", siw=PIECES)
def _(t):
    t.calling(pieces=lambda f: [f[i:i + 1] for i in range(len(f))])
    return t.event()


@case("initiator.reply_in_three", "5044 7.1.2", "TCP may cut a Reply anywhere", "ESTABLISHED")
def _(t):
    t.calling(pieces=lambda f: [f[:7], f[7:20], f[20:]])
    return t.event()


GLUED = ("no connection", "siw takes no FPDU that comes with the Reply (spec/siw 2.2)")


def with_fpdu(name, sentence, cut, **more):
    """The Reply, and a Send right behind it."""
    @case(name, "5044 7.1.2", sentence, "ESTABLISHED; got 5", **more)
    def _(t):
        t.calling(pieces=lambda reply: cut(reply, wire.fpdu(wire.send(1, b"early"))))
        if (event := outcome(t.event())) != "ESTABLISHED":
            return event
        return seen(event, t.got(b"early"))


# spec/mpa 2.5.4
with_fpdu("initiator.reply_and_fpdu", "An FPDU that comes in one piece with the Reply is taken", lambda r, f: [r + f], siw=GLUED)
with_fpdu("initiator.reply_and_half", "TCP may cut a Reply and the FPDU behind it anywhere",
          lambda r, f: [r[:9], r[9:] + f[:7], f[7:]], siw=GLUED)


@case("initiator.responder_first", "5044 7.1.2", "A Responder that does not wait for the first FPDU is heard once the Reply is taken in",
      "ESTABLISHED; got 5")
def _(t):
    c = t.calling()
    event = outcome(t.event())
    c.says_ulpdus(wire.send(1, b"early"))
    return seen(event, t.got(b"early"))


@case("initiator.reply_data", "5044 7.1.1", "The program gets the Reply's private data unchanged", "right")
def _(t):
    data = wire.pattern(200, 4)
    t.calling(reply=wire.reply(data=data))
    told = t.ask("event")
    return "right" if told.startswith("ESTABLISHED") and told.split("data=")[1].startswith(data.hex()) else told


def reply_with(name, data, **more):
    """spec/mpa 2.6"""
    @case(name, "5044 7.1.1", "Up to 512 bytes of private data are taken, the enhanced block among them",
          "right", **more)
    def _(t):
        t.calling(reply=wire.reply(data=data))
        told = t.ask("event")
        return "right" if told.startswith("ESTABLISHED") and told.split("data=")[1].startswith(data.hex()) else told


reply_with("initiator.reply_data_252", wire.pattern(252, 4))
reply_with("initiator.reply_data_253", wire.pattern(253, 4), siw=not_asked("the guest's kernel dies", NOT_THERE))


def bad_reply(name, rfc, sentence, frame, code, counted, silent=True, **more):
    """The connection ends. A Terminate may say why, and must where not `silent`; weft's does."""
    said = f"Terminate 2/0/{code}, closed; no connection"

    @case(name, rfc, sentence, [said] + (["closed; no connection"] if silent else []), weft=said,
          counts=f"dial_failed.bad_reply reply_refused.{counted}", **more)
    def _(t):
        c = t.calling(reply=frame)
        c.crc = False  # nothing was agreed on
        return seen(c.end(), outcome(t.event()))


def changed(at, value):
    frame = bytearray(wire.reply())
    frame[at] = value
    return bytes(frame)


KEY = "Terminate 2/0/04, closed; no connection"
bad_reply("initiator.reply_key", "5044 7.1.1", "A Reply with another key ends the connection", changed(15, ord("E")), "04", "bad_key",
          siw=KEY)
bad_reply("initiator.reply_is_request", "5044 7.1.1", "A Request in place of the Reply ends the connection",
          wire.request(), "04", "bad_key", siw=KEY)
bad_reply("initiator.reply_rev_3", "5044 7.1.1", "A Reply of a revision that nobody asked for ends the connection",
          changed(17, 3), "04", "bad_revision", siw="closed; no connection")
bad_reply("initiator.reply_513", "5044 7.1.1", "More than 512 bytes of private data end the connection",
          wire.reply(data=bytes(509)), "04", "private_data_too_long",
          siw=not_asked("the guest's kernel dies", NOT_THERE))
bad_reply("initiator.block_cut", "6581 6", "A Reply that announces the enhanced block and has less is no Reply",
          wire.start_frame(wire.REPLY_KEY, C | S, b"\0\4\x20"), "04", "enhanced_block_missing",
          siw=("Terminate 2/0/06, closed; no connection", "siw reads the block past its end: here an ORD of 0x2000 at least, whatever "
               "its memory has there"))
bad_reply("initiator.ird_too_small", "6581 9.1", "An Initiator that cannot serve the Responder's ORD ends the connection",
          wire.reply(ord=0x2000), "06", "insufficient_ird", silent=False)


@case("initiator.reply_rev_1", "6581 10", "A Reply of revision 1 to a Request of revision 2 is no connection of revision "
      "2; the Initiator may try again with revision 1", ("again with rev 1; ESTABLISHED", "no connection"),
      weft="again with rev 1; ESTABLISHED", siw="no connection")
def _(t):
    listener = t.listen()
    t.called(listener=listener).says(wire.reply(C, rev=1))
    listener.settimeout(1 if t.peer.name == "siw" else t.peer.patience)
    try:
        c = t.raw(listener.accept()[0])
    except socket.timeout:
        return outcome(t.event())
    rev = c.start().rev
    c.says(wire.reply(C, rev=rev))
    return seen(f"again with rev {rev}", t.event())


@case("initiator.told", "6581 9.1", "The program is told the Reply's numbers", "ESTABLISHED IRD 2 ORD 3",
      differs={"siw": ("ESTABLISHED IRD 3 ORD 2", "siw tells them the other way round")})
def _(t):
    t.calling(reply=wire.reply(ird=3, ord=2))
    name, *numbers = t.ask("event").split()[:3]
    told = dict(w.split("=") for w in numbers)
    return f"{name} IRD {told['ird']} ORD {told['ord']}"


@case("initiator.rejected", "5044 7.1.2", "The program is told of a rejection, with the Responder's data",
      "REJECTED; data right", counts="dial_failed.rejected")
def _(t):
    c = t.called()
    data = wire.pattern(40, 2)
    c.says(wire.reply(C | R | S, data=data))
    c.fin()
    told = t.ask("event")
    right = told.split("data=")[1].startswith(data.hex())
    return seen(told.split()[0], "data right" if right else told)


@case("initiator.reply_reserved", "5044 7.1.1", "Reserved bits of the flags are ignored", "ESTABLISHED")
def _(t):
    t.calling(reply=changed(16, C | S | 0x0C))
    return t.event()


@case("initiator.rtr_unasked", "6581 9.2", "A Reply with A=1 to a Request without it changes nothing", "ESTABLISHED")
def _(t):
    t.calling(rtr=A, kinds=C_WRITE)
    return t.event()


@case("initiator.cut_off", "5044 7.1.2", "A Responder that closes without a Reply is no connection", "no connection",
      counts="dial_failed.no_reply dials_without_extension dials_with_revision_1")
def _(t):
    listener = t.listen()
    t.called(listener=listener).close()
    # It may try again, in other words.
    t.peer.tell("event")
    while True:
        ready, _, _ = select.select([listener, t.peer.control], [], [])
        if listener not in ready:
            return outcome(t.peer.answer().split()[0])
        listener.accept()[0].close()


@case("initiator.no_reply", "5044 7.1.2", "A Reply that does not come in time is no connection", "closed; no connection",
      options={"WEFT_CONNECT_TIMEOUT": "700"}, counts="dial_failed.timed_out")
def _(t):
    c = t.called()
    return seen(c.end(), outcome(t.event()))


@case("initiator.reply_drips", "5044 7.1.2", "Bytes of a Reply that drip in do not keep the connection: its time counts from "
      "its beginning", "closed; no connection", options={"WEFT_CONNECT_TIMEOUT": "700"}, counts="dial_failed.timed_out")
def _(t):
    c = t.called()
    # Six times as long as weft has, and half as long again as siw's ten seconds; no byte at that very moment, and the last one
    # never.
    c.socket.settimeout(0.7 if t.peer.name == "siw" else 0.2)
    for i in range(22):
        c.says(wire.reply()[i:i + 1])
        c.more()
        if c.ended:
            break
    # A byte that was on its way when it closed is answered by a reset.
    return seen("closed" if c.ended else "open", outcome(t.event()))


# --- what the two agreed on

@case("initiator.ord", "6581 9.1", "No more Read Requests are outstanding than the Reply's IRD allows",
      "Read Request, silent; Read Request, silent; success success")
def _(t):
    c = t.calling(reply=wire.reply(ird=1))
    t.event()
    said = []
    for msn in (1, 2):
        t.ask("remote", "read", 0x4321, 0x7000, 8, 0)
    for _ in (1, 2):
        f = c.frame()
        silent = c.asks_nothing(0.1)
        said.append(f"{c.describe(f)}, {'silent' if silent else 'not silent'}")
        stag, to = int.from_bytes(f.payload[:4], "big"), int.from_bytes(f.payload[4:12], "big")
        c.says_ulpdus(wire.tagged(wire.READ_RESPONSE, stag, to, wire.pattern(8, 1)))
    return seen(*said, f"{t.done()} {t.done()}")


# spec/siw 2.13: 0 is what siw has in a Reply that says no, and what its listeners have in revision 1.
@case("initiator.no_ird", "6581 9.1", "A Reply with an IRD of 0 allows no Read Request; what needs none is sent",
      ("Send; no Read Request, local-QP-operation-error", "Send; not posted"), weft="Send; no Read Request, local-QP-operation-error",
      siw="Send; not posted")
def _(t):
    c = t.calling(reply=wire.reply(ird=0))
    t.event()
    t.ask("send", "plain", 8, 0)
    said = c.describe(c.frame())
    t.done()
    try:
        t.ask("remote", "read", 0x4321, 0x7000, 8, 0)
    except PeerError:
        return seen(said, "not posted")
    f = c.frame()
    return seen(said, f"{'a' if f and f.op == wire.READ_REQUEST else 'no'} Read Request, {t.done()}")


@case("initiator.no_ord", "6581 9.1", "A Responder whose Reply has an ORD of 0 has no right to Read Requests",
      ("Read Response", "Terminate 0/2/07, closed"), weft="Read Response", siw="Terminate 0/2/07, closed")
def _(t):
    c = t.initiated(reply=wire.reply(ord=0))
    c.says_ulpdus(t.read(size=8))
    f = c.frame()
    return c.describe(f) + (f", {c.end()}" if f.op == wire.TERMINATE else "")


def crc_rules(name, rfc, sentence, expects, make, **more):
    """What the peer sends, and what it thinks of an FPDU with a wrong CRC."""
    @case(name, rfc, sentence, expects, **more)
    def _(t):
        c = make(t)
        t.ask("send", "plain", 9, 0)
        f = c.frame()
        sent = "CRC right" if f.crc_good else "CRC 0" if f.whole[-4:] == bytes(4) else "CRC wrong"
        c.says(wire.fpdu(wire.send(1, b"wrong"), spoil=0x55))
        got = t.got(b"wrong")
        return seen(sent, got, c.end() if got == "flushed" else "open")


ON, OFF = "CRC right; flushed; Terminate 2/0/02, closed", "CRC 0; got 5; open"
NO_CRC = {"WEFT_CRC": "off"}


def as_initiator(flags):
    def make(t):
        c = t.calling(flags)
        t.event()
        return c
    return make


crc_rules("crc.by_request", "5044 7.1.1", "C=1 in the Request turns the CRC on, for both directions", ON,
          lambda t: t.connected(), options=NO_CRC)
crc_rules("crc.by_reply", "5044 7.1.1", "C=1 in the Reply turns the CRC on, for both directions", ON, as_initiator(C | S),
          options=NO_CRC)
crc_rules("crc.by_own_request", "5044 7.1.1", "C=1 in the own Request turns the CRC on, whatever the Reply says", ON,
          as_initiator(S), skips={"siw": "siw's Request has C=0 (spec/siw 2.11)"})
crc_rules("crc.off", "5044 4.4", "Where neither asked for it the CRC is not checked; the field is there",
          (OFF, OFF.replace("CRC 0", "CRC right")), lambda t: t.connected(S), options=NO_CRC, weft=OFF, siw=OFF)
crc_rules("crc.off_initiator", "5044 4.4", "Where neither asked for it the CRC is not checked; the field is there",
          (OFF, OFF.replace("CRC 0", "CRC right")), as_initiator(S), options=NO_CRC, weft=OFF, siw=OFF)


# --- the peer-to-peer model

def first_frame(name, sentence, expects, rtr=0, kinds=0):
    @case(name, "6581 9.2", sentence, expects, options=P2P, skips=NEVER_ASKS)
    def _(t):
        c = t.calling(rtr=A | rtr, kinds=kinds)
        f = c.frame(idle=True)
        return seen(t.event(), f"{c.describe(f)} of {len(f.payload)} bytes" if f else c.end())


@case("p2p.asks", "6581 9.2", "A Request with A=1 names the RTR frames that the Initiator can send", "A with some",
      options=P2P,
      skips=NEVER_ASKS)
def _(t):
    t.called()
    some = t.request.rtr & B or t.request.kinds
    return f"{'A' if t.request.rtr & A else 'no A'} with {'some' if some else 'none'}"


first_frame("p2p.write", "The RTR frame that the Reply names is the first FPDU: the Write",
            "ESTABLISHED; Write of 0 bytes", 0, C_WRITE)
first_frame("p2p.read", "The RTR frame that the Reply names is the first FPDU: the Read",
            "ESTABLISHED; Read Request of 28 bytes", 0, D_READ)
first_frame("p2p.fpdu", "The RTR frame that the Reply names is the first FPDU: the empty one",
            "ESTABLISHED; empty FPDU of 0 bytes", B)


@case("p2p.no_match", "6581 9.2", "A Reply with A=1 that names no RTR frame ends the connection",
      "Terminate 2/0/07, closed; no connection",
      options=P2P, skips=NEVER_ASKS, counts="dial_failed.bad_reply reply_refused.no_matching_rtr")
def _(t):
    c = t.calling(rtr=A)
    return seen(c.end(), outcome(t.event()))


# spec/siw 2.6: siw's kernel dies of an end between its Reply and the RTR.
@case("p2p.ird_too_small", "6581 9.1", "An Initiator that cannot serve the Responder's ORD ends the connection",
      ("Write of 0 bytes; Terminate 2/0/06, closed; no connection", "Terminate 2/0/06, closed; no connection"),
      weft="Write of 0 bytes; Terminate 2/0/06, closed; no connection",
      options=P2P, skips=NEVER_ASKS, counts="dial_failed.bad_reply reply_refused.insufficient_ird")
def _(t):
    c = t.calling(reply=wire.reply(rtr=A, kinds=C_WRITE, ord=0x2000))
    rtr = c.frame(idle=True)
    return seen(f"{c.describe(rtr)} of {len(rtr.payload)} bytes", c.end(), outcome(t.event()))
