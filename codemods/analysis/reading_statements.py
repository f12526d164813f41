"""What statements do to a reading."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from vlmend.codemods.analysis.facts import dotted
from vlmend.codemods.analysis.reading import Frame, Reading
from vlmend.codemods.analysis.trace import Context
from vlmend.codemods.analysis.values import (
    Call,
    Constant,
    External,
    Guard,
    LocalFunction,
    Unknown,
    Value,
    one_of,
)


class Statements(Reading):
    """Walks statements in order, on every side of every condition."""

    def _block(self, body: Sequence[ast.stmt], frame: Frame) -> bool:
        """Walk statements; say whether the block always leaves the function."""
        return any(self._statement(node, frame) for node in body)

    def _body(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Walk a whole function; what it returned early from ends with it."""
        depth = len(self._guards)
        left = self._block(body, frame)
        del self._guards[depth:]
        if not left:
            frame.returns.append((Constant(None), ()))

    def _statement(self, node: ast.stmt, frame: Frame) -> bool:
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
                frame.bind(name, LocalFunction(name, frame.module.name, node))
            case ast.ImportFrom():
                self._import_from(node, frame)
            case ast.Import(names):
                for alias in names:
                    bound = alias.asname or alias.name.split(".")[0]
                    full = alias.name if alias.asname else bound
                    frame.bind(bound, self._module_value(full))
            case ast.Match(subject, cases):
                self._value(subject, frame)
                return self._match(node, cases, frame)
            case ast.ClassDef(name):
                frame.bind(name, Unknown(f"the local class {name}"))
            case ast.Delete(targets):
                for target in targets:
                    if isinstance(target, ast.Attribute):
                        self._store(target, Unknown("a deleted attribute"), node, frame)
        return False

    def _if(self, node: ast.If, test: ast.expr, frame: Frame) -> bool:
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

    def _try(self, node: ast.Try | ast.TryStar, frame: Frame) -> bool:
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
        with frame.may_be_left() as caught_from:
            left = self._block(node.body, frame)
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
        self, text: str, node: ast.stmt, body: Sequence[ast.stmt], frame: Frame
    ) -> None:
        # A `break` may leave it anywhere.
        with frame.may_be_left() as names, self._guarded(text, node.lineno):
            self._block(body, frame)
        frame.names = names

    def _match(
        self, node: ast.Match, cases: Sequence[ast.match_case], frame: Frame
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
        frame: Frame,
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
        with frame.may_be_left() as names:
            left = self._block(body, frame)
        if suppressing:
            frame.names, left = names, False
        del self._guards[outer : outer + suppressing]
        del self._contexts[depth:]
        return left


_SUPPRESS = External("contextlib.suppress")


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
