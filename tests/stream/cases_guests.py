"""Cases about those who say hello: hostile ones, those who come twice, and two of the same name."""

import contextlib
import errno
import json
import os
import resource
import signal
import socket
import struct
import time

from scene import PACKET, SECONDS, check, equal, total

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


def told_at_the_end(transport):
    """A receiver that ends with its last sender first says what it has received, however long its thread takes for that."""
    def case(scene):
        receiver = scene.receive(transport, "--once", environment={"LD_PRELOAD": f"{scene.build}/tests/stream/slow_counts.so"})
        sent = scene.send(transport, "--packets", 300, "--rate", 150).end()
        equal(total(receiver.end(), "received"), total(sent, "sent"), "received")
        check("its counts wait" in receiver.errors, "the thread was not slow")
    return case


def taken_place(scene):
    """Two connections that say to be the same stream."""
    receiver = scene.receive("tcp", "--streams", 2, "--once")
    guest = Guest(scene)
    port = guest.hello("tcp", 2)["ends"][0]["port"]
    with socket.create_connection(("127.0.0.1", port)) as first, socket.create_connection(("127.0.0.1", port)) as second:
        for connection in (first, second):
            connection.sendall(struct.pack(">I", 0))
        answer = guest.say({"connected": True})
        refused(answer, "a taken place")
        check(answer["again"], "the sender does not try again")
    still_works(scene, receiver, "tcp", 2)


def stranger_at_the_door(scene):
    """A connection of another host to the port of a sender's data is none of the sender's."""
    receiver = scene.receive("tcp", "--streams", 2)
    guest = Guest(scene)
    door = ("127.0.0.1", guest.hello("tcp", 2)["ends"][0]["port"])
    with socket.create_connection(door, source_address=("127.0.0.2", 0)) as stranger, socket.create_connection(door) as first, socket.create_connection(door) as second:
        for connection, place in ((stranger, 7), (first, 0), (second, 1)):
            connection.sendall(struct.pack(">I", place))
        answer = guest.say({"connected": True})
        check(answer.get("go"), f"said {answer}")
        check("counts" in guest.say({"end": answer["first"]}), "no counts")
    receiver.kill(signal.SIGTERM)
    receiver.end()


def out_of_descriptors(scene):
    """A receiver that cannot accept a sender says why, once, and takes it as soon as it can."""
    receiver = scene.receive("udp", "--once")
    pid, limit = receiver.process.pid, resource.RLIMIT_NOFILE
    before = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (3, before[1]))
    sender = scene.send("udp", "--packets", 300, "--rate", 150)
    told = receiver.wait_for("a failed accept", lambda d: d.get("event") == "unaccepted")
    equal(told["reason"], os.strerror(errno.EMFILE), "reason")
    time.sleep(1)  # it tries again meanwhile
    resource.prlimit(pid, limit, before)
    sent, got = sender.end(), receiver.end()
    equal(total(got, "received"), total(sent, "sent"), "received")
    equal(sum(d.get("event") == "unaccepted" for d in receiver.documents()), 1, "times that it was told")


class Host:
    """A receiver by hand."""

    def __init__(self, scene):
        self.door = socket.create_server(("127.0.0.1", 0))
        scene.port = self.door.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.door.close()

    @contextlib.contextmanager
    def guest(self):
        """A connected sender: what it says, and how to answer it."""
        self.door.settimeout(SECONDS)
        connection, _ = self.door.accept()
        with connection, connection.makefile() as lines:
            connection.settimeout(SECONDS)
            yield lambda: json.loads(lines.readline() or "null"), lambda document: connection.sendall((json.dumps(document) + "\n").encode())


def ring_from_nowhere(transport):
    """No number of a receiver's ends the sender, or leads it elsewhere."""
    answer = {"packets_per_block": 256, "blocks": 16, "hold": 0, "slot_bytes": 7824, "block_bytes": 256 * 7824,
              "ends": [{"port": 9}] if transport == "tcp" else [{"port": 9}, {"port": 9}]}

    def case(scene):
        for words in ({"packets_per_block": 0}, {"blocks": 0}, {"blocks": 1 << 32}, {"blocks": -1}, {"hold": 1 << 32}, {"ends": []}, {"ends": [{"port": 65545}] * 2},
                      *([{"ends": [{"port": 9}]}] if transport == "udp" else [])):
            with Host(scene) as host:
                sender = scene.send(transport, "--streams", 2, "--rate", 100)
                with host.guest() as (hear, say):
                    check("weft_stream" in hear(), "no hello")
                    say({**answer, **words})
                    if (hear() or {}).get("connected"):
                        say({"go": True, "first": [0, 0]})
                    sender.wait_for(f"a refusal of {words}", lambda d: d.get("event") == "waiting")
                sender.kill(signal.SIGTERM)
                sender.end(status=1)
    return case


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


def displaced_at_the_end(scene):
    """A sender that hears in the place of the counts that another one has its stream has failed."""
    with Host(scene) as host:
        sender = scene.send("tcp", "--packets", 3, "--rate", 0)
        with host.guest() as (hear, say), socket.create_server(("127.0.0.1", 0)) as data:
            hear()
            say({"packets_per_block": 256, "blocks": 16, "hold": 0, "slot_bytes": 7824, "block_bytes": 256 * 7824, "ends": [{"port": data.getsockname()[1]}]})
            connection, _ = data.accept()
            with connection:
                check(hear() == {"connected": True}, "the sender has not connected")
                say({"go": True, "first": [0]})
                left = 4 + 3 * PACKET
                while left > 0:
                    left -= len(connection.recv(left))
                check("end" in hear(), "no word of the end")
                say({"error": "another sender has taken over a stream of this one"})
                sender.end(status=1)
        check(any("another sender" in line for line in sender.errors), f"said {sender.errors}")


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


