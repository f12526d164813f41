"""Joins the facts of single files: names through imports, classes, MRO, registry.

Everything is answered on demand and remembered, together with what it was read from
(:mod:`.memory`), so that a change of one file tells exactly which classes have to be
judged again. Whatever the index hands out without asking its memory it must ``touch``.
"""

from __future__ import annotations

import ast
import builtins
import copy
import pickle
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from vlmend.codemods.analysis import facts, registry
from vlmend.codemods.analysis.facts import ALWAYS, TYPE_CHECKING, Binding, Class, Module
from vlmend.codemods.analysis.memory import (
    FactsCache,
    Memory,
    Need,
    TreeQuestion,
    WatchedTree,
)
from vlmend.codemods.analysis.recording import answer_digest
from vlmend.codemods.analysis.registry import Entry, Registry, RegistryError
from vlmend.codemods.analysis.text_configs import TreeConfigs, read_configs
from vlmend.codemods.analysis.transformers_facts import TransformersFacts
from vlmend.codemods.analysis.tree import OverlayTree, SourceTree, TreeError
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import ModelInfo, ScanError, Source

INTERFACES_MODULE = "vllm.model_executor.models.interfaces"
MODEL_FOLDERS = ("vllm/model_executor/models", "vllm/models")
"""Where vLLM keeps models; the second since 0.22."""

OPEN_PACKAGES = ("vllm.model_executor.models.", "vllm.models.")

Answer = TypeVar("Answer")


class Root(NamedTuple):
    """One body of code: the target, or the vLLM tree that a plugin is judged against.

    ``prefixes`` are the folders that hold its packages, such as ``("", "src/")``.
    """

    source: Source
    tree: SourceTree
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClassSymbol:
    """A name that stands for a class of the trees."""

    ref: ClassRef
    guard: str = ALWAYS


@dataclass(frozen=True, slots=True)
class FunctionSymbol:
    """A name that stands for a module-level function of the trees."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class VariableSymbol:
    """A module-level variable whose value is no plain alias."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class ModuleSymbol:
    """A module of the trees."""

    name: str


@dataclass(frozen=True, slots=True)
class ExternalSymbol:
    """A name of code outside the trees."""

    name: str


@dataclass(frozen=True, slots=True)
class MissingSymbol:
    """A name that should be in the trees and is not; ``reason`` is for a person."""

    name: str
    reason: str


Symbol = (
    ClassSymbol
    | FunctionSymbol
    | VariableSymbol
    | ModuleSymbol
    | ExternalSymbol
    | MissingSymbol
)


class Mro(NamedTuple):
    """A class's method resolution order.

    ``classes`` are those of the trees, in order; ``external`` the dotted names of bases
    outside them; ``doubts`` why the order may be another at run time.
    """

    classes: tuple[ClassRef, ...]
    external: tuple[str, ...]
    doubts: tuple[str, ...]


