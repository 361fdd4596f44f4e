"""Cases about options that other cases do without."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

from cases_circuits import free_port
from scene import EXAMPLES, PACKET, SECONDS, Skipped, at_sockets, blocks, check, equal, total

RAW = ("--format", "raw", "--payload", 1000)


def two_senders(transport):
    """Two senders feed one receiver, each its own streams."""
    def case(scene):
        receiver = scene.receive(transport, "--streams", 4, "--ring", scene.ring, "--once")
        consumer = scene.consume()
        senders = [scene.send(transport, "--streams", 2, "--first-stream", first, "--packets", 800, "--rate", 100) for first in (0, 2)]
        for sender in senders:
            sender.end()
        got = receiver.end()
        seen = consumer.end()
        equal([(s["received"], s["missing"], s["sessions"]) for s in got["streams"]], [(800, 0, 1)] * 4, "received, missing, sessions")
        equal((seen["packets"], seen["wrong"]), (3200, 0), "packets and wrong ones of the consumer")
    return case


def two_free_ports():
    while True:
        port = free_port()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as next_one:
            try:
                next_one.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue


def plain_udp_sender(scene):
    """A sender without control, as a station: a port for each stream, and silence is its end."""
    port = two_free_ports()
    receiver = scene.receive("udp", "--udp-port", port, "--streams", 2, "--idle", 5000, "--ring", scene.ring, "--once")
    consumer = scene.consume()
    sender = scene.start([f"{scene.build}/bin/weft", "stream", "send", "--plain-udp", f"127.0.0.1:{port}", "--streams", 2,
                          "--packets", 800, "--rate", 100, "--max-late", 0, "--json"])
    equal(total(sender.end(), "sent"), 1600, "sent")
    got = receiver.end()
    seen = consumer.end()
    equal([(s["received"], s["missing"]) for s in got["streams"]], [(800, 0)] * 2, "received, missing")
    equal((seen["packets"], seen["wrong"]), (1600, 0), "packets and wrong ones of the consumer")


def stopped_for(process, seconds):
    process.kill(signal.SIGSTOP)
    time.sleep(seconds)
    process.kill(signal.SIGCONT)


def too_late(transport):
    """A sender that was kept from running skips what is older than --max-late, says so, and it is missing."""
    def case(scene):
        receiver = scene.receive(transport, *RAW, "--once")
        sender = scene.send(transport, *RAW, "--packets", 5000, "--rate", 10, "--max-late", 100)
        receiver.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["received"] > 0)
        stopped_for(sender, 1)
        sent = sender.end()["streams"][0]
        got = receiver.end()["streams"][0]
        check(sent["skipped"] > 100, f"skipped {sent['skipped']}")
        equal(sent["sent"] + sent["skipped"], 5000, "sent and skipped")
        equal((got["missing"], got["received"], got["gap"]), (sent["skipped"], sent["sent"], 0), "missing, received, gap")
    return case


def kernel_drops(scene):
    """What a socket has no room for, while the receiver does not run, is missing, and the receiver says why."""
    # The more streams, the less room each socket asks for.
    receiver = scene.receive("udp", *RAW, "--streams", 16, "--blocks", 32)
    sender = scene.send("udp", *RAW, "--packets", 20000, "--rate", 40)
    receiver.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["received"] > 0)
    receiver.kill(signal.SIGSTOP)
    until = time.monotonic() + SECONDS
    while at_sockets(receiver).dropped < 100:
        check(time.monotonic() < until, "the socket has room for all")
        time.sleep(0.01)
    receiver.kill(signal.SIGCONT)
    sender.end()
    receiver.kill(signal.SIGTERM)
    last = receiver.end()
    got = last["streams"][0]
    check(got["missing"] >= 100, f"missing {got['missing']}")
    equal(last["kernel_drops"], got["missing"], "kernel_drops")
    equal((got["received"] + got["missing"], got["invalid"]), (20000, 0), "received and missing, invalid")


def loop_device(scene):
    """A block device over a file; its name."""
    if os.geteuid() != 0:
        raise Skipped("needs root, for a loop device")
    path = f"{scene.folder}/disk"
    with open(path, "wb") as file:
        file.truncate(64 << 20)
    try:
        made = subprocess.run(["losetup", "--find", "--show", path], capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise Skipped("losetup is not there") from None
    if made.returncode != 0:
        raise Skipped(f"no loop device: {made.stderr.strip()}")
    return made.stdout.strip()


def raw_device(scene):
    """Blocks on a device, one behind the other from its begin; a second run begins there again."""
    device = loop_device(scene)
    try:
        for first, packets in ((6400, 1280), (64000, 640)):
            receiver = scene.receive("uc", *RAW, "--file", device, "--block", 64, "--blocks", 32, "--once")
            scene.send("uc", *RAW, "--packets", packets, "--first", first, "--rate", 40).end()
            ended = receiver.end()
            equal(ended["direct"], True, "past the page cache")
            written = ended["written"]
            numbers = [int.from_bytes(block.packet(i)[:8], "big") for block in blocks(device, written) for i in range(64)]
            equal(numbers, list(range(first, first + packets)), "numbers on the device")
    finally:
        subprocess.run(["losetup", "--detach", device], check=True, timeout=SECONDS)


def read_blocks(scene):
    """The example that reads files says what is there and what is not."""
    path = f"{scene.folder}/sky.blocks"
    receiver = scene.receive("udp", "--file", path, "--streams", 2, "--block", 32, "--once")
    scene.send("udp", "--streams", 2, "--packets", 320, "--first", 3200, "--rate", 100,
               environment={"WEFT_FAULT": "loss:0.05,burst:3,way:out"}).end()
    got = receiver.end()
    said = scene.run(sys.executable, f"{EXAMPLES}/read_blocks.py", path).splitlines()
    equal(said[-1], f"blocks 20, packets {total(got, 'received')}, missing {total(got, 'missing')}", "the last line")
    told = [set(), set()]
    for line in said[:-1]:
        words = line.replace(",", "").split()  # stream S block B: R of P packets[, missing M-N ..]
        equal((words[5:8], PACKET), (["of", "32", "packets"], 7824), "a line")
        for run in words[9:]:
            begin, _, end = run.partition("-")
            told[int(words[1])].update(range(int(begin), int(end or begin) + 1))
    missing = [set(range(3200, 3520)), set(range(3200, 3520))]
    for block in blocks(path):
        missing[block.stream] -= {block.first + i for i in range(32) if block.has(i)}
    equal(told, missing, "packets that are missing")
    check(all(missing), "nothing is missing")
    other = scene.start([sys.executable, f"{EXAMPLES}/read_blocks.py", f"{scene.folder}/none"])
    equal(other.process.wait(SECONDS), 1, "status of a file that is not there")
    for reader in other.readers:
        reader.join()
    equal((other.lines, other.errors), ([], [f"{scene.folder}/none: No such file or directory"]), "what it says")


def trains(scene):
    """Where the link's MTU has room for a packet the kernel gets several as one, and counts them so; where it has none, one by one."""
    packets = 256
    for mtu, least, most in (65536, packets // 64, packets // 2), (1500, packets, packets):
        scene.prefix = []
        scene.prefix = scene.namespace(f"ip link set lo mtu {mtu} up")
        receiver = scene.receive("udp", "--streams", 1, "--once")
        scene.send("udp", "--packets", packets, "--rate", 0).end()
        got = receiver.end()
        equal((total(got, "received"), total(got, "missing")), (packets, 0), f"received, missing at MTU {mtu}")
        names, counts = (line.split() for line in scene.run("cat", "/proc/net/snmp").splitlines() if line.startswith("Udp:"))
        sent = int(counts[names.index("OutDatagrams")])
        check(least <= sent <= most, f"{packets} packets left as {sent} at MTU {mtu}")


def two_networks(transport):
    """Data takes the way of the control connection, and not that of the default route, whose addresses the receiver cannot reach."""
    def case(scene):
        sender = scene.namespace("ip link set lo up; ip link add control type veth peer name nobody; ip link set nobody up; "
                                 "ip addr add 192.0.2.9/24 dev control; ip link set control up; ip route add default via 192.0.2.1; "
                                 "ip link add data type veth peer name far")
        holder = sender[1].split("/")[2]
        scene.prefix = scene.namespace("ip link set lo up")
        receiver_holder = scene.prefix[1].split("/")[2]
        scene.run("nsenter", f"--net=/proc/{holder}/ns/net", "sh", "-ec",
                  f"ip link set far netns {receiver_holder}; ip addr add 198.51.100.2/24 dev data; ip link set data up")
        scene.run("sh", "-ec", "ip addr add 198.51.100.1/24 dev far; ip link set far up")
        unset = {"WEFT_IP": ""}
        weft = [f"{scene.build}/bin/weft", "stream"]
        receiver = scene.start([*weft, "recv", "--transport", transport, "--bind", "198.51.100.1", "--json", "--once"], unset)
        receiver.wait_for("listening", lambda d: d.get("event") == "listening")
        scene.prefix = sender
        scene.start([*weft, "send", "198.51.100.1", "--transport", transport, "--packets", 300, "--rate", 100, "--json"], unset).end()
        got = receiver.end()
        equal((total(got, "received"), total(got, "missing")), (300, 0), "received, missing")
    return case


def at_full_speed(scene):
    """Sixteen streams that share a socket on either side, each as fast as it goes: what they have under way together fits into the
    buffer of the receiver's, and nothing is lost."""
    for left in (2, 1, 0):
        receiver = scene.receive("uc", "--streams", 16, "--once")
        scene.send("uc", "--streams", 16, "--packets", 4000, "--rate", 0).end()
        got = receiver.end()
        # A receiver that does not run for a fifth of a second at the beginning is taken for far away (wdp/send_window.h), and
        # overrun. With a window each, they lose a third and more each time.
        if left == 0 or got["kernel_drops"] == 0:
            equal((total(got, "received"), got["datagrams_lost"]), (16 * 4000, 0), "received, datagrams lost")
            return


def fifty(transport):
    """Fifty streams over one link with Ethernet's MTU, between two networks."""
    def case(scene):
        sender = scene.namespace("ip link set lo up; ip link add out type veth peer name far; ip addr add 192.0.2.1/24 dev out; "
                                 "ip link set out up")
        scene.prefix = receiver_side = scene.namespace("ip link set lo up")
        scene.run("nsenter", sender[1], "ip", "link", "set", "far", "netns", receiver_side[1].split("/")[2])
        scene.run("sh", "-ec", "ip addr add 192.0.2.2/24 dev far; ip link set far up")
        unset = {"WEFT_IP": ""}
        weft = [f"{scene.build}/bin/weft", "stream"]
        shape = ("--transport", transport, "--streams", "50", "--format", "raw", "--json")
        receiver = scene.start([*weft, "recv", "--bind", "192.0.2.2", *shape, "--once"], unset)
        receiver.wait_for("listening", lambda d: d.get("event") == "listening")
        scene.prefix = sender
        scene.start([*weft, "send", "192.0.2.2", *shape, "--packets", "200", "--rate", "10", "--max-late", "0"], unset).end()
        got = receiver.end()
        equal(len(got["streams"]), 50, "streams")
        equal([(stream["received"], stream["missing"]) for stream in got["streams"]], [(200, 0)] * 50, "received, missing")
    return case


def options_page(scene):
    """The page's tables of options have those of the two commands, and no other ones."""
    with open(f"{EXAMPLES}/../docs/streams-reference.md", encoding="utf-8") as file:
        section = file.read().split("\n## Options\n", 1)[1].split("\n## ", 1)[0]
    tables, title = {}, ""
    for line in filter(lambda line: line.startswith("|"), section.splitlines()):
        cell = line.split(" | ")[0]
        if not cell.startswith("| `") or cell.startswith("| `weft"):
            title = cell if cell.strip("| -") else title
        tables.setdefault(title.strip("| `"), set()).update(re.findall(r"--[a-z][a-z-]*", cell))
    shared = tables["both sides"] | tables["packets, the same on both sides"]
    for command in ("recv", "send"):
        said = set(re.findall(r"^ +(?:-\w, ?)?(--[a-z][a-z-]*)", scene.run(f"{scene.build}/bin/weft", "stream", command, "--help"), re.MULTILINE)) - {"--help"}
        equal(sorted(shared | tables[f"weft stream {command}"]), sorted(said), f"options of {command} on the page, and by --help")


CASES = {
    "options_page": options_page,
    "at_full_speed": at_full_speed,
    "fifty_tcp": fifty("tcp"),
    "fifty_udp": fifty("udp"),
    "fifty_rc": fifty("rc"),
    "fifty_uc": fifty("uc"),
    "two_senders_uc": two_senders("uc"),
    "two_senders_udp": two_senders("udp"),
    "plain_udp_sender": plain_udp_sender,
    "too_late_uc": too_late("uc"),
    "too_late_udp": too_late("udp"),
    "kernel_drops": kernel_drops,
    "raw_device": raw_device,
    "read_blocks": read_blocks,
    "trains_udp": trains,
    "two_networks_uc": two_networks("uc"),
    "two_networks_rc": two_networks("rc"),
}
