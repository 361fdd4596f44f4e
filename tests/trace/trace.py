#!/usr/bin/env python3
"""Runs other people's programs under `weft trace` and asks tshark's iWARP dissectors what is in the files: no malformed frame, every
CRC right, the opcodes and lengths as sent, and the same in the files of both sides. As root also between two network namespaces,
where tcpdump records the same bytes on their way, and its capture has to hold the same FPDUs. What UC and UD send is decoded by weft's
own dissector (datagrams.py).

  trace.py --list                  the names of all cases
  trace.py --build DIR CASE...     runs them; DIR is the build directory

Exit status: 0 all good, 1 something failed, 77 nothing could be run.
"""

import argparse
import functools
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../apps"), os.path.join(HERE, "../support"), HERE]
import apps  # noqa: E402
import captures  # noqa: E402
import datagrams  # noqa: E402
import dissect  # noqa: E402
import rd_kinds  # noqa: E402
import segments  # noqa: E402
import tcpdump  # noqa: E402
import traffic  # noqa: E402
import uc_kinds  # noqa: E402
from judging import (Failed, check, judge, judge_case, judge_messages, judge_start_ups, messages_of, same_fpdus,  # noqa: E402
                     without_first_empty_write)

SECONDS = 60


class Product(apps.Product):
    """weft, and folders for captures that the user without rights may write."""

    def __init__(self, build):
        super().__init__(build)
        self.folders = []  # those of the case that runs

    def folder(self):
        self.folders.append(captures.open_folder(self.root))
        return self.folders[-1]

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


# --- the cases of traffic.py

def run_case(case, place, product, started):
    wire = None
    try:
        if isinstance(place, apps.Namespaces):
            wire = tcpdump.Recording(place.interface, product.folder(), place.enter(0))  # in the server's namespace
        values = {"addr": case.address or place.address, "port": str(apps.free_port())}
        options = [word for variable in case.environment for word in ("--env", variable)]
        folders, processes = [], []
        for side, program in enumerate((case.server, case.client)):
            folders.append(product.folder())
            command = product.trace([w.format(**values) for w in program], folders[-1], options)
            processes.append(start(place.enter(side) + command, started))
            if side == 0:
                processes[0].comes_up()
        until = time.monotonic() + SECONDS
        for process in reversed(processes):
            check((status := process.wait(until)) == 0, f"exit status {status}: {' '.join(process.command)}")
        server, client = (dissect.Capture(only_file(folder)) for folder in folders)
        for process, capture in zip(processes, (server, client)):
            check(f"weft trace: {capture.file} (" in process.text(), f"{capture.file} is not named at the end")
        judge_case(case, server, client, dissect.Capture(wire.finish(), on_the_wire=True) if wire else None)
    finally:
        if wire:
            wire.close()


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
    # spec/errors 3: a Write to an unknown STag is DDP, tagged buffer, invalid STag.
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
    whole.comes_up()
    cut = start(product.trace([*command, "127.0.0.1"], folders[1], ["--snap", "64"]), started)
    until = time.monotonic() + SECONDS
    check(cut.wait(until) == 0 and whole.wait(until) == 0, "the programs failed")
    reference, capture = (dissect.Capture(only_file(folder)) for folder in folders)
    check(not capture.faults, "\n  ".join(capture.faults))
    judge_start_ups(capture, 1)
    matched = 0
    for way, fpdus in reference.fpdus.items():
        large = [f.ulpdu for f in fpdus if f.ulpdu > 64]
        check(capture.cut.get(way, []) == large, f"lengths {capture.cut.get(way)}, not {large}")
        small, there = [f for f in fpdus if f.ulpdu <= 50], capture.fpdus.get(way, [])
        both = min(len(small), len(there))
        matched += both
        # Who closes does not read what the other one says at that moment.
        check(small[:both] == there[:both] and max(len(small), len(there)) - both <= 1,
              "the frames that fit are not as in the file without a snap length")
    check(matched > 0, "no frame was small enough to be compared")
    check(os.path.getsize(capture.file) < 30_000, f"{capture.file} is large")


def kill(product, started):
    """kill -9: what has passed until then is in the file."""
    folder, port = product.folder(), str(apps.free_port())
    server = start(product.command(["ib_send_bw", "-p", port, "-D", "20", "-s", "3000"]), started)
    server.comes_up()
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
    server.comes_up()
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
    both = f"rping -s -a 127.0.0.1 -p {port} -C 3 & sleep 1; rping -c -a 127.0.0.1 -p {port} -C 3; wait"
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


