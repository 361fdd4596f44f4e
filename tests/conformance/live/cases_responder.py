"""Start-up frames, the peer as Responder: RFC 5044 section 7.1, RFC 6581 sections 6 and 9."""

import socket

import wire
from case import case, not_asked, seen
from peer import PeerError
from wire import A, B, C, C_WRITE, D_READ, M, R, S

GONE = "no Reply, closed"
RESET = ("no Reply, reset", "siw closes over what it has not read, which TCP makes a reset of", False)
TAKEN = "rev 2 C S"
TOO_LONG = "siw takes up to 256 bytes of private data (spec/siw 2.7)"


def refused(why):
    return {"counts": f"start_refused.{why}"}


def asked(name, rfc, sentence, frame, expects, **more):
    """A Request of these bytes; what matters is the Reply, or that there is none."""
    case(name, rfc, sentence, expects, **more)(lambda t: t.answered(frame() if callable(frame) else frame))


def changed(at, value):
    frame = bytearray(wire.request())
    frame[at] = value
    return bytes(frame)


asked("request.good", "5044 7.1.2", "A Request that is right is answered with a Reply", wire.request(), TAKEN)
for byte in (0, 7, 15):
    asked(f"request.key_{byte}", "5044 7.1.1", "A Request with another key ends the connection", changed(byte, ord("_")),
          GONE, **refused("bad_key"))
asked("request.reply_key", "5044 7.1.1", "A Reply in place of the Request ends the connection",
      wire.start_frame(wire.REPLY_KEY, C | S, wire.block()), GONE, **refused("bad_key"))
asked("request.rev_0", "5044 7.1.1", "A revision that the receiver does not know ends the connection", changed(17, 0), GONE,
      siw=("rev 0 C S without its block", "siw takes revision 0 (spec/siw 2.9)"), **refused("bad_revision"))
for rev in (3, 255):
    asked(f"request.rev_{rev}", "5044 7.1.1", "A revision that the receiver does not know ends the connection",
          changed(17, rev), GONE, **refused("bad_revision"))
asked("request.rev_1", "6581 10", "Revision 1 is answered with revision 1, without the enhanced block",
      wire.request(C, rev=1), "rev 1 C")
asked("request.no_block", "6581 10", "Revision 2 without the enhanced block is answered without it", wire.request(C),
      "rev 2 C")
asked("request.length_513", "5044 7.1.1", "More than 512 bytes of private data end the connection",
      wire.request(data=bytes(509)), GONE, siw=RESET, **refused("private_data_too_long"))
asked("request.length_65535", "5044 7.1.1", "More than 512 bytes of private data end the connection",
      wire.start_frame(wire.REQUEST_KEY, C | S, wire.block(), length=65535), GONE, siw=RESET,
      **refused("private_data_too_long"))
asked("request.length_512", "5044 7.1.1", "512 bytes of private data are taken", wire.request(data=wire.pattern(508, 1)),
      TAKEN,
      siw=(RESET[0], TOO_LONG))
asked("request.length_256", "5044 7.1.1", "Up to 512 bytes of private data are taken",
      wire.request(C, data=wire.pattern(256, 1), rev=1), "rev 1 C")
# spec/siw 2.7: up to here siw takes them, and from there on it does not, next to the enhanced block and without it.
asked("request.data_252", "5044 7.1.1", "Up to 512 bytes of private data are taken, the enhanced block among them",
      wire.request(data=wire.pattern(252, 1)), TAKEN)
asked("request.data_253", "5044 7.1.1", "Up to 512 bytes of private data are taken, the enhanced block among them",
      wire.request(data=wire.pattern(253, 1)), TAKEN, siw=(RESET[0], TOO_LONG))
asked("request.length_257", "5044 7.1.1", "Up to 512 bytes of private data are taken",
      wire.request(C, data=wire.pattern(257, 1), rev=1), "rev 1 C", siw=(RESET[0], TOO_LONG))
for n in (0, 3):
    asked(f"request.block_cut_{n}", "6581 6", "A Request that announces the enhanced block and has less is no Request",
          wire.start_frame(wire.REQUEST_KEY, C | S, bytes(n)), GONE, **refused("enhanced_block_missing"),
          siw=("rev 2 C R S without its block, closed", "siw rejects with the Request's flags, and so with a block that it does not "
               "send either (spec/siw 2.8)"))
