"""The TCP segments of a capture from the wire, and which FPDUs are in them (RFC 5044 section 5.1). Of tshark this takes TCP's
headers alone; MPA's frames are cut here."""

import struct
import subprocess
from typing import NamedTuple

import dissect

KEYS = (b"MPA ID Req Frame", b"MPA ID Rep Frame")
TIMESTAMPS = 12  # bytes of each segment, where both sides have the option
FIELDS = ("ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.flags.syn", "tcp.seq_raw", "tcp.options.mss_val",
          "tcp.options.timestamp.tsval", "tcp.payload")


class Piece(NamedTuple):
    """Where in its direction's stream of bytes a segment, or an FPDU, is."""

    at: int
    size: int


class Direction:
    """One direction of a connection. `emss`: the most that TCP puts into a segment."""

    def __init__(self, emss, segments, fpdus):
        self.emss = emss
        self.segments = segments  # those behind the start-up frame
        self.fpdus = fpdus

    def largest(self):
        return max((f.size for f in self.fpdus), default=0)

    def cut(self):
        """The segments that do not begin with an FPDU."""
        begins = {f.at for f in self.fpdus}
        return [s for s in self.segments if s.at not in begins]


class _Bytes:
    """What one side has sent."""

    def __init__(self):
        self.first = self.mss = None
        self.timestamps = False
        self.segments = {}  # position: payload, without what TCP sent again

    def take(self, syn, sequence, mss, timestamp, payload):
        if syn:
            self.first, self.mss, self.timestamps = sequence + 1, int(mss), bool(timestamp)
        elif payload and self.first is not None:
            at = (sequence - self.first) % (1 << 32)
            if len(payload) > len(self.segments.get(at, b"")):
                self.segments[at] = payload

    def stream(self):
        data = bytearray()
        for at, payload in sorted(self.segments.items()):
            if at > len(data):
                raise ValueError(f"bytes {len(data)} to {at} are not in the capture")
            data[at:at + len(payload)] = payload
        return bytes(data)

    def direction(self, other):
        data = self.stream()
        if data[:16] not in KEYS:
            return None
        begin = at = 20 + struct.unpack(">H", data[18:20])[0]
        fpdus = []
        while at + 2 <= len(data):
            fpdus.append(Piece(at, (2 + struct.unpack(">H", data[at:at + 2])[0] + 3 & ~3) + 4))
            at += fpdus[-1].size
        emss = min(self.mss, other.mss) - (TIMESTAMPS if self.timestamps and other.timestamps else 0)
        return Direction(emss, [Piece(a, len(p)) for a, p in sorted(self.segments.items()) if a >= begin], fpdus)


def directions(file):
    """{(source, target): Direction} of all connections that begin with MPA's start-up frames."""
    command = dissect.tshark("-r", file, "-T", "fields", *(word for f in FIELDS for word in ("-e", f)))
    lines = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           env=dissect.environment()).stdout.splitlines()
    sides = {}
    for line in lines:
        source, source_port, target, target_port, syn, sequence, mss, timestamp, payload = line.split("\t")
        side = sides.setdefault((f"{source}:{source_port}", f"{target}:{target_port}"), _Bytes())
        side.take(syn in ("1", "True"), int(sequence), mss, timestamp, bytes.fromhex(payload.replace(":", "")))
    found = {key: side.direction(sides[key[::-1]]) for key, side in sides.items() if side.first is not None and key[::-1] in sides}
    return {key: direction for key, direction in found.items() if direction}
