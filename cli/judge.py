"""From what was typed to what was found: the step that every verb begins with."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vlmend.cli.errors import UserError
from vlmend.cli.select import Level, Selection

if TYPE_CHECKING:
    from vlmend.cli.changed import Compared
    from vlmend.cli.settings import Settings
    from vlmend.cli.targets import Target
    from vlmend.codemods.analysis.transformers_facts import TransformersFacts
    from vlmend.codemods.analysis.tree import SourceTree
    from vlmend.codemods.codemod import (
        Codemod,
        Finding,
        ModelInfo,
        ScanError,
        ScanResult,
        UnusedSuppression,
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
        changed: the base is judged, too, to tell what is new.
        base: the base as typed; ``None`` for the usual one.
    """

    target: str
    vllm: str | None = None
    codemods: tuple[str, ...] = ()
    write: bool = False
    changed: bool = False
    base: str | None = None


@dataclass(frozen=True)
class Judged:
    """A target with everything that was found in it."""

    target: Target
    base: Target | None
    codemods: tuple[Codemod, ...]
    session: Session
    result: ScanResult
    selection: Selection = field(default_factory=Selection)
    """What was asked for, with what the configuration adds."""
    settings: Settings | None = None
    """The configuration that was found."""
    unused: tuple[UnusedSuppression, ...] = ()
    """Suppressions that suppress nothing, in the tree and in the configuration."""
    broken: tuple[ScanError, ...] = ()
    """Codemods of other packages that cannot be used."""
    compared: Compared | None = None
    """What is different from the base, where that was asked."""
    failures: list[ScanError] = field(default_factory=list)
    """Findings whose patch failed its own proof; filled by :meth:`patches`."""

    @property
    def errors(self) -> tuple[ScanError, ...]:
        """Everything that could not be read, judged or patched, so far."""
        return (*self.broken, *self.result.errors, *self.failures)

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
    from vlmend.codemods import all_codemods

    ours = {codemod.id for codemod in all_codemods()}
    theirs = sorted({f.codemod for f in failure.findings} - ours)
    whose = f"of {', '.join(theirs)}" if theirs else "of vlmend, please report it"
    return f"no patch for {names}: {failure.reason} (a defect {whose})"


@contextmanager
def judging(request: Request, selection: Selection | None = None) -> Generator[Judged]:
    """Resolve the target, run the codemods over it, and let go of it at the end.

    Raises:
        UserError: the target, a codemod id or a class glob names nothing.
    """
    # Imported here, not above: `vlmend VERB --help` needs none of it.
    from vlmend.cli.cache import FactsStore
    from vlmend.cli.changed import compared, find_change
    from vlmend.cli.console import progress
    from vlmend.codemods.analysis.tree import OverlayTree, SnapshotTree
    from vlmend.codemods.engine import Session

    with ExitStack() as stack:
        target, base = _open(request, stack)
        settings = _settings(target)
        codemods, broken = configured_codemods(request.codemods, settings)
        selection = _configured(selection or Selection(), settings)
        cache = stack.enter_context(FactsStore())
        transformers = _transformers()

        def judge(tree: SourceTree, about: str, label: str = "") -> Session:
            with progress() as report, _collector_off():
                session = Session(
                    tree,
                    base=base.tree if base else None,
                    codemods=codemods,
                    cache=cache,
                    on_progress=partial(report, f"judging {about}"),
                    label=label,
                    transformers=transformers,
                )
                session.run()
                return session

        change = before = None
        tree: SourceTree = target.tree
        if request.changed:
            # The base comes first: it is often what the last run has judged already.
            change = find_change(target, request.base)
            if change.files:
                tree = SnapshotTree(target.tree)
                if change.aside:
                    tree = OverlayTree(tree, dict.fromkeys(change.aside))
                earlier = OverlayTree(tree, change.files)
                base_result = judge(earlier, "the base", "base").run()
                before = shown_as_asked(base_result, settings)
        session = judge(tree, target.spec)
        result = shown_as_asked(session.run(), settings)
        require_a_match(result, selection)
        yield Judged(
            target,
            base,
            codemods,
            session,
            result,
            selection,
            settings,
            unused=tuple(_unused(session.run(), settings, codemods)),
            broken=broken,
            compared=None
            if change is None
            else compared(change, before or result, result),
        )


@contextmanager
def _collector_off() -> Generator[None]:
    """Judge without Python's cycle collector: what it would walk is all in use."""
    import gc

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def configured_codemods(
    typed: Sequence[str], settings: Settings
) -> tuple[tuple[Codemod, ...], tuple[ScanError, ...]]:
    """Choose what runs: what was typed, else what the configuration says.

    Raises:
        UserError: an id is unknown; the message says where it stands.
    """
    try:
        return pick_codemods(typed or settings.codemods)
    except UserError as error:
        if typed:
            raise
        raise UserError(f"{settings.place}: {error.message}", hint=error.hint) from None


def _transformers() -> TransformersFacts | None:
    """Return the Transformers release that was asked for, if one was."""
    import click

    from vlmend.cli import options
    from vlmend.cli.console import progress

    context = click.get_current_context(silent=True)
    named = context.meta.get(options.TRANSFORMERS) if context is not None else None
    if named is None:
        return None
    from vlmend.cli.transformers_package import transformers_facts

    with progress() as report:
        return transformers_facts(named, progress=report)


