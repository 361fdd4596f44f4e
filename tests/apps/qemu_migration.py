#!/usr/bin/env python3
"""Debian's QEMU migrates a running guest over weft: the guest counts through its memory, and goes on at the destination.

  qemu_migration.py --build DIR [--where host|namespaces] [--runs N] [--transport rdma|tcp] [--pin-all on|off] [--env NAME=VALUE...]

QEMU sends the guest's memory while the guest writes to it. With the capability rdma-pin-all it registers all of the memory before,
without it pieces as it goes; without --pin-all both are tried. --transport tcp is for comparing. --env is for both QEMUs.
DIR is the build directory. By itself it makes one migration of each kind on this host; with CHECK_FULL=1 in the environment ten, there
and between two network namespaces.

Exit status: 0 all good, 1 something failed, 77 nothing could be run.
"""

import argparse
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import apps  # noqa: E402

SKIP = 77
QEMU = "qemu-system-x86_64"
# The longest that anything may take that takes a second on a machine with nothing else to do.
PATIENCE = 120
MEGABYTE = 1 << 20
# At first so little that a round takes some tenths of a second, in which the guest writes to all of its memory. QEMU begins
# another round while more is left than it could send in the downtime, at the rate of the last 100 ms. Over RDMA it counts little
# but its control messages for that rate, and with 0 for a downtime of 1 ms would end after the first round.
SLOW = {"max-bandwidth": 24 * MEGABYTE}
SLOW_DOWNTIME = {"tcp": 1, "rdma": 50}
# Then all there is.
FAST = {"max-bandwidth": 100000 * MEGABYTE, "downtime-limit": 60000}
ROUNDS = 4


def wait_until(condition, what):
    """The condition's value, once it is true."""
    until = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > until:
            raise apps.Failed(f"after {PATIENCE} s still not: {what}")
        time.sleep(0.01)
    return value


