"""Terminates and the end of a stream: RFC 5040 sections 4.8, 5.4, 6.2 and 7.1, RFC 5044 7.2."""

import struct

import wire
from case import case, seen
from cases_ddp import DATA, told
from cases_fpdu import in_both_roles

SWAPPED = "siw lays it out by bit-fields of the processor (spec/errors 1.2)"


def terminate_of(t, *ulpdus):
    c = t.connected(size=64)
    c.says_ulpdus(*ulpdus)
    return c.frame()


@case("terminate.header", "5040 4.8", "A Terminate is untagged: queue 2, MSN 1, MO 0, L, nothing reserved", "all right")
def _(t):
    f = terminate_of(t, wire.send(2, DATA))
    return told({"opcode": f.op == wire.TERMINATE, "queue": f.qn == 2, "MSN": f.msn == 1, "MO": f.mo == 0, "L": f.last,
                 "reserved": f.word == 0 and f.ulpdu[0] == 0x41, "CRC": f.crc_good})


@case("terminate.layout", "5040 4.8", "Layer in the high bits of the first byte, error type in the low ones", "12 05",
      siw=("21 02", SWAPPED))
def _(t):
    return terminate_of(t, wire.send(1, bytes(65))).payload[:2].hex(" ")


@case("terminate.bits", "5040 4.8", "M and D say that the segment's length and DDP header follow", "c0 00",
      siw=("03 00", SWAPPED))
def _(t):
    return terminate_of(t, wire.send(2, DATA)).payload[2:4].hex(" ")


@case("terminate.length", "5040 4.8", "The length is the DDP segment's", "34",
      siw=("16", "siw has the payload's length (spec/errors 1.2)"))
def _(t):
    return str(struct.unpack(">H", terminate_of(t, wire.send(2, DATA)).payload[4:6])[0])


@case("terminate.quotes_untagged", "5040 4.8", "The DDP header that follows is the offender's", "right")
def _(t):
    ulpdu = wire.send(2, DATA)
    quoted = terminate_of(t, ulpdu).payload[6:]
    return "right" if quoted == ulpdu[:18] else quoted.hex(" ")


@case("terminate.quotes_tagged", "5040 4.8", "The DDP header that follows is the offender's", "right")
def _(t):
    ulpdu = t.write(65536, DATA)
    quoted = terminate_of(t, ulpdu).payload[6:]
    return "right" if quoted == ulpdu[:14] else quoted.hex(" ")


@case("terminate.quotes_read", "5040 4.8", "Of a Read Request the RDMAP header follows, too", "right",
      siw=("MSN 64", "siw has the size in place of the MSN (spec/errors 1.2)"))
def _(t):
    ulpdu = t.read(offset=65536)
    quoted = terminate_of(t, ulpdu).payload[6:]
    if quoted[:10] + quoted[14:] == ulpdu[:10] + ulpdu[14:] and quoted != ulpdu:
        return f"MSN {struct.unpack('>I', quoted[10:14])[0]}"
    return "right" if quoted == ulpdu else quoted.hex(" ")


@case("terminate.read_bits", "5040 4.8", "R says that the RDMAP header follows", "e0 00", siw=("07 00", SWAPPED))
def _(t):
    return terminate_of(t, t.read(offset=65536)).payload[2:4].hex(" ")


@case("terminate.llp", "5040 4.8", "An error of MPA belongs to no segment: no header follows", "02 00 00 of 4")
def _(t):
    c = t.connected()
    c.says(wire.fpdu(wire.send(1, DATA), spoil=1))
    f = c.frame()
    return f"{f.payload[1:4].hex(' ')} of {len(f.payload)}"


@in_both_roles("terminate.is_last", "5040 5.4", "Nothing follows a Terminate, and what comes is not looked at",
               "Terminate 1/2/03, closed; nothing placed; flushed")
def _(t, c):
    c.says_ulpdus(wire.send(2, DATA), t.write(0, DATA), wire.send(1, DATA), t.read())
    return seen(c.end(), t.placed(), t.got())


