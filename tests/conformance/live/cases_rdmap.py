"""RDMAP messages: RFC 5040 sections 4, 5 and 7."""

import struct

import wire
from case import case, seen
from cases_ddp import DATA, offence, told
from cases_fpdu import in_both_roles
from wire import READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERMINATE, WRITE

# --- opcodes and versions

for rv in (0, 2, 3):
    offence(f"rdmap.rv_{rv}", "5040 7.2", "The RDMAP version is 1", lambda t, rv=rv: [wire.send(1, DATA, rv=rv)], "0/2/05",
            both=False)
    offence(f"rdmap.rv_{rv}_tagged", "5040 7.2", "The RDMAP version is 1", lambda t, rv=rv: [t.write(0, DATA, rv=rv)],
            "0/2/05", both=False)
for op in range(8, 16):
    name = wire.NAMES[op].lower().replace(" ", "_")
    offence(f"opcode.{op}", "5040 7.2", "An opcode that is not known, or was not agreed on, is unexpected",
            lambda t, op=op: [wire.untagged(op, 1 if op == 10 else 3 if op == 11 else 0, 1, payload=bytes(52))], "0/2/06",
            both=op == 15)
TAGGED = "siw goes by the opcode alone, and takes the one header for the other"
offence("opcode.write_untagged", "5040 7.2", "A Write is tagged", lambda t: [wire.untagged(WRITE, 0, 1, payload=DATA)],
        "0/2/06", both=False, siw=("1/1/00", TAGGED))
offence("opcode.send_tagged", "5040 7.2", "A Send is untagged", lambda t: [wire.tagged(SEND, t.keys["rw"], t.to, DATA)],
        "0/2/06", both=False, siw=("1/2/01", TAGGED))
offence("opcode.response_untagged", "5040 7.2", "A Read Response is tagged",
        lambda t: [wire.untagged(READ_RESPONSE, 0, 1, payload=DATA)],
        "0/2/06", both=False, siw=("1/0/00", TAGGED))
offence("opcode.request_tagged", "5040 7.2", "A Read Request is untagged",
        lambda t: [wire.tagged(READ_REQUEST, t.keys["rw"], t.to, bytes(40))], "0/2/06", both=False, siw=("closed; flushed; nothing placed", TAGGED))


# --- Sends

for op, name in ((SEND, "plain"), (SEND_SE, "se")):
    @in_both_roles(f"send.{name}", "5040 5.3", "A Send, solicited or not, is delivered to the next receive", "got 16")
    def _(t, c, op=op):
        c.says_ulpdus(wire.send(1, DATA, op=op))
        return t.got(DATA)


def invalidatable(t):
    """A key that a Send may invalidate: a window's, or, where there are none, a region's."""
    if t.keys["atomics"]:  # weft
        return int(t.ask("bind"))
    return t.keys["rw"]


for op, name in ((SEND_INV, "inv"), (SEND_SE_INV, "se_inv")):
    @case(f"send.{name}", "5040 5.3", "The STag that a Send invalidates is invalid when it is delivered",
          "16 placed; got 16 inv; Terminate 1/1/00, closed",
          siw=("16 placed; got 16; Terminate 1/1/00, closed", "siw's completions do not tell what was invalidated"))
    def _(t, op=op):
        c = t.connected()
        key = invalidatable(t)
        c.says_ulpdus(wire.write(key, t.to, DATA), wire.send(1, DATA, op=op, word=key))
        got = t.got(DATA)
        placed = "16 placed" if t.window(0, 16) == DATA else "not placed"
        c.says_ulpdus(wire.write(key, t.to, bytes(16)))
        return seen(placed, got, c.end())


@case("send.word_ignored", "5040 4.1", "A Send that invalidates nothing has a reserved field in place of the STag",
      "got 16; 16 bytes placed")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.send(1, DATA, word=t.keys["rw"]), t.write(0, bytes(b ^ 0xFF for b in t.original(0, 16))),
                  wire.send(2, b"now"))
    got = t.got(DATA)
    t.got(b"now")
    return seen(got, t.placed())


