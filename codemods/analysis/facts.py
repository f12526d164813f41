"""What one file says, as plain data.

A file is parsed once with ``ast``; only names, headers and line spans are kept, so that
facts are small, picklable, and can be cached under the hash of the file's content. The
body of a function is parsed again, alone, when somebody asks for it
(:func:`parse_function`): a scan reads the bodies of a few hundred functions out of tens
of thousands, and keeping every syntax tree alive makes Python's collector the slowest
part of a run.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

FACTS_VERSION = 1
"""Part of every cache key; raise it when the shape or meaning of the facts changes."""

ALWAYS = ""
"""Guard of a binding that every import of the module makes."""
TYPE_CHECKING = "TYPE_CHECKING"
"""Guard of a binding that only type checkers see."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Function(NamedTuple):
    """A function's header: where it stands, not what it does.

    ``line`` is the line of ``def``, ``end_line`` the last line of the body and
    ``column`` the indentation in characters.
    """

    name: str
    line: int
    end_line: int
    column: int
    decorators: tuple[str, ...]


class Attribute(NamedTuple):
    """A name bound (or only annotated) in a class body or at module level."""

    name: str
    line: int
    end_line: int
    column: int
    annotation_only: bool


class Class(NamedTuple):
    """A class statement.

    ``bases`` are dotted names; a subscript such as ``Base[T]`` counts as ``Base``, and
    a base that is no name (a call, say) is written as ``"?"`` followed by its source.
    ``line`` is the line of the word ``class``; ``first_line`` that of its first
    decorator.
    """

    name: str
    line: int
    first_line: int
    end_line: int
    bases: tuple[str, ...]
    decorators: tuple[tuple[str, int], ...]
    methods: dict[str, Function]
    attributes: dict[str, Attribute]
    guard: str


class Binding(NamedTuple):
    """One thing that a module-level name may stand for.

    ``kind`` is ``import`` (``module`` alone: the module; with ``attribute``: that name
    in it), ``class``, ``function`` or ``assign``. ``target`` holds the dotted right
    side of an ``assign`` that is a plain alias, else ``""``. ``guard`` is the text of
    the condition that it stands under (``ALWAYS`` if none).
    """

    kind: str
    line: int
    guard: str
    module: str = ""
    attribute: str = ""
    target: str = ""


class Registration(NamedTuple):
    """``ModelRegistry.register_model(architecture, target)``, as plugins call it.

    ``target`` is ``"module:Class"`` or a dotted name of the calling module.
    """

    architecture: str
    target: str
    line: int


class Module(NamedTuple):
    """All that the index keeps of one file."""

    name: str
    file: str
    is_package: bool
    bindings: dict[str, tuple[Binding, ...]]
    stars: tuple[str, ...]
    classes: dict[str, tuple[Class, ...]]
    functions: dict[str, Function]
    variables: dict[str, Attribute]
    registrations: tuple[Registration, ...]


def dotted(node: ast.expr | None) -> str:
    """Return ``a.b.c`` for a name or an attribute chain of names, else ``""``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def descend(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and everything below it, in no particular order.

    ``ast.walk`` for questions that any order answers, at half the cost.
    """
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        for value in found.__dict__.values():
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [item for item in value if isinstance(item, ast.AST)]


def decode(source: bytes) -> str:
    """Decode a Python file by its own rules (BOM, coding line, UTF-8 by default).

    Raises:
        SyntaxError: the coding line is unknown.
        ValueError: the bytes are not in that encoding, or it is none of text.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    try:
        return source.decode(encoding)
    except LookupError as error:  # ``# coding: rot13``
        raise ValueError(str(error)) from error


def source_lines(source: bytes) -> list[str]:
    """Split a file into lines as Python's parser counts them, without line ends."""
    return decode(source).replace("\r\n", "\n").replace("\r", "\n").split("\n")


def parse(source: bytes | str) -> ast.Module:
    """Parse, without the warnings that Python has for the author of the file.

    Raises:
        SyntaxError: the source does not parse.
        ValueError: it holds null bytes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(source)


def parse_span(lines: Sequence[str], line: int, end_line: int, column: int) -> ast.stmt:
    """Parse the one statement that spans ``line`` to ``end_line`` (1-based).

    The positions in the result are those of the whole file.
    """
    text = "\n".join(lines[line - 1 : end_line])
    # Leading empty lines cost the parser nothing and make its positions the file's own.
    if not column:
        return parse("\n" * (line - 1) + text).body[0]
    # An indented statement cannot be dedented safely (strings may span lines), so it is
    # put under a block of its own. Line 1 of a file is never indented.
    block = parse("\n" * (line - 2) + "if 1:\n" + text).body[0]
    assert isinstance(block, ast.If)
    return block.body[0]


def parse_function(lines: Sequence[str], function: Function) -> FunctionNode:
    """Parse one function again, with the file's positions and without decorators."""
    node = parse_span(lines, function.line, function.end_line, function.column)
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def read_module(source: bytes, name: str, file: str, *, is_package: bool) -> Module:
    """Read one file's facts.

    Args:
        source: the file's bytes.
        name: its dotted module name, for relative imports.
        file: POSIX path relative to the tree's root.
        is_package: the file is an ``__init__.py``.

    Raises:
        SyntaxError, ValueError: the file does not parse or decode.
    """
    decode(source)  # Python's parser lets bad bytes in comments pass
    return _Reader(name, file, is_package=is_package).read(parse(source), source)


