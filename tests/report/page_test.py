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

DRAWINGS = {"5": 4, "11": 1}  # and 2 of all others
NAMES = ["3", "4", "5", "streams", "streams-net", "sustained", "disk", "6", "7", "8", "9", "10", "11", "12"]


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
        self.assertIn(f"{len(NAMES)} figures ({', '.join(NAMES)})", self.report.result.stdout)
        for name in NAMES:
            with self.subTest(name):
                count = DRAWINGS.get(name, 2)
                self.assertEqual(self.report.section(name).count("<svg"), count)
                for one in [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]:
                    xml.etree.ElementTree.parse(self.report.output / f"figure-{one}.svg")
                    self.assertEqual((self.report.output / f"figure-{one}.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

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
        section = self.report.section("streams")
        self.assertIn("on loopback.", section)
        self.assertIn("4: 3.06 Gb/s (3.06..3.06), CPU of the receiver 0.400 s/GB (0.400..0.400)", section)
        self.assertIn("at 16: 40.0 % of the packets lost on the way, 59.1 % behind the pace; 5.00 Gb/s (5.00..5.00) came of 12.2; CPU of the receiver 0.400",
                      section)
        self.assertIn("Not drawn: 18 repetitions between two network namespaces (veth), MTU 1500, offloads on.", self.report.section("10"))
        for name in ("3", "6", "8", "12", "streams", "streams-net", "sustained"):
            self.assertNotIn("Not drawn", self.report.section(name))

    def test_streams_between_namespaces_stand_apart(self):
        section = self.report.section("streams-net")
        self.assertIn("between two network namespaces (veth), MTU 1500.", section)
        self.assertIn("1: 0.764 Gb/s (0.764..0.764), CPU of the receiver 0.800 s/GB (0.800..0.800)", section)
        self.assertIn("at 4: 7.0 % of the packets lost on the way", section)
        self.assertIn("at 1 streams, as many as both sustain", section)

    def test_says_that_power_is_unmeasured_and_why(self):
        self.assertIn("Power is unmeasured", self.report.page)
        self.assertIn("no zone; measure on the host", self.report.page)
        self.assertIn("CPU of the receiver (s/GB)", self.report.section("10"))

    def test_says_of_each_axis_of_values_which_way_is_better(self):
        for name, words in {"8": ("more", "less"), "9": ("more", "less"), "10": ("more", "less"), "11": ("more",), "12": ("more", "more"),
                            "streams": ("more", "less"), "streams-net": ("more", "less"), "sustained": ("more", "less"), "disk": ("more", "less")}.items():
            drawings = re.findall(r"<svg .*?</svg>", self.report.section(name), re.DOTALL)
            found = [tuple(re.findall(r"(more|less) is better", drawing)) for drawing in drawings]
            with self.subTest(figure=name):
                # The label stands in the drawing as a comment, too.
                self.assertEqual([set(words) for words in found], [{word} for word in words])

    def test_efficiency_is_more_where_the_cpu_is_less(self):
        # Of TCP 1 s/GB in one half of the repetitions and 0.5 in the other, of UC Reads 1/6.
        section = self.report.section("11")
        self.assertIn("<td>TCP sockets, best size</td><td>1.44 Gb/s per W</td><td>computed from sections 4.3 and 4.4, of the CPU&#x27;s power</td>"
                      "<td>1.50 GB per CPU s (1.00..2.00)</td>", section)
        self.assertIn("<td>6.00 GB per CPU s (6.00..6.00)</td>", section)
        self.assertIn("<td>RC Write / TCP sockets, efficiency</td><td>1.22</td><td>computed from sections 4.3 and 4.4</td><td>2.00</td>", section)

    def test_says_what_is_a_hundred_percent_of_each_curve(self):
        self.assertIn("100 % of a curve is its own goodput without loss, in Gb/s TCP sockets 6.00, UDP sockets 7.00, RC Write 8.00, RC Read 9.00, "
                      "UC Write 10.0, UC Read 11.0.", self.report.section("12"))

    def test_machine_is_named_and_escaped(self):
        self.assertIn("a CPU &lt;fast&gt;, 2 CPUs, Linux 6.1", self.report.page)


class GoalTest(unittest.TestCase):
    """What weft wants of UC beside UDP sockets, as the page says it."""

    def cells(self, lines):
        """What stands behind the two goals, of UC with one packet of each Write."""
        report = Report(lines)
        self.addCleanup(report.folder.cleanup)
        self.assertEqual(report.result.returncode, 0, report.result.stderr)
        rows = re.findall(r"<tr><td>UC / UDP sockets, (rate|CPU)[^<]*</td><td>([^<]*)</td><td>[^<]*</td><td>([^<]*)</td></tr>", report.section("sustained"))
        self.assertEqual([what for what, *_ in rows], ["rate", "CPU"])
        self.assertIn("wanted: at least 2.5", rows[0][1])
        self.assertIn("wanted: at most 0.45", rows[1][1])
        return [here for *_, here in rows]

    @staticmethod
    def lines(uc, udp, **more):
        """Of (Gb/s, CPU s/GB) of each repetition."""
        return [example.fastest(transport, gbps, repetition, cpu, **more) for transport, runs in (("uc", uc), ("udp", udp))
                for repetition, (gbps, cpu) in enumerate(runs)]

    def test_met_by_all_repetitions(self):
        rate, cpu = self.cells(self.lines([(9, 0.2), (8, 0.25), (10, 0.3)], [(3, 1), (2, 1.25), (3, 0.8)]))
        self.assertEqual(rate, "3.00 (2.67..5.00): met. UC 9.00 Gb/s (8.00..10.0), UDP 3.00 Gb/s (2.00..3.00)")
        self.assertEqual(cpu, "0.250 (0.160..0.375): met. UC 0.250 s/GB (0.200..0.300), UDP 1.00 s/GB (0.800..1.25)")

    def test_not_met(self):
        rate, cpu = self.cells(self.lines([(4, 0.5)] * 2, [(2, 1)] * 2))
        self.assertTrue(rate.startswith("2.00 (2.00..2.00): not met. UC"), rate)
        self.assertTrue(cpu.startswith("0.500 (0.500..0.500): not met. UC"), cpu)

    def test_at_the_limit_is_met(self):
        rate, cpu = self.cells(self.lines([(5, 0.45)] * 2, [(2, 1)] * 2))
        self.assertIn(": met. ", rate)
        self.assertIn(": met. ", cpu)

    def test_ranges_that_reach_to_the_other_side_are_told(self):
        rate, cpu = self.cells(self.lines([(6, 0.4), (6, 0.4), (4, 0.5)], [(2, 1)] * 3))
        self.assertIn("3.00 (2.00..3.00): met by the medians, and the ranges reach to the other side.", rate)
        self.assertIn("0.400 (0.400..0.500): met by the medians, and the ranges reach to the other side.", cpu)

    def test_one_repetition_is_told(self):
        self.assertIn(": met, with one repetition alone. ", self.cells(self.lines([(6, 0.4)], [(2, 1)] * 2))[0])

    def test_another_mtu_is_not_judged(self):
        rate, cpu = self.cells(self.lines([(6, 0.4)] * 2, [(2, 1)] * 2, mtu=9000))
        for text in (rate, cpu):
            self.assertIn(": not judged, for the MTU is 9000. ", text)

    def test_without_udp_nothing_is_said(self):
        self.assertEqual(self.cells(self.lines([(6, 0.4)], [])), ["not measured"] * 2)

    def test_loopback_and_other_mtus_are_left_out(self):
        lines = self.lines([(6, 0.4)] * 3, [(2, 1)] * 3)
        strange = self.lines([(60, 0.1)] * 2, [(60, 0.1)], mtu=9000)
        loopback = [dict(line, path="loopback", parameters=dict(line["parameters"], mtu=None)) for line in self.lines([(70, 0.1)], [(70, 0.1)])]
        rate, cpu = self.cells([*strange, *loopback, *lines])
        self.assertIn("3.00 (3.00..3.00): met. ", rate)
        self.assertIn("0.400 (0.400..0.400): met. ", cpu)
        report = Report([*strange, *loopback, *lines])
        self.addCleanup(report.folder.cleanup)
        self.assertIn("Not drawn: 3 repetitions between two network namespaces (veth), MTU 9000, 2 repetitions on loopback.", report.section("sustained"))

    def test_several_packets_of_a_write_have_rows_of_their_own(self):
        lines = self.lines([(6, 0.4)] * 2, [(2, 1)] * 2) + [example.fastest("uc", 12, repetition, 0.2, group=8) for repetition in range(2)]
        report = Report(lines)
        self.addCleanup(report.folder.cleanup)
        section = report.section("sustained")
        self.assertNotIn("Not drawn", section)
        self.assertIn("UC, 8 packets a Write / UDP sockets, rate without loss", section)
        self.assertIn("6.00 (6.00..6.00): met. UC 12.0 Gb/s", section)
        self.assertIn("3.00 (3.00..3.00): met. UC 6.00 Gb/s", section)


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
        self.assertEqual(report.page.count("<svg"), 2)
        for name, part in (("3", "lofar"), ("streams-net", "lofar-net"), ("sustained", "trace-net"), ("6", "trace"), ("8", "offloads"), ("10", "sweep")):
            self.assertIn(f"weft bench paper --only {part} -o RESULTS.jsonl", report.section(name))

    def test_figures_of_other_results_do_not_stay(self):
        loss = [entry for entry in example.everything() if entry["suite"] == "loss"]
        report = self.report(loss)
        for old in ("figure-3.svg", "figure-5-4.png"):
            (report.output / old).write_text("old", encoding="utf-8")
        (report.output / "mine.svg").write_text("mine", encoding="utf-8")
        example.weft("report", write(pathlib.Path(report.folder.name, "results.jsonl"), loss), "-o", str(report.output))
        self.assertEqual(sorted(path.name for path in report.output.iterdir()),
                         ["figure-12-1.png", "figure-12-1.svg", "figure-12-2.png", "figure-12-2.svg", "index.html", "mine.svg"])

    def test_a_busy_machine_is_told(self):
        lines = example.everything()[:9]
        self.assertNotIn("busy with other things", self.report(lines).page)
        lines[3] = dict(lines[3], machine=dict(example.MACHINE, load_before=8.25))
        self.assertIn("its load average was up to 8.2", self.report(lines).page)

    def test_a_disk_is_compared_with_dd(self):
        lines = [example.disk(case, gbps + repetition / 10, repetition) for repetition in range(3) for case, gbps in (("dd", 10), ("rc", 9.6), ("tcp", 5))]
        report = self.report(lines)
        self.assertIn("0.960 (0.941..0.980): met", report.section("disk"))
        self.assertIn("0.505 (0.490..0.520): not met", report.section("disk"))
        self.assertNotIn("Power", report.page)
        self.assertNotIn("missing", report.section("disk"))
        holed = [example.disk("dd", 10), example.disk("udp", 9.5, lost=12.34)]
        self.assertIn("12.3 % of the packets missing", self.report(holed).section("disk"))
        # Without dd there is nothing to compare with.
        self.assertNotIn("<svg", self.report(lines[1:3]).section("disk"))
        # A disk has no part in whether the others have their power.
        metered = [dict(entry, figures=dict(entry["figures"], watts=20.0, gbps_per_w=1.25), energy={"of": "package", "watts": 20.0})
                   for entry in example.everything() if entry["suite"] in ("rc", "uc")]
        self.assertNotIn("unmeasured", self.report(metered + lines).page)

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

    def test_a_trace_is_named_with_its_transport(self):
        for word, sentence in (("t.jsonl", "--trace takes TRANSPORT=FILE, not 't.jsonl'"), ("tcp=", "--trace takes TRANSPORT=FILE"),
                               ("tpc=t.jsonl", "'tpc' is none of tcp, udp, rc, uc; did you mean 'tcp'?")):
            with self.subTest(word):
                report = self.report(example.everything()[:9], "--trace", word)
                self.assertEqual(report.result.returncode, 2)
                self.assertIn(sentence, report.result.stderr)

    def test_nothing_to_show(self):
        for lines in ([], [dict(example.everything()[0], error="broken")]):
            report = self.report(lines)
            self.assertEqual(report.result.returncode, 1)
            self.assertIn("nothing in these files", report.result.stderr)

    def test_results_of_which_no_figure_is_made(self):
        report = self.report([dict(entry, suite="ud") for entry in example.everything()[:3]])
        self.assertEqual(report.result.returncode, 1)
        self.assertIn("index.html: no figure is made of these results", report.result.stderr)
        self.assertEqual(report.result.stdout, "")
        self.assertIn("weft bench paper --only", report.page)

    def test_without_matplotlib_it_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            # Found before the system's.
            pathlib.Path(folder, "matplotlib.py").write_text("raise ModuleNotFoundError('gone', name='matplotlib')\n", encoding="utf-8")
            results = write(pathlib.Path(folder, "r.jsonl"), example.everything()[:3])
            # Before it measures for 20 minutes.
            for words in ([results], ["--measure", "--paper", "--quick --only lofar --streams 1 --rate 20"]):
                with self.subTest(words):
                    result = example.weft("report", *words, "-o", f"{folder}/report", PYTHONPATH=folder)
                    self.assertEqual(result.returncode, 1)
                    self.assertIn("apt-get install python3-matplotlib", result.stderr)
                    self.assertFalse(pathlib.Path(folder, "report", "results.jsonl").exists())

    def test_streams_of_both_networks_stand_in_a_figure_of_their_own_each(self):
        lines = [example.lofar("uc", streams, 0.764 * streams, suite="lofar", cpu=0.3) for streams in (1, 4)]
        lines += [example.lofar("uc", streams, 0.764 * streams, suite="lofar-net", cpu=0.9) for streams in (1, 4)]
        lines += [example.lofar("uc", 4, 0.764 * 4, 1, "lofar-net", cpu=70, mtu=9000)]
        report = self.report(lines)
        for name, mine, other in (("streams", "0.300", "0.900"), ("streams-net", "0.900", "0.300")):
            with self.subTest(name):
                section = report.section(name)
                self.assertIn(f"4: 3.06 Gb/s (once), CPU of the receiver {mine} s/GB (once)", section)
                self.assertNotIn(other, re.sub(r"<svg .*?</svg>", "", section, flags=re.DOTALL))
        self.assertIn("Not drawn: 1 repetition between two network namespaces (veth), MTU 9000.", report.section("streams-net"))

    def test_how_a_transport_broke(self):
        lines = [example.lofar(transport, streams, 0.764 * streams) for transport in ("tcp", "udp") for streams in (1, 4)]
        lines[1]["figures"].update(gbps=1.528)
        lines[3]["figures"].update(gbps=0.764 * 4 * 0.75, lost_percent=25, skipped_percent=20)
        section = self.report(lines).section("streams")
        self.assertIn("at 4: 50.0 % behind the pace; 1.53 Gb/s (once) came of 3.06", section)
        self.assertIn("at 4: 5.0 % of the packets lost on the way, 20.0 % never sent, for their time was over, 25.0 % behind the pace", section)

    def test_measuring_before_needs_its_option(self):
        self.assertEqual(example.weft("report", "-o", "/nowhere").returncode, 2)
        self.assertEqual(example.weft("report", "r.jsonl", "--paper", "--budget 1", "-o", "/nowhere").returncode, 2)
        with tempfile.TemporaryDirectory() as folder:
            result = example.weft("report", "--measure", "--paper", "--only cooking", "-o", folder)
            self.assertEqual(result.returncode, 2)
            self.assertIn("'cooking' is none of", result.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

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
