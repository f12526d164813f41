"""The text that a draft would have, from a tree alone: no forge is asked anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vlmend.cli.drafts.around import surroundings
from vlmend.cli.drafts.change import Change
from vlmend.cli.drafts.scopes import group
from vlmend.cli.drafts.shapes import shape_of
from vlmend.cli.drafts.text import Subject, Texts
from vlmend.cli.forge.duplicates import Search, Searched
from vlmend.cli.forge.places import server_at
from vlmend.cli.forge_options import UPSTREAM
from vlmend.codemods.analysis.tree import TreeError

if TYPE_CHECKING:
    from vlmend.cli.drafts.scopes import GroupBy
    from vlmend.cli.judge import Judged
    from vlmend.cli.past.since import Knows
    from vlmend.cli.targets import Target
    from vlmend.codemods.codemod import Finding

NOT_SEARCHED: Final = Searched(
    searches=(
        Search(
            "pull requests and issues of upstream",
            None,
            "not done: this text was made without GitHub",
        ),
    )
)


def texts_of(
    judged: Judged,
    findings: Sequence[Finding],
    by: GroupBy,
    texts: Texts,
    knows: Knows,
) -> Iterator[tuple[str, str]]:
    """Yield title and text of each pull request that these findings would become."""
    for (codemod, scope), members in group(findings, by).items():
        patches = judged.patches(members)
        if not patches:
            continue
        change = Change(codemod, scope, tuple(patches))
        web, repository, base = _named(judged.target)
        subject = Subject(
            change=change,
            around=surroundings(change, judged.result),
            searched=NOT_SEARCHED,
            web=web,
            repository=repository,
            base=base,
            shape=shape_of(lambda path: _read(judged.target, path)),
            knows=knows,
            target=judged.target.spec,
        )
        yield texts.title(change), texts.body(subject)


def _named(target: Target) -> tuple[str, str, str]:
    """Return the pages, repository and ref that lines can be linked at, if known.

    A commit of a local clone may be nowhere else: nothing is linked then.
    """
    if target.kind == "release" and target.version:
        return "https://github.com", UPSTREAM, f"v{target.version}"
    name, at, _ = target.spec.partition("@")
    if at and target.revision and name.count("/") == 1 and not Path(name).exists():
        return server_at(None).web, name, target.revision
    return "", "", ""


def _read(target: Target, path: str) -> bytes | None:
    try:
        return target.tree.read(path)
    except TreeError:
        return None
