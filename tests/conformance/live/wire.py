"""The bytes of MPA, DDP and RDMAP, made and read by hand: nothing here is shared with what is tested.

RFC 5044 section 4 (FPDUs, markers) and 7.1 (start-up frames), RFC 6581 section 9 (the enhanced block), RFC 5041 section 4
(DDP headers), RFC 5040 section 4 and RFC 7306 sections 5 and 6 (RDMAP headers).
"""

import struct
from dataclasses import dataclass, field

WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERMINATE = range(8)
IMMEDIATE, IMMEDIATE_SE, ATOMIC_REQUEST, ATOMIC_RESPONSE, SEND_IMM, SEND_SE_IMM, DELIVERED = range(8, 15)
NAMES = ["Write", "Read Request", "Read Response", "Send", "Send with Invalidate", "Send with SE",
         "Send with SE and Invalidate", "Terminate", "Immediate", "Immediate with SE", "Atomic Request", "Atomic Response",
         "Send with Immediate", "Send with SE and Immediate", "Delivered", "opcode 15"]

# Start-up: flags of the frame, bits of the two words of the enhanced block.
M, C, R, S, RESERVED_GSO, RESERVED, XA, XR = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
A, B, C_WRITE, D_READ = 0x8000, 0x4000, 0x8000, 0x4000
REQUEST_KEY, REPLY_KEY = b"MPA ID Req Frame", b"MPA ID Rep Frame"


