#!/usr/bin/env python3
"""weft bench paper: measures what the paper's figures need, by turns, within a budget of time."""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import sys
import time

import command_line
import disk_run
import ladder
import places
import results as kept
import sdp_steps
import streams_run
from steps import bench_step, Step

EXAMPLES = (("weft bench paper -o results.jsonl", "all of it, 20 minutes, as root"),
            ("weft bench paper --only lofar --budget 5 -o results.jsonl", "a part, without root"),
            ("weft bench paper --of sdp -o sdp.jsonl", "the same of the paper on SDP"),
            ("weft bench paper --list", "the steps"))
REMARKS = """Each turn runs every step once; the turns are the repetitions. Numbers of streams far beyond the one
that broke a transport are run in the first turn alone; a number between the last that held and the
first that did not is tried each turn. When the budget is used up, what is there is kept, and a second
call with the same file adds to it. Exit status: 0 when every step ran at least once, 1 when one
failed or never ran, 2 for wrong usage, 130 or 143 when a signal ended it early. docs/report.md explains it."""

SIZES = [8192 << i for i in range(9)]  # 8 kB to 2 MB
OFFLOAD_RC, OFFLOAD_UC, OFFLOAD_UDP = "256K", "64K", "65000"
UDP_SIZES = "8K,16K,32K,65000"
RC_CASES = "tcp/*,write/*/no-crc,read/*/no-crc"
UC_CASES = "udp/*/flood,write/*/flood,read/*"
LOSSES = "0,0.1,0.3,1,3,10"
LOSS_CASES = "uc-write/*,uc-read/*,udp/*,rc-write/*,rc-read/*,tcp/*"
TRACE_GROUP = 16  # packets of a Write: the paper's messages were large
NET_GROUP = 8     # between namespaces, beside one packet of each Write
DISK_BYTES = 1 << 31
BUDGET = 19       # minutes: a last step may take longer than it did before, and there is a page to be made
FAR_BEYOND = 0.9  # of what was offered: a transport that gets less has not broken by chance


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


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def stream_run(options, suite, name, parameters, place, measure):
    """The run of a step: `measure(line)` gives figures, samples and energy, and may add words to the line."""
    def run(turn):
        line = {"schema": kept.SCHEMA, "kind": "repetition", "suite": suite, "path": place.path, "case": name, "repetition": turn, "time": now(),
                **facts(options), "parameters": {"packet_bytes": streams_run.PACKET_BYTES, "seconds": options.stream_seconds, **parameters}}
        if place.mtu:
            line["parameters"]["mtu"] = place.mtu
        samples = []
        try:
            line["figures"], samples, line["energy"] = measure(line)
        except streams_run.StreamFailed as failure:
            line["error"] = str(failure).splitlines()[-1]
        with open(options.output, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            for sample in samples:
                file.write(json.dumps({"schema": kept.SCHEMA, "kind": "sample", "suite": suite, "case": name, "repetition": turn,
                                       "time": line["time"], **sample}) + "\n")
        return line.get("error")
    return run


class Found:
    """What runs of one transport came to, for each number of streams."""

    def __init__(self):
        self.of_count = {}

    def add(self, count, figures):
        if figures["offered_gbps"] > 0:
            self.of_count.setdefault(count, []).append({"figures": figures})

    def shares(self, count):
        """Of what was offered, how much came."""
        return [run["figures"]["gbps"] / run["figures"]["offered_gbps"] for run in self.of_count[count]]

    def broke_below(self, count):
        """Whether fewer streams were too many, each time and by far."""
        return any(max(self.shares(fewer)) < FAR_BEYOND for fewer in self.of_count if fewer < count)

    def next_between(self):
        """The number of streams that says most about where it breaks."""
        return ladder.between({count: kept.is_sustained(runs) for count, runs in self.of_count.items()},
                              {count: len(runs) for count, runs in self.of_count.items()})


def lofar_steps(options, suite, place):
    found = {transport: Found() for transport in kept.STREAMED}

    def run_of(transport, count):
        def measure(_line):
            result = streams_run.run(options.weft, transport, count, options.rate, options.stream_seconds, 1, place)
            found[transport].add(count, result[0])
            return result
        name = f"{suite}/{transport}/{count}"
        parameters = {"transport": transport, "streams": count, "mbps": options.rate, "packets_per_write": 1}
        return name, stream_run(options, suite, name, parameters, place, measure)

    def step(transport, count):
        return Step(suite, *run_of(transport, count), lambda: not found[transport].broke_below(count))

    def step_between(transport):
        def run(turn):
            count = found[transport].next_between()
            return run_of(transport, count)[1](turn) if count is not None else None
        return Step(suite, f"{suite}/{transport}/between", run)
    steps = [step(transport, count) for count in options.streams for transport in kept.STREAMED]
    if len(options.streams) > 1 and not options.quick:
        steps += [step_between(transport) for transport in kept.STREAMED]
    return steps


def trace_step(options, transport, group):
    def measure(_line):
        return streams_run.run(options.weft, transport, 1, 0, options.stream_seconds, group)
    name = f"trace/{transport}"
    parameters = {"transport": transport, "streams": 1, "mbps": 0, "packets_per_write": group}
    return Step("trace", name, stream_run(options, "trace", name, parameters, places.Loopback(), measure))


def fastest_step(options, transport, group, place):
    """One stream at the highest rate without loss."""
    fastest = streams_run.Fastest(
        lambda mbps: streams_run.run(options.weft, transport, 1, mbps, options.stream_seconds, group, place), options.search)

    def measure(line):
        line["search"] = []
        return fastest.search(line["search"])
    name = f"trace-net/{transport}" + (f"/{group}" if group > 1 else "")
    parameters = {"transport": transport, "streams": 1, "mbps": 0, "packets_per_write": group, "lost_at_most_percent": kept.SUSTAINED_PERCENT}
    return Step("trace-net", name, stream_run(options, "trace-net", name, parameters, place, measure))


def disk_steps(options):
    """dd past the page cache, then each transport into a file on the same disk."""
    folder = options.disk or os.path.dirname(options.output) if options.output else None
    disk = disk_run.Disk(options.weft, folder, options.disk_bytes)
    for case in ("dd", *kept.STREAMED):
        name = f"disk/{case}"
        parameters = {"transport": case, "bytes": options.disk_bytes, "block_bytes": disk_run.BLOCK_BYTES, "packet_bytes": disk_run.PACKET_BYTES}
        yield Step("disk", name, stream_run(options, "disk", name, parameters, places.Loopback(), disk.measure(case)))


def steps_of(options, veth):
    sizes = ",".join(str(size) for size in options.sizes)
    # What stands first gets the most repetitions.
    steps = [fastest_step(options, transport, group, veth) for transport, group in (*((transport, 1) for transport in kept.STREAMED), ("uc", NET_GROUP))]
    steps += lofar_steps(options, "lofar-net", veth)
    steps += lofar_steps(options, "lofar", places.Loopback())
    steps += [trace_step(options, transport, TRACE_GROUP if transport in ("rc", "uc") else 1) for transport in kept.STREAMED]
    for state in ("off", "on"):
        steps.append(bench_step(options, "offloads", f"TCP and RC, offloads {state}", "rc", "--offloads", state, "--sizes", OFFLOAD_RC,
                                "--only", RC_CASES))
        steps.append(bench_step(options, "offloads", f"UDP and UC, offloads {state}", "uc", "--offloads", state, "--sizes", OFFLOAD_UC,
                                "--udp-sizes", OFFLOAD_UDP, "--only", UC_CASES))
    steps.append(bench_step(options, "sweep", "sizes over TCP and RC", "rc", "--offloads", "off", "--sizes", sizes, "--only", RC_CASES))
    steps.append(bench_step(options, "sweep", "sizes over UDP and UC", "uc", "--offloads", "off", "--sizes", sizes, "--udp-sizes", UDP_SIZES,
                            "--only", UC_CASES))
    steps += disk_steps(options)
    steps.append(bench_step(options, "loss", "lost packets", "loss", "--by", "nft", "--losses", LOSSES, "--sizes", "8K",
                            "--gbps", str(options.loss_gbps), "--only", LOSS_CASES))
    return [step for step in steps if step.part in options.only]


PARTS = ("trace-net", "lofar-net", "lofar", "trace", "offloads", "sweep", "disk", "loss")
OVER_VETH = ("trace-net", "lofar-net")
AS_ROOT = (*OVER_VETH, "offloads", "sweep", "loss", *sdp_steps.AS_ROOT)
PARTS_OF = {"radio": PARTS, "sdp": sdp_steps.PARTS}


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
            if step.done > 0 and not step.needed():
                step.passed_over = True
                continue
            if progress.elapsed() + step.took > budget:
                return
            progress.show(turn, turns, place, step)
            begun = time.monotonic()
            error = step.run(turn)
            step.took = time.monotonic() - begun
            step.done += 1
            if error:
                step.errors.append(error)


def tell(steps, output, of=""):
    """What there is now; the exit status. `of`: the words of `weft report` for another paper."""
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
          f"The page: weft report {of}{output} -o report")
    if beyond := [step.name for step in steps if step.passed_over]:
        print(f"Fewer of these, for fewer streams were far too many already: {', '.join(beyond)}")
    return status


