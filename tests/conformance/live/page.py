"""The table of what the peers did: as text, and as docs/conformance.md."""

import difflib
import os
import re

from case import Result

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../../docs/conformance.md")
PEERS = ("weft", "siw")
VERDICTS = ("conforms", "differs", "skipped", "FAILED")
HEAD = """# Conformance, case by case

<!-- Written by tests/conformance/live/conformance.py --peer both --write; edit the cases beside it. -->

`tests/conformance/live` drives a peer byte by byte over TCP and holds what it does against the RFCs: RFC 5040 (RDMAP), 5041
(DDP), 5044 (MPA), 6581 (start-up with IRD, ORD and peer-to-peer) and 7306 (atomics, immediate data). The peer is a small
program on libibverbs and librdmacm. Here it ran on weft, and in a guest on siw, the iWARP driver of Linux 6.1.

    tests/conformance/live/conformance.py --build build/release               # weft, as ctest runs it
    tests/conformance/live/conformance.py --build build/release --peer both   # and siw; takes root

**conforms**: what is seen from outside is what the RFC says. **differs**: it is something else, which is known; why stands
below the table. A case that a peer does not survive is no longer run with it; the table has what it did when it was. **skipped**: the question does
not arise; why stands below, too. Sentences are in our words. A name with `.initiator` is the same
case with the peer as MPA Initiator.
"""


def totals(results):
    return ", ".join(f"{sum(r.verdict == v for r in results)} {v}" for v in VERDICTS if any(r.verdict == v for r in results))


def by_name(results):
    return {who: {r.case.name: r for r in rs} for who, rs in results.items()}


def known(chosen, found, verdict):
    """(case, who, what is seen instead, why) for each peer of which that is the verdict."""
    for case in chosen:
        for who, rs in found.items():
            if (r := rs[case.name]).verdict == verdict:
                yield case, who, r.observed, r.why


def table(chosen, results):
    """For the terminal: one line a case, differences explained below it."""
    found = by_name(results)
    lines = [f"{'case':32} {'RFC':12} " + " ".join(f"{who:9}" for who in results)]
    for case in chosen:
        lines.append(f"{case.name:32} {case.rfc:12} " + " ".join(f"{rs[case.name].verdict:9}" for rs in found.values()))
        lines += [f"    {who}: {seen!r}: {why}" for _, who, seen, why in known([case], found, "differs")]
        lines += [f"    {who}: {why}" for _, who, _, why in known([case], found, "skipped")]
    return "\n".join([*lines, ""])


def summary(results):
    return "\n".join(f"{who}: {len(rs)} cases, {totals(rs)}" for who, rs in results.items())


def cell(text):
    return text.replace("|", "\\|")


def text(chosen, results):
    found = by_name(results)
    lines = [HEAD]
    lines += [f"* {who}: {len(rs)} cases, {totals(rs)}." for who, rs in results.items()]
    lines += ["", "| case | RFC | what it asks | " + " | ".join(results) + " |", "|---|---|---|" + "---|" * len(results)]
    for case in chosen:
        verdicts = " | ".join(rs[case.name].verdict for rs in found.values())
        lines.append(f"| `{case.name}` | {case.rfc} | {cell(case.sentence)} | {verdicts} |")
    lines += ["", "## The differences", "", "| case | peer | the RFC | what is seen | why |", "|---|---|---|---|---|"]
    for case, who, seen, why in known(chosen, found, "differs"):
        lines.append(f"| `{case.name}` | {who} | {cell(' or '.join(case.expects))} | {cell(seen)} | {cell(why)} |")
    lines += ["", "## What is skipped", "", "| case | peer | why |", "|---|---|---|"]
    lines += [f"| `{case.name}` | {who} | {cell(why)} |" for case, who, _, why in known(chosen, found, "skipped")]
    return "\n".join(lines) + "\n"


def put(new):
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(new)


def write(chosen, results):
    put(text(chosen, results))


# --- the page without a run

ROW = re.compile(r"^\| `([^`]+)` \| \d{4} [\d.]+ \| .* \| (\w+) \| (\w+) \|$", re.MULTILINE)


def as_written(case, who, before):
    """What a run says of a peer that does what is written beside the case. Of a race that is what it was `before`."""
    if why := case.skips.get(who):
        return Result(case, "skipped", "", why=why)
    seen = case.differs.get(who)
    if seen is None or (before == "conforms" and not seen.always):
        return Result(case, "conforms", "")
    return Result(case, "differs", seen.sees, why=seen.why)


def restate(chosen, may_write):
    """Whether the page is what the cases say: an exit status."""
    with open(PAGE, encoding="utf-8") as f:
        old = f.read()
    before = {name: dict(zip(PEERS, verdicts)) for name, *verdicts in ROW.findall(old)}
    new = text(chosen, {who: [as_written(c, who, before.get(c.name, {}).get(who)) for c in chosen] for who in PEERS})
    if may_write:
        put(new)
        return 0
    changes = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "docs/conformance.md", "the cases", lineterm="", n=0))
    if changes:
        print("\n".join(changes))
        print("remedy: tests/conformance/live/conformance.py --peer both --write; after a change of words --restate will do")
    return 1 if changes else 0
