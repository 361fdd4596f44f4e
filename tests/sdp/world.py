"""Where a case runs its programs: a place (one host or two namespaces), a folder, a way (TCP or SDP), and all processes that it
started."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../apps"), os.path.join(HERE, "../support")]
import apps  # noqa: E402
import captures  # noqa: E402

NOBODY = apps.NOBODY
Failed = apps.Failed
LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1", "libweft-sdp.so")
START_SECONDS = 30  # until a server listens

# Ports whose SDP port (docs/spec/sdp.md 3.3) is none that the system hands out.
PORTS = range(2000, 2768)
SDP_PORT_DISTANCE = 61000
# A client that would not prove SDP fails.
SDP_OR_NOTHING = "use both server * *:*\nuse sdp client * *:*\n"


class Skipped(Exception):
    pass


def free_port():
    for port in random.sample(PORTS, 200):
        try:
            for number in (port, port + SDP_PORT_DISTANCE):
                with socket.socket() as s:
                    s.bind(("", number))
            return port
        except OSError:
            continue
    raise Failed("no free port")


class Product:
    """weft with its preload library as an unprivileged user finds it: a copy where everybody may read it."""

    def __init__(self, build):
        self.root = tempfile.mkdtemp(prefix="weft-sdp-")
        os.chmod(self.root, 0o755)
        os.makedirs(f"{self.root}/lib/weft")
        os.mkdir(f"{self.root}/bin")
        shutil.copy(f"{build}/bin/weft", f"{self.root}/bin/weft")
        for library in LIBRARIES:
            shutil.copy(f"{build}/lib/weft/{library}", f"{self.root}/lib/weft/{library}")

    def launcher(self):
        return [f"{self.root}/bin/weft", "run", "--sdp", "--"]

    def close(self):
        shutil.rmtree(self.root)


class Plain:
    """TCP, without weft."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="weft-sdp-")
        os.chmod(self.root, 0o755)

    def launcher(self):
        return []

    def close(self):
        shutil.rmtree(self.root)


class World:
    """One run of a case. What it starts is ended by close(), by its number; its folder goes with it."""

    build = None  # the build directory

    def __init__(self, place, product, way, seconds, rules=None):
        self.place = place
        self.product = product
        self.way = way
        self.address = place.address
        self.until = time.monotonic() + seconds
        self.folder = captures.open_folder(product.root)
        self.started = []
        self.expected = []  # by SDP: the lines that came out by TCP
        self.environment = {"HOME": self.folder, "TMPDIR": self.folder, "LC_ALL": "C", "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        for name in ("WEFT_LOG", "WEFT_SDP_LOG", "WEFT_SDP_ZCOPY_THRESH", "WEFT_TRACE"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        if rules:
            self.environment["LIBSDP_CONFIG_FILE"] = self.file("rules", rules)

    def allow_fallback(self):
        """For a case in which a client meets nobody who speaks SDP."""
        self.environment.pop("LIBSDP_CONFIG_FILE", None)

    def port(self):
        return free_port()

    def file(self, name, content, mode=0o644):
        """A file in the folder, of the programs' user."""
        path = f"{self.folder}/{name}"
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        self.give(path)
        return path

    def test_program(self, name):
        """One that the build made, where everybody may run it."""
        with open(f"{World.build}/bin/{name}", "rb") as f:
            return self.file(name, f.read(), 0o755)

    def subfolder(self, name):
        path = f"{self.folder}/{name}"
        os.mkdir(path)
        self.give(path)
        return path

    def give(self, path):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)

    def command(self, side, words, plain=False, as_caller=False):
        """`plain`: without the preload in either run. `as_caller`: root stays root."""
        drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 and not as_caller else []
        return [*self.place.enter(side), *drop, *([] if plain else self.product.launcher()), *words]

    def start(self, side, words, stdin=subprocess.DEVNULL, environment=(), **how):
        process = Process(self.command(side, words, **how), self.folder, {**self.environment, **dict(environment)}, stdin)
        self.started.append(process)
        return process

    def serve(self, words, port, **how):
        """A server, when it listens."""
        server = self.start(0, words, **how)
        if not server.listens(port, min(self.until, time.monotonic() + START_SECONDS)):
            raise Failed(f"does not listen at port {port}: {' '.join(words)}")
        return server

    def run(self, side, words, status=0, **how):
        """What it printed, when it has ended with this status (None: any)."""
        process = self.start(side, words, **how)
        self.ends(process, status)
        return process.text()

    def ends(self, process, status=0):
        got = process.wait(self.until)
        if status is not None and got != status:
            raise Failed(f"exit status {got}: {' '.join(process.command)}")
        return got

    def close(self):
        for process in reversed(self.started):
            process.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Process(apps.Process):
    def __init__(self, command, folder, environment, stdin):  # pylint: disable=super-init-not-called
        self.output = tempfile.TemporaryFile()
        self.errors = tempfile.TemporaryFile()
        self.command = command
        self.process = subprocess.Popen(command, stdin=stdin, stdout=self.output, stderr=self.errors, cwd=folder, env=environment,
                                        start_new_session=True)

    def bytes(self):
        # Not by seeking: the place in the file is the program's, too.
        return os.pread(self.output.fileno(), os.fstat(self.output.fileno()).st_size, 0)

    def text(self):
        return self.bytes().decode(errors="backslashreplace")

    def error_text(self):
        return os.pread(self.errors.fileno(), os.fstat(self.errors.fileno()).st_size, 0).decode(errors="backslashreplace")

    def has_said(self, word, until):
        while time.monotonic() < until and self.process.poll() is None and word not in self.text():
            time.sleep(0.01)
        return word in self.text()

    def signal(self, number):
        os.kill(self.process.pid, number)

    def end(self):
        """With all of its session: servers leave children behind."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                pass
        for pid in session_of(self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def session_of(leader):
    """The processes that are in its session and group by now."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as f:
                    if int(f.read().rsplit(")", 1)[1].split()[3]) == leader:
                        found.append(int(name))
            except (OSError, IndexError):
                continue
    return found
