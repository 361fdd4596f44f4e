"""starts_test.py OURS THEIRS: the programs of this machine start with our libraries.

Every installed program that is linked to libibverbs or librdmacm starts with ours in their place,
and every installed library, plug-in and Python module that is finds all symbols in them."""

import os
import re
import signal
import subprocess
import sys

import elf

PROGRAM_FOLDERS = ("/usr/bin", "/usr/sbin")
# Words of ld.so about a symbol or version that it does not find.
LOADER = re.compile(r"symbol lookup error|error while loading shared libraries"
                    r"|version [`'].*not (found|defined)|no version information available"
                    r"|, version (IBVERBS|RDMACM)_\S+ not defined"
                    r"|undefined symbol: \S+, version (IBVERBS|RDMACM)_")
PATIENCE = 10  # seconds; some programs serve for ever whatever they are told


def users_of(folders, recursive):
    """{file in `folders`: those of the two libraries that it is linked to}"""
    files = []
    for folder in folders:
        for path, subfolders, names in os.walk(folder):
            files += (os.path.join(path, name) for name in names)
            if not recursive:
                subfolders.clear()
    files = sorted(f for f in files if os.path.isfile(f) and not os.path.islink(f))
    users = {}
    for file, tags in elf.dynamic(files).items():
        linked = [name for name in elf.LIBRARIES if name in tags["NEEDED"]]
        if linked:
            users[file] = linked
    return users


def environment(ours):
    return {**os.environ, "LD_LIBRARY_PATH": ours, "LD_BIND_NOW": "1", "LC_ALL": "C"}


def resolve(ours, file, linked):
    """Lets ld.so look up every symbol without running anything."""
    done = subprocess.run(["ldd", "-r", file], capture_output=True, text=True,
                          env=environment(ours), check=False)
    text = done.stdout + done.stderr
    for line in text.splitlines():
        if LOADER.search(line):
            yield f"{file}: {line.strip()}"
    for name in linked:
        if f"{name} => {os.path.join(ours, name)}" not in text:
            yield f"{file}: {name} is not taken from {ours}"


def start(ours, program):
    with subprocess.Popen([program, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace",
                          env=environment(ours)) as child:
        try:
            text, _ = child.communicate(timeout=PATIENCE)
            stopped = False
        except subprocess.TimeoutExpired:
            child.kill()
            text, _ = child.communicate()
            stopped = True
    for line in text.splitlines():
        if LOADER.search(line):
            yield f"{program}: {line.strip()}"
    if child.returncode == 127:
        yield f"{program}: exit code 127: {text.strip()}"
    elif child.returncode < 0 and not stopped:
        yield f"{program}: {signal.Signals(-child.returncode).name}"


def main():
    ours, theirs = (os.path.realpath(a) for a in sys.argv[1:])
    programs = users_of(PROGRAM_FOLDERS, recursive=False)
    libraries = users_of((theirs, "/usr/lib/python3/dist-packages"), recursive=True)
    problems = []
    for program, linked in programs.items():
        problems += resolve(ours, program, linked)
        problems += start(ours, program)
    for library, linked in libraries.items():
        problems += resolve(ours, library, linked)
    if "/usr/bin/ibv_devinfo" not in programs:
        problems.append("ibv_devinfo was not found: install ibverbs-utils (scripts/setup)")
    print("\n".join(problems)
          or f"{len(programs)} programs start, {len(libraries)} libraries resolve")
    return 1 if problems else 0


sys.exit(main())
