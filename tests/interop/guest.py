"""A Linux guest with the kernel's siw under QEMU, in a network namespace of its own, and the jobs that it runs.

The guest's network card is a TAP device in the namespace, so that a program in the namespace reaches the guest and
nothing else. Jobs travel over virtio serial ports, which work whatever happens to the network.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import image

BOOT_SECONDS = 90
PORTS = 6  # the first is for short commands that steer the others
# What protects a kernel from its programs costs an emulated one four fifths of its speed. And it copies byte by byte (rep movsb)
# where the CPU says that it is fast at that, which an emulated one is not: 8 MB messages take three fifths of the time without.
CPU = "max,erms=off,fsrm=off,la57=off,smap=off,smep=off,umip=off,pcid=off"
FAST = "mitigations=off init_on_alloc=0 hardened_usercopy=off audit=0 no_timer_check"
# What the kernel says when it, not a program, went wrong.
OOPS = re.compile(r"BUG:|kernel BUG at|Oops|general protection fault|WARNING: CPU|Kernel panic|soft lockup|hung_task"
                  r"|blocked for more than|refcount_t:|list_(add|del) corruption")


class GuestDied(Exception):
    pass


def temporary_directory():
    return tempfile.mkdtemp(prefix=f"weft-interop-{os.getpid()}-")


def delete_what_was_left():
    """Namespaces and directories of runs that were killed."""
    gone = lambda name: (owner := re.match(r"weft-interop-(\d+)\b", name)) and not os.path.exists(f"/proc/{owner.group(1)}")
    for name in subprocess.run(["ip", "netns", "list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split():
        if gone(name):
            subprocess.run(["ip", "netns", "delete", name], check=False)
    for name in os.listdir("/tmp"):
        if gone(name):
            shutil.rmtree(f"/tmp/{name}", ignore_errors=True)


class Port:
    """One agent in the guest, and a thread that keeps what it says, so that a job never waits for its reader."""

    def __init__(self, path, number):
        self.number = number
        self.changed = threading.Condition()
        self.heard = b""
        self.gone = False
        self.job = None
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while True:
            try:
                more = self.socket.recv(65536)
            except OSError:
                more = b""
            with self.changed:
                self.heard += more
                self.gone = not more
                self.changed.notify_all()
            if not more:
                return

    def wait_for(self, pattern, until):
        """The match, or None when the time is over."""
        with self.changed:
            while not (found := re.search(pattern, self.heard)):
                if self.gone:
                    raise GuestDied("QEMU ended")
                if not self.changed.wait(until - time.monotonic()):
                    return None
            return found

    def say(self, text):
        with self.changed:
            self.heard = b""
        self.socket.sendall(text.encode())

    def close(self):
        self.socket.close()


class Job:
    """A shell command in the guest; apps.Process is its like on this side."""

    count = 0

    def __init__(self, guest, port, command):
        Job.count += 1
        self.token = f"job-{os.getpid()}-{Job.count}"
        self.guest = guest
        self.port = port
        self.command = ["guest:", command]
        self.status = None
        self.said = b""
        port.job = self
        port.say(f"{self.token} {command}\n")

    def text(self):
        if self.port.job is self:
            with self.port.changed:
                self.said = self.port.heard
        return self.said.decode(errors="replace").replace("\r\n", "\n")

    def poll(self, until):
        """The exit status, 128 + N after signal N; None when it runs still at that time."""
        if self.status is None:
            found = self.port.wait_for(rb"\n" + self.token.encode() + rb" (\d+)\r?\n", until)
            if found:
                self.status = int(found.group(1))
                self.said = self.port.heard[: found.start()]
                self.port.job = None
        return self.status

    def kill(self, name="KILL"):
        """Sends the signal to the job's processes."""
        self.guest.steer(f"kill -{name} -- -$(cat /run/vport*p{self.port.number})")

    def end(self):
        if self.status is None and not self.port.gone:
            self.kill()
            if self.poll(time.monotonic() + 10) is None:
                raise GuestDied(f"a killed job does not end: {self.command[1]}")


