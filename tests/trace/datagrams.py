"""What `weft trace` writes of UC, UD and multicast, read by packaging/wireshark/wdp.lua: no fault, nothing that a receiver would
drop, and each message that the programs sent, in the files of both sides."""

import os
import sys
import time
from typing import NamedTuple

import apps

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../wireshark"))
import wireshark  # noqa: E402

SECONDS = 60
CTL, UC, UD = 0, 1, 2
REQ, REP = 1, 2
SEND = 3
MULTICAST = 0xffffff


def check(right, sentence):
    if not right:
        raise apps.Failed(sentence)


class Message(NamedTuple):
    """One datagram of a message; one message is one datagram where it fits into one."""

    source: str  # address and port
    wdp_class: int
    opcode: int
    msn: int
    length: int  # of the whole message
    offset: int
    to_group: bool


class Case:
    """Servers and a client, as in tests/apps. `sent`: for each side that sends its class, how many messages, and their length."""

    def __init__(self, name, server, client, sent, control=(), servers=1):
        self.name = name
        self.server = server.split()
        self.client = client.split()
        self.sent = sent
        self.control = set(control)  # CTL types that are among those in each file
        self.servers = servers

    def run(self, place, product, started):
        files = traced(self, place, product, started)
        scene = wireshark.Scene(None)
        try:
            client, *servers = (Capture(scene, file) for file in files)
            judge(self, client, servers)
        except wireshark.Failed as e:
            raise apps.Failed(str(e)) from e
        finally:
            scene.close()


def cases():
    def both(program):
        return f"{program} -p {{port}}", f"{program} -p {{port}} {{addr}}"

    yield Case("ibv_uc_pingpong", *both("ibv_uc_pingpong -n 50 -s 4000"), [(UC, 50, 4000), (UC, 50, 4000)], {REQ, REP})
    yield Case("ibv_ud_pingpong", *both("ibv_ud_pingpong -n 50 -s 1000"), [(UD, 50, 1000), (UD, 50, 1000)])
    # Each of its two rounds of messages goes there and back.
    yield Case("udaddy", "udaddy -C 10 -S 900", "udaddy -s {addr} -C 10 -S 900", [(UD, 10, 900), (UD, 10, 900)], {REQ, REP})
    group = "mckey -m 239.193.7.9 -C 10 -S 700"
    yield Case("mckey", group + " -b {addr}", group + " -b {own} -s", [(UD, 10, 700)], servers=2)


class Capture:
    """A file, decoded. Fails on anything that the dissector, or a receiver, has to say against it."""

    def __init__(self, scene, file):
        self.file = file
        self.messages, self.control = set(), set()
        self.decoded = []  # (address and port that it came from, what the dissector shows), one by one
        strange = scene.tshark("-r", file, "-Y", "udp && !wdp", "-T", "fields", "-e", "frame.number").split()
        check(not strange, f"{file}: packets {strange} are not taken for WDP")
        ways = scene.tshark("-r", file, "-Y", "udp", "-T", "fields", "-e", "ip.src", "-e", "udp.srcport").splitlines()
        packets = scene.shown(file, "-Y", "udp")
        check(len(packets) == len(ways) > 0, f"{file}: {len(packets)} packets, {len(ways)} with addresses")
        for number, (way, packet) in enumerate(zip(ways, packets), 1):
            self._packet(number, way.replace("\t", ":"), packet)

    def _packet(self, number, source, packet):
        where = f"{self.file}, datagram {number}"
        self.decoded.append((source, packet))
        wireshark.without_fault(where, packet)
        check("drop" not in packet, f"{where} would be dropped: {packet}")
        check(packet["crc.status"] in (["Good"], ["Absent"]), f"{where}: CRC {packet['crc.status']}")
        of = lambda field: wireshark.number(packet[field][0])
        if of("class") == CTL:
            self.control.add(of("ctl.type"))
            return
        self.messages.add(Message(source, of("class"), of("rdmap.opcode"), of("msn"), of("mlen" if of("class") == UC else "length"),
                                  of("mo") if of("class") == UC else 0, "dest_qpn" in packet and of("dest_qpn") == MULTICAST))

    def sent_by(self, source):
        return {m for m in self.messages if m.source == source}


def only_file(folder):
    files = os.listdir(folder)
    check(len(files) == 1, f"one file was expected, and not {files}")
    return f"{folder}/{files[0]}"


def traced(case, place, product, started):
    """The files of the client, and of each server."""
    with apps.alone_at_fixed_port(place, case.server):
        return run_traced(case, place, product, started)


def run_traced(case, place, product, started):
    port, folders, processes = str(apps.free_port()), [], []
    for side, program in [*((0, case.server) for _ in range(case.servers)), (1, case.client)]:
        folders.append(product.folder())
        words = [w.format(addr=place.address, own=place.own(side), port=port) for w in program]
        if side == 1:
            processes[-1].comes_up(case.servers)
        processes.append(apps.Process(place.enter(side) + product.trace(words, folders[-1])))
        started.append(processes[-1])
    until = time.monotonic() + SECONDS
    for process in reversed(processes):
        check((status := process.wait(until)) == 0, f"exit status {status}: {' '.join(process.command)}")
    return [only_file(folder) for folder in reversed(folders)]


def judge(case, client, servers):
    for capture in (client, *servers):
        check(case.control <= capture.control, f"{capture.file}: CTL of types {capture.control}, not {case.control}")
    for server in servers:
        check(client.messages == server.messages,
              f"only in {client.file}: {client.messages - server.messages}; only in {server.file}: {server.messages - client.messages}")
    sources = {m.source for m in client.messages}
    counted = []
    for source in sources:
        messages = client.sent_by(source)
        firsts = [m for m in messages if m.offset == 0]
        check(all(m.opcode == SEND for m in messages), f"{source} sent more than Sends: {messages}")
        check(all(m.to_group == (case.servers > 1) for m in messages), f"{source} sent to others: {messages}")
        numbers = sorted(m.msn for m in firsts)
        check(numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"{source}: messages are missing among {numbers}")
        kinds = {(m.wdp_class, m.length) for m in messages}
        check(len(kinds) == 1, f"{source} sent {kinds}")
        (wdp_class, length), = kinds
        counted.append((wdp_class, len(firsts), length))
    check(sorted(counted) == sorted(case.sent), f"messages were sent {counted}, not {case.sent}")
