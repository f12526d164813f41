"""What goes together into one pull request."""

from __future__ import annotations

import pytest

from vlmend.cli.drafts.scopes import GroupBy, family_of, group, slug
from vlmend.codemods import Finding, Status

MODELS = "vllm.model_executor.models"


def finding(module, name, *, codemod="delegate", shape="no hand-up", heirs=()):
    return Finding(
        codemod=codemod,
        module=f"{MODELS}.{module}",
        class_name=name,
        file=f"{module}.py",
        line=1,
        class_line=1,
        status=Status.FIXABLE,
        message="",
        shape=shape,
        heirs=heirs,
    )


def scopes(findings, by=GroupBy.SCOPE, known=None):
    groups = group(findings, by, known)
    return {
        scope: [f.class_name for f in members] for (_, scope), members in groups.items()
    }


QWENS = (finding("qwen2_vl", "Qwen2VL"), finding("qwen3_vl_moe", "Qwen3VLMoe"))
LONERS = (finding("aria", "Aria"), finding("ovis", "Ovis"))


def test_a_family_of_two_gets_its_own():
    assert scopes([*QWENS, *LONERS]) == {
        "qwen": ["Qwen2VL", "Qwen3VLMoe"],
        "singles": ["Aria", "Ovis"],
    }


def test_a_base_with_heirs_is_a_family():
    base = finding("voxtral", "Voxtral", heirs=("m:Realtime",))
    assert scopes([base, *LONERS]) == {
        "voxtral": ["Voxtral"],
        "singles": ["Aria", "Ovis"],
    }


def test_two_causes_in_one_family_are_two_things():
    others = [
        finding("qwen_vl", "QwenVL", shape="requires intermediate_tensors"),
        finding("qwen_a", "QwenA", shape="requires intermediate_tensors"),
    ]
    found = scopes([*QWENS, *others])
    assert sorted(found.values()) == [["Qwen2VL", "Qwen3VLMoe"], ["QwenVL", "QwenA"]]


def test_an_attributes_name_is_no_cause_of_its_own():
    pair = [
        finding("glm4v", "A", shape="no hand-up from self.language_model"),
        finding("glm_ocr", "B", shape="no hand-up from self.llm"),
    ]
    assert scopes(pair) == {"glm": ["A", "B"]}


def test_codemods_do_not_share():
    other = finding("aria", "Aria", codemod="kwargs")
    groups = group([*LONERS, other], GroupBy.SCOPE)
    assert sorted(groups) == [("delegate", "singles"), ("kwargs", "singles")]


def test_what_is_drafted_stays_where_it_is():
    left = QWENS[0]
    assert scopes([left], known={left.fingerprint: "qwen"}) == {"qwen": ["Qwen2VL"]}


def test_by_class_and_by_codemod():
    assert len(scopes([*QWENS, *LONERS], GroupBy.CLASS)) == 4
    assert list(scopes([*QWENS, *LONERS], GroupBy.CODEMOD)) == ["all"]


@pytest.mark.parametrize(
    ("module", "family"),
    [
        ("qwen3_vl_moe", "qwen"),
        ("qwen2_5_vl", "qwen"),
        ("h2ovl", "h2ovl"),
        ("glm4v", "glm"),
        ("llava_next_video", "llava"),
    ],
)
def test_families(module, family):
    assert family_of(f"{MODELS}.{module}") == family


def test_a_module_of_a_package_belongs_to_the_package():
    assert family_of("vllm.models.kimi_k3.nvidia.model") == "kimi"


@pytest.mark.parametrize(
    "text", ["../../x", "-rf", "a..b", "x.lock", "@{u}", "", "ä/ö", "a b\tc", "~^:?*["]
)
def test_a_slug_is_always_a_branch_name(text):
    found = slug(text)
    assert found.replace("-", "").isalnum()
    assert not found.startswith("-")