class Monitor:
    """QEMU's machine protocol (QMP): a command and its answer at a time; events that come between are kept."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.events = []
        self.hear()  # the greeting
        self.say("qmp_capabilities")

    def hear(self):
        try:
            line = self.lines.readline()
        except OSError as e:
            raise apps.Failed(f"QEMU says nothing for {PATIENCE} s") from e
        if not line:
            raise apps.Failed("QEMU has ended")
        return json.loads(line)

    def say(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            heard = self.hear()
            if "event" in heard:
                self.events.append(heard)
            elif "error" in heard:
                raise apps.Failed(f"QEMU answers to {command}: {heard['error']['desc']}")
            else:
                return heard["return"]

    def wait_for_migration(self, *statuses):
        """Until the migration is in one of these, which must come before it has failed."""
        while True:
            while self.events:
                event = self.events.pop(0)
                status = event["data"]["status"] if event["event"] == "MIGRATION" else ""
                if status in statuses:
                    return
                if status in ("failed", "cancelled"):
                    raise apps.Failed(f"the migration {status}")
            heard = self.hear()
            if "event" in heard:
                self.events.append(heard)

    def close(self):
        self.socket.close()


class Machine:
    """A QEMU with the guest, which waits for a migration or boots by itself."""

    def __init__(self, name, command, folder, started, incoming):
        self.console = f"{folder}/{name}.console"
        command = [*command, "-nodefaults", "-no-user-config", "-machine", "pc,accel=tcg", "-m", "32", "-display", "none",
                   "-kernel", f"{folder}/guest", "-chardev", f"file,id=console,path={self.console}", "-device",
                   "isa-debugcon,chardev=console", "-qmp", f"unix:{folder}/{name}.qmp,server=on,wait=off"]
        self.process = apps.Process([*command, *(["-incoming", "defer"] if incoming else [])])
        started.append(self.process)
        wait_until(lambda: os.path.exists(f"{folder}/{name}.qmp") or self.process.process.poll() is not None, f"{name} is up")
        self.monitor = wait_until(lambda: self.connect(f"{folder}/{name}.qmp"), f"{name} answers")

    def connect(self, path):
        """Nothing where the socket is there and QEMU does not listen yet."""
        if self.process.process.poll() is not None:
            raise apps.Failed("QEMU has ended")
        try:
            return Monitor(path)
        except OSError:
            return None

    def said(self):
        with open(self.console, encoding="ascii") as f:
            return f.read()

    def passes(self):
        return self.said().count("pass ")

    def counts_on(self, passes):
        """Until the guest has counted so many times more."""
        begun = self.passes()
        wait_until(lambda: self.passes() >= begun + passes or "wrong" in self.said(), f"the guest makes {passes} passes more")

    def end(self):
        self.monitor.say("quit")
        self.process.wait(time.monotonic() + PATIENCE)


def judge(text):
    """What is wrong with the lines that the guest has written, at the source and then at the destination. None when it counted without
    a gap and found all of its memory as it had left it."""
    if "wrong" in text:
        return f"the guest found its memory changed: {text[text.index('wrong'):].strip()}"
    lines = text.splitlines(keepends=True)
    wanted = [f"pass {number:08x}\n" for number in range(1, len(lines) + 1)]
    if lines and not lines[-1].endswith("\n"):
        wanted[-1] = wanted[-1][: len(lines[-1])]  # it was ended within a line
    bad = next((number for number, pair in enumerate(zip(lines, wanted)) if pair[0] != pair[1]), None)
    return None if bad is None else f"instead of {wanted[bad]!r} the guest said {lines[bad]!r}"


def migrate(place, product, transport, pin_all, environment, started):
    folder = product.folder()
    shutil.copy(f"{product.root}/guest", folder)
    machine = lambda name, side: Machine(name, [*place.enter(side), *product.command([QEMU], environment)], folder, started, side == 0)
    destination, source = machine("destination", 0), machine("source", 1)
    capabilities = [{"capability": "events", "state": True}]
    if transport == "rdma":
        capabilities.append({"capability": "rdma-pin-all", "state": pin_all})
    uri = f"{transport}:{place.address}:{apps.free_port()}"
    for each in (destination, source):
        each.monitor.say("migrate-set-capabilities", capabilities=capabilities)
    destination.monitor.say("migrate-incoming", uri=uri)
    source.counts_on(2)
    source.monitor.say("migrate-set-parameters", **SLOW, **{"downtime-limit": SLOW_DOWNTIME[transport]})
    source.monitor.say("migrate", uri=uri)
    source.monitor.wait_for_migration("active")
    # Rounds in which it sends what the guest has written since the one before.
    state = lambda: source.monitor.say("query-migrate")
    wait_until(lambda: state().get("ram", {}).get("dirty-sync-count", 0) > ROUNDS or state()["status"] != "active",
               f"{ROUNDS} rounds")
    source.monitor.say("migrate-set-parameters", **FAST)
    source.monitor.wait_for_migration("completed")
    destination.monitor.wait_for_migration("completed")
    rounds = state()["ram"]["dirty-sync-count"]
    if rounds < 3:  # the first, one of what the guest wrote meanwhile, and the last while it stands still
        raise apps.Failed(f"the migration took {rounds} rounds: it sent nothing that had changed")
    destination.counts_on(3)
    complaint = judge(source.said() + destination.said())
    for each in (source, destination):
        each.end()
    if complaint:
        raise apps.Failed(complaint)


def compile_guest(product):
    compiler = os.environ.get("CC", "gcc")
    command = [compiler, "-m32", "-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x100000,--build-id=none", "-o",
               f"{product.root}/guest", f"{HERE}/guest/counter.S"]
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise apps.Failed(f"{compiler} does not compile the guest:\n{done.stdout}")
    os.chmod(f"{product.root}/guest", 0o755)


def missing():
    if platform.machine() != "x86_64":
        return "the guest is compiled for x86-64 alone"
    for program in (QEMU, "gcc"):
        if not shutil.which(program):
            return f"{program} is not installed"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--where", choices=["host", "namespaces"])
    parser.add_argument("--runs", type=int)
    parser.add_argument("--transport", choices=["rdma", "tcp"], default="rdma")
    parser.add_argument("--pin-all", choices=["on", "off"])
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    full = os.environ.get("CHECK_FULL")
    runs = options.runs or (10 if full else 1)
    if why := missing():
        print(f"SKIPPED: {why}")
        return SKIP
    pins = [False] if options.transport == "tcp" else [False, True] if options.pin_all is None else [options.pin_all == "on"]
    there = apps.places(options.where or (None if full else "host"))
    product = apps.Product(options.build)
    good = bool(there)
    try:
        compile_guest(product)
        for place in there:
            for pin_all in pins:
                name = f"{options.transport}{'_pin_all' if pin_all else ''}"
                run = lambda environment, p=place, pin=pin_all, n=name: one_run(n, p, product, options, pin, environment)
                failed = sum(not run(()) for _ in range(runs))
                if failed:
                    good = False
                    print(f"{failed} of {runs} migrations failed")
                    apps.run_again_with_trace(f"apps.qemu_migration.{name}", place, product, run)
    except apps.Failed as e:
        print(f"FAILED: {e}")
        good = False
    finally:
        product.close()
        for place in there:
            place.close()
    return 0 if good else 1


def one_run(name, place, product, options, pin_all, environment):
    started = []
    return apps.attempt(name, place.name, lambda: migrate(place, product, options.transport, pin_all, (*environment, *options.env),
                                                          started), started)


if __name__ == "__main__":
    sys.exit(main())
