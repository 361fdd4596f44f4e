#!/usr/bin/env python3
"""Many connections at once, each of which is asked and answers. Prints how many did.

  many.py ADDRESS PORT COUNT
"""

import os
import select
import socket
import sys

PATIENCE = 60  # seconds without any news


def ask(server, count):
    connections = [socket.create_connection(server) for _ in range(count)]
    for number, connection in enumerate(connections):
        connection.sendall(bytes([number % 251]))
    answered = sum(connection.recv(1) == bytes([(number + 1) % 256]) for number, connection in enumerate(connections) if number % 251 < 250)
    print("answered:", answered)


def answer(listener, count):
    waiting = select.epoll()
    waiting.register(listener, select.EPOLLIN)
    connections = {}
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
    child = os.fork()
    if child == 0:
        ask(listener.getsockname(), count)
        sys.stdout.flush()
        os._exit(0)
    kept = answer(listener, count)
    os.waitpid(child, 0)
    print("kept:", len(kept))


if __name__ == "__main__":
    main()
