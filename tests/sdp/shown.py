"""What the library says and shows of what it does: the log, `weft stat`, and which way the rules send a connection."""

import json
import os
import re
import subprocess

from sdp_case import case
from shown_program import WHOLE_SENDS
from world import HERE, Failed

# Each case has rules of its own. By TCP there is nothing to see, so that each returns what holds by SDP.
PROGRAM = os.path.join(HERE, "shown_program.py")


def run(w, rules, *words):
    w.environment["LIBSDP_CONFIG_FILE"] = w.file("own_rules", rules)
    return w.start(0, ["python3", "-B", PROGRAM, w.address, *words])


def check(right, what):
    if not right:
        raise Failed(what)


@case("shown.log")
def log(w):
    """Which way each socket goes, the rule that says so, and lines that are not understood."""
    if w.way == "tcp":
        return []
    w.environment["WEFT_SDP_ZCOPY_THRESH"] = "64k"
    w.environment["WEFT_SDP_SINK_AVAIL"] = "1000"
    process = run(w, "use tcp client * *:1\nuse both * * *:*\nuse none\nlog min-level 3\n", "ways")
    w.ends(process)
    said = process.error_text()
    port = re.search(r"listen at \S+:(\d+): SDP and TCP", said)
    check(port, f"the listener is not told of: {said}")
    for sentence in (f"connect to {w.address}:1: the rule in line 1 fits, tcp", f"connect to {w.address}:1: TCP, for the rules say so",
                     f"connect to {w.address}:{port[1]}: SDP", f"accept from {w.address}:", "own_rules:3: ",
                     "WEFT_SDP_ZCOPY_THRESH: '64k' is not 0, auto or a number of bytes from 4096 on",
                     "WEFT_SDP_SINK_AVAIL: '1000' is not 0 or a number of bytes from 32768 on"):
        check(sentence in said, f"'{sentence}' is not in: {said}")
    return []


@case("shown.deferred")
def deferred(w):
    """A server that asks for TCP_DEFER_ACCEPT, as Apache does, gets a client by SDP without data: the library's wake-up connection brings none."""
    if w.way == "tcp":
        return []
    process = run(w, "log min-level 7\n", "deferred")
    w.ends(process)
    check(process.text() == "accepted\n" * 2, f"the program said {process.text()}")
    check("accept from" in process.error_text(), f"nothing was accepted by SDP: {process.error_text()}")
    return []


@case("shown.remembered")
def remembered(w):
    """Where nobody answers by SDP the next connection does not wait for it."""
    if w.way == "tcp":
        return []
    process = run(w, "use both * * *:*\nlog min-level 7\n", "twice")
    w.ends(process)
    said = [line for line in process.error_text().splitlines() if "connect to" in line]
    # The adapter does not ask again until the time is over: the refusal itself is the reason.
    check(len(said) == 2 and said[0].endswith(": TCP, for nobody hears SDP there"), f"it said {said}")
    check(said[1].endswith("SDP was not there a moment ago"), f"it said {said}")
    return []


@case("shown.found_later")
def found_later(w):
    """A server that was not there is found by SDP when it has come."""
    if w.way == "tcp":
        return []
    process = run(w, "use both * * *:*\nlog min-level 7\n", "later")
    w.ends(process)
    said = [line for line in process.error_text().splitlines() if "connect to" in line]
    check("nobody hears SDP there" in said[0] and said[-1].endswith(": SDP"), f"it said {said}")
    return []


def shown_of(w, process):
    """What `weft stat` has of a process that is ready."""
    check(process.has_said("ready", w.until), f"it never was ready: {process.error_text()}")
    result = subprocess.run(w.command(0, [f"{w.product.root}/bin/weft", "stat", "--json"], plain=True), capture_output=True, text=True, check=True)
    found = json.loads(result.stdout)["sockets"]
    mine = next((p for p in found if p["pid"] == process.process.pid), None)
    check(mine, f"it is not among {found}")
    return mine


