"""What a case is: a function that runs programs in a World and returns what they came to, which must be the same by TCP and by SDP."""

import hashlib
import random

CASES = {}

# ctest does not run them. One that passes leaves this list.
OPEN = {
    # nc -l ends when its peer has closed and its buffer is empty, which is earlier by SDP: its buffers are smaller.
    "openssh.forwarding",
    # One test asks that two events that were caused by this process are there at once, which is so most times.
    "python.select",
}


class Case:
    def __init__(self, function, name, needs, full, seconds, namespaces):
        self.function = function
        self.name = name
        self.needs = needs  # programs
        self.full = full  # ./check --full alone runs it
        self.seconds = seconds  # for one run
        self.namespaces = namespaces  # also between two of them: "check", "full": ./check --full alone does; None: it is one process, or needs this host


def case(name, needs=(), full=False, seconds=60, namespaces="full"):
    def add(function):
        CASES[name] = Case(function, name, needs, full, seconds, namespaces)
        return function

    return add


def data(size, seed=1):
    """Bytes that differ from place to place, the same in each run."""
    return random.Random(seed).randbytes(size)


def digest(content):
    """Length and sum: what a failure shows of it."""
    return f"{len(content)} bytes, {hashlib.sha256(content).hexdigest()[:16]}"
