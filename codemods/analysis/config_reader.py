"""Reads config classes from the ``ast`` of one Python file.

The two generations of Transformers say the same in two ways, and both are read here:
``__init__`` with parameters and ``sub_configs``, or a dataclass body with
``__post_init__`` and ``sub_configs_defaults``. vLLM's own configs are of the first
kind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from vlmend.codemods.analysis.config_classes import (
    GET_TEXT_CONFIG,
    ROOT_NAMES,
    Architectures,
    ArchitecturesBy,
    ConfigClass,
    ConfigModule,
    ImportedName,
    Property,
    RegisteredConfig,
    Stated,
    SubConfig,
)
from vlmend.codemods.analysis.config_values import (
    Body,
    dotted,
    is_config_name,
    literal_names,
    literal_string,
)

_SUB_CONFIG_DICTS = ("sub_configs", "sub_configs_defaults")
_GENERATION_DEFAULTS = "_get_global_generation_defaults"
"""The root class of 4.x sets each key of this method's dict as an attribute."""
_CONSTRUCTORS = ("__init__", "__post_init__")


def read_config_module(source: bytes, file: str) -> ConfigModule:
    """Return what the file says about config classes.

    Every class with a base is read: which of them are configs is only known once their
    bases are joined, and reading one too many costs nothing.

    Raises:
        SyntaxError: the file does not parse.
        ValueError: the file contains null bytes.
    """
    return read_config_ast(ast.parse(source), file)


def read_config_ast(tree: ast.Module, file: str) -> ConfigModule:
    """Like :func:`read_config_module`, from a file that is parsed already."""
    package = file.removesuffix(".py").split("/")[:-1]
    classes: list[ConfigClass] = []
    imports: list[ImportedName] = []
    registrations: list[RegisteredConfig] = []
    aliases: list[tuple[str, str]] = []
    for node in _top_level(tree.body):
        if isinstance(node, ast.ClassDef):
            if node.bases:
                classes.append(read_config_class(node, file))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.extend(_imports(node, package))
        elif isinstance(node, ast.Expr):
            registrations.extend(_registration(node.value))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = dotted(node.value)
            if value is not None and is_config_name(node.targets[0].id):
                aliases.append((node.targets[0].id, value))
    return ConfigModule(
        file=file,
        classes=tuple(classes),
        imports=tuple(imports),
        registrations=tuple(registrations),
        aliases=tuple(aliases),
    )


def read_config_class(node: ast.ClassDef, file: str) -> ConfigClass:
    """Return one class as data; see :class:`ConfigClass` for what is kept."""
    model_type: Stated | None = None
    declared: list[SubConfig] = []
    built: list[SubConfig] = []
    architectures: list[Architectures] = []
    properties: list[Property] = []
    attribute_map: tuple[tuple[str, str], ...] = ()
    fields: dict[str, None] = {}
    own_init = False
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if item.name in _CONSTRUCTORS:
                own_init = own_init or item.name == "__init__"
                body = Body(item)
                built.extend(body.sub_configs())
                architectures.extend(body.architectures(_class_names(architectures)))
                fields.update(dict.fromkeys(body.attributes()))
            elif item.name == "get_text_config":
                properties.append(
                    Property(GET_TEXT_CONFIG, item.lineno, _returned_path(item))
                )
            elif _is_property(item):
                properties.append(
                    Property(item.name, item.lineno, _returned_path(item))
                )
                fields[item.name] = None
            else:
                fields.update(dict.fromkeys(Body(item).assigned_attributes()))
                if item.name == _GENERATION_DEFAULTS:
                    fields.update(dict.fromkeys(_returned_keys(item)))
            continue
        name, value = _class_assignment(item)
        if name is None:
            continue
        if name in _SUB_CONFIG_DICTS and isinstance(value, ast.Dict):
            declared.extend(_declared(value))
        elif name == "attribute_map" and isinstance(value, ast.Dict):
            attribute_map = tuple(_string_pairs(value))
            fields.update(
                dict.fromkeys(name for pair in attribute_map for name in pair)
            )
        elif name == "model_type":
            text = literal_string(value)
            if text is not None:
                model_type = Stated(text, item.lineno)
        elif name == "architectures":
            names = literal_names(value)
            if names:
                architectures.append(
                    Architectures(names, item.lineno, ArchitecturesBy.CLASS_ATTRIBUTE)
                )
        if not name.startswith("_"):
            fields[name] = None
    return ConfigClass(
        name=node.name,
        file=file,
        line=node.lineno,
        bases=tuple(base for base in map(dotted, node.bases) if base is not None),
        model_type=model_type,
        declared=tuple(declared),
        built=tuple(built),
        architectures=tuple(architectures),
        properties=tuple(properties),
        fields=tuple(fields),
        attribute_map=attribute_map,
        own_init=own_init,
    )


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run at import time, through ``if`` and ``try``."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _top_level(node.body)
            yield from _top_level(node.orelse)
        elif isinstance(node, ast.Try):
            yield from _top_level(node.body)
            for handler in node.handlers:
                yield from _top_level(handler.body)
            yield from _top_level(node.orelse)


