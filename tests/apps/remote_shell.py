#!/usr/bin/env python3
"""A remote shell for programs that start others elsewhere, such as mpirun, with no network and no rights.

  remote_shell.py SOCKET                   serves, for ever, at the Unix socket SOCKET
  remote_shell.py SOCKET HOST COMMAND...   has COMMAND run by the server, with this process's standard files and folder

It is as a remote host: what it runs has the server's network namespace and environment. HOST is not looked at.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time

MOST = 1 << 20  # bytes of a command
PATIENCE = 60  # seconds until the server listens


def serve_one(peer):
    with peer:
        words, files, _, _ = socket.recv_fds(peer, MOST, 3)
        request = json.loads(words)
        process = subprocess.Popen(["sh", "-c", request["command"]], cwd=request["folder"], stdin=files[0], stdout=files[1],
                                   stderr=files[2], start_new_session=True)
        for file in files:
            os.close(file)
        # It ends when who asked for it does.
        ended = os.pidfd_open(process.pid)
        with selectors.DefaultSelector() as either:
            either.register(peer, selectors.EVENT_READ)
            either.register(ended, selectors.EVENT_READ)
            first = [key.fileobj for key, _ in either.select()]
        os.close(ended)
        if ended not in first:
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        if ended in first:
            peer.send(str(status if status >= 0 else 128 - status).encode())


def serve(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=serve_one, args=(peer,), daemon=True).start()


def connect(server, path):
    """Once the server listens, which may have been started in the same moment."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return server.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def ask(path, command):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        connect(server, path)
        # As ssh does: the words with a space between them, for a shell.
        request = json.dumps({"command": " ".join(command), "folder": os.getcwd()})
        socket.send_fds(server, [request.encode()], [0, 1, 2])
        return int(server.recv(16) or b"255")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    sys.exit(ask(sys.argv[1], sys.argv[3:]))
