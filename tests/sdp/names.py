#!/usr/bin/env python3
"""Prints who a server's processes say that they talk to: the one that accepts, its children, the program that follows by exec, and workers that
share a listener.

  names.py ADDRESS PORT      each line is the same by TCP and by SDP
"""

import collections
import os
import signal
import socket
import subprocess
import sys

ROUNDS = 120
WORKERS = 4
MESSAGE = 200

# What a program is that has the connection as its standard input.
CHILD = """
import socket
s = socket.socket(fileno=0)
print(s.family.name, s.getpeername(), s.getsockname())
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL))
"""


def all_of(connection):
    got = b""
    while more := connection.recv(MESSAGE):
        got += more
    return got.decode()


def visit(server):
    """What the server answers to a client that says its own name."""
    with socket.create_connection(server) as client:
        client.sendall(repr(client.getsockname()).encode())
        return all_of(client)


def in_child(work):
    child = os.fork()
    if child == 0:
        work()
        sys.stdout.flush()
        os._exit(0)
    return child


def compare(listener, server):
    """Accepts one connection, and whether all names are what its client said."""
    connection, peer = listener.accept()
    said = connection.recv(MESSAGE).decode()
    names = [repr(peer), repr(connection.getpeername())]
    return connection, said, names == [said, said] and connection.getsockname() == server


def serve(listener, server, number):
    while True:
        connection, said, good = compare(listener, server)
        connection.sendall(f"worker {number}: {'good' if good else said}".encode())
        connection.close()


def main():
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=128)
    server = listener.getsockname()

    client = in_child(lambda: print("client heard:", visit(server)))
    connection, said, good = compare(listener, server)
    print("server:", good)
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=connection.fileno(), stdout=subprocess.PIPE, text=True) as other:
        told = other.stdout.read().splitlines()
    print("other program:", told == [f"AF_INET {said} {server}", str(socket.IPPROTO_TCP)])
    child = in_child(lambda: print("child:", repr(connection.getpeername()) == said, connection.getsockname() == server))
    os.waitpid(child, 0)
    connection.sendall(b"served")
    connection.close()
    os.waitpid(client, 0)

    workers = [in_child(lambda n=n: serve(listener, server, n)) for n in range(WORKERS)]
    heard = collections.Counter(visit(server).partition(": ")[2] for _ in range(ROUNDS))
    print("workers:", dict(heard))
    for worker in workers:
        os.kill(worker, signal.SIGKILL)


if __name__ == "__main__":
    main()
