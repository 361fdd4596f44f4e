#!/usr/bin/env python3
"""Runs other people's programs under `weft trace` and asks tshark's iWARP dissectors what is in the files: no malformed frame, every
CRC right, the opcodes and lengths as sent, and the same in the files of both sides. As root also between two network namespaces,
where tcpdump records the same bytes on their way, and its capture has to hold the same FPDUs.

  trace.py --list                  the names of all cases
  trace.py --build DIR CASE...     runs them; DIR is the build directory

Exit status: 0 all good, 1 something failed, 77 nothing could be run.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../apps"), HERE]
import apps  # noqa: E402
import dissect  # noqa: E402
import traffic  # noqa: E402

SECONDS = 60
Failed = apps.Failed


def check(right, sentence):
    if not right:
        raise Failed(sentence)


class Product(apps.Product):
    """weft, and a folder that the user without rights may write."""

    def __init__(self, build):
        super().__init__(build)
        self.folders = 0

    def folder(self):
        self.folders += 1
        name = f"{self.root}/trace{self.folders}"
        os.mkdir(name)
        os.chmod(name, 0o777)
        return name

    def trace(self, program, folder, options=()):
        command = self.command(program)
        at = command.index("run")
        return [*command[:at], "trace", "-o", f"{folder}/%p.pcapng", *options, *command[at + 1:]]


def files_of(folder):
    return sorted(f"{folder}/{name}" for name in os.listdir(folder))


def only_file(folder):
    files = files_of(folder)
    check(len(files) == 1, f"one file was expected, and not {files}")
    mode = os.stat(files[0]).st_mode & 0o777
    check(mode == 0o600, f"{files[0]} has mode {mode:o}")
    return files[0]


def start(command, started):
    process = apps.Process(command)
    started.append(process)
    return process


# --- what a capture says

def messages_of(fpdus):
    """Messages, put together from their segments; weft's own opcodes stand between those of others and are left out."""
    messages, size, opcode = [], 0, None
    for fpdu in fpdus:
        if fpdu.opcode == traffic.DELIVERED:
            continue
        check(opcode in (None, fpdu.opcode), f"opcode {fpdu.opcode} within a message of opcode {opcode}")
        size += fpdu.payload()
        opcode = fpdu.opcode
        if fpdu.last:
            messages.append(traffic.Message(opcode, size))
            size, opcode = 0, None
    check(opcode is None, f"the last message, of opcode {opcode}, has no end")
    return messages


def without_first_empty_write(messages):
    """An Initiator may begin with an empty Write, so that the Responder may speak (wire.md 2.4)."""
    return messages[1:] if messages[:1] == [(traffic.WRITE, 0)] else messages


def judge_start_ups(capture, connections):
    requests = [s for s in capture.start_ups if s.is_request]
    replies = [s for s in capture.start_ups if not s.is_request]
    check(len(requests) == len(replies) == connections,
          f"{len(requests)} MPA Requests and {len(replies)} Replies, not {connections} each")
    for request, reply in zip(requests, replies):
        check((reply.source, reply.target) == (request.target, request.source), "a Reply without its Request")
        check(request.revision == reply.revision == 2 and not request.markers and not reply.markers and not reply.rejected,
              f"a start-up that weft does not make: {request}, {reply}")


def judge(capture, crc):
    """The two directions of the one connection: FPDUs from the initiator, and to it."""
    check(not capture.faults, f"{capture.file}: " + "\n  ".join(capture.faults))
    check(not capture.cut_short, f"{capture.file} is cut short")
    judge_start_ups(capture, 1)
    for start_up in capture.start_ups:
        check(start_up.crc == crc, f"the flag C is {start_up.crc}")
    (initiator, responder), = capture.connections()
    ways = (initiator, responder), (responder, initiator)
    check(set(capture.fpdus) <= set(ways), f"FPDUs of a connection without a start-up: {set(capture.fpdus) - set(ways)}")
    for way in ways:
        for fpdu in capture.fpdus.get(way, []):
            check(fpdu.crc_checked == crc, f"CRC of {fpdu} was {'' if fpdu.crc_checked else 'not '}checked")
            check(crc or fpdu.crc == 0, f"without CRC its field is 0 (wire.md 3.2), and not {fpdu.crc:#x}")
    return ways


