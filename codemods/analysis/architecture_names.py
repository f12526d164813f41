"""What an architecture name resolves to in this tree, by the tree's own rules."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from vlmend.codemods.analysis.architectures_contract import MODEL_CONFIG_FILES
from vlmend.codemods.analysis.facts import parse_span
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.registry import Entry
from vlmend.codemods.analysis.tree_lines import open_file
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Evidence


@dataclass(frozen=True, slots=True)
class NamedClass:
    """The class that an architecture name stands for.

    Attributes:
        name: the architecture.
        refs: its classes, one per platform; empty where the registry has none.
        converted: the registered name that it was turned into, if it is not its own.
        evidence: the lines that lead there.
    """

    name: str
    refs: tuple[ClassRef, ...]
    converted: str
    evidence: tuple[Evidence, ...]

    def pipeline_parallel(self, index: ModelIndex) -> bool:
        """Every class that it may be supports pipeline parallelism."""
        return bool(self.refs) and all(map(index.is_pipeline_parallel, self.refs))


def named_class(index: ModelIndex, name: str) -> NamedClass:
    """Resolve a name as ``ModelRegistry`` does.

    A name that is not registered is tried with other endings
    (``XForCausalLM`` as ``XForConditionalGeneration``), as ``_normalize_arch`` does.
    The Transformers backend, which comes after that, is not followed: what it can load
    depends on the installed release.
    """
    return index.remember(
        ("named", name),
        lambda: _named_class(index, name),
        on_cycle=NamedClass(name, (), "", ()),
    )


def _named_class(index: ModelIndex, name: str) -> NamedClass:
    entry = index.registry.get(name)
    if entry is not None:
        refs = index.registered_classes(entry)
        return NamedClass(name, refs, "", (registered_at(index, entry),))
    suffixes, table = _suffixes(index)
    ending = next((s for s in suffixes if name.endswith(s)), "")
    for other in suffixes if ending else ():
        entry = index.registry.get(name.replace(ending, other))
        if entry is None:
            continue
        refs = index.registered_classes(entry)
        chain = [registered_at(index, entry)]
        if table is not None:
            chain.insert(0, table)
        return NamedClass(name, refs, entry.architecture, tuple(chain))
    return NamedClass(name, (), "", ())


def registered_at(index: ModelIndex, entry: Entry) -> Evidence:
    """Cite the registry's line for an architecture."""
    said = f"{entry.architecture} is registered as {entry.module}:{entry.class_name}"
    source = index.roots[-1].source
    if entry.table == "register_model":
        source = index.roots[0].source
    return Evidence(source, entry.file, entry.line, said)


def _suffixes(index: ModelIndex) -> tuple[tuple[str, ...], Evidence | None]:
    """Read the endings that one architecture name may be tried with."""
    nothing: tuple[tuple[str, ...], Evidence | None] = ((), None)
    return index.remember("suffixes", lambda: _read_suffixes(index), on_cycle=nothing)


def _read_suffixes(index: ModelIndex) -> tuple[tuple[str, ...], Evidence | None]:
    file = open_file(index, MODEL_CONFIG_FILES, "_SUFFIX_TO_DEFAULTS")
    if file is None:
        return (), None
    start = re.compile(r"_SUFFIX_TO_DEFAULTS\b.*=\s*\[")
    for number, text in enumerate(file.lines):
        if not start.match(text):
            continue
        end = next(
            (n for n in range(number, len(file.lines)) if file.lines[n][:1] == "]"),
            None,
        )
        if end is None:
            break
        node = parse_span(file.lines, number + 1, end + 1, 0)
        value = getattr(node, "value", None)
        if isinstance(value, ast.List):
            said = "an unregistered name is tried with the other known endings"
            return tuple(_endings(value)), file.cite(number + 1, said)
    return (), None


def _endings(node: ast.List) -> list[str]:
    return [
        pair.elts[0].value
        for pair in node.elts
        if isinstance(pair, ast.Tuple)
        and isinstance(pair.elts[0], ast.Constant)
        and isinstance(pair.elts[0].value, str)
    ]
