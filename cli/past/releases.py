"""Releases in sequence: which there are, and what was found in each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from vlmend.cli.errors import UserError
from vlmend.cli.past.lives import Moment, Snapshot
from vlmend.cli.releases import Progress, available_versions
from vlmend.cli.targets import resolve_target
from vlmend.codemods.engine import Session

if TYPE_CHECKING:
    from vlmend.codemods import FactsCache
    from vlmend.codemods.codemod import Codemod

_SPECIFIER: Final = re.compile(r"\s*(?:vllm)?\s*(?P<rest>[<>=!~].*)?", re.IGNORECASE)


def chosen_versions(text: str) -> list[Version]:
    """Return the final releases that a specifier such as ``vllm>=0.8`` means, sorted.

    Raises:
        UserError: it is no specifier, or no release fits.
    """
    match = _SPECIFIER.fullmatch(text)
    try:
        wanted = SpecifierSet((match["rest"] or "") if match else text)
    except InvalidSpecifier:
        match = None
        wanted = SpecifierSet()
    if match is None:
        raise UserError(
            f"--releases {text}: not a range of releases",
            hint="write it as for pip: 'vllm>=0.8,<0.30'",
        )
    known = available_versions()
    chosen = sorted(v for v in known if v in wanted and not v.is_prerelease)
    if not chosen:
        newest = f"the newest is {max(known)}" if known else None
        raise UserError(f"--releases {text}: no release fits", hint=newest)
    return chosen


def release_snapshots(
    versions: Sequence[Version],
    codemods: Sequence[Codemod],
    cache: FactsCache,
    progress: Progress,
    on_missing: Callable[[UserError], None],
) -> Iterator[Snapshot]:
    """Judge one release after the other.

    A release that cannot be had is told to ``on_missing`` and left out.
    """
    dates = release_dates()
    for at, version in enumerate(versions):
        try:
            target = resolve_target(f"vllm=={version}", progress=progress)
        except UserError as error:
            on_missing(error)
            continue
        with target:
            progress(f"judging vllm {version}", at, len(versions))
            session = Session(target.tree, codemods=codemods, cache=cache)
            result = session.run()
            yield Snapshot(
                Moment(str(version), dates.get(str(version), "")),
                result.findings,
                frozenset(model.class_name for model in result.models),
            )


def release_dates() -> dict[str, str]:
    """Return when releases came out, as their archives say."""
    text = files("vlmend.cli.past").joinpath("dates.json").read_text("utf-8")
    loaded = json.loads(text)
    assert isinstance(loaded, dict)
    return loaded