def other_settings(scene):
    """A sender that has a setting otherwise ends at once. Both sides name the option, with the value of each."""
    receiver = scene.receive("udp", "--streams", 2, "--once")
    for transport, words, sentence in (("tcp", (), "the receiver has --transport udp, the sender --transport tcp"),
                                       ("udp", ("--bits", 8, "--beamlets", 122), "the receiver has --beamlets 61 --bits 16, the sender --beamlets 122 --bits 8"),
                                       ("udp", ("--format", "raw", "--number", "2:6"), "the receiver has --format rsp, the sender --format raw"),
                                       ("udp", ("--streams", 3), "the receiver has --streams 2, and the sender has a stream 2")):
        sender = scene.send(transport, *words)
        sender.end(status=1)
        check(any(f"weft stream send: the receiver refuses this sender: {sentence}" in line for line in sender.errors), f"{words}: {sender.errors}")
        told = receiver.wait_for(sentence, lambda d, s=sentence: d.get("event") == "refused" and s in d["reason"])
        equal(told["sender"], "127.0.0.1", "sender")
    still_works(scene, receiver, "udp", 2)


def settings_of_others(scene):
    """Options that the format does not look at are nobody's business, and those that differ are named without them."""
    raw = ("--format", "raw", "--payload", 900)
    receiver = scene.receive("udp", *raw, "--number", "0:8:le", "--bits", 8, "--items", 5, "--vtp", "--once")
    refused = scene.send("udp", *raw, "--header-bytes", 16, "--number", "2:6", "--beamlets", 12)
    refused.end(status=1)
    sentence = "the receiver has --header-bytes 8 --number 0:8:le, the sender --header-bytes 16 --number 2:6:be. Give both sides the same options"
    check(any(sentence in line for line in refused.errors), f"said {refused.errors}")
    scene.send("udp", *raw, "--number", "0:8:le", "--slices", 4, "--clock", 160, "--packets", 100, "--rate", 20).end()
    equal(total(receiver.end(), "received"), 100, "received")


def line_of(process, sentence):
    """Waits until the process has said this on standard error."""
    until = time.monotonic() + SECONDS
    while not any(sentence in line for line in list(process.errors)):
        if process.process.poll() is not None or time.monotonic() > until:
            process.readers[1].join(SECONDS)
            check(any(sentence in line for line in process.errors), f"'{sentence}' is not in {process.errors}")
        time.sleep(0.02)


def sentences(scene):
    """What happens to the streams stands on standard error of both sides, as sentences."""
    weft = f"{scene.build}/bin/weft"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    words = (f"127.0.0.1:{port}", "--transport", "udp", "--bind", "127.0.0.1", "--rate", 100, "--first", 1000)
    first = scene.start([weft, "stream", "send", *words, "--streams", 2])
    line_of(first, f"weft stream send: no receiver at 127.0.0.1:{port}: Connection refused. Trying again")
    receiver = scene.start([weft, "stream", "recv", "--transport", "udp", "--bind", "127.0.0.1", "--port", port, "--streams", 2])
    line_of(receiver, f"weft stream recv: listening for senders on TCP port {port}")
    scene.port = port
    refused(Guest(scene).hello("\x1b[2J", 1), "a transport that nobody has")
    line_of(receiver, "refused a sender at 127.0.0.1: the receiver has --transport udp, the sender --transport ?[2J.")
    line_of(first, "weft stream send: connected to the receiver at 127.0.0.1: streams 0 to 1")
    line_of(receiver, "weft stream recv: a sender at 127.0.0.1 has connected: streams 0 to 1")
    first.kill()
    line_of(receiver, "weft stream recv: lost the sender at 127.0.0.1, which said no goodbye: streams 0 to 1")
    second = scene.start([weft, "stream", "send", *words])
    line_of(receiver, "weft stream recv: a sender at 127.0.0.1 has connected: stream 0")
    scene.start([weft, "stream", "send", *words, "--bits", 8]).end(status=1)
    line_of(receiver, "weft stream recv: refused a sender at 127.0.0.1: the receiver has --bits 16, the sender --bits 8")
    second.kill(signal.SIGTERM)
    second.end()
    line_of(receiver, "weft stream recv: the sender at 127.0.0.1 has ended: stream 0")
    third = scene.start([weft, "stream", "send", *words])
    line_of(third, "connected to the receiver")
    receiver.kill(signal.SIGTERM)
    receiver.end()
    line_of(third, "weft stream send: lost the receiver: it closed the control connection")
    check(not any("unmeasured" in line for process in scene.started for line in process.errors), "nobody asked for power")


CASES = {
    "refused": other_settings,
    "unused_settings": settings_of_others,
    "sentences": sentences,
    "second_receiver": second_receiver,
    "told_at_the_end_tcp": told_at_the_end("tcp"),
    "told_at_the_end_uc": told_at_the_end("uc"),
    "taken_place": taken_place,
    "stranger_at_the_door": stranger_at_the_door,
    "out_of_descriptors": out_of_descriptors,
    "ring_from_nowhere_tcp": ring_from_nowhere("tcp"),
    "ring_from_nowhere_udp": ring_from_nowhere("udp"),
    "first_again": first_again,
    "displaced_at_the_end": displaced_at_the_end,
    "displaced_uc": displaced("uc"),
    "displaced_tcp": displaced("tcp"),
}
for name in ("tcp", "udp", "rc", "uc"):
    CASES[f"hostile_{name}"] = hostile(name)
