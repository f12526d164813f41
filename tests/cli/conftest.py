"""A vLLM in miniature, and the command run as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

MODELS = "vllm/model_executor/models"

INTERFACES = '''\
from typing import ClassVar, Literal, Protocol


class SupportsMultiModal(Protocol):
    supports_multimodal: ClassVar[Literal[True]] = True

    def _mark_language_model(self, vllm_config):
        ...


class SupportsPP(Protocol):
    supports_pp: ClassVar[Literal[True]] = True

    def make_empty_intermediate_tensors(self, batch_size, dtype, device):
        """Called when PP rank > 0."""
        ...

    def forward(self, input_ids, positions, *, intermediate_tensors):
        ...
'''

REGISTRY = """\
_TEXT_GENERATION_MODELS = {
    "InnerForCausalLM": ("inner", "InnerForCausalLM"),
}

_MULTIMODAL_MODELS = {
    "BareForConditionalGeneration": ("bare", "BareForConditionalGeneration"),
    "HeirForConditionalGeneration": ("heir", "HeirForConditionalGeneration"),
    "OtherForConditionalGeneration": ("other", "OtherForConditionalGeneration"),
    "WiredForConditionalGeneration": ("wired", "WiredForConditionalGeneration"),
}
"""

INNER = """\
import torch.nn as nn

from .interfaces import SupportsPP
from .utils import make_empty_intermediate_tensors_factory


class InnerForCausalLM(nn.Module, SupportsPP):
    def __init__(self, *, vllm_config, prefix: str = ""):
        super().__init__()
        self.model = nn.Module()
        self.make_empty_intermediate_tensors = make_empty_intermediate_tensors_factory(
            ["hidden_states", "residual"], 8
        )

    def forward(
        self,
        input_ids,
        positions,
        intermediate_tensors=None,
        inputs_embeds=None,
    ):
        return self.model(input_ids, positions, intermediate_tensors, inputs_embeds)
"""

UTILS = """\
def make_empty_intermediate_tensors_factory(keys, hidden_size):
    def make_empty_intermediate_tensors(batch_size, dtype, device):
        return {key: (batch_size, hidden_size) for key in keys}

    return make_empty_intermediate_tensors


def init_vllm_registered_model(
    vllm_config, *, prefix="", hf_config=None, architectures=None
):
    return vllm_config.build(hf_config, architectures)


def maybe_prefix(prefix, name):
    return name if not prefix else f"{prefix}.{name}"
"""

WRAPPER = """\
import torch.nn as nn

from .interfaces import SupportsMultiModal, SupportsPP
from .utils import init_vllm_registered_model, maybe_prefix


class {name}ForConditionalGeneration(nn.Module, SupportsMultiModal, SupportsPP):
    def __init__(self, *, vllm_config, prefix: str = ""):
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.config = config

        with self._mark_language_model(vllm_config):
            self.language_model = init_vllm_registered_model(
                vllm_config=vllm_config,
                hf_config=config.text_config,
                prefix=maybe_prefix(prefix, "language_model"),
                architectures=["InnerForCausalLM"],
            )
{delegation}
    def forward(
        self,
        input_ids,
        positions,
        intermediate_tensors=None,
        inputs_embeds=None,
        **kwargs: object,
    ):
        return self.language_model(
            input_ids,
            positions,
            intermediate_tensors=intermediate_tensors,
            inputs_embeds=inputs_embeds,
        )
"""

DELEGATION = """\

        self.make_empty_intermediate_tensors = (
            self.language_model.make_empty_intermediate_tensors
        )
"""

HEIR = """\
from .bare import BareForConditionalGeneration


class HeirForConditionalGeneration(BareForConditionalGeneration):
    def embed(self):
        return None
"""


def wrapper(name: str, *, delegates: bool) -> str:
    """Return a multimodal wrapper, with or without the line that PP needs."""
    return WRAPPER.format(name=name, delegation=DELEGATION if delegates else "")


@pytest.fixture
def mini_files() -> dict[str, str]:
    """Two broken wrappers, an heir of one of them, and one that is sound."""
    models = {
        "__init__.py": "",
        "interfaces.py": INTERFACES,
        "registry.py": REGISTRY,
        "utils.py": UTILS,
        "inner.py": INNER,
        "bare.py": wrapper("Bare", delegates=False),
        "heir.py": HEIR,
        "other.py": wrapper("Other", delegates=False),
        "wired.py": wrapper("Wired", delegates=True),
    }
    return {
        "PKG-INFO": "Metadata-Version: 2.4\nName: vllm\nVersion: 9.1.0\n",
        "vllm/__init__.py": "",
        **{f"{MODELS}/{name}": text for name, text in models.items()},
    }


@pytest.fixture
def mini(tmp_path: Path, mini_files: dict[str, str]) -> Path:
    """The miniature on disk, outside any git repository."""
    root = tmp_path / "mini"
    for name, text in mini_files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def vlmend() -> Run:
    """Return a function that runs ``vlmend`` in a process of its own."""

    def run(
        *words: str | Path,
        cwd: Path | None = None,
        stdin: str = "",
        **variables: str,
    ) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "vlmend.cli", *map(str, words)],
            cwd=cwd,
            input=stdin.encode(),
            capture_output=True,
            env=os.environ | variables,
            timeout=120,
        )
        # Decoded here: text mode would turn every line end into "\n".
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
