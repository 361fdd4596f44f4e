#!/usr/bin/env python3
"""`weft report --of sdp` and `weft bench paper --of sdp`: the figures of the paper on zero copy, and one short run."""

import json
import pathlib
import re
import sys
import tempfile
import unittest

import example
import example_sdp
from page_test import Report

DRAWINGS = {"latency": 2}  # and 6 of all others
NAMES = ["6", "7", "8", "9", "10", "11", "12", "latency"]


class SdpReport(Report):
    def __init__(self, lines):
        super().__init__(lines, "--of", "sdp")

    def here(self, name, what):
        """The last cell of the row of a figure that begins with `what`."""
        rows = re.findall(r"<tr><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td></tr>", self.section(name))
        return next(cells[-1] for cells in rows if cells[0].startswith(what))


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.report = SdpReport(example_sdp.everything())
        cls.addClassCleanup(cls.report.folder.cleanup)

    def test_every_figure_is_there_and_as_files(self):
        self.assertEqual(self.report.result.returncode, 0, self.report.result.stderr)
        self.assertIn(f"{len(NAMES)} figures ({', '.join(NAMES)})", self.report.result.stdout)
        for name in NAMES:
            with self.subTest(name):
                count = DRAWINGS.get(name, 6)
                self.assertEqual(self.report.section(name).count("<svg"), count)
                for number in range(1, count + 1):
                    self.assertTrue((self.report.output / f"figure-{name}-{number}.svg").exists())
                    self.assertTrue((self.report.output / f"figure-{name}-{number}.png").exists())
                self.assertNotIn("Not drawn", self.report.section(name))

    def test_numbers_of_the_paper_and_where_they_stand(self):
        for name, words in {"6": ("256 KB", "around 100 %", "around 40 %", "as low as 20 %", "section 4.1"), "7": ("64 KB", "section 4.2"),
                            "8": ("32 KB", "below 50 %"), "9": ("16 KB", "more than 700 MB/s", "500 MB/s", "0.125", "abstract"),
                            "10": ("2 connections on",), "11": ("any number", "less than 50 % of a single CPU"),
                            "12": ("between 4 and 16 KB", "section 4.3")}.items():
            for word in words:
                with self.subTest(figure=name, word=word):
                    self.assertIn(word, self.report.section(name))

    def test_where_in_place_and_copies_cross(self):
        for place in ("one host", "between namespaces"):
            for name, size in (("6", "256 KB"), ("7", "64 KB"), ("8", "32 KB"), ("9", "16 KB")):
                with self.subTest(place=place, figure=name):
                    self.assertEqual(self.report.here(name, f"{place}, in place is faster"), size)
            self.assertEqual(self.report.here("10", f"{place}, connections from"), "2")
            self.assertEqual(self.report.here("11", f"{place}, connections from"), "1, the smallest measured")
            self.assertEqual(self.report.here("12", f"{place}, 1 connection, in place"), "8 KB")

    def test_cpu_is_the_mean_of_both_sides(self):
        # 1 GB/s at half a second for a GB of both sides together: a quarter of each CPU.
        self.assertEqual(self.report.here("6", "one host, CPU, mean of both sides, 4 KB, SDP, copied"), "25.0 % (22.5..27.5)")
        self.assertEqual(self.report.here("9", "one host, CPU, mean of both sides, beyond 128 KB at most, SDP, copied"), "25.0 %")

    def test_what_weft_wants_of_it(self):
        # 8 Gb/s of 4, and 0.5 * 8192 / 262144 s/GB of 1.
        self.assertEqual(self.report.here("6", "one host, in place / TCP, 256 KB, MB/s"), "2.00: met")
        self.assertEqual(self.report.here("6", "one host, in place / TCP, 256 KB, us/KB"), "0.016: met")
        self.assertNotIn("between namespaces, in place / TCP", self.report.page)

    def test_round_trips_beside_tcp(self):
        self.assertEqual(self.report.here("latency", "one host, 4 KB, SDP / TCP"), "0.267: 12.0 us (11.0..13.0) of 45.0 us (44.0..46.0)")

    def test_it_is_the_page_of_this_paper(self):
        self.assertIn("Zero Copy Sockets Direct Protocol over InfiniBand", self.report.page)
        self.assertNotIn("Radio", self.report.page)
        self.assertNotIn("Power", self.report.page)
        ids = re.findall(r'\bid="([^"]*)"', self.report.page)
        self.assertEqual(len(ids), len(set(ids)))


