#!/usr/bin/env python3
"""Runs other people's programs on weft, as a user without rights, and asks `weft stat` as the same user what they count.

  counting.py --list                  the names of all cases
  counting.py --build DIR CASE...     runs them; DIR is the build directory

Exit status: 0 all good, 1 something failed, 77 nothing could be run.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../apps"), os.path.join(HERE, "../support"), HERE]
import apps  # noqa: E402
import datagram_cases  # noqa: E402

SECONDS = 60
Failed = apps.Failed


class Skipped(Exception):
    pass


def check(right, sentence):
    if not right:
        raise Failed(sentence)


class Scene:
    """What one case starts; all of it is ended with the case."""

    def __init__(self, product, place, environment=()):
        self.product = product
        self.environment = environment
        self.place = place
        self.started = []
        self.until = time.monotonic() + SECONDS

    def start(self, side, program, environment=()):
        process = apps.Process(self.place.enter(side) + self.product.command(program, (*self.environment, *environment)))
        self.started.append(process)
        return process

    def pair(self, server, client, environment=()):
        started = self.start(0, server, environment)
        started.comes_up()
        return started, self.start(1, client, environment)

    def stat(self, *words, user=apps.NOBODY):
        command = [f"{self.product.root}/bin/weft", "stat", *map(str, words)]
        if os.geteuid() == 0 and user != 0:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
        return subprocess.run(command, text=True, capture_output=True, check=False, timeout=SECONDS)

    def watch(self, *words):
        """`weft stat` that goes on."""
        command = [f"{self.product.root}/bin/weft", "stat", *map(str, words)]
        if os.geteuid() == 0:
            command = ["setpriv", f"--reuid={apps.NOBODY}", f"--regid={apps.NOBODY}", "--clear-groups", *command]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def counters(self, process):
        """Of a process that is there: a dictionary as in the JSON, or None while it does not count yet."""
        result = self.stat("--json", "--all", process.process.pid)
        found = json.loads(result.stdout)["processes"]
        check(result.returncode == (0 if found else 1), f"exit status {result.returncode} with {len(found)} processes")
        return found[0] if found else None

    def wait_for(self, process, what, ready):
        while time.monotonic() < self.until:
            counters = self.counters(process)
            if counters and ready(counters):
                return counters
            time.sleep(0.05)
        raise Failed(f"never came: {what}; last: {counters}")


def judge(process):
    """What holds of any process at any moment."""
    for name, value in process["engines"][0]["counters"].items():
        check(process["device"][name] == sum(e["counters"][name] for e in process["engines"]),
              f"{name} of the device is not the sum of the engines': {process}")
        check(value >= sum(q["counters"].get(name, 0) for q in process["queue_pairs"] if q["engine"] == 0),
              f"{name} of the queue pairs is more than that of their engine: {process}")
    device = process["device"]
    check(device["queue_pairs_created"] - device["queue_pairs_destroyed"] == len(process["queue_pairs"]),
          f"queue pairs are missing: {process}")
    if device["queue_pairs_created"] == len(process["queue_pairs"]) == 1:
        # It has counted all that a queue pair counts.
        own = process["queue_pairs"][0]["counters"]
        check(len(own) > 10 and all(device[name] == value for name, value in own.items()), f"the one queue pair and the device differ: {process}")
    for name in ("polls_with_work", "helper_turns"):
        check(device[name] <= device["polls" if name == "polls_with_work" else "helper_wakeups"], f"{name}: {process}")


def check_peer(scene, process, other):
    """Its one queue pair is connected: with side `other`, of which it names an address and a port."""
    peer = process["queue_pairs"][0]["peer"]
    said = subprocess.run([*scene.place.enter(other), "hostname", "-I"], text=True, capture_output=True, check=True, timeout=SECONDS)
    there = {"127.0.0.1", *said.stdout.split()}
    check(peer is not None and peer["address"] in there and 0 < peer["port"] < 65536, f"{peer} is not of {there}")


def check_rates(looks, pid):
    """Each look but the first has what moved since the one before, a second."""
    of_process = [p for look in looks for p in look["processes"] if p["pid"] == pid]
    check(len(of_process) > 1 and "seconds" not in of_process[0], f"{of_process[:1]}")
    moved = 0
    for before, now in zip(of_process, of_process[1:]):
        for name, rate in now["device_per_second"].items():
            more = now["device"][name] - before["device"].get(name, 0)
            check(more > 0 and abs(rate * now["seconds"] - more) < 0.5, f"{name}: {rate} a second in {now['seconds']} s, {more} more")
        for pair in now["queue_pairs"]:
            moved += pair["per_second"].get("bytes_sent.write", 0) > 0
    check(moved > 0, f"nothing moved: {of_process}")


# --- cases

def perftest(scene):
    """A stream of Writes: both sides count the same messages and bytes."""
    size = 65536
    command = ["ib_write_bw", "-p", str(apps.free_port()), "-D", "6", "-s", str(size)]
    server, client = scene.pair(command, [*command, scene.place.address])
    busy = lambda c: c["device"]["messages_received.write"] > 100
    at_server = scene.wait_for(server, "messages at the server", busy)
    at_client = scene.counters(client)  # later: so it has sent all that was there
    judge(at_server)
    judge(at_client)
    came, went = at_server["device"], at_client["device"]
    check(came["bytes_received.write"] >= size * (came["messages_received.write"] - 1), f"few bytes: {at_server}")
    check(came["bytes_received.write"] <= went["bytes_sent.write"], f"more came than went: {at_server} {at_client}")
    check(came["fpdus_received"] <= went["fpdus_sent"], f"more came than went: {at_server} {at_client}")
    # A sample may be taken between the making of FPDUs and their way to the kernel.
    scene.wait_for(client, "the way of what was sent", lambda c: c["device"]["bytes_sent_in_place"] + c["device"]["bytes_sent_copied"] >
                   went["bytes_sent.write"])
    for side in (at_server, at_client):
        check(side["program"] == "ib_write_bw" and side["device"]["streams_opened"] == 1, f"one stream: {side}")
        check(len(side["queue_pairs"]) == 1 and side["queue_pairs"][0]["last_terminate"] is None, f"one queue pair: {side}")
        check(side["device"]["queue_pairs_hidden"] == 0, f"hidden queue pairs: {side}")
    check_peer(scene, at_server, 1)
    check_peer(scene, at_client, 0)
    check(came["dials"] + went["dials"] == came["connections_accepted"] + went["connections_accepted"] == 1, "one connection")

    pid = client.process.pid
    text = scene.stat().stdout
    check(re.search(rf"^{pid} ib_write_bw, since ", text, re.M) and re.search(r"^    bytes_sent\.write +\d{7,} bytes$", text, re.M), text)
    check(re.search(rf"^  queue pair 0x[0-9a-f]{{6}} \(engine 0\), peer [0-9.]+ port \d+{' by memory' if went['streams_same_host'] else ''}$", text, re.M), text)
    metrics = scene.stat("--prometheus", "ib_write_bw").stdout
    check(re.search(rf'^weft_device_bytes_sent_total{{pid="{pid}",program="ib_write_bw",kind="write"}} \d+$', metrics, re.M), metrics)
    check(re.search(rf'^weft_qp_fpdus_sent_total{{pid="{pid}",program="ib_write_bw",engine="0",qpn="0x[0-9a-f]{{6}}"}} \d+$',
                    metrics, re.M), metrics)
    watcher = scene.watch("--json", "--watch", "0.1", "ib_write_bw")
    watched = scene.stat("--watch", "0.1", pid)  # ends with the program
    check(watched.returncode == 0 and re.search(r"^    messages_sent\.write +\d+ +\+\d+  \d+\.\d messages/s$", watched.stdout, re.M) and
          re.search(r"^    bytes_sent\.write +\d+ +\+\d+  \d+\.\d [kMG]B/s$", watched.stdout, re.M), watched.stdout)
    out, _ = watcher.communicate(timeout=SECONDS)
    check(watcher.returncode == 0, out)
    check_rates([json.loads(line) for line in out.splitlines()], pid)
    check(client.wait(scene.until) == 0 and server.wait(scene.until) == 0, "the programs failed")
    gone = scene.stat(pid)
    check(gone.returncode == 1 and gone.stderr == f"weft stat: there is no process {pid}\n", f"{gone}")


def by_udp(scene):
    """RC by datagrams where both sides want it, and by TCP where one of them does not: each side says which."""
    for at_server, datagrams in (("udp", True), ("tcp", False)):
        # They run until they have been asked.
        command = ["ib_write_bw", "-p", str(apps.free_port()), "-D", "60"]
        server = scene.start(0, command, [f"WEFT_RC={at_server}"])
        server.comes_up()
        client = scene.start(1, [*command, scene.place.address], ["WEFT_RC=udp"])
        # None moves before the way is decided.
        moved = lambda c: c["device"]["messages_sent.write"] + c["device"]["messages_received.write"] > 100
        for side, process in ((0, server), (1, client)):
            counted = scene.wait_for(process, "messages", moved)
            judge(counted)
            check_peer(scene, counted, 1 - side)
            check(counted["device"]["streams_by_udp"] == datagrams and counted["device"]["streams_opened"] == 1, f"{counted}")
            check(counted["queue_pairs"][0]["peer"]["by_udp"] == datagrams, f"{counted}")
            if datagrams and side == 0:
                # Straight from the datagram to its place: each byte is counted once, with its headers.
                came = counted["device"]["bytes_received_copied"] + counted["device"]["bytes_received_in_place"]
                check(came < 1.5 * counted["device"]["bytes_received.write"], f"copied twice: {counted}")
            text = scene.stat(process.process.pid).stdout
            check((re.search(r", peer [0-9.]+ port \d+ by UDP$", text, re.M) is not None) == datagrams, text)
        client.end()
        server.end()


def watching(scene):
    """--watch needs no number, and goes on until a signal ends it, which is no failure; what stands behind it may be a program."""
    command = ["ib_write_bw", "-c", "UC", "-p", str(apps.free_port()), "-D", "6"]
    server, client = scene.pair(command, [*command, scene.place.address])
    for side, process in ((0, server), (1, client)):
        check_peer(scene, scene.wait_for(process, "a peer", lambda c: c["queue_pairs"] and c["queue_pairs"][0]["peer"]), 1 - side)
    for words, ending in ((("--watch",), signal.SIGINT), (("--watch", "ib_write_bw"), signal.SIGTERM), (("--watch", "0.2"), signal.SIGHUP), (("--watch", "0.05", client.process.pid), signal.SIGTERM)):
        watcher = scene.watch(*words)
        try:
            lines = iter(watcher.stdout.readline, "")
            check(any(re.search(r"\d messages/s$", line) for line in lines), f"{words}: no rate")
            watcher.send_signal(ending)
            check(watcher.wait(SECONDS) == 0, f"{words}: status {watcher.returncode}")
        finally:
            watcher.kill()
            watcher.wait()
            watcher.stdout.close()
    check(scene.stat("--watch", "0").returncode == 2, "a pause of nothing")
    check(client.wait(scene.until) == 0 and server.wait(scene.until) == 0, "the programs failed")


def rping(scene):
    """Connections by rdma_cm; the client is killed, and nothing of it stays while the server goes on to count."""
    command = ["rping", "-a", scene.place.address, "-p", str(apps.free_port())]
    server, client = scene.pair([*command, "-s", "-P"], [*command, "-c"])
    at_client = scene.wait_for(client, "pings", lambda c: c["device"]["messages_sent.send"] > 20)
    at_server = scene.counters(server)
    judge(at_client)
    judge(at_server)
    check_peer(scene, at_client, 0)
    check_peer(scene, at_server, 1)
    # Each ping is a Read and a Write of the server's.
    check(at_server["device"]["messages_sent.read"] > 5 and at_server["device"]["messages_sent.write"] > 5, f"{at_server}")
    check(at_client["device"]["messages_received.read"] > 5 and at_client["device"]["bytes_sent.read"] > 0, f"{at_client}")
    check(at_client["device"]["dials_connected"] == 1, f"{at_client}")
    check(at_server["device"]["connections_accepted"] == 1, f"{at_server}")

    pid = client.process.pid
    os.kill(pid, signal.SIGKILL)
    client.wait(scene.until)
    check(scene.stat(pid).returncode == 1, "a killed process still counts")
    ended = lambda c: sum(n for name, n in c["device"].items() if name.startswith("stream_end.")) == 1
    after = scene.wait_for(server, "the end of the stream", ended)
    judge(after)
    check(all(pair["peer"] is None for pair in after["queue_pairs"]), f"a peer that is gone: {after['queue_pairs']}")
    for name, value in at_server["device"].items():
        check(after["device"][name] >= value, f"{name} has become smaller: {at_server} {after}")


def refused(scene):
    """What a stranger sends is counted at the server, with its reason."""
    port = apps.free_port()
    server = scene.start(0, ["rping", "-s", "-P", "-a", scene.place.address, "-p", str(port)])
    scene.wait_for(server, "the server", lambda c: True)
    stranger = ["/usr/bin/env", "python3", "-c", f"""
