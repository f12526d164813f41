"""A vLLM in miniature for the library: trees in memory, judged and mended."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from textwrap import dedent

import pytest

from vlmend.codemods import (
    Codemod,
    FilePatch,
    Finding,
    MemoryTree,
    PatchFailure,
    ScanResult,
    Session,
)
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors

MODELS = "vllm/model_executor/models"

_INTERFACES_HEAD = '''\
from typing import ClassVar, Literal, Protocol


class SupportsMultiModal(Protocol):
    supports_multimodal: ClassVar[Literal[True]] = True

    def get_language_model(self):
        """Return the text model."""
        ...

    def _mark_language_model(self, vllm_config):
        ...

    def _mark_tower_model(self, vllm_config, modalities):
        ...


class SupportsPP(Protocol):
    supports_pp: ClassVar[Literal[True]] = True
'''

_STUB = '''
    def make_empty_intermediate_tensors(self, batch_size, dtype, device):
        """Called on later ranks."""
        ...
'''

_ANNOTATION = """
    make_empty_intermediate_tensors: Callable
"""

_INTERFACES_TAIL = """
    def forward(self, input_ids, positions, *, intermediate_tensors):
        ...


class SupportsQuant:
    def __new__(cls, *args, **kwargs):
        instance = super().__new__(cls)
        instance.quant_config = kwargs.get("quant_config")
        return instance
"""

_UTILS = """\
import torch.nn as nn


class PPMissingLayer(nn.Identity):
    pass


def maybe_prefix(prefix, name):
    return f"{prefix}.{name}" if prefix else name


def make_empty_intermediate_tensors_factory(keys, hidden_size):
    def make(batch_size, dtype, device):
        return {key: (batch_size, hidden_size) for key in keys}

    return make


def init_vllm_registered_model(
    vllm_config, *, prefix="", hf_config=None, architectures=None
):
    return vllm_config.build(prefix, hf_config, architectures)
"""

_LOADER = """\
def initialize_model(vllm_config, *, prefix="", model_class=None, model_config=None):
    return (model_class or vllm_config.named)(vllm_config=vllm_config, prefix=prefix)
"""

_RUNNER = """\
class GPUModelRunner:
    def _dummy_run(self, num_tokens):
        if not self.first_rank:
            self.tensors = self.model.make_empty_intermediate_tensors(
                batch_size=num_tokens, dtype=self.dtype, device=self.device
            )
"""

_INNER = """\
import torch.nn as nn

from .interfaces import SupportsPP
from .utils import make_empty_intermediate_tensors_factory


