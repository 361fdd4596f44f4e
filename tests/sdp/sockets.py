"""weft's own programs: each state and call step by step, printed, so that two runs can be compared."""

import json
import os
import subprocess
import time

from sdp_case import case
from world import HERE, Failed


def steps(w, program, *options):
    expected = w.file("expected", "\n".join(w.expected) + "\n")
    process = w.start(0, ["python3", "-B", os.path.join(HERE, program), w.address, "--expect", expected, *options])
    w.ends(process)
    return process.text().splitlines()


case("sockets.readiness", seconds=120)(lambda w: steps(w, "readiness.py", "--without", "urgent"))
case("sockets.readiness_urgent")(lambda w: steps(w, "readiness.py", "--scene", "urgent"))
case("sockets.calls", seconds=90)(lambda w: steps(w, "calls.py"))
case("sockets.names")(lambda w: w.run(0, ["python3", "-B", os.path.join(HERE, "names.py"), w.address, str(w.port())]).splitlines())


def reads_of(w, process):
    """RDMA Reads that its peer has asked it for."""
    found = json.loads(subprocess.run([f"{w.product.root}/bin/weft", "stat", "--json", "--all", str(process.process.pid)],
                                      stdout=subprocess.PIPE, check=True).stdout)
    return found["processes"][0]["device"]["messages_received.read"]


def large(w, threshold, in_place):
    """What came of large sends; with `in_place` the peer must have read some of them where they lay, without it none."""
    environment = {"WEFT_SDP_ZCOPY_THRESH": threshold}
    program = ["python3", "-B", os.path.join(HERE, "large.py")]
    port = w.port()
    server = w.serve([*program, "serve", w.address, str(port)], port, environment=environment)
    client = w.start(1, [*program, w.address, str(port), "--stay"], stdin=subprocess.PIPE, environment=environment)
    while "\nlimited: " not in client.text():
        if client.process.poll() is not None or time.monotonic() > w.until:
            raise Failed("the client has not come to its end")
        time.sleep(0.05)
    if w.way == "sdp" and (reads_of(w, client) > 0) != in_place:
        raise Failed(f"{reads_of(w, client)} Reads at threshold {threshold}")
    client.process.stdin.close()
    w.ends(client)
    w.ends(server)
    return client.text().splitlines() + server.text().splitlines()


case("sockets.large_copied", seconds=120, namespaces=True)(lambda w: large(w, "0", False))
case("sockets.large_in_place", seconds=120, namespaces=True)(lambda w: large(w, "4096", True))
