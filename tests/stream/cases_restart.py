"""Cases about sides that are killed and come again."""

import mmap
import os
import signal
import struct
import time

from cases_data import payload, table
from scene import PACKET, SECONDS, Failed, Skipped, blocks, check, equal

# Small packets: the ring has room for all that a case publishes.
SMALL = ("--format", "raw", "--payload", 1000, "--block", 32, "--blocks", 900)
FIRST = 1000  # number, in the midst of a block

# As in a container: the same /dev/shm, and process numbers of its own.
CONTAINER = ("unshare", "--pid", "--fork", "--kill-child")


def sender_killed(transport):
    """The receiver keeps what it had, says how much was not sent, and goes on."""
    def case(scene):
        receiver = scene.receive(transport, "--ring", scene.ring, "--block", 32)
        consumer = scene.consume()
        first = scene.send(transport, "--rate", 100)
        receiver.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["received"] > 0)
        first.kill()
        first.process.wait()
        second = scene.send(transport, "--rate", 100, "--packets", 1000)
        sent = second.end()
        gap = receiver.wait_for("a gap", lambda d: d.get("event") == "gap")
        receiver.kill(signal.SIGTERM)
        got = receiver.end()["streams"][0]
        seen = consumer.end()
        equal(got["sessions"], 2, "sessions")
        equal(got["missing"], 0, "missing")
        equal(gap["packets"], gap["to"] - gap["from"], "the gap's packets")
        check(got["gap"] == gap["packets"] > 0, f"gap {got['gap']}, told {gap}")
        equal(sent["streams"][0]["sent"], 1000, "sent by the second one")
        check(got["received"] > 1000, f"received {got['received']}")
        equal((seen["packets"], seen["wrong"]), (got["received"], 0), "packets and wrong ones of the consumer")
    return case


def receiver_killed(transport):
    """The sender finds the new receiver, and tells it how much it could not send."""
    def case(scene):
        first = scene.receive(transport, "--ring", scene.ring, "--block", 32)
        port = scene.port
        consumer = scene.consume()
        sender = scene.send(transport, "--rate", 100)
        first.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["received"] > 0)
        first.kill()
        first.process.wait()
        sender.wait_for("the loss", lambda d: d.get("event") == "waiting")
        second = scene.receive(transport, "--ring", scene.ring, "--block", 32, "--once", port=port)
        equal(consumer.end()["wrong"], 0, "wrong packets of the first consumer")
        consumer = scene.consume()
        gap = second.wait_for("a gap", lambda d: d.get("event") == "gap")
        second.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["received"] > 0)
        sender.kill(signal.SIGTERM)
        sent = sender.end()
        got = second.end()["streams"][0]
        equal(consumer.end()["wrong"], 0, "wrong packets of the second consumer")
        equal(sent["connections"], 2, "connections")
        equal(sent["streams"][0]["skipped"], gap["packets"] - gap["sent"], "skipped, and what the gap has beside packets that were sent")
        equal((got["missing"], got["gap"], got["gap_sent"]), (0, gap["packets"], gap["sent"]), "missing, gap, and those of it that were sent")
    return case


def receiver_lost(transport):
    """The receiver does not come back, so that it does not know of all that was sent: the sender says so by its status."""
    def case(scene):
        receiver = scene.receive(transport)
        sender = scene.send(transport, "--rate", 100)
        receiver.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["received"] > 0)
        receiver.kill()
        sender.wait_for("the loss", lambda d: d.get("event") == "waiting")
        sender.kill(signal.SIGTERM)
        check(sender.end(1)["streams"][0]["sent"] > 0, "sent")
    return case


