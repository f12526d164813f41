"""Every view of the configuration that a wrapper builds an inner model with.

A view is made by ``vllm_config.with_hf_config(...)`` or inside
``init_vllm_registered_model(...)``. Both the wrapper's own ``__init__`` chain is read
and that of inner classes which are not registered themselves: some of them narrow the
configuration that they are given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vlmend.codemods.analysis.interpreter import Reader, read_init
from vlmend.codemods.analysis.language_model import MARK, TOWER_MARK, language_model
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.trace import Event, Trace
from vlmend.codemods.analysis.values import (
    Annotated,
    Arguments,
    Built,
    ClassRef,
    ConfigView,
    Guard,
    Instance,
    Method,
    Parameter,
    SelfObject,
    Site,
    Value,
    bare,
    options,
)

MAX_DEPTH = 3
"""Inner classes followed into one another; the deepest chain in 0.33.0 has two."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """One view, and what is built with it.

    Attributes:
        site: the call that makes it.
        node: that call.
        config: what the view is made of; ``None`` where the whole config stays.
        architectures: the names that the call gives; ``None`` where it gives none.
        narrowed: the configuration that is narrowed.
        attribute: the wrapper's attribute that the built object ends up in.
        built: the class that is called directly; ``None`` where the registry or
            nothing that could be followed is built.
        by_registry: the class is looked up by the view's architecture name.
        annotation: the class that the author wrote beside the attribute, with the
            module it is written in.
        tower: the object is not the language model.
        inner: the inner class whose ``__init__`` makes the view, if it is not the
            wrapper's own.
        handed: the wrapper's call that builds ``inner``.
        rebinds: ``inner`` makes the view for all of itself
            (``vllm_config = vllm_config.with_hf_config(...)``).
        guards: the conditions it stands under.
    """

    site: Site
    node: ast.Call
    config: Value | None
    architectures: Value | None
    narrowed: Value | None
    attribute: str
    built: ClassRef | None
    by_registry: bool
    annotation: tuple[str, str] | None
    tower: bool
    inner: ClassRef | None
    handed: Event | None
    rebinds: bool
    guards: tuple[Guard, ...]


def narrowings(index: ModelIndex, ref: ClassRef) -> tuple[Narrowing, ...]:
    """Return every view that building ``ref`` makes for an inner model."""
    return index.remember(
        ("narrowings", ref), lambda: tuple(_all(index, ref)), on_cycle=()
    )


def _all(index: ModelIndex, ref: ClassRef) -> Iterator[Narrowing]:
    trace = read_init(index, ref)
    if trace is None:
        return
    yield from _Finder(index, ref, trace).found()


@dataclass(frozen=True, slots=True)
class _Place:
    """What the wrapper knows of the object that an inner class is read for."""

    ref: ClassRef
    event: Event
    attribute: str
    tower: bool


class _Finder:
    """Goes through the readings of one wrapper and its inner classes."""

    def __init__(self, index: ModelIndex, ref: ClassRef, trace: Trace) -> None:
        self.index = index
        self.ref = ref
        self.trace = trace
        self._language: str | None = None

    def found(self) -> Iterator[Narrowing]:
        """Yield the views in the order in which they are made."""
        yield from self._in_trace(self.trace, None, 0)

    def _in_trace(
        self, trace: Trace, place: _Place | None, depth: int
    ) -> Iterator[Narrowing]:
        for event in trace.events:
            for value in options(event.value):
                if isinstance(value, ConfigView):
                    yield self._view(trace, event, value, place)
                elif isinstance(value, Built) and not _takes_view(event):
                    yield self._registry_call(trace, event, value, place)
                elif isinstance(value, Instance) and depth < MAX_DEPTH:
                    yield from self._inside(trace, event, value.ref, place, depth)

    def _view(
        self, trace: Trace, event: Event, view: ConfigView, place: _Place | None
    ) -> Narrowing:
        receiver = _receiver(trace, view)
        built: ClassRef | None = None
        by_registry = False
        if receiver is not None:
            for value in options(receiver.value):
                if isinstance(value, Instance):
                    built = value.ref
                elif isinstance(value, Built):
                    by_registry = True
            if _builds_self(receiver) and place is not None:
                built = place.ref
        rebinds = place is not None and _is_rebound(self.index, place.ref, event)
        if rebinds and place is not None:
            built = place.ref
        return self._narrowing(
            event,
            view.hf_config,
            view.architectures,
            view.vllm_config,
            receiver or event,
            trace,
            place,
            built,
            by_registry,
            rebinds,
        )

    def _registry_call(
        self, trace: Trace, event: Event, value: Built, place: _Place | None
    ) -> Narrowing:
        return self._narrowing(
            event,
            value.hf_config,
            value.architectures,
            value.vllm_config,
            event,
            trace,
            place,
            None,
            True,
            False,
        )

    def _narrowing(
        self,
        event: Event,
        config: Value | None,
        architectures: Value | None,
        narrowed: Value | None,
        receiver: Event,
        trace: Trace,
        place: _Place | None,
        built: ClassRef | None,
        by_registry: bool,
        rebinds: bool,
    ) -> Narrowing:
        attribute, annotation = _held_by(trace, receiver)
        tower = False
        if place is not None:
            attribute, tower = place.attribute, place.tower
            if not rebinds:
                annotation = None
        else:
            tower = self._is_tower(receiver, attribute)
        return Narrowing(
            event.site,
            event.node,
            config,
            architectures,
            narrowed,
            attribute,
            built,
            by_registry,
            annotation,
            tower,
            place.ref if place is not None else None,
            place.event if place is not None else None,
            rebinds,
            event.guards,
        )

    def _inside(
        self,
        trace: Trace,
        event: Event,
        ref: ClassRef,
        place: _Place | None,
        depth: int,
    ) -> Iterator[Narrowing]:
        """Read an inner class with what it is given, if it may narrow that."""
        if self.index.entries_by_class.get(ref) or not _mentions_views(self.index, ref):
            return
        found = self.index.find_method(ref, "__init__")
        if found is None:
            return
        owner, function = found
        module = self.index.module(owner.module)
        assert module is not None
        node = self.index.function_node(module, function)
        given = _given(node.args, event.arguments)
        if not any(_is_vllm_config(value) for value in given.values()):
            return
        if place is None:
            attribute, _ = _held_by(trace, event)
            tower = self._is_tower(event, attribute)
            place = _Place(ref, event, attribute, tower)
        else:
            place = _Place(ref, place.event, place.attribute, place.tower)
        inner = Reader(self.index, ref).read(owner, function, given)
        yield from self._in_trace(inner, place, depth + 1)

    def _is_tower(self, event: Event, attribute: str) -> bool:
        names = [context.name for context in event.contexts]
        if TOWER_MARK in names or MARK in names:
            return TOWER_MARK in names
        if self._language is None:
            self._language = language_model(self.index, self.ref, self.trace).attribute
        return bool(self._language) and attribute != self._language


def _takes_view(event: Event) -> bool:
    """Say whether a builder is called with a view, which is found by itself."""
    return any(
        isinstance(option, ConfigView)
        for value in _passed(event.arguments)
        for option in options(bare(value))
    )


def _passed(arguments: Arguments) -> tuple[Value, ...]:
    return (*arguments.positional, *(value for _, value in arguments.keywords))


def _receiver(trace: Trace, view: ConfigView) -> Event | None:
    """Return the first call that builds an object with a view.

    Where the function that makes the view builds something with it, that counts; else
    a function that it is handed to.
    """
    found: Event | None = None
    for event in trace.events:
        takes = any(
            isinstance(option, ConfigView) and option.site == view.site
            for value in _passed(event.arguments)
            for option in options(bare(value))
        )
        if not takes:
            continue
        if _builds_self(event) or any(
            isinstance(value, Instance | Built) for value in options(event.value)
        ):
            if event.site.function == view.site.function:
                return event
            found = found or event
    return found


def _builds_self(event: Event) -> bool:
    """Say whether a call is ``super().__init__(...)``."""
    return any(
        isinstance(function, Method)
        and function.name == "__init__"
        and isinstance(function.bound_to, SelfObject)
        for function in options(event.function)
    )


def _held_by(trace: Trace, event: Event) -> tuple[str, tuple[str, str] | None]:
    """Return the attribute that a call's result is written to, and its annotation."""
    for write in trace.writes:
        for option in options(bare(write.value)):
            found = bare(option)
            if isinstance(found, Instance | Built) and found.site == event.site:
                value = write.value
                if isinstance(value, Annotated):
                    return write.attribute, (value.module, value.annotation)
                return write.attribute, None
    return "", None


