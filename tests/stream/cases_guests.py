"""Cases about those who say hello: hostile ones, those who come twice, and two of the same name."""

import json
import signal
import socket
import struct

from scene import check, equal, total

SHAPE = {"format": "rsp", "beamlets": 61, "slices": 16, "bits": 16, "payload": 8192, "heap_packets": 1, "clock": 0}


class Guest:
    """A control connection by hand."""

    def __init__(self, scene):
        self.socket = socket.create_connection(("127.0.0.1", scene.port), 60)
        self.lines = self.socket.makefile()

    def say(self, document):
        self.socket.sendall((json.dumps(document) + "\n").encode())
        line = self.lines.readline()
        return json.loads(line) if line else None

    def hello(self, transport, count, **words):
        return self.say({"weft_stream": 1, "transport": transport, "shape": SHAPE, "group": 1, "first": [0] * count,
                         "streams": list(range(count)), "ends": [{}] * count, **words})


def refused(answer, what):
    check(answer is not None and "error" in answer, f"{what}: {answer}")


def still_works(scene, receiver, transport, streams):
    sent = scene.send(transport, "--streams", streams, "--packets", 300, "--rate", 150).end()
    got = receiver.end()
    equal(total(got, "received"), total(sent, "sent"), "received")
    equal((total(got, "missing"), total(got, "gap")), (0, 0), "missing, gap")


def hostile(transport):
    """No hello ends the receiver, or keeps a stream from others."""
    def case(scene):
        receiver = scene.receive(transport, "--streams", 2, "--once")
        for words in ({"resumed_from": []}, {"resumed_from": 7}, {"first": [1 << 63, 0]}, {"first": [0]}, {"first": {"a": 1, "b": 2}},
                      {"ends": {}}, {"ends": [1]}, {"resumed_from": [None, 1 << 63]}, {"streams": [0, 0]}, {"streams": [0, 9]}):
            refused(Guest(scene).hello(transport, 2, **words), words)
        for document in ([], 7, None, {"weft_stream": []}, {"weft_stream": 2}):
            refused(Guest(scene).say(document), document)
        if transport == "rc":
            refused(Guest(scene).hello(transport, 2), "no place for credit")
        still_works(scene, receiver, transport, 2)
    return case


def taken_place(scene):
    """Two connections that say to be the same stream."""
    receiver = scene.receive("tcp", "--streams", 2, "--once")
    guest = Guest(scene)
    port = guest.hello("tcp", 2)["ends"][0]["port"]
    with socket.create_connection(("127.0.0.1", port)) as first, socket.create_connection(("127.0.0.1", port)) as second:
        for connection in (first, second):
            connection.sendall(struct.pack(">I", 0))
        refused(guest.say({"connected": True}), "a taken place")
    still_works(scene, receiver, "tcp", 2)


def first_again(scene):
    """The same --first again, within the ring: numbers go on behind those that were, and at once. Were the clock that of the
    wish, this would take two minutes."""
    receiver = scene.receive("udp")
    scene.send("udp", "--first", 5120, "--packets", 4000, "--rate", 200).end()
    sent = scene.send("udp", "--first", 5120, "--packets", 20, "--rate", 2).end()
    equal(total(sent, "sent"), 20, "sent")
    receiver.kill(signal.SIGTERM)
    got = receiver.end()["streams"][0]
    equal((got["received"], got["missing"], got["late"], got["sessions"]), (4020, 0, 0, 2), "received, missing, late, sessions")


def displaced(transport):
    """Who comes second has the stream, and the first one ends: they do not take it from each other for ever."""
    def case(scene):
        receiver = scene.receive(transport)
        first = scene.send(transport, "--rate", 100)
        receiver.wait_for("packets", lambda d: d.get("streams") and d["streams"][0]["received"] > 0)
        scene.send(transport, "--rate", 100, "--packets", 500).end()
        first.end(status=1)
        check(any("another sender" in line for line in first.errors), f"the first one said {first.errors}")
        receiver.kill(signal.SIGTERM)
        got = receiver.end()["streams"][0]
        equal(got["sessions"], 2, "sessions")
    return case


def second_receiver(scene):
    """The same command again fails, and leaves ring, file and consumers of the first one alone."""
    path = f"{scene.folder}/blocks"
    receiver = scene.receive("udp", "--ring", scene.ring, "--once")
    consumer = scene.consume()
    weft = f"{scene.build}/bin/weft"
    words = [weft, "stream", "recv", "--transport", "udp", "--bind", "127.0.0.1"]
    for more, why in ((("--port", scene.port), "port"), (("--port", 0), "receiver that runs")):
        scene.start([*words, *more, "--ring", scene.ring, "--duration", 20]).end(status=1)
        check(any(why in line for line in scene.started[-1].errors), f"said {scene.started[-1].errors}")
    still_works(scene, receiver, "udp", 1)
    equal(consumer.end()["packets"], 300, "packets of the consumer")
    receiver = scene.receive("udp", "--file", path, "--once")
    scene.start([*words, "--port", 0, "--file", path, "--duration", 20]).end(status=1)
    check(any("another receiver" in line for line in scene.started[-1].errors), f"said {scene.started[-1].errors}")
    still_works(scene, receiver, "udp", 1)


CASES = {
    "second_receiver": second_receiver,
    "taken_place": taken_place,
    "first_again": first_again,
    "displaced_uc": displaced("uc"),
    "displaced_tcp": displaced("tcp"),
}
for name in ("tcp", "udp", "rc", "uc"):
    CASES[f"hostile_{name}"] = hostile(name)
