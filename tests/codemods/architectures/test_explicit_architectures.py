"""The architectures codemod on small trees: what is named, and what is left alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

WRAP = "vllm/model_executor/models/wrap.py"


DIRECT = """
self.language_model = InnerLLM(
    vllm_config=vllm_config.with_hf_config(config.text_config),
    prefix=prefix,
)
"""
REGISTRY = """
self.language_model = init_vllm_registered_model(
    vllm_config=vllm_config,
    hf_config=config.text_config,
    prefix=prefix,
)
"""
HANDED = """
self.language_model = {inner}(
    vllm_config=vllm_config,
    prefix=prefix,
)
"""
TOWER = """
with self._mark_tower_model(vllm_config, "audio"):
    self.encoder = Encoder(
        vllm_config=vllm_config.with_hf_config(config.audio_config),
    )
with self._mark_language_model(vllm_config):
    self.language_model = AlphaForCausalLM(vllm_config=vllm_config)
"""


@dataclass(frozen=True)
class Row:
    """One small tree and what is said of its wrapper."""

    rule: str
    body: str
    status: str
    says: str
    config: str = "FreshConfig"
    era: str = "fills"
    bases: str = "nn.Module, SupportsMultiModal, SupportsPP"
    before: str = ""
    more: str = ""
    files: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.rule


UNCHANGED = [
    Row(
        "a name given by keyword is enough",
        DIRECT.replace("text_config)", 'text_config, architectures=["A"])'),
        "satisfied",
        "the call gives A",
    ),
    Row(
        "a name given by position is enough",
        DIRECT.replace("text_config)", 'text_config, ["AlphaForCausalLM"])'),
        "satisfied",
        "the call gives AlphaForCausalLM",
    ),
    Row(
        "a variable that holds a name is enough",
        'names = ["AlphaForCausalLM"]\n'
        + DIRECT.replace("text_config)", "text_config, architectures=names)"),
        "satisfied",
        "the call gives AlphaForCausalLM",
    ),
    Row(
        "names that a condition chooses are enough",
        "names = None\n"
        'if config.text_config.model_type == "a":\n'
        '    names = ["AlphaForCausalLM"]\n'
        + REGISTRY.replace("prefix=prefix", "architectures=names"),
        "satisfied",
        "the call gives AlphaForCausalLM",
    ),
    Row(
        "two names are enough",
        REGISTRY.replace("prefix=prefix", 'architectures=["AlphaForCausalLM", "B"]'),
        "satisfied",
        "AlphaForCausalLM or B",
    ),
    Row(
        "a name given inside another call is enough",
        """
        self.language_model = init_vllm_registered_model(
            vllm_config=vllm_config.with_hf_config(
                config.text_config, architectures=["AlphaForCausalLM"]
            ),
        )
        """,
        "satisfied",
        "the call gives AlphaForCausalLM",
    ),
    Row(
        "a name assigned before on every way is enough",
        'if config.text_config.model_type == "a":\n'
        '    config.text_config.architectures = ["AlphaForCausalLM"]\n'
        "else:\n"
        '    config.text_config.architectures = ["Qwen3ForCausalLM"]\n' + REGISTRY,
        "satisfied",
        "sets the architectures of text_config",
    ),
    Row(
        "a name assigned only under a condition proves nothing",
        'if config.text_config.model_type == "a":\n'
        '    config.text_config.architectures = ["AlphaForCausalLM"]\n' + DIRECT,
        "unproven",
        "only under a condition",
    ),
    Row(
        "a name assigned after the view does not count for it",
        DIRECT + 'config.text_config.architectures = ["AlphaForCausalLM"]',
        "fixable",
        "The inner class names AlphaForCausalLM",
    ),
    Row(
        "a name that the wrapper's updater assigns is enough",
        REGISTRY,
        "satisfied",
        "WrapUpdater.verify_and_update_model_config",
        files={
            "config.py": """
            class WrapUpdater:
                @staticmethod
                def verify_and_update_model_config(model_config):
                    text_config = model_config.hf_config.text_config
                    text_config.architectures = ["AlphaForCausalLM"]


            MODELS_CONFIG_MAP = {
                "WrapForConditionalGeneration": WrapUpdater,
            }
            """
        },
    ),
    Row(
        "a name that the config class states is enough",
        REGISTRY,
        "satisfied",
        "StatingTextConfig itself says AlphaForCausalLM",
        config="StatingConfig",
    ),
    Row(
        "a name that Transformers' mapping fills in is enough",
        REGISTRY,
        "satisfied",
        "with_hf_config fills Qwen3ForCausalLM in",
        config="MappedConfig",
    ),
    Row(
        "a mapped name is enough where nothing runs in parallel",
        TOWER,
        "satisfied",
        "does not run in pipeline parallel",
        bases="nn.Module, SupportsMultiModal",
    ),
    Row(
        "a tree that fills nothing in is told about once, not per class",
        REGISTRY,
        "exempt",
        "contract note",
        config="MappedConfig",
        era="none",
    ),
    Row(
        "a sub-config by AutoConfig is the checkpoint's choice",
        DIRECT,
        "exempt",
        "AutoConfig",
        config="AutoedConfig",
    ),
    Row(
        "a sub-config by CONFIG_MAPPING is the checkpoint's choice",
        DIRECT,
        "exempt",
        "CONFIG_MAPPING",
        config="ChosenConfig",
    ),
    Row(
        "a default does not make the checkpoint's choice a fact",
        DIRECT,
        "exempt",
        "by default 'qwen3_vl_text'",
        config="DefaultedConfig",
    ),
    Row(
        "a Protocol says which fields a config has, not which class it is",
        DIRECT,
        "exempt",
        "the tree names no config class",
        config="WrapShape",
        before="""
        from typing import Protocol


        class WrapShape(Protocol):
            text_config: object


        """,
    ),
    Row(
        "one guard of two is none",
        DIRECT,
        "fixable",
        "The inner class names AlphaForCausalLM",
        era="guards half",
    ),
    Row(
        "names passed on from a config that the checkpoint chooses are its choice",
        REGISTRY.replace(
            "prefix=prefix", "architectures=config.text_config.architectures"
        ),
        "exempt",
        "AutoConfig",
        config="AutoedConfig",
    ),
    Row(
        "names passed on from a config that has none prove nothing",
        REGISTRY.replace(
            "prefix=prefix", "architectures=config.text_config.architectures"
        ),
        "unproven",
        "has a name to pass on",
    ),
    Row(
        "a config class that the tree does not name is the checkpoint's",
        DIRECT,
        "exempt",
        "the tree names no config class",
        config="",
    ),
    Row(
        "a view of a class called directly is harmless where views are not checked",
        DIRECT,
        "satisfied",
        "views are not checked",
        era="guards",
    ),
    Row(
        "the inner class's own name is what counts where views are not checked",
        HANDED.format(inner="NamingLLM"),
        "satisfied",
        "NamingLLM itself gives Qwen3ForCausalLM",
        config="RenamedConfig",
        era="guards",
    ),
    Row(
        "a view of the whole config keeps the wrapper's own names",
        DIRECT.replace("config.text_config", "config"),
        "satisfied",
        "keeps the wrapper's own architecture names",
    ),
    Row(
        "a class without a registered relative has no name",
        DIRECT.replace("InnerLLM", "LoneLLM"),
        "unproven",
        "neither LoneLLM nor an ancestor is registered",
    ),
    Row(
        "roads that end at different classes prove nothing",
        DIRECT.replace("InnerLLM", "MixedLLM"),
        "unproven",
        "disagree",
    ),
    Row(
        "a text model looked up by name may be named by the checkpoint",
        REGISTRY,
        "unproven",
        "whether a checkpoint's config names the model",
    ),
    Row(
        "an encoder whose name resolves to a class without parallelism is for review",
        TOWER,
        "review",
        "NotImplementedError at pipeline-parallel size 2",
        files={
            "whisper.py": """
            import torch.nn as nn


            class WhisperForConditionalGeneration(nn.Module):
                pass
            """
        },
    ),
    Row(
        "a name that stands for a class without parallelism is for review",
        DIRECT.replace("InnerLLM", "SlowForCausalLM"),
        "review",
        "does not support pipeline parallelism",
    ),
    Row(
        "a field that the text config lacks makes the move one for review",
        HANDED.format(inner="GreedyLLM"),
        "review",
        "RenamedTextConfig lacks wrapped_token",
        config="RenamedConfig",
    ),
    Row(
        "an inner class that takes nothing narrow makes the move one for review",
        HANDED.format(inner="WholeLLM"),
        "review",
        "cannot take a narrow configuration",
        config="RenamedConfig",
    ),
    Row(
        "one indirect road alone is for review",
        DIRECT.replace("InnerLLM", "PlainLLM"),
        "review",
        "no second road leads there",
    ),
    Row(
        "a heir whose config the checkpoint chooses forbids the fix",
        DIRECT,
        "unproven",
        "HeirForConditionalGeneration runs the same call",
        config="",
        before="""
        class Info:
            def get_hf_config(self):
                return self.ctx.get_hf_config(FreshConfig)


        class HeirInfo:
            def get_hf_config(self):
                return self.ctx.get_hf_config(AutoedConfig)


        @MULTIMODAL_REGISTRY.register_processor(None, info=Info)
        """,
        more="""
        @MULTIMODAL_REGISTRY.register_processor(None, info=HeirInfo)
        class HeirForConditionalGeneration(WrapForConditionalGeneration):
            pass
        """,
    ),
]


@dataclass(frozen=True)
class Change:
    """One small tree and the lines that the fix adds to its wrapper's file."""

    rule: str
    body: str
    added: tuple[str, ...]
    config: str = "FreshConfig"
    era: str = "fills"
    before: str = ""
    more: str = ""
    heirs: tuple[str, ...] = ()
    status: str = "fixable"

    def __str__(self) -> str:
        return self.rule


