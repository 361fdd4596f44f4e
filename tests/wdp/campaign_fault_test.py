#!/usr/bin/env python3
"""wdp_campaign --fault=SPEC: the text of WEFT_FAULT reaches the simulated paths, and its seed is honoured.

    campaign_fault_test.py PROGRAM
"""

import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()


def campaign(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


def faults(output):
    """What was done to the datagrams: {'datagrams': 1234, 'lost': 5, ..}."""
    line = re.search(r"^faults '.*': (.*)$", output, re.M).group(1)
    return {what: int(n) for n, what in re.findall(r"(\d+) (\w+)", line)}


def column(output, profile, number):
    row = re.search(rf"^{profile} +(.*)$", output, re.M).group(1)
    return int(row.split()[number])


class Fault(unittest.TestCase):
    RUNS = ("--runs=20", "--profile=clean")
    LOST = 4  # column of the table

    def test_it_reaches_the_link(self):
        clean = campaign(*self.RUNS)
        self.assertEqual((clean.returncode, column(clean.stdout, "clean", self.LOST)), (0, 0), clean)
        self.assertNotIn("faults", clean.stdout)
        bad = campaign(*self.RUNS, "--fault=loss:0.1")
        self.assertEqual(bad.returncode, 0, bad)
        self.assertGreater(column(bad.stdout, "clean", self.LOST), 0)
        done = faults(bad.stdout)
        self.assertGreater(done["datagrams"], 1000)
        self.assertAlmostEqual(done["lost"] / done["datagrams"], 0.1, delta=0.03)
        self.assertEqual([done[what] for what in ("doubled", "late", "damaged")], [0, 0, 0])

    def test_every_word_does(self):
        for word, what in (("duplicate", "doubled"), ("reorder", "late"), ("corrupt", "damaged")):
            result = campaign(*self.RUNS, f"--fault={word}:20%")
            self.assertEqual(result.returncode, 0, result)
            done = faults(result.stdout)
            self.assertGreater(done.pop(what), 0)
            done.pop("datagrams")
            self.assertEqual(set(done.values()), {0}, word)

    def test_one_way_suffers_alone(self):
        both, out, way_in = (faults(campaign(*self.RUNS, f"--fault=duplicate:1,way:{way}").stdout)
                             for way in ("both", "out", "in"))
        self.assertEqual(both["doubled"], both["datagrams"])
        for one in (out, way_in):
            self.assertTrue(0 < one["doubled"] < one["datagrams"], one)

    def test_it_stands_for_what_a_profile_has(self):
        result = campaign("--runs=10", "--profile=loss", "--fault=duplicate:0.1")
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(faults(result.stdout)["lost"], 0)
        self.assertGreater(faults(result.stdout)["doubled"], 0)

    def test_its_seed_makes_the_run(self):
        def run(seed):
            result = campaign(*self.RUNS, f"--fault=loss:0.05,reorder:0.1,seed:{seed}")
            self.assertEqual(result.returncode, 0, result)
            return result.stdout.replace(f",seed:{seed}'", "'")

        self.assertEqual(run(7), run(7))
        self.assertNotEqual(run(7), run(8))
        # No seed is seed 1.
        self.assertEqual(run(1), campaign(*self.RUNS, "--fault=loss:0.05,reorder:0.1").stdout)

    def test_a_bad_spec_is_refused(self):
        for spec, sentence in (("loss:2", "'2' is no value for fault 'loss'"),
                               ("noise:0.1", "no fault is called 'noise:0.1'"),
                               ("loss:0.1,loss:0.2", "'loss' stands there twice"),
                               ("delay:2s", "together are more than 1 s")):
            result = campaign("--runs=1", f"--fault={spec}")
            self.assertEqual(result.returncode, 2, result)
            self.assertIn(f"--fault={spec}: ", result.stderr)
            self.assertIn(sentence, result.stderr)
            self.assertEqual((result.stdout, result.stderr.count("\n")), ("", 1), result)

    def test_all_profiles_bear_it(self):
        for spec in ("loss:0.05,burst:3,duplicate:0.05,reorder:0.1,corrupt:0.01,seed:3", "delay:20ms,jitter:1ms"):
            result = campaign("--runs=44", f"--fault={spec}")
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertGreater(column(result.stdout, "bring_up", 0), 0)


if __name__ == "__main__":
    unittest.main()
