"""weft's own programs: each state and call step by step, printed, so that two runs can be compared."""

import json
import os
import re
import resource
import socket
import subprocess
import time

from sdp_case import case
from world import HERE, SDP_OR_NOTHING, SDP_PORT_DISTANCE, Failed, Skipped, session_of


def steps(w, program, *options):
    expected = w.file("expected", "\n".join(w.expected) + "\n")
    process = w.start(0, ["python3", "-B", os.path.join(HERE, program), w.address, "--expect", expected, *options])
    w.ends(process)
    return process.text().splitlines()


case("sockets.readiness", seconds=120)(lambda w: steps(w, "readiness.py"))
case("sockets.urgent", seconds=90)(lambda w: steps(w, "urgent.py"))
case("sockets.calls", seconds=90)(lambda w: steps(w, "calls.py"))
case("sockets.random_calls", seconds=120)(lambda w: steps(w, "random_calls.py", "--seeds", "1", "12"))
case("sockets.many_random_calls", full=True, seconds=600)(lambda w: steps(w, "random_calls.py", "--seeds", "13", "150"))
case("sockets.names")(lambda w: w.run(0, ["python3", "-B", os.path.join(HERE, "names.py"), w.address, str(w.port())]).splitlines())

def many(w, count, descriptors):
    """By TCP a connection is a descriptor; by SDP it is more, and a program must not run out of them for that."""
    w.allow_fallback()
    program = ["python3", "-B", os.path.join(HERE, "many.py"), w.address, str(w.port()), str(count)]
    return sorted(w.run(0, ["prlimit", f"--nofile={descriptors}", *program]).splitlines())


PROCESSES, EACH = 4, 2500
DESCRIPTORS = 8 * EACH  # SDP takes half of them, and four for a connection


def cost(processes, name):
    """Of the processes that it started, together: descriptors and KB of memory."""
    descriptors, memory = 0, 0
    for pid in [p for process in processes for p in session_of(process.process.pid)]:
        descriptors += len(os.listdir(f"/proc/{pid}/fd"))
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            memory += next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    ends = 2 * PROCESSES * EACH
    print(f"{name}: an end of a connection takes {descriptors / ends:.2f} descriptors and {memory / ends:.1f} KB of memory", flush=True)


def ports_that_rest():
    """Of connections that ended within the last minute."""
    with open("/proc/net/sockstat", encoding="ascii") as f:
        return int(re.search(r"TCP:.* tw (\d+)", f.read())[1])


