"""Where the two sides of a stream run: both on loopback, or each in a network namespace of its own, with a veth pair between them."""

import ctypes
import os
import signal
import subprocess

MTU = 1500          # of a veth pair, unless told otherwise
CLONE_NEWNET = 0x40000000
OWN = "/proc/self/ns/net"
IP_LIMIT = 20       # seconds for ip(8)


class PlaceFailed(Exception):
    """A sentence."""


class Loopback:
    path, mtu = "loopback", None
    sender_address = receiver_address = "127.0.0.1"

    def sender(self):
        """What stands before a command that runs where the sender does."""
        return []

    def receiver(self):
        return []


def libc_call(name, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def new_namespace(made):
    """Appends its descriptor to `made`. This process stays where it is."""
    home = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    # A signal's exception between the two calls would leave this program in the wrong place.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        libc_call("unshare", CLONE_NEWNET)
        try:
            made.append(os.open(OWN, os.O_RDONLY | os.O_CLOEXEC))
        finally:
            libc_call("setns", home, CLONE_NEWNET)
    finally:
        os.close(home)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


class Veth:
    """Two namespaces. They have no names: their descriptors here and the processes in them are all that keeps them. So the kernel
    deletes them when this program ends, whatever ends it, and no other program can have the same ones."""

    path = "veth"
    sender_address, receiver_address = "10.0.0.1", "10.0.0.2"

    def __init__(self, mtu=MTU):
        self.mtu = mtu
        self.namespaces = []

    def __enter__(self):
        try:
            for _ in range(2):
                new_namespace(self.namespaces)
            self.ip(0, f"link add veth0 type veth peer name veth0 netns {self.name(1)}")
            for place, address in enumerate((self.sender_address, self.receiver_address)):
                self.ip(place, "link set lo up")
                self.ip(place, f"address add {address}/24 dev veth0")
                self.ip(place, f"link set veth0 mtu {self.mtu} up")
        except OSError as error:
            self.close()
            raise PlaceFailed(f"no network namespaces could be made: {error}") from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        while self.namespaces:
            os.close(self.namespaces.pop())

    def name(self, place):
        return f"/proc/{os.getpid()}/fd/{self.namespaces[place]}"

    def words(self, place):
        return ["nsenter", f"--net={self.name(place)}", "--"]

    def sender(self):
        return self.words(0)

    def receiver(self):
        return self.words(1)

    def ip(self, place, arguments):
        try:
            result = subprocess.run([*self.words(place), "ip", *arguments.split()], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    check=False, timeout=IP_LIMIT)
        except subprocess.TimeoutExpired:
            raise PlaceFailed(f"ip {arguments}: did not end") from None
        if result.returncode != 0:
            raise PlaceFailed(f"ip {arguments}: {result.stderr.strip() or result.returncode}")