def not_invalidated(name, sentence, word, expects, **more):
    @case(name, "5040 7.2", sentence, expects, **more)
    def _(t):
        c = t.connected()
        c.says_ulpdus(wire.send(1, DATA, op=SEND_INV, word=word(t)))
        return c.end()


IGNORED = ("open", "siw goes on as if nothing was")
not_invalidated("send.inv_unknown", "A Send cannot invalidate an STag that does not exist", lambda t: t.keys["rw"] ^ 0x5500,
                ("Terminate 0/2/09, closed", "Terminate 0/1/00, closed"), weft="Terminate 0/2/09, closed", siw=IGNORED)
not_invalidated("send.inv_foreign", "A Send cannot invalidate an STag of another protection domain",
                lambda t: t.keys["foreign"],
                ("Terminate 0/1/09, closed", "Terminate 0/1/03, closed", "Terminate 0/2/09, closed"),
                weft="Terminate 0/1/09, closed", siw=IGNORED)


@case("send.inside_send", "5041 5.2", "A message ends before the next one of its queue begins",
      ("Terminate 0/2/06, closed; flushed", "Terminate 1/2/03, closed; flushed"), weft="Terminate 1/2/03, closed; flushed",
      siw="Terminate 1/2/03, closed; flushed")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.send(1, DATA, last=False), wire.send(2, DATA))
    return seen(c.end(), t.got())


@case("send.opcode_changes", "5041 4.3", "All segments of a message have one opcode; a receiver that looks ends the stream",
      ("Terminate 0/2/06, closed; flushed", "closed; flushed"), weft="Terminate 0/2/06, closed; flushed",
      siw="closed; flushed")
def _(t):
    c = t.connected()
    # No FIN of the driver's: who does not look has a whole message, and goes on.
    c.says_ulpdus(wire.send(1, DATA, last=False), wire.send(1, DATA, op=SEND_SE, mo=16))
    return seen(c.end(), t.got())


# --- Read Requests that the peer serves

def response(c, n, sink=0x1234, to=0x5000):
    """Takes a Read Response of so many bytes; what is wrong with it, and the bytes."""
    frames = []
    while sum(len(f.payload) for f in frames) < n or not frames:
        f = c.frame()
        if f is None or f.op != READ_RESPONSE:
            return f"no Read Response but {c.describe(f) if f else c.end()}", b""
        frames.append(f)
    offsets = [to + sum(len(f.payload) for f in frames[:i]) for i in range(len(frames))]
    facts = {"STag": {f.stag for f in frames} == {sink}, "TO": [f.to for f in frames] == offsets,
             "L at the end": [f.last for f in frames] == [False] * (len(frames) - 1) + [True],
             "CRC": all(f.crc_good for f in frames)}
    return told(facts), b"".join(f.payload for f in frames)


@in_both_roles("read.served", "5040 5.2", "A Read Request is answered with the bytes that it names, for the sink that it "
               "names",
               "all right; bytes right")
def _(t, c):
    c.says_ulpdus(t.read(size=64, offset=777))
    facts, data = response(c, 64)
    return seen(facts, "bytes right" if data == t.original(777, 64) else "bytes wrong")


@case("read.large", "5040 5.2", "A response of several segments has TO that follow each other, and L at its end",
      "all right; bytes right")
def _(t):
    c = t.connected(mss=1400)
    c.says_ulpdus(t.read(size=65536))
    facts, data = response(c, 65536)
    return seen(facts, "bytes right" if data == t.original(0, 65536) else "bytes wrong")


@case("read.empty", "5040 5.2.1", "A Read Request of no bytes is answered, and its source is not checked", "all right; 0")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.read_request(1, 0x1234, 0x5000, 0, 0xDEADBE00, 0))
    facts, data = response(c, 0)
    return seen(facts, str(len(data)))


@case("read.any_sink", "5040 5.2.1", "The sink is the requester's business: its STag and TO come back as they are",
      "all right")