@case("sockets.ten_thousand", full=True, seconds=400, namespaces=None)
def ten_thousand(w):
    """10,000 connections at once, of four clients and four servers; each is asked and answers, and once more when all are there."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most < DESCRIPTORS:
        raise Skipped(f"only {most} descriptors are allowed")
    program = ["prlimit", f"--nofile={DESCRIPTORS}", "python3", "-B", os.path.join(HERE, "many.py")]
    while ports_that_rest() > EACH and time.monotonic() < w.until:
        time.sleep(1)
    # Each with an address of its own: one has too few ports for what SDP takes of them, three for a connection.
    started = [w.start(0, [*program, f"127.0.0.{n + 1}", str(w.port()), str(EACH), "--stay"], stdin=subprocess.PIPE) for n in range(PROCESSES)]
    for process in started:
        if not process.has_said("asked: ", w.until) or not process.has_said("answered: ", w.until):
            raise Failed("not all connections came to be")
    cost(started, w.way)
    for process in started:
        process.process.stdin.close()
    for process in started:
        w.ends(process)
    return sorted(line for process in started for line in process.text().splitlines())


case("sockets.many")(lambda w: many(w, 500, 2200))
case("sockets.few_descriptors")(lambda w: many(w, 500, 1600))

for mode in ("calls", "jumps", "exits", "forks"):
    case(f"sockets.handler_{mode}", seconds=20, namespaces=None)(
        lambda w, mode=mode: w.run(0, [w.test_program("sdp_handlers"), w.address, mode]).splitlines())

for mode in ("jumps", "cancelled", "limited"):
    case(f"sockets.left_{mode}", seconds=20, namespaces=None)(
        lambda w, mode=mode: w.run(0, [w.test_program("sdp_left"), w.address, mode]).splitlines())



@case("sockets.left_interrupted", seconds=20, namespaces=None)
def left_interrupted(w):
    w.allow_fallback()
    return w.run(0, [w.test_program("sdp_left"), w.address, "interrupted"]).splitlines()


IN_PLACE = {"WEFT_SDP_ZCOPY_THRESH": "4096"}
WRITTEN = IN_PLACE | {"WEFT_SDP_SINK_AVAIL": "32768"}

for mode, environment in {"receives": IN_PLACE, "sends": IN_PLACE, "waits": WRITTEN, "sends_written": WRITTEN}.items():
    case(f"sockets.left_{mode}", seconds=20, namespaces=None)(
        lambda w, mode=mode.split("_", maxsplit=1)[0], e=environment: w.run(0, [w.test_program("sdp_left"), w.address, mode], environment=e).splitlines())

for mode in ("sleeps", "signals", "relayed"):
    case(f"sockets.urgent_{mode}", seconds=30, namespaces=None)(
        lambda w, mode=mode: w.run(0, [w.test_program("sdp_urgent"), w.address, mode]).splitlines())

case("sockets.woken", seconds=60, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_woken"), w.address]).splitlines())

case("sockets.errno_kept", seconds=60, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_errno_kept"), w.address]).splitlines())

case("sockets.epolled", seconds=60, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_epolled"), w.address]).splitlines())

case("sockets.listeners", seconds=20, namespaces=None)(
    lambda w: w.run(0, ["python3", "-B", os.path.join(HERE, "listeners.py"), w.address]).splitlines())

case("sockets.cancelled", seconds=20, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_cancelled"), w.address]).splitlines())

case("sockets.passed_on", seconds=60, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_passed_on"), w.address], environment={"WEFT_SDP_ZCOPY_THRESH": "0"}).splitlines())

# With few descriptors those of the adapter have low numbers.
for name, descriptors, how in (("swept", 4096, []), ("swept_low", 1024, ["low"])):
    case(f"sockets.{name}", seconds=60, namespaces=None)(
        lambda w, n=descriptors, how=how: w.run(0, ["prlimit", f"--nofile={n}", w.test_program("sdp_swept"), w.address, *how]).splitlines())

case("sockets.closed", seconds=20, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_closed"), w.address]).splitlines())

for mode in ("relayed", "direct"):
    case(f"sockets.peer_gone_{mode}", seconds=60, namespaces=None)(
        lambda w, mode=mode: w.run(0, [w.test_program("sdp_peer_gone"), w.address, mode]).splitlines())

for name, environment in {"copied": {"WEFT_SDP_ZCOPY_THRESH": "0"}, "in_place": IN_PLACE, "written": WRITTEN}.items():
    case(f"sockets.two_threads_{name}", seconds=30, namespaces=None)(
        lambda w, e=environment: w.run(0, [w.test_program("sdp_two_threads"), w.address], environment=e).splitlines())

case("sockets.rare", seconds=20, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_rare"), w.address]).splitlines())

case("sockets.by_libc", seconds=20, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_by_libc"), w.address]).splitlines())

case("sockets.ended", seconds=60, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_ended"), w.address]).splitlines())

case("sockets.moved", seconds=20, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_copied"), w.address, "moved"]).splitlines())


@case("sockets.copied", seconds=20, namespaces=None)
def copied(w):
    w.allow_fallback()
    return w.run(0, [w.test_program("sdp_copied"), w.address, "copies"]).splitlines()

# Where there is no memory. Less than the time for which the end of a process waits for its connections.
for mode in ("calls", "loop", "staging"):
    @case(f"sockets.scarce_{mode}", seconds=9, namespaces=None)
    def scarce(w, mode=mode):
        if mode != "staging":
            w.allow_fallback()
        return w.run(0, [w.test_program("sdp_scarce"), w.address, mode], environment=IN_PLACE).splitlines()

for mode in ("reset", "half", "memory", "file"):
    case(f"sockets.after_{mode}", seconds=40, namespaces=None)(
        lambda w, mode=mode: w.run(0, [w.test_program("sdp_after"), w.address, mode]).splitlines())

case("sockets.asked", seconds=20, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_asked"), w.address]).splitlines())

case("sockets.obeyed", seconds=60, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_obeyed"), w.address]).splitlines())

case("sockets.pointers", seconds=20, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_pointers"), w.address]).splitlines())

case("sockets.c_calls", seconds=20, namespaces=None)(lambda w: w.run(0, [w.test_program("sdp_c_calls"), w.address]).splitlines())

# TCP copies on one host, and says so.
for name, environment, said in (("copied", {"WEFT_SDP_ZCOPY_THRESH": "0"}, "copied"), ("in_place", IN_PLACE, "in-place")):
    case(f"sockets.zero_copy_{name}", seconds=60, namespaces=None)(
        lambda w, e=environment, said=said: w.run(0, [w.test_program("sdp_zero_copy"), w.address, "copied" if w.way == "tcp" else said],
                                                  environment=e).splitlines())

for mode in ("vfork", "fork", "threads", "programs", "unread"):
    case(f"sockets.children_{mode}", seconds=60, namespaces=None)(
        lambda w, mode=mode: w.run(0, [w.test_program("sdp_children"), w.address, mode]).splitlines())

# Processes that libc's fork() does not make: the library has to see them as well.
for mode in ("syscall", "clone3", "own_stack", "_Fork", "shared"):
    case(f"sockets.cloned_{mode.strip('_').lower()}", seconds=30, namespaces=None)(
        lambda w, mode=mode: w.run(0, [w.test_program("sdp_cloned"), w.address, mode]).splitlines())

# Clients of many addresses where there are few ports: several of them have the same one, and so have the sockets by which the library tells the
# listener of them. Each is answered with what it said.
MANY_ADDRESSES = """
import select, socket, sys
listener = socket.create_server(("0.0.0.0", 2000), backlog=100)
select.select([listener], [], [], 0)
for turn in range(4):
    clients = []
    for n in range(2, 18):
        client = socket.create_connection((f"127.0.0.{n}", 2000))
        client.sendall(b"%2d" % n)
        clients.append(client)
    for _ in clients:
        server, peer = listener.accept()
        said = server.recv(2, socket.MSG_WAITALL)
        server.sendall(said + b" came")
        server.close()
    print(*(client.recv(7, socket.MSG_WAITALL).decode() for client in clients))
    for client in clients:
        client.close()
