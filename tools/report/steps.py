"""What `weft bench paper` does by turns."""

import re
import subprocess


class Step:
    """Something that appends lines to the file: a run of `weft bench`, or of `weft stream`."""

    def __init__(self, part, name, run, needed=lambda: True):
        self.part, self.name, self.run = part, name, run
        self.needed = needed  # asked before each turn but the first
        self.done = 0
        self.took = 0.0
        self.errors = []
        self.passed_over = False


def bench_step(options, part, name, suite, *words, between=True):
    """`between`: two network namespaces; without, on loopback."""
    command = [options.weft, "bench", suite, *words, "--repetitions", "1", "--seconds", str(options.seconds), "--jsonl", options.output,
               "--json"]  # then its reasons are on stderr
    if between and suite != "loss":
        command.append("--netns")
    if options.priority:
        command.append("--priority")

    def run(_turn):
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        return reason_of(result.returncode, result.stderr)
    return Step(part, name, run)


def reason_of(status, said):
    """What a run of `weft bench --json` says of what failed, all of it; None when nothing did."""
    if status == 0:
        return None
    sentences = [re.sub(r"^weft bench( \w+)?: ", "", line) for line in said.splitlines() if line.strip() and not line.startswith("weft bench: note:")]
    return "; ".join(sentences) or f"status {status}"
