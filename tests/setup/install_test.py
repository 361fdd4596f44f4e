"""`cmake --install` into a folder of its own, which is then moved: weft runs a program from there."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--build", type=pathlib.Path, required=True)
OPTIONS.add_argument("--cmake", default="cmake")


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        done = subprocess.run([ARGUMENTS.cmake, "--install", ARGUMENTS.build.resolve(), "--prefix", root / "first"], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.prefix = (root / "first").rename(root / "second")

    def run_weft(self, *words):
        return subprocess.run([self.prefix / "bin/weft", *words], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})

    def test_runs_programs_from_where_it_was_moved_to(self):
        for options in ([], ["--sdp"]):
            done = self.run_weft("run", *options, "--", "sh", "-c", "cat /proc/self/maps; echo $LD_PRELOAD")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(f"{self.prefix}/lib/weft/libweft-sdp.so" in done.stdout, bool(options), done.stdout)
        done = self.run_weft("run", "--", "python3", "-c", "import ctypes; ctypes.CDLL('libibverbs.so.1'); ctypes.CDLL('librdmacm.so.1'); "
                                                            "print(open('/proc/self/maps').read())")
        for name in ("libibverbs.so.1", "librdmacm.so.1"):
            self.assertIn(f"{self.prefix}/lib/weft/{name}", done.stdout, done.stderr)

    def test_finds_its_scripts(self):
        done = self.run_weft("report", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("weft report", done.stdout)

    def test_has_the_names_that_programs_load_and_link(self):
        for name in ("libibverbs", "librdmacm"):
            self.assertEqual((self.prefix / f"lib/weft/{name}.so").readlink(), pathlib.Path(f"{name}.so.1"))

    def test_has_what_programs_and_people_read(self):
        for name in ("include/weft/rd.h", "include/weft/stream_ring.h", "share/man/man7/weft-sdp.7", "share/man/man7/weft-rd.7",
                     "share/weft/wireshark/wdp.lua", "share/doc/weft/README.md"):
            self.assertTrue((self.prefix / name).is_file(), name)


if __name__ == "__main__":
    ARGUMENTS, rest = OPTIONS.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
