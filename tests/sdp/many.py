#!/usr/bin/env python3
"""Many connections at once, each of which is asked and answers. Prints how many did.

  many.py ADDRESS PORT COUNT [--stay]

With --stay both sides keep them until the standard input ends.
"""

import os
import select
import socket
import sys

PATIENCE = 200  # seconds without any news


def ask(server, count):
    connections = [socket.create_connection(server) for _ in range(count)]
    for number, connection in enumerate(connections):
        connection.sendall(bytes([number % 251]))
    answered = sum(connection.recv(1) == bytes([number % 251 + 1]) for number, connection in enumerate(connections))
    print("answered:", answered)
    return connections


def ask_again(connections):
    for connection in connections:
        connection.sendall(b"x")
    print("answered again:", sum(connection.recv(1) == b"y" for connection in connections), flush=True)


def answer(listener, count, known=()):
    waiting = select.epoll()
    waiting.register(listener, select.EPOLLIN)
    connections = dict(known)
    for fd in connections:
        waiting.register(fd, select.EPOLLIN)
    done = 0
    while done < count:
        events = waiting.poll(PATIENCE)
        if not events:
            sys.exit(f"{len(connections)} connections have come and {done} have asked, and nothing more comes")
        for fd, _ in events:
            if fd == listener.fileno():
                connection, _ = listener.accept()
                connections[connection.fileno()] = connection
                waiting.register(connection, select.EPOLLIN)
            else:
                asked = connections[fd].recv(1)
                connections[fd].sendall(bytes([asked[0] + 1]))
                done += 1
    print("asked:", done)
    return connections


def main():
    count = int(sys.argv[3])
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=count)
    stays = "--stay" in sys.argv
    child = os.fork()
    if child == 0:
        connections = ask(listener.getsockname(), count)
        sys.stdout.flush()
        if stays:
            os.read(0, 1)
            ask_again(connections)
        os._exit(0)
    kept = answer(listener, count)
    if stays:
        sys.stdout.flush()
        answer(listener, count, kept)
    os.waitpid(child, 0)
    print("kept:", len(kept))


if __name__ == "__main__":
    main()
