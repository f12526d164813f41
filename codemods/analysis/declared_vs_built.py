"""What a declared architecture name stands for, against the class that is built.

A view's name and the class that is called with it are two things. Whoever reads the
name (the registry, updaters of model-specific configs, anything that looks a capability
up by it) sees the named class. This module lists those readers of the tree and tells
where the difference can matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.architecture_names import named_class
from vlmend.codemods.analysis.architectures_contract import (
    MODEL_CONFIG_FILES,
    VLLM_CONFIG_FILES,
    architectures_contract,
)
from vlmend.codemods.analysis.given_elsewhere import UPDATERS
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.names import INTERFACES_MODULE
from vlmend.codemods.analysis.tree_lines import TreeFile, open_file, open_files
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Evidence

CAPABILITIES = {
    "is_pp_supported_model": "SupportsPP",
    "model_has_inner_state": "HasInnerState",
    "is_hybrid_model": "IsHybrid",
    "is_attention_free_model": "IsAttentionFree",
    "is_noops_model": "HasNoOps",
    "is_multimodal_model": "SupportsMultiModal",
    "is_cross_encoder_model": "SupportsCrossEncoding",
    "is_transcription_model": "SupportsTranscription",
}
"""What the registry's questions about a name come down to, Protocol by Protocol."""

NAME_READERS = (
    *MODEL_CONFIG_FILES,
    *VLLM_CONFIG_FILES,
    "vllm/config/kernel.py",
    "vllm/config/compilation.py",
    *UPDATERS,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The named class against the built one.

    Attributes:
        evidence: the readers of the name, and the differences.
        mismatch: the difference that one of the readers would act on, as a clause;
            empty where there is none.
    """

    evidence: tuple[Evidence, ...]
    mismatch: str = ""


def compare(
    index: ModelIndex, name: str, built: ClassRef | None, wrapper: ClassRef
) -> Comparison:
    """Compare what a name declares with what is built.

    Args:
        name: the architecture name of a view.
        built: the class that is called with it; ``None`` where the registry looks the
            class up by the name, so that both are the same.
        wrapper: the class that makes the view.
    """
    named = named_class(index, name)
    chain = [*named.evidence, *_readers(index, name)]
    if not named.refs:
        return Comparison(tuple(chain), f"{name} is not registered")
    mismatches: list[str] = []
    if index.is_pipeline_parallel(wrapper) and not named.pipeline_parallel(index):
        chain += architectures_contract(index).without_pp
        mismatches.append(f"{named.refs[0].name} does not support pipeline parallelism")
    if built is not None and built not in named.refs:
        ours, theirs = _protocols(index, built), _protocols(index, named.refs[0])
        chain += _differences(index, built, named.refs[0], ours, theirs)
        for protocol, line in _asked_of_views(index):
            # Whether the wrapper may run in parallel is settled above.
            if protocol != "SupportsPP" and (protocol in ours) != (protocol in theirs):
                chain.append(line)
                mismatches.append(
                    f"{protocol} is looked up by the name, and only one of "
                    f"{built.name} and {named.refs[0].name} has it"
                )
    return Comparison(tuple(dict.fromkeys(chain)), " and ".join(mismatches))


def _protocols(index: ModelIndex, ref: ClassRef) -> frozenset[str]:
    return frozenset(
        owner.name
        for owner in index.mro(ref).classes
        if owner.module == INTERFACES_MODULE
    )


def _differences(
    index: ModelIndex,
    built: ClassRef,
    named: ClassRef,
    ours: frozenset[str],
    theirs: frozenset[str],
) -> Iterator[Evidence]:
    for ref, only in ((named, theirs - ours), (built, ours - theirs)):
        if only:
            said = f"only {ref.name} has {', '.join(sorted(only))}"
            kind = index.source_kind(ref.module)
            line = index.class_of(ref).line
            yield Evidence(kind, index.file_of(ref), line, said)


def _readers(index: ModelIndex, name: str) -> Iterator[Evidence]:
    """Cite every line outside the models that knows this very name."""
    word = f'"{name}"'
    seen: set[str] = set()
    for file in open_files(index, NAME_READERS):
        if file.path in seen:
            continue
        seen.add(file.path)
        for number, text in enumerate(file.lines, 1):
            if word not in text:
                continue
            if file.path in UPDATERS:
                said = f"an updater is registered for {name}"
                yield file.cite(number, said)
                once = _updated_once(index)
                if once is not None:
                    yield once
            else:
                yield file.cite(number, f"{name} is treated by name")


def _updated_once(index: ModelIndex) -> Evidence | None:
    """Find the mark by which updaters run for the outer model only."""
    file = open_file(index, VLLM_CONFIG_FILES, "def try_verify_and_update_config")
    if file is None:
        return None
    said = "updaters ran before a view is made, and do not run again for it"
    return file.find(r'getattr\(self\.model_config, "config_updated", False\)', said)


def _asked_of_views(index: ModelIndex) -> Iterator[tuple[str, Evidence]]:
    """Yield the capabilities that a view looks up by its own names."""
    models = open_file(index, MODEL_CONFIG_FILES, "def verify_with_parallel_config")
    if models is None:
        return
    for number, question in _questions(models):
        if question in CAPABILITIES:
            protocol = CAPABILITIES[question]
            said = f"{protocol} is looked up by the view's names"
            yield protocol, models.cite(number, said)


def _questions(models: TreeFile) -> Iterator[tuple[int, str]]:
    text = "\n".join(models.lines)
    for match in _QUESTION.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


_QUESTION = re.compile(r"self\.registry\.(\w+)\(\s*self\.architectures")
