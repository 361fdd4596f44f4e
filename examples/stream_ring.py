#!/usr/bin/env python3
"""Takes blocks out of the ring of `weft stream recv --ring NAME` as arrays of numpy that lie in the ring: nothing is copied.

  cc -O2 -shared -fPIC -I include -o libstream_ring.so examples/stream_ring_shared.c
  build/release/bin/weft stream recv --streams 2 --ring sky --once &
  python3 examples/stream_ring.py sky &
  build/release/bin/weft stream send 127.0.0.1 --streams 2 --duration 10

prints for each stream, when the receiver ends, how many packets came, a CRC of their bytes, and of LOFAR's packets the power of X and Y, as JSON.
It needs numpy (Debian: python3-numpy), and the small library that the first command makes. Your own program does as this one:

  with Ring("sky") as ring:
      stream = ring.attach(0)
      for block in stream.blocks():                  # until the receiver ends
          power = (block.samples()[block.here].astype("int32") ** 2).sum()

A block, and all arrays of it, are good until the loop goes on; what is to be kept longer has to be copied. A program that is too slow loses whole
blocks, and the stream goes on. docs/streams-reference.md has the bytes of packets, include/weft/stream_ring.h those of the ring.
"""

import ctypes
import json
import os
import sys
import time
import zlib

try:
    import numpy
except ImportError:
    sys.exit("stream_ring.py needs numpy (Debian: python3-numpy)")

RSP, SPEAD, RAW = 1, 2, 3


class RingHeader(ctypes.Structure):
    """As struct weft_stream_ring."""
    _fields_ = [("magic", ctypes.c_uint64), ("version", ctypes.c_uint32), ("format", ctypes.c_uint32), ("streams", ctypes.c_uint32),
                ("blocks", ctypes.c_uint32), ("packets_per_block", ctypes.c_uint32), ("packet_bytes", ctypes.c_uint32),
                ("header_bytes", ctypes.c_uint32), ("slot_bytes", ctypes.c_uint32), ("bits", ctypes.c_uint32), ("ended", ctypes.c_uint32),
                ("size", ctypes.c_uint64)]


