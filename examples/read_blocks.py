#!/usr/bin/env python3
"""Reads what `weft stream recv --file PATH` wrote: blocks, and which of their packets are missing.

  weft stream recv --file sky.blocks          (and, when it has ended)
  python3 examples/read_blocks.py sky.blocks  (of a raw device, behind it: the bytes that the receiver says it has written)

prints a line for each block and one with the sums; status 1 when something is wrong with the file.
Nothing but Python is needed; your own program does as show() does:

  for block in blocks("sky.blocks"):
      for i in range(block.packets):
          packet = block.packet(i)            # its bytes with the header, or None: it is missing
          number = block.first + i

docs/streams-reference.md has the bytes of packets, include/weft/stream_ring.h those of a block's header.
"""

import collections
import itertools
import os
import struct
import sys

HEADER = 4096  # bytes before each block's packets
MAGIC_BYTES = b"weftring"
MAGIC = int.from_bytes(MAGIC_BYTES, "little")
FIXED = struct.Struct("<QQIIIIIIQq")  # magic, number, stream, packets, received, zero, packet, slot, block bytes, closed


class Block:
    def __init__(self, header, file):
        if len(header) != HEADER:
            raise EOFError("the file ends within a header")
        (magic, self.number, self.stream, self.packets, self.received, _, self.packet_bytes, self.slot_bytes,
         size, self.closed_ns) = FIXED.unpack_from(header)
        if magic != MAGIC:
            raise ValueError(f"no block begins at byte {file.tell() - len(header)}")
        self.first = self.number * self.packets  # number of its first packet
        self.valid = header[FIXED.size:]
        self.data = file.read(size)
        if len(self.data) != size:
            raise EOFError("the file ends within a block")

    def has(self, i):
        return bool(self.valid[i // 8] >> i % 8 & 1)

    def packet(self, i):
        """Packet number first + i; None when it is missing."""
        begin = i * self.slot_bytes
        return memoryview(self.data)[begin:begin + self.packet_bytes] if self.has(i) else None

    def missing(self):
        """Their numbers."""
        return [self.first + i for i in range(self.packets) if not self.has(i)]


def blocks(path, size=None):
    """All blocks, those of several streams by turns. `size`: bytes to read; a device has old ones behind them."""
    with open(path, "rb") as file:
        data_bytes = None
        while size is None or file.tell() < size:
            header = file.read(HEADER)
            if not header:
                return
            if not any(header):  # room for a block that a receiver could not write, or not to its end
                file.seek(data_bytes or 0, os.SEEK_CUR)
                continue
            if data_bytes is None and file.tell() > HEADER and not header.startswith(MAGIC_BYTES):
                continue  # of such a block, before the first one that is whole
            block = Block(header, file)
            data_bytes = len(block.data)
            yield block


def ranges(numbers):
    """7, 8, 9, 12 as "7-9 12"."""
    text = []
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in run]
        text.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return " ".join(text)


def show(those, sums):
    for block in those:
        missing = block.missing()
        told = f", missing {ranges(missing)}" if missing else ""
        print(f"stream {block.stream} block {block.number}: {block.received} of {block.packets} packets{told}")
        sums.update(blocks=1, packets=block.received, missing=len(missing))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} FILE [BYTES]")
    sums = collections.Counter()
    wrong = None
    try:
        show(blocks(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else None), sums)
    except (EOFError, ValueError) as error:  # what comes before is good
        wrong = f"{sys.argv[1]}: {error}"
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error.strerror}")
    print(", ".join(f"{name} {sums[name]}" for name in ("blocks", "packets", "missing")))
    sys.stdout.flush()  # before what is wrong
    sys.exit(wrong)


if __name__ == "__main__":
    main()
