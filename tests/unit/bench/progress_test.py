#!/usr/bin/env python3
"""How far a suite is: a line on a terminal, which is gone in the end; nothing beside JSON, nor where stderr is no terminal."""

import os
import pty
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rc_test  # noqa: E402
from rc_test import bench  # noqa: E402

WIPE = "\r\x1b[K"


def on_terminal(suite, *words):
    """(status, what came on the terminal that is its stderr)"""
    reader, terminal = pty.openpty()
    try:
        run = subprocess.Popen([str(rc_test.WEFT), "bench", suite, "--quick", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=terminal)
    finally:
        os.close(terminal)
    said = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:
            break  # nobody has the terminal any more
        if not part:
            break
        said += part
    os.close(reader)
    return run.wait(), said.decode()


def bars(said):
    """(bar, step, steps, case) of each line."""
    return [(bar, int(step), int(steps), case)
            for bar, step, steps, case in re.findall(r"\r\x1b\[K\[([# ]{20})\] (\d+) of (\d+): ([^\r]+)", said)]


class ProgressTest(unittest.TestCase):
    def test_each_repetition_of_each_case(self):
        status, said = on_terminal("chunk", "--sizes", "64K", "--only", "tcp/*,*/no-crc")
        self.assertEqual(status, 0, said)
        cases = 2 * ["tcp/64K", "chunk/64K/no-crc"]
        self.assertEqual(bars(said), [(("#" * (5 * i)).ljust(20), i + 1, 4, case) for i, case in enumerate(cases)])
        self.assertTrue(said.endswith(WIPE), repr(said))

    @unittest.skipUnless(os.geteuid() == 0, "namespaces take root")
    def test_where_packets_get_lost(self):
        status, said = on_terminal("loss", "--losses", "1", "--only", "uc-write/*")
        self.assertEqual(status, 0, said)
        self.assertEqual([bar[1:] for bar in bars(said)], [(i + 1, 2, "uc-write/64K/1%") for i in range(2)])

    def test_none_beside_json(self):
        status, said = on_terminal("chunk", "--sizes", "64K", "--only", "tcp/*", "--json")
        self.assertEqual((status, said), (0, ""))

    def test_none_where_nobody_looks(self):
        result = bench("--quick", "--sizes", "64K", "--only", "tcp/*", suite="chunk")
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    sys.exit(rc_test.main(module=sys.modules["__main__"]))
