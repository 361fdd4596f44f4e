#!/usr/bin/env python3
"""Runs ./check on small projects whose tests fail now and then, and looks at what it says."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]

# Names as GoogleTest makes them. As a regular expression the first would match the second, too.
ODD_NAME = "Routers/Path.a+(b)[c]^$|x\\y/0"
ODD_NEIGHBOUR = "Routers/Path_a+(b)[c]^$|x\\y/0"


class Project:
    """A folder with ./check, its scripts, and builds that are there already: each stage's tests are shell commands."""

    def __init__(self, folder: str):
        self.root = pathlib.Path(folder)
        (self.root / "scripts").mkdir()
        shutil.copy(TOP / "check", self.root)
        for name in ("count-tests", "junit.py", "rerun-failed", "tidy"):
            shutil.copy(TOP / "scripts" / name, self.root / "scripts")
        self.write_script("scripts/setup", "exit 0")
        self.write_script("bin/cmake", "exit 0")
        self.write_script("bin/ninja", "echo fuzz_wire: phony")
        self.order = self.root / "order"

    def write_script(self, name: str, text: str) -> pathlib.Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    def add_tests(self, stage: str, label="unit", **scripts: str) -> None:
        self.add_named_tests(stage, scripts, label)

    def add_named_tests(self, stage: str, scripts: dict, label="unit", properties="TIMEOUT 60") -> None:
        """In a script $runs is how often the test was begun, this time included."""
        build = self.root / "build" / stage
        build.mkdir(parents=True, exist_ok=True)
        with (build / "CTestTestfile.cmake").open("a") as file:
            for name, text in scripts.items():
                script = f"{stage}-{sum(1 for _ in build.iterdir())}.sh"
                self.write_script(f"build/{stage}/{script}",
                                  f"cd '{self.root}'; echo '{stage} {name}' >>order\n"
                                  f"runs=$(grep -cxF '{stage} {name}' order)\n{text}\n"
                                  f"result=$?; echo '{stage} {name} ends' >>order; exit $result")
                file.write(f"add_test([==[{name}]==] \"{build / script}\")\n"
                           f"set_tests_properties([==[{name}]==] PROPERTIES LABELS {label} {properties})\n")

    def check(self, *options: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run([self.root / "check", *options], env=environment, capture_output=True, text=True, check=False)

    def begun(self) -> list:
        """Which tests ran, in their order."""
        return [line for line in self.order.read_text().splitlines() if not line.endswith(" ends")]

    def flaky(self) -> dict:
        """What each of the tests printed the first time, by stage and test."""
        lines = (line.split("\t") for line in (self.root / "build/check/flaky").read_text().splitlines())
        return {f"{stage} {test}": (self.root / output).read_text() for stage, test, output in lines}


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft-check-")
        self.addCleanup(folder.cleanup)
        self.project = Project(folder.name)

    def expect(self, result, status: int, last_line: str, *verdicts: str) -> None:
        everything = result.stdout + result.stderr
        self.assertEqual(result.returncode, status, everything)
        self.assertEqual(result.stdout.splitlines()[-1], last_line, everything)
        summary = result.stdout[result.stdout.index("summary, "):]
        found = [tuple(words[:2]) for words in map(str.split, summary.splitlines()) if words[2:] and words[-1] == "s"]
        self.assertEqual([f"{stage} {verdict}" for stage, verdict in found if stage != "summary,"], list(verdicts), everything)

    def test_nothing_failed(self):
        self.project.add_tests("release", good="true")
        self.project.add_tests("tsan", good="true")
        result = self.project.check("--only=release,tsan")
        self.expect(result, 0, "2 passed, 0 failed, 0 skipped", "release ok", "tsan ok")
        self.assertNotIn("flaky", result.stdout)
        self.assertEqual(self.project.flaky(), {})
        self.assertEqual(self.project.begun(), ["release good", "tsan good"])

    def test_a_test_that_passes_alone_is_flaky_and_forgiven(self):
        self.project.add_named_tests("release", {
            ODD_NAME: 'echo "words of run $runs"; test "$runs" -gt 1',
            ODD_NEIGHBOUR: "true", "skips": "exit 77"}, properties="TIMEOUT 60 SKIP_RETURN_CODE 77")
        result = self.project.check("--only=release")
        self.expect(result, 0, "2 passed, 0 failed, 1 skipped", "release flaky")
        self.assertIn("\n1 flaky\n", result.stdout)
        self.assertIn(f"flaky    release: {ODD_NAME}: failed, then passed alone", result.stdout)
        self.assertEqual(self.project.begun().count(f"release {ODD_NAME}"), 2)
        self.assertEqual(self.project.begun().count(f"release {ODD_NEIGHBOUR}"), 1)
        self.assertEqual(list(self.project.flaky()), [f"release {ODD_NAME}"])
        kept = self.project.flaky()[f"release {ODD_NAME}"]
        self.assertIn("words of run 1\n", kept)
        self.assertNotIn("words of run 2", kept)
        self.assertIn("words of run 1\n", result.stdout)  # also where the file is gone tomorrow

    def test_a_test_that_always_fails_fails_the_run(self):
        self.project.add_tests("release", bad='echo "words of run $runs"; false', good="true")
        result = self.project.check("--only=release")
        self.expect(result, 1, "1 passed, 1 failed, 0 skipped", "release FAILED")
        self.assertIn("failed   release: bad\n", result.stdout)
        self.assertIn("words of run 2", result.stdout)
        self.assertEqual(self.project.begun().count("release bad"), 2)
        self.assertEqual(self.project.flaky(), {})

    def test_one_that_fails_again_beside_one_that_passes(self):
        self.project.add_tests("release", bad="false", busy='test "$runs" -gt 1')
        result = self.project.check("--only=release")
        self.expect(result, 1, "1 passed, 1 failed, 0 skipped", "release FAILED")
        self.assertEqual(list(self.project.flaky()), ["release busy"])

    def test_a_sanitizers_report_is_not_forgiven(self):
        long = "i=0; while [ $i -lt 9000 ]; do echo a line of forty characters, over and over; i=$((i + 1)); done"
        for stage, label, said in (
                ("asan-ubsan", "unit", "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010"),
                ("asan-ubsan", "sanitized", "src/wire/crc.cc:12:7: runtime error: left shift of 1 by 32"),
                ("asan-ubsan", "unit", "==7==ERROR: LeakSanitizer: detected memory leaks"),
                ("tsan", "conformance", "WARNING: ThreadSanitizer: data race (pid=7)"),
                ("fuzz", "fuzz", "==7== ERROR: libFuzzer: deadly signal")):
            with self.subTest(said=said), tempfile.TemporaryDirectory(prefix="weft-check-") as folder:
                project = Project(folder)
                project.add_tests(stage, label, seldom=f'{long}\n[ "$runs" -gt 1 ] || {{ echo "{said}" >&2; {long}; false; }}')
                result = project.check(f"--only={stage}")
                self.expect(result, 1, "0 passed, 1 failed, 0 skipped", f"{stage} FAILED")
                self.assertIn("not run again: seldom: ", result.stdout)
                self.assertEqual(project.begun(), [f"{stage} seldom"])
                self.assertEqual(project.flaky(), {})

    def test_other_failures_under_a_sanitizer_are_forgiven(self):
        self.project.add_tests("tsan", busy='test "$runs" -gt 1')
        self.expect(self.project.check("--only=tsan"), 0, "1 passed, 0 failed, 0 skipped", "tsan flaky")

    def test_timeouts_and_crashes_have_a_second_chance(self):
        self.project.add_named_tests("release", {"hangs": '[ "$runs" -gt 1 ] || sleep 60'}, properties="TIMEOUT 4")
        self.project.add_tests("release", crashes='[ "$runs" -gt 1 ] || kill -SEGV $$')
        result = self.project.check("--only=release")
        self.expect(result, 0, "2 passed, 0 failed, 0 skipped", "release flaky")
        self.assertIn("\n2 flaky\n", result.stdout)
        self.assertEqual(set(self.project.flaky()), {"release hangs", "release crashes"})

    def test_a_test_that_hangs_twice_fails_the_run(self):
        self.project.add_named_tests("release", {"hangs": "sleep 60"}, properties="TIMEOUT 1")
        result = self.project.check("--only=release")
        self.expect(result, 1, "0 passed, 1 failed, 0 skipped", "release FAILED")
        self.assertIn("failed   release: hangs\n", result.stdout)

    def test_second_runs_come_last_and_alone(self):
        self.project.add_tests("release", busy='test "$runs" -gt 1', slow='test "$runs" -gt 1', good="true")
        self.project.add_tests("tsan", good="sleep 0.2")
        self.expect(self.project.check("--only=release,tsan"), 0, "4 passed, 0 failed, 0 skipped", "release flaky", "tsan ok")
        second_runs = self.project.order.read_text().splitlines()[-4:]
        self.assertEqual(second_runs, ["release busy", "release busy ends", "release slow", "release slow ends"])

    def test_the_second_run_has_what_the_stage_gives(self):
        said = '[ "$runs" -eq 1 ] && exit 1; [ "$WEFT_SIM_SEED $TSAN_OPTIONS" = "1 second_deadlock_stack=1" ]'
        self.project.add_tests("tsan", busy=said)
        self.expect(self.project.check("--only=tsan"), 0, "1 passed, 0 failed, 0 skipped", "tsan flaky")

    def test_sanitizers_run_some_seeds_and_full_all(self):
        self.project.add_tests("asan-ubsan", few='test "$WEFT_SIM_SEEDS" = 12')
        self.expect(self.project.check("--only=asan-ubsan"), 0, "1 passed, 0 failed, 0 skipped", "asan-ubsan ok")
        self.project.add_tests("asan-ubsan", all='test -z "$WEFT_SIM_SEEDS"')
        self.expect(self.project.check("--only=asan-ubsan", "--full"), 1, "1 passed, 1 failed, 0 skipped", "asan-ubsan FAILED")

    def test_what_the_test_needs_runs_again_too(self):
        self.project.add_named_tests("release", {"image": "touch image"}, properties="FIXTURES_SETUP image")
        self.project.add_named_tests("release", {"guest": 'test -f image && rm image && test "$runs" -gt 1'},
                                     properties="FIXTURES_REQUIRED image")
        self.expect(self.project.check("--only=release"), 0, "2 passed, 0 failed, 0 skipped", "release flaky")

    def test_many_failures_are_no_accident(self):
        self.project.add_named_tests("release", {f"t{i}": 'test "$runs" -gt 1' for i in range(21)})
        result = self.project.check("--only=release")
        self.expect(result, 1, "0 passed, 21 failed, 0 skipped", "release FAILED")
        self.assertIn("21 tests failed, more than 20: none runs again", result.stdout)
        self.assertEqual(len(self.project.begun()), 21)

    def test_a_build_that_fails_has_no_second_chance(self):
        self.project.add_tests("release", good="true")
        self.project.write_script("bin/cmake", "echo no compiler; exit 8")
        result = self.project.check("--only=release")
        self.expect(result, 1, "0 passed, 1 failed, 0 skipped", "release FAILED")
        self.assertIn("no compiler", result.stdout)
        self.assertIn("failed   release: the stage itself\n", result.stdout)
        self.assertFalse(self.project.order.exists())

    def test_the_last_line_tells_of_a_stage_that_failed_without_a_test(self):
        self.project.add_tests("release", good="true")
        self.project.add_tests("fuzz", label="fuzz", good="true")
        self.project.write_script("bin/cmake", 'case "$*" in *fuzz*) exit 8 ;; esac')
        result = self.project.check("--only=release,fuzz")
        self.expect(result, 1, "1 passed, 1 failed, 0 skipped", "release ok", "fuzz FAILED")
        self.assertIn("failed   fuzz: the stage itself\n", result.stdout)

    def test_a_stage_without_tests_fails(self):
        self.project.add_tests("tsan", label="apps", good="true")
        result = self.project.check("--only=tsan")
        self.expect(result, 1, "0 passed, 1 failed, 0 skipped", "tsan FAILED")

    def test_tests_that_run_out_of_time_fail_the_run(self):
        self.project.add_tests("release", good="true", slow="sleep 60")
        result = self.project.check("--only=release", "--limit=3")
        self.expect(result, 1, "0 passed, 1 failed, 0 skipped", "release FAILED")
        self.assertRegex(result.stdout, "check: (ended after|out of time before)")

    def test_what_is_for_full_alone(self):
        self.project.add_tests("release", good='test -z "$CHECK_FULL"')
        self.project.add_tests("release", label="full", long='test -n "$CHECK_FULL"')
        self.expect(self.project.check("--only=release"), 0, "1 passed, 0 failed, 0 skipped", "release ok")
        result = self.project.check("--only=release", "--full")
        self.expect(result, 1, "1 passed, 1 failed, 0 skipped", "release FAILED")
        self.assertIn("failed   release: good\n", result.stdout)

    def test_clang_tidy_that_runs_out_of_time_fails_the_run(self):
        (self.project.root / "src/wire").mkdir(parents=True)
        for name in ("crc", "fpdu"):
            (self.project.root / f"src/wire/{name}.cc").write_text("int main() {}\n")
        self.project.write_script("bin/clang-tidy", 'case $1 in --version) echo 1 ;; *) exec sleep 60 ;; esac')
        self.project.write_script("bin/clang++", "true")
        self.project.add_tests("release", good="true")
        (self.project.root / ".clang-tidy").touch()
        (self.project.root / "build/release/compile_commands.json").write_text("[" + ", ".join(
            f'{{"directory": "{self.project.root}", "file": "src/wire/{name}.cc",'
            f' "command": "g++ -o {name}.o -c src/wire/{name}.cc"}}' for name in ("crc", "fpdu")) + "]")
        result = self.project.check("--only=tidy", "--limit=33")  # 30 s of them are for what comes after it
        self.expect(result, 1, "0 passed, 1 failed, 0 skipped", "tidy FAILED")
        self.assertIn("time was over: 2 files not looked at: src/wire/crc.cc src/wire/fpdu.cc", result.stdout)


if __name__ == "__main__":
    unittest.main()
