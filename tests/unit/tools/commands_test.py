#!/usr/bin/env python3
"""Asks every command that `weft --help` and the help of its commands name: help, wrong words, a closed pipe.

    commands_test.py --weft BUILD/bin/weft
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

WEFT = pathlib.Path()
PATIENCE = 120  # seconds, of a command that ends at once


def call(*words, **rest):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    return subprocess.run([str(WEFT), *words], env=environment, text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL,
                          timeout=PATIENCE, **rest)


def into_closed_pipe(*words):
    """(status, standard error) of a command whose standard output nobody reads any more."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        ended = subprocess.run([str(WEFT), *words], stdin=subprocess.DEVNULL, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False,
                               timeout=PATIENCE)
    finally:
        os.close(write_end)
    return ended.returncode, ended.stderr


def named_in(text):
    """The commands in a --help."""
    part = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  (\S+)", part[1], re.MULTILINE) if part else []


def all_commands():
    """The help of each command, by its words; () is weft itself."""
    found, unseen = {}, [()]
    while unseen:
        words = unseen.pop(0)
        found[words] = call(*words, "--help")
        unseen += [(*words, name) for name in named_in(found[words].stdout) if name != "help"]
    return found


def options_in(text):
    return re.findall(r"^  (?:-\w[ ,A-Z.a-z]*)?(--[a-z][a-z-]{3,})", text.partition("Examples:")[0], re.MULTILINE)


class CommandsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = all_commands()

    def each(self):
        return [(words, " ".join(("weft", *words)), result.stdout) for words, result in self.commands.items()]

    def expect_refused(self, result, name, *sentences):
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith(f"{name}: "), result.stderr)
        self.assertIn(f"\nUsage: {name}", result.stderr)
        self.assertIn(f"'{name} --help'", result.stderr)
        for sentence in sentences:
            self.assertIn(sentence, result.stderr)

    def test_all_are_found(self):
        for words in (("run",), ("stat",), ("bench", "rc"), ("bench", "paper"), ("stream", "send"), ("report",)):
            self.assertIn(words, self.commands)

    def test_help_has_examples(self):
        for words, name, text in self.each():
            with self.subTest(command=name):
                self.assertEqual((self.commands[words].returncode, self.commands[words].stderr), (0, ""))
                self.assertEqual(call("help", *words).stdout, text)
                self.assertRegex(text, rf"(?i)\busage: {name}\b")
                examples = re.findall(rf"^  ({re.escape(name)}\b.*?)  +# \S", text.partition("Examples:")[2], re.MULTILINE)
                self.assertGreaterEqual(len(examples), 2, text)
                # What an example names exists.
                for option in re.findall(r"--[a-z-]{4,}", " ".join(example.partition(" -- ")[0] for example in examples)):
                    self.assertTrue(named_in(text) or option in options_in(text), option)

    def test_unknown_option_is_named_with_the_nearest(self):
        for words, name, text in self.each():
            with self.subTest(command=name):
                self.expect_refused(call(*words, "--no-such-word"), name, "unknown option '--no-such-word'")
                option = max(options_in(text), key=len)
                wrong = option[:-2] + option[-1]  # a letter is missing
                self.expect_refused(call(*words, wrong, "x"), name, f"unknown option '{wrong}'; did you mean '{option}'?")

    def test_unknown_command_is_named_with_the_nearest(self):
        for words, name, text in self.each():
            with self.subTest(command=name):
                for command in named_in(text):
                    wrong = command + "x"
                    self.expect_refused(call(*words, wrong), name, f"'{wrong}' is not a command; did you mean '{command}'?")
                if named_in(text):
                    self.expect_refused(call(*words), name, "a command is missing: ")
                    self.expect_refused(call(*words, "quite-another"), name, "'quite-another' is not a command: it is one of ")

    def test_values_are_named_with_those_that_there_are(self):
        self.expect_refused(call("stream", "send", "--format", "rsq", "127.0.0.1"), "weft stream send",
                            "--format: 'rsq' is not ", " raw, rsp, ", "; did you mean 'rsp'?")
        self.expect_refused(call("stream", "recv", "--blocks", "3"), "weft stream recv", "--blocks: 3 is not in 4..992")
        self.expect_refused(call("stream", "recv", "--blocks", "many"), "weft stream recv", "'many' is not a whole number in 4..992")
        self.expect_refused(call("bench", "rc", "--sizes", "4X"), "weft bench rc", "'4X' is not a number of bytes")
        self.expect_refused(call("bench", "rc", "--energy", "batery"), "weft bench rc", "did you mean 'battery'?")
        self.expect_refused(call("bench", "paper", "--only", "lofra", "-o", "x"), "weft bench paper", "did you mean 'lofar'?")
        self.expect_refused(call("stream", "send", "--bits", "12", "127.0.0.1"), "weft stream send", "samples have 4, 8 or 16 bits")
        self.expect_refused(call("measure", "--interval", "5", "--", "true"), "weft measure", "--interval: 5 is not in 10..10000")

    def test_each_number_has_a_range_which_is_told(self):
        # Of the last one CLI11 makes its largest number.
        wrong = ("-1", "nan", "inf", "", "99999999999999999999")
        for words, name, text in self.each():
            said = text.partition("Examples:")[0]
            self.assertEqual(re.findall(r"^  (--[a-z-]+ (?:U?INT|FLOAT))(?!:)\b", said, re.MULTILINE), [], name)
            for option, least_most in re.findall(r"^  (--[a-z-]+) [A-Z]+:(\S+?\.\.[\d.]+)", said, re.MULTILINE):
                for value in wrong:
                    with self.subTest(command=name, option=option, value=value):
                        # Sizes may have a unit, and say so first.
                        range_or_unit = f"(in {re.escape(least_most)}|with K, M or G)"
                        self.assertRegex(call(*words, option, value).stderr, f"^{name}: {option}: .* {range_or_unit}\n")

    def test_times_that_are_none_are_refused(self):
        for words, option, value, sentence in ((("send", "127.0.0.1"), "--duration", "0", "0 is not in 0.001..1000000000"),
                                               (("recv",), "--duration", "0", "0 is not in 0.001..1000000000"),
                                               (("recv",), "--duration", "1e10", "1e10 is not in 0.001..1000000000"),
                                               (("recv",), "--port", "99999", "99999 is not in 0..65535"),
                                               (("send", "127.0.0.1"), "--packets", "-18446744073709551615", "in 1..4611686018427387904")):
            with self.subTest(words=words, option=option):
                self.expect_refused(call("stream", *words, option, value), f"weft stream {words[0]}", f"{option}: ", sentence)

    def test_sizes_have_no_sign(self):
        self.expect_refused(call("measure", "--bytes", "-4", "--", "true"), "weft measure", "--bytes: '-4' is not a number of bytes")
        self.expect_refused(call("measure", "--bytes", "99999999999999999999", "--", "true"), "weft measure", "is not in 0..1152921504606846976")
        self.expect_refused(call("bench", "rc", "--sizes", "4K,-4"), "weft bench rc", "--sizes: '-4' is not a number of bytes")

    def test_help_shows_how_several_values_are_given(self):
        help_of = {words: result.stdout for words, result in self.commands.items()}
        # One behind the other.
        self.assertIn("  --recording FILE ...", help_of["stream", "send"])
        # In one word.
        self.assertIn("  --only TEXT,...", help_of["bench", "rc"])
        self.assertIn("  --sizes UINT:1..67108864,...", help_of["bench", "rc"])
        self.assertIn("  --energy ENUM,...", help_of["measure",])
        # By the option again.
        self.assertRegex(help_of["run",], r"(?m)^  --env NAME=VALUE +Set .*; may be repeated$")
        self.assertEqual(call("bench", "rc", "--list", "--only", "write/64K/crc,tcp/64K").stdout.split(), ["tcp/64K", "write/64K/crc"])
        self.expect_refused(call("bench", "rc", "--only", "a", "b"), "weft bench rc", "unexpected word 'b'")

    def test_an_empty_word_is_no_value(self):
        for words, option in ((("stream", "recv"), "--ring"), (("stream", "recv"), "--file"), (("stream", "send", "127.0.0.1"), "--bind"),
                              (("trace",), "--output"), (("measure",), "--samples"), (("bench", "rc"), "--jsonl"), (("run",), "--env")):
            with self.subTest(words=words, option=option):
                self.expect_refused(call(*words, option, ""), " ".join(("weft", *words[:2 if words[0] in ("stream", "bench") else 1])),
                                    f"{option}: an empty word is no value")

    def test_what_a_receiver_cannot_be_is_wrong_usage(self):
        for words, sentence in ((("--ring", "a/b"), "the name of a ring has no '/'"),
                                (("--streams", "0"), "--streams: 0 is not in 1..4096"),
                                (("--static", "1.2.3"), "--static: '1.2.3' is no address"),
                                (("--transport", "rc", "--udp-port", "5000"), "--udp-port is for --transport udp, and for --static"),
                                (("--transport", "udp", "--udp-port", "65535", "--streams", "2"), "2 streams have no ports from 65535 on")):
            with self.subTest(words):
                result = call("stream", "recv", *words)
                self.expect_refused(result, "weft stream recv", sentence)
                self.assertNotIn("warning", result.stderr)

    def test_where_a_stream_goes_is_looked_at_first(self):
        for words, sentence in ((("999.1.2.3",), "'999.1.2.3' is neither an IPv4 address nor the name of a host"),
                                (("two words",), "'two words' is neither"),
                                ((":4347",), "'' is neither"),
                                (("192.0.2.1:", ), "a port is 1 to 65535"),
                                (("192.0.2.1:65536",), "a port is 1 to 65535"),
                                (("2001:db8::1",), "Streams go over IPv4"),
                                (("--plain-udp", "192.0.2.1"), "--plain-udp: '192.0.2.1' is not ADDRESS:PORT"),
                                (("--plain-udp", "192.0.2.1:65535", "--streams", "2"), "--plain-udp: 2 streams have no ports from 65535 on"),
                                (("--plain-udp", "192.0.2.1:9", "192.0.2.2"), "two receivers are named: 192.0.2.2, and 192.0.2.1:9 by --plain-udp"),
                                ((), "name the receiver: ADDRESS, or --plain-udp ADDRESS:PORT"),
                                (("--plain-udp", "192.0.2.1:9", "--transport", "rc"), "--plain-udp: is --transport udp"),
                                (("192.0.2.1", "--loop"), "--loop is for --file, --pcap and --recording"),
                                (("192.0.2.1", "--pcap", "/dev/null", "--first", "7"), "--first: packets of --pcap and --recording have numbers of their own"),
                                (("192.0.2.1", "--recording", "/dev/null", "--first", "0"), "--first: packets of --pcap"),
                                (("192.0.2.1", "--transport", "tcp", "--packets-per-write", "2"), "--packets-per-write is for --transport rc and uc"),
                                (("192.0.2.1", "--bind", "eth0"), "--bind: 'eth0' is not an IPv4 address")):
            with self.subTest(words):
                self.expect_refused(call("stream", "send", *words), "weft stream send", sentence)
        # An address of the documentation, which no host has.
        for words in (("send", "192.0.2.1"), ("recv",)):
            with self.subTest(words):
                result = call("stream", *words, "--bind", "192.0.2.77")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("--bind 192.0.2.77: ", result.stderr)

    def test_version(self):
        self.assertRegex(call("-V").stdout, r"^weft \d+\.\d+\.\d+\n$")
        self.assertEqual(call("-V").stdout, call("--version").stdout)

    def test_closed_pipe_ends_them_without_a_word(self):
        for words in self.commands:
            with self.subTest(words=words):
                self.assertEqual(into_closed_pipe(*words, "--help"), (-signal.SIGPIPE, ""))
        for words in (("info",), ("info", "--options"), ("info", "--options", "--json"), ("stat", "--markdown"), ("bench", "rc", "--list"),
                      ("bench", "paper", "--list"), ("doctor",), ("--version",)):
            with self.subTest(words=words):
                self.assertEqual(into_closed_pipe(*words), (-signal.SIGPIPE, ""))

    def test_closed_pipe_where_the_parent_ignores_it(self):
        # As under systemd, which starts services so.
        before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGPIPE, before)
        read_end, write_end = os.pipe()
        os.close(read_end)
        self.addCleanup(os.close, write_end)
        ended = subprocess.run([str(WEFT), "info", "--options"], stdout=write_end, stderr=subprocess.PIPE, text=True, check=False,
                               timeout=PATIENCE, restore_signals=False)
        self.assertEqual((ended.returncode, ended.stderr), (-signal.SIGPIPE, ""))

    def test_full_disk_is_an_error(self):
        for words, name in ((("info",), "weft info"), (("bench", "rc", "--list"), "weft bench rc"), (("bench", "paper", "--list"), "weft bench paper"),
                            (("--version",), "weft"), (("help",), "weft"), (("stream", "recv", "--help"), "weft"), (("stat", "--json"), "weft stat"),
                            (("stream", "recv", "--transport", "tcp", "--port", "0", "--json", "--duration", "0.1"), "weft stream recv")):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                ended = subprocess.run([str(WEFT), *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE)
                self.assertEqual(ended.returncode, 1)
                self.assertRegex(ended.stderr, rf"(?m)^{name}: (standard output: )?No space left on device$")

    def test_closed_standard_output_is_an_error(self):
        commands = [(("--version",), "weft"), (("info",), "weft info"), (("bench", "rc", "--list"), "weft bench rc"), (("doctor",), "weft doctor")]
        if (WEFT.parent.parent / "lib" / "weft" / "libibverbs.so.1").exists():
            # Else the first file that is opened would have its number.
            commands.append((("bench", "rc", "--quick", "--only", "tcp/64K"), "weft bench rc"))
        for words, name in commands:
            with self.subTest(words):
                ended = subprocess.run(["sh", "-c", '"$0" "$@" >&-', str(WEFT), *words], stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE)
                self.assertEqual(ended.returncode, 1)
                self.assertRegex(ended.stderr, rf"(?m)^{name}: standard output: Bad file descriptor$")

    def test_a_program_finds_closed_what_was_closed(self):
        code = "import os\nfor fd in 0, 1:\n  try: os.fstat(fd)\n  except OSError: os.write(2, b'closed\\n')"
        for command in ("run", "measure"):
            ended = subprocess.run(["sh", "-c", '"$0" "$@" >&- <&-', str(WEFT), command, "--", sys.executable, "-c", code], stderr=subprocess.PIPE, text=True,
                                   check=False, timeout=PATIENCE)
            self.assertEqual(ended.stderr.count("closed\n"), 2, ended.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    WEFT = options.weft.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