ALONE = {f.__name__: f for f in (every_opcode, snap, kill, size, two_programs, rd_kinds.rd_kinds)}


# --- between namespaces alone

LARGE = 100_000


def one_fpdu_in_one_segment(product, place, started):
    """RFC 5044 5.1, spec/mpa 2.5.8, towards a plain iWARP peer: an FPDU is no longer than a segment of TCP, and each
    segment begins with one, also where messages follow each other without a pause."""
    for mtu, emss in ((1500, 1448), (1495, 1443)):
        place.set_mtu(mtu)
        for program, message, rounds in (("ib_write_lat", 70_001, 10), ("ib_read_bw", 70_001, 10), ("ib_write_bw", 5_001, 200),
                                         ("ib_send_bw", 10, 1000)):
            # -F: without it perftest ends where it cannot find out how fast the processor is, as on a busy machine.
            command = [program, "-R", "-F", "-p", str(apps.free_port()), "-s", str(message), "-n", str(rounds)]
            with tcpdump.Recording(place.interface, product.folder(), place.enter(0)) as wire:
                for side, words in enumerate((command, [*command, place.address])):
                    traced = product.trace(words, product.folder(), ["--env", "WEFT_EXT=off"])
                    start(place.enter(side) + traced, started)
                    if side == 0:
                        started[-1].comes_up()
                for process in reversed(started[-2:]):
                    check((status := process.wait(time.monotonic() + SECONDS)) == 0, f"exit status {status}: {program}")
                directions = segments.directions(wire.finish())
            judge_segments(f"{program} of {message}, MTU {mtu}", directions, emss, message * rounds)


def judge_segments(what, directions, emss, least):
    check(len(directions) == 4, f"{what}: {len(directions)} directions, not those of perftest's two connections")
    check(max(sum(f.size for f in direction.fpdus) for direction in directions.values()) >= least, f"{what}: there are messages missing")
    for direction in directions.values():
        check(direction.emss == emss, f"{what}: TCP's segments have {direction.emss} bytes, not {emss}")
        check(direction.largest() <= emss, f"{what}: an FPDU of {direction.largest()} bytes, and segments of {emss}")
        check(not direction.cut(), f"{what}: of {len(direction.segments)} segments {len(direction.cut())} do not begin with an FPDU: {direction.cut()[:9]}")
    largest = max(direction.largest() for direction in directions.values())
    check(largest == emss & ~7 or least < LARGE, f"{what}: no FPDU is as large as can be, but {largest}")


BETWEEN = {f.__name__: f for f in (one_fpdu_in_one_segment,)}


def missing(program):
    return None if shutil.which(program) else f"{program} is not installed"


def no_pyverbs():
    found = subprocess.run(["/usr/bin/python3", "-c", "import pyverbs"], check=False, stderr=subprocess.DEVNULL).returncode == 0
    return None if found else "/usr/bin/python3 has no pyverbs; install python3-pyverbs (scripts/setup test)"


def attempt(name, place_name, product, run):
    started = []
    product.folders = []

    def run_or_fail():
        try:
            run(started)
        except tcpdump.Lost as e:
            raise Failed(str(e)) from e

    good = apps.attempt(name, place_name, run_or_fail, started)
    if not good:
        print(captures.keep(product.build, f"trace.{name}.{place_name}", product.folders))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    known = {c.name: c for c in (*traffic.cases(), *datagrams.cases(), uc_kinds.Case())}
    names = [*known, *ALONE, *BETWEEN]
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
                if name == "every_opcode" and (reason := no_pyverbs()):
                    print(f"SKIPPED {name}: {reason}")
                    continue
                good = attempt(name, "host", product, lambda started: ALONE[name](product, started)) and good
                ran = True
                continue
            if name in BETWEEN:
                for place in (p for p in places if isinstance(p, apps.Namespaces)):
                    place.one_segment_at_a_time()
                    good = attempt(name, place.name, product, lambda started: BETWEEN[name](product, place, started)) and good
                    ran = True
                continue
            case = known[name]
            if reason := (missing(case.server[0]) or (isinstance(case, datagrams.Case) and datagrams.wireshark.missing())
                          or (isinstance(case, uc_kinds.Case) and no_pyverbs())):
                print(f"SKIPPED {name}: {reason}")
                continue
            ran = True
            is_tcp = not isinstance(case, datagrams.Case)
            run = functools.partial(run_case, case) if is_tcp else case.run
            for place in places[:1] if is_tcp and case.address else places:
                good = attempt(name, place.name, product, lambda started: run(place, product, started)) and good
    finally:
        product.close()
        for place in places:
            place.close()
    if not ran:
        return apps.SKIP
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
