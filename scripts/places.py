"""Where programs are compared: on this host, or between two network namespaces with a veth pair of MTU 1500."""

import os
import subprocess

VETH = ("10.77.0.1", "10.77.0.2")


class Place:
    """Two hosts, or what looks like them: a command of each side, and the address of the server."""

    def __init__(self, apart):
        self.names = [f"weft-compare-{os.getpid()}-{side}" for side in range(2)] if apart else []
        self.address = VETH[0] if apart else "127.0.0.1"

    def __enter__(self):
        for name in self.names:
            self.ip("netns", "add", name)
        if self.names:
            self.ip("link", "add", "veth0", "netns", self.names[0], "type", "veth", "peer", "name", "veth0", "netns", self.names[1])
        for name, address in zip(self.names, VETH):
            self.ip("-n", name, "address", "add", f"{address}/24", "dev", "veth0")
            for device in ("veth0", "lo"):
                self.ip("-n", name, "link", "set", device, "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def on(self, side, command):
        return ["ip", "netns", "exec", self.names[side], *command] if self.names else command

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)
