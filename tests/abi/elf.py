"""What the scripts of tests/abi ask about ELF files, answered by binutils."""

import collections
import subprocess

# The libraries of this test, by the name under which programs ask for them.
LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exported(library):
    """{"name@VERSION"} of what a linker finds in a library, {"name"} where it has no version."""
    symbols = set()
    for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        kind, name = line.split()[1:3]
        if kind == "A":
            continue  # a version node
        if "@@" in name:
            symbols.add(name.replace("@@", "@"))
        elif "@" not in name:
            symbols.add(name)
        # A single @ is an old version, kept for programs that were linked long ago.
    return symbols


def in_node(library, node):
    """{"name"} of all that a program finds that asks for a version, old ones too."""
    lines = run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    names = (line.split()[2].replace("@@", "@").split("@") for line in lines if line.split()[1] != "A")
    return {name for name, *version in names if version == [node]}


def version_nodes(library):
    """{node: parent or None} of the version definitions, without the base."""
    nodes = {}
    inside = False
    name = None
    for line in run("readelf", "--wide", "--version-info", library).splitlines():
        if line.startswith("Version "):
            inside = line.startswith("Version definition section")
        elif inside and "Name: " in line:
            name = line.rsplit("Name: ", 1)[1].strip()
            if "Flags: BASE" not in line:
                nodes[name] = None
        elif inside and "Parent 1: " in line:
            nodes[name] = line.rsplit("Parent 1: ", 1)[1].strip()
    return nodes


def dynamic(files):
    """{file: {tag: [values]}} of the dynamic sections of those `files` that have one."""
    found = {}
    files = list(files)
    for start in range(0, len(files), 500):
        # readelf complains of each file that is not ELF and goes on, so its exit code says nothing.
        text = subprocess.run(["readelf", "--wide", "-d", "/dev/null", *files[start:start + 500]],
                              capture_output=True, text=True, errors="replace", check=False).stdout
        tags = None
        for line in text.splitlines():
            if line.startswith("File: "):
                tags = found.setdefault(line[len("File: "):], collections.defaultdict(list))
            elif line.lstrip().startswith("0x") and ")" in line:
                tag = line.split("(", 1)[1].split(")", 1)[0]
                value = line.split(")", 1)[1].strip()
                if "[" in value and value.endswith("]"):
                    value = value.split("[", 1)[1][:-1]
                tags[tag].append(value)
    return {file: tags for file, tags in found.items() if tags}
