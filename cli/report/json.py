"""The JSON documents, exactly as their schemas beside this module describe them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from vlmend.cli.version import version
from vlmend.codemods.codemod import Evidence, Finding, ScanError, Status

if TYPE_CHECKING:
    from vlmend.cli.changed import Change
    from vlmend.cli.guard import Guard
    from vlmend.cli.judge import Judged
    from vlmend.cli.report.coverage import Cell, Changes, Coverage
    from vlmend.cli.targets import Target

SCHEMA_VERSION = 1
MODELS_SCHEMA_VERSION = 1

Json = dict[str, Any]


def schema(name: str) -> Json:
    """Return the JSON Schema of the ``scan`` or the ``models`` document."""
    text = files("vlmend.cli.report").joinpath(f"{name}.schema.json").read_text("utf-8")
    document = json.loads(text)
    assert isinstance(document, dict)
    return document


def dumped(document: Json) -> str:
    """Return the document as text that any terminal and any encoding can carry."""
    return json.dumps(document, indent=2)


def scan_document(
    judged: Judged, shown: Sequence[Finding], guard: Guard | None = None
) -> Json:
    """Return the document of ``scan --format json`` and ``preview --format json``."""
    selection = guard.selection if guard is not None else judged.selection
    findings = [
        _finding(finding, judged.diff(finding), new=not selection.is_known(finding))
        for finding in shown
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "vlmend": version(),
        "target": _target(judged.target),
        "contract": {
            note.name: {
                "statement": note.statement,
                "evidence": [_evidence(link) for link in note.evidence],
            }
            for note in judged.result.contract
        },
        "findings": findings,
        "changed": _changed(guard.compared.change, selection.touched)
        if guard is not None and guard.compared is not None
        else None,
        "unused_suppressions": [
            {
                "file": one.file,
                "line": one.line or None,
                "codemod": one.codemod,
                "reason": one.reason,
            }
            for one in judged.unused
        ],
        "errors": _errors(judged.errors),
        "summary": {
            "by_status": _by_status(f.status for f in shown),
            "by_codemod": {
                codemod.id: sum(f.codemod == codemod.id for f in shown)
                for codemod in judged.codemods
            },
        },
    }


def models_document(
    judged: Judged, coverage: Coverage, changes: Changes | None, against: Target | None
) -> Json:
    """Return the document of ``models --format json``."""
    return {
        "schema_version": MODELS_SCHEMA_VERSION,
        "vlmend": version(),
        "target": _target(judged.target),
        "models": [
            {
                "module": row.model.module,
                "class": row.model.class_name,
                "file": row.model.file,
                "line": row.model.line,
                "architectures": list(row.model.architectures),
                "multimodal": row.model.multimodal,
                "pipeline_parallel": row.model.pipeline_parallel,
                "contracts": {
                    codemod: _cell(cell)
                    for codemod, cell in zip(coverage.codemods, row.cells, strict=True)
                },
            }
            for row in coverage.rows
        ],
        "errors": _errors(judged.errors),
        "summary": {
            "models": len(coverage.rows),
            "by_contract": {
                codemod: coverage.counts(codemod) for codemod in coverage.codemods
            },
        },
        "changes": None
        if changes is None or against is None
        else {
            "against": _target(against),
            "added": [model.key for model in changes.added],
            "removed": [model.key for model in changes.removed],
            "moved": [
                {"from": before.key, "to": after.key} for before, after in changes.moved
            ],
            "changed": [
                {
                    "class": change.model.key,
                    "codemod": change.codemod,
                    "before": change.before.label,
                    "after": change.after.label,
                }
                for change in changes.changed
            ],
        },
    }


def _changed(change: Change, touched: frozenset[str] | None) -> Json:
    return {
        "base": change.base,
        "commit": change.commit,
        "files": sorted(change.files),
        "classes": sorted(touched or ()),
    }


def _target(target: Target) -> Json:
    return {"spec": target.spec, "kind": target.kind, "version": target.version}


def _finding(finding: Finding, diff: str | None, *, new: bool) -> Json:
    return {
        "fingerprint": finding.fingerprint,
        "codemod": finding.codemod,
        "module": finding.module,
        "class": finding.class_name,
        "file": finding.file,
        "line": finding.line,
        "status": finding.status.value,
        "new": new,
        "message": finding.message,
        "evidence": [_evidence(link) for link in finding.evidence],
        "heirs": list(finding.heirs),
        "diff": diff,
    }


def _evidence(link: Evidence) -> Json:
    return {
        "source": link.source.value,
        "file": link.file,
        "line": link.line,
        "statement": link.statement,
    }


def _errors(errors: Iterable[ScanError]) -> list[Json]:
    return [{"file": error.file, "message": error.message} for error in errors]


def _by_status(statuses: Iterable[Status]) -> dict[str, int]:
    counts = Counter(statuses)
    return {status.value: counts[status] for status in Status if counts[status]}


def _cell(cell: Cell) -> Json | None:
    if cell.status is None:
        return None
    return {
        "status": cell.status.value,
        "line": cell.line,
        "message": cell.message,
        "through": cell.through,
    }
