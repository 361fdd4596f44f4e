#!/usr/bin/env python3
"""Feeds links.py small trees: one where every link resolves, and one for each way to break a link."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent

SOUND = {
    "README.md": "# Top\n\n[a](docs/a.md), [its second part](docs/a.md#of-weft-run-two-of-them), [here](#top)\n"
                 "[a folder](docs/) and [a host](https://example.org/none#at-all), `[code](none.md)`\n"
                 "```\n[fenced](none.md)\n# Not a heading\n```\n[source](docs/a.c), `docs/a.{md,c}`, `docs/*.c`, `docs/NAME.c`, `elsewhere/a.c`\n",
    "docs/a.md": "# One\n## Of `weft run`: two, of them\n## One\n[again](a.md#one-1)\n[up]: ../README.md#top\n",
    "docs/a.c": "int a;\n",
    "src/wire/a.h": "int b;\n",
    "fuzz/wire/own.cc": "int c;\n",
    "fuzz/b.md": "`wire/a.h`, `wire/own.cc`, `else/where.h`, `wire/NAME`\n",
    "CHANGELOG.md": "`docs/gone.c`\n",
    "build/c.md": "[generated](none.md)\n",
}


class LinksTest(unittest.TestCase):
    def run_on(self, **changes: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**SOUND, **changes}.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([sys.executable, "-B", str(HERE / "links.py"), folder],
                                  capture_output=True, text=True, check=False)

    def expect(self, page: str, text: str, *said: str) -> None:
        result = self.run_on(**{page: text})
        self.assertEqual(result.stdout.splitlines(), list(said))
        self.assertEqual(result.returncode, 1 if said else 0)

    def test_sound_links_pass(self):
        self.expect("docs/b.md", "[a](a.md)\n")

    def test_a_file_that_is_not_there(self):
        self.expect("docs/b.md", "text\n[a](gone.md) and [top](../README.md)\n",
                    "docs/b.md:2: 'gone.md' leads to no file")

    def test_a_heading_that_is_not_there(self):
        self.expect("docs/b.md", "[a](a.md#two)\n",
                    "docs/b.md:1: 'a.md#two': that page has no heading '#two'")

    def test_a_heading_in_code_is_none(self):
        self.expect("docs/b.md", "[a](../README.md#not-a-heading)\n",
                    "docs/b.md:1: '../README.md#not-a-heading': that page has no heading '#not-a-heading'")

    def test_a_heading_of_the_page_itself(self):
        self.expect("docs/b.md", "# B\n[a](#b) [a](#c)\n",
                    "docs/b.md:2: '#c': that page has no heading '#c'")

    def test_a_definition(self):
        self.expect("docs/b.md", "[a]: gone.md\n", "docs/b.md:1: 'gone.md' leads to no file")

    def test_a_path_in_code(self):
        self.expect("docs/b.md", "`docs/a.c`\n`docs/gone.c`\n", "docs/b.md:2: there is no 'docs/gone.c'")

    def test_one_of_several_paths_in_code(self):
        self.expect("docs/b.md", "`docs/a.{c,h}`\n", "docs/b.md:1: there is no 'docs/a.h'")

    def test_a_source_below_src(self):
        self.expect("docs/b.md", "`wire/a.h`, `wire/gone.h`\n", "docs/b.md:1: no folder of sources has 'wire/gone.h'")

    def test_a_tree_without_pages_is_no_success(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([sys.executable, "-B", str(HERE / "links.py"), folder],
                                    capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)


if __name__ == "__main__":
    unittest.main()
