"""What the peer counts while a case runs (docs/counters.md), where it is weft: read as a user would, by `weft stat`."""

import collections
import json
import subprocess
import time


def reader(weft, pid):
    """A function that tells all counters of the process, as they are now."""
    def read():
        said = subprocess.run([weft, "stat", "--json", "--all", str(pid)], capture_output=True, text=True, check=True, timeout=60)
        return json.loads(said.stdout)["processes"][0]["device"]
    return read


class Counted:
    """`words`: counters that are to move by one, twice where a word is there twice; with a "+" behind it: by one or more. What
    else is in their families is to stay."""

    def __init__(self, read, words):
        self.read = read
        self.wanted = collections.Counter(words.split())
        self.families = {w.split(".")[0] for w in self.wanted}
        self.before = read() if words else {}

    def moved(self):
        now = self.read()
        grown = {name: n - self.before[name] for name, n in now.items() if n != self.before[name]}
        return {name: n for name, n in grown.items() if name in self.wanted or name.split(".")[0] in self.families}

    def right(self, moved):
        any_number = {w[:-1] for w in self.wanted if w.endswith("+")}
        exact = {w: n for w, n in self.wanted.items() if not w.endswith("+")}
        return any_number <= moved.keys() and {name: n for name, n in moved.items() if name not in any_number} == exact

    def complaint(self, patience):
        """Empty when all is right, at the latest by then: a thread may count a moment after the bytes are out."""
        until = time.monotonic() + patience
        while self.wanted and not self.right(moved := self.moved()):
            if time.monotonic() > until:
                return "it counted " + (", ".join(f"{name} {n}" for name, n in moved.items()) or "nothing")
            time.sleep(0.02)
        return ""
