"""What the runners of a tree pass to a model, for calls of the real forward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmend.codemods.analysis.runner_calls import Role, runner_calls

if TYPE_CHECKING:
    from vlmend.codemods.analysis.model_index import ModelIndex
    from vlmend.codemods.codemod import Finding


def keywords_of(index: ModelIndex, finding: Finding) -> tuple[tuple[str, ...], ...]:
    """Return the sets of keywords that are certain, one per distinct runner call.

    Calls that only a registered draft is reached by are left out: they pass what such a
    draft alone takes.
    """
    del finding
    sets = {
        frozenset(call.names): call.names
        for call in runner_calls(index)
        if call.role is not Role.DRAFT and not call.positional
    }
    return tuple(keys for keys in sets.values() if keys)
