"""Names in the sources of the targets, for make_seeds: an entry of a corpus then means what it says."""

import re
from pathlib import Path

FUZZ = Path(__file__).resolve().parent.parent


def enum(source, name):
    """{'nothing': 0, ..} of an enum class without explicit values."""
    text = (FUZZ / source).read_text()
    body = re.search(rf"enum class {name} : uint8_t \{{(.*?)\}};", text, re.S).group(1)
    words = re.sub(r"//[^\n]*", "", body).replace("\n", " ").split(",")
    return {w.strip(): i for i, w in enumerate(x for x in words if x.strip())}
