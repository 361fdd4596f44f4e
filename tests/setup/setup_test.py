"""scripts/setup before a dpkg and an apt of this test's: what it asks them for, and what it says.

The fakes know three files: `installed` and `known` have a package a line, `asked` is written by apt-get. `known` begins to count with
`apt-get update` if there is no file `lists`."""

import os
import subprocess
import tempfile
import unittest

SETUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/setup")

FAKES = {
    "dpkg-query": """
        for package; do :; done
        if grep -qxF -e "$package" "$STATE/installed"; then echo -n installed; else exit 1; fi""",
    "apt-cache": """
        [ -e "$STATE/lists" ] || exit 0
        case $1 in
          pkgnames) cat "$STATE/known" ;;
          depends) echo clang; echo "  Depends: clang-$(cat "$STATE/clang")"; echo "  Breaks: clang-3.2" ;;
        esac""",
    "apt-get": """
        for argument; do
          case $argument in
            indextargets) [ ! -e "$STATE/lists" ] || echo /var/lib/apt/lists/x_Packages; exit 0 ;;
            update) touch "$STATE/lists"; echo update >>"$STATE/asked"; exit 0 ;;
            install) [ ! -e "$STATE/broken" ] || exit 100; found=1 ;;
            -*) ;;
            *) if [ "${found-}" ]; then echo "$argument" >>"$STATE/asked"; echo "$argument" >>"$STATE/installed"; fi ;;
          esac
        done""",
    # The user may use it.
    "sudo": """
        [ "$1" != -n ] || shift
        exec "$@" """,
}


class SetupTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = folder.name
        os.mkdir(f"{self.state}/bin")
        for name, text in FAKES.items():
            path = f"{self.state}/bin/{name}"
            with open(path, "w", encoding="ascii") as f:
                f.write("#!/bin/sh\n" + text + "\n")
            os.chmod(path, 0o755)
        self.write("clang", ["14"])
        self.write("installed", [])
        self.everything = self.run_setup("--list").stdout.split()
        self.write("known", self.everything)

    def write(self, name, lines):
        with open(f"{self.state}/{name}", "w", encoding="ascii") as f:
            f.writelines(f"{line}\n" for line in lines)

    def read(self, name):
        if not os.path.exists(f"{self.state}/{name}"):
            return []
        with open(f"{self.state}/{name}", encoding="ascii") as f:
            return f.read().split()

    def run_setup(self, *arguments):
        environment = dict(os.environ, STATE=self.state, PATH=f"{self.state}/bin:{os.environ['PATH']}")
        return subprocess.run([SETUP, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False)

    def test_installs_what_is_missing_and_nothing_else(self):
        self.write("installed", self.everything[5:])
        done = self.run_setup()
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(["update", *self.everything[:5]], self.read("asked"))

    def test_says_and_asks_nothing_when_all_is_there(self):
        self.write("installed", self.everything)
        done = self.run_setup()
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
        self.assertEqual([], self.read("asked"))

    def test_what_a_release_does_not_have_is_left_out_and_named(self):
        # One whose name is another one's beginning: apt-get would find it in there.
        self.write("known", [p.replace("linux-source-6.1", "linux-source-6.12") for p in self.everything])
        done = self.run_setup()
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(sorted(set(self.everything) - {"linux-source-6.1"}), sorted(self.read("asked")[1:]))
        self.assertIn("there is no package linux-source-6.1 here: tests/interop is skipped", done.stderr)

    def test_asks_apt_get_no_second_time_for_what_there_is_not(self):
        self.write("known", [p for p in self.everything if p not in ("chromium", "linux-source-6.1")])
        self.run_setup()
        self.assertIn("g++", self.read("asked"))
        os.unlink(f"{self.state}/asked")
        done = self.run_setup()
        self.assertEqual(0, done.returncode)
        self.assertEqual([], self.read("asked"))
        for package in ("chromium", "linux-source-6.1"):
            self.assertIn(f"there is no package {package} here", done.stderr)

    def test_fails_without_what_the_build_needs_when_the_rest_is_installed(self):
        self.write("known", [p for p in self.everything if p != "libcli11-dev"])
        done = self.run_setup("build")
        self.assertEqual(1, done.returncode)
        self.assertIn("there is no package libcli11-dev here: weft cannot be built without it", done.stderr)
        self.assertIn("cmake", self.read("asked"))

    def test_what_there_is_not_is_named_also_when_apt_get_fails(self):
        self.write("known", [p for p in self.everything if p != "chromium"])
        self.write("broken", [])
        done = self.run_setup()
        self.assertEqual(1, done.returncode)
        self.assertIn("apt-get could not install g++", done.stderr)
        self.assertIn("there is no package chromium here", done.stderr)

    def test_the_sanitizers_are_those_of_the_clang_that_comes(self):
        self.write("clang", ["19"])
        self.write("known", [p.replace("libclang-rt-14-dev", "libclang-rt-19-dev") for p in self.everything])
        done = self.run_setup("test")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("libclang-rt-19-dev", self.read("asked"))
        self.assertNotIn("there is no package", done.stderr)

    def test_a_list_and_a_check_install_nothing(self):
        self.write("installed", self.everything[1:])
        done = self.run_setup("--check")
        self.assertEqual((1, self.everything[0] + "\n"), (done.returncode, done.stdout))
        self.assertEqual([], self.read("asked"))

    def test_an_unknown_group_is_an_error(self):
        done = self.run_setup("tests")
        self.assertEqual(2, done.returncode)
        self.assertIn("'tests' is neither an option nor a group", done.stderr)


unittest.main()
