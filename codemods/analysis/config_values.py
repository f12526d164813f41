"""What the body of a config's constructor makes of its sub-configs.

The reading is insensitive to order and branches on purpose: every value that an
attribute *can* get is collected, so that a class is only called static when no branch
says otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis.config_classes import (
    ROOT_NAMES,
    Architectures,
    ArchitecturesBy,
    SubConfig,
)

_MAPPINGS = frozenset({"CONFIG_MAPPING", "_CONFIG_REGISTRY"})
_COPIES = frozenset({"deepcopy", "copy"})
_PASSED_THROUGH = frozenset({"pop", "get", "setdefault", "to_dict"})
_PLAIN = frozenset(
    {"dict", "list", "tuple", "set", "getattr", "isinstance", "len", "int"}
)
_FACTORIES = frozenset({"from_dict", "from_pretrained", "for_model", "from_config"})


def dotted(node: ast.expr | None) -> str | None:
    """Return ``a.b.C`` for a name or a chain of attributes of one, else ``None``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def literal_string(node: ast.expr | None) -> str | None:
    """Return the value of a string literal, else ``None``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def literal_names(node: ast.expr | None) -> tuple[str, ...]:
    """Return the strings of a list or tuple literal; empty for anything else."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return ()
    names = tuple(literal_string(item) for item in node.elts)
    return tuple(n for n in names if n is not None) if None not in names else ()


def is_config_name(name: str) -> bool:
    """Say whether a bare name is spelled like a config class."""
    # Not every one starts with a capital: `xLSTMConfig`.
    return name.rpartition(".")[2].endswith("Config")


@dataclass(frozen=True, slots=True)
class _Value:
    """One thing that a sub-config can be."""

    line: int
    class_name: str | None = None
    dynamic: str | None = None
    model_types: tuple[str, ...] = ()
    declared: str | None = None
    architectures: tuple[str, ...] = ()
    opaque: bool = False


