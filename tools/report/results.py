"""Kept results, as `weft bench --jsonl` and `weft bench paper` write them (docs/report.md), and what follows from them."""

import collections
import json

SCHEMA = "weft-result/1"

Spread = collections.namedtuple("Spread", "median low high count")


class BadResults(Exception):
    """A sentence for the user."""


def median(values):
    """Of at least one value; of an even number of values the mean of the middle two."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


def spread(values):
    """None when there is no value."""
    values = list(values)
    if not values:
        return None
    return Spread(median(values), min(values), max(values), len(values))


def ratio(a, b):
    """Of the medians of two spreads, a / b; None where one is missing or b is 0."""
    if a is None or b is None or b.median == 0:
        return None
    return a.median / b.median


# What is compared, in the order of the page: a key and its name.
TRANSPORTS = {
    "tcp": "TCP sockets",
    "udp": "UDP sockets",
    "rc-write": "RC Write",
    "rc-read": "RC Read",
    "uc-write": "UC Write",
    "uc-read": "UC Read",
}


def transport_of(line):
    """The key in TRANSPORTS of a line of `weft bench`; None for those that no figure shows."""
    parameters = line["parameters"]
    operation, service = parameters.get("operation"), parameters.get("service")
    if parameters.get("group") != "bandwidth":
        return None
    if operation == "tcp_stream":
        return "tcp"
    if operation == "udp_stream":
        return "udp" if parameters.get("window") == 0 else None
    if operation not in ("write", "read") or service not in ("rc", "uc") or parameters.get("crc"):
        return None
    if parameters.get("channels"):
        return None
    if service == "uc" and operation == "write" and parameters.get("window") != 0:
        return None
    return f"{service}-{operation}"


def loss_of(line):
    """Percent of the packets that were lost on purpose."""
    parameters = line["parameters"]
    if parameters.get("loss"):
        return round(parameters["loss"] * 100, 6)
    for part in parameters.get("fault", "").split(","):
        if part.startswith("loss:"):
            return round(float(part[len("loss:"):]) * 100, 6)
    return 0.0


VETH_MTU = 1500  # unless --mtu says otherwise


def is_metered(line):
    return line["figures"].get("watts") is not None


def network_of(line):
    """(path, offloads, MTU), the part of the circumstances that figures must not mix."""
    parameters = line["parameters"]
    mtu = parameters.get("mtu") or (VETH_MTU if line["path"] == "veth" else None)
    return line["path"], parameters.get("offloads", "unchanged"), mtu


def need(words, *names):
    for name in names:
        words[name]  # pylint: disable=pointless-statement


class Results:
    def __init__(self):
        self.repetitions = []  # that went well
        self.failures = []
        self.samples = []
        self.notes = []  # sentences about lines that were passed over
        self.newest = {}  # (case, repetition): the time of the last line of it

    def add(self, line):
        """Raises KeyError for a line that lacks what every one has."""
        if line["kind"] == "sample":
            need(line, "suite", "case", "repetition", "t")
            # Samples that do not say it stand behind their repetition.
            line.setdefault("time", self.newest.get((line["case"], line["repetition"]), ""))
            self.samples.append(line)
        elif line["kind"] == "repetition":
            need(line, "suite", "case", "path", "time", "version", "machine", "parameters", "error" if "error" in line else "figures")
            need(line["machine"], "cpu", "cpus", "kernel")
            self.newest[line["case"], line.get("repetition")] = line["time"]
            (self.failures if "error" in line else self.repetitions).append(line)

    def of_suite(self, *suites):
        return [line for line in self.repetitions if line["suite"] in suites]

    def machines(self):
        """Sentences, each machine once, in the order of the lines."""
        found = {}
        for line in self.repetitions:
            machine = line["machine"]
            found[f"{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}"] = True
        return list(found)

    def busy(self):
        """The largest load average before a repetition where it says that others were at work, or None. The runs themselves keep
        each CPU busy, so that much is no news."""
        loads = [line["machine"].get("load_before", 0) for line in self.repetitions if line["machine"].get("load_before", 0) > 2 * line["machine"]["cpus"]]
        return max(loads, default=None)

    def for_power(self):
        """Repetitions of figures that have power or what takes its place; where a disk is at work it is the disk that counts."""
        return [line for line in self.repetitions if line["suite"] != "disk"]

    def metered(self):
        """Whether each of them has its power, so that one axis can show all of them."""
        return bool(self.for_power()) and all(is_metered(line) for line in self.for_power())

    def traces_metered(self):
        """Whether power over time takes the place of CPU: on the whole page or nowhere. There may be traces alone."""
        cases = {sample["case"] for sample in self.samples}
        return all(map(is_metered, self.for_power())) and all(
            any(sample.get("watts") is not None for sample in trace_of(self.samples, case)) for case in cases)

    def power_of(self):
        """What the power is that of, each once."""
        told = (line.get("energy", {}) for line in self.for_power())
        return sorted({energy.get("of") or energy.get("source") or "what the meter sees" for energy in told})

    def why_unmeasured(self):
        """(reason, remedy) of the first repetition without power, or None."""
        for line in self.for_power():
            if not is_metered(line):
                energy = line.get("energy", {})
                return energy.get("unmeasured") or "not said", energy.get("remedy") or ""
        return None


def is_cut_off(text):
    """Whether a writer was killed there: it begins as a line does, and is none."""
    try:
        json.loads(text)
    except ValueError:
        return text.startswith("{")
    return False


def load(paths):
    results = Results()
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:  # what is cut off may end within a character
                lines = file.read().split("\n")  # not splitlines(): JSON may have other ends of lines within a word
        except OSError as error:
            raise BadResults(f"{path}: {error}") from None
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            if is_cut_off(text):
                results.notes.append(f"{path}:{number}: is cut off, its writer was ended; passed over")
                continue
            try:
                line = json.loads(text)
                if line["schema"] != SCHEMA:
                    raise BadResults(f"{path}:{number}: is of the schema '{line['schema']}', and this weft reads '{SCHEMA}'")
                results.add(line)
            except (ValueError, KeyError, TypeError) as error:
                raise BadResults(f"{path}:{number}: not a line that 'weft bench' wrote: {error!r}") from None
    return results


def add_trace(results, label, path):
    """The file of `weft measure --samples` as one of the traces; `label` is one of STREAMED."""
    if label not in STREAMED:
        raise BadResults(f"--trace {label}=...: it is one of {', '.join(STREAMED)}")
    try:
        with open(path, encoding="utf-8") as file:
            looks = [json.loads(text) for text in file if text.strip()]
        samples = [{"suite": "trace", "case": f"trace/{label}", "time": "", "repetition": 0, "added": True, "t": float(look["t"]),
                    "cpus": look.get("cpus"), "watts": look.get("watts"), "gbps": look.get("gbps")} for look in looks]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadResults(f"{path}: not a file of 'weft measure --samples': {error!r}") from None
    # In the place of what the results have.
    results.samples = [sample for sample in results.samples if sample["case"] != f"trace/{label}"] + samples


# The transports of `weft stream`, and their names.
STREAMED = {"tcp": "TCP sockets", "udp": "UDP sockets", "rc": "RC", "uc": "UC"}


def values(lines, figure):
    return [line["figures"][figure] for line in lines if line["figures"].get(figure) is not None]


def reciprocals(lines, figure):
    return [1 / value for value in values(lines, figure) if value > 0]


def by_transport(lines, key):
    """{transport: {key(line): [line...]}}, transports in the order of TRANSPORTS."""
    found = {}
    for transport in TRANSPORTS:
        chosen = [line for line in lines if transport_of(line) == transport]
        if chosen:
            groups = collections.defaultdict(list)
            for line in chosen:
                groups[key(line)].append(line)
            found[transport] = dict(sorted(groups.items()))
    return found


def stream_counts(lines):
    """{number of streams: {transport: [line...]}} of suite lofar."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in lines:
        found[line["parameters"]["streams"]][line["parameters"]["transport"]].append(line)
    return {count: dict(found[count]) for count in sorted(found)}


