"""Reads what a method does to its object, without running anything.

``Reader`` walks the statements of an ``__init__`` (or another method) in order, follows
``super()``, helper methods and local variables the way Python would, and notes every
attribute that is set on ``self``, every object that is built and every call that is
made. Conditions are not evaluated: both sides are walked, and what they note carries
the condition as a guard.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import EllipsisType
from typing import NamedTuple

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.facts import Module, absolute_module, dotted
from vlmend.codemods.analysis.guards import covers
from vlmend.codemods.analysis.model_index import (
    ClassSymbol,
    ExternalSymbol,
    FunctionSymbol,
    ModelIndex,
    ModuleSymbol,
    Symbol,
    VariableSymbol,
)
from vlmend.codemods.analysis.values import (
    Annotated,
    Arguments,
    Built,
    Call,
    ClassObject,
    ClassRef,
    ConfigView,
    Constant,
    External,
    Function,
    Guard,
    Instance,
    Items,
    LocalFunction,
    Mapping,
    Member,
    Method,
    ModuleObject,
    OneOf,
    Parameter,
    SelfObject,
    Site,
    Super,
    Unknown,
    Value,
    bare,
    one_of,
    options,
)

UTILS_MODULE = "vllm.model_executor.models.utils"
LOADER_MODULE = "vllm.model_executor.model_loader.utils"

MAX_DEPTH = 12
"""Calls followed into one another; the deepest chain in vLLM 0.33.0 has five."""


class Context(NamedTuple):
    """A ``with`` block that a statement stands in: the method called and its lines."""

    name: str
    line: int
    end_line: int
    function: str
    file: str


@dataclass(frozen=True, slots=True)
class Write:
    """``self.attribute = value``.

    Attributes:
        site: the statement.
        guards: conditions it stands under, outermost first.
        contexts: ``with`` blocks of ``self`` that it stands in.
        init: the class whose ``__init__`` the statement stands in, or whose
            ``__init__`` calls the helper that it stands in.
    """

    attribute: str
    value: Value
    site: Site
    guards: tuple[Guard, ...]
    contexts: tuple[Context, ...]
    init: ClassRef | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One ``__init__`` (or other method) that ran, and the line that called it."""

    owner: ClassRef
    function: str
    line: int
    file: str
    called_from: Site | None


@dataclass(frozen=True, slots=True)
class Event:
    """A call that was evaluated, with what it stands for and what it passes."""

    value: Value
    function: Value
    arguments: Arguments
    site: Site
    guards: tuple[Guard, ...]
    contexts: tuple[Context, ...]
    node: ast.Call = field(compare=False, repr=False)


@dataclass(slots=True)
class Trace:
    """All that one reading noted, in program order.

    ``returns`` holds the values of the first function's ``return`` statements with
    their guards; ``gaps`` says, for a person, what could not be followed.
    """

    writes: list[Write] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    returns: list[tuple[Value, tuple[Guard, ...]]] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def writes_to(self, attribute: str) -> list[Write]:
        """Return the writes to one attribute, in order."""
        return [write for write in self.writes if write.attribute == attribute]


@dataclass(slots=True)
class _Frame:
    """One function while it is walked."""

    module: Module
    owner: ClassRef | None
    function: str
    names: dict[str, Value]
    returns: list[tuple[Value, tuple[Guard, ...]]] = field(default_factory=list)


