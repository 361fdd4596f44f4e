#!/usr/bin/env python3
"""Feeds messages.py a page and a source that agree, and one of each kind that do not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent

SOURCE = '''
void f() {
  WEFT_LOG(warn, "queue pair 0x%06x: a completion found "
                 "no room at %" PRIu64 " entries", number, room);
  WEFT_LOG(info, "nobody needs to know of %s", name);
  say("the port is taken by somebody else");
}
'''
PAGE = '''## What programs print
| `whatever others may print` | cause |
## What weft prints
| `queue pair N: a completion found no room at N entries` | cause `of any kind whatever` |
| `the port is taken by somebody else` | cause |
'''


class MessagesTest(unittest.TestCase):
    def expect(self, source: str, page: str, *said: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"src/verbs/a.cc": source, "docs/troubleshooting.md": page}.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            result = subprocess.run([sys.executable, "-B", str(HERE / "messages.py"), folder],
                                    capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        self.assertEqual(len(result.stdout.splitlines()), len(said), result.stdout)
        for line, words in zip(result.stdout.splitlines(), said):
            self.assertIn(words, line)
        self.assertEqual(result.returncode, 1 if said else 0)

    def test_what_agrees_passes(self):
        self.expect(SOURCE, PAGE)

    def test_a_warning_that_the_page_lacks(self):
        self.expect(SOURCE.replace("say(", "WEFT_LOG(error, "), PAGE.replace("the port is taken by", "it is held by"),
                    "src/verbs/a.cc:6: 'the port is taken by somebody else' is not in",
                    "docs/troubleshooting.md:5: no source prints 'it is held by somebody else'")

    def test_a_refusal_that_the_page_lacks(self):
        self.expect(SOURCE + 'WEFT_LOG_REFUSAL("%s: the id is closed for good", call);', PAGE,
                    "src/verbs/a.cc:8: 'the id is closed for good' is not in")

    def test_a_message_that_no_source_prints(self):
        self.expect(SOURCE, PAGE + "| `the port was taken by N` | cause |\n",
                    "docs/troubleshooting.md:6: no source prints 'the port was taken by'")

    def test_a_page_without_tables_is_no_success(self):
        self.expect(SOURCE.replace("WEFT_LOG(warn", "WEFT_LOG(info"), "nothing\n", "no source logs", "no table")


if __name__ == "__main__":
    unittest.main()
