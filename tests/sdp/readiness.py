#!/usr/bin/env python3
"""What select, poll and epoll say of a TCP connection in each state that it can be brought to: one line for each step, so that two
runs can be compared.

  readiness.py ADDRESS [--expect FILE]

With FILE, an earlier run's output, each step waits up to SECONDS until it sees what is written there; and in any case SETTLED seconds
for what may still come.
"""

import argparse
import select
import socket
import struct
import sys
import time

SECONDS = 1.5
SETTLED = 0.02
NAMES = {select.EPOLLIN: "IN", select.EPOLLPRI: "PRI", select.EPOLLOUT: "OUT", select.EPOLLERR: "ERR", select.EPOLLHUP: "HUP", select.EPOLLRDHUP: "RDHUP"}
ALL = select.EPOLLIN | select.EPOLLPRI | select.EPOLLOUT | select.EPOLLRDHUP
MODES = {"level": 0, "edge": select.EPOLLET, "oneshot": select.EPOLLONESHOT, "edge+oneshot": select.EPOLLET | select.EPOLLONESHOT}


def words(mask):
    return "|".join(name for bit, name in NAMES.items() if mask & bit) or "-"


class Log:
    """Lines, and what an earlier run has in their place."""

    def __init__(self, expected):
        self.expected = expected
        self.count = 0
        self.seen = ""

    def line(self, prefix, level, sample):
        """Prints what `sample()` comes to say. It is not asked before `level()` is as expected: a oneshot that is asked too early says
        what was there before, and nothing more."""
        wanted = self.expected[self.count] if self.count < len(self.expected) else ""
        self.count += 1
        until = time.monotonic() + SECONDS
        while not wanted.startswith(f"{prefix}: {level()} ") and wanted and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(SETTLED)
        text = f"{prefix}: {sample()}"
        while text != wanted and wanted and time.monotonic() < until:
            time.sleep(0.001)
            text = f"{prefix}: {sample()}"
        self.seen = text
        print(text, flush=True)


class Watched:
    """A socket under each way to wait."""

    def __init__(self, log, sock):
        self.log, self.sock = log, sock
        self.edges = dict.fromkeys(MODES, 0)
        self.epolls = {}
        for name, flags in MODES.items():
            self.epolls[name] = select.epoll()
            self.epolls[name].register(sock, ALL | flags)
        self.poll = select.poll()
        self.poll.register(sock, ALL)

    def gathered(self, name):
        """For edges: all bits that were seen in this step, since one change may come as one or two."""
        for _, mask in self.epolls[name].poll(0):
            self.edges[name] |= mask
        return words(self.edges[name])

    def by_select(self):
        found = select.select([self.sock], [self.sock], [self.sock], 0)
        return "".join(sign for sign, part in zip("rwx", found) if part) or "-"

    def level(self):
        return "level " + words(next((mask for _, mask in self.epolls["level"].poll(0)), 0))

    def sample(self):
        poll = words(next((mask for _, mask in self.poll.poll(0)), 0))
        edges = " ".join(f"{name} {self.gathered(name)}" for name in MODES if name != "level")
        return f"{self.level()} poll {poll} select {self.by_select()} {edges}"

    def step(self, label):
        self.edges = dict.fromkeys(MODES, 0)
        self.log.line(label, self.level, self.sample)

    def rearm(self, label):
        """MOD says again what is there, also with edges."""
        for name, flags in MODES.items():
            self.epolls[name].modify(self.sock, ALL | flags)
        self.step(f"{label} rearmed")

    def close(self):
        for e in self.epolls.values():
            e.close()


def server_at(address):
    """A listener that somebody waits at: SDP begins there with the first wait."""
    listener = socket.create_server((address, 0))
    select.select([listener], [], [], 0)
    return listener


def pair(address):
    with server_at(address) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        server, _ = listener.accept()
    for s in (client, server):
        s.setblocking(False)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client, server


def fill(sock):
    """Until it takes no more for a while."""
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        try:
            if sock.send(bytes(65536)) > 0:
                until = time.monotonic() + 0.3
        except BlockingIOError:
            time.sleep(0.01)


