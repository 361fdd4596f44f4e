"""linkage_test.py OURS [--sanitize=...]: what the two libraries ask of the loader.

They are loaded into other people's programs, so they bring nothing but the C and C++ run-time
libraries and are never unloaded."""

import os
import re
import sys

import elf

RUNTIME = [r"libc\.so\.6", r"libm\.so\.6", r"ld-linux[\w-]*\.so\.\d",
           r"libstdc\+\+\.so\.6", r"libgcc_s\.so\.1"]
SANITIZERS = [r"lib[alt]san\.so\.\d+", r"libubsan\.so\.\d+"]


def check(ours, library, sanitized):
    file = os.path.join(ours, library)
    tags = elf.dynamic([file]).get(file)
    if not tags:
        yield f"{file} is no shared library"
        return
    if os.path.islink(file):
        yield f"{library} is a link; the file itself must have this name"
    if tags["SONAME"] != [library]:
        yield f"{library}: SONAME is {tags['SONAME']}"

    allowed = RUNTIME + (SANITIZERS if sanitized else [])
    needed = list(tags["NEEDED"])
    if library == "librdmacm.so.1":
        if "libibverbs.so.1" not in needed:
            yield f"{library} does not need libibverbs.so.1, where its core is"
        else:
            needed.remove("libibverbs.so.1")
    for name in needed:
        if not any(re.fullmatch(pattern, name) for pattern in allowed):
            yield f"{library} needs {name}"

    if "NODELETE" not in " ".join(tags["FLAGS_1"]).split():
        yield f"{library} is not marked NODELETE: {tags['FLAGS_1']}"
    path = tags["RPATH"] + tags["RUNPATH"]
    wanted = ["$ORIGIN"] if library == "librdmacm.so.1" else []
    if path != wanted:
        yield f"{library}: run path is {path}, expected {wanted}"
    if tags["TEXTREL"]:
        yield f"{library} has text relocations"

    link = os.path.join(ours, library.removesuffix(".1"))
    if not os.path.islink(link) or os.readlink(link) != library:
        yield f"{link} is no link to {library}"


def main():
    ours = sys.argv[1]
    sanitized = any(a.startswith("--sanitize=") and a != "--sanitize=" for a in sys.argv[2:])
    problems = [p for library in elf.LIBRARIES for p in check(ours, library, sanitized)]
    print("\n".join(problems) or "linked as it should be")
    return 1 if problems else 0


sys.exit(main())
