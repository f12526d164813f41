"""A reading in progress: where it stands, and what names stand for there."""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.facts import Module, absolute_module
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.parameters import annotated_name
from vlmend.codemods.analysis.symbols import (
    ClassSymbol,
    ExternalSymbol,
    FunctionSymbol,
    ModuleSymbol,
    Symbol,
    VariableSymbol,
)
from vlmend.codemods.analysis.trace import Context, Trace, Write
from vlmend.codemods.analysis.values import (
    Annotated,
    ClassObject,
    ClassRef,
    External,
    Function,
    Guard,
    Items,
    ModuleObject,
    SelfObject,
    Site,
    Unknown,
    Value,
    one_of,
)

MAX_DEPTH = 12
"""Calls followed into one another; the deepest chain in vLLM 0.33.0 has five."""


@dataclass(slots=True)
class Frame:
    """One function while it is walked.

    Attributes:
        names: what its local names stand for at this point.
        returns: its ``return`` statements so far: value and guards.
        left_off: for each block around this point that may be left anywhere, what
            local names may stand for behind it.
    """

    module: Module
    owner: ClassRef | None
    function: str
    names: dict[str, Value]
    returns: list[tuple[Value, tuple[Guard, ...]]] = field(default_factory=list)
    left_off: list[dict[str, Value]] = field(default_factory=list)

    def bind(self, name: str, value: Value) -> None:
        """Let a local name stand for a value from here on."""
        self.names[name] = value
        for names in self.left_off:
            names[name] = one_of(names[name], value) if name in names else value

    @contextmanager
    def may_be_left(self) -> Generator[dict[str, Value]]:
        """Return what names may stand for where a block is left at any statement."""
        names = dict(self.names)
        self.left_off.append(names)
        try:
            yield names
        finally:
            self.left_off.pop()


class Reading:
    """The state of one reading, and what names stand for in it.

    Statements, calls and expressions are read by its subclasses, which need one
    another; what one of them calls of another is declared here.

    Args:
        index: the joined trees.
        ref: the class of ``self``; methods are looked up through its MRO.
        attributes: what is known about ``self`` from an earlier reading (its
            ``__init__``), when another method is read.
    """

    def __init__(
        self, index: ModelIndex, ref: ClassRef, *, attributes: Trace | None = None
    ) -> None:
        self.index = index
        self.ref = ref
        self.trace = Trace()
        self._known = attributes.writes if attributes else []
        self._guards: list[Guard] = []
        self._contexts: list[Context] = []
        self._active: list[tuple[str, int]] = []
        self._inits: list[ClassRef] = []

    def member(self, value: Value, name: str) -> Value:
        """Say what ``value.name`` stands for."""
        raise NotImplementedError

    def _value(self, node: ast.expr, frame: Frame) -> Value:
        """Say what an expression stands for, and note the calls in it."""
        raise NotImplementedError

    def _body(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Walk a whole function; what it returned early from ends with it."""
        raise NotImplementedError

    # -- writes -----------------------------------------------------------------------

    @contextmanager
    def _guarded(
        self, text: str, line: int, *, positive: bool = True
    ) -> Generator[None]:
        depth = len(self._guards)
        self._guards.append(Guard(text, positive, line))
        try:
            yield
        finally:
            # A return inside leaves the rest of the function under a condition that
            # has no other half: it is kept, in words that nothing contradicts.
            left = [
                Guard(f"no return at line {guard.line}", True, guard.line)
                for guard in self._guards[depth + 1 :]
            ]
            del self._guards[depth:]
            self._guards += dict.fromkeys(left)

    def _store(
        self, target: ast.expr, value: Value, node: ast.stmt, frame: Frame
    ) -> None:
        match target:
            case ast.Name(name):
                frame.bind(name, value)
            case ast.Attribute(inner, attribute):
                if isinstance(self._value(inner, frame), SelfObject):
                    self._write(attribute, value, node, frame)
            case ast.Tuple(elements) | ast.List(elements):
                values = value.values if isinstance(value, Items) else ()
                for position, element in enumerate(elements):
                    part: Value = Unknown(ast.unparse(element))
                    if len(values) == len(elements):
                        part = values[position]
                    self._store(element, part, node, frame)
            case ast.Starred(inner):
                self._store(inner, Unknown(ast.unparse(inner)), node, frame)

    def _write(
        self, attribute: str, value: Value, node: ast.stmt | ast.expr, frame: Frame
    ) -> None:
        self.trace.writes.append(
            Write(
                attribute,
                value,
                self._site(node, frame),
                tuple(self._guards),
                tuple(self._contexts),
                self._inits[-1] if self._inits else None,
            )
        )

    @staticmethod
    def _site(node: ast.stmt | ast.expr, frame: Frame) -> Site:
        return Site(
            frame.module.name,
            frame.module.file,
            frame.function,
            node.lineno,
            node.end_lineno or node.lineno,
            node.col_offset,
        )

    def _annotated(
        self, value: Value, annotation: ast.expr, node: ast.stmt, frame: Frame
    ) -> Value:
        name = annotated_name(annotation)
        if not name:
            return value
        return Annotated(value, name, frame.module.name, frame.module.file, node.lineno)

    # -- names ------------------------------------------------------------------------

    def _import_from(self, node: ast.ImportFrom, frame: Frame) -> None:
        module = absolute_module(
            frame.module.name, frame.module.is_package, node.level, node.module
        )
        for alias in node.names:
            found = self.index.imported(module, alias.name)
            bound = alias.asname or alias.name
            frame.bind(bound, self._symbols(found, alias.name))

    def _module_value(self, name: str) -> Value:
        if not self.index.is_open(name):
            return External(name)
        return ModuleObject(name)

    def _symbols(self, symbols: Sequence[Symbol], text: str) -> Value:
        if not symbols:
            return Unknown(text)
        return one_of(*(self._symbol(symbol, text) for symbol in symbols))

    def _symbol(self, symbol: Symbol, text: str) -> Value:
        match symbol:
            case ClassSymbol(ref):
                return ClassObject(ref)
            case FunctionSymbol(module, name):
                return Function(module, name)
            case ModuleSymbol(name):
                return ModuleObject(name)
            case ExternalSymbol(name):
                return External(name)
            case VariableSymbol(module, name):
                return self._variable(module, name)
        return Unknown(text)

    def _variable(self, module_name: str, name: str) -> Value:
        module = self.index.module(module_name)
        if module is None or name not in module.variables:
            return Unknown(name)
        return self._declared(module, module.variables[name], None, name)

    def _declared(
        self,
        module: Module,
        attribute: facts.Attribute,
        owner: ClassRef | None,
        name: str,
    ) -> Value:
        """Evaluate a module-level or class-level assignment, if it is a plain one."""
        key = (module.name, attribute.line)
        if key in self._active or attribute.annotation_only:
            return Unknown(name)
        node = facts.parse_span(
            self.index.lines(module),
            attribute.line,
            attribute.end_line,
            attribute.column,
        )
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            return Unknown(name)
        if not isinstance(node.value, _PLAIN):
            return Unknown(name)
        self._active.append(key)
        try:
            return self._value(node.value, Frame(module, owner, name, {}))
        finally:
            self._active.pop()

    def _name(self, name: str, frame: Frame) -> Value:
        if name in frame.names:
            return frame.names[name]
        return self._symbols(self.index.resolve(frame.module.name, name), name)


_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.List, ast.Tuple)
"""Class-level and module-level values that are evaluated; the rest is not needed."""
