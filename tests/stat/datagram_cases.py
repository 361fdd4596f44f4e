"""What UC and UD count, against what WEFT_FAULT did: to the last datagram.

Each case runs the two sides of datagram_sides.py as processes of their own, asks `weft stat` about both when they are through, and
returns what it said."""

import json
import os
import shutil
import subprocess
import time

import apps

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's
SEGMENTS = 12  # datagrams of a large message


def installed():
    return subprocess.run([PYTHON, "-c", "import pyverbs"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def check(right, sentence, *sides):
    if not right:
        used = [{name: value for name, value in s["device"].items() if value} for s in sides]
        raise apps.Failed(f"{sentence}; {json.dumps(used)}")


def stride(place):
    return 65456 if place.name == "host" else 1424  # of UC (wire.md 8.2)


def said(scene, process):
    """The line that a side prints when it is through."""
    while time.monotonic() < scene.until:
        if (line := process.text().strip()).endswith("}"):
            return json.loads(line.splitlines()[-1])
        if process.process.poll() is not None:
            break
        time.sleep(0.05)
    raise apps.Failed(f"no line of figures: {process.text()}")


def run(scene, kind, plan, at_sender="", at_receiver=""):
    script = f"{scene.product.root}/datagram_sides.py"
    shutil.copy(f"{HERE}/datagram_sides.py", script)
    words = [kind, scene.place.address, str(apps.free_port()), json.dumps(plan)]
    started = []
    for side, (role, fault) in enumerate((("receiver", at_receiver), ("sender", at_sender))):
        environment = [f"WEFT_FAULT={fault}"] if fault else []
        started.append(scene.start(side, [PYTHON, script, role, *words], environment))
    receiver, sender = started
    said(scene, sender)
    return receiver, sender, said(scene, receiver)


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
    # The small Writes push the large messages out of the receiver's window (wire.md 9.2 rule 4): then they are given up.
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
    """Doubles at the receiver, and some so late that Sends do not wait for them (wire.md 9.2 rule 3): each copy is counted."""
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


CASES = {"uc_lost": uc_lost, "uc_copies": uc_copies, "uc_receives": uc_receives, "ud": ud}
