"""Cases about the example consumers of the ring: one that gives out what PSRDADA's clients expect, and one in Python with numpy."""

import subprocess
import sys
import time
import zlib

from cases_outputs import BLOCK, PAYLOAD, by_time, keywords, lane, read, recorded
from cases_recordings import FORM, SECOND, SMALL
from lofar import ns_of, number_at, rsp
from scene import EXAMPLES, ROOMY, SECONDS, Skipped, check, equal


def attached(scene, words):
    """Starts a consumer, which is attached when this returns."""
    process = scene.start(words)
    until = time.monotonic() + SECONDS
    while "attached" not in process.errors:
        check(process.process.poll() is None and time.monotonic() < until, f"{words[0]} does not attach: {process.errors}")
        time.sleep(0.02)
    return process


def as_dada(transport):
    """Header, blocks in order with zeroes where nothing came, end of data; and another header where the count begins anew."""
    def case(scene):
        first = number_at(SECOND) - 300
        before = first - (1 << 25)
        nights = [lane(0), {n: rsp(n, **FORM) for n in range(before, before + 300)}]
        receiver = scene.receive(transport, *SMALL, "--block", BLOCK, *ROOMY, "--ring", scene.ring, "--once")
        consumer = attached(scene, [f"{scene.build}/bin/dada_consumer", scene.ring, 0, f"{scene.folder}/night"])
        scene.send(transport, *SMALL, "--recording", recorded(scene, "lane", {**nights[0], **nights[1]})).end()
        receiver.end()
        consumer.end()
        told = consumer.documents()
        equal([d["file"] for d in told], [f"{scene.folder}/night.{i:04}.dada" for i in range(2)], "files")
        for night, document in zip(nights, told):
            data = read(document["file"])
            k = keywords(data[:4096])
            begin = min(night)
            equal(k["UTC_START"], time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime(ns_of(begin) // 10**9)), "UTC_START")
            equal(int(k["PICOSECONDS"]), ns_of(begin) % 10**9 * 1000, "PICOSECONDS")
            equal((k["NCHAN"], k["NBIT"], k["TSAMP"], k["ORDER"], k["FIRST_PACKET"], k["STATION_ID"]),
                  ("12", "8", "5.12", "TFP", str(begin), "6848"), "a header")
            expected = b"".join(by_time(night[n]) if n in night else bytes(PAYLOAD) for n in range(begin, max(night) + 1))
            check(data[4096:] == expected, f"samples of {document['file']}")
            equal(document["bytes"], len(expected), "bytes")
    return case


def python_with_numpy():
    """Debian's packages are those of its own Python."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import numpy"], capture_output=True, timeout=SECONDS, check=False).returncode == 0:
            return python
    raise Skipped("python3-numpy is not installed")


def signed(byte):
    return byte - 256 if byte > 127 else byte


def in_python(transport):
    """Each byte of each packet lies in the arrays, which lie in the ring."""
    def case(scene):
        python = python_with_numpy()
        lanes = [lane(s) for s in range(2)]
        receiver = scene.receive(transport, *SMALL, "--streams", 2, "--block", BLOCK, *ROOMY, "--ring", scene.ring, "--once")
        consumer = attached(scene, [python, f"{EXAMPLES}/stream_ring.py", scene.ring, f"{scene.build}/bin/libstream_ring.so"])
        scene.send(transport, *SMALL, "--recording", *(recorded(scene, f"lane{s}", packets) for s, packets in enumerate(lanes))).end()
        got = receiver.end()["streams"]
        seen = consumer.end()["streams"]
        for s, packets in enumerate(lanes):
            equal((got[s]["received"], got[s]["overrun"]), (len(packets), 0), "received, overrun")
            equal((seen[s]["packets"], seen[s]["views"]), (len(packets), True), "packets, and whether they are views")
            equal(seen[s]["crc"], zlib.crc32(b"".join(packets.values())), "CRC of all packets")
            power = [0, 0]
            for packet in packets.values():
                for i, byte in enumerate(packet[16:]):
                    power[i % 4 // 2] += signed(byte) ** 2
            equal(seen[s]["power"], power, "power of X and Y")
    return case


def no_ring(scene):
    """What is wrong is said in a line."""
    for words in ([f"{scene.build}/bin/dada_consumer", "weft-no-such-ring", "0", "a"],
                  [python_with_numpy(), f"{EXAMPLES}/stream_ring.py", "weft-no-such-ring", f"{scene.build}/bin/libstream_ring.so"]):
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
        equal((done.returncode, len(done.stderr.splitlines())), (1, 1), f"status and lines of {words[:2]}: {done.stderr}")


CASES = {
    **{f"consumer_dada_{t}": as_dada(t) for t in ("tcp", "udp", "uc")},
    **{f"consumer_python_{t}": in_python(t) for t in ("tcp", "uc")},
    "consumer_no_ring": no_ring,
}
