"""What passes on an interface, kernel's headers and all. Takes root, and tcpdump."""

import re
import signal
import subprocess
import tempfile
import time

SECONDS = 20
FIGURES = re.compile(r"(\d+) packets? captured, (\d+) packets? received by filter, (\d+) packets? dropped by kernel")


class Lost(Exception):
    """tcpdump cannot say what has passed."""


class Recording:
    """Runs until it is closed; `enter` are the words that lead into the interface's namespace. Not for loopback, where the
    kernel counts each packet twice."""

    def __init__(self, interface, folder, enter=()):
        self.file = f"{folder}/wire.pcap"
        self.said = tempfile.TemporaryFile(mode="w+")
        # It ends with this process, however that ends. Its immediate mode would have the kernel divide the buffer into places for
        # a largest packet each: 256 of them, which a burst of small packets fills.
        command = [*enter, "setpriv", "--pdeathsig", "KILL", "tcpdump", "-Z", "root", "-i", interface, "-s", "0", "-B", "65536",
                   "-U", "-w", self.file, "tcp"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.said, stderr=subprocess.STDOUT)
        until = time.monotonic() + SECONDS
        while "listening on" not in self.text():
            if time.monotonic() > until or self.process.poll() is not None:
                self.close()
                raise Lost(f"tcpdump: {self.text()}")
            time.sleep(0.02)
        # Of what passed before its filter was there, the kernel counts all and tcpdump nothing: an interface that has just come
        # up says some words about IPv6.
        self.others = self.difference(until)
        if self.others:
            time.sleep(1.5)  # or it waits in the kernel's buffer, which is handed over after a second
            self.others = min(self.others, self.difference(until))

    def text(self):
        self.said.seek(0)
        return self.said.read()

    def difference(self, until):
        """How many packets the kernel has counted that are not in the file. tcpdump says it on a signal."""
        while True:
            said = len(self.text())
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(0.1)
            found = FIGURES.search(self.text(), said)
            if found:
                captured, received, dropped = map(int, found.groups())
                if dropped:
                    raise Lost(f"tcpdump has lost {dropped} of {received} packets")
                return received - captured
            if time.monotonic() > until or self.process.poll() is not None:
                raise Lost(f"tcpdump says no figures: {self.text().splitlines()[-1:]}")

    def finish(self):
        """The file, with all that has passed. What the kernel has for it waits in a buffer, of which an end would lose the rest."""
        until = time.monotonic() + SECONDS
        while self.difference(until) > self.others:
            if time.monotonic() > until:
                raise Lost(f"tcpdump does not come to an end, {self.others} packets were not for it: {self.text().splitlines()[-1:]}")
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired as e:
            raise Lost("tcpdump does not end") from e
        return self.file

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
