#!/usr/bin/env python3
"""Runs sockets programs once by plain TCP and once by SDP (weft run --sdp), and asks for the same result.

  sdp.py --list [--full]             names of the cases; with --full of those that only ./check --full runs
  sdp.py --list --where namespaces   names of those that only ./check --full runs between namespaces
  sdp.py --list --open               names of those that do not pass yet, which ctest does not run
  sdp.py --build DIR CASE...         runs them; DIR is the build directory
      --where host|namespaces        only there
      --way tcp|sdp                  only that way, and prints the result
      --fallback                     SDP may fall back to TCP, as it does for users; else that is an error of the client

Exit status: 0 all good, 1 something failed, 77 nothing could be run (a program is not installed).
"""

import argparse
import difflib
import os
import pprint
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import world  # noqa: E402
from sdp_case import CASES, OPEN  # noqa: E402
from world import SDP_OR_NOTHING, Failed, Plain, Product, Skipped, World, apps  # noqa: E402
import programs  # noqa: E402,F401  pylint: disable=unused-import
import python_cases  # noqa: E402,F401  pylint: disable=unused-import
import servers  # noqa: E402,F401  pylint: disable=unused-import
import shown  # noqa: E402,F401  pylint: disable=unused-import
import suites  # noqa: E402,F401  pylint: disable=unused-import
import sockets  # noqa: E402,F401  pylint: disable=unused-import

SKIP = 77
MOST_SHOWN = 10000  # signs of what a process said


def lines(result):
    return result if isinstance(result, list) else pprint.pformat(result, width=100).splitlines()


def run(case, place, product, way, rules, expected=()):
    """Its result, or None after a failure."""
    w = World(place, product, way, case.seconds, rules if way == "sdp" else None)
    w.expected = list(expected)
    began = time.monotonic()
    try:
        result = case.function(w)
    except Failed as e:
        print(f"FAILED {case.name} ({place.name}, {way}): {e}")
        for p in w.started:
            print(f"--- {' '.join(p.command)}\n{p.text()[-MOST_SHOWN:]}\n{p.error_text()[-MOST_SHOWN:]}")
        return None
    finally:
        w.close()
    print(f"ran {case.name} ({place.name}, {way}) in {time.monotonic() - began:.1f} s", flush=True)
    return lines(result)


def compare(case, place, plain, product, rules):
    by_tcp = run(case, place, plain, "tcp", None)
    if by_tcp is None:
        return False
    by_sdp = run(case, place, product, "sdp", rules, by_tcp)
    if by_sdp is None:
        return False
    if by_tcp != by_sdp:
        print(f"FAILED {case.name} ({place.name}): by SDP it is not what it is by TCP")
        print("\n".join(difflib.unified_diff(by_tcp, by_sdp, "tcp", "sdp", lineterm="", n=2)))
        return False
    print(f"passed {case.name} ({place.name})")
    return True


def one_way(case, place, product, way, rules):
    result = run(case, place, product, way, rules)
    print("\n".join(result or []))
    return result is not None


def missing(case):
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return next((p for p in case.needs if not shutil.which(p, path=path) and not os.path.exists(p)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--where", choices=["host", "namespaces"])
    parser.add_argument("--way", choices=["tcp", "sdp"])
    parser.add_argument("--fallback", action="store_true")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    if options.list:
        names = [name for name, case in CASES.items() if (name in OPEN) == options.open and (case.full or not options.full)]
        if options.where == "namespaces":
            names = [name for name in names if CASES[name].namespaces == "full"]
        print("\n".join(names))
        return 0
    # So that what was started is ended also where a time limit ends this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rules = None if options.fallback else SDP_OR_NOTHING
    World.build = options.build
    plain = Plain()
    product = Product(options.build) if options.way != "tcp" else None
    places = apps.places(options.where)
    good, ran = True, False
    try:
        for case in [CASES[name] for name in options.case] or CASES.values():
            if program := missing(case):
                print(f"SKIPPED {case.name}: {program} is not installed")
                continue
            for place in places:
                if place.name == "namespaces" and case.namespaces != "check" and options.where is None:
                    continue
                try:
                    if options.way:
                        good = one_way(case, place, product or plain, options.way, rules) and good
                    else:
                        good = compare(case, place, plain, product, rules) and good
                    ran = True
                except Skipped as e:
                    print(f"SKIPPED {case.name} ({place.name}): {e}")
    finally:
        for closing in (plain, product, *places):
            if closing:
                closing.close()
    return 1 if not good else 0 if ran else SKIP


if __name__ == "__main__":
    sys.exit(main())