class Reader:
    """Reads methods of one class.

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

    # -- entry points ---------------------------------------------------------------

    def read(
        self, owner: ClassRef, function: facts.Function, given: dict[str, Value]
    ) -> Trace:
        """Read a method from its first line, with symbolic parameters.

        Args:
            owner: the class that the method stands in.
            function: the method.
            given: values for some of its parameters.
        """
        module = self.index.module(owner.module)
        assert module is not None
        node = self.index.function_node(module, function)
        names: dict[str, Value] = {}
        arguments = node.args
        frame = _Frame(module, owner, f"{owner.name}.{function.name}", names)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for position, parameter in enumerate(every):
            name = parameter.arg
            if position == 0 and "staticmethod" not in function.decorators:
                names[name] = SelfObject()
            elif name in given:
                names[name] = given[name]
            else:
                names[name] = Parameter(
                    name, _annotation(parameter.annotation), owner.module
                )
        if function.name == "__init__":
            # vLLM's loader passes vllm_config and prefix alone (initialize_model in
            # model_loader/utils.py); whatever else there is keeps its default.
            for name, default in _defaults(arguments).items():
                if name not in given and isinstance(default, ast.Name | ast.Attribute):
                    names[name] = self._value(default, frame)
        if arguments.vararg:
            names[arguments.vararg.arg] = Parameter(f"*{arguments.vararg.arg}")
        if arguments.kwarg:
            names[arguments.kwarg.arg] = Mapping((), open=True)
        self.trace.steps.append(
            Step(owner, function.name, function.line, module.file, None)
        )
        self._active.append((module.name, function.line))
        self._inits = [owner] if function.name == "__init__" else []
        try:
            self._body(node.body, frame)
        except RecursionError:
            gap = f"{frame.function} holds an expression that is nested too deeply"
            self.trace.gaps.append(gap)
        self._active.pop()
        self.trace.returns = frame.returns
        return self.trace

    # -- statements -------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt], frame: _Frame) -> bool:
        """Walk statements; say whether the block always leaves the function."""
        return any(self._statement(node, frame) for node in body)

    def _body(self, body: Sequence[ast.stmt], frame: _Frame) -> None:
        """Walk a whole function; what it returned early from ends with it."""
        depth = len(self._guards)
        left = self._block(body, frame)
        del self._guards[depth:]
        if not left:
            frame.returns.append((Constant(None), ()))

    def _statement(self, node: ast.stmt, frame: _Frame) -> bool:
        match node:
            case ast.Assign(targets, value):
                found = self._value(value, frame)
                for target in targets:
                    self._store(target, found, node, frame)
            case ast.AnnAssign(target, annotation, value):
                if value is not None:
                    found = self._annotated(
                        self._value(value, frame), annotation, node, frame
                    )
                    self._store(target, found, node, frame)
            case ast.AugAssign(target, _, value):
                self._value(value, frame)
                self._store(target, Unknown(ast.unparse(target)), node, frame)
            case ast.Expr(value):
                self._value(value, frame)
            case ast.If(test):
                return self._if(node, test, frame)
            case ast.With(items, body) | ast.AsyncWith(items, body):
                return self._with(node, items, body, frame)
            case ast.For(target, iterator, body, orelse) | ast.AsyncFor(
                target, iterator, body, orelse
            ):
                self._value(iterator, frame)
                self._store(target, Unknown(ast.unparse(iterator)), node, frame)
                self._loop("the loop runs", node, body, frame)
                self._block(orelse, frame)
            case ast.While(test, body, orelse):
                self._value(test, frame)
                self._loop(ast.unparse(test), node, body, frame)
                self._block(orelse, frame)
            case ast.Try() | ast.TryStar():
                return self._try(node, frame)
            case ast.Return(value):
                found = self._value(value, frame) if value else Constant(None)
                frame.returns.append((found, tuple(self._guards)))
                return True
            case ast.Raise():
                return True
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                frame.names[name] = LocalFunction(name, frame.module.name, node)
            case ast.ImportFrom():
                self._import_from(node, frame)
            case ast.Import(names):
                for alias in names:
                    bound = alias.asname or alias.name.split(".")[0]
                    full = alias.name if alias.asname else bound
                    frame.names[bound] = self._module_value(full)
            case ast.Match(subject, cases):
                self._value(subject, frame)
                return self._match(node, cases, frame)
            case ast.ClassDef(name):
                frame.names[name] = Unknown(f"the local class {name}")
            case ast.Delete(targets):
                for target in targets:
                    if isinstance(target, ast.Attribute):
                        self._store(target, Unknown("a deleted attribute"), node, frame)
        return False

    def _if(self, node: ast.If, test: ast.expr, frame: _Frame) -> bool:
        self._value(test, frame)
        text = ast.unparse(test)
        before, depth = dict(frame.names), len(self._guards)
        with self._guarded(text, node.lineno):
            left = self._block(node.body, frame)
        if left:  # how it left is of no matter to what follows
            del self._guards[depth:]
        after, depth = frame.names, len(self._guards)
        frame.names = before
        with self._guarded(text, node.lineno, positive=False):
            right = self._block(node.orelse, frame)
        if right:
            del self._guards[depth:]
        if left and right:
            return True
        if left or right:
            if left is False:
                frame.names = after
            # What follows runs on one side only. A side that raises is no way on, so
            # the rest of the function is as good as unconditional.
            leaving = node.body if left else node.orelse
            if not always_raises(leaving):
                self._guards.append(Guard(text, right, node.lineno))
            return False
        frame.names = _merge(after, frame.names)
        return False

    def _try(self, node: ast.Try | ast.TryStar, frame: _Frame) -> bool:
        caught = [
            Guard("an exception is caught", True, handler.lineno)
            for handler in node.handlers
        ]
        # A handler that raises is no way on: the body has run where the rest runs.
        swallowing = [
            guard._replace(positive=False)
            for guard, handler in zip(caught, node.handlers, strict=True)
            if not always_raises(handler.body)
        ]
        depth = len(self._guards)
        self._guards += swallowing
        before = dict(frame.names)
        left = self._block(node.body, frame)
        caught_from = _merge(before, frame.names)
        left = left or self._block(node.orelse, frame)
        del self._guards[depth : depth + len(swallowing)]
        ends = [] if left else [frame.names]
        for guard, handler in zip(caught, node.handlers, strict=True):
            frame.names = dict(caught_from)
            with self._guarded(guard.text, guard.line):
                if not self._block(handler.body, frame):
                    ends.append(frame.names)
        frame.names = _merge(*ends) if ends else caught_from
        return self._block(node.finalbody, frame) or not ends

    def _loop(
        self, text: str, node: ast.stmt, body: Sequence[ast.stmt], frame: _Frame
    ) -> None:
        before = dict(frame.names)
        with self._guarded(text, node.lineno):
            self._block(body, frame)
        frame.names = _merge(before, frame.names)

    def _match(
        self, node: ast.Match, cases: Sequence[ast.match_case], frame: _Frame
    ) -> bool:
        before, ends = frame.names, list[dict[str, Value]]()
        for case in cases:
            frame.names = dict(before)
            text = f"{ast.unparse(node.subject)} matches {ast.unparse(case.pattern)}"
            with self._guarded(text, node.lineno):
                if not self._block(case.body, frame):
                    ends.append(frame.names)
        last = cases[-1]
        is_open = not isinstance(last.pattern, ast.MatchAs) or last.pattern.pattern
        if is_open or last.guard:
            ends.append(before)
        frame.names = _merge(*ends) if ends else before
        return not ends

    def _with(
        self,
        node: ast.With | ast.AsyncWith,
        items: Sequence[ast.withitem],
        body: Sequence[ast.stmt],
        frame: _Frame,
    ) -> bool:
        depth = len(self._contexts)
        outer = len(self._guards)
        for item in items:
            value = self._value(item.context_expr, frame)
            if isinstance(value, Call) and value.function == _SUPPRESS:
                self._guards.append(Guard("no exception", True, node.lineno))
            if item.optional_vars is not None:
                self._store(item.optional_vars, value, node, frame)
            name = ""
            if isinstance(item.context_expr, ast.Call):
                name = dotted(item.context_expr.func)
            self._contexts.append(
                Context(
                    name,
                    node.lineno,
                    node.end_lineno or node.lineno,
                    frame.function,
                    frame.module.file,
                )
            )
        suppressing = len(self._guards) - outer
        left = self._block(body, frame)
        del self._guards[outer : outer + suppressing]
        del self._contexts[depth:]
        return left

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
        self, target: ast.expr, value: Value, node: ast.stmt, frame: _Frame
    ) -> None:
        match target:
            case ast.Name(name):
                frame.names[name] = value
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
        self, attribute: str, value: Value, node: ast.stmt | ast.expr, frame: _Frame
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
    def _site(node: ast.stmt | ast.expr, frame: _Frame) -> Site:
        return Site(
            frame.module.name,
            frame.module.file,
            frame.function,
            node.lineno,
            node.end_lineno or node.lineno,
            node.col_offset,
        )

    def _annotated(
        self, value: Value, annotation: ast.expr, node: ast.stmt, frame: _Frame
    ) -> Value:
        name = _annotation(annotation)
        if not name:
            return value
        return Annotated(value, name, frame.module.name, frame.module.file, node.lineno)

    # -- names
    # --------------------------------------------------------------------------

    def _import_from(self, node: ast.ImportFrom, frame: _Frame) -> None:
        module = absolute_module(
            frame.module.name, frame.module.is_package, node.level, node.module
        )
        for alias in node.names:
            found = self.index.imported(module, alias.name)
            frame.names[alias.asname or alias.name] = self._symbols(found, alias.name)

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
            return self._value(node.value, _Frame(module, owner, name, {}))
        finally:
            self._active.pop()

    def _name(self, name: str, frame: _Frame) -> Value:
        if name in frame.names:
            return frame.names[name]
        return self._symbols(self.index.resolve(frame.module.name, name), name)

    # -- expressions
    # --------------------------------------------------------------------

    def _value(self, node: ast.expr, frame: _Frame) -> Value:
        match node:
            case ast.Name(name):
                return self._name(name, frame)
            case ast.Attribute(inner, attribute):
                return self.member(self._value(inner, frame), attribute)
            case ast.Call():
                return self._call(node, frame)
            case ast.Constant(value):
                return Constant(None if isinstance(value, EllipsisType) else value)
            case ast.List(elements) | ast.Tuple(elements):
                if any(isinstance(e, ast.Starred) for e in elements):
                    return Unknown(ast.unparse(node))
                return Items(tuple(self._value(e, frame) for e in elements))
            case ast.Dict(keys, values):
                return self._dict(keys, values, frame)
            case ast.IfExp(test, body, orelse):
                self._value(test, frame)
                with self._guarded(ast.unparse(test), node.lineno):
                    left = self._value(body, frame)
                with self._guarded(ast.unparse(test), node.lineno, positive=False):
                    right = self._value(orelse, frame)
                return one_of(left, right)
            case ast.BoolOp(_, values):
                return one_of(*(self._value(v, frame) for v in values))
            case ast.NamedExpr(ast.Name(name), value):
                found = self._value(value, frame)
                frame.names[name] = found
                return found
            case ast.Lambda():
                return LocalFunction("a lambda", frame.module.name, node)
            case ast.Await(value):
                return self._value(value, frame)
            case ast.Subscript(inner):
                self._value(inner, frame)
                return Unknown(ast.unparse(node))
        self._look_inside(node, frame)
        return Unknown(_short(node))

    def _look_inside(self, node: ast.expr, frame: _Frame) -> None:
        """Notice calls inside an expression whose own value is not tracked."""
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            frame = _Frame(frame.module, frame.owner, frame.function, dict(frame.names))
            for generator in node.generators:
                self._value(generator.iter, frame)
                for name in ast.walk(generator.target):
                    if isinstance(name, ast.Name):
                        frame.names[name.id] = Unknown(name.id)
            with self._guarded("the comprehension runs", node.lineno):
                self._value(node.elt, frame)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child, frame)

    def _dict(
        self,
        keys: Sequence[ast.expr | None],
        values: Sequence[ast.expr],
        frame: _Frame,
    ) -> Value:
        found: list[tuple[str, Value]] = []
        is_open = False
        for key, node in zip(keys, values, strict=True):
            value = self._value(node, frame)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                found.append((key.value, value))
            elif key is None and isinstance(value, Mapping):
                found += value.values
                is_open |= value.open
            else:
                is_open = True
        return Mapping(tuple(found), is_open)

    def member(self, value: Value, name: str) -> Value:
        """Say what ``value.name`` stands for."""
        match bare(value):
            case OneOf(alternatives):
                return one_of(*(self.member(v, name) for v in alternatives))
            case SelfObject():
                return self._own(name)
            case Super(after):
                return self._inherited(name, after)
            case ClassObject(ref):
                found = self.index.find_method(ref, name)
                if found is not None:
                    return Method(found[0], name, None)
                return self._class_attribute(ref, name) or Unknown(f"{ref.name}.{name}")
            case ModuleObject(module):
                return self._symbols(self.index.resolve(module, name), name)
            case External(text):
                return External(f"{text}.{name}")
            case Unknown(text):
                return Unknown(f"{text}.{name}")
        return Member(value, name)

    def _own(self, name: str) -> Value:
        """Say what ``self.name`` stands for at this point of the reading."""
        writes = [w for w in (*self._known, *self.trace.writes) if w.attribute == name]
        if writes:
            return one_of(*(w.value for w in _last(writes, self._guards)))
        found = self.index.find_method(self.ref, name)
        declared = self._class_attribute(self.ref, name)
        if declared is not None:
            return declared
        if found is not None:
            owner, function = found
            if set(function.decorators) & {"property", "cached_property"}:
                return self._property(owner, function)
            return Method(owner, name, SelfObject())
        return Member(SelfObject(), name)

    def _property(self, owner: ClassRef, function: facts.Function) -> Value:
        if len(self._active) > MAX_DEPTH:
            return Unknown(function.name)
        result = self._enter(owner, function, Arguments((SelfObject(),), ()))
        return Unknown(f"self.{function.name}") if result is None else result

    def _class_attribute(self, ref: ClassRef, name: str) -> Value | None:
        """Evaluate a class-level assignment found before any method of that name."""
        for owner in self.index.mro(ref).classes:
            found = self.index.class_of(owner)
            if name in found.attributes and not found.attributes[name].annotation_only:
                module = self.index.module(owner.module)
                assert module is not None
                return self._declared(module, found.attributes[name], owner, name)
            if name in found.methods:
                return None
        return None

    def _inherited(self, name: str, after: ClassRef) -> Value:
        found = self.index.find_method(self.ref, name, after=after)
        if found is not None:
            return Method(found[0], name, SelfObject())
        return External(f"super().{name}")

    # -- calls
    # --------------------------------------------------------------------------

    def _call(self, node: ast.Call, frame: _Frame) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id not in frame.names:
            special = self._builtin(node.func.id, node, frame)
            if special is not None:
                return special
        function = self._value(node.func, frame)
        arguments = self._arguments(node, frame)
        found = one_of(
            *(self._called(f, arguments, node, frame) for f in options(function))
        )
        self.trace.events.append(
            Event(
                found,
                function,
                arguments,
                self._site(node, frame),
                tuple(self._guards),
                tuple(self._contexts),
                node,
            )
        )
        return found

    def _builtin(self, name: str, node: ast.Call, frame: _Frame) -> Value | None:
        """Evaluate the few builtins that matter to the shape of an object."""
        match name, node.args:
            case "super", []:
                if frame.owner is not None:
                    return Super(frame.owner)
            case "super", [start, *_]:
                found = self._value(start, frame)
                if isinstance(found, ClassObject):
                    return Super(found.ref)
                return Unknown("super(...)")
            case "getattr", [inner, ast.Constant(str(attribute)), *rest]:
                found = self.member(self._value(inner, frame), attribute)
                if rest:
                    return one_of(found, self._value(rest[0], frame))
                return found
            case "setattr", [inner, ast.Constant(str(attribute)), value]:
                if isinstance(self._value(inner, frame), SelfObject):
                    self._write(attribute, self._value(value, frame), node, frame)
                    return Constant(None)
            case "cast", [_, value]:
                return self._value(value, frame)
            case "type", [ast.Name(inner)]:
                if isinstance(frame.names.get(inner), SelfObject):
                    return ClassObject(self.ref)
            case "dict", []:
                if all(keyword.arg for keyword in node.keywords):
                    return Mapping(
                        tuple(
                            (k.arg or "", self._value(k.value, frame))
                            for k in node.keywords
                        )
                    )
        return None

    def _arguments(self, node: ast.Call, frame: _Frame) -> Arguments:
        positional: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        is_open = False
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = self._value(argument.value, frame)
                if isinstance(value, Items):
                    positional += value.values
                else:
                    is_open = True
            else:
                positional.append(self._value(argument, frame))
        for keyword in node.keywords:
            value = self._value(keyword.value, frame)
            if keyword.arg:
                keywords.append((keyword.arg, value))
            elif isinstance(bare(value), Mapping):
                mapping = bare(value)
                assert isinstance(mapping, Mapping)
                keywords += mapping.values
                is_open |= mapping.open
            else:
                is_open = True
        return Arguments(tuple(positional), tuple(keywords), is_open)

    def _called(
        self, function: Value, arguments: Arguments, node: ast.Call, frame: _Frame
    ) -> Value:
        site = self._site(node, frame)
        match bare(function):
            case ClassObject(ref):
                return Instance(ref, arguments, site)
            case Call(External("functools.partial"), held) if held.positional:
                more = Arguments(
                    (*held.positional[1:], *arguments.positional),
                    (*held.keywords, *arguments.keywords),
                    held.open or arguments.open,
                )
                return self._called(held.positional[0], more, node, frame)
            case External(name) if name in _BUILDERS:
                return self._built(arguments, site)
            case Function(module, name) if f"{module}.{name}" in _BUILDERS:
                return self._built(arguments, site)
            case Function(module, name):
                return self._function(module, name, arguments, site)
            case Method(owner, name, bound_to):
                return self._method(owner, name, bound_to, arguments, site)
            case Member(inner, "with_hf_config"):
                given = _bind(("hf_config", "architectures"), arguments)
                return ConfigView(
                    inner, given.get("hf_config"), given.get("architectures"), site
                )
            case LocalFunction(_, _, node_) if isinstance(
                node_, ast.FunctionDef | ast.AsyncFunctionDef
            ):
                # A local function may write to self through its closure.
                result = self._walk_local(node_, arguments, frame)
                if result is not None:
                    return result
            case Member(SelfObject(), name) if not self.index.mro(self.ref).external:
                where = f"{site.file}:{site.line}"
                self.trace.gaps.append(f"self.{name}() is unknown ({where})")
        return Call(function, arguments, site)

    @staticmethod
    def _built(arguments: Arguments, site: Site) -> Value:
        """Evaluate ``init_vllm_registered_model`` or ``initialize_model``."""
        given = _bind(("vllm_config",), arguments)
        vllm_config = given.get("vllm_config")
        model_class = arguments.keyword("model_class")
        if model_class is not None:
            built = [
                Instance(v.ref, arguments, site)
                for v in options(model_class)
                if isinstance(v, ClassObject)
            ]
            if len(built) == len(options(model_class)):
                return one_of(*built)
        hf_config = arguments.keyword("hf_config")
        architectures = arguments.keyword("architectures")
        view = bare(vllm_config) if vllm_config is not None else None
        if isinstance(view, ConfigView) and hf_config is None and architectures is None:
            return Built(view.vllm_config, view.hf_config, view.architectures, site)
        return Built(vllm_config, hf_config, architectures, site)

    def _function(
        self, module_name: str, name: str, arguments: Arguments, site: Site
    ) -> Value:
        """Follow a module-level function where that can matter.

        It can where it receives ``self`` (it may set attributes) or a class (it may
        build or choose one); everything else is only named.
        """
        result = Call(Function(module_name, name), arguments, site)
        given = (*arguments.positional, *(v for _, v in arguments.keywords))
        if not any(isinstance(bare(v), SelfObject | ClassObject) for v in given):
            return result
        module = self.index.module(module_name)
        if module is None or name not in module.functions:
            return result
        function = module.functions[name]
        if set(function.decorators) - {"staticmethod", "classmethod"}:
            return result
        found = self._enter(None, function, arguments, module=module, site=site)
        return result if found is None or isinstance(found, Unknown) else found

    def _method(
        self,
        owner: ClassRef,
        name: str,
        bound_to: Value | None,
        arguments: Arguments,
        site: Site,
    ) -> Value:
        result = Call(Method(owner, name, bound_to), arguments, site)
        function = self.index.class_of(owner).methods[name]
        if bound_to is not None:
            if "staticmethod" not in function.decorators:
                first: Value = bound_to
                if "classmethod" in function.decorators:
                    first = ClassObject(self.ref)
                arguments = Arguments(
                    (first, *arguments.positional), arguments.keywords, arguments.open
                )
        elif "classmethod" in function.decorators:
            arguments = Arguments(
                (ClassObject(owner), *arguments.positional),
                arguments.keywords,
                arguments.open,
            )
        elif not any(isinstance(v, SelfObject) for v in arguments.positional[:1]):
            return result
        found = self._enter(owner, function, arguments, site=site)
        return result if found is None or isinstance(found, Unknown) else found

    def _enter(
        self,
        owner: ClassRef | None,
        function: facts.Function,
        arguments: Arguments,
        *,
        module: Module | None = None,
        site: Site | None = None,
    ) -> Value | None:
        """Walk a called function; return what it returns (``None`` if not walked)."""
        if module is None:
            assert owner is not None
            module = self.index.module(owner.module)
            assert module is not None
        key = (module.name, function.line)
        if key in self._active or len(self._active) > MAX_DEPTH:
            self.trace.gaps.append(f"{function.name}() calls itself; not followed")
            return None
        node = self.index.function_node(module, function)
        qualified = f"{owner.name}.{function.name}" if owner else function.name
        if owner is not None:
            self.trace.steps.append(
                Step(owner, function.name, function.line, module.file, site)
            )
        frame = _Frame(module, owner, qualified, {})
        self._bind_parameters(node.args, arguments, frame)
        self._active.append(key)
        depth = len(self._inits)
        if owner is not None and function.name == "__init__":
            self._inits.append(owner)
        try:
            self._body(node.body, frame)
        finally:
            self._active.pop()
            del self._inits[depth:]
        if self._is_generator(module, node):
            return None
        return _returned(frame)

    def _is_generator(self, module: Module, node: facts.FunctionNode) -> bool:
        text = self.index.lines(module)[node.lineno - 1 : node.end_lineno]
        if not any("yield" in line for line in text):
            return False
        return any(
            isinstance(n, ast.Yield | ast.YieldFrom) for n in facts.descend(node)
        )

    def _walk_local(
        self, node: facts.FunctionNode, arguments: Arguments, frame: _Frame
    ) -> Value | None:
        key = (frame.module.name, node.lineno)
        if key in self._active or len(self._active) > MAX_DEPTH:
            return None
        inner = _Frame(frame.module, frame.owner, frame.function, dict(frame.names))
        self._bind_parameters(node.args, arguments, inner)
        self._active.append(key)
        try:
            self._body(node.body, inner)
        finally:
            self._active.pop()
        return _returned(inner)

    def _bind_parameters(
        self, parameters: ast.arguments, arguments: Arguments, frame: _Frame
    ) -> None:
        """Give a callee's parameters the values that a call passes."""
        ordered = [*parameters.posonlyargs, *parameters.args]
        passed = dict(arguments.keywords)
        for parameter, value in zip(ordered, arguments.positional, strict=False):
            frame.names[parameter.arg] = value
        defaults = _defaults(parameters)
        for parameter in (*ordered, *parameters.kwonlyargs):
            name = parameter.arg
            if name in frame.names:
                continue
            if name in passed:
                frame.names[name] = passed.pop(name)
            elif arguments.open:
                # *args or **kwargs were handed on: the value is the outermost caller's.
                frame.names[name] = Parameter(
                    name, _annotation(parameter.annotation), frame.module.name
                )
            elif name in defaults:
                frame.names[name] = self._value(defaults[name], frame)
            else:
                frame.names[name] = Unknown(name)
        if parameters.vararg:
            extra = arguments.positional[len(ordered) :]
            frame.names[parameters.vararg.arg] = (
                Parameter(f"*{parameters.vararg.arg}")
                if arguments.open
                else Items(tuple(extra))
            )
        if parameters.kwarg:
            known = {p.arg for p in (*ordered, *parameters.kwonlyargs)}
            rest = tuple((k, v) for k, v in passed.items() if k not in known)
            frame.names[parameters.kwarg.arg] = Mapping(rest, arguments.open)


