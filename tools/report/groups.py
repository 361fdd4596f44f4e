"""What may stand in one figure: repetitions with the same parameters. The largest such group is drawn, and the caption says what is not."""

import collections

import results as kept

# Offloads off is what the paper has.
NETWORKS = (("veth", "off"), ("veth", "unchanged"), ("veth", "on"), ("loopback", "unchanged"))


def network_name(network):
    path, state, mtu = network
    where = "between two network namespaces (veth)" if path == "veth" else "on loopback"
    return where + (f", MTU {mtu}" if mtu else "") + (f", offloads {state}" if state != "unchanged" else "")


def largest(lines, key, name, left_out):
    """The lines of the key that most have. None as a key goes with every other one. What is not chosen is counted in `left_out` by name(key)."""
    counts = collections.Counter(key(line) for line in lines)
    counts.pop(None, None)
    if not counts:
        return lines
    best = max(counts, key=counts.get)
    for other, count in counts.items():
        if other != best:
            left_out[name(other)] += count
    return [line for line in lines if key(line) in (None, best)]


def left_out_note(left_out):
    if not left_out:
        return ""
    parts = [f"{count} {'repetition' if count == 1 else 'repetitions'} {name}" for name, count in left_out.items()]
    return f" Not drawn: {', '.join(parts)}."


def one_network(lines):
    """The lines of the first of NETWORKS that has any, with the MTU that most have; which it is; what is left out."""
    left_out = collections.Counter()
    for network in NETWORKS:
        chosen = [line for line in lines if kept.network_of(line)[:2] == network]
        if chosen:
            chosen = largest(chosen, kept.network_of, network_name, left_out)
            used = kept.network_of(chosen[0])
            left_out = collections.Counter(network_name(kept.network_of(line)) for line in lines if kept.network_of(line) != used)
            return chosen, used, left_out
    return [], None, left_out


def same_network(lines):
    """(the lines of the network that most have, what is left out)"""
    left_out = collections.Counter()
    return largest(lines, kept.network_of, network_name, left_out), left_out


def same_streams(lines, any_group=False):
    """(lines of `weft stream`, what is left out) of one network that were as fast, as long and in packets as large. `any_group`: however
    many packets a Write has."""
    lines, left_out = same_network(lines)

    def pace(line):
        parameters = line["parameters"]
        return (*(parameters.get(word) for word in ("mbps", "seconds", "packet_bytes")),
                None if any_group else parameters.get("packets_per_write"))

    def name(pace):
        mbps, seconds, packet_bytes, group = pace
        words = [f"at {mbps:g} Mb/s" if mbps else "as fast as it goes"] + [f"{value:g} {unit}" for value, unit in (
            (seconds, "s"), (packet_bytes, "bytes in a packet"), (group, "packets of a Write")) if value is not None]
        return ", ".join(words)

    return largest(lines, pace, name, left_out), left_out


def largest_of(lines, parameter):
    """(the lines of the value of a parameter that most have, what is left out)"""
    left_out = collections.Counter()
    return largest(lines, lambda line: line["parameters"].get(parameter), lambda value: f"with {parameter} {value}", left_out), left_out


def same_losses(lines):
    """(lines, what is left out) of suite `loss` that differ by transport and loss alone."""
    left_out = collections.Counter()

    def means(line):
        """Where nothing is lost it is either."""
        return "WEFT_FAULT" if line["parameters"].get("fault") else "the network" if line["parameters"].get("loss") else None

    def size(line):
        # A datagram cannot have 64 kB.
        return 65536 if line["parameters"]["size"] == 65000 else line["parameters"]["size"]

    lines = largest(lines, kept.network_of, network_name, left_out)
    lines = largest(lines, size, lambda size: f"of {size} bytes", left_out)
    lines = largest(lines, means, lambda means: f"with losses by {means}", left_out)
    return largest(lines, lambda line: line["parameters"].get("gbps") or None, lambda rate: f"at {rate:g} Gb/s", left_out), left_out
