"""docs/pyverbs.md, from what pyverbs.py saw."""

import re
import subprocess

# Why a test says on weft what it says: the first row whose pattern is found in "test: the suite's words" counts.
SKIPS = (
    ("made for mlx5 or EFA adapters, or for a graphics card", r"^test_(mlx5|efa)|^test_cuda|CUDA|non MLX5|non EFA"),
    ("on-demand paging: weft pins no memory, so that all of it is on demand; it does not report the capability", r"^test_odp"),
    ("XRC: weft has none yet", r"XRC"),
    ("raw Ethernet frames and their steering: a job of network cards", r"\bRAW\b|Ethernet link layer|^test_(flow|rss)"),
    ("device memory: weft has none", r"[Dd]evice memory"),
    ("huge pages: this machine has none set aside", r"huge pages"),
    ("DMA-BUF: takes a graphics card that lends such memory", r"dmabuf"),
    ("tag matching: a job of network cards", r"^test_tag_matching"),
    ("atomic Writes: weft has none yet", r"atomic_write"),
    ("objects of another process: weft does not import them", r"Importing"),
    ("weft's table of GIDs has no gaps", r"gid indices populated"),
    ("rdma_cm: no address was found for the device", r"net interface"),
)
FAILURES = ()

TOP = """# pyverbs on weft

The package `python3-pyverbs` brings the tests of libibverbs' Python binding (rdma-core's `tests/`), and they are the strictest
tests of the verbs interface that there are. This page says what each of them does on weft. A script writes it:

    tests/apps/pyverbs.py --build build/release --write

and `ctest -R pyverbs` compares: what stands here as `pass` has to pass. The suite is {version}, started with
`--dev weft0 --gid 0`, as a user without rights, one process a module.

The suite runs as it is in the package, but for one thing. Its rdma_cm tests ask for the network interface of the device in
`/sys/class/infiniband/DEVICE/device/net`, which only a kernel driver can make, take the first address of that interface, and skip
where there is none. `tests/apps/pyverbs_suite.py` replaces this question (`RDMATestCase._get_ip_mac`) and answers with the address that
the GID in use stands for. No test is changed. These tests listen on port 7471.

"""


def why(table, test, reason):
    for text, pattern in table:
        if re.search(pattern, f"{test}: {reason}"):
            return text
    return ""


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def table(head, rows):
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(str(c) for c in row)} |"
    yield ""


def by_module(outcome):
    modules = {}
    for test, (result, reason) in outcome.items():
        module = test.split(".")[0]
        elsewhere = result == "skip" and why(SKIPS, test, reason) == SKIPS[0][0]
        modules.setdefault(module, []).append("elsewhere" if elsewhere else result)
    others = [m for m, results in modules.items() if set(results) == {"elsewhere"}]
    rows = {f"`{m}`": results for m, results in sorted(modules.items()) if m not in others}
    rows[f"{len(others)} others, {SKIPS[0][0]}"] = [r for m in others for r in modules[m]]
    rows["all"] = [r for results in modules.values() for r in results]
    for name, results in rows.items():
        yield name, len(results), results.count("pass"), results.count("skip") + results.count("elsewhere"), results.count("fail")


def skips(outcome):
    groups = {}
    for test, (result, reason) in outcome.items():
        if result == "skip":
            words, tests = groups.setdefault(why(SKIPS, test, reason) or "?", (set(), []))
            words.add(reason)
            tests.append(test)
    for text, (words, tests) in sorted(groups.items(), key=lambda g: -len(g[1][1])):
        yield text, len(tests), "; ".join(f"\"{cell(w)}\"" for w in sorted(words))


def package():
    out = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}", "python3-pyverbs"], stdout=subprocess.PIPE,
                         text=True, check=False)
    return f"that of Debian's {out.stdout}" if out.stdout else "rdma-core's"


def page(outcome):
    failed = [(t, reason) for t, (result, reason) in sorted(outcome.items()) if result == "fail"]
    lines = [TOP.format(version=package()) + "## By module\n"]
    lines += table(("module", "tests", "pass", "skip", "fail"), by_module(outcome))
    lines.append("## What fails\n")
    if failed:
        lines += table(("test", "why", "what it said"),
                       ((f"`{t}`", why(FAILURES, t, r) or "a fault of weft", cell(r)) for t, r in failed))
    else:
        lines.append("Nothing.\n")
    lines.append("## What is skipped, by reason\n")
    lines += table(("on weft", "tests", "the suite's words"), skips(outcome))
    lines.append("## Test by test\n\nWithout those for other adapters and graphics cards that skip.\n")
    lines += table(("test", "result", "the suite's words"),
                   ((f"`{t}`", result, cell(reason)) for t, (result, reason) in sorted(outcome.items())
                    if result != "skip" or why(SKIPS, t, reason) != SKIPS[0][0]))
    return "\n".join(lines).rstrip("\n") + "\n"