class InnerModel(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.make_empty_intermediate_tensors = make_empty_intermediate_tensors_factory(
            ["hidden_states", "residual"], 8
        )


class InnerForCausalLM(nn.Module, SupportsPP):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = InnerModel(vllm_config=vllm_config, prefix=prefix)
        self.make_empty_intermediate_tensors = (
            self.model.make_empty_intermediate_tensors
        )

    def forward(self, input_ids, positions, intermediate_tensors=None):
        return self.model(input_ids, positions, intermediate_tensors)


class LackingForCausalLM(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.layers = nn.ModuleList()


class TypoForCausalLM(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.make_empty_intmd_tensors = make_empty_intermediate_tensors_factory(
            ["hidden_states"], 8
        )
"""

HEADER = """\
import torch.nn as nn

from .inner import InnerForCausalLM, LackingForCausalLM, TypoForCausalLM
from .interfaces import SupportsMultiModal, SupportsPP
from .utils import (
    PPMissingLayer,
    init_vllm_registered_model,
    make_empty_intermediate_tensors_factory,
    maybe_prefix,
)


"""

_TABLES = {
    "_TEXT_GENERATION_MODELS": re.compile(r"^class (\w+ForCausalLM)\b", re.MULTILINE),
    "_EMBEDDING_MODELS": re.compile(r"^class (\w+EmbeddingModel)\b", re.MULTILINE),
    "_MULTIMODAL_MODELS": re.compile(
        r"^class (\w+ForConditionalGeneration)\b", re.MULTILINE
    ),
    "_SPECULATIVE_DECODING_MODELS": re.compile(r"^class (\w+MTP)\b", re.MULTILINE),
}


def _registry(files: Mapping[str, str | bytes]) -> str:
    """Register every class whose name has one of the usual endings."""
    lines: list[str] = []
    for table, pattern in _TABLES.items():
        lines.append(f"{table} = {{")
        for file, text in files.items():
            if not isinstance(text, str) or not file.startswith(MODELS):
                continue
            module = file.removeprefix(f"{MODELS}/").removesuffix(".py")
            module = module.removesuffix("/__init__").replace("/", ".")
            lines += [
                f'    "{name}": ("{module}", "{name}"),'
                for name in pattern.findall(text)
            ]
        lines.append("}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Judged:
    """A tree that was judged, with short ways to what a test asks about."""

    files: dict[str, bytes]
    session: Session
    result: ScanResult

    def finding(self, class_name: str, module: str = "") -> Finding:
        """Return the one finding about a class."""
        found = [
            f
            for f in self.result.findings
            if f.class_name == class_name and f.module.endswith(module)
        ]
        assert len(found) == 1, [
            (f.module, f.class_name, f.status.value) for f in self.result.findings
        ]
        return found[0]

    def text_at(self, file: str, line: int) -> str:
        """Return a line of the tree, stripped."""
        return self.files[file].decode().splitlines()[line - 1].strip()

    def cited(self, finding: Finding) -> list[tuple[str, str]]:
        """Return (text of the line, statement) of each piece of evidence."""
        return [(self.text_at(e.file, e.line), e.statement) for e in finding.evidence]

    def statuses(self) -> dict[str, str]:
        """Return the status of every class, by bare name."""
        return {f.class_name: f.status.value for f in self.result.findings}

    def patched(self) -> dict[str, str]:
        """Return the text of every file that is mended; no patch may fail."""
        after: dict[str, str] = {}
        for patch in self.session.patches(self.result.findings):
            assert isinstance(patch, FilePatch), patch
            after[patch.file] = patch.after.decode()
        return after

    def failures(self) -> list[PatchFailure]:
        """Return the patches that did not pass their own proof."""
        return [
            patch
            for patch in self.session.patches(self.result.findings)
            if isinstance(patch, PatchFailure)
        ]

    def added(self, file: str = f"{MODELS}/wrap.py") -> list[str]:
        """Return the line that something is added behind, then what is added.

        Empty lines are left out; nothing may be taken away, and there is one place.
        """
        old = self.files[file].decode().splitlines()
        new = self.patched()[file].splitlines()
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        changes = [block for block in blocks if block[0] != "equal"]
        assert [block[0] for block in changes] == ["insert"]
        _, _, _, start, end = changes[0]
        behind = [line for line in new[:start] if line.strip()][-1]
        return [behind, *(line for line in new[start:end] if line.strip())]


def core_files(era: str = "stub") -> dict[str, str]:
    """Return the files that every small tree shares."""
    promise = _STUB if era == "stub" else _ANNOTATION
    return {
        f"{MODELS}/__init__.py": "",
        f"{MODELS}/interfaces.py": _INTERFACES_HEAD + promise + _INTERFACES_TAIL,
        f"{MODELS}/utils.py": _UTILS,
        f"{MODELS}/inner.py": _INNER,
        "vllm/model_executor/model_loader/utils.py": _LOADER,
        "vllm/v1/worker/gpu_model_runner.py": _RUNNER,
    }


Judge = Callable[..., Judged]


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Return a function that judges a small tree.

    It takes the text of ``wrap.py`` (below a header of imports) or a mapping of whole
    files below the models' folder; classes register themselves by their names.
    """

    def run(
        models: str | Mapping[str, str | bytes],
        *,
        era: str = "stub",
        registry: str | None = None,
        codemods: Sequence[Codemod] = (DelegateIntermediateTensors(),),
        **more: str,
    ) -> Judged:
        files: dict[str, str | bytes] = dict(core_files(era))
        if isinstance(models, str):
            models = {"wrap.py": HEADER + dedent(models)}
        for name, text in models.items():
            place = name if name.startswith("vllm/") else f"{MODELS}/{name}"
            files[place] = dedent(text) if isinstance(text, str) else text
        files[f"{MODELS}/registry.py"] = (
            registry if registry is not None else _registry(files)
        )
        data = {k: v.encode() if isinstance(v, str) else v for k, v in files.items()}
        session = Session(MemoryTree(data), codemods=codemods)
        return Judged(data, session, session.run())

    return run
