"""Cases about senders that are circuits: examples/fpga_sender.c has nothing of weft and hears nothing."""

import json
import signal
import socket
import struct
import subprocess

from cases_data import payload, table
from scene import PACKET, check, equal, total

SLOT = 7840
FIRST = 256000  # of a block


def free_port():
    """That a queue pair may have, on UDP and TCP."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
            udp.bind(("127.0.0.1", 0))
            port = udp.getsockname()[1]
            if 24576 <= port < 32768:
                continue
            try:
                tcp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def expect(scene, port, *words, environment=None):
    return scene.receive("uc", "--static", "127.0.0.1", "--udp-port", port, *words, environment=environment)


def circuit(scene, port, **options):
    return scene.start([f"{scene.build}/bin/fpga_sender", "to=127.0.0.1", f"port={port}", *(f"{k}={v}" for k, v in options.items())])


def told(receiver):
    return [d for d in receiver.documents() if d.get("event") == "circuit"]


def arrived(receiver, count):
    return receiver.wait_for(f"{count} packets", lambda d: "streams" in d and total(d, "received") >= count)


def counters(scene, process):
    """What `weft stat` has of it."""
    said = subprocess.run([f"{scene.build}/bin/weft", "stat", "--json", str(process.process.pid)], check=True, capture_output=True)
    return json.loads(said.stdout)["processes"][0]["device"]


def samples(mtu):
    """Two circuits, with all that they send known before the receiver runs; every sample is what it should be. They send no
    CRC, whatever the environment asks for."""
    def case(scene):
        port = free_port()
        receiver = expect(scene, port, "--streams", 2, "--ring", scene.ring, "--once",
                          environment={"WEFT_DATAGRAM_CRC": "on"})
        equal([(d["stream"], d["udp_port"], d["index"], d["token"], d["stag"], d["to"]) for d in told(receiver)],
              [(0, port, 1, port << 8 | 1, 0x100, 0), (1, port, 2, port << 8 | 2, 0x200, 0)], "what circuits are told")
        equal([(d["packet_bytes"], d["slot_bytes"], d["packets_per_block"], d["block_bytes"], d["blocks"]) for d in told(receiver)],
              [(PACKET, SLOT, 256, 256 * SLOT, 16)] * 2, "the ring")
        consumer = scene.consume()
        senders = [circuit(scene, port, stream=i, packets=3000, rate=1000, mtu=mtu) for i in range(2)]
        for sender in senders:
            equal(sender.end()["lost"], 0, "lost on purpose")
        got = receiver.end()
        seen = consumer.end()
        equal((seen["packets"], seen["wrong"], seen["damaged"], seen["jumps"]), (6000, 0, 0, 0), "packets, wrong, damaged, jumps")
        equal(total(got, "received"), 6000, "received")
        for name in ("missing", "late", "duplicate", "overrun", "invalid", "gap"):
            equal(total(got, name), 0, name)
    return case


def loss(scene):
    """What the circuit leaves out is missing, and nothing else: each packet of which a datagram is lost, by its number."""
    path = f"{scene.folder}/blocks"
    port = free_port()
    receiver = expect(scene, port, "--file", path, "--block", 64, "--blocks", 8, "--once")
    sent = circuit(scene, port, first=FIRST, packets=2048, rate=1000, block=64, blocks=8, lose=10000, seed=7).end()
    got = receiver.end()["streams"][0]
    known = table()
    missing = set(range(FIRST, FIRST + 2048))
    with open(path, "rb") as file:
        while header := file.read(4096):
            number, slot, block = struct.unpack_from("<8xQ20xIQ", header)
            equal(slot, SLOT, "slot")
            data = file.read(block)
            for i in range(64):
                n = number * 64 + i
                if header[56 + i // 8] >> i % 8 & 1:
                    equal(data[i * slot + 16:i * slot + PACKET], payload(known, 0, n, PACKET - 16), f"samples of packet {n}")
                    missing.remove(n)
    check(len(sent["hurt"]) > 50, f"only {sent['hurt']} were to be lost")
    equal(sorted(missing), sent["hurt"], "packets that are missing")
    equal((got["missing"], got["received"], got["invalid"]), (len(missing), 2048 - len(missing), 0), "missing, received, invalid")


def anew(scene):
    """A circuit that is reset counts from elsewhere, ahead or behind: another session, not losses. The library follows the
    datagrams' own numbers, which jump, too, after 16 of them (wire.md 9.2): 3 packets, before the session begins."""
    port = free_port()
    receiver = expect(scene, port, "--idle", 60000)
    circuit(scene, port, first=FIRST, packets=300, rate=1000).end()
    circuit(scene, port, first=10**9, packets=300, rate=1000).end()
    arrived(receiver, 597)
    circuit(scene, port, first=5 * 10**8, packets=300, rate=1000).end()
    arrived(receiver, 894)
    receiver.kill(signal.SIGTERM)
    got = receiver.end()["streams"][0]
    equal((got["received"], got["missing"], got["late"], got["invalid"]), (894, 0, 0, 0), "received, missing, late, invalid")
    equal((got["sessions"], got["gap"]), (3, 10**9 + 3 - FIRST - 300), "sessions, gap")


