"""Captures that outlive their test: what a failed one leaves to be looked at (docs/testing.md)."""

import os
import shutil
import tempfile


def open_folder(root):
    """A new one where everybody may write, as the programs that run without rights have to."""
    folder = tempfile.mkdtemp(dir=root)
    os.chmod(folder, 0o777)
    return folder


def into(folder):
    """What the environment has to say so that programs write captures into it, none of them too large to be kept."""
    return (f"WEFT_TRACE={folder}/%p.pcapng", "WEFT_TRACE_SIZE=256")


def keep(build, name, folders):
    """Copies the files of the folders to BUILD/traces/NAME, in the place of older ones. A sentence that says where they are."""
    kept = os.path.abspath(f"{build}/traces/{name.replace('/', '.')}")
    shutil.rmtree(kept, ignore_errors=True)
    files = [os.path.join(folder, file) for folder in folders for file in os.listdir(folder)]
    if not files:
        return f"{name}: there is no capture, for nothing passed through weft"
    os.makedirs(kept)
    for file in files:
        shutil.copy(file, kept)
    return f"{name}: {len(files)} capture{'s are' if len(files) > 1 else ' is'} in {kept}"
