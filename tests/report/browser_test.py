#!/usr/bin/env python3
"""The page of `weft report` in a real browser: every figure is drawn, its text is readable, nothing is cut off or lies on other text."""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import example
import example_sdp

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SMALLEST_TEXT = 9        # pixels, the size of the font in a drawing
SMALLEST_WORDS = 12      # and in the text of the page
SMALL_TELEPHONE, TELEPHONE, WINDOW = 320, 400, 1100  # pixels across
TOUCH = 1.5              # pixels that boxes of text may share: they have a margin of their own

# What the page is asked, by the page itself. It goes into a copy alone.
PROBE = """
<script>
window.addEventListener('load', () => {
  const box = r => ({x: r.x, y: r.y, right: r.right, bottom: r.bottom, width: r.width, height: r.height});
  const sized = (text, element, size) => {
    const range = document.createRange();  // the words may be wider than their element
    range.selectNodeContents(element);
    return {text: text.trim(), size, ...box((element.closest('svg') ? element : range).getBoundingClientRect())};
  };
  const font = element => parseFloat(getComputedStyle(element).fontSize);
  const look = svg => ({
    svg: box(svg.getBoundingClientRect()),
    curves: [...svg.querySelectorAll('path')].filter(p => { const b = p.getBoundingClientRect(); return b.width + b.height > 20; }).length,
    texts: [...svg.querySelectorAll('text')].map(t => {
      const m = t.getScreenCTM();
      return sized(t.textContent, t, font(t) * Math.hypot(m.a, m.b));
    }),
  });
  const figures = [...document.querySelectorAll('section')].map(section => ({
    id: section.id, drawings: [...section.querySelectorAll('svg')].map(look)}));
  const words = [...document.body.querySelectorAll('*')].filter(e => !e.closest('svg, script, style')).flatMap(e => {
    const own = [...e.childNodes].filter(n => n.nodeType == Node.TEXT_NODE).map(n => n.textContent).join('').trim();
    return own ? [{scrolls: !!e.parentElement.closest('.scrolls'), ...sized(own.slice(0, 60), e, font(e))}] : [];
  });
  const scrolls = [...document.querySelectorAll('.scrolls')].map(e => ({by: getComputedStyle(e).overflowX, ...box(e.getBoundingClientRect())}));
  const overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const out = document.createElement('pre');
  out.id = 'probe';
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify({figures, words, scrolls, overflow, width: innerWidth}))));
  parent.document.body.append(out);
});
</script>
"""


def find_browser():
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def look(page, width):
    """What the probe found in `page` at this width, and the picture of the whole."""
    import base64  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory(prefix="weft-browser-") as folder:
        copy = pathlib.Path(folder, "page.html")
        # In a frame: a window is no narrower than 500 pixels.
        inner = html.escape(page.replace("</body>", PROBE + "</body>"), quote=True)
        copy.write_text(f'<!DOCTYPE html><html><body style="margin: 0"><iframe style="border: 0; width: {width}px; height: 1200px" srcdoc="{inner}"></iframe>'
                        "</body></html>", encoding="utf-8")
        words = [find_browser(), "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-extensions",
                 "--no-first-run", f"--user-data-dir={folder}/profile", f"--window-size={max(width, 500)},1200", "--dump-dom", copy.as_uri()]
        # Its sandbox is not for root.
        if os.geteuid() == 0:
            words.insert(1, "--no-sandbox")
        result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=150,
                                env={**os.environ, "HOME": folder, "DBUS_SESSION_BUS_ADDRESS": "disabled:"})
    found = re.search(r'<pre id="probe">([A-Za-z0-9+/=]+)</pre>', result.stdout)
    if not found:
        raise AssertionError(f"the browser showed nothing, status {result.returncode}: {result.stderr[-2000:]}")
    seen = json.loads(base64.b64decode(found.group(1)).decode())
    assert seen["width"] == width, f"the browser's window is {seen['width']} pixels wide, and not {width}"
    return seen


def overlap(a, b):
    return (min(a["right"], b["right"]) - max(a["x"], b["x"]) > TOUCH and
            min(a["bottom"], b["bottom"]) - max(a["y"], b["y"]) > TOUCH)


def of_words(seen):
    """Sentences about the text of the page; none when it can be read."""
    found = [f"the page is {seen['overflow']} pixels wider than the window"] if seen["overflow"] > 0 else []
    for text in seen["words"]:
        if text["size"] < SMALLEST_WORDS:
            found.append(f"'{text['text']}' has {text['size']} pixels")
        if not text["scrolls"] and (text["x"] < 0 or text["right"] > seen["width"]):
            found.append(f"'{text['text']}' is cut off")
    for scroll in seen["scrolls"]:
        if scroll["by"] != "auto" or scroll["x"] < 0 or scroll["right"] > seen["width"]:
            found.append(f"a box that should scroll does not: {scroll}")
    return found


def of_drawing(drawing):
    """The same of a drawing."""
    svg, texts, found = drawing["svg"], [text for text in drawing["texts"] if text["text"]], []
    if svg["width"] < 130 or svg["height"] < 100:
        found.append(f"{svg['width']} x {svg['height']} pixels")
    if drawing["curves"] < 3:
        found.append("hardly anything is drawn")
    if len(texts) < 6:
        found.append("hardly any text")
    for text in texts:
        if text["size"] < SMALLEST_TEXT:
            found.append(f"'{text['text']}' has {text['size']:.1f} pixels")
        if (text["x"] < svg["x"] - TOUCH or text["y"] < svg["y"] - TOUCH or text["right"] > svg["right"] + TOUCH or
                text["bottom"] > svg["bottom"] + TOUCH):
            found.append(f"'{text['text']}' is cut off")
    for place, text in enumerate(texts):
        found += [f"'{text['text']}' and '{other['text']}' lie on each other" for other in texts[place + 1:] if overlap(text, other)]
    return found


