#!/usr/bin/python3
"""Runs one module of Debian's pyverbs suite, in the process that pyverbs.py starts under weft.

  pyverbs_suite.py SUITE RESULTS MODULE [TEST...]

SUITE is the suite's directory, unpacked; its name must be `tests`, for so the suite calls itself. MODULE is one of its files,
without .py; with TESTs (Class.method) only those run. RESULTS gets a line of JSON for each thing that happens:
{"test": "test_qp.QPTest.test_x", "event": "there" | "start" | "pass" | "skip" | "fail", "reason": ...}.

The suite itself stays as Debian ships it, but for one thing. Its rdma_cm tests ask for the device's network interface in
/sys/class/infiniband/DEVICE/device/net, which only a kernel driver can make, and take the first address of that
interface. Here they are given what that would lead to on weft: the address that the GID in use stands for, and the
interface that has it.
"""

import importlib
import ipaddress
import json
import os
import subprocess
import sys
import unittest

DEVICE = "weft0"
PREFIX = "tests."


def load(suite, module):
    """The suite's package loads all of its modules: some need others to be there first."""
    sys.path[0:0] = [suite, os.path.dirname(suite)]
    arguments, sys.argv = sys.argv, ["run_tests.py", "--dev", DEVICE, "--gid", "0"]
    importlib.import_module("args_parser").parser.parse_args()
    sys.argv = arguments
    importlib.import_module("tests")
    give_the_address(importlib.import_module("tests.base").RDMATestCase)
    return importlib.import_module(PREFIX + module)


def give_the_address(test_case):
    device = importlib.import_module("pyverbs.device")

    def get_ip_mac(self, name, port, index):
        address, mac = None, None
        if index is not None:
            gid = ipaddress.ip_address(device.Context(name=name).query_gid(port, index).gid)
            address = gid.ipv4_mapped or gid
            out = subprocess.run(["ip", "-j", "address", "show", "to", str(address)], stdout=subprocess.PIPE, check=True)
            interface = next((i for i in json.loads(out.stdout or "[]") if i), {})
            mac = interface.get("address")
            if address.is_link_local and address.version == 6:
                address = f"{address}%{interface.get('ifname')}"
        self.args.append([name, port, index, address and str(address), mac])

    test_case._get_ip_mac = get_ip_mac


def tests_of(group):
    for t in group:
        if isinstance(t, unittest.TestSuite):
            yield from tests_of(t)
        else:
            yield t


class Reporter(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.parent = os.getpid()
        self.bad = None

    def tell(self, test, event, reason=""):
        if os.getpid() != self.parent:
            return  # a child that a test forked
        name = test.id().removeprefix(PREFIX)
        self.out.write(json.dumps({"test": name, "event": event, "reason": reason}) + "\n")
        self.out.flush()

    def failed(self, test, error):
        last = str(error[1]).strip().splitlines() or [""]
        self.tell(test, "fail", f"{error[0].__name__}: {' '.join(last)}")
        sys.stderr.write(self._exc_info_to_string(error, test) + "\n")

    def startTest(self, test):
        super().startTest(test)
        sys.stderr.write(f"--- {test.id()}\n")
        self.bad = False
        self.tell(test, "start")

    def addSuccess(self, test):
        if not self.bad:
            self.tell(test, "pass")

    def addSkip(self, test, reason):
        self.tell(test, "skip", " ".join(reason.split()))

    def addError(self, test, error):
        self.failed(test, error)

    def addFailure(self, test, error):
        self.failed(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.bad = True
            self.failed(test, error)


def main():
    suite, results, module, *wanted = sys.argv[1:]
    with open(results, "a", encoding="utf-8") as out:
        try:
            loaded = load(os.path.abspath(suite), module)
        except ImportError as e:
            out.write(json.dumps({"test": module, "event": "skip", "reason": f"cannot be loaded: {e}"}) + "\n")
            return
        reporter = Reporter(out)
        tests = list(tests_of(unittest.defaultTestLoader.loadTestsFromModule(loaded)))
        for t in tests:
            reporter.tell(t, "there")
        chosen = [t for t in tests if not wanted or t.id().removeprefix(f"{PREFIX}{module}.") in wanted]
        unittest.TestSuite(chosen).run(reporter)


if __name__ == "__main__":
    main()