import socket
s = socket.create_connection(("{scene.place.address}", {port}), 10)
s.sendall(b"GET / HTTP/1.1\\r\\nHost: a-name-that-is-long-enough\\r\\n\\r\\n")
while s.recv(100): pass
"""]
    for _ in range(50):
        done = subprocess.run(scene.place.enter(1) + stranger, check=False, capture_output=True, timeout=SECONDS)
        if done.returncode == 0 or b"ConnectionResetError" in done.stderr:
            break
        time.sleep(0.1)
    counted = scene.wait_for(server, "the refusal", lambda c: c["device"]["start_refused.bad_key"] > 0)
    check(counted["device"]["start_refused.bad_key"] == 1 and counted["device"]["streams_opened"] == 0, f"{counted}")


def hidden(scene):
    """WEFT_COUNTERS=off, and programs that do not run on weft."""
    server = scene.start(0, ["rping", "-s", "-a", scene.place.address, "-p", str(apps.free_port())], ["WEFT_COUNTERS=off"])
    server.comes_up()
    pid = server.process.pid
    result = scene.stat(pid)
    check(server.process.poll() is None, "the server is gone")
    check(result.returncode == 1 and f"process {pid} shows no counters" in result.stderr and result.stdout == "", f"{result}")
    check(f"\n{pid} " not in "\n" + scene.stat().stdout, "it is shown all the same")
    missing = scene.stat("no-such-program", "--json")
    check(missing.returncode == 1 and json.loads(missing.stdout) == {"processes": [], "sockets": []}, f"{missing}")
    check("no program 'no-such-program'" in missing.stderr, f"{missing}")


def faults(scene):
    """WEFT_FAULT on one side: it counts what it does there, and the other side does nothing."""
    command = ["rping", "-a", scene.place.address, "-p", str(apps.free_port())]
    server = scene.start(0, [*command, "-s", "-P"])
    scene.wait_for(server, "the server", lambda c: True)
    client = scene.start(1, [*command, "-c"], ["WEFT_FAULT=split:0.5,jitter:100us,seed:2"])
    done = scene.wait_for(client, "faults", lambda c: c["device"]["fault_injected.stream_split"] > 20)
    check(done["device"]["fault_injected.stream_delayed"] > 0, f"nothing waited: {done}")
    injected = lambda c: {name: n for name, n in c["device"].items() if name.startswith("fault_injected.")}
    check(not any("datagrams" in name and n for name, n in injected(done).items()), f"faults of datagrams on a stream: {done}")
    check(not any(injected(scene.counters(server)).values()), "the server has no faults to inject")
    check(re.search(r'^weft_device_fault_injected_total{pid="\d+",program="rping",kind="stream_split"} \d+$',
                    scene.stat("--prometheus", client.process.pid).stdout, re.M), "not in the metrics")


def others(scene):
    """Another user sees nothing; root sees it, in a PID namespace too."""
    if os.geteuid() != 0:
        raise Skipped("only root can be several users")
    program = ["rping", "-s", "-a", scene.place.address, "-p", str(apps.free_port())]
    server = scene.start(0, program)
    scene.wait_for(server, "the server", lambda c: True)
    pid = server.process.pid
    foreign = scene.stat(pid, user=apps.NOBODY - 1)
    check(foreign.returncode == 1 and "belongs to another user" in foreign.stderr, f"{foreign}")
    check("rping" not in scene.stat(user=apps.NOBODY - 1).stdout, "another user sees it")
    check(scene.stat(pid, user=0).returncode == 0, "root does not see it")

    program[-1] = str(apps.free_port())
    apart = apps.Process(["unshare", "--pid", "--fork", "--kill-child", *scene.product.command(program)])
    scene.started.append(apart)
    while time.monotonic() < scene.until:
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(apart.process.pid)], text=True, capture_output=True, check=False)
        inner = children.stdout.split()
        if inner and scene.stat(inner[0]).returncode == 0:
            return
        check(apart.process.poll() is None, "unshare has failed")
        time.sleep(0.05)
    raise Failed("a process in a PID namespace is not seen")


def datagrams(case):
    """Those of datagram_cases.py, and what holds of any process besides."""
    def run(scene):
        for process in case(scene):
            judge(process)
    return run


CASES = {"perftest": ("ib_write_bw", perftest), "by_udp": ("ib_write_bw", by_udp), "watching": ("ib_write_bw", watching),
         "rping": ("rping", rping), "refused": ("rping", refused), "hidden": ("rping", hidden), "faults": ("rping", faults), "others": ("rping", others),
         **{name: (datagram_cases.PYTHON, datagrams(case)) for name, case in datagram_cases.CASES.items()}}
ON_THIS_HOST_ALONE = ("hidden", "others")


def attempt(name, product, place, environment=()):
    scene = Scene(product, place, environment)
    return apps.attempt(name, place.name, lambda: CASES[name][1](scene), scene.started)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return 0
    places = apps.places()
    product = apps.Product(options.build)
    good, ran = True, False
    try:
        for name in options.case or CASES:
            program = CASES[name][0]
            if not shutil.which(program):
                print(f"SKIPPED {name}: {program} is not installed")
                continue
            if name in datagram_cases.CASES and not datagram_cases.installed():
                print(f"SKIPPED {name}: {program} has no pyverbs; install python3-pyverbs (scripts/setup test)")
                continue
            for place in places[:1] if name in ON_THIS_HOST_ALONE else places:
                try:
                    passed = attempt(name, product, place)
                except Skipped as e:
                    print(f"SKIPPED {name}: {e}")
                    continue
                ran = True
                if not passed:
                    good = False
                    apps.run_again_with_trace(f"stat.{name}", place, product, lambda e, n=name, p=place: attempt(n, product, p, e))
    finally:
        product.close()
        for place in places:
            place.close()
    if not ran:
        return apps.SKIP
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