def _imports(
    node: ast.Import | ast.ImportFrom, package: list[str]
) -> Iterator[ImportedName]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            local = alias.asname or alias.name.split(".")[0]
            module = alias.name if alias.asname else local
            yield ImportedName(local, module, "", node.lineno)
        return
    module = node.module or ""
    if node.level:
        kept = package[: len(package) - node.level + 1]
        module = ".".join([*kept, module]) if module else ".".join(kept)
    for alias in node.names:
        yield ImportedName(alias.asname or alias.name, module, alias.name, node.lineno)


def _registration(node: ast.expr) -> Iterator[RegisteredConfig]:
    """``AutoConfig.register("model_type", SomeConfig)``."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return
    if dotted(node.func) not in (
        "AutoConfig.register",
        "transformers.AutoConfig.register",
    ):
        return
    model_type, class_name = literal_string(node.args[0]), dotted(node.args[1])
    if model_type is not None and class_name is not None:
        yield RegisteredConfig(model_type, class_name, node.lineno)


def _class_assignment(item: ast.stmt) -> tuple[str | None, ast.expr | None]:
    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
        return item.target.id, item.value
    if isinstance(item, ast.Assign) and len(item.targets) == 1:
        target = item.targets[0]
        if isinstance(target, ast.Name):
            return target.id, item.value
    return None, None


def _declared(node: ast.Dict) -> Iterator[SubConfig]:
    """``{"text_config": X}``; from 5.x X is a ``SubConfigSpec(config_class=...)``."""
    for key, value in zip(node.keys, node.values, strict=True):
        name = literal_string(key)
        if name is None:
            continue
        model_type: str | None = None
        class_node: ast.expr | None = value
        if isinstance(value, ast.Call):
            words = {word.arg: word.value for word in value.keywords}
            first = value.args[0] if value.args else None
            second = value.args[1] if len(value.args) > 1 else None
            class_node = words.get("config_class", first)
            model_type = literal_string(words.get("model_type", second))
        class_name = dotted(class_node)
        line = value.lineno if class_node is None else class_node.lineno
        if class_name is None:
            yield SubConfig(
                name, line, dynamic=True, reason="declared as an expression"
            )
        elif (
            bare := class_name.rpartition(".")[2]
        ) == "AutoConfig" or bare in ROOT_NAMES:
            yield SubConfig(
                name,
                line,
                dynamic=True,
                model_type=model_type,
                reason=f"declared as {class_name}",
            )
        else:
            yield SubConfig(
                name, line, classes=(class_name,), reason=f"declared as {class_name}"
            )


def _string_pairs(node: ast.Dict) -> Iterator[tuple[str, str]]:
    for key, value in zip(node.keys, node.values, strict=True):
        alias, name = literal_string(key), literal_string(value)
        if alias is not None and name is not None:
            yield alias, name


def _class_names(found: list[Architectures]) -> tuple[str, ...]:
    for item in found:
        if item.by is ArchitecturesBy.CLASS_ATTRIBUTE:
            return item.names
    return ()


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        dotted(decorator)
        in ("property", "cached_property", "functools.cached_property")
        for decorator in node.decorator_list
    )


def _returned_keys(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Return) and isinstance(part.value, ast.Dict):
            for key in part.value.keys:
                if (name := literal_string(key)) is not None:
                    yield name


def _returned_path(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
) -> tuple[str, ...] | None:
    """The attributes that the only ``return`` leads through, seen from ``self``."""
    returns = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
    if len(returns) != 1 or returns[0].value is None:
        return None
    steps: list[str] = []
    place = returns[0].value
    while True:
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute):
            if place.func.attr != "get_text_config":
                return None
            steps.append(GET_TEXT_CONFIG)
            place = place.func.value
        elif isinstance(place, ast.Attribute):
            steps.append(place.attr)
            place = place.value
        else:
            break
    if isinstance(place, ast.Name) and place.id == "self":
        return tuple(reversed(steps))
    return None
