#!/usr/bin/env python3
"""Runs `weft stream send` and `weft stream recv` against each other, and the example consumer, on loopback.

  stream.py --list                  the names of all cases
  stream.py --build DIR CASE...     runs them; DIR is the build directory
  stream.py --build DIR --seconds 3600 endurance_uc      an hour of four LOFAR streams: docs/testing.md

Exit status: 0 all good, 1 something failed, 77 nothing could be run.
"""

import argparse
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../support"), os.path.join(HERE, "../apps")]
import captures  # noqa: E402
import cases_circuits  # noqa: E402
import cases_consumers  # noqa: E402
import cases_counts  # noqa: E402
import cases_data  # noqa: E402
import cases_endurance  # noqa: E402
import cases_files  # noqa: E402
import cases_formats  # noqa: E402
import cases_guests  # noqa: E402
import cases_load  # noqa: E402
import cases_loss  # noqa: E402
import cases_options  # noqa: E402
import cases_outputs  # noqa: E402
import cases_recordings  # noqa: E402
import cases_restart  # noqa: E402
import cases_stalls  # noqa: E402
import cases_stop  # noqa: E402
import cases_tutorial  # noqa: E402
import scene  # noqa: E402

CASES = {name: case
         for cases in (cases_circuits, cases_consumers, cases_data, cases_counts, cases_endurance, cases_load, cases_loss, cases_options, cases_guests,
                       cases_restart, cases_files, cases_formats, cases_outputs, cases_recordings, cases_stalls, cases_stop, cases_tutorial)
         for name, case in cases.CASES.items()}


# They send what a receiver has to take as it comes, and count with all of it.
NOT_HELD_BACK = re.compile("udp|format|pace|circuit|sink|read_blocks|samples_(fast|raw)")


def small_sockets():
    """May a receiver's socket not be as large as it asks for?"""
    with open("/proc/sys/net/core/rmem_max", encoding="ascii") as file:
        return os.geteuid() != 0 and int(file.read()) < 4 << 20


def attempt(name, build, environment=(), seconds=None):
    """True or False, or None for one that skipped itself."""
    if NOT_HELD_BACK.search(name) and small_sockets():
        print(f"{name}: skipped: needs root, or net.core.rmem_max of 4194304")
        return None
    with tempfile.TemporaryDirectory() as folder, scene.Scene(build, folder, environment, seconds) as here:
        try:
            CASES[name](here)
        except scene.Skipped as reason:
            print(f"{name}: skipped: {reason}")
            return None
        except (scene.Failed, AssertionError, KeyError, IndexError) as error:
            print(f"{name}: {type(error).__name__}: {error}")
            print(here.said())
            return False
    return True


def run(name, build, seconds):
    passed = attempt(name, build, seconds=seconds)
    if passed is False and seconds is None:
        with tempfile.TemporaryDirectory() as folder:
            again = attempt(name, build, captures.into(folder))
            print(f"{name} was run once more with a trace and {'passed' if again else 'failed'}")
            print(captures.keep(build, f"stream.{name}", [folder]))
    return passed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--seconds", type=float, help="of the endurance cases, with LOFAR's packets and pace")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    if arguments.seconds is not None and not set(arguments.cases) & set(cases_endurance.CASES):
        parser.error(f"--seconds is for {', '.join(cases_endurance.CASES)}")
    if arguments.list:
        print("\n".join(CASES))
        return 0
    results = [run(name, arguments.build, arguments.seconds) for name in arguments.cases or CASES]
    if False in results:
        return 1
    return 77 if set(results) == {None} else 0


if __name__ == "__main__":
    sys.exit(main())
