"""GitHub's own description of its API, cut down to the paths that vlmend uses.

``python tests/rig/openapi.py FILE`` fetches the npm package and writes the trimmed
description; it needs npm, and fails without it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "@octokit/openapi@23.0.2"
DOCUMENT = "package/generated/api.github.com.json"

USED = {
    "/user": {"get"},
    "/search/issues": {"get"},
    "/repos/{owner}/{repo}": {"get"},
    "/repos/{owner}/{repo}/actions/permissions": {"get"},
    "/repos/{owner}/{repo}/branches/{branch}": {"get"},
    "/repos/{owner}/{repo}/forks": {"post"},
    "/repos/{owner}/{repo}/merge-upstream": {"post"},
    "/repos/{owner}/{repo}/pulls": {"get", "post"},
    "/repos/{owner}/{repo}/pulls/{pull_number}": {"get", "patch"},
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews": {"get"},
    "/repos/{owner}/{repo}/issues/{issue_number}": {"get"},
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": {"get", "post"},
    "/repos/{owner}/{repo}/issues/{issue_number}/labels": {"post"},
    "/repos/{owner}/{repo}/commits/{ref}/check-runs": {"get"},
    "/repos/{owner}/{repo}/commits/{ref}/status": {"get"},
}
"""Every path and method that vlmend calls; anything else has no description here."""


def fetch(folder: Path) -> dict[str, Any]:
    """Return the whole description, from the npm package."""
    done = subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(folder), PACKAGE],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        raise SystemExit(f"npm pack {PACKAGE} failed: {done.stderr.strip()}")
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as package:
        member = package.extractfile(DOCUMENT)
        assert member is not None, DOCUMENT
        document = json.load(member)
    assert isinstance(document, dict)
    return document


def trimmed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the description with the used paths and what they refer to."""
    paths = {
        path: {
            key: value
            for key, value in document["paths"][path].items()
            if key in methods or key == "parameters"
        }
        for path, methods in USED.items()
    }
    kept: dict[str, dict[str, Any]] = {}
    waiting: list[Any] = [paths]
    while waiting:
        for reference in _references(waiting.pop()):
            kind, name = reference.removeprefix("#/components/").split("/")
            if name not in kept.setdefault(kind, {}):
                kept[kind][name] = document["components"][kind][name]
                waiting.append(kept[kind][name])
    return {
        "openapi": document["openapi"],
        "info": document["info"],
        "servers": document["servers"],
        "paths": paths,
        "components": kept,
    }


def _references(node: Any) -> list[str]:
    found: list[str] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            # Published examples are not needed, and some break their own schema.
            part.pop("examples", None)
            reference = part.get("$ref")
            if isinstance(reference, str):
                found.append(reference)
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return found


def main(place: Path) -> None:
    """Fetch, trim and write the description."""
    with tempfile.TemporaryDirectory() as folder:
        document = trimmed(fetch(Path(folder)))
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = place.with_suffix(".new")
    scratch.write_text(json.dumps(document), "utf-8")
    scratch.replace(place)
    sys.stdout.write(
        f"{PACKAGE}: {len(document['paths'])} paths, {place.stat().st_size} bytes\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
