"""Cases about sides that are killed and come again."""

import os
import signal
import time

from scene import SECONDS, Failed, Skipped, check, equal

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
        equal(sent["streams"][0]["skipped"], gap["packets"], "skipped, and the gap that the receiver told")
        equal((got["missing"], got["gap"]), (0, gap["packets"]), "missing, gap")
    return case


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


CASES = {"receiver_gone": receiver_gone, "container": container}
for name in ("tcp", "udp", "rc", "uc"):
    CASES[f"sender_killed_{name}"] = sender_killed(name)
    CASES[f"receiver_killed_{name}"] = receiver_killed(name)
