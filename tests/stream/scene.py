"""What the cases share: starting the two sides and the consumer, and what they say."""

import json
import os
import signal
import subprocess
import threading
import time

SECONDS = 60
PACKET = 7824  # bytes of LOFAR's packets


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
            for document in self.documents():
                if ready(document):
                    return document
            check(not ended, f"{self.words[2]} ended before {what}")
            time.sleep(0.02)
        raise Failed(f"never came: {what}")

    def end(self, status=0):
        """Waits for its end; what it said last."""
        try:
            self.process.wait(SECONDS)
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

    def __init__(self, build, folder):
        self.build = build
        self.folder = folder
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
        process = Process(self.prefix + list(map(str, words)), {**os.environ, "WEFT_IP": "127.0.0.1", **(environment or {})})
        self.started.append(process)
        return process

    def small_packets(self):
        """From now on all is started on a loopback of its own, with the MTU of Ethernet."""
        if os.geteuid() != 0:
            raise Skipped("needs root, for a network namespace")
        holder = self.start(["unshare", "--net", "sh", "-c",
                             "ip link set lo mtu 1500 up && echo '{}' && exec sleep 100"])
        holder.wait_for("a namespace", lambda d: d == {})
        self.prefix = ["nsenter", f"--net=/proc/{holder.process.pid}/ns/net"]

    def receive(self, transport, *words, port=0, environment=None):
        """Starts a receiver, which listens when this returns."""
        process = self.start([f"{self.build}/bin/weft", "stream", "recv", "--transport", transport, "--bind",
                              "127.0.0.1", "--port", port, "--json", *words], environment)
        self.port = process.wait_for("listening", lambda d: d.get("event") == "listening")["port"]
        return process

    def send(self, transport, *words, environment=None):
        return self.start([f"{self.build}/bin/weft", "stream", "send", f"127.0.0.1:{self.port}", "--transport",
                           transport, "--bind", "127.0.0.1", "--json", "--max-late", 0, *words], environment)

    def consume(self, *words, prefix=()):
        """Starts the example consumer, which is attached when this returns."""
        process = self.start([*prefix, f"{self.build}/bin/stream_consumer", self.ring, *words])
        until = time.monotonic() + SECONDS
        while "attached" not in process.errors:
            check(process.process.poll() is None and time.monotonic() < until, "the consumer does not attach")
            time.sleep(0.02)
        return process


def total(document, name):
    return sum(stream[name] for stream in document["streams"])