ALPHA = 'architectures=["AlphaForCausalLM"]'
QWEN3 = 'architectures=["Qwen3ForCausalLM"]'

CHANGED = [
    Change(
        "the nearest registered ancestor gives the name",
        DIRECT,
        (
            "            vllm_config=vllm_config.with_hf_config(",
            f"                config.text_config, {ALPHA}",
            "            ),",
        ),
    ),
    Change(
        "the inner class's own registration gives the name",
        DIRECT.replace("InnerLLM", "AlphaForCausalLM"),
        (
            "            vllm_config=vllm_config.with_hf_config(",
            f"                config.text_config, {ALPHA}",
            "            ),",
        ),
    ),
    Change(
        "a tree that fills nothing in needs the name as well",
        DIRECT,
        (
            "            vllm_config=vllm_config.with_hf_config(",
            f"                config.text_config, {ALPHA}",
            "            ),",
        ),
        era="none",
    ),
    Change(
        "the backbone and the config's ancestor agree on the name",
        DIRECT.replace("InnerLLM", "PlainLLM"),
        (
            "            vllm_config=vllm_config.with_hf_config(",
            f"                config.text_config, {QWEN3}",
            "            ),",
        ),
        config="RenamedConfig",
    ),
    Change(
        "a class that narrows the whole configuration is narrowed by its wrapper",
        HANDED.format(inner="NarrowingLLM"),
        (
            "            vllm_config=vllm_config.with_hf_config(",
            f"                config.text_config, {QWEN3}",
            "            ),",
        ),
        config="RenamedConfig",
    ),
    Change(
        "without a local name for the config, the whole path is written",
        "config = config.text_config\n" + HANDED.format(inner="NarrowingLLM"),
        (
            "            vllm_config=vllm_config.with_hf_config(",
            "                vllm_config.model_config.hf_config.text_config,",
            f"                {QWEN3},",
            "            ),",
        ),
        config="RenamedConfig",
    ),
    Change(
        "a call that is spread over lines gets one line more",
        """
        self.language_model = InnerLLM(
            vllm_config=vllm_config.with_hf_config(
                config.text_config,
            ),
        )
        """,
        (f"                {ALPHA},",),
    ),
    Change(
        "a call whose one line is too long is broken from the outside in",
        """
        self.language_model = InnerLLM(vllm_config.with_hf_config(config.text_config))
        """,
        (
            "        self.language_model = InnerLLM(",
            "            vllm_config.with_hf_config(",
            f"                config.text_config, {ALPHA}",
            "            )",
            "        )",
        ),
    ),
    Change(
        "a call that still fits stays on its line",
        """
        view = vllm_config.with_hf_config(config.text_config)
        self.model = InnerLLM(vllm_config=view)
        """,
        (
            "        view = vllm_config.with_hf_config(",
            f"            config.text_config, {ALPHA}",
            "        )",
        ),
    ),
    Change(
        "the processing info names the config class",
        DIRECT,
        (
            "            vllm_config=vllm_config.with_hf_config(",
            f"                config.text_config, {ALPHA}",
            "            ),",
        ),
        config="",
        before="""
        class Info:
            def get_hf_config(self):
                return self.ctx.get_hf_config(FreshConfig)


        @MULTIMODAL_REGISTRY.register_processor(None, info=Info)
        """,
    ),
    Change(
        "heirs of the same call are healed with it",
        DIRECT,
        (
            "            vllm_config=vllm_config.with_hf_config(",
            f"                config.text_config, {ALPHA}",
            "            ),",
        ),
        more="""
        class HeirForConditionalGeneration(WrapForConditionalGeneration):
            pass
        """,
        heirs=("vllm.model_executor.models.wrap:HeirForConditionalGeneration",),
    ),
    Change(
        "a model looked up by the wrapper's own names is named by two roads",
        """
        self.language_model: Qwen3ForCausalLM = init_vllm_registered_model(
            vllm_config=vllm_config,
            hf_config=config,
        )
        """,
        (f"            {QWEN3},",),
        config="RenamedTextConfig",
        before="from vllm.transformers_utils.configs.own import RenamedTextConfig\n",
    ),
    Change(
        "a text model looked up by name gets its siblings' name, for review",
        REGISTRY,
        (f"            {ALPHA},",),
        more="""
        class SiblingForConditionalGeneration(nn.Module, SupportsMultiModal):
            def __init__(self, *, vllm_config, prefix=""):
                super().__init__()
                config: FreshConfig = vllm_config.model_config.hf_config
                self.language_model = init_vllm_registered_model(
                    vllm_config=vllm_config,
                    hf_config=config.text_config,
                    architectures=["AlphaForCausalLM"],
                )
        """,
        status="review",
    ),
]
NAME = "WrapForConditionalGeneration"


