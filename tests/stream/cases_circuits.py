"""Cases about senders that are circuits: examples/fpga_sender.c has nothing of weft and hears nothing."""

import json
import signal
import subprocess
import time

import apps
from cases_data import payload, table
from scene import PACKET, SECONDS, at_sockets, blocks, check, equal, total

SLOT = 7840
FIRST = 256000  # of a block


def free_port():
    """That a queue pair may have: none of 24576 to 32767 (src/port/adapter_port.h)."""
    while True:
        port = apps.free_port()
        if not 24576 <= port < 32768:
            return port


def expect(scene, port, *words, environment=None):
    return scene.receive("uc", "--static", "127.0.0.1", "--udp-port", port, *words, environment=environment)


def circuit(scene, port, **options):
    return scene.start([f"{scene.build}/bin/fpga_sender", "to=127.0.0.1", f"port={port}", *(f"{k}={v}" for k, v in options.items())])


def told(receiver):
    return [d for d in receiver.documents() if d.get("event") == "circuit"]


def arrived(receiver, count):
    return receiver.wait_for(f"{count} packets", lambda d: "streams" in d and total(d, "received") + total(d, "open") >= count)


def counters(scene, process):
    """What `weft stat` has of it."""
    said = subprocess.run([f"{scene.build}/bin/weft", "stat", "--json", str(process.process.pid)], check=True, capture_output=True)
    return json.loads(said.stdout)["processes"][0]["device"]


def samples(mtu):
    """Two circuits, with all that they send known before the receiver runs; every sample is what it should be. They send no
    CRC, whatever the environment asks for."""
    def case(scene):
        port = free_port()
        receiver = expect(scene, port, "--streams", 2, "--ring", scene.ring, "--idle", 5000, "--once",
                          environment={"WEFT_DATAGRAM_CRC": "on"})
        equal([(d["stream"], d["udp_port"], d["index"], d["token"], d["stag"], d["to"]) for d in told(receiver)],
              [(0, port, 1, port << 8 | 1, 0x100, 0), (1, port, 2, port << 8 | 2, 0x200, 0)], "what circuits are told")
        equal([(d["packet_bytes"], d["slot_bytes"], d["packets_per_block"], d["block_bytes"], d["blocks"]) for d in told(receiver)],
              [(PACKET, SLOT, 256, 256 * SLOT, 16)] * 2, "the ring")
        consumer = scene.consume()
        senders = [circuit(scene, port, stream=i, packets=3000, rate=1000, mtu=mtu) for i in range(2)]
        for sender in senders:
            sender.end()
        got = receiver.end()
        seen = consumer.end()
        # Nothing holds a circuit back: what a busy machine's socket has no room for is lost, and nothing else.
        lost = 6000 - total(got, "received")
        check(lost < 600, f"lost {lost}: the receiver hardly ran")
        check(0 <= total(got, "missing") <= lost <= got["kernel_drops"], f"lost {lost}, kernel_drops {got['kernel_drops']}")
        equal((seen["packets"], seen["wrong"]), (6000 - lost, 0), "packets, wrong")
        check(lost > 0 or seen["jumps"] == 0, f"jumps {seen['jumps']}")
        for name in ("late", "duplicate", "overrun", "invalid", "gap"):
            equal(total(got, name), 0, name)
    return case


def hurt(path):
    """The packets of which the fault log names a datagram: MSNs, which are the low 32 bits of their numbers."""
    with open(path, encoding="ascii") as file:
        return sorted({int(front[32:40], 16) for _, _, _, front in map(str.split, file)})


def loss(scene):
    """What never comes of a circuit's datagrams is missing, and nothing else: each packet of which one was lost, by its number."""
    path, log = f"{scene.folder}/blocks", f"{scene.folder}/lost"
    port = free_port()
    receiver = expect(scene, port, "--file", path, "--block", 64, "--blocks", 32, "--idle", 5000, "--once",
                      environment={"WEFT_FAULT": "loss:0.01,way:in,seed:7", "WEFT_FAULT_LOG": log})
    circuit(scene, port, first=FIRST, packets=2048, rate=1000, block=64, blocks=32).end()
    got = receiver.end()["streams"][0]
    known = table()
    missing = set(range(FIRST, FIRST + 2048))
    for block in blocks(path):
        equal(block.slot_bytes, SLOT, "slot")
        for i in filter(block.has, range(64)):
            check(block.packet(i)[16:] == payload(known, 0, block.first + i, PACKET - 16), f"samples of packet {block.first + i}")
            missing.remove(block.first + i)
    lost = hurt(log)
    check(len(lost) > 50, f"only {lost} were lost")
    # Of this seed neither the first packet nor the last one, of which nobody would know.
    equal(sorted(missing), lost, "packets that are missing")
    equal((got["missing"], got["received"], got["invalid"]), (len(missing), 2048 - len(missing), 0), "missing, received, invalid")