def drain(sock, first=SECONDS):
    """All that comes, until nothing has for a while. Returns whether the end was seen, or the error."""
    until = time.monotonic() + first
    while time.monotonic() < until:
        try:
            if not sock.recv(1 << 20):
                return "end"
            until = time.monotonic() + 0.3
        except BlockingIOError:
            time.sleep(0.005)
        except OSError as e:
            return type(e).__name__
    return "empty"


def take(sock, size):
    """So many bytes, which are on their way."""
    got, until = b"", time.monotonic() + SECONDS
    while len(got) < size and time.monotonic() < until:
        try:
            part = sock.recv(size - len(got))
            if not part:
                break
            got += part
        except BlockingIOError:
            time.sleep(0.002)
    return got


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def data_comes(a, b, see):
    see("idle")
    b.send(b"one")
    see("data")
    b.send(b"two")
    see("more data")
    take(a, 2)
    see("part read")
    take(a, 4)
    see("all read")
    b.send(b"x")
    see("data again")


def no_room(a, b, see):
    fill(a)
    see("full")
    drain(b)
    see("drained")


def peer_half_closes(a, b, see):
    b.send(b"last")
    b.shutdown(socket.SHUT_WR)
    see("end behind data")
    take(a, 4)
    see("data read")
    take(a, 1)
    see("end read")
    a.send(b"x")
    see("sent behind its end")
    a.shutdown(socket.SHUT_WR)
    see("both ended")


def own_half_closes(a, b, see):
    a.shutdown(socket.SHUT_WR)
    see("own half")
    b.send(b"x")
    see("data into the other")
    take(a, 1)
    b.shutdown(socket.SHUT_WR)
    see("peer's half")


def reading_shut(a, b, see):
    a.shutdown(socket.SHUT_RD)
    see("reading shut")


def both_shut(a, b, see):
    a.shutdown(socket.SHUT_RDWR)
    see("both shut")


def peer_closes(a, b, see):
    b.close()
    see("closed")
    take(a, 1)
    see("end read")


def peer_resets(a, b, see):
    reset(b)
    see("reset")
    print(f"error {a.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)}")
    see("error taken")


def peer_resets_behind_data(a, b, see):
    b.send(b"data")
    see("data")
    reset(b)
    see("reset")


def closed_unread(a, b, see):
    """A peer that closes with bytes unread resets."""
    a.send(b"unread")
    see("sent")
    until = time.monotonic() + SECONDS
    while not select.select([b], [], [], 0)[0] and time.monotonic() < until:
        time.sleep(0.002)
    b.close()
    see("closed")


def urgent(a, b, see):
    b.send(b"!", socket.MSG_OOB)
    see("urgent")
    print("urgent", a.recv(1, socket.MSG_OOB))
    see("urgent read")


SCENES = [data_comes, no_room, peer_half_closes, own_half_closes, reading_shut, both_shut, peer_closes, peer_resets, peer_resets_behind_data,
          closed_unread, urgent]


def scene(log, play, address, side, rearm):
    client, server = pair(address)
    a, b = (client, server) if side == "client" else (server, client)
    watched = Watched(log, a)
    title = f"{play.__name__} {side}"

    def see(label):
        watched.step(f"{title} {label}")
        if rearm:
            watched.rearm(f"{title} {label}")

    try:
        play(a, b, see)
    except OSError as e:
        print(f"{title}: {type(e).__name__} {e.errno}")
    watched.close()
    a.close()
    b.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--expect")
    parser.add_argument("--scene", action="append")
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args()
    expected = []
    if options.expect:
        with open(options.expect, encoding="ascii") as f:
            expected = [line.rstrip("\n") for line in f if ": " in line and not line.startswith(("error", "urgent "))]
    log = Log(expected)
    for play in SCENES:
        if options.scene and play.__name__ not in options.scene or play.__name__ in options.without:
            continue
        for side in ("client", "server"):
            for rearm in (False, True):
                scene(log, play, options.address, side, rearm)


if __name__ == "__main__":
    sys.exit(main())
