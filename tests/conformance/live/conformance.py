#!/usr/bin/env python3
"""Drives a peer at the level of bytes over TCP, and holds what it does against the RFCs.

  conformance.py --list                            the cases
  conformance.py --build DIR [WORD...]             weft, on this host; only cases whose name has one of the words
  conformance.py --build DIR --sanitizer FILE      DIR was built with a sanitizer; FILE is its library, to be loaded first
  conformance.py --build DIR --peer siw [WORD...]  the siw of a Linux kernel, in a guest (takes root)
  conformance.py --build DIR --peer both --table   both, and a table of them
  conformance.py --build DIR --peer both --write   puts the table into docs/conformance.md
  conformance.py --check-page                      status 1 when that page is not what the cases say
  conformance.py --restate                         writes it anew from the cases, after a change of words; nothing is run

DIR is the build directory. A case passes when the peer does what the RFC says, or differs from it in the way that
is written down, with its reason, beside the case. One that does not is run once more with a capture: of weft by itself,
of the guest by tcpdump. Exit status: 0 all pass, 1 some do not, 77 nothing could be run.
"""

import argparse
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
import page  # noqa: E402
from case import Result, Talk  # noqa: E402
from counted import Counted  # noqa: E402
from peer import PeerDied, PeerError, WeftPeers, captures  # noqa: E402

SKIP = 77
MOST_CAPTURES = 20  # of a run that fails all over


def judge(case, name, observed, seconds):
    known = case.differs.get(name)
    wanted = case.wanted(name)
    if observed in wanted:
        if known and known.always:
            return Result(case, "FAILED", f"it conforms now; no longer: {known.sees}", seconds)
        return Result(case, "conforms", observed, seconds)
    if known and observed == known.sees:
        return Result(case, "differs", observed, seconds, known.why)
    return Result(case, "FAILED", f"'{observed}' and not '{' or '.join(wanted)}'", seconds)


def perform(case, peers):
    if reason := case.skips.get(peers.name):
        return Result(case, "skipped", "", why=reason)
    if (known := case.differs.get(peers.name)) and not known.asked:
        return Result(case, "differs", known.sees, why=known.why)
    begun = time.monotonic()
    talk, died = None, ""
    try:
        peer = peers.peer(case.options if peers.name == "weft" else {})
        peer.reset()
        talk = Talk(peer)
        counts = Counted(peer.read_counters, case.counts if peer.read_counters else "")
        observed = case.run(talk)
        if complaint := counts.complaint(peer.patience):
            observed += f"; {complaint} and not {case.counts}"
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


def run_again_with_capture(case, peers, build):
    """A sentence about where it is."""
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        folder = captures.open_folder(root)
        try:
            with peers.recorded(folder):
                again = perform(case, peers)
        except PeerDied as e:
            return f"{case.name}: there is no capture: {e}"
        return f"{captures.keep(build, f'conformance.{peers.name}.{case.name}', [folder])}; there it is '{again.verdict}'"


def run(peers, chosen, build, kept):
    results = []
    for case in chosen:
        r = perform(case, peers)
        results.append(r)
        failure = f": {r.observed}" if r.verdict == "FAILED" else ""
        print(f"{r.verdict:9} {peers.name} {case.name} ({r.seconds:.2f} s){failure}", flush=True)
        if failure and len(kept) < MOST_CAPTURES:
            kept.append(run_again_with_capture(case, peers, build))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--peer", choices=["weft", "siw", "both"], default="weft")
    parser.add_argument("--sanitizer")
    parser.add_argument("--cpus", type=int, default=2, help="of the guest")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check-page", action="store_true")
    parser.add_argument("--restate", action="store_true")
    parser.add_argument("word", nargs="*")
    options = parser.parse_args()
    chosen = [c for c in cases.ALL if not options.word or any(w in c.name for w in options.word)]
    if options.list:
        print("\n".join(f"{c.name:28} RFC {c.rfc:12} {c.sentence}" for c in chosen))
        return 0
    if options.check_page or options.restate:
        return page.restate(cases.ALL, options.restate)
    # So that what was started is ended when this is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results, kept = {}, []
    for name in ("weft", "siw") if options.peer == "both" else (options.peer,):
        if name == "siw":
            import siw
            if reason := siw.why_not():
                print(f"SKIPPED: no guest with siw: {reason}")
                continue
            peers = siw.SiwPeers(options.build, options.cpus)
        else:
            peers = WeftPeers(options.build, options.sanitizer)
        try:
            results[name] = run(peers, chosen, options.build, kept)
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
    for sentence in kept:
        print(sentence)
    return 1 if any(r.verdict == "FAILED" for rs in results.values() for r in rs) else 0


if __name__ == "__main__":
    sys.exit(main())
