"""A plugin outside vLLM, judged against a real release."""

from __future__ import annotations

from textwrap import dedent

import pytest

from vlmend.codemods import (
    DirectoryTree,
    FilePatch,
    MemoryTree,
    Session,
    Source,
)
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors

REGISTER = dedent(
    """\
    from vllm import ModelRegistry


    def register():
        from owlets.bare import BareOwl

        ModelRegistry.register_model("BareOwl", BareOwl)
        ModelRegistry.register_model(
            model_arch="WiredOwl", model_cls="owlets.wired:WiredOwl"
        )
        ModelRegistry.register_model("HeirOwl", "owlets.heir:HeirOwl")
        ModelRegistry.register_model("SkipOwl", "owlets.skip:SkipOwl")
        ModelRegistry.register_model("LostOwl", "owlets.heir:LostOwl")
        ModelRegistry.register_model("BlindOwl", "owlets.blind:BlindOwl")
    """
)
OWN = dedent(
    """\
    import torch.nn as nn
    from vllm.model_executor.models.interfaces import SupportsMultiModal, SupportsPP
    from vllm.model_executor.models.utils import init_vllm_registered_model


    class NAMEOwl(nn.Module, SupportsMultiModal, SupportsPP):
        def __init__(self, *, vllm_config, prefix=""):
            super().__init__()
            self.language_model = init_vllm_registered_model(
                vllm_config=vllm_config,
                prefix=prefix,
                architectures=["Qwen2ForCausalLM"],
            )
    LINES
        def forward(self, input_ids, positions, intermediate_tensors=None):
            return self.language_model(input_ids, positions, intermediate_tensors)
    """
)
LINES = """\
        self.make_empty_intermediate_tensors = (
            self.language_model.make_empty_intermediate_tensors
        )
"""
PLUGIN = {
    "pyproject.toml": '[project]\nname = "owlets"\n',
    "src/owlets/__init__.py": REGISTER,
    "src/owlets/bare.py": OWN.replace("NAME", "Bare").replace("LINES", ""),
    "src/owlets/wired.py": OWN.replace("NAME", "Wired").replace(
        "LINES\n", LINES + "\n"
    ),
    "src/owlets/blind.py": OWN.replace("NAME", "Blind")
    .replace("LINES", "")
    .replace("Qwen2ForCausalLM", "KimiLinearForCausalLM"),
    "src/owlets/heir.py": dedent(
        """\
        from vllm.model_executor.models.cohere2_vision import (
            Cohere2VisionForConditionalGeneration,
        )
        from vllm.model_executor.models.llava import LlavaForConditionalGeneration


        class HeirOwl(LlavaForConditionalGeneration):
            def __init__(self, *, vllm_config, prefix=""):
                super().__init__(vllm_config=vllm_config, prefix=prefix)
                self.scale = 2


        class LostOwl(Cohere2VisionForConditionalGeneration):
            pass
        """
    ),
    "src/owlets/skip.py": dedent(
        """\
        from vllm.model_executor.models.llava import LlavaForConditionalGeneration
        from vllm.model_executor.models.qwen2 import Qwen2ForCausalLM


        class SkipOwl(LlavaForConditionalGeneration):
            def __init__(self, *, vllm_config, prefix=""):
                super(LlavaForConditionalGeneration, self).__init__()
                self.language_model = Qwen2ForCausalLM(vllm_config=vllm_config)
        """
    ),
}


@pytest.fixture(scope="module")
def session(release):
    tree = MemoryTree({name: text.encode() for name, text in PLUGIN.items()})
    return Session(
        tree,
        base=DirectoryTree(release("0.21.0")),
        codemods=(DelegateIntermediateTensors(),),
    )


def test_only_the_plugin_s_classes_are_judged(session):
    assert {f.class_name: f.status.value for f in session.run().findings} == {
        "BareOwl": "fixable",
        "BlindOwl": "blocked",
        "HeirOwl": "satisfied",
        "LostOwl": "blocked",
        "SkipOwl": "fixable",
        "WiredOwl": "satisfied",
    }
    assert session.run().errors == ()
    assert {f.source for f in session.run().findings} == {Source.TREE}


def test_broken_base_outside_the_plugin_is_named(session):
    finding = next(f for f in session.run().findings if f.class_name == "LostOwl")
    assert (
        "Cohere2VisionForConditionalGeneration lies outside the target and "
        "has to be mended there" in finding.message
    )
    assert finding.edits == ()
    assert {e.source for e in finding.evidence} >= {Source.TREE, Source.BASE}


def test_inner_model_of_vllm_is_followed(session, release):
    finding = next(f for f in session.run().findings if f.class_name == "BlindOwl")
    assert "KimiLinearForCausalLM has no make_empty_" in finding.message
    for evidence in finding.evidence:
        if evidence.source is Source.BASE:
            text = (release("0.21.0") / evidence.file).read_text().splitlines()
            assert evidence.line <= len(text)


def test_evidence_of_the_healthy_heir_is_the_line_of_vllm(session, release):
    finding = next(f for f in session.run().findings if f.class_name == "HeirOwl")
    keeper = finding.evidence[0]
    assert keeper.source is Source.BASE
    line = (release("0.21.0") / keeper.file).read_text().splitlines()[keeper.line - 1]
    assert "self.make_empty_intermediate_tensors" in line
    assert finding.file == "src/owlets/heir.py"


def test_plugin_is_mended_and_then_at_peace(session, release):
    patches = list(session.patches(session.run().findings))
    assert all(isinstance(patch, FilePatch) for patch in patches), patches
    assert {patch.file for patch in patches} == {
        "src/owlets/bare.py",
        "src/owlets/skip.py",
    }
    files = {name: text.encode() for name, text in PLUGIN.items()}
    files |= {patch.file: patch.after for patch in patches}
    again = Session(
        MemoryTree(files),
        base=DirectoryTree(release("0.21.0")),
        codemods=(DelegateIntermediateTensors(),),
    )
    found = {f.class_name: f.status for f in again.run().findings}
    assert found["BareOwl"] == found["SkipOwl"] == "satisfied"
    assert list(again.patches(again.run().findings)) == []


def test_without_a_base_nothing_is_promised():
    tree = MemoryTree({name: text.encode() for name, text in PLUGIN.items()})
    assert Session(tree, codemods=(DelegateIntermediateTensors(),)).run().findings == ()
