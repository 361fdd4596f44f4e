"""Cases about recordings and captures that are sent again: of LOFAR's lanes as their recorders leave them, compressed too, from a moment on,
at the pace that the packets had."""

import os
import shutil
import signal
import subprocess
import time

from cases_data import pcap
from lofar import ns_of, number_at, rsp
from scene import ROOMY, SECONDS, Skipped, blocks, check, equal

SECOND = 1_700_000_001
SMALL = ("--bits", 8, "--beamlets", 12)
FORM = {"bits": 8, "beamlets": 12}


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return path


def compressed(path):
    """The file beside it in zstd."""
    if shutil.which("zstd") is None:
        raise Skipped("zstd is not there")
    subprocess.run(["zstd", "-q", "--rm", path], check=True, timeout=SECONDS)
    return f"{path}.zst"


def compare(path, expected, block):
    """What is in the blocks of a file; `expected`: for each stream, the packets by their numbers."""
    left = [dict(packets) for packets in expected]
    for b in blocks(path):
        for i in filter(b.has, range(block)):
            check(bytes(b.packet(i)) == left[b.stream].pop(b.first + i, None), f"bytes of packet {b.first + i} of stream {b.stream}")
    equal([sorted(packets) for packets in left], [[] for _ in expected], "packets that are in no block")


def utc(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)) + f".{ns % 10**9:09}"


def replayed(transport):
    """Lanes in files, one of them compressed: each packet comes with its bytes and its number, holes are missing, and what is no packet is
    unusable. The lane numbers are the order of the files."""
    def case(scene):
        first = number_at(SECOND) - 300
        lanes = [{n: rsp(n, stream=s, **FORM) for n in range(first + 5 * s, first + 600) if n % 97 != s} for s in range(3)]
        files = []
        for s, lane in enumerate(lanes):
            packets = list(lane.values())
            if s == 1:  # one without a version, and a part of one
                packets[50:50] = [bytes(len(packets[0]))]
                packets.append(packets[-1][:100])
            files.append(write(f"{scene.folder}/lane{s}", b"".join(packets)))
        files[2] = compressed(files[2])
        path = f"{scene.folder}/blocks"
        receiver = scene.receive(transport, *SMALL, "--streams", 3, "--block", 32, *ROOMY, "--file", path, "--once")
        sent = scene.send(transport, *SMALL, "--recording", *files).end()
        equal(sent["unusable"], 2, "unusable")
        equal([s["sent"] for s in sent["streams"]], [len(lane) for lane in lanes], "sent")
        got = receiver.end()["streams"]
        equal([(s["received"], s["missing"], s["invalid"]) for s in got],
              [(len(lane), max(lane) - min(lane) + 1 - len(lane), 0) for lane in lanes], "received, missing, invalid")
        compare(path, lanes, 32)
    return case


def begins_at(kind):
    """--start leaves out what was taken before, also of packets that know no time, by the clock of the capture."""
    def case(scene):
        first = number_at(SECOND) - 200
        packets = {n: rsp(n, **FORM) for n in range(first, first + 1000)}
        if kind == "pcap":
            path = write(f"{scene.folder}/sky.pcap", pcap([(16011, p) for p in packets.values()]))
        else:
            path = write(f"{scene.folder}/lane", b"".join(packets.values()))
        if kind == "zst":
            path = compressed(path)
        file = f"{scene.folder}/blocks"
        receiver = scene.receive("tcp", *SMALL, "--block", 32, "--file", file, "--once")
        scene.send("tcp", *SMALL, "--pcap" if kind == "pcap" else "--recording", path, "--start", utc(ns_of(first + 700))).end()
        equal(receiver.end()["streams"][0]["received"], 300, "received")
        compare(file, [{n: p for n, p in packets.items() if n >= first + 700}], 32)
        late = scene.send("tcp", *SMALL, "--pcap" if kind == "pcap" else "--recording", path, "--start", utc(ns_of(first + 1000)))
        late.end(status=1)
        check(any("ends before --start" in line for line in late.errors), late.errors)
    return case


def own_pace(kind, clock):
    """Packets leave no earlier than they followed each other: at the rate of their clock, and with a pause where the capture has one."""
    def case(scene):
        first = number_at(SECOND, clock)
        numbers = [*range(first, first + 1000), *range(first + 3000, first + 3100)]
        packets = [rsp(n, clock=clock, **FORM) for n in numbers]
        if kind == "pcap":
            path = write(f"{scene.folder}/sky.pcap", pcap([(16011, p) for p in packets]))
        else:
            path = write(f"{scene.folder}/lane", b"".join(packets))
        receiver = scene.receive("udp", *SMALL, "--once")
        sent = scene.send("udp", *SMALL, f"--{kind}", path).end()
        lasted = (ns_of(numbers[-1], clock) - ns_of(first, clock)) / 1e9
        check(sent["sending_s"] >= lasted - 1e-6, f"left within {sent['sending_s']} s, and were taken within {lasted} s")
        got = receiver.end()["streams"][0]
        equal((got["received"] + got["overrun"], got["missing"] + got["gap"], got["invalid"]), (1100, 2000, 0),
              "received, missing, invalid")
    return case


