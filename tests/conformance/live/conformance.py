#!/usr/bin/env python3
"""Drives a peer at the level of bytes over TCP, and holds what it does against the RFCs.

  conformance.py --list                            the cases
  conformance.py --build DIR [WORD...]             weft, on this host; only cases whose name has one of the words
  conformance.py --build DIR --peer siw [WORD...]  the siw of a Linux kernel, in a guest (takes root)
  conformance.py --build DIR --peer both --table   both, and a table of them
  conformance.py --build DIR --peer both --write   puts the table into docs/conformance.md

DIR is the build directory. A case passes when the peer does what the RFC says, or differs from it in the way that
is written down, with its reason, beside the case. Exit status: 0 all pass, 1 some do not, 77 nothing could be run.
"""

import argparse
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
import page  # noqa: E402
from case import Talk  # noqa: E402
from peer import PeerDied, PeerError, WeftPeers  # noqa: E402

SKIP = 77


class Result:
    """verdict: conforms, differs (as is known), skipped, FAILED."""

    def __init__(self, case, verdict, observed, seconds=0.0, why=""):
        self.case = case
        self.verdict = verdict
        self.observed = observed
        self.seconds = seconds
        self.why = why


def judge(case, name, observed, seconds):
    known = case.differs.get(name)
    if observed in case.expects:
        if known and known.always:
            return Result(case, "FAILED", f"it conforms now; no longer: {known.sees}", seconds)
        return Result(case, "conforms", observed, seconds)
    if known and observed == known.sees:
        return Result(case, "differs", observed, seconds, known.why)
    return Result(case, "FAILED", f"'{observed}' and not '{' or '.join(case.expects)}'", seconds)


def perform(case, peers):
    if reason := case.skips.get(peers.name):
        return Result(case, "skipped", "", why=reason)
    begun = time.monotonic()
    talk, died = None, ""
    try:
        peer = peers.peer(case.options if peers.name == "weft" else {})
        peer.reset()
        talk = Talk(peer)
        observed = case.run(talk)
    except PeerError as e:
        observed = f"the program: {e}"
    except (PeerDied, OSError) as e:
        observed = died = str(e) or type(e).__name__
    finally:
        if talk:
            talk.end()
    peers.settle(time.monotonic() - begun)
    if died:
        observed += f"; it said: {peers.replace(case.options)}"
    if trouble := peers.trouble():
        observed += f"; {trouble}"
    return judge(case, peers.name, observed, time.monotonic() - begun)


def run(peers, chosen):
    results = []
    for case in chosen:
        r = perform(case, peers)
        results.append(r)
        failure = f": {r.observed}" if r.verdict == "FAILED" else ""
        print(f"{r.verdict:9} {peers.name} {case.name} ({r.seconds:.2f} s){failure}", flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--peer", choices=["weft", "siw", "both"], default="weft")
    parser.add_argument("--cpus", type=int, default=2, help="of the guest")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("word", nargs="*")
    options = parser.parse_args()
    chosen = [c for c in cases.ALL if not options.word or any(w in c.name for w in options.word)]
    if options.list:
        print("\n".join(f"{c.name:28} RFC {c.rfc:12} {c.sentence}" for c in chosen))
        return 0
    # So that what was started is ended when this is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results = {}
    for name in ("weft", "siw") if options.peer == "both" else (options.peer,):
        if name == "siw":
            import siw
            if reason := siw.why_not():
                print(f"SKIPPED: no guest with siw: {reason}")
                continue
            peers = siw.SiwPeers(options.build, options.cpus)
        else:
            peers = WeftPeers(options.build)
        try:
            results[name] = run(peers, chosen)
        finally:
            peers.close()
    if not results:
        return SKIP
    print()
    if options.table:
        print(page.table(chosen, results))
    print(page.summary(results))
    if options.write and len(results) == 2 and chosen == cases.ALL:
        page.write(chosen, results)
    elif options.write:
        print("docs/conformance.md is as it was: it has all cases, of both peers")
        return 1
    return 1 if any(r.verdict == "FAILED" for rs in results.values() for r in rs) else 0


if __name__ == "__main__":
    sys.exit(main())
