#!/usr/bin/env python3
"""Connections over a path that is cut for a while. Prints the same by TCP and by SDP.

  cut_path.py serve ADDRESS PORT         sends back what it is sent, until it is ended
  cut_path.py connect ADDRESS PORT       three connections; asks on stdout for the path to be cut and mended, and hears on stdin
                                         that it was
"""

import select
import socket
import sys
import threading


def echo(connection):
    try:
        while data := connection.recv(65536):
            connection.sendall(data)
    except OSError:
        pass  # the path was cut


def serve(address, port):
    with socket.create_server((address, port)) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=echo, args=(connection,), daemon=True).start()


def asked(connection, data):
    connection.sendall(data)
    got = bytearray()
    while len(got) < len(data):
        more = connection.recv(len(data) - len(got))
        if not more:
            return "an end"
        got += more
    return "the same" if got == data else "something else"


def until_over(connection):
    """Waits until a connection that is silent is over. By SDP an end may be all that is told of it (docs/design/35)."""
    select.select([connection], [], [])
    try:
        return "data" if connection.recv(1) else "ended"
    except OSError:
        return "ended"


def set_tcp(connection, **options):
    for name, value in options.items():
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def path(state):
    """Whoever has started this one makes it so."""
    print(f"the path is to be {state}", flush=True)
    if sys.stdin.readline() != f"{state}\n":
        sys.exit(1)


def connect(address, port):
    patient, alive, written = (socket.create_connection((address, port)) for _ in range(3))
    data = bytes((i * 7 + (i >> 8)) & 0xff for i in range(3000))
    for name, connection in (("patient", patient), ("alive", alive), ("written", written)):
        print(name, "has", asked(connection, data))
    alive.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    set_tcp(alive, TCP_KEEPIDLE=1, TCP_KEEPINTVL=1, TCP_KEEPCNT=2)
    set_tcp(written, TCP_USER_TIMEOUT=2000)
    path("cut")
    written.sendall(data)
    print("alive has", until_over(alive))
    print("written has", until_over(written))
    path("mended")
    print("patient has", asked(patient, data[::-1]))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        connect(sys.argv[2], int(sys.argv[3]))