def _(t):
    c = t.connected()
    c.says_ulpdus(t.read(size=8, sink=0, sink_to=2**64 - 8))
    return response(c, 8, 0, 2**64 - 8)[0]


@case("read.in_order", "5040 5.5", "Read Requests are answered in their order",
      "all right, all right, all right; bytes right")
def _(t):
    c = t.connected()
    c.says_ulpdus(*(t.read(msn=1 + i, size=100 + i, offset=1000 * i, sink=50 + i) for i in range(3)))
    answers = [response(c, 100 + i, 50 + i) for i in range(3)]
    right = all(data == t.original(1000 * i, 100 + i) for i, (_, data) in enumerate(answers))
    return seen(", ".join(facts for facts, _ in answers), f"bytes {'right' if right else 'wrong'}")


@case("read.behind_write", "5040 5.5", "A Read Request sees the Writes before it", "all right; bytes right")
def _(t):
    c = t.connected()
    data = wire.pattern(64, 6)
    c.says_ulpdus(t.write(500, data), t.read(size=64, offset=500))
    facts, came = response(c, 64)
    return seen(facts, "bytes right" if came == data else "bytes wrong")


NO_CHECK = "siw does not ask whether a region may be read"


@case("read.write_only", "5040 8.1.1", "The sink of a read needs no right of the source's; the source needs one to read",
      "Terminate 0/1/02, closed; flushed", siw=("Read Response, open; no completion", NO_CHECK))
def _(t):
    c = t.connected()
    c.says_ulpdus(t.read(key="wo"))
    return seen(c.end(), t.got())


LATE = "siw finds it when it answers, and then leaves the receives where they are"
UNSEEN = "Read Response, open; no completion; nothing placed"


def late(error):
    return f"Terminate {error}, closed; no completion; nothing placed", LATE


offence("read.unknown_stag", "5040 7.2", "The source of a Read must be valid",
        lambda t: [wire.read_request(1, 1, 0, 8, t.keys["rw"] ^ 0x5500, t.to)], "0/1/00",
        siw=late("0/1/00"))
offence("read.gone", "5040 7.2", "The source of a Read must be valid", lambda t: [t.read(key="gone")], "0/1/00", both=False,
        siw=late("0/1/00"))
offence("read.before", "5040 7.2", "A Read must not begin before its source", lambda t: [t.read(offset=-1)], "0/1/01",
        both=False, siw=late("0/1/01"))
offence("read.behind", "5040 7.2", "A Read must not end behind its source", lambda t: [t.read(offset=65536 - 63)],
        "0/1/01", both=False, siw=late("0/1/01"))
offence("read.huge", "5040 7.2", "A Read must not end behind its source", lambda t: [t.read(size=2**32 - 1)], "0/1/01",
        both=False, siw=late("0/1/00"))
offence("read.wraps", "5040 7.2", "The tagged offset must not wrap",
        lambda t: [wire.read_request(1, 1, 0, 64, t.keys["rw"], 2**64 - 63)], "0/1/04", both=False,
        siw=("closed; no completion; nothing placed", LATE + "; it has no error for it"))
offence("read.foreign", "5040 7.2", "The source must belong to the stream's protection domain",
        lambda t: [t.read(key="foreign")],
        "0/1/03", both=False, siw=late("0/1/03"))
offence("read.no_rights", "5040 8.1.1", "A Read needs the right to read", lambda t: [t.read(key="mine")], "0/1/02", both=False,
        siw=(UNSEEN, NO_CHECK))
for msn in (0, 2):
    offence(f"read.msn_{msn}", "5041 4.3", "The first Read Request has MSN 1", lambda t, msn=msn: [t.read(msn=msn)],
            "1/2/03", both=False)
offence("read.mo", "5041 7.1", "A Read Request has MO 0", lambda t: [t.read(mo=4)], "1/2/04", both=False,
        siw=(UNSEEN, "siw does not look at it"))
