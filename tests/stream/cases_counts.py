"""Cases about counters: what was lost is counted, and nothing else."""

import socket
import struct

from scene import check, equal, total


def loss(packets_of_a_datagram=1, send=(), packets=4000):
    """The receiver misses exactly what the injector took. On loopback a Write is one datagram. The injector takes datagrams
    without data, too, such as keepalives; the receiver's library knows those with data by their numbers, but none behind the
    last one that came."""
    def case(scene):
        receiver = scene.receive("uc", "--ring", scene.ring, "--block", 64, "--once")
        consumer = scene.consume()
        # The handshake's last words take 300 ms: they are not to be counted.
        sent = scene.send("uc", "--packets", packets, "--first", 6400, "--rate", 300, "--delay", 0.6, *send,
                          environment={"WEFT_FAULT": "loss:0.02,way:out,seed:5"}).end()
        last = receiver.end()
        got = last["streams"][0]
        seen = consumer.end()
        lost = got["missing"]
        faults = sent["faults"]
        datagrams = lost // packets_of_a_datagram
        equal(lost % packets_of_a_datagram, 0, "missing packets of an incomplete group")
        check(datagrams > 0, "nothing was lost")
        check(datagrams <= faults["lost"] <= datagrams + faults["control"], f"missing {datagrams}, of {faults}")
        check(0 <= datagrams - last["datagrams_lost"] <= 2, f"{last['datagrams_lost']} never came")
        equal(got["received"], packets - lost, "received")
        equal(got["overrun"], 0, "overrun")
        equal((seen["packets"], seen["wrong"]), (packets - lost, 0), "packets and wrong ones of the consumer")
        equal(seen["missing"], got["missing"] + -packets % 64, "missing in the consumer's maps")
    return case


