"""From what was typed to what was found: the step that every verb begins with."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from vlmend.cli.errors import UserError

if TYPE_CHECKING:
    from vlmend.cli.select import Selection
    from vlmend.cli.targets import Target
    from vlmend.codemods.codemod import (
        Codemod,
        Finding,
        ModelInfo,
        ScanError,
        ScanResult,
    )
    from vlmend.codemods.engine import FilePatch, PatchFailure, Session


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be judged, and by which codemods.

    Attributes:
        target: as typed: a directory, ``DIRECTORY@REV`` or ``vllm==X``.
        vllm: the tree that a plugin is judged against, as typed.
        codemods: ids; empty means all.
        write: the target must be one that can be written to.
    """

    target: str
    vllm: str | None = None
    codemods: tuple[str, ...] = ()
    write: bool = False


@dataclass(frozen=True)
class Judged:
    """A target with everything that was found in it."""

    target: Target
    base: Target | None
    codemods: tuple[Codemod, ...]
    session: Session
    result: ScanResult
    failures: list[ScanError] = field(default_factory=list)
    """Findings whose patch failed its own proof; filled by :meth:`patches`."""

    @property
    def errors(self) -> tuple[ScanError, ...]:
        """Everything that could not be read, judged or patched, so far."""
        return (*self.result.errors, *self.failures)

    def patches(self, findings: Iterable[Finding]) -> list[FilePatch]:
        """Return the proven patches for ``findings``, one per file.

        A patch that failed its proof is noted in :attr:`failures` instead.
        """
        from vlmend.codemods.codemod import ScanError
        from vlmend.codemods.engine import FilePatch

        proven: list[FilePatch] = []
        for outcome in self.session.patches(findings):
            if isinstance(outcome, FilePatch):
                proven.append(outcome)
                continue
            error = ScanError(outcome.file, _failure_text(outcome))
            if error not in self.failures:
                self.failures.append(error)
        return proven

    def diff(self, finding: Finding) -> str | None:
        """Return what this finding alone would change, as a diff, or None."""
        if not finding.edits:
            return None
        return "".join(patch.diff() for patch in self.patches([finding])) or None


def _failure_text(failure: PatchFailure) -> str:
    names = ", ".join(sorted({f.class_name for f in failure.findings}))
    return (
        f"no patch for {names}: {failure.reason} (a defect of vlmend, please report it)"
    )


@contextmanager
def judging(request: Request, selection: Selection | None = None) -> Generator[Judged]:
    """Resolve the target, run the codemods over it, and let go of it at the end.

    Raises:
        UserError: the target, a codemod id or a class glob names nothing.
    """
    # Imported here, not above: `vlmend VERB --help` needs none of it.
    from vlmend.cli.cache import FactsStore
    from vlmend.cli.console import progress
    from vlmend.codemods.engine import Session

    codemods = choose_codemods(request.codemods)
    with ExitStack() as stack:
        target, base = _open(request, stack)
        cache = stack.enter_context(FactsStore())
        with progress() as report:
            session = Session(
                target.tree,
                base=base.tree if base else None,
                codemods=codemods,
                cache=cache,
                on_progress=partial(report, f"judging {target.spec}"),
            )
            result = session.run()
        if selection is not None:
            _require_a_match(result, selection)
        yield Judged(target, base, codemods, session, result)


def _open(request: Request, stack: ExitStack) -> tuple[Target, Target | None]:
    from vlmend.cli.console import progress
    from vlmend.cli.targets import resolve_target

    with progress() as report:
        target = stack.enter_context(resolve_target(request.target, progress=report))
        if request.write and target.kind != "directory":
            raise UserError(
                f"{request.target}: only a directory can be written to",
                hint=f"vlmend preview {request.target} shows the same fixes as a diff",
            )
        if request.vllm is None:
            if target.layout == "plugin":
                raise UserError(
                    f"{request.target}: a plugin is judged against the vLLM it extends",
                    hint="name it: --vllm DIRECTORY, or --vllm vllm==X",
                )
            return target, None
        if target.layout == "vllm":
            raise UserError(
                f"--vllm {request.vllm}: {request.target} is a vLLM tree of its own",
                hint="--vllm is for plugin packages",
            )
        base = stack.enter_context(resolve_target(request.vllm, progress=report))
    if base.layout != "vllm":
        raise UserError(f"--vllm {request.vllm}: not a vLLM tree")
    return target, base


def choose_codemods(ids: Sequence[str]) -> tuple[Codemod, ...]:
    """Return the codemods with these ids, or all of them.

    Raises:
        UserError: an id is unknown; the message names the nearest one.
    """
    from vlmend.codemods import all_codemods

    known = {codemod.id: codemod for codemod in all_codemods()}
    for wanted in ids:
        if wanted not in known:
            raise UserError(
                f"there is no codemod {wanted!r}",
                hint=nearest(wanted, known, "codemods"),
            )
    return tuple(known[wanted] for wanted in dict.fromkeys(ids)) or tuple(
        known.values()
    )


def _require_a_match(result: ScanResult, selection: Selection) -> None:
    """Complain about a misspelled ``--class``: it must not look like a clean tree."""
    # A class that stands in a file that could not be read may well exist.
    if not selection.classes or result.errors:
        return
    judged: list[Finding | ModelInfo] = [*result.findings, *result.models]
    named = replace(selection, excluded=())
    if any(named.concerns(item) for item in judged):
        return
    names = {item.class_name for item in judged}
    raise UserError(
        f"no model class matches --class {' '.join(selection.classes)}",
        hint=nearest(selection.classes[0].strip("*?"), names, "classes"),
    )


def nearest(wanted: str, known: Iterable[str], what: str) -> str | None:
    """Return a hint that names what was perhaps meant, or None."""
    from difflib import get_close_matches

    names = sorted(known)
    near = get_close_matches(wanted, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known {what}: {', '.join(names)}" if 0 < len(names) <= 12 else None
