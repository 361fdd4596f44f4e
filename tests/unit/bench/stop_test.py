#!/usr/bin/env python3
"""A signal ends `weft bench` in the midst of a case: it reports what it has, and leaves no process behind."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402

PATIENCE = 100  # seconds, of a busy machine
ENDLESS = ("--repetitions", "2", "--seconds", "600", "--no-pin")
MANY = ("--repetitions", "1000", "--seconds", "0.01", "--no-pin")


def in_session(leader):
    """(number, words) of each process in it but the leader."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != leader and os.getsid(int(entry.name)) == leader and ") Z " not in (entry / "stat").read_text():
                yield int(entry.name), (entry / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            pass


def until(ready):
    end = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class StopTest(unittest.TestCase):
    def start(self, suite, *words, many=ENDLESS, form=("--json",)):
        process = subprocess.Popen([str(rc_test.WEFT), "bench", suite, *many, *form, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def await_sides(self, process):
        def both():
            self.assertIsNone(process.poll())
            return sum(words[2:3] == [b"side"] for _, words in in_session(process.pid)) == 2
        self.assertTrue(until(both), "no two sides")

    def expect_end(self, process, number):
        out, said = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + number, said)
        self.assertTrue(until(lambda: not list(in_session(process.pid))), "processes are left")
        report = json.loads(out)
        self.assertIs(report["ended_early"], True)
        self.assertEqual(report["failures"], [])
        return report

    def test_each_suite(self):
        for suite, only, number in (("rc", "write/64K/crc", signal.SIGINT), ("uc", "write/64K/flood", signal.SIGTERM),
                                    ("ud", "ud-ping-pong/64/event", signal.SIGHUP), ("chunk", "tcp/64K", signal.SIGTERM)):
            with self.subTest(suite):
                process = self.start(suite, "--only", only)
                self.await_sides(process)
                process.send_signal(number)
                self.assertEqual(self.expect_end(process, number)["cases"], [])

    def test_a_side_that_is_stopped_holds_nothing_up(self):
        process = self.start("rc", "--only", "tcp/64K")
        self.await_sides(process)
        for side, _ in in_session(process.pid):
            os.kill(side, signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        self.expect_end(process, signal.SIGTERM)

    def test_repetitions_that_are_complete_are_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder, "r.jsonl")
            process = self.start("chunk", "--only", "tcp/64K", "--jsonl", str(kept), many=MANY)
            self.assertTrue(until(lambda: kept.exists() and kept.read_text().count("\n") > 1), "no repetition")
            process.send_signal(signal.SIGTERM)
            report = self.expect_end(process, signal.SIGTERM)
            case, = report["cases"]
            self.assertEqual(len(case["repetitions"]), kept.read_text().count("\n"))
            self.assertGreater(len(case["repetitions"]), 1)

    def test_a_side_that_does_not_exit_is_ended(self):
        stays = rc_test.WEFT.resolve().parents[1] / "tests/unit/bench/stays.so"
        if not stays.exists():
            self.skipTest("a build with sanitizers takes no library before theirs")
        result = rc_test.bench("--quick", "--json", "--no-pin", "--only", "tcp/64K", variables={"LD_PRELOAD": str(stays)})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["failures"], [])

    def test_as_text(self):
        process = self.start("rc", "--only", "tcp/64K", form=())
        self.await_sides(process)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, said)
        self.assertIn("A signal ended this run early: repetitions are missing.\n", out)


if __name__ == "__main__":
    sys.exit(rc_test.main())
