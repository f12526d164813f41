"""``# vlmend: ignore[codemod-id] reason`` on the line of a class."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.codemod import Finding, Status

_COMMENT = re.compile(r"#\s*vlmend:\s*ignore\[([\w\-, ]+)\]\s*(.*)$")
_SUPPRESSIBLE = (Status.FIXABLE, Status.REVIEW, Status.BLOCKED, Status.UNPROVEN)


def suppress(index: ModelIndex, findings: Iterable[Finding]) -> list[Finding]:
    """Mark the findings that the tree's authors asked not to see."""
    return [_judged(index, finding) for finding in findings]


def _judged(index: ModelIndex, finding: Finding) -> Finding:
    if finding.status not in _SUPPRESSIBLE:
        return finding
    module = index.module(finding.module)
    if module is None:
        return finding
    line = index.lines(module)[finding.class_line - 1]
    found = _COMMENT.search(line)
    if found is None or finding.codemod not in re.split(r"[,\s]+", found.group(1)):
        return finding
    reason = found.group(2).strip() or "no reason given"
    message = f"Suppressed where {finding.class_name} is declared: {reason}."
    return finding.with_status(Status.SUPPRESSED, message)
