"""What the tests of `weft measure` share: how it is run, and a folder that stands for /sys."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RANGE = 262_143_328_850  # microjoules; what most processors have

# For python3 -c: spin() uses so much CPU by its own account, whatever else the machine does.
SPIN = """
import time
def spin(seconds, clock=time.process_time):
    begin = clock()
    while clock() - begin < seconds: pass
"""


class Measured(unittest.TestCase):
    weft = pathlib.Path()  # set once, before any test

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.sys = self.root / "sys"
        self.sys.mkdir()

    def arguments(self, *words):
        sysfs = () if "--sysfs" in words else ("--sysfs", str(self.sys))
        return [str(self.weft), "measure", *sysfs, *map(str, words)]

    def measure(self, *words, stdin="", **variables):
        return subprocess.run(self.arguments(*words), input=stdin, text=True, capture_output=True,
                              check=False, timeout=100, env={**os.environ, **variables})

    def report(self, *words, command, **variables):
        """The report as JSON, and the command's result."""
        file = self.root / "report.json"
        result = self.measure("--json", "-o", file, *words, "--", *command, **variables)
        return json.loads(file.read_text()), result

    def python(self, *words, code, **variables):
        return self.report(*words, command=[sys.executable, "-c", code], **variables)

    def write(self, file, text):
        path = self.sys / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
        return path

    def zone(self, folder, name, microjoules):
        self.write(f"class/powercap/{folder}/name", name)
        self.write(f"class/powercap/{folder}/max_energy_range_uj", RANGE)
        return self.write(f"class/powercap/{folder}/energy_uj", microjoules)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    Measured.weft = options.weft.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
