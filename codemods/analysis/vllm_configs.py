"""vLLM's config registry, which beats Transformers, and where its names lead."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vlmend.codemods.analysis.config_reader import read_config_ast
from vlmend.codemods.analysis.config_values import dotted, literal_string
from vlmend.codemods.analysis.tree import SourceTree, TreeError

if TYPE_CHECKING:
    from vlmend.codemods.analysis.config_classes import ConfigModule

CONFIG_FILE = "vllm/transformers_utils/config.py"
CONFIGS_PACKAGE = "vllm.transformers_utils.configs"


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """``model_type`` -> class in vLLM's ``_CONFIG_REGISTRY``, where it stands."""

    model_type: str
    class_name: str
    file: str
    line: int


@dataclass(frozen=True)
class VllmConfigs:
    """What ``vllm/transformers_utils/config.py`` says.

    Attributes:
        registry: by model type.
        attribute_aliases: names that vLLM also gives a sub-config after loading, such
            as ``text_config`` for ``llm_config``.
        imports: the module, for the names that old registries refer to.
    """

    registry: dict[str, RegistryEntry] = field(default_factory=dict)
    attribute_aliases: dict[str, str] = field(default_factory=dict)
    module: ConfigModule | None = None


def read_vllm_configs(tree: SourceTree) -> VllmConfigs:
    """Read vLLM's config registry; empty where the tree has none or it does not parse.

    Every era's form is read: a dict of classes (0.8.5), a ``LazyConfigDict`` of strings
    (0.10 and later), and dicts unpacked into either.
    """
    if not tree.exists(CONFIG_FILE):
        return VllmConfigs()
    try:
        module = ast.parse(tree.read(CONFIG_FILE))
    except (TreeError, SyntaxError, ValueError):
        return VllmConfigs()
    dicts: dict[str, dict[str, RegistryEntry]] = {}
    aliases: dict[str, str] = {}
    for node in module.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        name = dotted(target)
        if name is None:
            continue
        if name.startswith("_CONFIG_REGISTRY"):
            dicts[name] = _entries(node.value, dicts)
        elif name == "_CONFIG_ATTRS_MAPPING" and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                old, new = literal_string(key), literal_string(value)
                if old is not None and new is not None:
                    aliases[old] = new
    return VllmConfigs(
        dicts.get("_CONFIG_REGISTRY", {}), aliases, read_config_ast(module, CONFIG_FILE)
    )


def _entries(
    node: ast.expr, known: dict[str, dict[str, RegistryEntry]]
) -> dict[str, RegistryEntry]:
    found: dict[str, RegistryEntry] = {}

    def add(key: str, value: ast.expr) -> None:
        name = literal_string(value) or dotted(value)
        if name is not None:
            found[key] = RegistryEntry(key, name, CONFIG_FILE, value.lineno)

    if isinstance(node, ast.Call):
        for argument in node.args:
            found.update(_entries(argument, known))
        for word in node.keywords:
            if word.arg is None:
                found.update(_entries(word.value, known))
            else:
                add(word.arg, word.value)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(_entries(value, known))
            elif (text := literal_string(key)) is not None:
                add(text, value)
    elif (name := dotted(node)) is not None:
        found.update(known.get(name, {}))
    return found


def lazy_modules_file(package: str) -> str:
    """Return the file that :func:`lazy_modules` reads."""
    return f"{package.replace('.', '/')}/__init__.py"


def lazy_modules(tree: SourceTree, package: str = CONFIGS_PACKAGE) -> dict[str, str]:
    """Return ``_CLASS_TO_MODULE`` of a package's ``__init__`` (from 0.14)."""
    path = lazy_modules_file(package)
    if not tree.exists(path):
        return {}
    try:
        module = ast.parse(tree.read(path))
    except (TreeError, SyntaxError, ValueError):
        return {}
    for node in module.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(
            node.value, ast.Dict
        ):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if dotted(target) == "_CLASS_TO_MODULE":
                pairs = zip(node.value.keys, node.value.values, strict=True)
                return {
                    name: where
                    for key, value in pairs
                    if (name := literal_string(key)) is not None
                    and (where := literal_string(value)) is not None
                }
    return {}