offence("read.qn_0", "5040 5.2.1", "A Read Request has queue 1",
        lambda t: [wire.untagged(READ_REQUEST, 0, 1, payload=t.read()[18:])], "1/2/01", both=False,
        siw=(UNSEEN, "siw goes by the opcode and does not look at it"))
offence("read.trailing", "5040 4.4", "Nothing follows the header of a Read Request", lambda t: [t.read() + b"more"],
        "1/2/05", both=False, siw=("closed; flushed; nothing placed", "siw ends the stream, and has no error for its length"))


@case("read.beyond_ird", "5040 6.1", "More Read Requests at once than the IRD allows end the stream",
      "an end with a Terminate")
def _(t):
    c = t.asks(wire.request(ird=8, ord=2), ird=2, ord=2)
    t.event()
    # So large that none is answered before the last has come.
    c.says(b"".join(wire.fpdu(t.read(msn=1 + i, size=65536)) for i in range(64)))
    end = c.end()
    # A kernel that ends the connection with requests unread resets it.
    return "an end with a Terminate" if "Terminate 0/2/07" in end and end.endswith(("closed", "reset")) else end[-60:]


# --- Read Requests of the peer

def reads(t, c, n, offset=0, stag=0x4321):
    """The program reads; (sink STag, sink TO, frame)."""
    t.ask("remote", "read", stag, 0x7000 + offset, n, 0)
    f = c.frame()
    stag, to = struct.unpack(">IQ", f.payload[:12])
    return stag, to, f


@in_both_roles("reader.request", "5040 4.4",
               "A Read Request that is sent: queue 1, MSN 1, MO 0, L, 28 bytes, the source as the program has it",
               "all right")
def _(t, c):
    _, _, f = reads(t, c, 300, offset=5)
    size, source, source_to = struct.unpack(">IIQ", f.payload[12:])
    return told({"opcode": f.op == READ_REQUEST, "queue": f.qn == 1, "MSN": f.msn == 1, "MO": f.mo == 0, "L": f.last,
                 "reserved": f.word == 0, "length": len(f.payload) == 28, "size": size == 300, "source": source == 0x4321,
                 "source TO": source_to == 0x7005})


@case("reader.msn", "5041 4.3", "Read Requests that are sent have MSN 1, 2, 3 of their queue", "1 2 3")
def _(t):
    c = t.connected()
    t.ask("send", "plain", 4, 0)
    for _ in range(3):
        t.ask("remote", "read", 9, 0, 8, 0)
    return " ".join(str(f.msn) for f in c.frames(4)[1:])


@in_both_roles("reader.response", "5040 5.2.2", "The response is placed in the sink, and completes the read",
               "success; bytes right")
def _(t, c):
    stag, to, _ = reads(t, c, 100)
    data = wire.pattern(100, 9)
    c.says_ulpdus(wire.tagged(READ_RESPONSE, stag, to, data[:60], last=False),
                  wire.tagged(READ_RESPONSE, stag, to + 60, data[60:]))
    return seen(t.done(), "bytes right" if t.ask("sink", 100) == data.hex() else "bytes wrong")


def bad_response(name, sentence, make, expects, siw=None, untouched=True):
    """What is no answer to the read that is waiting. The first error of `expects` is weft's, and siw's unless that differs."""
    expects = [f"{e}; not successful; sink untouched" for e in expects]

    @case(name, "5041 7.1", sentence, expects, weft=expects[0],
          siw=(f"{siw[0]}; not successful; sink untouched", siw[1]) if siw else expects[0])
    def _(t):
        c = t.connected()
        stag, to, _ = reads(t, c, 100)
        c.says_ulpdus(*make(t, stag, to))
        end, done = c.end(), t.done()
        # Nothing behind the 100 bytes either; those that are right may be in their place.
        sink = bytes.fromhex(t.ask("sink", 400))
        touched = sink[100:] != wire.pattern(400, 0)[100:] or (untouched and sink != wire.pattern(400, 0))
        return seen(end, "not successful" if done != "success" else done, "sink touched" if touched else "sink untouched")