"""
FEW_PORTS = 'ip link set lo up && echo 40000 40127 > /proc/sys/net/ipv4/ip_local_port_range && exec "$@"'


def until_quiet(w, side):
    """Until nothing moves on TCP there. What is on its way is repeated, and keepalives wait."""
    look = [*w.place.enter(side), "ss", "-tinH"]
    seen, same = "", 0
    while same < 10:
        if time.monotonic() > w.until:
            raise Failed("TCP does not come to rest")
        now = " ".join(re.findall(r"bytes_(?:sent|acked|received):\d+|segs_out:\d+",
                                  subprocess.run(look, check=True, text=True, stdout=subprocess.PIPE).stdout))
        same = same + 1 if now == seen else 0
        seen = now
        time.sleep(0.02)


# A connection that is silent survives, as TCP's does; those whose options say so end.
@case("sockets.cut_path", seconds=60, namespaces="check")
def cut_path(w):
    if w.place.name != "namespaces":
        raise Skipped("between namespaces alone is there a path to cut")
    program, port = ["python3", "-B", os.path.join(HERE, "cut_path.py")], w.port()
    w.serve([*program, "serve", w.address, str(port)], port)
    heard, told = os.pipe()
    client = w.start(1, [*program, "connect", w.address, str(port)], stdin=heard)
    os.close(heard)
    with open(told, "w", encoding="ascii") as to_client:
        for state, link in (("cut", "down"), ("mended", "up")):
            if not client.has_said(f"to be {state}", w.until):
                raise Failed(f"the path was not to be {state}")
            if state == "cut":
                until_quiet(w, 1)
            w.place.set_link(link)
            to_client.write(f"{state}\n")
            to_client.flush()
        w.ends(client)
    return client.text().splitlines()


@case("sockets.many_addresses", seconds=30, namespaces=None)
def many_addresses(w):
    own_network = ["unshare", "--map-root-user", "--net", "sh", "-c", FEW_PORTS, "sh"]
    if subprocess.run(w.command(0, [*own_network, "true"], plain=True), check=False, stderr=subprocess.DEVNULL).returncode != 0:
        raise Skipped("this user may not make a network of its own")
    return w.run(0, [*own_network, "python3", "-c", MANY_ADDRESSES]).splitlines()


# subprocess makes its children by vfork(2), and this one ends at once.
MISSING_PROGRAM = """
import select, socket, subprocess, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
select.select([listener], [], [], 0)
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
try:
    subprocess.Popen(["/nonexistent/program"])
