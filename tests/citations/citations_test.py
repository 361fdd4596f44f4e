#!/usr/bin/env python3
"""Feeds citations.py small trees: one in which all is there, and others with one citation that dangles."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
# In pieces, so that the check of this tree does not take them for citations of its own.
SPEC, NOTE, RFC, ELSEWHERE = "spec" + "/mpa", "design" + "/02", "RF" + "C", "wire" + ".md"
PAGE = "docs/" + "spec" + "/rd.md"

CLEAN = {
    "docs/spec/mpa.md": "# MPA\n\n## 1. Frames\n\nSee section 1.2 and (1.1).\n\n### 1.1 Layout\n\n```\n## 9. no heading\n```\n\n### 1.2 CRC\n",
    "docs/spec/errors.md": "# Errors\n\n## 1. All\n\nFrames: [mpa.md](mpa.md) section 1.2.\n",
    "docs/design/02-who-listens.md": "# 02 Who listens\n\n**Cost.** None.\n\n## A title\n\n* **Receives.** Some.\n",
    "docs/design/03-memory.md": f'# 03 Memory\n\nSee [02](02-who-listens.md), "Cost", and {NOTE}, "Receives".\n',
    "README.md": "[the frames](docs/spec/mpa.md#1-frames)\n",
    "src/a.h": f"// One frame ({SPEC} 1.1, 1.2), and who\n// hears it ({NOTE}, \"A\n// title\"); {RFC} 5044 section\n// 4.3, {RFC} 5040 sections 4, 5 and 7.\n",
    "tests/b.py": f"# {RFC} 5044 7.1.1: {RFC} 3720 B.4, {SPEC}\n",
}


class CitationsTest(unittest.TestCase):
    def run_on(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CLEAN, **changes}.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return subprocess.run([sys.executable, "-B", str(HERE / "citations.py"), folder], capture_output=True, text=True,
                                  timeout=60)

    def dangles(self, sentence, changes):
        outcome = self.run_on(changes)
        self.assertEqual(outcome.stdout, sentence + "\n")
        self.assertEqual(outcome.returncode, 1)

    def test_what_is_there_is_found(self):
        outcome = self.run_on({})
        self.assertEqual((outcome.stdout, outcome.stderr, outcome.returncode), ("", "", 0))

    def test_a_section_that_is_not_there(self):
        self.dangles("src/c.h:2: docs/spec/mpa.md has no section 1.3", {"src/c.h": f"#pragma once\n// {SPEC} 1.3\n"})

    def test_every_section_of_a_list(self):
        for text in ("1.1, 1.3", "1.1 and 1.3", "1.1, 1.2, and 1.3", "1.1 to 1.3"):
            self.dangles("src/c.h:1: docs/spec/mpa.md has no section 1.3", {"src/c.h": f"// {SPEC} {text}\n"})
        self.dangles("src/c.h:1: docs/spec/mpa.md has no section 3", {"src/c.h": f"// As told ({SPEC} 1.1, 3).\n"})
        self.assertEqual(self.run_on({"src/c.h": f"// {SPEC} 1.1, 3 ms later\n"}).stdout, "")

    def test_a_citation_that_is_broken_by_a_line_end(self):
        self.dangles("src/c.h:1: docs/spec/mpa.md has no section 2", {"src/c.h": f"// see {SPEC}\n//   2, which\n"})

    def test_a_heading_in_a_block_of_code_is_none(self):
        self.dangles("src/c.h:1: docs/spec/mpa.md has no section 9", {"src/c.h": f"// {SPEC} 9\n"})

    def test_a_document_that_is_not_there(self):
        self.dangles(f"tools/c.py:1: there is no {PAGE}", {"tools/c.py": "# " + "spec" + "/rd 1.1\n"})

    def test_a_note_and_its_titles(self):
        self.dangles("src/c.h:1: there is no design note 07", {"src/c.h": "// " + "design" + "/07\n"})
        self.dangles('src/c.h:1: design note 02 has no title "Another title"', {"src/c.h": f'// {NOTE}, "Another title"\n'})
        self.dangles('docs/p.md:1: design note 02 has no title "Another"',
                     {"docs/p.md": '[02](design/02-who-listens.md), "Another"\n'})

    def test_a_note_has_two_pages(self):
        self.dangles("docs/design/04-long.md:1: a note has two pages, 6000 bytes, at most; cut it into subjects",
                     {"docs/design/04-long.md": "# 04 Long\n" + "Much of it.\n" * 600})

    def test_rfcs(self):
        self.dangles("src/c.h:1: RFC 5044 has no section 4.6", {"src/c.h": f"// {RFC} 5044 section 4.6\n"})
        self.dangles("src/c.h:1: RFC 5044 has no section 11", {"src/c.h": f"// {RFC} 5044 sections 4 and 11\n"})
        self.dangles("src/c.h:1: RFC 5044 has no section 7.3", {"src/c.h": f"// {RFC} 5044 7.3\n"})
        self.dangles("src/c.h:1: rfc_sections.py knows nothing of RFC 1, whose section 2.1 is cited".replace("RFC 1", "RFC 1234"),
                     {"src/c.h": f"// {RFC} 1234 section 2.1\n"})

    def test_a_page_that_is_kept_elsewhere(self):
        self.dangles(f"src/c.h:1: {ELSEWHERE} 2 is no page of this tree; cite docs/spec or docs/design by section",
                     {"src/c.h": f"// {ELSEWHERE} 2.1\n"})
        self.dangles(f"src/c.h:1: {ELSEWHERE} is no page of this tree; cite docs/spec or docs/design by section",
                     {"src/c.h": f"// as {ELSEWHERE} has it\n"})
        self.assertEqual(self.run_on({"docs/" + ELSEWHERE: "# Wires\n", "src/c.h": f"// docs/{ELSEWHERE}\n"}).stdout, "")

    def test_sections_within_the_documents(self):
        self.dangles(f"{PAGE}:3: {PAGE} has no section 2", {PAGE: "## 1. One\n\nSee section 2.\n"})
        self.dangles(f"{PAGE}:3: {PAGE} has no section 1.1", {PAGE: "## 1. One\n\nFirst (1.1).\n"})
        self.dangles(f"{PAGE}:1: docs/spec/mpa.md has no section 5", {PAGE: "[mpa.md](mpa.md) section 5\n"})

    def test_names_of_the_sources(self):
        tree = {"docs/counters.md": "| `refused.crc` | so many |\n", "docs/options.md": "| `WEFT_CRC` | on |\n", "src/mpa/a.h": "kMost = 1\n",
                "docs/spec/errors.md": "## 1. All\n`crc`, `refused.crc`, `refused.*`, `mpa::kMost`, `WEFT_CRC=off`\n"}
        self.assertEqual(self.run_on(tree).stdout, "")
        for word, sentence in (("`refused.msn`", "counter refused.msn"), ("`mpa::kLeast`", "constant mpa::kLeast"),
                               ("`WEFT_EXT`", "option WEFT_EXT")):
            self.dangles(f"{PAGE}:1: there is no {sentence}", {**tree, PAGE: word + "\n"})
        self.dangles("docs/spec/errors.md:1: the reason refused.crc has no row", {**tree, "docs/spec/errors.md": "## 1. All\n"})

    def test_numbers_of_sections(self):
        self.dangles(f"{PAGE}:2: section 1 is there twice", {PAGE: "## 1. One\n## 1. Two\n"})
        self.dangles(f"{PAGE}:1: section 1.1 is a heading of level 2\n{PAGE}:1: section 1.1 stands outside of section 1",
                     {PAGE: "## 1.1 One\n"})


if __name__ == "__main__":
    unittest.main()
