#!/usr/bin/env python3
"""`weft bench paper`: its steps, turns and budget, what it makes of a run of weft stream; and one short run."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import example
import paper
import places
import results as kept
import streams_run
from steps import bench_step, reason_of


class Clock:
    """A progress whose time the steps move."""

    def __init__(self):
        self.now = 0.0

    def elapsed(self):
        return self.now

    def show(self, *_):
        pass


def step(clock, seconds, log, name):
    def run(turn):
        clock.now += seconds
        log.append((turn, name))
    made = paper.Step("lofar", name, run)
    return made


class TurnsTest(unittest.TestCase):
    def setUp(self):
        self.clock, self.log = Clock(), []
        # run_all() asks the system's clock how long a step took; here steps say it.
        self.real, paper.time = paper.time, self
        self.addCleanup(self.restore)

    def restore(self):
        paper.time = self.real

    def monotonic(self):
        return self.clock.now

    def run_all(self, seconds, turns, budget):
        steps = [step(self.clock, took, self.log, name) for name, took in seconds.items()]
        paper.run_all(steps, turns, budget, self.clock)
        return steps

    def test_each_turn_runs_each_step(self):
        self.run_all({"a": 1, "b": 2}, 2, 100)
        self.assertEqual(self.log, [(0, "a"), (0, "b"), (1, "a"), (1, "b")])

    def test_ends_before_a_step_that_would_not_end_in_time(self):
        steps = self.run_all({"a": 3, "b": 4}, 5, 10.5)
        self.assertEqual(self.log, [(0, "a"), (0, "b"), (1, "a")])
        self.assertEqual([s.done for s in steps], [2, 1])

    def test_a_budget_that_is_used_up_leaves_steps_out(self):
        steps = self.run_all({"a": 3, "b": 4}, 1, 2)
        self.assertEqual([s.done for s in steps], [1, 0])


    def test_a_step_that_is_not_needed_any_more_is_passed_over(self):
        steps = [step(self.clock, 1, self.log, name) for name in ("a", "b", "c")]
        steps[1].needed = lambda: self.clock.now > 4
        paper.run_all(steps, 3, 100, self.clock)
        # In the first turn all run.
        self.assertEqual(self.log, [(0, "a"), (0, "b"), (0, "c"), (1, "a"), (1, "c"), (2, "a"), (2, "b"), (2, "c")])
        self.assertEqual([s.passed_over for s in steps], [False, True, False])

    def test_more_streams_than_were_too_many_each_time_and_by_far_are_not_needed(self):
        found = paper.Found()
        # Streams, Gb/s of 8 that came, and which numbers are too many since.
        for count, gbps, beyond in ((4, 8, []), (4, 7.1, []), (16, 5, [50]), (16, 7.3, []), (50, 5, []), (8, 7.1, [16, 50])):
            found.add(count, {"gbps": gbps, "offered_gbps": 8})
            self.assertEqual([other for other in (1, 4, 8, 16, 50) if found.broke_below(other)], beyond, (count, gbps))

    def test_each_turn_tries_a_number_of_streams_where_it_breaks(self):
        asked = []

        def run(_weft, transport, count, mbps, *_):
            """UDP takes 9 streams, the others all."""
            asked.append((transport, count))
            share = 1.0 if transport != "udp" or count <= 9 else 0.95
            return {"gbps": share * count, "offered_gbps": count, "lost_percent": 100 * (1 - share)}, [], {}
        real, streams_run.run = streams_run.run, run
        self.addCleanup(lambda: setattr(streams_run, "run", real))
        with tempfile.TemporaryDirectory() as folder:
            options = paper.parse(["--weft", "weft", "--version-of-weft", "1", "-o", f"{folder}/r.jsonl"])
            steps = paper.lofar_steps(options, "lofar", places.Loopback())
            paper.run_all(steps, 7, 1000, self.clock)
            lines = [json.loads(text) for text in pathlib.Path(folder, "r.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual([count for transport, count in asked if transport == "udp" and count not in options.streams], [10, 7, 8, 9, 9, 10, 9])
        self.assertEqual({count for transport, count in asked if transport != "udp"}, set(options.streams))
        self.assertEqual([(line["case"], line["parameters"]["streams"], line["repetition"]) for line in lines][16:18],
                         [("lofar/udp/10", 10, 0), ("lofar/tcp/1", 1, 1)])
        self.assertEqual(kept.sustained(kept.stream_counts(lines), "udp"), (9, 10))


class Screen(io.StringIO):
    def __init__(self, live):
        super().__init__()
        self.live = live

    def isatty(self):
        return self.live


class ProgressTest(unittest.TestCase):
    def shown(self, live):
        screen = Screen(live)
        with contextlib.redirect_stderr(screen):
            progress = paper.Progress([paper.Step("lofar", name, None) for name in ("a", "b")], 100)
            progress.begun -= 50
            progress.show(0, 5, 1, progress.steps[1])
            progress.close()
        return screen.getvalue()

    def test_a_bar_on_a_terminal_and_a_line_elsewhere(self):
        text = "turn 1 of 5, step 2 of 2, 0:50 of 1:40: lofar, b"
        self.assertEqual(self.shown(True), f"\r\x1b[K[{10 * '#'}{10 * ' '}] {text}\r\x1b[K")
        self.assertEqual(self.shown(False), text + "\n")


class KeepingTest(unittest.TestCase):
    def test_all_reasons_of_a_failed_step_are_told(self):
        said = "weft bench: note: few descriptors\nweft bench: read/64K: no result\nweft bench: tcp/64K: damaged\n"
        self.assertEqual(reason_of(1, said), "read/64K: no result; tcp/64K: damaged")
        self.assertEqual(reason_of(-9, ""), "status -9")
        self.assertIsNone(reason_of(0, said))

    def test_the_reason_comes_from_weft_bench(self):
        with tempfile.TemporaryDirectory() as folder:
            options = paper.parse(["--weft", str(example.WEFT), "--version-of-weft", "1", "-o", f"{folder}/r.jsonl", "--quick"])
            made = bench_step(options, "sweep", "nothing", "rc", "--only", "no-such-case")
            self.assertIn("no case is called", made.run(0))

    def test_a_line_that_a_killed_writer_left_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "r.jsonl")
            for before, after in ((None, b""), (b"", b""), (b"{}\n", b"{}\n"), (b'{"ki', b'{"ki\n')):
                with self.subTest(before):
                    if before is not None:
                        path.write_bytes(before)
                    paper.end_line(path)
                    self.assertEqual(path.read_bytes(), after)


class FiguresTest(unittest.TestCase):
    SENT = {"sending_s": 2.0, "bytes": 1_000_000_000, "cpu_s": 0.9, "streams": [{"sent": 60, "skipped": 20}, {"sent": 20, "skipped": 0}]}
    RECEIVED = {"bytes": 750_000_000, "cpu_s": 1.0, "streams": [{"received": 50}, {"received": 25}]}
    DOCUMENTS = [{"event": "listening", "port": 1}, {"bytes": 0, "cpu_s": 0.2}, {"bytes": 0, "cpu_s": 0.25}, {"bytes": 5, "cpu_s": 0.6}]

    def figures(self, looks=(), offered=4.0):
        return streams_run.figures_of(self.SENT, self.DOCUMENTS, self.RECEIVED, looks, 2, offered)

    def test_goodput_is_what_came_while_packets_left(self):
        self.assertAlmostEqual(self.figures()["gbps"], 3.0)
        self.assertEqual(self.figures()["offered_gbps"], 4.0)
        self.assertAlmostEqual(self.figures(offered=0)["offered_gbps"], 4.0)

    def test_skipped_packets_are_lost_ones(self):
        self.assertAlmostEqual(self.figures()["lost_percent"], 25.0)

    def test_cpu_before_the_first_packet_does_not_count(self):
        self.assertAlmostEqual(self.figures()["rx_s_per_gb"], 1.0)

    def test_each_side_has_its_own_bytes(self):
        self.assertAlmostEqual(self.figures()["tx_s_per_gb"], 0.9)  # of 1 GB sent, of which 0.75 came

    def test_cpus_are_those_while_packets_left(self):
        figures = self.figures([{"machine_cpus": 1.5}, {"machine_cpus": None}, {"machine_cpus": 1.0}])
        self.assertAlmostEqual(figures["rx_cpus"], 0.375)
        self.assertAlmostEqual(figures["tx_cpus"], 0.45)
        self.assertAlmostEqual(figures["machine_cpus"], 1.25)
        self.assertNotIn("machine_cpus", self.figures())

    def test_looks_that_saw_connecting_or_the_end_do_not_count(self):
        looks = [{"time": 10 + i / 4} for i in range(12)]
        self.assertEqual([look["time"] for look in streams_run.while_packets_left(looks, 10.4, 12.1)], [10.75, 11.0, 11.25, 11.5, 11.75, 12.0])

    def test_what_was_skipped_stands_apart_from_what_was_lost(self):
        self.assertAlmostEqual(self.figures()["skipped_percent"], 20.0)

    def test_power_is_the_mean_of_the_looks(self):
        figures = self.figures([{"watts": 10}, {"watts": None}, {"watts": 20}])
        self.assertEqual(figures["watts"], 15)
        self.assertAlmostEqual(figures["gbps_per_w"], 0.2)
        self.assertNotIn("watts", self.figures([{"watts": None}]))

    def test_samples_are_those_while_packets_flow(self):
        looks = [{"t": t, "time": 1000 + t, "cpus": 1, "machine_cpus": 1, "watts": None} for t in (0, 1, 2, 3, 4)]
        looks.append({"t": 3.01, "time": 1003.01, "cpus": 40, "machine_cpus": 1, "watts": None})  # too soon to mean anything
        looks.sort(key=lambda look: look["t"])
        documents = [{"seconds": t, "gbps": t} for t in (1, 2, 3)] + [{"seconds": 3.5, "gbps": 9, "final": True}]
        found = streams_run.samples_of(looks, documents, 1001.5, 1003.0)
        self.assertEqual([(s["t"], s["cpus"], s["gbps"]) for s in found], [(2, 1, None), (2, None, 2), (3, 1, None), (3, None, 3)])

    def test_a_side_without_an_account_is_a_failure(self):
        with self.assertRaises(streams_run.StreamFailed):
            streams_run.last_document('{"event": "listening"}\n')


def receivers(seconds):
    """The processes that are `weft stream recv` of a run of so many seconds."""
    limit = str(seconds + streams_run.DELAY + streams_run.START_LIMIT + streams_run.END_LIMIT).encode()
    found = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if b"recv" in words and limit in words:
            found.add(entry.parent.name)
    return found


class CommandTest(unittest.TestCase):
    def test_list_has_a_step_for_each_transport_and_number_of_streams(self):
        result = example.weft("bench", "paper", "--list", "--only", "lofar,offloads", "--streams", "2,3")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:8], [f"lofar: lofar/{t}/{n}" for n in (2, 3) for t in ("tcp", "udp", "rc", "uc")])
        self.assertEqual(lines[8:12], [f"lofar: lofar/{t}/between" for t in ("tcp", "udp", "rc", "uc")])
        self.assertEqual(len(lines), 16)
        result = example.weft("bench", "paper", "--list", "--only", "lofar", "--streams", "2,3", "--quick")
        self.assertEqual(result.stdout.splitlines(), lines[:8])

    def test_list_of_what_runs_between_namespaces(self):
        result = example.weft("bench", "paper", "--list", "--only", "lofar-net,trace-net")
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:5], [f"trace-net: trace-net/{case}" for case in ("tcp", "udp", "rc", "uc", "uc/8")])
        self.assertEqual(lines[5:], [f"lofar-net: lofar-net/{t}/{n}" for n in (1, 4, 16, 50, "between") for t in ("tcp", "udp", "rc", "uc")])

    def test_a_disk(self):
        if not (example.WEFT.parent.parent / "lib" / "weft" / "libibverbs.so.1").exists():
            self.skipTest("weft's libibverbs.so.1 is not built")
        # Where the build is: a folder for temporary files may lie in memory, which knows no O_DIRECT.
        with tempfile.TemporaryDirectory(dir=example.WEFT.parent) as folder:
            result = example.weft("bench", "paper", "--quick", "--only", "disk", "-o", f"{folder}/results.jsonl")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            lines = [json.loads(line) for line in pathlib.Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()]
            self.assertEqual([entry["case"] for entry in lines], [f"disk/{case}" for case in ("dd", "tcp", "udp", "rc", "uc")])
            rates = {entry["case"]: entry.get("sent_mbps") for entry in lines}
            for case, rate in (("udp", round(lines[0]["figures"]["gbps"] * 1000)), ("uc", rates["disk/udp"]), ("tcp", 0), ("rc", 0)):
                self.assertEqual(rates[f"disk/{case}"], rate, case)
            for entry in lines:
                self.assertGreater(entry["figures"]["gbps"], 0, entry["case"])
                # So little may take less than the kernel counts.
                self.assertGreaterEqual(entry["figures"]["rx_s_per_gb"], 0, entry["case"])
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), ["results.jsonl"])

    def test_wrong_usage(self):
        for words in (["--disk-bytes", "1000", "-o", "x"], ["--only", "cooking", "-o", "x"], [], ["--streams", "0", "-o", "x"], ["--repetitions", "0", "-o", "x"], ["--mtu", "100", "-o", "x"]):
            with self.subTest(words):
                self.assertEqual(example.weft("bench", "paper", *words).returncode, 2)

    def test_each_number_has_a_range_which_is_told(self):
        for option, value, sentence in (("--budget", "nan", "nan is not in 0.01..10000"), ("--seconds", "inf", "inf is not in 0.01..600"),
                                        ("--rate", "-1", "-1 is not in 0..1000000"), ("--loss-gbps", "nan", "nan is not in 0.001..1000"),
                                        ("--repetitions", "2.5", "'2.5' is not a whole number in 1..1000"), ("--streams", "1,,2", "'' is not a whole number in 1..4096"),
                                        ("--mtu", "100", "100 is not in 576..65535"), ("--disk-bytes", "1", "1 is not in ")):
            with self.subTest(option=option, value=value):
                result = example.weft("bench", "paper", option, value, "--list")
                self.assertEqual(result.returncode, 2)
                self.assertIn(f"argument {option}: {sentence}", result.stderr)

    def test_help_is_the_scripts(self):
        result = example.weft("bench", "paper", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--budget", result.stdout)

    def test_a_folder_that_is_not_there(self):
        result = example.weft("bench", "paper", "--only", "lofar", "-o", "/nowhere/results.jsonl")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nowhere/results.jsonl", result.stderr)

    def test_an_error_names_its_file(self):
        for folder, said in (("/nowhere/\udcff", "weft bench paper: /nowhere/\\udcff/file: No such file or directory\n"), (None, "weft bench paper: No space left on device\n")):
            program = ("import command_line, sys\n"
                       "def main(words):\n"
                       "    if words[0] == 'None': raise OSError(28, 'No space left on device')\n"
                       "    open(words[0] + '/file', encoding='utf-8')\n"
                       "command_line.run('weft bench paper', main)\n")
            result = subprocess.run([sys.executable, "-c", program, str(folder)], env={**os.environ, "PYTHONPATH": str(example.SOURCES)}, stdin=subprocess.DEVNULL,
                                    capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (1, said))

    def test_a_sender_that_fails_leaves_no_receiver(self):
        seconds = 1.0625  # nobody else's
        with self.assertRaisesRegex(streams_run.StreamFailed, "rate"):
            streams_run.run(str(example.WEFT), "udp", 1, -5, seconds)
        self.assertEqual(receivers(seconds), set())

    def test_streams_over_all_transports(self):
        if not (example.WEFT.parent.parent / "lib" / "weft" / "libibverbs.so.1").exists():
            self.skipTest("weft's libibverbs.so.1 is not built")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "results.jsonl")
            result = example.weft("bench", "paper", "--quick", "--only", "lofar", "--streams", "1", "--rate", "80", "-o", str(path))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
        repetitions = {entry["parameters"]["transport"]: entry for entry in lines if entry["kind"] == "repetition"}
        self.assertEqual(list(repetitions), ["tcp", "udp", "rc", "uc"])
        looks = [entry for entry in lines if entry["kind"] == "sample" and entry["cpus"] is not None]
        self.assertTrue({(look["case"], look["time"]) for look in looks} & {(entry["case"], entry["time"]) for entry in repetitions.values()})
        for transport, entry in repetitions.items():
            with self.subTest(transport):
                self.assertEqual(entry["schema"], "weft-result/1")
                self.assertGreater(entry["figures"]["gbps"], 0)
                self.assertGreater(entry["figures"]["rx_s_per_gb"], 0)
                self.assertTrue("watts" in entry["energy"] or entry["energy"]["unmeasured"])
                self.assertEqual(entry["path"], "loopback")
                self.assertNotIn("mtu", entry["parameters"])


if __name__ == "__main__":
    sys.exit(example.main())
