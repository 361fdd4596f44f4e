#!/usr/bin/env python3
"""Checks that whatever the tree cites is there.

    citations.py ROOT     prints every citation that dangles as FILE:LINE: sentence; status 1 if there is one

Citations are

    spec/mpa 2.3, 2.4           sections of docs/spec/mpa.md
    design/11, "Receives"       a note of docs/design, and a heading or bold title in it
    RFC 5040 section 7.1        sections of RFCs; rfc_sections.py has what is known of these

and, inside of docs/spec, "section 2.3" and "(2.3)" of the same document. A page that is only cited by its bare name
and a number, such as a specification that is kept elsewhere, is no citation: it is an error.

What docs/spec and docs/design name in backquotes is there, too: constants, options, counters. (Links, and files in
backquotes, are those of tests/docs/links.py.)
And docs/spec/errors.md has every reason to end a stream.
"""

import bisect
import pathlib
import re
import sys

import rfc_sections

TREES = ("src", "abi", "tools", "tests", "fuzz", "sim", "docs", "include", "examples", "packaging", "cmake", "scripts")
SUFFIXES = {".h", ".cc", ".c", ".py", ".md", ".txt", ".lua", ".map", ".cmake", ".sh", ".html", ""}
TOP = ("*.md", "CMakeLists.txt", "check", "demo")
SKIPPED = ("fuzz/corpus/", "docs/sample-report.html")

NUMBER = r"\d+(?:\.\d+)*"
DOTTED = r"\d+(?:\.\d+)+"
# The first number, and further ones that cannot be anything else.
LIST = rf"({NUMBER}(?:(?:, and |, | and | to )(?:{DOTTED}|\d+(?=[,;:)]|\.(?!\d)|$)))*)"
SPEC = re.compile(rf"\bspec/([a-z][a-z-]*)(?:\.md\b(?:\]\([^)]*\))?)?(?:,? (?:sections? )?{LIST})?")
NOTE = re.compile(r'\bdesign/(\d\d)(?:-[\w-]+\.md)?(?:\]\([^)]*\))?(?:, "([^"]+)")?')
NOTE_LINK = re.compile(r'\[[^]]*\]\((?:\.\./)?(?:design/)?(\d\d)-[\w-]+\.md\)(?:, "([^"]+)")?')
RFC = re.compile(rf"\bRFC[ -]?(\d{{3,5}})(?:(?:,)? sections ({NUMBER}(?:(?:, and |, | and | to ){NUMBER})*)"
                 rf"|(?:,)? section {LIST}| ({DOTTED}(?:(?:, and |, | and | to ){DOTTED})*)"
                 rf"|(?:,)?(?: appendix)? ([A-Z]\.\d+))")
