"""What the tree has in tests, by name: what a page may point to."""

import fnmatch
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
sys.path.insert(0, os.path.join(HERE, "live"))
import cases  # noqa: E402

GTEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
PYTHON = re.compile(r"^class (\w+)\(", re.MULTILINE)

CASES = {c.name: c for c in cases.ALL}


def files(tree, *endings):
    for at, _, names in os.walk(os.path.join(ROOT, tree)):
        for name in sorted(names):
            if name.endswith(endings):
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as f:
                    yield os.path.relpath(path, ROOT), f.read()


def tests():
    """GoogleTest's as Suite.Name, classes of Python tests as FOLDER.Class, cases of tests/trace as trace.CASE."""
    found = {f"{suite}.{name}" for _, text in files("tests", ".cc") for suite, name in GTEST.findall(text)}
    for path, text in files("tests", "_test.py"):
        found |= {f"{os.path.basename(os.path.dirname(path))}.{name}" for name in PYTHON.findall(text)}
    traced = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/trace/trace.py"), "--list"], capture_output=True,
                            text=True, check=True)
    return found | {f"trace.{name}" for name in traced.stdout.split()}


def cases_like(word):
    return fnmatch.filter(CASES, word)
