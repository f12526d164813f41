"""Which keywords a dict holds by the time it is passed on as ``**dict``.

Runners build a model's arguments step by step: a literal, a key added under a
condition, another dict merged in, the result of a helper method. This module follows
one function's statements in order and keeps, for each local name, the keys that are
always there and those that are there under a condition. Nothing is run; what cannot be
followed is kept as a note that further names may be in it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from vlmend.codemods.analysis.facts import FunctionNode, descend, dotted


class Key(NamedTuple):
    """One keyword. ``condition`` is empty where the keyword is always passed."""

    name: str
    condition: str = ""

    @property
    def sure(self) -> bool:
        """The keyword is passed on every path."""
        return not self.condition


class More(NamedTuple):
    """Names that the source does not list: what they come from, and when."""

    what: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Keywords:
    """What is known of a dict (or of a call's keywords)."""

    keys: tuple[Key, ...] = ()
    more: tuple[More, ...] = ()

    def get(self, name: str) -> Key | None:
        """Return the named keyword, if it may be there."""
        for key in self.keys:
            if key.name == name:
                return key
        return None

    def with_key(self, name: str) -> Keywords:
        """Return the dict after ``d[name] = ...``."""
        return self.merged(Keywords((Key(name),)))

    def merged(self, other: Keywords) -> Keywords:
        """Return the dict after ``d.update(other)``."""
        found = {key.name: key for key in self.keys}
        for key in other.keys:
            old = found.get(key.name)
            if old is None or not old.sure:
                found[key.name] = key
        more = dict.fromkeys((*self.more, *other.more))
        return Keywords(tuple(found.values()), tuple(more))

    def without(self, names: frozenset[str]) -> Keywords:
        """Return the dict after ``d.pop(name)`` for each name."""
        kept = tuple(key for key in self.keys if key.name not in names)
        return Keywords(kept, self.more)

    def only_if(self, condition: str) -> Keywords:
        """Return the dict as seen from outside a condition."""
        return Keywords(
            tuple(Key(k.name, _both(condition, k.condition)) for k in self.keys),
            tuple(More(m.what, _both(condition, m.condition)) for m in self.more),
        )


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter of the function that is read: its callers know what is in it.

    ``extra`` is what the function itself added; ``collected`` says that it is
    ``**kwargs``.
    """

    name: str
    collected: bool
    extra: Keywords = Keywords()


Shape = Keywords | Given | tuple["Shape | None", ...]
Env = dict[str, "Shape | None"]


class Calls(Protocol):
    """Evaluates calls of helpers for the function that is read."""

    def shape(
        self, node: ast.Call, arguments: Callable[[ast.expr], Shape | None]
    ) -> Shape | None:
        """Return what a helper returns, if it is (a tuple of) dicts."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """A call that was asked for, with what was known when it is reached."""

    node: ast.Call
    env: Mapping[str, Shape | None]


class Walk:
    """One function, followed statement by statement.

    Args:
        calls: evaluates helpers.
        wanted: says which calls to note; ``None`` where only the result matters.
        constants: attributes of ``self`` whose truth is known for the class at hand;
            conditions on them are decided.
    """

    def __init__(
        self,
        calls: Calls,
        wanted: Callable[[ast.Call], bool] | None,
        constants: Mapping[str, bool] | None = None,
    ) -> None:
        self._calls = calls
        self._relevant: frozenset[str] = frozenset()
        self._wanted = wanted
        self._constants = constants or {}
        self.found: list[Found] = []
        self.returns: list[tuple[Shape | None, str]] = []

    def run(self, node: FunctionNode, given: Mapping[str, Shape] | None = None) -> None:
        """Follow a function from its first statement."""
        self._relevant = _relevant(node, self._wanted)
        env: Env = {}
        arguments = node.args
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            env[one.arg] = Given(one.arg, collected=False)
        if arguments.kwarg:
            env[arguments.kwarg.arg] = Given(arguments.kwarg.arg, collected=True)
        env.update(given or {})
        self._block(node.body, env, "")

    # -- statements ---------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt], env: Env, condition: str) -> str | None:
        """Return the condition after these statements, ``None`` if they all leave."""
        for node in body:
            after = self._statement(node, env, condition)
            if after is None:
                return None
            condition = after
        return condition

    def _statement(self, node: ast.stmt, env: Env, condition: str) -> str | None:
        match node:
            case ast.If(test, body, orelse):
                return self._if(test, body, orelse, env, condition)
            case ast.With(items, body) | ast.AsyncWith(items, body):
                for item in items:
                    self._notice(item.context_expr, env)
                return self._block(body, env, condition)
            case ast.For(_, iterator, body) | ast.AsyncFor(_, iterator, body):
                self._notice(iterator, env)
                self._inside(body, env, condition, "the loop runs")
            case ast.While(test, body):
                self._notice(test, env)
                self._inside(body, env, condition, ast.unparse(test))
            case ast.Try(body, handlers, orelse, finalbody):
                after = self._block([*body, *orelse], env, condition)
                for handler in handlers:
                    self._inside(handler.body, env, condition, "an exception is caught")
                if self._block(finalbody, env, condition) is None:
                    return None
                return condition if after is None and handlers else after
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inner = dict(env)
                for one in ast.walk(node.args):
                    if isinstance(one, ast.arg):
                        inner[one.arg] = None
                returns = self.returns
                self.returns = []
                self._block(node.body, inner, condition)
                self.returns = returns
            case ast.Return(value):
                shape = None
                if value is not None:
                    self._notice(value, env)
                    shape = self._shape(value, env)
                self.returns.append((shape, condition))
                return None
            case ast.Raise() | ast.Continue() | ast.Break():
                return None
            case ast.Assign(targets, value):
                self._notice(value, env)
                for target in targets:
                    self._store(target, value, env)
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    self._notice(value, env)
                    self._store(target, value, env)
            case ast.AugAssign(ast.Name(name), ast.BitOr(), value):
                self._notice(value, env)
                env[name] = _merge(env.get(name), self._shape(value, env), "|=")
            case ast.Delete(targets):
                for target in targets:
                    self._delete(target, env)
            case ast.Expr(value):
                self._notice(value, env)
                if isinstance(value, ast.Call):
                    self._mutate(value, env)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._notice(child, env)
        return condition

    def _if(
        self,
        test: ast.expr,
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
        env: Env,
        condition: str,
    ) -> str | None:
        self._notice(test, env)
        truth = self._constants.get(dotted(test))
        if truth is not None:
            return self._block(body if truth else orelse, env, condition)
        text, opposite = _condition(test), _negated(test)
        left, right = dict(env), dict(env)
        after_left = self._block(body, left, _both(condition, text))
        after_right = self._block(orelse, right, _both(condition, opposite))
        if after_left is None and after_right is None:
            return None
        if after_left is None or after_right is None:
            kept = right if after_left is None else left
            env.clear()
            env.update(kept)
            if _raises(body if after_left is None else orelse):
                return condition
            return _both(condition, opposite if after_left is None else text)
        joined = {
            name: _join(left.get(name), right.get(name), text, opposite)
            for name in (*left, *right)
        }
        env.clear()
        env.update(joined)
        return condition

    def _inside(
        self, body: Sequence[ast.stmt], env: Env, condition: str, text: str
    ) -> None:
        inner = dict(env)
        # What a loop does before it breaks off still happens once.
        self._block(body, inner, _both(condition, text))
        joined = {
            name: _join(inner.get(name), env.get(name), text, f"not ({text})")
            for name in (*inner, *env)
        }
        env.clear()
        env.update(joined)

    def _store(self, target: ast.expr, value: ast.expr, env: Env) -> None:
        match target:
            case ast.Name(name):
                # Helpers are followed only for what ends up in a wanted dict.
                env[name] = self._shape(value, env) if name in self._relevant else None
            case ast.Tuple(elements) | ast.List(elements):
                parts_of = [e.id for e in elements if isinstance(e, ast.Name)]
                if self._relevant.isdisjoint(parts_of):
                    env.update(dict.fromkeys(parts_of))
                    return
                shape = self._shape(value, env)
                parts: Sequence[Shape | None] = [None] * len(elements)
                if isinstance(shape, tuple) and len(shape) == len(elements):
                    parts = shape
                for element, part in zip(elements, parts, strict=True):
                    if isinstance(element, ast.Name):
                        env[element.id] = part
            case ast.Subscript(ast.Name(name), ast.Constant(str(key))):
                env[name] = _with_key(env.get(name), key)
            case ast.Subscript(ast.Name(name)) if env.get(name) is not None:
                unknown = Keywords((), (More(f"{name}[...] = ..."),))
                env[name] = _merge(env[name], unknown, name)

    @staticmethod
    def _delete(target: ast.expr, env: Env) -> None:
        match target:
            case ast.Subscript(ast.Name(name), ast.Constant(str(key))):
                shape = env.get(name)
                if isinstance(shape, Keywords):
                    env[name] = shape.without(frozenset((key,)))
            case ast.Name(name):
                env.pop(name, None)

    def _mutate(self, node: ast.Call, env: Env) -> None:
        match node.func:
            case ast.Attribute(ast.Name(name), "update") if env.get(name) is not None:
                shape = env[name]
                for argument in node.args:
                    shape = _merge(shape, self._shape(argument, env), _text(argument))
                for keyword in node.keywords:
                    if keyword.arg:
                        shape = _with_key(shape, keyword.arg)
                    else:
                        inner = self._shape(keyword.value, env)
                        shape = _merge(shape, inner, _text(keyword.value))
                env[name] = shape
            case ast.Attribute(ast.Name(name), "pop"):
                shape = env.get(name)
                match shape, node.args:
                    case Keywords(), [ast.Constant(str(key)), *_]:
                        env[name] = shape.without(frozenset((key,)))
            case ast.Attribute(ast.Name(name), "setdefault"):
                match node.args:
                    case [ast.Constant(str(key)), *_]:
                        env[name] = _with_key(env.get(name), key)

    def _notice(self, node: ast.expr, env: Env) -> None:
        """Note the wanted calls inside an expression."""
        if self._wanted is None:
            return
        for child in ast.walk(node):
            if isinstance(child, ast.Call) and self._wanted(child):
                self.found.append(Found(child, dict(env)))

    # -- expressions --------------------------------------------------------------

    def _shape(self, node: ast.expr, env: Mapping[str, Shape | None]) -> Shape | None:
        match node:
            case ast.Name(name):
                return env.get(name)
            case ast.Dict(keys, values):
                return self._dict(keys, values, env)
            case ast.Tuple(elements):
                return tuple(self._shape(element, env) for element in elements)
            case ast.IfExp(test, body, orelse):
                left, right = self._shape(body, env), self._shape(orelse, env)
                return _join(left, right, _condition(test), _negated(test))
            case ast.BinOp(left_, ast.BitOr(), right_):
                found = self._shape(left_, env)
                if found is None:
                    return None
                return _merge(found, self._shape(right_, env), _text(right_))
            case ast.Call(func, arguments):
                if _is_dict(func):
                    return self._dict_call(arguments, node.keywords, env)
                match func, arguments:
                    case ast.Attribute(inner, "copy"), []:
                        return self._shape(inner, env)
                return self._calls.shape(node, lambda n: self._shape(n, env))
        return None

    def _dict(
        self,
        keys: Sequence[ast.expr | None],
        values: Sequence[ast.expr],
        env: Mapping[str, Shape | None],
    ) -> Shape | None:
        found: Shape | None = Keywords()
        for key, value in zip(keys, values, strict=True):
            match key:
                case None:
                    found = _merge(found, self._shape(value, env), _text(value))
                case ast.Constant(str(name)):
                    found = _with_key(found, name)
                case _:
                    unknown = Keywords((), (More(_text(key)),))
                    found = _merge(found, unknown, _text(key))
        return found

    def _dict_call(
        self,
        arguments: Sequence[ast.expr],
        keywords: Sequence[ast.keyword],
        env: Mapping[str, Shape | None],
    ) -> Shape | None:
        found: Shape | None = Keywords()
        for argument in arguments:
            found = _merge(found, self._shape(argument, env), _text(argument))
        for keyword in keywords:
            if keyword.arg:
                found = _with_key(found, keyword.arg)
            else:
                inner = self._shape(keyword.value, env)
                found = _merge(found, inner, _text(keyword.value))
        return found

    def keywords(self, found: Found) -> tuple[Keywords, tuple[Given, ...]]:
        """Return a noted call's keywords and the parameters it passes as ``**name``."""
        result = Keywords()
        given: list[Given] = []
        for keyword in found.node.keywords:
            if keyword.arg:
                result = result.with_key(keyword.arg)
                continue
            shape = self._shape(keyword.value, found.env)
            match shape:
                case Keywords():
                    result = result.merged(shape)
                case Given():
                    given.append(shape)
                    result = result.merged(shape.extra)
                case _:
                    more = More(f"**{_text(keyword.value)}")
                    result = result.merged(Keywords((), (more,)))
        return result, tuple(given)

    def shape_of(self, node: ast.expr, found: Found) -> Shape | None:
        """Evaluate an argument of a noted call."""
        return self._shape(node, found.env)

    def returned(self) -> Shape | None:
        """Return what the function returns, its ``return`` statements joined."""
        if not self.returns:
            return None
        shape, condition = self.returns[0]
        for other, when in self.returns[1:]:
            text = condition or "it returns before"
            shape = _join(shape, other, text, when or "it does not return before")
            condition = ""
        return shape


def _relevant(
    node: FunctionNode, wanted: Callable[[ast.Call], bool] | None
) -> frozenset[str]:
    """Return the local names that may end up in a wanted call, or in the result."""
    found: set[str] = set()
    flows: list[tuple[set[str], ast.expr]] = []
    for child in ast.walk(node):
        match child:
            case ast.Call() if wanted is not None and wanted(child):
                found |= _names_in(child)
            case ast.Return(value) if wanted is None and value is not None:
                found |= _names_in(value)
            case ast.Assign(targets, value):
                flows.append((set().union(*(_names_in(t) for t in targets)), value))
            case ast.AnnAssign(target, _, value) if value is not None:
                flows.append((_names_in(target), value))
            case ast.AugAssign(target, _, value):
                flows.append((_names_in(target), value))
            case ast.Call(ast.Attribute(ast.Name(name), "update" | "setdefault")):
                flows.append(({name}, child))
    grown = True
    while grown:
        grown = False
        for bound, source in flows:
            if bound & found:
                used = _names_in(source)
                grown |= not used <= found
                found |= used
    return frozenset(found)


def _names_in(node: ast.AST) -> set[str]:
    return {n.id for n in descend(node) if isinstance(n, ast.Name)}


def names(shape: Keywords) -> Iterator[str]:
    """Yield the names that may be in a dict."""
    for key in shape.keys:
        yield key.name


def _with_key(shape: Shape | None, name: str) -> Shape | None:
    return _merge(shape, Keywords((Key(name),)), name)


def _merge(shape: Shape | None, other: Shape | None, text: str) -> Shape | None:
    if isinstance(other, Given | tuple) or other is None:
        other = Keywords((), (More(f"**{text}"),))
    match shape:
        case Keywords():
            return shape.merged(other)
        case Given(name, collected, extra):
            return Given(name, collected, extra.merged(other))
    return None


def _join(
    left: Shape | None, right: Shape | None, text: str, opposite: str
) -> Shape | None:
    """Return what is known after two branches met."""
    if left == right:
        return left
    match left, right:
        case Keywords(), Keywords():
            keys = [
                _joined(left, right, name, text, opposite) for name in _all(left, right)
            ]
            more = [
                *(
                    m if m in right.more else More(m.what, _both(text, m.condition))
                    for m in left.more
                ),
                *(
                    More(m.what, _both(opposite, m.condition))
                    for m in right.more
                    if m not in left.more
                ),
            ]
            return Keywords(tuple(keys), tuple(more))
        case tuple(), tuple() if len(left) == len(right):
            return tuple(
                _join(a, b, text, opposite) for a, b in zip(left, right, strict=True)
            )
        case Given(), Given() if left.name == right.name:
            extra = _join(left.extra, right.extra, text, opposite)
            assert isinstance(extra, Keywords)
            return Given(left.name, left.collected, extra)
        case Keywords(), None:
            return Keywords(
                left.only_if(text).keys, (*left.more, More("a dict", opposite))
            )
        case None, Keywords():
            found = right.only_if(opposite)
            return Keywords(found.keys, (*right.more, More("a dict", text)))
    return None


def _all(left: Keywords, right: Keywords) -> dict[str, None]:
    return dict.fromkeys((*names(left), *names(right)))


def _joined(
    left: Keywords, right: Keywords, name: str, text: str, opposite: str
) -> Key:
    one, other = left.get(name), right.get(name)
    if one is not None and other is not None:
        if one.sure and other.sure:
            return one
        return one if not one.sure else other
    if one is not None:
        return Key(name, _both(text, one.condition))
    assert other is not None
    return Key(name, _both(opposite, other.condition))


def _both(first: str, second: str) -> str:
    if not first or not second or first == second:
        return first or second
    return f"{first} and {second}"


def _condition(test: ast.expr) -> str:
    text = ast.unparse(test)
    return f"({text})" if isinstance(test, ast.BoolOp) else text


def _negated(test: ast.expr) -> str:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _condition(test.operand)
    text = ast.unparse(test)
    if isinstance(test, ast.Name | ast.Attribute | ast.Call):
        return f"not {text}"
    return f"not ({text})"


def _raises(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 50 else f"{text[:47]}..."


def _is_dict(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node) in ("dict", "OrderedDict")
