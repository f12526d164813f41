"""What goes together into one pull request.

One pull request is one coherent thing. A family of two or more gets its own: classes
that one base heals, or one root cause in one model family. What stands alone shares a
pull request with the other loners of its codemod, so that no three-line ones rain down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from vlmend.codemods.codemod import Finding

SINGLES: Final = "singles"
EVERYTHING: Final = "all"
Groups = dict[tuple[str, str], list[Finding]]


class GroupBy(StrEnum):
    """How findings are put together."""

    SCOPE = "scope"
    CLASS = "class"
    CODEMOD = "codemod"


def group(
    findings: Iterable[Finding], by: GroupBy, known: Mapping[str, str] | None = None
) -> Groups:
    """Put findings together; the keys are (codemod, scope), in reading order.

    Args:
        findings: what is to be mended.
        by: how.
        known: fingerprint to scope of drafts that are open already: a finding stays
            where it is, even when the rest of its family has been mended meanwhile.
    """
    listed = list(findings)
    homes = known or {}
    if by is GroupBy.CODEMOD:
        return _collected((f, EVERYTHING) for f in listed)
    if by is GroupBy.CLASS:
        return _collected((f, _class_scope(f)) for f in listed)
    families: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in listed:
        families.setdefault(_family_key(finding), []).append(finding)
    causes: dict[tuple[str, str], int] = {}
    for (codemod, family, _), members in families.items():
        causes[codemod, family] = causes.get((codemod, family), 0) + (len(members) > 1)
    placed: list[tuple[Finding, str]] = []
    for (codemod, family, cause), members in families.items():
        told_apart = causes[codemod, family] > 1
        for finding in members:
            scope = homes.get(finding.fingerprint)
            if scope is None:
                scope = _scope(
                    finding, f"{family}-{cause}" if told_apart else family, members
                )
            placed.append((finding, scope))
    return _collected(placed)


def _scope(finding: Finding, family: str, members: list[Finding]) -> str:
    if len(members) > 1:
        return slug(family)
    if finding.heirs:
        return slug(finding.module.rpartition(".")[2])
    return SINGLES


def _collected(placed: Iterable[tuple[Finding, str]]) -> Groups:
    groups: Groups = {}
    for finding, scope in placed:
        groups.setdefault((finding.codemod, scope), []).append(finding)
    return groups


def _class_scope(finding: Finding) -> str:
    # Vendor copies repeat class names; the module tells them apart.
    return slug(f"{finding.class_name}-{finding.module.rpartition('.')[2]}")


def _family_key(finding: Finding) -> tuple[str, str, str]:
    return (finding.codemod, family_of(finding.module), cause_of(finding.shape))


def family_of(module: str) -> str:
    """Return the model family of a module: ``qwen`` for ``….models.qwen3_vl_moe``."""
    _, _, inside = module.rpartition(".models.")
    stem = (inside or module).split(".")[0]
    first = stem.split("_")[0].casefold()
    name = re.match(r"[a-z]{3,}", first)
    return name[0] if name else first or stem.casefold()


def cause_of(shape: str) -> str:
    """Return the root cause in a shape, which also names attributes and classes."""
    words = re.sub(r"\bself\.[\w.]+|[\"'`][^\"'`]*[\"'`]", "", shape)
    words = re.sub(r"\b\w*[A-Z_]\w*\b|[^A-Za-z ]", " ", words)
    return "-".join(words.split()[:4]).casefold()


def slug(text: str) -> str:
    """Return text that is safe in the name of a branch."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text)
    found = re.sub(r"[^a-z0-9]+", "-", words.casefold()).strip("-")
    return found[:60].strip("-") or "unnamed"
