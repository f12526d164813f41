"""A picture of a history: one row for each finding, one column for each state."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from vlmend.cli.past.lives import Life, Moment, Snapshot
from vlmend.codemods.codemod import Status

ROW = 22
COLUMN = 26
LABEL = 330
HEAD = 70
COLOURS = {
    Status.FIXABLE: "#b42318",
    Status.REVIEW: "#b25e09",
    Status.BLOCKED: "#6941c6",
}


def timeline(snapshots: Sequence[Snapshot], lives: Sequence[Life]) -> str:
    """Return the SVG; it needs no script, no font and nothing from elsewhere."""
    from jinja2 import Environment, StrictUndefined

    text = files("vlmend.templates").joinpath("timeline.svg.j2").read_text("utf-8")
    template = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(text)
    moments = [snapshot.moment for snapshot in snapshots]
    return template.render(
        width=LABEL + COLUMN * len(moments) + 20,
        height=HEAD + ROW * len(lives) + 40,
        label=LABEL,
        head=HEAD,
        row=ROW,
        columns=[
            {"x": LABEL + COLUMN * at, "name": moment.name}
            for at, moment in enumerate(moments)
        ],
        rows=[
            {
                "y": HEAD + ROW * at,
                "name": life.class_name,
                "codemod": life.codemod,
                "bars": [_bar(life, index, moments) for index in range(len(life.seen))],
            }
            for at, life in enumerate(lives)
        ],
        column=COLUMN,
        legend=[
            {"x": LABEL + 90 * at, "colour": colour, "name": str(status)}
            for at, (status, colour) in enumerate(COLOURS.items())
        ],
    )


def _bar(life: Life, index: int, moments: Sequence[Moment]) -> dict[str, object]:
    at, finding = life.seen[index], life.findings[index]
    return {
        "x": LABEL + COLUMN * at,
        "colour": COLOURS[finding.status],
        "title": f"{moments[at].name}: {finding.status}, {finding.file}:{finding.line}",
    }
