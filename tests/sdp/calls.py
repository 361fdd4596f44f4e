#!/usr/bin/env python3
"""Calls on TCP connections whose results programs rely on: signals, timeouts, shutdown, resets, flags, and descriptors that go to
other processes. Prints one line for each, so that two runs can be compared.

  calls.py ADDRESS [CALL...]
"""

import argparse
import array
import errno
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

SECONDS = 10


def server_at(address):
    """A listener that somebody waits at: SDP begins there with the first wait."""
    listener = socket.create_server((address, 0))
    select.select([listener], [], [], 0)
    return listener


def pair(address):
    with server_at(address) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        server, _ = listener.accept()
    return client, server


def outcome(call, *words):
    """What it returns, or the name of its error."""
    try:
        result = call(*words)
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    return f"{len(result)} bytes {result[:20]!r}" if isinstance(result, bytes) else repr(result)


def say(name, *results):
    print(f"{name}:", *results, flush=True)


def readable(sock):
    """Until something is there to read; the end counts."""
    return bool(select.select([sock], [], [], SECONDS)[0])


def read_all(sock):
    parts = []
    while part := sock.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


class Raw:
    """recv(2) and send(2) without what Python does after EINTR."""

    @staticmethod
    def interrupted(call, restart):
        """Calls it in the main thread while a signal comes; the handler says so, and a second one ends a call that was restarted by
        `unblock`."""
        class Interrupted(Exception):
            pass

        count = []

        def handler(_number, _frame):
            count.append(1)
            if not restart:
                raise Interrupted

        old = signal.signal(signal.SIGALRM, handler)
        signal.siginterrupt(signal.SIGALRM, not restart)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            return call(), len(count)
        except Interrupted:
            return "interrupted", len(count)
        except OSError as e:
            return errno.errorcode.get(e.errno), len(count)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)


def later(seconds, call, *words):
    timer = threading.Timer(seconds, call, words)
    timer.daemon = True
    timer.start()
    return timer


def signals(address):
    for restart in (False, True):
        a, b = pair(address)
        later(0.4, b.send, b"late")
        say(f"recv with a signal, restart {restart}", *Raw.interrupted(lambda s=a: s.recv(10), restart))
        a, b = pair(address)
        listener = server_at(address)
        later(0.4, lambda to=listener.getsockname()[:2]: socket.create_connection(to))
        say(f"accept with a signal, restart {restart}", *[str(r)[:11] for r in Raw.interrupted(lambda s=listener: type(s.accept()).__name__, restart)])
        a, b = pair(address)
        later(0.4, b.recv, 10)
        say(f"select with a signal, restart {restart}", *Raw.interrupted(lambda s=a: select.select([s], [], [], 0.5)[0], restart))


def full_send(address):
    a, b = pair(address)
    got = []
    reader = threading.Thread(target=lambda: got.append(len(read_all(b))))
    later(0.4, reader.start)
    result = Raw.interrupted(lambda: a.sendall(bytes(30_000_000)), True)
    a.close()
    time.sleep(0.5)
    reader.join(SECONDS)
    say("sendall with a signal into a full connection", *result, got)


def told_room(address):
    """Where poll says that there is room a send takes something."""
    for size in (5000, 1 << 15, 1 << 16, 100_000):
        a, b = pair(address)
        a.setblocking(False)
        content = bytes(i * 31 >> 3 & 255 for i in range(size))
        outcomes = []
        while select.select([], [a], [], 0)[1]:
            outcomes.append(outcome(a.send, content))
        say("told room", size, len(outcomes) > 0, "EAGAIN" in outcomes)
        b.close()


def timeouts(address):
    a, b = pair(address)
    a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200_000))
    began = time.monotonic()
    say("SO_RCVTIMEO", outcome(a.recv, 10), 0.15 < time.monotonic() - began < 2)
    say("SO_RCVTIMEO read back", a.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16).hex())
    b.send(b"x")
    say("SO_RCVTIMEO with data", outcome(a.recv, 10))
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200_000))

    def fill():
        while True:
            a.send(bytes(1 << 20))

    say("SO_SNDTIMEO", outcome(fill))
    say("settimeout", outcome(lambda: (a.settimeout(0.2), a.recv(1))))


