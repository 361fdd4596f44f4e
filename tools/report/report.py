#!/usr/bin/env python3
"""weft report: a page with the paper's figures, from kept results."""

import argparse
import pathlib
import sys

import results as kept

EPILOG = """Results come from 'weft bench paper -o RESULTS.jsonl' or 'weft bench SUITE --jsonl RESULTS.jsonl'.
Exit status: 0 when the page was written, 1 when it could not be, 2 for wrong usage. docs/report.md explains it."""


def parse(arguments):
    parser = argparse.ArgumentParser(prog="weft report", description="Make a page with the paper's figures, from kept results", epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", metavar="RESULTS.jsonl", help="files of results; all count together")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for index.html and the figures as SVG and PNG")
    parser.add_argument("--trace", action="append", default=[], metavar="TRANSPORT=FILE",
                        help="a file of 'weft measure --samples' for figures 6 and 7; TRANSPORT is tcp, udp, rc or uc")
    return parser.parse_args(arguments)


def read(options):
    results = kept.load(options.results)
    for note in results.notes:
        print(f"weft report: note: {note}", file=sys.stderr)
    for pair in options.trace:
        label, equals, path = pair.partition("=")
        if not equals:
            raise kept.BadResults(f"--trace takes TRANSPORT=FILE, not '{pair}'")
        kept.add_trace(results, label, path)
    if not results.repetitions and not results.samples:
        raise kept.BadResults("nothing in these files went well enough to be shown")
    return results


def write(results, folder):
    """The names of the figures that were drawn."""
    import figures  # pylint: disable=import-outside-toplevel
    import page  # pylint: disable=import-outside-toplevel
    folder.mkdir(parents=True, exist_ok=True)
    for name, *_ in figures.ALL:
        for ending in ("svg", "png"):
            (folder / f"figure-{name}.{ending}").unlink(missing_ok=True)  # of other results, which may have had more
    sections, drawings, names = [], {}, []
    for name, title, draw, part in figures.ALL:
        drawn = draw(results)
        if drawn is not None:
            names.append(name)
            drawings[name] = page.svg_text(drawn.figure, name, page.heading(name, title))
            (folder / f"figure-{name}.svg").write_text('<?xml version="1.0" encoding="utf-8"?>\n' + drawings[name], encoding="utf-8")
            drawn.figure.savefig(folder / f"figure-{name}.png", dpi=110, metadata={"Software": None})
        sections.append(page.section(name, title, drawn, part, drawings))
    (folder / "index.html").write_text(page.page(results, sections), encoding="utf-8")
    return names


def main(arguments):
    options = parse(arguments)
    try:
        results = read(options)
        folder = pathlib.Path(options.output)
        names = write(results, folder)
    except ModuleNotFoundError as error:
        print(f"weft report: Python has no {error.name}, which draws the figures; remedy: apt-get install python3-matplotlib", file=sys.stderr)
        return 1
    except (kept.BadResults, OSError) as error:
        print(f"weft report: {error}", file=sys.stderr)
        return 1
    print(f"{folder / 'index.html'}: {len(names)} figures ({', '.join(names)})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
