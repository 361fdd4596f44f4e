"""How fast blocks get onto a disk: `weft stream recv --file`, and `dd` past the page cache beside it."""

import os
import pathlib
import re
import subprocess
import tempfile

import streams_run

BLOCK_PACKETS = 256
PACKET_BYTES = 8192
PACKET = ("--format", "raw", "--payload", str(PACKET_BYTES - 8))  # behind its number
BLOCK_BYTES = BLOCK_PACKETS * PACKET_BYTES
LIMIT = 120  # seconds for either


def dd(folder, size):
    """Figures of `dd` that writes `size` bytes of zeroes to a new file there, in pieces as large as a block."""
    with tempfile.TemporaryDirectory(prefix="weft-disk-", dir=folder) as inside:
        words = ["dd", "if=/dev/zero", f"of={inside}/dd", f"bs={BLOCK_BYTES}", f"count={size // BLOCK_BYTES}", "oflag=direct", "conv=fdatasync"]
        before = os.times()
        try:
            result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=LIMIT, env={**os.environ, "LC_ALL": "C"})
        except subprocess.TimeoutExpired:
            raise streams_run.StreamFailed("dd did not end in time") from None
        after = os.times()
    found = re.search(r"^(\d+) bytes .* copied, ([0-9.e+-]+) s", result.stderr, re.MULTILINE)
    if result.returncode != 0 or not found:
        raise streams_run.StreamFailed(result.stderr.strip() or f"dd ended with {result.returncode}")
    written, seconds = int(found[1]), float(found[2])
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {"gbps": written * 8e-9 / seconds, "rx_s_per_gb": cpu_s / (written * 1e-9)}


def stream(weft, transport, folder, size, mbps=0):
    """Figures of a stream on loopback into a new file there: as fast as it goes, or as the sender's clock has it."""
    with tempfile.TemporaryDirectory(prefix="weft-disk-", dir=folder) as inside:
        file = pathlib.Path(inside, "blocks")
        packets = size // PACKET_BYTES
        received, _ = streams_run.exchange(
            weft, transport, [*PACKET, "--file", str(file), "--block", str(BLOCK_PACKETS)],
            [*PACKET, "--packets", str(packets), "--rate", str(mbps), "--packets-per-write", "16" if transport in ("rc", "uc") else "1"], LIMIT)
        if file.stat().st_size != received["written"]:
            raise streams_run.StreamFailed(f"the file has {file.stat().st_size} bytes, and {received['written']} were written")
    if not received["written"]:
        raise streams_run.StreamFailed("no block was written")
    if not received["direct"]:
        raise streams_run.StreamFailed(f"the file system of {folder} knows no O_DIRECT, so weft writes through the page cache")
    arrived = sum(stream["received"] for stream in received["streams"])
    return {"gbps": received["written"] * 8e-9 / received["written_seconds"], "rx_s_per_gb": received["cpu_s"] / (received["written"] * 1e-9),
            "lost_percent": 100 * max(0.0, 1 - arrived / packets)}


class Disk:
    """A turn of these: dd, then streams. A sender over UDP or UC, whom a slow disk does not hold back, keeps to the rate of the dd before it."""

    def __init__(self, weft, folder, size):
        self.weft = weft
        self.folder = folder
        self.size = size
        self.dd_mbps = 0

    def measure(self, case):
        def measure_dd(_line):
            figures = dd(self.folder, self.size)
            self.dd_mbps = round(figures["gbps"] * 1000)
            return figures, [], {}

        def measure_stream(line):
            line["sent_mbps"] = self.dd_mbps if case in ("udp", "uc") else 0
            return stream(self.weft, case, self.folder, self.size, line["sent_mbps"]), [], {}
        return measure_dd if case == "dd" else measure_stream
