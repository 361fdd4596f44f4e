"""Cases about bytes: what consumers, files and pipes get is what was sent."""

import os
import signal
import struct
import subprocess

from scene import PACKET, blocks, check, equal, total

PART = 65536  # bytes after which the samples repeat


def table():
    """Of samples of 16 bits, as docs/streams-reference.md has the formula."""
    words = []
    for i in range(PART // 2):
        x = (i + 1) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
        x ^= x >> 29
        x = x * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
        x ^= x >> 32
        noise = sum(x >> shift & 15 for shift in (0, 8, 16, 24)) - 30
        turn = i // 4 % 8
        cosine, sine = ((64, 45, 0, -45, -64, -45, 0, 45)[turn], (0, 45, 64, 45, 0, -45, -64, -45)[turn])
        words.append(noise + (sine if i % 2 else cosine))
    return struct.pack(f"<{len(words)}h", *words)


def payload(samples, stream, number, size):
    at = (number * 167 + stream * 59) % 512 * 128
    return (samples * 2)[at:at + size]


def samples(transport, receive=(), send=(), streams=3, packets=1500, rate=150):
    """The example consumer verifies every byte of every packet."""
    def case(scene):
        receiver = scene.receive(transport, "--ring", scene.ring, "--streams", streams, "--once", *receive)
        consumer = scene.consume()
        sender = scene.send(transport, "--streams", streams, "--packets", packets, "--rate", rate, *send)
        equal(total(sender.end(), "sent"), streams * packets, "sent")
        got = receiver.end()
        seen = consumer.end()
        equal(total(got, "received"), streams * packets, "received")
        equal(seen["packets"], streams * packets, "packets that the consumer took")
        equal((seen["wrong"], seen["jumps"]), (0, 0), "wrong, jumps")
        for name in ("missing", "late", "duplicate", "overrun", "invalid", "gap"):
            equal(total(got, name), 0, name)
    return case


def slow_consumer(transport, loses):
    """A consumer slower than the stream: whole blocks go, and none that it holds is touched."""
    def case(scene):
        receiver = scene.receive(transport, "--ring", scene.ring, "--block", 32, "--blocks", 32, "--once")
        consumer = scene.consume("--slow", 30)
        scene.send(transport, "--packets", 3000, "--rate", 150, "--first", 3200).end()
        got = receiver.end()["streams"][0]
        seen = consumer.end()
        equal(seen["wrong"], 0, "wrong")
        equal(seen["packets"], got["received"], "packets that the consumer took")
        equal(got["missing"], 0, "missing")
        equal(got["received"] + got["overrun"], 3000, "received and overrun")
        check((got["overrun"] > 0) == loses, f"overrun {got['overrun']}")
        equal(seen["jumps"] > 0, loses, "jumps")
    return case


def knows_direct(path):
    if subprocess.run(["stat", "-f", "-c", "%T", path], check=True, capture_output=True, text=True).stdout == "tmpfs\n":
        return False  # it takes O_DIRECT, and has nothing but a page cache
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
        return True
    except OSError:
        return False


def file_sink(scene):
    """Blocks in a file: headers, validity and samples, with losses."""
    path = f"{scene.folder}/blocks"
    receiver = scene.receive("udp", "--file", path, "--streams", 2, "--block", 64, "--once")
    scene.send("udp", "--streams", 2, "--packets", 1000, "--first", 6400, "--rate", 200,
               environment={"WEFT_FAULT": "loss:0.05,way:out"}).end()
    got = receiver.end()
    equal(os.path.getsize(path), got["written"], "size of the file")
    equal(got["direct"], knows_direct(path), "past the page cache")
    samples_ = table()
    numbers = [set(), set()]
    for block in blocks(path):
        equal((block.packets, block.packet_bytes), (64, PACKET), "a header")
        equal(sum(map(block.has, range(64))), block.received, "valid packets")
        for i in filter(block.has, range(64)):
            check(block.packet(i)[16:] == payload(samples_, block.stream, block.first + i, PACKET - 16), f"samples of {block.first + i}")
            numbers[block.stream].add(block.first + i)
    for stream in (0, 1):
        equal(len(numbers[stream]), got["streams"][stream]["received"], "packets in the file")
        check(numbers[stream] <= set(range(6400, 7400)), "numbers that were not sent")
        check(0 < got["streams"][stream]["missing"] == 1000 - len(numbers[stream]), "missing")


def stdout_sink(scene):
    """Packets in a pipe, zeroes in place of those that were lost."""
    command = [f"{scene.build}/bin/weft", "stream", "recv", "--transport", "udp", "--bind", "127.0.0.1", "--port", "0",
               "--udp-port", "0", "--block", "64", "--once", "--stdout"]
    with open(f"{scene.folder}/said", "w+", encoding="ascii") as said, \
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said) as receiver:
        try:
            while "listening" not in open(said.name, encoding="ascii").read():
                check(receiver.poll() is None, "the receiver ended")
            scene.port = open(said.name, encoding="ascii").read().split("port ")[1].split()[0]
            sent = scene.send("udp", "--packets", 640, "--first", 64, "--rate", 200,
                              environment={"WEFT_FAULT": "loss:0.1,way:out"}).end()
            data = receiver.stdout.read()
            equal(receiver.wait(), 0, "exit status")
        finally:
            receiver.kill()
    samples_ = table()
    equal(len(data), 640 * PACKET, "bytes")
    lost = 0
    for i in range(640):
        packet = data[i * PACKET:(i + 1) * PACKET]
        if packet == bytes(PACKET):
            lost += 1
        else:
            check(packet[16:] == payload(samples_, 0, 64 + i, PACKET - 16), f"samples of packet {i}")
    equal(lost, sent["faults"]["lost"], "packets of zeroes")


