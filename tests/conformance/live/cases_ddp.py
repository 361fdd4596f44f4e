"""DDP: RFC 5041 sections 4, 5 and 7, and what RFC 5040 says of tagged buffers."""

import wire
from case import case, seen
from cases_fpdu import in_both_roles

DATA = wire.pattern(16, 1)


def offence(name, rfc, sentence, ulpdus, error, siw=None, untouched=True, both=True, **more):
    """Something that must not be: a Terminate says what, nothing of it is delivered, and the memory is as it was. `siw`: the
    error that it reports instead, or all that is seen, and why. The first of several errors is weft's."""
    behind = "; flushed; nothing placed" if untouched else "; flushed"
    if siw:
        more["siw"] = (siw[0] if ";" in siw[0] else f"Terminate {siw[0]}, closed{behind}", siw[1])

    def run(t, c):
        c.says_ulpdus(*ulpdus(t))
        end, got, placed = c.end(), t.got(), t.placed()
        # How much is a matter of the moment.
        if placed.endswith(" bytes placed"):
            placed = "some of it placed"
        return seen(end, got, *([placed] if untouched else []))

    register = in_both_roles if both else case
    expects = [f"Terminate {e}, closed{behind}" for e in ([error] if isinstance(error, str) else error)]
    register(name, rfc, sentence, expects, weft=expects[0], **more)(run if both else lambda t: run(t, t.connected()))


# --- tagged buffers

WRAP = ("1/0/00", "siw has no error of its own for it (spec/siw 4.2)")
NO_RIGHT = ("1/1/00", "for siw an STag without the right is none (spec/siw 4.2)")

offence("write.unknown_stag", "5041 7.1", "The STag of a segment must be valid",
        lambda t: [wire.write(t.keys["rw"] ^ 0x5500, t.to, DATA)], "1/1/00")
offence("write.wrong_key", "5041 7.1", "The STag of a segment must be valid, with its key",
        lambda t: [wire.write(t.keys["rw"] ^ 1, t.to, DATA)], "1/1/00")
offence("write.stag_0", "5041 7.1", "The STag of a segment must be valid", lambda t: [wire.write(0, t.to, DATA)], "1/1/00",
        both=False)
offence("write.gone", "5041 7.1", "The STag of a region that was taken back is not valid",
        lambda t: [t.write(0, DATA, key="gone")], "1/1/00", both=False)
offence("write.before", "5041 7.1", "A segment must not begin before its buffer", lambda t: [t.write(-1, DATA)], "1/1/01")
offence("write.behind", "5041 7.1", "A segment must not end behind its buffer",
        lambda t: [t.write(t.keys["size"] - 15, DATA)], "1/1/01")
offence("write.far_behind", "5041 7.1", "A segment must not begin behind its buffer",
        lambda t: [t.write(t.keys["size"], DATA)], "1/1/01", both=False)
offence("write.wraps", "5041 7.1", "The tagged offset must not wrap", lambda t: [wire.write(t.keys["rw"], 2**64 - 15, DATA)],
        "1/1/03", both=False, siw=WRAP)
offence("write.ends_at_2_64", "5041 7.1", "The tagged offset must not wrap",
        lambda t: [wire.write(t.keys["rw"], 2**64 - 16, DATA)], ["1/1/03", "1/1/01"], both=False, siw=WRAP)
offence("write.foreign", "5041 7.1", "The STag must belong to the stream, that is to its protection domain",
        lambda t: [t.write(0, DATA, key="foreign")], "1/1/02", both=False)
offence("write.read_only", "5041 8.3.1", "A Write needs the right to write", lambda t: [t.write(0, DATA, key="ro")],
        "0/1/02", both=False, siw=NO_RIGHT)
offence("write.no_rights", "5041 8.3.1", "A Write needs the right to write", lambda t: [t.write(0, DATA, key="mine")],
        "0/1/02", both=False, siw=NO_RIGHT)
offence("write.large_behind", "5041 7.1", "Nothing of a segment that ends behind its buffer is placed",
        lambda t: [t.write(t.keys["size"] - 29999, wire.pattern(30000, 2))], "1/1/01", both=False,
        siw=("Terminate 1/1/01, reset; flushed; some of it placed", "siw looks at each piece that TCP brings, and not at the "
             "segment"))
for dv in (0, 2, 3):
    offence(f"write.dv_{dv}", "5041 4.1", "The DDP version of a tagged segment is 1", lambda t,
            dv=dv: [t.write(0, DATA, dv=dv)],
            "1/1/04", both=False)


@case("write.second_bad", "5041 7.1", "Each segment of a message is checked",
      "Terminate 1/1/01, closed; flushed; outside nothing")
def _(t):
    c = t.connected()
    c.says_ulpdus(t.write(65536 - 32, DATA, last=False), t.write(65536 - 8, DATA))
    return seen(c.end(), t.got(), "outside nothing" if "AROUND" not in t.placed() else t.placed())


