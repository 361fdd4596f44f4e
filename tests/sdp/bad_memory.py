"""Buffers that are missing, protected, or both good and bad, in calls on TCP connections: EFAULT, or what was done before the bad
page, and nothing lost. Prints one line for each, so that two runs can be compared.

  bad_memory.py ADDRESS
"""

import argparse
import ctypes
import errno
import hashlib
import mmap
import os
import random
import select
import signal
import socket
import sys
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
PAGE = mmap.PAGESIZE
PROTECTIONS = {"protected": 0, "read-only": mmap.PROT_READ}
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for name in ("recv", "send", "read", "write", "readv", "writev", "sendmsg", "recvmsg", "sendfile"):
    getattr(LIBC, name).restype = ctypes.c_ssize_t


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("pieces", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int)]


def say(name, *results):
    print(f"{name}:", *results, flush=True)


def pattern(size, seed=1):
    return random.Random(seed).randbytes(size)


def sum_of(content):
    return f"{len(content)} bytes {hashlib.sha256(content).hexdigest()[:16]}"


def pair(address):
    with socket.create_server((address, 0)) as listener:
        select.select([listener], [], [], 0)  # SDP begins there with the first wait
        client = socket.create_connection(listener.getsockname()[:2])
        server, _ = listener.accept()
    return client, server


def memory(good, kind, behind=0):
    """The address of `good` bytes, of a bad page behind them, and of good ones again."""
    size = good + PAGE + behind
    address = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    content = pattern(size, 7)
    ctypes.memmove(address, content, size)
    bad = ctypes.c_void_p(address + good)
    if kind == "gone":
        assert LIBC.munmap(bad, ctypes.c_size_t(PAGE)) == 0
    else:
        assert LIBC.mprotect(bad, ctypes.c_size_t(PAGE), PROTECTIONS[kind]) == 0
    return address, content


def called(function, fd, *words):
    """What it returns, or the name of its error."""
    n = getattr(LIBC, function)(fd, *words)
    return n if n >= 0 else errno.errorcode[ctypes.get_errno()]


def calls(to_peer, address, size):
    """The same place for each call of that direction: its name, and what it came to with this descriptor."""
    where, length = ctypes.c_void_p(address), ctypes.c_size_t(size)
    half = size // 2
    two = (Piece * 2)(Piece(address, half), Piece(address + half, size - half))
    message = Message(None, 0, ctypes.addressof(two), 2, None, 0, 0)
    names = ("send", "write", "writev", "sendmsg") if to_peer else ("recv", "read", "readv", "recvmsg", "peek", "peek at once")
    words = {"send": (where, length, 0), "recv": (where, length, 0), "peek": (where, length, socket.MSG_PEEK),
             "peek at once": (where, length, socket.MSG_PEEK | socket.MSG_DONTWAIT),
             "write": (where, length), "read": (where, length), "writev": (two, 2), "readv": (two, 2)}
    for name in names:
        function = "recv" if name in ("peek", "peek at once") else name
        yield name, lambda fd, f=function, n=name: called(f, fd, *words.get(n, (ctypes.byref(message), 0)))


def done(came, good):
    """How many bytes were, of one that may not go beyond `good`: where the pages of a call are in several messages or pieces, the
    kernel may come to EFAULT where SDP has a count, or the other way round."""
    assert came == "EFAULT" or 0 < came <= good, came
    return 0 if came == "EFAULT" else came


def receives(address):
    a, b = pair(address)
    for kind in ("gone", "protected", "read-only"):
        for good in (0, PAGE):
            place, _ = memory(good, kind)
            content = pattern(good + 1000, good + 3)
            for name, call in calls(False, place, good + 1000):
                a.sendall(content)
                select.select([b], [], [], 10)
                n = done(call(b.fileno()), good)
                begin = ctypes.string_at(place, n)
                rest = b.recv(len(content) - (0 if name.startswith("peek") else n), socket.MSG_WAITALL)
                say(f"{name}, {kind} behind {good}", content.startswith(begin) and content.endswith(rest))


def sends(address):
    a, b = pair(address)
    for kind in ("gone", "protected"):
        for good in (0, PAGE):
            place, content = memory(good, kind)
            for name, call in calls(True, place, good + 1000):
                n = done(call(a.fileno()), good)
                a.sendall(b"and this")
                say(f"{name}, {kind} behind {good}", b.recv(n + 8, socket.MSG_WAITALL) == content[:n] + b"and this")


def read_until_end(sock, parts):
    while part := sock.recv(1 << 16):
        parts.append(part)


def large_sends(address):
    """Until the bad page, or not so far; all that was said to be sent comes."""
    good = 255 * PAGE
    for kind in ("gone", "protected"):
        a, b = pair(address)
        place, content = memory(good, kind, behind=PAGE)
        parts = []
        reader = threading.Thread(target=read_until_end, args=(b, parts))
        reader.start()
        came = called("send", a.fileno(), ctypes.c_void_p(place), ctypes.c_size_t(good + 2 * PAGE), 0)
        a.sendall(b"and this")
        a.shutdown(socket.SHUT_WR)
        reader.join()
        say(f"large send, {kind}", 0 < came <= good, b"".join(parts) == content[:came] + b"and this")