def pace_of_capture(scene):
    """Packets that know no time leave as they were captured."""
    packets = [(16011, n.to_bytes(8, "big") + bytes((n + i) & 255 for i in range(100))) for n in range(100)]
    data = bytearray(pcap(packets))
    at = 24
    for n in range(100):  # 10 ms from each to the next
        data[at:at + 8] = (1_700_000_000 + n // 100).to_bytes(4, "little") + (n % 100 * 10_000).to_bytes(4, "little")
        at += 16 + int.from_bytes(data[at + 8:at + 12], "little")
    raw = ("--format", "raw", "--payload", 100)
    path = compressed(write(f"{scene.folder}/sky.pcap", data))
    receiver = scene.receive("udp", *raw, "--once")
    sent = scene.send("udp", *raw, "--pcap", path).end()
    check(sent["sending_s"] >= 0.99 - 1e-6, f"left within {sent['sending_s']} s")
    equal(receiver.end()["streams"][0]["received"], 100, "received")
    receiver = scene.receive("udp", *raw, "--once")
    scene.send("udp", *raw, "--pcap", path, "--start", "2023-11-14T22:13:20.5", "--rate", 0).end()
    equal(receiver.end()["streams"][0]["received"], 50, "received from the start on")


def damaged(scene):
    """What comes before the damage of a compressed file is sent, and the sender says why no more, with status 1."""
    first = number_at(SECOND)
    path = compressed(write(f"{scene.folder}/lane", b"".join(rsp(n, **FORM) for n in range(first, first + 200))))
    with open(path, "ab") as file:
        file.write(b"nothing of zstd" * 10)
    receiver = scene.receive("tcp", *SMALL, "--once")
    sender = scene.send("tcp", *SMALL, "--recording", path)
    said = sender.end(status=1)
    check("cannot be decompressed" in said.get("error", ""), said)
    equal(said["streams"][0]["sent"], 200, "sent")
    equal(receiver.end()["streams"][0]["received"], 200, "received")


def from_pipe(scene):
    """A recording may be a pipe; a sender that waits for it ends when it is asked to, and all that came through is sent."""
    first = number_at(SECOND)
    packets = {n: rsp(n, **FORM) for n in range(first, first + 100)}
    pipe = f"{scene.folder}/pipe"
    os.mkfifo(pipe)
    path = f"{scene.folder}/blocks"
    receiver = scene.receive("tcp", *SMALL, "--block", 20, "--file", path, "--once")
    sender = scene.send("tcp", *SMALL, "--recording", pipe)
    with open(pipe, "wb") as file:
        file.write(b"".join(packets.values()))
        file.flush()
        receiver.wait_for("blocks", lambda d: d.get("streams") and d["streams"][0]["received"] >= 20)
        sender.kill(signal.SIGTERM)
        sent = sender.end()["streams"][0]["sent"]
    receiver.end()
    compare(path, [dict(list(packets.items())[:sent])], 20)


def refused(scene):
    """Options that go together with no recording."""
    path = write(f"{scene.folder}/lane", rsp(number_at(SECOND), **FORM))
    for words, part in (((*SMALL, "--recording", path, "--pcap", path), "exclude each other"),
                        ((*SMALL, "--recording", path, "--streams", 2), "a stream has a file each"),
                        ((*SMALL, "--recording", path, "--start", "yesterday"), "a time is as"),
                        ((*SMALL, "--start", "2026-11-25"), "is for --pcap and --recording"),
                        (("--format", "raw", "--recording", path, "--start", "2026-11-25"), "tell their time")):
        scene.port = 1
        sender = scene.send("tcp", *words)
        sender.end(status=2)
        check(any(part in line for line in sender.errors), sender.errors)


CASES = {
    **{f"recording_{t}": replayed(t) for t in ("udp", "tcp", "rc", "uc")},
    **{f"recording_start_{kind}": begins_at(kind) for kind in ("pcap", "plain", "zst")},
    "recording_pace_160": own_pace("recording", 160),
    "pcap_pace_160": own_pace("pcap", 160),
    "pcap_pace_200": own_pace("pcap", 200),
    "pcap_pace_of_capture": pace_of_capture,
    "recording_damaged": damaged,
    "recording_from_pipe": from_pipe,
    "recording_refused": refused,
}
