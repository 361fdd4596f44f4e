"""Cases about formats: packets as instruments send them, made here byte by byte, come whole to their numbers' places, as datagrams of
somebody who knows nothing of weft, and out of a capture over each transport."""

import collections
import socket
import struct

from cases_data import pcap
from lofar import rsp, samples
from scene import blocks, check, equal, total

COUNT = 100  # packets of a stream
LOST = 37    # of these, one
BLOCK = 16

# `make(stream, i)`: the i-th packet of a stream. `number(i)`: what it is called. `kept(packet)`: what lies in its place.
Kind = collections.namedtuple("Kind", "options streams ports make number kept", defaults=(lambda packet: packet,))


def raw(header, size, stream, i):
    return header + samples(i, size, stream)


RSP_FIRST = 25_881_656_000_000  # 2022, at 200 MHz


def of_rsp(version=3, streams=2, **form):
    options = [word for name, value in form.items() for word in (f"--{name}", value)]

    def make(stream, i):
        packet = bytearray(rsp(RSP_FIRST + i, stream=stream, **form))
        packet[0] = version
        if version == 2:
            packet[2:4] = b"\x2a\x51"  # its configuration
        return bytes(packet)
    return Kind(options, streams, streams, make, lambda i: RSP_FIRST + i)


KINDS = {
    "rsp_16_bit": of_rsp(),
    "rsp_8_bit": of_rsp(bits=8, beamlets=122),
    "rsp_4_bit": of_rsp(bits=4, beamlets=244),
    "rsp_version_2": of_rsp(version=2),
    "rsp_version_4": of_rsp(version=4, bits=4, beamlets=244),
    # A counter of samples above a word of other things, and the board in that word; one port for both boards.
    "raw_places": Kind(
        ("--format", "raw", "--payload", 900, "--header-bytes", 24, "--number", "8:8:be:16:256", "--stream-number", "3:1"), 2, 1,
        lambda stream, i: raw(struct.pack(">BBBBIQQ", 9, 8, 7, stream, 3, (5000 + i) * 256 << 16 | 0xabcd, 1), 900, stream, i),
        lambda i: 5000 + i),
    # A 16 bit counter, the lowest byte first, that comes round.
    "raw_turns": Kind(
        ("--format", "raw", "--payload", 900, "--number", "2:2:le"), 1, 1,
        lambda stream, i: raw(struct.pack("<HH", 7, (65_500 + i) % 65_536), 900, stream, i),
        lambda i: 65_500 + i),
}


def free_ports(count):
    """The first of so many free UDP ports in a row."""
    for _ in range(100):
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
        try:
            sockets[0].bind(("127.0.0.1", 0))
            first = sockets[0].getsockname()[1]
            for i, s in enumerate(sockets[1:], 1):
                s.bind(("127.0.0.1", first + i))
            return first
        except OSError:
            continue
        finally:
            for s in sockets:
                s.close()
    raise AssertionError("no free ports")


def packets_of(kind):
    """(port, packet), the streams by turns; one is lost and two are overtaken."""
    order = [i for i in range(COUNT) if i != LOST]
    order[60:62] = [order[61], order[60]]  # of one block: over tcp and rc nothing is held open for what a capture has out of order
    return [(stream % kind.ports, kind.make(stream, i)) for i in order for stream in range(kind.streams)]


def compare(kind, got, path):
    """What the receiver counted, and the bytes of each block that it wrote."""
    for name, each in (("received", COUNT - 1), ("missing", 1), ("duplicate", 0), ("late", 0), ("invalid", 0), ("foreign", 0), ("flagged", 0)):
        equal(total(got, name), each * kind.streams, name)
    expected = {(stream, kind.number(i)): kind.kept(kind.make(stream, i))
                for stream in range(kind.streams) for i in range(COUNT) if i != LOST}
    for block in blocks(path):
        for n in (block.first + i for i in filter(block.has, range(BLOCK))):
            check(block.packet(n - block.first) == expected.pop((block.stream, n)), f"bytes of packet {n} of stream {block.stream}")
    equal(expected, {}, "packets that are in no block")


def receive(scene, kind, transport, *words):
    path = f"{scene.folder}/{transport}"
    receiver = scene.receive(transport, *kind.options, "--streams", kind.streams, "--block", BLOCK, "--file", path, "--once", *words)
    return receiver, path


def as_datagrams(scene, kind):
    port = free_ports(kind.ports)
    receiver, path = receive(scene, kind, "udp", "--udp-port", port, "--idle", 2000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for offset, packet in packets_of(kind):
            out.sendto(packet, ("127.0.0.1", port + offset))
    compare(kind, receiver.end(), path)


def out_of_a_capture(scene, kind, transport):
    receiver, path = receive(scene, kind, transport)
    sent = scene.send(transport, *kind.options, "--streams", kind.streams, "--pcap", f"{scene.folder}/sky.pcap", "--rate", 20).end()
    equal((total(sent, "sent"), sent["unusable"]), ((COUNT - 1) * kind.streams, 0), f"sent, unusable over {transport}")
    compare(kind, receiver.end(), path)


def format_of(kind):
    def case(scene):
        as_datagrams(scene, kind)
        with open(f"{scene.folder}/sky.pcap", "wb") as file:
            file.write(pcap([(16011 + offset, packet) for offset, packet in packets_of(kind)]))
        for transport in ("tcp", "rc", "uc"):
            out_of_a_capture(scene, kind, transport)
    return case


CASES = {f"format_{name}": format_of(kind) for name, kind in KINDS.items()}
