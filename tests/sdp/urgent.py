#!/usr/bin/env python3
"""Urgent data of a TCP connection, call by call: one line for each, with what the receiver's socket shows behind it, so that two runs can
be compared.

  urgent.py ADDRESS [--expect FILE] [--script SCRIPT]

A script is a list of calls, of the sender's: s3 sends 3 bytes, u3 sends 3 bytes with MSG_OOB, e shuts its half, x resets; and of the
receiver's: r3 receives at most 3 bytes, w3 with MSG_WAITALL, p3 with MSG_PEEK, b3 with both, t3 with MSG_TRUNC, v3 by readv(2) into pieces of 2
bytes, o1 with MSG_OOB, O1 with MSG_OOB and MSG_PEEK, m1 by recvmsg(2) with MSG_OOB, i1 and i0 set SO_OOBINLINE, S shuts its half for reading.
"""

import argparse
import ctypes
import fcntl
import os
import select
import socket
import struct
import sys
import termios
import time

import readiness

SIOCATMARK = 0x8905
ASKED = select.POLLIN | select.POLLPRI | select.POLLRDNORM | select.POLLRDBAND | select.POLLRDHUP
NAMES = {select.POLLIN: "IN", select.POLLPRI: "PRI", select.POLLRDNORM: "RDNORM", select.POLLRDBAND: "RDBAND", select.POLLERR: "ERR",
         select.POLLHUP: "HUP", select.POLLRDHUP: "RDHUP"}
LIBC = ctypes.CDLL(None, use_errno=True)

SCRIPTS = [
    # One urgent byte, and where it stands.
    "u1 o1 o1 r9", "u1 r9 o1 r9", "u1 O1 O1 o1 O1", "u1 m1 m1", "u1 o9 o1", "u1 p9 o1 p9 r9", "u1 w9", "u1 t9 o1", "u1 e r9 r9 o1", "u1 S o1",
    "s3 u1 r9 r9 o1", "s3 u1 r9 o1 r9", "s3 u1 o1 r2 r9 r9", "s3 u1 p9 r9 p9 r9", "s3 u1 w9 w9", "s3 u1 b9 b9 r9 b9", "s3 u1 t9 t9", "s3 u1 v9 v9", "s3 u1 r3 r1",
    "s3 u1 r2 r2 o1", "s3 u1 x", "u1 x o1", "s3 u1 o1 x", "s3 u1 e r9 o1 r9",
    "u1 s3 r2 o1 r9", "u1 s3 p9 o1 r9", "u1 s3 w3", "u1 s3 r9 o1", "u1 s3 o1 p2 r2 r9", "u1 s3 t2 r9", "u1 s3 v9 o1",
    "s3 u1 s3 r9 o1 r9", "s3 u1 s3 r9 r9 o1", "s3 u1 s3 o1 r9 r9", "s3 u1 s3 w9 w9", "s3 u1 s3 p9 r9 p9 r9", "s3 u1 s3 b9 r9 b2 r9", "s3 u1 s3 v9 v9", "s3 u1 s3 t9 t9", "s3 u1 s3 r2 r2 r2 r2",
    "s3 u1 s3 e r9 r9 r9",
    # Several bytes with the flag: the last is urgent.
    "u5 o1 r9 r9", "s2 u5 s2 r9 o1 r9", "s2 u5 s2 r9 r9",
    # A newer one, which makes ordinary data of the older.
    "u1 u1 o1 r9 o1", "u1 u1 r9 r9 o1", "u1 o1 u1 o1 r9", "u1 o1 u1 r9 r9", "s2 u1 s2 u1 s2 r9 r9 r9 o1", "s2 u1 s2 u1 s2 r9 o1 r9", "s2 u1 o1 s2 u1 s2 r9 o1 r9",
    "s2 u1 r9 u1 r9 o1", "s2 u1 r9 o1 u1 r9 o1", "s2 u1 r9 s2 u1 r9 r9 o1", "s2 u1 r9 o1 s2 u1 r9 o1 r9", "u1 r9 u1 o1 r9", "u1 s1 u1 s1 r9 r9",
    # In line.
    "i1 u1 o1 r9 o1", "i1 s3 u1 r9 r9 r9", "i1 s3 u1 s3 r9 r9", "i1 s3 u1 s3 r3 r1 r9", "i1 u1 s3 r9", "i1 s3 u1 s3 p9 w9 p9 r9", "i1 s3 u1 s3 b9 r9 b4 r9", "i1 s2 u1 s2 u1 s2 r9 r9 r9",
    "i1 u1 u1 r9 r9", "i1 s2 u1 r9 u1 r9 r9", "i1 s3 u1 e r9 r9 r9", "s1 u1 i1 r9 r9", "s3 u1 i1 r9 i0 r9 o1", "i1 s3 u1 r9 i0 o1 r9", "s3 u1 o1 i1 r9 r9", "i1 u1 i0 s3 r9",
    # None at all.
    "o1 r9", "s3 o1 m1 r9", "i1 s3 o1 r9", "e o1 r9", "s3 e o1 r9 o1", "x o1",
]