@case("terminate.first_error", "5040 7.1", "Of several errors the Terminate tells the first", "right")
def _(t):
    first, second = wire.send(7, DATA), t.write(65536, DATA)
    quoted = terminate_of(t, first, second, wire.send(9, DATA)).payload[6:]
    return "right" if quoted == first[:18] else quoted.hex(" ")


@case("terminate.not_reset", "5040 6.2.1", "A Terminate reaches a peer that is still sending", "Terminate 1/1/00, closed",
      siw=("Terminate 1/1/00, reset", "siw closes over what it has not read; its Terminate may be lost (spec/siw 6.3)",
           False))
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.write(t.keys["rw"] ^ 1, t.to, DATA), *(t.write(0, bytes(20000)) for _ in range(20)))
    return c.end()


@case("terminate.behind_sends", "5040 5.4", "A Terminate does not stand inside another message's FPDU",
      "FPDUs right, a Terminate, closed",
      siw=("FPDUs right, no Terminate, closed", "siw says nothing while it is sending", False))
def _(t):
    c = t.connected()
    t.ask("remote", "write", 9, 0, 60000, 0)
    c.says_ulpdus(wire.send(2, DATA))
    frames = []
    while f := c.frame():
        frames.append(f)
    right = all(f.crc_good for f in frames)
    last = "cut off" if c.kept else "a Terminate" if frames and frames[-1].op == wire.TERMINATE else "no Terminate"
    return f"FPDUs {'right' if right else 'wrong'}, {last}, {c.ended or 'open'}"


@in_both_roles("terminate.received", "5040 5.4",
               "A Terminate is not answered; the connection closes, and the program is told",
               "closed; DISCONNECTED; flushed")
def _(t, c):
    c.says_ulpdus(wire.terminate(0, 0, 0))
    return seen(c.end(), t.event(), t.got())


def quoted(ulpdu, size, bits):
    """What follows the error: the bits, and of the segment what they announce."""
    return {"headers": struct.pack(">H", len(ulpdu)) + ulpdu[:size], "flags": bits}


def received(name, ulpdu):
    """The layouts that weft sends (spec/errors 1.1), which siw reads in its own way (spec/siw 5.1)."""
    @in_both_roles(name, "5040 4.8", "A Terminate is taken with the headers that it has, and not answered",
                   "closed; DISCONNECTED; flushed")
    def _(t, c):
        c.says_ulpdus(ulpdu)
        return seen(c.end(), t.event(), t.got())


received("terminate.received_tagged", wire.terminate(1, 1, 0, **quoted(wire.write(9, 0, DATA), 14, 0xC0)))
received("terminate.received_untagged", wire.terminate(1, 2, 5, **quoted(wire.send(1, DATA), 18, 0xC0)))
received("terminate.received_read", wire.terminate(0, 1, 1, **quoted(wire.read_request(1, 1, 0, 64, 9, 0), 46, 0xE0)))
received("terminate.received_opcode", wire.terminate(0, 2, 6))
received("terminate.received_llp", wire.terminate(2, 0, 2))


@case("terminate.received_and_more", "5040 5.4", "What comes behind a Terminate is not taken",
      "closed; flushed; nothing placed")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.terminate(0, 1, 0), wire.send(1, DATA), t.write(0, DATA))
    return seen(c.end(), t.got(), t.placed())


for name, ulpdu in {
    "qn": wire.untagged(wire.TERMINATE, 0, 1, payload=bytes(4)),
    "msn": wire.untagged(wire.TERMINATE, 2, 2, payload=bytes(4)),
    "cut": wire.untagged(wire.TERMINATE, 2, 1, payload=bytes(2)),
    "long": wire.terminate(1, 1, 0, bytes(200), 0xC0),
}.items():
    @case(f"terminate.received_{name}", "5040 5.4", "A Terminate is not answered, not even one that is wrong",
          "closed; flushed", siw=("Terminate 2/0/03, closed; flushed", "siw minds the length first") if name == "cut" else None)
    def _(t, ulpdu=ulpdu):
        c = t.connected()
        c.says_ulpdus(ulpdu)
        return seen(c.end(), t.got())


