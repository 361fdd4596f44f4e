#!/usr/bin/env python3
"""Makes connections for shown.py: shown_program.py ADDRESS ways|traffic|deferred|whole|twice|later|threshold|taken|serve|ask|hold [PORT]"""

import select
import socket
import sys
import time


def server_at(address):
    listener = socket.create_server((address, 0))
    select.select([listener], [], [], 0)
    return listener


def pair(address):
    listener = server_at(address)
    client = socket.create_connection(listener.getsockname()[:2])
    return client, listener.accept()[0]


def deferred(address):
    """Accepts two clients that send nothing, where the kernel would hold them back until they do."""
    listener = server_at(address)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 600)
    for _ in range(2):
        with socket.create_connection(listener.getsockname()[:2]), listener.accept()[0]:
            print("accepted")


def refused(address, port=1):
    try:
        socket.create_connection((address, port))
    except OSError:
        pass


def refused_twice(address):
    refused(address)
    refused(address)


SDP_ZCOPY_THRESH = 80
WHOLE_SENDS = 20


def threshold(address):
    """What the option is after each value, or the error that it brings."""
    client, _ = pair(address)
    for value in (4096, 1 << 20, 0, 4095, (1 << 20) + 1, -2, -1):
        try:
            client.setsockopt(socket.IPPROTO_TCP, SDP_ZCOPY_THRESH, value)
            print(value, client.getsockopt(socket.IPPROTO_TCP, SDP_ZCOPY_THRESH))
        except OSError as e:
            print(value, e.strerror)


def found_later(address):
    """Connects until it is by SDP to a server that comes after the first time."""
    listener = socket.socket()
    listener.bind((address, 0))
    refused(address, listener.getsockname()[1])
    listener.listen()
    select.select([listener], [], [], 0)
    while is_tcp(listener):
        time.sleep(0.01)


def port_taken(address):
    """Listens while another socket has the port that SDP would have, until SDP is heard at it."""
    listener, other = socket.socket(), socket.socket()
    listener.bind((address, 0))
    other.bind((address, listener.getsockname()[1] - 30_000))
    listener.listen()
    select.select([listener], [], [], 0)
    other.close()
    while is_tcp(listener):
        time.sleep(0.01)


def is_tcp(listener):
    """Of a new connection."""
    with socket.create_connection(listener.getsockname()) as client:
        listener.accept()[0].close()
        try:
            client.getsockopt(socket.IPPROTO_TCP, SDP_ZCOPY_THRESH)
        except OSError:  # TCP does not know it
            return True
        return False


def main():
    address, what = sys.argv[1:3]
    if what == "ways":
        refused(address)
        pair(address)
    elif what == "traffic":
        refused(address)
        client, server = pair(address)
        client.sendall(bytes(i * 31 >> 3 & 255 for i in range(100_000)))
        server.recv(100_000, socket.MSG_WAITALL)
        print("ready", flush=True)
        time.sleep(60)
    elif what == "whole":
        client, server = pair(address)
        for _ in range(WHOLE_SENDS):
            client.sendall(bytes(i * 31 >> 3 & 255 for i in range(65536)))
            server.recv(65536, socket.MSG_WAITALL)
        print("ready", flush=True)
        time.sleep(60)
    elif what == "twice":
        # A listener at which nobody has waited hears no SDP.
        refused_twice(address)
    elif what == "later":
        found_later(address)
    elif what == "hold":
        with socket.create_connection((address, int(sys.argv[3]))) as client:
            print("ready", client.getsockname()[1], flush=True)
            time.sleep(60)
    elif what == "taken":
        port_taken(address)
    elif what == "deferred":
        deferred(address)
    elif what == "threshold":
        threshold(address)
    elif what == "serve":
        listener = server_at(address)
        print("port", listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
        connection.sendall(b"served")
    else:
        with socket.create_connection((address, int(sys.argv[3]))) as s:
            return 0 if s.recv(10) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
