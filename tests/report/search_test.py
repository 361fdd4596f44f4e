#!/usr/bin/env python3
"""How `weft bench paper` finds the highest rate, and the most streams, without loss."""

import math
import sys
import unittest

import example
import ladder
import streams_run


class LadderTest(unittest.TestCase):
    def climb(self, holds, start, **more):
        tried = []

        def attempt(rung):
            tried.append(rung)
            return f"on {rung}" if holds(rung) else None
        return ladder.climb(attempt, start, **more), tried

    def test_finds_the_last_rung_that_holds_from_wherever_it_begins(self):
        for start in range(0, 60, 7):
            with self.subTest(start):
                (rung, found), tried = self.climb(lambda rung: rung <= 23, start, runs=40)
                self.assertEqual((rung, found), (23, "on 23"))
                self.assertEqual(len(tried), len(set(tried)))

    def test_is_never_higher_than_what_holds_and_never_longer_than_it_may(self):
        for runs in range(1, 8):
            for start in (0, 20, 26, 90):
                with self.subTest(runs=runs, start=start):
                    (rung, found), tried = self.climb(lambda rung: rung <= 23, start, runs=runs)
                    self.assertLessEqual(len(tried), runs)
                    self.assertEqual(rung, max((one for one in tried if one <= 23), default=None))
                    self.assertEqual(found, None if rung is None else f"on {rung}")

    def test_a_rung_beside_the_last_one_takes_two_runs(self):
        self.assertEqual(self.climb(lambda rung: rung <= 23, 23, stride=1), ((23, "on 23"), [23, 24]))
        self.assertEqual(self.climb(lambda rung: rung <= 22, 23, stride=1), ((22, "on 22"), [23, 22]))

    def test_ends_where_the_lowest_rung_does_not_hold(self):
        self.assertEqual(self.climb(lambda _: False, 3), ((None, None), [3, 0]))

    def test_rungs_and_rates(self):
        for rung in (0, 1, 17, 100):
            mbps = ladder.mbps_of(rung)
            self.assertEqual([ladder.rung_below(mbps), ladder.rung_below(mbps * 1.01)], [rung, rung])
        self.assertTrue(math.isclose(ladder.mbps_of(8) / ladder.mbps_of(7), ladder.STEP))
        self.assertEqual(ladder.rung_below(0), 0)


class BetweenTest(unittest.TestCase):
    def search(self, most, counts=(1, 4, 16, 50), turns=8):
        """The numbers tried, of which `most` hold."""
        runs = {count: 1 for count in counts}
        tried = []
        for _ in range(turns):
            number = ladder.between({count: count <= most for count in runs}, runs)
            if number is None:
                break
            tried.append(number)
            runs[number] = runs.get(number, 0) + 1
        return tried

    def test_halves_until_neighbours_and_then_runs_them_by_turns(self):
        self.assertEqual(self.search(9), [10, 7, 8, 9, 9, 10, 9, 10])
        self.assertEqual(self.search(16), [33, 24, 20, 18, 17, 16, 17, 16])
        self.assertEqual(self.search(3, turns=4), [2, 3, 3, 4])

    def test_finds_every_number_in_at_most_six_runs(self):
        for most in range(1, 50):
            with self.subTest(most):
                tried = set(self.search(most, turns=6)) | {1, 4, 16, 50}
                self.assertTrue({most, most + 1} <= tried, tried)

    def test_nothing_to_look_for(self):
        self.assertEqual(self.search(50), [])
        self.assertEqual(self.search(0), [])
        self.assertIsNone(ladder.between({}, {}))

    def test_a_number_behind_a_broken_one_is_luck(self):
        self.assertEqual(ladder.between({1: True, 4: False, 16: True, 50: False}, {1: 1, 4: 1, 16: 1, 50: 1}), 2)


class FastestTest(unittest.TestCase):
    def setUp(self):
        self.most = 3000.0     # Mb/s, without loss
        self.at_full = 5000.0  # as fast as it goes
        self.asked = []
        self.tried = []

    def run_at(self, mbps):
        """A transport that loses what is too much, and a little more."""
        self.asked.append(mbps)
        sent = mbps or self.at_full
        came = sent if sent <= self.most else 0.8 * self.most
        return {"gbps": came / 1000, "offered_gbps": sent / 1000, "lost_percent": 100 * (1 - came / sent)}, [f"at {mbps}"], {}

    def search(self, fastest):
        self.tried.clear()
        self.asked.clear()
        return fastest.search(self.tried)

    def test_what_loses_nothing_at_full_speed_is_run_once(self):
        self.at_full = 2500.0
        fastest = streams_run.Fastest(self.run_at)
        for _ in range(2):
            figures, samples, _ = self.search(fastest)
            self.assertEqual((figures["gbps"], samples, self.asked), (2.5, ["at 0"], [0]))
            self.assertEqual(self.tried, [{"mbps": 0, "gbps": 2.5, "lost_percent": 0.0, "sustained": True}])

    def test_what_loses_is_searched_and_the_next_turn_begins_there(self):
        fastest = streams_run.Fastest(self.run_at)
        figures, samples, _ = self.search(fastest)
        self.assertEqual(self.asked[0], 0)
        best = ladder.mbps_of(ladder.rung_below(3000))
        self.assertEqual((figures["gbps"], figures["lost_percent"], samples), (best / 1000, 0, [f"at {best}"]))
        self.assertEqual([attempt["sustained"] for attempt in self.tried], [0 < mbps <= 3000 for mbps in self.asked])
        self.search(fastest)
        self.assertEqual(self.asked, [best, ladder.mbps_of(ladder.rung_below(3000) + 1)])
        self.most = 2800.0
        self.assertEqual(self.search(fastest)[0]["gbps"], ladder.mbps_of(ladder.rung_below(2800)) / 1000)

    def test_a_tenth_of_a_percent_is_no_loss_and_more_is(self):
        for lost, holds in ((0.1, True), (0.2, False)):
            fastest = streams_run.Fastest(lambda _, lost=lost: ({"gbps": 1, "offered_gbps": 1, "lost_percent": lost}, [], {}))
            if holds:
                self.search(fastest)
            else:
                with self.assertRaisesRegex(streams_run.StreamFailed, "lost packets even at 100 Mb/s"):
                    self.search(fastest)
            self.assertEqual(self.tried[0]["sustained"], holds)

    def test_runs_are_bounded(self):
        fastest = streams_run.Fastest(lambda mbps: ({"gbps": mbps / 1000, "offered_gbps": mbps / 1000, "lost_percent": 0 if mbps else 50}, [], {}), 3)
        self.search(fastest)
        self.assertEqual(len(self.tried), 4)

    def test_a_run_that_fails_does_not_hold(self):
        def run_at(mbps):
            if mbps == 0 or mbps > 150:
                raise streams_run.StreamFailed("no answer")
            return self.run_at(mbps)
        figures, *_ = self.search(streams_run.Fastest(run_at, 40))
        self.assertEqual(figures["gbps"], ladder.mbps_of(ladder.rung_below(150)) / 1000)
        self.assertEqual(self.tried[0], {"mbps": 0, "error": "no answer"})

        def fails(_):
            raise streams_run.StreamFailed("never")
        with self.assertRaisesRegex(streams_run.StreamFailed, "never"):
            self.search(streams_run.Fastest(fails))


if __name__ == "__main__":
    sys.exit(example.main())
