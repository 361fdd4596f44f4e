#!/usr/bin/env python3
"""The page of `weft report` in a real browser: every figure is drawn, its text is readable, nothing is cut off or lies on other text."""

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

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SMALLEST_TEXT = 8   # pixels
TOUCH = 1.5         # pixels that boxes of text may share: they have a margin of their own

# What the page is asked, by the page itself. It goes into a copy alone.
PROBE = """
<script>
window.addEventListener('load', () => {
  const box = r => ({x: r.x, y: r.y, right: r.right, bottom: r.bottom, width: r.width, height: r.height});
  const figures = [...document.querySelectorAll('section')].map(section => {
    const svg = section.querySelector('svg');
    if (!svg) return {id: section.id, svg: null};
    return {
      id: section.id,
      svg: box(svg.getBoundingClientRect()),
      curves: [...svg.querySelectorAll('path')].filter(p => { const b = p.getBoundingClientRect(); return b.width + b.height > 20; }).length,
      texts: [...svg.querySelectorAll('text')].map(t => ({text: t.textContent.trim(), ...box(t.getBoundingClientRect())})),
    };
  });
  const overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const out = document.createElement('pre');
  out.id = 'probe';
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify({figures, overflow}))));
  document.body.append(out);
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
        copy.write_text(page.replace("</body>", PROBE + "</body>"), encoding="utf-8")
        words = [find_browser(), "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-extensions",
                 "--no-first-run", f"--user-data-dir={folder}/profile", f"--window-size={width},1200", "--dump-dom", copy.as_uri()]
        # Its sandbox is not for root.
        if os.geteuid() == 0:
            words.insert(1, "--no-sandbox")
        result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=150,
                                env={**os.environ, "HOME": folder, "DBUS_SESSION_BUS_ADDRESS": "disabled:"})
    found = re.search(r'<pre id="probe">([A-Za-z0-9+/=]+)</pre>', result.stdout)
    if not found:
        raise AssertionError(f"the browser showed nothing, status {result.returncode}: {result.stderr[-2000:]}")
    return json.loads(base64.b64decode(found.group(1)).decode())


def overlap(a, b):
    return (min(a["right"], b["right"]) - max(a["x"], b["x"]) > TOUCH and
            min(a["bottom"], b["bottom"]) - max(a["y"], b["y"]) > TOUCH)


def complaints(seen):
    """Sentences; none for a page that can be read."""
    found = []
    if seen["overflow"] > 0:
        found.append(f"the page is {seen['overflow']} pixels wider than the window")
    for figure in seen["figures"]:
        name, svg = figure["id"], figure["svg"]
        if svg is None:
            found.append(f"{name}: not drawn")
            continue
        if svg["width"] < 300 or svg["height"] < 100:
            found.append(f"{name}: {svg['width']} x {svg['height']} pixels")
        if figure["curves"] < 3:
            found.append(f"{name}: hardly anything is drawn")
        texts = figure["texts"]
        if len([t for t in texts if t["text"]]) < 6:
            found.append(f"{name}: hardly any text")
        for text in texts:
            if not text["text"]:
                continue
            if min(text["width"], text["height"]) < SMALLEST_TEXT * 0.6 or max(text["width"], text["height"]) < SMALLEST_TEXT:
                found.append(f"{name}: '{text['text']}' is {text['width']:.1f} x {text['height']:.1f} pixels")
            if (text["x"] < svg["x"] - TOUCH or text["y"] < svg["y"] - TOUCH or text["right"] > svg["right"] + TOUCH or
                    text["bottom"] > svg["bottom"] + TOUCH):
                found.append(f"{name}: '{text['text']}' is cut off")
        for place, text in enumerate(texts):
            for other in texts[place + 1:]:
                if text["text"] and other["text"] and overlap(text, other):
                    found.append(f"{name}: '{text['text']}' and '{other['text']}' lie on each other")
    return found


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        results = example.write(pathlib.Path(cls.folder.name, "results.jsonl"), example.everything())
        output = pathlib.Path(cls.folder.name, "report")
        result = example.weft("report", results, "-o", str(output))
        assert result.returncode == 0, result.stderr
        cls.page = (output / "index.html").read_text(encoding="utf-8")
        cls.seen = look(cls.page, 1100)

    def test_every_figure_is_readable(self):
        self.assertEqual(len(self.seen["figures"]), 14)
        self.assertEqual(complaints(self.seen), [])

    def test_labels_of_the_axes_are_text(self):
        texts = {figure["id"]: {text["text"] for text in figure["texts"]} for figure in self.seen["figures"]}
        for name, words in {"figure-3": ("time (s)", "TCP sockets"), "figure-10": ("goodput (Gb/s)", "8k", "2M", "UC Write"),
                            "figure-12": ("packets lost (%)", "0.1", "10")}.items():
            self.assertLessEqual(set(words), texts[name])

    def test_so_is_the_sample_in_the_docs(self):
        page = pathlib.Path(__file__, "../../../docs/sample-report.html").resolve().read_text(encoding="utf-8")
        seen = look(page, 1100)
        self.assertEqual({figure["id"] for figure in seen["figures"]}, {figure["id"] for figure in self.seen["figures"]})
        self.assertEqual(complaints(seen), [])

    def test_the_test_sees_what_is_wrong(self):
        """Each kind of damage is complained of, so that no complaint means something."""
        svg = re.search(r"<svg .*?</svg>", self.page, re.DOTALL).group(0)
        moved = re.sub(r'(<text [^>]*?)transform="[^"]*"', r'\1transform="translate(100,100)"', svg)
        outside = re.sub(r'(<text [^>]*?)transform="[^"]*"', r'\1transform="translate(-100,100)"', svg, count=1)
        damages = {"moved": (moved, "lie on each other"), "outside": (outside, "cut off"), "none": ("", "not drawn"),
                   "mute": (re.sub(r"<text .*?</text>", "", svg, flags=re.DOTALL), "hardly any text"),
                   "empty": (re.sub(r"<path [^>]*>", "", svg, flags=re.DOTALL), "hardly anything is drawn")}
        sections = "".join(f'<section id="{name}">{damaged}</section>' for name, (damaged, _) in damages.items())
        found = complaints(look(f"<html><body>{sections}</body></html>", 1100))
        for name, (_, word) in damages.items():
            with self.subTest(word):
                self.assertTrue(any(sentence.startswith(f"{name}: ") and word in sentence for sentence in found))


if __name__ == "__main__":
    if not example.has_matplotlib():
        sys.exit(example.skip("python3-matplotlib is not installed"))
    if find_browser() is None:
        sys.exit(example.skip("chromium is not installed, so nobody looks whether the figures of the page are readable"))
    sys.exit(example.main())