RESPONSE = wire.pattern(120, 9)
bad_response("reader.wrong_stag", "A response has the sink's STag",
             lambda t, stag, to: [wire.tagged(READ_RESPONSE, stag ^ 0x700, to, RESPONSE[:100])],
             ["Terminate 1/1/00, closed"])
bad_response("reader.own_region", "A response for a region that the program gave the peer is none",
             lambda t, stag, to: [wire.tagged(READ_RESPONSE, t.keys["rw"], t.to, RESPONSE[:100])],
             ["Terminate 1/1/00, closed"])
bad_response("reader.wrong_to", "A response begins at the sink's TO",
             lambda t, stag, to: [wire.tagged(READ_RESPONSE, stag, to + 4, RESPONSE[:96])], ["Terminate 1/1/01, closed"])
bad_response("reader.too_long", "A response is not longer than the request wants",
             lambda t, stag, to: [wire.tagged(READ_RESPONSE, stag, to, RESPONSE[:104])], ["Terminate 1/1/01, closed"])
bad_response("reader.too_short", "A response ends with all the bytes that the request wants",
             lambda t, stag, to: [wire.tagged(READ_RESPONSE, stag, to, RESPONSE[:60])],
             ["Terminate 1/1/01, closed", "Terminate 0/2/07, closed"], untouched=False)
bad_response("reader.too_long_later", "A response is not longer than the request wants",
             lambda t, stag, to: [wire.tagged(READ_RESPONSE, stag, to, RESPONSE[:80], last=False),
                                  wire.tagged(READ_RESPONSE, stag, to + 80, RESPONSE[80:])], ["Terminate 1/1/01, closed"],
             untouched=False)
offence("reader.unasked", "5041 7.1", "A response that nobody asked for ends the stream",
        lambda t: [wire.tagged(READ_RESPONSE, t.keys["rw"], t.to, DATA)], "1/1/00",
        siw=("1/0/00", "siw has no read to which it could belong (spec/siw 4.3)"))


@case("reader.sink_is_closed", "5042 6.2.1", "The sink's STag is no way into the program's memory by a Write",
      "Terminate 1/1/00, closed; sink untouched")
def _(t):
    c = t.connected()
    stag, to, _ = reads(t, c, 100)
    c.says_ulpdus(wire.write(stag, to, RESPONSE[:100]))
    end = c.end()
    return seen(end, "sink untouched" if t.ask("sink", 100) == wire.pattern(100, 0).hex() else "sink touched")


# --- other messages of the peer

def sent(name, sentence, words, op, word=0, siw=None):
    @case(name, "5040 4.1", sentence, "all right", siw=siw)
    def _(t):
        c = t.connected()
        t.ask("send", words, 16, word)
        f = c.frame()
        return told({"opcode": f.op == op, "untagged": not f.tagged, "STag": f.word == word,
                     "bytes": f.payload == wire.pattern(16, 5)})


OTHER = ("wrong: STag", "siw's library takes the STag from where a Write has its rkey, and not from invalidate_rkey")
sent("sent.plain", "The opcode and fields of a Send", "plain", SEND)
sent("sent.se", "The opcode and fields of a Send with Solicited Event", "se", SEND_SE)
sent("sent.inv", "The opcode and fields of a Send with Invalidate", "inv", SEND_INV, 0x11223344, OTHER)
sent("sent.se_inv", "The opcode and fields of a Send with Solicited Event and Invalidate", "se_inv", SEND_SE_INV, 0x11223344,
     OTHER)


@case("sent.in_order", "5040 5.5", "Messages are sent in the order in which they were posted",
      "Send 1, Write, Read Request 1, Send 2, Write")
def _(t):
    c = t.connected()
    t.ask("send", "plain", 8, 0)
    t.ask("remote", "write", 9, 0, 8, 0)
    t.ask("remote", "read", 9, 0, 8, 0)
    t.ask("send", "plain", 9, 0)
    t.ask("remote", "write", 9, 0, 9, 0)
    return ", ".join(c.describe(f) + (f" {f.msn}" if f.msn else "") for f in c.frames(5))
