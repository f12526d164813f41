"""A vLLM in miniature that makes views of its configuration, in three eras."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import ndiff
from textwrap import dedent, indent
from typing import Any

import pytest

from vlmend.codemods.explicit_architectures import ExplicitArchitectures

WRAP = "vllm/model_executor/models/wrap.py"

_VIEW = '''
class VllmConfig:
    def with_hf_config(
        self,
        hf_config,
        architectures=None,
    ):
        if architectures is not None:
            hf_config = copy.deepcopy(hf_config)
            hf_config.architectures = architectures
{fill}
        model_config = copy.deepcopy(self.model_config)
        model_config.hf_config = hf_config
{mark}
        return replace(self, model_config=model_config)

    def __post_init__(self):
        """Check the parts against each other."""
{early}
        self.model_config.verify_with_parallel_config(self.parallel_config)

    def try_verify_and_update_config(self):
        if getattr(self.model_config, "config_updated", False):
            return
'''
_FILL = """
elif hf_config.architectures is None:
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    )

    if hf_config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        hf_config.architectures = [
            MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[hf_config.model_type]
        ]
"""
_EARLY = """
if self.model_config is not None and self.model_config.is_submodel_config:
    return
"""
_MODEL = """
class ModelConfig:
    def _get_transformers_backend_cls(self):
        {first}
        return "TransformersForCausalLM"

    def using_transformers_backend(self):
        return self.used == self._get_transformers_backend_cls()

    def verify_with_parallel_config(self, parallel_config):
        if parallel_config.size > 1 and not self.registry.is_pp_supported_model(
            self.architectures, self
        ):
            raise NotImplementedError("no pipeline parallelism")

    @property
    def use_mla(self):
        return not self.using_transformers_backend()


_SUFFIX_TO_DEFAULTS: list[tuple[str, tuple[str, str]]] = [
    ("ForCausalLM", ("generate", "none")),
    ("ForConditionalGeneration", ("generate", "none")),
]
"""
_CPU = """
class CpuPlatform:
    def check(self, model_config):
        return model_config.use_mla
"""


def config_files(era: str) -> dict[str, str]:
    """Return ``vllm/config`` and its neighbours as one era has them.

    The eras are ``none`` (through 0.19 no name is filled in), ``fills`` (from 0.20) and
    ``guards`` (from 0.31 views are not checked; ``guards half`` leaves one of the two
    guards out).
    """
    fill = indent(_FILL.strip("\n"), " " * 8) if era != "none" else ""
    guarded = era in ("guards", "guards half")
    view = _VIEW.format(
        fill=fill,
        mark="        model_config.is_submodel_config = True" if guarded else "",
        early=indent(_EARLY.strip("\n"), " " * 8) if guarded else "",
    )
    first = "self.match(self.architectures[0])"
    if era == "guards":
        first = f"self.architectures and {first}"
    return {
        "vllm/config/vllm.py": view,
        "vllm/config/model.py": _MODEL.format(first=first),
        "vllm/platforms/cpu.py": _CPU,
        "requirements/common.txt": "transformers >= 5.10.4\n",
        "requirements/test/cuda.txt": "transformers==5.10.4\n",
    }


TEXT_MODELS = """
import torch.nn as nn

from .interfaces import SupportsPP


