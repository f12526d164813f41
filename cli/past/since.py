"""Since when a defect is there, as far as releases and commits have been read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from vlmend.cli.past.lives import DEFECTS
from vlmend.codemods.codemod import Finding

Knows = Callable[[str], bool]
"""Says whether a commit is part of the history at hand."""


def nothing_known(commit: str) -> bool:
    """Stand for a tree without a history."""
    del commit
    return False


def present_since(finding: Finding, knows: Knows = nothing_known) -> str:
    """Return "present since X" with what is known of X, or nothing.

    Args:
        finding: a defect; anything else has no beginning worth telling.
        knows: a commit is named only where the history at hand has it.
    """
    from vlmend.cli.past.arrival import remembered

    if finding.status not in DEFECTS:
        return ""
    parts: list[str] = []
    entry = _first_seen().get(finding.fingerprint)
    if entry is not None:
        date = f" ({entry['date']})" if entry["date"] else ""
        earlier = " or earlier" if entry["earlier"] else ""
        parts.append(f"vllm {entry['since']}{earlier}{date}")
    moment = remembered(finding.fingerprint)
    if moment is not None and knows(moment.commit):
        pull = f", #{moment.pull}" if moment.pull else ""
        parts.append(f"commit {moment.name} ({moment.date}{pull})")
    return f"present since {', '.join(parts)}" if parts else ""


def known_life(finding: Finding) -> Mapping[str, Any] | None:
    """Return the releases that a defect came and went with, or None.

    The keys are ``since``, ``date``, ``earlier`` (it may be older than what was read)
    and ``gone``: the first release without it, None where it is still there.
    """
    return _first_seen().get(finding.fingerprint)


@cache
def _first_seen() -> dict[str, Any]:
    text = files("vlmend.cli.past").joinpath("since.json").read_text("utf-8")
    loaded = json.loads(text)
    assert isinstance(loaded, dict)
    return loaded