class ModelIndex:
    """What the trees say, joined.

    Args:
        tree: the target.
        base: the vLLM tree beside a plugin; ``None`` where the target is vLLM itself.
        cache: keeps facts between runs.
        on_progress: called with (files read, files to read) while files are read.
        transformers: one release to judge by instead of those that the tree names.
    """

    def __init__(
        self,
        tree: SourceTree,
        *,
        base: SourceTree | None = None,
        cache: FactsCache | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        transformers: TransformersFacts | None = None,
    ) -> None:
        self._transformers = transformers
        self.roots: tuple[Root, ...]
        self._trees: tuple[SourceTree, ...]
        self._set_trees([tree] if base is None else [tree, base])
        self.errors: dict[str, ScanError] = {}
        self._memory = Memory(self, cache)
        self._cache = cache
        self._on_progress = on_progress
        self._modules: dict[str, Module | None] = {}
        self._sources: dict[str, bytes] = {}
        self._lines: dict[str, Sequence[str]] = {}
        self._origins: dict[str, Root] = {}
        self._places: dict[str, tuple[int, str, bool] | None] = {}
        self._base_names: dict[str, set[bytes]] = {}

    # -- dependencies -------------------------------------------------------------

    def reading(self) -> AbstractContextManager[set[Need]]:
        """Collect what the answers inside the block are read from."""
        return self._memory.reading()

    def remember(
        self,
        key: Hashable,
        compute: Callable[[], Answer],
        *,
        on_cycle: Answer,
        home: str | None = None,
    ) -> Answer:
        """Return the answer to ``key``, computed once.

        Args:
            key: names the question, with everything the answer depends on.
            compute: finds the answer.
            on_cycle: the answer where ``compute`` ends up asking itself.
            home: the module that the question is about. Where it is given, the answer
                is kept between runs, for as long as all that it was read from stays as
                it is; the key needs a ``repr`` that says everything, and the answer
                must be plain data. Meant for questions that are dear.
        """
        return self._memory.remember(key, compute, on_cycle, home)

    def ask(self, function: Callable[..., Answer], *arguments: object) -> Answer:
        """Return ``function(index, *arguments)``, a wide question with a small answer.

        The asker depends on the answer, not on all that was read to find it. The
        function stands at the top of a module; arguments and answer are plain data.
        """
        return self._memory.ask(function, *arguments)

    def digest_of(self, need: str | TreeQuestion) -> bytes:
        """Return a digest of a module, or of a tree's answer, as they are now."""
        if isinstance(need, TreeQuestion):
            tree = self._trees[need.root]
            return answer_digest(tree, need.method, need.path)
        place = self._locate(need)
        if place is None:
            return b"absent"
        root, file, _ = place
        digest = blake2b(f"{root.source}\0{file}\0".encode(), digest_size=16)
        try:
            digest.update(self._source(root, file))
        except TreeError as error:
            digest.update(b"\0" + error.message.encode())
        return digest.digest()

    def basis(self) -> dict[str, str]:
        """Return, by ``module:Class``, a digest of what its judgement was read from.

        Only what is kept between runs counts; see :meth:`remember`.
        """
        digests: dict[str, list[bytes]] = {}
        for key in self._memory.kept:
            found = self._memory.rests_on(key)
            if found is None:
                continue
            for ref in _classes_of(key):
                digests.setdefault(ref.key, []).append(found)
        return {
            key: blake2b(b"".join(sorted(found)), digest_size=16).hexdigest()
            for key, found in sorted(digests.items())
        }

    def broken(self, names: Iterable[Need]) -> tuple[str, ...]:
        """Return those modules that are there and could not be read."""
        return tuple(
            name
            for name in names
            if isinstance(name, str)
            and self._modules.get(name, self) is None
            and self._locate(name) is not None
        )

    def overlaid(self, changes: Mapping[str, bytes | None]) -> ModelIndex:
        """Return an index of the target with files replaced, added or (None) gone.

        What was read from other files is taken over; only answers that these files had
        a part in are found again.
        """
        root = self.roots[0]
        fresh = copy.copy(self)
        fresh._set_trees((OverlayTree(self._trees[0], changes), *self._trees[1:]))
        fresh._memory = Memory(fresh, parent=self._memory)
        for name in _COMPUTED:
            fresh.__dict__.pop(name, None)
        moved = any(
            (content is None) == self._trees[0].exists(file)
            for file, content in changes.items()
        )
        if not moved and "_own_files" in self.__dict__:
            fresh.__dict__["_own_files"] = self._own_files
        changed = {_module_name(file, root.prefixes) for file in changes}
        keys = {f"{root.source}:{file}" for file in changes}
        fresh.errors = {k: v for k, v in self.errors.items() if k not in changes}
        fresh._places = {k: v for k, v in self._places.items() if k not in changed}
        fresh._modules = {k: v for k, v in self._modules.items() if k not in changed}
        fresh._sources = {k: v for k, v in self._sources.items() if k not in keys}
        fresh._base_names = {
            k: v for k, v in self._base_names.items() if k not in changed
        }
        fresh._lines = {k: v for k, v in self._lines.items() if k not in changed}
        fresh._origins = {
            k: fresh.roots[0] if v is root else v
            for k, v in self._origins.items()
            if k not in changed
        }
        fresh._on_progress = None
        return fresh

    def _set_trees(self, trees: Sequence[SourceTree]) -> None:
        """Let every question to a tree, past the index, be heard."""
        self._trees = tuple(trees)
        own, *others = trees
        heard = self._heard
        self.roots = (
            Root(
                Source.TREE,
                WatchedTree(own, 0, heard),
                ("", "src/") if others else ("",),
            ),
            *(Root(Source.BASE, WatchedTree(one, 1, heard), ("",)) for one in others),
        )

    def _heard(self, question: TreeQuestion) -> None:
        self._memory.touch(question)

    # -- files --------------------------------------------------------------------

    def _find(self, name: str) -> tuple[Root, str, bool] | None:
        """Return the root, path and package flag of a module."""
        self._memory.touch(name)
        return self._locate(name)

    def _locate(self, name: str) -> tuple[Root, str, bool] | None:
        if name not in self._places:
            self._places[name] = self._look_for(name)
        found = self._places[name]
        if found is None:
            return None
        position, file, is_package = found
        return self.roots[position], file, is_package

    def _look_for(self, name: str) -> tuple[int, str, bool] | None:
        path = name.replace(".", "/")
        for position, root in enumerate(self.roots):
            for prefix in root.prefixes:
                for file, is_package in (
                    (f"{prefix}{path}.py", False),
                    (f"{prefix}{path}/__init__.py", True),
                ):
                    if self._exists(position, file):
                        return position, file, is_package
        return None

    def _exists(self, position: int, file: str) -> bool:
        """Say whether a root has a file; the target's model folders are known."""
        if position == 0 and len(self.roots) == 1 and file.startswith(_MODEL_PATHS):
            return file in self._own_files
        return self._trees[position].exists(file)

    @cached_property
    def _own_files(self) -> dict[str, None]:
        """The files that may hold model classes of the target, in order."""
        tree = self._trees[0]
        folders = [""] if len(self.roots) > 1 else MODEL_FOLDERS
        return {
            file: None
            for folder in folders
            if tree.is_dir(folder)
            for file in tree.python_files(folder)
        }

    def module(self, name: str) -> Module | None:
        """Return a module's facts, or ``None`` if the trees have no such module.

        A file that cannot be read or parsed counts as absent and is kept in ``errors``.
        """
        self._memory.touch(name)
        if name not in self._modules:
            self._modules[name] = None
            place = self._locate(name)
            if place is not None:
                root, file, is_package = place
                self._modules[name] = self._read(root, name, file, is_package)
        return self._modules[name]

    def _read(
        self, root: Root, name: str, file: str, is_package: bool
    ) -> Module | None:
        try:
            source = self._source(root, file)
        except TreeError as error:
            self.errors[file] = ScanError(file, error.message)
            return None
        key = self._key(source, name, file)
        found = self._cached(key)
        if found is None:
            try:
                found = facts.read_module(source, name, file, is_package=is_package)
            except SyntaxError as error:
                where = f" (line {error.lineno})" if error.lineno else ""
                message = f"does not parse{where}: {error.msg}"
                self.errors[file] = ScanError(file, message)
                return None
            except (ValueError, RecursionError, MemoryError) as error:
                # Null bytes, undecodable text, nesting that Python's parser gives up
                # on.
                why = str(error) or "it is nested too deeply"
                self.errors[file] = ScanError(file, f"does not parse: {why}")
                return None
            if self._cache is not None:
                self._cache.put(key, pickle.dumps(found, pickle.HIGHEST_PROTOCOL))
        self._origins[name] = root
        return found

    @staticmethod
    def _key(source: bytes, name: str, file: str) -> bytes:
        digest = blake2b(source, digest_size=16)
        digest.update(f"\0{facts.FACTS_VERSION}\0{name}\0{file}".encode())
        return digest.digest()

    def _cached(self, key: bytes) -> Module | None:
        stored = self._cache.get(key) if self._cache is not None else None
        if stored is None:
            return None
        try:
            # The cache is the user's own folder, written by this very code.
            found = pickle.loads(stored)  # noqa: S301
        except Exception:  # noqa: BLE001 - whatever a damaged entry raises, read again
            return None
        return found if isinstance(found, Module) else None

    def source_of(self, root: Root, file: str) -> bytes:
        """Return a file's bytes, read once per scan.

        Raises:
            TreeError: see :meth:`SourceTree.read`.
        """
        position = 0 if root.source is Source.TREE else 1
        self._memory.touch(TreeQuestion("read", position, file))
        return self._source(root, file)

    def _source(self, root: Root, file: str) -> bytes:
        key = f"{root.source}:{file}"
        if key not in self._sources:
            tree = self._trees[0 if root.source is Source.TREE else 1]
            self._sources[key] = tree.read(file)
        return self._sources[key]

    def root_of(self, module: str) -> Root:
        """Return the body of code that a module was read from."""
        self._memory.touch(module)
        return self._origins[module]

    def lines(self, module: Module) -> Sequence[str]:
        """Return a module's source lines."""
        self._memory.touch(module.name)
        if module.name not in self._lines:
            source = self._source(self.root_of(module.name), module.file)
            self._lines[module.name] = facts.source_lines(source)
        return self._lines[module.name]

    def function_node(
        self, module: Module, function: facts.Function
    ) -> facts.FunctionNode:
        """Return a function's syntax tree, with the positions of its file."""
        return self.remember(
            ("function", module.name, function.line, function.name),
            lambda: facts.parse_function(self.lines(module), function),
            on_cycle=None,
        )  # type: ignore[return-value]

    # -- names --------------------------------------------------------------------

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

    # -- classes ------------------------------------------------------------------

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

    # -- the registry and the model classes ------------------------------------------

    @property
    def registry(self) -> Registry:
        """The architecture tables of vLLM, with a plugin's own registrations."""
        return self.remember("registry", self._registry, on_cycle=Registry([]))

    def _registry(self) -> Registry:
        found = Registry([])
        place = self._find(registry.REGISTRY_MODULE)
        if place is not None:
            root, file, _ = place
            try:
                found = registry.read_registry(self._source(root, file), file)
            except (RegistryError, SyntaxError, ValueError) as error:
                self.errors[file] = ScanError(file, str(error))
            except TreeError as error:
                self.errors[file] = ScanError(file, error.message)
        return found.with_entries(self._registrations())

    def _registrations(self) -> Iterator[Entry]:
        if len(self.roots) == 1:
            return
        for name in self.own_modules:
            module = self.module(name)
            if module is None:
                continue
            for call in module.registrations:
                place, _, class_name = call.target.partition(":")
                if not class_name:
                    ref = self.resolve_class(name, call.target)
                    if ref is None:
                        continue
                    place, class_name = ref.module, ref.name
                yield Entry(
                    call.architecture,
                    place,
                    class_name,
                    "register_model",
                    module.file,
                    call.line,
                )

    def registered_classes(self, entry: Entry) -> tuple[ClassRef, ...]:
        """Return the classes that an entry may load, one per platform variant."""
        return tuple(
            symbol.ref
            for symbol in self.resolve(entry.module, entry.class_name)
            if isinstance(symbol, ClassSymbol)
        )

    @property
    def configs(self) -> TreeConfigs:
        """Config classes, under the Transformers releases that the tree allows."""
        configs, needs = self._configs
        self._memory.touch_all(needs)
        return configs

    @cached_property
    def _configs(self) -> tuple[TreeConfigs, set[Need]]:
        """The configs, and what was read to set them up; they tell what they go on to.

        See :class:`ConfigSources`.
        """
        own, *others = (
            WatchedTree(
                tree, position, self._heard, partial(self._source, self.roots[position])
            )
            for position, tree in enumerate(self._trees)
        )
        with self._memory.reading() as needs:
            configs = read_configs(
                own, others[0] if others else None, self._transformers
            )
        return configs, needs

    @property
    def entries_by_class(self) -> dict[ClassRef, tuple[Entry, ...]]:
        """Registry entries by the class they load, followed through imports."""
        return self.ask(_entries)

    def find_entries(self) -> dict[ClassRef, tuple[Entry, ...]]:
        """Follow every registry entry; :attr:`entries_by_class` remembers it."""
        found: dict[ClassRef, list[Entry]] = {}
        for entries in self.registry.tables.values():
            for entry in entries:
                for ref in self.registered_classes(entry):
                    found.setdefault(ref, []).append(entry)
        return {ref: tuple(entries) for ref, entries in found.items()}

    def architectures(self, ref: ClassRef) -> tuple[str, ...]:
        """Return a class's architecture names; the one equal to its own name first."""
        names = [entry.architecture for entry in self.entries_by_class.get(ref, ())]
        return tuple(sorted(dict.fromkeys(names), key=lambda n: (n != ref.name, n)))

    @property
    def own_modules(self) -> tuple[str, ...]:
        """The dotted modules of the target that may hold model classes."""
        folders = [""] if len(self.roots) > 1 else MODEL_FOLDERS
        for folder in folders:
            self._memory.touch(TreeQuestion("is_dir", 0, folder))
            self._memory.touch(TreeQuestion("python_files", 0, folder))
        return self._own_modules

    @cached_property
    def _own_modules(self) -> tuple[str, ...]:
        prefixes = self.roots[0].prefixes
        names = (_module_name(file, prefixes) for file in self._own_files)
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def model_classes(self) -> tuple[ClassRef, ...]:
        """Every pipeline-parallel, multimodal or registered class of the target.

        Files are opened only where they mention one of the Protocols, hold a registered
        class, or derive from a class found so far.
        """
        return self.ask(_models)

    def find_model_classes(self) -> tuple[ClassRef, ...]:
        """Look through the target's files; :attr:`model_classes` remembers it."""
        wanted, others = self._candidates()
        found: dict[ClassRef, None] = {}
        names: set[bytes] = set()
        queue = wanted
        done = 0
        while queue:
            total = done + len(queue)
            for module_name in queue:
                done += 1
                if self._on_progress is not None:
                    self._on_progress(done, total)
                for ref in self._classes_in(module_name):
                    found[ref] = None
                    names.add(ref.name.encode())
            queue = [name for name, bases in others.items() if bases & names]
            for name in queue:
                del others[name]
        return tuple(found)

    def _candidates(self) -> tuple[list[str], dict[str, set[bytes]]]:
        """Split the modules into those to read and the bases that the rest names."""
        root = self.roots[0]
        registered = {
            e.module for table in self.registry.tables.values() for e in table
        }
        wanted: list[str] = []
        others: dict[str, set[bytes]] = {}
        for name in self.own_modules:
            place = self._find(name)
            if place is None:
                continue
            try:
                source = self._source(root, place[1])
            except TreeError as error:
                self.errors[place[1]] = ScanError(place[1], error.message)
                continue
            if name in registered or b"Supports" in source or len(self.roots) > 1:
                wanted.append(name)
            elif b"class " in source:
                if name not in self._base_names:
                    self._base_names[name] = {
                        base
                        for header in _CLASS_HEADER.findall(source)
                        for base in _NAME.findall(header)
                    }
                others[name] = self._base_names[name]
        return wanted, others

    def _classes_in(self, module_name: str) -> Iterator[ClassRef]:
        module = self.module(module_name)
        if module is None:
            return
        for name, statements in module.classes.items():
            # A later statement of the same name replaces those before it.
            always = [i for i, s in enumerate(statements) if s.guard == ALWAYS]
            for ordinal in range(always[-1] if always else 0, len(statements)):
                ref = ClassRef(module_name, name, ordinal)
                if self.is_model(ref):
                    yield ref

    def is_model(self, ref: ClassRef) -> bool:
        """Say whether a class is pipeline parallel, multimodal or registered."""
        if ref.module == INTERFACES_MODULE:
            return False
        return (
            self.is_pipeline_parallel(ref)
            or self.is_multimodal(ref)
            or ref in self.entries_by_class
        )

    def is_pipeline_parallel(self, ref: ClassRef) -> bool:
        """Say whether ``SupportsPP`` stands in the class's MRO."""
        return self.has_base(ref, self.interface("SupportsPP"))

    def is_multimodal(self, ref: ClassRef) -> bool:
        """Say whether ``SupportsMultiModal`` stands in the class's MRO."""
        return self.has_base(ref, self.interface("SupportsMultiModal"))

    def info(self, ref: ClassRef) -> ModelInfo:
        """Return what the coverage table lists about a class."""
        return ModelInfo(
            module=ref.module,
            class_name=ref.name,
            file=self.file_of(ref),
            line=self.class_of(ref).line,
            source=self.source_kind(ref.module),
            architectures=self.architectures(ref),
            multimodal=self.is_multimodal(ref),
            pipeline_parallel=self.is_pipeline_parallel(ref),
        )

    def is_called(self, ref: ClassRef) -> bool:
        """Say whether a class's name is called or passed on in the target's files.

        A textual sign, and a generous one: it only decides whether a class without a
        registration counts as a base class that nobody builds.
        """
        return self.ask(_called, ref.name)

    def find_calls(self) -> frozenset[str]:
        """Look for calls in the target's files; :meth:`is_called` remembers them."""
        return frozenset().union(*map(self._calls_in, self.own_modules))

    def _calls_in(self, name: str) -> frozenset[str]:
        def compute() -> frozenset[str]:
            place = self._find(name)
            try:
                return _called_names(self._source(*place[:2])) if place else frozenset()
            except TreeError:
                return frozenset()

        nothing: frozenset[str] = frozenset()
        return self.remember(("calls in", name), compute, on_cycle=nothing, home=name)

    def mentions(self, module: str, word: bytes) -> bool:
        """Say whether a module's text holds a word; nothing is parsed for it."""
        place = self._find(module)
        if place is None:
            return False
        try:
            return word in self._source(place[0], place[1])
        except TreeError:
            return False

    def home_mentions(self, name: str, word: str) -> bool | None:
        """Say whether the file that a dotted name comes from holds a word.

        ``None`` where the trees do not have that file.
        """
        module = name
        while module:
            place = self._find(module)
            if place is not None:
                try:
                    return word.encode() in self._source(place[0], place[1])
                except TreeError:
                    return None
            module = module.rpartition(".")[0]
        return None

    def heirs(self, ref: ClassRef) -> tuple[ClassRef, ...]:
        """Return the target's other model classes with this one in their MRO."""
        return self.ask(_heirs, ref)


