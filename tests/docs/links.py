#!/usr/bin/env python3
"""Checks that each relative link in the Markdown files of a tree leads to a file, each anchor to a heading, and each path
in `code` to a file or folder.

    links.py ROOT      prints every broken one as FILE:LINE: sentence; status 1 if there is one

Anchors are made from headings as GitHub makes them. Links to other hosts are not followed. A path counts when it begins
with a folder of the project's top, or with one of src/ or tools/ and ends as a source does (then it may also be relative to the
page); it may have * and {a,b}; NAME, LAYER, SOURCE and SUBJECT stand for any. The
changelog may name what has gone since.
"""

import glob
import pathlib
import re
import sys
from typing import Dict, Iterator, List, Set, Tuple

SKIPPED = {".git", "build"}

FENCE = re.compile(r"^\s*(```|~~~)")
CODE_SPAN = re.compile(r"(`+).+?\1")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")
LINK_IN_HEADING = re.compile(r"\[([^\]]*)\]\([^)]*\)")
HTML_ANCHOR = re.compile(r"""<a\s+(?:id|name)=["']([^"']+)["']""")
INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^\s{0,3}\[[^\]]+\]:\s+(\S+)")
CODE = re.compile(r"`([^`]+)`")
SOURCE = re.compile(r"(?:abi|cmake|docs|examples|fuzz|include|packaging|scripts|sim|src|tests|tools)/\S*")
PLACEHOLDER = re.compile(r"NAME|LAYER|SOURCE|SUBJECT")
BRACES = re.compile(r"\{([^{}]*)\}")
OF_ANOTHER_TIME = ("CHANGELOG.md",)
TOPS = ("src", "tools")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.I)


def pages(root: pathlib.Path) -> List[pathlib.Path]:
    return sorted(p for p in root.rglob("*.md") if not SKIPPED & set(p.relative_to(root).parts))


def prose(text: str) -> Iterator[Tuple[int, str]]:
    """The numbered lines outside of fenced code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def slug(heading: str) -> str:
    text = LINK_IN_HEADING.sub(r"\1", heading).replace("`", "").replace("*", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text: str) -> Set[str]:
    found: Set[str] = set()
    for _, line in prose(text):
        found.update(HTML_ANCHOR.findall(line))
        heading = HEADING.match(line)
        if not heading:
            continue
        name = base = slug(heading.group(1))
        again = 0
        while name in found:
            again += 1
            name = f"{base}-{again}"
        found.add(name)
    return found


def links(text: str) -> Iterator[Tuple[int, str]]:
    for number, line in prose(text):
        line = CODE_SPAN.sub("", line)
        yield from ((number, target) for target in INLINE.findall(line) + DEFINITION.findall(line)
                    if not ELSEWHERE.match(target))


def expanded(path: str) -> List[str]:
    braces = BRACES.search(path)
    if not braces:
        return [path]
    return [e for word in braces.group(1).split(",")
            for e in expanded(path[:braces.start()] + word + path[braces.end():])]


def paths(text: str) -> Iterator[Tuple[int, str]]:
    for number, line in prose(text):
        for code in CODE.findall(line):
            if SOURCE.fullmatch(code) and not PLACEHOLDER.search(code):
                yield from ((number, path) for path in expanded(code))


def of_src(root: pathlib.Path, text: str) -> Iterator[Tuple[int, str]]:
    layers = {p.name for top in TOPS for p in (root / top).glob("*") if p.is_dir()}
    for number, line in prose(text):
        for code in CODE.findall(line):
            if re.fullmatch(r"\w+/\S+\.(h|cc)", code) and code.split("/")[0] in layers:
                yield number, code


def complaints(root: pathlib.Path) -> Iterator[str]:
    known: Dict[pathlib.Path, Set[str]] = {}

    def anchors_of(page: pathlib.Path) -> Set[str]:
        if page not in known:
            known[page] = anchors(page.read_text(encoding="utf-8"))
        return known[page]

    for page in pages(root):
        text, name = page.read_text(encoding="utf-8"), str(page.relative_to(root))
        if not name.startswith(OF_ANOTHER_TIME):
            yield from (f"{name}:{number}: there is no '{path}'"
                        for number, path in paths(text) if not glob.glob(str(root / path)))
            yield from (f"{name}:{number}: no folder of sources has '{path}'"
                        for number, path in of_src(root, text) if not any((p / path).exists() for p in (*(root / top for top in TOPS), page.parent)))
        for number, target in links(text):
            place = f"{name}:{number}"
            path, _, anchor = target.partition("#")
            to = (page.parent / path).resolve() if path else page.resolve()
            if not to.exists():
                yield f"{place}: '{target}' leads to no file"
            elif anchor and to.suffix == ".md" and anchor not in anchors_of(to):
                yield f"{place}: '{target}': that page has no heading '#{anchor}'"


def main() -> int:
    root = pathlib.Path(sys.argv[1]).resolve()
    if not pages(root):
        print(f"{root}: no Markdown file")
        return 1
    found = list(complaints(root))
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
