#!/usr/bin/env python3
"""Streams between two network namespaces: how these are made and end, and one short run from measuring to the page."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import example
import places


def namespace_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None  # it has ended, or is another one's


def processes_in(namespaces):
    return {entry.name for entry in pathlib.Path("/proc").glob("[0-9]*") if namespace_of(entry.name) in namespaces}


class PlacesTest(unittest.TestCase):
    def test_two_namespaces_that_see_each_other_and_end(self):
        home, open_before = namespace_of("self"), set(os.listdir("/proc/self/fd"))
        with places.Veth(1400) as veth:
            self.assertEqual(namespace_of("self"), home)
            inside = [subprocess.run([*words, "readlink", "/proc/self/ns/net"], capture_output=True, text=True, check=True).stdout.strip()
                      for words in (veth.sender(), veth.receiver())]
            self.assertEqual(len({home, *inside}), 3)
            shown = subprocess.run([*veth.sender(), "ip", "-json", "address"], capture_output=True, text=True, check=True).stdout
            devices = {device["ifname"]: device for device in json.loads(shown)}
            self.assertEqual(set(devices), {"lo", "veth0"})
            self.assertEqual((devices["veth0"]["mtu"], devices["veth0"]["addr_info"][0]["local"]), (1400, veth.sender_address))
            route = subprocess.run([*veth.sender(), "ip", "route", "get", veth.receiver_address], capture_output=True, text=True, check=False)
            self.assertIn("dev veth0", route.stdout)
        # Nothing holds them any more, and the kernel deletes what nothing holds.
        self.assertEqual((veth.namespaces, set(os.listdir("/proc/self/fd"))), ([], open_before))

    def test_an_error_inside_and_one_while_they_are_made_close_them(self):
        open_before = set(os.listdir("/proc/self/fd"))
        with self.assertRaises(KeyboardInterrupt):
            with places.Veth():
                raise KeyboardInterrupt
        with self.assertRaisesRegex(places.PlaceFailed, "ip link set veth0 mtu 70000"):
            with places.Veth(70000):
                self.fail("no device has such an MTU")
        self.assertEqual(set(os.listdir("/proc/self/fd")), open_before)

    def test_two_at_once_are_others(self):
        with places.Veth() as one, places.Veth() as other:
            self.assertEqual(len({os.fstat(fd).st_ino for veth in (one, other) for fd in veth.namespaces}), 4)

    def test_a_signal_ends_all_that_is_in_them(self):
        for ending in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(ending), tempfile.TemporaryDirectory() as folder:
                process = subprocess.Popen([str(example.WEFT), "bench", "paper", "--only", "lofar-net", "--streams", "1", "--rate", "20", "--stream-seconds",
                                            "60", "-o", f"{folder}/r.jsonl"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                           text=True, start_new_session=True)
                try:
                    inside = self.await_both_sides(process)
                    process.send_signal(ending)
                    _, said = process.communicate(timeout=60)
                finally:
                    process.kill()
                    process.wait()
                    process.stderr.close()
                self.assertEqual(process.returncode, 128 + ending, said)
                self.assertIn("ended early", said)
                until = time.monotonic() + 60
                while processes_in(inside) and time.monotonic() < until:
                    time.sleep(0.05)
                self.assertEqual(processes_in(inside), set())

    def await_both_sides(self, process):
        """The two namespaces, once a sender runs in one and a receiver in the other."""
        until, home = time.monotonic() + 60, namespace_of("self")
        while time.monotonic() < until and process.poll() is None:
            sides = {}
            for entry in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    words = entry.joinpath("cmdline").read_bytes().split(b"\0")
                    if os.getsid(int(entry.name)) == process.pid and words[1:2] == [b"stream"] and namespace_of(entry.name) != home:
                        sides[words[2]] = namespace_of(entry.name)
                except (OSError, IndexError):
                    continue
            if set(sides) == {b"send", b"recv"}:
                self.assertNotEqual(sides[b"send"], sides[b"recv"])
                return set(sides.values())
            time.sleep(0.05)
        raise AssertionError("no streams were started")


class MeasuringTest(unittest.TestCase):
    def test_one_command_measures_between_namespaces_and_makes_the_page(self):
        if not (example.WEFT.parent.parent / "lib" / "weft" / "libibverbs.so.1").exists():
            self.skipTest("weft's libibverbs.so.1 is not built")
        if not example.has_matplotlib():
            self.skipTest("python3-matplotlib is not installed")
        with tempfile.TemporaryDirectory() as folder:
            result = example.weft("report", "--measure", "--paper", "--quick --only lofar-net,trace-net --streams 1 --rate 20 --mtu 3000", "-o", folder)
            lines = [json.loads(text) for text in pathlib.Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()]
            page = pathlib.Path(folder, "index.html").read_text(encoding="utf-8") if pathlib.Path(folder, "index.html").exists() else ""
        repetitions = [entry for entry in lines if entry["kind"] == "repetition"]
        # A busy machine may lose packets even at the lowest rate, which is a failure and no other one.
        failed = [entry["error"] for entry in repetitions if "error" in entry]
        self.assertTrue(all("lost packets even at" in error for error in failed), failed)
        self.assertEqual(result.returncode, 1 if failed else 0, result.stdout + result.stderr)
        self.assertEqual([entry["case"] for entry in repetitions],
                         [f"trace-net/{case}" for case in ("tcp", "udp", "rc", "uc", "uc/8")] +
                         [f"lofar-net/{transport}/1" for transport in ("tcp", "udp", "rc", "uc")])
        for entry in repetitions:
            with self.subTest(entry["case"]):
                self.assertEqual((entry["path"], entry["parameters"]["mtu"]), ("veth", 3000))
                if "figures" in entry:
                    self.assertGreater(entry["figures"]["gbps"], 0)
                if entry["suite"] == "trace-net":
                    self.assertEqual(entry["search"][0]["mbps"], 0)
                    self.assertLessEqual(len(entry["search"]), 2)
                    self.assertEqual(entry["parameters"]["packets_per_write"], 8 if entry["case"].endswith("/8") else 1)
        if not failed:
            self.assertRegex(page, "<figcaption>One stream in packets of 8 kB, between two network namespaces .veth., MTU 3000,")

    def test_offloads_off_and_on_and_a_sweep_of_sizes(self):
        if not (example.WEFT.parent.parent / "lib" / "weft" / "libibverbs.so.1").exists():
            self.skipTest("weft's libibverbs.so.1 is not built")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "results.jsonl")
            result = example.weft("bench", "paper", "--quick", "--only", "offloads,sweep", "--sizes", "8192,65536", "-o", str(path))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
        for entry in lines:
            with self.subTest(entry["case"]):
                self.assertEqual((entry["kind"], entry["path"]), ("repetition", "veth"))
                self.assertGreater(entry["figures"]["gbps"], 0)
        large = ["tcp/256K", "write/256K/no-crc", "read/256K/no-crc", "udp/65000/flood", "write/64K/flood", "read/64K"]
        swept = {f"{case}/{size}{rest}" for size in ("8K", "64K") for case, rest in (
            ("tcp", ""), ("write", "/no-crc"), ("read", "/no-crc"), ("write", "/flood"), ("read", ""))}
        self.assertEqual([entry["case"] for entry in lines[:12]], large * 2)
        self.assertEqual([entry["parameters"]["offloads"] for entry in lines[:12]], ["off"] * 6 + ["on"] * 6)
        self.assertLessEqual(swept, {entry["case"] for entry in lines[12:]})
        self.assertEqual({entry["parameters"]["offloads"] for entry in lines[12:]}, {"off"})


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit(example.skip("only root may make network namespaces"))
    try:
        with places.Veth():
            pass
    except places.PlaceFailed as failure:
        sys.exit(example.skip(f"this root may make no network namespaces: {failure}"))
    sys.exit(example.main())
