#!/usr/bin/env python3
"""Runs the program weft: `weft run` on programs that tell which libraries they were given, and the rest."""

import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import stat
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


class RunTest(Installed):
    def script(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def expect_weft(self, result):
        self.assertIn("ibverbs=weft rdmacm=weft ", result.stdout, result.stderr)
        self.assertEqual(result.returncode, 7, result.stderr)

    def test_program_without_weft_gets_the_system(self):
        plain = subprocess.run([str(FIXTURES / "program_runpath")], text=True, capture_output=True,
                               check=False)
        self.assertIn("ibverbs=system rdmacm=system ", plain.stdout)

    def test_runpath(self):
        result = self.run_weft("--", FIXTURES / "program_runpath", "a b", "--help", "--", "-v")
        self.expect_weft(result)
        self.assertIn(" [a b] [--help] [--] [-v]", result.stdout)
        self.assertEqual(result.stderr, "")

    def test_rpath_needs_preload(self):
        program = FIXTURES / "program_rpath"
        alone = subprocess.run([str(program)], text=True, capture_output=True, check=False,
                               env={"LD_LIBRARY_PATH": str(self.libraries)})
        self.assertIn("ibverbs=system", alone.stdout, "the fixture has lost its DT_RPATH")
        self.expect_weft(self.run_weft("--", program))

    def test_preload_only_where_needed(self):
        self.assertNotIn("LD_PRELOAD",
                         self.run_weft("--show", "--", FIXTURES / "program_runpath").stdout)
        shown = self.run_weft("--show", "--env", "LD_PRELOAD=libm.so.6", "--",
                              FIXTURES / "program_rpath")
        self.assertIn(f"LD_PRELOAD={self.libraries}/libibverbs.so.1:"
                      f"{self.libraries}/librdmacm.so.1:libm.so.6\n", shown.stdout)

    def test_separator_may_be_missing(self):
        result = self.run_weft("--env", "WEFT_LOG=info", FIXTURES / "program_runpath", "--env", "X")
        self.expect_weft(result)
        self.assertIn("log=info [--env] [X]", result.stdout)

    def test_inherited_library_path_comes_after(self):
        result = self.run_weft("--show", "--", "sh", LD_LIBRARY_PATH="/opt/a:/opt/b")
        self.assertIn(f"LD_LIBRARY_PATH={self.libraries}:/opt/a:/opt/b\n", result.stdout)

    def test_env(self):
        result = self.run_weft("--env", "WEFT_LOG=debug", "--env=LD_LIBRARY_PATH=/opt/mine", "--",
                               FIXTURES / "program_runpath")
        self.expect_weft(result)
        self.assertIn("log=debug", result.stdout)

    def test_env_without_value_is_refused(self):
        result = self.run_weft("--env", "WEFT_LOG", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("write it as NAME=VALUE", result.stderr)

    def test_children_inherit(self):
        result = self.run_weft("--", "sh", "-c", f"{FIXTURES / 'program_runpath'}; exit 3")
        self.assertIn("ibverbs=weft rdmacm=weft", result.stdout)
        self.assertEqual(result.returncode, 3)

    def test_nested_run_changes_nothing(self):
        result = self.run_weft("--", self.weft, "run", "--", FIXTURES / "program_rpath", "x")
        self.expect_weft(result)
        show = self.run_weft("--show", "--", "sh", LD_LIBRARY_PATH=f"{self.libraries}")
        self.assertIn(f"LD_LIBRARY_PATH={self.libraries}\n", show.stdout)

    def test_started_by_link(self):
        link = self.root / "elsewhere"
        link.symlink_to(self.weft)
        self.expect_weft(self.run_weft("--", FIXTURES / "program_runpath", weft=link))

    def test_descriptor_limit_is_raised(self):
        result = self.run_weft("--", FIXTURES / "program_runpath")
        self.assertIn(f"files={HARD} ", result.stdout)

    def test_script_with_rpath_interpreter(self):
        script = self.script("script", f"#!{FIXTURES / 'program_rpath'}\n")
        self.assertIn("LD_PRELOAD=", self.run_weft("--show", "--", script).stdout)
        self.expect_weft(self.run_weft("--", script))

    def test_script_by_env(self):
        script = self.script("script", "#!/usr/bin/env program_rpath\n")
        self.expect_weft(self.run_weft("--", script, PATH=f"{FIXTURES}:/usr/bin"))

    def test_script_without_first_line(self):
        script = self.script("script", f"exec {FIXTURES / 'program_runpath'} \"$@\"\n")
        self.expect_weft(self.run_weft("--", script, "x"))

    def test_not_found(self):
        for name in ("no-such-program", "/no/such/program"):
            result = self.run_weft("--", name)
            self.assertEqual(result.returncode, 127)
            self.assertIn(name, result.stderr)

    def test_not_executable(self):
        path = self.script("program", "#!/bin/sh\n")
        path.chmod(0o644)
        result = self.run_weft("--", path)
        self.assertEqual(result.returncode, 126)
        self.assertIn(f"chmod +x {path}", result.stderr)
        result = self.run_weft("--", "program", PATH=str(self.root))
        self.assertEqual(result.returncode, 126)

    def test_folder(self):
        result = self.run_weft("--", self.root)
        self.assertEqual(result.returncode, 126)
        self.assertIn("is a folder", result.stderr)

    def test_missing_interpreter(self):
        result = self.run_weft("--", self.script("script", "#!/no/such/interpreter\n"))
        self.assertEqual(result.returncode, 127)
        self.assertIn("interpreter", result.stderr)

    def test_32_bit_program(self):
        program = bytearray((FIXTURES / "program_runpath").read_bytes())
        program[4] = 1  # ELFCLASS32
        path = self.root / "program32"
        path.write_bytes(program)
        path.chmod(0o755)
        result = self.run_weft("--", path)
        self.assertEqual(result.returncode, 126)
        self.assertIn("32-bit", result.stderr)

    def test_static_program_is_warned_of(self):
        result = self.run_weft("--", FIXTURES / "program_static")
        self.assertEqual(result.returncode, 0)
        self.assertIn("linked statically", result.stderr)

    def test_missing_libraries(self):
        (self.libraries / "librdmacm.so.1").unlink()
        result = self.run_weft("--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("librdmacm.so.1", result.stderr)

    def test_folder_that_the_loader_cannot_take(self):
        moved = self.root / "a:b"
        (moved / "lib").mkdir(parents=True)
        (moved / "bin").mkdir()
        shutil.copy(self.weft, moved / "bin" / "weft")
        shutil.copytree(self.libraries, moved / "lib" / "weft")
        result = self.run_weft("--", "true", weft=moved / "bin" / "weft")
        self.assertEqual(result.returncode, 125)
        self.assertIn("move weft", result.stderr)

    def test_usage(self):
        self.assertEqual(self.run_weft().returncode, 2)
        self.assertEqual(self.run_weft("--").returncode, 2)
        self.assertEqual(self.run_weft("--no-such-option", "--", "true").returncode, 2)
        usage = self.run_weft("--help")
        self.assertEqual(usage.returncode, 0)
        self.assertIn("--env NAME=VALUE", usage.stdout)


class TraceTest(Installed):
    """Shell scripts play programs that write what WEFT_TRACE asks for."""

    def setUp(self):
        super().setUp()
        self.folder = self.root / "traces"
        self.folder.mkdir()
        self.pattern = self.folder / "t-%p.pcapng"

    def trace(self, script, *options, **rest):
        return self.call("trace", "-o", self.pattern, *options, "--", "sh", "-c", script, **rest)

    def test_the_program_runs_on_weft_and_is_told_what_to_record(self):
        result = self.trace(f"echo $WEFT_TRACE $WEFT_TRACE_SNAP $WEFT_TRACE_SIZE; {FIXTURES / 'program_runpath'} x",
                            "--snap", "64", "--size=7", "--env", "WEFT_LOG=info")
        self.assertIn(f"{self.pattern} 64 7\n", result.stdout)
        self.assertIn("ibverbs=weft rdmacm=weft ", result.stdout)
        self.assertIn("log=info [x]", result.stdout)
        self.assertEqual(result.returncode, 7)

    def test_separator_may_be_missing(self):
        result = self.call("trace", "-o", self.pattern, "--snap", "5", "sh", "-c", "echo $0 $1 $WEFT_TRACE_SNAP", "-o", "x")
        self.assertEqual(result.stdout, "-o x 5\n")

    def test_without_options_everything_is_recorded_in_the_working_directory(self):
        result = subprocess.run([str(self.weft), "trace", "--", "sh", "-c", "echo $WEFT_TRACE $WEFT_TRACE_SNAP; cd /; pwd"],
                                cwd=self.folder, text=True, capture_output=True, check=False)
        self.assertEqual(result.stdout, f"{self.folder}/weft-%p.pcapng 0\n/\n")

    def test_new_files_are_named(self):
        (self.folder / "t-1.pcapng").write_text("of yesterday")
        result = self.trace("cd traces; echo 1234567 >t-22.pcapng; touch t-22-2.pcapng t-x.pcapng at-3.pcapng t-3.pcapng.bz2",
                            cwd=self.root)
        named = [line for line in result.stderr.splitlines() if "pcapng" in line]
        self.assertEqual(named, [f"weft trace: {self.folder}/t-22-2.pcapng (0 bytes)",
                                 f"weft trace: {self.folder}/t-22.pcapng (8 bytes)"])
        self.assertIn("tshark", result.stderr)

    def test_where_there_are_datagrams_the_dissector_is_named(self):
        packet = bytes(20) + bytes([0x45]) + bytes(8) + bytes([17]) + bytes(18)
        length = (len(packet) + 12).to_bytes(4, sys.byteorder)
        (self.root / "datagrams").write_bytes((6).to_bytes(4, sys.byteorder) + length + packet + length)
        result = self.trace("cp datagrams traces/t-22.pcapng", cwd=self.root)
        self.assertIn("-X lua_script:packaging/wireshark/wdp.lua; then: -Y wdp -r FILE", result.stderr)
        self.assertNotIn("iwarp", result.stderr)
        script = self.root / "share" / "weft" / "wireshark" / "wdp.lua"
        script.parent.mkdir(parents=True)
        script.write_text("-- the dissector\n")
        again = self.trace("cp datagrams traces/t-23.pcapng", cwd=self.root)
        self.assertIn(f"-X lua_script:{script}; then", again.stderr)

    def test_no_file(self):
        self.assertIn("weft trace: no file", self.trace("true").stderr)

    def test_status_is_the_programs(self):
        self.assertEqual(self.trace("exit 3").returncode, 3)
        self.assertEqual(self.trace("kill -SEGV $$").returncode, 128 + signal.SIGSEGV)
        self.assertEqual(self.call("trace", "-o", self.pattern, "--", "no-such-program").returncode, 127)

    def test_signals_are_for_the_program(self):
        for name in ("TERM", "INT", "HUP"):
            process = subprocess.Popen([str(self.weft), "trace", "-o", str(self.pattern), "--", "sh", "-c",
                                        f"trap 'exit 9' {name}; echo ready; while :; do sleep 0.05; done"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(getattr(signal, f"SIG{name}"))
            self.assertEqual(process.wait(20), 9, name)
            process.stdout.close()

    def test_ignored_signals_stay_ignored(self):
        # As nohup has it, and those who start many programs and wait for none.
        ignore = [f"signal.signal(signal.{name}, signal.SIG_IGN)" for name in ("SIGHUP", "SIGCHLD")]
        command = [str(self.weft), "trace", "-o", str(self.pattern), "--", "sh", "-c", "kill -HUP $PPID $$; exit 3"]
        script = f"import os, signal; {'; '.join(ignore)}; os.execv({command[0]!r}, {command!r})"
        self.assertEqual(subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode, 3)

    def test_killed_it_takes_the_program_with_it(self):
        # The pipe ends when nobody holds it open any more.
        process = subprocess.Popen([str(self.weft), "trace", "-o", str(self.pattern), "--", "sh", "-c",
                                    "echo ready; exec sleep 1000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.kill()
        self.assertEqual(process.communicate(timeout=20)[0], "")

    def test_places_that_cannot_be(self):
        for name, sentence in ((self.root / "no" / "t.pcapng", "no file can be made there"), (self.folder, "is a folder"),
                               (self.root / "%p" / "t.pcapng", "belongs into the file's name")):
            result = self.call("trace", "-o", name, "--", "sh", "-c", "echo it ran")
            self.assertEqual((result.returncode, result.stdout), (125, ""))
            self.assertIn(sentence, result.stderr)

    def test_usage(self):
        for words in ([], ["--"], ["--snap", "-1", "--", "true"], ["--size", "0", "--", "true"], ["-o"]):
            self.assertEqual(self.call("trace", *words).returncode, 2, words)
        self.assertIn("%p", self.call("trace", "--help").stdout)


class InfoTest(Installed):
    def test_json_is_json(self):
        device = json.loads(self.call("info", "--json").stdout)
        self.assertEqual(device["device"], "weft0")
        self.assertEqual(device["limits"]["max_sge"], 30)
        options = json.loads(self.call("info", "--options", "--json").stdout)
        self.assertIn("WEFT_CRC", [option["env"] for option in options])

    def test_values_come_from_the_environment(self):
        self.assertIn("WEFT_CRC=off  (set)", self.call("info", "--options", WEFT_CRC="off").stdout)
        self.assertIn("iwarp: RNIC", self.call("info", WEFT_IDENTITY="iwarp").stdout)

    def test_markdown_does_not_depend_on_the_environment(self):
        self.assertEqual(self.call("info", "--options", "--markdown", WEFT_CRC="off").stdout,
                         self.call("info", "--options", "--markdown").stdout)

    def test_usage(self):
        self.assertEqual(self.call().returncode, 2)
        self.assertEqual(self.call("info", "--markdown").returncode, 2)
        self.assertEqual(self.call("no-such-command").returncode, 2)
        self.assertRegex(self.call("--version").stdout, r"^weft \d+\.\d+\.\d+\n$")
        for command in ("info", "doctor", "run", "trace"):
            self.assertEqual(self.call(command, "--help").returncode, 0)


class DoctorTest(Installed):
    def finding(self, result, check):
        found = [f for f in json.loads(result.stdout)["findings"] if f["check"] == check]
        self.assertEqual(len(found), 1, result.stdout)
        return found[0]

    def test_libraries_load(self):
        result = self.call("doctor", "--json")
        self.assertEqual(self.finding(result, "libraries")["severity"], "ok", result.stdout)
        self.assertEqual(result.returncode == 0, json.loads(result.stdout)["problems"] == 0)

    def test_damaged_library_is_a_problem(self):
        (self.libraries / "librdmacm.so.1").write_text("no library")
        result = self.call("doctor", "--json")
        self.assertEqual(result.returncode, 1)
        finding = self.finding(result, "libraries")
        self.assertEqual(finding["severity"], "problem")
        self.assertIn("librdmacm.so.1", finding["sentence"])
        self.assertNotEqual(finding["remedy"], "")

    def test_misspelt_option_is_named(self):
        finding = self.finding(self.call("doctor", "--json", WEFT_CRCC="off"), "options")
        self.assertEqual(finding["severity"], "note")
        self.assertIn("WEFT_CRCC", finding["sentence"])

    def test_option_that_fits_no_address_is_a_problem(self):
        result = self.call("doctor", "--json", WEFT_IP="203.0.113.99")
        self.assertEqual(result.returncode, 1)
        self.assertIn("203.0.113.99", self.finding(result, "addresses")["sentence"])

    def test_peer(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            result = self.call("doctor", "--json", "--peer", "127.0.0.1", "--port", port)
            self.assertEqual(self.finding(result, "connection")["severity"], "ok", result.stdout)
        result = self.call("doctor", "--json", "--peer", "127.0.0.1", "--port", port)
        self.assertEqual(self.finding(result, "connection")["severity"], "problem", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_usage(self):
        self.assertEqual(self.call("doctor", "--port", "1").returncode, 2)
        self.assertEqual(self.call("doctor", "--peer", "127.0.0.1", "--port", "70000").returncode, 2)


class SetuidTest(Installed):
    """Root only: it takes another user to whom the bit means something."""

    def test_setuid_program_is_warned_of(self):
        path = self.root / "setuid"
        shutil.copy(FIXTURES / "program_runpath", path)
        path.chmod(0o755 | stat.S_ISUID)
        self.root.chmod(0o755)
        result = subprocess.run(
            [str(self.weft), "run", "--show", "--", str(path)], text=True, capture_output=True,
            check=False, user=65534, group=65534, extra_groups=[])
        self.assertIn("has the setuid bit", result.stderr)
        self.assertEqual(self.run_weft("--show", "--", path).stderr, "", "root stays root")


def main() -> None:
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


if __name__ == "__main__":
    main()
