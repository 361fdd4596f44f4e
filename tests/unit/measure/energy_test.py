#!/usr/bin/env python3
"""`weft measure` and energy: meters of a tree that stands for /sys, and an ipmitool of the test's own."""

import json
import os
import sys

from measured import RANGE, Measured, main

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import ipmitool  # noqa: E402


class EnergyTest(Measured):
    def advance(self, file, step, times):
        """Code that lets a counter go on, round its range, while the meter looks."""
        # One write(2) of the same length: no reader sees half a number.
        return ("import os, time\n"
                f"fd = os.open({str(file)!r}, os.O_WRONLY)\n"
                "def show(v): os.pwrite(fd, b'%012d' % v, 0)\n"
                f"v = int(open({str(file)!r}).read())\n"
                f"for i in range({times}):\n"
                f"    v = (v + {step}) % {RANGE}; show(v); time.sleep(0.02)\n")

    def test_package_and_dram(self):
        package = self.zone("intel-rapl:0", "package-0", f"{1_000_000:012d}")
        dram = self.zone("intel-rapl:0:0", "dram", f"{500_000:012d}")
        self.zone("intel-rapl:0:1", "core", f"{0:012d}")
        code = (self.advance(package, 1_000_000, 10) +
                f"os.pwrite(os.open({str(dram)!r}, os.O_WRONLY), b'%012d' % 3_000_000, 0)\n")
        report, _ = self.python("--bytes", "1000000000", code=code)
        energy = report["energy"]
        self.assertEqual((energy["source"], energy["of"]), ("powercap", "package and DRAM"))
        self.assertAlmostEqual(energy["joules"], 12.5)
        self.assertAlmostEqual(energy["watts"] * energy["sources"][0]["seconds"], 12.5)
        transfer = report["transfer"]
        self.assertAlmostEqual(transfer["efficiency_gbps_per_w"],
                               transfer["gbps"] / energy["watts"])
        domains = {d["name"]: d for d in energy["sources"][0]["domains"]}
        self.assertAlmostEqual(domains["package-0"]["joules"], 10)
        self.assertAlmostEqual(domains["dram of package-0"]["joules"], 2.5)
        # A counter that stood still is not 0.
        self.assertIn("stood still", domains["core of package-0"]["joules"]["unmeasured"])

    def test_begins_anew(self):
        package = self.zone("intel-rapl:0", "package-0", RANGE - 2_500_000)
        report, _ = self.python("--interval", "10", code=self.advance(package, 1_000_000, 6))
        self.assertAlmostEqual(report["energy"]["joules"], 6, places=5)

    def test_samples_have_watts(self):
        package = self.zone("intel-rapl:0", "package-0", f"{1_000_000:012d}")
        file = self.root / "samples.jsonl"
        report, _ = self.python("--interval", "10", "--samples", file,
                                code=self.advance(package, 1_000_000, 10))
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        measured = [line["watts"] for line in lines if line["watts"] is not None]
        self.assertTrue(measured)
        self.assertTrue(all(watts > 0 for watts in measured))
        self.assertAlmostEqual(report["energy"]["joules"], 10)

    def test_a_battery(self):
        for name, text in (("type", "Battery"), ("status", "Discharging"), ("power_now", 8_000_000)):
            self.write(f"class/power_supply/BAT0/{name}", text)
        report, _ = self.report(command=["sleep", "0.05"])
        energy = report["energy"]
        self.assertEqual((energy["source"], energy["of"]), ("battery", "machine"))
        self.assertAlmostEqual(energy["watts"], 8, places=5)
        unmeasured = {s["source"] for s in energy["sources"] if "unmeasured" in s}
        self.assertEqual(unmeasured, {"powercap", "perf"})

    def test_a_management_controller(self):
        path = ipmitool.saying(self.root, 236)
        report, _ = self.report(command=["sleep", "0.05"], **path)
        energy = report["energy"]
        self.assertEqual((energy["source"], energy["of"]), ("ipmi", "machine"))
        self.assertAlmostEqual(energy["watts"], 236, places=3)
        # The tool is the meter's, not the command's.
        self.assertEqual({t["process"] for t in report["threads"]}, {"sleep"})

    def test_what_the_controller_refuses_is_quoted(self):
        path = ipmitool.fake(self.root, "echo 'Could not open device at /dev/ipmi0' >&2; exit 1")
        report, _ = self.report("--energy", "ipmi", command=["true"], **path)
        self.assertIn("Could not open device", report["energy"]["unmeasured"])

    def test_named_sources_alone_are_read(self):
        self.zone("intel-rapl:0", "package-0", 1)
        report, _ = self.report("--energy", "battery,perf", command=["true"])
        self.assertEqual([s["source"] for s in report["energy"]["sources"]], ["battery", "perf"])

    def test_unmeasured_has_reason_and_remedy_and_is_never_0(self):
        report, _ = self.report("--bytes", "1M", command=["true"], PATH="/usr/bin:/bin")
        for part in (report["energy"], report["transfer"]["efficiency_gbps_per_w"],
                     *report["energy"]["sources"]):
            self.assertTrue(part["unmeasured"])
            self.assertTrue(part["remedy"])
            self.assertNotIn("watts", part)
            self.assertNotIn("joules", part)
        result = self.measure("--bytes", "1M", "--", "true", PATH="/usr/bin:/bin")
        self.assertIn("powercap unmeasured: ", result.stderr)
        self.assertRegex(result.stderr, r"(?m)^  E +unmeasured")


if __name__ == "__main__":
    main()
