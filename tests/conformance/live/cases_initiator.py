"""Start-up frames, the peer as Initiator: RFC 5044 section 7.1, RFC 6581 sections 6 and 9."""

import socket

import wire
from case import case, seen
from cases_responder import PIECES
from wire import A, B, C, C_WRITE, D_READ, M, R, S

NEVER_ASKS = {"siw": "siw never asks for the peer-to-peer model (wire.md 7)"}
PLAIN = {"WEFT_EXT": "off"}
P2P = {"WEFT_P2P": "on", "WEFT_EXT": "off"}


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
request_has("initiator.crc", "5044 4.4", "By default a connection uses the CRC: C=1", "C=1",
            lambda r: f"C={int(bool(r.flags & C))}", siw=("C=0", "siw asks for no CRC unless its module is told to"))
request_has("initiator.no_kinds", "6581 9.2", "Without A there is no RTR frame in the Request", "none",
            lambda r: "some" if not r.rtr & A and (r.rtr or r.kinds) else "none")
request_has("initiator.reserved", "5044 7.1.1", "Reserved bits of the Request's flags are 0", "00",
            lambda r: f"{r.flags & 0x0F:02x}",
            differs={"weft": ("01", "it asks for weft's extension (wire.md 2.7); option ext=off does not")})
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

@case("initiator.reply_bytewise", "5044 7.1.2", "TCP may cut a Reply anywhere", "ESTABLISHED", skips=PIECES)
def _(t):
    t.calling(pieces=lambda f: [f[i:i + 1] for i in range(len(f))])
    return t.event()


@case("initiator.reply_in_three", "5044 7.1.2", "TCP may cut a Reply anywhere", "ESTABLISHED")
def _(t):
    t.calling(pieces=lambda f: [f[:7], f[7:20], f[20:]])
    return t.event()


@case("initiator.reply_data", "5044 7.1.1", "The program gets the Reply's private data unchanged", "right")
def _(t):
    data = wire.pattern(200, 4)
    t.calling(reply=wire.reply(data=data))
    told = t.ask("event")
    return "right" if told.startswith("ESTABLISHED") and told.split("data=")[1].startswith(data.hex()) else told


def bad_reply(name, rfc, sentence, frame, code, silent=True, **more):
    """The connection ends. A Terminate may say why, and must where not `silent`."""
    @case(name, rfc, sentence,
          [f"Terminate 2/0/{code}, closed; no connection"] + (["closed; no connection"] if silent else []), **more)
    def _(t):
        c = t.calling(reply=frame)
        c.crc = False  # nothing was agreed on
        return seen(c.end(), outcome(t.event()))


def changed(at, value):
    frame = bytearray(wire.reply())
    frame[at] = value
    return bytes(frame)


bad_reply("initiator.reply_key", "5044 7.1.1", "A Reply with another key ends the connection", changed(15, ord("E")), "04")
bad_reply("initiator.reply_is_request", "5044 7.1.1", "A Request in place of the Reply ends the connection",
          wire.request(), "04")
bad_reply("initiator.reply_rev_3", "5044 7.1.1", "A Reply of a revision that nobody asked for ends the connection",
          changed(17, 3), "04")
bad_reply("initiator.reply_513", "5044 7.1.1", "More than 512 bytes of private data end the connection",
          wire.reply(data=bytes(509)), "04",
          skips={"siw": "the guest's kernel dies: iw_cm copies private data that siw does not have"})
bad_reply("initiator.block_cut", "6581 6", "A Reply that announces the enhanced block and has less is no Reply",
          wire.start_frame(wire.REPLY_KEY, C | S, b"\0\4"), "04",
          siw=("Terminate 2/0/06, closed; no connection", "siw reads the block past its end"))
bad_reply("initiator.ird_too_small", "6581 9.1", "An Initiator that cannot serve the Responder's ORD ends the connection",
          wire.reply(ord=0x2000), "06", silent=False)


@case("initiator.reply_rev_1", "6581 10", "A Reply of revision 1 to a Request of revision 2 is no connection of revision "
      "2; the "
      "Initiator may try again with revision 1", "again with rev 1; ESTABLISHED",
      siw=("no connection", "siw does not try again (wire.md 7)"))
def _(t):
    listener = t.listen()
    t.called(listener=listener).says(wire.reply(C, rev=1))
    listener.settimeout(1)
    try:
        c = t.raw(listener.accept()[0])
    except socket.timeout:
        return outcome(t.event())
    rev = c.start().rev
    c.says(wire.reply(C, rev=rev))
    return seen(f"again with rev {rev}", t.event())


@case("initiator.told", "6581 9.1", "The program is told the Reply's numbers", "ESTABLISHED IRD 2 ORD 3",
      differs={"weft": ("ESTABLISHED IRD 8 ORD 3", "it tells the IRD that the connection has, which is no less than the Reply's "
                        "ORD"),
               "siw": ("ESTABLISHED IRD 3 ORD 2", "siw tells them the other way round")})
def _(t):
    t.calling(reply=wire.reply(ird=3, ord=2))
    name, *numbers = t.ask("event").split()[:3]
    told = dict(w.split("=") for w in numbers)
    return f"{name} IRD {told['ird']} ORD {told['ord']}"


@case("initiator.rejected", "5044 7.1.2", "The program is told of a rejection, with the Responder's data",
      "REJECTED; data right")
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


@case("initiator.cut_off", "5044 7.1.2", "A Responder that closes without a Reply is no connection", "no connection")
def _(t):
    listener = t.listen()
    t.called(listener=listener).close()
    # It may try again, in other words.
    listener.settimeout(0.5)
    try:
        while True:
            listener.accept()[0].close()
    except socket.timeout:
        return outcome(t.event())


@case("initiator.no_reply", "5044 7.1.2", "A Reply that does not come in time is no connection", "closed; no connection",
      options={"WEFT_CONNECT_TIMEOUT": "700"})
def _(t):
    c = t.called()
    return seen(c.end(), outcome(t.event()))


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
          as_initiator(S), skips={"siw": "siw's Request has C=0 (wire.md 7)"})
crc_rules("crc.off", "5044 4.4", "Where neither asked for it the CRC is not checked; the field is there",
          (OFF, OFF.replace("CRC 0", "CRC right")), lambda t: t.connected(S), options=NO_CRC)
crc_rules("crc.off_initiator", "5044 4.4", "Where neither asked for it the CRC is not checked; the field is there",
          (OFF, OFF.replace("CRC 0", "CRC right")), as_initiator(S), options=NO_CRC)


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
      options=P2P, skips=NEVER_ASKS)
def _(t):
    c = t.calling(rtr=A)
    return seen(c.end(), outcome(t.event()))
