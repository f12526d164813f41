"""Which commit brought a finding: searched for in a clone, and kept once known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vlmend.cli.cache import cache_directory, make_private
from vlmend.cli.errors import UserError
from vlmend.cli.files import write_file
from vlmend.cli.git_tree import GitTree, open_repository, resolve_revision
from vlmend.cli.past.commits import commits_of, moment_of
from vlmend.cli.past.lives import DEFECTS, Moment
from vlmend.codemods.engine import Session

if TYPE_CHECKING:
    from vlmend.cli.releases import Progress
    from vlmend.codemods import FactsCache
    from vlmend.codemods.codemod import Codemod, Finding


def came_with(
    place: Path,
    revision: str,
    finding: Finding,
    codemods: Sequence[Codemod],
    cache: FactsCache,
    progress: Progress,
) -> Moment:
    """Return the commit that brought a finding, and keep it for later.

    Of the commits that touch the finding's file, it is one whose predecessor does not
    have the finding and that has it; they are halved until it is found.

    Args:
        place: a folder inside the clone.
        revision: where the finding stands.
        finding: what is asked about.
        codemods: the one that found it.
        cache: keeps facts between commits.
        progress: told about each commit.

    Raises:
        UserError: the clone is shallow, or the finding is not in ``revision``.
    """
    with open_repository(place) as repo:
        if repo.git.rev_parse("--is-shallow-repository") == "true":
            raise UserError(
                f"{place}: is a shallow clone; it does not know what came before",
                hint="git fetch --unshallow",
            )
        end = resolve_revision(repo, revision)
        folder = Path(repo.working_tree_dir or repo.git_dir)

        def has(commit: str) -> bool:
            tree = GitTree(folder, commit, "")
            try:
                found = Session(tree, codemods=codemods, cache=cache).run().findings
            finally:
                tree.close()
            return any(
                (f.codemod, f.class_name) == (finding.codemod, finding.class_name)
                and f.status in DEFECTS
                for f in found
            )

        commits = commits_of(repo, None, end, [finding.file])
        if not commits or not has(commits[-1]):
            raise UserError(
                f"{finding.class_name}: is not found so in {revision}",
                hint="only what is committed has a history",
            )
        sound, broken = -1, len(commits) - 1
        while broken - sound > 1:
            middle = (sound + broken) // 2
            progress(f"judging {commits[middle][:10]}", 0, None)
            if has(commits[middle]):
                broken = middle
            else:
                sound = middle
        moment = moment_of(repo, commits[broken])
    remember([finding.fingerprint], moment)
    return moment


def remember(fingerprints: Sequence[str], moment: Moment) -> None:
    """Keep which commit brought a finding."""
    for fingerprint in fingerprints:
        place = _place(fingerprint)
        make_private(place.parent)
        write_file(place, json.dumps(asdict(moment)).encode())


def remembered(fingerprint: str) -> Moment | None:
    """Return the commit that brought a finding, if that was ever found out here."""
    try:
        return Moment(**json.loads(_place(fingerprint).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _place(fingerprint: str) -> Path:
    return cache_directory() / "arrivals" / f"{fingerprint}.json"
