"""FPDUs: RFC 5044 sections 4, 5 and 8."""

import wire
from case import Talk, case, seen
from wire import C, M, S

ROLES = {"": Talk.connected, ".initiator": Talk.initiated}


def in_both_roles(name, rfc, sentence, expects, **more):
    """The decorated function gets the connection, too: the peer was Responder, and then Initiator."""
    def register(run):
        for suffix, make in ROLES.items():
            case(name + suffix, rfc, sentence, expects, **more)(lambda t, make=make: run(t, make(t)))
        return run
    return register


# --- received

@in_both_roles("fpdu.good", "5044 4.1", "An FPDU that is right is delivered", "got 40")
def _(t, c):
    c.says_ulpdus(wire.send(1, wire.pattern(40, 1)))
    return t.got(wire.pattern(40, 1))


@in_both_roles("crc.wrong", "5044 4.4", "An FPDU with a wrong CRC is not delivered, and ends the stream",
               "Terminate 2/0/02, closed; flushed; DISCONNECTED")
def _(t, c):
    c.says(wire.fpdu(wire.send(1, b"abcd"), spoil=1))
    return seen(c.end(), t.got(), t.event())


def damaged(name, sentence, at, siw):
    @case(name, "5044 6", sentence, "Terminate 2/0/02, closed; flushed; nothing placed", siw=siw)
    def _(t):
        c = t.connected()
        frame = bytearray(wire.fpdu(t.write(100, wire.pattern(29, 2))))  # with three bytes of pad
        frame[at] ^= 0x10
        c.says(bytes(frame))
        return seen(c.end(), t.got(), t.placed())


EARLY = ("Terminate 2/0/02, closed; flushed; 29 bytes placed", "siw places before it has the CRC (spec/siw 3.4)")
damaged("crc.covers_header", "The CRC covers the DDP header", 5,
        ("Terminate 1/1/00, closed; flushed; nothing placed", "siw looks at the header before it has the CRC"))
damaged("crc.covers_payload", "The CRC covers the payload", 30, EARLY)
damaged("crc.covers_pad", "The CRC covers the pad", -5, EARLY)


@case("crc.large_write", "5044 6", "A large FPDU with a wrong CRC is not placed",
      "Terminate 2/0/02, closed; flushed; nothing placed", siw=("Terminate 2/0/02, closed; flushed; some placed", EARLY[1]))
def _(t):
    c = t.connected()
    frame = wire.fpdu(t.write(0, bytes(b ^ 0xFF for b in t.original(0, 30000))), spoil=4)
    c.says(frame[:20000])
    c.asks_nothing(0.2)  # so that what is there is taken
    c.says(frame[20000:])
    return seen(c.end(), t.got(), "nothing placed" if t.placed() == "nothing placed" else "some placed")


@case("crc.second_wrong", "5044 4.4", "What came before the damaged FPDU stays delivered",
      "got 4; Terminate 2/0/02, closed; flushed")
def _(t):
    c = t.connected()
    c.says(wire.fpdu(wire.send(1, b"good")) + wire.fpdu(wire.send(2, b"evil"), spoil=1 << 31))
    return seen(t.got(b"good"), c.end(), t.got())


@case("crc.first_wrong", "5044 8", "A damaged FPDU that is the first ends the stream, too",
      ("Terminate 2/0/02, closed; flushed", "closed; flushed"), weft="Terminate 2/0/02, closed; flushed",
      siw="Terminate 2/0/02, closed; flushed")
def _(t):
    c = t.connected(opening=False)
    c.says(wire.fpdu(wire.send(1, b"abcd"), spoil=1))
    return seen(c.end(), t.got())


@case("crc.large_wrong", "5044 4.4", "A large FPDU with a wrong CRC is not delivered", "Terminate 2/0/02, closed; flushed")
def _(t):
    c = t.connected(size=40000)
    c.says(wire.fpdu(wire.send(1, wire.pattern(30000, 2)), spoil=0x8000))
    return seen(c.end(), t.got())


