"""Figures 6 to 12 of the paper on zero copy, and round trips, drawn of kept results of `weft bench sdp`. As in figures.py, each
function takes Results and gives a Drawn, or None where there is nothing to draw."""

import functools

from matplotlib.figure import Figure

import groups as alike
import results as kept
import sdp_lines as sdp
import sdp_numbers as paper
from drawing import draw_spreads, Drawn, from_zero, LESS, MORE, number, SMALL, told

COLOURS = {"tcp": "#D55E00", "copied": "#0072B2", "in-place": "#009E73", "cost": "#B8860B"}
# What is drawn of a place: the label, how it comes from lines, which way is better.
GOODPUT = ("goodput (MB/s)", sdp.megabytes, MORE)
CPUS = (("CPU of the sender (%)", sdp.sender_cpu, LESS), ("CPU of the receiver (%)", sdp.receiver_cpu, LESS))
PER_BYTE = ("CPU of both sides (us/KB)", sdp.us_per_kb, LESS)
BOTH = "CPU is that of the processes, 100 % is one CPU"


def panel(title):
    """(figure, its axes), small enough for three in a row."""
    figure = Figure(figsize=(3.1, 3.5))
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    return figure, axes


def size_name(size):
    return f"{size // 1048576}M" if size >= 1048576 else f"{size // 1024}k" if size >= 1024 else str(size)


def in_words(size):
    return f"{size // 1048576} MB" if size >= 1048576 else f"{size // 1024} KB" if size >= 1024 else f"{size} B"


def some(values):
    """Every second one where all of them would lie on each other."""
    return values if len(values) < 6 else values[::2]


def draw_ways(axes, found, value, label, better):
    """Curves of {way: {x: [line...]}}."""
    for way, groups in found.items():
        points = [(x, spread) for x, lines in groups.items() if (spread := kept.spread(value(lines)))]
        if points:
            draw_spreads(axes, points, COLOURS[way], sdp.WAYS[way].replace("SDP, ", ""))
    axes.set_ylabel(f"{label}\n{better}")
    axes.legend(fontsize=SMALL, ncols=1, frameon=False, loc="upper center", bbox_to_anchor=(0.45, -0.2), handlelength=1.6)


def sizes_below(axes, found):
    sizes = sorted({size for groups in found.values() for size in groups})
    axes.set_xscale("log", base=2)
    axes.set_xticks(some(sizes), [size_name(size) for size in some(sizes)])
    axes.minorticks_off()
    axes.set_xlabel("message size (bytes)")


def where(lines):
    return alike.network_name(kept.network_of(lines[0]))


def places_named(places):
    return "; ".join(f"{sdp.PLACES[place]}: {where(lines)}" for place, lines in places.items())


def crossing(found, value, wins, smallest=True):
    """In words: from where on in place wins over copies."""
    copied, placed = (sdp.medians(found.get(way, {}), value) for way in ("copied", "in-place"))
    common = sorted(set(copied) & set(placed))
    if not common:
        return "not measured"
    name = in_words if smallest else str
    x = sdp.crossover(copied, placed, wins)
    if x is None:
        return f"nowhere up to {name(common[-1])}"
    return f"{name(x)}" + (", the smallest measured" if x == common[0] else "")


def more(a, b):
    return a >= b


def less(a, b):
    return a <= b


def at(found, way, x, value, unit):
    return told(kept.spread(value(found.get(way, {}).get(x, []))), unit)


def wanted(found, size, what, value, limit, wins):
    """A row: in place beside TCP at one size, and whether that is what weft wants of it on one host."""
    ratio = kept.ratio(*(kept.spread(value(found.get(way, {}).get(size, []))) for way in ("in-place", "tcp")))
    met = "" if ratio is None else ": met" if wins(ratio, limit) else ": not met"
    return (f"one host, in place / TCP, {in_words(size)}, {what}", f"wanted: at {'least' if wins is more else 'most'} {limit:g}", "weft's own goal", number(ratio) + met)


def rows_of_one(found, name):
    """CPU with one connection, as section 4.1 has it."""
    sizes = sorted({size for groups in found.values() for size in groups})
    return [(f"{name}, CPU, mean of both sides, {in_words(size)}, {sdp.WAYS[way]}", said, "section 4.1", at(found, way, size, sdp.mean_cpu, "%"))
            for way, size, said in (("copied", sizes[0], paper.COPIED_SMALL_CPU), ("in-place", sizes[0], paper.IN_PLACE_SMALL_CPU),
                                    ("in-place", sizes[-1], paper.IN_PLACE_LARGE_CPU))]


