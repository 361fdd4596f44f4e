#!/usr/bin/env python3
"""How many UDP sockets ten listeners of a program take, when it has one already. Prints the same by TCP and by SDP.

  listeners.py ADDRESS
"""

import os
import select
import socket
import sys


def udp_sockets():
    """Those of this process, the library's included."""
    inodes = set()
    for table in ("udp", "udp6"):
        with open(f"/proc/self/net/{table}") as lines:
            inodes |= {line.split()[9] for line in list(lines)[1:]}
    own = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            own.add(target[8:-1])
    return inodes & own


def listener(address):
    s = socket.socket()
    s.bind((address, 0))
    s.listen()
    wait = select.poll()
    wait.register(s, select.POLLIN)
    wait.poll(0)
    return s


def main():
    listeners = [listener(sys.argv[1])]
    before = udp_sockets()
    listeners += [listener(sys.argv[1]) for _ in range(10)]
    print("UDP sockets of ten more listeners:", len(udp_sockets() - before))


if __name__ == "__main__":
    main()
