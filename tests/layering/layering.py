#!/usr/bin/env python3
"""Checks that the folders of src/, tools/ and sdp/ depend on each other only as their weft_layer(...), weft_tool_layer(...) and
weft_sdp_layer(...) lines say.

    layering.py ROOT      prints every violation as FILE:LINE: sentence; status 1 if there is one

The layers and their DEPENDS come from src/*/CMakeLists.txt, those of tools from tools/*/CMakeLists.txt, with LAYERS of src/.
Neither is transitive: what a file includes, its own layer has to declare. Beyond that, each rule below says where it comes from.
"""

import pathlib
import re
import sys
from typing import Iterator, NamedTuple

SOURCE_SUFFIXES = {".h", ".cc", ".c"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".py", ".sh", ".cmake", ".txt", ".map"}
SOURCE_TREES = ("src", "abi", "sdp", "tools", "sim", "tests", "fuzz")
TEXT_TREES = SOURCE_TREES + ("cmake", "scripts", ".ci")

LONG_FILE = 400      # printed as a note: needs a reason
TOO_LONG_FILE = 700  # a defect

# A class has at most so many members, and so many lines with its header and sources. A header above that says why, in these words.
CLASS_TREES = ("src", "abi", "sdp", "tools", "sim")
MOST_LINES = 400
MOST_MEMBERS = 25
SAYS_WHY_LONG = re.compile(r"// .*\bAbove 400 lines\b")
SAYS_WHY_MANY = re.compile(r"// .*\bMore than 25 members\b")
DEFINES = re.compile(r"^(?:\w[\w:<>,*& ]* )?[*&]?(\w+)::~?\w+\(", re.M)
CLASS = re.compile(r"^class (?:\[\[\w+\]\] )?(\w+)[^;{]*\{\n(.*?)^\};", re.M | re.S)
# .clang-format gives each a line of its own.
MEMBER = re.compile(r"^  (?! ).*\b\w+_(?:\[[^\]]*\])*(?: = .*|\{.*\})?;$", re.M)

# The protocol core is sans-IO (design/14): bytes, time and randomness are handed in.
SANS_IO_LAYERS = {"wire", "work", "mpa", "ddp", "rdmap", "wdp"}
SANS_IO_HEADERS = re.compile(r"(sys/(?!uio\.h$|types\.h$).*|unistd\.h|fcntl\.h|poll\.h|time\.h|random)")
SANS_IO_CALLS = re.compile(r"\b(\w*_clock::now|random_device|getrandom|clock_gettime|getenv)\b")

# Sockets live in port, threads and epoll in engine (design/14). Each exception has its reason.
SOCKET_HEADERS = re.compile(r"(sys/socket\.h|sys/un\.h|netdb\.h|ifaddrs\.h|(net|netinet|netpacket|arpa|linux)/.*)")
SOCKET_EXCEPTIONS = {
    "device": (re.compile(r"(ifaddrs\.h|net/if\.h|netinet/in\.h|netpacket/packet\.h|"
                          r"arpa/inet\.h|sys/socket\.h)"),
               "getifaddrs(3) lists the addresses that become GIDs and the MAC address that "
               "becomes the GUID; inet_pton(3) reads option ip"),
    "base/gid.cc": (re.compile(r"arpa/inet\.h"),
                    "inet_ntop(3) writes a GID as text"),
}
THREAD_HEADERS = re.compile(r"(thread|future|pthread\.h|sys/epoll\.h|sys/timerfd\.h)")
THREAD_EXCEPTIONS = {
    "base/fork_lock.h": (re.compile(r"pthread\.h"),
                         "pthread_atfork(3): a child must find such a lock free"),
    "port/calls.h": (re.compile(r"pthread\.h"),
                     "pthread_setcancelstate(3): nobody is cancelled inside a call that a sanitizer sees"),
    "port/pi_mutex.cc": (re.compile(r"pthread\.h"),
                         "pthread_atfork(3): the thread of a child has a number of its own"),
}

