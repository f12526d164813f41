"""From a class and what is said of it to a finding about it."""

from __future__ import annotations

from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.values import ClassRef
from vlmend.codemods.codemod import Edit, Evidence, Finding, Status


def finding_about(
    index: ModelIndex,
    codemod: str,
    ref: ClassRef,
    status: Status,
    message: str,
    evidence: tuple[Evidence, ...],
    at: tuple[str, int],
    *,
    shape: str = "",
    heirs: tuple[ClassRef, ...] = (),
    edits: tuple[Edit, ...] = (),
) -> Finding:
    """Return the finding that a codemod has about one class.

    Args:
        index: the tree.
        codemod: id of the codemod.
        ref: the class.
        status: what is said.
        message: one or two sentences.
        evidence: the chain of facts; a fact that occurs twice is told once.
        at: file and 1-based line where it shows. A finding has one file, the class's
            own: for a line of another file, or line 0, the class line stands in.
        shape: the defect in a few stable words; the status where there is no defect.
        heirs: the classes that the same fix heals.
        edits: what mends it.
    """
    file = index.file_of(ref)
    class_line = index.class_of(ref).line
    shown_in, line = at
    return Finding(
        codemod=codemod,
        module=ref.module,
        class_name=ref.name,
        file=file,
        line=line if line and shown_in == file else class_line,
        class_line=class_line,
        status=status,
        message=message,
        evidence=tuple(dict.fromkeys(evidence)),
        heirs=tuple(sorted(heir.key for heir in heirs)),
        shape=shape or status.value,
        edits=edits,
        source=index.source_kind(ref.module),
    )


def exempt_because(
    index: ModelIndex, codemod: str, ref: ClassRef, reason: Evidence
) -> Finding:
    """Return the finding that a contract does not apply to a class, and why."""
    said, place = reason.statement, reason.place
    return finding_about(index, codemod, ref, Status.EXEMPT, said, (reason,), place)
