#!/usr/bin/env python3
"""Every point that a figure of `weft report` has lies inside its axes, whatever was measured."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import example
import example_sdp

POINTS = pathlib.Path(__file__).resolve().with_name("points.py")
FIGURES = {"radio": 14, "sdp": 8}


def scattered(seed, lines=None):
    """Results of all figures in which nothing is as large as its neighbour: each figure of each repetition and each trace is multiplied by
    something between a thousandth and a thousand."""
    chance = random.Random(seed)
    lines, factors = lines or example.everything(), {}
    for line in lines:
        if line["kind"] == "sample":
            for word in ("cpus", "gbps"):
                factor = factors.setdefault((line["suite"], line["case"], word), 10 ** chance.uniform(-3, 3))
                line[word] = line[word] and line[word] * factor * chance.uniform(0.5, 1.5)
        else:
            line["figures"] = {word: value if word in ("streams", "lost_percent") else value * 10 ** chance.uniform(-3, 3)
                               for word, value in line["figures"].items()}
    return lines


class PointsTest(unittest.TestCase):
    def look(self, lines, *words, paper="radio"):
        with tempfile.TemporaryDirectory() as folder:
            path = example.write(pathlib.Path(folder, "results.jsonl"), lines)
            result = subprocess.run([example.PYTHON, "-B", POINTS, paper, path, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    check=False, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        seen = json.loads(result.stdout)
        self.assertEqual(len(seen), FIGURES[paper])
        for name, (count, _) in seen.items():
            self.assertGreater(count, 4, name)
        return {name: outside for name, (_, outside) in seen.items()}

    def check(self, lines, paper="radio"):
        for name, outside in self.look(lines, paper=paper).items():
            with self.subTest(figure=name):
                self.assertEqual(outside, [])

    def test_of_results_as_they_are(self):
        self.check(example.everything())

    def test_of_any_results(self):
        for seed in range(1, 4):
            with self.subTest(seed=seed):
                self.check(scattered(seed))

    def test_of_power(self):
        self.check(example.metered(scattered(4)))

    def test_of_transports_in_another_order(self):
        """What is drawn last is what an axis that was settled too early cuts off."""
        lines = example.everything()
        for line in lines:
            if line["kind"] == "sample" and line["case"] == "trace/uc":
                line.update({word: line[word] and 40 * line[word] for word in ("cpus", "gbps")})
        self.check(lines)

    def test_of_the_paper_on_sdp(self):
        self.check(example_sdp.everything(), "sdp")
        for seed in range(1, 4):
            with self.subTest(seed=seed):
                self.check(scattered(seed, example_sdp.everything()), "sdp")

    def test_an_axis_that_is_too_short_is_seen(self):
        for name, outside in self.look(example.everything(), "0.6").items():
            with self.subTest(figure=name):
                self.assertNotEqual(outside, [])
        for name, outside in self.look(example_sdp.everything(), "0.6", paper="sdp").items():
            with self.subTest(figure=name):
                self.assertNotEqual(outside, [])


if __name__ == "__main__":
    if not example.has_matplotlib():
        sys.exit(example.skip("python3-matplotlib is not installed"))
    sys.exit(example.main())
