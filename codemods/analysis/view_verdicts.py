"""From verdicts on single views to one finding for a class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vlmend.codemods.analysis.findings import finding_about
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.narrowing import Narrowing
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Evidence, Finding, Status
from vlmend.codemods.rewriting.add_architectures import AddArchitectures

_WORST_FIRST = (
    Status.FIXABLE,
    Status.REVIEW,
    Status.UNPROVEN,
    Status.SATISFIED,
    Status.EXEMPT,
)

_DEFECTS = (Status.FIXABLE, Status.REVIEW, Status.UNPROVEN)


@dataclass(frozen=True, slots=True)
class ViewVerdict:
    """What is said of one view of one class.

    Attributes:
        message: a clause without a full stop.
        name: the name that is proposed, or that the view has already.
        edit: what would give it the name.
        given: the call itself gives a name.
        heirs: further classes that the edit heals.
    """

    ref: ClassRef
    view: Narrowing
    status: Status
    message: str
    evidence: tuple[Evidence, ...]
    name: str = ""
    edit: AddArchitectures | None = None
    given: bool = False
    heirs: tuple[ClassRef, ...] = ()

    @property
    def place(self) -> tuple[str, int, int]:
        """Where the view is made, or where the edit goes."""
        if self.edit is not None:
            return self.edit.file, self.edit.call_line, self.edit.call_column
        site = self.view.site
        return site.file, site.line, site.column


def group_by_site(
    verdicts: Mapping[ClassRef, Sequence[ViewVerdict]],
) -> Iterator[ViewVerdict]:
    """Yield what is told: the worst of each class, and every defect once.

    A call in an ``__init__`` acts on every class that runs it. A fix is told for the
    class whose code it is in, with the others as heirs; it is refused where one of them
    could not take it.
    """
    by_place: dict[tuple[str, int, int], list[ViewVerdict]] = {}
    for found in verdicts.values():
        for one in found:
            by_place.setdefault(_site(one), []).append(one)
    for found in verdicts.values():
        defects: list[ViewVerdict] = []
        is_heir = False
        for one in found:
            if one.status not in _DEFECTS:
                continue
            joined = _joined(one, by_place[_site(one)])
            if joined is None:
                is_heir = True
            else:
                defects.append(joined)
        if defects:
            yield from sorted(defects, key=_badness)
        elif not is_heir:
            yield _sound(found)


def _sound(found: Sequence[ViewVerdict]) -> ViewVerdict:
    """Tell of a class without a defect: what keeps the contract, what is left alone."""
    best = min(found, key=lambda v: (_badness(v), not v.given))
    message, chain = best.message, best.evidence
    for other in found:
        if other.status is not best.status:
            message += f"; self.{other.view.attribute} is left alone: {other.message}"
            chain = (*chain, *other.evidence)
    return replace(best, message=message, evidence=chain)


def _badness(verdict: ViewVerdict) -> int:
    return _WORST_FIRST.index(verdict.status)


def _site(verdict: ViewVerdict) -> tuple[str, int, int]:
    site = verdict.view.site
    return site.file, site.line, site.column


def _joined(one: ViewVerdict, group: Sequence[ViewVerdict]) -> ViewVerdict | None:
    """Return the verdict with its heirs; ``None`` where another class tells it.

    A doubt is told for every class: nobody is about to heal it.
    """
    if one.status is Status.UNPROVEN:
        return one
    alike = [v for v in group if v.status is one.status]
    owner = next((v for v in alike if _owns(v)), alike[0])
    if one.ref != owner.ref:
        return None
    heirs = tuple(v.ref for v in alike if v.ref != one.ref)
    if one.edit is None:
        return replace(one, heirs=heirs)
    for other in group:
        # A tower's name is that of the class that is really run: each its own.
        if other.status is not one.status or other.name != one.name:
            line = other.evidence[0]
            said = f"{other.ref.name} runs the same call, and there {other.message}"
            chain = (*one.evidence, replace(line, statement=said))
            message = f"{one.message}; {said}"
            return replace(
                one,
                status=Status.UNPROVEN if one.status is Status.FIXABLE else one.status,
                message=message,
                evidence=chain,
                edit=None,
                name="",
                heirs=heirs,
            )
    return replace(one, heirs=heirs)


def _owns(verdict: ViewVerdict) -> bool:
    """Say whether the call stands in the class's own code."""
    site = verdict.view.handed.site if verdict.view.handed else verdict.view.site
    return site.module == verdict.ref.module and site.function.startswith(
        f"{verdict.ref.name}."
    )


def told(index: ModelIndex, codemod: str, verdict: ViewVerdict) -> Finding:
    """Tell a verdict as a finding."""
    ref, view = verdict.ref, verdict.view
    file = index.file_of(ref)
    class_line = index.class_of(ref).line
    what = f"self.{view.attribute}" if view.attribute else "an inner model"
    opening = f"{ref.name} builds {what}"
    if verdict.status in (Status.FIXABLE, Status.REVIEW):
        message = (
            f"{opening} with a view that has no name of its own: {verdict.message}."
        )
    elif verdict.status is Status.UNPROVEN:
        message = f"{opening} with a view that has no name. Missing proof: "
        message += f"{verdict.message}."
    else:
        message = f"{opening}: {verdict.message}."
    places = [
        (place.file, place.line)
        for place in (view.site, view.handed.site if view.handed else view.site)
    ]
    if verdict.edit is not None:
        places.insert(0, (verdict.edit.file, verdict.edit.call_line))
    line = next((number for where, number in places if where == file), class_line)
    shape = f"no name for {what}" if verdict.status in _DEFECTS else ""
    return finding_about(
        index,
        codemod,
        ref,
        verdict.status,
        message,
        verdict.evidence,
        (file, line),
        shape=shape,
        heirs=verdict.heirs,
        edits=(verdict.edit,) if verdict.edit is not None else (),
    )
