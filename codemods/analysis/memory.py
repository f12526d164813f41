"""Remembers answers, what each of them was read from, and which of them still hold.

Every answer has *needs*: the modules that it was read from, the questions that were put
to a tree directly, and other answers that it rests on as a whole. An answer holds in
another state of the trees where every need is met as before. So a change of one file
tells exactly which answers have to be found again, in the same process (a patch that is
tried) and in a later one (answers that were kept in the cache).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from vlmend.codemods.analysis.recording import own_code
from vlmend.codemods.analysis.tree import SourceTree

Found = TypeVar("Found")

Need = Hashable
"""A dotted module, a :class:`TreeQuestion`, an :class:`Asked` or :data:`UNSTABLE`."""

UNSTABLE: Final = ("unstable",)
"""The need of an answer that depends on where a circle of questions was entered."""

_NEVER: Final = 1 << 30
_OURS: Final = "vlmend.codemods."


class TreeQuestion(NamedTuple):
    """A question that was put to a tree, past the index."""

    method: str
    root: int
    path: str


class Asked(NamedTuple):
    """Another answer, of which only the outcome matters, not what it was read from.

    ``function`` stands at the top of a module and takes the index and ``arguments``.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Answer(NamedTuple):
    """An answer, what it needs, and (where known) its state; see :class:`_Kept`."""

    value: Any
    needs: frozenset[Need]
    state: bytes | None = None


class FactsCache(Protocol):
    """Keeps facts between runs, by key; may forget at any time."""

    def get(self, key: bytes) -> bytes | None:
        """Return what was put under ``key``, or ``None``."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Keep ``value`` under ``key``."""
        ...

    def flush(self) -> None:
        """Write what was put to where the next run finds it."""
        ...


class World(Protocol):
    """What a memory has to know about the trees."""

    def digest_of(self, need: str | TreeQuestion) -> bytes:
        """Return a digest of a module, or of a tree's answer, as they are now."""
        ...

    def broken(self, names: Iterable[Need]) -> tuple[str, ...]:
        """Return those modules that are there and could not be read."""
        ...

    def module(self, name: str) -> object:
        """Read a module; one that cannot be read is noted as an error."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer as the cache holds it.

    ``state`` is a digest of how its needs were met, and ``needs`` are in the order of
    their digests then: the same needs, met in the same way, have the same state.
    """

    value: Any
    needs: tuple[Need, ...]
    state: bytes
    broken: tuple[str, ...]


