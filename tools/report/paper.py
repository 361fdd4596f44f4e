#!/usr/bin/env python3
"""weft bench paper: measures what the paper's figures need, by turns, within a budget of time."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

import results as kept
import streams_run

EPILOG = """Each turn runs every step once; the turns are the repetitions. When the budget is used up, what is there is kept, and a
second call with the same file adds to it. Exit status: 0 when every step ran at least once, 1 when one failed or never ran,
2 for wrong usage. docs/report.md explains it."""

SIZES = [8192 << i for i in range(9)]  # 8 kB to 2 MB
OFFLOAD_RC, OFFLOAD_UC, OFFLOAD_UDP = "256K", "64K", "65000"
UDP_SIZES = "8K,16K,32K,65000"
RC_CASES = "tcp/*,write/*/no-crc,read/*/no-crc"
UC_CASES = "udp/*/flood,write/*/flood,read/*"
LOSSES = "0,0.1,0.3,1,3,10"
LOSS_CASES = "uc-write/*,uc-read/*,udp/*,rc-write/*,tcp/*"
TRACE_GROUP = 16  # packets of a Write: the paper's messages were large


class Step:
    """Something that appends lines to the file: a run of `weft bench`, or of `weft stream`."""

    def __init__(self, part, name, run):
        self.part, self.name, self.run = part, name, run
        self.done = 0
        self.took = 0.0
        self.errors = []


def bench_step(options, part, name, suite, *words):
    command = [options.weft, "bench", suite, *words, "--repetitions", "1", "--seconds", str(options.seconds), "--jsonl", options.output,
               "--json"]  # then its reasons are on stderr
    if suite != "loss":
        command.append("--netns")
    if options.priority:
        command.append("--priority")

    def run(_turn):
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        return reason_of(result.returncode, result.stderr)
    return Step(part, name, run)


def reason_of(status, said):
    """What a run of `weft bench --json` says of what failed, all of it; None when nothing did."""
    if status == 0:
        return None
    sentences = [line.removeprefix("weft bench: ") for line in said.splitlines() if line.strip() and not line.startswith("weft bench: note:")]
    return "; ".join(sentences) or f"status {status}"


def end_line(path):
    """Makes the file, or ends a line that a killed writer did not."""
    with open(path, "ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")


def facts(options):
    """Of this machine, as the lines of `weft bench` have them."""
    model = "unknown"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(": ", 1)[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return {"version": options.version,
            "machine": {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(), "load_before": os.getloadavg()[0],
                        "options": {name: value for name, value in os.environ.items() if name.startswith("WEFT_")}}}


def stream_step(options, suite, name, transport, streams, mbps, group):
    def run(turn):
        line = {"schema": kept.SCHEMA, "kind": "repetition", "suite": suite, "path": "loopback", "case": name, "repetition": turn,
                "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), **facts(options),
                "parameters": {"transport": transport, "streams": streams, "mbps": mbps, "packet_bytes": streams_run.PACKET_BYTES,
                               "packets_per_write": group, "seconds": options.stream_seconds}}
        samples = []
        try:
            line["figures"], samples, line["energy"] = streams_run.run(options.weft, transport, streams, mbps, options.stream_seconds, group)
        except streams_run.StreamFailed as failure:
            line["error"] = str(failure).splitlines()[-1]
        with open(options.output, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            for sample in samples:
                file.write(json.dumps({"schema": kept.SCHEMA, "kind": "sample", "suite": suite, "case": name, "repetition": turn,
                                       "time": line["time"], **sample}) + "\n")
        return line.get("error")
    return Step(suite, name, run)


def steps_of(options):
    sizes = ",".join(str(size) for size in options.sizes)
    steps = [stream_step(options, "lofar", f"lofar/{transport}/{count}", transport, count, options.rate, 1)
             for count in options.streams for transport in kept.STREAMED]
    steps += [stream_step(options, "trace", f"trace/{transport}", transport, 1, 0, TRACE_GROUP if transport in ("rc", "uc") else 1)
              for transport in kept.STREAMED]
    for state in ("off", "on"):
        steps.append(bench_step(options, "offloads", f"TCP and RC, offloads {state}", "rc", "--offloads", state, "--sizes", OFFLOAD_RC,
                                "--only", RC_CASES))
        steps.append(bench_step(options, "offloads", f"UDP and UC, offloads {state}", "uc", "--offloads", state, "--sizes", OFFLOAD_UC,
                                "--udp-sizes", OFFLOAD_UDP, "--only", UC_CASES))
    steps.append(bench_step(options, "sweep", "sizes over TCP and RC", "rc", "--offloads", "off", "--sizes", sizes, "--only", RC_CASES))
    steps.append(bench_step(options, "sweep", "sizes over UDP and UC", "uc", "--offloads", "off", "--sizes", sizes, "--udp-sizes", UDP_SIZES,
                            "--only", UC_CASES))
    steps.append(bench_step(options, "loss", "lost packets", "loss", "--by", "nft", "--losses", LOSSES, "--sizes", "8K",
                            "--gbps", str(options.loss_gbps), "--only", LOSS_CASES))
    return [step for step in steps if step.part in options.only]


PARTS = ("lofar", "trace", "offloads", "sweep", "loss")
AS_ROOT = ("offloads", "sweep", "loss")


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Progress:
    """A line that is written over on a terminal; a line for each step elsewhere."""

    def __init__(self, steps, budget):
        self.steps, self.budget, self.begun = steps, budget, time.monotonic()
        self.live = sys.stderr.isatty()

    def elapsed(self):
        return time.monotonic() - self.begun

    def show(self, turn, turns, place, step):
        text = f"turn {turn + 1} of {turns}, step {place + 1} of {len(self.steps)}, {clock(self.elapsed())} of {clock(self.budget)}: {step.part}, {step.name}"
        if self.live:
            width = 20
            share = min(1.0, self.elapsed() / self.budget)
            text = f"\r\x1b[K[{'#' * round(share * width):<{width}}] {text}"
        print(text, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def close(self):
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def run_all(steps, turns, budget, progress):
    """Takes turns until all are done or a step would not end within the budget."""
    for turn in range(turns):
        for place, step in enumerate(steps):
            if progress.elapsed() + step.took > budget:
                return
            progress.show(turn, turns, place, step)
            begun = time.monotonic()
            error = step.run(turn)
            step.took = time.monotonic() - begun
            step.done += 1
            if error:
                step.errors.append(error)


def tell(steps, output):
    """What there is now; the exit status."""
    status = 0
    for step in steps:
        if step.done == 0:
            print(f"never ran, for the budget was used up: {step.part}, {step.name}")
            status = 1
        for error in step.errors:
            print(f"failed: {step.part}, {step.name}: {error}")
            status = 1
    fewest, most = min(step.done for step in steps), max(step.done for step in steps)
    print(f"{output}: {len(steps)} steps, {fewest if fewest == most else f'{fewest} to {most}'} repetitions each. "
          f"The page: weft report {output} -o report")
    return status


def numbers(least):
    def parse(text):
        values = [int(word) for word in text.split(",")]
        if not values or min(values) < least:
            raise argparse.ArgumentTypeError(f"numbers from {least} on, with commas between them")
        return values
    return parse


def parts(text):
    words = text.split(",")
    for word in words:
        if word not in PARTS:
            raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(PARTS)}")
    return words


def parse(arguments):
    parser = argparse.ArgumentParser(prog="weft bench paper", description="Measure what the figures of the paper need: docs/report.md", epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--version-of-weft", dest="version", required=True, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", metavar="RESULTS.jsonl", help="append the results to this file")
    parser.add_argument("--only", type=parts, default=list(PARTS), metavar="PARTS", help=f"of {','.join(PARTS)}; without: all")
    parser.add_argument("--budget", type=float, default=20, metavar="MINUTES", help="end after so many minutes (20)")
    parser.add_argument("--repetitions", type=int, default=5, help="turns (5)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each repetition of weft bench (0.5)")
    parser.add_argument("--stream-seconds", type=float, default=4, help="of each run of weft stream (4)")
    parser.add_argument("--streams", type=numbers(1), default=[1, 4, 16, 50], help="numbers of LOFAR streams (1,4,16,50)")
    parser.add_argument("--rate", type=float, default=streams_run.LOFAR_MBPS, help="Mb/s of a LOFAR stream (764)")
    parser.add_argument("--sizes", type=numbers(1), default=SIZES, help="message sizes in bytes (8192 to 2097152, doubling)")
    parser.add_argument("--loss-gbps", type=float, default=1, help="Gb/s offered where packets get lost (1)")
    parser.add_argument("--quick", action="store_true", help="one turn, short: whether it runs, not how fast")
    parser.add_argument("--priority", action="store_true", help="as weft bench --priority (root)")
    parser.add_argument("--list", action="store_true", help="print the steps, and measure nothing")
    options = parser.parse_args(arguments)
    if not options.list and not options.output:
        parser.error("the following arguments are required: -o/--output")
    if options.repetitions < 1 or min(options.seconds, options.stream_seconds, options.budget) <= 0 or options.rate < 0:
        parser.error("numbers have to be larger than 0")
    if options.quick:
        options.repetitions, options.seconds, options.stream_seconds = 1, 0.1, 1.2
    return options


def stop(*_):
    """As Ctrl-C: the sides of a stream must not stay behind."""
    raise KeyboardInterrupt


def main(arguments):
    options = parse(arguments)
    steps = steps_of(options)
    if options.list:
        for step in steps:
            print(f"{step.part}: {step.name}")
        return 0
    if os.geteuid() != 0 and any(part in AS_ROOT for part in options.only):
        print(f"weft bench paper: {', '.join(AS_ROOT)} make network namespaces, for which they have to be run as root; "
              "the others: --only lofar,trace", file=sys.stderr)
        return 1
    try:
        end_line(options.output)
    except OSError as error:
        print(f"weft bench paper: {error}", file=sys.stderr)
        return 1
    options.output = str(pathlib.Path(options.output).resolve())
    progress = Progress(steps, options.budget * 60)
    signal.signal(signal.SIGTERM, stop)
    try:
        run_all(steps, options.repetitions, options.budget * 60, progress)
    except KeyboardInterrupt:
        progress.close()
        print(f"{options.output}: ended early; what was measured is kept", file=sys.stderr)
        return 130
    progress.close()
    return tell(steps, options.output)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
