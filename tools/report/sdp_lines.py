"""Kept results of `weft bench sdp`: which way a line went, between which places, and what follows from its figures."""

import collections

import groups as alike
import results as kept

# What is compared, in the order of the page: a key and its name.
WAYS = {"tcp": "kernel TCP", "copied": "SDP, copied (BCopy)", "in-place": "SDP, in place (Read ZCopy)", "cost": "SDP, by cost"}
PLACES = {"host": "one host", "net": "between namespaces"}
# By the path of the lines: the place, and the name of each way there. On loopback `sdp-wire` is neither.
PATHS = {"loopback": ("host", {"tcp": "tcp", "sdp-copied": "copied", "sdp-in-place": "in-place", "sdp": "cost"}),
         "veth": ("net", {"tcp": "tcp", "sdp-wire-copied": "copied", "sdp-wire-in-place": "in-place", "sdp-wire": "cost"})}


def way_of(line):
    """A key of WAYS; None for those that no figure shows."""
    _, ways = PATHS.get(line["path"], (None, {}))
    return ways.get(line["parameters"].get("sockets"))


def of_places(results, group):
    """({place: [line...]}, what is left out) of a group of cases, each place with one network."""
    found, left_out = {}, collections.Counter()
    for path, (place, _) in PATHS.items():
        lines = [line for line in results.of_suite("sdp") if line["path"] == path and way_of(line) and line["parameters"].get("group") == group]
        lines, others = alike.same_network(lines)
        left_out += others
        if lines:
            found[place] = lines
    return found, left_out


def by_way(lines, parameter):
    """{way: {value of the parameter: [line...]}}, ways in the order of WAYS."""
    found = {}
    for way in WAYS:
        groups = collections.defaultdict(list)
        for line in lines:
            if way_of(line) == way:
                groups[line["parameters"][parameter]].append(line)
        if groups:
            found[way] = dict(sorted(groups.items()))
    return found


def with_parameters(lines, **wanted):
    return [line for line in lines if all(line["parameters"].get(word) == value for word, value in wanted.items())]


def products(lines, figure, factor, by=None):
    """The figure of each line times the factor, and times another figure."""
    return [factor * line["figures"][figure] * (line["figures"][by] if by else 1) for line in lines
            if line["figures"].get(figure) is not None and (by is None or line["figures"].get(by) is not None)]


def megabytes(lines):
    return products(lines, "gbps", 125)


def sender_cpu(lines):
    """Percent of one CPU."""
    return products(lines, "tx_s_per_gb", 100 / 8, "gbps")


def receiver_cpu(lines):
    return products(lines, "rx_s_per_gb", 100 / 8, "gbps")


def mean_cpu(lines):
    """Of both sides, as the paper has it."""
    return products(lines, "s_per_gb", 100 / 8 / 2, "gbps")


def us_per_kb(lines):
    """Of both sides together, for 1024 bytes."""
    return products(lines, "s_per_gb", 1.024)


def medians(groups, value):
    """{x: median} of {x: [line...]}."""
    return {x: kept.median(found) for x, lines in groups.items() if (found := value(lines))}


def crossover(base, other, wins):
    """The smallest x from which on `other` wins at each that both have; None where it does not at the largest."""
    found = None
    for x in sorted(set(base) & set(other), reverse=True):
        if not wins(other[x], base[x]):
            break
        found = x
    return found
