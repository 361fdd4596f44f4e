#!/usr/bin/env python3
"""Runs `weft measure` on commands that do known things. What a machine is fast at is not judged."""

import json
import os
import re
import resource
import signal
import subprocess
import sys

from measured import SPIN, Measured, main


class CommandTest(Measured):
    def test_streams_are_the_commands_own(self):
        result = self.measure("-o", self.root / "report", "--", "sh", "-c",
                              "cat; echo to-error >&2", stdin="from-input\n")
        self.assertEqual(result.stdout, "from-input\n")
        self.assertEqual(result.stderr, "to-error\n")
        self.assertIn("weft measure: sh -c", (self.root / "report").read_text())

    def test_the_report_goes_to_standard_error(self):
        result = self.measure("--", "echo", "hello")
        self.assertEqual(result.stdout, "hello\n")
        for label in ("time", "CPU", "switches", "memory", "machine", "energy"):
            self.assertRegex(result.stderr, rf"(?m)^  {label} ")
        self.assertEqual(json.loads(self.measure("--json", "true").stderr)["exit_status"], 0)

    def test_options_of_the_command_are_its_own(self):
        result = self.measure("-o", self.root / "report", "--", "echo", "--json", "--bytes", "--")
        self.assertEqual(result.stdout, "--json --bytes --\n")

    def test_the_command_inherits_no_descriptor(self):
        _, result = self.report("--samples", self.root / "samples", command=["ls", "/proc/self/fd"])
        # Three streams and the folder itself.
        self.assertEqual(len(result.stdout.split()), 4, result.stdout)

    def test_the_command_is_not_a_group_of_its_own(self):
        code = "import os; print(os.getpgrp() == os.getpgid(os.getppid()))"
        self.assertEqual(self.python(code=code)[1].stdout, "True\n")

    def test_exit_status_is_the_commands(self):
        for status in (0, 1, 7, 125, 255):
            with self.subTest(status):
                report, result = self.report(command=["sh", "-c", f"exit {status}"])
                self.assertEqual(result.returncode, status)
                self.assertEqual(report["exit_status"], status)
                self.assertIsNone(report["signal"])

    def test_a_signal_that_ends_it(self):
        report, result = self.report(command=["sh", "-c", "kill -KILL $$"])
        self.assertEqual(result.returncode, 128 + signal.SIGKILL)
        self.assertEqual(report["signal"], signal.SIGKILL)

    def test_not_found_and_not_executable(self):
        result = self.measure("-o", self.root / "report", "--", "weft-no-such-program")
        self.assertEqual(result.returncode, 127)
        self.assertIn("weft-no-such-program", result.stderr)
        plain = self.root / "plain"
        plain.write_text("text")
        self.assertEqual(self.measure("--", plain).returncode, 126)
        script = self.root / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        result = self.measure("--", script)
        self.assertEqual(result.returncode, 127)
        self.assertIn("interpreter", result.stderr)
        self.assertNotIn("switches", result.stderr)

    def test_what_it_cannot_do_itself(self):
        started = self.root / "started"
        for words, why in ((("-o", "/no/such/folder/file"), "No such file"),
                           (("--samples", self.root), "Is a directory"),
                           (("--network", "weft-none"), "no interface weft-none"),
                           (("--network", "lo:both"), "IFACE:tx")):
            with self.subTest(words):
                result = self.measure(*words, "--", "touch", started)
                self.assertEqual(result.returncode, 125)
                self.assertIn(why, result.stderr)
        self.assertFalse(started.exists())

    def run_with(self, *words, **more):
        return subprocess.run(self.arguments(*words, "--", "sh", "-c", "exit 7"), text=True,
                              check=False, timeout=100, stdin=subprocess.DEVNULL, **more)

    def test_a_report_that_cannot_be_written_leaves_the_commands_status(self):
        result = self.run_with("-o", "/dev/full", capture_output=True)
        self.assertEqual(result.returncode, 7)
        self.assertIn("/dev/full: No space left on device", result.stderr)
        with open("/dev/full", "w") as full:
            self.assertEqual(self.run_with(stderr=full).returncode, 7)
        from_it, to_it = os.pipe()
        os.close(from_it)
        with open(to_it, "w") as nobody:
            self.assertEqual(self.run_with(stderr=nobody).returncode, 7)

    def test_samples_that_cannot_be_written_end_and_the_command_does_not(self):
        report, result = self.report("--samples", "/dev/full", "--interval", "10",
                                     command=["sh", "-c", "sleep 1; exit 7"])
        self.assertEqual(result.returncode, 7)
        self.assertEqual(result.stderr, "")
        self.assertIn("No space left on device", report["meter"]["samples"]["unmeasured"])
        self.assertIn("file on a disk", report["meter"]["samples"]["remedy"])
        report, _ = self.report("--samples", self.root / "samples", command=["true"])
        self.assertNotIn("samples", report["meter"])

    def test_a_limit_of_the_size_of_files_leaves_the_commands_status(self):
        limit = (100, 100)  # less than a line of samples
        result = self.run_with("--samples", self.root / "samples", capture_output=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
        self.assertEqual(result.returncode, 7)
        self.assertRegex(result.stderr, r"(?m)^  samples +unmeasured: .*File too large")

    def test_wrong_usage(self):
        for words in ((), ("--interval", "0", "--", "true"), ("--energy", "sun", "--", "true"),
                      ("--bytes", "1", "--network", "lo", "--", "true")):
            with self.subTest(words):
                self.assertEqual(self.measure(*words).returncode, 2)

    def test_a_sysfs_that_is_not_there(self):
        none = str(self.root / "none")
        result = self.measure("--sysfs", none, "--", "true")
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"--sysfs: {none}: No such file or directory", result.stderr)

    def start(self, *words, command):
        process = subprocess.Popen(self.arguments("-o", self.root / "report", *words, "--", *command),
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_signals_reach_the_command(self):
        for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
            with self.subTest(name):
                code = ("import os, signal, sys\n"
                        f"signal.signal(signal.SIG{name}, lambda *a: os._exit(42))\n"
                        "print('ready', flush=True)\n"
                        "while True: signal.pause()")
                process = self.start(command=[sys.executable, "-c", code])
                process.send_signal(getattr(signal, f"SIG{name}"))
                self.assertEqual(process.wait(timeout=60), 42)
                self.assertIn("exit status 42", (self.root / "report").read_text())

    def test_a_signal_that_it_does_not_catch_ends_it(self):
        process = self.start(command=["sh", "-c", "echo ready; exec sleep 1000"])
        process.terminate()
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGTERM)

    def test_a_command_that_does_not_end_by_a_signal_is_left_alone(self):
        code = ("import signal, sys\n"
                "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "print('ready', flush=True)\n"
                "sys.stdin.read()")
        holder, gate = os.pipe()
        self.addCleanup(os.close, gate)  # then the command ends
        process = subprocess.Popen(self.arguments("-o", self.root / "report", "--", sys.executable, "-c", code), stdin=holder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.close(holder)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGTERM)
        said = process.stderr.readline()
        self.assertIn("goes on", said)
        number = int(re.search(r"process (\d+)", said)[1])
        self.assertIn(str(number), (self.root / "report").read_text())
        os.kill(number, 0)

    def test_dispositions_are_inherited(self):
        code = ("import signal\n"
                "for s in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):\n"
                "    print(signal.getsignal(s) == signal.SIG_IGN)\n"
                "print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))")
        words = self.arguments("-o", self.root / "report", "--", sys.executable, "-c", code)

        def ignore():
            for one in (signal.SIGCHLD, signal.SIGHUP):
                signal.signal(one, signal.SIG_IGN)

        result = subprocess.run(words, text=True, capture_output=True, check=False, timeout=100,
                                preexec_fn=ignore)
        self.assertEqual(result.stdout.split(), ["True", "True", "False", "0"])
        self.assertEqual(result.returncode, 0)


