"""The codemods that are part of vlmend."""

from __future__ import annotations

from vlmend.codemods.codemod import Codemod
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors
from vlmend.codemods.explicit_architectures import ExplicitArchitectures
from vlmend.codemods.forward_kwargs import ForwardKwargs


def all_codemods() -> tuple[Codemod, ...]:
    """Return every codemod, in the order in which findings are told."""
    return (DelegateIntermediateTensors(), ExplicitArchitectures(), ForwardKwargs())
