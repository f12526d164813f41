"""A vLLM in miniature, and the command run as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture(scope="session")
def _zygote() -> Iterator[Callable[[dict[str, object]], int]]:
    """A process that has vlmend imported and forks for each run; see zygote.py."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    process = subprocess.Popen(
        [
            sys.executable,
            Path(__file__).with_name("zygote.py"),
            str(theirs_in),
            str(theirs_out),
        ],
        pass_fds=(theirs_in, theirs_out),
    )
    os.close(theirs_in)
    os.close(theirs_out)
    with os.fdopen(ours_out, "w") as requests, os.fdopen(ours_in) as codes:

        def ask(request: dict[str, object]) -> int:
            requests.write(f"{json.dumps(request)}\n")
            requests.flush()
            return int(codes.readline())

        yield ask
    process.wait(timeout=10)


@pytest.fixture
def vlmend(
    _zygote: Callable[[dict[str, object]], int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Return a function that runs ``vlmend`` in a process of its own."""
    place = tmp_path_factory.mktemp("streams")

    def run(
        *words: str | Path,
        cwd: Path | None = None,
        stdin: str = "",
        **variables: str,
    ) -> Ended:
        streams = [place / name for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_bytes(b"")
        streams[0].write_bytes(stdin.encode())
        code = _zygote(
            {
                "words": [str(word) for word in words],
                "cwd": str(cwd or Path.cwd()),
                "env": os.environ | variables,
                "streams": [str(stream) for stream in streams],
            }
        )
        return Ended(code, *(s.read_bytes().decode() for s in streams[1:]))

    return run
