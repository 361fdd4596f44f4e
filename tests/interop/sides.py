"""The two sides that talk with each other: programs on weft in the guest's namespace, and programs on siw in the guest."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../apps"), os.path.join(HERE, "../trace"), os.path.join(HERE, "../support")]
import apps  # noqa: E402
import captures  # noqa: E402
import dissect  # noqa: E402
import guest as guests  # noqa: E402

Failed = apps.Failed
ports = iter(range(7100, 60000))


# rping, once its connection has ended, destroys its event channel in one thread while the other is on its way back to it; that
# one ends the process with 255 where it comes too late, whichever side it is. Later versions of rping wait for it. Seen in the guest
# alone: on weft it would be looked into.
OVERTAKEN = re.compile(r"^(server DISCONNECT EVENT\.\.\.\nwait for RDMA_READ_ADV state 10|client DISCONNECT EVENT\.\.\.)\n"
                       r"rdma_get_cm_event: Bad file descriptor\s*\Z", re.MULTILINE)


class WeftProcess(apps.Process):
    """A program on weft, as a user without rights, in the namespace that has the guest."""

    name = "weft"

    def signal(self, name):
        self.process.send_signal(signal.Signals[f"SIG{name}"])

    def poll(self, until):
        while self.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        return self.process.returncode

    def finish(self, until):
        return self.wait(until)

    def ended_well(self, status):
        return status == 0

    def crashed(self, status):
        """Whether it ended by a signal, or a sanitizer ended it."""
        return status < 0 or bool(self.finding())


class SiwJob:
    """A program on siw, in the guest."""

    name = "siw"

    def __init__(self, guest, command):
        self.guest = guest
        self.job = guest.start(command)
        self.command = self.job.command

    def text(self):
        return self.job.text()

    def poll(self, until):
        return self.job.poll(until)

    def finish(self, until):
        status = self.job.poll(until)
        if status is None:
            raise Failed(f"no end within the time: {' '.join(self.command)}")
        return status

    def ended_well(self, status):
        return status == 0 or (status == 255 and bool(OVERTAKEN.search(self.text())))

    def crashed(self, status):
        """Whether it ended by a signal. 255 is what its shell makes of -1, rping's own error."""
        return 128 < status < 255

    def signal(self, name):
        self.job.kill(name)

    def listens(self, port, until):
        return self.guest.listens(port, until)

    def end(self):
        self.job.end()


PEER = "interop_peer"


class Product(apps.Product):
    """With the program of peer/ beside it."""

    def __init__(self, build):
        super().__init__(build)
        self.peer = shutil.copy(f"{build}/bin/{PEER}", f"{self.root}/bin")

    def command(self, program, environment=()):
        # What was started ends with this process, however that ends.
        setpriv, *rest = super().command(program, environment)
        return [setpriv, "--pdeathsig", "KILL", *rest]


class World:
    """A guest, a copy of weft, and everything that a case has started. Options are weft's, as in WEFT_CRC."""

    def __init__(self, guest, product):
        self.guest = guest
        self.product = product
        self.options = {}
        self.until = 0.0
        self.started = []
        self.traces = None
        self.mtu = 1500

    def address(self, side):
        return {"weft": guests.Guest.own_address, "siw": guests.Guest.address}[side]

    def start(self, side, words):
        """Starts the program on the side: 'weft' or 'siw'."""
        if side == "siw":
            process = SiwJob(self.guest, " ".join(words))
        else:
            options = [f"{name}={value}" for name, value in self.options.items()]
            process = WeftProcess(self.guest.enter() + ["env", *options] + self.product.command(["stdbuf", "-oL", *words]))
        self.started.append(process)
        return process

    def peer(self, side):
        """The program of peer/ there."""
        return {"weft": self.product.peer, "siw": f"/{PEER}"}[side]

    def serve(self, side, words, port):
        process = self.start(side, words)
        if not process.listens(port, min(self.until, time.monotonic() + 20)):
            raise Failed(f"the server does not listen: {' '.join(process.command)}")
        return process

    def succeed(self, process):
        status = process.finish(self.until)
        if not process.ended_well(status):
            raise Failed(f"exit status {status}: {' '.join(process.command)}")

    def no_crash(self, process):
        """It runs still, or ended with a status of its own, an error's or not."""
        status = process.poll(0)
        if status is not None and process.crashed(status):
            raise Failed(f"it crashed, status {status}: {' '.join(process.command)}")
        return status

    def says(self, process, text):
        """Waits until it says so."""
        over = False
        while text not in process.text():
            if over or time.monotonic() > self.until:
                raise Failed(f"it never says '{text}': {' '.join(process.command)}")
            over = process.poll(time.monotonic() + 0.05) is not None

    def begin(self, options, seconds, mtu):
        if mtu != self.mtu:
            self.guest.set_mtu(mtu)
            self.mtu = mtu
        self.options = dict(options)
        self.until = time.monotonic() + seconds
        self.started = []
        self.traces = None

    def trace(self):
        """weft keeps a capture of what it says and hears from here on."""
        self.traces = captures.open_folder(self.product.root)
        self.options["WEFT_TRACE"] = f"{self.traces}/%p.pcapng"

    def cut_segments(self, always):
        """Whether the kernel cuts what TCP sends to the guest before it reaches the network card."""
        most = "1" if always else "65535"
        subprocess.run(["ip", "-n", self.guest.namespace, "link", "set", "tap0", "gso_max_segs", most], check=True)

    def frames(self):
        """A line for each packet of the captures."""
        files = [f"{self.traces}/{name}" for name in os.listdir(self.traces)] if self.traces else []
        return "".join(subprocess.run(dissect.tshark("-r", f), text=True, env=dissect.environment(), check=False,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout for f in files)

    def transcript(self):
        return "".join(f"--- {' '.join(p.command)}\n{p.text()}\n" for p in self.started) + self.frames()

    def close(self):
        """At once, whatever is going on. The jobs in the guest end with it."""
        for process in self.started:
            if isinstance(process, WeftProcess):
                process.end()
        self.guest.close()

    def finish(self):
        died = None
        for process in self.started:
            try:
                process.end()
            except guests.GuestDied as e:
                died = e
        if died:
            raise died