def _mentions_views(index: ModelIndex, ref: ClassRef) -> bool:
    """Say whether a class's files make a view at all; most do not."""
    for owner in index.mro(ref).classes:
        module = index.module(owner.module)
        if module is None or "__init__" not in index.class_of(owner).methods:
            continue
        source = index.source_of(index.root_of(owner.module), module.file)
        if b"with_hf_config(" in source or b"init_vllm_registered_model(" in source:
            return True
    return False


def _given(parameters: ast.arguments, arguments: Arguments) -> dict[str, Value]:
    """Give the parameters of an ``__init__`` the values of a call."""
    names = [p.arg for p in (*parameters.posonlyargs, *parameters.args)][1:]
    found = dict(zip(names, arguments.positional, strict=False))
    known = {*names, *(p.arg for p in parameters.kwonlyargs)}
    return found | {k: v for k, v in arguments.keywords if k in known}


def _is_vllm_config(value: Value) -> bool:
    """Say whether a value is the configuration, whole or as a view."""
    found = bare(value)
    if isinstance(found, ConfigView):
        return True
    return isinstance(found, Parameter) and (
        found.name == "vllm_config" or found.annotation.endswith("VllmConfig")
    )


def _is_rebound(index: ModelIndex, ref: ClassRef, event: Event) -> bool:
    """Say whether a view is bound to the name of what it was made from."""
    module = index.module(event.site.module)
    if module is None or not isinstance(event.node.func, ast.Attribute):
        return False
    narrowed = event.node.func.value
    found = index.find_method(ref, "__init__")
    if found is None or not isinstance(narrowed, ast.Name):
        return False
    node = index.function_node(module, found[1])
    return any(
        isinstance(statement, ast.Assign)
        and statement.value.lineno == event.node.lineno
        and isinstance(statement.value, ast.Call)
        and _names(statement.targets) == [narrowed.id]
        for statement in ast.walk(node)
    )


def _names(targets: Sequence[ast.expr]) -> list[str]:
    return [target.id for target in targets if isinstance(target, ast.Name)]
