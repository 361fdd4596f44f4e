"""What ctest's JUnit reports say of a test."""

import re
import xml.etree.ElementTree as ElementTree


def cases(report: str) -> list:
    return list(ElementTree.parse(report).getroot().iter("testcase"))


def name_of(case: ElementTree.Element) -> str:
    return case.get("name") or ""


def output_of(case: ElementTree.Element) -> str:
    return case.findtext("system-out") or ""


def passed(case: ElementTree.Element) -> bool:
    return case.get("status") == "run"


def was_skipped(case: ElementTree.Element) -> bool:
    """Skipped by its own word, or switched off. ctest's other ways of not running a test, such as a
    program that was not built, are failures."""
    return case.get("status") == "disabled" or _skip_message(case).startswith("SKIP_")


def failed(case: ElementTree.Element) -> bool:
    return not passed(case) and not was_skipped(case)


def how_it_failed(case: ElementTree.Element) -> str:
    """ctest's reason, such as "Unable to find executable: ...". Empty for most, and for timeouts and signals."""
    failure = case.find("failure")
    return ((failure.get("message") or "") if failure is not None else "") or _skip_message(case)


def why_skipped(case: ElementTree.Element) -> str:
    """The test's own words where it printed some."""
    # GoogleTest: "file:line: Skipped" and the sentence below; others print "SKIPPED: sentence".
    output = output_of(case)
    match = re.search(r": Skipped\n+(.+)", output) or re.search(r"SKIPPED: (.+)", output)
    if match:
        return match.group(1).strip()
    return "switched off" if case.get("status") == "disabled" else "no reason given"


def _skip_message(case: ElementTree.Element) -> str:
    skipped = case.find("skipped")
    return (skipped.get("message") or "") if skipped is not None else ""
