"""Runs codemods over a tree and turns findings into proven patches."""

from __future__ import annotations

import copy
import difflib
import gc
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass

from vlmend.codemods.analysis.contract import contract_notes
from vlmend.codemods.analysis.memory import FactsCache, is_ours
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.recording import (
    NotingCache,
    RecordingTree,
    dump,
    load,
    scan_key,
)
from vlmend.codemods.analysis.sources import MODEL_FOLDERS
from vlmend.codemods.analysis.transformers_facts import TransformersFacts
from vlmend.codemods.analysis.tree import SourceTree, TreeError
from vlmend.codemods.codemod import (
    Codemod,
    Confirming,
    ContractNote,
    Demanding,
    Finding,
    ScanError,
    ScanResult,
    Source,
    Status,
    sort_findings,
)
from vlmend.codemods.installed import in_a_line
from vlmend.codemods.proof import refute
from vlmend.codemods.registered import all_codemods
from vlmend.codemods.suppressions import suppress

WRITING = (Status.FIXABLE, Status.REVIEW)
"""The statuses that can carry edits."""


@dataclass(frozen=True, slots=True)
class FilePatch:
    """One file before and after, with every proof passed.

    ``findings`` are those that the change mends.
    """

    file: str
    before: bytes
    after: bytes
    findings: tuple[Finding, ...]

    def diff(self, context: int = 3) -> str:
        """Return the change as a unified diff that ``git apply`` takes."""
        return unified_diff(self.file, self.before, self.after, context)


@dataclass(frozen=True, slots=True)
class PatchFailure:
    """A patch that did not pass its own proof, and is therefore not made."""

    file: str
    findings: tuple[Finding, ...]
    reason: str