# A stream that loses less than this is sustained: a tenth of a percent is what telescopes take.
SUSTAINED_PERCENT = 0.1
SUSTAINED_SHARE = 0.99  # of what was offered, for transports that hold the sender up


def is_sustained(lines):
    """Whether a transport kept up in the median repetition."""
    lost, got, offered = (spread(values(lines, figure)) for figure in ("lost_percent", "gbps", "offered_gbps"))
    if lost is None or got is None or offered is None:
        return False
    return lost.median <= SUSTAINED_PERCENT and got.median >= SUSTAINED_SHARE * offered.median


def sustained(counts, transport):
    """(the most streams before the first number that breaks, that number), each None where there is none. A number behind a
    broken one is luck."""
    good = None
    for count, transports in counts.items():
        if transport not in transports:
            continue
        if not is_sustained(transports[transport]):
            return good, count
        good = count
    return good, None


def count_to_show(counts):
    """The most streams that every transport sustained; where there is none, the fewest."""
    all_sustained = [count for count, transports in counts.items()
                     if len(transports) == len(STREAMED) and all(is_sustained(lines) for lines in transports.values())]
    if all_sustained:
        return max(all_sustained)
    return min(counts) if counts else None


def run_of(line):
    return line.get("time", ""), line.get("repetition", 0)


def trace_of(samples, case, lines=()):
    """The samples of one repetition of a case, the newest that has any, in the order of time. Each call of `weft bench paper`
    counts its repetitions from 0, so the time of day is what tells them apart. With `lines`: of one of these repetitions; what --trace brought goes with all."""
    wanted = {run_of(line) for line in lines}
    chosen = [sample for sample in samples if sample["case"] == case and (not wanted or sample.get("added") or run_of(sample) in wanted)]
    if not chosen:
        return []
    newest = max(run_of(sample) for sample in chosen)
    return sorted((sample for sample in chosen if run_of(sample) == newest), key=lambda sample: sample["t"])
