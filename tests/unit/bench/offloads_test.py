#!/usr/bin/env python3
"""`weft bench --netns --offloads`: while a case runs, ethtool says in both of its namespaces that the devices do what was asked."""

import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402
from rc_test import bench  # noqa: E402

FEATURES = ("rx-checksumming", "tx-checksumming", "scatter-gather", "tcp-segmentation-offload", "generic-segmentation-offload",
            "generic-receive-offload")
LIMIT = 60  # seconds


def children(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []  # it has ended


def namespace_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def wait_for_sides(run):
    """The process numbers of both sides, each in a network namespace that nobody else has."""
    own = namespace_of("self")
    until = time.monotonic() + LIMIT
    while time.monotonic() < until and run.poll() is None:
        sides = {namespace_of(pid): pid for pid in children(run.pid)}
        sides.pop(own, None)
        sides.pop(None, None)
        if len(sides) == 2:
            return list(sides.values())
        time.sleep(0.02)
    raise AssertionError(f"no two sides in namespaces of their own; status {run.poll()}")


def features_at(pid):
    """What the device of the process's network does."""
    said = subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ethtool", "-k", "veth0"], capture_output=True, text=True, check=True, timeout=LIMIT)
    words = dict(line.strip().split(": ", 1) for line in said.stdout.splitlines() if ": " in line)
    return {name: words[name].split()[0] for name in FEATURES}


class OffloadsTest(unittest.TestCase):
    def during(self, suite, case, *words):
        """What both devices do while a case runs."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        run = subprocess.Popen([str(rc_test.WEFT), "bench", suite, "--netns", "--repetitions", "1", "--seconds", "30", "--only", case, *words],
                               env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            sides = wait_for_sides(run)
            found = [features_at(pid) for pid in sides]
            self.assertIsNone(run.poll(), "the run was over before it was looked at")
        finally:
            run.terminate()
            run.wait(LIMIT)
            run.stderr.close()
        return found

    @unittest.skipUnless(os.geteuid() == 0, "namespaces take root")
    def test_off_and_on_at_both_ends(self):
        for suite, case in (("rc", "tcp/64K"), ("uc", "udp/8K/flood")):
            for state in ("off", "on"):
                with self.subTest(suite=suite, state=state):
                    self.assertEqual(self.during(suite, case, "--offloads", state), 2 * [dict.fromkeys(FEATURES, state)])

    @unittest.skipUnless(os.geteuid() == 0, "namespaces take root")
    def test_else_they_are_the_kernels_own(self):
        for found in self.during("rc", "tcp/64K"):
            self.assertEqual((found["tcp-segmentation-offload"], found["tx-checksumming"]), ("on", "on"))

    def test_only_between_namespaces(self):
        result = bench("--offloads", "off", "--quick", "--only", "tcp/64K")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--netns", result.stderr)


if __name__ == "__main__":
    sys.exit(rc_test.main(module=sys.modules["__main__"]))