asked("request.reserved", "5044 7.1.1", "Reserved bits of the flags are ignored", changed(16, C | S | 0x0C), TAKEN)
asked("request.r", "5044 7.1.1", "The R bit of a Request is ignored", changed(16, C | S | R), TAKEN,
      siw=("rev 2 C R S, open", "siw's Reply has the flags of the Request (spec/siw 2.8), R too"))
asked("reply.no_crc", "5044 7.1.1", "Where neither side asks for the CRC the Reply has C=0", wire.request(S), "rev 2 S",
      options={"WEFT_CRC": "off"})
asked("reply.crc", "5044 4.4", "By default a connection uses the CRC, also where the Request does not ask for it", wire.request(S),
      TAKEN, siw=("rev 2 S", "siw asks for no CRC unless its module is told to"))
asked("request.markers", "5044 7.1.1", "A Request with M=1 gets a connection, in which this side sends markers",
      wire.request(M | C | S), TAKEN,
      siw=("rev 2 C R S, closed", "siw has no markers and rejects (spec/siw 2.12)"))


@case("reply.reserved", "5044 7.1.1", "Reserved bits of the Reply's flags are 0, whatever the Request had", "00",
      siw=("0c", "siw's Reply has the reserved bits of the Request (spec/siw 2.8)"))
def _(t):
    t.answered(changed(16, C | S | 0x0C))
    return f"{t.reply.flags & 0x0C:02x}"


@case("reply.key", "5044 7.1.1", "The Reply's key", "MPA ID Rep Frame")
def _(t):
    t.answered(wire.request())
    return t.reply.key.decode()


@case("private_data.up", "5044 7.1.1", "The program gets the Request's private data unchanged", "right")
def _(t):
    data = wire.pattern(200, 6)
    t.asks(wire.request(data=data))
    told = t.asked.split("data=")[1]
    # librdmacm may tell more bytes than there were.
    return "right" if told.startswith(data.hex()) else told


@case("private_data.down", "5044 7.1.1", "The Reply has the program's private data behind the enhanced block", "right")
def _(t):
    data = wire.pattern(200, 7)
    t.asks(wire.request(), data=data)
    return "right" if t.reply.data == data else t.reply.data.hex()


def reply_has(name, verb, n, *expects, **more):
    """spec/siw 2.7: next to the enhanced block 252 bytes are the most that siw takes, and its kernel dies of more."""
    @case(name, "5044 7.1.1", "The Reply has the program's private data, if the program may give so much",
          expects, options={"WEFT_PRIVATE_DATA": "255"}, **more)
    def _(t):
        data = wire.pattern(n, 7)
        c = t.dial()
        c.says(wire.request())
        t.ask("request", 0, 0, 15000)
        words = (verb, 8, 8) if verb == "accept" else (verb,)
        try:
            t.ask(*words, data)
            said = []
        except PeerError:
            said, data = ["not taken"], b""
            try:
                t.ask(*words, data)
            except PeerError:
                said.append("nor less")
        reply = c.start()
        return seen(*said, f"{len(reply.data)} bytes {'right' if reply.data == data else 'wrong'}" if reply else "no Reply")


EIGHT_BITS = "siw counts private data and block in 8 bits (spec/siw 2.7)"
NOT_TAKEN = "not taken; 0 bytes right"
reply_has("private_data.accept_252", "accept", 252, "252 bytes right", siw=("0 bytes wrong", EIGHT_BITS))
reply_has("private_data.accept_253", "accept", 253, "253 bytes right", NOT_TAKEN, weft=NOT_TAKEN, counts="private_data_refused",
          siw=("not taken; nor less; no Reply", "siw ends a connection whose program gives too much"))
reply_has("private_data.reject_252", "reject", 252, "252 bytes right", siw=("0 bytes wrong", EIGHT_BITS))
reply_has("private_data.reject_253", "reject", 253, "253 bytes right", NOT_TAKEN, weft=NOT_TAKEN, counts="private_data_refused",
          siw=("1 bytes wrong", EIGHT_BITS))