def parse(arguments):
    parser = command_line.Parser("weft bench paper", "Measure what the figures of the paper need: docs/report.md", EXAMPLES, REMARKS)
    parser.add_argument("--weft", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--version-of-weft", dest="version", required=True, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", metavar="RESULTS.jsonl", help="append the results to this file")
    parser.add_argument("--of", choices=sorted(PARTS_OF), default="radio", help="which paper: that on radio astronomy, or on SDP (radio)")
    parser.add_argument("--only", metavar="PARTS", help=f"of {','.join(PARTS)}; of SDP {','.join(sdp_steps.PARTS)}; without: all")
    number, numbers = command_line.number, command_line.numbers
    parser.add_argument("--budget", type=number(float, 0.01, 10_000), default=BUDGET, metavar="MINUTES", help=f"end after so many minutes ({BUDGET})")
    parser.add_argument("--repetitions", type=number(int, 1, 1000), default=5, help="turns (5)")
    parser.add_argument("--seconds", type=number(float, 0.01, 600), default=0.5, help="of each repetition of weft bench (0.5)")
    parser.add_argument("--stream-seconds", type=number(float, 0.1, 3600), default=3, help="of each run of weft stream (3)")
    parser.add_argument("--streams", type=numbers(1, 4096), default=[1, 4, 16, 50], help="numbers of LOFAR streams (1,4,16,50)")
    parser.add_argument("--rate", type=number(float, 0, 1_000_000), default=streams_run.LOFAR_MBPS, help="Mb/s of a LOFAR stream (764)")
    parser.add_argument("--mtu", type=number(int, 576, 65535), default=places.MTU, help=f"of the veth pair of {', '.join(OVER_VETH)} ({places.MTU})")
    parser.add_argument("--sizes", type=numbers(1, 1 << 26), help="message sizes in bytes (8192 to 2097152, of SDP 4096 to 1048576, doubling)")
    parser.add_argument("--connections", type=numbers(1, 1000), default=sdp_steps.CONNECTIONS, help="of SDP: numbers of connections (1,2,4,8)")
    parser.add_argument("--disk", metavar="DIR", help="the folder whose disk is written to (that of the results)")
    parser.add_argument("--disk-bytes", type=number(int, disk_run.BLOCK_BYTES, 1 << 50), default=DISK_BYTES, help=f"of each file there ({DISK_BYTES})")
    parser.add_argument("--loss-gbps", type=number(float, 0.001, 1000), default=1, help="Gb/s offered where packets get lost (1)")
    parser.add_argument("--quick", action="store_true", help="one turn, short: whether it runs, not how fast")
    parser.add_argument("--priority", action="store_true", help="as weft bench --priority (root)")
    parser.add_argument("--list", action="store_true", help="print the steps, and measure nothing")
    options = parser.parse_args(arguments)
    if not options.list and not options.output:
        parser.error("the following arguments are required: -o/--output")
    known = PARTS_OF[options.of]
    options.only = options.only.split(",") if options.only is not None else list(known)
    for word in options.only:
        if word not in known:
            parser.error(f"argument --only: '{word}' is none of {', '.join(known)}{command_line.did_you_mean(word, known)}")
    options.sizes = options.sizes or (sdp_steps.SIZES if options.of == "sdp" else SIZES)
    options.search = ladder.RUNS
    if options.output:
        options.output = str(pathlib.Path(options.output).resolve())
    if options.quick:
        options.repetitions, options.seconds, options.stream_seconds, options.search = 1, 0.1, 1.2, 1
        options.disk_bytes = min(options.disk_bytes, 16 * disk_run.BLOCK_BYTES)
    return options