def judge_messages(who, fpdus, expected):
    messages = without_first_empty_write(messages_of(fpdus))
    for number, (is_there, wanted) in enumerate(zip(messages, expected)):
        check(is_there == wanted, f"message {number} of the {who} is {is_there}, not {wanted}")
    check(len(messages) == len(expected), f"the {who} sent {len(messages)} messages, not {len(expected)}")


def same_fpdus(sender, receiver, way, at_end=0):
    """`at_end`: so many of the last FPDUs may be missing at the receiver: who closes does not read what the other one says at
    that moment."""
    a, b = sender.fpdus.get(way, []), receiver.fpdus.get(way, [])
    for number, (x, y) in enumerate(zip(a, b)):
        check(x == y, f"FPDU {number} from {way[0]} to {way[1]} differs:\n  {sender.file}: {x}\n  {receiver.file}: {y}")
    check(0 <= len(a) - len(b) <= at_end,
          f"from {way[0]} to {way[1]}: {len(a)} FPDUs in {sender.file}, {len(b)} in {receiver.file}")


# --- the cases of traffic.py

class Wire:
    """What tcpdump hears on the way, in the server's namespace."""

    def __init__(self, place):
        self.folder = tempfile.mkdtemp(prefix="weft-wire-")
        self.file = f"{self.folder}/wire.pcap"
        self.process = apps.Process(place.enter(0) + ["tcpdump", "-Z", "root", "-i", place.interface, "-s", "0", "-B", "65536", "-U",
                                                      "-w", self.file, "tcp"])
        until = time.monotonic() + 20
        while "listening on" not in self.process.text():
            check(time.monotonic() < until and self.process.process.poll() is None, f"tcpdump: {self.process.text()}")
            time.sleep(0.02)

    def capture(self):
        # The last packets are still on their way to it.
        time.sleep(0.3)
        self.process.process.send_signal(signal.SIGINT)
        self.process.wait(time.monotonic() + 20)
        check("\n0 packets dropped by kernel" in self.process.text(), f"tcpdump has lost packets: {self.process.text()}")
        return dissect.Capture(self.file, on_the_wire=True)

    def close(self):
        self.process.end()
        shutil.rmtree(self.folder)


def run_case(case, place, product, started):
    wire = Wire(place) if isinstance(place, apps.Namespaces) else None
    try:
        values = {"addr": case.address or place.address, "port": str(apps.free_port())}
        options = [word for variable in case.environment for word in ("--env", variable)]
        folders, processes = [], []
        for side, program in enumerate((case.server, case.client)):
            folders.append(product.folder())
            command = product.trace([w.format(**values) for w in program], folders[-1], options)
            processes.append(start(place.enter(side) + command, started))
            time.sleep(0.4 if side == 0 else 0)  # the programs do not say when they listen
        until = time.monotonic() + SECONDS
        for process in reversed(processes):
            check((status := process.wait(until)) == 0, f"exit status {status}: {' '.join(process.command)}")
        server, client = (dissect.Capture(only_file(folder)) for folder in folders)
        for process, capture in zip(processes, (server, client)):
            check(f"weft trace: {capture.file} (" in process.text(), f"{capture.file} is not named at the end")
        captures = [server, client] + ([wire.capture()] if wire else [])
    finally:
        if wire:
            wire.close()
    judge_case(case, *captures)


def judge_case(case, server, client, wire=None):
    ways = judge(client, case.crc)
    check(judge(server, case.crc) == ways, "the two sides have recorded different connections")
    # Who sent what: the side whose file has an FPDU first has sent it.
    first, second = (client.fpdus.get(way, []) for way in ways)
    client_is_initiator = client.times[ways[0]][0] <= server.times[ways[0]][0]
    by_client, by_server = (first, second) if client_is_initiator else (second, first)
    sides = list(zip(ways, ((client, server), (server, client)) if client_is_initiator else ((server, client), (client, server))))
    for way, (sender, receiver) in sides:
        same_fpdus(sender, receiver, way, at_end=1)
        if wire:
            same_fpdus(sender, wire, way)
    if wire:
        check(not wire.faults, f"{wire.file}: " + "\n  ".join(wire.faults))
        check(wire.start_ups == client.start_ups, f"start-up frames: {wire.start_ups} on the wire, {client.start_ups} in the file")
    for way, (sender, receiver) in sides:
        for number, (sent, received) in enumerate(zip(sender.times.get(way, []), receiver.times.get(way, []))):
            check(sent <= received, f"FPDU {number} from {way[0]} came {sent - received} ns before it was sent")
    judge_messages("client", by_client, case.by_client)
    judge_messages("server", by_server, case.by_server)
    if complaint := case.good(by_client, by_server):
        raise Failed(complaint)


