"""Cases about SIGINT and SIGTERM: each side ends by itself whatever it waits for, and accounts for what it did. Where a peer, a pipe or
a file would hold it up, that goes on holding it up until the end of the case."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time

from scene import SECONDS, Failed, check, equal, total

RAW = ("--format", "raw", "--payload", 1000)
# Seconds that a side may take on a busy machine. Without the signal's effect the waits below last for ever, or as say_goodbye's 30 s.
PATIENCE = 25
SENDING_TO = "02"  # SYN_SENT, in /proc/net/tcp


def until(what, ready, process):
    """Waits until `ready()`, while the process runs."""
    end = time.monotonic() + SECONDS
    while not ready():
        check(process.poll() is None, f"it ended before {what}")
        if time.monotonic() > end:
            raise Failed(f"never came: {what}")
        time.sleep(0.02)


def event(process, name):
    return process.wait_for(name, lambda d: d.get("event") == name)


def sent_so_far(process):
    return max((total(d, "sent") for d in process.documents() if "streams" in d and d.get("side") == "send"), default=0)


def never_connected(scene):
    """Nobody listens: the sender tries again until the signal."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        scene.port = nobody.getsockname()[1]
        for number in (signal.SIGINT, signal.SIGTERM):
            sender = scene.send("tcp")
            check(str(scene.port) in event(sender, "waiting")["reason"], "the reason names the port")
            sender.kill(number)
            equal(total(sender.end(1, PATIENCE), "sent"), 0, "sent")
            check("no receiver was found" in sender.errors[-1], sender.errors)


@contextlib.contextmanager
def black_hole():
    """The port of a listener whose queue is full: the kernel drops all that would connect."""
    with socket.socket() as door, contextlib.ExitStack() as stack:
        door.bind(("127.0.0.1", 0))
        door.listen(0)
        address = door.getsockname()
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(address)
        yield address[1]


def connecting_to(port):
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in list(file)[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == SENDING_TO for row in rows)


def black_hole_while_connecting(scene):
    with black_hole() as port:
        scene.port = port
        until_now = connecting_to(port)
        sender = scene.send("rc")
        until("its SYN", lambda: connecting_to(port) > until_now, sender.process)
        sender.kill(signal.SIGTERM)
        sender.end(1, PATIENCE)
        check("no receiver was found" in sender.errors[-1], sender.errors)
        check(not any("Interrupted" in line for line in sender.lines), sender.lines)


def black_hole_longer_than_the_run(scene):
    """--duration ends a sender whose connection does not come about."""
    with black_hole() as port:
        scene.port = port
        sender = scene.send("tcp", "--duration", 0.5)
        sender.end(1)
        check("no receiver was found" in sender.errors[-1], sender.errors)


