"""Which config an attribute path leads to, across a tree, its base and Transformers."""

from __future__ import annotations

from textwrap import dedent

import pytest

from vlmend.codemods.analysis.config_classes import GET_TEXT_CONFIG
from vlmend.codemods.analysis.text_configs import (
    ConfigIndex,
    TextConfig,
    Unknown,
    read_configs,
)
from vlmend.codemods.analysis.transformers_catalog import load
from vlmend.codemods.analysis.transformers_facts import Known
from vlmend.codemods.analysis.tree import MemoryTree
from vlmend.codemods.codemod import Source

CONFIGS = "vllm.transformers_utils.configs"
PIN = "5.15.0"


def tree(files: dict[str, str]) -> MemoryTree:
    return MemoryTree({name: dedent(text).encode() for name, text in files.items()})


def configs(**modules: str) -> dict[str, str]:
    """Files below vLLM's configs package, by module name; ``registry`` is config.py."""
    found = {
        f"vllm/transformers_utils/configs/{name}.py": text
        for name, text in modules.items()
        if name != "registry"
    }
    if "registry" in modules:
        found["vllm/transformers_utils/config.py"] = modules["registry"]
    return found


def index(**modules: str) -> ConfigIndex:
    return ConfigIndex(tree(configs(**modules)), load(PIN))


def known(found: TextConfig | Unknown) -> TextConfig:
    assert isinstance(found, TextConfig), found
    return found


BOX = """
    from transformers import LlamaConfig, PretrainedConfig
    from .ink import InkConfig

    class BoxConfig(PretrainedConfig):
        model_type = "box"

        def __init__(self, text_config=None, **kwargs):
            self.text_config = {expression}
            super().__init__(**kwargs)
    """
INK = """
    from transformers import Qwen3Config

    class InkConfig(Qwen3Config):
        model_type = "ink"
    """


def box(expression: str, **modules: str) -> ConfigIndex:
    return index(box=BOX.replace("{expression}", expression), ink=INK, **modules)


def test_static_class_of_transformers() -> None:
    found = known(
        box("LlamaConfig(**text_config)").follow(
            "BoxConfig", f"{CONFIGS}.box", ("text_config",)
        )
    )
    assert (found.class_name, found.source) == ("LlamaConfig", Source.TRANSFORMERS)
    assert not found.dynamic
    assert found.reason is None
    assert (found.model_type, found.causal_lm_name) == ("llama", "LlamaForCausalLM")
    assert found.known is Known.CAUSAL_LM
    assert found.default_architectures == ()


def test_static_class_of_the_tree_and_its_ancestry() -> None:
    configs_ = box("InkConfig(**text_config)")
    found = known(configs_.follow("BoxConfig", f"{CONFIGS}.box", ("text_config",)))
    assert (found.class_name, found.source) == ("InkConfig", Source.TREE)
    assert found.file == "vllm/transformers_utils/configs/ink.py"
    assert (found.model_type, found.causal_lm_name) == ("ink", None)
    assert found.known is Known.UNKNOWN
    name = configs_.causal_lm_by_ancestry(found.resolved)
    assert name is not None
    assert (name.name, name.ancestor.name) == ("Qwen3ForCausalLM", "Qwen3Config")
    assert "hidden_size" in found.resolved.fields
    assert found.resolved.complete


def test_dynamic_class_keeps_its_default_and_the_reason() -> None:
    found = known(
        box('CONFIG_MAPPING["llama"](**text_config)').follow(
            "BoxConfig", f"{CONFIGS}.box", ("text_config",)
        )
    )
    assert found.dynamic
    assert found.class_name == "LlamaConfig"
    assert found.reason is not None
    assert (found.reason.file, found.reason.line) == (
        "vllm/transformers_utils/configs/box.py",
        9,
    )
    assert "CONFIG_MAPPING" in found.reason.statement


UNKNOWN = [
    pytest.param(
        "AutoConfig.for_model(kind, **text_config)",
        "chosen by the checkpoint",
        id="open",
    ),
    pytest.param('CONFIG_MAPPING["ink"]()', "'ink', which Transformers", id="no class"),
    pytest.param("GoneConfig()", "GoneConfig, which is not found", id="lost class"),
    pytest.param(
        "LlamaConfig() if small else InkConfig()",
        "is LlamaConfig or InkConfig",
        id="two classes",
    ),
    pytest.param("text_config", "in a way that is not read", id="passed through"),
]


@pytest.mark.parametrize(("expression", "reason"), UNKNOWN)
def test_what_is_not_told_is_unknown(expression: str, reason: str) -> None:
    found = box(expression).follow("BoxConfig", f"{CONFIGS}.box", ("text_config",))
    assert isinstance(found, Unknown)
    assert reason in found.reason
    assert found.evidence


