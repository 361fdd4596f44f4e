#!/usr/bin/env python3
"""Runs other people's RDMA programs on weft, as a user without rights, on one host and between two network namespaces.

  apps.py --list                 the names of all cases
  apps.py --list --full          the names of those that ./check runs with --full only
  apps.py --markdown             all cases as docs/apps.md
  apps.py --build DIR CASE...    runs them; DIR is the build directory
  apps.py --build DIR --where host|namespaces CASE...   only there
  apps.py --build DIR --sanitizer FILE CASE...          DIR was built with a sanitizer; FILE is its library, to be loaded first;
                                                        the cases for such a build are fewer, --list --sanitizer FILE has them

Exit status: 0 all good, 1 something failed, 77 nothing could be run (a program is not installed).
"""

import argparse
import contextlib
import errno
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../support")]
import apps_page  # noqa: E402
import captures  # noqa: E402
import cases  # noqa: E402

NOBODY = 65534
SKIP = 77


class Failed(Exception):
    pass


def free_port():
    """A port that is free on TCP and UDP, and below those that the system hands out: weft's own adapter port, and the ends of
    other connections, are among these."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first_handed_out, last = map(int, f.read().split())
    low, high = max(1024, first_handed_out // 2), first_handed_out
    if high - low < 1000:  # a host that hands out nearly all
        low, high = max(first_handed_out, 32768), last
    for _ in range(1000):
        port = random.randrange(low, high)
        try:
            with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
                tcp.bind(("", port))
                udp.bind(("", port))
            return port
        except OSError:
            continue
    raise Failed("no free port")


def read_file(name):
    """Nothing where it is not there."""
    try:
        with open(name, encoding="ascii") as f:
            return f.read()
    except OSError:
        return ""


def reaches_by_ipv6(table):
    """Whether /proc/net/if_inet6 has an address besides that of the loopback which may be used: some are still being tried, or were
    found to be another's (IFA_F_TENTATIVE, IFA_F_DADFAILED)."""
    return any(words[5] != "lo" and not int(words[4], 16) & 0x48 for words in map(str.split, table.splitlines()))


class Host:
    """Both programs here. They meet at the address that the device shows first."""

    name = "host"

    def __init__(self):
        self.address = "127.0.0.1"
        self.network = "127.0.0.0/8"

    def own(self, _side):
        return self.address

    def enter(self, _side):
        return []

    def has_ipv6(self):
        return reaches_by_ipv6(read_file("/proc/net/if_inet6"))

    def close(self):
        pass


class Namespaces:
    """A namespace for each side with a veth pair between them. Takes root."""

    name = "namespaces"

    def __init__(self):
        self.sides = [f"weft-apps-{os.getpid()}-{i}" for i in (0, 1)]
        self.address = "192.0.2.1"
        self.network = "192.0.2.0/24"
        run = lambda *c: subprocess.run(c, check=True, stdout=subprocess.DEVNULL)
        for s in self.sides:
            run("ip", "netns", "add", s)
        self.interface = veth = f"wa{os.getpid() % 100000}"
        run("ip", "link", "add", veth, "netns", self.sides[0], "type", "veth", "peer", "name", veth, "netns",
            self.sides[1])
        for i, s in enumerate(self.sides):
            # Addresses of IPv6 are nobody else's here, and may be used at once.
            run("ip", "netns", "exec", s, "sh", "-c", f"echo 0 2>/dev/null >/proc/sys/net/ipv6/conf/{veth}/accept_dad || true")
            run("ip", "-n", s, "address", "add", f"192.0.2.{i + 1}/24", "dev", veth)
            run("ip", "-n", s, "link", "set", veth, "up")
            run("ip", "-n", s, "link", "set", "lo", "up")
        self.wait_until_up()

    def wait_until_up(self):
        """The kernel says a little later that a link is up, and UCX passes over one of which it does not say so."""
        end = time.monotonic() + 30
        for s in self.sides:
            look = ["ip", "-n", s, "-o", "link", "show", self.interface]
            while " state UP " not in subprocess.run(look, check=True, text=True, stdout=subprocess.PIPE).stdout:
                if time.monotonic() > end:
                    raise RuntimeError(f"the link {self.interface} of {s} did not come up within 30 s")
                time.sleep(0.01)

    def set_mtu(self, mtu):
        for s in self.sides:
            subprocess.run(["ip", "-n", s, "link", "set", self.interface, "mtu", str(mtu)], check=True)

    def set_link(self, state):
        """Up or down, at the second side."""
        subprocess.run(["ip", "-n", self.sides[1], "link", "set", self.interface, state], check=True)

    def one_segment_at_a_time(self):
        """The kernel gives the link TCP's segments as they would be on a cable, and not many of them in one packet."""
        for s in self.sides:
            subprocess.run(["ip", "-n", s, "link", "set", self.interface, "gso_max_segs", "1"], check=True)

    def own(self, side):
        return f"192.0.2.{side + 1}"

    def enter(self, side):
        return ["ip", "netns", "exec", self.sides[side]]

    def has_ipv6(self):
        tables = (subprocess.run([*self.enter(i), "cat", "/proc/net/if_inet6"], check=False, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL).stdout for i in (0, 1))
        return all(map(reaches_by_ipv6, tables))

    def close(self):
        for s in self.sides:
            subprocess.run(["ip", "netns", "delete", s], check=False)