def receiver_again(scene):
    """A receiver that is killed and started again is told nothing, and goes on: the circuit sends on, and to the same figures."""
    port = free_port()
    receiver = expect(scene, port)
    figures = told(receiver)
    sender = circuit(scene, port, packets=8000, rate=1000)
    arrived(receiver, 500)
    receiver.kill()
    receiver.process.wait()
    again = expect(scene, port, "--once")
    equal(told(again), figures, "what circuits are told")
    sender.end()
    got = again.end()["streams"][0]
    check(got["received"] > 500, f"only {got['received']} after the restart")
    equal((got["missing"], got["late"], got["invalid"], got["sessions"]), (0, 0, 0, 1), "missing, late, invalid, sessions")


def stranger(scene):
    """Who has another token, key or address than was told writes nothing; who has the wrong ring in mind is no packet of it."""
    port = free_port()
    receiver = expect(scene, port, "--streams", 2, "--static", "127.0.0.2")
    circuit(scene, port, first=FIRST, packets=200, rate=2000, index=3).end()
    circuit(scene, port, first=FIRST, packets=200, rate=2000, stag=0x300).end()
    circuit(scene, port, first=FIRST, packets=200, rate=2000, stream=1).end()
    circuit(scene, port, first=FIRST + 200, packets=200, rate=2000, block=128).end()
    circuit(scene, port, first=FIRST + 400, packets=300, rate=1000).end()
    arrived(receiver, 300)
    counted = counters(scene, receiver)
    receiver.kill(signal.SIGTERM)
    got = receiver.end()["streams"]
    equal([(s["received"], s["invalid"], s["missing"]) for s in got], [(300, 200, 0), (0, 0, 0)], "received, invalid, missing")
    # A packet has 6 datagrams, and each has its own reason.
    equal({name: n for name, n in counted.items() if name.startswith("datagram_dropped.")},
          {f"datagram_dropped.{why}": 1200 for why in ("unknown_token", "protection", "wrong_address")}, "datagrams dropped")


def pause(scene):
    """A circuit that pauses for longer than --idle inside a block goes on behind it: the block that was published as it was is
    not published again, and what the circuit still sends for it is late."""
    path = f"{scene.folder}/blocks"
    port = free_port()
    receiver = expect(scene, port, "--file", path, "--idle", 100)
    circuit(scene, port, first=FIRST, packets=300, rate=1000, mtu=9000).end()
    receiver.wait_for("the partial block", lambda d: "streams" in d and d["streams"][0]["blocks"] == 2)
    circuit(scene, port, first=FIRST + 300, packets=1000, rate=1000, mtu=9000).end()
    receiver.wait_for("its end", lambda d: "streams" in d and d["streams"][0]["blocks"] == 6)
    receiver.kill(signal.SIGTERM)
    got = receiver.end()["streams"][0]
    equal((got["received"], got["late"], got["gap"], got["missing"], got["sessions"]), (300 + 788, 212, 212, 0, 2),
          "received, late, gap, missing, sessions")
    numbers = []
    with open(path, "rb") as file:
        while header := file.read(4096):
            number, block = struct.unpack_from("<8xQ24xQ", header)
            numbers.append(number)
            file.seek(block, 1)
    equal(numbers, list(range(FIRST // 256, FIRST // 256 + 6)), "blocks in the file")


def no_sense(scene):
    """The reference sender says no to what no packet can be cut by."""
    for wrong in ({"mtu": 75}, {"mtu": 91}, {"mtu": 65536}, {"block": 0}, {"blocks": 0}, {"rate": 0}):
        circuit(scene, 1, packets=1, **wrong).end(status=2)
    equal(circuit(scene, free_port(), packets=1, mtu=92).end()["lost"], 0, "lost with the smallest MTU")


def refused(scene):
    """What cannot be is said at once."""
    weft = f"{scene.build}/bin/weft"
    for words, why in ((("--transport", "udp"), "--transport uc"), (("--blocks", 12), "powers of two"),
                       (("--streams", 3, "--static", "127.0.0.2"), "one for each stream"), (("--udp-port", 80), "WEFT_UC_PORT")):
        process = scene.start([weft, "stream", "recv", "--port", 0, "--static", "127.0.0.1", "--duration", 20, *words])
        process.end(status=1)
        check(any(why in line for line in process.errors), f"no '{why}' in {process.errors}")
    expect(scene, free_port())
    sender = scene.send("uc", "--packets", 1)
    sender.end(status=1)
    check(any("--static" in line for line in sender.errors), f"said {sender.errors}")


CASES = {
    "circuit": samples(1500),
    "circuit_jumbo": samples(9000),
    "circuit_loss": loss,
    "circuit_anew": anew,
    "circuit_receiver_again": receiver_again,
    "circuit_stranger": stranger,
    "circuit_pause": pause,
    "circuit_no_sense": no_sense,
    "circuit_refused": refused,
}
