"""Reads files once, and remembers what every answer was read from."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple, Self, TypeVar

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.facts import Module
from vlmend.codemods.analysis.memory import (
    FactsCache,
    Memory,
    Need,
    TreeQuestion,
    WatchedTree,
)
from vlmend.codemods.analysis.recording import answer_digest
from vlmend.codemods.analysis.transformers_facts import TransformersFacts
from vlmend.codemods.analysis.tree import OverlayTree, SourceTree, TreeError
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import ScanError, Source

MODEL_FOLDERS = ("vllm/model_executor/models", "vllm/models")
"""Where vLLM keeps models; the second since 0.22."""

Answer = TypeVar("Answer")


class Root(NamedTuple):
    """One body of code: the target, or the vLLM tree that a plugin is judged against.

    ``prefixes`` are the folders that hold its packages, such as ``("", "src/")``.
    """

    source: Source
    tree: SourceTree
    prefixes: tuple[str, ...]


class Sources:
    """The files of one or two trees, their facts, and what was found out about them.

    Args:
        tree: the target.
        base: the vLLM tree beside a plugin; ``None`` where the target is vLLM itself.
        cache: keeps facts between runs.
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

    # -- dependencies -----------------------------------------------------------------

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

    def basis(self) -> dict[str, dict[str, str]]:
        """Return, by ``module:Class``, its questions and what each answer rests on.

        Questions and what they rest on are digests. Only what is kept between runs
        counts; see :meth:`remember`.
        """
        found: dict[str, dict[str, str]] = {}
        for key in self._memory.kept:
            digest = self._memory.rests_on(key)
            if digest is None:
                continue
            question = self._memory.name_of(key).hex()
            for ref in _classes_of(key):
                found.setdefault(ref.key, {})[question] = digest.hex()
        return found

    def broken(self, names: Iterable[Need]) -> tuple[str, ...]:
        """Return those modules that are there and could not be read."""
        return tuple(
            name
            for name in names
            if isinstance(name, str)
            and self._modules.get(name, self) is None
            and self._locate(name) is not None
        )

    def overlaid(self, changes: Mapping[str, bytes | None]) -> Self:
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
        changed = {dotted_module(file, root.prefixes) for file in changes}
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

    # -- files ------------------------------------------------------------------------

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


_MODEL_PATHS = tuple(f"{folder}/" for folder in MODEL_FOLDERS)

_COMPUTED = ("_configs", "_own_files", "_own_modules")
"""What overlaid sources must not take over."""


def _classes_of(key: object) -> Iterator[ClassRef]:
    """Yield the classes that a key names."""
    if isinstance(key, ClassRef):
        yield key
    elif isinstance(key, tuple):
        for part in key:
            yield from _classes_of(part)


def dotted_module(file: str, prefixes: tuple[str, ...]) -> str:
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
