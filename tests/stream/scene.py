"""What the cases share: starting the two sides and the consumer, and what they say."""

import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
sys.path.insert(0, EXAMPLES)
from read_blocks import blocks, ranges  # noqa: E402,F401

SECONDS = 60
PACKET = 7824  # bytes of LOFAR's packets
# Of a ring that holds all that a case sends: over udp and uc nothing waits for a consumer that has no CPU.
ROOMY = ("--blocks", 64)


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def check(right, sentence):
    if not right:
        raise Failed(sentence)


def equal(found, expected, what):
    check(found == expected, f"{what}: {found}, not {expected}")


class Process:
    """A program, and the lines that it printed so far."""

    def __init__(self, words, environment):
        self.words = words
        self.lines = []
        self.errors = []
        self.process = subprocess.Popen(words, env=environment, text=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def documents(self):
        return [json.loads(line) for line in list(self.lines)]

    def wait_for(self, what, ready):
        """Until ready(a document it printed); that document."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            ended = self.process.poll() is not None
            for reader in self.readers if ended else ():
                reader.join(SECONDS)
            for document in self.documents():
                if ready(document):
                    return document
            check(not ended, f"{self.words[2]} ended before {what}")
            time.sleep(0.02)
        raise Failed(f"never came: {what}")

    def end(self, status=0, within=SECONDS):
        """Waits for its end; what it said last."""
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{' '.join(self.words[:3])} does not end") from None
        for reader in self.readers:
            reader.join()
        equal(self.process.returncode, status, f"exit status of {' '.join(self.words[:3])}")
        return json.loads(self.lines[-1]) if self.lines else None

    def kill(self, number=signal.SIGKILL):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def rest(self):
        self.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


class Scene:
    """What one case starts; all of it is ended with the case."""

    def __init__(self, build, folder, environment=(), seconds=None):
        self.build = build
        self.seconds = seconds  # of a case that may last as long as one likes; None: as usual
        self.folder = folder
        self.environment = dict(word.split("=", 1) for word in environment)
        self.ring = f"weft-stream-test-{os.getpid()}"
        self.started = []
        self.port = None
        self.prefix = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.rest()
        path = f"/dev/shm/{self.ring}"
        if os.path.exists(path):
            os.unlink(path)

    def said(self):
        return "\n".join(f"{' '.join(p.words)}\n  " + "\n  ".join(p.lines[-4:] + p.errors[-8:]) for p in self.started)

    def start(self, words, environment=None):
        environment = {**os.environ, "WEFT_IP": "127.0.0.1", **self.environment, **(environment or {})}
        process = Process(self.prefix + list(map(str, words)), environment)
        self.started.append(process)
        return process

    def run(self, *words):
        """Runs a command to its end; what it prints."""
        done = subprocess.run(self.prefix + list(words), capture_output=True, text=True, timeout=SECONDS)
        equal(done.returncode, 0, f"exit status of {' '.join(words)}: {done.stderr}")
        return done.stdout

    def namespace(self, setup):
        """A network namespace in which these commands of the shell were run; what to write before commands that run in it."""
        if os.geteuid() != 0:
            raise Skipped("needs root, for a network namespace")
        holder = self.start(["unshare", "--net", "sh", "-c", f"set -e; PATH=$PATH:/usr/sbin:/sbin; {setup}\necho '{{}}'; exec sleep 300"])
        holder.wait_for("a namespace", lambda d: d == {})
        return ["nsenter", f"--net=/proc/{holder.process.pid}/ns/net"]

    def small_packets(self):
        """From now on all is started on a loopback of its own, with the MTU of Ethernet."""
        self.prefix = self.namespace("ip link set lo mtu 1500 up")

    def receive(self, transport, *words, port=0, environment=None):
        """Starts a receiver, which listens when this returns."""
        process = self.start([f"{self.build}/bin/weft", "stream", "recv", "--transport", transport, "--bind",
                              "127.0.0.1", "--port", port, "--json", *words], environment)
        self.port = process.wait_for("listening", lambda d: d.get("event") == "listening")["port"]
        return process

    def send(self, transport, *words, environment=None):
        if "--max-late" not in words:
            words = ("--max-late", 0, *words)
        return self.start([f"{self.build}/bin/weft", "stream", "send", f"127.0.0.1:{self.port}", "--transport",
                           transport, "--bind", "127.0.0.1", "--json", *words], environment)

    def consume(self, *words, prefix=()):
        """Starts the example consumer, which is attached when this returns."""
        process = self.start([*prefix, f"{self.build}/bin/stream_consumer", self.ring, *words])
        until = time.monotonic() + SECONDS
        while "attached" not in process.errors:
            check(process.process.poll() is None and time.monotonic() < until, "the consumer does not attach")
            time.sleep(0.02)
        return process


AtSockets = collections.namedtuple("AtSockets", "waiting dropped")


def at_sockets(process):
    """Bytes that wait in the process's UDP sockets, and datagrams for which these had no room, as the kernel counts."""
    folder = f"/proc/{process.process.pid}/fd"
    own = set()
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            own.add(os.readlink(f"{folder}/{fd}"))
    rows = []
    for table in ("udp", "udp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as file:
            rows += [row for row in map(str.split, list(file)[1:]) if f"socket:[{row[9]}]" in own]
    return AtSockets(sum(int(row[4].split(":")[1], 16) for row in rows), sum(int(row[-1]) for row in rows))


def total(document, name):
    return sum(stream[name] for stream in document["streams"])
