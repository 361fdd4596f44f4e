#!/usr/bin/env python3
"""Runs `weft stream send` and `weft stream recv` against each other, and the example consumer, on loopback.

  stream.py --list                  the names of all cases
  stream.py --build DIR CASE...     runs them; DIR is the build directory

Exit status: 0 all good, 1 something failed, 77 nothing could be run.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases_circuits  # noqa: E402
import cases_counts  # noqa: E402
import cases_data  # noqa: E402
import cases_guests  # noqa: E402
import cases_restart  # noqa: E402
import scene  # noqa: E402

CASES = {**cases_circuits.CASES, **cases_data.CASES, **cases_counts.CASES, **cases_guests.CASES, **cases_restart.CASES}


def run(name, build):
    with tempfile.TemporaryDirectory() as folder, scene.Scene(build, folder) as here:
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(CASES))
        return 0
    results = [run(name, arguments.build) for name in arguments.cases or CASES]
    if False in results:
        return 1
    return 77 if set(results) == {None} else 0


if __name__ == "__main__":
    sys.exit(main())
