#!/usr/bin/env python3
"""`weft bench --jsonl` and `weft bench compare`: what is kept, and the exit status. Figures are not judged."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402
from rc_test import bench  # noqa: E402


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class KeptTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, lines):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        return self.path(name)

    def keep(self, name, *arguments, suite="rc"):
        result = bench("--quick", "--only", "write/64K/crc", "--jsonl", self.path(name), *arguments, suite=suite)
        self.assertEqual(result.returncode, 0, result.stderr)
        return lines_of(self.path(name))

    def test_a_line_for_each_repetition(self):
        lines = self.keep("a.jsonl")
        self.assertEqual([(line["case"], line["repetition"]) for line in lines],
                         [("tcp/64K", 0), ("write/64K/crc", 0), ("tcp/64K", 1), ("write/64K/crc", 1)])
        for line in lines:
            self.assertEqual(line["schema"], "weft-result/1")
            self.assertGreater(line["figures"]["gbps"], 0)
            self.assertGreater(line["cpu"]["initiator"]["total_s"] + line["cpu"]["target"]["total_s"], 0)
            self.assertTrue("watts" in line["energy"] or line["energy"]["unmeasured"])
            self.assertRegex(line["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertRegex(line["version"], r"^\d+\.\d+\.\d+$")

    def test_a_second_run_is_appended(self):
        self.keep("a.jsonl")
        self.assertEqual(len(self.keep("a.jsonl")), 8)

    def test_a_run_behind_a_torn_line_begins_one_of_its_own(self):
        torn = json.dumps({"schema": "weft-result/1", "kind": "repetition"})[:20]
        with open(self.path("a.jsonl"), "w", encoding="utf-8") as file:
            file.write(torn)
        bench("--quick", "--only", "write/64K/crc", "--jsonl", self.path("a.jsonl"), suite="rc")
        with open(self.path("a.jsonl"), encoding="utf-8") as file:
            lines = file.read().split("\n")
        self.assertEqual((lines[0], len(lines), lines[-1]), (torn, 6, ""))
        result = bench(self.path("a.jsonl"), self.path("a.jsonl"), suite="compare")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("a.jsonl:1: is cut off", result.stderr)

    def test_what_fails_or_is_missing_in_b_alone_is_worse(self):
        lines = self.keep("a.jsonl")
        chosen = [line for line in lines if line["case"] == "write/64K/crc"]
        failed = [dict(line, error="no result") for line in chosen]
        for line in failed:
            del line["figures"]
        good, bad = self.path("a.jsonl"), self.write("bad.jsonl", [line for line in lines if line not in chosen] + failed)
        result = bench(good, bad, "--json", suite="compare")
        self.assertEqual(result.returncode, 1, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["failed"], [{"in": "b", "case": "loopback rc write/64K/crc", "repetitions": 2}])
        self.assertEqual(document["broken_in_b"], ["loopback rc write/64K/crc"])
        self.assertEqual(bench(bad, good, suite="compare").returncode, 0)
        self.assertEqual(bench(bad, bad, suite="compare").returncode, 0)
        # All that A has fails in B: nothing is in both, and yet it is known.
        self.assertEqual(bench(self.write("one.jsonl", chosen), self.write("none.jsonl", failed), suite="compare").returncode, 1)
        fewer = self.write("fewer.jsonl", chosen)
        self.assertEqual(bench(good, fewer, suite="compare").returncode, 1)
        self.assertEqual(bench(fewer, good, suite="compare").returncode, 0)

    def test_a_figure_that_no_line_has_is_refused(self):
        self.keep("a.jsonl")
        result = bench(self.path("a.jsonl"), self.path("a.jsonl"), "--figures", "gbps,sockets", suite="compare")
        self.assertEqual(result.returncode, 3)
        self.assertIn("'sockets'", result.stderr)

    def test_a_word_that_is_no_figure_is_refused(self):
        self.keep("a.jsonl")
        result = bench(self.path("a.jsonl"), self.path("a.jsonl"), "--figures", "gbps,gpbs", suite="compare")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'gpbs' is no figure; did you mean 'gbps'?", result.stderr)

    def test_with_itself_nothing_is_worse(self):
        self.keep("a.jsonl")
        result = bench(self.path("a.jsonl"), self.path("a.jsonl"), suite="compare")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"loopback rc write/64K/crc +gbps .* 1\.000  same\n")

    def test_half_the_goodput_is_worse(self):
        lines = self.keep("a.jsonl")
        good = [dict(line, figures={"gbps": 40 + line["repetition"]}) for line in lines]
        bad = [dict(line, figures={"gbps": 20 + line["repetition"]}) for line in lines]
        a, b = self.write("good.jsonl", good), self.write("bad.jsonl", bad)
        result = bench(a, b, "--json", suite="compare")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual({c["verdict"] for c in json.loads(result.stdout)["comparisons"]}, {"worse"})
        self.assertEqual(bench(b, a, suite="compare").returncode, 0)
        self.assertEqual(bench(a, b, "--least", "60", suite="compare").returncode, 0)

    def test_nothing_to_compare(self):
        lines = self.keep("a.jsonl")
        other = self.write("b.jsonl", [dict(line, case="other") for line in lines])
        result = bench(self.path("a.jsonl"), other, suite="compare")
        self.assertEqual(result.returncode, 3)
        self.assertIn("only in B: loopback rc other", result.stdout)
        for wrong in (self.path("missing.jsonl"), __file__):
            result = bench(self.path("a.jsonl"), wrong, suite="compare")
            self.assertEqual(result.returncode, 3)
            self.assertIn(wrong, result.stderr)
        result = bench(self.path("a.jsonl"), self.folder.name, suite="compare")
        self.assertEqual((result.returncode, result.stderr), (3, f"weft bench compare: {self.folder.name} is a folder; name a file of it\n"))

    def test_offloads_take_namespaces(self):
        result = bench("--quick", "--offloads", "off", suite="rc")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--netns", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "namespaces take root")
    def test_offloads_are_a_part_of_the_case(self):
        lines = self.keep("a.jsonl", "--netns", "--offloads", "off")
        self.assertEqual({line["parameters"]["offloads"] for line in lines}, {"off"})
        self.keep("a.jsonl", "--netns", "--offloads", "on")
        result = bench(self.path("a.jsonl"), self.path("a.jsonl"), suite="compare")
        self.assertIn("veth rc tcp/64K offloads=off", result.stdout)
        self.assertIn("veth rc tcp/64K offloads=on", result.stdout)

    def test_sizes_of_plain_udp(self):
        names = bench("--list", "--sizes", "1M", "--udp-sizes", "16K,65000", "--only", "udp/*", suite="uc").stdout
        self.assertEqual(names.split(), ["udp/16K/flood", "udp/65000/flood", "udp/16K/window", "udp/65000/window"])


if __name__ == "__main__":
    sys.exit(rc_test.main(module=sys.modules["__main__"]))