def from_file(transport, loop=False):
    """A file's bytes arrive as payload, and what fills no packet does not; with --loop again and again."""
    def case(scene):
        data = bytes((i * 7 + i // 256) & 255 for i in range(100 * 1000 + 37))
        with open(f"{scene.folder}/samples", "wb") as file:
            file.write(data)
        path = f"{scene.folder}/blocks"
        shape = ("--format", "raw", "--payload", 1000)
        words = ("--loop", "--packets", 260) if loop else ()
        count = 260 if loop else 100
        receiver = scene.receive(transport, *shape, "--file", path, "--block", 20, "--once")
        scene.send(transport, *shape, "--file", f"{scene.folder}/samples", "--first", 0, "--rate", 50, *words).end()
        equal(receiver.end()["streams"][0]["received"], count, "received")
        got = b"".join(block.packet(i)[8:] for block in blocks(path) for i in range(20))
        check(got == (data[:100 * 1000] * 3)[:count * 1000], "the file's bytes")
    return case


def pcap(packets):
    """A capture of (destination port, payload) on Ethernet."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for port, data in packets:
        udp = struct.pack(">HHHH", 4000, port, 8 + len(data), 0) + data
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
        frame = bytes(12) + b"\x08\x00" + ip + udp
        out += struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
    return out


def from_pcap(transport):
    """Packets of a capture keep their numbers: its holes are missing, its doubles double."""
    def case(scene):
        def raw(n):
            return struct.pack(">Q", n) + bytes((n + i) & 255 for i in range(500))
        order = [n for n in range(1000, 1200) if n not in (1050, 1051, 1199)] + [1199]
        order[10:12] = [1011, 1010]
        packets = [(16011, raw(n)) for n in order] + [(16012, raw(n)) for n in range(7, 107)]
        packets[60:60] = [(16011, b"of another shape")]
        packets += [(16011, raw(1190))]
        with open(f"{scene.folder}/sky.pcap", "wb") as file:
            file.write(pcap(packets))
        shape = ("--format", "raw", "--payload", 500, "--streams", 2)
        receiver = scene.receive(transport, *shape, "--block", 50, "--once")
        sent = scene.send(transport, *shape, "--pcap", f"{scene.folder}/sky.pcap", "--rate", 5).end()
        equal(sent["unusable"], 1, "unusable")
        first, second = receiver.end()["streams"]
        equal((first["received"], first["missing"], first["duplicate"]), (198, 2, 1), "received, missing, double")
        equal(first["out_of_order"], 1, "out of order")
        equal((second["received"], second["missing"]), (100, 0), "received, missing of the second stream")
    return case


def pcap_again(transport):
    """The same capture twice: the second pass is as welcome as the first."""
    def case(scene):
        packets = [(16011, struct.pack(">Q", n) + bytes((n + i) & 255 for i in range(500))) for n in range(1000, 1200)]
        with open(f"{scene.folder}/sky.pcap", "wb") as file:
            file.write(pcap(packets))
        shape = ("--format", "raw", "--payload", 500)
        receiver = scene.receive(transport, *shape, "--block", 50)
        for _ in range(2):
            scene.send(transport, *shape, "--pcap", f"{scene.folder}/sky.pcap", "--rate", 5).end()
        receiver.kill(signal.SIGTERM)
        got = receiver.end()["streams"][0]
        equal((got["received"], got["missing"], got["late"], got["duplicate"]), (400, 0, 0, 0), "received, missing, late, double")
    return case


def pcap_loop(transport):
    """A capture that begins again goes on in time: its numbers follow those of the pass before, with the same holes."""
    def case(scene):
        def raw(n, data):
            return struct.pack(">Q", n) + bytes((data + i) & 255 for i in range(500))
        holes = {1050, 1051}
        once = [n for n in range(1000, 1200) if n not in holes]
        other = range(7, 200)  # a shorter stream
        with open(f"{scene.folder}/sky.pcap", "wb") as file:
            file.write(pcap([(16011, raw(n, n)) for n in once] + [(16012, raw(n, n)) for n in other]))
        path = f"{scene.folder}/blocks"
        shape = ("--format", "raw", "--payload", 500, "--streams", 2)
        receiver = scene.receive(transport, *shape, "--block", 20, "--blocks", 64, "--file", path, "--once")
        scene.send(transport, *shape, "--pcap", f"{scene.folder}/sky.pcap", "--loop", "--packets", 500, "--rate", 5).end()
        got = receiver.end()["streams"]
        expected = [{n + 200 * turn: n for turn in range(3) for n in numbers} for numbers in (once, other)]
        expected = [dict(sorted(e.items())[:500]) for e in expected]
        for stream, numbers in zip(got, expected):
            equal((stream["received"], stream["late"], stream["duplicate"], stream["invalid"]), (500, 0, 0, 0),
                  "received, late, double, invalid")
            equal(stream["missing"], max(numbers) - min(numbers) + 1 - 500, "missing")
        for block in blocks(path):
            for n in (block.first + i for i in filter(block.has, range(20))):
                check(block.packet(n - block.first) == raw(n, expected[block.stream].pop(n)), f"bytes of {n}")
        equal(expected, [{}, {}], "packets that are in no block")
    return case


def pcap_landing(transport):
    """Over uc and rc, what comes too late or twice is not written over blocks that were published. A hole may be larger than the
    ring, and than what credit reaches."""
    def case(scene):
        def raw(n):
            return struct.pack(">Q", n) + bytes((n + i) & 255 for i in range(500))
        far = 1100 + (1 << 23)
        order = [*range(1000, 1100), 1003, 1099, *range(far, far + 100), far + 99]
        with open(f"{scene.folder}/sky.pcap", "wb") as file:
            file.write(pcap([(16011, raw(n)) for n in order]))
        path = f"{scene.folder}/blocks"
        shape = ("--format", "raw", "--payload", 500)
        receiver = scene.receive(transport, *shape, "--block", 20, "--file", path, "--once")
        sent = scene.send(transport, *shape, "--pcap", f"{scene.folder}/sky.pcap", "--rate", 5).end()["streams"][0]
        equal((sent["sent"], sent["skipped"]), (200, 3), "sent, skipped")
        got = receiver.end()["streams"][0]
        equal((got["received"], got["late"], got["duplicate"]), (200, 0, 0), "received, late, double")
        equal(got["missing"], far - 1100, "missing")
        seen = []
        for block in blocks(path):
            for n in (block.first + i for i in filter(block.has, range(20))):
                check(block.packet(n - block.first) == raw(n), f"bytes of {n}")
                seen.append(n)
        equal(seen, [*range(1000, 1100), *range(far, far + 100)], "numbers")
    return case


def pcap_overtaken(transport):
    """Packets that were overtaken at the beginning of a capture, and of a count that is set anew, come as all others do."""
    def case(scene):
        packets = []
        for first in (700_000_000, 440):
            numbers = list(range(first, first + 100))
            numbers[0], numbers[5] = numbers[5], numbers[0]
            packets += [(16011, struct.pack(">Q", n) + bytes(500)) for n in numbers]
        with open(f"{scene.folder}/sky.pcap", "wb") as file:
            file.write(pcap(packets))
        shape = ("--format", "raw", "--payload", 500)
        receiver = scene.receive(transport, *shape, "--block", 200, "--once")
        scene.send(transport, *shape, "--pcap", f"{scene.folder}/sky.pcap", "--rate", 5).end()
        got = receiver.end()["streams"][0]
        equal([got[name] for name in ("received", "late", "missing", "gap", "sessions")], [200, 0, 0, 0, 2], "received, late, missing, gap, sessions")
    return case


def pcap_set_anew(transport):
    """A capture of a board that had no time at first, and whose count was set anew twice: each packet of its own comes, numbers
    from nowhere do not, and what lies between is nobody's."""
    def case(scene):
        def raw(n, stream):
            return struct.pack(">Q", n) + bytes((n + stream + i) & 255 for i in range(500))
        # In the ring none of them takes the place of another, which a disk might still read.
        counts = [range(700_000_000, 700_000_100), range(440, 540), range(1 << 44, (1 << 44) + 50)]
        equal(len({n // 10 % 64 for count in counts for n in count}), 10 + 10 + 6, "blocks of the ring")
        # The port of stream 1 is the first one in the file, and its count goes on all the time.
        packets = [(16012, raw(9, 1)), (16011, raw(1 << 60, 0))]
        packets += [(16011, raw(n, 0)) for count in counts for n in count]
        packets[60:60] = [(16011, raw((1 << 50) + 7, 0))]
        packets += [(16012, raw(n, 1)) for n in range(10, 100)]
        with open(f"{scene.folder}/sky.pcap", "wb") as file:
            file.write(pcap(packets))
        path = f"{scene.folder}/blocks"
        shape = ("--format", "raw", "--payload", 500, "--streams", 2)
        receiver = scene.receive(transport, *shape, "--block", 10, "--blocks", 64, "--file", path, "--once")
        sent = scene.send(transport, *shape, "--pcap", f"{scene.folder}/sky.pcap", "--rate", 5).end()
        equal(sent["unusable"], 2, "unusable")
        equal([s["sent"] for s in sent["streams"]], [250, 91], "sent")
        first, second = receiver.end()["streams"]
        for stream, packets in ((first, 250), (second, 91)):
            equal([stream[name] for name in ("received", "missing", "gap", "late", "duplicate", "invalid", "overrun")],
                  [packets, 0, 0, 0, 0, 0, 0], "received, missing, gap, late, double, invalid, overrun")
        jumps = [d for d in receiver.documents() if d.get("event") == "jump"]
        equal([(d["stream"], d["from"], d["to"]) for d in jumps],
              [(0, 700_000_100, 440), (0, 540, 1 << 44)], "jumps")
        seen = [[], []]
        for block in blocks(path):
            for n in (block.first + i for i in filter(block.has, range(10))):
                check(block.packet(n - block.first) == raw(n, block.stream), f"bytes of {n}")
                seen[block.stream].append(n)
        equal(seen, [[n for count in counts for n in count], list(range(9, 100))], "numbers")
    return case


CASES = {
    "samples_tcp": samples("tcp"),
    "samples_udp": samples("udp"),
    "samples_rc": samples("rc"),
    "samples_uc": samples("uc"),
    "samples_rc_grouped": samples("rc", send=("--packets-per-write", 8)),
    # A group that does not divide the block, and a start in the middle of one.
    "samples_uc_grouped": samples("uc", ("--block", 100), ("--packets-per-write", 7, "--first", 12345)),
    "samples_8_bit": samples("uc", ("--bits", 8, "--beamlets", 122), ("--bits", 8, "--beamlets", 122)),
    "samples_spead": samples("rc", ("--format", "spead", "--payload", 4096),
                             ("--format", "spead", "--payload", 4096)),
    # A start in the middle of a heap.
    "samples_heaps": samples("uc", ("--format", "spead", "--payload", 4096, "--heap-packets", 5),
                             ("--format", "spead", "--payload", 4096, "--heap-packets", 5, "--first", 12343)),
    # Faster than a station, with numbers by the clock: its seconds run ahead, and still fit.
    "samples_fast": samples("udp", send=("--delay", 0.1), streams=1, packets=600, rate=2500),
    "samples_raw": samples("udp", ("--format", "raw", "--payload", 60000),
                           ("--format", "raw", "--payload", 60000), packets=300),
    "fifty_streams_uc": samples("uc", ("--block", 32), streams=50, packets=100, rate=4),
    "fifty_streams_udp": samples("udp", ("--block", 32), streams=50, packets=100, rate=4),
    "fifty_streams_tcp": samples("tcp", ("--block", 32), streams=50, packets=100, rate=4),
    "fifty_streams_rc": samples("rc", ("--block", 32), streams=50, packets=100, rate=4),
    "slow_consumer_tcp": slow_consumer("tcp", False),
    "slow_consumer_rc": slow_consumer("rc", False),
    "slow_consumer_udp": slow_consumer("udp", True),
    "slow_consumer_uc": slow_consumer("uc", True),
    "file_sink": file_sink,
    "stdout_sink": stdout_sink,
    "from_file_tcp": from_file("tcp"),
    "from_file_udp": from_file("udp"),
    "from_file_rc": from_file("rc"),
    "from_file_uc": from_file("uc"),
    "from_file_loop": from_file("uc", loop=True),
    "from_pcap_udp": from_pcap("udp"),
    "from_pcap_tcp": from_pcap("tcp"),
    "pcap_loop_udp": pcap_loop("udp"),
    "pcap_loop_uc": pcap_loop("uc"),
    "pcap_landing_uc": pcap_landing("uc"),
    "pcap_landing_rc": pcap_landing("rc"),
    **{f"pcap_set_anew_{t}": pcap_set_anew(t) for t in ("udp", "tcp", "rc", "uc")},
    **{f"pcap_overtaken_{t}": pcap_overtaken(t) for t in ("udp", "tcp", "rc", "uc")},
    "pcap_again_udp": pcap_again("udp"),
    "pcap_again_uc": pcap_again("uc"),
}