def test_unknown_class_and_attribute() -> None:
    configs_ = box("InkConfig()")
    no_class = configs_.follow("NoConfig", f"{CONFIGS}.box")
    assert isinstance(no_class, Unknown)
    assert "no config class NoConfig" in no_class.reason
    no_attribute = configs_.follow("BoxConfig", f"{CONFIGS}.box", ("ear_config",))
    assert isinstance(no_attribute, Unknown)
    assert "has no such attribute" in no_attribute.reason


def test_constructor_overrules_a_declared_auto_config() -> None:
    text = BOX.replace(
        '        model_type = "box"',
        '        model_type = "box"\n        sub_configs = {"text_config": AutoConfig}',
    )
    found = index(box=text.replace("{expression}", "LlamaConfig()")).follow(
        "BoxConfig", f"{CONFIGS}.box", ("text_config",)
    )
    assert not known(found).dynamic


def test_post_init_does_not_overrule_a_declared_auto_config() -> None:
    found = index(
        box="""
        from transformers import AutoConfig, LlamaConfig, PreTrainedConfig

        class BoxConfig(PreTrainedConfig):
            model_type = "box"
            sub_configs_defaults = {
                "text_config": SubConfigSpec(AutoConfig, model_type="llama")
            }

            def __post_init__(self, **kwargs):
                if self.text_config is None:
                    self.text_config = LlamaConfig()
        """
    ).follow("BoxConfig", f"{CONFIGS}.box", ("text_config",))
    assert known(found).dynamic


def test_inherited_constructor_with_own_declared_class() -> None:
    found = index(
        box="""
        from transformers import LlamaConfig, PretrainedConfig, Qwen3Config

        class BaseConfig(PretrainedConfig):
            sub_configs = {"text_config": LlamaConfig}

            def __init__(self, text_config=None, **kwargs):
                self.text_config = self.sub_configs["text_config"](**text_config)

        class BoxConfig(BaseConfig):
            sub_configs = {"text_config": Qwen3Config}
        """
    ).follow("BoxConfig", f"{CONFIGS}.box", ("text_config",))
    assert known(found).class_name == "Qwen3Config"


def test_own_list_of_sub_configs_replaces_the_inherited_one() -> None:
    found = index(
        box="""
        from transformers import LlamaConfig, PretrainedConfig, Qwen3Config

        class BaseConfig(PretrainedConfig):
            sub_configs = {"text_config": LlamaConfig}

        class BoxConfig(BaseConfig):
            sub_configs = {"audio_config": Qwen3Config}
        """
    ).follow("BoxConfig", f"{CONFIGS}.box", ("text_config",))
    assert isinstance(found, Unknown)


def test_path_of_two_steps_and_get_text_config() -> None:
    configs_ = index(
        box="""
        from transformers import LlamaConfig, PretrainedConfig

        class ThinkerConfig(PretrainedConfig):
            def __init__(self, text_config=None, **kwargs):
                self.text_config = LlamaConfig(**text_config)

        class BoxConfig(PretrainedConfig):
            def __init__(self, thinker_config=None, **kwargs):
                self.thinker_config = ThinkerConfig(**thinker_config)

            def get_text_config(self, decoder=False):
                return self.thinker_config.get_text_config()

            @property
            def text_config(self):
                return self.get_text_config()
        """
    )
    for path in (
        ("thinker_config", "text_config"),
        ("thinker_config", GET_TEXT_CONFIG),
        (GET_TEXT_CONFIG,),
        ("text_config",),
    ):
        found = known(configs_.follow("BoxConfig", f"{CONFIGS}.box", path))
        assert found.class_name == "LlamaConfig"
    itself = known(configs_.follow("LlamaConfig", "transformers", (GET_TEXT_CONFIG,)))
    assert itself.class_name == "LlamaConfig"


def test_circular_property_ends() -> None:
    found = index(
        box="""
        class BoxConfig(PretrainedConfig):
            @property
            def a(self):
                return self.b

            @property
            def b(self):
                return self.a
        """
    ).follow("BoxConfig", f"{CONFIGS}.box", ("a",))
    assert isinstance(found, Unknown)
    assert "circles" in found.reason


def test_alias_of_vllm_and_of_attribute_map() -> None:
    modules = {
        "registry": '_CONFIG_ATTRS_MAPPING: dict = {"llm_config": "text_config"}\n'
        '_CONFIG_REGISTRY = LazyConfigDict(box="BoxConfig")\n',
        "box": """
        from transformers import LlamaConfig, PretrainedConfig

        class BoxConfig(PretrainedConfig):
            attribute_map = {"language_config": "llm_config"}

            def __init__(self, llm_config=None, **kwargs):
                self.llm_config = LlamaConfig(**llm_config)
        """,
    }
    for path in ("llm_config", "text_config", "language_config"):
        found = index(**modules).follow("BoxConfig", f"{CONFIGS}.box", (path,))
        assert known(found).class_name == "LlamaConfig"


