"""What the figures are drawn of: colours, panels, lines and bars with their spread, and the words beside them."""

import collections

import matplotlib
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

import results as kept  # noqa: E402

# Told apart by people who see colours differently, too (Okabe and Ito); Reads are dashed.
COLOURS = {"dd": "#777777", "tcp": "#D55E00", "udp": "#B8860B", "rc": "#0072B2", "uc": "#009E73"}

matplotlib.rcParams.update({
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched and copied
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
})

# Drawings, which stand side by side where there is room; the sentence below them; rows (what, in the paper, where it stands there, here).
Drawn = collections.namedtuple("Drawn", "figures caption rows")

MORE, LESS = "more is better", "less is better"
SMALL = 9.5  # points, of legends

WATTS = "receiver's and sender's power (W)"
CPU = "CPU of the receiver (s/GB)"
GOODPUT = "goodput (Gb/s)"


def colour_of(transport):
    return COLOURS[transport.split("-")[0]]


def line_style(transport):
    return "--" if transport.endswith("-read") else "-"


def number(value):
    if value is None:
        return "not measured"
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def told(spread, unit):
    """A median with its range: '12.0 Gb/s (11.5..12.4)'."""
    if spread is None:
        return "not measured"
    text = f"{number(spread.median)} {unit}"
    return f"{text} ({number(spread.low)}..{number(spread.high)})" if spread.count > 1 else f"{text} (once)"


def cost(results):
    """(figure, label of the axis, unit) of what a transfer costs, of which less is better: power where it is measured, else CPU."""
    if results.metered():
        return "watts", WATTS, "W"
    return "rx_s_per_gb", CPU, "s/GB"


def panels(count, height=3.3):
    """(figures, the axes of each). Each is small enough to be read on a telephone: the page puts as many in a row as fit."""
    width = 4.2 if count < 3 else 2.1  # inches
    figures = [Figure(figsize=(width, height)) for _ in range(count)]
    return figures, [figure.subplots() for figure in figures]


def put_legend(axes):
    """Below the axis, for more curves than leave room among them."""
    axes.legend(fontsize=SMALL, ncols=3, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), columnspacing=1.2, handlelength=1.6)


def from_zero(axes, room=1.0):
    """The axis of values begins at 0 and holds all that is drawn, `room` times as high. After the last curve: the limits stay."""
    axes.set_ylim(0, room * axes.get_ylim()[1])


def label_values(axes, label, better=None):
    axes.set_ylabel(f"{label}\n{better}" if better else label)


def draw_trace(axes, samples, value, colour, label, shift=0.0):
    """A line over time; True when there was something to draw."""
    points = [(sample["t"] - samples[0]["t"] + shift, sample[value]) for sample in samples if sample.get(value) is not None]
    if not points:
        return False
    # A line through one or two points alone would not be seen.
    axes.plot([t for t, _ in points], [v for _, v in points], color=colour, label=label, linewidth=1.5, marker="." if len(points) < 30 else None)
    return True


def trace_value(results):
    """Power over time where all have it, else the CPUs that the receiver kept busy."""
    if results.traces_metered():
        return "watts", "power (W)"
    return "cpus", "busy CPUs of the receiver"


def size_name(size):
    return f"{size // 1048576}M" if size >= 1048576 else f"{round(size / 1024)}k"


def bars(axes, spreads, label, better, names=kept.TRANSPORTS):
    places = range(len(spreads))
    for place, (transport, spread) in zip(places, spreads.items()):
        axes.barh(place, spread.median, color=colour_of(transport), alpha=0.6 if transport.endswith("-read") else 1.0)
        axes.plot([spread.low, spread.high], [place, place], color="#222222", linewidth=2)
    axes.set_yticks(list(places), [names[transport] for transport in spreads])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"{label}\n{better}")


def draw_spreads(axes, points, colour, label, style="-"):
    xs = [x for x, _ in points]
    axes.plot(xs, [s.median for _, s in points], style, color=colour, marker="o", markersize=4, label=label)
    axes.vlines(xs, [s.low for _, s in points], [s.high for _, s in points], color=colour, alpha=0.5)


def draw_by_size(axes, found, values_of, sizes):
    """`values_of` gives the values of repetitions."""
    for transport, groups in found.items():
        points = [(size, spread) for size, lines in groups.items() if (spread := kept.spread(values_of(lines)))]
        if points:
            draw_spreads(axes, points, colour_of(transport), kept.TRANSPORTS[transport], line_style(transport))
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [size_name(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("message size (bytes)")
    from_zero(axes)
    put_legend(axes)