class Pattern:
    """Bytes that differ from place to place."""

    def __init__(self):
        self.at = 0

    def take(self, count):
        taken = bytes(97 + (self.at + n) % 26 for n in range(count))
        self.at += count
        return taken


def mask_of(mask):
    return "|".join(name for bit, name in NAMES.items() if mask & bit) or "-"


def number(sock, request):
    try:
        return struct.unpack("i", fcntl.ioctl(sock, request, bytes(4)))[0]
    except OSError as e:
        return f"errno {e.errno}"


class Shown:
    """What a socket says without being read from."""

    def __init__(self, sock):
        self.sock = sock
        self.poll = select.poll()
        self.poll.register(sock, ASKED)
        self.readers = select.poll()
        self.readers.register(sock, select.POLLIN)
        self.epolls = {}
        for name, asked in (("level", ASKED), ("in", select.EPOLLIN), ("pri", select.EPOLLPRI)):
            self.epolls[name] = select.epoll()
            self.epolls[name].register(sock, asked)

    def by_select(self):
        found = select.select([self.sock], [], [self.sock], 0)
        alone = select.select([], [], [self.sock], 0)[2], select.select([self.sock], [], [], 0)[0]
        return "".join(sign for sign, part in zip("rwx", found) if part) + "/" + "".join(sign for sign, part in zip("xr", alone) if part)

    def now(self):
        polled = [mask_of(next((mask for _, mask in p.poll(0)), 0)) for p in (self.poll, self.readers)]
        epolls = " ".join(f"{name} {mask_of(next((mask for _, mask in e.poll(0)), 0))}" for name, e in self.epolls.items())
        marks = f"mark {number(self.sock, SIOCATMARK)} {LIBC.sockatmark(self.sock.fileno())}"
        return f"poll {' '.join(polled)} epoll {epolls} select {self.by_select()} inq {number(self.sock, termios.FIONREAD)} {marks}"

    def close(self):
        for e in self.epolls.values():
            e.close()


def receive(sock, call, count):
    flags = {"r": 0, "w": socket.MSG_WAITALL, "p": socket.MSG_PEEK, "b": socket.MSG_PEEK | socket.MSG_WAITALL, "o": socket.MSG_OOB,
             "O": socket.MSG_OOB | socket.MSG_PEEK, "t": socket.MSG_TRUNC}
    if call == "m":
        got, _, found, _ = sock.recvmsg(count, 0, socket.MSG_OOB)
        return f"{got} flags {found}"
    if call == "v":
        pieces = [bytearray(2) for _ in range((count + 1) // 2)]
        got = os.readv(sock.fileno(), pieces)
        return b"".join(pieces)[:got]
    if call == "t":
        # The length alone: the bytes are not written.
        return len(sock.recv(count, flags[call]))
    return sock.recv(count, flags[call])


def play(sender, receiver, call, count, pattern):
    if call in "su":
        return sender.send(pattern.take(count), socket.MSG_OOB if call == "u" else 0)
    if call == "e":
        return sender.shutdown(socket.SHUT_WR)
    if call == "S":
        return receiver.shutdown(socket.SHUT_RD)
    if call == "x":
        return readiness.reset(sender)
    if call == "i":
        return receiver.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, count)
    try:
        return receive(receiver, call, count)
    except OSError as e:
        return f"errno {e.errno}"


def run(log, address, script, side):
    client, server = readiness.pair(address)
    sender, receiver = (client, server) if side == "server" else (server, client)
    shown, pattern = Shown(receiver), Pattern()
    for n, word in enumerate(script.split()):
        result = play(sender, receiver, word[0], int(word[1:] or 0), pattern)
        # The next call comes behind what this one brings about.
        log.line(f"{side} {script} [{n} {word}] {result}", shown.now)
    shown.close()
    client.close()
    server.close()


class Log:
    """Lines, and what an earlier run has in their place, which each waits for."""

    def __init__(self, expected):
        self.expected = iter(expected)

    def line(self, prefix, sample):
        wanted = next(self.expected, "")
        until = time.monotonic() + readiness.SECONDS
        time.sleep(readiness.SETTLED)
        text = f"{prefix}: {sample()}"
        while text != wanted and wanted.startswith(f"{prefix}: ") and time.monotonic() < until:
            time.sleep(0.001)
            text = f"{prefix}: {sample()}"
        print(text, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--expect")
    parser.add_argument("--script", action="append")
    options = parser.parse_args()
    expected = []
    if options.expect:
        with open(options.expect, encoding="ascii") as f:
            expected = [line.rstrip("\n") for line in f if ": " in line]
    log = Log(expected)
    for n, script in enumerate(options.script or SCRIPTS):
        run(log, options.address, script, ("server", "client")[n % 2])


if __name__ == "__main__":
    sys.exit(main())
