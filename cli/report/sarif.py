"""SARIF 2.1.0: what code scanning services and editors read."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.report.locations import as_uri, below_workspace
from vlmend.cli.version import version
from vlmend.codemods.codemod import Codemod, Evidence, Finding, Source, Status

if TYPE_CHECKING:
    from vlmend.cli.guard import Guard
    from vlmend.cli.judge import Judged
    from vlmend.codemods.engine import FilePatch

Json = dict[str, Any]

FINGERPRINT: Final = "vlmend/v1"
"""The name of our fingerprint among those of a result."""

_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
    "sarif-schema-2.1.0.json"
)
_ROOTS: Final = {
    Source.TREE: "SRCROOT",
    Source.BASE: "VLLM",
    Source.TRANSFORMERS: "TRANSFORMERS",
}
_LEVELS: Final = {
    Status.FIXABLE: ("fail", "error"),
    Status.BLOCKED: ("fail", "error"),
    Status.REVIEW: ("fail", "warning"),
    Status.UNPROVEN: ("fail", "note"),
    Status.SATISFIED: ("pass", "none"),
    Status.EXEMPT: ("notApplicable", "none"),
}


def sarif_document(
    judged: Judged, shown: Sequence[Finding], guard: Guard | None = None
) -> Json:
    """Return the log of one run.

    Suppressed findings are part of it, marked as such: a service that is told of them
    does not take them for mended.
    """
    selection = guard.selection if guard is not None else judged.selection
    listed = set(map(id, shown))
    results = [
        finding
        for finding in judged.result.findings
        if id(finding) in listed
        or (finding.status is Status.SUPPRESSED and selection.concerns(finding))
    ]
    rules = {codemod.id: n for n, codemod in enumerate(judged.codemods)}
    run: Json = {
        "tool": {
            "driver": {
                "name": "vlmend",
                "version": version(),
                "semanticVersion": version(),
                "rules": [_rule(codemod) for codemod in judged.codemods],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            name: {"description": {"text": text}}
            for name, text in (
                ("SRCROOT", "The root of the checkout."),
                ("VLLM", "The vLLM tree that a plugin is judged against."),
                ("TRANSFORMERS", "The source of a Transformers release."),
            )
        },
        "results": [
            _result(judged, finding, rules[finding.codemod]) for finding in results
        ],
        "invocations": [_invocation(judged)],
    }
    if guard is not None and selection.known:
        for finding, result in zip(results, run["results"], strict=True):
            known = selection.is_known(finding)
            result["baselineState"] = "unchanged" if known else "new"
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(codemod: Codemod) -> Json:
    markdown = (inspect.getdoc(type(codemod)) or codemod.summary).strip()
    return {
        "id": codemod.id,
        "shortDescription": {"text": codemod.summary},
        "fullDescription": {"text": markdown.partition("\n\n")[0]},
        "help": {"text": markdown, "markdown": markdown},
        "defaultConfiguration": {"level": "error"},
    }


def _result(judged: Judged, finding: Finding, rule: int) -> Json:
    was = finding.suppression
    status = was.status if was is not None else finding.status
    kind, level = _LEVELS[status]
    result: Json = {
        "ruleId": finding.codemod,
        "ruleIndex": rule,
        "kind": kind,
        "level": level,
        "message": {"text": was.message if was is not None else finding.message},
        "locations": [_location(judged, finding)],
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
        "properties": {"status": status.value, "heirs": list(finding.heirs)},
    }
    related = [
        _related(judged, number, link)
        for number, link in enumerate(finding.evidence, start=1)
    ]
    if related:
        result["relatedLocations"] = related
    if was is not None:
        by_comment = was.place == "comment"
        result["suppressions"] = [
            {
                "kind": "inSource" if by_comment else "external",
                "status": "accepted",
                "justification": was.reason or "no reason given",
            }
        ]
    elif finding.edits:
        patches = judged.patches([finding])
        if patches:
            result["fixes"] = [_fix(judged, finding, patches)]
    return result


def _location(judged: Judged, finding: Finding) -> Json:
    return {
        "physicalLocation": _physical(
            judged, finding.source, finding.file, finding.line
        ),
        "logicalLocations": [
            {
                "name": finding.class_name,
                "fullyQualifiedName": f"{finding.module}.{finding.class_name}",
                "kind": "type",
            }
        ],
    }


def _related(judged: Judged, number: int, link: Evidence) -> Json:
    return {
        "id": number,
        "physicalLocation": _physical(judged, link.source, link.file, link.line),
        "message": {"text": link.statement},
    }


def _physical(judged: Judged, source: Source, file: str, line: int) -> Json:
    return {
        "artifactLocation": _artifact(judged, source, file),
        "region": {"startLine": line},
    }


def _artifact(judged: Judged, source: Source, file: str) -> Json:
    path = below_workspace(judged.target, file) if source is Source.TREE else file
    return {"uri": as_uri(path), "uriBaseId": _ROOTS[source]}


def _fix(judged: Judged, finding: Finding, patches: Iterable[FilePatch]) -> Json:
    return {
        "description": {"text": f"mend {finding.class_name}: {finding.codemod}"},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(judged, Source.TREE, patch.file),
                "replacements": list(_replacements(patch.before, patch.after)),
            }
            for patch in patches
        ],
    }


def _replacements(before: bytes, after: bytes) -> Iterator[Json]:
    """Yield the changed lines, whole; a region ends where the next line begins."""
    old, new = map(_lines, (before, after))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        region = {
            "startLine": start + 1,
            "startColumn": 1,
            "endLine": end + 1,
            "endColumn": 1,
        }
        replacement: Json = {"deletedRegion": region}
        if first != last:
            replacement["insertedContent"] = {"text": "".join(new[first:last])}
        yield replacement


def _lines(content: bytes) -> list[str]:
    return re.split(r"(?<=\n)", content.decode("utf-8", "replace"))


def _invocation(judged: Judged) -> Json:
    notes = [
        {"level": "error", "message": {"text": _told(error.file, error.message)}}
        for error in judged.errors
    ]
    notes += [
        {
            "level": "warning",
            "message": {
                "text": _told(one.file, f"unused suppression: {one.reason}", one.line)
            },
        }
        for one in judged.unused
    ]
    invocation: Json = {"executionSuccessful": not judged.errors}
    if notes:
        invocation["toolExecutionNotifications"] = notes
    return invocation


def _told(file: str, message: str, line: int = 0) -> str:
    where = f"{file}:{line}" if line else file
    return f"{where}: {message}" if where else message
