"""The table of what the peers did: as text, and as docs/conformance.md."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../../docs/conformance.md")
VERDICTS = ("conforms", "differs", "skipped", "FAILED")
HEAD = """# Conformance, case by case

<!-- Written by tests/conformance/live/conformance.py --peer both --write; edit the cases beside it. -->

`tests/conformance/live` drives a peer byte by byte over TCP and holds what it does against the RFCs: RFC 5040 (RDMAP), 5041
(DDP), 5044 (MPA), 6581 (start-up with IRD, ORD and peer-to-peer) and 7306 (atomics, immediate data). The peer is a small
program on libibverbs and librdmacm. Here it ran on weft, and in a guest on siw, the iWARP driver of Linux 6.1.

    tests/conformance/live/conformance.py --build build/release               # weft, as ctest runs it
    tests/conformance/live/conformance.py --build build/release --peer both   # and siw; takes root

**conforms**: what is seen from outside is what the RFC says. **differs**: it is something else, which is known; why stands
below the table. **skipped**: the question does not arise. Sentences are in our words. A name with `.initiator` is the same
case with the peer as MPA Initiator.
"""


def totals(results):
    return ", ".join(f"{sum(r.verdict == v for r in results)} {v}" for v in VERDICTS if any(r.verdict == v for r in results))


def by_name(results):
    return {who: {r.case.name: r for r in rs} for who, rs in results.items()}


def known(case, found):
    """(who, what is seen instead, why) for each peer that differs or is left out."""
    for who, rs in found.items():
        if (r := rs[case.name]).verdict in ("differs", "skipped"):
            yield who, r.observed, r.why


def table(chosen, results):
    """For the terminal: one line a case, differences explained below it."""
    found = by_name(results)
    lines = [f"{'case':32} {'RFC':12} " + " ".join(f"{who:9}" for who in results)]
    for case in chosen:
        lines.append(f"{case.name:32} {case.rfc:12} " + " ".join(f"{rs[case.name].verdict:9}" for rs in found.values()))
        lines += [f"    {who}: {f'{seen!r}: ' if seen else ''}{why}" for who, seen, why in known(case, found)]
    return "\n".join([*lines, ""])


def summary(results):
    return "\n".join(f"{who}: {len(rs)} cases, {totals(rs)}" for who, rs in results.items())


def cell(text):
    return text.replace("|", "\\|")


def write(chosen, results):
    found = by_name(results)
    lines = [HEAD]
    lines += [f"* {who}: {len(rs)} cases, {totals(rs)}." for who, rs in results.items()]
    lines += ["", "| case | RFC | what it asks | " + " | ".join(results) + " |", "|---|---|---|" + "---|" * len(results)]
    for case in chosen:
        verdicts = " | ".join(rs[case.name].verdict for rs in found.values())
        lines.append(f"| `{case.name}` | {case.rfc} | {cell(case.sentence)} | {verdicts} |")
    lines += ["", "## The differences", "", "| case | peer | the RFC | what is seen | why |", "|---|---|---|---|---|"]
    for case in chosen:
        for who, seen, why in known(case, found):
            if seen:
                lines.append(f"| `{case.name}` | {who} | {cell(' or '.join(case.expects))} | {cell(seen)} | {cell(why)} |")
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
