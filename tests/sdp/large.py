"""Large sends and receives that block, in all ways that a program may mix them, between two processes. Each scenario prints what came of
it, which must not depend on the way.

  large.py serve ADDRESS PORT
  large.py ADDRESS PORT [--stay]    --stay: waits for the end of its input before it ends; serve has it too
"""

import fcntl
import hashlib
import random
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time

MB = 1 << 20


def pattern(size, seed):
    return random.Random(seed).randbytes(size)


def sum_of(content):
    return hashlib.sha256(content).hexdigest()[:16]


class Flow:
    """What a side has sent or received: how many bytes, and their sum."""

    def __init__(self):
        self.bytes = 0
        self.sum = hashlib.sha256()

    def add(self, content):
        self.bytes += len(content)
        self.sum.update(content)

    def __str__(self):
        return f"{self.bytes} bytes, {self.sum.hexdigest()[:16]}"


def send_pieces(s, total, most, seed):
    """Sends of all sizes up to `most`."""
    flow = Flow()
    rng = random.Random(seed)
    source = pattern(most, seed)
    while flow.bytes < total:
        size = min(total - flow.bytes, rng.choice((1, 100, 5000, 70000, most // 3, most)))
        s.sendall(source[:size])
        flow.add(source[:size])
    return flow


def receive_pieces(s, total, most, seed, flags=0, pause=0):
    flow = Flow()
    rng = random.Random(seed)
    memory = bytearray(most)
    while flow.bytes < total:
        size = min(total - flow.bytes, rng.choice((1, 500, 9000, 66000, most // 2, most)))
        got = s.recv_into(memoryview(memory)[:size], size, flags)
        if got == 0:
            break
        flow.add(memory[:got])
        if pause:
            time.sleep(pause)
    return flow


def in_thread(function, *arguments):
    result = []
    thread = threading.Thread(target=lambda: result.append(function(*arguments)))
    thread.start()

    def join():
        thread.join()
        return result[0]

    return join


# --- scenarios: what the client does, and what the server does; both return what is to be seen


def pieces(s, server):
    if server:
        return receive_pieces(s, 24 * MB, 2 * MB, 1)
    return send_pieces(s, 24 * MB, 3 * MB, 2)


def both_ways(s, server):
    received = in_thread(receive_pieces, s, 12 * MB, MB, 3)
    sent = send_pieces(s, 12 * MB, MB, 4 + server)
    return f"sent {sent}, received {received()}"


def crossing(s, server):
    """Both send first, and then receive."""
    flow = Flow()
    for i in range(6):
        s.sendall(pattern(MB, 2 * i + server))
        flow.add(receive_exactly(s, MB))
    return flow


def slow_reader(s, server):
    if not server:
        return send_pieces(s, 4 * MB, 2 * MB, 5)
    return receive_pieces(s, 4 * MB, 300000, 6, pause=0.01)


def looked_at_first(s, server):
    if not server:
        return send_pieces(s, 4 * MB, MB, 7)
    flow = Flow()
    while flow.bytes < 4 * MB:
        seen = s.recv(3000, socket.MSG_PEEK)
        waiting = struct.unpack("i", fcntl.ioctl(s, termios.FIONREAD, bytes(4)))[0]
        got = s.recv(min(200000, 4 * MB - flow.bytes))
        if got[:len(seen)] != seen[:len(got)] or waiting < 1:
            return f"behind {flow.bytes}: saw {sum_of(seen)}, {waiting} wait, got {sum_of(got)}"
        flow.add(got)
    return flow


def waited_for_first(s, server):
    """poll(2), then a receive that blocks."""
    if not server:
        return send_pieces(s, 6 * MB, MB, 8)
    flow = Flow()
    while flow.bytes < 6 * MB:
        if not select.select([s], [], [], 20)[0]:
            return f"nothing came behind {flow.bytes}"
        flow.add(s.recv(min(400000, 6 * MB - flow.bytes)))
    return flow


def without_blocking(s, server):
    if not server:
        return send_pieces(s, 6 * MB, MB, 9)
    s.setblocking(False)
    flow = Flow()
    while flow.bytes < 6 * MB:
        try:
            flow.add(s.recv(min(400000, 6 * MB - flow.bytes)))
        except BlockingIOError:
            if not select.select([s], [], [], 20)[0]:
                return f"nothing came behind {flow.bytes}"
    s.setblocking(True)
    return flow


def whole(s, server):
    if not server:
        return send_pieces(s, 12 * MB, 2 * MB, 10)
    return receive_pieces(s, 12 * MB, 2 * MB, 11, socket.MSG_WAITALL)


def scattered(s, server):
    flow = Flow()
    sizes = (10, 300000, 1, 0, 70000, 20000, 500000)
    content = [pattern(n, n) for n in sizes]
    for _ in range(5):
        if server:
            memory = [bytearray(n) for n in reversed(sizes)]
            left = sum(sizes)
            while left > 0:
                got = s.recvmsg_into(memory)[0]
                joined = b"".join(memory)[:got]
                flow.add(joined[:left])
                if got > left:
                    return "more than was sent"
                left -= got
                memory = [bytearray(left)]
        else:
            left = list(content)
            while left:
                sent = s.sendmsg(left)
                joined = b"".join(left)
                flow.add(joined[:sent])
                left = [joined[sent:]] if sent < len(joined) else []
    return flow


def interrupted(s, server):
    """Signals while it sends and receives."""
    count = [0]

    def on_alarm(*_):
        count[0] += 1

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, on_alarm)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    flow = receive_pieces(s, 12 * MB, MB, 12, pause=0.002) if server else send_pieces(s, 12 * MB, 2 * MB, 13)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return flow


def receive_exactly(s, size):
    content = bytearray()
    while len(content) < size:
        got = s.recv(size - len(content))
        if not got:
            break
        content += got
    return bytes(content)


SCENARIOS = [pieces, both_ways, crossing, slow_reader, looked_at_first, waited_for_first, without_blocking, whole, scattered, interrupted]


def limited(address, port, listener=None):
    """A sender with a time limit, whose peer does not read for a while: what it was told to have sent is what comes."""
    if listener is not None:
        s, _ = listener.accept()
        time.sleep(0.5)
        flow = Flow()
        while True:
            got = s.recv(100000)
            if not got:
                break
            flow.add(got)
        s.sendall(str(flow).encode())
        return "read all"
    s = socket.create_connection((address, port))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50000))
    flow = Flow()
    source = pattern(3 * MB, 14)
    stops = 0
    while stops < 3:
        try:
            n = s.send(source)
            flow.add(source[:n])
            stops += n < len(source)
        except BlockingIOError:
            stops += 1
    s.shutdown(socket.SHUT_WR)
    came = s.recv(200).decode()
    return "what was sent came" if came == str(flow) else f"sent {flow}, but {came} came"


def serve(address, port):
    listener = socket.create_server((address, port), reuse_port=False)
    s, _ = listener.accept()
    for scenario in SCENARIOS:
        print(f"{scenario.__name__}: {scenario(s, True)}", flush=True)
    print(f"limited: {limited(address, port, listener)}", flush=True)


def connect(address, port, stay):
    s = socket.create_connection((address, port))
    for scenario in SCENARIOS:
        print(f"{scenario.__name__}: {scenario(s, False)}", flush=True)
    print(f"limited: {limited(address, port)}", flush=True)
    if stay:
        sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
        if "--stay" in sys.argv:
            sys.stdin.read()
    else:
        connect(sys.argv[1], int(sys.argv[2]), "--stay" in sys.argv)