def kernel_drops(scene):
    """Nothing holds a circuit back: what comes while the receiver does not run, and its socket has no room for, is missing, and
    the receiver says why."""
    port = free_port()
    receiver = expect(scene, port, "--idle", 60000)
    sender = circuit(scene, port, first=FIRST, packets=40000, rate=8000, mtu=9000)
    arrived(receiver, 100)
    receiver.kill(signal.SIGSTOP)
    time.sleep(1.5)
    receiver.kill(signal.SIGCONT)
    sender.end()
    # The kernel tells of drops with the next datagram that fits: these fit.
    circuit(scene, port, first=FIRST + 40000, packets=512, rate=500, mtu=9000).end()
    until = time.monotonic() + SECONDS
    while at_sockets(receiver).waiting > 0:
        check(time.monotonic() < until, "the receiver does not read")
        time.sleep(0.05)
    lost = at_sockets(receiver).dropped
    check(lost > 0, "the socket had room for all")
    # Behind a gap of more than 4096 datagrams sixteen have to agree (docs/uc.md): nobody takes the first fifteen.
    receiver.wait_for("the account of all that came", lambda d: "streams" in d and
                      total(d, "received") + total(d, "open") + total(d, "overrun") >= 40512 - lost - 15)
    receiver.kill(signal.SIGTERM)
    last = receiver.end()
    # On a busy machine some are overwritten before the receiver looks.
    came = total(last, "received") + total(last, "overrun")
    equal(last["kernel_drops"], lost, "kernel_drops, of packets of one datagram")
    check(40512 - lost - came in (0, 15), f"{came} came of 40512, and {lost} were dropped")


def anew(scene):
    """A circuit that is reset counts from elsewhere, ahead or behind: another session, not losses. The library follows the
    datagrams' own numbers, which jump, too, after 16 of them (spec/wdp-uc 3.2): 3 packets, before the session begins."""
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
    equal((got["sessions"], got["gap"]), (3, 0), "sessions, gap")
    jumps = [d["to"] for d in receiver.documents() if d.get("event") == "jump"]
    equal(jumps, [10**9 + 3, 5 * 10**8 + 3], "where it went on")


def receiver_again(scene):
    """A receiver that is killed and started again is told nothing, and goes on: the circuit sends on, and to the same figures."""
    port = free_port()
    receiver = expect(scene, port)
    figures = told(receiver)
    sender = circuit(scene, port, packets=8000, rate=1000)
    arrived(receiver, 500)
    receiver.kill()
    receiver.process.wait()
    again = expect(scene, port, "--idle", 5000, "--once")
    equal(told(again), figures, "what circuits are told")
    sender.end()
    last = again.end()
    got = last["streams"][0]
    check(got["received"] > 500, f"only {got['received']} after the restart")
    equal((got["late"], got["invalid"], got["sessions"]), (0, 0, 1), "late, invalid, sessions")
    # Nothing holds a circuit back: what a busy machine's socket has no room for is lost, and nothing else.
    check(got["missing"] <= last["kernel_drops"], f"missing {got['missing']}, kernel_drops {last['kernel_drops']}")


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
    receiver = expect(scene, port, "--file", path, "--idle", 4000)
    circuit(scene, port, first=FIRST, packets=300, rate=1000, mtu=9000).end()
    receiver.wait_for("the partial block", lambda d: "streams" in d and d["streams"][0]["blocks"] == 2)
    circuit(scene, port, first=FIRST + 300, packets=1000, rate=1000, mtu=9000).end()
    receiver.wait_for("its end", lambda d: "streams" in d and d["streams"][0]["blocks"] == 6)
    receiver.kill(signal.SIGTERM)
    got = receiver.end()["streams"][0]
    equal((got["received"], got["late"], got["gap"], got["missing"], got["sessions"]), (300 + 788, 212, 212, 0, 2),
          "received, late, gap, missing, sessions")
    equal([block.number for block in blocks(path)], list(range(FIRST // 256, FIRST // 256 + 6)), "blocks in the file")


def no_sense(scene):
    """The reference sender says no to what no packet can be cut by."""
    for wrong in ({"mtu": 75}, {"mtu": 91}, {"mtu": 65536}, {"block": 0}, {"blocks": 0}, {"rate": 0}):
        circuit(scene, 1, packets=1, **wrong).end(status=2)
    circuit(scene, free_port(), packets=1, mtu=92).end()  # the smallest one


def refused(scene):
    """What cannot be is said at once."""
    weft = f"{scene.build}/bin/weft"
    for words, why in ((("--transport", "udp"), "--transport uc"), (("--blocks", 12), "powers of two"),
                       (("--streams", 3, "--static", "127.0.0.2"), "one for each stream"), (("--udp-port", 80), "WEFT_UC_PORT")):
        process = scene.start([weft, "stream", "recv", "--port", 0, "--static", "127.0.0.1", "--duration", 20, *words])
        process.end(status=2)
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
    "circuit_kernel_drops": kernel_drops,
    "circuit_receiver_again": receiver_again,
    "circuit_stranger": stranger,
    "circuit_pause": pause,
    "circuit_no_sense": no_sense,
    "circuit_refused": refused,
}