class FiguresTest(Measured):
    def test_cpu_is_what_the_command_used(self):
        report, _ = self.python(code=SPIN + "spin(0.3)")
        cpu = report["cpu"]
        self.assertGreaterEqual(cpu["total_s"], 0.3)
        self.assertAlmostEqual(cpu["total_s"], cpu["user_s"] + cpu["system_s"], places=9)
        self.assertGreaterEqual(report["seconds"], 0.3 / os.cpu_count())
        # Its only thread was looked at after its end.
        self.assertGreaterEqual(report["threads"][0]["cpu_s"], 0.3)

    def test_children_count(self):
        code = SPIN + ("import os\n"
                       "for waited in (True, False):\n"
                       "    child = os.fork()\n"
                       "    if child == 0: spin(0.2); os._exit(0)\n"
                       "    if waited: os.waitpid(child, 0)\n"
                       "    else: os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)\n")
        report, _ = self.python(code=code)
        self.assertGreaterEqual(report["cpu"]["total_s"], 0.4)
        self.assertEqual(report["still_running"], [])

    def test_orphans_count(self):
        # The child's child is nobody's when the child ends; the command waits for it by a pipe.
        code = SPIN + ("import os\n"
                       "r, w = os.pipe()\n"
                       "if os.fork() == 0:\n"
                       "    if os.fork() == 0: os.close(r); spin(0.3); os._exit(0)\n"
                       "    os._exit(0)\n"
                       "os.close(w); os.wait(); os.read(r, 1)\n")
        report, _ = self.python(code=code)
        self.assertGreaterEqual(report["cpu"]["total_s"], 0.3)

    def test_those_that_still_run_count_up_to_then(self):
        stop = self.root / "stop"
        os.mkfifo(stop)
        code = SPIN + ("import os\n"
                       "r, w = os.pipe()\n"
                       "if os.fork() == 0:\n"
                       "    os.close(r); spin(0.3); os.close(w); os.close(1); os.close(2)\n"
                       f"    open({str(stop)!r}).read(); os._exit(0)\n"
                       "os.close(w); os.read(r, 1)\n")
        report, _ = self.python(code=code)
        stop.write_text("now")
        self.assertEqual(len(report["still_running"]), 1)
        # By ticks of the kernel's clock, of user and system time each.
        self.assertGreaterEqual(report["cpu"]["total_s"], 0.3 - 2 / os.sysconf("SC_CLK_TCK"))

    def test_what_a_survivor_has_not_waited_for_counts(self):
        stop = self.root / "stop"
        os.mkfifo(stop)
        code = SPIN + ("import os\n"
                       "r, w = os.pipe()\n"
                       "if os.fork() == 0:\n"
                       "    os.close(r)\n"
                       "    child = os.fork()\n"
                       "    if child == 0: spin(0.3); os._exit(0)\n"
                       "    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)\n"
                       "    os.close(w); os.close(1); os.close(2)\n"
                       f"    open({str(stop)!r}).read(); os._exit(0)\n"
                       "os.close(w); os.read(r, 1)\n")
        report, _ = self.python(code=code)
        stop.write_text("now")
        self.assertEqual(len(report["still_running"]), 1)
        self.assertGreaterEqual(report["cpu"]["total_s"], 0.3 - 2 / os.sysconf("SC_CLK_TCK"))

    def test_threads_are_told_apart_and_those_that_ended_are_not_lost(self):
        code = SPIN + ("import threading\n"
                       "def worker(): spin(0.3, time.thread_time)\n"
                       "t = threading.Thread(target=worker); t.start(); t.join()\n"
                       "for i in range(50):\n"
                       "    t = threading.Thread(target=lambda: spin(0.002, time.thread_time))\n"
                       "    t.start(); t.join()\n")
        report, _ = self.python("--interval", "10", code=code)
        threads = report["threads"]
        self.assertGreaterEqual(len(threads), 2)
        self.assertEqual(len({t["pid"] for t in threads}), 1)
        self.assertEqual(len({t["tid"] for t in threads}), len(threads))
        seen = sum(t["cpu_s"] for t in threads)
        cpu = report["cpu"]
        self.assertGreaterEqual(cpu["total_s"], 0.4)
        self.assertAlmostEqual(seen + cpu["of_threads_not_seen_s"], cpu["total_s"], delta=0.05)

    def test_context_switches(self):
        code = "import time\nfor i in range(40): time.sleep(0.001)"
        switches = self.python(code=code)[0]["context_switches"]
        self.assertGreaterEqual(switches["voluntary"], 40)

    def test_memory(self):
        size = 150_000_000
        report, _ = self.python(code=f"x = bytes({size // 2}) + b'a' * {size // 2}")
        self.assertGreaterEqual(report["memory"]["peak_bytes"], size)

    def test_memory_of_orphans(self):
        size = 150_000_000
        # Between two looks, as a rule: only the one who waits for it is told what it had.
        code = ("import os, time\n"
                "r, w = os.pipe()\n"
                "child = os.fork()\n"
                "if child == 0:\n"
                "    if os.fork() == 0:\n"
                f"        time.sleep(0.2); x = b'a' * {size}; os.write(w, b'%d' % os.getpid())\n"
                "    os._exit(0)\n"
                "os.waitpid(child, 0)\n"
                "stat = '/proc/%d/stat' % int(os.read(r, 100))\n"
                "while os.path.exists(stat) and ') Z' not in open(stat).read(): time.sleep(0.001)\n")
        report, _ = self.python("--interval", "10000", code=code)
        self.assertGreaterEqual(report["memory"]["peak_bytes"], size)

    def test_memory_of_a_small_command_is_not_wefts(self):
        report, _ = self.report(command=["sleep", "0"])
        peak = report["memory"]["peak_bytes"]
        if isinstance(peak, dict):
            self.assertIn("before it became the command", peak["unmeasured"])
        else:
            self.assertLess(peak, self.weft.stat().st_size)

    def test_machine(self):
        machine = self.python(code=SPIN + "spin(0.3)")[0]["machine"]
        self.assertEqual(machine["cpus"], os.cpu_count())
        self.assertGreater(machine["busy_s"], 0)
        for kind in ("softirq_s", "irq_s", "steal_s", "idle_s"):
            self.assertGreaterEqual(machine[kind], 0)
        self.assertGreater(machine["context_switches"], 0)

    def test_bytes_that_somebody_knows(self):
        report, _ = self.python("--bytes", "2G", code=SPIN + "spin(0.1)")
        transfer = report["transfer"]
        gigabytes = 2 * 1024**3 / 1e9
        self.assertEqual(transfer["bytes"], 2 * 1024**3)
        self.assertAlmostEqual(transfer["gbps"], gigabytes * 8 / report["seconds"], places=6)
        self.assertAlmostEqual(transfer["cpu_s_per_gb"], report["cpu"]["total_s"] / gigabytes)

    def test_bytes_of_an_interface(self):
        size = 3_000_000
        code = ("import socket, threading\n"
                "s = socket.create_server(('127.0.0.1', 0))\n"
                "c = socket.create_connection(s.getsockname()); p, _ = s.accept()\n"
                f"t = threading.Thread(target=lambda: (c.sendall(bytes({size})), c.close())); t.start()\n"
                "n = 0\n"
                "while True:\n"
                "    b = p.recv(1 << 16)\n"
                "    if not b: break\n"
                "    n += len(b)\n"
                f"assert n == {size}; t.join()\n")
        for way in ("lo", "lo:tx"):
            report, result = self.python("--network", way, code=code)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreaterEqual(report["transfer"]["bytes"], size)
            self.assertEqual(report["transfer"]["from"], way if ":" in way else "lo:rx")

    def test_without_bytes_no_rate(self):
        report, _ = self.report(command=["true"])
        self.assertIn("--network", report["transfer"]["remedy"])
        self.assertNotIn("gbps", report["transfer"])

    def test_samples(self):
        file = self.root / "samples.jsonl"
        report, _ = self.python("--samples", file, "--interval", "20", "--network", "lo",
                                code=SPIN + "spin(0.3)")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(len(lines), report["meter"]["looks"])
        self.assertGreater(len(lines), 1)
        times = [line["t"] for line in lines]
        self.assertEqual(times, sorted(times))
        spans = [after - before for before, after in zip([0, *times], times)]
        used = sum(line["cpus"] * span for line, span in zip(lines, spans))
        self.assertAlmostEqual(used, report["cpu"]["total_s"], delta=0.05)
        for line in lines:
            self.assertIsNone(line["watts"])
            self.assertIsNotNone(line["gbps"])
            self.assertGreaterEqual(line["machine_cpus"], 0)


if __name__ == "__main__":
    main()