except FileNotFoundError as error:
    print(type(error).__name__)
client.sendall(b"still here")
print(server.recv(100))
"""

# Less than the time for which the end of a process waits for peers.
case("sockets.missing_program", seconds=9, namespaces=None)(
    lambda w: w.run(0, ["python3", "-c", MISSING_PROGRAM, w.address, str(w.port())]).splitlines())

# As libuv, and so Node.js, closes.
CLOSED_BY_SYSCALL = """
import ctypes, platform, socket, sys
SYS_CLOSE = 3 if platform.machine() == "x86_64" else 57
close = lambda s: print(ctypes.CDLL(None).syscall(SYS_CLOSE, s.detach()))
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
for half in (False, True):
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    client.sendall(b"the last")
    if half:
        client.shutdown(socket.SHUT_WR)
    print(server.recv(100, socket.MSG_WAITALL if half else 0))
    if half:
        server.shutdown(socket.SHUT_WR)
        print(client.recv(100))
    close(client)
    print(server.recv(100))
    close(server)
"""

# Less than the time for which the end of a process waits for its connections.
case("sockets.closed_by_syscall", seconds=9, namespaces=None)(
    lambda w: w.run(0, ["python3", "-c", CLOSED_BY_SYSCALL, w.address, str(w.port())]).splitlines())

# With IPV6_V6ONLY, which create_server() sets.
ONE_FAMILY = """
import select, socket, sys
port = int(sys.argv[1])
def listen(family, address):
    listener = socket.create_server((address, port), family=family)
    select.select([listener], [], [], 0)
    return listener
def visit(listener, address):
    with socket.create_connection((address, port)) as client:
        server, peer = listener.accept()
        client.sendall(address.encode())
        print(server.recv(100), peer == client.getsockname())
ipv6 = listen(socket.AF_INET6, "::")
try:
    socket.create_connection(("127.0.0.1", port))
except OSError as error:
    print(type(error).__name__)
visit(ipv6, "::1")
ipv4 = listen(socket.AF_INET, "0.0.0.0")
visit(ipv4, "127.0.0.1")
visit(ipv6, "::1")
"""

case("sockets.one_family", seconds=20, namespaces=None)(lambda w: w.run(0, ["python3", "-c", ONE_FAMILY, str(w.port())]).splitlines())

LEAVER = """
import os, select, socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
select.select([listener], [], [], 0)
if os.fork() == 0:
    with socket.create_connection(listener.getsockname()) as s:
        s.sendall(bytes(200000))
    os._exit(0)
connection, _ = listener.accept()
print("status:", os.wait()[1])
print("received:", sum(map(len, iter(lambda: connection.recv(65536), b""))))
"""

# Less than the time for which the end of a process waits for peers.
case("sockets.leaves", seconds=9, namespaces=None)(lambda w: w.run(0, ["python3", "-c", LEAVER, w.address, str(w.port())]).splitlines())

ECHO = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
connection, _ = listener.accept()
while data := connection.recv(10):
    connection.sendall(data)
"""


@case("sockets.background")
def background(w):
    """A client that goes to the background goes on with its connection."""
    w.environment["LIBSDP_CONFIG_FILE"] = w.file("rules", f"{SDP_OR_NOTHING}keep python3\n")
    port = w.port()
    server = w.serve(["python3", "-c", ECHO, w.address, str(port)], port)
    client = w.start(1, ["python3", "-B", os.path.join(HERE, "background.py"), w.address, str(port)])
    w.ends(client)
    while "child:" not in client.text():
        if time.monotonic() > w.until or "Error" in client.error_text():
            raise Failed("the child has not answered")
        time.sleep(0.05)
    w.ends(server)
    return client.text().splitlines()


