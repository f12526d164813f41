"""forward-kwargs on real releases: what each shows, and that every fix binds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from vlmend.codemods import (
    DirectoryTree,
    FilePatch,
    Finding,
    ModelIndex,
    Session,
)
from vlmend.codemods.analysis.forwards import forward_of, inner_calls
from vlmend.codemods.analysis.reach import reaching
from vlmend.codemods.analysis.runner_calls import Role
from vlmend.codemods.analysis.signatures import Bound
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.forward_kwargs import ForwardKwargs

Release = Callable[[str], Path]


@cache
def _session(root: Path) -> Session:
    session = Session(DirectoryTree(root), codemods=[ForwardKwargs()])
    session.run()
    return session


def _by_status(session: Session, status: str) -> list[Finding]:
    return [f for f in session.run().findings if f.status == status]


# -- what must hold --------------------------------------------------------------------


def test_two_causal_models_are_fixable_at_0_33_each_by_a_draft_runner(
    release: Release,
) -> None:
    session = _session(release("0.33.0"))
    found = _by_status(session, "fixable")
    assert [f.class_name for f in found] == ["InternLM2ForCausalLM", "Step1ForCausalLM"]
    for finding in found:
        assert finding.shape == "requires intermediate_tensors"
        proof = finding.evidence[-1]
        assert proof.file.startswith("vllm/v1/spec_decode/")
        assert proof.statement.endswith(
            f"TypeError: {finding.class_name}.forward() missing 1 required positional "
            "argument: 'intermediate_tensors'"
        )


def test_no_multimodal_wrapper_is_fixable_at_0_33(release: Release) -> None:
    session = _session(release("0.33.0"))
    multimodal = {m.key for m in session.run().models if m.multimodal}
    assert not [
        f
        for f in _by_status(session, "fixable")
        if f"{f.module}:{f.class_name}" in multimodal
    ]
    assert not _by_status(session, "unproven")
    assert not _by_status(session, "blocked")


def test_the_fix_is_the_one_that_upstream_makes(release: Release) -> None:
    session = _session(release("0.33.0"))
    added: set[str] = set()
    for patch in session.patches(_by_status(session, "fixable")):
        assert isinstance(patch, FilePatch), patch
        added |= {
            line[1:].strip()
            for line in patch.diff().splitlines()
            if line.startswith("+ ")
        }
    assert added == {"intermediate_tensors: IntermediateTensors | None = None,"}


def test_cohere2vision_at_0_21_is_satisfied_by_its_callees_signature(
    release: Release,
) -> None:
    session = _session(release("0.21.0"))
    (found,) = [
        f
        for f in session.run().findings
        if f.class_name == "Cohere2VisionForConditionalGeneration"
    ]
    assert found.status == "satisfied"
    assert "**kwargs end in it because Cohere2" in found.message
    last = found.evidence[-1]
    assert "Model.forward takes (self, input_ids, positions, " in last.statement
    assert "**" not in last.statement


def test_every_class_is_told_about_once(release: Release) -> None:
    session = _session(release("0.33.0"))
    found = session.run().findings
    told = Counter((f.module, f.class_name) for f in found)
    assert max(told.values()) == 1
    spoken = {f"{m}:{c}" for m, c in told} | {h for f in found for h in f.heirs}
    assert {ref.key for ref in session.index.model_classes} <= spoken


# -- every fix binds -------------------------------------------------------------------


def _runner_bindings(index: ModelIndex) -> set[tuple[ClassRef, object, Role]]:
    """Return which runner call binds to which class, by static binding."""
    found: set[tuple[ClassRef, object, Role]] = set()
    for ref in index.model_classes:
        forward = forward_of(index, ref)
        if forward is None:
            continue
        for call in reaching(index, ref):
            bound = forward.signature.bind(call.positional + 1, call.names)
            if isinstance(bound, Bound):
                found.add((ref, (call.place, call.via), call.role))
    return found


def _inner_bindings(index: ModelIndex) -> dict[tuple[ClassRef, str, ClassRef], bool]:
    """Return, for every inner call and callee of the tree, whether it binds."""
    return {
        (ref, call.text, callee.ref): isinstance(call.bind(callee), Bound)
        for ref in index.model_classes
        for call in inner_calls(index, ref)
        for callee in call.callees
    }


def test_with_every_fix_all_calls_bind_that_did_before(release: Release) -> None:
    session = _session(release("0.33.0"))
    findings = [f for f in session.run().findings if f.edits]
    assert {f.status.value for f in findings} == {"fixable", "review"}
    changes: dict[str, bytes | None] = {}
    for patch in session.patches(findings):
        assert isinstance(patch, FilePatch), patch
        changes[patch.file] = patch.after
    mended = session.index.overlaid(changes)
    before, after = _runner_bindings(session.index), _runner_bindings(mended)
    assert before <= after
    healed = {ref.name for ref, _, role in after - before if role is Role.DRAFT_MODEL}
    assert healed == {"InternLM2ForCausalLM", "Step1ForCausalLM"}
    old, new = _inner_bindings(session.index), _inner_bindings(mended)
    assert old.keys() == new.keys()
    assert not [key for key, binds in old.items() if binds and not new[key]]
    # Some callees of an open choice never bind; what the fixes touch always does.
    touched = {(f.module, f.class_name) for f in findings}
    for (ref, _, _), binds in new.items():
        assert binds or (ref.module, ref.name) not in touched


# -- what each release shows -----------------------------------------------------------

GEMMA3 = "Gemma3Model"
HUNYUAN = "HunYuanVLForConditionalGeneration"
HYPERCLOVAX = "HyperCLOVAXForCausalLM"
INTERN = "InternLM2ForCausalLM"
STEP1 = "Step1ForCausalLM"
MODERN = "ColModernVBertForRetrieval"
GLM4V = "GLM4VForCausalLM"
KIMI = "KimiK3ForConditionalGeneration"
MINIMAX = "MiniMaxM3SparseForConditionalGeneration"

LATER = (MODERN, GLM4V, KIMI, KIMI, MINIMAX, MINIMAX)
SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "0.8.5": ((INTERN,), ()),
    "0.9.0": ((INTERN,), ()),
    "0.9.1": ((INTERN,), ()),
    "0.9.2": ((INTERN,), ()),
    "0.10.0": ((INTERN,), ()),
    "0.10.1": ((INTERN,), ()),
    "0.10.2": ((INTERN,), (GEMMA3,)),
    "0.11.0": ((INTERN,), (GEMMA3,)),
    "0.11.1": ((INTERN,), (GLM4V, GEMMA3)),
    "0.12.0": ((INTERN,), (GLM4V, GEMMA3, HUNYUAN)),
    "0.13.0": ((INTERN,), (GLM4V, GEMMA3, HUNYUAN)),
    "0.14.0": ((INTERN,), (GLM4V, GEMMA3, HUNYUAN)),
    "0.16.0": ((INTERN, STEP1), (GLM4V, GEMMA3, HUNYUAN)),
    "0.17.0": ((INTERN, STEP1), (MODERN, GLM4V, GEMMA3, HUNYUAN)),
    "0.18.0": ((HYPERCLOVAX, INTERN, STEP1), (MODERN, GLM4V, GEMMA3, HUNYUAN)),
    **dict.fromkeys(
        ("0.19.0", "0.20.0", "0.21.0", "0.22.0", "0.23.0"),
        ((HUNYUAN, HYPERCLOVAX, INTERN, STEP1), (MODERN, GLM4V, GEMMA3)),
    ),
    **dict.fromkeys(
        ("0.24.0", "0.25.0"),
        (
            (HUNYUAN, HYPERCLOVAX, INTERN, STEP1),
            (MODERN, GLM4V, GEMMA3, MINIMAX, MINIMAX),
        ),
    ),
    "0.26.0": ((HUNYUAN, INTERN, STEP1), (MODERN, GLM4V, GEMMA3, MINIMAX, MINIMAX)),
    "0.27.0": ((GEMMA3, HUNYUAN, INTERN, STEP1), LATER),
    "0.28.0": ((HUNYUAN, INTERN, STEP1), LATER),
    **dict.fromkeys(("0.29.0", "0.30.0", "0.31.0", "0.32.0"), ((INTERN, STEP1), LATER)),
    "0.33.0": ((INTERN, STEP1), (*LATER, "ColUltraVBertForRetrieval")),
}
"""By release: the classes that are fixable, and those that want a person's look.

