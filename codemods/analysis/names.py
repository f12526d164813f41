"""Follows names through imports, and classes through their bases."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.facts import TYPE_CHECKING, Binding, Class, Module
from vlmend.codemods.analysis.sources import Sources
from vlmend.codemods.analysis.symbols import (
    ClassSymbol,
    ExternalSymbol,
    FunctionSymbol,
    MissingSymbol,
    ModuleSymbol,
    Mro,
    Symbol,
    VariableSymbol,
)
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Source

INTERFACES_MODULE = "vllm.model_executor.models.interfaces"
OPEN_PACKAGES = ("vllm.model_executor.models.", "vllm.models.")


class Names(Sources):
    """Knows what names stand for, and how classes derive from one another."""

    def resolve(self, module: str, name: str) -> tuple[Symbol, ...]:
        """Say what a dotted name stands for in a module: one symbol per possibility.

        More than one is returned where the name is bound under conditions that are not
        evaluated (the platform, a failed import). Names that only type checkers see are
        left out, unless nothing else binds the name.
        """
        return self.remember(
            ("resolve", module, name),
            lambda: self._resolve(module, name),
            on_cycle=(MissingSymbol(name, "is defined in terms of itself"),),
        )

    def _resolve(self, module_name: str, name: str) -> tuple[Symbol, ...]:
        head, _, rest = name.partition(".")
        found: list[Symbol] = []
        for symbol in self._resolve_head(module_name, head):
            found += self._members(symbol, rest) if rest else (symbol,)
        return tuple(dict.fromkeys(found))

    def _resolve_head(self, module_name: str, name: str) -> Iterator[Symbol]:
        module = self.module(module_name)
        if module is None:
            yield ExternalSymbol(f"{module_name}.{name}")
            return
        bindings = module.bindings.get(name, ())
        at_run_time = tuple(b for b in bindings if b.guard != TYPE_CHECKING)
        for binding in at_run_time or bindings:
            yield from self._bound(module, name, binding)
        if bindings:
            return
        for star in module.stars:
            for symbol in self._resolve_head(star, name):
                if not isinstance(symbol, MissingSymbol):
                    yield symbol
                    return
        lazy = tuple(self._lazily(module, name))
        if lazy:
            yield from lazy
        elif module.is_package and self._find(f"{module_name}.{name}"):
            yield ModuleSymbol(f"{module_name}.{name}")
        elif name in _BUILTINS:
            yield ExternalSymbol(f"builtins.{name}")
        else:
            yield MissingSymbol(name, f"{module_name} does not define it")

    def _lazily(self, module: Module, name: str) -> Iterator[Symbol]:
        """Follow a module-level ``__getattr__`` (PEP 562) that imports on demand.

        Each module that it imports may be the one that has the name (since 0.26 some
        packages choose by platform this way).
        """
        function = module.functions.get("__getattr__")
        if function is None:
            return
        node = self.function_node(module, function)
        for statement in ast.walk(node):
            if not isinstance(statement, ast.ImportFrom):
                continue
            package = facts.absolute_module(
                module.name, module.is_package, statement.level, statement.module
            )
            for alias in statement.names:
                place = f"{package}.{alias.name}"
                found = self.module(place) if self._find(place) else None
                if alias.name == name:
                    yield from self.imported(package, name)
                elif found is not None and name in found.bindings:
                    yield from self.resolve(place, name)

    def _bound(self, module: Module, name: str, binding: Binding) -> Iterator[Symbol]:
        if binding.kind == "class":
            for ordinal, found in enumerate(module.classes[name]):
                if found.line == binding.line:
                    ref = ClassRef(module.name, name, ordinal)
                    yield ClassSymbol(ref, binding.guard)
        elif binding.kind == "function":
            yield FunctionSymbol(module.name, name)
        elif binding.kind == "assign":
            if binding.target and binding.target != name:
                yield from self.resolve(module.name, binding.target)
            else:
                yield VariableSymbol(module.name, name)
        elif not binding.attribute:
            is_open = self.is_open(binding.module)
            yield (ModuleSymbol if is_open else ExternalSymbol)(binding.module)
        elif (binding.module, binding.attribute) != (module.name, name):
            yield from self.imported(binding.module, binding.attribute)

    def is_open(self, module: str) -> bool:
        """Say whether names are followed into a module.

        They are followed into the packages that hold models, and into all of a plugin;
        a name from anywhere else (layers, distributed, torch) stands for itself.
        """
        if module.startswith(OPEN_PACKAGES) or f"{module}." in OPEN_PACKAGES:
            return True
        return len(self.roots) > 1 and not module.startswith("vllm.")

    def imported(self, module: str, attribute: str) -> tuple[Symbol, ...]:
        """Say what ``from module import attribute`` binds."""
        if not self.is_open(module):
            return (ExternalSymbol(f"{module}.{attribute}"),)
        if self.module(module) is not None:
            return self.resolve(module, attribute)
        if self._find(f"{module}.{attribute}"):  # a folder without __init__.py
            return (ModuleSymbol(f"{module}.{attribute}"),)
        if self._belongs(module):
            reason = f"the tree has no readable {module}"
            return (MissingSymbol(attribute, reason),)
        return (ExternalSymbol(f"{module}.{attribute}"),)

    def _belongs(self, module: str) -> bool:
        """Say whether a module's top package is part of the trees."""
        top = module.partition(".")[0]
        return any(
            root.tree.is_dir(f"{prefix}{top}")
            for root in self.roots
            for prefix in root.prefixes
        )

    def _members(self, symbol: Symbol, rest: str) -> Iterable[Symbol]:
        match symbol:
            case ModuleSymbol(name):
                return self.resolve(name, rest)
            case ExternalSymbol(name):
                return (ExternalSymbol(f"{name}.{rest}"),)
            case MissingSymbol(name, reason):
                return (MissingSymbol(f"{name}.{rest}", reason),)
        return (MissingSymbol(rest, f"{rest} is looked up on an object"),)

    def resolve_class(self, module: str, name: str) -> ClassRef | None:
        """Return the class that a name stands for, if it is certain to be one class."""
        found = self.resolve(module, name)
        if len(found) == 1 and isinstance(found[0], ClassSymbol):
            return found[0].ref
        return None

    def resolve_for_types(self, module_name: str, name: str) -> tuple[Symbol, ...]:
        """Say what a name stands for in an annotation.

        Unlike :meth:`resolve`, names that only type checkers see come first.
        """
        module = self.module(module_name)
        head, _, rest = name.partition(".")
        bindings = module.bindings.get(head, ()) if module is not None else ()
        for binding in bindings:
            if module is not None and binding.guard == TYPE_CHECKING:
                found = tuple(self._bound(module, head, binding))
                if rest:
                    return tuple(s for f in found for s in self._members(f, rest))
                return found
        return self.resolve(module_name, name)

    def class_of(self, ref: ClassRef) -> Class:
        """Return the facts of a class that the index named.

        Raises:
            KeyError: the class is not there.
        """
        module = self.module(ref.module)
        if module is None:
            raise KeyError(ref.key)
        return module.classes[ref.name][ref.ordinal]

    def file_of(self, ref: ClassRef) -> str:
        """Return the path of the file that a class stands in."""
        module = self.module(ref.module)
        if module is None:
            raise KeyError(ref.key)
        return module.file

    def source_kind(self, module: str) -> Source:
        """Say which body of code a module belongs to."""
        return self.root_of(module).source

    def mro(self, ref: ClassRef) -> Mro:
        """Return the method resolution order of a class."""
        return self.remember(
            ("mro", ref),
            lambda: self._mro(ref),
            on_cycle=Mro((ref,), (), ("the class is its own base",)),
        )

    def _mro(self, ref: ClassRef) -> Mro:
        external: list[str] = []
        doubts: list[str] = []
        parents: list[ClassRef] = []
        for base in self.class_of(ref).bases:
            symbols = self.resolve(ref.module, base)
            if base.startswith("?"):
                doubts.append(f"the base {base[1:]} of {ref.name} is no plain name")
                continue
            classes = [s for s in symbols if isinstance(s, ClassSymbol)]
            for symbol in symbols:
                if isinstance(symbol, ExternalSymbol):
                    external.append(symbol.name)
                elif not isinstance(symbol, ClassSymbol):
                    why = getattr(symbol, "reason", "it is not a class statement")
                    doubts.append(f"the base {base} of {ref.name} is unknown: {why}")
            if len(symbols) > 1:
                doubts.append(
                    f"the base {base} of {ref.name} depends on a condition that is "
                    "only decided at run time"
                )
            if classes:
                # The unconditional or last branch stands for the default platform.
                chosen = classes[-1]
                if chosen.guard == TYPE_CHECKING:
                    doubts.append(
                        f"the base {base} of {ref.name} exists for type checkers only"
                    )
                parents.append(chosen.ref)
        sequences = [list(self.mro(parent).classes) for parent in parents]
        for parent in parents:
            inherited = self.mro(parent)
            external += inherited.external
            doubts += inherited.doubts
        merged = _c3([*sequences, list(parents)])
        if merged is None:
            doubts.append(f"the bases of {ref.name} have no consistent order")
            merged = [c for sequence in sequences for c in sequence]
        order = dict.fromkeys([ref, *merged])
        return Mro(
            tuple(order), tuple(dict.fromkeys(external)), tuple(dict.fromkeys(doubts))
        )

    def find_method(
        self, ref: ClassRef, name: str, *, after: ClassRef | None = None
    ) -> tuple[ClassRef, facts.Function] | None:
        """Find a method through the MRO, from the class itself or behind ``after``."""
        for owner in self.behind(ref, after):
            facts_of_owner = self.class_of(owner)
            found = facts_of_owner.methods.get(name)
            if found is not None:
                return owner, found
            attribute = facts_of_owner.attributes.get(name)
            if attribute is not None and not attribute.annotation_only:
                return None  # ``__init__ = other``: not a method that can be read
        return None

    def behind(self, ref: ClassRef, after: ClassRef | None) -> tuple[ClassRef, ...]:
        """Return the MRO of ``ref``, from its start or behind the class ``after``."""
        order = self.mro(ref).classes
        if after is None:
            return order
        return order[order.index(after) + 1 :] if after in order else ()

    def interface(self, name: str) -> ClassRef | None:
        """Return one of the Protocols of ``interfaces.py``, such as ``SupportsPP``."""
        return self.resolve_class(INTERFACES_MODULE, name)

    def has_base(self, ref: ClassRef, interface: ClassRef | None) -> bool:
        """Say whether ``interface`` stands in the class's MRO."""
        return interface is not None and interface in self.mro(ref).classes


_BUILTINS = frozenset(dir(builtins))


def _c3(sequences: list[list[ClassRef]]) -> list[ClassRef] | None:
    """Merge base orders as Python does; ``None`` where Python would refuse."""
    merged: list[ClassRef] = []
    sequences = [s for s in sequences if s]
    while sequences:
        for sequence in sequences:
            head = sequence[0]
            if not any(head in other[1:] for other in sequences):
                break
        else:
            return None
        merged.append(head)
        sequences = [rest for s in sequences if (rest := s[1:] if s[0] == head else s)]
    return merged
