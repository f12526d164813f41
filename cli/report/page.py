"""The page of ``preview --html``: one file that needs nothing else, not even a network.

What is wrong stands in the page as plain HTML, with its diff and its proof. The proofs
of sound classes, and the lines around each citation, are data that the page's script
lays out when they are asked for: that keeps nine hundred classes light.

Every string in the templates goes through :func:`_shown` and is escaped: names and code
come from the tree, and a tree may be hostile.
"""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.console import printable
from vlmend.cli.report.coverage import HURTS, Cell, Coverage, Row, coverage
from vlmend.cli.report.coverage_text import short_titles
from vlmend.cli.report.excerpts import Excerpts
from vlmend.cli.report.lifelines import lifelines
from vlmend.cli.report.side_by_side import Hunk, hunks
from vlmend.cli.report.story import MEANINGS
from vlmend.cli.report.text import describe
from vlmend.cli.report.words import ELSEWHERE, ORDER, counted
from vlmend.cli.version import version
from vlmend.codemods.codemod import (
    Codemod,
    ContractNote,
    Evidence,
    Finding,
    Source,
    Status,
)

if TYPE_CHECKING:
    from jinja2 import Environment

    from vlmend.cli.judge import Judged
    from vlmend.cli.select import Selection
    from vlmend.codemods.engine import FilePatch

NOT_JUDGED: Final = "none"
"""Stands where a status stands, for a contract that is silent about a class."""

STATUSES: Final = (*(status.value for status in ORDER), NOT_JUDGED)

LONG_PROOF: Final = 14
"""A proof with more links than this folds what follows."""

BAR_WIDTH: Final = 1000
BAR_LEAST: Final = 6


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a proof, as the page shows it; ``file`` is a number in its data."""

    statement: str
    place: str
    file: int
    line: int
    code: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """What a finding would change in one file."""

    file: str
    hunks: Sequence[Hunk]


@dataclass(frozen=True, slots=True)
class Card:
    """A finding that needs a person, told in full."""

    anchor: str
    finding: Finding
    place: str
    meaning: str
    failures: Sequence[str]
    changes: Sequence[Change]
    proof: Sequence[Link]
    command: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar: how many classes have one status."""

    status: str
    count: int
    start: int
    width: int


