"""docs/apps.md, from the list of cases."""

TOP = """# Programs that run on weft

<!-- Written by scripts/gen-docs from `tests/apps/apps.py --markdown`; edit tests/apps/cases.py, middleware.py, apps_page.py. -->

Debian's programs, unmodified and under `weft run`, as user nobody. Each row is a case that `ctest -R '^apps\\.'` runs; a cross says where: both
sides on one host by loopback, and each in a network namespace of its own with a link of that MTU between them, which takes root to make. `P` is
a port, `SERVER` and `OWN` are addresses. What servers are started with, and what a run has to show, stands in `tests/apps/cases.py`.

Debian's suite of tests for libibverbs' Python binding runs on one host ([pyverbs.md](pyverbs.md)), its modules with tests of UC, UD and
multicast also in a namespace with a link of MTU 1500, and of 9000 (`ctest -R pyverbs`). Both sides of a test are one process there.

perftest's own group, which `-g` without `-M` takes, is `ff01:0:2:c985::` (the client's ends in 1; each side tells the other). That is no group of IPv4, so with a GID of IPv4 both
sides end before they send anything ("Found Incompatibility issue with GID types"): there `-M` has to name one, and by itself it works over IPv6 (`--ipv6`), where both sides have an address.
"""

SECTIONS = {
    "UC": "Unreliable connections",
    "UD": "Unreliable datagrams",
    "multicast": "Multicast, of unreliable datagrams",
    "RC": "Reliable connections",
    "": "The device",
}


def transport(case):
    """Of its queue pairs; a key of SECTIONS."""
    words = [*case.server, *(case.client or ()), *case.environment]
    program = words[0]
    if case.client is None:
        return ""
    if program == "mckey" or program.startswith("ib_") and "-g" in words:
        return "multicast"
    if "-c" in words and words[words.index("-c") + 1] in ("UC", "UD"):
        return words[words.index("-c") + 1]
    if program.startswith("ibv_uc"):
        return "UC"
    if program.startswith("ibv_ud") or program == "udaddy" or "UCX_TLS=ud_verbs" in words or "verbs;ofi_rxd" in words:
        return "UD"
    return "RC"


def shown(words):
    values = {"addr": "SERVER", "own": "OWN", "port": "P", "folder": "FOLDER", "network": "NETWORK", "program": "PROGRAM"}
    return " ".join(w.format(**values) for w in words)


def command(case):
    words = [f"`{shown(case.client or case.server)}`"]
    if case.clients > 1:
        words.append(f"{case.clients} times")
    if case.servers > 1:
        words.append(f"to {case.servers} of `{shown(case.server)}`")
    return " ".join([*words, *(f"`{shown([e])}`" for e in case.environment)])


def row(case):
    cross = lambda there: "×" if there else ""
    places = (not case.mtu, case.client and not case.mtu, case.mtu == 9000)
    return f"| `{case.name}` | {command(case)} | {' | '.join(cross(p) for p in places)} |"


def page(cases):
    lines = [TOP]
    for kind, title in SECTIONS.items():
        lines += [f"## {title}", "", "| case | the client's command | loopback | MTU 1500 | MTU 9000 |", "|---|---|---|---|---|"]
        lines += [row(c) for c in cases if transport(c) == kind]
        lines.append("")
    return "\n".join(lines).rstrip("\n")