REGISTRIES = [
    pytest.param(
        "from vllm.transformers_utils.configs import MyLlamaConfig\n"
        "_CONFIG_REGISTRY_OVERRIDE_HF: Dict = {'llama': MyLlamaConfig}\n"
        "_CONFIG_REGISTRY: Dict = {**_CONFIG_REGISTRY_OVERRIDE_HF}\n",
        2,
        id="a dict of classes that unpacks another",
    ),
    pytest.param(
        "_CONFIG_REGISTRY: dict = LazyConfigDict(\n    llama='MyLlamaConfig',\n)\n",
        2,
        id="a lazy dict of names",
    ),
    pytest.param(
        "_CONFIG_REGISTRY = LazyConfigDict(**{'llama': 'MyLlamaConfig'})\n",
        1,
        id="a lazy dict that unpacks a literal",
    ),
]
EXPORTS = [
    pytest.param(
        "from vllm.transformers_utils.configs.mine import MyLlamaConfig\n", id="import"
    ),
    pytest.param(
        "_CLASS_TO_MODULE: dict[str, str] = {\n"
        "    'MyLlamaConfig': 'vllm.transformers_utils.configs.mine',\n}\n",
        id="lazy",
    ),
]


@pytest.mark.parametrize(("registry", "line"), REGISTRIES)
@pytest.mark.parametrize("exports", EXPORTS)
def test_registry_beats_transformers(registry: str, line: int, exports: str) -> None:
    found = known(
        index(
            registry=registry,
            __init__=exports,
            mine="class MyLlamaConfig(PretrainedConfig):\n    width: int = 1\n",
        ).follow("LlamaConfig", "transformers.models.llama")
    )
    assert (found.class_name, found.source) == ("MyLlamaConfig", Source.TREE)
    place = [e.line for e in found.evidence if e.file.endswith("config.py")]
    assert place == [line]


def test_registry_may_name_a_class_of_transformers() -> None:
    configs_ = index(
        registry='_CONFIG_REGISTRY = LazyConfigDict(kimi="DeepseekV3Config")\n',
        __init__='_CLASS_TO_MODULE = {"DeepseekV3Config": "transformers"}\n',
    )
    found = configs_.registered("kimi")
    assert found is not None
    assert found[0][1].name == "DeepseekV3Config"
    assert configs_.registered("other") is None


def test_architectures_that_reach_an_instance() -> None:
    found = known(
        box("LlamaConfig(architectures=['LlamaForCausalLM'])").follow(
            "BoxConfig", f"{CONFIGS}.box", ("text_config",)
        )
    )
    assert found.default_architectures == ("LlamaForCausalLM",)


def test_class_attribute_is_shadowed() -> None:
    found = known(
        index(
            box="""
            class BoxConfig(PretrainedConfig):
                model_type = "box"
                architectures = ["BoxForCausalLM"]
            """
        ).follow("BoxConfig", f"{CONFIGS}.box")
    )
    assert found.default_architectures == ()
    assert found.shadowed_architectures == ("BoxForCausalLM",)
    assert any("hides" in e.statement for e in found.evidence)


def test_two_architectures_are_no_default() -> None:
    found = known(
        index(
            box="""
            class BoxConfig(PretrainedConfig):
                def __init__(self, small=False, **kwargs):
                    if small:
                        self.architectures = ["X"]
                    else:
                        self.architectures = ["Y"]
            """
        ).follow("BoxConfig", f"{CONFIGS}.box")
    )
    assert found.default_architectures == ()


def test_plugin_reads_vllm_beside_it() -> None:
    plugin = tree(
        {
            "src/plug/configs.py": """
            from vllm.transformers_utils.configs.ink import InkConfig

            class PlugConfig(InkConfig):
                model_type = "plug"
            """
        }
    )
    base = tree(
        {**configs(ink=INK), "requirements/common.txt": "transformers >= 5.10.4\n"}
    )
    found = read_configs(plugin, base)
    assert found.floor_choice.version == "5.10.4"
    assert [e.source for e in found.allowed.evidence] == [Source.BASE]
    resolved = found.pin.resolve("PlugConfig", "plug.configs")
    assert resolved is not None
    assert [(s, c.name) for s, c in resolved.mro[:3]] == [
        (Source.TREE, "PlugConfig"),
        (Source.BASE, "InkConfig"),
        (Source.TRANSFORMERS, "Qwen3Config"),
    ]


def test_facts_that_were_asked_for_count_for_both_ends() -> None:
    found = read_configs(tree(configs(ink=INK)), facts=load("4.57.5"))
    assert found.pin is found.floor
    assert found.pin.facts.version == "4.57.5"


def test_file_that_does_not_parse_hides_only_itself() -> None:
    configs_ = index(bad="class BadConfig(:\n", ink=INK)
    assert configs_.resolve("BadConfig", f"{CONFIGS}.bad") is None
    assert configs_.resolve("InkConfig", f"{CONFIGS}.ink") is not None


def test_missing_base_is_named() -> None:
    resolved = index(
        box="from gone import GoneConfig\nclass BoxConfig(GoneConfig):\n    x = 1\n"
    ).resolve("BoxConfig", f"{CONFIGS}.box")
    assert resolved is not None
    assert resolved.missing == ("GoneConfig",)
    assert not resolved.complete
