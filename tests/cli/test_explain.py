"""``vlmend explain``: a codemod's documentation, or the whole chain of a finding."""

from __future__ import annotations

import json

import pytest

CODEMOD = "delegate-intermediate-tensors"
ONLY = ("--codemod", CODEMOD)
BARE = "BareForConditionalGeneration"
HEIR = "HeirForConditionalGeneration"


def test_without_a_subject_the_codemods_are_listed(vlmend):
    ended = vlmend("explain")
    assert ended.code == 0
    assert CODEMOD in ended.out.splitlines()


def test_a_codemod_explains_itself_in_markdown_and_needs_no_target(vlmend, tmp_path):
    ended = vlmend("explain", CODEMOD, cwd=tmp_path)
    assert ended.code == 0
    assert ended.out.startswith(f"# {CODEMOD}\n\n")


def fingerprint(vlmend, mini) -> str:
    found = json.loads(vlmend("scan", mini, *ONLY, "--format", "json").out)
    return next(f["fingerprint"] for f in found["findings"] if f["class"] == BARE)


@pytest.mark.parametrize("how", ["class", "key", "fingerprint", "its first digits"])
def test_a_finding_is_found_by(vlmend, mini, how):
    mark = fingerprint(vlmend, mini)
    what = {
        "class": BARE,
        "key": f"vllm.model_executor.models.bare:{BARE}",
        "fingerprint": mark,
        "its first digits": mark[:6],
    }[how]
    ended = vlmend("explain", what, mini, *ONLY)
    assert ended.code == 0
    assert f"fingerprint {mark}" in ended.out
    assert "+        self.make_empty_intermediate_tensors = (" in ended.out
    assert "OtherForConditionalGeneration" not in ended.out


def test_each_citation_stands_with_the_line_it_rests_on(vlmend, mini):
    lines = [
        line.strip() for line in vlmend("explain", BARE, mini, *ONLY).out.split("\n")
    ]
    cited = [
        (line.rsplit(":", 1), lines[i + 1])
        for i, line in enumerate(lines)
        if lines[i + 1 : i + 2] and lines[i + 1].startswith("| ")
    ]
    assert cited
    for (file, number), shown in cited:
        source = (mini / file).read_text().splitlines()
        assert shown == f"| {source[int(number) - 1].strip()}".strip()


def test_an_heir_is_explained_by_its_base(vlmend, mini):
    ended = vlmend("explain", HEIR, mini, *ONLY)
    assert ended.code == 0
    assert f"inherits the defect from {BARE}" in " ".join(ended.out.split())
    assert "How this is known" in ended.out


def test_a_sound_class_is_explained_too(vlmend, mini):
    ended = vlmend("explain", "WiredForConditionalGeneration", mini, *ONLY)
    assert ended.code == 0
    assert "satisfied, the contract is kept" in ended.out


def test_what_is_not_there_is_an_error_that_names_the_nearest(vlmend, mini):
    ended = vlmend("explain", "BearForConditionalGeneration", mini)
    assert (ended.code, ended.out) == (2, "")
    assert f"did you mean {BARE}" in ended.err


def test_runner_calls_are_told_with_place_and_keywords(vlmend, release, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    ended = vlmend("explain", "--runner-calls", release("0.33.0"))
    assert ended.code == 0
    blocks = ended.out.split("\n\n")
    told = {block.splitlines()[0]: block.splitlines()[1:] for block in blocks}
    alone = next(k for k in told if "StandaloneARSpeculator._run_model" in k)
    assert alone.startswith("vllm/v1/worker/gpu/spec_decode/standalone_ar/")
    assert alone.endswith("(draft model)")
    assert told[alone] == ["    passes input_ids, positions"]
    helper = next(k for k in told if "GPUModelRunner._model_forward" in k)
    assert told[helper][0].endswith("GPUModelRunner.execute_model")
    assert told[helper][1] == (
        "    passes input_ids, positions, intermediate_tensors, inputs_embeds"
    )
    assert blocks[-1] == "No call passes kv_caches or attn_metadata.\n"


def test_runner_calls_of_a_small_tree(vlmend, mini):
    ended = vlmend("explain", "--runner-calls", mini)
    assert ended.code == 0
    assert "a model's forward by the runners of this tree" in ended.out
