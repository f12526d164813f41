"""Architecture names and the classes that vLLM loads for them.

Read from the dict literals of ``vllm/model_executor/models/registry.py``: each maps an
architecture to ``(module, class)``, the module relative to
``vllm.model_executor.models`` or absolute. Dicts of plain strings (removed and
out-of-tree names) are passed over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vlmend.codemods.analysis.facts import parse

REGISTRY_MODULE = "vllm.model_executor.models.registry"
MODELS_PACKAGE = "vllm.model_executor.models"

TEXT_GENERATION = "_TEXT_GENERATION_MODELS"
MULTIMODAL = "_MULTIMODAL_MODELS"
SPECULATIVE_DECODING = "_SPECULATIVE_DECODING_MODELS"


class RegistryError(Exception):
    """The registry has an unknown form; the message says what was looked for."""


class Entry(NamedTuple):
    """One registered architecture.

    ``module`` is absolute; ``table`` is the dict that the entry stands in, or
    ``register_model`` for a plugin's call; ``file`` and ``line`` say where.
    """

    architecture: str
    module: str
    class_name: str
    table: str
    file: str
    line: int


class Registry:
    """Architecture names to entries, and back.

    Later tables win, as they do when vLLM merges them; one that only repeats a class
    leaves the first line as the one to cite.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: dict[str, Entry] = {}
        self.tables: dict[str, list[Entry]] = {}
        self._by_class: dict[tuple[str, str], list[Entry]] = {}
        for entry in entries:
            old = self.entries.get(entry.architecture)
            if old is None or old[1:3] != entry[1:3]:
                self.entries[entry.architecture] = entry
            self.tables.setdefault(entry.table, []).append(entry)
            self._by_class.setdefault((entry.module, entry.class_name), []).append(
                entry
            )

    def get(self, architecture: str) -> Entry | None:
        """Return the entry that an architecture resolves to, if it is registered."""
        return self.entries.get(architecture)

    def of_class(self, module: str, class_name: str) -> list[Entry]:
        """Return every entry that names this class by this module."""
        return self._by_class.get((module, class_name), [])

    def with_entries(self, more: Iterable[Entry]) -> Registry:
        """Return a registry that also holds ``more`` (a plugin's registrations)."""
        old = [entry for table in self.tables.values() for entry in table]
        return Registry([*old, *more])


def read_registry(source: bytes, file: str) -> Registry:
    """Read the registry's tables.

    Raises:
        RegistryError: no table of the known form is there.
        SyntaxError, ValueError: the file does not parse.
    """
    entries = list(_entries(parse(source), file))
    if not entries:
        raise RegistryError(
            "no table of the form {architecture: (module, class)} was found; "
            "architecture names cannot be resolved"
        )
    return Registry(entries)


def absolute_module(module: str) -> str:
    """Return the dotted module of a registry entry (``llama`` or ``vllm.models.x``)."""
    return module if module.startswith("vllm.") else f"{MODELS_PACKAGE}.{module}"


def _entries(tree: ast.Module, file: str) -> Iterator[Entry]:
    known: dict[str, list[Entry]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Dict):
            continue
        found = list(_table(value, target.id, file, known))
        if found:
            known[target.id] = found
            yield from found


def _table(
    node: ast.Dict, table: str, file: str, known: dict[str, list[Entry]]
) -> Iterator[Entry]:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            yield from _copied(value, table, known)
            continue
        pair = _pair(value)
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and pair:
            module, class_name = pair
            yield Entry(
                key.value, absolute_module(module), class_name, table, file, key.lineno
            )


def _pair(node: ast.expr) -> tuple[str, str] | None:
    if not isinstance(node, ast.Tuple) or len(node.elts) != 2:
        return None
    values = [e.value for e in node.elts if isinstance(e, ast.Constant)]
    match values:
        case [str(module), str(class_name)]:
            return module, class_name
    return None


def _copied(
    node: ast.expr, table: str, known: dict[str, list[Entry]]
) -> Iterator[Entry]:
    """Entries that ``**{k: ... for k, ... in OTHER.items() if arch == "X"}`` copies.

    The comprehension keeps those of another table whose class has the one given name; a
    plain ``**OTHER`` only merges tables that were read already.
    """
    if not isinstance(node, ast.DictComp):
        return
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    wanted = {
        n.value
        for generator in node.generators
        for test in generator.ifs
        for n in ast.walk(test)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }
    for other in names & known.keys():
        for entry in known[other]:
            if entry.class_name in wanted:
                yield entry._replace(table=table, line=node.lineno)
