"""Results with known figures, for each figure of the page; and how the tests are run."""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "report"
sys.path.insert(0, str(SOURCES))

WEFT = None
PYTHON = "/usr/bin/python3"  # the one that `weft report` becomes

MACHINE = {"cpu": "a CPU <fast>", "cpus": 2, "kernel": "6.1", "load_before": 0.0, "options": {}}
UNMEASURED = {"unmeasured": "no zone", "remedy": "measure on the host"}


def line(suite, case, figures, repetition=0, path="veth", energy=None, **parameters):
    return {"schema": "weft-result/1", "kind": "repetition", "suite": suite, "case": case, "path": path, "repetition": repetition,
            "time": f"2026-01-31T12:00:{repetition:02}Z", "version": "9.8.7", "machine": MACHINE, "parameters": parameters,
            "figures": figures, "energy": energy or UNMEASURED}


def stream(operation, service, size, goodput, repetition=0, suite=None, offloads="off", cpu=0.5, **more):
    """A line of `weft bench`: a stream of messages."""
    parameters = {"group": "bandwidth", "operation": operation, "service": service, "size": size, "crc": False, "window": 0, "gbps": 0,
                  "loss": 0, "fault": "", "offloads": offloads, "mtu": None, **more}
    suite = suite or ("uc" if operation == "udp_stream" else service)
    return line(suite, f"{operation}/{service}/{size}/{more.get('loss', 0)}", {"gbps": goodput, "rx_s_per_gb": cpu}, repetition, **parameters)


KINDS = (("tcp_stream", "rc"), ("udp_stream", "rc"), ("write", "rc"), ("read", "rc"), ("write", "uc"), ("read", "uc"))


def lofar(transport, streams, gbps, repetition=0, suite="lofar", lost=0.0, cpu=0.4, **more):
    """A line of `weft stream`."""
    case = f"{suite}/{transport}" + (f"/{streams}" if suite.startswith("lofar") else "")
    if suite.endswith("-net"):
        more = {"mtu": 1500, "packets_per_write": 1, **more}
    return line(suite, case, {"gbps": gbps, "offered_gbps": 0.764 * streams, "lost_percent": lost, "rx_s_per_gb": cpu, "streams": streams},
                repetition, "veth" if suite.endswith("-net") else "loopback", transport=transport, streams=streams,
                mbps=764 if suite.startswith("lofar") else 0, **more)


def fastest(transport, gbps, repetition=0, cpu=0.4, group=1, **more):
    """A line of part trace-net."""
    entry = lofar(transport, 1, gbps, repetition, "trace-net", cpu=cpu, packets_per_write=group, **more)
    entry["figures"].update(offered_gbps=gbps, rx_cpus=cpu * gbps / 8, tx_cpus=0.5, machine_cpus=1.5)
    return entry


def disk(transport, gbps, repetition=0, lost=0.0, **more):
    return line("disk", f"disk/{transport}", {"gbps": gbps, "rx_s_per_gb": 0.3, "lost_percent": lost}, repetition, "loopback", transport=transport,
                **{"bytes": 1 << 31, "block_bytes": 2 << 20, **more})


def samples(suite, case, repetition=0, count=20):
    looks = [{"t": 1 + i / 10, "cpus": 0.5 + 0.1 * (i % 3), "machine_cpus": 1.0, "watts": None, "gbps": None} for i in range(count)]
    looks += [{"t": 1 + i, "cpus": None, "machine_cpus": None, "watts": None, "gbps": 2 + i} for i in range(3)]
    return [{"schema": "weft-result/1", "kind": "sample", "suite": suite, "case": case, "repetition": repetition, **look} for look in looks]


def everything():
    """Lines for all figures."""
    lines = []
    for repetition in range(3):
        for place, (operation, service) in enumerate(KINDS):
            for size in [8192 << i for i in range(9)]:
                if operation != "udp_stream" or size <= 32768:
                    lines.append(stream(operation, service, size, 10 + place + size / 1e6 + repetition, repetition, cpu=1 / (1 + place)))
            for state in ("off", "on"):
                size = 65000 if operation == "udp_stream" else 262144 if service == "rc" else 65536
                lines.append(stream(operation, service, size, 20 + place + repetition, repetition, offloads=state))
            for loss in (0, 0.001, 0.003, 0.01, 0.03, 0.1):
                lines.append(stream(operation, service, 8192, (6 + place) * (1 - loss), repetition, "loss", loss=loss, gbps=1))
        for transport in ("tcp", "udp", "rc", "uc"):
            for streams in (1, 4, 16, 50):
                lines.append(lofar(transport, streams, min(0.764 * streams, 5), repetition, lost=0 if streams < 16 else 40))
                lines += samples("lofar", f"lofar/{transport}/{streams}", repetition)
                lines.append(lofar(transport, streams, min(0.764 * streams, 3), repetition, "lofar-net", lost=0 if streams < 4 else 7, cpu=0.8))
            lines.append(lofar(transport, 1, 9, repetition, "trace"))
            lines.append(disk(transport, 9.5 if transport == "rc" else 6, repetition))
            lines += samples("trace", f"trace/{transport}", repetition)
            for group in (1, 8) if transport == "uc" else (1,):
                lines.append(fastest(transport, 6 + 0.5 * repetition if transport == "uc" else 2, repetition, 0.25 if transport == "uc" else 0.5, group))
        lines.append(disk("dd", 10, repetition))
    return lines


def metered(lines):
    """The same lines with power, which has nothing to do with their CPU."""
    chance = random.Random(len(lines))
    return [dict(line, watts=line["cpus"] and chance.uniform(1, 400)) if line["kind"] == "sample" else
            dict(line, energy={"watts": 20, "of": "package"},
                 figures=dict(line["figures"], watts=chance.uniform(1, 400), gbps_per_w=10 ** chance.uniform(-3, 3))) for line in lines]


def write(path, lines):
    pathlib.Path(path).write_text("".join(json.dumps(entry) + "\n" for entry in lines), encoding="utf-8")
    return str(path)


def weft(*words, timeout=280, **more):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")} | more
    return subprocess.run([str(WEFT), *words], env=environment, text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=timeout)


def has_matplotlib():
    found = subprocess.run([PYTHON, "-c", "import matplotlib"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return found.returncode == 0


def skip(sentence):
    print(f"SKIPPED: {sentence}")
    return 77


def main():
    global WEFT  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    # The test's own module is __main__, and this one is loaded once: both see the same WEFT.
    WEFT = options.weft.resolve()
    program = unittest.main(module="__main__", argv=[sys.argv[0], *rest], exit=False)
    return 0 if program.result.wasSuccessful() else 1
