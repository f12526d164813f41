"""What expressions stand for in a reading."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import EllipsisType

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.reading import MAX_DEPTH, Frame
from vlmend.codemods.analysis.reading_calls import Calls
from vlmend.codemods.analysis.trace import last_writes
from vlmend.codemods.analysis.values import (
    Arguments,
    ClassObject,
    ClassRef,
    Constant,
    External,
    Items,
    LocalFunction,
    Mapping,
    Member,
    Method,
    ModuleObject,
    OneOf,
    SelfObject,
    Super,
    Unknown,
    Value,
    bare,
    one_of,
)


class Expressions(Calls):
    """Says what expressions stand for."""

    def _value(self, node: ast.expr, frame: Frame) -> Value:
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
                frame.bind(name, found)
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

    def _look_inside(self, node: ast.expr, frame: Frame) -> None:
        """Notice calls inside an expression whose own value is not tracked."""
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            frame = Frame(frame.module, frame.owner, frame.function, dict(frame.names))
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
        frame: Frame,
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
            return one_of(*(w.value for w in last_writes(writes, self._guards)))
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


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
