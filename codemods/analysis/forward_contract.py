"""What this tree's runners ask of a forward, and how it writes optional parameters.

Read from the runners' own calls: which names every target runner passes, which of them
draft runners leave out, and whether any causal language model can serve as a draft.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from vlmend.codemods.analysis.forwards import EMBEDS, FORWARD, TENSORS
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.runner_calls import Role, RunnerCall, runner_calls
from vlmend.codemods.codemod import ContractNote, Evidence

_USUAL = (TENSORS, EMBEDS)
"""What is told first of all that some runners pass."""

_NAMED = 4
"""So many of them are told by name."""

_SHOWN = 3
"""So many target runners' files are cited."""


def forward_notes(index: ModelIndex) -> Iterator[ContractNote]:
    """Say what runners pass to models, and what a forward must therefore bear."""
    calls = [call for call in runner_calls(index) if call.names]
    targets = [call for call in calls if call.role is Role.TARGET]
    if not targets:
        return
    said = [_by_targets(targets)]
    shown = list(_cited(targets, _SHOWN))
    drafts = [call for call in calls if call.role is Role.DRAFT]
    if drafts:
        said.append(_by_drafts(drafts))
        shown += _cited(drafts, 1)
    serving = [call for call in calls if call.role is Role.DRAFT_MODEL]
    bare = [call for call in serving if call.keywords.get(TENSORS) is None]
    if serving:
        said.append(_by_draft_models(serving, bare))
        # In words of its own: a finding that cites the line is not told this as its
        # failure.
        said_there = "any causal language model is taken for a draft model"
        shown += [replace(link, statement=said_there) for link in serving[0].reason]
        shown += _cited(bare or serving, 1)
    yield ContractNote("forward", " ".join(said), tuple(dict.fromkeys(shown)))
    typing = _typing(index)
    if typing is not None:
        style, line = typing
        yield ContractNote(
            "typing", f"Optional parameters are written {style}.", (line,)
        )


def _by_targets(calls: list[RunnerCall]) -> str:
    always = [n for n in calls[0].names if all(n in call.names for call in calls)]
    seen = {key.name: None for call in calls for key in call.keywords.keys}
    sometimes = [name for name in (*_USUAL, *seen) if name in seen]
    sometimes = [name for name in dict.fromkeys(sometimes) if name not in always]
    if len(sometimes) > _NAMED:
        more = len(sometimes) - _NAMED + 1
        sometimes = [*sometimes[: _NAMED - 1], f"{more} more"]
    text = f"Every target runner passes {_listed(always) or 'names of its own'}"
    return f"{text}; some pass {_listed(sometimes)}." if sometimes else f"{text}."


def _by_drafts(calls: list[RunnerCall]) -> str:
    passing = sum(call.keywords.get(TENSORS) is not None for call in calls)
    if not passing:
        return f"No runner of registered drafts passes {TENSORS}."
    if passing == len(calls):
        return f"Runners of registered drafts pass {TENSORS}, too."
    return f"{passing} of {len(calls)} calls of registered drafts pass {TENSORS}."


def _by_draft_models(calls: list[RunnerCall], bare: list[RunnerCall]) -> str:
    text = "Any causal language model may serve as a draft model, "
    if len(bare) == len(calls):
        return f"{text}and is then called without {TENSORS}."
    if bare:
        return f"{text}and some such calls leave {TENSORS} out."
    return f"{text}and is passed {TENSORS} then, too."


def _cited(calls: Iterable[RunnerCall], most: int) -> Iterator[Evidence]:
    """Yield a call from each of the first files, with what it passes."""
    firsts: dict[str, RunnerCall] = {}
    for call in calls:
        firsts.setdefault(call.place.file, call)
    for call in list(firsts.values())[:most]:
        said = f"{call.place.function} ({call.role}) passes {call.text()}"
        yield Evidence(call.source, call.place.file, call.place.line, said)


def _typing(index: ModelIndex) -> tuple[str, Evidence] | None:
    """Return how ``SupportsPP.forward`` says that a parameter may be ``None``."""
    ref = index.interface("SupportsPP")
    method = index.class_of(ref).methods.get(FORWARD) if ref is not None else None
    module = index.module(ref.module) if ref is not None else None
    if ref is None or method is None or module is None:
        return None
    taken = index.function_node(module, method).args
    for one in (*taken.args, *taken.kwonlyargs):
        if one.arg != TENSORS or one.annotation is None:
            continue
        text = ast.unparse(one.annotation)
        style = "Optional[X]" if "Optional[" in text else "X | None"
        if style == "X | None" and "None" not in text:
            return None
        said = f"SupportsPP.{FORWARD} types {TENSORS} as {text}"
        source, file = index.source_kind(ref.module), index.file_of(ref)
        return style, Evidence(source, file, one.lineno, said)
    return None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if names[1:] else "".join(names)
