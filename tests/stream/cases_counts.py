"""Cases about counters and reports."""

import re
import signal
import socket
import struct
import time

from cases_circuits import free_port
from scene import SECONDS, at_sockets, check, equal, total


def plain_udp(scene):
    """Datagrams of anybody: each kind of trouble is counted for itself."""
    receiver = scene.receive("udp", "--udp-port", 0, "--format", "raw", "--payload", 92, "--block", 10, "--idle", 2000,
                             "--once")
    # The receiver tells its port to those who ask.
    with socket.create_connection(("127.0.0.1", scene.port)) as control:
        shape = {"format": "raw", "beamlets": 61, "slices": 16, "bits": 16, "payload": 92, "heap_packets": 1,
                 "clock": 0}
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


def stopped_while_packets_come(scene):
    """A receiver that is kept from running for longer than --idle finds that nobody was silent: what came meanwhile is of the same session."""
    port = free_port()
    receiver = scene.receive("udp", "--udp-port", port, "--format", "raw", "--payload", 92, "--block", 10, "--idle", 2000, "--once")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        def send(first, last):
            for n in range(first, last):
                out.sendto(struct.pack(">Q", n) + bytes(92), ("127.0.0.1", port))
        send(100, 200)
        until = time.monotonic() + SECONDS
        while at_sockets(receiver).waiting > 0:
            check(time.monotonic() < until, "the receiver does not read")
            time.sleep(0.01)
        receiver.kill(signal.SIGSTOP)
        send(200, 300)
        time.sleep(2.5)
        receiver.kill(signal.SIGCONT)
    got = receiver.end()["streams"][0]
    names = ("received", "missing", "late", "sessions")
    equal({n: got[n] for n in names}, dict(zip(names, (200, 0, 0, 1))), "counters")


def prometheus(scene):
    """The text has the numbers of the JSON: those of streams, and those of the whole side."""
    files = [f"{scene.folder}/{side}" for side in ("recv", "send")]
    receiver = scene.receive("udp", "--streams", 2, "--once", "--prometheus", files[0], "--file", f"{scene.folder}/blocks")
    sent = scene.send("udp", "--streams", 2, "--packets", 500, "--rate", 200, "--prometheus", files[1],
                      environment={"WEFT_FAULT": "loss:0.1,way:out"}).end()
    for side, said, path in zip(("recv", "send"), (receiver.end(), sent), files):
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        for i, stream in enumerate(said["streams"]):
            for name, value in stream.items():
                if value is None:  # there is no meter
                    check(not any(line.startswith(f"weft_stream_{side}_{name}") for line in lines), f"{name} of nothing: {lines}")
                    continue
                check(f'weft_stream_{side}_{name}{{stream="{i}"}} {value}' in lines, f"no {name} of stream {i}: {lines}")
        facts = {name: said[name] for name in (("kernel_drops", "senders", "written") if side == "recv" else ("connections", "began_s", "sending_s"))}
        if side == "send":
            check(said["faults"]["lost"] > 0, "nothing was lost")
            facts |= {f"{group}_{name}": value for group in ("late_us", "faults") for name, value in said[group].items()}
        for name, value in facts.items():
            check(f"weft_stream_{side}_{name} {value}" in lines, f"no {name} {value}: {lines}")


def last_line(scene):
    """Without --json: sums, and how late packets left. Power, or why it is not measured, is said to those who ask."""
    for energy, end in (((), r"(; \d+\.\d W)?$"), (("--energy", "powercap"), r"; (\d+\.\d W|power unmeasured: .+: .+)$")):
        receiver = scene.receive("udp", "--once")
        sender = scene.start([f"{scene.build}/bin/weft", "stream", "send", f"127.0.0.1:{scene.port}", "--transport", "udp", "--packets", 300,
                              "--rate", 100, "--max-late", 0, *energy])
        sender.end()
        receiver.end()
        line = sender.errors[-1]
        check(re.search(r", late p99 \d+ us, sent 300, connections 1" + end, line), f"the last line is '{line}'")



CASES = {
    "plain_udp": plain_udp,
    "udp_receiver_stopped": stopped_while_packets_come,
    "prometheus": prometheus,
    "last_line": last_line,
}