def read_init(index: ModelIndex, ref: ClassRef) -> Trace | None:
    """Read the ``__init__`` chain that building ``ref`` runs.

    Returns ``None`` where no class of the trees in its MRO has an ``__init__``.
    """

    def compute() -> Trace | None:
        found = index.find_method(ref, "__init__")
        if found is None:
            return None
        return Reader(index, ref).read(*found, {})

    return index.remember(("init", ref), compute, on_cycle=None)


_SUPPRESS = External("contextlib.suppress")

_BUILDERS = {
    f"{UTILS_MODULE}.init_vllm_registered_model",
    f"{LOADER_MODULE}.initialize_model",
}

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.List, ast.Tuple)
"""Class-level and module-level values that are evaluated; the rest is not needed."""


def _bind(names: Sequence[str], arguments: Arguments) -> dict[str, Value]:
    """Bind leading positional arguments and keywords to parameter names."""
    found = dict(zip(names, arguments.positional, strict=False))
    return found | {k: v for k, v in arguments.keywords if k in names}


def _defaults(parameters: ast.arguments) -> dict[str, ast.expr]:
    """Return the defaults of a signature by parameter name."""
    ordered = [*parameters.posonlyargs, *parameters.args]
    first = len(ordered) - len(parameters.defaults)
    found = {
        parameter.arg: default
        for parameter, default in zip(ordered[first:], parameters.defaults, strict=True)
    }
    for parameter, default_ in zip(
        parameters.kwonlyargs, parameters.kw_defaults, strict=True
    ):
        if default_ is not None:
            found[parameter.arg] = default_
    return found


