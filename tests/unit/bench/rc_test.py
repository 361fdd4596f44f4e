#!/usr/bin/env python3
"""Runs `weft bench rc --quick --json` and looks at the shape of what it says. Figures are not judged."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import ipmitool  # noqa: E402

WEFT = pathlib.Path()


def bench(*arguments, suite="rc", variables=None):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")} | (variables or {})
    return subprocess.run([str(WEFT), "bench", suite, *arguments], env=environment, text=True,
                          capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=280)


def positive(spread):
    return 0 < spread["min"] <= spread["median"] <= spread["max"]


class RcTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = bench("--quick", "--json")
        cls.report = json.loads(cls.result.stdout) if cls.result.stdout else {}
        cls.cases = {case["name"]: case for case in cls.report.get("cases", [])}

    def test_everything_was_measured(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual(self.report["failures"], [])

    def test_says_where_and_how(self):
        self.assertEqual(self.report["benchmark"], "rc")
        self.assertEqual(self.report["path"], "loopback")
        self.assertEqual(self.report["repetitions"], 2)
        self.assertTrue(self.report["library"].endswith("/lib/weft/libibverbs.so.1"))
        self.assertGreater(self.report["machine"]["cpus"], 0)
        self.assertEqual(self.report["machine"]["options"], {})

    def test_energy_is_measured_or_says_why_not(self):
        energy = self.report["energy"]
        summary = self.cases["write/1M/crc"]["summary"]
        if "unmeasured" in energy:
            self.assertTrue(energy["remedy"])
            self.assertNotIn("watts", summary)
        else:
            self.assertTrue(positive(summary["gbps_per_w"]))

    def test_where_the_cpu_went(self):
        summary = self.cases["write/1M/crc"]["summary"]
        for figure in ("initiator_peak_bytes", "target_peak_bytes"):
            self.assertTrue(positive(summary[figure]))
        for figure in ("tx_system_s_per_gb", "rx_system_s_per_gb", "softirq_s_per_gb", "steal_s"):
            self.assertGreaterEqual(summary[figure]["min"], 0)
        self.assertLessEqual(summary["tx_system_s_per_gb"]["min"], summary["tx_s_per_gb"]["max"])

    def test_each_case_has_each_repetition(self):
        for name, case in self.cases.items():
            with self.subTest(name):
                self.assertEqual(len(case["repetitions"]), 2)

    def test_bandwidth(self):
        for operation in ("write", "read", "send"):
            for size in ("64", "512", "4K", "16K", "64K", "1M"):
                for crc in ("crc", "no-crc"):
                    with self.subTest(operation=operation, size=size, crc=crc):
                        case = self.cases[f"{operation}/{size}/{crc}"]
                        self.assertTrue(positive(case["summary"]["gbps"]))
                        self.assertTrue(positive(case["summary"]["s_per_gb"]))
                        self.assertEqual(case["baseline"], f"tcp/{size}")
                        self.assertTrue(positive(case["of_baseline"]["gbps"]))

    def test_bare_loops(self):
        for size in ("16K", "64K", "1M"):
            for crc in ("crc", "no-crc"):
                with self.subTest(size=size, crc=crc):
                    case = self.cases[f"bare/{size}/{crc}"]
                    self.assertTrue(positive(case["summary"]["gbps"]))
                    self.assertTrue(positive(case["of_baseline"]["gbps"]))

    def test_baselines_all_use_the_same_congestion_control(self):
        used = {repetition["congestion"] for name, case in self.cases.items()
                if name.startswith("tcp") for repetition in case["repetitions"]}
        self.assertEqual(len(used), 1, used)

    def test_rate(self):
        for way in ("write-list", "write-single"):
            self.assertTrue(positive(self.cases[f"{way}/64/crc"]["summary"]["messages_per_s"]))

    def test_latency(self):
        for name in ("send-ping-pong/64/poll", "write-ping-pong/64/poll", "send-ping-pong/64/event",
                     "write-ping-pong/64/event"):
            with self.subTest(name):
                summary = self.cases[name]["summary"]
                self.assertTrue(positive(summary["rtt_us"]))
                self.assertLessEqual(summary["rtt_us"]["median"], summary["rtt_p99_us"]["median"])
                self.assertTrue(positive(self.cases[name]["of_baseline"]["rtt_us"]))

    def test_rest(self):
        self.assertIn("median", self.cases["idle"]["summary"]["idle_cpu_us_per_s"])
        self.assertTrue(positive(self.cases["memory"]["summary"]["bytes_per_qp"]))

    def test_targets_have_values_and_verdicts(self):
        ids = [target["id"] for target in self.report["targets"]]
        self.assertEqual(ids, ["write_1m_bandwidth", "write_64k_bandwidth", "write_cpu",
                               "crc_bandwidth", "send_round_trip", "write_round_trip", "write_rate",
                               "idle_cpu", "idle_memory", "write_4k_bandwidth"])
        for target in self.report["targets"]:
            with self.subTest(target["id"]):
                self.assertIn(target["met"], (True, False))
                value, required = target["value"]["median"], target["required"]
                smaller = target["better"] == "smaller"
                self.assertEqual(target["met"], value <= required if smaller else value >= required)


class OptionsTest(unittest.TestCase):
    def test_table(self):
        result = bench("--quick", "--only", "write/64K/crc", "--no-pin")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sides not pinned", result.stdout)
        self.assertRegex(result.stdout, r"\n  tcp/64K +\d")
        self.assertRegex(result.stdout, r"\n  write/64K/crc +\d")
        self.assertRegex(result.stdout, r"Writes of 64 B by post list.* not measured\n")

    def test_energy_of_a_management_controller(self):
        with tempfile.TemporaryDirectory() as folder:
            result = bench("--quick", "--only", "write/64K/crc", "--no-pin", "--json", "--energy", "ipmi", variables=ipmitool.saying(folder, 236))
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["energy"], {"source": "ipmi", "of": "machine"})
        for case in report["cases"]:
            for repetition in case["repetitions"]:
                self.assertAlmostEqual(repetition["watts"], 236, places=3)
        result = bench("--quick", "--only", "tcp/64K", "--no-pin", "--json", "--energy", "ipmi", variables={"PATH": "/nowhere"})
        self.assertIn("ipmitool: No such file", json.loads(result.stdout)["energy"]["unmeasured"])

    def test_list_measures_nothing(self):
        result = bench("--list", "--sizes", "2K", "--only", "read/*")
        self.assertEqual(result.stdout, "tcp/2K\nread/2K/crc\nread/2K/no-crc\n")

    def test_unknown_case(self):
        result = bench("--only", "swim")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--list", result.stderr)

    def test_size_that_is_none(self):
        self.assertEqual(bench("--sizes", "0").returncode, 2)

    def test_missing_library_is_named(self):
        result = bench("--library", "/nowhere/libibverbs.so.1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nowhere/libibverbs.so.1", result.stderr)

    def test_library_that_is_none_fails_each_repetition(self):
        result = bench("--quick", "--json", "--only", "write/64K/crc", "--library", __file__)
        self.assertEqual(result.returncode, 1)
        report = json.loads(result.stdout)
        self.assertEqual(len(report["failures"]), 2)
        self.assertIn("cannot load the library", report["failures"][0])


def main(module="__main__"):
    global WEFT  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    WEFT = options.weft
    if not (WEFT.parent.parent / "lib" / "weft" / "libibverbs.so.1").exists():
        print("SKIPPED: weft's libibverbs.so.1 is not built")
        return 77
    program = unittest.main(module=module, argv=[sys.argv[0], *rest], exit=False)
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