@in_both_roles("write.placed", "5041 5.1.1", "A Write is placed where STag and TO say, and nowhere else",
               "40 bytes right; 40 bytes placed")
def _(t, c):
    data = bytes(b ^ 0xFF for b in t.original(1001, 40))
    c.says_ulpdus(t.write(1001, data), wire.send(1, b"now"))
    t.got(b"now")
    return seen(f"40 bytes {'right' if t.window(1001, 40) == data else 'wrong'}", t.placed())


@case("write.whole_window", "5041 7.1", "A Write may fill its buffer to the first and last byte", "65536 bytes placed")
def _(t):
    c = t.connected()
    data = bytes(b ^ 0xFF for b in t.original(0, 65536))
    parts = [t.write(i, data[i:i + 8192], last=i + 8192 == 65536) for i in range(0, 65536, 8192)]
    c.says_ulpdus(*parts, wire.send(1, b"now"))
    t.got(b"now")
    return t.placed()


@case("write.segments", "5041 5.2", "Segments of a Write are put together by their TO", "right")
def _(t):
    c = t.connected()
    data = wire.pattern(90, 8)
    c.says_ulpdus(t.write(10, data[:40], last=False), t.write(50, data[40:80], last=False), t.write(90, data[80:]),
                  wire.send(1, b"now"))
    t.got(b"now")
    return "right" if t.window(10, 90) == data else t.window(10, 90).hex()


@case("write.empty", "5041 5.2", "A Write of no bytes names no memory, and its STag is not checked", "got 3")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.write(0, 0), wire.write(0xDEADBE00, 2**64 - 1), t.write(0, b"", key="foreign"), wire.send(1, b"now"))
    return t.got(b"now")


@case("write.silent", "5040 5.1", "A Write is not delivered to the program", "the Send behind it")
def _(t):
    c = t.connected(receives=1)
    c.says_ulpdus(t.write(0, DATA), wire.send(1, b"now"))
    return "the Send behind it" if t.got(b"now") == "got 3" else "something else"


@case("ddp.reserved", "5041 4.1", "Reserved bits are ignored", "got 3; 16 right")
def _(t):
    c = t.connected()
    c.says_ulpdus(t.write(0, DATA, reserved=0xF), wire.send(1, b"now", reserved=0xD))
    return seen(t.got(b"now"), f"16 {'right' if t.window(0, 16) == DATA else 'wrong'}")


# --- untagged buffers

for qn in (3, 4, 0xFFFFFFFF):
    offence(f"send.qn_{qn:x}", "5041 7.1", "An untagged segment has a queue that there is, and a Send has queue 0",
            lambda t, qn=qn: [wire.untagged(wire.SEND, qn, 1, payload=DATA)], "1/2/01", both=qn == 4)
offence("send.qn_1", "5040 5.3", "A Send has queue 0", lambda t: [wire.untagged(wire.SEND, 1, 1, payload=DATA)], "1/2/01",
        both=False)
for msn in (0, 2, 0xFFFFFFFF):
    offence(f"send.msn_{msn:x}", "5041 4.3", "The first message of a queue has MSN 1", lambda t,
            msn=msn: [wire.send(msn, DATA)],
            "1/2/03", both=msn == 2)


@case("send.msn_again", "5041 4.3", "The MSN grows by one with each message", "got 16; Terminate 1/2/03, closed; flushed")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.send(1, DATA), wire.send(1, DATA))
    return seen(t.got(DATA), c.end(), t.got())


@case("send.msn_gap", "5041 4.3", "The MSN grows by one with each message", "got 16; Terminate 1/2/03, closed; flushed")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.send(1, DATA), wire.send(3, DATA))
    return seen(t.got(DATA), c.end(), t.got())


offence("send.mo_first", "5041 7.1", "The first segment of a message has MO 0", lambda t: [wire.send(1, DATA, mo=4)],
        "1/2/04")
for name, mo in (("gap", 20), ("back", 0), ("overlap", 12)):
    offence(f"send.mo_{name}", "5041 7.1", "The MO of a segment continues its message",
            lambda t, mo=mo: [wire.send(1, DATA, last=False), wire.send(1, DATA, mo=mo)], "1/2/04", both=False)
for dv in (0, 2, 3):
    offence(f"send.dv_{dv}", "5041 7.1", "The DDP version of an untagged segment is 1", lambda t,
            dv=dv: [wire.send(1, DATA, dv=dv)],
            "1/2/06", both=False)
TOO_LONG = "siw calls it a message without a buffer (spec/siw 4.1)"


def long_message(name, sentence, ulpdus):
    @case(name, "5041 7.1", sentence, "Terminate 1/2/05, closed; local-length-error; flushed",
          siw=("Terminate 1/2/02, closed; local-length-error; flushed", TOO_LONG))
    def _(t):
        c = t.connected(size=64)
        c.says_ulpdus(*ulpdus)
        return seen(c.end(), t.got(), t.got())


