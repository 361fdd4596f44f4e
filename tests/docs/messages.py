#!/usr/bin/env python3
"""Holds docs/troubleshooting.md against the sources: status 1 with a sentence for each difference.

    messages.py ROOT

Each error and warning that the libraries log (WEFT_LOG(error or warn, ...), WEFT_LOG_REFUSAL) has its beginning on the
page, and each message that the page says weft prints stands in a source. A message counts by its literal pieces: what
stands between the conversions of a format, or between the capitals (N, ADDRESS) of the page.
"""

import pathlib
import re
import sys
from typing import Iterator, List, NamedTuple, Tuple

PAGE = "docs/troubleshooting.md"
LIBRARIES = ("src", "abi")
SOURCES = LIBRARIES + ("tools",)
OWN_SECTIONS = ("What weft prints", "What WEFT_LOG=info adds", "What the command weft prints")

SHORTEST = 12   # characters of a piece that says something
BEGINNING = 34  # of the first such piece, which the page has to have

CALL = re.compile(r"\bWEFT_LOG(?:\(\s*(?:error|warn)\s*,|_REFUSAL\()\s*")
LITERAL = re.compile(r'"((?:\\.|[^"\\])*)"')
TEXT = re.compile(r'"(?:\\.|[^"\\])*"(?:\s*(?:PRI[ux]\d+\s*)?"(?:\\.|[^"\\])*")*')
HOLE = re.compile(r"%%|(?:0x)?%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[diuoxXcsp]|\{[^}]*\}")
CAPITALS = re.compile(r"\b(?:WEFT_)?[A-Z]{3,}\b(?!_)|\bN\b|\.\.\.|…")
CODE = re.compile(r"`([^`]+)`")


class Message(NamedTuple):
    place: str
    text: str


def joined(text: str) -> str:
    """The adjacent literals at the beginning of `text` as one, a hole where a macro of <cinttypes> stands."""
    match = TEXT.match(text)
    if not match:
        return ""
    found = re.sub(r'"\s*PRI[ux]\d+\s*"', "u", match.group(0))
    return "".join(LITERAL.findall(found)).replace('\\"', '"').replace("\\n", "\n")


def pieces(text: str, holes: re.Pattern) -> List[str]:
    found = (p.strip(" ;,.:'") for p in holes.sub("\0", text).split("\0"))
    return [p for p in found if len(p) >= SHORTEST]


def sources(root: pathlib.Path, trees: Tuple[str, ...]) -> Iterator[pathlib.Path]:
    for tree in trees:
        yield from sorted(p for p in (root / tree).rglob("*") if p.suffix in (".cc", ".h"))


def logged(root: pathlib.Path) -> Iterator[Message]:
    for source in sources(root, LIBRARIES):
        text = source.read_text(encoding="utf-8")
        for call in CALL.finditer(text):
            message = joined(text[call.end():])
            if message:
                line = text.count("\n", 0, call.start()) + 1
                yield Message(f"{source.relative_to(root)}:{line}", message)


def literals(root: pathlib.Path) -> str:
    found = []
    for source in sources(root, SOURCES):
        text = source.read_text(encoding="utf-8")
        found.extend(joined(match.group(0)) for match in TEXT.finditer(text))
    return "\n".join(HOLE.sub("\0", f) for f in found)


def told(page: str) -> Iterator[Message]:
    """The messages in the first column of the tables that are about weft's own."""
    own = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("## "):
            own = line[3:] in OWN_SECTIONS
        elif own and line.startswith("| "):
            yield from (Message(f"{PAGE}:{number}", m) for m in CODE.findall(line.split(" | ")[0]))


def complaints(root: pathlib.Path) -> Iterator[str]:
    page = (root / PAGE).read_text(encoding="utf-8")
    found = list(logged(root))
    if not found:
        yield f"{root}: no source logs anything"
    for message in found:
        for piece in pieces(message.text, HOLE)[:1]:
            if piece[:BEGINNING] not in page:
                yield f"{message.place}: '{piece[:BEGINNING]}' is not in {PAGE}; say there what causes it and what helps"
    known = literals(root)
    own = list(told(page))
    if not own:
        yield f"{PAGE}: no table of weft's own messages"
    for message in own:
        for piece in pieces(message.text, CAPITALS):
            if piece not in known:
                yield f"{message.place}: no source prints '{piece}'"


def main() -> int:
    found = list(complaints(pathlib.Path(sys.argv[1]).resolve()))
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