@case("shown.stat")
def stat(w):
    """`weft stat` has each connection with its transport, what passed, and why it is TCP's."""
    if w.way == "tcp":
        return []
    mine = shown_of(w, run(w, "use tcp client * *:1\n", "traffic"))
    client = next(c for c in mine["connections"] if c["role"] == "client" and c["transport"] == "sdp")
    server = next(c for c in mine["connections"] if c["role"] == "server")
    check(client["peer"] == server["own"] and client["own"] == server["peer"], f"names differ: {mine}")
    check(client["counters"]["bytes_sent"] == server["counters"]["bytes_received"] == 100_000, f"bytes: {mine}")
    check(client["counters"]["messages_sent"] >= 4 and client["credits"] > 0, f"messages: {mine}")
    check(mine["fallbacks"] == {"the rules say so": 1}, f"fallbacks: {mine}")
    check(all(c["transport"] == "sdp" for c in mine["connections"]), f"a socket that is closed is shown: {mine}")
    return []


@case("shown.fallback")
def fallback(w):
    """A connection that is TCP's has both its names, and the reason."""
    if w.way == "tcp":
        return []
    plain = w.start(0, ["python3", "-B", PROGRAM, w.address, "serve"], plain=True)
    check(plain.has_said("port", w.until), "it does not listen")
    port = int(plain.text().split()[1])
    client = run(w, "use both * * *:*\n", "hold", str(port))
    mine = shown_of(w, client)
    own = int(client.text().split()[1])
    check(mine["fallbacks"] == {"nobody hears SDP there": 1}, f"fallbacks: {mine}")
    check([(c["transport"], c["own"], c["peer"]) for c in mine["connections"]] == [("tcp", f"{w.address}:{own}", f"{w.address}:{port}")],
          f"its client is {own}: {mine}")
    return []


@case("shown.taken_port")
def taken_port(w):
    """Where another socket has a listener's port of SDP, the log says which, and what becomes of it."""
    if w.way == "tcp":
        return []
    process = run(w, "use both * * *:*\nlog min-level 3\n", "taken")
    w.ends(process)
    said = process.error_text()
    told = re.search(r"listen at \S+:(\d+): TCP, for its port of SDP, (\d+), cannot be had yet \(Address already in use\)", said)
    # spec/sdp 3.3: of ports that the system chooses it is 30000 below.
    check(told and int(told[1]) - int(told[2]) == 30_000, f"it is not told of: {said}")
    check(re.search(rf"listen at \S+:{told[1]}: SDP as well", said), f"it is not heard later: {said}")
    return []


@case("shown.whole_messages")
def whole_messages(w):
    """A send of 64 KB that is copied is two messages: nothing is left over for a third one."""
    if w.way == "tcp":
        return []
    w.environment["WEFT_SDP_ZCOPY_THRESH"] = "0"
    mine = shown_of(w, run(w, "use both * * *:*\n", "whole"))
    client = next(c for c in mine["connections"] if c["role"] == "client")
    check(client["counters"]["bytes_sent"] == WHOLE_SENDS << 16, f"bytes: {client}")
    # Besides, some that give the server its credits.
    check(2 * WHOLE_SENDS <= client["counters"]["messages_sent"] < 2 * WHOLE_SENDS + WHOLE_SENDS // 2, f"messages: {client}")
    return []


@case("shown.server_by_sdp_alone")
def server_by_sdp_alone(w):
    """With `use sdp` a server takes no client of TCP, and goes on to wait."""
    if w.way == "tcp":
        return []
    process = run(w, "use sdp server * *:*\n", "serve")
    check(process.has_said("port", w.until), "it does not listen")
    port = process.text().split()[1]
    plain = w.start(0, ["python3", "-B", PROGRAM, w.address, "ask", port], plain=True)
    check(plain.wait(w.until) != 0, "a client of TCP was served")
    asked = w.start(0, ["python3", "-B", PROGRAM, w.address, "ask", port])
    w.ends(asked)
    w.ends(process)
    return []


@case("shown.threshold")
def threshold(w):
    """SDP_ZCOPY_THRESH takes what ib_sdp took, and -1 for what the environment says."""
    if w.way == "tcp":
        return []
    w.environment["WEFT_SDP_ZCOPY_THRESH"] = "70000"
    process = run(w, "use both * * *:*\n", "threshold")
    w.ends(process)
    wanted = ["4096 4096", "1048576 1048576", "0 0", "4095 Invalid argument", "1048577 Invalid argument", "-2 Invalid argument", "-1 70000"]
    check(process.text().splitlines() == wanted, f"it is {process.text()}")
    return []
