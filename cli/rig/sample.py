"""A vLLM in miniature: the smallest tree in which the contracts mean something.

Two of its wrappers, of one family, do not hand up what pipeline parallelism needs; a
third one stands alone; a fourth is sound.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vlmend.cli.rig.model import Forge, Repository, run_git

MODELS: Final = "vllm/model_executor/models"
FIXED_DATE: Final = "2026-01-05T12:00:00+0000"

INTERFACES: Final = '''\
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
UTILS: Final = """\
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
INNER: Final = """\
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
_WRAPPER: Final = """\
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
DELEGATION: Final = """\

        self.make_empty_intermediate_tensors = (
            self.language_model.make_empty_intermediate_tensors
        )
"""
_TEMPLATE: Final = """\
<!-- markdownlint-disable -->
PLEASE FILL IN THE PR DESCRIPTION HERE

## Purpose

## Test Plan

## Test Result

---
<details>
<summary> Checklist </summary>

- [ ] The purpose of the PR, such as "Fix some issue".
- [ ] The test plan, such as providing test command.
</details>

**BEFORE SUBMITTING, PLEASE READ the guide**
"""


def wrapper(name: str, *, sound: bool = False) -> str:
    """Return a multimodal wrapper, with or without the line that it needs."""
    return _WRAPPER.format(name=name, delegation=DELEGATION if sound else "")


def registry(wrappers: Mapping[str, str]) -> str:
    """Return the registry of a tree with these wrappers: module to class."""
    rows = "".join(
        f'    "{name}ForConditionalGeneration":'
        f' ("{module}", "{name}ForConditionalGeneration"),\n'
        for module, name in sorted(wrappers.items())
    )
    return (
        '_TEXT_GENERATION_MODELS = {\n    "InnerForCausalLM": ("inner",'
        ' "InnerForCausalLM"),\n}\n\n'
        f"_MULTIMODAL_MODELS = {{\n{rows}}}\n"
    )


def sample_files(
    broken: dict[str, str] | None = None, sound: dict[str, str] | None = None
) -> dict[str, str]:
    """Return the tree.

    Args:
        broken: module to class of the wrappers that are not.
        sound: module to class of those that are.
    """
    broken = broken or {
        "polaris_vl": "PolarisVL",
        "polaris2_vl": "Polaris2VL",
        "vega_vision": "VegaVision",
    }
    sound = sound or {"sirius_vl": "SiriusVL"}
    models = {
        "__init__.py": "",
        "interfaces.py": INTERFACES,
        "registry.py": registry(broken | sound),
        "utils.py": UTILS,
        "inner.py": INNER,
        **{f"{module}.py": wrapper(name) for module, name in broken.items()},
        **{f"{module}.py": wrapper(name, sound=True) for module, name in sound.items()},
    }
    return {
        ".github/PULL_REQUEST_TEMPLATE.md": _TEMPLATE,
        "vllm/__init__.py": "",
        **{f"{MODELS}/{name}": text for name, text in models.items()},
    }


def commit_files(
    repository: Repository,
    files: Mapping[str, str | bytes | None],
    message: str,
    branch: str = "main",
    person: str = "Ada Example",
) -> str:
    """Commit files (None: removed) on a branch of a bare repository."""
    parent = repository.head(branch) or repository.head("main")
    index = repository.folder / f"index-{branch.replace('/', '-')}"
    variables = {
        "GIT_INDEX_FILE": str(index),
        **{
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (
                ("NAME", person),
                ("EMAIL", f"{person.split(maxsplit=1)[0].lower()}@example.invalid"),
                ("DATE", FIXED_DATE),
            )
        },
    }

    def git(*words: str, given: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(repository.folder), *words],
            input=given,
            check=True,
            capture_output=True,
            env=os.environ | variables,
        )
        return done.stdout.decode().strip()

    index.unlink(missing_ok=True)
    if parent is not None:
        git("read-tree", parent)
    rows: list[bytes] = []
    for path, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        blob = "0" * 40
        if data is not None:
            blob = git("hash-object", "-w", "--stdin", given=data)
        mode = "0" if data is None else "100644"
        rows.append(f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0")
    git("update-index", "-z", "--index-info", given=b"".join(rows))
    tree = git("write-tree")
    parents = ("-p", parent) if parent else ()
    commit = git("commit-tree", *parents, "-m", message, tree)
    git("update-ref", f"refs/heads/{branch}", commit)
    index.unlink()
    return commit


def make_pair(
    forge: Forge, files: Mapping[str, str], upstream: str, fork: str
) -> tuple[Repository, Repository]:
    """Make an upstream with one commit, and a fork of it."""
    above = forge.add_repository(upstream)
    commit_files(above, files, "Start")
    return above, forge.add_repository(fork, parent=above)


def copy_forge(home: Path, place: Path) -> None:
    """Copy the repositories of a forge; what is equal shares its bytes."""
    shutil.copytree(home, place, copy_function=os.link, symlinks=True)


def read_file(repository: Repository, path: str, branch: str = "main") -> str:
    """Return a file of a branch."""
    return run_git(repository.folder, "show", f"{branch}:{path}") + "\n"