@case("terminate.blames_read", "5040 5.4", "The program is told of a remote access error by its read's completion",
      "closed; remote-access-error", siw=("closed; Work-Request-Flushed-Error", "siw blames no request"))
def _(t):
    c = t.connected()
    t.ask("remote", "read", 9, 0, 64, 0)
    f = c.frame()
    c.says_ulpdus(wire.terminate(0, 1, 0, struct.pack(">H", len(f.ulpdu)) + f.ulpdu, 0xE0))
    return seen(c.end(), t.done())


# --- closing

@in_both_roles("close.program", "5040 6.2", "A stream that the program closes ends with a FIN and no Terminate",
               "closed; DISCONNECTED")
def _(t, c):
    t.ask("disconnect")
    end = c.end()
    c.close()
    return seen(end, t.event())


@case("close.sends_first", "5041 6.2.1", "What was posted before is sent before the FIN", "all sent, closed",
      siw=("not all sent, closed", "siw closes at once, whatever its thread has sent by then", False))
def _(t):
    c = t.connected()
    t.ask("send", "plain", 8, 0)
    t.ask("remote", "write", 9, 0, 60000, 0)
    t.ask("send", "plain", 9, 0)
    t.ask("disconnect")
    sent = []
    while f := c.frame():
        sent.append(f)
    right = sum(len(f.payload) for f in sent) == 60017 and [sent[0].msn, sent[-1].msn] == [1, 2]
    return f"{'all' if right else 'not all'} sent, {c.ended or 'open'}"


@in_both_roles("close.fin", "5044 7.2", "The peer's FIN closes the connection, and the program is told",
               "closed; DISCONNECTED; flushed")
def _(t, c):
    c.fin()
    return seen(c.end(), t.event(), t.got())


@in_both_roles("close.reset", "5044 8", "A connection that is reset is at its end, and the program is told",
               "DISCONNECTED; flushed")
def _(t, c):
    c.reset()
    return seen(t.event(), t.got())


@case("close.reads_first", "5044 7.2", "Read Requests before a FIN may stay unanswered; what is answered is right, no FPDU is "
      "cut, and the program is told", "right, closed; DISCONNECTED; flushed")
def _(t):
    c = t.connected()
    c.says_ulpdus(*(t.read(msn=1 + i, size=65536, sink=i) for i in range(4)))
    c.fin()
    source, right = t.original(0, 65536), True
    c.socket.settimeout(t.peer.patience)  # the answers, as slow as they come, and then the end
    while f := c.frame():
        offset = f.to - 0x5000
        right &= f.crc_good and f.op == wire.READ_RESPONSE and f.payload == source[offset:offset + len(f.payload)]
    return seen(f"{'right' if right else 'wrong'}, {c.end()}", t.event(), t.got())


@case("close.delivers_first", "5041 5.4", "What came whole before the FIN is delivered", "delivered")
def _(t):
    c = t.connected()
    c.says_ulpdus(wire.send(1, DATA))
    c.fin()
    return "delivered" if t.got(DATA) == "got 16" else "lost"


# A reset takes the Terminate with it where the driver, on a busy machine, has not read it yet.
@case("close.error_state", "5040 6.2.1", "A stream that the program aborts ends with a Terminate or at once",
      ("Terminate 0/0/00, closed", "closed", "reset"), weft=("Terminate 0/0/00, closed", "reset"), siw="closed")
def _(t):
    c = t.connected()
    t.ask("break")
    return c.end()


@case("close.drop", "5040 6.2", "A queue pair that goes away ends its connection", ("Terminate 0/0/00, closed", "closed"),
      weft="closed", siw="closed")
def _(t):
    c = t.connected()
    t.ask("drop")
    return c.end()
