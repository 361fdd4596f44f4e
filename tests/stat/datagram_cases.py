"""What UC and UD count, against what WEFT_FAULT did: to the last datagram.

Each case runs the two sides of datagram_sides.py as processes of their own, asks `weft stat` about both when they are through, and
returns what it said."""

import collections
import json
import os
import shutil
import signal
import struct
import subprocess
import time
from typing import NamedTuple

import apps
import captures

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's
SEGMENTS = 12  # datagrams of a large message
CONTEXTS = 16  # Writes with immediate that a receiver keeps track of at a time (spec/wdp-uc 3.6)


def installed():
    return subprocess.run([PYTHON, "-c", "import pyverbs"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def check(right, sentence, *sides):
    if not right:
        used = [{name: value for name, value in s["device"].items() if value} for s in sides]
        raise apps.Failed(f"{sentence}; {json.dumps(used)}")


def stride(place):
    return 65456 if place.name == "host" else 1424  # of UC (spec/wdp-uc 2.4)


def said(scene, process):
    """The line that a side prints when it is through."""
    while time.monotonic() < scene.until:
        if (line := process.text().strip()).endswith("}"):
            return json.loads(line.splitlines()[-1])
        if process.process.poll() is not None:
            break
        time.sleep(0.05)
    raise apps.Failed(f"no line of figures: {process.text()}")


def run(scene, kind, plan, at_sender="", at_receiver="", environment=()):
    script = f"{scene.product.root}/datagram_sides.py"
    shutil.copy(f"{HERE}/datagram_sides.py", script)
    words = [kind, scene.place.address, str(apps.free_port()), json.dumps(plan)]
    started = []
    for side, (role, fault) in enumerate((("receiver", at_receiver), ("sender", at_sender))):
        variables = [f"WEFT_FAULT={fault}"] if fault else []
        started.append(scene.start(side, [PYTHON, script, role, *words], [*variables, *environment]))
    receiver, sender = started
    said(scene, sender)
    return receiver, sender, said(scene, receiver)


class Dropped(NamedTuple):
    """A datagram of UC's data, as the fault log has it (spec/wdp-uc 2.2)."""

    psn: int
    msn: int
    mlen: int
    opcode: int
    stride: int
    immediate: int
    payload: int


def dropped(file):
    """The datagrams of data in a sender's fault log, and how many others there are."""
    data, others = [], 0
    with open(file, encoding="ascii") as log:
        for way, _, size, front in map(str.split, log):
            check(way == "out", f"{way} in the log of who sends")
            front = bytes.fromhex(front)
            if front[1] >> 4 != 1:
                others += 1
                continue
            psn, msn, mlen, rdmap, stride, immediate = struct.unpack_from(">8xI4xI4xI1xBH4xI", front)
            data.append(Dropped(psn, msn, mlen, rdmap & 15, stride, immediate, int(size) - 48))
    return data, others


def injected(side, what):
    return side["device"][f"fault_injected.{what}"]


def when_all_is_known(scene, receiver, sender):
    """The receiver may learn only from a keepalive, 10 s later, how far its peer sent: the last datagrams may be lost, too."""
    while True:  # until nothing was said between the two looks
        went = scene.counters(sender)
        sent = went["device"]["fpdus_sent"]
        scene.wait_for(receiver, f"{sent} datagrams, come or lost", lambda c: accounted(c) == sent)
        time.sleep(0.1)  # what had no room is counted 20 ms after something came
        came = scene.counters(receiver)
        if scene.counters(sender)["device"]["datagrams_sent"] == went["device"]["datagrams_sent"]:
            return came, went


def accounted(receiver):
    """Of UC: all datagrams that the peer sent, once each."""
    device = receiver["device"]
    copies = device["datagrams_duplicate"] + device["datagram_dropped.stale_psn"]
    return device["fpdus_received"] - copies + device["datagrams_lost"]


def on_the_way(receiver, sender):
    """What the injectors did to datagrams of any kind is the whole difference between what was sent and what came."""
    lost = sum(injected(sender, f"{what}_out") + injected(receiver, f"{what}_in") for what in ("lost", "overflowed"))
    copies = injected(sender, "duplicated_out") + injected(receiver, "duplicated_in")
    lost += injected(sender, "unsent") + receiver["device"]["socket_overruns"]
    check(sender["device"]["datagrams_sent"] - lost + copies == receiver["device"]["datagrams_received"],
          f"{lost} were lost, {copies} doubled", sender, receiver)
    # Those of a handshake and its keepalives have no numbers that could show gaps.
    control = sender["device"]["datagrams_sent"] - sender["device"]["fpdus_sent"]
    return lost, copies, control


# --- cases

def uc_lost(scene):
    """Loss and reordering at the sender: each gap is counted, and each message that lacks something."""
    large = SEGMENTS * stride(scene.place)
    # The small Writes push the large messages out of the receiver's window (spec/wdp-uc 3.4): then they are given up.
    plan = {"receives": 400, "messages": [["write", 50, large], ["write_with_imm", 100, large], ["send", 100, large],
                                          ["write", 1300, 64], ["send", 50, 64]]}
    receiver, sender, seen = run(scene, "uc", plan, at_sender="loss:0.03,reorder:0.1,seed:11,way:out")
    came, went = when_all_is_known(scene, receiver, sender)
    lost, copies, control = on_the_way(came, went)
    device = came["device"]
    check(went["device"]["fpdus_sent"] == 250 * SEGMENTS + 1350, "other datagrams than were cut", went)
    check(copies == 0 and device["datagrams_duplicate"] == 0, "nothing was doubled", came)
    check(lost > 60 and lost - control <= device["datagrams_lost"] <= lost, f"{lost} of all datagrams were lost", came, went)
    control_came = device["datagrams_received"] - device["fpdus_received"]
    check(device["datagrams_lost"] == lost - (control - control_came), f"of {control} without numbers {control_came} came", came, went)
    check(0 < device["datagrams_reordered"] <= injected(went, "reordered_out"), "reordering", came, went)
    check(device["datagrams_late"] <= device["datagrams_reordered"], "more late than out of order", came)
    small = device["messages_received.send"] + device["messages_received.write"] + device["messages_incomplete"] - 200
    check(0 < small <= 50, f"of 200 large messages and 50 small ones {small + 200} were noticed", came)
    check(device["messages_incomplete"] > 20 and device["messages_unreceived"] == 0, "incomplete messages", came)
    check(seen["send"] == device["messages_received.send"], f"completions: {seen}", came)
    check(seen["write_with_imm"] == device["messages_received.write"], f"completions: {seen}", came)
    return came, went


def uc_copies(scene):
    """Doubles at the receiver, and some so late that Sends do not wait for them (spec/wdp-uc 3.3): each copy is counted."""
    large = SEGMENTS * stride(scene.place)
    plan = {"receives": 200, "messages": [["write_with_imm", 100, large], ["send", 100, large]]}
    receiver, sender, seen = run(scene, "uc", plan, at_receiver="duplicate:0.05,reorder:0.05,reorder_delay:2ms,seed:12,way:in")
    came, went = when_all_is_known(scene, receiver, sender)
    lost, copies, control = on_the_way(came, went)
    device = came["device"]
    check(device["datagrams_lost"] == lost == device["socket_overruns"], "nothing was lost on purpose", came)
    dropped = device["datagrams_duplicate"] + device["datagram_dropped.stale_psn"]
    control_copies = device["datagrams_received"] - device["fpdus_received"] - control
    check(copies > 60 and dropped == copies - control_copies, f"{copies} of all datagrams were doubled", came, went)
    check(device["datagram_dropped.duplicate"] == device["datagrams_duplicate"], "of the engine and of its queue pair", came)
    check(0 < device["datagrams_late"] <= device["datagrams_reordered"], "late ones", came)
    if lost == 0:
        told = seen["write_with_imm"] + seen["send"]
        check(told + device["messages_incomplete"] == 200, f"completions: {seen}", came)
    return came, went


def uc_receives(scene):
    """More messages than receives, and nothing is lost on the way."""
    plan = {"receives": 50, "messages": [["write_with_imm", 30, 64], ["send", 60, 64]]}
    receiver, sender, seen = run(scene, "uc", plan)
    came, went = when_all_is_known(scene, receiver, sender)
    device = came["device"]
    check(seen == {"write_with_imm": 30, "send": 20}, f"completions: {seen}", came)
    check(device["messages_unreceived"] == device["datagram_dropped.no_receive"] == 40, "40 messages found no receive", came)
    check(device["datagrams_lost"] == device["messages_incomplete"] == 0, "nothing was lost", came)
    return came, went


def ud(scene):
    """Loss and doubles at the sender, and fewer receives than messages. UD has no numbers that could show gaps."""
    plan = {"receives": 500, "messages": [["send", 1000, 1000]]}
    receiver, sender, seen = run(scene, "ud", plan, at_sender="loss:0.05,duplicate:0.03,reorder:0.1,seed:13,way:out")
    time.sleep(0.1)  # as in when_all_is_known()
    came, went = scene.counters(receiver), scene.counters(sender)
    lost, copies, control = on_the_way(came, went)
    device = came["device"]
    check(went["device"]["fpdus_sent"] == 1000 and control == 0, "other datagrams than messages", went)
    check(lost > 20 and copies > 10, f"{lost} lost, {copies} doubled", went)
    check(device["fpdus_received"] == seen["send"] == device["messages_received.send"] == 500, f"completions: {seen}", came)
    check(device["fpdus_received"] + device["messages_unreceived"] == 1000 - lost + copies, f"{lost} lost, {copies} doubled", came, went)
    return came, went


class Message(NamedTuple):
    """What was posted, and what the injector left of it."""

    kind: str
    length: int
    immediate: int
    datagrams: int
    missing: int

    def seen(self):
        return [self.kind.replace("send_with_imm", "send"), self.length, self.immediate if self.kind.endswith("imm") else None]


def messages(plan, place, lost):
    """All of a plan whose messages go in step, one by one."""
    missing, strides, all_ = collections.Counter(d.msn for d in lost), {d.msn: d.stride for d in lost}, []
    for kind, count, size, _ in plan["messages"]:
        for _ in range(count):
            number = len(all_)
            stride_used = strides.get(number + 1, stride(place))
            all_.append(Message(kind, size + number, number, -(-(size + number) // stride_used), missing[number + 1]))
    for d in lost:
        message = all_[d.msn - 1]  # they are numbered from 1
        check(d.mlen == message.length, f"{d} is not of {message}")
        check(d.immediate == (message.immediate if message.kind.endswith("imm") else 0), f"{d} is not of {message}")
    return all_


def given_up(noticed):
    """Of Sends and Writes with immediate, how many the receiver has given up before it hears that no more will come."""
    count = open_send = open_writes = 0
    for m in (m for m in noticed if m.missing < m.datagrams):
        if m.kind == "write_with_imm" and m.datagrams > 1 and open_writes == CONTEXTS:
            count, open_writes = count + 1, open_writes - 1
        if m.kind == "write_with_imm" and m.missing:
            open_writes += 1
        else:  # it takes the receive of a Send that lacks something
            count, open_send = count + open_send, int(m.missing > 0)
    return count


def uc_messages(scene):
    """Loss alone, message by message: the counters and the completions are what the fault log leaves, before the goodbye and behind."""
    large = 2 * stride(scene.place) + 100
    turn = [["write_with_imm", 9, large, "in step"], ["send", 4, large, "in step"], ["send_with_imm", 5, 64, "in step"],
            ["write", 2, large, "in step"], ["send_with_imm", 4, large, "in step"], ["write_with_imm", 4, 64, "in step"],
            ["send", 3, 64, "in step"]]
    plan = {"receives": 700, "growing": True, "each": True, "messages": 20 * turn}
    log = f"{captures.open_folder(scene.product.root)}/lost"
    receiver, sender, seen = run(scene, "uc", plan, "loss:0.08,seed:14,way:out", environment=[f"WEFT_FAULT_LOG={log}"])
    before, went = when_all_is_known(scene, receiver, sender)
    lost, others = dropped(log)
    all_ = messages(plan, scene.place, lost)
    noticed = [m for m in all_ if m.kind != "write"]
    broken = [m for m in noticed if 0 < m.missing < m.datagrams]
    writes, partly = sum(m.kind == "write_with_imm" for m in broken), len(broken)
    whole = [m for m in noticed if not m.missing]
    check(partly > writes > CONTEXTS and len(broken) + len(whole) < len(noticed), f"{len(broken)} lack something, {len(whole)} are whole, of {len(noticed)}")

    device = before["device"]
    check(device["socket_overruns"] == device["datagrams_duplicate"] == 0, "more than the injector lost something", before)
    check(injected(went, "lost_out") == len(lost) + others, f"the log has {len(lost)} of data and {others} others", went)
    check(device["datagrams_lost"] == len(lost), f"{len(lost)} datagrams of data were dropped", before)
    check(device["fpdus_received"] == went["device"]["fpdus_sent"] - len(lost), f"{len(lost)} datagrams of data were dropped", before, went)
    check(seen["each"] == [m.seen() for m in whole], f"completions: {seen}, not of {[m.seen() for m in whole]}", before)
    for kind in ("send", "write"):
        check(device[f"messages_received.{kind}"] == sum(m.kind.startswith(kind) for m in whole), f"whole messages: {whole}", before)
    check(device["bytes_received.send"] == sum(m.length for m in whole if m.kind.startswith("send")), f"whole messages: {whole}", before)
    written = sum(m.length for m in all_ if m.kind.startswith("write")) - sum(d.payload for d in lost if d.opcode == 0)
    check(device["bytes_received.write"] == written, f"{written} bytes of Writes came", before)
    check(device["messages_incomplete"] == given_up(noticed), f"{given_up(noticed)} of {partly} that lack something are given up", before)
    check(device["messages_unreceived"] == 0, "there were receives", before)

    os.kill(said(scene, sender)["pid"], signal.SIGUSR1)
    scene.wait_for(receiver, f"all {partly} that lack something", lambda c: c["device"]["messages_incomplete"] == partly)
    time.sleep(0.2)  # and no others
    after = scene.counters(receiver)
    check(after["device"]["messages_incomplete"] == partly, f"{partly} lack something", after)
    for name in ("datagrams_lost", "messages_received.send", "messages_received.write", "messages_unreceived"):
        check(after["device"][name] == device[name], f"{name} behind the goodbye", before, after)
    return after, scene.counters(sender)


def overruns(kind, first, then, environment=()):
    """Some are lost on the way, and a receiver that is stopped has no room for others. Each message is a datagram by itself, for a
    train that finds no room counts as one."""
    def case(scene):
        few, many, size = 50, 4050, 1000  # more than a socket of weft's has room for; of fewer than 4096 the receiver takes the gap at once
        plan = {"receives": 2 * few + many, "each": True, "messages": [
            [first, few, size, "in step"], ["stop", 0, 0], [then, many, size, "alone"], ["go on", 0, 0], [first, few, size, "in step"]]}
        log = f"{captures.open_folder(scene.product.root)}/lost"
        receiver, sender, seen = run(scene, kind, plan, "loss:0.02,seed:15,way:out", environment=[f"WEFT_FAULT_LOG={log}", *environment])
        went = scene.counters(sender)
        sent, lost = went["device"]["datagrams_sent"], injected(went, "lost_out")
        check(sent == went["device"]["fpdus_sent"] == 2 * few + many, "other datagrams than messages", went)
        came = scene.wait_for(receiver, f"all of {sent} datagrams but {lost}, or news of them", lambda c:
                              c["device"]["datagrams_received"] + c["device"]["socket_overruns"] == sent - lost)
        device = came["device"]
        no_room = device["socket_overruns"]
        check(lost > few and no_room > few, f"{lost} were lost, {no_room} found no room", came, went)
        arrived = [immediate for _, _, immediate in seen["each"]]
        check(len(arrived) == len(set(arrived)) == sent - lost - no_room == device["fpdus_received"], f"completions: {arrived}", came, went)
        check(arrived == sorted(arrived), f"completions: {arrived}")
        if kind == "uc":
            # Nobody says where a static session begins and ends: what stands between two that came is known to be lost.
            taken, _ = dropped(log)
            between = sum(arrived[0] < d.immediate < arrived[-1] for d in taken)
            check(len(taken) == lost and not {d.immediate for d in taken} & set(arrived), f"dropped: {taken}; completions: {arrived}")
            check(device["datagrams_lost"] == between + no_room == arrived[-1] - arrived[0] + 1 - len(arrived),
                  f"{between} were lost between two that came, {no_room} found no room", came, went)
            check(device["messages_incomplete"] == device["messages_unreceived"] == 0, "all came whole, or not at all", came)
        else:
            check(device["datagrams_lost"] == 0, "UD has no numbers that could show gaps", came)
        return came, went
    return case


CASES = {"uc_lost": uc_lost, "uc_messages": uc_messages, "uc_copies": uc_copies, "uc_receives": uc_receives, "ud": ud,
         "uc_overruns": overruns("uc", "send_with_imm", "write_with_imm", ["WEFT_UC=static"]),
         "ud_overruns": overruns("ud", "send_with_imm", "send_with_imm")}