for n in range(1, 5):
    @case(f"fpdu.pad_{n % 4}", "5044 4.1", "The pad is no part of the ULPDU, and its bytes are not looked at", f"got {n}")
    def _(t, n=n):
        c = t.connected()
        ulpdu = wire.send(1, wire.pattern(n, 3))
        c.says(wire.fpdu(ulpdu, pad=wire.pattern(-(2 + len(ulpdu)) % 4, 9)))
        return t.got(wire.pattern(n, 3))


@in_both_roles("fpdu.in_three", "5044 6", "TCP may cut an FPDU anywhere", "got 50")
def _(t, c):
    frame = wire.fpdu(wire.send(1, wire.pattern(50, 4)))
    c.says(frame[:1], frame[1:21], frame[21:])
    return t.got(wire.pattern(50, 4))


def apart(name, sentence, size, pieces, **more):
    @case(name, "5044 6", sentence, f"got {size}", **more)
    def _(t):
        c = t.connected()
        c.says_apart(*pieces(wire.fpdu(wire.send(1, wire.pattern(size, 4)))))
        got = t.got(wire.pattern(size, 4))
        return got if got.startswith("got") else seen(c.end(), got)


def bytewise(frame):
    return [frame[i:i + 1] for i in range(len(frame))]


OVER_EACH_OTHER = ("Terminate 2/0/02, closed; flushed",
                   "siw puts each piece of pad and CRC over the one before it, and finds the CRC wrong (spec/siw 3.1)")
apart("fpdu.bytewise", "TCP may cut an FPDU anywhere", 20, bytewise, siw=OVER_EACH_OTHER)
apart("fpdu.bytewise_to_crc", "TCP may cut an FPDU anywhere: each byte before the CRC comes alone", 20,
      lambda f: [*bytewise(f[:-4]), f[-4:]])
apart("fpdu.crc_in_two", "TCP may cut an FPDU in its CRC", 20, lambda f: [f[:-2], f[-2:]], siw=OVER_EACH_OTHER)
apart("fpdu.crc_alone", "TCP may cut an FPDU between pad and CRC", 17, lambda f: [f[:-4], f[-4:]], siw=OVER_EACH_OTHER)


@in_both_roles("fpdu.several", "5044 6", "A TCP segment may have several FPDUs, and a part of one", "got 10; got 11; got 12")
def _(t, c):
    frames = b"".join(wire.fpdu(wire.send(i + 1, wire.pattern(10 + i, i))) for i in range(3))
    c.says(frames[:-5], frames[-5:])
    return seen(*(t.got(wire.pattern(10 + i, i)) for i in range(3)))


@case("fpdu.large", "5044 4.1", "A ULPDU may have up to 65535 bytes", "got 60000")
def _(t):
    c = t.connected(size=65536)
    c.says_ulpdus(wire.send(1, wire.pattern(60000, 5)))
    return t.got(wire.pattern(60000, 5))


def too_short(name, rfc, sentence, ulpdu, siw="Terminate 2/0/03, closed; flushed"):
    """RFC 5044 has a code for it, and no sentence that wants it."""
    @case(name, rfc, sentence, ("Terminate 2/0/03, closed; flushed", "closed; flushed"),
          weft="Terminate 2/0/03, closed; flushed", siw=siw)
    def _(t):
        c = t.connected()
        c.says(wire.fpdu(ulpdu))
        return seen(c.end(), t.got())


WAITS = ("open; no completion", "siw waits for the header that the length does not have")
too_short("fpdu.length_1", "5041 4.4", "A ULPDU has a whole DDP header", b"\x41", WAITS)
too_short("fpdu.length_tagged", "5041 4.2", "A tagged segment has a header of 14 bytes", wire.write(1, 0)[:13])
too_short("fpdu.length_untagged", "5041 4.3", "An untagged segment has a header of 18 bytes", wire.send(1)[:17])
too_short("fpdu.length_read", "5040 4.4", "A Read Request has a header of 28 bytes",
          wire.read_request(1, 1, 0, 0, 1, 0)[:45])
