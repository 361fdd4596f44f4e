"""The tests that docs/interop.md names: are they there?"""

import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
HEADING = "## What is known of siw, and the tests of it"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sources(folder, ending):
    for at, _, files in os.walk(os.path.join(ROOT, folder)):
        yield from (read(os.path.join(at, name)) for name in files if name.endswith(ending))


def named():
    """What stands in backquotes in the last column of the table."""
    rows = [line for line in read(os.path.join(ROOT, "docs/interop.md")).partition(HEADING)[2].splitlines() if line.startswith("|")]
    return {name for row in rows[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[-2])}


def missing(cases):
    code = "\n".join(sources("tests", "_test.cc"))
    live = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/conformance/live/conformance.py"), "--list"], check=True,
                          capture_output=True, text=True).stdout
    there = cases | {f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", code, re.MULTILINE)}
    there |= {f"live:{line.split()[0]}" for line in live.splitlines()}
    names = named()
    return sorted(names - there) if names else ["of any name"]