class _Reader:
    def __init__(self, name: str, file: str, *, is_package: bool) -> None:
        self.name = name
        self.file = file
        self.is_package = is_package
        self.bindings: dict[str, list[Binding]] = {}
        self.stars: list[str] = []
        self.classes: dict[str, list[Class]] = {}
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, Attribute] = {}

    def read(self, tree: ast.Module, source: bytes) -> Module:
        self._block(tree.body, ALWAYS)
        registrations: tuple[Registration, ...] = ()
        if b"register_model" in source:
            registrations = tuple(_registrations(tree))
        return Module(
            self.name,
            self.file,
            self.is_package,
            {name: tuple(found) for name, found in self.bindings.items()},
            tuple(self.stars),
            {name: tuple(found) for name, found in self.classes.items()},
            self.functions,
            self.variables,
            registrations,
        )

    def _bind(self, name: str, binding: Binding) -> None:
        if binding.guard == ALWAYS:
            self.bindings[name] = [binding]
        else:
            self.bindings.setdefault(name, []).append(binding)

    def _block(self, body: list[ast.stmt], guard: str) -> None:
        for node in body:
            if isinstance(node, ast.ImportFrom):
                self._import_from(node, guard)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    full = alias.name if alias.asname else alias.name.split(".")[0]
                    bound = alias.asname or full
                    self._bind(bound, Binding("import", node.lineno, guard, full))
            elif isinstance(node, ast.ClassDef):
                self.classes.setdefault(node.name, []).append(_class(node, guard))
                self._bind(node.name, Binding("class", node.lineno, guard))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions[node.name] = _function(node)
                self._bind(node.name, Binding("function", node.lineno, guard))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._assign(node, guard)
            elif isinstance(node, ast.If):
                self._branches(node, guard)
            elif isinstance(node, ast.Try):
                # Either side may be what an import of the module leaves behind.
                self._block(node.body, guard)
                for handler in node.handlers:
                    self._block(handler.body, _join(guard, "an import failed"))
                self._block(node.orelse, guard)
                self._block(node.finalbody, guard)
            elif isinstance(node, ast.With):
                self._block(node.body, guard)

    def _branches(self, node: ast.If, guard: str) -> None:
        if dotted(node.test).split(".")[-1] == TYPE_CHECKING:
            self._block(node.body, TYPE_CHECKING)
            self._block(node.orelse, guard)
            return
        test = ast.unparse(node.test)
        self._block(node.body, _join(guard, test))
        self._block(node.orelse, _join(guard, f"not ({test})"))

    def _import_from(self, node: ast.ImportFrom, guard: str) -> None:
        module = absolute_module(self.name, self.is_package, node.level, node.module)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
                continue
            binding = Binding("import", node.lineno, guard, module, alias.name)
            self._bind(alias.asname or alias.name, binding)

    def _assign(self, node: ast.Assign | ast.AnnAssign, guard: str) -> None:
        if node.value is None:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                alias = dotted(node.value)
                self._bind(
                    target.id, Binding("assign", node.lineno, guard, target=alias)
                )
                self.variables[target.id] = _attribute(target.id, node)


def absolute_module(name: str, is_package: bool, level: int, module: str | None) -> str:
    """Turn the module of a ``from`` import into an absolute dotted name."""
    if not level:
        return module or ""
    parts = name.split(".")
    drop = level - 1 if is_package else level
    base = parts[: len(parts) - drop] if drop else parts
    return ".".join([*base, module] if module else base)


def _join(guard: str, test: str) -> str:
    return f"{guard} and {test}" if guard else test


def _function(node: FunctionNode) -> Function:
    names = tuple(
        dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list
    )
    return Function(
        node.name, node.lineno, node.end_lineno or node.lineno, node.col_offset, names
    )


def _attribute(name: str, node: ast.Assign | ast.AnnAssign) -> Attribute:
    end = node.end_lineno or node.lineno
    return Attribute(name, node.lineno, end, node.col_offset, node.value is None)


def _class(node: ast.ClassDef, guard: str) -> Class:
    methods: dict[str, Function] = {}
    attributes: dict[str, Attribute] = {}
    _class_body(node.body, methods, attributes)
    decorators = tuple(
        (dotted(d.func if isinstance(d, ast.Call) else d), d.lineno)
        for d in node.decorator_list
    )
    return Class(
        node.name,
        node.lineno,
        min((line for _, line in decorators), default=node.lineno),
        node.end_lineno or node.lineno,
        tuple(_base(base) for base in node.bases),
        decorators,
        methods,
        attributes,
        guard,
    )


def _class_body(
    body: list[ast.stmt], methods: dict[str, Function], attributes: dict[str, Attribute]
) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            methods[node.name] = _function(node)
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name):
                attributes[node.target.id] = _attribute(node.target.id, node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    attributes[target.id] = _attribute(target.id, node)
        elif isinstance(node, ast.If):
            if dotted(node.test).split(".")[-1] != TYPE_CHECKING:
                _class_body(node.body, methods, attributes)
            _class_body(node.orelse, methods, attributes)


def _base(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node) or "?" + ast.unparse(node)


def _registrations(tree: ast.Module) -> Iterator[Registration]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr != "register_model":
            continue
        given: dict[str, ast.expr] = dict(
            zip(("model_arch", "model_cls"), node.args, strict=False)
        )
        given |= {k.arg: k.value for k in node.keywords if k.arg}
        name, target = given.get("model_arch"), given.get("model_cls")
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            continue
        if isinstance(target, ast.Constant) and isinstance(target.value, str):
            yield Registration(name.value, target.value, node.lineno)
        elif dotted(target):
            yield Registration(name.value, dotted(target), node.lineno)
