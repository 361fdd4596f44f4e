"""Packets as LOFAR's boards send them, with samples that vary byte by byte."""

import struct

NANOSECONDS = {200: 5120, 160: 6400}  # of a slice


def first_slice(second, clock=200):
    return (second * clock * 1_000_000 + 512) // 1024


def samples(number, size, stream=0):
    """Of a packet; no two packets near each other have the same."""
    seed = number * 37 + stream * 101
    return bytes((seed + i * 7 + (i >> 8) * 3) & 255 for i in range(size))


def rsp(number, *, stream=0, clock=200, bits=16, beamlets=61, slices=16, station=6848, data=None):
    """The packet of this number."""
    slice_ = number * slices
    second = slice_ * 1024 // (clock * 1_000_000)
    header = struct.pack("<BBBBHBBII", 3, (0x80 if clock == 200 else 0) | stream % 4, {16: 0, 8: 1, 4: 2}[bits], 0, station, beamlets, slices,
                         second, slice_ - first_slice(second, clock))
    size = beamlets * slices * 4 * bits // 8
    return header + (samples(number, size, stream) if data is None else data)


def number_at(second, clock=200, slices=16):
    """Of the first packet that begins in this second."""
    return -(-first_slice(second, clock) // slices)


def ns_of(number, clock=200, slices=16):
    return number * slices * NANOSECONDS[clock]