class Memory:
    """The answers of one index.

    Args:
        world: the index.
        cache: keeps answers between runs.
        parent: the memory of an index that most answers can be taken over from.
    """

    def __init__(
        self,
        world: World,
        cache: FactsCache | None = None,
        parent: Memory | None = None,
    ) -> None:
        self._world = world
        self._cache = cache
        self._parent = parent
        self._answers: dict[Hashable, Answer] = {}
        self._frames: list[set[Need]] = []
        self._pending: dict[Hashable, int] = {}
        self._lowest = _NEVER
        self._homes: set[Hashable] = set()
        self._names: dict[Hashable, bytes] = {}
        self._digests: dict[Need, bytes] = {}
        self._same: dict[Need, bool] = {}

    # -- what an answer needs -------------------------------------------------------

    @contextmanager
    def reading(self) -> Generator[set[Need]]:
        """Collect what the answers inside the block need."""
        frame: set[Need] = set()
        self._frames.append(frame)
        try:
            yield frame
        finally:
            self._frames.pop()
            if self._frames:
                self._frames[-1] |= frame

    def touch(self, need: Need) -> None:
        """Note that the answer which is being found needs this."""
        if self._frames:
            self._frames[-1].add(need)

    def touch_all(self, needs: Iterable[Need]) -> None:
        """Note several needs."""
        if self._frames:
            self._frames[-1].update(needs)

    def ask(self, function: Callable[..., Found], *arguments: Any) -> Found:
        """Return ``function(index, *arguments)``; the asker needs its outcome alone.

        Where a much larger reading boils down to a small answer (which classes derive
        from this one?), a change that leaves the answer as it was leaves the asker's
        answer as it was, too.
        """
        value = self._shielded(function, arguments)
        self.touch(Asked(function, arguments))
        return value

    def _shielded(
        self, function: Callable[..., Found], arguments: tuple[Any, ...]
    ) -> Found:
        frame: set[Need] = set()
        self._frames.append(frame)
        try:
            return function(self._world, *arguments)
        finally:
            self._frames.pop()
            if UNSTABLE in frame:
                self.touch(UNSTABLE)

    # -- answers --------------------------------------------------------------------

    def remember(
        self,
        key: Hashable,
        compute: Callable[[], Found],
        on_cycle: Found,
        home: str | None = None,
    ) -> Found:
        """Return the answer to ``key``, found once; see :meth:`ModelIndex.remember`."""
        found = self._answers.get(key)
        if home is not None:
            self._homes.add(key)
        if found is None:
            depth = self._pending.get(key)
            if depth is not None:
                self._lowest = min(self._lowest, depth)
                return on_cycle
            found = self._taken_over(key)
            if found is None and home is not None:
                found = self._kept(key, compute, home)
            if found is None:
                return self._find(key, compute, home)
            self._answers[key] = found
        if self._frames:
            self._frames[-1].update(found.needs)
        return found.value  # type: ignore[no-any-return]

    def _find(
        self, key: Hashable, compute: Callable[[], Found], home: str | None
    ) -> Found:
        depth = len(self._pending)
        frame: set[Need] = set()
        outer, self._lowest = self._lowest, _NEVER
        self._pending[key] = depth
        self._frames.append(frame)
        try:
            value = compute()
        finally:
            self._frames.pop()
            del self._pending[key]
            reached = self._lowest
            # An answer that was told "you are asking yourself" about a question that is
            # still open further out is good for that one, and for no one else.
            provisional = reached < depth
            if provisional:
                frame.add(UNSTABLE)
            self._lowest = min(outer, reached) if provisional else outer
            if self._frames:
                self._frames[-1] |= frame
        if not provisional:
            found = Answer(value, frozenset(frame))
            if home is not None:
                found = self._keep(key, compute, home, found)
            self._answers[key] = found
        return value

    def rests_on(self, key: Hashable) -> bytes | None:
        """Return a digest of all that the answer to ``key`` was read from."""
        found = self._answers.get(key)
        if found is None or UNSTABLE in found.needs:
            return None
        if found.state is not None:
            return found.state
        return _digest(b"".join(sorted(self._digests_of(found.needs))))

    def name_of(self, key: Hashable) -> bytes:
        """Return a digest of a question as it is put, whatever the answer."""
        name = self._names.get(key)
        if name is None:
            name = _digest(repr(key).encode("utf-8", "surrogatepass"))
            self._names[key] = name
        return name

    @property
    def kept(self) -> Iterable[Hashable]:
        """The keys of the questions that have a home."""
        return self._homes

    # -- from an index of nearly the same trees ---------------------------------------

    def _taken_over(self, key: Hashable) -> Answer | None:
        parent = self._parent
        if parent is None:
            return None
        found = parent._answers.get(key) or parent._taken_over(key)
        if found is None or not all(map(self._is_same, found.needs)):
            return None
        return found

    def _is_same(self, need: Need) -> bool:
        same = self._same.get(need)
        if same is None:
            parent = self._parent
            assert parent is not None
            same = need != UNSTABLE and self.digest(need) == parent.digest(need)
            self._same[need] = same
        return same

    # -- from an earlier run ----------------------------------------------------------

    def digest(self, need: Need) -> bytes:
        """Return a digest of what a need is met by, as things are now."""
        known = self._digests.get(need)
        if known is not None:
            return known
        if isinstance(need, Asked):
            before = self._lowest
            value = self._shielded(need.function, need.arguments)
            digest = _digest(repr(value).encode("utf-8", "surrogatepass"))
            if self._lowest < before:
                return digest  # found inside a circle; good for this once
        else:
            assert isinstance(need, str | TreeQuestion)
            digest = self._world.digest_of(need)
        self._digests[need] = digest
        return digest

    def _kept(
        self, key: Hashable, compute: Callable[[], Any], home: str
    ) -> Answer | None:
        if self._cache is None or not is_ours(compute):
            return None
        stored = self._cache.get(self._row(key, home))
        if stored is None:
            return None
        try:
            # The cache is the user's own folder, written by this very code.
            kept = pickle.loads(stored)  # noqa: S301
        except Exception:  # noqa: BLE001 - whatever a damaged entry raises, read again
            return None
        if not isinstance(kept, _Kept):
            return None
        if self._state(kept.needs) != kept.state:
            return None
        for name in kept.broken:
            self._world.module(name)
        return Answer(kept.value, frozenset(kept.needs), kept.state)

    def _state(self, needs: tuple[Need, ...]) -> bytes:
        """Return a digest of how these needs are met now."""
        return _digest(b"".join(self._digests_of(needs)))

    def _digests_of(self, needs: Iterable[Need]) -> list[bytes]:
        try:
            # Nearly always all of them are known: then this is one pass without a call.
            return list(map(self._digests.__getitem__, needs))
        except KeyError:
            return list(map(self.digest, needs))

    def _keep(
        self, key: Hashable, compute: Callable[[], Any], home: str, found: Answer
    ) -> Answer:
        """Put an answer into the cache; return it with its state."""
        if self._cache is None or not is_ours(compute) or UNSTABLE in found.needs:
            return found
        digests = {need: self.digest(need) for need in found.needs}
        needs = tuple(sorted(digests, key=digests.__getitem__))
        state = _digest(b"".join(map(digests.__getitem__, needs)))
        kept = _Kept(found.value, needs, state, self._world.broken(needs))
        with_state = found._replace(state=state)
        try:
            row = pickle.dumps(kept, pickle.HIGHEST_PROTOCOL)
        except (TypeError, pickle.PicklingError):
            return with_state  # a part of it refuses; see LocalFunction
        self._cache.put(self._row(key, home), row)
        return with_state

    def _row(self, key: Hashable, home: str) -> bytes:
        # The class's own file is part of the name: two branches keep an answer each.
        return _digest(b"".join((own_code(), self.digest(home), self.name_of(key))))


def is_ours(code: object) -> bool:
    """Say whether a function or an object's class is part of :func:`own_code`."""
    if isinstance(code, partial):
        code = code.func
    return str(getattr(code, "__module__", "")).startswith(_OURS)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


class WatchedTree:
    """A tree that tells which questions are put to it.

    ``read`` is a quicker way to a file's bytes, if there is one.
    """

    def __init__(
        self,
        below: SourceTree,
        root: int,
        heard: Callable[[TreeQuestion], None],
        read: Callable[[str], bytes] | None = None,
    ) -> None:
        self.below = below
        self._read = read or below.read
        self._root = root
        self._heard = heard

    def exists(self, path: str) -> bool:
        self._heard(TreeQuestion("exists", self._root, path))
        return self.below.exists(path)

    def is_dir(self, path: str) -> bool:
        self._heard(TreeQuestion("is_dir", self._root, path))
        return self.below.is_dir(path)

    def python_files(self, folder: str) -> Iterator[str]:
        self._heard(TreeQuestion("python_files", self._root, folder))
        return self.below.python_files(folder)

    def read(self, path: str) -> bytes:
        self._heard(TreeQuestion("read", self._root, path))
        return self._read(path)
