"""What this tree itself demands of its model classes.

vLLM's contracts changed over time; a version number says little about a fork. So each
rule is read from the tree's own Protocols and runners, with the lines that show it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from vlmend.codemods.analysis.architectures_contract import architectures_notes
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.tree import TreeError
from vlmend.codemods.codemod import ContractNote, Evidence

HAND_UP = "make_empty_intermediate_tensors"

RUNNERS = (
    "vllm/v1/worker/gpu_model_runner.py",
    "vllm/v1/worker/gpu/model_runner.py",
    "vllm/worker/model_runner.py",
)
"""The target runners: V1, V2 (since 0.15) and V0 (through 0.10)."""


class ProtocolForm(Enum):
    """How ``SupportsPP`` declares ``make_empty_intermediate_tensors``."""

    STUB = "stub"
    """A method with an empty body (through 0.27): an unwired class inherits it."""
    ANNOTATION = "annotation"
    """A bare annotation (from 0.28): an unwired class has no such attribute."""
    ABSENT = "absent"
    """The tree has no such contract."""


@dataclass(frozen=True, slots=True)
class DelegationContract:
    """The contract of pipeline parallelism in this tree.

    Attributes:
        form: how the Protocol declares the method, which decides how a breach shows.
        failure: what happens on ranks after the first, as one clause.
        evidence: the Protocol's line and the runners' calls.
    """

    form: ProtocolForm
    failure: str
    evidence: tuple[Evidence, ...]


def delegation_contract(index: ModelIndex) -> DelegationContract:
    """Read the pipeline-parallel contract from ``interfaces.py`` and the runners."""
    return index.remember(
        ("contract", HAND_UP),
        lambda: _delegation(index),
        on_cycle=DelegationContract(ProtocolForm.ABSENT, "", ()),
    )


def _delegation(index: ModelIndex) -> DelegationContract:
    ref = index.interface("SupportsPP")
    if ref is None:
        return DelegationContract(ProtocolForm.ABSENT, "", ())
    protocol = index.class_of(ref)
    source, file = index.source_kind(ref.module), index.file_of(ref)
    calls = tuple(_runner_calls(index))
    if HAND_UP in protocol.methods:
        line = protocol.methods[HAND_UP].line
        said = f"SupportsPP declares {HAND_UP} as a method whose body is empty"
        failure = (
            "an unwired class inherits the Protocol's empty method, which returns None "
            "where the runner expects tensors"
        )
        here = Evidence(source, file, line, said)
        return DelegationContract(ProtocolForm.STUB, failure, (here, *calls))
    if HAND_UP in protocol.attributes:
        line = protocol.attributes[HAND_UP].line
        said = f"SupportsPP only annotates {HAND_UP}; nothing is inherited"
        failure = (
            "an unwired class has no such attribute: AttributeError when it is called"
        )
        here = Evidence(source, file, line, said)
        return DelegationContract(ProtocolForm.ANNOTATION, failure, (here, *calls))
    return DelegationContract(ProtocolForm.ABSENT, "", ())


def _runner_calls(index: ModelIndex) -> Iterator[Evidence]:
    """Cite where the runners call the method on ranks after the first."""
    root = index.roots[-1]
    for file in RUNNERS:
        if not root.tree.exists(file):
            continue
        try:
            source = index.source_of(root, file)
        except TreeError:
            continue
        found = _CALL.search(source)
        if found:
            line = source.count(b"\n", 0, found.start()) + 1
            said = "the runner calls it on pipeline-parallel ranks after the first"
            yield Evidence(root.source, file, line, said)


_CALL = re.compile(rb"\.model\.make_empty_intermediate_tensors\(")


def contract_notes(index: ModelIndex) -> tuple[ContractNote, ...]:
    """Say in a sentence each what this tree demands; a codemod may have more to say."""
    return (*_delegation_notes(index), *architectures_notes(index))


def _delegation_notes(index: ModelIndex) -> Iterator[ContractNote]:
    contract = delegation_contract(index)
    if contract.form is ProtocolForm.ABSENT:
        return
    said = f"On ranks after the first, {contract.failure}."
    yield ContractNote("pipeline-parallel", said, contract.evidence)
