"""Which commit made a finding go away, found in the history of its file."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from vlmend.cli.drafts.escape import Markdown, code, flat, link, plain, prose
from vlmend.cli.drafts.ground import Ground, judged_at
from vlmend.cli.forge.pulls import Draft
from vlmend.codemods.codemod import Finding, ScanResult, Status

DEFECTS: Final = (Status.FIXABLE, Status.REVIEW, Status.BLOCKED, Status.UNPROVEN)
_NUMBER: Final = re.compile(r"\(#(\d+)\)\s*$|^Merge pull request #(\d+)\b")
_MAX_STEPS: Final = 12


@dataclass(frozen=True, slots=True)
class Fixed:
    """Why one finding is gone.

    Attributes:
        commit: the commit that did it; None where history does not tell.
        subject: its first line.
    """

    finding: Finding
    commit: str | None
    subject: str = ""

    @property
    def number(self) -> str:
        """The pull request that the commit's own words name, or nothing."""
        found = _NUMBER.search(self.subject)
        return "" if found is None else found[1] or found[2]


def defects(result: ScanResult) -> dict[str, Finding]:
    """Return what is wrong, by fingerprint."""
    return {f.fingerprint: f for f in result.findings if f.status in DEFECTS}


def is_gone(fingerprints: Collection[str], result: ScanResult) -> bool:
    """Say whether nothing of a draft is left to mend."""
    return bool(fingerprints) and not set(fingerprints) & set(defects(result))


def explain(
    ground: Ground, parent: str, fingerprints: Sequence[str], codemods: Sequence[str]
) -> list[Fixed]:
    """Return, for findings that are gone from the base, what mended each.

    Args:
        ground: the fork.
        parent: the commit at which they were found.
        fingerprints: which.
        codemods: whose findings they are.
    """
    workspace = ground.workspace
    with judged_at(workspace, "fork", parent, "the draft's base", codemods) as judged:
        known = {f.fingerprint: f for f in judged.result.findings}
    found: list[Fixed] = []
    for one in fingerprints:
        finding = known.get(one)
        if finding is None:
            continue
        # Where branches were merged, the merge is what brought the fix to the base.
        listed = workspace.git.run(
            "log",
            "--first-parent",
            "--reverse",
            "--format=%H",
            f"{parent}..{ground.commit}",
            "--",
            finding.file,
        ).split()
        commit = _first_without(ground, listed, one, codemods)
        subject = ""
        if commit is not None:
            subject = workspace.git.run("log", "-1", "--format=%s", commit).strip()
        found.append(Fixed(finding, commit, subject))
    return found


def _first_without(
    ground: Ground, commits: Sequence[str], fingerprint: str, codemods: Sequence[str]
) -> str | None:
    """Halve the history until one commit is left."""
    low, high = 0, len(commits) - 1
    steps = 0
    while low < high and steps < _MAX_STEPS:
        steps += 1
        middle = (low + high) // 2
        with judged_at(
            ground.workspace, "fork", commits[middle], "history", codemods
        ) as judged:
            gone = fingerprint not in defects(judged.result)
        low, high = (low, middle) if gone else (middle + 1, high)
    return commits[high] if commits else None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a draft is closed: in a line of the report, and in its comment."""

    text: str
    markdown: Markdown


def reasons(ground: Ground, draft: Draft, codemods: Sequence[str]) -> list[Reason]:
    """Return why nothing of a draft is left to mend."""
    parent = ground.workspace.merge_base(draft.head_sha, ground.commit)
    fixed = (
        explain(ground, parent, draft.fingerprints, codemods)
        if parent is not None
        else []
    )
    if not fixed:
        return [_not_found("what it mends", ground)]
    return [_reason(ground, one) for one in fixed]


def _not_found(what: str, ground: Ground) -> Reason:
    words = "is not found any more at"
    commit = ground.commit[:12]
    return Reason(
        f"{what} {words} {commit}", Markdown(f"{prose(what)} {words} {code(commit)}")
    )


def _reason(ground: Ground, fixed: Fixed) -> Reason:
    name = fixed.finding.class_name
    if fixed.commit is None:
        return _not_found(name, ground)
    upstream = ground.workspace.is_ancestor(fixed.commit, ground.upstream_commit)
    pair = ground.pair
    repository = pair.upstream_name if upstream else pair.fork_name
    page = f"{ground.forge.server.web}/{repository}"
    short = fixed.commit[:12]
    text = f"{name}: mended by {short}"
    words = f"{code(name)}: mended by {link(short, f'{page}/commit/{fixed.commit}')}"
    if fixed.number:
        shown = f"{repository}#{fixed.number}"
        text += f", {shown}"
        words += f", {link(shown, f'{page}/pull/{fixed.number}')}"
    markdown = Markdown(f"{words} ({plain(fixed.subject)})")
    return Reason(f"{text} ({flat(fixed.subject)})", markdown)