# What a layer may not see of one that it depends on.
HIDDEN_HEADERS = {
    "drive": (re.compile(r"engine/(engine|hold|helper|helper_.*|sleepers|sockets?_?.*|watch)\.h|"
                         r"port/(tcp_stream|udp_socket)\.h"),
              "a driver knows engine::Runtime, port::ByteStream and port::DatagramPort, so that it runs in sim/ as "
              "well (design/21)"),
}

VERBS_HEADERS = re.compile(r"(infiniband|rdma)/.*")

# In two parts, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LAYER = re.compile(r"\bweft_layer\s*\(([^)]*)\)")
TOOL_LAYER = re.compile(r"\bweft_tool_layer\s*\(([^)]*)\)")
SDP_LAYER = re.compile(r"\bweft_sdp_layer\s*\(([^)]*)\)")
# SDP runs on any verbs provider (design/27), so it knows nothing of weft's adapter.
SDP_MAY_HAVE = {"base"}
SDP_SANS_IO_LAYERS = {"wire", "core"}
EXTERN_C = re.compile(r'\bextern\s+"C"')


class Layer(NamedTuple):
    name: str
    depends: tuple
    declared_in: pathlib.Path
    layers: tuple = ()  # of a tool: those of src/


class Report:
    def __init__(self) -> None:
        self.errors: list = []
        self.notes: list = []

    def error(self, place: str, sentence: str) -> None:
        self.errors.append(f"{place}: {sentence}")

    def note(self, place: str, sentence: str) -> None:
        self.notes.append(f"{place}: {sentence}")


def without_comments(text: str) -> str:
    """The code alone, line numbers and string literals kept."""
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)

    def keep(match: re.Match) -> str:
        found = match.group(0)
        return "\n" * found.count("\n") if found.startswith(("//", "/*")) else found

    return token.sub(keep, text)


def files_below(root: pathlib.Path, trees: tuple, suffixes: set) -> Iterator[pathlib.Path]:
    for tree in trees:
        for path in sorted((root / tree).rglob("*")):
            if path.is_file() and (path.suffix in suffixes or (not path.suffix and
                                                               suffixes is TEXT_SUFFIXES)):
                yield path


def declared(call: str, path: pathlib.Path) -> Layer:
    name, *words = call.split()
    sections: dict = {"": []}
    section = ""
    for word in words:
        if word in ("DEPENDS", "LAYERS", "LIBRARIES", "TARGET", "EXCEPT"):
            section = word
            sections.setdefault(section, [])
        else:
            sections[section].append(word)
    return Layer(name, tuple(sections.get("DEPENDS", ())), path, tuple(sections.get("LAYERS", ())))


def read_layers(root: pathlib.Path, report: Report) -> dict:
    layers = {}
    for path in sorted((root / "src").glob("*/CMakeLists.txt")):
        place = str(path.relative_to(root))
        text = re.sub(r"#[^\n]*", "", path.read_text())
        calls = LAYER.findall(text)
        if len(calls) != 1:
            report.error(place, f"declares {len(calls)} layers; a folder of src/ is exactly one")
            continue
        layer = declared(calls[0], path)
        if layer.name != path.parent.name:
            report.error(place, f"layer '{layer.name}' does not bear its folder's name")
        layers[layer.name] = layer
    for folder in sorted((root / "src").iterdir()):
        if folder.is_dir() and folder.name not in layers:
            report.error(f"src/{folder.name}", "has no weft_layer(...) in a CMakeLists.txt")
    return layers


def read_tools(root: pathlib.Path, report: Report) -> dict:
    """The folders of tools/ that are layers. One without a header is what others link, or start, and declares nothing."""
    tools = {}
    for path in sorted((root / "tools").glob("*/CMakeLists.txt")):
        place = str(path.relative_to(root))
        calls = TOOL_LAYER.findall(re.sub(r"#[^\n]*", "", path.read_text()))
        if len(calls) > 1 or (not calls and any(path.parent.rglob("*.h"))):
            report.error(place, f"declares {len(calls)} layers; a folder of tools/ with headers is exactly one")
        for call in calls:
            tool = declared(call, path)
            if tool.name != path.parent.name:
                report.error(place, f"layer '{tool.name}' does not bear its folder's name")
            tools[tool.name] = tool
    return tools


