"""weft's own programs: each state and call step by step, printed, so that two runs can be compared."""

import os

from sdp_case import case
from world import HERE


def steps(w, program, *options):
    expected = w.file("expected", "\n".join(w.expected) + "\n")
    process = w.start(0, ["python3", "-B", os.path.join(HERE, program), w.address, "--expect", expected, *options])
    w.ends(process)
    return process.text().splitlines()


case("sockets.readiness", seconds=120)(lambda w: steps(w, "readiness.py", "--without", "urgent"))
case("sockets.readiness_urgent")(lambda w: steps(w, "readiness.py", "--scene", "urgent"))
case("sockets.calls", seconds=90)(lambda w: steps(w, "calls.py"))
