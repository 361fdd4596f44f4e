"""The paper's figures, drawn of kept results. Each function takes Results and gives a Drawn, or None where there is nothing to draw."""

import collections

import groups as alike
import paper_numbers as paper
import results as kept
from drawing import (bars, colour_of, COLOURS, cost, draw_by_size, draw_spreads, draw_trace, Drawn, from_zero, GOODPUT, label_values, LESS,
                     line_style, MORE, number, panels, put_legend, size_name, SMALL, told, trace_value)
from figures_streams import disk, streams, streams_net, sustained


def lofar_case(transport, count):
    return f"lofar/{transport}/{count}"


def lofar_rows(results, counts, shown, transports):
    figure, _, unit = cost(results)
    spreads = {transport: kept.spread(kept.values(counts[shown].get(transport, []), figure)) for transport in kept.STREAMED}
    rows = [(f"{kept.STREAMED[transport]}, " + ("power" if unit == "W" else "CPU of the receiver"), f"{paper.LOFAR_WATTS[transport]} W",
             paper.LOFAR_WHERE, told(spreads[transport], unit)) for transport in transports]
    for transport, base in (("udp", "tcp"),) if "udp" in transports else (("rc", "tcp"), ("uc", "udp")):
        rows.append((f"{kept.STREAMED[transport]} / {kept.STREAMED[base]}",
                     f"{paper.LOFAR_WATTS[transport] / paper.LOFAR_WATTS[base]:.2f} (of power)", f"computed from {paper.LOFAR_WHERE}",
                     number(kept.ratio(spreads[transport], spreads[base])) + (" (of power)" if unit == "W" else " (of CPU s/GB)")))
    return rows


def lofar_panels(results, transports, value, label, what):
    lines, left_out = alike.same_streams(results.of_suite("lofar"))
    counts = kept.stream_counts(lines)
    shown = kept.count_to_show(counts)
    if shown is None:
        return None
    figures, axes = panels(len(transports))
    drawn = False
    for transport, place in zip(transports, axes):
        samples = kept.trace_of(results.samples, lofar_case(transport, shown), counts[shown].get(transport, ()))
        if samples:
            drawn |= draw_trace(place, samples, value, COLOURS[transport], kept.STREAMED[transport])
        place.set_title(kept.STREAMED[transport])
        place.set_xlabel("time (s)")
        place.set_ylabel(label)
    if not drawn:
        return None
    top = max(place.get_ylim()[1] for place in axes if place.has_data())
    for place in axes:
        place.set_ylim(0, top)
    mbps = round(1000 * counts[shown][next(iter(counts[shown]))][0]["figures"]["offered_gbps"] / shown)
    return figures, counts, shown, (f"{what} while {shown} {'stream' if shown == 1 else 'streams'} of {mbps} Mb/s in packets of 8 kB "
                                   f"{'is' if shown == 1 else 'are'} received, {alike.network_name(kept.network_of(lines[0]))}, both sides on this machine; "
                                   "one packet of each RDMA Write, RC with CRC, UC without. The most streams run that all four sustained, or the fewest; "
                                   f"the paper ran 50. One repetition is drawn.{alike.left_out_note(left_out)}")


def lofar_power(results, transports):
    found = lofar_panels(results, transports, *trace_value(results), "The receiver")
    if found is None:
        return None
    figures, counts, shown, caption = found
    return Drawn(figures, caption, lofar_rows(results, counts, shown, transports))


def figure3(results):
    return lofar_power(results, ["tcp", "udp"])


def figure4(results):
    return lofar_power(results, ["rc", "uc"])


def figure5(results):
    found = lofar_panels(results, list(kept.STREAMED), "gbps", "received (Gb/s)", "What arrives")
    if found is None:
        return None
    figures, counts, shown, caption = found
    rows = [(f"{kept.STREAMED[transport]}, received", "a plot alone: UDP better than TCP", paper.LOFAR_WHERE,
             told(kept.spread(kept.values(counts[shown].get(transport, []), "gbps")), "Gb/s")) for transport in kept.STREAMED]
    return Drawn(figures, caption + " All were offered the same: equal rates mean that each kept up.", rows)


def how_sent(lines):
    """The network and the packets of streams that weft measured; nothing of another program's trace."""
    if not lines:
        return ""
    groups = sorted({line["parameters"].get("packets_per_write", 1) for line in lines if line["parameters"]["transport"] in ("rc", "uc")})
    each = f", {' or '.join(map(str, groups))} of each RDMA Write" if groups else ""
    return f", {alike.network_name(kept.network_of(lines[0]))}, in packets of 8 kB{each}"


