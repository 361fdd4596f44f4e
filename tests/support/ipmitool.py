"""An ipmitool of the test's own."""

import os
import pathlib


def fake(folder, text):
    """Variables with which programs find one that, asked for power, does what these words of the shell say."""
    folder = pathlib.Path(folder) / "bin"
    folder.mkdir()
    tool = folder / "ipmitool"
    tool.write_text(f"#!/bin/sh\n[ \"$*\" = 'dcmi power reading' ] || exit 1\n{text}\n")
    tool.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def saying(folder, watts):
    return fake(folder, f"echo '    Instantaneous power reading:      {watts} Watts'")
