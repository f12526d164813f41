"""Reads :class:`TransformersFacts` from the source of a Transformers release.

Works on an unpacked wheel or sdist, a checkout (``src/transformers``) or the package
folder itself. Only files that can matter are parsed; nothing is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from vlmend.codemods.analysis.config_classes import ROOT_NAMES, ConfigClass
from vlmend.codemods.analysis.config_reader import read_config_class
from vlmend.codemods.analysis.config_values import (
    dotted,
    is_config_name,
    literal_string,
)
from vlmend.codemods.analysis.transformers_facts import (
    CAUSAL_LM_MAPPING,
    CONFIG_MAPPING,
    MAPPINGS,
    Mapped,
    TransformersFacts,
)
from vlmend.codemods.analysis.tree import SourceTree, TreeError

_ROOTS = ("transformers/", "src/transformers/", "")
_AUTO = ("auto_mappings.py", "configuration_auto.py", "modeling_auto.py")
"""Files of ``models/auto`` in the order in which they import each other: the config
mapping moved from the second to the first during 5.x, where the second now adds to
it."""


class TransformersError(Exception):
    """A tree is not a Transformers release that can be read; one line for a person."""


def read_transformers(tree: SourceTree) -> TransformersFacts:
    """Read one release.

    Raises:
        TransformersError: the tree holds no Transformers package, or its mappings are
            in a form that is not known here.
    """
    root = _find_root(tree)
    mappings = _read_mappings(tree, root)
    for name in (CONFIG_MAPPING, CAUSAL_LM_MAPPING):
        if not mappings.get(name):
            raise TransformersError(f"{root}models/auto defines no {name}")
    classes: dict[str, list[ConfigClass]] = {}
    for file in _config_files(tree, root):
        for config in _read_classes(tree.read(file), file.removeprefix(_above(root))):
            classes.setdefault(config.name, []).append(config)
    return TransformersFacts(
        version=_version(tree, root),
        classes={name: tuple(found) for name, found in classes.items()},
        mappings=mappings,
    )


def _find_root(tree: SourceTree) -> str:
    for root in _ROOTS:
        if tree.exists(f"{root}models/auto/modeling_auto.py"):
            return root
    looked = ", ".join(f"{root}models/auto/modeling_auto.py" for root in _ROOTS)
    raise TransformersError(f"not a Transformers package: none of {looked} exists")


def _above(root: str) -> str:
    """What to cut from a path so that it starts with ``transformers/``, if it can."""
    return "src/" if root.startswith("src/") else ""


def _version(tree: SourceTree, root: str) -> str:
    try:
        module = ast.parse(tree.read(f"{root}__init__.py"))
    except (TreeError, SyntaxError, ValueError):
        return "unknown"
    for node in module.body:
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) == "__version__":
            return literal_string(node.value) or "unknown"
    return "unknown"


def _config_files(tree: SourceTree, root: str) -> Iterator[str]:
    yield f"{root}configuration_utils.py"
    for file in tree.python_files(f"{root}models"):
        # Not `modular_*.py`, which the other files are generated from.
        if file.rpartition("/")[2].startswith("configuration_"):
            yield file


def _read_classes(source: bytes, file: str) -> Iterator[ConfigClass]:
    if b"Config" not in source:
        return
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in module.body:
        if not isinstance(node, ast.ClassDef) or not is_config_name(node.name):
            continue
        # Export helpers (`BertOnnxConfig`) are configs of something else.
        if node.name.endswith("OnnxConfig") or not (
            node.bases or node.name in ROOT_NAMES
        ):
            continue
        yield read_config_class(node, file)


def _read_mappings(tree: SourceTree, root: str) -> dict[str, dict[str, Mapped]]:
    mappings: dict[str, dict[str, Mapped]] = {}
    for name in _AUTO:
        path = f"{root}models/auto/{name}"
        if not tree.exists(path):
            continue
        try:
            module = ast.parse(tree.read(path))
        except (SyntaxError, ValueError) as error:
            raise TransformersError(f"{path} does not parse: {error}") from error
        file = path.removeprefix(_above(root))
        for node in module.body:
            _apply(node, mappings, file)
    return mappings


def _apply(node: ast.stmt, mappings: dict[str, dict[str, Mapped]], file: str) -> None:
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Subscript):
            owner, key = dotted(target.value), literal_string(target.slice)
            if owner in MAPPINGS and key is not None:
                _add(mappings.setdefault(owner, {}), key, node.value, file)
            return
        name = dotted(target)
        if name in MAPPINGS:
            mappings[name] = _entries(node.value, mappings, file)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "update"
            and call.args
        ):
            owner = dotted(call.func.value)
            if owner in MAPPINGS:
                mappings.setdefault(owner, {}).update(
                    _entries(call.args[0], mappings, file)
                )


def _entries(
    node: ast.expr, known: Mapping[str, Mapping[str, Mapped]], file: str
) -> dict[str, Mapped]:
    """Evaluate what a mapping is written as: dicts, pairs, and what they unpack."""
    found: dict[str, Mapped] = {}
    if isinstance(node, ast.Call):
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in ("items", "copy"):
            return _entries(func.value, known, file)
        for argument in node.args:
            found.update(_entries(argument, known, file))
        for word in node.keywords:
            if word.arg is None:
                found.update(_entries(word.value, known, file))
            else:
                _add(found, word.arg, word.value, file)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(_entries(value, known, file))
            elif (text := literal_string(key)) is not None:
                _add(found, text, value, file)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for item in node.elts:
            if isinstance(item, ast.Starred):
                found.update(_entries(item.value, known, file))
            elif (
                isinstance(item, ast.Tuple)
                and len(item.elts) == 2
                and (text := literal_string(item.elts[0])) is not None
            ):
                _add(found, text, item.elts[1], file)
    elif isinstance(node, ast.Subscript):
        pass  # `OrderedDict[str, str]` as a callee
    elif (name := dotted(node)) is not None:
        found.update(known.get(name, {}))
    return found


def _add(found: dict[str, Mapped], key: str, value: ast.expr, file: str) -> None:
    text = literal_string(value)
    if text is not None:
        found[key] = Mapped((text,), file, value.lineno)
    elif isinstance(value, (ast.Tuple, ast.List)):
        names = tuple(n for n in map(literal_string, value.elts) if n is not None)
        if names:
            found[key] = Mapped(names, file, value.lineno)