@case("private_data.none", "5044 7.1.1", "PD_Length counts what follows and nothing more", "0 bytes, silent")
def _(t):
    c = t.asks(wire.request())
    return f"{len(t.reply.data)} bytes, {'silent' if c.is_silent(0.05) else 'not silent'}"


# --- IRD and ORD

def negotiated(name, sentence, expects, look, program=(8, 8), siw=None, weft=None, **request):
    @case(name, "6581 9.1", sentence, expects, siw=siw, weft=weft)
    def _(t):
        t.asks(wire.request(**request), ird=program[0], ord=program[1])
        return look(t.reply)


negotiated("ird_ord.fewer", "The Responder's ORD is at most the Request's IRD, its IRD no less than the Request's ORD",
           "ORD allowed, IRD enough",
           lambda r: f"ORD {'allowed' if r.ord <= 3 else r.ord}, IRD {'enough' if r.ird >= 2 else r.ird}", ird=3, ord=2)
negotiated("ird_ord.more", "The Reply has what the Responder really does: its own numbers, or an IRD as the Request wants it",
           ("IRD 2 ORD 2", "IRD 8 ORD 2"), lambda r: f"IRD {r.ird} ORD {r.ord}", program=(2, 2), weft="IRD 2 ORD 2",
           siw="IRD 8 ORD 2", ird=8, ord=8)


@case("ird_ord.told", "6581 9.1", "The program is told the Request's numbers: its own ORD may be the other's IRD, and the "
      "other way round", "IRD 2 ORD 3")
def _(t):
    t.asks(wire.request(ird=3, ord=2))
    told = dict(w.split("=") for w in t.asked.split()[1:3])
    return f"IRD {told['ird']} ORD {told['ord']}"


negotiated("ird_ord.none", "An IRD of 0 allows no Read Request of the Responder's", "ORD 0", lambda r: f"ORD {r.ord}",
           ird=0, ord=4)
for name, asks, expects in (("ird", {"ird": 0x3FFF, "ord": 4}, "ORD 3fff"), ("ord", {"ird": 4, "ord": 0x3FFF}, "IRD 3fff")):
    negotiated(f"ird_ord.no_{name}", "0x3FFF leaves the number to the programs, and is answered with 0x3FFF", expects,
               lambda r, name=name: f"ORD {r.ord:x}" if name == "ird" else f"IRD {r.ird:x}",
               siw=("ORD 8" if name == "ird" else "IRD 80", "siw takes it for a number (spec/siw 2.13)"), **asks)


# --- peer to peer, and who speaks first

def kinds(reply):
    return " ".join(name for name, bit in (("A", reply.rtr & A), ("B", reply.rtr & B), ("C", reply.kinds & C_WRITE),
                                           ("D", reply.kinds & D_READ)) if bit) or "none"


def ready(t, c):
    """Sends the RTR frame that the Reply names: a kernel with siw does not survive an end before it (spec/mpa 2.5.6)."""
    if t.reply.rtr & A:
        if t.reply.kinds & C_WRITE:
            c.says_ulpdus(wire.write(1, 0))
        elif t.reply.kinds & D_READ:
            c.says_ulpdus(wire.read_request(1, 0, 0, 0, 1, 0))
        else:
            c.says(wire.fpdu(b""))
    return t.event()


def agreed(name, sentence, expects, rtr=0, offered=0, **more):
    @case(name, "6581 9.2", sentence, expects, **more)
    def _(t):
        c = t.asks(wire.request(rtr=rtr, kinds=offered))
        answer = kinds(t.reply)
        return seen(answer, ready(t, c))


SOME = ("A C; ESTABLISHED", "A D; ESTABLISHED", "A B; ESTABLISHED", "A C D; ESTABLISHED", "A B C; ESTABLISHED",
        "A B D; ESTABLISHED", "A B C D; ESTABLISHED")
agreed("rtr.all", "Of several RTR frames that are offered the Reply names one at least", SOME, A | B, C_WRITE | D_READ,
       weft="A C; ESTABLISHED", siw="A C; ESTABLISHED")
