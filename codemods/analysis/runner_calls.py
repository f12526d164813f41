"""Every call that a runner in the tree makes of a model's forward.

Read from the tree's own runners: V1 (``vllm/v1/worker``), V2 (``vllm/v1/worker/gpu``),
draft proposers and speculators (``spec_decode`` folders), CUDA-graph capture, and V0
(``vllm/worker``, ``vllm/spec_decode``) in old trees. A call is known by the name that
runners give the model (``self.model``, ``model``, ``model_executable``); the keywords
that reach it through ``**dict`` are followed to where the dict is built.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.facts import Module, dotted
from vlmend.codemods.analysis.keyword_sets import (
    Found,
    Given,
    Key,
    Keywords,
    More,
    Shape,
    Walk,
)
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.signatures import read_signature
from vlmend.codemods.analysis.sources import MODEL_FOLDERS
from vlmend.codemods.analysis.tree import TreeError
from vlmend.codemods.codemod import Evidence, Source

RUNNER_FOLDERS = (
    "vllm/v1/worker",
    "vllm/v1/spec_decode",
    "vllm/worker",
    "vllm/spec_decode",
)
"""Where vLLM keeps what calls models; the last two through 0.10."""

_HOME = "vllm.v1.worker.gpu_model_runner"

TELLING = ("pooler", "get_mrope_input_positions", "get_xdrope_input_positions")
"""Methods that a runner calls on the models that have them; one that never does cannot
serve a model that needs it to."""

MAX_CALLERS = 3
"""Helpers followed up to their callers; the deepest chain in vLLM 0.33.0 has two."""


class Role(StrEnum):
    """Which models a call can reach."""

    TARGET = "target"
    """The model that is served."""
    DRAFT = "draft"
    """A draft of speculative decoding that is registered as one."""
    DRAFT_MODEL = "draft model"
    """Any causal language model that serves as an independent draft model."""


class Place(NamedTuple):
    """A line of a runner."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class RunnerCall:
    """One call of a model's forward.

    Attributes:
        place: the call.
        via: where its arguments come from, if a helper makes the call: the call of the
            helper, then that helper's caller, and so on.
        positional: how many positional arguments it passes, the model itself left out.
        keywords: what it passes by name.
        role: which models it reaches.
        source: the body of code that the runner belongs to.
        asks: methods of the model that the runner calls besides, of those that tell
            which models it can serve (:data:`TELLING`).
        reason: for a draft model's call, the line that lets any causal model serve.
    """

    place: Place
    via: tuple[Place, ...]
    positional: int
    keywords: Keywords
    role: Role
    source: Source
    asks: frozenset[str] = frozenset()
    reason: tuple[Evidence, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The keywords that every such call passes."""
        return tuple(key.name for key in self.keywords.keys if key.sure)

    @property
    def conditional(self) -> tuple[Key, ...]:
        """The keywords that are passed under a condition."""
        return tuple(key for key in self.keywords.keys if not key.sure)

    def text(self) -> str:
        """Return what is passed, as evidence and the table show it."""
        parts = [f"{self.positional} by position"] if self.positional else []
        parts += self.names
        parts += [f"[{key.name}]" for key in self.conditional]
        if self.keywords.more:
            parts.append("...")
        return ", ".join(parts) or "nothing"


class _Class(NamedTuple):
    """A class of a runner file."""

    module: str
    name: str


class _Code(NamedTuple):
    """A function of a runner file."""

    module: Module
    owner: facts.Class | None
    function: facts.Function

    @property
    def qualified(self) -> str:
        if self.owner is None:
            return self.function.name
        return f"{self.owner.name}.{self.function.name}"


def runner_calls(index: ModelIndex) -> tuple[RunnerCall, ...]:
    """Return every runner call of the tree, by file and line."""
    return index.remember(
        ("runner calls",),
        lambda: tuple(_Runners(index).calls()),
        on_cycle=(),
        home=_HOME,
    )


def model_state_files(index: ModelIndex) -> tuple[str, ...]:
    """Return the model files that define a model state."""
    root = index.roots[-1]
    found: list[str] = []
    for folder in MODEL_FOLDERS:
        if not root.tree.is_dir(folder):
            continue
        for file in root.tree.python_files(folder):
            try:
                source = index.source_of(root, file)
            except TreeError:
                continue
            if b"ModelState)" in source or b"ModelState," in source:
                found.append(file)
    return tuple(found)


@dataclass
class _Runners:
    index: ModelIndex
    _results: dict[tuple[_Class | None, str, int], Shape | None] = field(
        default_factory=dict
    )
    _active: set[tuple[str, int]] = field(default_factory=set)
    _known: dict[_Class, dict[str, bool]] = field(default_factory=dict)
    _named: dict[str, list[tuple[_Code, _Class]]] = field(default_factory=dict)

    # -- files ----------------------------------------------------------------------

    @cached_property
    def _files(self) -> dict[str, bytes]:
        """The runner files, by path."""
        root = self.index.roots[-1]
        found: dict[str, bytes] = {}
        for folder in RUNNER_FOLDERS:
            if not root.tree.is_dir(folder):
                continue
            for file in root.tree.python_files(folder):
                try:
                    found.setdefault(file, self.index.source_of(root, file))
                except TreeError:
                    continue
        return found

    @cached_property
    def _model_states(self) -> dict[str, bytes]:
        """Model files with a model state (V2's builder of inputs) of their own."""
        root = self.index.roots[-1]
        files = self.index.ask(model_state_files)
        return {file: self.index.source_of(root, file) for file in files}

    def _module(self, file: str) -> Module | None:
        name = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        return self.index.module(name)

    def _functions(self, module: Module) -> Iterator[_Code]:
        for function in module.functions.values():
            yield _Code(module, None, function)
        for statements in module.classes.values():
            for one in statements:
                for method in one.methods.values():
                    yield _Code(module, one, method)

    def _matching(
        self, word: bytes, pattern: re.Pattern[bytes], files: Mapping[str, bytes]
    ) -> Iterator[_Code]:
        """Yield the functions in which a pattern matches.

        ``word`` stands in every match; a plain search for it is much faster.
        """
        for file, source in files.items():
            if word not in source:
                continue
            starts = [match.start() for match in pattern.finditer(source)]
            if not starts:
                continue
            module = self._module(file)
            if module is None:
                continue
            lines = [source.count(b"\n", 0, start) + 1 for start in starts]
            for code in self._functions(module):
                function = code.function
                if function.end_line < lines[0] or function.line > lines[-1]:
                    continue
                if any(function.line <= n <= function.end_line for n in lines):
                    yield code

    def node_of(self, code: _Code) -> facts.FunctionNode:
        """Return the syntax tree of a function of the runners."""
        return self.index.function_node(code.module, code.function)

    # -- classes --------------------------------------------------------------------

    def _order(self, ref: _Class) -> tuple[_Class, ...]:
        """Return a runner class and its bases, nearest first."""
        found: dict[_Class, None] = {}
        queue = [ref]
        while queue:
            one = queue.pop(0)
            if one in found:
                continue
            statement = self._statement(one)
            if statement is None:
                continue
            found[one] = None
            for base in statement.bases:
                resolved = self._resolve(one.module, base)
                if resolved is not None:
                    queue.append(resolved)
        return tuple(found)

    def _statement(self, ref: _Class) -> facts.Class | None:
        module = self.index.module(ref.module)
        statements = module.classes.get(ref.name, ()) if module else ()
        return statements[-1] if statements else None

    def _resolve(self, module_name: str, name: str) -> _Class | None:
        module = self.index.module(module_name)
        if module is None or "." in name:
            return None
        if name in module.classes:
            return _Class(module_name, name)
        for binding in module.bindings.get(name, ()):
            if binding.attribute and binding.module.startswith("vllm."):
                return self._resolve(binding.module, binding.attribute)
        return None

    def _method(self, ref: _Class, name: str) -> _Code | None:
        for one in self._order(ref):
            statement = self._statement(one)
            module = self.index.module(one.module)
            if statement and module and name in statement.methods:
                return _Code(module, statement, statement.methods[name])
        return None

    # -- calls ----------------------------------------------------------------------

    def calls(self) -> Iterator[RunnerCall]:
        sites = list(self._matching(b"model", _MODEL_CALL, self._files))
        drafters = list(self._independent_drafters())
        found: list[RunnerCall] = []
        for code in sites:
            own = _Class(code.module.name, code.owner.name) if code.owner else None
            if self._is_foreign(code) or any(own == drafter for drafter, _ in drafters):
                continue
            found += self._in_function(code, own, self._role(code), ())
        for draft, reason in drafters:
            order = self._order(draft)
            for code in sites:
                if code.owner is None:
                    continue
                owner = _Class(code.module.name, code.owner.name)
                if (
                    owner not in order
                    or self._method(draft, code.function.name) != code
                ):
                    continue
                found += self._in_function(code, draft, Role.DRAFT_MODEL, (reason,))
        unique = dict.fromkeys(found)
        yield from sorted(unique, key=lambda c: (c.place, c.via, c.role))

    def _role(self, code: _Code) -> Role:
        return Role.DRAFT if "/spec_decode/" in code.module.file else Role.TARGET

    def _asks(self, code: _Code) -> frozenset[str]:
        """Return the telling methods that a function's runner calls on its model.

        A runner is a file, with those of its base classes, or a folder of its own.
        """
        folder = code.module.file.rpartition("/")[0]
        beside = {code.module.file}
        if folder not in RUNNER_FOLDERS:
            beside |= {f for f in self._files if f.startswith(f"{folder}/")}
        elif code.owner is not None:
            for one in self._order(_Class(code.module.name, code.owner.name)):
                module = self.index.module(one.module)
                if module is not None:
                    beside.add(module.file)
        return frozenset(
            name
            for name in TELLING
            if any(f".{name}(".encode() in self._files.get(f, b"") for f in beside)
        )

    def _in_function(
        self,
        code: _Code,
        self_type: _Class | None,
        role: Role,
        reason: tuple[Evidence, ...],
    ) -> Iterator[RunnerCall]:
        walk = self._walk(code, self_type, _is_model_call)
        for found in _last_states(walk.found):
            place = Place(code.module.file, found.node.lineno, code.qualified)
            passed = _positional(found.node)
            for keywords, via in self._complete(code, walk, found):
                origin = role
                if via and role is Role.TARGET and "/spec_decode/" in via[0].file:
                    origin = Role.DRAFT
                yield RunnerCall(
                    place,
                    via,
                    passed or 0,
                    keywords
                    if passed is not None
                    else keywords.merged(Keywords((), (More("*args"),))),
                    origin,
                    self.index.source_kind(code.module.name),
                    self._asks(code),
                    reason,
                )

    def _complete(
        self, code: _Code, walk: Walk, found: Found, depth: int = 0
    ) -> Iterator[tuple[Keywords, tuple[Place, ...]]]:
        """Fill in what the callers of a helper pass through it."""
        keywords, given = walk.keywords(found)
        if not given:
            yield keywords, ()
            return
        parameters = ", ".join(one.name for one in given)
        unknown = keywords.merged(Keywords((), (More(f"**{parameters}"),)))
        if depth >= MAX_CALLERS:
            yield unknown, ()
            return
        callers = list(self._callers(code, given, depth))
        if not callers:
            yield unknown, ()
        for more, via in callers:
            yield keywords.merged(more), via

    def _callers(
        self, code: _Code, given: Sequence[Given], depth: int
    ) -> Iterator[tuple[Keywords, tuple[Place, ...]]]:
        name = code.function.name
        pattern = re.compile(rb"(?<!def )\b" + name.encode() + rb"\s*\(")
        signature = read_signature(self.node_of(code))
        for caller in self._matching(name.encode(), pattern, self._files):
            if caller == code:
                continue
            own = (
                _Class(caller.module.name, caller.owner.name) if caller.owner else None
            )
            walk = self._walk(caller, own, lambda call: _called_name(call) == name)
            for found in _last_states(walk.found):
                for keywords, via in self._passed(
                    caller, walk, found, signature.positional, given, depth
                ):
                    place = Place(
                        caller.module.file, found.node.lineno, caller.qualified
                    )
                    yield keywords, (place, *via)

    def _passed(
        self,
        caller: _Code,
        walk: Walk,
        found: Found,
        parameters: Sequence[NamedTuple],
        given: Sequence[Given],
        depth: int,
    ) -> Iterator[tuple[Keywords, tuple[Place, ...]]]:
        """Say what one call of a helper puts into the helper's parameters."""
        names = [p[0] for p in parameters]
        bound = isinstance(found.node.func, ast.Attribute) and names[:1] == ["self"]
        ordered = names[1:] if bound else names
        by_position = dict(zip(ordered, found.node.args, strict=False))
        by_name = {k.arg: k.value for k in found.node.keywords if k.arg}
        result = Keywords()
        for one in given:
            if one.collected:
                for keywords, via in self._complete(caller, walk, found, depth + 1):
                    rest = keywords.without(frozenset(names))
                    yield result.merged(rest), via
                return
            node = by_position.get(one.name, by_name.get(one.name))
            shape = walk.shape_of(node, found) if node is not None else None
            match shape:
                case Keywords():
                    result = result.merged(shape)
                case Given() if depth + 1 < MAX_CALLERS:
                    for keywords, via in self._callers(caller, (shape,), depth + 1):
                        yield result.merged(shape.extra).merged(keywords), via
                    return
                case _:
                    if node is None:
                        return
                    text = f"**{ast.unparse(node)}"
                    result = result.merged(Keywords((), (More(text),)))
        yield result, ()

    def _walk(
        self, code: _Code, self_type: _Class | None, wanted: Callable[[ast.Call], bool]
    ) -> Walk:
        constants = self._constants(self_type) if self_type else {}
        walk = Walk(_Helpers(self, code, self_type), wanted, constants)
        walk.run(self.node_of(code))
        return walk

    def _constants(self, ref: _Class) -> dict[str, bool]:
        if ref not in self._known:
            self._known[ref] = dict(self._handed_up(ref))
        return self._known[ref]

    def _handed_up(self, ref: _Class) -> Iterator[tuple[str, bool]]:
        """Truth values that a class hands to its base's ``__init__`` by name.

        Proposers that differ in one input say so this way
        (``super().__init__(..., pass_hidden_states_to_model=False)``).
        """
        statement = self._statement(ref)
        module = self.index.module(ref.module)
        if statement is None or module is None or "__init__" not in statement.methods:
            return
        node = self.index.function_node(module, statement.methods["__init__"])
        for call in ast.walk(node):
            if not isinstance(call, ast.Call) or _called_name(call) != "__init__":
                continue
            for keyword in call.keywords:
                match keyword.value:
                    case ast.Constant(bool(value)) if keyword.arg:
                        yield f"self.{keyword.arg}", value

    # -- helpers --------------------------------------------------------------------

    def result(
        self, code: _Code, self_type: _Class | None, given: Mapping[str, Shape]
    ) -> Shape | None:
        """Return what a helper returns, as a dict or a tuple of dicts."""
        key = (self_type, code.module.name, code.function.line)
        if not given and key in self._results:
            return self._results[key]
        active = (code.module.name, code.function.line)
        if active in self._active:
            return None
        self._active.add(active)
        try:
            constants = self._constants(self_type) if self_type else {}
            walk = Walk(_Helpers(self, code, self_type), None, constants)
            walk.run(self.node_of(code), given)
            found = walk.returned()
        finally:
            self._active.discard(active)
        if not given:
            self._results[key] = found
        return found

    def named(self, name: str) -> list[tuple[_Code, _Class]]:
        """Return the methods of one name that any class of the runners has."""
        if name not in self._named:
            self._named[name] = list(self._definitions(name))
        return self._named[name]

    def _definitions(self, name: str) -> Iterator[tuple[_Code, _Class]]:
        pattern = re.compile(rb"\bdef " + name.encode() + rb"\s*\(")
        files = {**self._files, **self._model_states}
        for code in self._matching(b"def " + name.encode(), pattern, files):
            if code.function.name == name and code.owner is not None:
                body = self.node_of(code).body
                if not isinstance(body[-1], ast.Raise):
                    yield code, _Class(code.module.name, code.owner.name)

    def method(self, ref: _Class, name: str) -> _Code | None:
        """Find a method through a runner class's bases."""
        return self._method(ref, name)

    def above(self, ref: _Class, owner: str, name: str) -> _Code | None:
        """Find what ``super().name`` stands for in a method of ``owner``."""
        order = self._order(ref)
        names = [one.name for one in order]
        start = names.index(owner) + 1 if owner in names else len(order)
        for one in order[start:]:
            statement, module = self._statement(one), self.index.module(one.module)
            if statement and module and name in statement.methods:
                return _Code(module, statement, statement.methods[name])
        return None

    def _is_foreign(self, code: _Code) -> bool:
        """Say whether ``model`` is another object than vLLM's model there.

        Runners of other platforms wrap the model in a module of their own, or load one
        from another library; only the wrapper's own call then reaches vLLM's model.
        """
        own = _Class(code.module.name, code.owner.name) if code.owner else None
        wrappers = [
            name
            for name, statements in code.module.classes.items()
            if "forward" in statements[-1].methods
            and any(base.endswith("Module") for base in statements[-1].bases)
        ]
        if wrappers:
            return own is None or own.name not in wrappers
        if own is None:
            return False
        loaders: list[str] = []
        for one in self._order(own):
            module, statement = self.index.module(one.module), self._statement(one)
            if module is None or statement is None:
                continue
            lines = self.index.lines(module)[statement.line - 1 : statement.end_line]
            for line in lines:
                match = _LOADED.search(line)
                if match:
                    loaders.append(match.group(1))
        return bool(loaders) and not any(_is_loader(name) for name in loaders)

    def _independent_drafters(self) -> Iterator[tuple[_Class, Evidence]]:
        """Find the runners that take any causal model as a draft model.

        vLLM chooses them by ``speculative_config.uses_draft_model()``.
        """
        for code in self._matching(b"uses_draft_model", _USES_DRAFT_MODEL, self._files):
            for node in ast.walk(self.node_of(code)):
                if not isinstance(node, ast.If) or not _asks_for_draft_model(node.test):
                    continue
                for statement in node.body:
                    for call in ast.walk(statement):
                        if not isinstance(call, ast.Call):
                            continue
                        ref = self._drafter(code, node, dotted(call.func))
                        if ref is None:
                            continue
                        said = (
                            f"the method draft_model runs {ref.name}, with whatever "
                            "causal language model the user names"
                        )
                        source = self.index.source_kind(code.module.name)
                        yield ref, Evidence(source, code.module.file, call.lineno, said)

    def _drafter(self, code: _Code, branch: ast.If, name: str) -> _Class | None:
        if not name or "." in name:
            return None
        for node in branch.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._resolve(node.module, alias.name)
        return self._resolve(code.module.name, name)


@dataclass
class _Helpers:
    """Evaluates the helper calls of one function."""

    runners: _Runners
    code: _Code
    self_type: _Class | None

    def shape(
        self, node: ast.Call, arguments: Callable[[ast.expr], Shape | None]
    ) -> Shape | None:
        match node.func:
            case ast.Attribute(ast.Name("self"), name) if self.self_type is not None:
                code = self.runners.method(self.self_type, name)
                if code is None:
                    return None
                given = self._given(code, node, arguments)
                return self.runners.result(code, self.self_type, given)
            case ast.Attribute(ast.Call(ast.Name("super")), name):
                owner = self.code.owner
                if self.self_type is None or owner is None:
                    return None
                above = self.runners.above(self.self_type, owner.name, name)
                if above is None:
                    return None
                return self.runners.result(above, self.self_type, {})
            case ast.Attribute(_, name) if name.startswith("prepare_"):
                # A part of the runner that is chosen at run time: one of the classes
                # that have such a method.
                return self._any(name)
            case ast.Name(name):
                function = self.code.module.functions.get(name)
                if function is None:
                    return None
                local = _Code(self.code.module, None, function)
                return self.runners.result(local, None, {})
        return None

    def _any(self, name: str) -> Shape | None:
        shapes: list[tuple[Keywords, str]] = []
        for code, owner in self.runners.named(name):
            shape = self.runners.result(code, owner, {})
            if isinstance(shape, Keywords):
                shapes.append((shape, owner.name))
        if not shapes:
            return None
        everywhere = {
            key.name
            for key in shapes[0][0].keys
            if all((k := s.get(key.name)) is not None and k.sure for s, _ in shapes)
        }
        keys = {name: Key(name) for name in everywhere}
        more: dict[More, None] = {}
        for shape, owner_name in shapes:
            conditional = shape.only_if(f"in {owner_name}")
            for key in conditional.keys:
                keys.setdefault(key.name, key)
            more.update(dict.fromkeys(conditional.more))
        return Keywords(tuple(keys.values()), tuple(more))

    def _given(
        self,
        code: _Code,
        node: ast.Call,
        arguments: Callable[[ast.expr], Shape | None],
    ) -> dict[str, Shape]:
        """Bind the dicts among a call's arguments to the helper's parameters."""
        names = [p.name for p in read_signature(self.runners.node_of(code)).positional]
        found: dict[str, Shape] = {}
        pairs = [*zip(names[1:], node.args, strict=False)]
        pairs += [(k.arg, k.value) for k in node.keywords if k.arg]
        for name, value in pairs:
            if isinstance(value, ast.Name | ast.Dict):
                shape = arguments(value)
                if isinstance(shape, Keywords):
                    found[name] = shape
        return found


_MODEL_CALL = re.compile(
    rb"(?<![\w.])(?:self\.)?(?:model|model_executable)[ \t]*\((?!\s*\))"
)
_MODEL_NAMES = ("self.model", "model", "model_executable")
_USES_DRAFT_MODEL = re.compile(rb"\buses_draft_model\(\)")
_LOADED = re.compile(r"\bself\.model(?:\s*:[^=]+)?\s*=\s*([\w.]+)\(")


def _is_loader(name: str) -> bool:
    """Say whether a call gives vLLM's own model, or passes everything on to it."""
    last = name.rpartition(".")[2]
    return (
        last in ("get_model", "load_model", "load_lora_model", "cast")
        or name.startswith("self.")
        or last.endswith("Wrapper")
    )


def _asks_for_draft_model(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and _called_name(test) == "uses_draft_model"


def _is_model_call(node: ast.Call) -> bool:
    return dotted(node.func) in _MODEL_NAMES and bool(node.args or node.keywords)


def _called_name(node: ast.Call) -> str:
    match node.func:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ""


def _positional(node: ast.Call) -> int | None:
    """Count positional arguments; ``None`` where ``*args`` hides the number."""
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return None
    return len(node.args)


def _last_states(found: Sequence[Found]) -> Iterator[Found]:
    """Keep one state per call: a loop or a repeated walk sees a call more than once."""
    latest: dict[int, Found] = {}
    for one in found:
        latest[id(one.node)] = one
    yield from latest.values()