class AlphaModel(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.size = config.hidden_size


class AlphaForCausalLM(nn.Module, SupportsPP):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = AlphaModel(vllm_config=vllm_config)


class SlowForCausalLM(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.layers = nn.ModuleList()
"""

QWEN = """
import torch.nn as nn

from .interfaces import SupportsPP


class Qwen3Model(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.size = config.hidden_size


class Qwen3ForCausalLM(nn.Module, SupportsPP):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = Qwen3Model(vllm_config=vllm_config)
"""

INNER = '''
import torch.nn as nn

from .interfaces import SupportsPP
from .text import AlphaForCausalLM, AlphaModel, SlowForCausalLM
from .qwen3 import Qwen3ForCausalLM, Qwen3Model


class InnerLLM(AlphaForCausalLM):
    """Its ancestor is registered."""


class LoneLLM(nn.Module, SupportsPP):
    """Neither it nor its backbone is anybody's."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = nn.ModuleList()


class PlainModel(Qwen3Model):
    pass


class PlainLLM(nn.Module):
    """Only its backbone and its config tell what it is."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = PlainModel(vllm_config=vllm_config)


class MixedLLM(AlphaForCausalLM):
    """By its ancestor one model, by its backbone another."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__(vllm_config=vllm_config)
        self.model = PlainModel(vllm_config=vllm_config)


class NarrowingLLM(nn.Module):
    """Narrows what it is given, whole or narrow."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        hf_config = vllm_config.model_config.hf_config
        text_config = getattr(hf_config, "text_config", hf_config)
        vllm_config = vllm_config.with_hf_config(text_config)
        self.size = text_config.hidden_size
        self.model = PlainModel(vllm_config=vllm_config)


class GreedyLLM(NarrowingLLM):
    """Reads a field that no text config has."""

    def __init__(self, *, vllm_config, prefix=""):
        hf_config = vllm_config.model_config.hf_config
        text_config = getattr(hf_config, "text_config", hf_config)
        vllm_config = vllm_config.with_hf_config(text_config)
        self.token = text_config.wrapped_token
        self.model = PlainModel(vllm_config=vllm_config)


class WholeLLM(nn.Module):
    """Takes the whole configuration only."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        text_config = vllm_config.model_config.hf_config.text_config
        vllm_config = vllm_config.with_hf_config(text_config)
        self.model = PlainModel(vllm_config=vllm_config)


class NamingLLM(nn.Module):
    """Gives the name itself."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        text_config = vllm_config.model_config.hf_config.text_config
        vllm_config = vllm_config.with_hf_config(
            text_config, architectures=["Qwen3ForCausalLM"]
        )
        self.model = PlainModel(vllm_config=vllm_config)


class Encoder(nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
'''

CONFIGS = """
from transformers import AutoConfig, PretrainedConfig, Qwen3Config, WhisperConfig
from transformers.models.auto import CONFIG_MAPPING


class FreshTextConfig(PretrainedConfig):
    model_type = "fresh_text"

    def __init__(self, hidden_size=8, **kwargs):
        self.hidden_size = hidden_size
        super().__init__(**kwargs)


class RenamedTextConfig(Qwen3Config):
    model_type = "renamed_text"


class StatingTextConfig(PretrainedConfig):
    model_type = "stating_text"

    def __init__(self, **kwargs):
        kwargs.setdefault("architectures", ["AlphaForCausalLM"])
        super().__init__(**kwargs)


class FreshConfig(PretrainedConfig):
    model_type = "fresh"
    sub_configs = {"text_config": FreshTextConfig, "audio_config": WhisperConfig}


class RenamedConfig(PretrainedConfig):
    model_type = "renamed"
    sub_configs = {"text_config": RenamedTextConfig}


class MappedConfig(PretrainedConfig):
    model_type = "mapped"
    sub_configs = {"text_config": Qwen3Config}


class NewestConfig(PretrainedConfig):
    model_type = "newest"
    sub_configs = {"text_config": NewestTextConfig}


class StatingConfig(PretrainedConfig):
    model_type = "stating"
    sub_configs = {"text_config": StatingTextConfig}


class AutoedConfig(PretrainedConfig):
    model_type = "autoed"
    sub_configs = {"text_config": AutoConfig}


class ChosenConfig(PretrainedConfig):
    model_type = "chosen"

    def __init__(self, text_config=None, **kwargs):
        self.text_config = CONFIG_MAPPING[text_config["model_type"]](**text_config)
        super().__init__(**kwargs)


class DefaultedConfig(PretrainedConfig):
    model_type = "defaulted"

    def __init__(self, text_config=None, **kwargs):
        if isinstance(text_config, dict):
            text_config["model_type"] = text_config.get("model_type", "qwen3_vl_text")
            text_config = CONFIG_MAPPING[text_config["model_type"]](**text_config)
        elif text_config is None:
            text_config = CONFIG_MAPPING["qwen3_vl_text"]()
        self.text_config = text_config
        super().__init__(**kwargs)
"""

HEADER = """
import torch.nn as nn

from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.transformers_utils.configs.own import (
    AutoedConfig,
    ChosenConfig,
    DefaultedConfig,
    FreshConfig,
    MappedConfig,
    RenamedConfig,
    StatingConfig,
)

from .inner import (
    Encoder,
    GreedyLLM,
    InnerLLM,
    LoneLLM,
    MixedLLM,
    NamingLLM,
    NarrowingLLM,
    PlainLLM,
    WholeLLM,
)
from .interfaces import SupportsMultiModal, SupportsPP
from .qwen3 import Qwen3ForCausalLM
from .text import AlphaForCausalLM, SlowForCausalLM
from .utils import init_vllm_registered_model


"""


def wrapper(
    body: str,
    *,
    config: str = "FreshConfig",
    name: str = "WrapForConditionalGeneration",
    bases: str = "nn.Module, SupportsMultiModal, SupportsPP",
    before: str = "",
    more: str = "",
) -> str:
    """Return a wrapper that builds its model with ``config``.

    ``before`` stands above its ``class`` statement, ``more`` below the class.
    """
    annotation = f": {config}" if config else ""
    head = (
        f"class {name}({bases}):\n"
        '    def __init__(self, *, vllm_config, prefix=""):\n'
        "        super().__init__()\n"
        f"        config{annotation} = vllm_config.model_config.hf_config\n"
    )
    text = indent(dedent(body).strip("\n"), " " * 8) + "\n"
    above = dedent(before).strip("\n") + "\n" if before else ""
    return HEADER + above + head + text + "\n\n" + dedent(more)


def tree(wrap: str, era: str = "fills", **more: str) -> dict[str, str]:
    """Return all files of a small tree but the shared ones."""
    return {
        **config_files(era),
        "vllm/transformers_utils/configs/own.py": CONFIGS,
        "text.py": TEXT_MODELS,
        "qwen3.py": QWEN,
        "inner.py": INNER,
        "wrap.py": wrap,
        **more,
    }


@dataclass(frozen=True)
class Mini:
    """Makes small trees and judges them with the codemod alone."""

    run: Callable[..., Any]

    def judge(self, files: Mapping[str, str]) -> Any:
        """Judge a tree."""
        return self.run(files, codemods=(ExplicitArchitectures(),))

    wrapper = staticmethod(wrapper)
    tree = staticmethod(tree)

    def judged(self, body: str, era: str = "fills", **how: str) -> Any:
        """Judge the tree whose wrapper has the given body."""
        return self.judge(tree(wrapper(body, **how), era))

    @staticmethod
    def new_lines(judged: Any) -> list[str]:
        """Return the lines that the fix adds to the wrapper's file."""
        old = judged.files[WRAP].decode().splitlines()
        new = judged.patched()[WRAP].splitlines()
        return [line[2:] for line in ndiff(old, new) if line.startswith("+ ")]


@pytest.fixture
def mini(judge: Callable[..., Any]) -> Mini:
    """Return what makes and judges small trees."""
    return Mini(judge)