0.15.0 has no source distribution. Gemma3Model got its default in 0.28 (#50777); in
0.27 the V2 runner's CUDA-graph capture leaves the tensors out and runs a pooler, before
that no runner that pools does. GLM4V, KimiK3 and MiniMaxM3 swallow **kwargs that their
inner models would take; ColModernVBert and ColUltraVBert have none.
"""


@pytest.mark.replay
@pytest.mark.parametrize("version", SHOWN)
def test_a_release_shows(release: Release, version: str) -> None:
    session = Session(DirectoryTree(release(version)), codemods=[ForwardKwargs()])
    result = session.run()
    assert not result.errors
    fixable, review = SHOWN[version]
    shown = {
        status: sorted(f.class_name for f in result.findings if f.status == status)
        for status in ("fixable", "review", "blocked", "unproven")
    }
    assert shown == {
        "fixable": sorted(fixable),
        "review": sorted(review),
        "blocked": [],
        "unproven": [],
    }
    for patch in session.patches(result.findings):
        assert isinstance(patch, FilePatch), patch


def test_the_table_names_every_release_that_plain_tests_use(release: Release) -> None:
    """Two rows of the table are checked without the heavy suite."""
    for version in ("0.21.0", "0.33.0"):
        session = _session(release(version))
        fixable, review = SHOWN[version]
        assert [f.class_name for f in _by_status(session, "fixable")] == sorted(fixable)
        found = sorted(f.class_name for f in _by_status(session, "review"))
        assert found == sorted(review)
