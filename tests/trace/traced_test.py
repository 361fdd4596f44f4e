#!/usr/bin/env python3
"""What a failed test leaves behind, by tests/support/traced.

  traced_test.py PROGRAM    PROGRAM is verbs_tests, of which one test is a command that uses weft
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TRACED = pathlib.Path(__file__).resolve().parent / "../support/traced"
TEST = "Atomics.a_value_is_swapped_once"
START = b"MPA ID Req Frame"  # begins each connection


class Traced(unittest.TestCase):
    program = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def start(self, *command, seconds=30):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        return subprocess.Popen([TRACED, self.root / "traces/kind", str(seconds), *command], env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def traced(self, *command, seconds=30):
        with self.start(*command, seconds=seconds) as process:
            stdout, stderr = process.communicate(timeout=60)
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def kept(self, name="kind"):
        return sorted(file.name for file in (self.root / "traces" / name).iterdir())

    def test_a_passing_test_leaves_nothing(self):
        done = self.traced(self.program, f"--gtest_filter={TEST}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("[  PASSED  ] 1 test.", done.stdout)
        self.assertEqual(list(self.root.iterdir()), [])

    def test_a_failing_test_leaves_its_captures_and_keeps_its_status(self):
        script = '"$0" "$@" && exit 3'
        done = self.traced("sh", "-c", script, self.program, f"--gtest_filter={TEST}")
        self.assertEqual(done.returncode, 3)
        folder = self.root / "traces" / f"kind.{TEST}"
        self.assertEqual(done.stdout.splitlines()[-2:], [
            "The test failed with status 3. Once more with a trace it failed with status 3.",
            f"Captures, 1 of them, and the output of that run are in {folder}"])
        capture, output = self.kept(folder.name)
        self.assertEqual(output, "output")
        self.assertIn(START, (folder / capture).read_bytes())
        self.assertIn("[  PASSED  ] 1 test.", (folder / output).read_text())
        self.assertEqual(done.stdout.count("[  PASSED  ]"), 1)

    def test_the_name_is_that_of_the_test_and_older_captures_go(self):
        folder = self.root / "traces/kind.Any.Case.test.0"
        folder.mkdir(parents=True)
        (folder / "old.pcapng").touch()
        done = self.traced("false", "--gtest_filter=Any/Case.test/0")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"There is no capture, for nothing passed through weft; the output of that run is in {folder}", done.stdout)
        self.assertEqual(self.kept(folder.name), ["output"])

    def test_one_that_passes_the_second_time_has_failed(self):
        done = self.traced("sh", "-c", 'test -e "$0" && echo "[  SKIPPED ]" && exit 0; touch "$0"; exit 1', self.root / "mark")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Once more with a trace it passed.", done.stdout)
        self.assertNotIn("SKIPPED", done.stdout)

    def test_a_signal_stays_a_signal(self):
        done = self.traced("sh", "-c", "kill -SEGV $$")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertIn("was ended by signal 11", done.stdout)
        self.assertEqual(self.kept(), ["output"])

    def test_one_that_hangs_is_ended_and_leaves_its_captures(self):
        begun = time.monotonic()
        done = self.traced("sh", "-c", '"$0" "$@"; sleep 50', self.program, f"--gtest_filter={TEST}", seconds=10)
        self.assertLess(time.monotonic() - begun, 40)
        self.assertEqual(done.returncode, 124)
        self.assertIn("did not end within 10 s. Once more with a trace it did not end within 10 s.", done.stdout)
        self.assertEqual(len(self.kept(f"kind.{TEST}")), 2)

    def test_whoever_ends_the_launcher_ends_the_test(self):
        begun = time.monotonic()
        # timeout(1) that is ended before it has come back from its fork(2) leaves its child alone.
        with self.start("sh", "-c", "sleep 2; echo runs; sleep 50; true", seconds=100) as process:
            self.assertEqual(process.stdout.readline(), "runs\n")
            process.terminate()
            process.communicate(timeout=30)  # the last one who could write is gone
        self.assertLess(time.monotonic() - begun, 40)
        self.assertEqual(list(self.root.iterdir()), [])

    def test_a_list_of_tests_passes_through(self):
        done = self.traced("sh", "-c", 'echo "Suite. $1"; exit 5', "sh", "--gtest_list_tests")
        self.assertEqual((done.stdout, done.returncode), ("Suite. --gtest_list_tests\n", 5))
        self.assertEqual(list(self.root.iterdir()), [])

    def test_without_a_place_for_captures_the_status_is_kept(self):
        (self.root / "traces").touch()
        done = self.traced("sh", "-c", "exit 4")
        self.assertEqual(done.returncode, 4)
        self.assertIn("No capture could be made in", done.stdout)


if __name__ == "__main__":
    Traced.program = sys.argv.pop(1)
    unittest.main()