class BlockHeader(ctypes.Structure):
    """As struct weft_stream_block."""
    _fields_ = [("magic", ctypes.c_uint64), ("number", ctypes.c_uint64), ("stream", ctypes.c_uint32), ("packets", ctypes.c_uint32),
                ("received", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("packet_bytes", ctypes.c_uint32), ("slot_bytes", ctypes.c_uint32),
                ("block_bytes", ctypes.c_uint64), ("closed_ns", ctypes.c_int64), ("valid", ctypes.c_uint8 * 2048)]


def load(path):
    """The library, with what its functions take and give."""
    library = ctypes.CDLL(path, use_errno=True)
    pointer = ctypes.c_void_p
    for name, result, arguments in (("ring_open", pointer, [ctypes.c_char_p]), ("ring_close", None, [pointer]), ("ring_alive", ctypes.c_int, [pointer]),
                                    ("stream_attach", pointer, [pointer, ctypes.c_uint32]), ("stream_detach", None, [pointer]),
                                    ("stream_wait", ctypes.c_int, [pointer, ctypes.c_int]), ("stream_front", pointer, [pointer]),
                                    ("stream_data", pointer, [pointer, pointer]), ("stream_release", None, [pointer])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def checked(pointer, what):
    if not pointer:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return pointer


class Block:
    """One block of a stream, in the ring."""

    def __init__(self, ring, header, address):
        self.ring = ring
        self.header = header
        self.number = header.number
        self.first = header.number * header.packets  # number of its first packet
        self.received = header.received
        valid = numpy.ctypeslib.as_array(header.valid)[:(header.packets + 7) // 8]
        self.here = numpy.unpackbits(valid, count=header.packets, bitorder="little").astype(bool)  # a value for each packet
        offset = address - ring.address
        slots = ring.memory[offset:offset + header.packets * header.slot_bytes].reshape(header.packets, header.slot_bytes)
        self.packets = slots[:, :header.packet_bytes]  # with their headers; what is not here is anything

    def payload(self):
        """Bytes behind the packets' headers: an array of (packet, byte)."""
        return self.packets[:, self.ring.header.header_bytes:]

    def samples(self):
        """Of RSP's packets in 8 or 16 bits: an array of (packet, beamlet, slice, polarisation, real or imaginary), in the ring as well."""
        header = self.ring.header
        if header.format != RSP or header.bits not in (8, 16):
            raise ValueError("samples() is for RSP's packets in 8 or 16 bits")
        one = self.packets[int(self.here.argmax())]
        beamlets, slices = int(one[6]), int(one[7])
        return self.payload().view(f"<i{header.bits // 8}").reshape(self.header.packets, beamlets, slices, 2, 2)


class Stream:
    """One stream, of which this process is the consumer."""

    def __init__(self, ring, index):
        self.ring = ring
        self.index = index
        self.pointer = checked(ring.library.stream_attach(ring.address, index), f"stream {index} of {ring.name}")

    def front(self):
        """The oldest block that is published and not released, or None."""
        found = self.ring.library.stream_front(self.pointer)
        if not found:
            return None
        return Block(self.ring, BlockHeader.from_address(found), self.ring.library.stream_data(self.pointer, found))

    def release(self):
        """Gives the oldest block back: the receiver may use its memory."""
        self.ring.library.stream_release(self.pointer)

    def blocks(self):
        """Each block, until the receiver has ended and nothing is left. It is released when the loop goes on."""
        while self.ring.library.stream_wait(self.pointer, 1000) >= 0:
            block = self.front()
            if block is not None:
                yield block
                self.release()

    def detach(self):
        if self.pointer:
            self.ring.library.stream_detach(self.pointer)
        self.pointer = None


class Ring:
    """A ring, and the streams that were attached."""

    def __init__(self, name, library="./libstream_ring.so"):
        self.name = name
        self.library = load(library)
        self.streams = []
        self.address = checked(self.library.ring_open(name.encode()), name)
        self.header = RingHeader.from_address(self.address)
        # All of it, as bytes that cannot be written by mistake.
        self.memory = numpy.ctypeslib.as_array((ctypes.c_uint8 * self.header.size).from_address(self.address))
        self.memory.flags.writeable = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def attach(self, index):
        self.streams.append(Stream(self, index))
        return self.streams[-1]

    def alive(self):
        return self.library.ring_alive(self.address) != 0

    def close(self):
        """No array of the ring may be used any more."""
        for stream in self.streams:
            stream.detach()
        self.library.ring_close(self.address)


def look(block, sums):
    """What this program wants to know of a block."""
    packets, crc, power = 0, sums["crc"], [0, 0]
    for i in numpy.flatnonzero(block.here):
        crc = zlib.crc32(block.packets[i], crc)  # takes the ring's own memory
        packets += 1
    if block.ring.header.format == RSP and packets:
        samples = block.samples()
        sums["views"] = sums["views"] and numpy.shares_memory(samples, block.ring.memory)
        power = [int((samples[block.here, :, :, p].astype("int64") ** 2).sum()) for p in (0, 1)]
    sums["crc"] = crc
    sums["packets"] += packets
    sums["missing"] += len(block.here) - packets
    sums["power"] = [a + b for a, b in zip(sums["power"], power)]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} RING [LIBRARY]")
    try:
        ring = Ring(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"{sys.argv[0]}: {error}")
    with ring:
        streams = [ring.attach(i) for i in range(ring.header.streams)]
        print("attached", file=sys.stderr, flush=True)
        sums = [{"blocks": 0, "packets": 0, "missing": 0, "crc": 0, "power": [0, 0], "views": True} for _ in streams]
        while True:
            alive = ring.alive()  # before the last look
            any_came = False
            for stream, of_stream in zip(streams, sums):
                block = stream.front()
                if block is None:
                    continue
                any_came = True
                look(block, of_stream)
                of_stream["blocks"] += 1
                del block  # its arrays are not to be used behind this
                stream.release()
            if not any_came:
                if not alive:
                    break
                time.sleep(0.002)  # a thread for each stream would wait in blocks()
        print(json.dumps({"streams": sums}))


if __name__ == "__main__":
    main()