@pytest.mark.parametrize("row", UNCHANGED, ids=str)
def test_left_alone(mini: Any, row: Row) -> None:
    wrap = mini.wrapper(
        row.body,
        config=row.config,
        bases=row.bases,
        before=row.before,
        more=row.more,
    )
    judged = mini.judge(mini.tree(wrap, row.era, **row.files))
    found = judged.finding(NAME)
    assert found.status == row.status, found.message
    assert row.says in found.message
    if row.status != "fixable":
        assert not [e for e in found.edits if row.status != "review"]


@pytest.mark.parametrize("row", CHANGED, ids=str)
def test_mended(mini: Any, row: Change) -> None:
    wrap = mini.wrapper(row.body, config=row.config, before=row.before, more=row.more)
    judged = mini.judge(mini.tree(wrap, row.era))
    found = judged.finding(NAME)
    assert found.status == row.status, found.message
    assert found.heirs == row.heirs
    assert tuple(mini.new_lines(judged)) == row.added


@pytest.mark.parametrize("row", CHANGED, ids=str)
def test_ruff_has_nothing_to_change(mini: Any, row: Change, tmp_path: Path) -> None:
    wrap = mini.wrapper(row.body, config=row.config, before=row.before, more=row.more)
    pytest.importorskip("ruff")
    before = tmp_path / "before.py"
    before.write_text(wrap)
    ruff = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--line-length",
        "88",
        "--quiet",
    ]
    subprocess.run([*ruff, str(before)], check=True)
    after = mini.judge(mini.tree(before.read_text(), row.era)).patched()[WRAP]
    before.write_text(after)
    subprocess.run([*ruff, str(before)], check=True)
    assert before.read_text() == after


