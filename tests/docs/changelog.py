#!/usr/bin/env python3
"""Checks the shape of CHANGELOG.md: for each release the sections Added, Changed and Fixed, each once and in this order, and
no entry twice, as a merge may leave them.

    changelog.py ROOT      prints what is wrong as CHANGELOG.md:LINE: sentence; status 1 if anything is
"""

import pathlib
import sys
from typing import Dict, Iterator, List

PAGE = "CHANGELOG.md"
SECTIONS = ["Added", "Changed", "Fixed"]


def complaints(text: str) -> Iterator[str]:
    sections: List[str] = []
    entries: Dict[str, int] = {}
    releases = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            releases += 1
            sections, entries = [], {}
        elif line.startswith("### "):
            name = line[4:].strip()
            if name not in SECTIONS or (sections and SECTIONS.index(name) <= SECTIONS.index(sections[-1])):
                yield f"{PAGE}:{number}: section '{name}' here; there are {', '.join(SECTIONS)}, each once and in this order"
            else:
                sections.append(name)
        elif line.startswith("* "):
            if not sections:
                yield f"{PAGE}:{number}: an entry in front of the first section"
            if line in entries:
                yield f"{PAGE}:{number}: this entry stands in line {entries[line]} as well"
            entries.setdefault(line, number)
    if not releases:
        yield f"{PAGE}: no release"


def main() -> int:
    found = list(complaints((pathlib.Path(sys.argv[1]) / PAGE).read_text(encoding="utf-8")))
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
