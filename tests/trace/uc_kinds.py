"""A UC connection that says each kind of datagram there is, traced on both sides: all of them are decoded, and there are as many of
each as were posted."""

import collections
import json
import os
import re
import shutil
import signal
import time

import apps
import datagrams
from datagrams import CTL, UC, check, wireshark

SIDES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../stat/datagram_sides.py")
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's
REQ, REP, RTU, REJ, DREQ, DREP, KA, KAA, PROBE, PROBEA, ERR = 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13
WRITE, READ_REQUEST, READ_RESPONSE, SEND = range(4)
# Opcode, and whether there is an immediate.
KINDS = {"write": (WRITE, False), "write_with_imm": (WRITE, True), "send": (SEND, False), "send_with_imm": (SEND, True), "refused": (WRITE, False)}
# A keepalive asks when half of a window is under way, which is 4 MiB at most (docs/design/11).
MUCH = 3 << 20


class Case(datagrams.Case):
    def __init__(self):
        super().__init__("uc_kinds", PYTHON, "", ())

    def run(self, place, product, started):
        stride = 65456 if place.name == "host" else 1424  # spec/wdp-uc 2.4
        # How many, and how long. Reads come last: all else that was said has been heard when they are answered.
        posted = [("write", 3, 2 * stride + 5), ("write_with_imm", 4, 2 * stride + 6), ("send", 5, 2 * stride + 7), ("send_with_imm", 6, stride),
                  ("send_with_imm", 2, 1), ("write", 1, MUCH), ("refused", 1, 100), ("write_with_imm", 1, 0), ("read", 3, stride + 8)]
        plan = {"receives": 30, "each": True, "messages": [[*words, "in step"] for words in posted]}
        files = traced(plan, place, product, started)
        scene = wireshark.Scene(None)
        try:
            judge(posted, stride, place.name != "host", *(datagrams.Capture(scene, file) for file in files))
        except wireshark.Failed as e:
            raise apps.Failed(str(e)) from e
        finally:
            scene.close()


def traced(plan, place, product, started):
    """The files of the sender and of the receiver, when both have the end of the goodbye."""
    script = shutil.copy(SIDES, product.root)
    until, folders, port = time.monotonic() + datagrams.SECONDS, [product.folder(), product.folder()], str(apps.free_port())
    for side, role in enumerate(("receiver", "sender")):
        words = [PYTHON, script, role, "uc", place.address, port, json.dumps(plan)]
        started.append(apps.Process(place.enter(side) + product.trace(words, folders[side])))
    receiver, sender = started[-2:]
    seen = said(receiver, until)["each"]
    wanted = sum(count for kind, count, *_ in plan["messages"] if kind in ("write_with_imm", "send", "send_with_imm"))
    check(len(seen) == wanted, f"{len(seen)} completions of {wanted}: {seen}")
    os.kill(said(sender, until)["pid"], signal.SIGUSR1)
    files = [datagrams.only_file(folder) for folder in reversed(folders)]
    while not all(map(has_drep, files)):
        check(time.monotonic() < until, f"no DREP in both of {files}")
        time.sleep(0.05)
    for process in (receiver, sender):
        process.end()
    return files


def said(process, until):
    """The line that a side prints when it is through."""
    while not (line := process.text().strip()).endswith("}"):
        check(time.monotonic() < until and process.process.poll() is None, f"no line of figures: {process.text()}")
        time.sleep(0.05)
    return json.loads(line.splitlines()[-1])


def has_drep(file):
    with open(file, "rb") as f:
        # spec/wdp 3.1: magic, CTL with a CRC, type, and length 64.
        return re.search(rb"\xd1\x08.{6}" + bytes([DREP]) + rb".\0\x40", f.read(), re.DOTALL) is not None


def field(packet, name):
    return wireshark.number(packet[name][0])