def check_declarations(root: pathlib.Path, layers: dict, report: Report) -> None:
    for layer in layers.values():
        place = str(layer.declared_in.relative_to(root))
        for name in layer.depends:
            if name == layer.name:
                report.error(place, f"layer '{name}' depends on itself")
            elif name not in layers:
                report.error(place, f"DEPENDS names '{name}', which is no layer")

    # Depth first; `path` is the chain that leads to the layer at hand.
    done: set = set()

    def visit(name: str, path: list) -> None:
        if name in path:
            circle = " -> ".join(path[path.index(name):] + [name])
            report.error(str(layers[name].declared_in.relative_to(root)), f"cycle: {circle}")
            return
        if name in done:
            return
        for lower in layers[name].depends:
            if lower in layers and lower != name:
                visit(lower, path + [name])
        done.add(name)

    for name in sorted(layers):
        visit(name, [])


def allowed_by(exceptions: dict, layer: str, inside: str, header: str) -> bool:
    return any(key in exceptions and exceptions[key][0].fullmatch(header)
               for key in (layer, inside))


def check_include(place: str, layer: Layer, inside: str, quote: str, header: str,
                  root: pathlib.Path, report: Report, used: set) -> None:
    """`inside` is the including file as "layer/file.h"."""
    own = layer.name
    first = header.split("/")[0]
    if VERBS_HEADERS.fullmatch(header):
        report.error(place, f"includes <{header}>; Debian's verbs headers belong to abi/")
        return
    if first == "abi":
        report.error(place, f'includes "{header}"; nothing under src/ may know abi/')
        return
    if quote == '"':
        if "/" not in header:
            report.error(place, f'includes "{header}"; write it as "{own}/{header}"')
        elif first != own and first not in layer.depends:
            report.error(place, f'includes "{header}", but layer {own} does not declare '
                                f"DEPENDS {first}")
        elif own in HIDDEN_HEADERS and HIDDEN_HEADERS[own][0].fullmatch(header):
            report.error(place, f'includes "{header}"; {HIDDEN_HEADERS[own][1]}')
        elif not (root / "src" / header).is_file():
            report.error(place, f'includes "{header}", which does not exist under src/')
        if first in layer.depends:
            used.add(first)
        return
    if SOCKET_HEADERS.fullmatch(header) and own != "port" and not allowed_by(
            SOCKET_EXCEPTIONS, own, inside, header):
        report.error(place, f"includes <{header}>; only src/port knows sockets")
    if THREAD_HEADERS.fullmatch(header) and own != "engine" and not allowed_by(
            THREAD_EXCEPTIONS, own, inside, header):
        report.error(place, f"includes <{header}>; only src/engine knows threads and epoll")
    if own in SANS_IO_LAYERS and SANS_IO_HEADERS.fullmatch(header):
        report.error(place, f"includes <{header}>; layer {own} never calls the operating system")


def check_sources(root: pathlib.Path, layers: dict, report: Report) -> None:
    used: dict = {name: set() for name in layers}
    for path in files_below(root, ("src",), SOURCE_SUFFIXES):
        relative = path.relative_to(root)
        layer = layers.get(relative.parts[1])
        if layer is None:
            if len(relative.parts) < 3:
                report.error(str(relative), "lies in no layer")
            continue
        code = without_comments(path.read_text())
        for number, line in enumerate(code.splitlines(), 1):
            place = f"{relative}:{number}"
            include = INCLUDE.match(line)
            if include:
                check_include(place, layer, "/".join(relative.parts[1:]), include.group(1),
                              include.group(2), root, report, used[layer.name])
                continue
            call = SANS_IO_CALLS.search(line) if layer.name in SANS_IO_LAYERS else None
            if call:
                report.error(place, f"calls {call.group(1)}; layer {layer.name} is told the time, "
                                    "randomness and options, it never asks for them")
    for layer in layers.values():
        has_sources = any(path.suffix in SOURCE_SUFFIXES
                          for path in layer.declared_in.parent.iterdir())
        for name in layer.depends:
            if has_sources and name not in used[layer.name]:
                report.note(str(layer.declared_in.relative_to(root)),
                            f"DEPENDS {name} is declared and not used")


