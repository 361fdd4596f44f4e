"""points.py PAPER RESULTS.jsonl [SHARE]: where the points that `weft report --of PAPER` draws lie, as JSON: {figure: [points, those outside of their axes]}.
With SHARE every axis ends at that share of its length. It runs under the Python that has matplotlib."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "report"))

import papers  # noqa: E402
import results as kept  # noqa: E402

EDGE = 1e-6  # of an axis


def drawn_points(axes):
    """[x, y] in the axes' own numbers, of lines, bars and ranges."""
    for line in axes.get_lines():
        yield from line.get_xydata()
    for bar in axes.patches:
        yield from bar.get_bbox().get_points()
    for ranges in axes.collections:
        for segment in ranges.get_segments():
            yield from segment


def look(axes, share):
    found, outside = 0, []
    for limits, limit in ((axes.get_xlim(), axes.set_xlim), (axes.get_ylim(), axes.set_ylim)):
        limit(limits[0], limits[0] + share * (limits[1] - limits[0]))
    for point in drawn_points(axes):
        x, y = (axes.transScale + axes.transLimits).transform(point)
        found += 1
        if not (-EDGE <= x <= 1 + EDGE and -EDGE <= y <= 1 + EDGE):
            outside.append([float(value) for value in point])
    return found, outside


def main(paper, path, share="1"):
    seen = {}
    for name, _, draw, _ in papers.drawings(paper).ALL:
        drawn = draw(kept.load([path]))
        if drawn is not None:
            looks = [look(axes, float(share)) for figure in drawn.figures for axes in figure.axes]
            seen[name] = [sum(count for count, _ in looks), [point for _, outside in looks for point in outside]]
    print(json.dumps(seen))


main(*sys.argv[1:])