def _annotation(node: ast.expr | None) -> str:
    """Return the one dotted name in an annotation, ``None`` alternatives aside."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [s for s in (_annotation(node.left), _annotation(node.right)) if s]
        return sides[0] if len(sides) == 1 else ""
    if isinstance(node, ast.Subscript) and dotted(node.value).endswith("Optional"):
        return _annotation(node.slice)
    return dotted(node)


def _merge(first: dict[str, Value], *more: dict[str, Value]) -> dict[str, Value]:
    """Join what local names stand for at the ends of several branches."""
    merged = dict(first)
    for names in more:
        for name, value in names.items():
            merged[name] = one_of(merged[name], value) if name in merged else value
    return merged


def always_raises(body: Sequence[ast.stmt]) -> bool:
    """Say whether a block leaves its function, and only by an exception."""
    if any(isinstance(n, ast.Return) for node in body for n in ast.walk(node)):
        return False
    return any(_ends_in_raise(node) for node in body)


def _ends_in_raise(node: ast.stmt) -> bool:
    match node:
        case ast.If(_, body, orelse):
            return always_raises(body) and always_raises(orelse)
        case ast.With(_, body):
            return always_raises(body)
    return isinstance(node, ast.Raise)


def _last(writes: Sequence[Write], guards: Sequence[Guard]) -> list[Write]:
    """Return the writes whose value may still stand, seen from under ``guards``."""
    held = set(guards)
    found: list[Write] = []
    for write in reversed(writes):
        if any(g._replace(positive=not g.positive) in held for g in write.guards):
            continue
        found.append(write)
        if covers([tuple(g for g in w.guards if g not in held) for w in found]):
            break
    return list(reversed(found))


def _returned(frame: _Frame) -> Value:
    values = [value for value, _ in frame.returns]
    return one_of(*values) if values else Constant(None)


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
