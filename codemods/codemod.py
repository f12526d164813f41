"""The words that every part of vlmend shares.

A codemod judges model classes and yields *findings*. A finding is a value: what is
wrong (or right), where, and the chain of evidence that shows it. A finding that vlmend
can mend also carries *edits*: plain descriptions of a change, which the engine turns
into a proven patch. Nothing in this module reads files, prints, or knows about git.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from vlmend.codemods.analysis.model_index import ModelIndex


class Status(StrEnum):
    """What a codemod says about one class."""

    FIXABLE = "fixable"
    """A proven defect with a proven rewrite."""
    REVIEW = "review"
    """Right in all likelihood; a person must look before it is written."""
    BLOCKED = "blocked"
    """A real defect that no rewrite of ours can mend; the message says what would."""
    UNPROVEN = "unproven"
    """Suspected; the message says which fact is missing."""
    SATISFIED = "satisfied"
    """The contract is kept; the evidence cites the line that keeps it."""
    EXEMPT = "exempt"
    """The contract does not apply here, or is declined on purpose."""
    SUPPRESSED = "suppressed"
    """A finding that the tree's authors asked not to see."""


class Source(StrEnum):
    """Which body of code a piece of evidence was read from."""

    TREE = "tree"
    """The target that was asked about."""
    BASE = "base"
    """The vLLM tree that a plugin is judged against."""
    TRANSFORMERS = "transformers"
    """Facts about a Transformers release."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One link of a proof: a statement that can be checked at ``file:line``.

    Attributes:
        source: the body of code that ``file`` is relative to.
        file: POSIX path relative to the root of its source.
        line: 1-based line number.
        statement: what that line shows, in one sentence without a final full stop.
    """

    source: Source
    file: str
    line: int
    statement: str

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        return self.file, self.line

    def __reduce__(self) -> tuple[type[Evidence], tuple[Source, str, int, str]]:
        """Unpickle ten times as fast as frozen slots do; there are thousands."""
        return Evidence, (self.source, self.file, self.line, self.statement)


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a finding is not to be shown, and what it was.

    Attributes:
        place: ``comment``, or where the configuration stands that says so.
        reason: as the person wrote it; may be empty.
        status: what the finding was.
        message: what it said.
    """

    place: str
    reason: str
    status: Status
    message: str


class Edit(Protocol):
    """A plain, picklable description of one change to one file.

    Implementations live in :mod:`vlmend.codemods.rewriting`; they find their place by
    structure and line, and refuse (``EditError``) when the file is not as described.
    """

    @property
    def file(self) -> str:
        """POSIX path of the edited file, relative to the target's root."""
        ...

    @property
    def line(self) -> int:
        """1-based line of the untouched file that the change is anchored to."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """What one codemod says about one class, and why.

    Attributes:
        codemod: id of the codemod, for example ``delegate-intermediate-tensors``.
        module: dotted module of the class.
        class_name: bare name of the class.
        file: POSIX path relative to the root of its source.
        line: 1-based line where the defect (or the line that keeps the contract) is.
        class_line: 1-based line of the ``class`` statement; suppressions stand there.
        status: see :class:`Status`.
        message: one or two sentences for a person.
        evidence: the chain of facts, in reading order.
        heirs: ``module:Class`` of the classes that this same fix heals.
        shape: the defect in a few stable words; part of the fingerprint, so it must not
            contain line numbers.
        edits: what would mend it; empty unless ``fixable`` or ``review``.
        source: the body of code that ``file`` is relative to.
        suppression: why it is ``suppressed``, if it is.
    """

    codemod: str
    module: str
    class_name: str
    file: str
    line: int
    class_line: int
    status: Status
    message: str
    evidence: tuple[Evidence, ...] = ()
    heirs: tuple[str, ...] = ()
    shape: str = ""
    edits: tuple[Edit, ...] = ()
    source: Source = Source.TREE
    suppression: Suppression | None = None

    @property
    def key(self) -> str:
        """``module:Class``, the way heirs are written."""
        return f"{self.module}:{self.class_name}"

    @property
    def fingerprint(self) -> str:
        """16 hex digits naming this defect; survives line shifts and reformatting."""
        words = f"{self.codemod}\0{self.module}\0{self.class_name}\0{self.shape}"
        return hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def with_status(self, status: Status, message: str) -> Finding:
        """Return a copy that says something else and no longer edits anything."""
        return replace(self, status=status, message=message, edits=())

    def suppressed(self, place: str, reason: str, message: str) -> Finding:
        """Return a copy that is not to be shown; see :class:`Suppression`."""
        why = Suppression(place, reason, self.status, self.message)
        return replace(self.with_status(Status.SUPPRESSED, message), suppression=why)


@dataclass(frozen=True, slots=True)
class ScanError:
    """One file or class that could not be judged; the rest of the run goes on."""

    file: str
    message: str


@dataclass(frozen=True, slots=True)
class UnusedSuppression:
    """A request not to see a finding, where there is none to be seen.

    ``file`` and ``line`` are where it stands, ``codemod`` is the id that it names, and
    ``reason`` says why nothing came of it.
    """

    file: str
    line: int
    codemod: str
    reason: str


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model class of the target, as the coverage table lists it.

    Attributes:
        architectures: names under which the registry knows the class.
        multimodal: ``SupportsMultiModal`` stands in the class's MRO.
        pipeline_parallel: ``SupportsPP`` stands in the class's MRO.
    """

    module: str
    class_name: str
    file: str
    line: int
    source: Source
    architectures: tuple[str, ...]
    multimodal: bool
    pipeline_parallel: bool

    @property
    def key(self) -> str:
        """``module:Class``, the way heirs are written."""
        return f"{self.module}:{self.class_name}"


