"""Findings that a tree has already: a file that lets a guard be adopted today.

The file is sorted and holds nothing that changes by itself, so that its history in
version control reads as a history of the findings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from vlmend.cli.errors import UserError
from vlmend.cli.files import write_file
from vlmend.codemods.codemod import Finding, Status
from vlmend.codemods.suppressions import SUPPRESSIBLE

SCHEMA_VERSION: Final = 1
KIND: Final = "vlmend baseline"


def write_baseline(path: Path, findings: Iterable[Finding]) -> int:
    """Write the findings that are defects or suspicions; return how many.

    Raises:
        UserError: the file cannot be written.
    """
    entries = sorted(
        (
            {
                "fingerprint": finding.fingerprint,
                "codemod": finding.codemod,
                "class": finding.key,
                "status": finding.status.value,
            }
            for finding in findings
            if finding.status in SUPPRESSIBLE
        ),
        key=lambda entry: (entry["class"], entry["codemod"], entry["fingerprint"]),
    )
    document = {"kind": KIND, "schema_version": SCHEMA_VERSION, "findings": entries}
    write_file(path, (json.dumps(document, indent=2) + "\n").encode())
    return len(entries)


def read_baseline(path: Path) -> Mapping[str, Status]:
    """Return the known findings: how bad each was, by fingerprint.

    A report of ``scan --format json`` will do as well.

    Raises:
        UserError: the file cannot be read, or is something else.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read: {error.strerror or error}",
            hint=f"vlmend scan --write-baseline {path} writes one",
        ) from error
    return parse_baseline(str(path), content)


def parse_baseline(place: str, content: bytes) -> Mapping[str, Status]:
    """Return what a baseline, or a report, says; see :func:`read_baseline`.

    Raises:
        UserError: it is something else.
    """
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: is no baseline: {error}") from None
    if not isinstance(document, dict):
        raise UserError(f"{place}: is no baseline: not a JSON object")
    what, ours = _what(place, document)
    version = document.get("schema_version")
    if version != ours:
        raise UserError(
            f"{place}: a {what} of schema version {version!r}; {ours} is read here",
            hint=f"write it again: vlmend scan --write-baseline {place}",
        )
    try:
        return {
            str(entry["fingerprint"]): Status(entry["status"])
            for entry in document["findings"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{place}: a damaged {what}: {error!r}") from None


def _what(place: str, document: Mapping[str, Any]) -> tuple[str, int]:
    if document.get("kind") == KIND:
        return "baseline", SCHEMA_VERSION
    if "target" in document and "findings" in document:
        from vlmend.cli.report.json import SCHEMA_VERSION as REPORT_VERSION

        return "report", REPORT_VERSION
    raise UserError(f"{place}: is neither a baseline nor a report of vlmend scan")
