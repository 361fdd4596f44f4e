#!/usr/bin/env python3
"""weft report: a page with the paper's figures, from kept results."""

import argparse
import pathlib
import shlex
import sys

import command_line
import papers
import results as kept

EXAMPLES = (("weft report results.jsonl -o page", "a page from kept results"),
            ("weft report --measure -o page", "measures first, 20 minutes, as root"),
            ("weft report --of sdp --measure -o page", "the same of the paper on SDP"))
REMARKS = """With --measure, 'weft bench paper' (root) runs first and adds its results to DIR/results.jsonl:
weft report --measure -o DIR, or with words for it, weft report --measure --paper "--budget 10" -o DIR.
Results come from 'weft bench paper -o RESULTS.jsonl' or 'weft bench SUITE --jsonl RESULTS.jsonl'.
Exit status: 0 when the page was written, 1 when it could not be, has no figure, or a measurement failed or never ran, 2 for wrong usage, 130 or
143 when a signal ended it early. docs/report.md explains it."""


def parse(arguments):
    parser = command_line.Parser("weft report", "Make a page with the paper's figures, from kept results", EXAMPLES, REMARKS)
    parser.add_argument("--weft", help=argparse.SUPPRESS)
    parser.add_argument("--version-of-weft", dest="version", default="unknown", help=argparse.SUPPRESS)
    parser.add_argument("results", nargs="*", metavar="RESULTS.jsonl", help="files of results; all count together")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for index.html and the figures as SVG and PNG")
    parser.add_argument("--of", choices=sorted(papers.PAPERS), default="radio",
                        help="whose figures: of the paper on radio astronomy, or of that on SDP (radio)")
    parser.add_argument("--trace", action="append", default=[], metavar="TRANSPORT=FILE",
                        help="a file of 'weft measure --samples' for figures 6 and 7; TRANSPORT is tcp, udp, rc or uc")
    parser.add_argument("--measure", action="store_true", help="run 'weft bench paper' first: root, and 20 minutes")
    parser.add_argument("--paper", default="", metavar="WORDS", help="options of 'weft bench paper', for --measure")
    options = parser.parse_args(arguments)
    for pair in options.trace:
        label, equals, path = pair.partition("=")
        if not equals or not path:
            parser.error(f"--trace takes TRANSPORT=FILE, not '{pair}'")
        if label not in kept.STREAMED:
            parser.error(f"--trace {pair}: '{label}' is none of {', '.join(kept.STREAMED)}{command_line.did_you_mean(label, kept.STREAMED)}")
    if options.paper and not options.measure:
        parser.error("--paper is for --measure")
    if not options.results and not options.measure:
        parser.error("the following arguments are required: RESULTS.jsonl, or --measure")
    return options


def measure(options):
    """(its exit status, whether there are new results)"""
    import paper  # pylint: disable=import-outside-toplevel
    papers.drawings(options.of)  # what it needs is missed now, not in 20 minutes
    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.jsonl"
    before = path.stat().st_size if path.exists() else 0
    status = paper.main(["--weft", options.weft, "--version-of-weft", options.version, "--of", options.of, *shlex.split(options.paper), "-o", str(path)])
    options.results.append(str(path))
    return status, path.exists() and path.stat().st_size > before


def read(options):
    results = kept.load(options.results)
    for note in results.notes:
        print(f"weft report: note: {note}", file=sys.stderr)
    for pair in options.trace:
        label, _, path = pair.partition("=")
        kept.add_trace(results, label, path)
    if not results.repetitions and not results.samples:
        raise kept.BadResults("nothing in these files went well enough to be shown")
    return results


def write(of, results, folder):
    """The names of the figures that were drawn."""
    import page  # pylint: disable=import-outside-toplevel
    paper, figures = papers.PAPERS[of], papers.drawings(of)
    folder.mkdir(parents=True, exist_ok=True)
    for name, *_ in figures.ALL:
        for one in (name, *page.drawing_names(name, figures.MOST_DRAWINGS)):
            for ending in ("svg", "png"):
                (folder / f"figure-{one}.{ending}").unlink(missing_ok=True)  # of other results, which may have had more
    sections, names = [], []
    for name, title, draw, part in figures.ALL:
        drawn, drawings = draw(results), []
        if drawn is not None:
            names.append(name)
            count = len(drawn.figures)
            for number, (one, figure) in enumerate(zip(page.drawing_names(name, count), drawn.figures), 1):
                which = f", {number} of {count}" if count > 1 else ""
                drawings.append(page.svg_text(figure, one, page.heading(name, title) + which))
                (folder / f"figure-{one}.svg").write_text('<?xml version="1.0" encoding="utf-8"?>\n' + drawings[-1], encoding="utf-8")
                figure.set_layout_engine("none")  # all stands where it did in the first one: to find that out takes most of the time
                figure.savefig(folder / f"figure-{one}.png", dpi=110, metadata={"Software": None})
        sections.append(page.section(paper.command, name, title, drawn, part, drawings))
    (folder / "index.html").write_text(page.page(paper, results, sections), encoding="utf-8")
    return names


def main(arguments):
    options = parse(arguments)
    try:
        status, measured = measure(options) if options.measure else (0, True)
        if status > 128 or not measured:
            return status
        results = read(options)
        folder = pathlib.Path(options.output)
        names = write(options.of, results, folder)
    except ModuleNotFoundError as error:
        print(f"weft report: Python has no {error.name}, which draws the figures; remedy: apt-get install python3-matplotlib", file=sys.stderr)
        return 1
    except (kept.BadResults, OSError) as error:
        print(f"weft report: {error}", file=sys.stderr)
        return 1
    if not names:
        print(f"weft report: {folder / 'index.html'}: no figure is made of these results; the page says which command makes those of each", file=sys.stderr)
        return status or 1
    print(f"{folder / 'index.html'}: {len(names)} figures ({', '.join(names)})")
    return status


if __name__ == "__main__":
    command_line.run("weft report", main)
