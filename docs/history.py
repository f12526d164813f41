"""Write ``docs/history.md`` and its picture: all releases, judged by this vlmend.

``python docs/history.py`` reads every final release from 0.8.5 to 0.33.0 (each is
fetched once and kept) and writes three files: the page, ``history.svg``, and
``cli/past/since.json``, from which ``vlmend explain`` says since when a defect stands.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from packaging.version import Version

from vlmend.cli.cache import FactsStore
from vlmend.cli.past.lives import Life, Moment, Snapshot, lives_of
from vlmend.cli.past.releases import chosen_versions, release_snapshots
from vlmend.cli.past.telling import age, described, markdown
from vlmend.cli.past.timeline import timeline
from vlmend.cli.releases import silent
from vlmend.codemods import Status, all_codemods

HERE = Path(__file__).resolve().parent
RANGE = "vllm>=0.8.5,<=0.33.0"
NOTICE = "<!-- Written by docs/history.py; run it again instead of editing. -->\n"


def known_fixes() -> list[dict[str, Any]]:
    """Return the upstream fixes that are known from outside this tool."""
    text = files("vlmend.cli.past").joinpath("known.json").read_text("utf-8")
    loaded = json.loads(text)
    assert isinstance(loaded, list)
    return loaded


def life_of(fix: dict[str, Any], lives: Sequence[Life]) -> Life | None:
    """Return the life that a known fix ended, if it was seen."""
    return next(
        (
            life
            for life in lives
            if (life.codemod, life.class_name) == (fix["codemod"], fix["class"])
        ),
        None,
    )


def recall(moments: Sequence[Moment], lives: Sequence[Life]) -> Iterator[str]:
    """Yield a row for each known fix: was it seen, and when could it have been?"""
    yield (
        "| upstream fix | class | in release | seen from | last seen | gone in |"
        " releases early | days early |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    found = 0
    fixes = known_fixes()
    for fix in fixes:
        life = life_of(fix, lives)
        name = f"`{fix['class']}`"
        if life is None or life.gone is None:
            state = "not seen" if life is None else "still seen"
            yield f"| #{fix['pr']} | {name} | {fix['fixed_in']} | {state} | | | | |"
            continue
        exact = moments[life.gone].name == fix["fixed_in"]
        found += exact
        first, last = moments[life.seen[0]], moments[life.seen[-1]]
        days = age(life, moments)
        cells = (
            f"#{fix['pr']}",
            name,
            fix["fixed_in"],
            f"{first.name}, {life.first.file}:{life.first.line} ({life.first.status})",
            f"{last.name}, {life.last.file}:{life.last.line}",
            f"{moments[life.gone].name}, {life.end}",
            str(life.gone - life.seen[0]),
            "" if days is None else str(days),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield f"Recall: {found} of {len(fixes)} end in the release that fixed them."


def precision(lives: Sequence[Life]) -> Iterator[str]:
    """Yield how the findings that were called fixable have ended."""
    sure = [x for x in lives if any(f.status is Status.FIXABLE for f in x.findings)]
    healed = [x for x in sure if x.healed]
    removed = [x for x in sure if x.end == "the class is gone"]
    still = [x for x in sure if x.gone is None]
    other = len(sure) - len(healed) - len(removed) - len(still)
    judged = len(healed) + other
    yield (
        f"Precision: of {len(sure)} findings that were ever called fixable,"
        f" {len(healed)} ended because upstream came to keep the contract,"
        f" {len(removed)} because the class was removed, {other} otherwise, and"
        f" {len(still)} are still there. Of those that upstream has decided by"
        f" changing the class, {len(healed)} of {judged} went our way."
    )


def page(snapshots: Sequence[Snapshot], lives: Sequence[Life]) -> str:
    """Return the whole page."""
    moments = [s.moment for s in snapshots]
    parts = [
        NOTICE,
        "# Findings by release\n",
        (
            f"{len(moments)} releases, {described(moments[0])} to"
            f" {described(moments[-1])}, judged by the contracts that each tree"
            " holds itself. Every cell can be checked: `vlmend explain CLASS"
            " vllm==RELEASE` shows the proof for the named line.\n"
        ),
        "![Findings by release](history.svg)\n",
        "## Against the upstream fixes that are known\n",
        *(f"{line}" for line in recall(moments, lives)),
        "",
        *precision(lives),
        "",
        (
            '"Days early" is how long before the fixing release a scheduled run'
            " could have opened a draft: from the first release that has the defect.\n"
        ),
        "## All findings\n",
        *markdown(snapshots, lives),
    ]
    return "\n".join(parts) + "\n"


def since(moments: Sequence[Moment], lives: Sequence[Life]) -> dict[str, Any]:
    """Return by fingerprint when a life began, and when it ended."""
    found: dict[str, Any] = {}
    for life in lives:
        first = moments[life.seen[0]]
        for finding in life.findings:
            found[finding.fingerprint] = {
                "since": first.name,
                "date": first.date,
                "earlier": life.seen[0] == 0,
                "gone": None if life.gone is None else moments[life.gone].name,
            }
    return dict(sorted(found.items()))


def main() -> int:
    """Judge all releases and write the three files."""
    left_out: list[str] = []
    with FactsStore() as cache:

        def report(stage: str, done: int, total: int | None) -> None:
            if stage.startswith("judging"):
                sys.stderr.write(f"{stage} ({done + 1} of {total})\n")

        versions: list[Version] = chosen_versions(RANGE)
        snapshots = list(
            release_snapshots(
                versions,
                all_codemods(),
                cache,
                report if sys.stderr.isatty() else silent,
                lambda error: left_out.append(error.message),
            )
        )
    lives = lives_of(snapshots)
    text = page(snapshots, lives)
    if left_out:
        text += "\nLeft out: " + "; ".join(left_out) + ".\n"
    moments = [s.moment for s in snapshots]
    (HERE / "history.md").write_text(text, "utf-8")
    (HERE / "history.svg").write_text(timeline(snapshots, lives) + "\n", "utf-8")
    (HERE.parent / "cli" / "past" / "since.json").write_text(
        json.dumps(since(moments, lives), indent=1) + "\n", "utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
