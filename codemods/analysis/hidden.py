"""Ways for an attribute to be there that the reading of an ``__init__`` does not see.

A class counts as *lacking* an attribute only where none of these applies: a wrong "it
is missing" is worse than an "unproven" that says what stands in the way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.names import INTERFACES_MODULE
from vlmend.codemods.analysis.symbols import FunctionSymbol
from vlmend.codemods.analysis.trace import Event, Trace
from vlmend.codemods.analysis.values import (
    ClassRef,
    External,
    SelfObject,
    Site,
    Unknown,
    bare,
)

PLAIN_PACKAGES = (
    "abc",
    "builtins",
    "enum",
    "torch",
    "transformers",
    "typing",
    "typing_extensions",
)
"""External code that knows nothing of vLLM's own attributes."""

INTERCEPTORS = {
    "__getattr__": "forwards attributes by",
    "__getattribute__": "intercepts attributes by",
    "__setattr__": "intercepts attributes by",
}


def hidden_ways(
    index: ModelIndex, ref: ClassRef, attribute: str, trace: Trace | None
) -> Iterator[str]:
    """Say, for a person, how ``ref`` might have ``attribute`` after all.

    Args:
        index: the joined trees.
        ref: a class in which no definition was found.
        attribute: what is looked for.
        trace: the reading of the class's ``__init__`` chain.
    """
    order = index.mro(ref)
    yield from order.doubts
    for name in order.external:
        if not _is_plain(index, name, attribute):
            yield f"the base {name} lies outside what is read"
    for owner in order.classes:
        if owner.module != INTERFACES_MODULE:
            yield from _in_class(index, owner, attribute)
    if trace is not None:
        yield from trace.gaps
        yield from _in_trace(index, trace, attribute)


def _in_class(index: ModelIndex, owner: ClassRef, attribute: str) -> Iterator[str]:
    found = index.class_of(owner)
    module = index.module(owner.module)
    assert module is not None
    for name, what in INTERCEPTORS.items():
        if name in found.methods or name in found.attributes:
            yield f"{owner.name} {what} {name}"
    lines = index.lines(module)
    unusual = _unusual(attribute)
    for number, text in _mentions(lines, found.line, found.end_line, attribute):
        if unusual.search(text):
            yield f"{owner.name} mentions {attribute} in line {number} of {module.file}"
    patched = re.compile(
        rf"\b{owner.name}\.{attribute}\b\s*=(?!=)"
        rf"|\bsetattr\(\s*{owner.name}\s*,\s*['\"]{attribute}['\"]"
    )
    for number, text in _mentions(lines, 1, len(lines), attribute):
        if patched.search(text):
            yield f"{module.file}:{number} sets {attribute} of the class {owner.name}"
    for name, _ in found.decorators:
        for symbol in index.resolve(owner.module, name) if name else ():
            if not isinstance(symbol, FunctionSymbol):
                continue
            home = index.module(symbol.module)
            function = home.functions.get(symbol.name) if home else None
            if home is None or function is None:
                continue
            span = (function.line, function.end_line)
            if any(_mentions(index.lines(home), *span, attribute)):
                yield f"the decorator {name} of {owner.name} speaks of {attribute}"


def _mentions(
    lines: Sequence[str], first: int, last: int, attribute: str
) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of code that hold the attribute's name."""
    for number in range(first, last + 1):
        text = lines[number - 1]
        if attribute in text:
            code = text.split("#", 1)[0]
            if attribute in code:
                yield number, code


def _unusual(attribute: str) -> re.Pattern[str]:
    """Match what is no plain ``self.attribute``: strings, keywords, other objects."""
    return re.compile(
        rf"['\"]{attribute}['\"]"
        rf"|(?<![.\w]){attribute}\s*=(?!=)"
        rf"|(?<!\bself)\.{attribute}\s*=(?!=)"
    )


def _in_trace(index: ModelIndex, trace: Trace, attribute: str) -> Iterator[str]:
    for step in trace.steps:
        method = index.class_of(step.owner).methods.get(step.function)
        if step.function == "__init__" and method is not None and method.decorators:
            names = ", ".join(f"@{name or '...'}" for name in method.decorators)
            yield f"{step.owner.name}.__init__ is decorated with {names}"
    for event in trace.events:
        if not isinstance(event.function, External) or not _gets_self(event):
            continue
        name = event.function.name
        if name == "builtins.setattr":
            if attribute not in _looped_names(event, attribute):
                continue
            yield f"{_place(event.site)} sets an attribute whose name is computed"
        elif not _is_plain(index, name, attribute):
            yield f"{name} gets self at {_place(event.site)} and is not followed"


def _looped_names(event: Event, attribute: str) -> tuple[str, ...]:
    """Return the names that a ``setattr`` may be given.

    Those that a loop goes through where they are written out; else any, the attribute
    among them.
    """
    match event.arguments.positional[1:2]:
        case (Unknown(text),):
            try:
                names = ast.literal_eval(text)
            except (ValueError, SyntaxError):
                return (attribute,)
            if isinstance(names, tuple | list) and all(
                isinstance(name, str) for name in names
            ):
                return tuple(names)
    return (attribute,)


def _gets_self(event: Event) -> bool:
    given = event.arguments
    passed = (*given.positional, *(value for _, value in given.keywords))
    return any(isinstance(bare(value), SelfObject) for value in passed)


def _is_plain(index: ModelIndex, name: str, attribute: str) -> bool:
    """Say whether code outside what is read cannot know of the attribute."""
    if name.partition(".")[0] in PLAIN_PACKAGES:
        return True
    return index.home_mentions(name, attribute) is False


def _place(site: Site) -> str:
    return f"{site.file}:{site.line}"
