#!/usr/bin/env python3
"""Runs `weft bench rd` quickly, and looks at the shape of what it says. Figures are not judged."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402
from rc_test import bench, positive  # noqa: E402

STREAMS = ("rc-tcp/64K", "rc-tcp/64K/crc", "rc-udp/64K", "rc-udp/64K/crc", "rc-udp/64K/loss-1%", "rc-udp/64K/loss-3%",
           "rd/64K", "rd/64K/loss-1%", "rd/64K/loss-3%")
WITHOUT_LOSS = (*STREAMS, "tcp/64K", "ud/1K/reliable")
LISTS = ("rc-tcp-list/64", "rc-udp-list/64", "ud-list/64/reliable", "rd-list/64")
ROUND_TRIPS = ("tcp-ping-pong/64", "udp-ping-pong/64", "rc-tcp-ping-pong/64", "rc-udp-ping-pong/64",
               "ud-ping-pong/64", "ud-ping-pong/64/reliable", "rd-ping-pong/64")
TARGETS = ["rd_bandwidth", "rd_loss_bandwidth", "rd_rate", "rd_round_trip", "rd_ud_round_trip",
           "rd_pair_bandwidth", "rd_pair_rate", "rd_pair_round_trip"]


class RdTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = bench("--repetitions", "1", "--seconds", "0.1", "--json", "--sizes", "64K", "--losses", "1,3", suite="rd")
        cls.report = json.loads(cls.result.stdout) if cls.result.stdout else {}
        cls.cases = {case["name"]: case for case in cls.report.get("cases", [])}

    def test_everything_was_measured(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual(self.report["failures"], [])
        self.assertEqual(self.report["benchmark"], "rd")
        self.assertEqual(set(self.cases), {*WITHOUT_LOSS, *LISTS, *ROUND_TRIPS, "uc/64K", "udp/8K", "udp/1K", "ud/1K"})

    def test_streams(self):
        for name in (*WITHOUT_LOSS, "uc/64K", "udp/8K", "udp/1K", "ud/1K"):
            with self.subTest(name):
                for figure in ("gbps", "tx_s_per_gb", "rx_s_per_gb", "s_per_gb"):
                    self.assertTrue(positive(self.cases[name]["summary"][figure]), figure)
        for name in STREAMS:
            self.assertEqual(self.cases[name]["baseline"], "tcp/64K")

    def test_rates_and_round_trips(self):
        for name in LISTS:
            self.assertTrue(positive(self.cases[name]["summary"]["messages_per_s"]), name)
        for name in ROUND_TRIPS:
            self.assertTrue(positive(self.cases[name]["summary"]["rtt_us"]), name)

    def test_reliable_ud_loses_nothing(self):
        self.assertEqual(self.cases["ud/1K/reliable"]["summary"]["lost_percent"]["max"], 0)

    def test_each_case_goes_its_way(self):
        for name, case in self.cases.items():
            self.assertEqual(case["channels"], name.startswith("rc-udp") or name.endswith("/reliable"), name)

    def test_targets(self):
        self.assertEqual([target["id"] for target in self.report["targets"]], TARGETS)

    def test_delays(self):
        result = bench("--repetitions", "1", "--seconds", "0.1", "--json", "--sizes", "64K", "--losses", "1", "--delays", "0.1,10", "--only", "r*ms*",
                       suite="rd")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = {case["name"]: case for case in json.loads(result.stdout)["cases"]}
        for name in ("rc-udp/64K/delay-0.1ms", "rd/64K/delay-10ms", "rd/64K/delay-10ms/loss-1%"):
            self.assertTrue(positive(cases[name]["summary"]["gbps"]), name)

    def test_a_link(self):
        if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
            self.skipTest("needs root and /dev/net/tun, for a link of its own")
        result = bench("--quick", "--json", "--link", "--mbps", "200", "--sizes", "64K", "--losses", "1", "--delays", "2", suite="rd")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["path"], "relay")
        cases = {case["name"]: case for case in report["cases"]}
        self.assertEqual(len(cases), 8)
        for what in ("tcp", "rc-tcp", "rc-udp", "rd"):
            for loss in ("", "/loss-1%"):
                gbps = cases[f"{what}/64K/200Mb/delay-2ms{loss}"]["summary"]["gbps"]
                self.assertTrue(positive(gbps), what + loss)
                self.assertLess(gbps["max"], 0.2, "no more than the link carries")

    def test_peers(self):
        result = bench("--quick", "--json", "--peers", "1,20", suite="rd")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = {case["name"]: case for case in json.loads(result.stdout)["cases"]}
        self.assertEqual(list(cases), [f"{what}/64/peers-{n}" for n in (1, 20) for what in ("ud", "ud-reliable", "rc-tcp", "rc-udp")])
        for name, case in cases.items():
            summary = case["summary"]
            self.assertTrue(positive(summary["messages_per_s"]), name)
            self.assertIn("user_bytes_per_peer", summary, name)
            if name.startswith("ud-reliable"):
                self.assertEqual(summary["lost_percent"]["max"], 0)
        sockets = {name: case["summary"]["sockets"]["median"] for name, case in cases.items()}
        self.assertEqual(sockets["rc-tcp/64/peers-20"], sockets["rc-tcp/64/peers-1"] + 19)
        for what in ("ud", "ud-reliable", "rc-udp"):
            self.assertEqual(sockets[f"{what}/64/peers-20"], sockets[f"{what}/64/peers-1"], what)

    def test_setup(self):
        result = bench("--quick", "--json", "--setup", "1,50", suite="rd")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = {case["name"]: case for case in json.loads(result.stdout)["cases"]}
        self.assertEqual(list(cases), [f"{what}/setup-{n}" for n in (1, 50) for what in ("rc-tcp", "rc-udp")])
        for name, case in cases.items():
            self.assertTrue(positive(case["summary"]["connections_per_s"]), name)
            self.assertTrue(positive(case["summary"]["cpu_us_per_connection"]), name)

    def test_setup_has_cases_of_its_own(self):
        result = bench("--quick", "--setup", "2", "--peers", "2", suite="rd")
        self.assertEqual(result.returncode, 2)
        self.assertIn("leave out", result.stderr)

    def test_peers_are_on_loopback(self):
        result = bench("--quick", "--peers", "2", "--netns", suite="rd")
        self.assertEqual(result.returncode, 2)
        self.assertIn("leave out", result.stderr)

    def test_beside_tcp(self):
        if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
            self.skipTest("needs root and /dev/net/tun, for a link of its own")
        result = bench("--quick", "--json", "--link", "--mbps", "200", "--beside", "2", "--delays", "2", suite="rd")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = {case["name"]: case for case in json.loads(result.stdout)["cases"]}
        self.assertEqual(list(cases), ["tcp/16K/200Mb/delay-2ms/beside-2", "rc-udp/16K/200Mb/delay-2ms/beside-2"])
        for name, case in cases.items():
            summary = case["summary"]
            for figure in ("gbps", "beside_gbps", "of_beside", "least_of_mean"):
                self.assertTrue(positive(summary[figure]), (name, figure))
            self.assertLess(summary["gbps"]["max"], 0.2, name)
            self.assertLessEqual(summary["least_of_mean"]["max"], 1.0001, name)

    def test_names_of_streams_beside_tcp(self):
        result = bench("--list", "--link", "--mbps", "50", "--beside", "1,50", suite="rd")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("rc-udp/16K/50Mb/beside-50", result.stdout)

    def test_beside_wants_a_link(self):
        for words in (("--link",), ("--mbps", "100"), ()):
            result = bench("--quick", "--beside", "2", *words, suite="rd")
            self.assertEqual(result.returncode, 2)
            self.assertIn("--link and --mbps", result.stderr)

    def test_what_is_for_a_link_alone_or_not_for_it(self):
        for words, sentence in ((("--mbps", "100"), "--mbps is for --link"), (("--link", "--netns"), "leave out --netns and --offloads"),
                                (("--link", "--offloads", "off"), "leave out --netns and --offloads")):
            result = bench("--list", *words, suite="rd")
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(sentence, result.stderr)

    def test_a_delay_that_is_none(self):
        result = bench("--quick", "--delays", "soon", suite="rd")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--delays", result.stderr)

    def test_table(self):
        result = bench("--quick", "--only", "rc-udp/64K,ud-ping-pong/64", suite="rd")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\n  rc-udp/64K +\d")
        self.assertRegex(result.stdout, r"\n  round trip .* of UDP")
        self.assertIn("RC over UDP / UC", result.stdout)


if __name__ == "__main__":
    sys.exit(rc_test.main())
