"""Which configuration a model class is built from, and what stands in it."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

PREPROCESSOR = {
    "processor_class": "",
    "do_rescale": True,
    "do_normalize": True,
    "rescale_factor": 1 / 255,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


class NoConfig(Exception):
    """No configuration class is known for a model class."""


def write_config(
    model: type, architecture: str, wanted: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Write the ``config.json`` that the tree's loader will read.

    Args:
        model: the model class.
        architecture: the name that it is registered under.
        wanted: ``file`` (a path), or ``values`` (dotted keys over the defaults) with
            ``class`` (``module:Name``), or with ``model_type``, for a configuration
            whose class comes with its checkpoint; all optional.
        folder: where to write.

    Returns:
        What was taken and why, for the report.

    Raises:
        NoConfig: nothing says which configuration class the model has.
    """
    values: dict[str, Any] = dict(wanted.get("values") or {})
    made_up = False
    if wanted.get("file"):
        content = json.loads(Path(wanted["file"]).read_text("utf-8"))
        name, origin = "", "the given file"
    elif wanted.get("model_type"):
        name, origin = "", "a recipe's config.json"
        content, made_up = published(str(wanted["model_type"]), values)
    else:
        found = wanted.get("class")
        kind, origin = (_named(found), "recipe") if found else config_class(model)
        name = f"{kind.__module__}.{kind.__qualname__}"
        # What must be there before the class can be built at all.
        start = {k[1:]: v for k, v in values.items() if k.startswith("=")}
        values = {k: v for k, v in values.items() if not k.startswith("=")}
        content = json.loads(json.dumps(kind(**start).to_dict(), default=_plain))
        content.setdefault("model_type", getattr(kind, "model_type", ""))
        make_known(kind)
        values.update({f"={k}": v for k, v in start.items()})
    content["architectures"] = [architecture]
    for key, value in values.items():
        _put(content, key.removeprefix("=").split("."), value)
    (folder / "config.json").write_text(json.dumps(content), "utf-8")
    # Some models take from it how images are normalised; that is no part of a contract.
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR), "utf-8")
    return {
        "class": name,
        "origin": origin,
        "values": {k.removeprefix("="): v for k, v in values.items()},
        "model_type": content.get("model_type"),
        "made_up": made_up,
        "filled_in": sorted(content) if not wanted.get("file") else [],
    }


def _plain(value: Any) -> Any:
    """Write what JSON has no word for: a configuration as its keys."""
    return value.to_dict() if hasattr(value, "to_dict") else str(value)


def make_known(kind: Any) -> None:
    """Let a configuration class of the tree be found by the model type that it has.

    Checkpoints of such a model name their class themselves (``auto_map``).
    """
    auto = import_module("transformers.models.auto.configuration_auto")
    known = import_module("vllm.transformers_utils.config")._CONFIG_REGISTRY
    model_type = getattr(kind, "model_type", "")
    if model_type and model_type not in auto.CONFIG_MAPPING and model_type not in known:
        auto.AutoConfig.register(model_type, kind)


