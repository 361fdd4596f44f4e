#!/usr/bin/env python3
"""Has tshark, as a user without rights, read captures of WDP with packaging/wireshark/wdp.lua, and compares what it shows.

  wireshark.py --list                      the names of all cases
  wireshark.py --capture PROGRAM CASE...   runs them; PROGRAM is wdp_capture, which writes the captures

Exit status: 0 all good, 1 something failed, 77 tshark is not there, or cannot run Lua.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "wireshark"
NAMES = (SCRIPTS / "wdp_names.lua").read_text(encoding="utf-8")
NOBODY = 65534
SKIP = 77
SECONDS = 150
SEED = 20261127
# The ports of wdp_capture: all that goes there is shown as WDP, also what would not be recognized.
DECODE_AS = ("-d", "udp.port==50003,wdp")
ERRORS = ("_ws.lua.error", "_ws.lua.text", "_ws.malformed", "_ws.expert.message")


class Failed(Exception):
    pass


def check(right, sentence):
    if not right:
        raise Failed(sentence)


class Scene:
    """A folder that everybody may read, with the scripts in it."""

    def __init__(self, capture):
        self.capture = capture
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-wireshark-"))
        self.folder.chmod(0o755)
        for file in SCRIPTS.glob("*.lua"):
            pathlib.Path(shutil.copy(file, self.folder)).chmod(0o644)
        self.script = self.folder / "wdp.lua"
        self.fields = re.findall(r'^field\("([^"]+)"', NAMES, re.M)

    def close(self):
        shutil.rmtree(self.folder)

    def examples(self, *words):
        """A capture, and what there is to be known of each datagram in it."""
        file = self.folder / "capture.pcapng"
        said = subprocess.run([self.capture, words[0], file, *map(str, words[1:])], check=True, stdout=subprocess.PIPE, text=True)
        file.chmod(0o644)
        return file, [json.loads(line) for line in said.stdout.splitlines()]

    def tshark(self, *words, script=None, load=True):
        # As root, Wireshark does not run scripts of users.
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        home = {"HOME": str(self.folder), "WIRESHARK_CONFIG_DIR": str(self.folder / "none"), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        loaded = ["-X", f"lua_script:{script or self.script}"] if load else []
        done = subprocess.run([*user, "tshark", "-n", *loaded, *map(str, words)], env=home, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=SECONDS)
        check(done.returncode == 0, f"tshark ended with {done.returncode}: {done.stderr[-2000:]}")
        check("ua error" not in done.stderr.lower() and "lua:" not in done.stderr.lower(), f"tshark says: {done.stderr[-2000:]}")
        return done.stdout

    def shown(self, file, *options, script=None):
        """For each packet what its fields are: {field: [text]}, without "wdp."; those of ERRORS with their whole names."""
        names = [*(f"wdp.{name}" for name in self.fields if name != "tlv"), *ERRORS, "_ws.col.Protocol"]
        words = ["-r", file, "-T", "fields", "-E", "occurrence=a", "-E", "separator=/t", "-E", "aggregator=;", *options]
        for name in names:
            words += ["-e", name]
        packets = []
        for line in self.tshark(*words, script=script).splitlines():
            values = dict(zip(names, line.split("\t")))
            packets.append({name.removeprefix("wdp."): text.split(";") for name, text in values.items() if text})
        return packets


def number(text):
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 0)


def same(shown, expected):
    """A number as tshark writes it, or bytes, or a word."""
    if shown == expected:
        return True
    try:
        return number(shown) == int(expected)
    except ValueError:
        return False


def without_fault(name, packet, is_dropped=False):
    """Nothing went wrong in the script. What it calls malformed itself is so for Wireshark, too."""
    for fault in ERRORS[:2] if is_dropped else ERRORS[:3]:
        check(fault not in packet, f"{name}: {fault}: {packet}")
    for message in packet.get("_ws.expert.message", []):
        check("xception" not in message and "Lua" not in message, f"{name}: {message}")


# --- cases

def messages(scene):
    """Each kind of message, found on any port: all fields that were encoded, and no others; each field of the script is met."""
    file, examples = scene.examples("messages")
    met = {"drop", "tlv"}
    packets = scene.shown(file)
    check(len(packets) == len(examples), f"{len(packets)} packets for {len(examples)} datagrams")
    for example, packet in zip(examples, packets):
        name = example["name"]
        without_fault(name, packet)
        check(packet.pop("_ws.col.Protocol", None) == ["WDP"], f"{name} is not shown as WDP")
        packet.pop("_ws.expert.message", None)
        check(example["drop"] == "", f"{name} is no good example: {example['drop']}")
        check(set(packet) == set(example["fields"]),
              f"{name}: only shown {set(packet) - set(example['fields'])}, only encoded {set(example['fields']) - set(packet)}")
        for field, expected in example["fields"].items():
            met.add(field)
            check(len(packet[field]) == len(expected) and all(map(same, packet[field], expected)),
                  f"{name}: {field} is shown as {packet[field]}, encoded as {expected}")
    check(met == set(scene.fields), f"fields that no example has: {set(scene.fields) - met}")


def details(scene):
    """The tree as people read it opens without a fault, and the column says what each datagram is."""
    file, examples = scene.examples("messages")
    text = scene.tshark("-r", file, "-V")
    check("Lua Error" not in text and "Malformed" not in text, "a fault in the tree")
    for words in ("CRC status: Good", "Rejected: no listener", "Error of the peer: layer 1, type 1, code 0x02", "Code: RNR (1)", "Atomic operation: CmpSwap (2)",
                  "Opcode: Send with Solicited Event and Invalidate (6)"):
        check(words in text, f"nothing says '{words}'")
    lines = scene.tshark("-r", file, "-T", "fields", "-e", "_ws.col.Info").splitlines()
    kinds = {"REQ", "REP", "RTU", "REJ", "COOKIE", "WAIT", "DREQ", "DREP", "KA", "KAA", "PROBE", "PROBEA", "ERR"}
    for example, line in zip(examples, lines):
        first = example["name"].split()[0].rstrip(",")
        check(line.startswith(f"CTL {first} " if first in kinds else first), f"{example['name']} is called '{line}'")


def filters(scene):
    """Fields serve as filters."""
    file, examples = scene.examples("messages")
    for expression, has in (("wdp.class == 2", lambda f: "2" in f["class"]), ("wdp.ctl.type == 13", lambda f: f.get("ctl.type") == ["13"]),
                            ("wdp.imm == 0xcafef00d", lambda f: str(0xcafef00d) in f.get("imm", [])),
                            ("wdp.crc.status == \"Good\"", lambda f: "Good" in f["crc.status"]),
                            ("wdp.tlv", lambda f: "tlv.type" in f), ("wdp.malformed", lambda f: False)):
        found = scene.tshark("-r", file, "-Y", expression, "-T", "fields", "-e", "frame.number").split()
        wanted = [str(i + 1) for i, e in enumerate(examples) if has(e["fields"])]
        check(found == wanted, f"{expression} finds {found}, not {wanted}")


def mutations(scene):
    """What weft's own parsers say of a damaged datagram, the dissector says, too; and it never fails."""
    file, examples = scene.examples("mutations", SEED, 6000)
    packets = scene.shown(file, *DECODE_AS)
    check(len(packets) == len(examples), f"{len(packets)} packets for {len(examples)} datagrams")
    reasons = {}
    for example, packet in zip(examples, packets):
        # Nothing at all is no datagram for a dissector to look at.
        if packet.get("_ws.col.Protocol") != ["WDP"]:
            check(example["drop"] == "too_short", f"number {example['name']} ({example['drop']}) is not shown: {packet}")
            continue
        without_fault(f"number {example['name']} ({example['drop']})", packet, is_dropped=example["drop"] != "")
        said = packet.get("drop", [""])
        check(said == [example["drop"]], f"number {example['name']} is dropped as '{example['drop']}', shown as {said}: {packet}")
        reasons[example["drop"]] = reasons.get(example["drop"], 0) + 1
    dropped = set(re.findall(r"^  (\w+) = \"", NAMES.split("local DROPS")[1].split("\n}")[0], re.M))
    check(reasons.get("", 0) > 100, f"nearly nothing was good: {reasons}")
    # A wrong tag and the like must all have come up, or this says little.
    check(set(reasons) - {""} == dropped, f"never met: {dropped - set(reasons)}; unknown: {set(reasons) - dropped - {''}}")


