#!/usr/bin/env python3
"""Runs Debian's pyverbs suite (package python3-pyverbs) on weft, as a user without rights, module by module.

  pyverbs.py --build DIR                    runs it and prints what came out
  pyverbs.py --build DIR --write            ... and writes docs/pyverbs.md
  pyverbs.py --build DIR --check            ... and fails when a test that docs/pyverbs.md says passes does not pass
  pyverbs.py --build DIR --module test_qp   only this one; may be given several times
  pyverbs.py --build DIR --where namespaces --check
                                            the modules with tests of UC, UD and multicast in a namespace whose link has
                                            an MTU of 1500, and of 9000. Takes root to make it

The suite's two sides are one process, or one and its child, so they stand in one namespace, and what they say to each other
does not leave it. What the link decides there is the device's address, its GIDs and MTU, and where multicast goes.

DIR is the build directory. Exit status: 0 as it should be, 1 something failed, 77 the suite is not installed.
"""

import argparse
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import apps  # noqa: E402
import pyverbs_page  # noqa: E402

DEBIANS = "/usr/share/doc/rdma-core/tests"
PYTHON = "/usr/bin/python3"  # pyverbs is built for Debian's; another one may come first in PATH
PAGE = os.path.join(HERE, "../../docs/pyverbs.md")
MODULE_SECONDS = 120
WITH_DATAGRAMS = ("test_addr", "test_cq_events", "test_cqex", "test_qp", "test_qpex", "test_rdmacm", "test_relaxed_ordering")
SKIP = 77


def installed():
    if not os.path.exists(f"{DEBIANS}/test_qp.py.gz") and not os.path.exists(f"{DEBIANS}/test_qp.py"):
        print(f"SKIPPED: no pyverbs suite in {DEBIANS}; install python3-pyverbs (scripts/setup test), and where dpkg leaves "
              "documentation out, allow this directory")
        return False
    if subprocess.run([PYTHON, "-c", "import pyverbs"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print(f"SKIPPED: {PYTHON} has no pyverbs; install python3-pyverbs (scripts/setup test)")
        return False
    return True


def in_children(text, test):
    """What the processes that the test started said: it knows itself only that they failed."""
    own = text.partition(f"--- tests.{test}\n")[2].partition("\n--- ")[0]
    said = re.findall(r"^Player (active|passive) got: (.*)$", own, re.MULTILINE)
    return "".join(f"; {side} side: {words}" for side, words in dict(sorted(said)).items())


class Suite:
    """A copy of the suite, unpacked, beside the copy of weft."""

    def __init__(self, product, place):
        self.product = product
        self.place = place
        self.directory = f"{product.root}/tests"
        os.mkdir(self.directory)
        for path in glob.glob(f"{DEBIANS}/*.py*"):
            name = os.path.basename(path)
            opened = gzip.open(path) if name.endswith(".gz") else open(path, "rb")
            with opened as source, open(f"{self.directory}/{name.removesuffix('.gz')}", "wb") as copy:
                shutil.copyfileobj(source, copy)
        self.runner = f"{product.root}/pyverbs_suite.py"
        shutil.copy(f"{HERE}/pyverbs_suite.py", self.runner)
        # Its own directory, which the user without rights may write.
        self.out = tempfile.mkdtemp(dir=product.root)
        os.chmod(self.out, 0o777)

    def modules(self):
        return sorted(os.path.basename(p)[:-3] for p in glob.glob(f"{self.directory}/test_*.py"))

    def run(self, module):
        """{test: (pass | skip | fail, reason)}. A test that ends or blocks its process fails, and the rest runs in another."""
        outcome, wanted = {}, []
        while True:
            events, why = self.process(module, wanted)
            there = {e["test"] for e in events if e["event"] == "there"}
            started = None
            for e in events:
                if e["event"] == "start":
                    started = e["test"]
                elif e["event"] != "there":
                    # A failure in the cleaning up after a test counts more than what the test said.
                    if outcome.get(e["test"], ("",))[0] != "fail":
                        outcome[e["test"]] = (e["event"], e["reason"])
                    started = None
            if started:
                outcome[started] = ("fail", why or "the process ended")
            elif why:
                outcome[f"{module}.process"] = ("fail", why)
            left = there - outcome.keys()
            if not left or not started:
                outcome.update({t: ("fail", "was not run") for t in left})
                return outcome
            wanted = sorted(t.removeprefix(f"{module}.") for t in left)

    def process(self, module, wanted):
        results = f"{self.out}/{module}.json"
        open(results, "w", encoding="utf-8").close()
        os.chmod(results, 0o666)
        command = self.place.enter(0) + self.product.command([PYTHON, "-B", self.runner, self.directory, results, module, *wanted])
        process = apps.Process(command)
        why = ""
        try:
            status = process.process.wait(MODULE_SECONDS)
            if status != 0:
                why = f"the process ended with status {status}"
        except subprocess.TimeoutExpired:
            why = f"no end within {MODULE_SECONDS} s"
        process.end()
        with open(results, encoding="utf-8") as f:
            events = [json.loads(line) for line in f]
        text = process.text()
        if why or any(e["event"] == "fail" for e in events):
            print(text)
        for e in events:
            if e["event"] == "fail":
                e["reason"] += in_children(text, e["test"])
        return events, why


def expected(page):
    """The tests that the page says pass."""
    with open(page, encoding="utf-8") as f:
        return set(re.findall(r"^\| `(test_\w+\.\w+\.\w+)` \| pass \|", f.read(), re.MULTILINE))


def check(outcome, modules):
    on_page = expected(PAGE)
    wanted = {t for t in on_page if t.split(".")[0] in modules}
    if not on_page:
        print(f"FAILED: {PAGE} names no test that passes")
        return False
    passed = {t for t, (result, _) in outcome.items() if result == "pass"}
    for t in sorted(wanted - passed):
        result, reason = outcome.get(t, ("fail", "is not there any more"))
        print(f"FAILED: {t} passed according to docs/pyverbs.md; now {result}: {reason}")
    for t in sorted(passed - wanted):
        print(f"note: {t} passes and docs/pyverbs.md does not say so yet; run this with --write")
    return not wanted - passed


def run(suite, modules):
    outcome = {}
    for module in modules:
        of_module = suite.run(module)
        outcome.update(of_module)
        count = lambda result: sum(r == result for r, _ in of_module.values())
        print(f"{module}: {count('pass')} pass, {count('skip')} skip, {count('fail')} fail", flush=True)
    for test, (result, reason) in sorted(outcome.items()):
        if result == "fail":
            print(f"{test} fails: {reason}")
    count = lambda result: sum(r == result for r, _ in outcome.values())
    print(f"{len(outcome)} tests: {count('pass')} pass, {count('skip')} skip, {count('fail')} fail")
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--module", action="append")
    parser.add_argument("--where", choices=["host", "namespaces"], default="host")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true")
    what.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.write and (options.module or options.where != "host"):
        parser.error("--write takes all modules, on this host")
    if not installed():
        return SKIP
    places = apps.places(options.where)
    if not places:
        return SKIP
    place = places[0]
    product = apps.Product(options.build)
    good = True
    try:
        suite = Suite(product, place)
        for mtu in (1500, 9000) if options.where == "namespaces" else (None,):
            if mtu:
                place.set_mtu(mtu)
                print(f"--- MTU {mtu}")
            modules = options.module or (WITH_DATAGRAMS if mtu else suite.modules())
            outcome = run(suite, modules)
            if options.check:
                good = check(outcome, modules) and good
    finally:
        product.close()
        place.close()
    if options.write:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(pyverbs_page.page(outcome))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
