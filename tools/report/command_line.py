"""The command line of weft's commands in Python: errors and ends as those of the others (tools/cli)."""

import argparse
import difflib
import os
import signal
import sys
import time


class Stopped(BaseException):
    """A signal ends the program. Not an Exception, so that no step takes it for a failure of its own."""

    def __init__(self, number):
        super().__init__(number)
        self.status = 128 + number


def stop(number, _frame):
    """The first one raises Stopped, a second one ends the program at once. timeout(1) sends two at a time, which are one."""
    now = time.monotonic()
    first = asked.setdefault("at", now)
    if first == now:
        raise Stopped(number)
    if now - first > SAME_REQUEST:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


asked = {}
SAME_REQUEST = 0.2  # seconds
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def did_you_mean(given, known):
    nearest = difflib.get_close_matches(given, known, 1)
    return f"; did you mean '{nearest[0]}'?" if nearest else ""


def number(kind, least, most):
    """For add_argument(type=...): an int or a float in this range; nan is in none."""
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            whole = "whole " if kind is int else ""
            raise argparse.ArgumentTypeError(f"'{text}' is not a {whole}number in {least}..{most}") from None
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not in {least}..{most}")
        return value
    return parse


def numbers(least, most):
    """Several whole ones, with commas between them."""
    return lambda text: [number(int, least, most)(word) for word in text.split(",")]


class Parser(argparse.ArgumentParser):
    """Names the wrong word and the nearest right one; status 2."""

    def __init__(self, prog, description, examples, remarks, **rest):
        width = max(len(words) for words, _ in examples)
        text = "Examples:\n" + "".join(f"  {words:<{width}}  # {sentence}\n" for words, sentence in examples) + "\n" + remarks
        super().__init__(prog=prog, description=description, epilog=text, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **rest)
        self.words = []

    def parse_args(self, args=None, namespace=None):
        self.words = list(args or [])
        return super().parse_args(args, namespace)

    def error(self, message):
        unknown = self.unknown_option()
        if unknown is not None:
            # What is said to be missing is a consequence.
            message = f"unknown option '{unknown}'" + did_you_mean(unknown, self._option_string_actions)
        sys.stderr.write(f"{self.prog}: {message}\n{self.format_usage().replace('usage', 'Usage', 1)}'{self.prog} --help' explains the words.\n")
        sys.exit(2)

    def unknown_option(self):
        for word in self.words:
            if word == "--":
                break
            name = word.partition("=")[0]
            short = word[:2] in self._option_string_actions and not word.startswith("--")
            if word.startswith("-") and word[1:2].strip("0123456789.") and name not in self._option_string_actions and not short:
                return name
        return None


def run(prog, main):
    """Ends with the status of main(words). A signal raises Stopped in it. A closed pipe ends it without a word, as it ends cat(1)."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for each in STOPPING:
        signal.signal(each, stop)
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except Stopped as stopped:
        status = stopped.status
    except OSError as error:
        about = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        sys.stderr.write(f"{prog}: {about}{error.strerror}\n")
        os._exit(1)  # Python would try to write once more, and report that
    sys.exit(status)