too_short("fpdu.empty", "5041 4.4", "A ULPDU without a DDP segment is no message", b"", WAITS)


@in_both_roles("fpdu.cut_off", "5044 8", "An FPDU that TCP ends in is not delivered; the program is told",
               "closed; DISCONNECTED; flushed")
def _(t, c):
    c.says(wire.fpdu(wire.send(1, bytes(40)))[:-1])
    c.fin()
    return seen(c.end(), t.event(), t.got())


# --- sent

@in_both_roles("fpdu.sent", "5044 4.1", "An FPDU that is sent has its length, pad and CRC right", "4 right")
def _(t, c):
    for n in range(1, 5):
        t.ask("send", "plain", n, 0)
    frames = c.frames(4)
    good = [f for n, f in zip(range(1, 5), frames) if f.crc_good and f.payload == wire.pattern(n, 5)]
    return f"{len(good)} right"


@case("fpdu.sent_pad", "5044 4.1", "Pad is sent as 0", "zero",
      siw=("stale bytes", "siw leaves what was there (spec/siw 3.2)"))
def _(t):
    c = t.connected()
    for n in range(1, 5):
        t.ask("send", "plain", n, 0)
        t.ask("remote", "write", 9, 0, 20 + n, 0)
    return "zero" if not any(any(f.pad) for f in c.frames(8)) else "stale bytes"


@case("fpdu.fits_segment", "5041 5.2", "A segment is no larger than the MULPDU: an FPDU is no longer than a TCP segment, so that it "
      "can be placed on its own",
      "9000 bytes, each FPDU fits")
def _(t):
    c = t.connected(mss=1000)
    room = c.segment()
    t.ask("remote", "write", 9, 0, 9000, 0)
    frames = []
    while sum(len(f.payload) for f in frames) < 9000 and (f := c.frame()):
        frames.append(f)
    longest = max(len(f.whole) for f in frames)
    return f"{sum(len(f.payload) for f in frames)} bytes, {'each FPDU fits' if longest <= room else f'FPDUs of {longest} for {room}'}"


MARKERS = {"siw": "siw has no markers (spec/siw 2.12)"}


def with_markers(name, sentence, expects, make):
    @case(name, "5044 4.3", sentence, expects, skips=MARKERS)
    def _(t):
        c = make(t)
        t.ask("send", "plain", 5, 0)
        t.ask("remote", "write", 9, 0x1000, 6000, 0)
        t.ask("send", "plain", 7, 0)
        sizes = {wire.SEND: 0, wire.WRITE: 0}
        right = True
        while sizes[wire.SEND] < 12 and (f := c.frame()):
            at = f.to - 0x1000 if f.op == wire.WRITE else 0
            right &= f.crc_good and f.payload == wire.pattern(at + len(f.payload), 5)[at:]
            sizes[f.op] += len(f.payload)
        return f"{sizes[wire.SEND]} and {sizes[wire.WRITE]} bytes {'right' if right else 'wrong'}, {c.bad_marks} bad markers"


ALL_RIGHT = "12 and 6000 bytes right, 0 bad markers"
with_markers("markers.responder", "Towards a peer that asked for it a marker is at each 512th byte, and points back to "
             "its FPDU",
             ALL_RIGHT, lambda t: t.connected(M | C | S))
with_markers("markers.initiator", "Towards a peer that asked for it a marker is at each 512th byte, and points back to "
             "its FPDU",
             ALL_RIGHT, lambda t: t.initiated(flags=M | C | S))


@case("markers.by_reply", "5044 7.1.1", "A Reply with M=1 gets a connection, in which the Initiator sends markers",
      "ESTABLISHED",
      siw=("REJECTED", "siw has no markers, and gives up (spec/siw 2.12)"))
def _(t):
    t.calling(M | C | S)
    return t.event()
