"""The same peer on the siw of a Linux kernel, in the guest of tests/interop. Takes root."""

import contextlib
import ctypes
import os
import sys
import time

from peer import HERE, PROGRAM, Peer, PeerDied

sys.path.insert(0, os.path.join(HERE, "../../interop"))
import guest as guests  # noqa: E402
import interop  # noqa: E402
import tcpdump  # noqa: E402

CLONE_NEWNET = 0x40000000


def why_not():
    return interop.why_not()


class SiwPeers:
    """One guest and one peer in it, both replaced when they break. Meanwhile this process is in the network namespace that
    has the guest."""

    name = "siw"

    def __init__(self, build, cpus):
        self.program = f"{build}/bin/{PROGRAM}"
        self.cpus = cpus
        self.home = open("/proc/self/ns/net", "rb")
        self.port = 7000
        self.guest = None
        self.running = None
        self.job = None

    def enter(self, namespace):
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    def peer(self, _options):
        try:
            if self.guest is None:
                begun = time.monotonic()
                self.guest = guests.Guest(self.cpus, self.program)
                with open(f"/run/netns/{self.guest.namespace}", "rb") as namespace:
                    self.enter(namespace)
                print(f"a guest is up ({time.monotonic() - begun:.1f} s)", flush=True)
            if self.running is None:
                self.port += 1
                self.job = self.guest.start(f"/{PROGRAM} {guests.Guest.address} {self.port}")
                self.running = Peer(self.name, guests.Guest.address, self.port, guests.Guest.own_address, 12, 3,
                                    swapped=True)
        except guests.GuestDied as e:
            raise PeerDied(str(e)) from e
        return self.running

    def replace(self, _options):
        """After the peer died; what it said."""
        said = self.job.text() if self.job else ""
        if self.running:
            self.running.close()
        self.running = None
        try:
            if self.job:
                self.job.end()
        except guests.GuestDied:
            self.close_guest()
        self.job = None
        return said

    @contextlib.contextmanager
    def recorded(self, folder):
        """Meanwhile tcpdump hears what passes between this host and the guest."""
        self.peer({})
        try:
            with tcpdump.Recording("tap0", folder) as recording:
                yield
                recording.finish()
        except tcpdump.Lost as e:
            print(e)

    def settle(self, seconds):
        """Its listener must not go in the moment in which a half-open connection does: siw's counts are wrong then."""
        if seconds > 4:
            time.sleep(0.5)

    def trouble(self):
        """What the kernel complains about; the guest is not used again then."""
        oops = self.guest.oops() if self.guest else ""
        if oops:
            self.close_guest()
            return f"the guest's kernel says\n{oops}"
        return ""

    def close_guest(self):
        if self.running:
            self.running.close()
        self.running = self.job = None
        self.enter(self.home)
        if self.guest:
            self.guest.close()
        self.guest = None

    def close(self):
        self.close_guest()
        self.home.close()