def _settings(target: Target) -> Settings:
    import click

    from vlmend.cli import options
    from vlmend.cli.settings import checked, find_settings, read_settings
    from vlmend.codemods.analysis.tree import TreeError

    context = click.get_current_context(silent=True)
    named = context.meta.get(options.CONFIG) if context is not None else None
    if named is not None:
        return checked(read_settings(named))
    try:
        return checked(find_settings(target.tree))
    except TreeError as error:
        raise UserError(str(error)) from error


def _configured(selection: Selection, settings: Settings) -> Selection:
    """Fill in from the configuration what was not typed."""
    import click

    context = click.get_current_context(silent=True)

    def typed(name: str) -> bool:
        source = context.get_parameter_source(name) if context is not None else None
        return source is click.core.ParameterSource.COMMANDLINE

    if settings.level is not None and not typed("level"):
        selection = replace(selection, level=Level(settings.level))
    if settings.strict is not None and not typed("strict"):
        selection = replace(selection, strict=settings.strict)
    if settings.exclude and not selection.excluded:
        selection = replace(selection, excluded=settings.exclude)
    return selection


def shown_as_asked(result: ScanResult, settings: Settings) -> ScanResult:
    """Mark the findings that the configuration asks not to see."""
    if not settings.ignore:
        return result
    from vlmend.codemods.suppressions import SUPPRESSIBLE

    findings: list[Finding] = []
    for finding in result.findings:
        rule = next((r for r in settings.ignore if r.covers(finding)), None)
        if rule is not None and finding.status in SUPPRESSIBLE:
            message = f"Suppressed by {settings.place}: {rule.reason.rstrip('.')}."
            findings.append(finding.suppressed(settings.place, rule.reason, message))
        else:
            findings.append(finding)
    return replace(result, findings=tuple(findings))


def _unused(
    result: ScanResult, settings: Settings, codemods: Sequence[Codemod]
) -> Iterable[UnusedSuppression]:
    """Yield the suppressions without effect, and what is wrong with each."""
    from vlmend.codemods.codemod import UnusedSuppression
    from vlmend.codemods.suppressions import SUPPRESSIBLE

    ran = {codemod.id for codemod in codemods}
    known: set[str] | None = None
    for one in result.unused:
        if one.codemod in ran:
            yield one
            continue
        known = known if known is not None else set(known_codemods())
        if one.codemod not in known:
            near = nearest(one.codemod, known, "codemods")
            reason = f"there is no codemod {one.codemod}"
            yield replace(one, reason=f"{reason}; {near}" if near else reason)
    for rule in settings.ignore:
        if rule.codemod not in ran:
            known = known if known is not None else set(known_codemods())
            if rule.codemod not in known:
                near = nearest(rule.codemod, known, "codemods")
                reason = f"there is no codemod {rule.codemod}"
                reason = f"{reason}; {near}" if near else reason
                yield UnusedSuppression(settings.place, 0, rule.codemod, reason)
            continue
        if not any(
            f.status in SUPPRESSIBLE and rule.covers(f) for f in result.findings
        ):
            reason = f"{rule.codemod} has no finding on {rule.classes}"
            yield UnusedSuppression(settings.place, 0, rule.codemod, reason)


def _open(request: Request, stack: ExitStack) -> tuple[Target, Target | None]:
    from vlmend.cli.console import progress
    from vlmend.cli.targets import resolve_target

    no_place_to_write = UserError(
        f"{request.target}: only a directory can be written to",
        hint=f"vlmend preview {request.target} shows the same fixes as a diff",
    )
    if request.write and "@" in request.target and not Path(request.target).exists():
        raise no_place_to_write  # before anything is fetched
    with progress() as report:
        target = stack.enter_context(resolve_target(request.target, progress=report))
        if request.write and target.kind != "directory":
            raise no_place_to_write
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
    return pick_codemods(ids)[0]


def pick_codemods(
    ids: Sequence[str],
) -> tuple[tuple[Codemod, ...], tuple[ScanError, ...]]:
    """Return the codemods with these ids, and those of other packages that are broken.

    Raises:
        UserError: an id is unknown; the message names the nearest one.
    """
    from vlmend.codemods import all_codemods

    known = {codemod.id: codemod for codemod in all_codemods()}
    broken: tuple[ScanError, ...] = ()
    if not ids or not known.keys() >= set(ids):
        known, broken = _known()
    for wanted in ids:
        if wanted not in known:
            raise UserError(
                f"there is no codemod {wanted!r}",
                hint=nearest(wanted, known, "codemods")
                or next((error.message for error in broken), None),
            )
    chosen = tuple(known[wanted] for wanted in dict.fromkeys(ids))
    return (chosen, ()) if ids else (tuple(known.values()), broken)


def known_codemods() -> dict[str, Codemod]:
    """Return every codemod that can be used, by id."""
    return _known()[0]


def _known() -> tuple[dict[str, Codemod], tuple[ScanError, ...]]:
    """Return vlmend's own codemods and those of other packages, by id."""
    from vlmend.codemods import all_codemods
    from vlmend.codemods.installed import installed_codemods

    known = {codemod.id: codemod for codemod in all_codemods()}
    theirs, broken = installed_codemods(known)
    return known | {codemod.id: codemod for codemod in theirs}, broken


def require_a_match(result: ScanResult, selection: Selection) -> None:
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
