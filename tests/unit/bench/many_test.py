#!/usr/bin/env python3
"""Runs `weft bench many` quickly, and looks at the shape of what it says. Figures are not judged."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402
from rc_test import bench, positive  # noqa: E402

CROWDS = ("1", "8", "10", "64", "10-of-1000")


class ManyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = bench("--quick", "--json", suite="many")
        cls.report = json.loads(cls.result.stdout) if cls.result.stdout else {}
        cls.cases = {case["name"]: case for case in cls.report.get("cases", [])}

    def test_everything_was_measured(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual(self.report["failures"], [])
        self.assertEqual(len(self.cases), 3 * len(CROWDS))

    def test_figures_and_ratios(self):
        for crowd in CROWDS:
            for crc in ("crc", "no-crc"):
                with self.subTest(crowd=crowd, crc=crc):
                    case = self.cases[f"write/64K/{crowd}/{crc}"]
                    self.assertEqual(case["baseline"], f"tcp/64K/{crowd}")
                    for figure in ("gbps", "s_per_gb"):
                        self.assertTrue(positive(case["summary"][figure]), figure)
                        self.assertTrue(positive(case["of_baseline"][figure]), figure)

    def test_targets(self):
        self.assertEqual([target["id"] for target in self.report["targets"]], ["many_bandwidth", "idle_beside_busy"])


if __name__ == "__main__":
    sys.exit(rc_test.main(module=sys.modules["__main__"]))