def check_tools(root: pathlib.Path, tools: dict, layers: dict, report: Report) -> None:
    used: dict = {name: set() for name in tools}
    for tool in tools.values():
        for name in tool.layers:
            if name not in layers:
                report.error(str(tool.declared_in.relative_to(root)), f"LAYERS names '{name}', which is no layer of src/ or sdp_... of sdp/")
    for path in files_below(root, ("tools",), SOURCE_SUFFIXES):
        relative = path.relative_to(root)
        tool = tools.get(relative.parts[1])
        if tool is None:
            continue
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            include = INCLUDE.match(line)
            if not include or include.group(1) == "<":
                continue
            place, header = f"{relative}:{number}", include.group(2)
            first, second = header.split("/")[:2] if "/" in header else (header, "")
            if first == "sdp":
                first = f"sdp_{second}"
            used[tool.name].add(first)
            if "/" not in header:
                report.error(place, f'includes "{header}"; write it as "{tool.name}/{header}"')
            elif first in layers and first not in tool.layers:
                report.error(place, f'includes "{header}", but {tool.name} does not declare LAYERS {first}')
            elif first not in layers and first != tool.name and first not in tool.depends:
                report.error(place, f'includes "{header}", but {tool.name} does not declare DEPENDS {first}')
    for tool in tools.values():
        for name in tool.depends + tool.layers:
            if name not in used[tool.name]:
                report.note(str(tool.declared_in.relative_to(root)), f"{name} is declared and not used")


def read_sdp(root: pathlib.Path, report: Report) -> dict:
    parts = {}
    for path in sorted((root / "sdp").glob("*/CMakeLists.txt")):
        calls = SDP_LAYER.findall(re.sub(r"#[^\n]*", "", path.read_text()))
        if len(calls) != 1:
            report.error(str(path.relative_to(root)), f"declares {len(calls)} layers; a folder of sdp/ is exactly one")
            continue
        part = declared(calls[0], path)
        if part.name != path.parent.name:
            report.error(str(path.relative_to(root)), f"layer '{part.name}' does not bear its folder's name")
        for name in set(part.layers) - SDP_MAY_HAVE:
            report.error(str(path.relative_to(root)), f"LAYERS names '{name}'; SDP may have {', '.join(sorted(SDP_MAY_HAVE))} of src/")
        parts[part.name] = part
    return parts


def check_sdp(root: pathlib.Path, parts: dict, report: Report) -> None:
    for path in files_below(root, ("sdp",), SOURCE_SUFFIXES):
        relative = path.relative_to(root)
        part = parts.get(relative.parts[1])
        if part is None:
            report.error(str(relative), "lies in no layer")
            continue
        sans_io = part.name in SDP_SANS_IO_LAYERS
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            place = f"{relative}:{number}"
            include = INCLUDE.match(line)
            if not include:
                call = SANS_IO_CALLS.search(line) if sans_io else None
                if call:
                    report.error(place, f"calls {call.group(1)}; layer {part.name} of sdp/ is told the time, it never asks")
                continue
            header = include.group(2)
            words = header.split("/")
            if include.group(1) == "<":
                if sans_io and (SANS_IO_HEADERS.fullmatch(header) or SOCKET_HEADERS.fullmatch(header)
                                or VERBS_HEADERS.fullmatch(header)):
                    report.error(place, f"includes <{header}>; layer {part.name} of sdp/ never calls the operating system")
            elif words[0] != "sdp" and words[0] not in part.layers:
                report.error(place, f'includes "{header}", but {part.name} does not declare LAYERS {words[0]}')
            elif words[0] == "sdp" and words[1] != part.name and words[1] not in part.depends:
                report.error(place, f'includes "{header}", but {part.name} does not declare DEPENDS {words[1]}')


