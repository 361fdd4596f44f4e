#!/usr/bin/env python3
"""`weft bench paper`: its steps, turns and budget, what it makes of a run of weft stream; and one short run."""

import json
import pathlib
import sys
import tempfile
import unittest

import example
import paper
import streams_run


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
        shares = paper.Shares()
        # Streams, Gb/s of 8 that came, and which numbers are too many since.
        for count, gbps, beyond in ((4, 8, []), (4, 7.1, []), (16, 5, [50]), (16, 7.3, []), (50, 5, []), (8, 7.1, [16, 50])):
            shares.add(count, {"gbps": gbps, "offered_gbps": 8})
            self.assertEqual([other for other in (1, 4, 8, 16, 50) if shares.broke_below(other)], beyond, (count, gbps))


class KeepingTest(unittest.TestCase):
    def test_all_reasons_of_a_failed_step_are_told(self):
        said = "weft bench: note: few descriptors\nweft bench: read/64K: no result\nweft bench: tcp/64K: damaged\n"
        self.assertEqual(paper.reason_of(1, said), "read/64K: no result; tcp/64K: damaged")
        self.assertEqual(paper.reason_of(-9, ""), "status -9")
        self.assertIsNone(paper.reason_of(0, said))

    def test_the_reason_comes_from_weft_bench(self):
        with tempfile.TemporaryDirectory() as folder:
            options = paper.parse(["--weft", str(example.WEFT), "--version-of-weft", "1", "-o", f"{folder}/r.jsonl", "--quick"])
            made = paper.bench_step(options, "sweep", "nothing", "rc", "--only", "no-such-case")
            self.assertIn("no case is named so", made.run(0))

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
        self.assertEqual(len(lines), 12)

    def test_list_of_what_runs_between_namespaces(self):
        result = example.weft("bench", "paper", "--list", "--only", "lofar-net,trace-net")
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:5], [f"trace-net: trace-net/{case}" for case in ("tcp", "udp", "rc", "uc", "uc/8")])
        self.assertEqual(lines[5:], [f"lofar-net: lofar-net/{t}/{n}" for n in (1, 4, 16, 50) for t in ("tcp", "udp", "rc", "uc")])

    def test_wrong_usage(self):
        for words in (["--only", "cooking", "-o", "x"], [], ["--streams", "0", "-o", "x"], ["--repetitions", "0", "-o", "x"], ["--mtu", "100", "-o", "x"]):
            with self.subTest(words):
                self.assertEqual(example.weft("bench", "paper", *words).returncode, 2)

    def test_help_is_the_scripts(self):
        result = example.weft("bench", "paper", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--budget", result.stdout)

    def test_a_folder_that_is_not_there(self):
        result = example.weft("bench", "paper", "--only", "lofar", "-o", "/nowhere/results.jsonl")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nowhere/results.jsonl", result.stderr)

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