agreed("rtr.write", "An RTR frame that is offered alone is taken: the Write", "A C; ESTABLISHED", A, C_WRITE)
agreed("rtr.read", "An RTR frame that is offered alone is taken: the Read", "A D; ESTABLISHED", A, D_READ)
agreed("rtr.fpdu", "An RTR frame that is offered alone is taken, or the Reply names one that the Responder knows: the empty "
       "FPDU", SOME, A | B, weft="A B; ESTABLISHED", siw="A C; ESTABLISHED")
agreed("rtr.nothing_offered", "Where no RTR frame is offered the Reply names one that the Responder knows", SOME, A,
       weft="A C; ESTABLISHED", siw="A C; ESTABLISHED")
agreed("rtr.not_asked", "Without A in the Request there is none in the Reply, and no RTR frame", "none; ESTABLISHED", 0,
       C_WRITE | D_READ)


def before_first(t, c, seconds=0.3):
    """The program sends; silence, then the first FPDU of this side, then what the program sent."""
    t.ask("send", "plain", 8, 0)
    silent = c.is_silent(seconds)
    if t.reply.rtr & A:
        ready(t, c)
    else:
        c.says_ulpdus(wire.write(1, 0))
    frame = c.frame()
    return seen("silent" if silent else "not silent", c.describe(frame) if frame else "nothing")


SPEAKS = "siw's Responder does not wait for the first FPDU (spec/siw 2.4)"


@case("responder.silent", "5044 7.1.2", "The Responder sends no FPDU before it has one of the Initiator", "silent; Send",
      options={"WEFT_RESPONDER_WAIT": "0"}, siw=("not silent; Send", SPEAKS))
def _(t):
    return before_first(t, t.connected(opening=False))


@case("responder.silent_default", "5044 7.1.2", "The Responder sends no FPDU before it has one of the Initiator",
      "silent; Send",
      differs={"weft": ("not silent; Send",
                        "it waits 100 ms: siw's Initiator sends nothing unasked, and programs whose server "
                                            "speaks first would hang (option responder_wait)"),
               "siw": ("not silent; Send", SPEAKS)})
def _(t):
    return before_first(t, t.connected(opening=False), t.peer.patience)


@case("responder.silent_rtr", "5044 7.1.2", "In the peer-to-peer model, too, the Responder waits for the first FPDU",
      "silent; Send", siw=("not silent; Send", SPEAKS))
def _(t):
    return before_first(t, t.asks(wire.request(rtr=A, kinds=C_WRITE)))


@case("rtr.read_counts", "6581 9.2", "The RTR Read is a Read Request as any other: it is answered, and the next has MSN 2",
      "Read Response of 0; Read Response of 16")
def _(t):
    c = t.asks(wire.request(rtr=A, kinds=D_READ))
    ready(t, c)
    first = c.frame()
    c.says_ulpdus(t.read(msn=2, size=16))
    return seen(*(f"{c.describe(f)} of {len(f.payload)}" for f in [first, *c.frames(1)] if f))


# --- the program rejects

def rejected(name, frame, expects, **more):
    @case(name, "5044 7.1.2", "A connection that is rejected ends with a Reply that has R=1 and the program's data",
          expects, **more)
    def _(t):
        c = t.dial()
        c.says(frame)
        t.ask("request", 0, 0, 15000)
        data = wire.pattern(60, 8)
        t.ask("reject", data)
        reply = c.start()
        if not reply:
            return "no Reply"
        return seen(reply.text(), "data right" if reply.data == data else reply.data.hex(), c.end())


@case("reject.drop", "5044 7.1.2", "A connection whose program is not there any more to decide is rejected", "rev 2 C R S, closed",
      counts="cm_rejected.id_gone")
def _(t):
    c = t.dial()
    c.says(wire.request())
    t.ask("request", 0, 0, 15000)
    t.ask("drop")
    return t.verdict(c)


rejected("reject", wire.request(), "rev 2 C R S; data right; closed", counts="cm_rejected.by_program")
rejected("reject.rev_1", wire.request(C, rev=1), "rev 1 C R; data right; closed", counts="cm_rejected.by_program")


# --- bytes that come in pieces, late, or not at all

