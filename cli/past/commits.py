"""Commits in sequence: only those that touch the files a finding rests on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vlmend.cli.errors import UserError
from vlmend.cli.git_tree import GitTree, open_repository, resolve_revision
from vlmend.cli.past.lives import DEFECTS, Moment, Snapshot
from vlmend.codemods.codemod import Source
from vlmend.codemods.engine import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from git import Repo

    from vlmend.cli.releases import Progress
    from vlmend.codemods import FactsCache
    from vlmend.codemods.codemod import Codemod, Finding, ScanResult

_PULL: Final = re.compile(r"\(#(\d+)\)\s*$")
MODEL_FOLDERS: Final = ("vllm/model_executor/models", "vllm/models")


def commit_snapshots(
    place: Path,
    revisions: str,
    codemods: Sequence[Codemod],
    cache: FactsCache,
    progress: Progress,
    concerns: Callable[[Finding], bool],
) -> Iterator[Snapshot]:
    """Judge the commits of a range that touch what the findings in question rest on.

    Args:
        place: the clone.
        revisions: ``REV..REV``, ``REV`` for all that leads to it, or nothing for HEAD.
        codemods: what to judge by.
        cache: keeps facts between commits.
        progress: told about each commit.
        concerns: which findings are asked about.

    Raises:
        UserError: there is no such range.
    """
    with open_repository(place) as repo:
        start, end = _ends(repo, revisions)
        folder = Path(repo.working_tree_dir or repo.git_dir)

        def judge(commit: str) -> ScanResult:
            tree = GitTree(folder, commit, "")
            try:
                return Session(tree, codemods=codemods, cache=cache).run()
            finally:
                tree.close()

        edge = [judge(rev) for rev in (start, end) if rev]
        involved = _involved(edge, concerns)
        commits = commits_of(repo, start, end, involved)
        for at, commit in enumerate(commits):
            progress(f"judging {commit[:10]}", at, len(commits))
            result = judge(commit)
            yield Snapshot(
                moment_of(repo, commit),
                result.findings,
                frozenset(model.class_name for model in result.models),
            )


def _ends(repo: Repo, revisions: str) -> tuple[str | None, str]:
    first, dots, last = revisions.partition("..")
    if not dots:
        return None, resolve_revision(repo, first or "HEAD")
    if last.startswith("."):
        raise UserError(
            f"--git {revisions}: a range is written REV..REV, with two dots"
        )
    return (
        resolve_revision(repo, first) if first else None,
        resolve_revision(repo, last or "HEAD"),
    )


def _involved(
    results: Sequence[ScanResult], concerns: Callable[[Finding], bool]
) -> tuple[str, ...]:
    """Return the files that the findings in question rest on.

    A defect that came and went inside the range is in neither of its ends; the file of
    the class that keeps the contract by then is.
    """
    files: dict[str, None] = {}
    for result in results:
        for finding in result.findings:
            if not concerns(finding):
                continue
            files[finding.file] = None
            if finding.status in DEFECTS:
                files |= dict.fromkeys(
                    link.file for link in finding.evidence if link.source is Source.TREE
                )
    return tuple(files)


def commits_of(
    repo: Repo, start: str | None, end: str, files: Sequence[str]
) -> list[str]:
    """List the commits, oldest first, from the start of the range itself."""
    # A file that was renamed is looked for under its older names, too.
    names = dict.fromkeys(files)
    for file in files:
        names |= dict.fromkeys(_older_names(repo, end, file))
    span = f"{start}..{end}" if start else end
    listed = repo.git.log(
        "--format=%H", "--reverse", "--topo-order", span, "--", *names
    )
    commits = [line for line in listed.splitlines() if line]
    return [*([start] if start else []), *commits]


def _older_names(repo: Repo, end: str, file: str) -> Iterator[str]:
    listed = repo.git.log("--follow", "--name-only", "--format=", "-M", end, "--", file)
    yield from (line for line in listed.splitlines() if line)


def moment_of(repo: Repo, commit: str) -> Moment:
    """Return a commit with its date, and the pull request that its subject names."""
    found = repo.commit(commit)
    subject = str(found.summary)
    pull = _PULL.search(subject)
    return Moment(
        name=commit[:10],
        date=found.committed_datetime.date().isoformat(),
        commit=commit,
        subject=subject,
        pull=int(pull[1]) if pull else None,
    )