def check_extern_c(root: pathlib.Path, report: Report) -> None:
    for path in files_below(root, ("src", "tools"), SOURCE_SUFFIXES):
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            if EXTERN_C.search(line):
                report.error(f"{path.relative_to(root)}:{number}",
                             'has extern "C"; C linkage belongs to abi/')


def check_files(root: pathlib.Path, report: Report) -> None:
    for path in files_below(root, SOURCE_TREES, SOURCE_SUFFIXES | {".py"}):
        length = len(path.read_text().splitlines())
        place = str(path.relative_to(root))
        if length > TOO_LONG_FILE:
            report.error(place, f"has {length} lines; more than {TOO_LONG_FILE} is a defect, "
                                "split it")
        elif length > LONG_FILE:
            report.note(place, f"has {length} lines; more than {LONG_FILE} needs a reason")
    for path in files_below(root, TEXT_TREES, TEXT_SUFFIXES):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            word = UNFINISHED.search(line)
            if word:
                report.error(f"{path.relative_to(root)}:{number}",
                             f"says {word.group(1)}; finish it or file it")


def check_classes(root: pathlib.Path, report: Report) -> None:
    """The sources of a class are those of its header's folder that include the header and define functions of the class."""
    sources: dict = {}
    for path in files_below(root, CLASS_TREES, {".cc"}):
        text = path.read_text()
        defined = set(DEFINES.findall(text))
        for header in re.findall(r'^#include "(?:[^"]*/)?([^"]+)"', text, re.M):
            sources.setdefault(path.parent / header, []).append((len(text.splitlines()), defined))
    for path in files_below(root, CLASS_TREES, {".h"}):
        text = path.read_text()
        place = str(path.relative_to(root))
        classes = CLASS.findall(without_comments(text))
        names = {name for name, _ in classes}
        own = [length for length, defined in sources.get(path, []) if defined & names]
        length = len(text.splitlines()) + sum(own)
        if own and length > MOST_LINES and not SAYS_WHY_LONG.search(text):
            report.error(place, f"has {length} lines with its sources; divide it, or say why: 'Above {MOST_LINES} lines ...'")
        for name, body in classes:
            members = len(MEMBER.findall(re.sub(r" +$", "", body, flags=re.M)))
            if members > MOST_MEMBERS and not SAYS_WHY_MANY.search(text):
                report.error(place, f"gives {name} {members} members; divide it, or say why: 'More than {MOST_MEMBERS} members ...'")


def check(root: pathlib.Path) -> Report:
    report = Report()
    layers = read_layers(root, report)
    check_declarations(root, layers, report)
    check_sources(root, layers, report)
    tools = read_tools(root, report)
    check_declarations(root, tools, report)
    parts = read_sdp(root, report)
    check_tools(root, tools, {**layers, **{f"sdp_{name}": part for name, part in parts.items()}}, report)
    check_declarations(root, parts, report)
    check_sdp(root, parts, report)
    check_extern_c(root, report)
    check_files(root, report)
    check_classes(root, report)
    if not layers:
        report.error("src", "declares no layer at all; is this the right folder?")
    return report


def main() -> int:
    if len(sys.argv) != 2 or not (pathlib.Path(sys.argv[1]) / "src").is_dir():
        print("usage: layering.py ROOT, where ROOT holds src/", file=sys.stderr)
        return 2
    report = check(pathlib.Path(sys.argv[1]).resolve())
    for sentence in report.notes:
        print("note:", sentence)
    for sentence in report.errors:
        print("error:", sentence)
    print(f"layering: {len(report.errors)} errors, {len(report.notes)} notes")
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