def shutdowns(address):
    a, b = pair(address)
    b.send(b"data")
    readable(a)
    a.shutdown(socket.SHUT_WR)
    say("send behind SHUT_WR", outcome(a.send, b"x"))
    say("recv behind SHUT_WR", outcome(a.recv, 10))
    say("peer's recv", outcome(b.recv, 10))
    say("peer's send", outcome(b.send, b"more"), readable(a), outcome(a.recv, 10))
    say("SHUT_WR again", outcome(a.shutdown, socket.SHUT_WR))
    b.close()
    say("recv behind close", readable(a), outcome(a.recv, 10), outcome(a.recv, 10))
    a, b = pair(address)
    a.shutdown(socket.SHUT_RD)
    say("recv behind SHUT_RD", outcome(a.recv, 10), outcome(a.send, b"x"))
    a, b = pair(address)
    later(0.2, a.shutdown, socket.SHUT_RDWR)
    say("a recv that waits, and shutdown by another thread", outcome(a.recv, 10))
    s = socket.socket()
    say("without a connection", outcome(s.shutdown, socket.SHUT_RDWR), outcome(s.recv, 1), outcome(s.send, b"x"), outcome(s.getpeername))


# Reads a question and answers; says when more has come, and reads no more.
PEER = """
import select, socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.recv(10)
s.send(b"answer")
select.select([s], [], [])
print("more", flush=True)
time.sleep(60)
"""


def resets(address):
    a, b = pair(address)
    b.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    b.close()
    readable(a)
    say("linger 0", outcome(a.recv, 10), outcome(a.recv, 10), outcome(a.send, b"x"))
    a, b = pair(address)
    a.send(b"unread")
    readable(b)
    b.close()
    readable(a)
    say("closed with bytes unread", outcome(a.recv, 10), outcome(a.send, b"x"))
    a, b = pair(address)
    b.close()
    readable(a)
    first = outcome(a.send, b"x")
    until = time.monotonic() + SECONDS
    while (second := outcome(a.send, b"x")) == "1" and time.monotonic() < until:
        time.sleep(0.01)
    say("sends to a peer that has closed", first, second, outcome(a.send, b"x"))
    a, b = pair(address)
    pid = os.fork()
    if pid == 0:
        b.close()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    say("a child that was killed", outcome(a.send, b"x"), readable(b), outcome(b.recv, 10))
    for unread in (False, True):
        with server_at(address) as listener:
            port = listener.getsockname()[1]
            # A program of its own, since a child of fork shares its descriptors.
            peer = subprocess.Popen([sys.executable, "-c", PEER, address, str(port)], stdout=subprocess.PIPE)
            s, _ = listener.accept()
        s.send(b"question")
        say("a peer that answers", readable(s), outcome(s.recv, 10))
        if unread:
            s.send(b"unread")
            peer.stdout.readline()
        peer.kill()
        peer.wait()
        say(f"killed, with bytes unread: {unread}", readable(s), outcome(s.recv, 10), outcome(s.recv, 10))


def flags(address):
    a, b = pair(address)
    say("DONTWAIT without data", outcome(a.recv, 10, socket.MSG_DONTWAIT))
    b.send(b"abcdef")
    readable(a)
    say("PEEK", outcome(a.recv, 3, socket.MSG_PEEK), outcome(a.recv, 10, socket.MSG_PEEK | socket.MSG_DONTWAIT), outcome(a.recv, 2))
    say("TRUNC", outcome(a.recv, 2, socket.MSG_PEEK))
    later(0.2, b.send, b"ghi")
    say("WAITALL", outcome(a.recv, 7, socket.MSG_WAITALL))
    later(0.2, b.shutdown, socket.SHUT_WR)
    b.send(b"xy")
    say("WAITALL and the end", outcome(a.recv, 7, socket.MSG_WAITALL), outcome(a.recv, 7, socket.MSG_WAITALL))
    a, b = pair(address)
    b.send(b"x")
    readable(a)
    unread = array.array("i", [0])
    import fcntl  # pylint: disable=import-outside-toplevel
    fcntl.ioctl(a, 0x541B, unread)  # FIONREAD
    say("FIONREAD", unread[0])
    say("MSG_MORE", outcome(b.send, b"a", socket.MSG_MORE), outcome(b.send, b"b"), outcome(a.recv, 3, socket.MSG_WAITALL))
    say("nothing sent", outcome(b.send, b""), outcome(a.recv, 1, socket.MSG_DONTWAIT))
    b.send(b"123456")
    readable(a)
    buffers = [bytearray(2), bytearray(3)]
    count, _, message_flags, name = a.recvmsg_into(buffers)
    say("recvmsg_into", count, buffers, message_flags, name)
    say("sendmsg", outcome(b.sendmsg, [b"ab", b"", b"cd"]), outcome(a.recv, 5, socket.MSG_WAITALL))
    say("recvfrom's name", outcome(lambda: (b.send(b"q"), a.recvfrom(1)[1])[1]))
    say("sendto with a name", outcome(b.sendto, b"z", a.getsockname()))


