"""RFC 7306: Immediate Data and Atomics, where both sides agreed on them by weft's extension bit (spec/mpa 2.7)."""

import struct

import wire
from case import case, seen
from wire import C, S, XA, XR

NONE = {"siw": ("no extension", "siw has nothing of RFC 7306 (spec/siw 4.4)")}
ALL_ONES = 2**64 - 1
FETCH_ADD, COMPARE_SWAP = 0, 2


def extended(name, rfc, sentence, expects, **more):
    def register(run):
        @case(name, rfc, sentence, expects, differs=NONE, **more)
        def _(t):
            c = t.asks(wire.request(C | S | XR))
            if not t.reply.flags & XA:
                return "no extension"
            t.event()
            c.says_ulpdus(wire.write(1, 0))
            return run(t, c)
        return run
    return register


def value(t, offset=64):
    return struct.unpack("=Q", t.window(offset, 8))[0]


def poked(t, number, offset=64):
    t.ask("poke", offset, struct.pack("=Q", number))


def atomic(t, msn=1, code=FETCH_ADD, offset=64, key="rw", **more):
    more = {"value": 1, **more}
    return wire.atomic_request(msn, code, t.keys[key], t.to + offset, **more)


def original(c):
    """Of the next Atomic Response."""
    f = c.frame()
    if f is None or f.op != wire.ATOMIC_RESPONSE:
        return f"no response but {c.describe(f) if f else c.end()}"
    return f"{struct.unpack('>IQ', f.payload)[1]:#x}"


# --- Immediate Data

for op in (wire.IMMEDIATE, wire.IMMEDIATE_SE):
    @extended(f"immediate.{op}", "7306 6.3", "Immediate Data takes the next receive, and none of its bytes",
              "got 0 imm=16909060")
    def _(t, c, op=op):
        c.says_ulpdus(wire.immediate(1, b"\1\2\3\4\0\0\0\0", op))
        return t.got()


@extended("immediate.behind_write", "7306 6.4", "Immediate Data is delivered behind the Write before it",
          "got 30 imm=5; 30 bytes right")
def _(t, c):
    data = wire.pattern(30, 2)
    c.says_ulpdus(t.write(0, data), wire.immediate(1, b"\0\0\0\5\0\0\0\0"))
    return seen(t.got(), f"30 bytes {'right' if t.window(0, 30) == data else 'wrong'}")


@extended("immediate.msn", "7306 6.3", "Immediate Data and Sends count in one queue", "got 3; got 0 imm=7; got 4")
def _(t, c):
    c.says_ulpdus(wire.send(1, b"one"), wire.immediate(2, b"\0\0\0\7\0\0\0\0"), wire.send(3, b"more"))
    return seen(t.got(b"one"), t.got(), t.got(b"more"))


def refused(name, rfc, sentence, ulpdu, expects, **more):
    @extended(name, rfc, sentence, expects, **more)
    def _(t, c):
        c.says_ulpdus(ulpdu(t))
        return seen(c.end(), t.placed())


refused("immediate.short", "7306 6.3", "Immediate Data has 8 bytes", lambda t: wire.immediate(1, bytes(7)),
        ("Terminate 2/0/03, closed; nothing placed", "Terminate 1/2/05, closed; nothing placed"),
        weft="Terminate 2/0/03, closed; nothing placed")
refused("immediate.long", "7306 6.3", "Immediate Data has 8 bytes", lambda t: wire.immediate(1, bytes(9)),
        "Terminate 1/2/05, closed; nothing placed")


@extended("immediate.sent", "7306 6.3", "Immediate Data that is sent stands right behind its Write, in queue 0, with 8 "
          "bytes",
          "Write, Immediate; queue 0, MSN 1, L, 0000000900000000")
def _(t, c):
    t.ask("remote", "write_imm", 77, 0, 20, 9)
    first, second = c.frames(2)
    return seen(f"{c.describe(first)}, {c.describe(second)}",
                f"queue {second.qn}, MSN {second.msn}, {'L' if second.last else 'no L'}, {second.payload.hex()}")


# --- Atomics that the peer carries out

@extended("atomic.fetch_add", "7306 5.1.1", "FetchAdd adds, and answers with what was there", "0x100; 0x123")
def _(t, c):
    poked(t, 0x100)
    c.says_ulpdus(atomic(t, value=0x23))
    return seen(original(c), f"{value(t):#x}")


@extended("atomic.add_wraps", "7306 5.1.1", "FetchAdd wraps", "0xffffffffffffffff; 0x1")
def _(t, c):
    poked(t, ALL_ONES)
    c.says_ulpdus(atomic(t, value=2))
    return seen(original(c), f"{value(t):#x}")


@extended("atomic.add_fields", "7306 5.1.1", "No carry leaves a field whose top bit the mask marks",
          "0xff00000000ff; 0xff000000000000")
def _(t, c):
    # Two fields of 16 bits and one of 32: each overflows into nothing.
    poked(t, 0x0000FF00000000FF)
    mask = 1 << 63 | 1 << 47 | 1 << 7
    c.says_ulpdus(atomic(t, value=0x0000010000000001 | 0x00FF000000000000, mask=mask))
    return seen(original(c), f"{value(t):#x}")


@extended("atomic.add_ignores", "7306 5.2.1", "FetchAdd does not look at the compare fields, nor any atomic at the reserved bits",
          "0x7; 0x8")
def _(t, c):
    poked(t, 7)
    c.says_ulpdus(atomic(t, code=FETCH_ADD | 0xABCDEF0, value=1, compare=0x1111, compare_mask=0x2222))
    return seen(original(c), f"{value(t):#x}")


