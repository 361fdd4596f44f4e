#!/usr/bin/env python3
"""Runs tests of Python's own suite and prints what came of each, in order of their names, so that two runs can be compared.

  python_suite.py MODULE[:CLASS,CLASS...]...     status 0 however they ended; what fails goes to standard error in full
"""

import os
import sys
import unittest


class Outcomes(unittest.TextTestResult):
    """ok, failed or skipped for each test; failures of parts and of classes as well."""

    def __init__(self, *words):
        super().__init__(*words)
        self.found = {}

    def note(self, test, outcome):
        name = test.id()
        if self.found.get(name) != "failed":
            self.found[name] = outcome

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "ok")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note(test, "ok")


def main():
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    kept = os.dup(1)
    os.dup2(2, 1)
    loader = unittest.defaultTestLoader
    suite = unittest.TestSuite()
    for word in sys.argv[1:]:
        module, _, classes = word.partition(":")
        names = [f"{module}.{c}" for c in classes.split(",")] if classes else [module]
        suite.addTests(loader.loadTestsFromNames(names))
    runner = unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=Outcomes)
    result = runner.run(suite)
    sys.stdout.flush()  # what tests printed goes to standard error
    os.dup2(kept, 1)
    sys.stdout.write("".join(f"{name}: {outcome}\n" for name, outcome in sorted(result.found.items())))
    sys.stdout.flush()
    # Threads that a failed test left behind must not keep it from ending.
    os._exit(0)


if __name__ == "__main__":
    main()