def _classes_of(key: object) -> Iterator[ClassRef]:
    """Yield the classes that a key names."""
    if isinstance(key, ClassRef):
        yield key
    elif isinstance(key, tuple):
        for part in key:
            yield from _classes_of(part)


def _entries(index: ModelIndex) -> dict[ClassRef, tuple[Entry, ...]]:
    return index.remember("entries", index.find_entries, on_cycle={})


def _models(index: ModelIndex) -> tuple[ClassRef, ...]:
    return index.remember("model classes", index.find_model_classes, on_cycle=())


def _called(index: ModelIndex, name: str) -> bool:
    nothing: frozenset[str] = frozenset()
    return name in index.remember("called", index.find_calls, on_cycle=nothing)


def _heirs(index: ModelIndex, ref: ClassRef) -> tuple[ClassRef, ...]:
    return tuple(
        other
        for other in index.model_classes
        if other != ref and ref in index.mro(other).classes
    )


_MODEL_PATHS = tuple(f"{folder}/" for folder in MODEL_FOLDERS)

_COMPUTED = ("_configs", "_own_files", "_own_modules")
"""What an overlaid index must not take over."""

_CLASS_HEADER = re.compile(rb"^[ \t]*class[ \t]+\w+[ \t]*\(([^)]*)\)", re.MULTILINE)
_NAME = re.compile(rb"\w+")
_BUILTINS = frozenset(dir(builtins))


def _module_name(file: str, prefixes: tuple[str, ...]) -> str:
    """Return the dotted module of a path, under the longest fitting prefix."""
    for prefix in sorted(prefixes, key=len, reverse=True):
        if file.startswith(prefix):
            parts = file[len(prefix) : -len(".py")].split("/")
            if parts[-1] == "__init__":
                parts.pop()
            if parts and all(part.isidentifier() for part in parts):
                return ".".join(parts)
            return ""
    return ""


_CALL = re.compile(rb"\b([A-Za-z_]\w*)\(")
_STATEMENT = re.compile(rb"class[ \t]+([A-Za-z_]\w*)\(")
_PASSED = re.compile(rb"=\s*([A-Za-z_]\w*)\b(?!\.)")


def _called_names(source: bytes) -> frozenset[str]:
    """Return the names for which ``name(`` or ``=name`` occurs, classes aside."""
    # Counted apart: one pattern for both kinds would take three times as long.
    calls = Counter(_CALL.findall(source))
    calls.subtract(_STATEMENT.findall(source))
    called = {name for name, times in calls.items() if times > 0}
    return frozenset(n.decode() for n in called.union(_PASSED.findall(source)))


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