@pytest.mark.parametrize("row", CHANGED, ids=str)
def test_mended_once(mini: Any, row: Change) -> None:
    wrap = mini.wrapper(row.body, config=row.config, before=row.before, more=row.more)
    files = mini.tree(wrap, row.era)
    after = mini.judge(files).patched()[WRAP]
    again = mini.judge({**files, "wrap.py": after})
    assert not again.patched()
    assert again.finding(NAME).status == "satisfied"


@pytest.mark.parametrize("era", ["none", "fills", "guards"])
def test_the_contract_note_tells_the_era(mini: Any, era: str) -> None:
    judged = mini.judge(mini.tree(mini.wrapper(DIRECT), era))
    (note,) = [n for n in judged.result.contract if n.name == "architectures"]
    cited = [judged.text_at(e.file, e.line) for e in note.evidence]
    if era == "guards":
        assert "harmless" in note.statement
        assert any("is_submodel_config" in line for line in cited)
        assert any("self.architectures and" in line for line in cited)
    else:
        assert "IndexError on CPU and ValueError" in note.statement
        assert "self.match(self.architectures[0])" in " ".join(cited)
    assert ("never fills a name in" in note.statement) == (era == "none")


def test_a_tree_without_views_has_no_such_contract(mini: Any) -> None:
    judged = mini.judge({"wrap.py": mini.wrapper(DIRECT)})
    assert not judged.result.findings
    assert not [n for n in judged.result.contract if n.name == "architectures"]


