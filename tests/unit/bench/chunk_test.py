#!/usr/bin/env python3
"""Runs `weft bench chunk` quickly, and looks at the shape of what it says. Figures are not judged."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402
from rc_test import bench, positive  # noqa: E402

SIZES = ("64K", "128K", "256K", "512K", "1M")


def chunk(*arguments):
    return bench(*arguments, suite="chunk")


class ChunkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = chunk("--quick", "--json")
        cls.report = json.loads(cls.result.stdout) if cls.result.stdout else {}
        cls.cases = {case["name"]: case for case in cls.report.get("cases", [])}

    def test_everything_was_measured(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual(self.report["failures"], [])
        self.assertEqual(self.report["benchmark"], "chunk")
        self.assertEqual(len(self.cases), 3 * len(SIZES))

    def test_one_core_unless_asked(self):
        self.assertIs(self.report["pinned"], True)
        self.assertIs(self.report["one_core"], True)

    def test_figures_and_ratios(self):
        for size in SIZES:
            for crc in ("no-crc", "crc"):
                with self.subTest(size=size, crc=crc):
                    case = self.cases[f"chunk/{size}/{crc}"]
                    self.assertEqual(case["crc"], crc == "crc")
                    self.assertEqual(case["piece"], 16384)
                    self.assertEqual(len(case["repetitions"]), 2)
                    for figure in ("gbps", "messages_per_s", "tx_s_per_gb", "rx_s_per_gb", "s_per_gb"):
                        self.assertTrue(positive(case["summary"][figure]), figure)
                    for figure in ("gbps", "tx_s_per_gb", "rx_s_per_gb", "s_per_gb"):
                        self.assertTrue(positive(case["of_baseline"][figure]), figure)
                    self.assertEqual(case["baseline"], f"tcp/{size}")

    def test_one_core_cannot_be_busy_for_longer_than_it_runs(self):
        for name, case in self.cases.items():
            for repetition in case["repetitions"]:
                with self.subTest(name):
                    seconds_per_gb = 8 / repetition["gbps"]
                    # The account of a side begins a little before the clock and ends after it.
                    self.assertLess(repetition["s_per_gb"], 1.3 * seconds_per_gb)


class OptionsTest(unittest.TestCase):
    def test_table(self):
        result = chunk("--quick", "--sizes", "64K")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sides together on one CPU", result.stdout)
        for name in ("tcp/64K", "chunk/64K/no-crc", "chunk/64K/crc"):
            self.assertRegex(result.stdout, rf"\n  {name} +\d")

    def test_a_core_for_each(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one CPU alone")
        result = chunk("--quick", "--two-cores", "--sizes", "100000", "--write-size", "30000", "--only", "*/crc")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sides pinned to a CPU each", result.stdout)
        self.assertRegex(result.stdout, r"\n  chunk/100000/crc +\d")

    def test_kept_with_what_was_chosen(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.jsonl")
            result = chunk("--quick", "--sizes", "128K", "--write-size", "1M", "--only", "chunk/*/no-crc", "--jsonl", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(path, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        self.assertEqual([line["case"] for line in lines], 2 * ["tcp/128K", "chunk/128K/no-crc"])
        for line in lines:
            self.assertEqual(line["suite"], "chunk")
            self.assertIs(line["parameters"]["one_core"], True)
            self.assertEqual(line["parameters"]["piece"], 1048576)

    def test_list(self):
        names = chunk("--list", "--sizes", "2M").stdout.split()
        self.assertEqual(names, ["tcp/2M", "chunk/2M/no-crc", "chunk/2M/crc"])

    def test_too_many_writes(self):
        result = chunk("--sizes", "1M", "--write-size", "64")
        self.assertEqual(result.returncode, 1)
        self.assertIn("16385 requests", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "namespaces take root")
    def test_between_namespaces_as_in_the_paper(self):
        result = chunk("--quick", "--json", "--netns", "--mtu", "9000", "--sizes", "64K,1M")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual((report["path"], report["failures"]), ("veth", []))
        self.assertEqual(len(report["cases"]), 6)


if __name__ == "__main__":
    sys.exit(rc_test.main(module=sys.modules["__main__"]))
