"""Values that the reading of an ``__init__`` or a ``forward`` works with.

Nothing is ever run: a value says what an expression *stands for*, as far as the source
shows it. ``Unknown`` is an honest answer and spreads; a proof never rests on it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NamedTuple


class ClassRef(NamedTuple):
    """One class statement: module, name, and which one if the module has several."""

    module: str
    name: str
    ordinal: int = 0

    @property
    def key(self) -> str:
        """``module:Class``."""
        return f"{self.module}:{self.name}"


class Site(NamedTuple):
    """Where something is written: a statement or an expression of one function.

    ``function`` is its qualified name in the module (``Class.method``).
    """

    module: str
    file: str
    function: str
    line: int
    end_line: int
    column: int


class Guard(NamedTuple):
    """A condition that must hold (``positive``) or fail for a statement to run."""

    text: str
    positive: bool
    line: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression that the source alone does not explain; ``text`` shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: string, number, ``None``, a truth value."""

    value: str | int | float | complex | bytes | bool | None


@dataclass(frozen=True, slots=True)
class Items:
    """A list or tuple display."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """A dict display, or the keywords gathered by ``**kwargs``.

    ``open`` says that further unknown keys may be in it.
    """

    values: tuple[tuple[str, Value], ...]
    open: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the function that the reading started with.

    ``annotation`` is the dotted name of its annotation in ``module``, or empty.
    """

    name: str
    annotation: str = ""
    module: str = ""


@dataclass(frozen=True, slots=True)
class Annotated:
    """A value whose author wrote its type: ``config: Qwen3VLConfig = ...``."""

    value: Value
    annotation: str
    module: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Member:
    """``value.name``, where the value is not an object of the tree."""

    value: Value
    name: str


@dataclass(frozen=True, slots=True)
class SelfObject:
    """The object whose ``__init__`` or method is read."""


@dataclass(frozen=True, slots=True)
class Super:
    """``super()``: attribute look-up that starts behind ``after`` in the MRO."""

    after: ClassRef


@dataclass(frozen=True, slots=True)
class ClassObject:
    """A class of the tree, itself."""

    ref: ClassRef


@dataclass(frozen=True, slots=True)
class External:
    """A name of code outside the trees, such as ``torch.nn.Linear``."""

    name: str


@dataclass(frozen=True, slots=True)
class ModuleObject:
    """A module of the tree."""

    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A module-level function of the tree."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Method:
    """A function found in a class body, with what it is bound to."""

    owner: ClassRef
    name: str
    bound_to: Value | None


@dataclass(frozen=True, slots=True, eq=False)
class LocalFunction:
    """A function or lambda defined inside the function that is read."""

    name: str
    module: str
    node: ast.AST

    def __reduce__(self) -> str:
        """Refuse to be kept between runs: two readings of one are not equal."""
        raise TypeError("a local function belongs to one reading")


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call passes. ``open`` says that ``*args`` or ``**kwargs`` may add more."""

    positional: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    open: bool = False

    def keyword(self, name: str) -> Value | None:
        """Return the value passed by this keyword, if any."""
        for key, value in self.keywords:
            if key == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Call:
    """The result of a call that builds nothing we track; ``function`` says of what."""

    function: Value
    arguments: Arguments
    site: Site


@dataclass(frozen=True, slots=True)
class Instance:
    """An object built by calling a class of the tree."""

    ref: ClassRef
    arguments: Arguments
    site: Site


@dataclass(frozen=True, slots=True)
class Built:
    """An object built by architecture name, through the registry.

    Made by ``init_vllm_registered_model`` or ``initialize_model``. ``hf_config`` and
    ``architectures`` are what the call was given (``None`` where it was not);
    ``vllm_config`` is the configuration that it narrows or uses as it is.
    """

    vllm_config: Value | None
    hf_config: Value | None
    architectures: Value | None
    site: Site


@dataclass(frozen=True, slots=True)
class ConfigView:
    """The result of ``vllm_config.with_hf_config(hf_config, architectures=...)``."""

    vllm_config: Value
    hf_config: Value | None
    architectures: Value | None
    site: Site


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several values, by a condition that is not evaluated."""

    options: tuple[Value, ...]


Value = (
    Unknown
    | Constant
    | Items
    | Mapping
    | Parameter
    | Annotated
    | Member
    | SelfObject
    | Super
    | ClassObject
    | External
    | ModuleObject
    | Function
    | Method
    | LocalFunction
    | Call
    | Instance
    | Built
    | ConfigView
    | OneOf
)


def one_of(*values: Value) -> Value:
    """Join alternatives, flattened and without repeats."""
    found: list[Value] = []
    for value in values:
        for option in value.options if isinstance(value, OneOf) else (value,):
            if option not in found:
                found.append(option)
    return found[0] if len(found) == 1 else OneOf(tuple(found))


def options(value: Value) -> tuple[Value, ...]:
    """Return the alternatives of a value (itself, if it is no ``OneOf``)."""
    return value.options if isinstance(value, OneOf) else (value,)


def bare(value: Value) -> Value:
    """Take off a type annotation."""
    while isinstance(value, Annotated):
        value = value.value
    return value


def path_of(value: Value) -> tuple[str, ...]:
    """Return the names of a chain such as ``vllm_config.model_config.hf_config``.

    A chain starts at a parameter; annotations on the way are passed over. Anything else
    has no path: ``()``.
    """
    names: list[str] = []
    value = bare(value)
    while isinstance(value, Member):
        names.append(value.name)
        value = bare(value.value)
    if not isinstance(value, Parameter):
        return ()
    names.append(value.name)
    return tuple(reversed(names))


def describe(value: Value) -> str:
    """Say in a few words what a value is, for evidence and messages."""
    match value:
        case Unknown(text):
            return text
        case Constant(constant):
            return repr(constant)
        case Items(values):
            return "[" + ", ".join(describe(v) for v in values) + "]"
        case Mapping():
            return "a dict"
        case Parameter(name):
            return name
        case Annotated(inner):
            return describe(inner)
        case Member(Instance() | Built() as inner, name):
            return f"{name} of {describe(inner)}"
        case Member(inner, name):
            return f"{describe(inner)}.{name}"
        case SelfObject():
            return "self"
        case Super():
            return "super()"
        case ClassObject(ref):
            return f"the class {ref.name}"
        case External(name) | ModuleObject(name) | LocalFunction(name):
            return name
        case Function(_, name):
            return f"{name}()"
        case Method(owner, name):
            return f"{owner.name}.{name}()"
        case Call(function):
            text = describe(function)
            return text if text.endswith("()") else f"{text}(...)"
        case Instance(ref):
            return f"a {ref.name}"
        case Built():
            return "the model built through the registry"
        case ConfigView(_, hf_config):
            config = describe(hf_config) if hf_config is not None else "?"
            return f"with_hf_config({config})"
        case OneOf(alternatives):
            return " or ".join(describe(v) for v in alternatives)