def options(address):
    a, b = pair(address)
    say("names", a.getpeername() == b.getsockname(), b.getpeername() == a.getsockname(), a.family.name, a.type.name, a.proto)
    for level, option in (("SOL_SOCKET", "SO_TYPE"), ("SOL_SOCKET", "SO_DOMAIN"), ("SOL_SOCKET", "SO_PROTOCOL"), ("SOL_SOCKET", "SO_ACCEPTCONN"),
                          ("SOL_SOCKET", "SO_ERROR"), ("SOL_SOCKET", "SO_KEEPALIVE"), ("SOL_SOCKET", "SO_REUSEADDR"), ("SOL_SOCKET", "SO_RCVLOWAT"),
                          ("IPPROTO_TCP", "TCP_NODELAY"), ("IPPROTO_TCP", "TCP_CORK"), ("IPPROTO_TCP", "TCP_KEEPIDLE"),
                          ("IPPROTO_TCP", "TCP_USER_TIMEOUT"), ("IPPROTO_IP", "IP_TOS"), ("IPPROTO_IP", "IP_TTL")):
        number = getattr(socket, option, 39)
        say(f"{option}", outcome(a.getsockopt, getattr(socket, level), number))
    for level, option, value in (("IPPROTO_TCP", "TCP_NODELAY", 1), ("SOL_SOCKET", "SO_KEEPALIVE", 1), ("IPPROTO_TCP", "TCP_KEEPIDLE", 77),
                                 ("SOL_SOCKET", "SO_LINGER", struct.pack("ii", 1, 5)), ("IPPROTO_TCP", "TCP_CORK", 1), ("IPPROTO_IP", "IP_TOS", 16)):
        arguments = getattr(socket, level), getattr(socket, option)
        set_to = outcome(a.setsockopt, *arguments, value)
        say(f"{option} set", set_to, outcome(a.getsockopt, *arguments, *([8] if isinstance(value, bytes) else [])))
    state = outcome(lambda: a.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[:1])
    say("TCP_INFO", state)
    say("bad option", outcome(a.setsockopt, socket.IPPROTO_TCP, 200, 1), outcome(a.getsockopt, socket.SOL_SOCKET, 200))
    say("connect again", outcome(a.connect, b.getsockname()))
    say("listen", outcome(a.listen))
    say("not blocking", a.getblocking(), (a.setblocking(False), os.get_blocking(a.fileno()))[1])


