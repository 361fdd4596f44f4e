"""Cases about losses: what the faults took is missing, by name and number, and nothing else is. What they only double or hold back
is not."""

import os
import shutil
import signal

from cases_circuits import arrived, counters
from scene import Skipped, blocks, check, equal, total

BLOCK = 64
FIRST = 100 * BLOCK


def taken(path, transport):
    """What the fault log names: the datagrams' receivers and packet numbers. UC: datagrams without data are passed over; on
    loopback a Write is one datagram. UDP: of raw packets, or those of RSP."""
    lost = set()
    with open(path, encoding="ascii") as file:
        for way, to, size, front in map(str.split, file):
            equal(way, "out", "way")
            front = bytes.fromhex(front)
            if transport == "udp":
                lost.add((to, rsp_number(front) if int(size) == 7824 else int.from_bytes(front[:8], "big")))
            elif front[:2] == b"\xd1\x14":  # data of UC with an immediate: low 24 bits of the number, and packets - 1
                first, more = int.from_bytes(front[36:39], "big"), front[39]
                lost.update((to, first + i) for i in range(more + 1))
    return lost


def rsp_number(header):
    second, slice_ = (int.from_bytes(header[i:i + 4], "little") for i in (8, 12))
    return ((second * 200000000 + 512) // 1024 + slice_) // 16


def loss(transport, group=1, streams=1, packets=4000):
    """The receiver counts as missing what the faults took, and its consumer gets all the rest. The ring has room for all packets:
    a busy machine overruns nothing."""
    def case(scene):
        log = f"{scene.folder}/lost"
        receiver = scene.receive(transport, "--ring", scene.ring, "--block", BLOCK, "--blocks", 64, "--streams", streams,
                                 "--once")
        consumer = scene.consume()
        # The last words of UC's handshake take 300 ms: they are not to be counted.
        sent = scene.send(transport, "--packets", packets, "--first", FIRST, "--rate", 300, "--delay", 0.6, "--streams", streams,
                          "--packets-per-write", group,
                          environment={"WEFT_FAULT": "loss:0.02,way:out,seed:5", "WEFT_FAULT_LOG": log}).end()
        got = receiver.end()
        seen = consumer.end()
        lost = taken(log, transport)
        check(lost, "nothing was lost")
        by_stream = sorted(sum(to == one for to, _ in lost) for one in {to for to, _ in lost})
        equal(sorted(stream["missing"] for stream in got["streams"]), by_stream, "missing")
        equal((total(got, "received"), total(got, "overrun")), (streams * packets - len(lost), 0), "received, overrun")
        equal((seen["packets"], seen["wrong"]), (streams * packets - len(lost), 0), "packets and wrong ones of the consumer")
        equal(seen["missing"], len(lost) + streams * (-packets % BLOCK), "missing in the consumer's maps")
        if transport == "udp":
            equal(sent["faults"], {"lost": len(lost), "control": 0}, "faults")
        else:
            # The receiver's library knows them by their numbers, but none behind the last one that came.
            check(0 <= len(lost) // group - got["datagrams_lost"] <= 2, f"{got['datagrams_lost']} never came, of {len(lost)}")
    return case


def loss_which(transport, send=()):
    """Block by block the map names the packets that the faults took. In a ring that is used once, nothing lies in their slots,
    and in all others the packet with the number of the slot."""
    def case(scene):
        path, log = f"{scene.folder}/blocks", f"{scene.folder}/lost"
        shape = ("--format", "raw", "--payload", 1000)
        packets = 32 * BLOCK
        receiver = scene.receive(transport, *shape, "--file", path, "--block", BLOCK, "--blocks", 40, "--once")
        scene.send(transport, *shape, "--packets", packets, "--first", FIRST, "--rate", 40, "--delay", 0.6, *send,
                   environment={"WEFT_FAULT": "loss:0.03,burst:2,way:out,seed:5", "WEFT_FAULT_LOG": log}).end()
        got = receiver.end()["streams"][0]
        lost = {number for _, number in taken(log, transport)}
        check(len(lost) > 20, f"only {lost} were lost")
        here = {number: [] for number in range(FIRST // BLOCK, FIRST // BLOCK + 32)}
        for block in blocks(path):
            here[block.number] = [i for i in range(BLOCK) if block.has(i)]
            for i in range(BLOCK):
                if block.has(i):
                    equal(int.from_bytes(block.packet(i)[:8], "big"), block.first + i, "the number in a slot")
                else:
                    slot = block.data[i * block.slot_bytes:i * block.slot_bytes + 1008]
                    check(not any(slot), f"packet {block.first + i} lies there, and is said to be missing")
        for number, slots in here.items():
            equal(slots, [i for i in range(BLOCK) if number * BLOCK + i not in lost], f"packets of block {number}")
        equal((got["missing"], got["received"]), (len(lost), packets - len(lost)), "missing, received")
    return case


def loss_of_parts(scene):
    """Small datagrams and large Writes: most packets of a Write that lost one are found by their trailers."""
    scene.small_packets()
    environment = {"WEFT_FAULT": "loss:0.005,way:out,seed:3"}
    receiver = scene.receive("uc", "--ring", scene.ring, "--block", 64, "--blocks", 64, "--once")
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


def no_loss(transport):
    """A network that drops each hundredth packet, of either direction, takes nothing from those that ask for it again."""
    def case(scene):
        if shutil.which("nft", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            raise Skipped("nft is not installed")
        rule = "meta l4proto tcp numgen inc mod 100 == 99 counter drop"
        # Segment by segment, as a network sees them.
        setup = ("ip link set lo mtu 1500 gso_max_segs 1 up; nft add table ip lossy; "
                 "nft 'add chain ip lossy way { type filter hook output priority 0; }'; "
                 f"nft add rule ip lossy way {rule}")
        scene.prefix = scene.namespace(setup)
        by_tcp = {"WEFT_SAME_HOST": "off"}
        receiver = scene.receive(transport, "--ring", scene.ring, "--streams", 2, "--once", environment=by_tcp)
        consumer = scene.consume()
        scene.send(transport, "--streams", 2, "--packets", 1500, "--first", FIRST, "--rate", 100, environment=by_tcp).end()
        got = receiver.end()
        seen = consumer.end()
        counted = scene.run("nft", "list", "table", "ip", "lossy").split("counter packets ")[1].split()[0]
        check(int(counted) > 20, f"the network dropped {counted} packets only")
        for name in ("missing", "late", "duplicate", "overrun", "invalid", "gap"):
            equal(total(got, name), 0, name)
        equal(total(got, "received"), 3000, "received")
        equal((seen["packets"], seen["wrong"], seen["missing"]), (3000, 0, 2 * (-1500 % 256)), "packets, wrong, missing of the consumer")
    return case


def disorder(group=1, delay="200us", streams=2, packets=1500, block=256):
    """Datagrams of UC that come twice or behind later ones take nothing away: no packet is missing, none is there twice, and every
    byte is right. The faults are the receiver's own, so that one process counts what was done to it and what it made of that. Socket,
    ring and open blocks hold all that is sent: a receiver that is kept from running loses nothing, however long."""
    def case(scene):
        faults = {"WEFT_FAULT": f"duplicate:0.1,reorder:0.2,reorder_delay:{delay},seed:5,way:in"}
        shape = ("--format", "raw", "--payload", 500)
        receiver = scene.receive("uc", *shape, "--ring", scene.ring, "--block", block, "--blocks", 32, "--hold", 8, "--streams", streams, environment=faults)
        consumer = scene.consume()
        scene.send("uc", *shape, "--packets", packets, "--first", FIRST, "--rate", 20, "--streams", streams, "--packets-per-write", group).end()
        arrived(receiver, streams * packets)
        counted = counters(scene, receiver)
        receiver.kill(signal.SIGTERM)
        got = receiver.end()
        seen = consumer.end()
        for name in ("missing", "late", "duplicate", "overrun", "invalid", "gap"):
            equal(total(got, name), 0, name)
        equal(total(got, "received"), streams * packets, "received")
        equal((seen["packets"], seen["wrong"], seen["jumps"]), (streams * packets, 0, 0), "packets, wrong, jumps")
        equal(seen["missing"], streams * (-packets % block), "missing in the consumer's maps")

        done = {name: counted[f"fault_injected.{name}_in"] for name in ("datagrams", "duplicated", "reordered")}
        writes = streams * packets // group  # on loopback a datagram each; what else came were UC's own
        equal(counted["datagrams_received"], done["datagrams"] + done["duplicated"], "datagrams, each copy counted")
        equal(counted["fpdus_received"], writes + counted["datagrams_duplicate"], "of these with data")
        own_twice = done["duplicated"] - counted["datagrams_duplicate"]
        check(0 <= own_twice <= done["datagrams"] - writes, f"{done} was done, and {counted['datagrams_duplicate']} came twice")
        check(counted["datagrams_duplicate"] > writes // 20, f"only {counted['datagrams_duplicate']} came twice")
        check(0 < counted["datagrams_reordered"] <= done["reordered"], f"{done} was done, and {counted['datagrams_reordered']} were overtaken")
        # The library waits for those that are overtaken, but not for ever.
        equal(total(got, "out_of_order"), counted.get("datagrams_late", 0) * group, "packets that the ring got behind later ones")
    return case


CASES = {
    "disorder_uc": disorder(),
    "disorder_uc_grouped": disorder(group=4),
    "disorder_uc_far": disorder(delay="5ms"),
    "loss_udp": loss("udp", streams=2),
    "loss_uc": loss("uc"),
    "loss_uc_grouped": loss("uc", group=4),
    "loss_which_udp": loss_which("udp"),
    "loss_which_uc": loss_which("uc"),
    "loss_which_uc_grouped": loss_which("uc", ("--packets-per-write", 4)),
    "loss_of_parts": loss_of_parts,
    "no_loss_tcp": no_loss("tcp"),
    "no_loss_rc": no_loss("rc"),
}