def published(file):
    """Numbers of the packets that a receiver published in its ring, and the number behind the last block; include/weft/stream_ring.h has
    the offsets. Of one stream, in which no block took another one's memory."""
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as ring:
        ring_blocks, packets = struct.unpack_from("<2I", ring, 20)
        states, headers = struct.unpack_from("<2Q", ring, 56)
        head, = struct.unpack_from("<Q", ring, states)
        check(0 < head <= ring_blocks, f"{head} blocks were published in a ring of {ring_blocks}")
        found, end = set(), 0
        for slot in struct.unpack_from(f"<{head}I", ring, states + 128):
            at = headers + 4096 * slot
            number, = struct.unpack_from("<Q", ring, at + 8)
            end = (number + 1) * packets
            found |= {number * packets + i for i in range(packets) if ring[at + 56 + i // 8] >> i % 8 & 1}
    return found, end


def in_file(path):
    """The same of a file."""
    found, end = set(), 0
    for block in blocks(path):
        found |= {block.first + i for i in filter(block.has, range(block.packets))}
        end = block.first + block.packets
    return found, end


def account(transport, sink):
    """What a killed receiver published, what its successor counts and what the sender sent agree: no packet is in nobody's account."""
    def case(scene):
        path = f"{scene.folder}/blocks"
        words = (*SMALL, *(("--ring", scene.ring) if sink == "ring" else ("--file", path)))
        first = scene.receive(transport, *words)
        port = scene.port
        sender = scene.send(transport, *SMALL[:4], "--rate", 30, "--first", FIRST)
        first.wait_for("blocks", lambda d: d.get("streams") and d["streams"][0]["blocks"] > 0 and d.get("written", 1) > 0)
        # What is lost is the receiver's: it has no time to say anything.
        first.kill(signal.SIGSTOP)
        time.sleep(0.3)
        first.kill()
        first.process.wait()
        if sink == "ring":
            with open(f"/dev/shm/{scene.ring}", "rb") as file:
                before, end = published(file)
        sender.wait_for("the loss", lambda d: d.get("event") == "waiting")
        if sink == "file":
            before, end = in_file(path)
        second = scene.receive(transport, *words, "--once", port=port)
        gap = second.wait_for("a gap", lambda d: d.get("event") == "gap")
        second.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["blocks"] > 0)
        sender.kill(signal.SIGTERM)
        sent = sender.end()["streams"][0]
        got = second.end()["streams"][0]
        equal((gap["from"], gap["to"] - gap["from"], got["gap"], got["gap_sent"]), (end, gap["packets"], gap["packets"], gap["sent"]),
              "the gap begins behind the last block")
        check(gap["sent"] > 0, f"a gap without packets on their way: {gap}")
        equal(gap["packets"] - gap["sent"], sent["skipped"], "in the gap and not sent, and skipped")
        missing = end - FIRST - len(before)  # as the maps and the numbers of the blocks show
        check(min(before) >= FIRST and missing >= 0, f"published before the kill: {len(before)}, {min(before)} to {end}")
        equal(len(before) + missing + gap["sent"] + got["received"] + got["missing"] + got["overrun"], sent["sent"], "all packets")
        if transport in ("tcp", "rc"):
            equal((got["missing"], got["overrun"]), (0, 0), "missing, overrun")
            # Three threads write a file: when they are killed a block may be there and the one before it not.
            check(missing == 0 or (sink == "file" and missing <= 2 * 32), f"{missing} missing before the kill")
        if sink == "file":
            after, _ = in_file(path)
            equal((len(after - before), len(after & before)), (got["received"], len(before)), "packets that the second one added, and left")
    return case


def account_of_nothing(scene):
    """Without a ring that has a name and without a file nothing is left of a killed receiver: the gap has what the sender did not send."""
    first = scene.receive("udp", *SMALL)
    port = scene.port
    sender = scene.send("udp", *SMALL[:4], "--rate", 30, "--first", FIRST)
    first.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["received"] > 0)
    first.kill()
    first.process.wait()
    sender.wait_for("the loss", lambda d: d.get("event") == "waiting")
    second = scene.receive("udp", *SMALL, "--once", port=port)
    gap = second.wait_for("a gap", lambda d: d.get("event") == "gap")
    sender.kill(signal.SIGTERM)
    equal((gap["packets"], gap["sent"]), (sender.end()["streams"][0]["skipped"], 0), "the gap, and those of it that were sent")
    second.end()


def receiver_gone(scene):
    """A receiver that is killed cannot say so: its consumer sees it, and ends by itself."""
    receiver = scene.receive("udp", "--ring", scene.ring, "--block", 32)
    consumer = scene.consume()
    scene.send("udp", "--rate", 100, "--packets", 640, "--first", 320).end()
    receiver.wait_for("blocks", lambda d: d.get("streams") and d["streams"][0]["blocks"] == 20)
    receiver.kill()
    seen = consumer.end()
    equal((seen["packets"], seen["wrong"]), (640, 0), "packets and wrong ones of the consumer")


def container(scene):
    """A consumer with process numbers of its own, where it is number 1: it gets all, and when it dies another one can follow,
    though a process of that number lives on."""
    if os.geteuid() != 0:
        raise Skipped("needs root, for a process namespace")
    receiver = scene.receive("udp", "--ring", scene.ring, "--block", 32)
    first = scene.consume(prefix=CONTAINER)
    scene.send("udp", "--rate", 100, "--packets", 960, "--first", 320).end()
    first.kill()
    until = time.monotonic() + SECONDS
    second = None
    while second is None:
        try:
            second = scene.consume(prefix=CONTAINER)
        except Failed:
            check(time.monotonic() < until, "the first consumer is still there")
    scene.send("udp", "--rate", 100, "--packets", 960, "--first", 3200).end()
    receiver.kill(signal.SIGTERM)
    equal(receiver.end()["streams"][0]["received"], 1920, "received")
    seen = second.end()
    equal((seen["packets"], seen["wrong"]), (960, 0), "packets and wrong ones of the second consumer")


def receiver_killed_with_file(scene):
    """What it wrote until then can be read: whole blocks, with their samples."""
    path = f"{scene.folder}/blocks"
    receiver = scene.receive("tcp", "--file", path, "--block", 32)
    sender = scene.send("tcp", "--rate", 200)
    written = receiver.wait_for("blocks in the file", lambda d: d.get("written"))["written"]
    receiver.kill()
    receiver.process.wait()
    sender.kill()
    samples_, found = table(), []
    for block in blocks(path):
        equal(block.packets, 32, "a header")
        for i in filter(block.has, range(32)):
            check(block.packet(i)[16:] == payload(samples_, block.stream, block.first + i, PACKET - 16), f"samples of {block.first + i}")
        found.append(block.number)
        written -= 4096 + len(block.data)
    check(written <= 0, f"{written} bytes that were written are not in the file")
    equal(found, sorted(set(found)), "blocks once each, in their order")


CASES = {"receiver_killed_with_file": receiver_killed_with_file, "receiver_gone": receiver_gone, "container": container,
         "account_of_nothing": account_of_nothing}
for name in ("tcp", "udp", "rc", "uc"):
    CASES[f"sender_killed_{name}"] = sender_killed(name)
    CASES[f"receiver_killed_{name}"] = receiver_killed(name)
    CASES[f"receiver_lost_{name}"] = receiver_lost(name)
    CASES[f"account_ring_{name}"] = account(name, "ring")
    CASES[f"account_file_{name}"] = account(name, "file")
