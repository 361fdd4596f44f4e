#!/usr/bin/env python3
"""The example examples/rd_board.c: one server, several adders in processes of their own, with and without losses.

  board_test.py --build DIR [UNITTEST ARGUMENTS]
"""

import os
import subprocess
import sys
import unittest

BUILD = "build/release"
LOSSES = "loss:0.1,duplicate:0.1,reorder:0.1,seed:3"


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    env["LD_LIBRARY_PATH"] = f"{BUILD}/lib/weft"
    return {**env, **more}


def board(*words, **env):
    return [f"{BUILD}/bin/rd_board", *map(str, words)], environment(**env)


class Board(unittest.TestCase):
    def serve(self, notes, **env):
        command, env = board("serve", notes, **env)
        server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        return server, server.stdout.readline().split()

    def add(self, card, counter, n, text, **env):
        command, env = board(*card, counter, n, text, **env)
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)

    def all_count(self, **env):
        server, card = self.serve(12, **env)
        command_of = [board(*card, 3, 5, f"note {i}", **env) for i in range(12)]
        adders = [subprocess.Popen(c, env=e, stdout=subprocess.PIPE, text=True) for c, e in command_of]
        values = sorted(int(a.communicate(timeout=100)[0]) for a in adders)
        self.assertEqual(values, [5 * (i + 1) for i in range(12)])
        rest, _ = server.communicate(timeout=60)
        notes = sorted(line.split(": ")[1] for line in rest.splitlines())
        self.assertEqual(notes, sorted(f"note {i}" for i in range(12)))
        self.assertEqual(server.returncode, 0)

    def test_each_adder_counts_once(self):
        self.all_count()

    def test_each_adder_counts_once_whatever_the_network_does(self):
        self.all_count(WEFT_FAULT=LOSSES)

    def test_a_wrong_key_is_an_error_of_its_request_alone(self):
        server, card = self.serve(1)
        card[3] = str(int(card[3]) ^ 1)
        added = self.add(card, 0, 1, "the note comes all the same")
        self.assertEqual(added.returncode, 1)
        self.assertEqual(added.stderr, "rd_board: request 1: remote access error\n")
        rest, _ = server.communicate(timeout=60)
        self.assertIn("the note comes all the same", rest)

    def test_a_number_that_nobody_has(self):
        _, card = self.serve(1)
        card[2] = str(int(card[2]) ^ 0x80)
        added = self.add(card, 0, 1, "for nobody")
        self.assertEqual(added.returncode, 1)
        self.assertEqual(added.stderr.count("remote invalid RD request"), 2)


if __name__ == "__main__":
    at = sys.argv.index("--build")
    BUILD = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    unittest.main(verbosity=2)