def silent_receiver(scene):
    """It takes the connection, and then says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        scene.port = door.getsockname()[1]
        sender = scene.send("udp")
        connection, _ = door.accept()
        with connection:
            check(b"weft_stream" in connection.recv(65536), "hello")
            sender.kill(signal.SIGTERM)
            sender.end(1, PATIENCE)


def stalled(transport):
    """The receiver is stopped, and stays so. What was sent until then is accounted for."""
    def case(scene):
        receiver = scene.receive(transport, *RAW)
        sender = scene.send(transport, *RAW, "--rate", 200)
        sender.wait_for("packets", lambda d: d.get("streams") and total(d, "sent") > 0)
        receiver.kill(signal.SIGSTOP)
        if transport in ("tcp", "rc"):
            def held_up():
                reports = [total(d, "sent") for d in sender.documents() if "streams" in d]
                return len(reports) > 2 and reports[-1] == reports[-2]
            until("a stall", held_up, sender.process)
        before = sent_so_far(sender)
        sender.kill(signal.SIGINT)
        # The receiver does not say what it has.
        got = sender.end(1, PATIENCE)
        check(got["final"] and total(got, "sent") >= before > 0, f"{got}, after {before}")
        check(any(d.get("event") == "lost" for d in sender.documents()), "the receiver is lost")
        receiver.kill(signal.SIGCONT)
        receiver.kill(signal.SIGTERM)
        equal(receiver.end()["final"], True, "the receiver's report")
    return case


def sender_stopped(transport):
    """The sender is stopped in the midst of it: the receiver has all that came."""
    def case(scene):
        receiver = scene.receive(transport, *RAW)
        sender = scene.send(transport, *RAW, "--rate", 50)
        receiver.wait_for("packets", lambda d: d.get("streams") and total(d, "received") > 0)
        sender.kill(signal.SIGSTOP)
        receiver.kill(signal.SIGTERM)
        got = receiver.end(0, PATIENCE)
        check(got["final"] and total(got, "received") > 0, got)
    return case


def half_a_hello(scene):
    """A guest that connects and says half a word, and a sender of TCP that never connects its streams."""
    receiver = scene.receive("tcp", *RAW)
    with socket.create_connection(("127.0.0.1", scene.port)) as guest, socket.create_connection(("127.0.0.1", scene.port)) as other:
        guest.sendall(b'{"weft_')
        shape = {"format": "raw", "beamlets": 61, "slices": 16, "bits": 16, "payload": 1000, "heap_packets": 1, "clock": 0}
        other.sendall(json.dumps({"weft_stream": 1, "transport": "tcp", "shape": shape, "group": 1, "first": [0], "streams": [0],
                                  "ends": [{}]}).encode() + b"\n")
        answer = other.recv(65536)
        check(b"packets_per_block" in answer, answer)
        receiver.kill(signal.SIGTERM)
        receiver.end(0, PATIENCE)


@contextlib.contextmanager
def receiver_into_pipe(scene, *words):
    """A receiver whose standard output is a pipe that is full. It takes senders when this returns."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        scene.port = server.getsockname()[1]
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, bytes(4096))
    os.set_blocking(write_end, True)
    process = subprocess.Popen([f"{scene.build}/bin/weft", "stream", "recv", "--bind", "127.0.0.1", "--port", str(scene.port), *map(str, words)],
                               env={**os.environ, "WEFT_IP": "127.0.0.1"}, stdin=subprocess.DEVNULL, stdout=write_end, stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    try:
        until("its port", lambda: listens(scene.port), process)
        yield process
    finally:
        os.close(read_end)
        process.kill()
        process.wait()
        process.stderr.close()


def listens(port):
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def said_at_the_end(process):
    try:
        return process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        raise Failed("the receiver does not end") from None


def pipe_that_nobody_reads(scene):
    """Packets go to a pipe that is full: the receiver says how much it could not write, and that is no good end."""
    with receiver_into_pipe(scene, "--transport", "tcp", *RAW, "--stdout", "--block", 16) as receiver:
        sender = scene.send("tcp", *RAW, "--rate", 50)
        sender.wait_for("packets", lambda d: d.get("streams") and total(d, "sent") > 100)
        receiver.send_signal(signal.SIGTERM)
        said = said_at_the_end(receiver)
        equal(receiver.returncode, -signal.SIGTERM, f"status, after {said}")
        check("blocks were received and not written" in said and "weft stream recv: " in said, said)
        sender.kill(signal.SIGTERM)


def reports_that_nobody_reads(scene):
    """The lines of --json go to a pipe that is full. Nothing can be said there, so the signal ends the receiver."""
    with receiver_into_pipe(scene, "--transport", "udp", "--json") as receiver:
        receiver.send_signal(signal.SIGINT)
        said_at_the_end(receiver)
        equal(receiver.returncode, -signal.SIGINT, "status")


def recording_that_does_not_come(scene):
    """The sender waits for the first packet of a recording, out of a pipe."""
    pipe = f"{scene.folder}/recording"
    os.mkfifo(pipe)
    holder = os.open(pipe, os.O_RDWR)
    try:
        scene.port = 1
        sender = scene.send("udp", "--recording", pipe)
        until("the pipe is open", lambda: pipe in {os.path.realpath(f"/proc/{sender.process.pid}/fd/{fd}") for fd in descriptors(sender)}, sender.process)
        sender.kill(signal.SIGTERM)
        sender.end(1, PATIENCE)
        check("a signal came before its first packet" in sender.errors[-1], sender.errors)
    finally:
        os.close(holder)


def before_the_first_packet(transport):
    def case(scene):
        """A sender that ends before its first packet is due has ended: a receiver of one sender ends, too."""
        receiver = scene.receive(transport, *RAW, "--once")
        sender = scene.send(transport, *RAW, "--rate", 30, "--delay", 600)
        event(sender, "connected")
        sender.kill(signal.SIGTERM)
        equal(total(sender.end(0, PATIENCE), "sent"), 0, "sent")
        equal(total(receiver.end(0, PATIENCE), "received"), 0, "received")
    return case


def descriptors(process):
    with contextlib.suppress(OSError):
        return os.listdir(f"/proc/{process.process.pid}/fd")
    return []


CASES = {"stop_never_connected": never_connected,
         "stop_black_hole": black_hole_while_connecting,
         "stop_black_hole_longer_than_the_run": black_hole_longer_than_the_run,
         "stop_silent_receiver": silent_receiver,
         **{f"stop_stalled_{transport}": stalled(transport) for transport in ("tcp", "udp", "rc", "uc")},
         **{f"stop_sender_stopped_{transport}": sender_stopped(transport) for transport in ("tcp", "udp", "rc", "uc")},
         "stop_half_a_hello": half_a_hello,
         **{f"stop_before_the_first_packet_{transport}": before_the_first_packet(transport) for transport in ("tcp", "udp", "rc", "uc")},
         "stop_recording": recording_that_does_not_come,
         "stop_pipe": pipe_that_nobody_reads,
         "stop_reports": reports_that_nobody_reads}