long_message("send.too_long", "A message must not be longer than its buffer", [wire.send(1, bytes(65))])
long_message("send.too_long_later", "A message must not be longer than its buffer",
             [wire.send(1, bytes(60), last=False), wire.send(1, bytes(5), mo=60)])


@in_both_roles("send.no_buffer", "5041 7.1", "A message without a buffer ends the stream",
               "Terminate 1/2/02, closed; got 16",
               options={"WEFT_RNR_WAIT": "200"})
def _(t, c):
    c.says_ulpdus(wire.send(1, DATA), *(wire.send(2 + i, DATA) for i in range(4)))
    return seen(c.end(), t.got(DATA))


@in_both_roles("send.segments", "5041 5.2", "Segments of a message are put together, and delivered with the last", "got 90")
def _(t, c):
    data = wire.pattern(90, 8)
    c.says_ulpdus(wire.send(1, data[:40], last=False), wire.send(1, data[40:80], mo=40, last=False),
                  wire.send(1, data[80:], mo=80))
    return t.got(data)


@case("send.not_whole", "5041 5.4", "A message is not delivered before its last segment", "closed; flushed")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.send(1, DATA, last=False))
    c.fin()
    return seen(c.end(), t.got())


@case("send.exact", "5041 7.1", "A message may fill its buffer", "got 64")
def _(t):
    c = t.connected(size=64)
    c.says_ulpdus(wire.send(1, wire.pattern(64, 3)))
    return t.got(wire.pattern(64, 3))


@case("send.empty", "5041 5.2", "A message of no bytes is a message", "got 0; got 3")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.send(1), wire.send(2, b"two"))
    return seen(t.got(b""), t.got(b"two"))


@case("ddp.queues_apart", "5041 4.3", "Each queue counts its messages for itself", "got 3; Read Response of 16; got 4")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.send(1, b"one"), t.read(msn=1, size=16), wire.send(2, b"more"))
    f = c.frame()
    return seen(t.got(b"one"), f"{c.describe(f)} of {len(f.payload)}", t.got(b"more"))


@case("ddp.in_order", "5041 5.3", "Messages are delivered in the order of their MSN, behind what stands before them",
      "got 1; placed before; got 2")
def _(t):
    c = t.connected()
    data = bytes(b ^ 0xFF for b in t.original(0, 3000))
    c.says_ulpdus(wire.send(1, b"1"), t.write(0, data), wire.send(2, b"22"))
    first = t.got(b"1")
    second = t.got(b"22")
    return seen(first, "placed before" if t.window(0, 3000) == data else "not placed", second)


# --- sent

def segments_of(c, n, op):
    frames = []
    while sum(len(f.payload) for f in frames) < n and (f := c.frame()):
        frames.append(f)
    payload = b"".join(f.payload for f in frames)
    facts = {
        "several segments": len(frames) > 1,
        "bytes right": payload == wire.pattern(n, 5),
        "L at the end": [f.last for f in frames] == [False] * (len(frames) - 1) + [True],
        "one opcode": {f.op for f in frames} == {op},
        "version 1, reserved 0": all(f.ulpdu[0] & 0x3F == 1 and f.ulpdu[1] & 0xF0 == 0x40 for f in frames),
    }
    return frames, facts


def told(facts):
    wrong = [name for name, true in facts.items() if not true]
    return "all right" if not wrong else "wrong: " + ", ".join(wrong)


@case("ddp.sent_untagged", "5041 5.2", "Segments of an untagged message that is sent have one MSN, and MO that follow "
      "each other",
      "all right")
def _(t):
    c = t.connected(mss=1400)
    t.ask("send", "plain", 3, 0)
    t.ask("send", "plain", 60000, 0)
    first = c.frame()
    frames, facts = segments_of(c, 60000, wire.SEND)
    offsets = [sum(len(f.payload) for f in frames[:i]) for i in range(len(frames))]
    facts.update({"MSN 1, 2": [first.msn, *{f.msn for f in frames}] == [1, 2], "MO": [f.mo for f in frames] == offsets,
                  "queue 0": {f.qn for f in [first, *frames]} == {0}, "no STag": {f.word for f in [first, *frames]} == {0}})
    return told(facts)


@case("ddp.sent_tagged", "5041 5.2", "Segments of a tagged message that is sent have one STag, and TO that follow each "
      "other", "all right")
def _(t):
    c = t.connected(mss=1400)
    t.ask("remote", "write", 0xABCD01, 2**40 + 5, 60000, 0)
    frames, facts = segments_of(c, 60000, wire.WRITE)
    offsets = [2**40 + 5 + sum(len(f.payload) for f in frames[:i]) for i in range(len(frames))]
    facts.update({"STag": {f.stag for f in frames} == {0xABCD01}, "TO": [f.to for f in frames] == offsets})
    return told(facts)
