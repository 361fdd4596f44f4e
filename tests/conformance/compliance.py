#!/usr/bin/env python3
"""Makes docs/compliance.md: what the RFCs ask for, and what shows that weft does it.

  compliance.py --write    writes it
  compliance.py --check    status 1 when it is not what would be written
  compliance.py            the totals

The requirements stand in requirements.py. Cases are those of live/, tests those of GoogleTest and of tests/trace; both must exist, and each
case must belong to a requirement. Sources are the files of src/ in which a comment quotes the section.
"""

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../citations")]
import evidence  # noqa: E402
import requirements  # noqa: E402
import rfc_sections  # noqa: E402

PAGE = os.path.join(evidence.ROOT, "docs/compliance.md")
TITLES = {"5044": "MPA", "6581": "enhanced start-up", "5041": "DDP", "5040": "RDMAP", "7306": "atomics, immediate data",
          "5042": "security"}
HEAD = """# What the RFCs ask for

<!-- Written by tests/conformance/compliance.py --write; edit tests/conformance/requirements.py. -->

Each MUST and SHOULD of RFC 5040 (RDMAP), 5041 (DDP), 5044 (MPA),
6581 (start-up with IRD, ORD and peer-to-peer) and 7306 (atomics, immediate data) that concerns what goes over
the wire, as far as docs/spec names it, in our words, with its section. Rules for IPsec, for SCTP and for interfaces inside a host are left out.

* **tested**: the named cases ([conformance.md](conformance.md)) ask a running weft over TCP; names in *italics* are tests of
  GoogleTest, `trace.` before them those of ctest that look at a capture.
* **done**: the code quotes the section, and no test is aimed at it.
* **exception**: weft does something else; why is said.

The last column has the sources in which a comment quotes the section, or one that it belongs to.
"""

QUOTE = re.compile(r"RFC (\d{4})[ ,\n/]+(?:\S*// *)?sections? ((?:\d+(?:\.\d+)*)(?:(?:, | and | to )\d+(?:\.\d+)*)*)")


def expand(sections):
    """ "5 to 7, 8.1" means 5, 6, 7, 8.1."""
    for part in re.split(r", | and ", sections):
        first, _, last = part.partition(" to ")
        if last and "." not in first + last:
            yield from (str(n) for n in range(int(first), int(last) + 1))
        else:
            yield from [s for s in (first, last) if s]


def quotes():
    """{"5044 4.1": files}"""
    found = {}
    for path, text in evidence.files("src", ".h", ".cc"):
        # A comment may go on in its next line.
        for rfc, sections in QUOTE.findall(re.sub(r"\n\s*// ?", " ", text)):
            for section in expand(sections):
                found.setdefault(f"{rfc} {section}", set()).add(path.removeprefix("src/"))
    return found


def sources(section, quoted):
    """Files that quote the section or, when there are none, the ones above it."""
    while True:
        below = {p for s, paths in quoted.items() if s == section or s.startswith(section + ".") for p in paths}
        if below or "." not in section:
            return sorted(below)
        section = section.rsplit(".", 1)[0]


class Judge:
    def __init__(self):
        self.tests = evidence.tests()
        self.quoted = quotes()
        self.used = set()
        self.complaints = []

    def judge(self, r):
        """(status, evidence, sources) of the requirement."""
        shown = []
        excuses = [r.exception] if r.exception else []
        for word in r.cases:
            names = evidence.cases_like(word)
            if not names:
                self.complaints.append(f"RFC {r.section}: there is no case {word}")
            self.used.update(names)
            shown.append(f"`{word}`")
            for name in names:
                if known := evidence.CASES[name].differs.get("weft"):
                    excuses.append(f"`{name}`: {known.why}")
        for name in r.tests:
            if name not in self.tests:
                self.complaints.append(f"RFC {r.section}: there is no test {name}")
            shown.append(f"*{name}*")
        where = sources(r.section, self.quoted)
        if not shown and not excuses and not where:
            self.complaints.append(f"RFC {r.section}: nothing shows '{r.sentence}'")
        status = "exception" if excuses else "tested" if shown else "done"
        return status, "; ".join(excuses + [", ".join(shown)] if shown else excuses), where


def place(r):
    """The page's order: the RFCs from the wire up, and their sections."""
    number, section = r.section.split()
    return list(TITLES).index(number), [int(n) for n in section.split(".")]


def strangers(quoted):
    """Sections that no RFC has."""
    named = [(s, f"a requirement ({r.sentence})") for r in requirements.ALL for s in [r.section]]
    named += [(c.rfc, f"the case {c.name}") for c in evidence.CASES.values()]
    named += [(s, ", ".join(sorted(paths))) for s, paths in quoted.items() if s.split()[0] in rfc_sections.CHILDREN]
    return [f"{who}: RFC {s} does not exist" for s, who in named if not rfc_sections.exists(*s.split())]


def make():
    judge = Judge()
    judge.complaints += strangers(judge.quoted)
    totals, lines, rfc = {}, [], ""
    for r in sorted(requirements.ALL, key=place):
        status, shown, where = judge.judge(r)
        totals[status] = totals.get(status, 0) + 1
        number, section = r.section.split()
        if number != rfc:
            rfc = number
            lines += ["", f"## RFC {rfc}: {TITLES[rfc]}", "",
                      "| section | level | what | status | shown by, or why not | sources |", "|---|---|---|---|---|---|"]
        lines.append(f"| {section} | {r.level} | {r.sentence} | {status} | {shown} | {', '.join(where)} |")
    judge.complaints += [f"no requirement names the case {name}" for name in evidence.CASES if name not in judge.used]
    summary = f"{len(requirements.ALL)} requirements: " + ", ".join(f"{n} {status}" for status,
                                                                    n in sorted(totals.items())) + "."
    return HEAD + "\n" + summary + "\n" + "\n".join(lines) + "\n", summary, judge.complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text, summary, complaints = make()
    print(summary)
    for complaint in complaints:
        print(complaint)
    if options.write:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
    if options.check:
        with open(PAGE, encoding="utf-8") as f:
            if f.read() != text:
                complaints.append("stale")
                print("docs/compliance.md is not what this would write; remedy: tests/conformance/compliance.py --write")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
