"""The driver's hold on the peer under test, which is the program of peer/: lines out, lines in.

Where the peer runs is its maker's business: here on weft, or in the guest of tests/interop on siw (siw.py).
"""

import contextlib
import os
import shutil
import socket
import sys
import time

import counted

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../apps"))
import apps  # noqa: E402
from apps import captures  # noqa: E402, F401

PROGRAM = "conformance_peer"


class PeerError(Exception):
    """The peer could not do what it was told."""


class PeerDied(Exception):
    """The peer's program ended, or does not answer."""


class Peer:
    """One running peer. `patience`: seconds for what must come, `quick` for what comes at once, in full operation.
    `swapped`: it lays the first byte of a Terminate out as siw does (spec/errors 1.2). `read_counters`: tells what it counts, where it
    does (counted.py)."""

    def __init__(self, name, address, port, own_address, patience, quick, swapped=False, read_counters=None):
        self.name = name
        self.address = address
        self.own_address = own_address
        self.patience = patience
        self.quick = quick
        self.swapped = swapped
        self.read_counters = read_counters
        self.keys = {}
        self.heard = b""
        self.control = self.reach(port)

    def reach(self, port):
        until = time.monotonic() + self.patience
        while True:
            try:
                control = socket.create_connection((self.address, port), self.patience)
                control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return control
            except OSError as e:
                if time.monotonic() > until:
                    raise PeerDied(f"nobody listens for the driver: {e}") from e
                time.sleep(0.02)

    def tell(self, *words):
        """Says a line and does not wait for the answer."""
        data = " ".join(w.hex() or "-" if isinstance(w, bytes) else str(w) for w in words)
        try:
            self.control.sendall(data.encode() + b"\n")
        except OSError as e:
            raise PeerDied(str(e)) from e

    def answer(self):
        self.control.settimeout(self.patience + 20)
        while b"\n" not in self.heard:
            try:
                more = self.control.recv(1 << 16)
            except OSError as e:
                raise PeerDied(f"no answer: {e}") from e
            if not more:
                raise PeerDied("the program ended")
            self.heard += more
        line, self.heard = self.heard.split(b"\n", 1)
        verdict, _, text = line.decode().partition(" ")
        if verdict != "ok":
            raise PeerError(text)
        return text.strip()

    def ask(self, *words):
        self.tell(*words)
        return self.answer()

    def reset(self):
        self.keys = {k: int(v) for k, v in (w.split("=") for w in self.ask("reset", int(self.quick * 1000)).split()[1:])}

    def close(self):
        self.control.close()


class WeftPeers:
    """Peers on weft on this host, one for each set of options; they stay for the cases that want the same set."""

    name = "weft"

    def __init__(self, build, sanitizer=None):
        self.product = apps.Product(build, sanitizer)
        shutil.copy(f"{build}/bin/{PROGRAM}", f"{self.product.root}/bin")
        self.running = {}
        self.recording = {}  # the option, while everything is recorded

    def key(self, options):
        return tuple(sorted({**options, **self.recording}.items()))

    def peer(self, options):
        key = self.key(options)
        if key not in self.running:
            port = apps.free_port()
            command = self.product.command([f"{self.product.root}/bin/{PROGRAM}", "127.0.0.1", str(port)])
            process = apps.Process(["env", *(f"{k}={v}" for k, v in key), *command])
            try:
                read = counted.reader(f"{self.product.root}/bin/weft", process.process.pid)
                self.running[key] = (Peer(self.name, "127.0.0.1", port, "127.0.0.1", 10, 10, read_counters=read), process)
            except PeerDied:
                process.end()
                raise
        return self.running[key][0]

    def replace(self, options):
        """After the peer for these options died; what it said."""
        peer, process = self.running.pop(self.key(options), (None, None))
        if peer is None:
            return ""
        peer.close()
        process.end()
        return process.text()

    @contextlib.contextmanager
    def recorded(self, folder):
        """Meanwhile peers are fresh ones, and keep a capture in the folder."""
        self.recording = {"WEFT_TRACE": f"{folder}/%p.pcapng"}
        try:
            yield
        finally:
            for key in [key for key in self.running if set(self.recording.items()) <= set(key)]:
                self.replace(dict(key))
            self.recording = {}

    def settle(self, _seconds):
        """After a case of so many seconds."""

    def trouble(self):
        """What a sanitizer says; that peer is not used again."""
        for key, (peer, process) in list(self.running.items()):
            if process.finding():
                del self.running[key]
                peer.close()
                process.end()
                return process.text()
        return ""

    def close(self):
        for peer, process in self.running.values():
            peer.close()
            process.end()
        self.product.close()
