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


def spead(items, payload, address_bits=48):
    """`items`: (name, value), or (name, address, False)."""
    words = [(not rest) << 63 | name << address_bits | value for name, value, *rest in items]
    return struct.pack(f">BBBBHH{len(words)}Q", 0x53, 4, 8 - address_bits // 8, address_bits // 8, 0, len(words), *words) + payload


def made_up(packet, room, payload):
    """A SPEAD packet as it is kept: with null items behind its own, and zeroes behind a short payload."""
    items = struct.unpack_from(">H", packet, 6)[0]
    front = packet[:6] + struct.pack(">H", room) + packet[8:8 + 8 * items] + (1 << 63).to_bytes(8, "big") * (room - items)
    return front + packet[8 + 8 * items:].ljust(payload, b"\0")


def digitiser(stream, i):
    """As MeerKAT's: eight items, and a heap that is one packet."""
    return spead([(1, 3000 + i), (2, 1024), (3, 0), (4, 1024), (0x1600, i * 4096), (0x3101, stream), (0x3102, 0), (0x3300, 0, False)],
                 samples(i, 1024, stream))


def f_engine(stream, i):
    """Heaps of four packets, the last one shorter, whose counters tell no order; the engine is an item, and one port serves all. A
    packet that does not begin its heap has fewer items, in another order."""
    heap, part = divmod(i, 4)
    size = 500 if part < 3 else 92
    needed = [(0x4101, stream), (4, size), (0x1600, (700 + heap) * 2048), (3, part * 500), (2, 1592)]
    items = [(1, heap * 7919 % 1000), *needed, (0x4103, 64), (0x4300, 0, False)] if part == 0 else [*needed[::-1], (1, heap * 7919 % 1000)]
    return spead(items, samples(i, size, stream))


EPOCH_53 = 9678 * 86_400  # 2026-07-01, in seconds since 2000


def vdif(rate, number, thread, payload, *, legacy=False, station=0x4548):
    """A frame of that number, with two bits a sample in eight channels."""
    second, frame = divmod(number, rate)
    size = (16 if legacy else 32) + len(payload)
    words = [second - EPOCH_53 | legacy << 30, 53 << 24 | frame, 3 << 24 | size // 8, 1 << 26 | thread << 16 | station]
    return struct.pack("<4I", *words) + (b"" if legacy else struct.pack("<4I", 0xacabfeed, 1, 2, 3)) + payload


def lofar2(number, station, first_beamlet, payload):
    """Four blocks of 20 beamlets."""
    return struct.pack(">BBIHHBIHHBHHQ", 98, 5, 654321, station, 0x1234, 0x56, 0, 1024, first_beamlet, 4, 20, 5120, 4 * number) + payload


FRAME_FIRST = (EPOCH_53 + 77) * 40 + 7  # of 40 a second: some seconds pass
LOFAR2_FIRST = 84_000_000_000_000

KINDS = {
    "rsp_16_bit": of_rsp(),
    "rsp_8_bit": of_rsp(bits=8, beamlets=122),
    "rsp_4_bit": of_rsp(bits=4, beamlets=244),
    "rsp_version_2": of_rsp(version=2),
    "rsp_version_4": of_rsp(version=4, bits=4, beamlets=244),
    "spead_digitiser": Kind(("--format", "spead", "--payload", 1024), 2, 2, digitiser, lambda i: 3000 + i,
                            lambda packet: made_up(packet, 15, 1024)),
    "spead_64_40": Kind(
        ("--format", "spead", "--payload", 600, "--address-bits", 40, "--items", 5), 1, 1,
        lambda stream, i: spead([(2, 600), (0x333333, 9), (1, 77 + i), (3, 0), (4, 600)], samples(i, 600), 40), lambda i: 77 + i),
    "spead_heaps": Kind(
        ("--format", "spead", "--payload", 500, "--heap-packets", 4, "--items", 11, "--number", "0x1600:2048", "--stream-number", "0x4101"),
        2, 1, f_engine, lambda i: 2800 + i, lambda packet: made_up(packet, 11, 500)),
    # A stride of heap counters.
    "spead_stride": Kind(
        ("--format", "spead", "--payload", 600, "--number", "1:16"), 1, 1,
        lambda stream, i: spead([(1, 16 * (400 + i) + 5), (2, 600), (3, 0), (4, 600), (0x1000, 0, False)], samples(i, 600)),
        lambda i: 400 + i, lambda packet: made_up(packet, 15, 600)),
    "vdif": Kind(("--format", "vdif", "--payload", 1000, "--frames-per-second", 40), 2, 2,
                 lambda stream, i: vdif(40, FRAME_FIRST + i, 5, samples(i, 1000, stream)), lambda i: FRAME_FIRST + i),
    # All threads at one port, with headers of 16 bytes, behind VTP's sequence number, which counts them together.
    "vdif_threads": Kind(
        ("--format", "vdif", "--payload", 1000, "--frames-per-second", 40, "--legacy", "--vtp", "--stream-number", "thread"), 3, 1,
        lambda stream, i: struct.pack("<Q", 3 * i + stream) + vdif(40, FRAME_FIRST + i, stream, samples(i, 1000, stream), legacy=True),
        lambda i: FRAME_FIRST + i),
    "lofar2": Kind(("--format", "lofar2", "--beamlets", 20), 2, 2,
                   lambda stream, i: lofar2(LOFAR2_FIRST + i, 2001, 20 * stream, samples(i, 320, stream)), lambda i: LOFAR2_FIRST + i),
    # A counter of samples above a word of other things, and the board in that word; one port for both boards.
    "raw_places": Kind(
        ("--format", "raw", "--payload", 900, "--header-bytes", 24, "--number", "8:8:be:16:256", "--stream-number", "3:1"), 2, 1,
        lambda stream, i: raw(struct.pack(">BBBBIQQ", 9, 8, 7, stream, 3, (5000 + i) * 256 << 16 | 0xabcd, 1), 900, stream, i),
        lambda i: 5000 + i),
    # A counter of 8 bytes, the lowest one first, as VTP's; nobody has told that, and it is seen.
    "raw_little": Kind(("--format", "raw", "--payload", 900), 1, 1, lambda stream, i: raw(struct.pack("<Q", 40 + i), 900, stream, i),
                       lambda i: 40 + i),
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


def spead_control(scene):
    """Descriptors and stream control are no data, and nothing is wrong with them; a packet that is none says why."""
    port = free_ports(1)
    receiver = scene.receive("udp", "--format", "spead", "--payload", 1024, "--udp-port", port, "--block", BLOCK, "--once")
    descriptor = spead([(1, 1), (2, 300), (3, 0), (4, 300), (5, 0, False), (5, 60, False)], samples(1, 300))
    stop = spead([(1, 9), (2, 0), (3, 0), (4, 0), (6, 2)], b"")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for packet in (descriptor, *(digitiser(0, i) for i in range(40)), spead([(1, 3040), (3, 0), (4, 9)], samples(1, 9)), stop):
            out.sendto(packet, ("127.0.0.1", port))
    got = receiver.end()["streams"][0]
    equal({name: got[name] for name in ("received", "missing", "control", "invalid")}, {"received": 40, "missing": 0, "control": 2, "invalid": 1},
          "counters")


def to_group(source, group, port, packet):
    """A datagram by the loopback's interface, from one of its addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((source, 0))
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        s.sendto(packet, (group, port))


def counter(stream, i):
    return raw(struct.pack(">Q", 3000 + i), 600, stream, i)


def multicast(scene):
    """A group for each stream, all at one port; datagrams of others that this machine has joined, or to another group, are nobody's."""
    kind = Kind(("--format", "raw", "--payload", 600), 2, 2, counter, lambda i: 3000 + i)
    port = free_ports(1)
    groups = [f"239.{port >> 8}.{port & 255}.{stream + 1}" for stream in range(3)]
    receiver, path = receive(scene, kind, "udp", "--udp-port", port, "--group", f"{groups[0]}+1")
    for stream, packet in packets_of(kind):
        to_group("127.0.0.1", groups[stream], port, packet)
        to_group("127.0.0.1", groups[2], port, packet)
    compare(kind, receiver.end(), path)


# Joins the groups by the second interface, and sends to them by that one and then by the first.
BY_TWO_INTERFACES = """
import socket, sys
port, groups, strange = int(sys.argv[1]), sys.argv[2].split(","), bytes.fromhex(sys.argv[4])
packets = open(sys.argv[3]).read().split()
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("", 0))
senders = []
for address in ("198.51.100.1", "127.0.0.1"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    senders.append(s)
for group in groups:
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton("198.51.100.1"))
    senders[0].sendto(strange, (group, port))
for i, packet in enumerate(packets):
    senders[1].sendto(bytes.fromhex(packet), (groups[i % len(groups)], port))
"""


def multicast_interface(scene):
    """What comes by another interface, where a process of this host has joined the same group, is not taken."""
    kind = Kind(("--format", "raw", "--payload", 600), 2, 2, counter, lambda i: 3000 + i)
    port = free_ports(1)
    groups = [f"239.{port >> 8}.{port & 255}.{stream + 1}" for stream in range(2)]
    scene.prefix = scene.namespace("ip link set lo multicast on up; ip link add second type veth peer name nobody; ip link set nobody up; ip addr add 198.51.100.1/24 dev second; "
                                   "ip link set second up")
    receiver, path = receive(scene, kind, "udp", "--udp-port", port, "--group", f"{groups[0]}+1")
    packets = list(packets_of(kind))
    equal([stream for stream, _ in packets[:2]], [0, 1], "the streams of the first packets")
    with open(f"{scene.folder}/packets", "w", encoding="ascii") as file:
        file.writelines(f"{packet.hex()}\n" for _, packet in packets)
    scene.run("python3", "-c", BY_TWO_INTERFACES, str(port), ",".join(groups), f"{scene.folder}/packets", counter(7, 5).hex())
    compare(kind, receiver.end(), path)


def multicast_source(scene):
    """A group of one source: what comes from another one does not come."""
    kind = Kind(("--format", "raw", "--payload", 600), 1, 1, counter, lambda i: 3000 + i)
    port = free_ports(1)
    group = f"232.{port >> 8}.{port & 255}.1"
    receiver, path = receive(scene, kind, "udp", "--udp-port", port, "--group", f"{group}@127.0.0.2")
    for _, packet in packets_of(kind):
        to_group("127.0.0.3", group, port, counter(7, 5))
        to_group("127.0.0.2", group, port, packet)
    compare(kind, receiver.end(), path)


def multicast_both(scene):
    """weft's sender sends to the groups that the receiver tells it, or, knowing nothing of weft's, to one that it is told."""
    words = ("--format", "raw", "--payload", 600)
    for groups in ("239.77.1.1", "239.77.1.1+2"):
        receiver = scene.receive("udp", *words, "--streams", 3, "--group", groups, "--once")
        sent = scene.send("udp", *words, "--streams", 3, "--packets", 200, "--rate", 5).end()
        got = receiver.end()
        equal((total(sent, "sent"), total(got, "received"), total(got, "missing")), (600, 600, 0), f"sent, received, missing over {groups}")
    port = free_ports(1)
    receiver = scene.receive("udp", *words, "--udp-port", port, "--group", "239.77.1.1", "--once")
    scene.start([f"{scene.build}/bin/weft", "stream", "send", "--plain-udp", f"239.77.1.1:{port}", "--bind", "127.0.0.1", "--ttl", 0,
                 *words, "--packets", 200, "--rate", 5]).end()
    got = receiver.end()
    equal((total(got, "received"), total(got, "missing")), (200, 0), "received, missing of plain UDP")


def multicast_refused(scene):
    """Groups that nobody can join say so."""
    for words, why in ((("--group", "192.0.2.1"), "224.0.0.0 to 239.255.255.255"), (("--group", "239.1.1.1+2", "--streams", 2), "3 groups for 2 streams"),
                       (("--group", "239.1.1.1", "--transport", "tcp"), "for --transport udp")):
        command = scene.start([f"{scene.build}/bin/weft", "stream", "recv", *(() if "tcp" in words else ("--transport", "udp")), *words])
        command.end(status=2)
        check(any(why in line for line in command.errors), f"no '{why}' in {command.errors}")


CASES = {f"format_{name}": format_of(kind) for name, kind in KINDS.items()} | {
    "format_spead_control": spead_control,
    "udp_multicast": multicast,
    "udp_multicast_interface": multicast_interface,
    "udp_multicast_source": multicast_source,
    "udp_multicast_both": multicast_both,
    "multicast_refused": multicast_refused,
}
