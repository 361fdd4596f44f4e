#!/usr/bin/env python3
"""tools/report/results.py: reading results, medians and ratios, and the choice of what a figure shows."""

import json
import pathlib
import sys
import tempfile
import unittest

import example
from example import lofar, samples, stream
import groups
import results as kept


def results_of(lines):
    results = kept.Results()
    for entry in lines:
        results.add(entry)
    return results


def watts(entry, of):
    return dict(entry, energy={"watts": 12, "of": of}, figures={**entry["figures"], "watts": 12})


class NumbersTest(unittest.TestCase):
    def test_median(self):
        self.assertEqual(kept.median([7]), 7)
        self.assertEqual(kept.median([9, 1, 5]), 5)
        self.assertEqual(kept.median([4, 1, 9, 2]), 3)

    def test_spread(self):
        self.assertEqual(kept.spread([3, 1, 2]), kept.Spread(2, 1, 3, 3))
        self.assertIsNone(kept.spread([]))

    def test_ratio_of_medians(self):
        self.assertEqual(kept.ratio(kept.spread([2, 6, 4]), kept.spread([1, 2, 9])), 2)
        self.assertIsNone(kept.ratio(None, kept.spread([1])))
        self.assertIsNone(kept.ratio(kept.spread([1]), None))
        self.assertIsNone(kept.ratio(kept.spread([1]), kept.spread([0])))


class LoadTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name, "results.jsonl")

    def load(self, text):
        self.path.write_text(text, encoding="utf-8")
        return kept.load([self.path])

    def test_kinds_are_told_apart(self):
        good = stream("write", "uc", 65536, 5)
        failed = dict(good, error="no result within 60 s")
        del failed["figures"]
        unknown = dict(good, kind="something new")
        lines = [good, failed, unknown, *samples("trace", "trace/uc", count=2)]
        results = self.load("\n".join(json.dumps(entry) for entry in lines) + "\n\n")
        self.assertEqual((len(results.repetitions), len(results.failures), len(results.samples)), (1, 1, 5))

    def test_files_count_together(self):
        other = example.write(pathlib.Path(self.folder.name, "other.jsonl"), [stream("write", "uc", 8192, 5)])
        self.path.write_text(json.dumps(stream("read", "uc", 8192, 5)), encoding="utf-8")
        self.assertEqual(len(kept.load([self.path, other]).repetitions), 2)

    def test_a_line_that_is_none_is_named(self):
        good = json.dumps(stream("write", "uc", 65536, 5)) + "\n"
        for text, where in (("x", ":1: not a line"), (good + "[1]", ":2: not a line"), (good + "{}", ":2: not a line"), ("7", ":1: not a line")):
            with self.subTest(text), self.assertRaisesRegex(kept.BadResults, where):
                self.load(text)

    def test_a_line_that_is_cut_off_is_passed_over_with_a_note(self):
        good = json.dumps(stream("write", "uc", 65536, 5))
        for length in (1, len(good) // 2, len(good) - 1):
            for text, where in ((good + "\n" + good[:length], ":2:"), (good[:length] + "\n" + good + "\n", ":1:")):
                results = self.load(text)
                self.assertEqual((len(results.repetitions), len(results.notes)), (1, 1))
                self.assertIn(where, results.notes[0])
        self.path.write_bytes(good.encode() + b'\n{"schema": "\xc3')
        self.assertEqual(len(kept.load([self.path]).notes), 1)

    def test_a_word_may_hold_what_other_programs_end_lines_with(self):
        odd = dict(stream("write", "uc", 65536, 5), case="a\u2028b\x85c")
        self.assertEqual(self.load(json.dumps(odd, ensure_ascii=False) + "\n").repetitions[0]["case"], odd["case"])

    def test_a_line_that_lacks_something_is_named(self):
        for word in ("figures", "machine", "parameters", "suite", "version"):
            lacking = stream("write", "uc", 65536, 5)
            del lacking[word]
            with self.subTest(word), self.assertRaisesRegex(kept.BadResults, f":1: not a line.*{word}"):
                self.load(json.dumps(lacking))

    def test_another_schema_is_refused(self):
        with self.assertRaisesRegex(kept.BadResults, "weft-result/2"):
            self.load(json.dumps(dict(stream("write", "uc", 65536, 5), schema="weft-result/2")))

    def test_a_missing_file_is_named(self):
        with self.assertRaisesRegex(kept.BadResults, "nowhere"):
            kept.load(["/nowhere/results.jsonl"])

    def test_traces_of_weft_measure(self):
        self.path.write_text('{"t": 0.5, "cpus": 1, "watts": null}\n{"t": 0.6, "cpus": 2, "gbps": 3}\n', encoding="utf-8")
        results = kept.Results()
        kept.add_trace(results, "rc", self.path)
        self.assertEqual([look["cpus"] for look in kept.trace_of(results.samples, "trace/rc")], [1, 2])
        kept.add_trace(results, "rc", self.path)
        self.assertEqual(len(results.samples), 2)
        with self.assertRaisesRegex(kept.BadResults, "one of tcp, udp, rc, uc"):
            kept.add_trace(results, "smoke", self.path)
        self.path.write_text("[]", encoding="utf-8")
        with self.assertRaisesRegex(kept.BadResults, "weft measure --samples"):
            kept.add_trace(results, "rc", self.path)


    def test_a_trace_of_weft_measure_takes_the_place_of_those_in_the_file(self):
        self.path.write_text('{"t": 0.5, "cpus": 7}\n', encoding="utf-8")
        for repetition in (0, 3):
            results = results_of([lofar("uc", 1, 9, repetition, "trace"), *samples("trace", "trace/uc", repetition), *samples("trace", "trace/rc")])
            kept.add_trace(results, "uc", self.path)
            self.assertEqual([look["cpus"] for look in kept.trace_of(results.samples, "trace/uc")], [7])
            self.assertEqual(len(kept.trace_of(results.samples, "trace/rc")), 23)

    def test_two_calls_into_one_file_do_not_mix_their_samples(self):
        for told in (True, False):  # whether each sample has its time, or stands behind a line that has
            lines = []
            for call, cpus in (("2026-01-31T12:00:00Z", 1), ("2026-01-31T13:00:00Z", 2)):
                for repetition in (0, 1) if cpus == 1 else (0,):
                    lines.append(dict(lofar("uc", 4, 3, repetition), time=call))
                    lines += [dict(look, cpus=cpus, **({"time": call} if told else {})) for look in samples("lofar", "lofar/uc/4", repetition)]
            results = self.load("".join(json.dumps(entry) + "\n" for entry in lines))
            with self.subTest(told):
                trace = kept.trace_of(results.samples, "lofar/uc/4")
                self.assertEqual((len(trace), {look["cpus"] for look in trace}), (23, {2}))


class ChoiceTest(unittest.TestCase):
    def test_transports(self):
        found = [kept.transport_of(stream(operation, service, 8192, 1)) for operation, service in example.KINDS]
        self.assertEqual(found, list(kept.TRANSPORTS))

    def test_what_no_figure_shows(self):
        for more in ({"crc": True}, {"window": 1 << 20}, {"group": "latency"}):
            with self.subTest(more):
                self.assertIsNone(kept.transport_of(stream("write", "uc", 8192, 1, **more)))
        self.assertIsNone(kept.transport_of(stream("send", "uc", 8192, 1)))
        self.assertIsNone(kept.transport_of(stream("udp_stream", "rc", 8192, 1, window=1 << 20)))

    def test_loss_of_the_network_and_of_faults(self):
        self.assertEqual(kept.loss_of(stream("write", "uc", 8192, 1, loss=0.003)), 0.3)
        self.assertEqual(kept.loss_of(stream("write", "uc", 8192, 1, fault="way:out,loss:0.1,seed:1")), 10)
        self.assertEqual(kept.loss_of(stream("write", "uc", 8192, 1)), 0)

    def test_networks_are_not_mixed(self):
        lines = [stream("write", "uc", 8192, 1, offloads=state) for state in ("on", "off", "on")]
        chosen, network, left_out = groups.one_network(lines)
        self.assertEqual((len(chosen), network), (1, ("veth", "off", 1500)))
        self.assertEqual(left_out, {"between two network namespaces (veth), MTU 1500, offloads on": 2})
        self.assertEqual(groups.one_network(lines[:1])[1], ("veth", "on", 1500))
        self.assertEqual(groups.one_network([]), ([], None, {}))

    def test_mtus_are_not_mixed(self):
        lines = [stream("write", "uc", 8192, 1, mtu=mtu) for mtu in (9000, None, 1500)]
        chosen, network, left_out = groups.one_network(lines)
        self.assertEqual((len(chosen), network), (2, ("veth", "off", 1500)))
        self.assertEqual(groups.left_out_note(left_out), " Not drawn: 1 repetition between two network namespaces (veth), MTU 9000, offloads off.")

    def test_losses_are_of_one_size_and_means(self):
        def lost(size, **more):
            return stream("write", "uc", size, 1, suite="loss", **more)
        lines = [lost(8192), lost(8192, loss=0.1, gbps=1), lost(8192, loss=0.2, gbps=1), lost(65536, loss=0.1, gbps=1), lost(8192, fault="loss:0.1"),
                 lost(8192, loss=0.1, gbps=2), lost(8192, loss=0.1, mtu=9000)]
        chosen, left_out = groups.same_losses(lines)
        self.assertEqual(chosen, lines[:3])
        self.assertEqual(sum(left_out.values()), 4)
        self.assertEqual({name: left_out[name] for name in ("of 65536 bytes", "with losses by WEFT_FAULT", "at 2 Gb/s")},
                         {"of 65536 bytes": 1, "with losses by WEFT_FAULT": 1, "at 2 Gb/s": 1})
        plain = stream("udp_stream", "rc", 65000, 1, suite="loss")
        self.assertEqual(len(groups.same_losses([lost(65536), plain])[0]), 2)

    def test_streams_are_of_one_pace(self):
        slow = dict(lofar("uc", 1, 0.3), parameters={"transport": "uc", "streams": 1, "mbps": 300, "seconds": 2})
        lines = [slow, lofar("uc", 1, 0.7), lofar("uc", 4, 0.7)]
        chosen, left_out = groups.same_streams(lines)
        self.assertEqual(chosen, lines[1:])
        self.assertEqual(left_out, {"at 300 Mb/s, 2 s": 1})

    def test_streams_of_several_networks_are_not_mixed(self):
        near = lofar("uc", 4, 3, suite="lofar-net")
        far = lofar("uc", 4, 3, suite="lofar-net", mtu=9000)
        loopback = dict(near, path="loopback", parameters=dict(near["parameters"], mtu=None))
        chosen, left_out = groups.same_streams([far, near, loopback, near])
        self.assertEqual(chosen, [near, near])
        self.assertEqual(left_out, {"between two network namespaces (veth), MTU 9000": 1, "on loopback": 1})

    def test_packets_of_a_write_are_mixed_on_demand_alone(self):
        lines = [lofar("uc", 1, 3, suite="trace-net", packets_per_write=group) for group in (1, 8, 1)]
        self.assertEqual(groups.same_streams(lines)[0], [lines[0], lines[2]])
        self.assertEqual(groups.same_streams(lines, any_group=True), (lines, {}))

    def test_a_busy_machine_is_noticed(self):
        quiet, busy = stream("write", "uc", 8192, 1), stream("write", "uc", 8192, 1)
        quiet["machine"] = dict(quiet["machine"], load_before=3.9)
        busy["machine"] = dict(busy["machine"], load_before=4.5)
        self.assertIsNone(results_of([quiet]).busy())
        self.assertEqual(results_of([busy, quiet]).busy(), 4.5)

    def test_groups_stand_in_order(self):
        lines = [stream("write", "uc", size, 1) for size in (65536, 8192, 65536)] + [stream("tcp_stream", "rc", 8192, 1)]
        found = kept.by_transport(lines, lambda entry: entry["parameters"]["size"])
        self.assertEqual(list(found), ["tcp", "uc-write"])
        self.assertEqual({size: len(group) for size, group in found["uc-write"].items()}, {8192: 1, 65536: 2})

    def test_power_counts_when_every_repetition_has_it(self):
        metered = watts(stream("write", "uc", 8192, 1), "package")
        self.assertTrue(results_of([metered]).metered())
        mixed = results_of([metered, stream("write", "uc", 8192, 1)])
        self.assertFalse(mixed.metered())
        self.assertEqual(mixed.why_unmeasured(), ("no zone", "measure on the host"))
        self.assertIsNone(results_of([metered]).why_unmeasured())
        self.assertFalse(results_of([]).metered())

    def test_energy_without_a_figure_is_not_metered(self):
        self.assertFalse(results_of([dict(stream("write", "uc", 8192, 1), energy={"source": None, "of": None})]).metered())

    def test_what_is_metered_may_have_no_name(self):
        self.assertEqual(results_of([watts(stream("write", "uc", 8192, 1), of) for of in (None, "package")]).power_of(), ["package", "what the meter sees"])

    def test_traces_show_power_when_all_of_them_have_it(self):
        powered = [dict(look, watts=9) for look in samples("trace", "trace/uc")]
        bare = samples("trace", "trace/rc")
        metered = watts(stream("write", "uc", 8192, 1), "package")
        self.assertTrue(results_of([metered, *powered]).traces_metered())
        self.assertTrue(results_of(powered).traces_metered())
        self.assertFalse(results_of([metered, *powered, *bare]).traces_metered())
        self.assertFalse(results_of([metered, stream("write", "uc", 8192, 1), *powered]).traces_metered())


class StreamsTest(unittest.TestCase):
    def test_sustained_is_without_loss_and_at_the_rate(self):
        self.assertTrue(kept.is_sustained([lofar("uc", 4, 0.764 * 4)]))
        self.assertFalse(kept.is_sustained([lofar("uc", 4, 0.764 * 4, lost=0.5)]))
        self.assertFalse(kept.is_sustained([lofar("tcp", 4, 0.7 * 4)]))
        self.assertFalse(kept.is_sustained([]))

    def test_one_bad_repetition_of_three_does_not_break_it(self):
        lines = [lofar("uc", 4, 0.764 * 4, repetition, lost=lost) for repetition, lost in enumerate((0, 9, 0))]
        self.assertTrue(kept.is_sustained(lines))

    def test_shown_are_the_most_streams_that_all_sustain(self):
        lines = [lofar(transport, streams, 0.764 * streams, lost=5 if (transport, streams) == ("udp", 16) else 0)
                 for transport in kept.STREAMED for streams in (16, 1, 4)]
        self.assertEqual(kept.count_to_show(kept.stream_counts(lines)), 4)

    def test_where_none_is_sustained_the_fewest_are_shown(self):
        lines = [lofar("udp", streams, 0.1, lost=50) for streams in (4, 16)]
        self.assertEqual(kept.count_to_show(kept.stream_counts(lines)), 4)
        self.assertIsNone(kept.count_to_show({}))

    def test_a_number_of_streams_behind_the_first_broken_one_does_not_count(self):
        counts = kept.stream_counts([lofar("uc", streams, 0.764 * streams, lost=5 if streams == 4 else 0) for streams in (1, 2, 4, 16)])
        self.assertEqual(kept.sustained(counts, "uc"), (2, 4))
        self.assertEqual(kept.sustained(counts, "rc"), (None, None))
        self.assertEqual(kept.sustained({16: counts[16]}, "uc"), (16, None))

    def test_a_trace_is_of_the_repetitions_that_are_shown(self):
        looks = samples("lofar", "lofar/uc/1", 0) + samples("lofar", "lofar/uc/1", 1)
        looks = [dict(look, time=f"2026-01-31T12:00:{look['repetition']:02}Z") for look in looks]
        self.assertEqual({look["repetition"] for look in kept.trace_of(looks, "lofar/uc/1", [lofar("uc", 1, 1)])}, {0})

    def test_a_trace_is_of_one_repetition_in_order(self):
        looks = samples("trace", "trace/uc", 0) + samples("trace", "trace/uc", 1)[::-1] + samples("trace", "trace/rc", 2)
        trace = kept.trace_of(looks, "trace/uc")
        self.assertEqual({look["repetition"] for look in trace}, {1})
        self.assertEqual([look["t"] for look in trace], sorted(look["t"] for look in trace))
        self.assertEqual(kept.trace_of(looks, "trace/tcp"), [])


if __name__ == "__main__":
    sys.exit(example.main())