def rows_of_several(found, name):
    """CPU with several, as section 4.2 has it: of the sizes beyond 128 kB the most."""
    rows = []
    for way, said in (("in-place", paper.IN_PLACE_CPU), ("copied", paper.COPIED_CPU)):
        of_size = {size: cpu for size, cpu in sdp.medians(found.get(way, {}), sdp.mean_cpu).items() if size > 131072}
        rows.append((f"{name}, CPU, mean of both sides, beyond 128 KB at most, {sdp.WAYS[way]}", said, "section 4.2",
                     f"{number(max(of_size.values()))} %" if of_size else "not measured"))
    return rows


def rows_of_eight(found, name):
    best = {way: max(sdp.medians(found.get(way, {}), sdp.megabytes).values(), default=None) for way in ("copied", "in-place")}
    rows = [(f"{name}, the most, {sdp.WAYS[way]}", said, "section 4.2", f"{number(best[way])} MB/s" if best[way] else "not measured")
            for way, said in (("in-place", paper.IN_PLACE_MBPS), ("copied", paper.COPIED_MBPS))]
    if all(best.values()):
        rows.append((f"{name}, in place / copied, the most", f"{paper.OF_COPIED_MBPS:.2g}", "computed from section 4.2", number(best["in-place"] / best["copied"])))
    costs = [sdp.medians(found.get(way, {}), sdp.mean_cpu) for way in ("in-place", "copied")]
    largest = max(set(costs[0]) & set(costs[1]), default=None)
    if largest is not None and costs[1][largest]:
        rows.append((f"{name}, in place / copied, CPU, {in_words(largest)}", f"{paper.OF_COPIED_CPU:g}", "abstract", number(costs[0][largest] / costs[1][largest])))
    return rows


def by_size(results, connections):
    """Figures 6 to 9: goodput and CPU by message size."""
    places, left_out = sdp.of_places(results, "bandwidth")
    places = {place: chosen for place, lines in places.items() if (chosen := sdp.with_parameters(lines, connections=connections))}
    if not places:
        return None
    figures, rows = [], []
    for place, lines in places.items():
        found = sdp.by_way(lines, "size")
        for label, value, better in (GOODPUT, *CPUS):
            figure, axes = panel(sdp.PLACES[place])
            draw_ways(axes, found, value, label, better)
            sizes_below(axes, found)
            from_zero(axes)
            figures.append(figure)
        name = sdp.PLACES[place]
        rows.append((f"{name}, in place is faster than copied from", paper.CROSSOVER[connections], paper.CROSSOVER_WHERE[connections],
                     crossing(found, sdp.megabytes, more)))
        rows += rows_of_one(found, name) if connections == 1 else rows_of_several(found, name)
        if connections == 8:
            rows += rows_of_eight(found, name)
        if place == "host" and connections == 1:
            rows.append(wanted(found, 262144, "MB/s", sdp.megabytes, 2, more))
            rows.append(wanted(found, 262144, "us/KB", sdp.us_per_kb, 0.35, less))
        if place == "host" and connections == 8:
            rows.append(wanted(found, 262144, "us/KB", sdp.us_per_kb, 0.3, less))
    return Drawn(figures, f"{connections} {'connection' if connections == 1 else 'connections'}, each with a thread on either side; {places_named(places)}. {BOTH}; "
                          "the paper's is the mean of both sides, and its figure has copies and ZCopy alone." + alike.left_out_note(left_out), rows)


