"""Cases that run what docs/streams.md tells astronomers to run: its commands, as they stand there, between network namespaces that have
the addresses of the page."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

from scene import SECONDS, Skipped, check, equal

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
ENOUGH = 20_000  # datagrams of a try


def section(title, page="streams"):
    """A page's text from this heading to the next one."""
    with open(f"{SOURCE}/docs/{page}.md", encoding="utf-8") as file:
        return re.split(r"^## ", file.read().split(f"\n## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def indented(text):
    """Its lines of code."""
    return [line[4:] for line in text.splitlines() if line.startswith("    ")]


class Page:
    """A folder in which the page's commands run, and what they need."""

    def __init__(self, scene):
        self.scene = scene
        for name in ("include", "examples"):
            os.symlink(os.path.abspath(f"{SOURCE}/{name}"), f"{scene.folder}/{name}")
        self.environment = {"WEFT_IP": "", "PATH": f"{os.path.abspath(scene.build)}/bin:{os.environ['PATH']}"}
        # The receiver's machine, and those that send, each on a link of its own.
        self.receiver = scene.namespace("ip link set lo up; ip addr add 192.0.2.1/32 dev lo")
        self.senders = {}

    def add_sender(self, address):
        here = self.senders[address] = self.scene.namespace("ip link set lo up")
        holder, link = self.receiver[1].split("/")[2], f"to{address.rpartition('.')[2]}"
        for where, words in ((here, f"link add out type veth peer name {link} netns {holder}"), (here, f"addr add {address}/24 dev out"),
                             (here, "link set out up"), (self.receiver, f"link set {link} up"), (self.receiver, f"route add {address} dev {link} src 192.0.2.1")):
            subprocess.run([*where, "ip", *words.split()], check=True, timeout=SECONDS)

    def words(self, command):
        """The command, with another name for the ring than somebody else's, and fewer seconds."""
        command = re.sub(r"\bsky\b(?![.])", self.scene.ring, command).replace("--duration 10", "--duration 3")
        return ["env", "-C", self.scene.folder, *shlex.split(command)]

    def start(self, where, command):
        self.scene.prefix = where
        return self.scene.start(self.words(command), self.environment)

    def run(self, command):
        """To its end; what it prints."""
        done = subprocess.run(self.words(command), env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=SECONDS, check=False)
        equal(done.returncode, 0, f"exit status of {command}: {done.stderr}")
        return done.stdout

    def receive(self, command):
        process = self.start(self.receiver, command)
        self.wait(process, "listens", lambda: any(row.split()[1:4:2] == ["010200C0:10FB", "0A"] for row in self.table(process, "tcp")))
        return process

    @staticmethod
    def table(process, name):
        with open(f"/proc/{process.process.pid}/net/{name}", encoding="ascii") as file:
            return file.read().splitlines()[1:]

    @staticmethod
    def wait(process, what, ready):
        until = time.monotonic() + SECONDS
        while not ready():
            check(process.process.poll() is None and time.monotonic() < until, f"{' '.join(process.words)} never {what}")
            time.sleep(0.02)

    def wait_for_packets(self, receiver):
        """Until so many datagrams more have come."""
        def came():
            return next(int(row.split()[1]) for row in self.table(receiver, "snmp") if row.startswith("Udp: ") and "In" not in row)
        before = came()
        self.wait(receiver, "gets packets", lambda: came() >= before + ENOUGH)


def end(process, status=0):
    """Ctrl-C; its last line."""
    process.kill(signal.SIGINT)
    process.end(status=status)
    return process.errors[-1]


def number(line, name):
    found = re.search(rf"\b{name} (\d+)", line)
    check(found, f"no {name} in '{line}'")
    return int(found.group(1))


def consume(page, command):
    """The consumer, attached. The receiver listens before its ring is ready: as people do, again where that is so."""
    until = time.monotonic() + SECONDS
    while True:
        process = page.start(page.receiver, command)
        while "attached" not in process.errors and process.process.poll() is None:
            time.sleep(0.02)
        if process.process.poll() is None:
            return process
        check(time.monotonic() < until, f"{command} never attaches")


def tutorial(scene):
    """From two machines to a running capture: steps 3 to 7."""
    text = section("From two machines to a running capture")
    steps = {int(step): indented(said) for step, said in re.findall(r"^\*\*(\d)\. (.*?)(?=^\*\*|\Z)", text, flags=re.MULTILINE | re.DOTALL)}
    equal({step: len(lines) for step, lines in steps.items()}, {1: 3, 2: 0, 3: 1, 4: 1, 5: 3, 6: 2, 7: 1}, "lines of code in each step")
    if shutil.disk_usage(scene.folder).free < 2 << 30:
        raise Skipped("needs 2 GB for files")
    page = Page(scene)
    page.add_sender("192.0.2.7")
    there = page.senders["192.0.2.7"]
    (receive,), (send,), (build, look, looked), (write, read), (lose,) = (steps[step] for step in range(3, 8))

    page.run(build)
    receiver = page.receive(receive)
    consumer = consume(page, look)
    sender = page.start(there, send)
    page.wait_for_packets(receiver)
    sent, got = end(sender), end(receiver)
    seen = consumer.end()
    equal(list(seen), list(json.loads(looked)), "what the consumer prints")
    equal(seen["wrong"], 0, "wrong")
    check(seen["packets"] > 1000 and number(sent, "sent") >= number(got, "received") > 1000, f"sent: {sent}; received: {got}; seen: {seen}")

    receiver = page.receive(write)
    sender = page.start(there, send)
    receiver.end()
    end(sender, 1)  # nobody knows of what it sent last
    last = page.run(read).splitlines()[-1]
    equal(number(last, "packets"), number(receiver.errors[-1], "received"), "packets in the file")
    check(number(last, "packets") > 1000, last)

    receiver = page.receive(receive)
    sender = page.start(there, lose)
    page.wait_for_packets(receiver)
    end(sender)
    got = end(receiver)
    with open(f"{scene.folder}/lost", encoding="ascii") as file:
        lost = sum(line.split()[3].startswith("d114") for line in file)
    check(lost > 0 and number(got, "missing") > 0, f"{lost} datagrams were lost, and the receiver says: {got}")


def tutorial_circuits(scene):
    """The commands for boards: a receiver, and the reference sender at two addresses."""
    text = section("Packets from an FPGA", "streams-reference")
    receive, build, *send = indented(text)
    equal([words.split()[0] for words in (receive, build, *send)], ["weft", "cc", "./fpga_sender", "./fpga_sender"], "the commands")
    page = Page(scene)
    boards = re.findall(r"--static (\S+)", receive)
    for board in boards:
        page.add_sender(board)
    page.run(build)
    receiver = page.receive(receive)
    senders = [page.start(page.senders[board], command) for board, command in zip(boards, send)]
    consumer = consume(page, f"{os.path.abspath(scene.build)}/bin/stream_consumer sky")
    page.wait_for_packets(receiver)
    for sender in senders:
        equal(sender.process.poll(), None, f"status of {' '.join(sender.words)}, which knows no end")
        sender.kill()
    got = end(receiver)
    seen = consumer.end()
    equal((seen["wrong"], seen["packets"] > 1000), (0, True), f"wrong, packets: {got}")


def as_root(case):
    def guarded(scene):
        if os.geteuid() != 0:
            raise Skipped("needs root, for a network namespace")
        case(scene)
    return guarded


CASES = {"tutorial": as_root(tutorial), "tutorial_circuits": as_root(tutorial_circuits)}