class Session:
    """One tree, judged once; patches are made from the same reading.

    Args:
        tree: the target.
        base: the vLLM tree that a plugin is judged against; ``None`` for vLLM itself.
        codemods: what to run; all that are known by default.
        cache: keeps facts between runs.
        on_progress: called with (files read, files to read).
        label: tells apart the results that are stored for two states of one tree.
        transformers: one release to judge by instead of those that the tree names.
            Nothing is kept between runs then: what is kept is for the tree's own.
    """

    def __init__(
        self,
        tree: SourceTree,
        *,
        base: SourceTree | None = None,
        codemods: Sequence[Codemod] | None = None,
        cache: FactsCache | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        label: str = "",
        transformers: TransformersFacts | None = None,
    ) -> None:
        if transformers is not None:
            cache = None
        trees = [tree] if base is None else [tree, base]
        self._recorded = tuple(RecordingTree(one) for one in trees)
        self._tree = tree
        self._cache = NotingCache(cache) if cache is not None else None
        self._label = label
        self._codemods = tuple(codemods) if codemods is not None else all_codemods()
        self.index = ModelIndex(
            self._recorded[0],
            base=self._recorded[1] if base is not None else None,
            cache=self._cache,
            on_progress=on_progress,
            transformers=transformers,
        )
        self._result: ScanResult | None = None
        self._is_read = False

    def run(self) -> ScanResult:
        """Judge every class; nothing is filtered, every status is there."""
        if self._result is None:
            with _collector_paused():
                self._result = self._remembered()
        return self._result

    def _remembered(self) -> ScanResult:
        """Return the stored result while it holds, else judge and store."""
        if self._cache is None:
            return self._judge_all()
        if not all(map(is_ours, self._codemods)):
            return self._judge_all()  # whose code may change without our noticing
        folders = MODEL_FOLDERS if len(self._recorded) == 1 else ("",)
        ids = tuple(codemod.id for codemod in self._codemods)
        key = scan_key(self._tree, folders, self._label, *ids)
        result = load(self._cache.get(key), self._recorded)
        if result is None and self._label:
            # What is another state now may have been the only one until just now.
            plain = self._cache.get(scan_key(self._tree, folders, "", *ids))
            result = load(plain, self._recorded)
            if result is not None and plain is not None:
                self._cache.put(key, plain)
        if result is None:
            asked = scan_key(self._tree, (), "asked", *ids)
            self._cache.fetch(asked)
            result = self._judge_all()
            self._cache.note(asked)
            self._cache.put(key, dump(self._recorded, result))
            self._cache.flush()
        return result

    def _judge_all(self) -> ScanResult:
        self._is_read = True
        index = self.index
        ids = [codemod.id for codemod in self._codemods]
        findings, unused = suppress(index, _judge(index, self._codemods), ids)
        return ScanResult(
            findings=sort_findings(findings),
            models=tuple(
                index.info(ref)
                for ref in index.model_classes
                if index.is_multimodal(ref) or index.is_pipeline_parallel(ref)
            ),
            contract=(*contract_notes(index), *_demands(index, self._codemods)),
            errors=tuple(sorted(index.errors.values(), key=lambda e: e.file)),
            unused=unused,
            basis=index.basis() if self._cache is not None else {},
        )

    def patches(
        self, findings: Iterable[Finding]
    ) -> Iterator[FilePatch | PatchFailure]:
        """Merge the findings' edits per file; yield each file's proven patch.

        Findings that carry no edits are passed over.
        """
        for file, group in _by_file(findings).items():
            with _collector_paused():
                yield self._patch(file, tuple(group))

    def _patch(self, file: str, group: tuple[Finding, ...]) -> FilePatch | PatchFailure:
        # LibCST is only paid for when something is written.
        from vlmend.codemods.rewriting.apply import apply_edits
        from vlmend.codemods.rewriting.splices import EditError

        edits = [e for f in group for e in f.edits if e.file == file]
        try:
            before = self._tree.read(file)
            applied = apply_edits(before, edits)  # type: ignore[arg-type]
        except (EditError, TreeError) as error:
            return PatchFailure(file, group, str(error))
        reason = refute(before, applied.after, applied.planned) or self._still_broken(
            file, applied.after, group
        )
        if reason:
            return PatchFailure(file, group, reason)
        return FilePatch(file, before, applied.after, group)

    def _still_broken(self, file: str, after: bytes, group: tuple[Finding, ...]) -> str:
        """Judge the target again with the patch laid over it; return what is wrong."""
        fresh = self.overlaid(file, after)
        found = {f.fingerprint: f for f in fresh.run().findings}
        old = {f.fingerprint for f in self.run().findings}
        for finding in group:
            again = found.get(finding.fingerprint)
            if again is not None and again.status in (*WRITING, Status.BLOCKED):
                return f"{finding.class_name} is still {again.status} after the change"
            unmended = _unmended(finding, tuple(found.values()), old)
            if unmended:
                return f"the change does not make {unmended} satisfied"
            for codemod in self._codemods:
                if codemod.id == finding.codemod and isinstance(codemod, Confirming):
                    doubt = codemod.doubt(fresh.index, finding)
                    if doubt:
                        return f"after the change, {doubt}"
        for fingerprint, finding in found.items():
            if any(_comes_to_light(finding, mended) for mended in group):
                continue
            if fingerprint not in old and finding.status in _DEFECTS:
                return f"the change makes {finding.class_name} {finding.status}"
        known = {error.file for error in self.run().errors}
        broken = sorted(e.file for e in fresh.run().errors if e.file not in known)
        if broken:
            return f"the change breaks the reading of {', '.join(broken)}"
        return ""

    def overlaid(self, file: str, source: bytes) -> Session:
        """Return a session on the target with one file replaced.

        It shares what was read already, so that trying a change is cheap.
        """
        if not self._is_read:  # the result came from the cache
            self._judge_all()
        fresh = copy.copy(self)
        fresh.index = self.index.overlaid({file: source})
        fresh._tree = fresh.index.roots[0].tree
        fresh._result = None
        fresh._cache = None
        return fresh

    def finding_diff(self, finding: Finding) -> str | None:
        """Return what one finding alone would change in the untouched files.

        ``None`` where it would change nothing or its patch does not pass its proof.
        """
        if not finding.edits:
            return None
        parts: list[str] = []
        for patch in self.patches([finding]):
            if isinstance(patch, PatchFailure):
                return None
            parts.append(patch.diff())
        return "".join(parts)


def _comes_to_light(finding: Finding, mended: Finding) -> bool:
    """Say whether a milder defect of a class was only hidden by the one mended.

    A codemod says one thing about a class at a time, the worst first.
    """
    order = (Status.FIXABLE, Status.REVIEW, Status.UNPROVEN)
    return (
        (finding.codemod, finding.module, finding.class_name)
        == (mended.codemod, mended.module, mended.class_name)
        and finding.status in order
        and mended.status in order
        and order.index(finding.status) > order.index(mended.status)
    )