def by_connections(results, size):
    """Figures 10 and 11: goodput and CPU by number of connections."""
    places, left_out = sdp.of_places(results, "bandwidth")
    places = {place: chosen for place, lines in places.items() if (chosen := sdp.with_parameters(lines, size=size))}
    places = {place: lines for place, lines in places.items() if len({line["parameters"]["connections"] for line in lines}) > 1}
    if not places:
        return None
    figures, rows = [], []
    for place, lines in places.items():
        found = sdp.by_way(lines, "connections")
        counts = sorted({count for groups in found.values() for count in groups})
        for label, value, better in (GOODPUT, *CPUS):
            figure, axes = panel(sdp.PLACES[place])
            draw_ways(axes, found, value, label, better)
            axes.set_xticks(counts, [str(count) for count in counts])
            axes.set_xlabel("connections")
            from_zero(axes)
            figures.append(figure)
        name = sdp.PLACES[place]
        rows.append((f"{name}, connections from which on in place is faster", paper.FASTER_FROM[size], "section 4.2", crossing(found, sdp.megabytes, more, False)))
        of_count = sdp.medians(found.get("in-place", {}), sdp.mean_cpu)
        rows.append((f"{name}, CPU, mean of both sides, at most, {sdp.WAYS['in-place']}", paper.ANY_CONNECTIONS_CPU, "section 4.2",
                     f"{number(max(of_count.values()))} %" if of_count else "not measured"))
    return Drawn(figures, f"Messages of {in_words(size)}; {places_named(places)}. {BOTH}; the paper's is the mean of both sides." + alike.left_out_note(left_out), rows)


PER_BYTE_CONNECTIONS = (1, 2, 8)


def per_byte(results):
    """Figure 12."""
    places, left_out = sdp.of_places(results, "bandwidth")
    figures, rows, shown = [], [], {}
    for place, lines in places.items():
        for count in PER_BYTE_CONNECTIONS:
            found = sdp.by_way(sdp.with_parameters(lines, connections=count), "size")
            if not found:
                continue
            shown[place] = lines
            figure, axes = panel(f"{sdp.PLACES[place]}, {count}")
            draw_ways(axes, found, PER_BYTE[1], PER_BYTE[0], PER_BYTE[2])
            sizes_below(axes, found)
            from_zero(axes)
            figures.append(figure)
            rows.append((f"{sdp.PLACES[place]}, {count} {'connection' if count == 1 else 'connections'}, in place takes less from", paper.CHEAPER_FROM, "section 4.3",
                         crossing(found, sdp.us_per_kb, less)))
    if not figures:
        return None
    return Drawn(figures, f"CPU time of both sides together for 1024 bytes, with 1, 2 and 8 connections; {places_named(shown)}. The paper divides the mean CPU of both sides "
                          "by the bandwidth, which is half of that." + alike.left_out_note(left_out), rows)


def round_trips(results):
    """What the paper left for later: latency."""
    places, left_out = sdp.of_places(results, "latency")
    figures, rows = [], []
    for place, lines in places.items():
        found = sdp.by_way(lines, "size")
        figure, axes = panel(sdp.PLACES[place])
        draw_ways(axes, found, lambda lines: kept.values(lines, "rtt_us"), "round trip (us)", LESS)
        sizes_below(axes, found)
        axes.set_yscale("log")
        figures.append(figure)
        for size in sorted({size for groups in found.values() for size in groups}):
            spreads = {way: kept.spread(kept.values(found.get(way, {}).get(size, []), "rtt_us")) for way in ("cost", "tcp")}
            rows.append((f"{sdp.PLACES[place]}, {in_words(size)}, SDP / TCP", "not in the paper", "section 3.1",
                         f"{number(kept.ratio(spreads['cost'], spreads['tcp']))}: {told(spreads['cost'], 'us')} of {told(spreads['tcp'], 'us')}"))
    if not figures:
        return None
    return Drawn(figures, f"One message there and one back, the median of each repetition; {places_named(places)}. Sends of this kind that are small are always copied."
                          + alike.left_out_note(left_out), rows)


MOST_DRAWINGS = 6  # of one figure

# Number or name; title; how to draw it; the part of `weft bench paper --of sdp` that measures it.
ALL = (
    ("6", "One connection", functools.partial(by_size, connections=1), "host,net"),
    ("7", "Two connections", functools.partial(by_size, connections=2), "host,net"),
    ("8", "Four connections", functools.partial(by_size, connections=4), "host,net"),
    ("9", "Eight connections", functools.partial(by_size, connections=8), "host,net"),
    ("10", "Connections, messages of 64 KB", functools.partial(by_connections, size=65536), "host,net"),
    ("11", "Connections, messages of 1 MB", functools.partial(by_connections, size=1048576), "host,net"),
    ("12", "CPU for a byte", per_byte, "host,net"),
    ("latency", "Round trips (not in the paper)", round_trips, "host,net"),
)