def starts(address):
    listener = server_at(address)
    port = listener.getsockname()[1]
    s = socket.socket()
    s.setblocking(False)
    say("connect without waiting", outcome(s.connect, (address, port)), bool(select.select([], [s], [], SECONDS)[1]),
        s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), outcome(s.connect, (address, port)))
    accepted, name = listener.accept()
    say("accepted", name == s.getsockname(), accepted.getsockname()[1] == port, accepted.getblocking())
    s.send(b"hello")
    say("first bytes", outcome(accepted.recv, 5, socket.MSG_WAITALL))
    listener.close()
    refused = socket.socket()
    say("refused", outcome(refused.connect, (address, port)))
    refused = socket.socket()
    refused.setblocking(False)
    first = outcome(refused.connect, (address, port))
    if first == "EINPROGRESS":  # by SDP alone it is known at once
        select.select([], [refused], [], SECONDS)
        first = errno.errorcode.get(refused.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    say("refused without waiting", first)
    bound = socket.socket()
    bound.bind((address, 0))
    listener = server_at(address)
    own = bound.getsockname()
    say("connect from a chosen port", outcome(bound.connect, listener.getsockname()), listener.accept()[1] == own)
    waiting = server_at(address)
    waiting.setblocking(False)
    say("accept of none", outcome(waiting.accept))


def copies(address):
    a, b = pair(address)
    copy = a.dup()
    a.close()
    b.send(b"to the copy")
    say("dup", readable(copy), outcome(copy.recv, 20), outcome(copy.send, b"from it"), readable(b), outcome(b.recv, 20))
    copy.close()
    say("the last copy closed", readable(b), outcome(b.recv, 1))
    a, b = pair(address)
    with open(os.devnull, "rb") as f:
        number = os.dup(f.fileno())
    os.dup2(a.fileno(), number)
    a.close()
    say("dup2", os.write(number, b"by write"), readable(b), os.read(b.fileno(), 20))
    os.close(number)
    say("closed", readable(b), os.read(b.fileno(), 20))
    a, b = pair(address)
    with open(os.devnull, "rb") as f:
        os.dup2(f.fileno(), a.fileno())
    say("another file over it", readable(b), outcome(b.recv, 1))


def children(address):
    a, b = pair(address)
    pid = os.fork()
    if pid == 0:
        a.close()
        b.send(b"child: " + b.recv(5, socket.MSG_WAITALL))
        os._exit(0)
    b.close()
    a.send(b"hello")
    say("a child that answers", readable(a), outcome(a.recv, 12, socket.MSG_WAITALL), os.waitpid(pid, 0)[1], readable(a), outcome(a.recv, 1))
    a, b = pair(address)
    done = subprocess.Popen(["sh", "-c", "read line; echo \"sh: $line\"; wc -c"], stdin=b, stdout=b)
    b.close()
    a.send(b"first\n")
    answer = outcome(a.recv, 10, socket.MSG_WAITALL)
    a.send(bytes(100_000))
    a.shutdown(socket.SHUT_WR)
    say("a program that was started on it", answer, read_all(a), done.wait())
    a, b = pair(address)
    data = os.urandom(3_000_000)
    pid = os.fork()
    if pid == 0:
        b.sendall(data)
        os._exit(0)
    b.close()
    say("a child that sends much and ends", read_all(a) == data, os.waitpid(pid, 0)[1])
    a, b = pair(address)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    b.send(b"still there")
    say("a child that did nothing", readable(a), outcome(a.recv, 20))
    listener = server_at(address)
    pids = []
    for i in range(3):
        pid = os.fork()
        if pid == 0:
            for _ in range(2):
                s, _ = listener.accept()
                s.sendall(b"served " + s.recv(1))
                s.close()
            os._exit(0)
        pids.append(pid)
    answers = []
    for i in range(6):
        s = socket.create_connection(listener.getsockname())
        s.send(str(i).encode())
        answers.append(read_all(s))
    say("children that accept", answers, [os.waitpid(pid, 0)[1] for pid in pids])


def passed(address):
    a, b = pair(address)
    left, right = socket.socketpair()
    socket.send_fds(left, [b"fd"], [b.fileno()])
    b.close()
    _, fds, _, _ = socket.recv_fds(right, 10, 1)
    got = socket.socket(fileno=fds[0])
    a.send(b"through")
    say("within a process", readable(got), outcome(got.recv, 10), outcome(got.send, b"back"), readable(a), outcome(a.recv, 10))
    pid = os.fork()
    if pid == 0:
        left.close()
        _, fds, _, _ = socket.recv_fds(right, 10, 1)
        s = socket.socket(fileno=fds[0])
        s.sendall(b"child " + s.recv(10))
        os._exit(0)
    a, b = pair(address)  # of which the child knows nothing
    socket.send_fds(left, [b"fd"], [b.fileno()])
    b.close()
    a.send(b"later")
    say("to a child", readable(a), outcome(a.recv, 11, socket.MSG_WAITALL), os.waitpid(pid, 0)[1])


def streams(address):
    a, b = pair(address)
    data = os.urandom(5_000_000)
    sender = threading.Thread(target=lambda: (a.sendall(data), a.shutdown(socket.SHUT_WR)))
    sender.start()
    say("much", read_all(b) == data)
    sender.join()
    a, b = pair(address)
    with b.makefile("rwb") as f:
        a.send(b"line one\nline two\n")
        say("lines", f.readline(), f.readline())
        f.write(b"answer\n")
        f.flush()
        say("answer", outcome(a.recv, 7, socket.MSG_WAITALL))
    name = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"calls-{os.getpid()}")
    with open(name, "w+b") as f:
        os.unlink(name)
        f.write(data[:1_000_000])
        f.flush()
        f.seek(100)
        got = []
        reader = threading.Thread(target=lambda: got.append(a.recv(999_000, socket.MSG_WAITALL)))
        reader.start()
        offset = 500
        while offset < 999_500:
            offset += os.sendfile(b.fileno(), f.fileno(), offset, 999_500 - offset)
        reader.join()
        say("sendfile", got[0] == data[500:999_500], f.tell())


CALLS = [signals, full_send, told_room, timeouts, shutdowns, resets, flags, options, starts, copies, children, passed, streams]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--expect", help="for the sake of readiness.py's command line")
    parser.add_argument("call", nargs="*")
    arguments = parser.parse_args()
    for call in CALLS:
        if arguments.call and call.__name__ not in arguments.call:
            continue
        # In a process of its own, so that one that hangs does not take the others with it.
        pid = os.fork()
        if pid == 0:
            signal.alarm(25)
            try:
                call(arguments.address)
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
                sys.stdout.flush()
                os._exit(1)
            sys.stdout.flush()
            os._exit(0)
        say(call.__name__, "ended with", os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
