"""The two states of a tree that a proof compares, as folders that Python can import."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vlmend.cli.cache import cache_directory, make_private
from vlmend.cli.errors import UserError
from vlmend.cli.proof.shadow import export, make_shadow

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged
    from vlmend.cli.targets import Target
    from vlmend.codemods.codemod import Finding


@dataclass
class State:
    """Folders for Python's path, and what has to be cleaned up after."""

    roots: list[Path]
    resources: ExitStack = field(default_factory=ExitStack, repr=False)

    def close(self) -> None:
        """Remove what was made."""
        self.resources.close()


def trees_of(
    judged: Judged, findings: Sequence[Finding], target: str, before: str | None
) -> tuple[State, State]:
    """Return the state before and the state after.

    Args:
        judged: the tree with the findings.
        findings: whose edits make the state after.
        target: as typed; with ``before``, it is the state after.
        before: as typed, or None.

    Raises:
        UserError: a patch does not pass its own proof, or a tree cannot be had.
    """
    old, new = State([]), State([])
    base = [_folder(judged.base, old)] if judged.base else []
    root = _folder(judged.target, old)
    if before is not None:
        from vlmend.cli.targets import resolve_target

        other = new.resources.enter_context(resolve_target(target))
        old.roots = _shown([root, *base], {})
        new.roots = _shown([_folder(other, new), *base], {})
        return old, new
    patches = judged.patches(findings)
    if not patches:
        reasons = "; ".join(error.message for error in judged.failures)
        raise UserError(f"there is no change to prove: {reasons or 'no patch'}")
    changed = {patch.file: patch.after for patch in patches}
    old.roots = _shown([root, *base], {})
    new.roots = _shown([root, *base], changed)
    return old, new


def _folder(target: Target, state: State) -> Path:
    if target.root is not None:
        return target.root
    folder = "vllm" if target.layout == "vllm" else ""
    if target.revision is not None:
        # What a revision holds never changes: it is written once.
        inside = getattr(target.tree, "prefix", "")
        words = f"{target.revision}\0{folder}\0{inside}"
        name = f"revision-{hashlib.sha256(words.encode()).hexdigest()[:16]}"
        return export(target.tree, folder, _store() / name)
    place = state.resources.enter_context(tempfile.TemporaryDirectory())
    return export(target.tree, folder, Path(place, "tree"))


def _shown(roots: Sequence[Path], changed: Mapping[str, bytes]) -> list[Path]:
    """Show the packages of each root; the change is laid over the first."""
    shown: list[Path] = []
    for root in roots:
        patched = changed if not shown else {}
        words = [str(root), *(f"{n}\0" for n in sorted(patched))]
        digest = hashlib.sha256("\0".join(words).encode())
        for name in sorted(patched):
            digest.update(patched[name])
        # The same state has the same place, so that its compiled modules are found.
        shown.append(make_shadow(root, _store() / digest.hexdigest()[:16], patched))
    return shown


def _store() -> Path:
    store = cache_directory() / "verify" / "trees"
    make_private(store)
    return store
