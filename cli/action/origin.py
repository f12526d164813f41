"""Which commit of vlmend a workflow pins: what is known about it, and nothing invented.

A version or a branch can be moved by whoever holds the repository; a commit id cannot.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from typing import Any, Final

from vlmend.cli.errors import UserError

_PINNED: Final = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)@(?P<commit>[0-9a-f]{40})")
_ON_GITHUB: Final = re.compile(
    r"(?:https://(?:[^/@]+@)?github\.com/|(?:ssh://)?git@github\.com[:/])"
    r"(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
RELEASED: Final = "released.json"
"""Written when a release is built: the commit that it is built from."""


def pinned(text: str) -> str:
    """Return ``OWNER/REPO@SHA`` if the text is that, with a full commit id.

    Raises:
        UserError: it is not.
    """
    if _PINNED.fullmatch(text) is not None:
        return text
    name, at, revision = text.partition("@")
    hint = "write OWNER/REPO@COMMIT, with all 40 characters of the commit id"
    if at and "/" in name and revision:
        url = f"https://github.com/{name}"
        hint += f"; `git ls-remote {url} {revision}` tells it"
    raise UserError(f"--action {text}: is not pinned", hint=hint)


def known_origin() -> str | None:
    """Return where this vlmend comes from as ``OWNER/REPO@SHA``, if that is recorded.

    A release records it when it is built; pip records it for an installation straight
    from a repository (PEP 610).
    """
    place = files("vlmend.cli.action").joinpath(RELEASED)
    recorded = json.loads(place.read_text("utf-8")).get("action", "")
    if _PINNED.fullmatch(recorded) is not None:
        return str(recorded)
    return _installed_from()


def _installed_from() -> str | None:
    try:
        text = distribution("vlmend").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    found: Any = json.loads(text) if text else {}
    name = repository_of(str(found.get("url", "")))
    commit = str((found.get("vcs_info") or {}).get("commit_id", ""))
    whole = f"{name}@{commit}"
    return whole if _PINNED.fullmatch(whole) is not None else None


def repository_of(url: str) -> str | None:
    """Return ``owner/name`` of an address on GitHub, or None."""
    found = _ON_GITHUB.fullmatch(url.strip())
    return None if found is None else found["name"]
