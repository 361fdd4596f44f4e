#!/usr/bin/env python3
"""Holds the tables of docs/spec/errors.md against the sources: which Terminate answers which reason.

    codes.py ROOT     prints every row that says otherwise than the code; status 1 if there is one
"""

import pathlib
import re
import sys

LAYERS = {"rdmap": 0, "ddp": 1, "llp": 2}
CONSTANT = re.compile(r"constexpr TermError (k\w+)\{Layer::(\w+), (\d+), 0x([0-9a-f]{2})\}")
ANSWER = re.compile(r"([^;{}]*?)\.because\((?:wire::)?Refusal::(\w+)\)")
CODE = re.compile(r"\b(\d)/(\d)/([0-9A-F]{2})\b")


def of_the_code(root):
    """{reason: the Terminates that answer it}"""
    terms = {name: (LAYERS[layer], int(etype), int(code, 16))
             for name, layer, etype, code in CONSTANT.findall((root / "src/wire/terminate.h").read_text(encoding="utf-8"))}
    answers = {}
    for path in sorted((root / "src").rglob("*.[hc]*")):
        for statement, reason in ANSWER.findall(path.read_text(encoding="utf-8")):
            answers.setdefault(reason, set()).update(terms[name] for name in re.findall(r"term::(k\w+)", statement))
    return answers


def of_the_page(root):
    """The same, and the reasons that the page has without a Terminate."""
    answers, unanswered = {}, set()
    for line in (root / "docs/spec/errors.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        reasons = re.findall(r"`(\w+)`", cells[-1])
        if len(cells) != 3 or not line.startswith("|") or not reasons:
            continue
        codes = {(int(layer), int(etype), int(code, 16)) for layer, etype, code in CODE.findall(cells[1])}
        for reason in reasons:
            answers.setdefault(reason, set()).update(codes)
            if not codes:
                unanswered.add(reason)
    return answers, unanswered


def text(codes):
    return ", ".join(f"{layer}/{etype}/{code:02X}" for layer, etype, code in sorted(codes)) or "none"


def main():
    root = pathlib.Path(sys.argv[1])
    code, (page, unanswered) = of_the_code(root), of_the_page(root)
    wrong = [f"docs/spec/errors.md: {reason} is answered by {text(code[reason])}, and not by {text(page.get(reason, set()))}"
             for reason in sorted(code) if page.get(reason, set()) != code[reason] and not (reason in unanswered and not page[reason])]
    wrong += [f"docs/spec/errors.md: no code gives the reason {reason}" for reason in sorted(set(page) - set(code))]
    if len(code) < 40:
        wrong.append(f"src/: only {len(code)} reasons were found; has their form changed?")
    print("".join(f"{sentence}\n" for sentence in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
