#!/usr/bin/env python3
"""Talks the text protocol to memcached from eight threads at a time, and prints one line for each: what it read."""

import hashlib
import random
import socket
import sys
import threading

ROUNDS = 60
SIZES = (1, 100, 4096, 70_000, 500_000)


def talk(number, address, out):
    draw = random.Random(number)
    read = hashlib.sha256()
    with socket.create_connection(address, timeout=30) as s, s.makefile("rb") as replies:
        for i in range(ROUNDS):
            value = draw.randbytes(draw.choice(SIZES))
            key = f"key-{number}-{i % 7}"
            s.sendall(f"set {key} 0 0 {len(value)}\r\n".encode() + value + b"\r\n")
            read.update(replies.readline())
            s.sendall(f"get {key} none-{number}\r\n".encode())
            first = replies.readline()
            read.update(first + replies.read(int(first.split()[3]) + 2) + replies.readline())
    out[number] = read.hexdigest()[:16]


def main():
    address = sys.argv[1], int(sys.argv[2])
    out = {}
    threads = [threading.Thread(target=talk, args=(i, address, out)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("\n".join(f"{i}: {out.get(i)}" for i in range(8)))


if __name__ == "__main__":
    main()
