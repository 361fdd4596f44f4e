"""The page: one HTML file that needs no other one."""

import html
import io
import re


STYLE = """
body { font: 16px/1.5 'DejaVu Sans', sans-serif; color: #222; background: #fff; max-width: 980px; margin: 2em auto; padding: 0 1em; }
h1 { line-height: 1.2; } h2 { margin-top: 2.2em; border-top: 1px solid #ccc; padding-top: 0.8em; }
figure { margin: 1em 0; } figcaption, .note { color: #444; font-size: 0.92em; }
.drawings { display: flex; flex-wrap: wrap; gap: 0.6em; margin-bottom: 0.6em; } .drawings svg { flex: 1 1 auto; min-width: 0; max-width: min(100%, 30em); height: auto; }
.scrolls { overflow-x: auto; margin: 1em 0; } .scrolls:focus { outline: 2px solid #0072B2; }
table { border-collapse: collapse; font-size: 0.88em; width: 100%; } .wide { min-width: 46em; }
th, td { text-align: left; padding: 0.3em 0.8em 0.3em 0; border-bottom: 1px solid #ddd; vertical-align: top; overflow-wrap: break-word; }
p { overflow-wrap: anywhere; }
code { background: #f3f3f3; padding: 0.1em 0.3em; overflow-wrap: anywhere; } .missing { background: #f7f4e8; padding: 0.8em 1em; }
.unmetered { background: #eef3f8; padding: 0.8em 1em; }
@media (max-width: 600px) {
  body { margin: 1em auto; } h1 { font-size: 1.5em; } h2 { font-size: 1.25em; }
  .drawings svg { width: 100%; max-width: 100%; } .drawings svg.small { flex: none; width: calc(50% - 0.3em); }
}
"""


def svg_text(figure, name, title):
    """The drawing, fit to stand among others in a page: its ids are its own, and it has a name for who cannot see it. One that is
    small enough for two in a row on a telephone says so."""
    import matplotlib  # pylint: disable=import-outside-toplevel
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    text = text[text.index("<svg"):]
    prefix = f"f{name}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}", text)
    kind = ' class="small"' if figure.get_figwidth() < 3 else ""
    return text.replace("<svg ", f'<svg{kind} role="img" aria-label="{html.escape(title, quote=True)}" ', 1)


def drawing_names(name, count):
    """Of the files, and of what the ids begin with."""
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]


def table(head, rows):
    """Wider than a telephone when it has more than two columns, and then it scrolls by itself."""
    cells = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(text))}</td>" for text in row) + "</tr>\n" for row in rows)
    text = f"<thead><tr>{cells}</tr></thead><tbody>\n{body}</tbody></table>\n"
    if len(head) < 3:
        return "<table>" + text
    return f'<div class="scrolls" tabindex="0" role="region" aria-label="table"><table class="wide">{text}</div>\n'


def heading(name, title):
    return f"Figure {name}: {title}" if name.isdigit() else title


def section(command, name, title, drawn, part, drawings):
    """Of one figure: its drawings and the numbers beside the paper's, or how to get them: by `command`."""
    text = f'<section id="figure-{name}">\n<h2>{html.escape(heading(name, title))}</h2>\n'
    if drawn is None:
        return text + (f'<p class="missing">These results have nothing for this figure. It is measured by '
                       f"<code>{command} --only {part} -o RESULTS.jsonl</code>.</p>\n</section>\n")
    text += f'<figure>\n<div class="drawings">\n{"".join(drawings)}</div>\n<figcaption>{html.escape(drawn.caption)}</figcaption>\n</figure>\n'
    text += table(("", "in the paper", "it stands in", "here: median (smallest..largest)"), drawn.rows)
    return text + "</section>\n"


def power_note(results):
    if not results.for_power():
        return "" if results.repetitions else '<p class="unmetered">These results have traces alone.</p>\n'
    if results.metered():
        return (f'<p class="unmetered">Power is that of {html.escape(", ".join(results.power_of()))}. Where both sides ran on one machine it is that of both, '
                "and the paper's is the receiver's alone.</p>\n")
    reason, remedy = results.why_unmeasured()
    return ('<p class="unmetered"><strong>Power is unmeasured</strong>, so CPU seconds of the receiver for 10^9 bytes (CPU s/GB) stand '
            f"in its place, and the CPUs that it keeps busy where the paper has power over time. The meter says: {html.escape(reason)}"
            f"{'; ' + html.escape(remedy) if remedy else ''}. CPU is not power: a machine also takes power at rest, and the paper's "
            "watts hold that: compare ratios, not numbers.</p>\n")


def busy_note(results):
    load = results.busy()
    if load is None:
        return ""
    return (f'<p class="missing"><strong>The machine was busy with other things</strong>: its load average was up to {load:.1f} before the repetitions. '
            "Goodput, CPU and losses below are what was left, and say little about the transports. Measure again on a quiet machine.</p>\n")


def facts(paper, results):
    times = sorted(line["time"] for line in results.repetitions)
    versions = sorted({line["version"] for line in results.repetitions})
    rows = [("weft", ", ".join(versions)), ("machine", "; ".join(results.machines())),
            ("measured", f"{times[0]} to {times[-1]}" if times else "unknown"),
            ("repetitions", f"{len(results.repetitions)} of all cases, {len(results.failures)} failed"),
            ("the paper's machines", paper.test_bed)]
    return table(("", ""), rows)


def failures(results):
    if not results.failures:
        return ""
    rows = [(line["suite"], line["case"], line["time"], line["error"]) for line in results.failures]
    return "<h2>What failed</h2>\n" + table(("suite", "case", "time", "why"), rows)


def page(paper, results, sections):
    """`paper`: one of papers.PAPERS."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>weft: the paper's figures on this machine</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{html.escape(paper.heading)}: the paper's figures on this machine</h1>
<p>{paper.words}</p>
{facts(paper, results)}
{power_note(results) if paper.power else ''}
{busy_note(results)}
{''.join(sections)}
{failures(results)}
<p class="note">Values are medians of the repetitions, with the smallest and the largest one. docs/report.md explains how they come about.</p>
</body>
</html>
"""
