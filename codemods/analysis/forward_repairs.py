"""Turns what a forward needs into edits, in the words that its file uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vlmend.codemods.analysis.forward_groups import Outcome
from vlmend.codemods.analysis.forward_rules import Breach, PassOn
from vlmend.codemods.analysis.forwards import EMBEDS, FORWARD, TENSORS, Forward
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.tree import TreeError
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Edit, Status
from vlmend.codemods.rewriting.add_import import AddImport
from vlmend.codemods.rewriting.call_arguments import CallArguments
from vlmend.codemods.rewriting.change_signature import ChangeSignature, NewParameter

TYPES = {
    TENSORS: ("IntermediateTensors", "vllm.sequence", "IntermediateTensors"),
    EMBEDS: ("torch.Tensor", "", "torch"),
}
"""A parameter's type as written, and the import that it needs."""


def edits_for(index: ModelIndex, outcome: Outcome) -> tuple[Edit, ...]:
    """Return the edits of the breaches that have the worst one's status.

    ``fixable`` edits are made without asking, so nothing that needs a person's look may
    ride along; the other way round there is no harm.
    """
    worst = outcome.breaches[0].status
    if worst not in (Status.FIXABLE, Status.REVIEW):
        return ()
    together = [b for b in outcome.breaches if b.status is worst]
    return tuple(_edits(index, outcome, together))


def _edits(
    index: ModelIndex, outcome: Outcome, together: list[Breach]
) -> Iterator[Edit]:
    forward = outcome.forward
    repairs = [breach.repair for breach in together]
    parameters = list(dict.fromkeys(p for r in repairs for p in r.parameters))
    defaults = tuple(dict.fromkeys(d for r in repairs for d in r.defaults))
    collect = any(r.collect for r in repairs)
    optional = writes_optional(index, forward)
    if parameters or defaults or collect:
        add = [
            _parameter(index, outcome.ref, forward, name, optional=optional)
            for name in parameters
        ]
        if collect:
            add.append(NewParameter("**kwargs: object"))
        yield ChangeSignature(
            forward.file, FORWARD, forward.line, tuple(add), defaults, optional
        )
    yield from _imports(index, forward, parameters, optional=optional)
    yield from _calls(together)


def _calls(together: list[Breach]) -> list[CallArguments]:
    """Return one edit per inner call, whatever number of rules ask for it."""
    grouped: dict[tuple[int, str], list[PassOn]] = {}
    for breach in together:
        for one in breach.repair.pass_on:
            grouped.setdefault((one.call.line, one.call.text), []).append(one)
    return [
        CallArguments(
            group[0].call.file,
            text,
            line,
            tuple(dict.fromkeys(n for one in group for n in one.names)),
            before=(EMBEDS,),
            unpack=next((one.unpack for one in group if one.unpack), ""),
        )
        for (line, text), group in grouped.items()
    ]


def _parameter(
    index: ModelIndex,
    ref: ClassRef,
    forward: Forward,
    name: str,
    *,
    optional: bool,
) -> NewParameter:
    """Write a parameter, in the place where no positional caller is put out.

    The usual place of ``intermediate_tensors`` is in front of ``inputs_embeds``. It is
    taken only where nobody but the runners, who pass by name, calls this forward.
    """
    written = TYPES[name][0]
    kind = f"Optional[{written}]" if optional else f"{written} | None"
    text = f"{name}: {kind} = None"
    embeds = forward.signature.parameter(EMBEDS)
    called = index.is_called(ref) or bool(index.heirs(ref))
    if name == TENSORS and embeds is not None and embeds.has_default and not called:
        return NewParameter(text, before=EMBEDS)
    return NewParameter(text)


def _imports(
    index: ModelIndex, forward: Forward, parameters: list[str], *, optional: bool
) -> Iterator[AddImport]:
    module = index.module(forward.owner.module)
    assert module is not None
    for name in parameters:
        _, package, imported = TYPES[name]
        if package and imported not in module.bindings:
            yield AddImport(forward.file, package, imported)
    if parameters and optional and "Optional" not in module.bindings:
        yield AddImport(forward.file, "typing", "Optional")


def writes_optional(index: ModelIndex, forward: Forward) -> bool:
    """Say whether ``Optional[X]`` is the way of the forward's neighbours.

    Asked in order: the forward itself, its file, the oldest Python that the tree
    supports (``X | None`` needs 3.10 where annotations are evaluated).
    """
    own = " ".join(p.annotation for p in forward.signature.parameters)
    module = index.module(forward.owner.module)
    assert module is not None
    for text in (own, "\n".join(index.lines(module))):
        if "Optional[" in text and not re.search(r"\|\s*None", text):
            return True
        if re.search(r"\|\s*None", text):
            return False
    try:
        project = index.roots[0].tree.read("pyproject.toml").decode("utf-8", "replace")
    except TreeError:
        return False
    found = re.search(r"requires-python\s*=\s*[\"'][^\"']*?>=\s*3\.(\d+)", project)
    return found is not None and int(found.group(1)) < 10