GREETER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    connection, _ = listener.accept()
    connection.sendall(b"hello")
    connection.close()
"""
GREETED = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
    print(s.recv(10))
"""


@case("sockets.port_taken", namespaces=None)
def port_taken(w):
    """A server whose SDP port is another's when it begins hears SDP when that is free. A client of SDP alone is refused before."""
    port = w.port()
    client = ["python3", "-c", GREETED, w.address, str(port)]
    with socket.create_server((w.address, port + SDP_PORT_DISTANCE)):
        w.serve(["python3", "-c", GREETER, w.address, str(port)], port)
        if w.way == "sdp" and "ConnectionRefusedError" not in refusal(w, client):
            raise Failed("the server hears SDP at a port that is another's")
    while refused := refusal(w, client):
        if "ConnectionRefusedError" not in refused or time.monotonic() > w.until:
            raise Failed(refused)
        time.sleep(0.1)
    return w.run(0, client).splitlines()


def refusal(w, client):
    process = w.start(0, client)
    return "" if process.wait(w.until) == 0 else process.error_text()


def shown_of(w, process):
    """RDMA Reads that its peer has asked it for, and bytes that its peer has written to its buffers."""
    found = json.loads(subprocess.run([f"{w.product.root}/bin/weft", "stat", "--json", "--all", str(process.process.pid)],
                                      stdout=subprocess.PIPE, check=True).stdout)
    return found["processes"][0]["device"]["messages_received.read"], found["sockets"][0]["counters"]["bytes_written"]


def large(w, threshold, in_place, offers=False):
    """What came of large sends. With `in_place` the peer must have read some of them where they lay, without it none; with `offers` it must have written
    to receivers' buffers, without it not once."""
    environment = {"WEFT_SDP_ZCOPY_THRESH": threshold} | ({"WEFT_SDP_SINK_AVAIL": "32768"} if offers else {})
    program = ["python3", "-B", os.path.join(HERE, "large.py")]
    port = w.port()
    server = w.serve([*program, "serve", w.address, str(port), "--stay"], port, stdin=subprocess.PIPE, environment=environment)
    client = w.start(1, [*program, w.address, str(port), "--stay"], stdin=subprocess.PIPE, environment=environment)
    for side in (client, server):
        while "\nlimited: " not in side.text():
            if side.process.poll() is not None or time.monotonic() > w.until:
                raise Failed("a side has not come to its end")
            time.sleep(0.05)
    if w.way == "sdp":
        reads, written = (sum(numbers) for numbers in zip(shown_of(w, client), shown_of(w, server)))
        if (reads > 0) != in_place or (written > 0) != offers:
            raise Failed(f"{reads} Reads and {written} bytes written at threshold {threshold}, offers {offers}")
    for side in (client, server):
        side.process.stdin.close()
        w.ends(side)
    return client.text().splitlines() + server.text().splitlines()


def bad_memory(w, threshold, offers="0"):
    environment = {"WEFT_SDP_ZCOPY_THRESH": threshold, "WEFT_SDP_SINK_AVAIL": offers}
    return w.run(0, ["python3", "-B", os.path.join(HERE, "bad_memory.py"), w.address], environment=environment).splitlines()


case("sockets.bad_memory", namespaces=None)(lambda w: bad_memory(w, "0"))
case("sockets.bad_memory_in_place", namespaces=None)(lambda w: bad_memory(w, "4096"))
case("sockets.bad_memory_written", namespaces=None)(lambda w: bad_memory(w, "4096", "32768"))

case("sockets.large_copied", seconds=120, namespaces="check")(lambda w: large(w, "0", False))
case("sockets.large_in_place", seconds=120, namespaces="check")(lambda w: large(w, "4096", True))
case("sockets.large_written", seconds=120, namespaces="check")(lambda w: large(w, "4096", True, offers=True))