def _unmended(finding: Finding, found: Sequence[Finding], old: Collection[str]) -> str:
    """Return a class that a finding speaks of and that is not satisfied afterwards.

    One with another defect, known before, is passed over: that has a patch of its own.
    """
    key = f"{finding.module}:{finding.class_name}"
    hidden = [f for f in found if _comes_to_light(f, finding)]
    for name in (key, *finding.heirs):
        if hidden and (name == key or any(name in f.heirs for f in hidden)):
            continue
        about = [
            f
            for f in found
            if f.codemod == finding.codemod and f"{f.module}:{f.class_name}" == name
        ]
        if any(f.status in _DEFECTS and f.fingerprint in old for f in about):
            continue
        if name == key and finding.heirs and not about:
            continue  # a base that makes no promise itself
        if name == key and any(f.status is Status.EXEMPT for f in about):
            continue
        if not any(f.status is Status.SATISFIED for f in about):
            return name.partition(":")[2]
    return ""


_DEFECTS = (Status.FIXABLE, Status.REVIEW, Status.BLOCKED, Status.UNPROVEN)


def scan(
    tree: SourceTree,
    *,
    base: SourceTree | None = None,
    codemods: Sequence[Codemod] | None = None,
    cache: FactsCache | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ScanResult:
    """Judge a tree once; see :class:`Session` for the arguments."""
    session = Session(
        tree, base=base, codemods=codemods, cache=cache, on_progress=on_progress
    )
    return session.run()


def _judge(index: ModelIndex, codemods: Sequence[Codemod]) -> Iterator[Finding]:
    for codemod in codemods:
        if is_ours(codemod):
            yield from codemod.judge(index)
            continue
        try:
            found = list(codemod.judge(index))
            _check(codemod, found)
        except Exception as error:  # noqa: BLE001 - foreign code costs only itself
            message = f"codemod {codemod.id} failed: {in_a_line(error)}"
            index.errors[f"codemod {codemod.id}"] = ScanError("", message)
        else:
            yield from found


def _demands(index: ModelIndex, codemods: Sequence[Codemod]) -> Iterator[ContractNote]:
    for codemod in codemods:
        if not isinstance(codemod, Demanding):
            continue
        try:
            found = list(codemod.demands(index))
        except Exception as error:
            if is_ours(codemod):
                raise
            message = f"codemod {codemod.id} failed: {in_a_line(error)}"
            index.errors[f"codemod {codemod.id}"] = ScanError("", message)
        else:
            yield from found


def _check(codemod: Codemod, findings: Iterable[object]) -> None:
    """Refuse what the rest of vlmend could not work with."""
    for finding in findings:
        if not isinstance(finding, Finding):
            raise TypeError(f"judge() yielded a {type(finding).__name__}, no Finding")
        if finding.codemod != codemod.id:
            raise ValueError(f"a finding is signed {finding.codemod!r}")
        if finding.line < 1 or finding.class_line < 1 or not finding.message:
            raise ValueError(f"the finding on {finding.class_name} is incomplete")


def _by_file(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.status not in WRITING or finding.source is not Source.TREE:
            continue
        for file in dict.fromkeys(edit.file for edit in finding.edits):
            groups.setdefault(file, []).append(finding)
    return groups


@contextmanager
def _collector_paused() -> Generator[None]:
    """Keep Python's cycle collector from walking syntax trees that are about to go."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def unified_diff(file: str, before: bytes, after: bytes, context: int = 3) -> str:
    """Return a unified diff with ``a/`` and ``b/`` paths, line ends kept.

    A byte that is not UTF-8 is carried as a surrogate escape: encode the result with
    ``errors="surrogateescape"`` to get the exact bytes that ``git apply`` needs.
    """
    old = _diff_lines(before)
    new = _diff_lines(after)
    lines = difflib.unified_diff(old, new, f"a/{file}", f"b/{file}", n=context)
    parts: list[str] = []
    for line in lines:
        parts.append(line)
        if not line.endswith("\n"):
            parts.append("\n\\ No newline at end of file\n")
    return "".join(parts)


def _diff_lines(source: bytes) -> list[str]:
    text = source.decode("utf-8", "surrogateescape")
    return [part + "\n" for part in text.split("\n")[:-1]] + (
        [last] if (last := text.rsplit("\n", 1)[-1]) else []
    )