@extended("atomic.compare_swap", "7306 5.1.2", "CmpSwap swaps where it compares equal", "0x2222; 0x1111")
def _(t, c):
    poked(t, 0x2222)
    c.says_ulpdus(atomic(t, code=COMPARE_SWAP, value=0x1111, mask=ALL_ONES, compare=0x2222, compare_mask=ALL_ONES))
    return seen(original(c), f"{value(t):#x}")


@extended("atomic.compare_differs", "7306 5.1.2", "CmpSwap changes nothing where it compares unequal", "0x2223; 0x2223")
def _(t, c):
    poked(t, 0x2223)
    c.says_ulpdus(atomic(t, code=COMPARE_SWAP, value=0x1111, mask=ALL_ONES, compare=0x2222, compare_mask=ALL_ONES))
    return seen(original(c), f"{value(t):#x}")


@extended("atomic.masks", "7306 5.1.2", "CmpSwap compares and swaps under its masks", "0xab34; 0xab77")
def _(t, c):
    poked(t, 0xAB34)
    c.says_ulpdus(atomic(t, code=COMPARE_SWAP, value=0x9977, mask=0xFF, compare=0xAB00, compare_mask=0xFF00))
    return seen(original(c), f"{value(t):#x}")


@extended("atomic.response", "7306 5.2.2", "The response: queue 3, MSN 1 and 2, L, the request's identifier", "all right")
def _(t, c):
    c.says_ulpdus(atomic(t, ident=0xABCD), atomic(t, msn=2, ident=0xABCE))
    frames = c.frames(2)
    right = [(f.qn, f.msn, f.mo, f.last, f.payload[:4].hex()) for f in frames]
    return "all right" if right == [(3, 1, 0, True, "0000abcd"), (3, 2, 0, True, "0000abce")] else str(right)


@extended("atomic.in_order", "7306 5.4", "Atomics and Reads are answered in their order, and share their MSN",
          "Read Response, Atomic Response, Read Response; new bytes")
def _(t, c):
    poked(t, 5)
    c.says_ulpdus(t.read(msn=1, size=8, offset=64), atomic(t, msn=2), t.read(msn=3, size=8, offset=64))
    frames = c.frames(3)
    return seen(", ".join(c.describe(f) for f in frames),
                "new bytes" if frames[2].payload == struct.pack("=Q", 6) else "old bytes")


refused("atomic.misaligned", "7306 8.2", "An atomic's address is a multiple of 8", lambda t: atomic(t, offset=60),
        "Terminate 0/2/07, closed; nothing placed")
refused("atomic.code", "7306 5.2.1", "An atomic's code is one that there is", lambda t: atomic(t, code=5),
        "Terminate 0/2/06, closed; nothing placed")
refused("atomic.no_rights", "5040 8.1.1", "An atomic needs a right of its own", lambda t: atomic(t, key="ro"),
        "Terminate 0/1/02, closed; nothing placed")
refused("atomic.unknown_stag", "5040 8.1.1", "An atomic's STag must be valid", lambda t: atomic(t, key="gone"),
        "Terminate 0/1/00, closed; nothing placed")
refused("atomic.behind", "5040 8.1.1", "An atomic stays inside its buffer", lambda t: atomic(t, offset=65536),
        "Terminate 0/1/01, closed; nothing placed")
refused("atomic.foreign", "5040 8.1.1", "An atomic's STag must belong to the stream's protection domain",
        lambda t: atomic(t, key="foreign"),
        "Terminate 0/1/03, closed; nothing placed")


@extended("atomic.quoted", "7306 8.1", "A Terminate for an atomic has the DDP header and not the request's own", "c0 00; right")
def _(t, c):
    ulpdu = atomic(t, key="ro")
    c.says_ulpdus(ulpdu)
    f = c.frame()
    return seen(f.payload[2:4].hex(" "), "right" if f.payload[6:] == ulpdu[:18] else f.payload[6:].hex(" "))


# --- Atomics of the peer

def sends_atomic(name, sentence, kind, expects):
    @extended(name, "7306 5.2.1", sentence, expects)
    def _(t, c):
        t.ask("remote", kind, 0x99, 0x8000, 8, 0x30)
        f = c.frame()
        code, ident, stag, to, *rest = struct.unpack(">IIIQQQQQ", f.payload)
        c.says_ulpdus(wire.untagged(wire.ATOMIC_RESPONSE, 3, 1, payload=struct.pack(">IQ", ident, 0x1234)))
        return seen(f"queue {f.qn} MSN {f.msn} code {code} {stag:#x} {to:#x} " + " ".join(f"{r:x}" for r in rest), t.done(),
                    f"{struct.unpack('=Q', bytes.fromhex(t.ask('sink', 8)))[0]:#x}")


F = f"{ALL_ONES:x}"
sends_atomic("atomic.sent_add", "An Atomic Request that is sent, and its response", "fetch_add",
             f"queue 1 MSN 1 code 0 0x99 0x8000 30 0 0 {F}; success; 0x1234")
sends_atomic("atomic.sent_swap", "An Atomic Request that is sent, and its response", "compare_swap",
             f"queue 1 MSN 1 code 2 0x99 0x8000 31 {F} 30 {F}; success; 0x1234")


@extended("atomic.unasked", "7306 5.2.2", "An Atomic Response that nobody asked for ends the stream",
          "Terminate 0/2/ff, closed")
def _(t, c):
    c.says_ulpdus(wire.untagged(wire.ATOMIC_RESPONSE, 3, 1, payload=bytes(12)))
    return c.end()