def pattern(n, seed):
    """Bytes in which none equals its neighbours; the peer has the same function."""
    return bytes((i * 7 + i // 251 + seed * 31) & 0xFF for i in range(n))


# --- CRC32C: RFC 3385, and byte order as in RFC 3720

def _table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        yield n


TABLE = list(_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# --- MPA

def start_frame(key, flags, data=b"", rev=2, length=None):
    return key + struct.pack(">BBH", flags, rev, len(data) if length is None else length) + data


def block(ird=4, ord=4, rtr=0, kinds=0):
    """rtr: A and B, kinds: C_WRITE and D_READ."""
    return struct.pack(">HH", ird | rtr, ord | kinds)


def request(flags=C | S, data=b"", rev=2, **more):
    return start_frame(REQUEST_KEY, flags, (block(**more) if flags & S else b"") + data, rev)


def reply(flags=C | S, data=b"", rev=2, **more):
    return start_frame(REPLY_KEY, flags, (block(**more) if flags & S else b"") + data, rev)


@dataclass
class Start:
    key: bytes
    flags: int
    rev: int
    data: bytes  # behind the enhanced block
    ird: int = 0
    ord: int = 0
    rtr: int = 0
    kinds: int = 0
    block: bool = False  # the enhanced one is there

    @staticmethod
    def parse(frame):
        flags, rev, _ = struct.unpack(">BBH", frame[16:20])
        start = Start(frame[:16], flags, rev, frame[20:])
        if flags & S and len(start.data) >= 4:
            first, second = struct.unpack(">HH", start.data[:4])
            start.ird, start.rtr, start.ord, start.kinds = first & 0x3FFF, first & 0xC000, second & 0x3FFF, second & 0xC000
            start.data = start.data[4:]
            start.block = True
        return start

    def text(self):
        """R=1 and so on, without what depends on the program."""
        bits = [name for name, bit in (("M", M), ("C", C), ("R", R), ("S", S)) if self.flags & bit]
        text = f"rev {self.rev} {' '.join(bits)}".strip()
        return text + " without its block" if self.flags & S and not self.block else text


def fpdu(ulpdu, crc=True, pad=None, spoil=0):
    """`pad` instead of zeros; `spoil` is added to the CRC by exclusive or."""
    frame = struct.pack(">H", len(ulpdu)) + ulpdu
    frame += pad if pad is not None else b"\0" * (-len(frame) % 4)
    return frame + struct.pack("<I", crc32c(frame) ^ spoil if crc else 0)


def fpdu_size(length):
    return (2 + length + 3 & ~3) + 4


# --- DDP

def tagged(op, stag, to, payload=b"", last=True, dv=1, rv=1, reserved=0):
    return struct.pack(">BBIQ", 0x80 | (0x40 if last else 0) | reserved << 2 & 0x3C | dv,
                       rv << 6 | reserved << 4 & 0x30 | op,
                       stag, to) + payload


def untagged(op, qn, msn, mo=0, payload=b"", last=True, dv=1, rv=1, word=0, reserved=0):
    return struct.pack(">BBIIII", (0x40 if last else 0) | reserved << 2 & 0x3C | dv, rv << 6 | reserved << 4 & 0x30 | op,
                       word,
                       qn, msn, mo) + payload


# --- RDMAP

def write(stag, to, payload=b"", **more):
    return tagged(WRITE, stag, to, payload, **more)


def send(msn, payload=b"", op=SEND, **more):
    return untagged(op, 0, msn, payload=payload, **more)


def read_request(msn, sink, sink_to, size, source, source_to, **more):
    return untagged(READ_REQUEST, 1, msn, payload=struct.pack(">IQIIQ", sink, sink_to, size, source, source_to), **more)


def atomic_request(msn, code, stag, to, value, mask=0, compare=0, compare_mask=0, ident=7):
    return untagged(ATOMIC_REQUEST, 1, msn,
                    payload=struct.pack(">IIIQQQQQ", code, ident, stag, to, value, mask, compare, compare_mask))


def immediate(msn, payload, op=IMMEDIATE):
    return untagged(op, 0, msn, payload=payload)


def terminate(layer, etype, code, headers=b"", flags=0):
    return untagged(TERMINATE, 2, 1, payload=struct.pack(">BBBB", layer << 4 | etype, code, flags, 0) + headers)


@dataclass
class Frame:
    """One FPDU that came. `whole` includes length, pad and CRC, but no markers."""
    whole: bytes
    crc_good: bool
    ulpdu: bytes = b""
    tagged: bool = False
    last: bool = False
    op: int = -1
    stag: int = 0
    to: int = 0
    word: int = 0
    qn: int = 0
    msn: int = 0
    mo: int = 0
    payload: bytes = b""
    marks: list = field(default_factory=list)  # (position of a marker behind the length field, FPDUPTR)

    @staticmethod
    def parse(whole):
        length = struct.unpack(">H", whole[:2])[0]
        f = Frame(whole, struct.unpack("<I", whole[-4:])[0] == crc32c(whole[:-4]), whole[2:2 + length])
        if length < 14:
            return f
        f.tagged, f.last, f.op = bool(f.ulpdu[0] & 0x80), bool(f.ulpdu[0] & 0x40), f.ulpdu[1] & 0xF
        if f.tagged:
            f.stag, f.to = struct.unpack(">IQ", f.ulpdu[2:14])
            f.payload = f.ulpdu[14:]
        elif length >= 18:
            f.word, f.qn, f.msn, f.mo = struct.unpack(">IIII", f.ulpdu[2:18])
            f.payload = f.ulpdu[18:]
        return f

    @property
    def name(self):
        return NAMES[self.op] if self.ulpdu else "empty FPDU"

    @property
    def pad(self):
        return self.whole[2 + len(self.ulpdu):-4]

    @property
    def idle(self):
        """Means nothing: a Write of no bytes, or a report of what was delivered, which has its place in 7306 cases only."""
        return self.op == DELIVERED or self.op == WRITE and self.last and not self.payload

    def error(self, swapped):
        """(layer, etype, code) of a Terminate; `swapped`: the nibbles of its first byte change places, as siw has it."""
        high, low = self.payload[0] >> 4, self.payload[0] & 0xF
        return (low, high, self.payload[1]) if swapped else (high, low, self.payload[1])