# --- cases of their own

def every_opcode(product, started):
    """All opcodes of RFC 5040 and 7306 and weft's own ones, a Terminate among them, over a connection within one process."""
    script = f"{product.root}/every_opcode.py"
    shutil.copy(f"{HERE}/every_opcode.py", script)
    folder = product.folder()
    process = start(product.trace(["/usr/bin/python3", script], folder), started)
    check(process.wait(time.monotonic() + SECONDS) == 0, "every_opcode.py did not end well")
    capture = dissect.Capture(only_file(folder))
    ways = judge(capture, True)
    # Which of the two queue pairs dials depends on their numbers.
    requester = next(w for w in ways if any(f.opcode == traffic.READ_REQUEST for f in capture.fpdus[w]))
    responder = next(w for w in ways if w != requester)
    t, first = traffic, 200_000
    judge_messages("requester", capture.fpdus[requester], [
        (t.WRITE, first), (t.READ_REQUEST, t.READ_REQUEST_SIZE), (t.SEND, 777), (t.SEND_SE, 777), (t.SEND_IMMEDIATE, 777),
        (t.SEND_SE_IMMEDIATE, 777), (t.WRITE, 777), (t.IMMEDIATE, t.IMMEDIATE_SIZE), (t.WRITE, 777),
        (t.IMMEDIATE_SE, t.IMMEDIATE_SIZE), (t.SEND_INVALIDATE, 10), (t.SEND_SE_INVALIDATE, 10),
        (t.ATOMIC_REQUEST, t.ATOMIC_REQUEST_SIZE), (t.ATOMIC_REQUEST, t.ATOMIC_REQUEST_SIZE), (t.WRITE, 100)])
    answers = messages_of(capture.fpdus[responder])
    check([m.opcode for m in without_first_empty_write(answers)]
          == [t.READ_RESPONSE, t.ATOMIC_RESPONSE, t.ATOMIC_RESPONSE, t.TERMINATE], f"the responder's messages are {answers}")
    # wire.md 5.4: a Write to an unknown STag is DDP, tagged buffer, invalid STag.
    error = next(f.error for f in capture.fpdus[responder] if f.opcode == t.TERMINATE)
    check(error == (1, 1, 0), f"the Terminate says {error}")
    check({f.opcode for fpdus in capture.fpdus.values() for f in fpdus} == set(range(15)), "not every opcode was there")


def snap(product, started):
    """With --snap a packet is a frame, and of large ones the length alone is left."""
    size, count = 100_000, 20
    folders = [product.folder(), product.folder()]
    port = str(apps.free_port())
    command = ["ib_write_bw", "-p", port, "-n", str(count), "-s", str(size)]
    whole = start(product.trace(command, folders[0]), started)
    time.sleep(0.4)
    cut = start(product.trace([*command, "127.0.0.1"], folders[1], ["--snap", "64"]), started)
    until = time.monotonic() + SECONDS
    check(cut.wait(until) == 0 and whole.wait(until) == 0, "the programs failed")
    reference, capture = (dissect.Capture(only_file(folder)) for folder in folders)
    check(not capture.faults, "\n  ".join(capture.faults))
    judge_start_ups(capture, 1)
    for way, fpdus in reference.fpdus.items():
        large = [f.ulpdu for f in fpdus if f.ulpdu > 64]
        check(capture.cut.get(way, []) == large, f"lengths {capture.cut.get(way)}, not {large}")
        small = [f for f in fpdus if f.ulpdu <= 50]
        check(capture.fpdus.get(way, []) == small, "the frames that fit are not as in the file without a snap length")
    check(os.path.getsize(capture.file) < 30_000, f"{capture.file} is large")