class Body:
    """One method of a config class, with the values its names can have."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._node = node
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self._parameters = [a.arg for a in named if a.arg != "self"]
        self._values: dict[str, list[ast.expr]] = {}
        self._items: dict[tuple[str, str], list[ast.expr]] = {}
        self._set_lines: dict[str, int] = {}
        for child in ast.walk(node):
            if isinstance(child, ast.Assign):
                for target in child.targets:
                    self._assign(target, child.value)
            elif isinstance(child, (ast.AnnAssign, ast.NamedExpr)):
                if child.value is not None:
                    self._assign(child.target, child.value)
            elif isinstance(child, ast.Call):
                self._note_setdefault(child)
                self._note_setattr(child)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            # `self.backbone_config, kwargs = spec.create_subconfig(...)`
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                for one, its in zip(target.elts, value.elts, strict=True):
                    self._assign(one, its)
            elif target.elts:
                self._assign(target.elts[0], value)
            return
        if isinstance(target, ast.Subscript):
            owner, key = dotted(target.value), literal_string(target.slice)
            if owner is not None and key is not None:
                self._items.setdefault((owner, key), []).append(value)
            return
        name = dotted(target)
        if name is not None:
            self._values.setdefault(name, []).append(value)
            self._set_lines.setdefault(name, target.lineno)

    def _note_setdefault(self, call: ast.Call) -> None:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "setdefault":
            owner = dotted(call.func.value)
            key = literal_string(call.args[0]) if len(call.args) > 1 else None
            if owner is not None and key is not None:
                self._items.setdefault((owner, key), []).append(call.args[1])

    def _note_setattr(self, call: ast.Call) -> None:
        if dotted(call.func) == "setattr" and len(call.args) == 3:
            owner, name = dotted(call.args[0]), literal_string(call.args[1])
            if owner == "self" and name is not None:
                self._values.setdefault(f"self.{name}", []).append(call.args[2])

    def assigned_attributes(self) -> Iterator[str]:
        """Yield the public attributes of ``self`` that the method assigns."""
        for name in self._values:
            if name.startswith("self.") and name.count(".") == 1:
                attribute = name.removeprefix("self.")
                if not attribute.startswith("_"):
                    yield attribute

    def attributes(self) -> Iterator[str]:
        """Yield the attributes that a constructor gives an instance.

        Its parameters count, and so does what it adds to ``kwargs``: the base
        constructor assigns every keyword that it does not know.
        """
        yield from self._parameters
        yield from self.assigned_attributes()
        yield from (key for owner, key in self._items if owner == "kwargs")

    def sub_configs(self) -> Iterator[SubConfig]:
        """Yield what the method makes of each attribute that holds a config."""
        for attribute in self.assigned_attributes():
            values = list(self._evaluate_name(f"self.{attribute}", frozenset()))
            telling = [v for v in values if not v.opaque]
            if not telling and not (values and attribute.endswith("config")):
                continue
            yield self._merge(attribute, telling or values)

    def _merge(self, attribute: str, values: list[_Value]) -> SubConfig:
        classes = tuple(dict.fromkeys(v.class_name for v in values if v.class_name))
        defaults = tuple(dict.fromkeys(t for v in values for t in v.model_types))
        named = tuple(dict.fromkeys(v.architectures for v in values if v.architectures))
        declared = next((v.declared for v in values if v.declared), None)
        open_ones = [v for v in values if v.dynamic]
        first = open_ones[0] if open_ones else values[0]
        if first.dynamic:
            reason = first.dynamic
        elif classes:
            reason = f"built as {' or '.join(classes)}"
        else:
            reason = f'built as self.sub_configs["{declared}"]'
        return SubConfig(
            name=attribute,
            line=first.line,
            classes=classes,
            dynamic=bool(open_ones),
            model_type=defaults[0] if len(defaults) == 1 else None,
            architectures=named[0] if len(named) == 1 else (),
            declared=declared,
            reason=reason,
        )

    def _evaluate_name(self, name: str, seen: frozenset[str]) -> Iterator[_Value]:
        if name in seen:
            return
        given = tuple(
            n
            for value in self._items.get((name, "architectures"), ())
            for n in literal_names(value)
        )
        for expression in self._values.get(name, ()):
            for value in self._evaluate(expression, seen | {name}):
                if given and not value.architectures:
                    yield _Value(
                        value.line,
                        value.class_name,
                        value.dynamic,
                        value.model_types,
                        value.declared,
                        given,
                        value.opaque,
                    )
                else:
                    yield value

    def _evaluate(self, node: ast.expr, seen: frozenset[str]) -> Iterator[_Value]:
        if isinstance(node, ast.IfExp):
            yield from self._evaluate(node.body, seen)
            yield from self._evaluate(node.orelse, seen)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self._evaluate(value, seen)
        elif isinstance(node, ast.NamedExpr):
            yield from self._evaluate(node.value, seen)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            name = dotted(node)
            if name is not None:
                yield from self._evaluate_name(name, seen)
        elif isinstance(node, ast.Call):
            yield from self._call(node, seen)

    def _call(self, node: ast.Call, seen: frozenset[str]) -> Iterator[_Value]:
        words = {word.arg: word.value for word in node.keywords}
        given = literal_names(words.get("architectures"))
        if not given:
            given = tuple(
                name
                for argument in (*node.args, *(w.value for w in node.keywords))
                for value in self._items.get(
                    (dotted(argument) or "", "architectures"), ()
                )
                for name in literal_names(value)
            )
        for made in self._made_by(node, node.func, seen):
            yield _Value(
                made.line,
                made.class_name,
                made.dynamic,
                made.model_types,
                made.declared,
                given,
                made.opaque,
            )

    def _made_by(
        self, call: ast.Call, func: ast.expr, seen: frozenset[str]
    ) -> Iterator[_Value]:
        """What calling ``func`` makes: a known class, or an open choice."""
        line = call.lineno
        if isinstance(func, ast.Subscript):
            yield self._subscript(func, line, seen)
            return
        if isinstance(func, ast.IfExp):
            yield from self._made_by(call, func.body, seen)
            yield from self._made_by(call, func.orelse, seen)
            return
        name = dotted(func)
        if name is None:
            if isinstance(func, ast.Attribute):
                declared = _declared_key(func.value)
                if declared is not None:
                    yield _Value(line, declared=declared)
                    return
                if func.attr in (*_FACTORIES, *_COPIES):
                    yield from self._made_by(call, func.value, seen)
                    return
            yield _Value(
                line, dynamic=f"built by {ast.unparse(func)}(...)", opaque=True
            )
            return
        owner, _, last = name.rpartition(".")
        if last in _PASSED_THROUGH or name in _PLAIN:
            return
        if last in _COPIES:
            for argument in call.args[:1]:
                yield from self._evaluate(argument, seen)
            if not call.args and isinstance(func, ast.Attribute):
                yield from self._evaluate(func.value, seen)
            return
        if last in _FACTORIES:
            if owner in self._values:
                yield from self._class_value(call, owner, seen)
                return
            name, last = owner, owner.rpartition(".")[2]
            if last == "AutoConfig":
                first = call.args[0] if call.args else None
                types = tuple(self._model_types(first, seen)) if first else ()
                yield _Value(
                    line,
                    dynamic=f"built by {ast.unparse(func)}(...)",
                    model_types=types,
                )
                return
        if last in ROOT_NAMES:
            yield _Value(
                line,
                dynamic=f"built as a bare {last} from what the checkpoint says",
            )
        elif is_config_name(last):
            yield _Value(line, class_name=name)
        elif name in self._values:
            yield from self._class_value(call, name, seen)
        else:
            yield _Value(line, dynamic=f"built by {name}(...)", opaque=True)

    def _class_value(
        self, call: ast.Call, name: str, seen: frozenset[str]
    ) -> Iterator[_Value]:
        """A local variable that holds a class: ``cls = CONFIG_MAPPING[...]``."""
        if name in seen:
            return
        for value in self._values[name]:
            if isinstance(value, ast.Subscript):
                yield self._subscript(value, call.lineno, seen)
            elif isinstance(value, (ast.Name, ast.Attribute, ast.IfExp)):
                yield from self._made_by(call, value, seen | {name})
            else:
                text = ast.unparse(value)
                yield _Value(call.lineno, dynamic=f"built by {name} = {text}")

    def _subscript(
        self, node: ast.Subscript, line: int, seen: frozenset[str]
    ) -> _Value:
        key = _declared_key(node)
        if key is not None:
            return _Value(line, declared=key)
        name = dotted(node.value) or ast.unparse(node.value)
        types: tuple[str, ...] = ()
        if name.rpartition(".")[2] in _MAPPINGS:
            types = tuple(self._model_types(node.slice, seen))
        return _Value(line, dynamic=f"built by {name}[...]", model_types=types)

    def _model_types(self, node: ast.expr, seen: frozenset[str]) -> Iterator[str]:
        """The literal model types that an expression falls back to."""
        text = literal_string(node)
        if text is not None:
            yield text
        elif isinstance(node, ast.Subscript):
            owner, key = dotted(node.value), literal_string(node.slice)
            place = f"{owner}[model_type]"
            if owner is not None and key == "model_type" and place not in seen:
                for value in self._items.get((owner, key), ()):
                    yield from self._model_types(value, seen | {place})
        elif isinstance(node, ast.Call):
            func = node.func
            if isinstance(func, ast.Attribute) and func.attr in (
                "get",
                "pop",
                "setdefault",
            ):
                if len(node.args) > 1:
                    yield from self._model_types(node.args[1], seen)
            elif dotted(func) == "getattr" and len(node.args) > 2:
                yield from self._model_types(node.args[2], seen)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self._model_types(value, seen)
        elif isinstance(node, ast.IfExp):
            yield from self._model_types(node.body, seen)
            yield from self._model_types(node.orelse, seen)
        elif isinstance(node, ast.Name) and node.id not in seen:
            for value in self._local(node):
                yield from self._model_types(value, seen | {node.id})

    def _local(self, use: ast.Name) -> list[ast.expr]:
        """The values a local can have at one use.

        Constructors reuse a name (``model_type``) for one sub-config after the other:
        the assignment before the use in the same or an enclosing block is the one that
        counts, unless a branch in between assigns it too.
        """
        values = self._values.get(use.id, [])
        if len(values) < 2:
            return values
        for block, position in reversed(_blocks_around(self._node, use)):
            for statement in reversed(block[:position]):
                if isinstance(statement, ast.Assign):
                    if any(dotted(target) == use.id for target in statement.targets):
                        return [statement.value]
                elif any(
                    isinstance(part, ast.Name)
                    and part.id == use.id
                    and isinstance(part.ctx, ast.Store)
                    for part in ast.walk(statement)
                ):
                    return values
        return values

    def architectures(self, of_class: tuple[str, ...]) -> Iterator[Architectures]:
        """Yield each statement of ``architectures``.

        ``of_class`` is the class attribute, for ``kwargs["architectures"] =
        list(type(self).architectures)``, which hands it on.
        """
        for value in self._values.get("self.architectures", ()):
            names = self._names(value, of_class)
            if names is not None:
                yield Architectures(names, value.lineno, ArchitecturesBy.ASSIGNED)
        places = [*self._items.get(("kwargs", "architectures"), ())]
        if self._hands_on_parameter():
            places.extend(self._values.get("architectures", ()))
        for call in ast.walk(self._node):
            if isinstance(call, ast.Call) and _is_super_init(call):
                places.extend(
                    word.value
                    for word in call.keywords
                    if word.arg == "architectures" and not dotted(word.value)
                )
        for value in places:
            names = self._names(value, of_class)
            if names is not None:
                yield Architectures(names, value.lineno, ArchitecturesBy.KEYWORD)

    def _hands_on_parameter(self) -> bool:
        return any(
            isinstance(call, ast.Call)
            and _is_super_init(call)
            and any(
                word.arg == "architectures" and dotted(word.value) == "architectures"
                for word in call.keywords
            )
            for call in ast.walk(self._node)
        )

    def _names(
        self, value: ast.expr, of_class: tuple[str, ...]
    ) -> tuple[str, ...] | None:
        """Names that are given; empty where computed, ``None`` where only passed on."""
        if isinstance(value, ast.BoolOp):
            for item in value.values:
                if found := literal_names(item):
                    return found
            return None
        if isinstance(value, (ast.Name, ast.Attribute)) or (
            isinstance(value, ast.Constant) and value.value is None
        ):
            return None
        found = literal_names(value)
        if not found and of_class:
            for part in ast.walk(value):
                if isinstance(part, ast.Attribute) and part.attr == "architectures":
                    return of_class
        if not found and isinstance(value, ast.Call):
            func = value.func
            if isinstance(func, ast.Attribute) and func.attr in (
                "pop",
                "get",
                "setdefault",
            ):
                return (
                    literal_names(value.args[1]) or None
                    if len(value.args) > 1
                    else None
                )
        return found


def _blocks_around(node: ast.AST, use: ast.AST) -> list[tuple[list[ast.stmt], int]]:
    """The statement lists that lead to ``use``, outermost first, and its places."""
    found: list[tuple[list[ast.stmt], int]] = []
    place: ast.AST | None = node
    while place is not None:
        inner: ast.AST | None = None
        for name in ("body", "orelse", "finalbody"):
            block = getattr(place, name, None)
            if not isinstance(block, list):
                continue
            for position, statement in enumerate(block):
                if any(part is use for part in ast.walk(statement)):
                    found.append((block, position))
                    inner = statement
        place = inner
    return found


def _is_super_init(call: ast.Call) -> bool:
    func = call.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr in ("__init__", "__post_init__")
        and isinstance(func.value, ast.Call)
        and dotted(func.value.func) == "super"
    )


def _declared_key(node: ast.expr) -> str | None:
    """``self.sub_configs["key"]`` and what hangs on it."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Subscript):
        return None
    owner = dotted(node.value)
    if owner is None or owner.rpartition(".")[2] not in (
        "sub_configs",
        "sub_configs_defaults",
    ):
        return None
    return literal_string(node.slice)