class Codemod(Protocol):
    """One contract of vLLM: how it is judged and how a breach is mended.

    The class docstring is the user documentation (Markdown); ``vlmend explain`` prints
    it and ``docs/codemods/`` is generated from it.
    """

    id: ClassVar[str]
    summary: ClassVar[str]

    def judge(self, index: ModelIndex) -> Iterator[Finding]:
        """Yield one finding for every class that the contract speaks about."""
        ...


@runtime_checkable
class Confirming(Protocol):
    """A codemod that can tell a proven repair from one that only looks right."""

    def doubt(self, index: ModelIndex, finding: Finding) -> str:
        """Say what is not proven about a class that was just mended; else nothing.

        Args:
            index: the tree with the patch laid over it.
            finding: what the patch mends.
        """
        ...


@runtime_checkable
class Demanding(Protocol):
    """A codemod that says what the tree demands, where that is dear to find out."""

    def demands(self, index: ModelIndex) -> Iterator[ContractNote]:
        """Say in a sentence each what the contract is in this tree."""
        ...


@dataclass(frozen=True, slots=True)
class ContractNote:
    """One sentence on what this tree demands, with the lines that show it."""

    name: str
    statement: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanResult:
    """All that one scan found: every status, nothing filtered.

    Attributes:
        findings: sorted by file, line, codemod.
        models: every multimodal or pipeline-parallel class of the target.
        contract: what this tree's own code demands (the era), as notes.
        errors: files that could not be read or judged.
        unused: comments that suppress nothing.
        basis: for each ``module:Class``, the questions that were asked about it, each
            with a digest of all that its answer was read from: where that is the same
            in two results, so is the answer. Which questions come up at all depends on
            what was remembered; those that both results have tell.
    """

    findings: tuple[Finding, ...]
    models: tuple[ModelInfo, ...]
    contract: tuple[ContractNote, ...]
    errors: tuple[ScanError, ...] = field(default=())
    unused: tuple[UnusedSuppression, ...] = field(default=())
    basis: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]], compare=False
    )


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Order findings the way a reader goes through a tree."""
    return tuple(
        sorted(findings, key=lambda f: (f.file, f.line, f.codemod, f.class_name))
    )
