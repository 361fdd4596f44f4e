"""Cases about sides that are killed and come again."""

import signal

from scene import check, equal


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


CASES = {}
for name in ("tcp", "udp", "rc", "uc"):
    CASES[f"sender_killed_{name}"] = sender_killed(name)
    CASES[f"receiver_killed_{name}"] = receiver_killed(name)