def test_classes_that_make_no_view_get_no_finding(mini: Any) -> None:
    wrap = mini.wrapper(
        "self.language_model = AlphaForCausalLM(vllm_config=vllm_config)"
    )
    assert not mini.judge(mini.tree(wrap)).result.findings


def test_the_root_cause_tells_known_types_from_unknown_ones(mini: Any) -> None:
    known = mini.wrapper(DIRECT, config="Qwen3VLConfig").replace(
        "import torch.nn as nn",
        "import torch.nn as nn\nfrom transformers import Qwen3VLConfig",
        1,
    )
    said = mini.judge(mini.tree(known)).finding(NAME).message
    assert "known to Transformers, but is no causal language model" in said
    fresh = mini.judge(mini.tree(mini.wrapper(DIRECT))).finding(NAME).message
    assert "unknown to Transformers' model and causal-LM mappings" in fresh


def test_siblings_that_give_the_name_are_cited(mini: Any) -> None:
    sibling = mini.wrapper(
        DIRECT.replace("text_config)", f"text_config, {ALPHA})"),
        name="SiblingForConditionalGeneration",
    )
    files = mini.tree(mini.wrapper(DIRECT), **{"sibling.py": sibling})
    cited = mini.judge(files).cited(mini.judge(files).finding(NAME))
    said = "SiblingForConditionalGeneration gives AlphaForCausalLM"
    assert any(statement.startswith(said) for _, statement in cited)


def test_both_roads_are_in_the_evidence(mini: Any) -> None:
    wrap = mini.wrapper(HANDED.format(inner="NarrowingLLM"), config="RenamedConfig")
    judged = mini.judge(mini.tree(wrap))
    said = " / ".join(e.statement for e in judged.finding(NAME).evidence)
    assert "NarrowingLLM builds PlainModel as its backbone" in said
    assert "Qwen3ForCausalLM builds Qwen3Model" in said
    assert "RenamedTextConfig is a Qwen3Config, whose model_type is 'qwen3'" in said
    assert "PlainModel reads hidden_size of its config" in said


def test_an_updater_for_the_name_is_told_not_to_run_again(mini: Any) -> None:
    files = mini.tree(
        mini.wrapper(DIRECT),
        **{"config.py": 'MODELS_CONFIG_MAP = {\n    "AlphaForCausalLM": Alpha,\n}\n'},
    )
    judged = mini.judge(files)
    said = [e.statement for e in judged.finding(NAME).evidence]
    assert "an updater is registered for AlphaForCausalLM" in said
    assert "updaters ran before a view is made, and do not run again for it" in said


def test_a_capability_that_views_look_up_by_name_is_for_review(mini: Any) -> None:
    files = mini.tree(mini.wrapper(DIRECT))
    files["inner.py"] = (
        files["inner.py"]
        .replace("import SupportsPP", "import SupportsMultiModal, SupportsPP")
        .replace("(AlphaForCausalLM):", "(AlphaForCausalLM, SupportsMultiModal):", 1)
    )
    assert mini.judge(files).finding(NAME).status == "fixable"
    files["vllm/config/model.py"] += """
class More:
    @property
    def is_multimodal_model(self):
        return self.registry.is_multimodal_model(self.architectures, self)
"""
    found = mini.judge(files).finding(NAME)
    assert found.status == "review"
    assert "SupportsMultiModal is looked up by the name" in found.message


def test_an_encoder_gets_the_wrappers_own_name_where_a_sibling_does(
    mini: Any,
) -> None:
    sibling = mini.wrapper(
        TOWER.replace(
            "config.audio_config)",
            'config.audio_config, architectures=["SiblingForConditionalGeneration"])',
        ),
        name="SiblingForConditionalGeneration",
    )
    whisper = (
        "import torch.nn as nn\n\n\n"
        "class WhisperForConditionalGeneration(nn.Module):\n    pass\n"
    )
    files = mini.tree(
        mini.wrapper(TOWER), **{"sibling.py": sibling, "whisper.py": whisper}
    )
    judged = mini.judge(files)
    found = judged.finding(NAME)
    assert found.status == "review"
    assert "SiblingForConditionalGeneration gives its encoder its own name" in (
        found.message
    )
    assert f'architectures=["{NAME}"]' in judged.patched()[WRAP]