def judge(posted, stride, has_probes, sender, receiver):
    data = [[(s, p) for s, p in c.decoded if field(p, "class") == UC] for c in (sender, receiver)]
    control = [[(s, field(p, "ctl.type")) for s, p in c.decoded if field(p, "class") == CTL] for c in (sender, receiver)]
    for capture, d, c in zip((sender, receiver), data, control):
        check(len(d) + len(c) == len(capture.decoded), f"{capture.file}: other classes than CTL and UC")
    (source,), (peer,) = ({s for s, p in data[0] if (field(p, "rdmap.opcode") == READ_RESPONSE) == answers} for answers in (False, True))
    check(source != peer, "the two sides have one address")

    # spec/wdp-uc 2.1: of each message so many datagrams, each with its offset.
    wanted = collections.Counter()
    for kind, count, length in posted:
        if kind != "read":
            wanted[KINDS[kind]] += count * max(1, -(-length // stride))
    for capture, packets in zip((sender, receiver), data):
        one_way = [p for s, p in packets if s == source and field(p, "rdmap.opcode") != READ_REQUEST]
        there = collections.Counter((field(p, "rdmap.opcode"), bool(field(p, "flags.imm"))) for p in one_way)
        check(there == wanted, f"{capture.file}: datagrams by opcode and immediate: {there}, not {wanted}")
        check(len({(field(p, "msn"), field(p, "mo")) for p in one_way}) == len(one_way), f"{capture.file}: some came twice")
        psns = {field(p, "psn") for s, p in packets if s == source}
        check(sum((psn + 1) % 2**32 not in psns for psn in psns) == 1, f"{capture.file}: PSNs are missing among {sorted(psns)}")
        judge_reads(capture.file, posted, stride, [p for s, p in packets if s == source], [p for s, p in packets if s == peer])
    check(sender.messages == receiver.messages, f"only in one of {sender.file} and {receiver.file}: {sender.messages ^ receiver.messages}")

    for capture, said_ in zip((sender, receiver), control):
        ours, theirs = ({kind for s, kind in said_ if s == who} for who in (source, peer))
        probes = {PROBE, PROBEA} if has_probes else set()
        # Who is called too early says so.
        check((ours | theirs) - {REJ} == {REQ, REP, RTU, DREQ, DREP, KA, KAA, ERR} | probes, f"{capture.file}: CTL of types {ours} and {theirs}")
        check({KA, DREQ} | probes <= ours and {KAA, ERR, DREP} | probes <= theirs, f"{capture.file}: CTL of types {ours} and {theirs}")
        check(len([kind for _, kind in said_ if kind == ERR]) == 1, f"{capture.file}: one Write was refused")


def judge_reads(file, posted, stride, requests, responses):
    """A Read asks again for what is late, by the same RID: that adds nothing."""
    (count, length), = ((count, length) for kind, count, length in posted if kind == "read")
    ranges = collections.defaultdict(list)
    for p in requests:
        if field(p, "rdmap.opcode") == READ_REQUEST and field(p, "read.attempt") == 0:
            check(field(p, "mlen") == length, f"{file}: a Read of another length: {p}")
            ranges[field(p, "rid")].append((field(p, "mo"), field(p, "read.length")))
    check(len(ranges) == count, f"{file}: Read Requests {ranges}")
    for asked in map(sorted, ranges.values()):
        check(asked[0][0] == 0 and sum(size for _, size in asked) == length
              and all(a + size == b for (a, size), (b, _) in zip(asked, asked[1:])), f"{file}: Read Requests {ranges}")
    answers = {(field(p, "rid"), field(p, "mo")) for p in responses}
    check(answers == {(rid, mo) for rid in ranges for mo in range(0, length, stride)}, f"{file}: Read Responses {answers} to {ranges}")
    check(all(field(p, "mlen") == length and field(p, "rdmap.opcode") == READ_RESPONSE for p in responses), f"{file}: other answers: {responses}")