def two_peaks(results, first, second):
    """One trace after the other, as the paper shows them."""
    figures, (axes, rates) = panels(2)
    shift, drawn, chosen = 0.0, False, {}
    of_both, left_out = alike.same_network([line for line in results.of_suite("trace") if line["parameters"]["transport"] in (first, second)])
    for transport in (first, second):
        chosen[transport], others = alike.same_streams([line for line in of_both if line["parameters"]["transport"] == transport])
        left_out += others
    value, label = trace_value(results)
    for transport in (first, second):
        samples = kept.trace_of(results.samples, f"trace/{transport}", chosen[transport])
        if not samples:
            continue
        drawn |= draw_trace(axes, samples, value, COLOURS[transport], kept.STREAMED[transport], shift)
        draw_trace(rates, samples, "gbps", COLOURS[transport], kept.STREAMED[transport], shift)
        shift += samples[-1]["t"] - samples[0]["t"] + 1
    if not drawn:
        return None
    for place, text in ((axes, label), (rates, "received (Gb/s)")):
        place.set_xlabel("time (s)")
        place.set_ylabel(text)
        from_zero(place, room=1.3)  # for the legend
        if place.get_lines():
            place.legend(fontsize=SMALL, ncols=2, loc="upper center")
        else:
            place.text(0.5, 0.5, "no rates in these samples", ha="center", transform=place.transAxes)
    figure_name, _, unit = cost(results)
    costs = {transport: kept.spread(kept.values(chosen[transport], figure_name)) for transport in chosen}
    rows = []
    for transport in (first, second):
        name, where = kept.STREAMED[transport], paper.TRACE_WHERE[transport]
        rows.append((f"{name}, received", f"{paper.TRACE_GBPS[transport]} Gb/s", where,
                     told(kept.spread(kept.values(chosen[transport], "gbps")), "Gb/s")))
        rows.append((f"{name}, " + ("power" if unit == "W" else "CPU of the receiver"), f"{paper.TRACE_WATTS[transport]} W (CPU)", where,
                     told(costs[transport], unit)))
    paper_ratio = paper.efficiency(first) / paper.efficiency(second)
    here = kept.ratio(costs[second], costs[first])
    rows.append((f"{kept.STREAMED[second]} / {kept.STREAMED[first]}, " + ("power" if unit == "W" else "CPU for a byte"),
                 f"{paper.TRACE_WATTS[second] / paper.TRACE_WATTS[first]:.2f} (power), {paper_ratio:.2f} (power for a byte)",
                 f"computed from {paper.TRACE_WHERE[first]}", number(here)))
    return Drawn(figures, f"One stream as fast as it goes, received over {kept.STREAMED[first]} (first peak) and {kept.STREAMED[second]} (second peak)"
                         f"{how_sent([line for lines in chosen.values() for line in lines])}. What came counts. One repetition is drawn." + alike.left_out_note(left_out), rows)


def figure6(results):
    return two_peaks(results, "tcp", "rc")


def figure7(results):
    return two_peaks(results, "udp", "uc")


def lost_note(lines):
    lost = kept.spread(kept.values(lines, "lost_percent"))
    return f", {number(lost.median)} % lost" if lost and lost.median > 0 else ""


def offload_lines(results, state):
    """(lines, what is left out)"""
    wanted = {"tcp": 262144, "rc": 262144, "udp": 65000, "uc": 65536}
    left_out = collections.Counter()
    lines = [line for line in results.of_suite("rc", "uc") if kept.network_of(line)[:2] == ("veth", state) and (kind := kept.transport_of(line))
             and line["parameters"]["size"] == wanted[kind.split("-")[0]]]
    return alike.largest(lines, kept.network_of, alike.network_name, left_out), left_out


def offloads(results, state):
    lines, left_out = offload_lines(results, state)
    found = kept.by_transport(lines, lambda line: 0)
    if not found:
        return None
    name, label, unit = cost(results)
    rates = {t: s for t, groups in found.items() if (s := kept.spread(kept.values(groups[0], "gbps")))}
    costs = {t: s for t, groups in found.items() if (s := kept.spread(kept.values(groups[0], name)))}
    figures, (rate, price) = panels(2)
    bars(rate, rates, GOODPUT, MORE)
    bars(price, costs, label, LESS)
    rows = []
    for transport in rates:
        of_paper = f"{paper.UC_WRITE_GBPS} Gb/s" if transport == "uc-write" else "a plot alone"
        rows.append((f"{kept.TRANSPORTS[transport]}, goodput", of_paper, "section 4.5", told(rates[transport], "Gb/s") + lost_note(found[transport][0])))
    for transport, groups in found.items():
        if sender := kept.spread(kept.values(groups[0], "tx_s_per_gb")):
            rows.append((f"{kept.TRANSPORTS[transport]}, CPU of the sender", "not in the paper", "", told(sender, "s/GB")))
    rows.append(("UC Write, " + ("power" if unit == "W" else "CPU of the receiver"), f"{paper.UC_WRITE_WATTS} W", "section 4.5", told(costs.get("uc-write"), unit)))
    rows.append(("UC Write / UDP sockets, " + ("power" if unit == "W" else "CPU for a byte"), "a plot alone", "figures 8 and 9",
                 number(kept.ratio(costs.get("uc-write"), costs.get("udp")))))
    why = ("UC sends 64 kB as many datagrams, which without UDP_SEGMENT and UDP_GRO pass the kernel one by one; a UDP datagram of 65000 bytes is one system call at each side, "
           "IP cuts it up and joins it, and little of that counts as the receiving process's. " if state == "off" else "")
    return Drawn(figures, f"Offloads {state} (checksums, TSO, GSO, GRO), {alike.network_name(kept.network_of(lines[0]))}; messages of 256 kB over TCP and RC, 64 kB over UC, "
                         "datagrams of 65000 bytes over UDP. UDP and UC Writes go as fast as their sender, and what came counts. CPU is that of the receiving process. "
                         f"{why}The dark line is from the smallest to the largest value." + alike.left_out_note(left_out), rows)


