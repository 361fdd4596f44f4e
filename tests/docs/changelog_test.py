#!/usr/bin/env python3
"""Feeds changelog.py a sound page, and one of each kind that is not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOUND = "# Changelog\n\n## [2]\n\n### Added\n\n* One.\n* Two.\n\n### Fixed\n\n* Three.\n\n## [1]\n\n### Added\n\n* One.\n"


class ChangelogTest(unittest.TestCase):
    def expect(self, page: str, *said: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "CHANGELOG.md").write_text(page)
            result = subprocess.run([sys.executable, "-B", str(HERE / "changelog.py"), folder],
                                    capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        self.assertEqual(len(result.stdout.splitlines()), len(said), result.stdout)
        for line, words in zip(result.stdout.splitlines(), said):
            self.assertIn(words, line)
        self.assertEqual(result.returncode, 1 if said else 0)

    def test_a_sound_page_passes(self):
        self.expect(SOUND)

    def test_an_entry_twice_in_one_release(self):
        self.expect(SOUND.replace("* Three.", "* Two."), "CHANGELOG.md:12: this entry stands in line 8 as well")

    def test_sections_in_another_order(self):
        self.expect(SOUND.replace("### Fixed", "### Changed\n\n### Added"), "CHANGELOG.md:12: section 'Added'")

    def test_a_section_of_another_name(self):
        self.expect(SOUND.replace("### Fixed", "### Mended"), "CHANGELOG.md:10: section 'Mended'")

    def test_an_entry_in_no_section(self):
        self.expect(SOUND.replace("## [1]\n\n### Added\n", "## [1]\n"), "CHANGELOG.md:16: an entry in front")

    def test_no_release_is_no_success(self):
        self.expect("# Changelog\n", "no release")


if __name__ == "__main__":
    unittest.main()