def loss_which(scene):
    """The map names those that are missing: in a ring that is used once, nothing lies in their slots, and in all others the packet
    with the number of the slot."""
    path = f"{scene.folder}/blocks"
    receiver = scene.receive("uc", "--format", "raw", "--payload", 1000, "--file", path, "--block", 64, "--blocks", 40, "--once")
    sent = scene.send("uc", "--format", "raw", "--payload", 1000, "--packets", 2048, "--first", 6400, "--rate", 40, "--delay", 0.6,
                      environment={"WEFT_FAULT": "loss:0.03,way:out,seed:5"}).end()
    got = receiver.end()["streams"][0]
    missing = set(range(6400, 6400 + 2048))
    with open(path, "rb") as file:
        while header := file.read(4096):
            number, slot, block = struct.unpack_from("<8xQ20xIQ", header)
            data = file.read(block)
            for i in range(64):
                n = number * 64 + i
                packet = data[i * slot:i * slot + 1008]
                if header[56 + i // 8] >> i % 8 & 1:
                    equal(struct.unpack_from(">Q", packet)[0], n, "the number in a slot")
                    missing.remove(n)
                else:
                    check(not any(packet), f"packet {n} lies there, and is said to be missing")
    check(0 < len(missing) <= sent["faults"]["lost"], f"{len(missing)} are missing, of {sent['faults']}")
    equal(got["missing"], len(missing), "missing")


def loss_udp(scene):
    """As the sender leaves packets out, the receiver misses them, also at the very end."""
    receiver = scene.receive("udp", "--ring", scene.ring, "--block", 64, "--streams", 2, "--once")
    consumer = scene.consume()
    sent = scene.send("udp", "--packets", 4000, "--first", 6400, "--rate", 200, "--streams", 2, "--drop", 0.03,
                      "--drop-seed", 9).end()
    got = receiver.end()
    seen = consumer.end()
    check(sent["dropped"] > 0, "nothing was dropped")
    equal(total(got, "missing"), sent["dropped"], "missing")
    equal(total(got, "received"), 8000 - sent["dropped"], "received")
    equal((seen["packets"], seen["wrong"]), (8000 - sent["dropped"], 0), "packets and wrong ones of the consumer")


def loss_of_parts(scene):
    """Small datagrams and large Writes: most packets of a Write that lost one are found by their trailers."""
    scene.small_packets()
    environment = {"WEFT_FAULT": "loss:0.005,way:out,seed:3"}
    receiver = scene.receive("uc", "--ring", scene.ring, "--block", 64, "--once")
    consumer = scene.consume()
    sent = scene.send("uc", "--packets", 4000, "--first", 6400, "--rate", 300, "--delay", 0.6, "--packets-per-write", 8,
                      environment=environment).end()
    got = receiver.end()["streams"][0]
    seen = consumer.end()
    lost = sent["faults"]["lost"]
    check(0 < got["missing"], "nothing is missing")
    # A datagram may hold the end of one packet and the beginning of the next.
    check(got["missing"] <= 2 * lost, f"{got['missing']} are missing and {lost} datagrams were lost")
    check(got["recovered"] > got["missing"], f"{got['recovered']} were found, {got['missing']} are missing")
    equal(got["received"] + got["missing"], 4000, "received and missing")
    equal((seen["packets"], seen["wrong"]), (got["received"], 0), "packets and wrong ones of the consumer")


def plain_udp(scene):
    """Datagrams of anybody: each kind of trouble is counted for itself."""
    receiver = scene.receive("udp", "--udp-port", 0, "--format", "raw", "--payload", 92, "--block", 10, "--idle", 300,
                             "--once")
    # The receiver tells its port to those who ask.
    with socket.create_connection(("127.0.0.1", scene.port)) as control:
        shape = {"format": "raw", "beamlets": 61, "slices": 16, "bits": 16, "payload": 92, "heap_packets": 1}
        hello = {"weft_stream": 1, "transport": "udp", "shape": shape, "group": 1, "first": [0], "streams": [0],
                 "ends": [{}]}
        control.sendall((repr(hello).replace("'", '"') + "\n").encode())
        port = eval(control.makefile().readline())["ends"][0]["port"]  # noqa: S307
    order = list(range(100, 130))
    order.remove(108)                             # missing
    order[5], order[6] = order[6], order[5]       # overtaken
    order.insert(20, order[18])                   # twice
    order.append(103)                             # twice, and long after its block
    order.append(108)                             # late: it stays missing
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for n in order:
            out.sendto(struct.pack(">Q", n) + bytes(92), ("127.0.0.1", port))
        out.sendto(b"noise", ("127.0.0.1", port))
        out.sendto(struct.pack(">Q", 1 << 40) + bytes(92), ("127.0.0.1", port))  # a number from nowhere
    got = receiver.end()["streams"][0]
    names = ("received", "missing", "out_of_order", "duplicate", "late", "invalid", "overrun")
    equal({n: got[n] for n in names}, dict(zip(names, (29, 1, 1, 2, 1, 2, 0))), "counters")


def refused(scene):
    """Sides that do not agree say why."""
    scene.receive("udp", "--streams", 2)
    for transport, words, why in (("tcp", (), "--transport udp"), ("udp", ("--streams", 3), "takes 2 streams"),
                                  ("udp", ("--beamlets", 60), "another shape")):
        sender = scene.send(transport, "--packets", 1, *words)
        sender.end(status=1)
        check(any(why in line for line in sender.errors), f"no '{why}' in {sender.errors}")


def prometheus(scene):
    """The text has what the JSON has."""
    path = f"{scene.folder}/metrics"
    receiver = scene.receive("tcp", "--streams", 2, "--once", "--prometheus", path)
    scene.send("tcp", "--streams", 2, "--packets", 500, "--rate", 200).end()
    got = receiver.end()
    with open(path, encoding="ascii") as file:
        lines = file.read().splitlines()
    for i, stream in enumerate(got["streams"]):
        for name, value in stream.items():
            check(f'weft_stream_recv_{name}{{stream="{i}"}} {value}' in lines, f"no {name} of stream {i}: {lines}")


def endurance(scene):
    """Many turns of the ring, with losses: memory stays what it was."""
    shape = ("--format", "raw", "--payload", 1000)
    receiver = scene.receive("uc", *shape, "--block", 16, "--blocks", 4, "--once")
    sender = scene.send("uc", *shape, "--duration", 6, "--rate", 100,
                        environment={"WEFT_FAULT": "loss:0.01,way:out,seed:2"})
    sender.end()
    got = receiver.end()
    for process in (sender, receiver):
        resident = [d["resident"] for d in process.documents() if "resident" in d and not d.get("final")]
        check(len(resident) >= 4, "too few reports")
        # The first report may come before all pages were touched.
        check(resident[-1] <= resident[1] + (1 << 20), f"resident bytes grow: {resident}")
    check(got["streams"][0]["blocks"] > 1000, "too few blocks")
    equal(got["streams"][0]["invalid"], 0, "invalid")


CASES = {
    "loss_uc": loss(),
    "loss_uc_grouped": loss(4, ("--packets-per-write", 4)),
    "loss_uc_which": loss_which,
    "loss_udp": loss_udp,
    "loss_of_parts": loss_of_parts,
    "plain_udp": plain_udp,
    "refused": refused,
    "prometheus": prometheus,
    "endurance": endurance,
}
