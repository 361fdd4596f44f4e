#!/usr/bin/env python3
"""Random calls on TCP connections, the same for the same seed: one line for each call and for what both ends look like before it, so
that two runs can be compared.

  random_calls.py ADDRESS [--expect FILE] [--seeds FIRST LAST] [--steps N]

With FILE, an earlier run's output, each state is waited for up to SECONDS. So little is under way at a time that no buffer is full:
how large those are is not compared.
"""

import argparse
import array
import fcntl
import os
import random
import select
import socket
import struct
import sys
import termios
import time

from calls import outcome, pair
import readiness
from readiness import Log, words

MOST_UNDER_WAY = 6000
TCP_CLOSE = 7  # the state, as TCP_INFO has it
POLLED = select.EPOLLIN | select.EPOLLPRI | select.EPOLLOUT | select.EPOLLRDHUP


def readable_bytes(sock):
    count = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), termios.FIONREAD, count)
    return count[0]


class End:
    """One end of a connection, by any of its descriptors."""

    def __init__(self, sock):
        self.sock = sock
        self.under_way = 0  # bytes that the peer has sent and this end has not read
        self.written = 0  # the next byte's number

    def state(self):
        if self.sock.fileno() < 0:
            return "closed"
        return f"{words(polled(self, POLLED))} {outcome(readable_bytes, self.sock)}{' over' if over(self) else ''}"


class Connection:
    def __init__(self, address, rng):
        self.rng = rng
        self.ends = [End(s) for s in pair(address)]
        for end in self.ends:
            end.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.sock.settimeout(None)

    def state(self):
        return "; ".join(end.state() for end in self.ends)

    def settle(self):
        """Without an earlier run to be compared with: what was sent has come, though nobody waits for it."""
        until = time.monotonic() + 0.01
        while time.monotonic() < until and any(
                end.sock.fileno() >= 0 and outcome(readable_bytes, end.sock) != str(end.under_way) for end in self.ends):
            time.sleep(0.001)

    def bytes_of(self, end, count):
        first = end.written
        return bytes((i * 7 + (i >> 8)) & 0xff for i in range(first, first + count))

    # --- calls: each returns its words and what came of them

    def send(self, end, peer):
        n = self.rng.choice((1, 2, 13, 100, 700, 2000))
        if peer.under_way + n > MOST_UNDER_WAY:
            return None
        content = self.bytes_of(end, n)
        way = self.rng.choice(("send", "write", "writev", "sendmsg", "sendall", "dontwait", "more"))
        cut = self.rng.randrange(n)
        parts = [content[:cut], content[cut:]]
        result = outcome({
            "send": lambda: end.sock.send(content),
            "write": lambda: os.write(end.sock.fileno(), content),
            "writev": lambda: os.writev(end.sock.fileno(), parts),
            "sendmsg": lambda: end.sock.sendmsg(parts),
            "sendall": lambda: end.sock.sendall(content),
            "dontwait": lambda: end.sock.send(content, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL),
            "more": lambda: end.sock.send(content, socket.MSG_MORE),
        }[way])
        if result in (str(n), "None"):
            end.written += n
            if peer.sock.fileno() >= 0:
                peer.under_way += n
        if way == "more":  # it may be held back until something follows it, or this is said
            end.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return f"{way} {n}", result

    def receive(self, end, peer):
        n = self.rng.choice((1, 5, 64, 1000, 4096))
        way = self.rng.choice(("recv", "read", "readv", "recvmsg", "into", "peek", "all", "dontwait", "trunc"))
        waits = end.under_way == 0 and not ended(end)
        if way == "all" and end.under_way < n and not ended(end):
            return None
        if waits and way != "dontwait" and end.sock.gettimeout() is None:
            return None
        first, second = bytearray(n // 2), bytearray(n - n // 2)
        place = bytearray(n)

        def filled(count):
            return bytes(place[:count])

        def scattered(count):
            return bytes((first + second)[:count])

        def message():
            content, _, flags, _ = end.sock.recvmsg(n)
            return content + bytes([flags & socket.MSG_TRUNC])

        calls = {
            "recv": lambda: end.sock.recv(n),
            "read": lambda: os.read(end.sock.fileno(), n),
            "readv": lambda: scattered(os.readv(end.sock.fileno(), [first, second])),
            "recvmsg": message,
            "into": lambda: filled(end.sock.recv_into(place)),
            "peek": lambda: end.sock.recv(n, socket.MSG_PEEK),
            "all": lambda: end.sock.recv(n, socket.MSG_WAITALL),
            "dontwait": lambda: end.sock.recv(n, socket.MSG_DONTWAIT),
            "trunc": lambda: end.sock.recv_into(place, n, socket.MSG_TRUNC),
        }
        try:
            result = calls[way]()
        except OSError as e:
            return f"{way} {n}", outcome(raiser(e))
        count = result if isinstance(result, int) else len(result) - (way == "recvmsg")
        if way != "peek":
            end.under_way -= count
        return f"{way} {n}", f"{count} {result[-8:].hex() if isinstance(result, bytes) else ''}"

    def shut(self, end, peer):
        how = self.rng.choices((socket.SHUT_WR, socket.SHUT_RD, socket.SHUT_RDWR), weights=(3, 1, 1))[0]
        return f"shutdown {how}", outcome(end.sock.shutdown, how)

    def option(self, end, peer):
        level, name, value = self.rng.choice((
            (socket.SOL_SOCKET, socket.SO_ERROR, None),
            (socket.SOL_SOCKET, socket.SO_TYPE, None),
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1),
            (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1),
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77),
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30000),
            (socket.IPPROTO_TCP, 12345, None),
        ))
        done = "" if value is None else outcome(end.sock.setsockopt, level, name, value) + " "
        return f"option {level} {int(name)}", done + outcome(end.sock.getsockopt, level, name)

    def blocking(self, end, peer):
        seconds = self.rng.choice((None, 0, 0.1))
        return f"timeout {seconds}", outcome(end.sock.settimeout, seconds)

    def duplicate(self, end, peer):
        other = end.sock.dup()
        other.settimeout(end.sock.gettimeout())
        result = outcome(end.sock.close)
        end.sock = other
        return "dup and close", result

    def replace(self, end, peer):
        """dup2 over a file, and on from there."""
        number = os.open("/dev/null", os.O_RDONLY)
        seconds = end.sock.gettimeout()
        result = outcome(os.dup2, end.sock.fileno(), number) == str(number)
        end.sock.close()
        end.sock = socket.socket(fileno=number)
        end.sock.settimeout(seconds)
        return "dup2", repr(result)

    def names(self, end, peer):
        return "names", f"{outcome(end.sock.getpeername) == outcome(peer.sock.getsockname)} {end.sock.family!r}"

    def close(self, end, peer):
        abort = self.rng.random() < 0.3
        if abort:
            end.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        result = outcome(end.sock.close)
        return "abort" if abort else "close", result

    def call(self):
        open_ends = [i for i in (0, 1) if self.ends[i].sock.fileno() >= 0]
        if not open_ends:
            return None
        i = self.rng.choice(open_ends)
        kinds = (self.send, self.receive, self.shut, self.option, self.blocking, self.duplicate, self.replace, self.names, self.close)
        closes = 20 if over(self.ends[i]) else 0.7
        kind = self.rng.choices(kinds, weights=(30, 40, 1.5, 8, 6, 2, 2, 2, closes))[0]
        if kind == self.names and len(open_ends) < 2:
            return None
        done = kind(self.ends[i], self.ends[1 - i])
        return done and (f"{'ab'[i]} {done[0]}", done[1])