def few(connections):
    """What one figure by message size needs: a page with all takes a while."""
    return [line for line in example_sdp.everything() if line["parameters"]["group"] == "bandwidth" and line["parameters"]["connections"] == connections]


class OtherPagesTest(unittest.TestCase):
    def report(self, lines):
        report = SdpReport(lines)
        self.addCleanup(report.folder.cleanup)
        self.assertEqual(report.result.returncode, 0, report.result.stderr)
        return report

    def test_one_place_alone(self):
        report = self.report([line for line in few(1) if line["path"] == "veth"])
        self.assertEqual(report.section("6").count("<svg"), 3)
        self.assertIn("weft bench paper --of sdp --only host,net -o RESULTS.jsonl", report.section("7"))
        # One number of connections is no curve.
        self.assertNotIn("<svg", report.section("10"))

    def test_in_place_that_is_never_faster_and_luck_in_between(self):
        lines = [dict(line, figures=dict(line["figures"], gbps=1.0)) if line["parameters"]["size"] == 1048576 and "in-place" in line["case"] else line
                 for line in few(8)]
        self.assertEqual(self.report(lines).here("9", "one host, in place is faster"), "nowhere up to 1 MB")

    def test_one_host_over_tcp_is_not_mixed_in(self):
        lines = few(1)
        before = self.report(lines).section("6")
        strange = [dict(line, parameters=dict(line["parameters"], sockets="sdp-wire"), figures=dict(line["figures"], gbps=99.0))
                   for line in lines if line["path"] == "loopback" and line["parameters"]["sockets"] == "sdp"]
        self.assertEqual(self.report(lines + strange).section("6"), before)

    def test_another_mtu_is_left_out(self):
        lines = few(1)
        other = [dict(line, parameters=dict(line["parameters"], mtu=9000)) for line in lines if line["path"] == "veth"][:5]
        self.assertIn("Not drawn: 5 repetitions between two network namespaces (veth), MTU 9000.", self.report(lines + other).section("6"))


class MeasuringTest(unittest.TestCase):
    def test_list_of_its_steps(self):
        result = example.weft("bench", "paper", "--of", "sdp", "--list")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines(), [f"{part}: {step}" for part in ("host", "net") for step in
                                                      ("1 connection", "2 connections", "4 connections", "8 connections", "round trips")])

    def test_parts_of_the_other_paper_are_none(self):
        result = example.weft("bench", "paper", "--of", "sdp", "--only", "lofar", "-o", "x")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'lofar' is none of host, net", result.stderr)

    def test_from_measuring_to_the_page(self):
        if not (example.WEFT.parent.parent / "lib" / "weft" / "libweft-sdp.so").exists():
            self.skipTest("libweft-sdp.so is not built")
        with tempfile.TemporaryDirectory() as folder:
            result = example.weft("report", "--of", "sdp", "--measure", "--paper", "--quick --only host --connections 1,2 --sizes 16384,65536", "-o", folder)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("figures (6, 7, 10, 12, latency)", result.stdout)
            lines = [json.loads(text) for text in pathlib.Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual({line["parameters"]["sockets"] for line in lines}, set(example_sdp.WAYS["loopback"].values()))
        # What a program of this host is not told, it takes.
        self.assertFalse(any("WEFT_SAME_HOST" in line["machine"]["options"] for line in lines))


if __name__ == "__main__":
    if not example.has_matplotlib():
        sys.exit(example.skip("python3-matplotlib is not installed"))
    sys.exit(example.main())
