#!/usr/bin/env python3
"""`weft report`: the page and the figures that it makes of results."""

import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import example
from example import write

NAMES = ["3", "4", "5", "streams", "6", "7", "8", "9", "10", "11", "12"]


class Report:
    def __init__(self, lines, *words):
        self.folder = tempfile.TemporaryDirectory()
        self.output = pathlib.Path(self.folder.name, "report")
        self.result = example.weft("report", write(pathlib.Path(self.folder.name, "results.jsonl"), lines), "-o", str(self.output), *words)
        index = self.output / "index.html"
        self.page = index.read_text(encoding="utf-8") if index.exists() else ""

    def section(self, name):
        return re.search(rf'<section id="figure-{name}">.*?</section>', self.page, re.DOTALL).group(0)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.report = Report(example.everything())
        cls.addClassCleanup(cls.report.folder.cleanup)

    def test_every_figure_is_there_and_as_files(self):
        self.assertEqual(self.report.result.returncode, 0, self.report.result.stderr)
        self.assertIn(f"11 figures ({', '.join(NAMES)})", self.report.result.stdout)
        for name in NAMES:
            with self.subTest(name):
                self.assertEqual(self.report.section(name).count("<svg"), 1)
                xml.etree.ElementTree.parse(self.report.output / f"figure-{name}.svg")
                self.assertEqual((self.report.output / f"figure-{name}.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_needs_no_other_file(self):
        page = re.sub(r'xmlns(:\w+)?="[^"]*"', "", self.report.page)
        self.assertNotIn("src=", page)
        self.assertNotIn("<link", page)
        self.assertNotIn("<script", page)
        self.assertEqual(set(re.findall(r'href="(?!#)([^"]*)"', page)), set())

    def test_ids_are_unique_and_references_lead_somewhere(self):
        ids = re.findall(r'\bid="([^"]*)"', self.report.page)
        self.assertEqual(len(ids), len(set(ids)))
        used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', self.report.page))
        self.assertTrue(used)
        self.assertEqual(used - set(ids), set())

    def test_numbers_of_the_paper_and_where_they_stand(self):
        for name, words in {"3": ("45.09 W", "40.05 W", "0.89", "section 4.2"), "4": ("32.38 W", "31.01 W", "0.72"),
                            "6": ("25.1 Gb/s", "27.85 Gb/s", "17.4 W", "section 4.3"),
                            "7": ("39.37 Gb/s", "38.24 Gb/s", "24.21 W", "13.72 W", "0.57", "section 4.4"),
                            "8": ("38.79 Gb/s", "13.64 W", "section 4.5"), "10": ("around 512 kB", "around 64 kB"),
                            "11": ("1.44 Gb/s per W", "2.79 Gb/s per W", "1.71"), "12": ("breaks down at 3 %", "section 4.6")}.items():
            for word in words:
                with self.subTest(figure=name, word=word):
                    self.assertIn(word, self.report.section(name))

    def test_medians_with_their_spread(self):
        self.assertIn("25.0 Gb/s (24.0..26.0)", self.report.section("9"))  # UC Write
        self.assertIn("90 % of that without loss", self.report.section("12"))
        self.assertIn("while 4 streams of 764 Mb/s", self.report.section("3"))

    def test_says_where_streams_break_and_what_is_not_drawn(self):
        self.assertIn("4; broken at 16, CPU of the receiver there 0.400 s/GB", self.report.section("streams"))
        self.assertIn("Not drawn: 18 repetitions between two network namespaces (veth), MTU 1500, offloads on.", self.report.section("10"))
        for name in ("3", "6", "8", "12"):
            self.assertNotIn("Not drawn", self.report.section(name))

    def test_says_that_power_is_unmeasured_and_why(self):
        self.assertIn("Power is unmeasured", self.report.page)
        self.assertIn("no zone; measure on the host", self.report.page)
        self.assertIn("CPU of the receiver (s/GB)", self.report.section("10"))

    def test_machine_is_named_and_escaped(self):
        self.assertIn("a CPU &lt;fast&gt;, 2 CPUs, Linux 6.1", self.report.page)


class OtherPagesTest(unittest.TestCase):
    def report(self, lines, *words):
        report = Report(lines, *words)
        self.addCleanup(report.folder.cleanup)
        return report

    def test_power_takes_its_place_where_it_is_measured(self):
        lines = [dict(entry, energy={"watts": 20, "of": "package and DRAM"}, figures={**entry["figures"], "watts": 20, "gbps_per_w": 1.25})
                 for entry in example.everything() if entry["kind"] == "repetition" and entry["suite"] in ("rc", "uc")]
        report = self.report(lines)
        self.assertNotIn("unmeasured", report.page)
        self.assertIn("Power is that of package and DRAM", report.page)
        self.assertIn("20.0 W (20.0..20.0)", report.section("8"))
        self.assertIn("1.25 Gb/s per W", report.section("11"))

    def test_a_figure_without_results_says_which_command_makes_it(self):
        report = self.report([stream for stream in example.everything() if stream["suite"] == "loss"])
        self.assertEqual(report.result.returncode, 0, report.result.stderr)
        self.assertEqual(report.page.count("<svg"), 1)
        for name, part in (("3", "lofar"), ("6", "trace"), ("8", "offloads"), ("10", "sweep")):
            self.assertIn(f"weft bench paper --only {part} -o RESULTS.jsonl", report.section(name))

    def test_figures_of_other_results_do_not_stay(self):
        loss = [entry for entry in example.everything() if entry["suite"] == "loss"]
        report = self.report(loss)
        (report.output / "figure-3.svg").write_text("old", encoding="utf-8")
        (report.output / "mine.svg").write_text("mine", encoding="utf-8")
        example.weft("report", write(pathlib.Path(report.folder.name, "results.jsonl"), loss), "-o", str(report.output))
        self.assertEqual(sorted(path.name for path in report.output.iterdir()), ["figure-12.png", "figure-12.svg", "index.html", "mine.svg"])

    def test_a_busy_machine_is_told(self):
        lines = example.everything()[:9]
        self.assertNotIn("busy with other things", self.report(lines).page)
        lines[3] = dict(lines[3], machine=dict(example.MACHINE, load_before=8.25))
        self.assertIn("its load average was up to 8.2", self.report(lines).page)

    def test_failures_are_listed(self):
        lines = example.everything()
        failed = dict(lines[0], error="no result within <60> s")
        del failed["figures"]
        self.assertIn("no result within &lt;60&gt; s", self.report([failed, *lines[1:60]]).page)

    def test_traces_of_weft_measure(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = write(pathlib.Path(folder, "t.jsonl"), [{"t": i / 10, "cpus": 1, "watts": 30 + i, "gbps": 5} for i in range(9)])
            report = self.report([], "--trace", f"tcp={trace}")
            self.assertIn("power (W)", report.section("6"))
            # Beside repetitions without power, CPU.
            report = self.report(example.everything()[:9], "--trace", f"tcp={trace}")
            self.assertNotIn("power (W)", report.section("6"))
            self.assertIn("busy CPUs", report.section("6"))
            self.assertIn("not measured", report.section("6"))
            self.assertEqual(self.report(example.everything()[:9], "--trace", trace).result.returncode, 1)

    def test_nothing_to_show(self):
        for lines in ([], [dict(example.everything()[0], error="broken")]):
            report = self.report(lines)
            self.assertEqual(report.result.returncode, 1)
            self.assertIn("nothing in these files", report.result.stderr)

    def test_without_matplotlib_it_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            # Found before the system's.
            pathlib.Path(folder, "matplotlib.py").write_text("raise ModuleNotFoundError('gone', name='matplotlib')\n", encoding="utf-8")
            results = write(pathlib.Path(folder, "r.jsonl"), example.everything()[:3])
            result = example.weft("report", results, "-o", f"{folder}/report", PYTHONPATH=folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("apt-get install python3-matplotlib", result.stderr)

    def test_wrong_usage(self):
        self.assertEqual(example.weft("report").returncode, 2)
        self.assertEqual(example.weft("report", "--help").returncode, 0)
        result = example.weft("report", "/nowhere/r.jsonl", "-o", "/nowhere")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nowhere/r.jsonl", result.stderr)


if __name__ == "__main__":
    if not example.has_matplotlib():
        sys.exit(example.skip("python3-matplotlib is not installed"))
    sys.exit(example.main())
