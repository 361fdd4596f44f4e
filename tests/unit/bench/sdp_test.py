#!/usr/bin/env python3
"""Runs `weft bench sdp` quickly, and looks at the shape of what it says. Figures are not judged."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402
from rc_test import bench, positive  # noqa: E402

WAYS = ("tcp", "sdp", "sdp-copied", "sdp-in-place", "sdp-written", "sdp-wire", "sdp-wire-copied", "sdp-wire-in-place", "sdp-wire-written",
        "sdp-relay")


def sdp(*arguments):
    return bench(*arguments, suite="sdp")


class SdpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = sdp("--repetitions", "1", "--seconds", "0.1", "--json", "--sizes", "64K", "--connections", "1,3", "--only", "*/64K/*,*-ping-pong/1K")
        cls.report = json.loads(cls.result.stdout) if cls.result.stdout else {}
        cls.cases = {case["name"]: case for case in cls.report.get("cases", [])}

    def test_everything_was_measured(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual(self.report["failures"], [])
        self.assertEqual(self.report["benchmark"], "sdp")
        self.assertEqual(len(self.cases), 3 * len(WAYS))

    def test_figures_and_ratios(self):
        for way in WAYS:
            for connections in (1, 3):
                with self.subTest(way=way, connections=connections):
                    case = self.cases[f"{way}/64K/{connections}"]
                    for figure in ("gbps", "tx_s_per_gb", "rx_s_per_gb", "s_per_gb"):
                        self.assertTrue(positive(case["summary"][figure]), figure)
                        if way != "tcp":
                            self.assertTrue(positive(case["of_baseline"][figure]), figure)
            self.assertTrue(positive(self.cases[f"{way}-ping-pong/1K"]["summary"]["rtt_us"]), way)

    def test_a_way_is_the_one_that_it_is_named_after(self):
        """Over SDP the library's threads work, and the kernel's TCP has none."""
        for connections in (1,):
            self.assertEqual(self.cases[f"tcp/64K/{connections}"]["summary"]["tx_library_s_per_gb"]["median"], 0)
            self.assertTrue(positive(self.cases[f"sdp-relay/64K/{connections}"]["summary"]["tx_library_s_per_gb"]))


class OptionsTest(unittest.TestCase):
    def test_table(self):
        result = sdp("--quick", "--sizes", "4K", "--connections", "1", "--only", "*/4K/1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("us/KB", result.stdout)
        for way in WAYS:
            self.assertRegex(result.stdout, rf"\n  {way}/4K/1 +\d")

    def test_between_namespaces_nothing_is_shared(self):
        result = sdp("--netns", "--list")
        self.assertEqual(result.returncode, 0, result.stderr)
        names = {name.split("/")[0] for name in result.stdout.split()}
        self.assertEqual(names, {way + rest for way in WAYS if way == "tcp" or "-wire" in way for rest in ("", "-ping-pong")})


if __name__ == "__main__":
    sys.exit(rc_test.main(module=sys.modules["__main__"]))
