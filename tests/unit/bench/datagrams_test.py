#!/usr/bin/env python3
"""Runs `weft bench uc`, `ud` and `loss` quickly, and looks at the shape of what they say. Figures are not judged."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402
from rc_test import bench, positive  # noqa: E402


def report_of(test, result):
    test.assertEqual(result.returncode, 0, result.stderr)
    report = json.loads(result.stdout)
    test.assertEqual(report["failures"], [])
    return report, {case["name"]: case for case in report["cases"]}


class UcTest(unittest.TestCase):
    def test_streams(self):
        only = "write/64K/*,write-imm/64K/window,send/64K/flood,read/64K"
        report, cases = report_of(self, bench("--quick", "--json", "--only", only, suite="uc"))
        self.assertEqual(report["benchmark"], "uc")
        for name, case in cases.items():
            with self.subTest(name):
                summary = case["summary"]
                self.assertTrue(positive(summary["gbps"]))
                self.assertLessEqual(summary["gbps"]["median"], summary["offered_gbps"]["max"])
                self.assertTrue(0 <= summary["lost_percent"]["min"] <= 100)
                self.assertTrue(positive(summary["rx_s_per_gb"]))
        self.assertEqual(cases["write/64K/flood"]["baseline"], "udp/8K/flood")
        self.assertEqual(cases["read/64K"]["summary"]["lost_percent"]["max"], 0)

    def test_a_program_that_is_written_to_does_not_run(self):
        _, cases = report_of(self, bench("--quick", "--json", "--only", "write/64K/flood", suite="uc"))
        # Once at the end, to be told of it, and when the scheduler takes its CPU away in between.
        self.assertLess(cases["write/64K/flood"]["summary"]["target_thread_switches"]["min"], 50)

    def test_nor_does_one_that_waits_in_get_cq_event_for_long(self):
        report, cases = report_of(self, bench("--quick", "--json", "--sizes", "1M", "--only", "write/1M/flood/get-cq-event", suite="uc"))
        summary = cases["write/1M/flood/get-cq-event"]["summary"]
        self.assertTrue(positive(summary["gbps"]))
        # Until the helper thread takes over.
        self.assertLess(summary["target_thread_switches"]["min"], 50)
        target, = (t for t in report["targets"] if t["id"] == "uc_thread_inside")
        self.assertEqual(target["value"]["median"], summary["target_thread_switches"]["median"])
        self.assertEqual(target["required"], 16)

    def test_table(self):
        result = bench("--quick", "--only", "write/1M/window", suite="uc")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\n  udp/8K/window +\d")
        self.assertRegex(result.stdout, r"\n  write/1M/window +\d")
        self.assertIn("64 KB, CPU of the receiver", result.stdout)

    def test_datagrams_of_a_header_alone_are_refused(self):
        for size in ("1", "8"):
            result = bench("--quick", "--only", "udp/*", "--udp-sizes", size, suite="uc")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("--udp-sizes", result.stderr)

    def test_mtu_needs_namespaces(self):
        self.assertEqual(bench("--mtu", "9000", suite="uc").returncode, 2)


class UdTest(unittest.TestCase):
    def test_round_trips(self):
        report, cases = report_of(self, bench("--quick", "--json", suite="ud"))
        self.assertEqual(len(cases), 6)
        for name, case in cases.items():
            with self.subTest(name):
                self.assertTrue(positive(case["summary"]["rtt_us"]))
        self.assertEqual([t["id"] for t in report["targets"]], ["ud_round_trip"])
        self.assertTrue(positive(report["targets"][0]["value"]))


class LossTest(unittest.TestCase):
    def test_names(self):
        names = bench("--list", "--losses", "0,3", suite="loss").stdout.split()
        self.assertEqual(names, [f"uc-{word}/64K/{p}%" for p in (0, 3) for word in ("write", "write-imm", "send", "read")])
        by_network = bench("--list", "--losses", "0.5", "--by", "nft", "--sizes", "8K", suite="loss").stdout.split()
        self.assertEqual(by_network[-4:], ["udp/8K/0.5%", "rc-write/8K/0.5%", "rc-read/8K/0.5%", "tcp/8K/0.5%"])

    @unittest.skipUnless(os.geteuid() == 0, "namespaces take root")
    def test_what_is_lost_is_seen(self):
        for by in ("fault", "nft"):
            with self.subTest(by):
                report, cases = report_of(self, bench("--quick", "--json", "--losses", "10", "--by", by,
                                                      "--only", "uc-*", suite="loss"))
                # A message of 64 KB is 45 datagrams and more: hardly one comes whole.
                self.assertGreater(cases["uc-write-imm/64K/10%"]["summary"]["lost_percent"]["min"], 50)
                # Of a Write every datagram that comes is placed.
                write = cases["uc-write/64K/10%"]["summary"]
                self.assertTrue(2 < write["lost_datagrams_percent"]["median"] < 40)
                # Nothing is missing but what was lost, and Reads recover.
                self.assertEqual({t["id"]: t["met"] for t in report["targets"]},
                                 {f"uc_{what}_loss": True for what in ("write", "write_immediate", "send", "read")})


if __name__ == "__main__":
    sys.exit(rc_test.main())
