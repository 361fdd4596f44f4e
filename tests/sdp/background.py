#!/usr/bin/env python3
"""A client that goes to the background: its parent ends, and the child goes on with the connection. Prints what the child got.

  background.py ADDRESS PORT
"""

import os
import socket
import sys
import time

connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
connection.sendall(b"a")
print("parent:", connection.recv(1), connection.getpeername()[1] == int(sys.argv[2]), flush=True)
parent = os.getpid()
done, kept = os.pipe()
if os.fork() != 0:
    os.close(done)
    os._exit(0)
os.setsid()
os.close(kept)
while os.getppid() == parent:
    time.sleep(0.01)
connection.sendall(b"b")
print("child:", connection.recv(1), connection.getpeername()[1] == int(sys.argv[2]), flush=True)