def large_receives(address):
    good = 64 * PAGE
    for kind in ("gone", "protected", "read-only"):
        a, b = pair(address)
        place, _ = memory(good, kind, behind=good)
        content = pattern(1 << 20)
        sender = threading.Thread(target=a.sendall, args=(content,))
        sender.start()
        came = called("recv", b.fileno(), ctypes.c_void_p(place), ctypes.c_size_t(2 * good), socket.MSG_WAITALL)
        begin = ctypes.string_at(place, came)
        rest = b.recv(len(content) - came, socket.MSG_WAITALL)
        sender.join()
        say(f"large receive, {kind}", 0 < came <= good, sum_of(begin + rest))


def sends_in_a_row(address):
    """Bad ones among good ones, to a peer that waits: all that was said to be sent comes."""
    good = 8 * PAGE
    for kind in ("gone", "protected"):
        a, b = pair(address)
        place, content = memory(good, kind, behind=good)
        parts, sent = [], []
        reader = threading.Thread(target=read_until_end, args=(b, parts))
        reader.start()
        for i in range(60):
            a.sendall(pattern(1 << 16, i))
            came = done(called("send", a.fileno(), ctypes.c_void_p(place), ctypes.c_size_t(2 * good), 0), good)
            sent += [pattern(1 << 16, i), content[:came]]
        a.shutdown(socket.SHUT_WR)
        reader.join()
        say(f"sends in a row, {kind}", b"".join(parts) == b"".join(sent))


def receives_in_a_row(address):
    """Each second one to a bad buffer."""
    good = 8 * PAGE
    for kind in ("gone", "protected", "read-only"):
        a, b = pair(address)
        place, _ = memory(good, kind, behind=good)
        content = pattern(4 << 20)
        sender = threading.Thread(target=lambda s=a, c=content: [s.sendall(c[at:at + (1 << 16)]) for at in range(0, len(c), 1 << 16)])
        sender.start()
        parts, missing = [], len(content)
        while missing > 0:
            part = b.recv(min(missing, 1 << 16))
            n = 0
            if missing > len(part):
                n = done(called("recv", b.fileno(), ctypes.c_void_p(place), ctypes.c_size_t(2 * good), 0), good)
            parts += [part, ctypes.string_at(place, n)]
            missing -= len(part) + n
        sender.join()
        say(f"receives in a row, {kind}", b"".join(parts) == content)


def lists(address):
    """What describes the buffers is bad, or says what cannot be."""
    a, b = pair(address)
    fd = a.fileno()
    place, _ = memory(0, "gone")
    buffer = ctypes.create_string_buffer(100)
    one = (Piece * 1)(Piece(ctypes.addressof(buffer), 100))
    many = (Piece * 1025)(*[Piece(ctypes.addressof(buffer), 0)] * 1025)
    huge = (Piece * 1)(Piece(ctypes.addressof(buffer), 1 << 63))
    bad = ctypes.c_void_p(place)
    for name, words in {"bad": (bad, 1), "none": (one, 0), "less": (one, -1), "too many": (many, 1025), "huge": (huge, 1)}.items():
        say(f"list that is {name}", called("writev", fd, *words), called("readv", fd, *words) if name != "none" else "")
    say("bad message", called("sendmsg", fd, bad, 0), called("recvmsg", fd, bad, 0))
    for name, message in {"list": Message(None, 0, place, 1, None, 0, 0),
                          "control": Message(None, 0, ctypes.addressof(one), 1, place, 64, 0),
                          "count": Message(None, 0, ctypes.addressof(many), 1025, None, 0, 0)}.items():
        say(f"message with bad {name}", called("sendmsg", fd, ctypes.byref(message), 0))
    with open("/proc/self/exe", "rb") as f:
        say("bad offset", called("sendfile", fd, f.fileno(), bad, ctypes.c_size_t(10)))
    other, _ = socket.socketpair()
    say("bad message of another socket", called("sendmsg", other.fileno(), bad, 0))
    a.sendall(b"and this")
    say("behind it", b.recv(100))


def handlers(address):
    """The program's own are not asked, and are still there."""
    ran = []
    signal.signal(signal.SIGSEGV, lambda *_: ran.append("before"))
    a, b = pair(address)
    for kind in ("gone", "protected"):
        place, _ = memory(0, kind)
        say("send", called("send", a.fileno(), ctypes.c_void_p(place), ctypes.c_size_t(10), 0), ran)
    os.kill(os.getpid(), signal.SIGSEGV)
    old = signal.signal(signal.SIGSEGV, lambda *_: ran.append("behind"))
    say("send", called("send", a.fileno(), ctypes.c_void_p(place), ctypes.c_size_t(10), 0), ran, callable(old))
    os.kill(os.getpid(), signal.SIGSEGV)
    say("handlers", ran)
    b.close()


def crash(address):
    """Of the program's own: the process ends by it."""
    ends = pair(address)
    place, _ = memory(0, "protected")
    say("ends", len(ends))
    ctypes.string_at(place, 1)


SCENES = [receives, sends, large_sends, large_receives, sends_in_a_row, receives_in_a_row, lists, handlers, crash]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    arguments = parser.parse_args()
    for scene in SCENES:
        # In a process of its own, so that one that ends by a signal does not take the others with it.
        pid = os.fork()
        if pid == 0:
            signal.alarm(25)
            scene(arguments.address)
            sys.stdout.flush()
            os._exit(0)
        say(scene.__name__, "ended with", os.waitpid(pid, 0)[1] & 0x7f)


if __name__ == "__main__":
    sys.exit(main())
