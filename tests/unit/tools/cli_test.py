#!/usr/bin/env python3
"""Runs the program weft: `weft run` on programs that tell which libraries they were given, `weft info`, `weft doctor`."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess

import installed


class RunTest(installed.Installed):
    def script(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def expect_weft(self, result):
        self.assertIn("ibverbs=weft rdmacm=weft ", result.stdout, result.stderr)
        self.assertEqual(result.returncode, 7, result.stderr)

    def test_program_without_weft_gets_the_system(self):
        plain = subprocess.run([str(installed.FIXTURES / "program_runpath")], text=True, capture_output=True,
                               check=False)
        self.assertIn("ibverbs=system rdmacm=system ", plain.stdout)

    def test_runpath(self):
        result = self.run_weft("--", installed.FIXTURES / "program_runpath", "a b", "--help", "--", "-v")
        self.expect_weft(result)
        self.assertIn(" [a b] [--help] [--] [-v]", result.stdout)
        self.assertEqual(result.stderr, "")

    def test_rpath_needs_preload(self):
        program = installed.FIXTURES / "program_rpath"
        alone = subprocess.run([str(program)], text=True, capture_output=True, check=False,
                               env={"LD_LIBRARY_PATH": str(self.libraries)})
        self.assertIn("ibverbs=system", alone.stdout, "the fixture has lost its DT_RPATH")
        self.expect_weft(self.run_weft("--", program))

    def test_preload_only_where_needed(self):
        self.assertNotIn("LD_PRELOAD",
                         self.run_weft("--show", "--", installed.FIXTURES / "program_runpath").stdout)
        shown = self.run_weft("--show", "--env", "LD_PRELOAD=libm.so.6", "--",
                              installed.FIXTURES / "program_rpath")
        self.assertIn(f"LD_PRELOAD={self.libraries}/libibverbs.so.1:"
                      f"{self.libraries}/librdmacm.so.1:libm.so.6\n", shown.stdout)

    def test_separator_may_be_missing(self):
        result = self.run_weft("--env", "WEFT_LOG=info", installed.FIXTURES / "program_runpath", "--env", "X")
        self.expect_weft(result)
        self.assertIn("log=info [--env] [X]", result.stdout)

    def test_inherited_library_path_comes_after(self):
        result = self.run_weft("--show", "--", "sh", LD_LIBRARY_PATH="/opt/a:/opt/b")
        self.assertIn(f"LD_LIBRARY_PATH={self.libraries}:/opt/a:/opt/b\n", result.stdout)

    def test_env(self):
        result = self.run_weft("--env", "WEFT_LOG=debug", "--env=LD_LIBRARY_PATH=/opt/mine", "--",
                               installed.FIXTURES / "program_runpath")
        self.expect_weft(result)
        self.assertIn("log=debug", result.stdout)

    def test_env_without_value_is_refused(self):
        result = self.run_weft("--env", "WEFT_LOG", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("write it as NAME=VALUE", result.stderr)

    def test_children_inherit(self):
        result = self.run_weft("--", "sh", "-c", f"{installed.FIXTURES / 'program_runpath'}; exit 3")
        self.assertIn("ibverbs=weft rdmacm=weft", result.stdout)
        self.assertEqual(result.returncode, 3)

    def test_nested_run_changes_nothing(self):
        result = self.run_weft("--", self.weft, "run", "--", installed.FIXTURES / "program_rpath", "x")
        self.expect_weft(result)
        show = self.run_weft("--show", "--", "sh", LD_LIBRARY_PATH=f"{self.libraries}")
        self.assertIn(f"LD_LIBRARY_PATH={self.libraries}\n", show.stdout)

    def test_started_by_link(self):
        link = self.root / "elsewhere"
        link.symlink_to(self.weft)
        self.expect_weft(self.run_weft("--", installed.FIXTURES / "program_runpath", weft=link))

    def test_descriptor_limit_is_raised(self):
        result = self.run_weft("--", installed.FIXTURES / "program_runpath")
        self.assertIn(f"files={installed.HARD} ", result.stdout)

    def test_script_with_rpath_interpreter(self):
        script = self.script("script", f"#!{installed.FIXTURES / 'program_rpath'}\n")
        self.assertIn("LD_PRELOAD=", self.run_weft("--show", "--", script).stdout)
        self.expect_weft(self.run_weft("--", script))

    def test_script_by_env(self):
        script = self.script("script", "#!/usr/bin/env program_rpath\n")
        self.expect_weft(self.run_weft("--", script, PATH=f"{installed.FIXTURES}:/usr/bin"))

    def test_script_without_first_line(self):
        script = self.script("script", f"exec {installed.FIXTURES / 'program_runpath'} \"$@\"\n")
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
        program = bytearray((installed.FIXTURES / "program_runpath").read_bytes())
        program[4] = 1  # ELFCLASS32
        path = self.root / "program32"
        path.write_bytes(program)
        path.chmod(0o755)
        result = self.run_weft("--", path)
        self.assertEqual(result.returncode, 126)
        self.assertIn("32-bit", result.stderr)

    def test_static_program_is_warned_of(self):
        result = self.run_weft("--", installed.FIXTURES / "program_static")
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


class InfoTest(installed.Installed):
    def test_json_is_json(self):
        device = json.loads(self.call("info", "--json").stdout)
        self.assertEqual(device["device"], "weft0")
        self.assertEqual(device["limits"]["max_sge"], 30)
        options = json.loads(self.call("info", "--options", "--json").stdout)
        self.assertIn("WEFT_CRC", [option["env"] for option in options])

    def test_json_of_bytes_that_are_no_utf_8(self):
        environment = {**os.environ, "WEFT_TRACE": os.fsdecode(b"/nowhere/\xff"), os.fsdecode(b"WEFT_NONE\xfe"): "1"}
        for words in (("info", "--options", "--json"), ("info", "--json"), ("doctor", "--json")):
            result = subprocess.run([self.weft, *words], capture_output=True, check=False, env=environment)
            self.assertNotEqual(json.loads(result.stdout), {}, words)

    def test_values_come_from_the_environment(self):
        self.assertIn("WEFT_CRC=off  (set)", self.call("info", "--options", WEFT_CRC="off").stdout)
        self.assertIn("iwarp: RNIC", self.call("info", WEFT_IDENTITY="iwarp").stdout)

    def test_says_how_processes_of_this_host_reach_each_other(self):
        self.assertRegex(self.call("info").stdout, r"(?m)^  same host  (through memory|by TCP: the kernel)")
        self.assertIn("same host  by TCP: WEFT_SAME_HOST=off", self.call("info", WEFT_SAME_HOST="off").stdout)
        self.assertIn("same host  by TCP: WEFT_FAULT", self.call("info", WEFT_FAULT="split:0.5").stdout)
        self.assertIn("by TCP", json.loads(self.call("info", "--json", WEFT_SAME_HOST="off").stdout)["same_host"])

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


class NoProcTest(installed.Installed):
    """Where /proc is not mounted."""

    def test_weft_finds_its_libraries_by_the_name_that_it_was_started_by(self):
        hide = ["unshare", "--mount", "--map-root-user", "sh", "-c", "mount -t tmpfs none /proc && cd \"$1\" && shift && exec \"$@\"", "sh"]
        if subprocess.run([*hide, "/", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespace can be made here")
        for folder, name in (("/", self.weft), (self.root / "bin", "./weft"), (self.root, "bin/weft")):
            result = subprocess.run([*hide, folder, name, "run", "--", "sh", "-c", "echo $LD_LIBRARY_PATH"], capture_output=True, text=True,
                                    check=False)
            self.assertEqual(result.stdout.split(":")[0].strip(), str(self.libraries.resolve()), result.stderr)


class DoctorTest(installed.Installed):
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

    def test_a_folder_that_the_loader_would_split_is_a_problem(self):
        moved = self.root / "a b"
        for name in ("bin", "lib"):
            shutil.copytree(self.root / name, moved / name)
        result = self.call("doctor", "--json", weft=moved / "bin" / "weft")
        finding = self.finding(result, "libraries")
        self.assertEqual((finding["severity"], finding["remedy"]), ("problem", "move weft to another folder"))
        self.assertIn("'" + str(moved), finding["sentence"])
        self.assertIn("move weft to another folder", self.finding(result, "sdp")["remedy"])

    def test_misspelt_option_is_named(self):
        finding = self.finding(self.call("doctor", "--json", WEFT_CRCC="off"), "options")
        self.assertEqual(finding["severity"], "note")
        self.assertIn("WEFT_CRCC", finding["sentence"])

    def test_option_that_fits_no_address_is_a_problem(self):
        result = self.call("doctor", "--json", WEFT_IP="203.0.113.99")
        self.assertEqual(result.returncode, 1)
        self.assertIn("203.0.113.99", self.finding(result, "addresses")["sentence"])

    def test_nothing_is_claimed_of_the_way_to_others(self):
        text = self.call("doctor").stdout
        self.assertIn("; the way to other hosts was not looked at (--peer)\n", text)

    def test_connect(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            result = self.call("doctor", "--json", "--peer", "127.0.0.1", "--connect", port)
            self.assertEqual(self.finding(result, "connection")["severity"], "ok", result.stdout)
        result = self.call("doctor", "--json", "--peer", "127.0.0.1", "--connect", port)
        self.assertEqual(self.finding(result, "connection")["severity"], "problem", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_peer_without_a_doctor_is_not_called_good(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        result = self.call("doctor", "--json", "--peer", "127.0.0.1", "--port", port)
        finding = self.finding(result, "path")
        self.assertEqual(finding["severity"], "untested")
        self.assertIn("Connection refused", finding["sentence"])
        self.assertIn("weft doctor --listen", finding["remedy"])
        self.assertEqual(result.returncode, 1)

    def test_program_of_the_peer_is_left_alone(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            self.call("doctor", "--peer", "127.0.0.1")
            with self.assertRaises(BlockingIOError):
                server.accept()

    def listen(self, *options):
        """A listener, and the port that it has."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        process = subprocess.Popen([str(self.weft), "doctor", "--listen", "--port", str(port), *options],
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertIn(f"listens on port {port} (TCP and UDP)", process.stdout.readline())
        self.assertIn(f"--port {port}", process.stdout.readline())
        return process, port

    def test_listener_and_signals(self):
        for ending in (signal.SIGINT, signal.SIGTERM):
            process, port = self.listen()
            report = json.loads(self.call("doctor", "--json", "--peer", "127.0.0.1", "--port", port).stdout)
            checks = {f["check"]: f["severity"] for f in report["findings"]}
            for check in ("listener", "address", "ports", "tcp-there", "tcp-back", "udp-there", "udp-back"):
                self.assertEqual(checks[check], "ok", report)
            self.assertEqual(report["untested"], 0)
            process.send_signal(ending)
            self.assertEqual(process.wait(timeout=60), 0)

    def test_listener_ends_by_itself(self):
        process, _ = self.listen("--for", "1")
        self.assertEqual(process.wait(timeout=60), 0)

    def test_port_that_is_held(self):
        _, port = self.listen()
        finding = self.finding(self.call("doctor", "--json", "--local-port", port), "local-port")
        self.assertEqual(finding["severity"], "problem")
        self.assertIn("(weft)", finding["sentence"])
        result = self.call("doctor", "--listen", "--port", port)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"port {port} of this host is held", result.stderr)

    def test_usage(self):
        self.assertEqual(self.call("doctor", "--port", "1").returncode, 2)
        self.assertEqual(self.call("doctor", "--connect", "1").returncode, 2)
        self.assertEqual(self.call("doctor", "--listen", "--peer", "127.0.0.1").returncode, 2)
        self.assertEqual(self.call("doctor", "--peer", "127.0.0.1", "--port", "70000").returncode, 2)


class SetuidTest(installed.Installed):
    """Root only: it takes another user to whom the bit means something."""

    def test_setuid_program_is_warned_of(self):
        path = self.root / "setuid"
        shutil.copy(installed.FIXTURES / "program_runpath", path)
        path.chmod(0o755 | stat.S_ISUID)
        self.root.chmod(0o755)
        result = subprocess.run(
            [str(self.weft), "run", "--show", "--", str(path)], text=True, capture_output=True,
            check=False, user=65534, group=65534, extra_groups=[])
        self.assertIn("has the setuid bit", result.stderr)
        self.assertEqual(self.run_weft("--show", "--", path).stderr, "", "root stays root")


if __name__ == "__main__":
    installed.main()
