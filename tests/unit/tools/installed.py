"""The program weft as it is installed, for tests that run it."""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

WEFT = pathlib.Path()
FIXTURES = pathlib.Path()
SOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
LOWERED = min(256, HARD)


class Installed(unittest.TestCase):
    """A tree with weft and its two libraries, and none of the caller's variables."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.libraries = self.root / "lib" / "weft"
        self.libraries.mkdir(parents=True)
        (self.root / "bin").mkdir()
        self.weft = self.root / "bin" / "weft"
        shutil.copy(WEFT, self.weft)
        for name in ("libibverbs.so.1", "librdmacm.so.1"):
            shutil.copy(FIXTURES / "weft" / name, self.libraries / name)

    def call(self, *arguments, weft=None, cwd=None, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("LD_", "WEFT_"))}
        environment.update(variables)
        return subprocess.run(
            [str(weft or self.weft), *map(str, arguments)], env=environment, text=True, cwd=cwd,
            capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LOWERED, HARD)))

    def run_weft(self, *arguments, **rest):
        return self.call("run", *arguments, **rest)


def main() -> None:
    """Runs the tests of the script that calls it, by the words of the command line."""
    global WEFT, FIXTURES  # set once, before any test
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", type=pathlib.Path, required=True)
    parser.add_argument("--fixtures", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    WEFT, FIXTURES = options.weft.resolve(), options.fixtures.resolve()
    if rest[:1] == ["SetuidTest"] and os.geteuid() != 0:
        print("SKIPPED: only root can start a process as another user")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
