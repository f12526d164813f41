"""A history for people, for tools, and as a page that can be checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Final

from vlmend.cli.console import printable
from vlmend.cli.past.lives import Life, Moment, Snapshot
from vlmend.cli.report.markdown import escaped
from vlmend.cli.report.words import faint, strong, wrapped
from vlmend.cli.version import version

SCHEMA_VERSION: Final = 1


def text(
    snapshots: Sequence[Snapshot], lives: Sequence[Life], width: int
) -> Iterator[str]:
    """Yield one block for each life, a strip of the states beside it."""
    if not snapshots:
        yield "No state was read."
        return
    moments = [s.moment for s in snapshots]
    yield (
        f"{len(snapshots)} states, {described(moments[0])} to {described(moments[-1])};"
        f" {len(lives)} findings came, {sum(x.gone is not None for x in lives)} went"
    )
    for life in lives:
        yield ""
        yield f"{strong(printable(life.class_name))}  {faint(life.codemod)}"
        yield f"  {strip(life, len(snapshots))}"
        yield wrapped(f"came with {came(life, moments)}", width, "  ", "    ")
        yield wrapped(went(life, moments), width, "  ", "    ")


def strip(life: Life, states: int) -> str:
    """Return the states as a row of marks: ``#`` where the finding is there."""
    return "".join("#" if at in life.seen else "." for at in range(states))


def described(moment: Moment) -> str:
    """Name a state, with its date and pull request where they are known."""
    parts = [moment.name]
    if moment.date:
        parts.append(moment.date)
    if moment.pull:
        parts.append(f"#{moment.pull}")
    return parts[0] + (f" ({', '.join(parts[1:])})" if parts[1:] else "")


def came(life: Life, moments: Sequence[Moment]) -> str:
    """Say when a finding came, and where it stood."""
    moment = moments[life.seen[0]]
    at = f"{life.first.file}:{life.first.line}"
    before = " or before" if life.seen[0] == 0 else ""
    subject = f": {moment.subject}" if moment.subject else ""
    return printable(f"{described(moment)}{before}, {at}, {life.first.status}{subject}")


def went(life: Life, moments: Sequence[Moment]) -> str:
    """Say when a finding went, why, and how long it lived."""
    if life.gone is None:
        return f"still there in {described(moments[-1])}{_lived(life, moments)}"
    moment = moments[life.gone]
    subject = f": {moment.subject}" if moment.subject else ""
    return printable(
        f"gone with {described(moment)}, {life.end}{_lived(life, moments)}{subject}"
    )


def _lived(life: Life, moments: Sequence[Moment]) -> str:
    days = age(life, moments)
    span = f"{len(life.seen)} states" if len(life.seen) != 1 else "1 state"
    return f"; lived for {span}" + (f", {days} days" if days is not None else "")


def age(life: Life, moments: Sequence[Moment]) -> int | None:
    """Return the days from the coming to the going, or to the last state."""
    last = moments[-1 if life.gone is None else life.gone]
    first = moments[life.seen[0]]
    if not first.date or not last.date:
        return None
    return (date.fromisoformat(last.date) - date.fromisoformat(first.date)).days


def document(snapshots: Sequence[Snapshot], lives: Sequence[Life]) -> dict[str, Any]:
    """Return the document of ``history --format json``."""
    moments = [s.moment for s in snapshots]
    return {
        "schema_version": SCHEMA_VERSION,
        "vlmend": version(),
        "states": [_moment(moment) for moment in moments],
        "lives": [
            {
                "codemod": life.codemod,
                "class": life.class_name,
                "fingerprint": life.last.fingerprint,
                "present": [moments[at].name for at in life.seen],
                "came": _moment(moments[life.seen[0]])
                | {"file": life.first.file, "line": life.first.line},
                "went": None
                if life.gone is None
                else _moment(moments[life.gone]) | {"end": life.end},
                "statuses": [str(f.status) for f in life.findings],
                "days": age(life, moments),
            }
            for life in lives
        ],
    }


def _moment(moment: Moment) -> dict[str, Any]:
    return {
        "name": moment.name,
        "date": moment.date or None,
        "commit": moment.commit or None,
        "subject": moment.subject or None,
        "pull": moment.pull,
    }


def markdown(snapshots: Sequence[Snapshot], lives: Sequence[Life]) -> Iterator[str]:
    """Yield a table with one row for each life."""
    moments = [s.moment for s in snapshots]
    yield "| class | codemod | came | last seen | went | days |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for life in lives:
        first, last = moments[life.seen[0]], moments[life.seen[-1]]
        gone = "still there"
        if life.gone is not None:
            gone = f"{described(moments[life.gone])}: {life.end}"
        days = age(life, moments)
        cells = (
            f"**{escaped(life.class_name)}**",
            f"`{life.codemod}`",
            f"{first.name} {escaped(f'{life.first.file}:{life.first.line}')}",
            f"{last.name} {escaped(f'{life.last.file}:{life.last.line}')}",
            escaped(gone),
            "" if days is None else str(days),
        )
        yield f"| {' | '.join(cells)} |"