def cut(scene):
    """Of a capture with a snap length it shows what is there, and takes nothing of it for a fault of the datagram."""
    file, examples = scene.examples("cut", SEED, 3000)
    packets = scene.shown(file, *DECODE_AS)
    check(len(packets) == len(examples), f"{len(packets)} packets for {len(examples)} datagrams")
    for example, packet in zip(examples, packets):
        if example["kept"] == 0:
            continue
        name = example["name"]
        without_fault(name, packet)
        check("drop" not in packet, f"{name} is dropped: {packet['drop'] if 'drop' in packet else ''}")
        check(any("only the beginning" in m for m in packet.get("_ws.expert.message", [])), f"{name}: nothing says that it is cut: {packet}")
        check(example["kept"] < 16 or packet["crc.status"][0] in ("Unchecked", "Absent"), f"{name}: {packet}")


def foreign(scene):
    """Random datagrams that begin as WDP does are hardly ever taken for it."""
    file, examples = scene.examples("foreign", SEED, 3000)
    taken = sum(packet.get("_ws.col.Protocol") == ["WDP"] for packet in scene.shown(file, "-Y", "udp && !wdp"))
    shown = len(scene.shown(file, "-Y", "!wdp"))
    check(taken == 0 and shown > 0, "a filter that does not work")
    claimed = scene.tshark("-r", file, "-Y", "wdp", "-T", "fields", "-e", "frame.number").split()
    first = int(claimed[0]) if claimed else len(examples)
    # After the first one all of that pair of ports is. That one is a Send of UC or RD by chance: 2 of 16 classes, 1 of 16 versions.
    check(first > 20, f"datagram {first} is taken for WDP: {claimed[:10]}")


