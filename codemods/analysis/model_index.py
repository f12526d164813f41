"""Joins the facts of single files: names through imports, classes, MRO, registry.

Everything is answered on demand and remembered, together with what it was read from
(:mod:`.memory`), so that a change of one file tells exactly which classes have to be
judged again. Whatever the index hands out without asking its memory it must ``touch``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property, partial

from vlmend.codemods.analysis import registry
from vlmend.codemods.analysis.facts import ALWAYS
from vlmend.codemods.analysis.memory import Need, TreeQuestion, WatchedTree
from vlmend.codemods.analysis.names import INTERFACES_MODULE, Names
from vlmend.codemods.analysis.registry import Entry, Registry, RegistryError
from vlmend.codemods.analysis.sources import MODEL_FOLDERS, dotted_module
from vlmend.codemods.analysis.symbols import ClassSymbol
from vlmend.codemods.analysis.text_configs import TreeConfigs, read_configs
from vlmend.codemods.analysis.tree import TreeError
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import ModelInfo, ScanError


class ModelIndex(Names):
    """What the trees say, joined.

    Args:
        tree: the target.
        base: the vLLM tree beside a plugin; ``None`` where the target is vLLM itself.
        cache: keeps facts between runs.
        on_progress: called with (files read, files to read) while files are read.
        transformers: one release to judge by instead of those that the tree names.
    """

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
        names = (dotted_module(file, prefixes) for file in self._own_files)
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

    def _classes_in(self, module_name: str) -> tuple[ClassRef, ...]:
        """Return a module's model classes; kept, for this is asked of every module."""
        return self.remember(
            ("models in", module_name),
            lambda: tuple(self._find_classes_in(module_name)),
            on_cycle=(),
            home=module_name,
        )

    def _find_classes_in(self, module_name: str) -> Iterator[ClassRef]:
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

    def heirs(self, ref: ClassRef) -> tuple[ClassRef, ...]:
        """Return the target's other model classes with this one in their MRO."""
        return self.ask(_heirs, ref)


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


_CLASS_HEADER = re.compile(rb"^[ \t]*class[ \t]+\w+[ \t]*\(([^)]*)\)", re.MULTILINE)
_NAME = re.compile(rb"\w+")
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