def figure8(results):
    return offloads(results, "off")


def figure9(results):
    return offloads(results, "on")


def sweep(results):
    """({transport: {size: lines}}, the network in words, what is left out in words) of at least two sizes."""
    lines = [line for line in results.of_suite("rc", "uc") if line["parameters"].get("size", 0) >= 8192 and kept.transport_of(line)]
    lines, network, left_out = alike.one_network(lines)
    found = kept.by_transport(lines, lambda line: line["parameters"]["size"])
    if max((len(groups) for groups in found.values()), default=0) < 2:
        return None, None, None
    return found, alike.network_name(network), alike.left_out_note(left_out)


def ticks_of(found):
    """Powers of two alone, so that 65000 does not stand beside 65536."""
    sizes = sorted({size for groups in found.values() for size in groups})
    powers = [size for size in sizes if size & (size - 1) == 0]
    return powers or sizes


def best_size(groups):
    medians = {size: kept.median(kept.values(lines, "gbps")) for size, lines in groups.items() if kept.values(lines, "gbps")}
    return max(medians, key=medians.get) if medians else None


def figure10(results):
    found, network, not_drawn = sweep(results)
    if found is None:
        return None
    name, label, _ = cost(results)
    figures, (rate, price) = panels(2, 3.9)
    draw_by_size(rate, found, lambda lines: kept.values(lines, "gbps"), ticks_of(found))
    draw_by_size(price, found, lambda lines: kept.values(lines, name), ticks_of(found))
    label_values(rate, GOODPUT, MORE)
    label_values(price, label, LESS)
    rows = []
    for transport, groups in found.items():
        best = best_size(groups)
        rows.append((f"{kept.TRANSPORTS[transport]}, size of the largest goodput", "no gain beyond around " + paper.BEST_SIZE[transport.split("-")[0]], "section 4.5",
                     f"{size_name(best)}: {told(kept.spread(kept.values(groups[best], 'gbps')), 'Gb/s')}" if best else "not measured"))
    return Drawn(figures, f"Message sizes, {network}.{not_drawn}", rows)


def figure11(results):
    found, network, not_drawn = sweep(results)
    if found is None:
        return None
    metered = results.metered()
    unit = "Gb/s per W" if metered else "GB per CPU s"

    def efficiency(lines):
        return kept.values(lines, "gbps_per_w") if metered else kept.reciprocals(lines, "rx_s_per_gb")

    figures, (axes,) = panels(1, 3.9)
    draw_by_size(axes, found, efficiency, ticks_of(found))
    label_values(axes, f"efficiency ({unit})" if metered else f"efficiency of the receiver ({unit})", MORE)
    best = {}
    for transport, groups in found.items():
        spreads = [s for lines in groups.values() if (s := kept.spread(efficiency(lines)))]
        if spreads:
            best[transport] = max(spreads, key=lambda s: s.median)
    rows = [(f"{kept.TRANSPORTS[transport]}, best size",
             f"{paper.efficiency(transport.split('-')[0]):.2f} Gb/s per W" if not transport.endswith("-read") else "a plot alone",
             "computed from sections 4.3 and 4.4, of the CPU's power" if not transport.endswith("-read") else "figure 11",
             told(spread, unit)) for transport, spread in best.items()]
    for one, other in (("rc-write", "tcp"), ("uc-write", "udp")):
        better = kept.ratio(best.get(one), best.get(other))
        if better:
            rows.append((f"{kept.TRANSPORTS[one]} / {kept.TRANSPORTS[other]}, efficiency",
                         f"{paper.efficiency(one.split('-')[0]) / paper.efficiency(other):.2f}", "computed from sections 4.3 and 4.4", f"{better:.2f}"))
    what = ("Goodput for each W" if metered else "10^9 bytes for each second of CPU that the receiver takes, which is 1 / (CPU s/GB)")
    return Drawn(figures, f"{what}, by message size, {network}: more is better, as in the paper. In the table the best size of each transport counts, of UDP up to 65000 bytes."
                          f"{'' if metered else ' CPU is that of the receiving process, without what the kernel does for it elsewhere.'}{not_drawn}", rows)


