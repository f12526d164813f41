"""Facts about a Transformers release: how they are read, kept and loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from vlmend.codemods.analysis.transformers_catalog import (
    CatalogError,
    available_versions,
    decode,
    encode,
    join_pool,
    load,
    split_pool,
)
from vlmend.codemods.analysis.transformers_facts import (
    CAUSAL_LM_MAPPING,
    CONFIG_MAPPING,
    MULTIMODAL_MAPPING,
    Known,
    TransformersFacts,
)
from vlmend.codemods.analysis.transformers_reader import (
    TransformersError,
    read_transformers,
)
from vlmend.codemods.analysis.tree import MemoryTree
from vlmend.codemods.codemod import Source

AUTO = "transformers/models/auto/"
OLD: Mapping[str, str] = {
    "transformers/__init__.py": '__version__ = "4.90.1"\n',
    "transformers/configuration_utils.py": (
        "class PretrainedConfig(PushToHubMixin):\n"
        '    model_type: str = ""\n'
        "    def __init__(self, **kwargs):\n"
        '        self.architectures = kwargs.pop("architectures", None)\n'
    ),
    f"{AUTO}configuration_auto.py": (
        "CONFIG_MAPPING_NAMES = OrderedDict[str, str](\n"
        '    [\n        ("ink", "InkConfig"),\n'
        '        ("box", "BoxConfig"),\n    ]\n)\n'
    ),
    f"{AUTO}modeling_auto.py": (
        'MODEL_MAPPING_NAMES = OrderedDict([("ink", ("InkModel", "InkBase"))])\n'
        "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict(\n"
        '    [\n        ("ink", "InkForCausalLM"),\n    ]\n)\n'
        "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES = OrderedDict("
        '[("box", "BoxForConditionalGeneration")])\n'
        "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES = OrderedDict(\n"
        "    [*list(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.items()),\n"
        '     ("ear", "EarForConditionalGeneration")])\n'
    ),
    "transformers/models/ink/configuration_ink.py": (
        "class InkConfig(PretrainedConfig):\n"
        '    model_type = "ink"\n'
        "    def __init__(self, width=1, **kwargs):\n"
        "        super().__init__(**kwargs)\n"
        "class InkOnnxConfig(OnnxConfig):\n    pass\n"
    ),
    "transformers/models/box/configuration_box.py": (
        "class BoxConfig(PretrainedConfig):\n"
        '    model_type = "box"\n'
        '    sub_configs = {"text_config": InkConfig}\n'
        "class LidConfig(InkConfig):\n    pass\n"
    ),
    "transformers/models/box/modular_box.py": "class TwiceConfig(InkConfig): ...\n",
}
NEW = {
    **OLD,
    f"{AUTO}auto_mappings.py": (
        'CONFIG_MAPPING_NAMES = OrderedDict([("ink", "InkConfig")])\n'
    ),
    f"{AUTO}configuration_auto.py": (
        "from .auto_mappings import CONFIG_MAPPING_NAMES\n"
        'CONFIG_MAPPING_NAMES.update({"box": "BoxConfig"})\n'
        'CONFIG_MAPPING_NAMES["lid"] = "LidConfig"\n'
        "CONFIG_MAPPING_NAMES = OrderedDict("
        '**{"ink-2": "InkConfig"}, **CONFIG_MAPPING_NAMES)\n'
    ),
}


def facts(files: Mapping[str, str]) -> TransformersFacts:
    return read_transformers(
        MemoryTree({name: text.encode() for name, text in files.items()})
    )


def test_older_layout() -> None:
    found = facts(OLD)
    assert found.version == "4.90.1"
    assert set(found.classes) == {
        *("PretrainedConfig", "InkConfig", "BoxConfig", "LidConfig")
    }
    entry = found.mapped(CONFIG_MAPPING, "box")
    assert entry is not None
    assert (entry.names, entry.file, entry.line) == (
        ("BoxConfig",),
        f"{AUTO}configuration_auto.py",
        4,
    )


def test_newer_layout_adds_up_over_files() -> None:
    found = facts(NEW).mappings[CONFIG_MAPPING]
    assert {k: (v.names, v.file.rpartition("/")[2]) for k, v in found.items()} == {
        "ink-2": (("InkConfig",), "configuration_auto.py"),
        "ink": (("InkConfig",), "auto_mappings.py"),
        "box": (("BoxConfig",), "configuration_auto.py"),
        "lid": (("LidConfig",), "configuration_auto.py"),
    }


def test_mapping_unpacks_another() -> None:
    assert set(facts(OLD).mappings[MULTIMODAL_MAPPING]) == {"box", "ear"}


KNOWN = [
    pytest.param("ink", Known.CAUSAL_LM, id="a causal language model"),
    pytest.param("ear", Known.MODEL, id="a model that is none"),
    pytest.param("lid", Known.CONFIG, id="a config without a model"),
    pytest.param("pen", Known.UNKNOWN, id="nothing"),
]


@pytest.mark.parametrize(("model_type", "expected"), KNOWN)
def test_known(model_type: str, expected: Known) -> None:
    assert facts(NEW).known(model_type) is expected


def test_evidence_cites_the_entry() -> None:
    found = facts(OLD).evidence(CAUSAL_LM_MAPPING, "ink")
    assert found is not None
    assert (found.source, found.file, found.line) == (
        Source.TRANSFORMERS,
        f"{AUTO}modeling_auto.py",
        4,
    )
    assert "4.90.1" in found.statement
    assert "InkForCausalLM" in found.statement


def test_resolve_joins_ancestors() -> None:
    found = facts(OLD).resolve("LidConfig")
    assert found is not None
    assert [c.name for _, c in found.mro] == [
        *("LidConfig", "InkConfig", "PretrainedConfig")
    ]
    assert found.model_type == "ink"
    assert {"width", "architectures"} <= found.fields
    assert found.complete


def test_either_spelling_of_the_root_is_found() -> None:
    found = facts(OLD).config_class("PreTrainedConfig")
    assert found is not None
    assert found.name == "PretrainedConfig"


PLACES = [
    pytest.param("", id="the package folder itself"),
    pytest.param("src/transformers/", id="a checkout"),
]


@pytest.mark.parametrize("root", PLACES)
def test_other_places_of_the_package(root: str) -> None:
    moved = {name.replace("transformers/", root, 1): text for name, text in OLD.items()}
    found = facts(moved)
    assert found.version == "4.90.1"
    assert found.classes["InkConfig"][0].file.endswith(
        "models/ink/configuration_ink.py"
    )
    assert not found.classes["InkConfig"][0].file.startswith("src/")


BROKEN = [
    pytest.param({}, "not a Transformers package", id="another tree"),
    pytest.param(
        {**OLD, f"{AUTO}modeling_auto.py": "def f(:\n"}, "does not parse", id="syntax"
    ),
    pytest.param(
        {**OLD, f"{AUTO}modeling_auto.py": "x = 1\n"}, CAUSAL_LM_MAPPING, id="form"
    ),
]


@pytest.mark.parametrize(("files", "message"), BROKEN)
def test_unreadable_release_is_an_error(files: dict[str, str], message: str) -> None:
    with pytest.raises(TransformersError, match=message):
        facts(files)


def test_one_broken_config_file_is_passed_over() -> None:
    broken = {"transformers/models/bad/configuration_bad.py": "class BadConfig(:\n"}
    assert "InkConfig" in facts({**OLD, **broken}).classes


@pytest.mark.parametrize("files", [OLD, NEW], ids=["older", "newer"])
def test_stored_form_gives_the_same_facts(files: Mapping[str, str]) -> None:
    read = facts(files)
    pool: dict[str, int] = {}
    index = json.loads(json.dumps(encode(read, pool)))
    text = join_pool(pool)
    assert len(json.loads(text)) == len(pool)
    again = decode(index, split_pool(text.encode()))
    assert again.version == read.version
    assert again.mappings == read.mappings
    assert dict(again.classes) == dict(read.classes)


def test_equal_classes_are_stored_once() -> None:
    pool: dict[str, int] = {}
    encode(facts(OLD), pool)
    before = len(pool)
    shifted = {name: f"# licence\n\n{text}" for name, text in OLD.items()}
    encode(facts(shifted), pool)
    assert len(pool) == before


COUNTS = [
    pytest.param("4.51.1", 108, id="floor of 0.8.5"),
    pytest.param("5.5.3", 153, id="pin of 0.21.0"),
    pytest.param("5.10.4", 163, id="floor of 0.29.0"),
    pytest.param("5.20.2", 182, id="pin of 0.33.0"),
    pytest.param("5.24.0", 196, id="the newest"),
]


@pytest.mark.parametrize(("version", "count"), COUNTS)
def test_shipped_causal_lm_names(version: str, count: int) -> None:
    assert len(load(version).mappings[CAUSAL_LM_MAPPING]) == count


@pytest.mark.parametrize("version", available_versions())
def test_shipped_release_is_whole(version: str) -> None:
    found = load(version)
    assert found.version == version
    names = {n for e in found.mappings[CONFIG_MAPPING].values() for n in e.names}
    assert names <= set(found.classes)
    for config in found.all_classes():
        resolved = found.resolve(config.name, config.file[:-3].replace("/", "."))
        assert resolved is not None
        assert resolved.config == config
        assert resolved.complete, (config.name, resolved.missing)


def test_release_that_is_not_shipped_names_those_that_are() -> None:
    with pytest.raises(CatalogError, match=r"no facts about Transformers 3\.0.*5\.24"):
        load("3.0")