class Guest:
    address = "192.0.2.2"
    own_address = "192.0.2.1"

    def __init__(self, cpus, program, more=None):
        """The program is there as /NAME; more files are named as {path here: path there}."""
        kernel, initramfs = image.guest_image()
        self.namespace = f"weft-interop-{os.getpid()}"
        self.directory = temporary_directory()
        self.console = f"{self.directory}/console"
        self.console_seen = 0
        self.process = None
        self.ports = []
        try:
            self.make_namespace()
            files = {program: f"/{os.path.basename(program)}", **(more or {})}
            image.with_files(initramfs, files, f"{self.directory}/initramfs")
            self.boot(cpus, kernel, f"{self.directory}/initramfs")
        except BaseException:
            self.close()
            raise

    def make_namespace(self):
        delete_what_was_left()
        run = lambda *c: subprocess.run(c, check=True, stdout=subprocess.DEVNULL)
        run("ip", "netns", "add", self.namespace)
        run("ip", "-n", self.namespace, "tuntap", "add", "tap0", "mode", "tap")
        run("ip", "-n", self.namespace, "address", "add", f"{self.own_address}/24", "dev", "tap0")
        run("ip", "-n", self.namespace, "link", "set", "tap0", "up")
        run("ip", "-n", self.namespace, "link", "set", "lo", "up")

    def set_mtu(self, mtu):
        """Of both ends of the link, which has 1500 at first."""
        if subprocess.run(["ip", "-n", self.namespace, "link", "set", "tap0", "mtu", str(mtu)], check=False).returncode != 0:
            raise GuestDied(f"the guest's TAP device does not take an MTU of {mtu}")
        status, text = self.steer(f"ip link set eth0 mtu {mtu}")
        if status != 0:
            raise GuestDied(f"the guest's link does not take an MTU of {mtu}: {text}")

    def enter(self):
        return ["ip", "netns", "exec", self.namespace]

    def boot(self, cpus, kernel, initramfs):
        arguments = f"console=ttyS0 quiet panic=-1 weft.address={self.address}/24 {FAST}"
        # It ends with this process, however that ends.
        command = [*self.enter(), "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults", "-no-user-config",
                   "-machine", f"pc,accel={os.environ.get('WEFT_GUEST_ACCEL', 'tcg')}", "-cpu", CPU, "-m", "1024",
                   "-smp", str(cpus), "-display", "none", "-no-reboot", "-kernel", kernel, "-initrd", initramfs,
                   "-append", arguments, "-serial", f"file:{self.console}", "-netdev",
                   "tap,id=net,ifname=tap0,script=no,downscript=no", "-device", "virtio-net-pci,netdev=net", "-device",
                   "virtio-serial-pci"]
        for n in range(1, PORTS + 1):
            command += ["-chardev", f"socket,id=p{n},path={self.directory}/p{n},server=on,wait=off",
                        "-device", f"virtserialport,chardev=p{n},nr={n}"]
        until = time.monotonic() + BOOT_SECONDS
        with open(f"{self.directory}/qemu", "wb") as said:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        for n in range(1, PORTS + 1):
            self.ports.append(self.connect(f"{self.directory}/p{n}", n, until))
        for port in self.ports:
            if port.wait_for(rb"ready\r?\n", until) is None:
                raise GuestDied(f"no agent after {BOOT_SECONDS} s; the console:\n{self.read('console')}")
        status, text = self.steer("ibv_devinfo -d siw0")
        if status != 0 or "PORT_ACTIVE" not in text:
            raise GuestDied(f"no siw0 in the guest:\n{text}\n{self.read('console')}")
        # rdma_resolve_addr there does not come back where it is the first to ask for this host's link address.
        self.steer(f"ping -c 1 -w 5 {self.own_address}")

    def connect(self, path, number, until):
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                return Port(path, number)
            except OSError:
                time.sleep(0.05)
        raise GuestDied(f"QEMU does not start:\n{self.read('qemu')}")

    def read(self, name):
        try:
            with open(f"{self.directory}/{name}", encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def start(self, command):
        port = next((p for p in self.ports[1:] if p.job is None), None)
        if port is None:
            raise GuestDied("all ports of the guest are busy")
        return Job(self, port, command)

    def steer(self, command):
        """Runs a short command; (status, text)."""
        job = Job(self, self.ports[0], command)
        if job.poll(time.monotonic() + 20) is None:
            raise GuestDied(f"the guest does not answer: {command}")
        return job.status, job.text()

    def listens(self, port, until):
        """Waits until something in the guest listens on the TCP port; false when the time is over."""
        wanted = f":{port:04X} 00000000:0000 0A"
        wait = f"until grep -q '{wanted}' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done"
        job = Job(self, self.ports[0], f"timeout {max(1, int(until - time.monotonic()))} sh -c \"{wait}\"")
        return job.poll(until + 5) == 0

    def oops(self):
        """What the kernel complained about since the last call, with its surroundings; empty when all is well."""
        text = self.read("console")[self.console_seen:]
        self.console_seen += len(text)
        return text if OOPS.search(text) else ""

    def close(self):
        for port in self.ports:
            port.close()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        subprocess.run(["ip", "netns", "delete", self.namespace], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.directory, ignore_errors=True)