def percent(value):
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def figure12(results):
    lines, left_out = alike.same_losses([line for line in results.of_suite("loss") if kept.transport_of(line)])
    found = kept.by_transport(lines, kept.loss_of)
    if max((len(groups) for groups in found.values()), default=0) < 2:
        return None
    losses = sorted({loss for groups in found.values() for loss in groups})
    figures, (rate, share) = panels(2, 3.9)
    rows, whole = [], []
    for transport, groups in found.items():
        points = [(losses.index(loss), spread) for loss, group in groups.items() if (spread := kept.spread(kept.values(group, "gbps")))]
        if not points:
            continue
        name, style = kept.TRANSPORTS[transport], line_style(transport)
        draw_spreads(rate, points, colour_of(transport), name, style)
        first, last = points[0][1].median, points[-1][1].median
        if losses[points[0][0]] == 0 and first > 0:
            whole.append(f"{name} {number(first)}")
            share.plot([x for x, _ in points], [100 * s.median / first for _, s in points], style, color=colour_of(transport), marker="o", markersize=4, label=name)
            of_paper = (f"breaks down at {paper.READ_BREAKS_AT} %" if transport == "uc-read" else
                        "loses what the network loses" if transport in ("udp", "uc-write") else "falls as loss grows (a plot alone)")
            rows.append((f"{name}, left at {losses[points[-1][0]]:g} % loss", of_paper, "section 4.6", f"{percent(100 * last / first)} % of that without loss"))
            at_break = next((s.median for x, s in points if losses[x] == paper.READ_BREAKS_AT), None)
            if transport == "uc-read" and at_break is not None and losses[points[-1][0]] != paper.READ_BREAKS_AT:
                rows.append((f"{name}, left at {paper.READ_BREAKS_AT} % loss", "breaks down", "section 4.6", f"{percent(100 * at_break / first)} % of that without loss"))
    for axes in (rate, share):
        axes.set_xticks(range(len(losses)), [f"{loss:g}" for loss in losses])
        axes.set_xlabel("packets lost (%)")
        from_zero(axes)
        if axes.has_data():
            put_legend(axes)
    label_values(rate, GOODPUT, MORE)
    label_values(share, "goodput (% of its own without loss)", MORE)
    own = (f" The second drawing shows what each transport keeps, not which one is faster: 100 % of a curve is its own goodput without loss, in Gb/s {', '.join(whole)}."
           if whole else "")
    offered = sorted({line["parameters"]["gbps"] for line in lines if line["parameters"].get("gbps")})
    note = f" UC Writes and UDP are offered {' and '.join(f'{rate:g}' for rate in offered)} Gb/s, the others go as fast as they can." if offered else ""
    return Drawn(figures, f"Goodput where the network loses packets, each way, {alike.network_name(kept.network_of(lines[0]))}.{own}{note} Of plain UC Writes all bytes that came count, "
                          "of UDP whole datagrams, which IP cuts up: one that lacks a fragment is lost, and keeps memory of which IP has little (net.ipv4.ipfrag_high_thresh) for up to 30 s, "
                          f"so at many losses nothing may come at all.{alike.left_out_note(left_out)}", rows)


MOST_DRAWINGS = 4  # of one figure

# Number or name; title; how to draw it; the part of `weft bench paper` that measures it.
ALL = (
    ("3", "LOFAR traffic over TCP and UDP sockets", figure3, "lofar"),
    ("4", "LOFAR traffic over RDMA", figure4, "lofar"),
    ("5", "LOFAR traffic: bandwidth", figure5, "lofar"),
    ("streams", "Number of streams on loopback (not in the paper)", streams, "lofar"),
    ("streams-net", "Number of streams between two network namespaces (not in the paper)", streams_net, "lofar-net"),
    ("sustained", "One stream without loss between two network namespaces (not in the paper)", sustained, "trace-net"),
    ("disk", "Streams to a disk (not in the paper)", disk, "disk"),
    ("6", "TCP sockets, then RDMA over TCP", figure6, "trace"),
    ("7", "UDP sockets, then RDMA over UDP", figure7, "trace"),
    ("8", "Offloads off", figure8, "offloads"),
    ("9", "Offloads on", figure9, "offloads"),
    ("10", "Message sizes", figure10, "sweep"),
    ("11", "Efficiency", figure11, "sweep"),
    ("12", "Packet loss", figure12, "loss"),
)