@dataclass(frozen=True, slots=True)
class Score:
    """How all classes stand to one contract."""

    codemod: Codemod
    segments: Sequence[Segment]
    inherited: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What the tree itself demands: its era, and the lines that show it."""

    note: ContractNote
    proof: Sequence[Link]


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell of the coverage table; ``anchor`` leads to the finding behind it."""

    status: str
    through: str
    anchor: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the coverage table, and the anchors of all that is said about it."""

    row: Row
    cells: Sequence[TableCell]
    anchors: Sequence[str]


def render(
    judged: Judged, selection: Selection, patches: Iterable[FilePatch] = ()
) -> str:
    """Return the whole page for what was judged and asked about.

    Args:
        judged: the target and all that was found in it.
        selection: which classes are meant.
        patches: proven already; one that is a single finding's need not be made again.
    """
    return _Page(judged, selection, patches).html()


class _Page:
    """Gathers what the templates need, each finding and each cited line once."""

    def __init__(
        self, judged: Judged, selection: Selection, patches: Iterable[FilePatch]
    ) -> None:
        self.judged = judged
        self.proven = {
            id(patch.findings[0]): patch
            for patch in patches
            if len(patch.findings) == 1
        }
        trees = {Source.TREE: judged.target.tree}
        if judged.base is not None:
            trees[Source.BASE] = judged.base.tree
        self.excerpts = Excerpts(trees)
        self.findings = [f for f in judged.result.findings if selection.concerns(f)]
        self.anchors = _anchors(judged.result.findings)
        self.by_class = _by_class(judged.result.findings)
        models = [m for m in judged.result.models if selection.concerns(m)]
        self.table: Coverage = coverage(
            judged.result, [c.id for c in judged.codemods], models
        )

    def html(self) -> str:
        """Put the page together."""
        hurting = sorted(
            (f for f in self.findings if f.status in HURTS),
            key=lambda f: ORDER.index(f.status),
        )
        cards = [self._card(finding) for finding in hurting]
        demands = [
            Demand(note, self._proof(note.evidence))
            for note in self.judged.result.contract
        ]
        style, script = _resource("page.css"), _resource("page.js")
        ids = self.table.codemods
        return (
            _environment()
            .get_template("page.html.j2")
            .render(
                policy=_policy(style, script),
                style=style,
                script=script,
                title=_title(self.judged),
                spec=describe(self.judged.target),
                against=describe(self.judged.base) if self.judged.base else None,
                version=version(),
                classes=counted(len(self.table.rows), "model class", "model classes"),
                contracts=counted(len(ids), "contract"),
                totals=self._totals(),
                scores=[self._score(codemod) for codemod in self.judged.codemods],
                demands=demands,
                cards=cards,
                lives=lifelines(
                    [(card.finding, card.anchor) for card in cards],
                    self.judged.target.version,
                ),
                columns=[*zip(ids, short_titles(ids), strict=True)],
                rows=[self._row(row) for row in sorted(self.table.rows, key=_by_name)],
                errors=self.judged.errors,
                statuses=STATUSES,
                bar_width=BAR_WIDTH,
                long_proof=LONG_PROOF,
                data=_embedded(self._data()),
            )
        )

    def _totals(self) -> dict[str, int]:
        """Count findings by status, the two best known ones even when they are 0."""
        counts = Counter(finding.status for finding in self.findings)
        always = (Status.FIXABLE, Status.BLOCKED, Status.SATISFIED)
        return {s.value: counts[s] for s in ORDER if counts[s] or s in always}

    def _card(self, finding: Finding) -> Card:
        return Card(
            anchor=self.anchors[id(finding)],
            finding=finding,
            place=_place(finding.file, finding.line, finding.source),
            meaning=_meaning(finding),
            failures=[
                note.statement
                for note in self.judged.result.contract
                if not set(note.evidence).isdisjoint(finding.evidence)
            ],
            changes=[
                Change(patch.file, hunks(patch.before, patch.after))
                for patch in self._patches(finding)
            ],
            proof=self._proof(finding.evidence),
            command=self._command(finding),
        )

    def _patches(self, finding: Finding) -> Sequence[FilePatch]:
        """Return what this finding alone would change."""
        known = self.proven.get(id(finding))
        if known is not None and {edit.file for edit in finding.edits} == {known.file}:
            return [known]
        return self.judged.patches([finding]) if finding.edits else []

    def _command(self, finding: Finding) -> str:
        words = ["vlmend", "explain", finding.fingerprint, self.judged.target.spec]
        if self.judged.base is not None:
            words += ["--vllm", self.judged.base.spec]
        return shlex.join(words)

    def _proof(self, evidence: Iterable[Evidence]) -> list[Link]:
        return [
            Link(
                link.statement,
                _place(link.file, link.line, link.source),
                self.excerpts.cite(link),
                link.line,
                self.excerpts.line(link),
            )
            for link in evidence
        ]

    def _score(self, codemod: Codemod) -> Score:
        counts = self.table.counts(codemod.id)
        inherited = counts.pop("through_base", 0)
        counts[NOT_JUDGED] = counts.pop("not_judged", 0)
        present = {status: counts[status] for status in STATUSES if counts.get(status)}
        segments: list[Segment] = []
        start, whole = 0, sum(present.values()) or 1
        for status, count in present.items():
            width = max(BAR_LEAST, round(BAR_WIDTH * count / whole))
            segments.append(Segment(status, count, start, width))
            start += width
        return Score(codemod, segments, inherited)

    def _row(self, row: Row) -> TableRow:
        own = self.by_class.get(row.model.key, ())
        cells: list[TableCell] = []
        anchors = [self.anchors[id(finding)] for finding in own]
        for codemod, cell in zip(self.table.codemods, row.cells, strict=True):
            finding = self._behind(row, codemod, cell)
            anchor = self.anchors[id(finding)] if finding is not None else ""
            if cell.through is not None and anchor:
                anchors.append(anchor)
            cells.append(
                TableCell(
                    cell.status.value if cell.status else NOT_JUDGED,
                    cell.through.rpartition(":")[2] if cell.through else "",
                    anchor,
                )
            )
        return TableRow(row, cells, anchors)

    def _behind(self, row: Row, codemod: str, cell: Cell) -> Finding | None:
        """Return the finding that a cell shows: its own, or that of a broken base."""
        key = cell.through or row.model.key
        return next(
            (
                finding
                for finding in self.by_class.get(key, ())
                if finding.codemod == codemod and finding.status is cell.status
            ),
            None,
        )

    def _data(self) -> dict[str, Any]:
        """Return what the page's script lays out on demand."""
        words: dict[str, int] = {}

        def word(text: str) -> int:
            return words.setdefault(printable(text), len(words))

        verdicts = {
            self.anchors[id(finding)]: {
                "status": finding.status.value,
                "contract": word(finding.codemod),
                "meaning": word(_meaning(finding)),
                "message": word(finding.message),
                "proof": [
                    [word(link.statement), self.excerpts.cite(link), link.line]
                    for link in finding.evidence
                ],
            }
            for finding in self.findings
            if finding.status not in HURTS
        }
        return {
            "files": self.excerpts.document(),
            "verdicts": verdicts,
            "words": [*words],
            "elsewhere": {source.value: said for source, said in ELSEWHERE.items()},
        }


def _by_name(row: Row) -> tuple[str, str]:
    return row.model.class_name.lower(), row.model.module


def _by_class(findings: Iterable[Finding]) -> Mapping[str, Sequence[Finding]]:
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[f"{finding.module}:{finding.class_name}"].append(finding)
    return found


def _anchors(findings: Iterable[Finding]) -> dict[int, str]:
    """Return each finding's place in the page: its fingerprint, numbered if shared."""
    seen: Counter[str] = Counter()
    anchors: dict[int, str] = {}
    for finding in findings:
        seen[finding.fingerprint] += 1
        times = seen[finding.fingerprint]
        anchors[id(finding)] = finding.fingerprint + (f"-{times}" if times > 1 else "")
    return anchors


def _title(judged: Judged) -> str:
    target = judged.target
    if target.version is None:
        return target.spec
    return f"vLLM {target.version}" if target.layout == "vllm" else target.spec


def _meaning(finding: Finding) -> str:
    meaning = MEANINGS[finding.status]
    return f"{meaning[0].upper()}{meaning[1:]}."


def _place(file: str, line: int, source: Source) -> str:
    return f"{file}:{line}{ELSEWHERE[source]}"


def _resource(name: str) -> str:
    return files("vlmend.templates").joinpath("page", name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that admits these two texts and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _embedded(data: object) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _shown(value: object) -> object:
    """Spell out characters that would turn the reading direction or not be seen."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value)
    return value


def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
