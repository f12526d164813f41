"""Builds a model class on the meta device, as rank R of a pipeline of N."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from vlmend.cli.proof.harness.configs import write_config
from vlmend.cli.proof.harness.stand_ins import pretend_groups

STAGES = ("import", "config", "model config", "engine config", "build", "call")
"""How far a run came, in order."""


class Run:
    """One class under one pretended rank.

    Attributes:
        facts: what has been learnt so far; complete up to ``facts["stage"]``, even
            where a later stage dies.
    """

    def __init__(self, job: Mapping[str, Any], facts: dict[str, Any]) -> None:
        self.job = job
        self.facts = facts
        self.model: Any = None
        self.engine_config: Any = None

    def enter(self, stage: str) -> None:
        """Note that a stage begins."""
        self.facts["stage"] = stage

    def load_class(self) -> type:
        """Import the class under proof and see that its name is registered."""
        self.enter("import")
        model = getattr(import_module(self.job["module"]), self.job["class"])
        assert isinstance(model, type)
        registry = import_module("vllm.model_executor.models").ModelRegistry
        name = self.job["architecture"]
        if name not in registry.get_supported_archs():
            registry.register_model(name, model)
        return model

    def build(self) -> Any:
        """Take every stage up to the built model, and return it."""
        torch = import_module("torch")
        config = import_module("vllm.config")
        model_class = self.load_class()
        self.enter("config")
        size, rank = self.job["pp"], self.job["rank"]
        with tempfile.TemporaryDirectory() as place:
            self.facts["config"] = write_config(
                model_class, self.job["architecture"], self.job["config"], Path(place)
            )
            self.enter("model config")
            pretend_groups(size, rank)
            model_config = config.ModelConfig(
                model=place,
                tokenizer=place,
                skip_tokenizer_init=True,
                dtype="bfloat16",
                max_model_len=128,
                enforce_eager=True,
                seed=0,
            )
            used = type(model_config.hf_config)
            self.facts["config"]["read_as"] = f"{used.__module__}.{used.__qualname__}"
            self.enter("engine config")
            self.engine_config = config.VllmConfig(
                model_config=model_config,
                parallel_config=config.ParallelConfig(
                    pipeline_parallel_size=size, rank=rank
                ),
            )
            self.enter("build")
            self.model = self.built(self.engine_config, model_class)
        actual = type(self.model)
        self.facts["built"] = f"{actual.__module__}:{actual.__qualname__}"
        return torch

    def built(self, engine_config: Any, model_class: type | None = None) -> Any:
        """Build one class from one configuration without any data."""
        torch = import_module("torch")
        utils = import_module("vllm.model_executor.model_loader.utils")
        was = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            with torch.device("meta"):
                return utils.initialize_model(engine_config, model_class=model_class)
        finally:
            torch.set_default_dtype(was)
