#!/usr/bin/env python3
"""Compares weft with siw inside one guest: perftest from siw to siw, between weft and siw, and from weft to weft. Takes root.

  compare.py --build DIR [--cpus 2] [--repetitions 5] [WORD...]    only the tests whose name has one of the words

weft runs as a user without rights. Everything is made by turns, so that a noisy machine hits all alike. The figures are those of an
emulated machine: the ratios within a row say something, the numbers little. CPU is that of the whole guest, kernel threads and
interrupts as well, for each byte or message.
Exit status: 0, or 1 when a run failed, 77 where there can be no guest.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest as guests  # noqa: E402
import interop  # noqa: E402

TICKS = 100  # in a second; what /proc/stat counts
# Between two siw there is no CRC.
WEFT = "/weft/bin/weft run --env WEFT_IDENTITY=iwarp --env WEFT_CRC=off"
# Client and server.
PAIRS = {"siw-siw": ("siw", "siw"), "weft-siw": ("weft", "siw"), "siw-weft": ("siw", "weft"), "weft-weft": ("weft", "weft")}


# perftest compares the processor's counter with the clock, and where the guest did not run meanwhile it finds no frequency;
# every figure is 0 then.
CLOCK = "clock"


class Test:
    def __init__(self, program, size, count):
        self.program, self.size, self.count = program, size, count
        self.bandwidth = program.endswith("bw")
        # With events where perftest can, so that waiting takes no CPU; a round trip is measured polling.
        events = self.bandwidth and "write" not in program
        # A sender that sleeps for events does not see the credits that its receiver writes for receives posted anew, and
        # both may wait for ever; so all receives are there from the beginning.
        receives = f" -r {count}" if "send_bw" in program else ""
        self.words = f"{program} -R -F -s {size} -n {count}{receives}" + (" -e" if events else "")
        self.name = f"{program} {size} B"

    def figure(self, said):
        """MB/s, or the median round trip (perftest: half of it) in us."""
        column = r"\S+ +(\S+)" if self.bandwidth else r"\S+ +\S+ +(\S+)"
        found = re.search(rf"\n *{self.size} +{self.count} +{column}", said)
        return float(found.group(1)) if found else None


TESTS = [Test("ib_write_bw", 1 << 20, 200), Test("ib_read_bw", 1 << 20, 200), Test("ib_send_bw", 65536, 2000),
         Test("ib_write_lat", 8, 10000), Test("ib_read_lat", 8, 10000), Test("ib_send_lat", 8, 10000)]


class Bench:
    def __init__(self, build, cpus):
        files = {f"{build}/bin/weft": "/weft/bin/weft"}
        for library in ("libibverbs.so.1", "librdmacm.so.1"):
            files[f"{build}/lib/weft/{library}"] = f"/weft/lib/weft/{library}"
        self.guest = guests.Guest(cpus, f"{build}/bin/interop_peer", files)
        self.port = 7000

    def command(self, side, words):
        if side == "siw":
            return words
        # perftest's ib_send_* changes its protocol by what the device says it is.
        return f"/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups {WEFT} -- {words}"

    def busy(self):
        """Ticks of all CPUs that were not idle, so far."""
        _, text = self.guest.steer("head -n1 /proc/stat")
        user, nice, system, _, _, irq, softirq = map(int, text.split()[1:8])
        return user + nice + system + irq + softirq

    def run(self, test, pair):
        """(figure, CPU seconds for each GB or 1000 round trips); None when it failed."""
        for _ in range(5):
            if (measured := self.try_once(test, pair)) != CLOCK:
                return measured
        print(f"FAILED {test.name} {pair}: the guest's clocks do not agree")
        return None

    def try_once(self, test, pair):
        client_side, server_side = PAIRS[pair]
        self.port += 1
        words = f"{test.words} -p {self.port}"
        jobs = [self.guest.start(self.command(server_side, words))]
        until = time.monotonic() + 120
        try:
            good = self.guest.listens(self.port, time.monotonic() + 20)
            before = self.busy()
            if good:
                jobs.append(self.guest.start(self.command(client_side, f"{words} {guests.Guest.address}")))
                good = all(job.poll(until) == 0 for job in reversed(jobs))
            busy = (self.busy() - before) / TICKS
            if good and "Correlation coefficient" in jobs[-1].text():
                return CLOCK
            figure = test.figure(jobs[-1].text()) if good else None
            if figure is None:
                print(f"FAILED {test.name} {pair}\n" + "\n".join(job.text() for job in jobs), flush=True)
                return None
            work = test.size * test.count / 1e9 if test.bandwidth else test.count / 1000
            return figure, busy / work
        finally:
            for job in jobs:
                job.end()


def table(results):
    """Medians, and those of the ratios to siw-siw within each repetition, as Markdown."""
    median = statistics.median
    lines = ["| | " + " | ".join(PAIRS) + " | " + " | ".join(f"{p} / siw-siw" for p in list(PAIRS)[1:]) + " |",
             "|---|" + "---|" * (2 * len(PAIRS) - 1)]
    for test, rounds in results.items():
        for index, what in enumerate(("MB/s", "CPU s/GB") if test.bandwidth else ("us", "CPU ms/message")):
            numbers = {p: [r[p][index] for r in rounds] for p in PAIRS}
            ratios = [[a / b for a, b in zip(numbers[p], numbers["siw-siw"]) if b] for p in list(PAIRS)[1:]]
            cells = [f"{median(numbers[p]):.3g}" for p in PAIRS]
            cells += [f"{median(r):.2f} ({min(r):.2f} to {max(r):.2f})" if r else "-" for r in ratios]
            lines.append(f"| {test.name}, {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def compare(options):
    chosen = [t for t in TESTS if not options.word or any(w in t.name for w in options.word)]
    bench, results, good = Bench(options.build, options.cpus), {t: [] for t in chosen}, True
    try:
        for repetition in range(options.repetitions):
            for test in chosen:
                order = list(PAIRS) if repetition % 2 == 0 else list(reversed(PAIRS))
                figures = {pair: bench.run(test, pair) for pair in order}
                print(f"{repetition + 1} {test.name}: " + ", ".join(
                    f"{p} {f[0]:.5g} ({f[1]:.3g})" for p, f in figures.items() if f), flush=True)
                if None in figures.values():
                    good = False
                else:
                    results[test].append(figures)
        if oops := bench.guest.oops():
            print(f"the guest's kernel says\n{oops}")
            good = False
    finally:
        bench.guest.close()
        print(table({test: rounds for test, rounds in results.items() if rounds}), flush=True)
    return 0 if good else 1


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interop.end_tidily)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("word", nargs="*")
    options = parser.parse_args()
    if reason := interop.why_not():
        print(f"SKIPPED: no guest with siw: {reason}")
        return interop.SKIP
    tempfile.tempdir = guests.temporary_directory()
    try:
        return compare(options)
    finally:
        shutil.rmtree(tempfile.tempdir, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