def in_pieces(name, cut, **more):
    @case(name, "5044 7.1.2", "TCP may cut a Request anywhere", "rev 2 C S, 20 bytes right", **more)
    def _(t):
        frame = wire.request(data=wire.pattern(20, 9))
        t.asks(frame, pieces=cut(frame))
        right = t.asked.split("data=")[1].startswith(wire.pattern(20, 9).hex())
        return f"{t.reply.text()}, 20 bytes {'right' if right else 'wrong'}"


PIECES = not_asked("it hangs", "siw puts each piece of the private data over the one before it, and waits for ever")
in_pieces("request.bytewise", lambda f: [f[i:i + 1] for i in range(len(f))], siw=PIECES)
in_pieces("request.in_three", lambda f: [f[:10], f[10:20], f[20:]])


@case("request.half", "5044 7.1.2", "Nothing is sent before the whole Request is there", "silent; rev 2 C S")
def _(t):
    c = t.dial()
    frame = wire.request(data=bytes(20))
    c.says(frame[:40])
    silent = c.is_silent(0.1)
    c.says(frame[40:])
    return seen("silent" if silent else "not silent", t.verdict(c))


@case("request.fin", "5044 7.1.2", "A connection that ends inside the Request comes to nothing", GONE,
      siw=not_asked("the guest's kernel complains", "siw counts such a connection wrong when its listener goes"),
      **refused("peer_left"))
def _(t):
    c = t.dial()
    c.says(wire.request()[:21])
    c.fin()
    return t.verdict(c)


@case("request.never", "5044 7.1.2", "A Request that does not come in time ends the connection", "closed",
      **refused("request_late"))
def _(t):
    c = t.dial()
    return c.end()


@case("request.never_whole", "5044 7.1.2", "A Request that does not come to its end in time ends the connection", "closed",
      **refused("request_late"))
def _(t):
    c = t.dial()
    c.says(wire.request()[:19])
    return c.end()


@case("request.drips", "5044 7.1.2", "Bytes of a Request that drip in do not keep the connection: its time counts from its "
      "beginning", "closed", **refused("request_late"))
def _(t):
    c = t.dial()
    c.socket.settimeout(0.4)  # no byte at the very moment when the time is over
    for i in range(40):
        c.says(wire.request()[i:i + 1])
        c.more()
        if c.ended:
            break
    return c.ended or "open"


@case("request.crowd", "5042 6.4.1", "Callers that say nothing keep others out no longer than their time lasts", "rev 2 C S",
      counts="accept_paused.half_open+ start_refused.request_late+")
def _(t):
    c = t.dial()
    for _ in range(300):
        t.raw(socket.create_connection(c.socket.getpeername(), 5))
    good = t.raw(socket.create_connection(c.socket.getpeername(), 5))
    good.says(wire.request())
    return t.verdict(good)


@case("request.glued", "5044 7.1.2", "The Initiator sends no FPDU before it has the Reply; one that does is cut off", GONE,
      siw=RESET, **refused("bytes_behind_request"))
def _(t):
    return t.answered(wire.request() + wire.fpdu(wire.write(1, 0)))


@case("request.impatient", "5044 7.1.2", "The Initiator sends no FPDU before it has the Reply; one that does is cut off, also "
      "while the program decides", GONE, **refused("fpdu_before_reply"),
      siw=("no Reply, open", "siw looks at what comes when the program has decided"))
def _(t):
    c = t.dial()
    c.says(wire.request())
    t.ask("request", 0, 0, 15000)
    c.says_ulpdus(wire.write(1, 0))
    return f"{'a' if c.start() else 'no'} Reply, {c.ended or 'open'}"


@case("request.twice", "5044 7.1.2", "Behind the Request there are FPDUs only",
      ("closed", "Terminate 2/0/02, closed", "Terminate 2/0/03, closed"),
      weft="Terminate 2/0/02, closed", siw=("Terminate 0/2/05, reset", "siw looks at the header before it has the CRC, and closes "
                                            "over what it has not read"))
def _(t):
    c = t.connected(opening=False)
    c.says(wire.request() * 1000)  # its key is the length of an FPDU
    return c.end()
