"""What the paper has no figures of: how many streams each transport sustains, the rate of one stream without loss, streams to a disk."""

import collections

import groups as alike
import paper_numbers as paper
import results as kept
from drawing import bars, COLOURS, CPU, draw_spreads, Drawn, from_zero, label_values, LESS, MORE, number, panels, put_legend, told

# What weft wants of UC beside UDP sockets, both with packets of 8 kB, between namespaces at this MTU.
WANTED_MTU = kept.VETH_MTU
WANTED_RATE = 2.5  # at least
WANTED_CPU = 0.45  # at most, of CPU s/GB of the receiver
WANTED_DISK = 0.9  # at least, of what dd writes past the page cache
OURS = "not in the paper"


def cpus_told(lines):
    """CPUs used, of each of those whom these lines know."""
    parts = []
    for figure, whose in (("rx_cpus", "the receiver"), ("tx_cpus", "the sender"), ("machine_cpus", "the whole machine")):
        found = kept.spread(kept.values(lines, figure))
        if found:
            parts.append(f"{number(found.median)} of {whose}")
    return "; busy CPUs: " + ", ".join(parts) if parts else ""


def cost_told(lines):
    return f"CPU of the receiver {told(kept.spread(kept.values(lines, 'rx_s_per_gb')), 's/GB')}{cpus_told(lines)}"


def how_it_broke(lines):
    """What was lost, and what never left or came too slowly, in the median repetition."""
    middle = {figure: kept.median(found) if (found := kept.values(lines, figure)) else 0
              for figure in ("gbps", "offered_gbps", "lost_percent", "skipped_percent")}
    parts = []
    if middle["lost_percent"] - middle["skipped_percent"] > kept.SUSTAINED_PERCENT:
        parts.append(f"{middle['lost_percent'] - middle['skipped_percent']:.1f} % of the packets lost on the way")
    if middle["skipped_percent"] > 0:
        parts.append(f"{middle['skipped_percent']:.1f} % never sent, for their time was over")
    if middle["gbps"] < kept.SUSTAINED_SHARE * middle["offered_gbps"]:
        parts.append(f"{100 * (1 - middle['gbps'] / middle['offered_gbps']):.1f} % behind the pace")
    return f"{', '.join(parts)}; {told(kept.spread(kept.values(lines, 'gbps')), 'Gb/s')} came of {number(middle['offered_gbps'])}"


def streams_rows(counts):
    rows = []
    for transport, name in kept.STREAMED.items():
        good, broken = kept.sustained(counts, transport)
        if good is None and broken is None:
            continue
        text = "none"
        if good:
            lines = counts[good][transport]
            text = f"{good}: {told(kept.spread(kept.values(lines, 'gbps')), 'Gb/s')}, {cost_told(lines)}"
        rows.append((f"{name}, most streams of these without loss", "50 were run", paper.LOFAR_WHERE, text))
        text = f"at none of {', '.join(map(str, counts))}"
        if broken:
            lines = counts[broken][transport]
            text = f"at {broken}: {how_it_broke(lines)}; {cost_told(lines)}"
        rows.append((f"{name}, where it broke", OURS, "", text))
    both = [count for count, transports in counts.items()
            if all(kept.is_sustained(transports.get(transport, [])) for transport in ("udp", "uc"))]
    if both:
        costs = [kept.spread(kept.values(counts[max(both)][transport], "rx_s_per_gb")) for transport in ("uc", "udp")]
        rows.append((f"UC / UDP sockets, CPU of the receiver (s/GB) at {max(both)} streams, as many as both sustain",
                     f"{paper.LOFAR_WATTS['uc'] / paper.LOFAR_WATTS['udp']:.2f} (of power)", f"computed from {paper.LOFAR_WHERE}",
                     ratio_told(*costs)))
    return rows


def number_of_streams(results, suite):
    lines, left_out = alike.same_streams(results.of_suite(suite))
    counts = kept.stream_counts(lines)
    if len(counts) < 2:
        return None
    figures, (rate, price) = panels(2, 3.9)
    places = range(len(counts))
    for transport, name in kept.STREAMED.items():
        for axes, value in ((rate, "gbps"), (price, "rx_s_per_gb")):
            points = [(place, kept.spread(kept.values(transports.get(transport, []), value)))
                      for place, transports in zip(places, counts.values())]
            points = [(place, spread) for place, spread in points if spread]
            if points:
                draw_spreads(axes, points, COLOURS[transport], name)
    offered = [max((line["figures"]["offered_gbps"] for lines in transports.values() for line in lines), default=0)
               for transports in counts.values()]
    rate.plot(places, offered, color="#555555", linestyle=":", label="offered")
    label_values(rate, "received (Gb/s)", MORE)
    label_values(price, CPU, LESS)
    for axes in (rate, price):
        axes.set_xticks(list(places), [str(count) for count in counts])
        axes.set_xlabel("streams")
        from_zero(axes)
        if axes.has_data():
            put_legend(axes)
    where = alike.network_name(kept.network_of(lines[0]))
    return Drawn(figures, f"Goodput and CPU by the number of streams, {where}. Without loss: at most 0.1 % missing, and at least 99 % of what was offered."
                         + alike.left_out_note(left_out), streams_rows(counts))


def streams(results):
    return number_of_streams(results, "lofar")


def streams_net(results):
    return number_of_streams(results, "lofar-net")


def ratio_range(a, b):
    """(of the medians, the smallest and the largest that the ranges allow) of two spreads, a / b; None where that means nothing."""
    if a is None or b is None or b.low <= 0:
        return None
    return a.median / b.median, a.low / b.high, a.high / b.low


