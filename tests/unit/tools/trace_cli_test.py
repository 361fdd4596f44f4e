#!/usr/bin/env python3
"""Runs `weft trace` on shell scripts that play programs."""

import os
import signal
import subprocess
import sys

import installed


class TraceTest(installed.Installed):
    """Shell scripts play programs that write what WEFT_TRACE asks for."""

    def setUp(self):
        super().setUp()
        self.folder = self.root / "traces"
        self.folder.mkdir()
        self.pattern = self.folder / "t-%p.pcapng"

    def trace(self, script, *options, **rest):
        return self.call("trace", "-o", self.pattern, *options, "--", "sh", "-c", script, **rest)

    def test_the_program_runs_on_weft_and_is_told_what_to_record(self):
        result = self.trace(f"echo $WEFT_TRACE $WEFT_TRACE_SNAP $WEFT_TRACE_SIZE; {installed.FIXTURES / 'program_runpath'} x",
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

    def test_a_program_that_does_not_end_by_a_signal_is_killed(self):
        process = subprocess.Popen([str(self.weft), "trace", "-o", str(self.pattern), "--", "sh", "-c",
                                    "trap '' TERM; echo ready; while :; do sleep 0.05; done"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        # The pipe ends when the program is gone.
        said = process.communicate(timeout=60)
        self.assertEqual((process.returncode, said[0]), (128 + signal.SIGTERM, ""))
        self.assertIn("is killed", said[1])
        self.assertIn("no file", said[1])

    def test_a_program_that_is_killed_is_gone_when_its_files_are_named(self):
        # Its memory takes a while to be given back.
        program = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); memory = b'x' * (256 << 20); print(os.getpid(), flush=True); time.sleep(1000)"
        process = subprocess.Popen([str(self.weft), "trace", "-o", str(self.pattern), "--", sys.executable, "-c", program],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pid = int(process.stdout.readline())
        process.terminate()
        self.assertIn("is killed", process.stderr.readline())
        self.assertIn("no file", process.stderr.readline())
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        process.communicate(timeout=60)

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


if __name__ == "__main__":
    installed.main()
