#!/usr/bin/env python3
"""Lets weft talk with the siw of a Linux kernel, which runs in a guest under QEMU; takes root.

  interop.py --list                        the names of all runs
  interop.py --check-page                  are the tests that docs/interop.md names there?
  interop.py --image                       makes the guest, or finds it in the cache, and ends
  interop.py --build DIR --cpus N          boots a guest with so many CPUs and makes all runs that are meant for it
  interop.py --build DIR --cpus N WORD...  only those whose name has one of the words

DIR is the build directory. A run's name is CASE/WHO-serves/crc-on or -off. One that fails leaves weft's capture in DIR/traces;
where none was made it is run once more for it.
Exit status: 0 all good, 1 something failed, 77 nothing could be run.
"""

import argparse
import collections
import copy
import os
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import frames  # noqa: E402
import guest as guests  # noqa: E402
import image  # noqa: E402
import page  # noqa: E402
import programs  # noqa: E402
import scenarios  # noqa: E402
import sides  # noqa: E402
from sides import captures  # noqa: E402

SKIP = 77


class Run:
    def __init__(self, case, serving, crc):
        self.case = case
        self.serving = serving
        self.options = {"WEFT_CRC": crc, **case.options}
        self.name = f"{case.name}/{serving}-serves/crc-{crc}"
        self.traced = case.traced
        self.only_for_capture = False

    def for_capture(self):
        again = copy.copy(self)
        again.traced = again.only_for_capture = True
        return again


def runs(cpus):
    cases = [*programs.all_programs(), *scenarios.all_scenarios(), *frames.all_frames()]
    return [Run(case, serving, crc) for case in cases for serving in case.servers for crc in case.crc
            if cpus is None or cpus in case.cpus]


# spec/siw 2.6. weft leaves siw 150 ms and three kicks to see the RTR. An emulated guest may be left without a CPU for
# longer, and no peer can help that: the run is made once more, in a fresh guest; but
# once in all runs, for weft can be at fault as well.
DIED_OF_AN_END = "kernel BUG at drivers/infiniband/core/iwcm.c"


def perform(run, world, may_repeat):
    """Makes the run and says how it went; (good, whether the guest can go on), good None when it is to be repeated."""
    begun = time.monotonic()
    complaint, alive = "", True
    try:
        world.begin(run.options, run.case.seconds, run.case.mtu)
        if run.traced:
            world.trace()
        run.case.run(world, run.serving)
    except sides.Failed as e:
        complaint = str(e)
    except guests.GuestDied as e:
        complaint, alive = f"the guest died: {e}", False
    transcript = world.transcript() if complaint else ""
    try:
        world.finish()
    except guests.GuestDied as e:
        complaint, alive = complaint or str(e), False
    if oops := world.guest.oops():
        complaint = f"{complaint or 'the programs are content'}; the guest's kernel says\n{oops}"
        alive = False
    seconds = time.monotonic() - begun
    if run.only_for_capture:
        print(f"{run.name} was run once more with a trace and {'failed' if complaint else 'passed'}", flush=True)
        return not complaint, alive
    if may_repeat and DIED_OF_AN_END in complaint:
        print(f"AGAIN {run.name} ({seconds:.1f} s): {complaint}\n{transcript}", flush=True)
        return None, False
    if complaint:
        print(f"FAILED {run.name} ({seconds:.1f} s): {complaint}\n{transcript or world.transcript()}", flush=True)
    else:
        print(f"passed {run.name} ({seconds:.1f} s)", flush=True)
    return not complaint, alive


# What all runs with so many CPUs may take, in seconds: with the image six minutes together. A busy machine takes longer, so
# that it is said, and is no failure.
BUDGET = {1: 160, 2: 230}
MOST_GUESTS = 8  # a peer that kills each of them is known well enough by then


def perform_all(chosen, cpus, product):
    """The names of those that failed, and a sentence about the capture of each. A guest that died or whose kernel complained
    is replaced."""
    failed, world, booted, repeated = {}, None, 0, []
    to_do = collections.deque(chosen)
    try:
        while to_do:
            run = to_do.popleft()
            if world is None and booted == MOST_GUESTS:
                failed.setdefault(run.name, "no guest was left for it")
                continue
            if world is None:
                begun = time.monotonic()
                booted += 1
                world = sides.World(guests.Guest(cpus, product.peer), product)
                print(f"a guest with {cpus} CPU{'s' if cpus > 1 else ''} is up ({time.monotonic() - begun:.1f} s)", flush=True)
            good, alive = perform(run, world, not repeated)
            if good is None:
                repeated.append(run)
                to_do.appendleft(run)
            elif run.only_for_capture or not good:
                failed[run.name] = captures.keep(product.build, f"interop.{run.name}", [world.traces] if world.traces else [])
                if not run.traced:
                    to_do.appendleft(run.for_capture())
            if not alive:
                world.close()
                world = None
    finally:
        if world:
            world.close()
    if repeated:
        print(f"made twice, as the guest's kernel died: {repeated[0].name}")
    return failed


def why_not():
    """What keeps the guest from running here; empty when nothing does."""
    if os.geteuid() != 0:
        return "a network namespace and a TAP device take root"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun here"
    try:
        image.guest_image()
    except image.Unavailable as e:
        return str(e)
    for program in ("qemu-system-x86_64", "tshark", "tcpdump"):
        if not shutil.which(program):
            return f"there is no {program}; scripts/setup interop installs it"
    return ""


def end_tidily(number, _frame):
    """What was started is ended and what was made is deleted when this is. A second signal does not disturb that."""
    for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end_tidily)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check-page", action="store_true")
    parser.add_argument("--image", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("word", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(run.name for run in runs(None)))
        return 0
    if options.check_page:
        missing = page.missing({run.case.name for run in runs(None)})
        print("".join(f"docs/interop.md: there is no test {name}\n" for name in missing), end="")
        return 1 if missing else 0
    try:
        reason = why_not()
    except image.Broken as e:
        print(f"FAILED: the guest cannot be made: {e}")
        return 1
    if reason:
        print(f"SKIPPED: no guest with siw: {reason}")
        return SKIP
    if options.image:
        return 0
    chosen = [run for run in runs(options.cpus) if not options.word or any(w in run.name for w in options.word)]
    begun = time.monotonic()
    tempfile.tempdir = guests.temporary_directory()
    try:
        os.chmod(tempfile.tempdir, 0o755)
        failed = perform_all(chosen, options.cpus, sides.Product(options.build))
    except guests.GuestDied as e:
        print(f"FAILED: no guest: {e}")
        return 1
    finally:
        shutil.rmtree(tempfile.tempdir, ignore_errors=True)
    seconds = time.monotonic() - begun
    print(f"{len(chosen)} runs, {len(failed)} failed, {seconds:.0f} s")
    if not options.word and seconds > BUDGET.get(options.cpus, seconds):
        print(f"OVER BUDGET: {seconds:.0f} s, and {BUDGET[options.cpus]} s are meant for a guest with {options.cpus} "
              f"CPU{'s' if options.cpus > 1 else ''} (docs/interop.md): is the machine busy, or are there too many runs?")
    for name, capture in failed.items():
        print(f"FAILED {name}\n{capture}")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