def main(arguments):
    options = parse(arguments)
    veth = places.Veth(options.mtu)
    if options.of == "sdp":
        steps = sdp_steps.steps_of(options)
    else:
        # What is compared with sockets goes by the network, also where both ends are here.
        os.environ.setdefault("WEFT_SAME_HOST", "off")
        steps = steps_of(options, veth)
    if options.list:
        for step in steps:
            print(f"{step.part}: {step.name}")
        return 0
    known = PARTS_OF[options.of]
    if os.geteuid() != 0 and any(part in AS_ROOT for part in options.only):
        print(f"weft bench paper: {', '.join(part for part in known if part in AS_ROOT)} make network namespaces, for which they have to be run as root; "
              f"the others: --only {','.join(part for part in known if part not in AS_ROOT)}", file=sys.stderr)
        return 1
    try:
        end_line(options.output)
    except OSError as error:
        print(f"weft bench paper: {error}", file=sys.stderr)
        return 1
    progress = Progress(steps, options.budget * 60)
    try:
        with veth if any(part in OVER_VETH for part in options.only) else contextlib.nullcontext():
            run_all(steps, options.repetitions, options.budget * 60, progress)
    except places.PlaceFailed as failure:
        progress.close()
        print(f"weft bench paper: {failure}", file=sys.stderr)
        return 1
    except command_line.Stopped as stopped:
        progress.close()
        print(f"{options.output}: ended early; what was measured is kept", file=sys.stderr)
        return stopped.status
    progress.close()
    return tell(steps, options.output, "--of sdp " if options.of == "sdp" else "")


if __name__ == "__main__":
    command_line.run("weft bench paper", main)