def ratio_told(a, b):
    found = ratio_range(a, b)
    return "not measured" if found is None else f"{number(found[0])} ({number(found[1])}..{number(found[2])})"


def verdict(found, is_enough):
    """Of the medians; and whether the ranges leave a doubt."""
    middle, *ends = found
    text = "met" if is_enough(middle) else "not met"
    return text if all(is_enough(end) == is_enough(middle) for end in ends) else text + " by the medians, and the ranges reach to the other side"


def goal_row(what, wanted, is_enough, uc, udp, mtu, unit):
    """One of the two numbers that weft wants of UC."""
    found = ratio_range(uc, udp)
    if found is None:
        here = "not measured"
    else:
        judged = verdict(found, is_enough) if mtu == WANTED_MTU else f"not judged, for the MTU is {mtu}"
        once = ", with one repetition alone" if min(uc.count, udp.count) == 1 else ""
        here = f"{ratio_told(uc, udp)}: {judged}{once}. UC {told(uc, unit)}, UDP {told(udp, unit)}"
    return what, wanted, f"weft's goal, at MTU {WANTED_MTU}", here


def fastest_cases(results):
    """({case: lines}, {case: its name}, network, what is left out) of one stream over each transport between namespaces."""
    lines, left_out = alike.same_network(results.of_suite("trace-net"))
    lines, others = alike.same_streams(lines, any_group=True)
    left_out += others
    found, names = collections.defaultdict(list), {}
    for transport, name in kept.STREAMED.items():
        for line in lines:
            if line["parameters"]["transport"] == transport:
                group = line["parameters"].get("packets_per_write", 1)
                case = transport if group == 1 else f"{transport}-{group}"
                names[case] = name if group == 1 else f"{name}, {group} packets a Write"
                found[case].append(line)
    return dict(found), names, kept.network_of(lines[0]) if lines else None, left_out


def sustained(results):
    found, names, network, left_out = fastest_cases(results)
    if not found:
        return None
    rates = {case: kept.spread(kept.values(lines, "gbps")) for case, lines in found.items()}
    costs = {case: spread for case, lines in found.items() if (spread := kept.spread(kept.values(lines, "rx_s_per_gb")))}
    figures, (rate, price) = panels(2)
    bars(rate, rates, "received (Gb/s)", MORE, names)
    bars(price, costs, CPU, LESS, names)
    rows = [(f"{names[case]}, rate without loss", OURS, "", f"{told(rates[case], 'Gb/s')}, {cost_told(lines)}") for case, lines in found.items()]
    mtu = network[2]
    saving = f"{paper.TRACE_WATTS['uc'] / paper.TRACE_WATTS['udp']:.2f} of power in section 4.4; "
    for case, name in names.items():
        if case.split("-")[0] == "uc":
            rows.append(goal_row(f"{name} / UDP sockets, rate without loss", f"{OURS}; wanted: at least {WANTED_RATE}",
                                 lambda ratio: ratio >= WANTED_RATE, rates[case], rates.get("udp"), mtu, "Gb/s"))
            rows.append(goal_row(f"{name} / UDP sockets, CPU of the receiver (s/GB)", f"{saving}wanted: at most {WANTED_CPU}",
                                 lambda ratio: ratio <= WANTED_CPU, costs.get(case), costs.get("udp"), mtu, "s/GB"))
    return Drawn(figures, f"One stream in packets of 8 kB, {alike.network_name(network)}, at the highest rate found at which at most "
                         f"{kept.SUSTAINED_PERCENT:g} % are missing; one packet of each RDMA Write unless it says more. "
                         "A packet of UDP's is one datagram, which IP cuts up; RC has CRC, UC none. CPU is that of the receiving process. "
                         "The dark line is from the smallest to the largest value." + alike.left_out_note(left_out), rows)


def disk(results):
    lines, left_out = alike.largest_of(results.of_suite("disk"), "bytes")
    found = collections.defaultdict(list)
    for line in lines:
        found[line["parameters"]["transport"]].append(line)
    names = {"dd": "dd, O_DIRECT", **kept.STREAMED}
    cases = [case for case in names if case in found]
    if len(cases) < 2 or "dd" not in cases:
        return None
    rates = {case: kept.spread(kept.values(found[case], "gbps")) for case in cases}
    costs = {case: kept.spread(kept.values(found[case], "rx_s_per_gb")) for case in cases}
    figures, (rate, price) = panels(2)
    bars(rate, rates, "written (Gb/s)", MORE, names)
    bars(price, costs, CPU, LESS, names)
    rows = [("dd with O_DIRECT", OURS, "", told(rates["dd"], "Gb/s"))]
    for case in cases[1:]:
        ratios = ratio_range(rates[case], rates["dd"])
        judged = f": {verdict(ratios, lambda ratio: ratio >= WANTED_DISK)}" if ratios else ""
        lost = kept.spread(kept.values(found[case], "lost_percent"))
        holes = f"; {lost.median:.1f} % of the packets missing" if lost and lost.median >= 0.05 else ""
        rows.append((f"{names[case]} / dd", f"{OURS}; wanted: at least {WANTED_DISK}", "weft's goal", f"{ratio_told(rates[case], rates['dd'])}{judged}{holes}"))
    size = max(line["parameters"]["bytes"] for line in lines)
    return Drawn(figures, f"weft stream recv --file and dd write {size * 1e-9:.1f} GB to a new file, past the page cache, in blocks of "
                         f"{lines[0]['parameters']['block_bytes'] >> 20} MiB; what is sent over UDP and UC and finds no free block is lost. "
                         "Streams come over loopback, as fast as they go; over UDP and UC at the rate of the dd before."
                         + alike.left_out_note(left_out), rows)