def installed(scene):
    """In the folder of personal plugins the files are all that is needed."""
    file, examples = scene.examples("messages")
    plugins = scene.folder / ".local" / "lib" / "wireshark" / "plugins"
    plugins.mkdir(parents=True)
    for script in scene.folder.glob("*.lua"):
        script.rename(plugins / script.name)
    found = scene.tshark("-r", file, "-Y", "wdp && !_ws.lua.error", "-T", "fields", "-e", "frame.number", load=False).split()
    check(len(found) == len(examples), f"{len(found)} of {len(examples)} datagrams are shown")


def control(scene):
    """A script that fails is noticed by these tests."""
    broken = scene.folder / "broken.lua"
    broken.write_text(scene.script.read_text(encoding="utf-8").replace('v:add(tree, "ctl.ird", 34, 2)', "v:add(tree, nothing.at_all, 34, 2)"),
                      encoding="utf-8")
    broken.chmod(0o644)
    file, examples = scene.examples("messages")
    try:
        for example, packet in zip(examples, scene.shown(file, script=broken)):
            without_fault(example["name"], packet)
    except Failed:
        return
    raise Failed("a script with a fault in it passes")


def missing():
    """Why tshark cannot run the scripts; nothing when it can."""
    if not shutil.which("tshark"):
        return "tshark is not installed"
    version = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout
    return None if "with Lua" in " ".join(version.split()) else "this tshark runs no Lua"


CASES = {"messages": messages, "details": details, "filters": filters, "mutations": mutations, "cut": cut, "foreign": foreign, "installed": installed,
         "control": control}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--capture")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return 0
    if reason := missing():
        print(f"SKIPPED: {reason}")
        return SKIP
    good = True
    for name in options.case or CASES:
        scene = Scene(options.capture)
        try:
            CASES[name](scene)
            print(f"passed {name}")
        except Failed as e:
            print(f"FAILED {name}: {e}")
            good = False
        finally:
            scene.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
