"""Cases about when packets leave, and about what streams take of CPU and power."""

import concurrent.futures
import itertools
import re
import socket
import statistics
import struct
import time

import ipmitool
from scene import SECONDS, check, equal

SMALL = ("--format", "raw", "--payload", 992)
BITS = 8 * 1000  # of such a packet
NANOSECONDS = 35  # SO_TIMESTAMPNS, which Python does not name
RCVBUFFORCE = 33


def listener():
    """A socket whose datagrams the kernel notes the time of: on loopback that at which the sender's call gave it them."""
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.setsockopt(socket.SOL_SOCKET, NANOSECONDS, 1)
    try:
        here.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 4 << 20)
    except PermissionError:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    here.settimeout(0.2)
    return here


def listeners(count):
    """At ports one behind the other."""
    for _ in range(100):
        sockets = [listener() for _ in range(count)]
        try:
            sockets[0].bind(("127.0.0.1", 0))
            for i in range(1, count):
                sockets[i].bind(("127.0.0.1", sockets[0].getsockname()[1] + i))
            return sockets
        except OSError:
            for here in sockets:
                here.close()
    raise AssertionError("no ports that follow each other are free")


def come(here, packets):
    """Their numbers and times, in seconds."""
    found = []
    until = time.monotonic() + SECONDS
    while len(found) < packets and time.monotonic() < until:
        try:
            data, notes, _, _ = here.recvmsg(2000, 64)
        except socket.timeout:
            continue
        times = [struct.unpack("<qq", note) for level, kind, note in notes if (level, kind) == (socket.SOL_SOCKET, NANOSECONDS)]
        found.append((int.from_bytes(data[:8], "big"), times[0][0] + times[0][1] * 1e-9))
    equal(len(found), packets, "packets")
    return found


def spacing(scene):
    """Packets leave one after the other by their deadlines, and not in heaps: as the kernel notes when each one left. What a busy machine
    holds up for a moment is late, and never more so than the sender says, for each stream."""
    streams, rate, packets = 2, 1000, 2000  # packets a second of each stream
    sockets = listeners(streams)
    sender = scene.start([f"{scene.build}/bin/weft", "stream", "send", "--plain-udp", f"127.0.0.1:{sockets[0].getsockname()[1]}", "--json", *SMALL,
                          "--streams", streams, "--rate", rate * BITS / 1e6, "--packets", packets, "--max-late", 0, "--delay", 0.2])
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        came = list(pool.map(lambda here: come(here, packets), sockets))
    last = sender.end()
    for here in sockets:
        here.close()
    origins = []
    for stream, found in enumerate(came):
        numbers = [number for number, _ in found]
        equal(numbers, list(range(numbers[0], numbers[0] + packets)), "numbers, in their order")
        # Behind the deadline of the packet that was the most punctual.
        offsets = [when - i / rate for i, (_, when) in enumerate(found)]
        origins.append(min(offsets))
        late = [offset - min(offsets) for offset in offsets]
        said = last["streams"][stream]
        check(max(late) <= said["late_max_us"] * 1e-6 + 0.002, f"stream {stream}: {max(late)} s late, and the sender says {said}")
        check(statistics.median(late) < 0.005, f"stream {stream}: half of the packets are {statistics.median(late)} s late")
        # Of one that leaves at each deadline a twentieth of a second has 50. A heap of a tenth of a second would be in every other one.
        begin = found[0][1]
        counts = [0] * (int((found[-1][1] - begin) * 20) + 1)
        for _, when in found:
            counts[int((when - begin) * 20)] += 1
        even = sum(35 <= count <= 65 for count in counts[:-1]) / max(len(counts) - 1, 1)
        check(even > 0.8, f"stream {stream}: packets in each twentieth of a second: {counts}")
        # And they do not come by tens.
        apart = sum(after - before > 0.2 / rate for (_, before), (_, after) in itertools.pairwise(found))
        check(apart > packets / 2, f"stream {stream}: {apart} of {packets} packets do not follow the one before at once")
    # The second stream's deadlines are half a period behind the first one's.
    shift = (origins[1] - origins[0]) * rate % 1
    check(0.2 < shift < 0.8, f"the second stream is {shift} periods behind the first one")
    names = ("late_p50_us", "late_p99_us", "late_max_us")
    check(all(0 < s[names[0]] <= s[names[1]] <= s[names[2]] for s in last["streams"]), f"lateness of streams: {last}")
    equal(max(s["late_max_us"] for s in last["streams"]), last["late_us"]["max"], "the latest packet of all")


def shares(scene):
    """CPU and power of a stream are as its bytes: each second, in the text for Prometheus, and at the end. The power is a fake controller's."""
    meter = ipmitool.saying(scene.folder, 240)
    path = f"{scene.folder}/recv"
    receiver = scene.receive("udp", *SMALL, "--streams", 2, "--energy", "ipmi", "--prometheus", path, "--once", environment=meter)
    senders = [scene.send("udp", *SMALL, "--first-stream", i, "--rate", rate, "--packets", rate * 375) for i, rate in enumerate((60, 20))]
    for sender in senders:
        sender.end()
    last = receiver.end()
    equal((last["energy"]["source"], last["energy"]["of"]), ("ipmi", "machine"), "where power is from")
    check(abs(last["energy"]["watts"] - 240) < 0.001, f"watts {last['energy']}")
    seconds = [d for d in receiver.documents() if "streams" in d and not d.get("final")]
    check(len(seconds) >= 2, "too few reports")
    before = [0, 0]
    for said in [*seconds, last]:
        if said.get("final"):
            before = [0, 0]
        passed = [stream["bytes"] - earlier for stream, earlier in zip(said["streams"], before)]
        before = [stream["bytes"] for stream in said["streams"]]
        for stream, count in zip(said["streams"], passed):
            share = count / sum(passed) if sum(passed) else 0
            check(abs(stream["cpu_share"] - share * said["cpu"]) < 1e-6, f"{share} of the bytes in {said}")
            check(abs(stream["watts_share"] - share * 240) < 0.001, f"{share} of the bytes in {said}")
    check(last["streams"][0]["watts_share"] > 2 * last["streams"][1]["watts_share"] > 0, f"shares {last}")
    with open(path, encoding="ascii") as file:
        text = file.read()
    for i, stream in enumerate(last["streams"]):
        for name in ("cpu_share", "watts_share"):
            check(f'weft_stream_recv_{name}{{stream="{i}"}} {stream[name]}\n' in text, f"no {name} of stream {i}: {text}")


def no_controller(scene):
    """A meter that was named and cannot be read is said, and nothing else is read in its place."""
    meter = ipmitool.fake(scene.folder, "echo 'Could not open device at /dev/ipmi0' >&2; exit 1")
    receiver = scene.receive("udp", "--energy", "ipmi", "--duration", 0.2, environment=meter)
    last = receiver.end()
    check(re.match("ipmi: .*Could not open device", last["energy"]["unmeasured"]), f"said {last['energy']}")
    equal((last["watts"], last["streams"][0]["watts_share"]), (None, None), "watts")


CASES = {"spacing": spacing, "shares": shares, "no_controller": no_controller}