def complaints(seen):
    """Sentences; none for a page that can be read."""
    found = of_words(seen)
    for figure in seen["figures"]:
        drawings = figure["drawings"]
        if not drawings:
            found.append(f"{figure['id']}: not drawn")
        found += [f"{figure['id']}: {sentence}" for drawing in drawings for sentence in of_drawing(drawing)]
        # A row of them, or one below the other.
        found += [f"{figure['id']}: drawings lie on each other" for place, one in enumerate(drawings)
                  for other in drawings[place + 1:] if overlap(one["svg"], other["svg"])]
    return found


def the_sample():
    return pathlib.Path(__file__, "../../../docs/sample-report.html").resolve().read_text(encoding="utf-8")


def page_of(lines, *words):
    with tempfile.TemporaryDirectory() as folder:
        results = example.write(pathlib.Path(folder, "results.jsonl"), lines)
        result = example.weft("report", results, "-o", f"{folder}/report", *words)
        assert result.returncode == 0, result.stderr
        return pathlib.Path(folder, "report", "index.html").read_text(encoding="utf-8")


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = page_of(example.everything())
        cls.seen = look(cls.page, WINDOW)

    def test_every_figure_is_readable(self):
        self.assertEqual(len(self.seen["figures"]), 14)
        self.assertEqual(complaints(self.seen), [])

    def test_on_a_telephone_too(self):
        seen = look(self.page, TELEPHONE)
        self.assertEqual([len(figure["drawings"]) for figure in seen["figures"]], [len(figure["drawings"]) for figure in self.seen["figures"]])
        self.assertEqual(complaints(seen), [])
        self.assertGreater(len(seen["scrolls"]), 10)

    def test_with_power_too(self):
        """The words at the axes are other, longer ones."""
        self.assertEqual(complaints(look(page_of(example.metered(example.everything())), TELEPHONE)), [])

    def test_the_page_of_the_paper_on_sdp(self):
        page = page_of(example_sdp.everything(), "--of", "sdp")
        for width in (WINDOW, TELEPHONE, SMALL_TELEPHONE):
            with self.subTest(width):
                seen = look(page, width)
                self.assertEqual(len(seen["figures"]), 8)
                self.assertEqual(complaints(seen), [])

    def test_labels_of_the_axes_are_text(self):
        texts = {figure["id"]: {text["text"] for drawing in figure["drawings"] for text in drawing["texts"]} for figure in self.seen["figures"]}
        for name, words in {"figure-3": ("time (s)", "TCP sockets"), "figure-10": ("goodput (Gb/s)", "8k", "2M", "UC Write"),
                            "figure-12": ("packets lost (%)", "0.1", "10")}.items():
            self.assertLessEqual(set(words), texts[name])

    def test_so_is_the_sample_in_the_docs(self):
        for width in (WINDOW, TELEPHONE, SMALL_TELEPHONE):
            with self.subTest(width):
                seen = look(the_sample(), width)
                self.assertEqual({figure["id"] for figure in seen["figures"]}, {figure["id"] for figure in self.seen["figures"]})
                self.assertEqual(complaints(seen), [])

    def test_the_test_sees_what_is_wrong(self):
        """Each kind of damage is complained of, so that no complaint means something."""
        svg = re.search(r"<svg .*?</svg>", self.page, re.DOTALL).group(0)
        moved = re.sub(r'(<text [^>]*?)transform="[^"]*"', r'\1transform="translate(100,100)"', svg)
        outside = re.sub(r'(<text [^>]*?)transform="[^"]*"', r'\1transform="translate(-100,100)"', svg, count=1)
        damages = {"moved": (moved, "lie on each other"), "outside": (outside, "cut off"), "none": ("", "not drawn"),
                   "mute": (re.sub(r"<text .*?</text>", "", svg, flags=re.DOTALL), "hardly any text"),
                   "empty": (re.sub(r"<path [^>]*>", "", svg, flags=re.DOTALL), "hardly anything is drawn"),
                   "small": (svg.replace("<svg ", '<svg style="width: 200px; height: auto"', 1), "' has "),
                   "piled": (svg + svg.replace("<svg ", '<svg style="margin-top: -200px"', 1), "drawings lie on each other")}
        sections = "".join(f'<section id="{name}">{damaged}</section>' for name, (damaged, _) in damages.items())
        wide = '<p>a-word-that-is-wider-than-the-window</p><p style="font-size: 8px">small print</p><div class="scrolls">as wide as it likes</div>'
        found = complaints(look(f"<html><body>{wide.replace('wider', 'wider' * 60)}{sections}</body></html>", TELEPHONE))
        for name, (_, word) in damages.items():
            with self.subTest(word):
                self.assertTrue(any(sentence.startswith(f"{name}: ") and word in sentence for sentence in found), found)
        for words in ("pixels wider than the window", "is cut off", "'small print' has 8 pixels", "a box that should scroll does not"):
            with self.subTest(words):
                self.assertTrue(any(words in sentence for sentence in found if not re.match(r"\w+: ", sentence)), found)


if __name__ == "__main__":
    if not example.has_matplotlib():
        sys.exit(example.skip("python3-matplotlib is not installed"))
    if find_browser() is None:
        sys.exit(example.skip("chromium is not installed, so nobody looks whether the figures of the page are readable"))
    sys.exit(example.main())
