#!/usr/bin/env python3
"""Checks docs/security.md: each line of its tables names tests, and all that it names exist. Status 1 when not."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import evidence  # noqa: E402

PAGE = os.path.join(evidence.ROOT, "docs/security.md")
LIVE = re.compile(r"`([^`]+)`")
NAMED = re.compile(r"\*(\w+\.\w+)\*")


def complaints(text):
    known = evidence.tests()
    lines = 0
    for number, line in enumerate(text.splitlines(), 1):
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if not cells or cells[-1] == "shown by" or set(cells[-1]) == {"-"}:
            continue
        lines += 1
        live, named = LIVE.findall(cells[-1]), NAMED.findall(cells[-1])
        if not live and not named:
            yield f"line {number} names no test"
        yield from (f"line {number}: there is no case {n}" for n in live if not evidence.cases_like(n))
        yield from (f"line {number}: there is no test {n}" for n in named if n not in known)
    if not lines:
        yield "there are no tables"


def main():
    with open(PAGE, encoding="utf-8") as f:
        found = list(complaints(f.read()))
    for c in found:
        print(f"docs/security.md: {c}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