def published(
    model_type: str, values: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Return a configuration as it is published, and whether a class was made for it.

    Where nothing at hand knows the model type, its class comes with the checkpoint: one
    is made, whose parts are of the classes that their own model types name.
    """
    auto = import_module("transformers.models.auto.configuration_auto")
    known = import_module("vllm.transformers_utils.config")._CONFIG_REGISTRY
    content: dict[str, Any] = {"model_type": model_type}
    for key, value in values.items():
        _put(content, key.split("."), value)
    if model_type in known or model_type in auto.CONFIG_MAPPING:
        return content, False
    base = import_module("transformers").PretrainedConfig

    def part(value: dict[str, Any]) -> Any:
        name = value.get("model_type")
        known = name in auto.CONFIG_MAPPING  # its `get` does not load what is lazy
        kind = auto.CONFIG_MAPPING[name] if known else base
        rest = {k: v for k, v in value.items() if k != "model_type" or kind is base}
        return kind(**rest)

    def init(self: Any, **given: Any) -> None:
        parts = {k: part(v) for k, v in given.items() if _is_part(k, v)}
        base.__init__(self, **{k: v for k, v in given.items() if k not in parts})
        for key, value in parts.items():
            setattr(self, key, value)

    made = type(
        "PublishedConfig", (base,), {"model_type": model_type, "__init__": init}
    )
    auto.AutoConfig.register(model_type, made)
    return content, True


def _is_part(key: str, value: object) -> bool:
    return isinstance(value, dict) and key.endswith("_config")


def config_class(model: type) -> tuple[Any, str]:
    """Return the configuration class of a model class, and what says so.

    Raises:
        NoConfig: nothing does.
    """
    for find, origin in (
        (_from_processor, "the processor's get_hf_config"),
        (_from_annotation, "the annotation in __init__"),
        (_from_mappings, "the model mappings of Transformers"),
        (_from_names, "the name of the class and of the configuration"),
    ):
        for kind in find(model):
            if _is_config(kind):
                return kind, origin
    raise NoConfig(f"no configuration class is known for {model.__name__}")


def _is_config(kind: object) -> bool:
    base = import_module("transformers").PretrainedConfig
    return isinstance(kind, type) and issubclass(kind, base) and kind is not base


def _named(text: str) -> Any:
    module, _, name = text.partition(":")
    return getattr(import_module(module), name)


def _from_processor(model: type) -> Iterator[Any]:
    factory = vars(model).get("_processor_factory") or getattr(
        model, "_processor_factory", None
    )
    info = getattr(factory, "info", None)
    if not isinstance(info, type):
        return
    asked: list[Any] = []

    class Context:
        def get_hf_config(self, kind: Any = None) -> Any:
            asked.extend(kind if isinstance(kind, tuple) else [kind])
            return None

    fake: Any = object.__new__(info)
    fake.ctx = Context()
    try:
        fake.get_hf_config()
    except Exception:  # noqa: BLE001 - what it asked for is all we want
        asked.append(None)
    yield from asked


def _from_annotation(model: type) -> Iterator[Any]:
    for owner in model.__mro__:
        init = vars(owner).get("__init__")
        if init is None or owner.__module__.startswith(("torch", "builtins")):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(init)))
        except (OSError, TypeError, SyntaxError):
            continue
        names = vars(inspect.getmodule(init) or import_module(owner.__module__))
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and "hf_config" in ast.unparse(
                node.value or node.target
            ):
                yield from _evaluated(node.annotation, names)


def _evaluated(node: ast.expr, names: Mapping[str, Any]) -> Iterator[Any]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield names.get(part.id)
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            yield getattr(names.get(part.value.id), part.attr, None)


def _from_mappings(model: type) -> Iterator[Any]:
    auto = import_module("transformers.models.auto.modeling_auto")
    configuration = import_module("transformers.models.auto.configuration_auto")
    for name, mapping in vars(auto).items():
        if not name.endswith("_MAPPING_NAMES") or not isinstance(mapping, dict):
            continue
        for model_type, classes in mapping.items():
            names = classes if isinstance(classes, tuple) else (classes,)
            if model.__name__ in names:
                try:
                    yield configuration.CONFIG_MAPPING[model_type]
                except (KeyError, ImportError):
                    continue
    for owner in model.__mro__:
        declared = vars(owner).get("config_class")
        if declared is not None:
            yield declared


_SUFFIXES = ("ForConditionalGeneration", "ForCausalLM", "ChatModel", "Model")


def _from_names(model: type) -> Iterator[Any]:
    """Yield configuration classes of the model's own name, those at hand first."""
    stem = model.__name__
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    wanted = f"{stem}Config".replace("_", "").lower()
    configs = import_module("vllm.transformers_utils.configs")
    for owner in (import_module(model.__module__), configs):
        for name in sorted({*vars(owner), *getattr(owner, "__all__", ())}):
            if name.replace("_", "").lower() == wanted:
                yield getattr(owner, name, None)


def _put(content: dict[str, Any], path: list[str], value: Any) -> None:
    for key in path[:-1]:
        inner = content.get(key)
        if not isinstance(inner, dict):
            inner = content[key] = {}
        content = inner
    content[path[-1]] = value