MOST_OF_A_NOTE = 6000  # bytes: two pages
# In two parts, so that this file does not find itself.
ELSEWHERE = re.compile(r"(?<![\w/-])(wire|abi|datapath|mpi|sdp|design|interop)" r"\.md\b(\W{1,3}(?:section |part )?\d)?")
OWN = re.compile(rf"(?<![\w/])(?<!RFC \d{{4}} )sections? {LIST}|\(({DOTTED})(?:, {DOTTED})*[);]")
HEADING = re.compile(r"^(#{2,5}) (\d+(?:\.\d+)*)\.? (\S.*)$", re.M)
TITLE = re.compile(r"^#+ (?:\d[\d.]* )?(.+?)\s*$|^(?:[*-] )?\*\*([^*]+?)\.?\*\*", re.M)
CODE = re.compile(r"`([^`\n]+)`")
A_CONSTANT = re.compile(r"(?:\w+::)*(k[A-Z]\w+)")
AN_OPTION = re.compile(r"(WEFT_[A-Z_]+)(?:=.*)?")
A_COUNTER = re.compile(r"((?:start_|reply_)?refused|dial_failed|accept_paused|terminate_sent|terminate_received|stream_end)\.(\w+|\*)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LEADER = re.compile(r"^[ \t]*(?://+!?|#+(?!#)|--+|\*+/?|\||;)?[ \t]*")


class Page:
    """A file as one line, so that a citation may be broken anywhere, and the way back to line numbers."""

    def __init__(self, path, text):
        self.path = path
        self.starts = []
        pieces = []
        at = 0
        for line in text.split("\n"):
            # Markdown has its own use of these signs, and breaks its lines without them.
            line = line.strip() if path.endswith(".md") else LEADER.sub("", line, count=1).strip()
            self.starts.append(at)
            pieces.append(line)
            at += len(line) + 1
        self.text = " ".join(pieces)

    def place(self, offset):
        return f"{self.path}:{bisect.bisect_right(self.starts, offset)}"


def numbers(text):
    return re.findall(NUMBER, text or "")


class Checker:
    def __init__(self, root):
        self.root = root
        self.errors = []
        self.specs = {}  # name: its sections
        self.notes = {}  # number: its titles
        for path in sorted((root / "docs/spec").glob("*.md")):
            self.read_spec(path)
        for path in sorted((root / "docs/design").glob("[0-9][0-9]-*.md")):
            self.read_note(path)
        self.counters = self.words("docs/counters.md", r"^\| `([\w.]+)` \|")
        # Those of the library for sockets stand beside its rules.
        self.options = self.words("docs/options.md", r"^\| `(\w+)` \|") | self.words("docs/sdp-rules.md", r"^\| `(WEFT_\w+)` \|")
        self.constants = {name for tree in ("src", "abi") for p in sorted((root / tree).rglob("*")) if p.suffix in (".h", ".cc")
                          for name in re.findall(r"\bk[A-Z]\w+", p.read_text(encoding="utf-8"))}
        self.pages = {path.name for path in (root / "docs").rglob("*.md")}

    def error(self, place, sentence):
        self.errors.append(f"{place}: {sentence}")

    def words(self, page, pattern):
        path = self.root / page
        return set(re.findall(pattern, path.read_text(encoding="utf-8"), re.M)) if path.exists() else set()

    def read_spec(self, path):
        text = FENCE.sub(lambda m: "\n" * m.group(0).count("\n"), path.read_text(encoding="utf-8"))
        sections = self.specs[path.stem] = set()
        for m in HEADING.finditer(text):
            place = f"docs/spec/{path.name}:{text.count(chr(10), 0, m.start()) + 1}"
            number = m.group(2)
            parts = number.split(".")
            if len(parts) != len(m.group(1)) - 1:
                self.error(place, f"section {number} is a heading of level {len(m.group(1))}")
            if number in sections:
                self.error(place, f"section {number} is there twice")
            if len(parts) > 1 and ".".join(parts[:-1]) not in sections:
                self.error(place, f"section {number} stands outside of section {'.'.join(parts[:-1])}")
            sections.add(number)

    def read_note(self, path):
        number = path.name[:2]
        if number in self.notes:
            self.error(f"docs/design/{path.name}:1", f"there are two notes with the number {number}")
        titles = self.notes[number] = set()
        if path.stat().st_size > MOST_OF_A_NOTE:
            self.error(f"docs/design/{path.name}:1", f"a note has two pages, {MOST_OF_A_NOTE} bytes, at most; cut it into subjects")
        for m in TITLE.finditer(path.read_text(encoding="utf-8")):
            titles.add((m.group(1) or m.group(2)).strip().rstrip("."))

    def check_spec(self, place, name, sections):
        if name not in self.specs:
            self.error(place, f"there is no docs/spec/{name}.md")
            return
        for s in sections:
            if s not in self.specs[name]:
                self.error(place, f"docs/spec/{name}.md has no section {s}")

    def check_note(self, place, number, title):
        if number not in self.notes:
            self.error(place, f"there is no design note {number}")
        elif title is not None and title.rstrip(".,") not in self.notes[number]:
            self.error(place, f'design note {number} has no title "{title}"')

    def check_rfc(self, place, m):
        rfc = m.group(1)
        for s in numbers(m.group(2) or m.group(3) or m.group(4)) or [m.group(5)]:
            if rfc_sections.exists(rfc, s):
                continue
            if rfc_sections.complete(rfc):
                self.error(place, f"RFC {rfc} has no section {s}")
            elif rfc not in rfc_sections.KNOWN:
                self.error(place, f"rfc_sections.py knows nothing of RFC {rfc}, whose section {s} is cited")

    def check_own(self, page):
        name = pathlib.Path(page.path).stem
        for m in OWN.finditer(page.text):
            # Of another document: [wdp.md](wdp.md) section 3
            link = re.search(r"\]\(([\w-]+)\.md\) $", page.text[:m.start()])
            if re.search(r"RFC \d+ $|spec/[a-z-]+ $", page.text[:m.start()]):
                continue
            self.check_spec(page.place(m.start()), link.group(1) if link else name, numbers(m.group(1) or m.group(2)))

    def check_code(self, page):
        for m in CODE.finditer(page.text):
            word, place = m.group(1), page.place(m.start())
            option, counter, constant = (p.fullmatch(word) for p in (AN_OPTION, A_COUNTER, A_CONSTANT))
            if option and option.group(1) not in self.options:
                self.error(place, f"there is no option {option.group(1)}")
            elif counter and not any(c == word or counter.group(2) == "*" and c.startswith(counter.group(1) + ".") for c in self.counters):
                self.error(place, f"there is no counter {word}")
            elif constant and constant.group(1) not in self.constants:
                self.error(place, f"there is no constant {word}")

    def check_reasons(self, page):
        named = set(CODE.findall(page.text))
        for counter in sorted(self.counters):
            family, _, reason = counter.partition(".")
            if family == "refused" and reason != "other" and reason not in named:
                self.error(f"{page.path}:1", f"the reason {counter} has no row")

    def check(self, path):
        relative = str(path.relative_to(self.root))
        if relative.startswith(SKIPPED):
            return
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return
        page = Page(relative, text)
        for m in SPEC.finditer(page.text):
            self.check_spec(page.place(m.start()), m.group(1), numbers(m.group(2)))
        for m in [*NOTE.finditer(page.text), *(NOTE_LINK.finditer(page.text) if path.suffix == ".md" else ())]:
            self.check_note(page.place(m.start()), m.group(1), m.group(2))
        for m in RFC.finditer(page.text):
            self.check_rfc(page.place(m.start()), m)
        for m in ELSEWHERE.finditer(page.text):
            if m.group(2) or f"{m.group(1)}.md" not in self.pages:
                self.error(page.place(m.start()), f"{m.group(0)} is no page of this tree; cite docs/spec or docs/design by section")
        if path.suffix == ".md":
            if relative.startswith("docs/spec/"):
                self.check_own(page)
            if relative.startswith(("docs/spec/", "docs/design/")):
                self.check_code(page)
            if relative == "docs/spec/errors.md":
                self.check_reasons(page)

    def check_all(self):
        paths = {p for pattern in TOP for p in self.root.glob(pattern)}
        paths.update(p for tree in TREES for p in (self.root / tree).rglob("*") if p.suffix in SUFFIXES)
        for path in sorted(paths):
            if path.is_file() and "__pycache__" not in path.parts:
                self.check(path)
        return self.errors


def main():
    errors = Checker(pathlib.Path(sys.argv[1])).check_all()
    print("".join(f"{e}\n" for e in errors), end="")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
