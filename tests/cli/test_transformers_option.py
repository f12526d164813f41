"""``--transformers``: a shipped version, a folder, a wheel, and none of them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from vlmend.cli.errors import UserError
from vlmend.cli.transformers_package import transformers_facts
from vlmend.codemods.analysis.transformers_facts import Known

FILES = {
    "transformers/__init__.py": '__version__ = "9.9.0"\n',
    "transformers/models/auto/configuration_auto.py": (
        'CONFIG_MAPPING_NAMES = OrderedDict([("tiny", "TinyConfig")])\n'
    ),
    "transformers/models/auto/modeling_auto.py": (
        "MODEL_MAPPING_NAMES = OrderedDict([])\n"
        "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict(\n"
        '    [("tiny", "TinyForCausalLM")]\n'
        ")\n"
    ),
    "transformers/configuration_utils.py": (
        'class PreTrainedConfig:\n    model_type = ""\n'
    ),
    "transformers/models/tiny/configuration_tiny.py": (
        'class TinyConfig(PreTrainedConfig):\n    model_type = "tiny"\n'
    ),
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def pack(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_a_shipped_version_needs_no_network() -> None:
    assert transformers_facts("5.10.4").version == "5.10.4"


def test_a_folder_is_read_where_it_is(tmp_path: Path) -> None:
    facts = transformers_facts(str(write(tmp_path, FILES)))
    assert facts.known("tiny") is Known.CAUSAL_LM
    assert facts.config_class("TinyConfig") is not None


def test_a_wheel_is_read_where_it_is(tmp_path: Path) -> None:
    facts = transformers_facts(str(pack(tmp_path / "transformers.whl", FILES)))
    assert facts.known("tiny") is Known.CAUSAL_LM
    assert facts.config_class("TinyConfig") is not None


@pytest.mark.parametrize("spec", ["newest", "5.x", ""])
def test_what_is_no_version_says_which_are_shipped(spec: str) -> None:
    if not spec:
        spec = "no/such/folder"
    with pytest.raises(UserError, match="neither a folder nor a version"):
        transformers_facts(spec)


def test_a_folder_without_transformers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--transformers"):
        transformers_facts(str(tmp_path))


def test_a_damaged_wheel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "transformers.whl"
    path.write_bytes(b"PK not a wheel")
    with pytest.raises(UserError, match="cannot be read"):
        transformers_facts(str(path))