def places(where=None):
    """Where the two programs of a case stand: on this host, between namespaces. Says loudly what cannot be."""
    found = [Host()] if where != "namespaces" else []
    if where == "host":
        return found
    if os.geteuid() != 0:
        print("SKIPPED between namespaces: making them takes root")
    elif subprocess.run(["unshare", "--net", "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        print("SKIPPED between namespaces: root may not make any here, as in many containers")
    else:
        found.append(Namespaces())
    return found


def attempt(name, place, run, started):
    """Runs `run()`. After a failure shows what the processes of `started` said; they end in any case."""
    try:
        run()
    except Failed as e:
        print(f"FAILED {name} ({place}): {e}")
        for p in started:
            p.end()
            print(f"--- {' '.join(p.command)}\n{p.text()}")
        return False
    finally:
        for p in started:
            p.end()
    print(f"passed {name} ({place})")
    return True


class Product:
    """weft as an unprivileged user finds it: a copy where everybody may read it."""

    def __init__(self, build, sanitizer=None):
        self.build = build
        self.sanitizer = os.path.realpath(sanitizer) if sanitizer else None
        self.root = tempfile.mkdtemp(prefix="weft-apps-")
        os.chmod(self.root, 0o755)
        os.mkdir(f"{self.root}/bin")
        os.makedirs(f"{self.root}/lib/weft")
        shutil.copy(f"{build}/bin/weft", f"{self.root}/bin/weft")
        for lib in ("libibverbs.so.1", "librdmacm.so.1"):
            shutil.copy(f"{build}/lib/weft/{lib}", f"{self.root}/lib/weft/{lib}")

    def folder(self):
        """A folder where everybody may write, with a remote shell and what starts programs of uDAPL."""
        folder = captures.open_folder(self.root)
        for name in ("remote_shell.py", "over_dapl.sh"):
            shutil.copy(f"{HERE}/{name}", folder)
        with open(f"{folder}/rsh", "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\nexec python3 {folder}/remote_shell.py {folder}/shell "$@"\n')
        os.chmod(f"{folder}/rsh", 0o755)
        return folder

    def compile(self, compiler, source, *libraries):
        program = f"{self.root}/bin/{compiler}-{os.path.basename(source)}"
        if not os.path.exists(program):
            done = subprocess.run([compiler, "-O2", "-o", program, f"{HERE}/{source}", *libraries], check=False, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            if done.returncode != 0:
                raise Failed(f"{compiler} does not compile {source}:\n{done.stdout}")
            os.chmod(program, 0o755)
        return program

    def command(self, program, environment=()):
        # Other people's programs leak: that is not what is asked here.
        first = ["env", f"LD_PRELOAD={self.sanitizer}", "ASAN_OPTIONS=detect_leaks=0"] if self.sanitizer else []
        run = [*first, f"{self.root}/bin/weft", "run", *(w for variable in environment for w in ("--env", variable)), "--", *program]
        if os.geteuid() == 0:
            return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *run]
        return run

    def close(self):
        shutil.rmtree(self.root)


# Reports of ASan, UBSan and TSan. TSan goes on after one, and a server may be killed before its exit status tells.
FINDING = re.compile(r"(?:ERROR|WARNING): \w+Sanitizer:.*|.*: runtime error: .*")


def fixed_port_of(words):
    return next((FIXED_PORTS[name] for name in map(os.path.basename, words) if name in FIXED_PORTS), None)


@contextlib.contextmanager
def alone_at_fixed_port(place, words):
    """A program whose port is always the same runs once at a time in this host's network, whoever runs tests there. The lock is an
    abstract address, which belongs to the network and goes with its holder."""
    port = fixed_port_of(words)
    if port is None or isinstance(place, Namespaces):
        yield
        return
    with socket.socket(socket.AF_UNIX) as lock:
        until = time.monotonic() + FIXED_PORT_SECONDS
        while True:
            try:
                lock.bind(f"\0weft-tests-port-{port}")
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                    raise Failed(f"port {port} is not to be had alone: {error}") from error
            time.sleep(0.05)
        yield


FIXED_PORTS = {"udaddy": "7174", "dtest": "15828", "dtestx": "15828"}  # of programs that take none
FIXED_PORT_SECONDS = 240  # for other runs of tests on this host
START_SECONDS = 60  # until a server listens


class Process:
    def __init__(self, command):
        self.output = tempfile.TemporaryFile(mode="w+")
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
                                        start_new_session=True)

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def finding(self):
        """What a sanitizer has to say against it."""
        found = FINDING.search(self.text())
        return found.group() if found else ""

    def listens(self, port, until):
        """Whether somebody in its network namespace hears TCP or UDP at the port by then, before it ends."""
        wanted = re.compile(rf":{port:04X} [0-9A-F]+:0000 0[A7]")
        while time.monotonic() < until and self.process.poll() is None:
            for table in ("tcp", "tcp6", "udp", "udp6"):
                try:
                    with open(f"/proc/{self.process.pid}/net/{table}", encoding="ascii") as f:
                        if wanted.search(f.read()):
                            return True
                except OSError:
                    pass  # it ended meanwhile
            time.sleep(0.02)
        return False

    def members(self):
        """How often the group behind its -m was joined in its network."""
        address = socket.inet_aton(self.command[self.command.index("-m") + 1])
        name = f"{int.from_bytes(address, sys.byteorder):08X}"
        with open(f"/proc/{self.process.pid}/net/igmp", encoding="ascii") as f:
            return sum(int(words[1]) for words in map(str.split, f) if words[0] == name)

    def comes_up(self, servers=1):
        """Until it listens at the port behind its -p or -B, or its only one, or `servers` have joined its group, or it has ended. One
        that names no port is waited for by its client."""
        words = [*self.command, "", ""]
        until = time.monotonic() + START_SECONDS
        if "mckey" in map(os.path.basename, words):
            while self.members() < servers and self.process.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            return
        port = fixed_port_of(words) or next((value for name, value in zip(words, words[1:]) if name in ("-p", "-B") and value.isdigit()), None)
        if port:
            self.listens(int(port), until)

    def wait(self, until):
        try:
            return self.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired as e:
            raise Failed(f"no end within the time: {' '.join(self.command)}") from e

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def run_programs(case, place, product, environment, started):
    values = {"addr": place.address, "network": place.network, "port": str(free_port()), "folder": product.folder()}
    if case.compiled:
        values["program"] = product.compile(*case.compiled)
    fill = lambda words, side: [w.format(**values, own=place.own(side)) for w in words]
    environment = (*environment, *fill(case.environment, 0))
    until = time.monotonic() + case.seconds
    servers = []
    for _ in range(case.servers):
        servers.append(Process(place.enter(0) + product.command(fill(case.server, 0), environment)))
        started.append(servers[-1])
    server = servers[0]
    clients = []
    if case.client:
        server.comes_up(case.servers)
        for i in range(case.clients):
            time.sleep(case.stagger if i > 0 else 0)
            client = Process(place.enter(1) + product.command(fill(case.client, 1), environment))
            started.append(client)
            clients.append(client)
    for client in clients:
        if (status := client.wait(until)) != 0:
            raise Failed(f"client's exit status {status}")
    for s in servers:
        if case.server_is_killed:
            s.end()
        elif (status := s.wait(until)) != 0:
            raise Failed(f"server's exit status {status}")
    if finding := next((f for p in started if (f := p.finding())), None):
        raise Failed(finding)
    for client in clients or [None]:
        if complaint := case.good(server.text(), client.text() if client else ""):
            raise Failed(complaint)


def run_case(case, place, product, environment=()):
    started = []
    with alone_at_fixed_port(place, case.server):
        return attempt(case.name, place.name, lambda: run_programs(case, place, product, environment, started), started)


def run_again_with_trace(name, place, product, run):
    """After a failure: once more, with a capture file for each process (docs/tracing.md) that stays there to be looked at.
    `run(environment)` tells whether it passed."""
    folder = captures.open_folder(product.root)
    passed = run(captures.into(folder))
    print(f"{name} ({place.name}) was run once more with a trace and {'passed' if passed else 'failed'}")
    print(captures.keep(product.build, f"{name}.{place.name}", [folder]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--where", choices=["host", "namespaces"])
    parser.add_argument("--sanitizer")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    known = {c.name: c for c in (cases.under_sanitizers() if options.sanitizer else cases.all_cases())}
    if options.list:
        print("\n".join(name for name, case in known.items() if case.full or not options.full))
        return 0
    if options.markdown:
        print(apps_page.page(known.values()))
        return 0
    chosen = [known[name] for name in options.case] or list(known.values())
    there = places(options.where)
    product = Product(options.build, options.sanitizer)
    good, ran = True, False
    try:
        for case in chosen:
            missing = [program for program in case.needs if not shutil.which(program)]
            if missing:
                print(f"SKIPPED {case.name}: {missing[0]} is not installed")
                continue
            for place in there[:1] if case.client is None else there:
                if isinstance(place, Namespaces):
                    place.set_mtu(case.mtu or 1500)
                elif case.mtu:
                    continue
                if case.ipv6 and not place.has_ipv6():
                    print(f"SKIPPED {case.name} ({place.name}): no address of IPv6 that others reach")
                    continue
                ran = True
                if not run_case(case, place, product):
                    good = False
                    run_again_with_trace(f"apps.{case.name}", place, product, lambda e, c=case, p=place: run_case(c, p, product, e))
    finally:
        product.close()
        for place in there:
            place.close()
    if not ran:
        return SKIP
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
