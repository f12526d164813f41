"""Since when a defect is there, as far as all releases have been read."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from vlmend.codemods.codemod import Finding


def present_since(finding: Finding) -> str:
    """Return "present since X" with the date, or nothing where it is not known."""
    entry = _first_seen().get(finding.fingerprint)
    if entry is None:
        return ""
    date = f" ({entry['date']})" if entry["date"] else ""
    earlier = " or earlier" if entry["earlier"] else ""
    return f"present since vllm {entry['since']}{earlier}{date}"


@cache
def _first_seen() -> dict[str, Any]:
    text = files("vlmend.cli.past").joinpath("since.json").read_text("utf-8")
    loaded = json.loads(text)
    assert isinstance(loaded, dict)
    return loaded