def polled(end, wanted):
    poll = select.poll()
    poll.register(end.sock, wanted)
    return next((mask for _, mask in poll.poll(0)), 0)


def over(end):
    """Both sides have ended, or it was reset."""
    return end.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE


def ended(end):
    return polled(end, select.EPOLLRDHUP) != 0


def raiser(error):
    def again():
        raise error
    return again


class Differs(Exception):
    pass


def say(log, text):
    print(text, flush=True)
    if log.expected and log.expected[log.count : log.count + 1] != [text]:
        raise Differs
    log.count += 1


def run(log, address, seed, steps):
    rng = random.Random(seed)
    connection = Connection(address, rng)
    for step in range(steps):
        label = f"{seed}.{step}"
        if not log.expected:
            connection.settle()
        log.line(f"{label} state", connection.state, lambda: connection.state() + " ")
        if log.expected and [log.seen] != log.expected[log.count - 1 : log.count]:
            raise Differs
        done = connection.call()
        if done is None:
            say(log, f"{label} none")
            if all(end.sock.fileno() < 0 for end in connection.ends):
                connection = Connection(address, rng)
            continue
        say(log, f"{label} {done[0]}: {done[1]}")
    for end in connection.ends:
        end.sock.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--expect")
    parser.add_argument("--seeds", nargs=2, type=int, default=(1, 10))
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    expected = []
    if options.expect:
        with open(options.expect, encoding="utf-8") as f:
            expected = [line for line in f.read().splitlines() if line]
    readiness.SETTLED = 0.002  # each state is waited for anyway
    log = Log(expected)
    for seed in range(options.seeds[0], options.seeds[1] + 1):
        begin = next((i for i, line in enumerate(expected) if line.startswith(f"{seed}.0 ")), 0)
        log.count = begin
        try:
            run(log, options.address, seed, options.steps)
        except Differs:
            print(f"{seed} differs", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