def kill(product, started):
    """kill -9: what has passed until then is in the file."""
    folder, port = product.folder(), str(apps.free_port())
    server = start(product.command(["ib_send_bw", "-p", port, "-D", "20", "-s", "3000"]), started)
    time.sleep(0.4)
    client = start(product.trace(["ib_send_bw", "-p", port, "-D", "20", "-s", "3000", "127.0.0.1"], folder, ["--size", "100"]),
                   started)
    until = time.monotonic() + SECONDS
    while not files_of(folder) or os.path.getsize(files_of(folder)[0]) < 200_000:
        check(time.monotonic() < until and client.process.poll() is None, "the client's file does not grow")
        time.sleep(0.02)
    os.killpg(client.process.pid, signal.SIGKILL)
    client.wait(until)
    server.end()
    capture = dissect.Capture(only_file(folder))
    check(not capture.faults, "\n  ".join(capture.faults))
    judge_start_ups(capture, 1)
    sent = [f for f in capture.fpdus[capture.connections()[0]] if f.opcode == traffic.SEND] or \
           [f for f in capture.fpdus[capture.connections()[0][::-1]] if f.opcode == traffic.SEND]
    check(len(sent) > 30 and all(f.payload() == 3000 and f.crc_checked for f in sent), f"{len(sent)} Sends")
    check([f.msn for f in sent] == list(range(1, len(sent) + 1)), "Sends are missing")


def size(product, started):
    """A file ends at its size, and the program does not notice."""
    folder, port = product.folder(), str(apps.free_port())
    command = ["ib_write_bw", "-p", port, "-n", "100", "-s", "100000"]
    server = start(product.command(command), started)
    time.sleep(0.4)
    client = start(product.trace([*command, "127.0.0.1"], folder, ["--size", "1"]), started)
    until = time.monotonic() + SECONDS
    check(client.wait(until) == 0 and server.wait(until) == 0, "the programs failed")
    check("is full at 1 MiB" in client.text(), "nobody has said that the file is full")
    file = only_file(folder)
    check(os.path.getsize(file) <= 1 << 20, f"{file} has {os.path.getsize(file)} bytes")
    capture = dissect.Capture(file)
    check(not capture.faults and not capture.cut_short, "\n  ".join(capture.faults))
    check(sum(len(f) for f in capture.fpdus.values()) >= 10, "there is hardly anything in it")


def two_programs(product, started):
    """Each process of a command has a file of its own, and all are named at the end."""
    folder, port = product.folder(), str(apps.free_port())
    both = f"rping -s -a 127.0.0.1 -p {port} -C 3 & sleep 0.4; rping -c -a 127.0.0.1 -p {port} -C 3; wait"
    process = start(product.trace(["sh", "-c", both], folder), started)
    check(process.wait(time.monotonic() + SECONDS) == 0, "the programs failed")
    files = files_of(folder)
    check(len(files) == 2, f"two files were expected, and not {files}")
    one, other = (dissect.Capture(file) for file in files)
    for way in judge(one, True):
        # Either may be the client's; the one that has an FPDU first has sent it.
        pair = (one, other) if one.times[way][0] <= other.times[way][0] else (other, one)
        same_fpdus(*pair, way, at_end=1)
    for file in files:
        check(f"weft trace: {file} (" in process.text(), f"{file} is not named at the end")


ALONE = {f.__name__: f for f in (every_opcode, snap, kill, size, two_programs)}


def missing(program):
    return None if shutil.which(program) else f"{program} is not installed"


def attempt(name, place_name, run):
    started = []
    return apps.attempt(name, place_name, lambda: run(started), started)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    known = {c.name: c for c in traffic.cases()}
    names = [*known, *ALONE]
    if options.list:
        print("\n".join(names))
        return 0
    if not dissect.installed():
        print("SKIPPED: tshark is not installed; install it (scripts/setup test)")
        return apps.SKIP
    reason = missing("tcpdump")
    if reason:
        print(f"SKIPPED between namespaces: {reason}")
    places = apps.places("host" if reason else None)
    product = Product(options.build)
    good, ran = True, False
    try:
        for name in options.case or names:
            if name in ALONE:
                if name == "every_opcode" and subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"], check=False,
                                                             stderr=subprocess.DEVNULL).returncode != 0:
                    print(f"SKIPPED {name}: /usr/bin/python3 has no pyverbs; install python3-pyverbs (scripts/setup test)")
                    continue
                good = attempt(name, "host", lambda started: ALONE[name](product, started)) and good
                ran = True
                continue
            case = known[name]
            if reason := missing(case.server[0]):
                print(f"SKIPPED {name}: {reason}")
                continue
            ran = True
            for place in places[:1] if case.address else places:
                good = attempt(name, place.name, lambda started: run_case(case, place, product, started)) and good
    finally:
        product.close()
        for place in places:
            place.close()
    if not ran:
        return apps.SKIP
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
