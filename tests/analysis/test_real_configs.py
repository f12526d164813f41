"""What real vLLM releases and the published Transformers packages say."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from vlmend.codemods.analysis.config_classes import GET_TEXT_CONFIG
from vlmend.codemods.analysis.text_configs import TextConfig, Unknown, read_configs
from vlmend.codemods.analysis.transformers_catalog import available_versions, load
from vlmend.codemods.analysis.transformers_facts import Known
from vlmend.codemods.analysis.transformers_reader import read_transformers
from vlmend.codemods.analysis.tree import DirectoryTree, MemoryTree
from vlmend.codemods.codemod import Source

Release = Callable[[str], Path]
CONFIGS = "vllm.transformers_utils.configs"

PLAIN = [
    pytest.param("0.21.0", ("4.56.0", "5.5.3"), id="0.21.0"),
    pytest.param("0.22.0", ("4.56.0", "5.5.3"), id="0.22.0"),
    pytest.param("0.29.0", ("5.10.4", "5.15.0"), id="0.29.0"),
    pytest.param("0.33.0", ("5.16.1", "5.20.2"), id="0.33.0"),
]
HEAVY = [
    ("0.8.5", "4.51.1", "4.51.3"),
    ("0.9.0", "4.51.1", "4.51.3"),
    ("0.9.1", "4.51.1", "4.52.4"),
    ("0.9.2", "4.51.1", "4.52.4"),
    ("0.10.0", "4.53.2", "4.53.2"),
    ("0.10.1", "4.55.0", "4.55.0"),
    ("0.10.2", "4.55.2", "4.55.2"),
    ("0.11.0", "4.55.2", "4.55.2"),
    ("0.11.1", "4.56.0", "4.57.1"),
    ("0.12.0", "4.56.0", "4.57.3"),
    ("0.13.0", "4.56.0", "4.57.3"),
    ("0.14.0", "4.56.0", "4.57.3"),
    ("0.16.0", "4.56.0", "4.57.5"),
    ("0.17.0", "4.56.0", "4.57.5"),
    ("0.18.0", "4.56.0", "4.57.5"),
    ("0.19.0", "4.56.0", "4.57.5"),
    ("0.20.0", "4.56.0", "5.5.3"),
    ("0.23.0", "4.56.0", "5.5.3"),
    ("0.24.0", "5.5.3", "5.5.3"),
    ("0.25.0", "5.5.3", "5.5.3"),
    ("0.26.0", "5.5.3", "5.13.1"),
    ("0.27.0", "5.5.3", "5.14.1"),
    ("0.28.0", "5.5.3", "5.15.0"),
    ("0.30.0", "5.10.4", "5.16.1"),
    ("0.31.0", "5.10.4", "5.17.0"),
    ("0.32.0", "5.16.1", "5.19.0"),
]


@pytest.mark.parametrize(("version", "ends"), PLAIN)
def test_release_is_served_exactly(
    release: Release, version: str, ends: tuple[str, str]
) -> None:
    _check_release(release(version), ends)


@pytest.mark.replay
@pytest.mark.parametrize(("version", "floor", "pin"), HEAVY)
def test_older_release_is_served_exactly(
    release: Release, version: str, floor: str, pin: str
) -> None:
    _check_release(release(version), (floor, pin))


def _check_release(root: Path, ends: tuple[str, str]) -> None:
    """Both ends are shipped, and every config of the tree can be joined to the root."""
    tree = DirectoryTree(root)
    found = read_configs(tree)
    assert (found.floor_choice.version, found.pin_choice.version) == ends
    assert found.floor_choice.exact
    assert found.pin_choice.exact
    assert len(found.allowed.evidence) == 2
    registry = found.pin.vllm.registry
    assert len(registry) > 10
    assert [name for name in registry if found.pin.registered(name) is None] == []
    for file in tree.python_files(CONFIGS.replace(".", "/")):
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in _classes_in(tree.read(file)):
            resolved = found.pin.resolve(name, module)
            assert resolved is not None, (file, name)
            assert resolved.complete, (file, name, resolved.missing)


def _classes_in(source: bytes) -> list[str]:
    import ast

    return [
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
        and node.bases
        and node.name.endswith("Config")
    ]


# version, config class, module, path -> class, source, dynamic, model type, causal LM
FOLLOWED = [
    pytest.param(
        *("0.21.0", "Cohere2VisionConfig", "transformers.models.cohere2_vision"),
        ("text_config",),
        ("Cohere2Config", Source.TRANSFORMERS, True, "cohere2", "Cohere2ForCausalLM"),
        id="Cohere2Vision: a default behind CONFIG_MAPPING",
    ),
    pytest.param(
        *("0.21.0", "Qwen3VLConfig", "transformers.models.qwen3_vl"),
        ("text_config",),
        ("Qwen3VLTextConfig", Source.TRANSFORMERS, False, "qwen3_vl_text", None),
        id="Qwen3-VL: a class of its own that is not mapped",
    ),
    pytest.param(
        *("0.29.0", "Cosmos3EdgeConfig", f"{CONFIGS}.cosmos3_edge"),
        ("text_config",),
        ("Cosmos3EdgeTextConfig", Source.TREE, False, "cosmos3_edge_text", None),
        id="Cosmos3-Edge: vLLM's own class",
    ),
    pytest.param(
        *("0.29.0", "Granite4VisionConfig", "transformers"),
        ("text_config",),
        ("GraniteConfig", Source.TRANSFORMERS, True, "granite", "GraniteForCausalLM"),
        id="Granite4Vision: the registry's shim beats Transformers",
    ),
    pytest.param(
        *("0.29.0", "UltravoxConfig", f"{CONFIGS}.ultravox"),
        ("text_config",),
        ("LlamaConfig", Source.TRANSFORMERS, True, "llama", "LlamaForCausalLM"),
        id="Ultravox: through a property and get_text_config",
    ),
    pytest.param(
        *("0.29.0", "AriaConfig", "transformers"),
        ("text_config",),
        *[("AriaTextConfig", Source.TRANSFORMERS, False, "aria_text")],
        id="Aria: mapped",
    ),
    pytest.param(
        *("0.29.0", "Qwen3OmniMoeConfig", "transformers"),
        ("thinker_config", "text_config"),
        *[
            (
                "Qwen3OmniMoeTextConfig",
                Source.TRANSFORMERS,
                False,
                "qwen3_omni_moe_text",
            )
        ],
        id="Qwen3-Omni-MoE: two steps",
    ),
    pytest.param(
        *("0.29.0", "Qwen3ASRConfig", f"{CONFIGS}.qwen3_asr"),
        ("thinker_config", "text_config"),
        ("Qwen3ASRTextConfig", Source.TREE, False, "qwen3_asr_text", None),
        id="Qwen3-ASR: two steps in vLLM's own",
    ),
    pytest.param(
        *("0.33.0", "Cosmos3EdgeConfig", "transformers"),
        (GET_TEXT_CONFIG,),
        *[("Cosmos3EdgeTextConfig", Source.TRANSFORMERS, False, "cosmos3_edge_text")],
        id="Cosmos3-Edge moved to Transformers",
    ),
]


@pytest.mark.parametrize(("version", "name", "module", "path", "expected"), FOLLOWED)
def test_follow(
    release: Release,
    version: str,
    name: str,
    module: str,
    path: tuple[str, ...],
    expected: tuple[object, ...],
) -> None:
    found = read_configs(DirectoryTree(release(version))).pin.follow(name, module, path)
    assert isinstance(found, TextConfig), found
    got = (
        *(found.class_name, found.source, found.dynamic),
        *(found.model_type, found.causal_lm_name),
    )
    assert got[: len(expected)] == expected


def test_evidence_stands_on_the_cited_lines(release: Release) -> None:
    root = release("0.29.0")
    found = read_configs(DirectoryTree(root)).pin.follow(
        "Cosmos3EdgeConfig", f"{CONFIGS}.cosmos3_edge", ("text_config",)
    )
    cited = [
        (root / e.file).read_text().splitlines()[e.line - 1].strip()
        for e in found.evidence
        if e.source is Source.TREE
    ]
    assert cited == [
        "class Cosmos3EdgeConfig(PretrainedConfig):",
        "Cosmos3EdgeTextConfig(**text_config)",
        '"text_config": Cosmos3EdgeTextConfig,',
        "class Cosmos3EdgeTextConfig(NemotronHConfig):",
        'model_type = "cosmos3_edge_text"',
    ]


def test_cosmos3_edge_leads_to_nemotron_h_by_ancestry(release: Release) -> None:
    configs = read_configs(DirectoryTree(release("0.29.0"))).pin
    found = configs.resolve("Cosmos3EdgeTextConfig", f"{CONFIGS}.cosmos3_edge")
    assert found is not None
    name = configs.causal_lm_by_ancestry(found)
    assert name is not None
    assert name.name == "NemotronHForCausalLM"
    assert name.ancestor.file == "vllm/transformers_utils/configs/nemotron_h.py"


def test_ovis_is_chosen_by_the_checkpoint(release: Release) -> None:
    found = read_configs(DirectoryTree(release("0.29.0"))).pin.follow(
        "OvisConfig", CONFIGS, ("text_config",)
    )
    assert isinstance(found, Unknown)
    assert "AutoConfig.for_model" in found.reason


def test_known_but_no_causal_lm_is_told_from_unknown(release: Release) -> None:
    facts = read_configs(DirectoryTree(release("0.29.0"))).pin.facts
    assert facts.known("qwen3_vl_text") is Known.MODEL
    assert facts.known("qwen3_omni_moe_text") is Known.CONFIG
    assert facts.known("step3_text") is Known.UNKNOWN


@pytest.mark.replay
@pytest.mark.parametrize("version", available_versions())
def test_catalog_says_what_the_published_package_says(
    version: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(tmp_path)]
    subprocess.run([*command, f"transformers=={version}"], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if n.endswith(".py")]
        tree = MemoryTree({n: archive.read(n) for n in names})
    read, shipped = read_transformers(tree), load(version)
    assert shipped.mappings == read.mappings
    assert dict(shipped.classes) == dict(read.classes)
    for config in shipped.all_classes():
        line = tree.read(config.file).decode().splitlines()[config.line - 1]
        assert line.startswith(f"class {config.name}")
    for entries in shipped.mappings.values():
        for entry in entries.values():
            lines = tree.read(entry.file).decode().splitlines()
            near = "".join(lines[entry.line - 1 : entry.line + 3])
            assert f'"{entry.names[0]}"' in near
