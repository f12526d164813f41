"""Finds config classes by name, across a target, vLLM and Transformers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from vlmend.codemods.analysis.config_mro import Located, ResolvedConfig, resolve
from vlmend.codemods.analysis.config_reader import read_config_module
from vlmend.codemods.analysis.transformers_facts import (
    CONFIG_MAPPING,
    TransformersFacts,
)
from vlmend.codemods.analysis.tree import SourceTree, TreeError
from vlmend.codemods.analysis.vllm_configs import (
    CONFIG_FILE,
    CONFIGS_PACKAGE,
    RegistryEntry,
    VllmConfigs,
    lazy_modules,
    lazy_modules_file,
    read_vllm_configs,
)
from vlmend.codemods.codemod import Evidence, Source

if TYPE_CHECKING:
    from vlmend.codemods.analysis.config_classes import ConfigClass, ConfigModule

_MAX_STEPS = 16


class ConfigSources:
    """Where config classes are found for one target; files are read when needed.

    What is remembered here is what a file says, never that it was asked: every question
    goes to the tree again, so that whoever listens there hears of each one.

    Args:
        tree: the target.
        facts: the Transformers release to judge by.
        base: the vLLM tree beside a plugin.
    """

    def __init__(
        self, tree: SourceTree, facts: TransformersFacts, base: SourceTree | None = None
    ) -> None:
        self.facts = facts
        self._trees = [(Source.TREE, tree)] + ([(Source.BASE, base)] if base else [])
        self._modules: dict[tuple[Source, str], ConfigModule | None] = {}
        self._vllm: tuple[Source, VllmConfigs] | None = None
        self._lazy: dict[str, dict[str, str]] = {}

    def find(self, name: str, module: str) -> Located | None:
        """Return the config class that ``from module import name`` binds.

        Re-exports are followed, through ``__init__`` files too; the name may be dotted
        (``transformers.LlamaConfig`` after ``import transformers``).
        """
        return self._find(name, module, 0)

    def _find(self, name: str, module: str, depth: int) -> Located | None:
        if depth > _MAX_STEPS:
            return None
        *owners, bare = name.split(".")
        if owners:
            module = ".".join([module, *owners]) if module else ".".join(owners)
        if module == "transformers" or module.startswith("transformers."):
            found = self.facts.config_class(bare, module)
            return None if found is None else (Source.TRANSFORMERS, found)
        where = self._lazy_modules(module).get(bare)
        if where is not None and where != module:
            return self._find(bare, where, depth + 1)
        for source, file in self._files_of(module):
            read = self._module(source, file)
            if read is None:
                continue
            config = read.get(bare)
            if config is not None:
                return source, config
            for local, target in read.aliases:
                if local == bare and target != bare:
                    return self._in_module(source, read, target, depth + 1)
            imported = read.imported(bare)
            if imported is not None and imported.name:
                return self._find(imported.name, imported.module, depth + 1)
        return None

    def _in_module(
        self, source: Source, module: ConfigModule, name: str, depth: int = 0
    ) -> Located | None:
        """What a (dotted) name means inside a module."""
        first, _, rest = name.partition(".")
        if not rest:
            config = module.get(first)
            if config is not None:
                return source, config
        for local, target in module.aliases:
            if local == name and target != name and depth < _MAX_STEPS:
                return self._in_module(source, module, target, depth + 1)
        imported = module.imported(first)
        if imported is None:
            return None
        if not rest:
            return self._find(imported.name, imported.module, depth + 1)
        inner = f"{imported.name}.{rest}" if imported.name else rest
        return self._find(inner, imported.module, depth + 1)

    def _base(self, source: Source, config: ConfigClass, name: str) -> Located | None:
        if source is Source.TRANSFORMERS:
            return self.facts.base_of(config, name)
        module = self._module(source, config.file)
        return None if module is None else self._in_module(source, module, name)

    def _files_of(self, module: str) -> list[tuple[Source, str]]:
        stem = module.replace(".", "/")
        return [
            (source, file)
            for source, tree in self._trees
            for prefix in ("", "src/")
            for file in (f"{prefix}{stem}.py", f"{prefix}{stem}/__init__.py")
            if tree.exists(file)
        ]

    def _module(self, source: Source, file: str) -> ConfigModule | None:
        try:
            content = dict(self._trees)[source].read(file)
        except TreeError:
            return None
        key = (source, file)
        if key not in self._modules:
            try:
                self._modules[key] = read_config_module(content, file)
            except (SyntaxError, ValueError):
                self._modules[key] = None
        return self._modules[key]

    def _lazy_modules(self, package: str) -> dict[str, str]:
        self._ask_for(lazy_modules_file(package))
        if package not in self._lazy:
            found: dict[str, str] = {}
            for _, tree in reversed(self._trees):
                found.update(lazy_modules(tree, package))
            self._lazy[package] = found
        return self._lazy[package]

    def _ask_for(self, file: str) -> None:
        for _, tree in self._trees:
            if tree.exists(file):
                with suppress(TreeError):
                    tree.read(file)

    @property
    def vllm(self) -> VllmConfigs:
        """The config registry of the target, or of the vLLM tree beside it."""
        return self._vllm_configs()[1]

    def _vllm_configs(self) -> tuple[Source, VllmConfigs]:
        self._ask_for(CONFIG_FILE)
        if self._vllm is None:
            self._vllm = (Source.TREE, VllmConfigs())
            for source, tree in self._trees:
                found = read_vllm_configs(tree)
                if found.registry:
                    self._vllm = (source, found)
                    break
        return self._vllm

    def registered(self, model_type: str) -> tuple[Located, Evidence] | None:
        """Return the class that vLLM loads for a model type, and the line."""
        source, configs = self._vllm_configs()
        entry = configs.registry.get(model_type)
        if entry is None:
            return None
        located = self._registry_class(source, configs, entry)
        if located is None:
            return None
        statement = f"vLLM loads {entry.model_type!r} as {entry.class_name}"
        return located, Evidence(source, entry.file, entry.line, statement)

    def _registry_class(
        self, source: Source, configs: VllmConfigs, entry: RegistryEntry
    ) -> Located | None:
        if configs.module is not None:
            located = self._in_module(source, configs.module, entry.class_name)
            if located is not None:
                return located
        return self.find(entry.class_name, CONFIGS_PACKAGE)

    def resolve(self, name: str, module: str) -> ResolvedConfig | None:
        """Return the class that :meth:`find` returns, with its ancestors."""
        located = self.find(name, module)
        return None if located is None else self.join(located)

    def join(self, located: Located) -> ResolvedConfig:
        """Return a class with its ancestors."""
        return resolve(located, self._base)

    def for_model_type(self, model_type: str) -> tuple[Located, Evidence] | None:
        """Return the config class that a model type is loaded as, with the line."""
        entry = self.facts.mapped(CONFIG_MAPPING, model_type)
        if entry is not None:
            config = self.facts.config_class(entry.names[0])
            line = self.facts.evidence(CONFIG_MAPPING, model_type)
            if config is not None and line is not None:
                return (Source.TRANSFORMERS, config), line
        return self.registered(model_type)
