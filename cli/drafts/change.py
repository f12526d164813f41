"""One proposed change: its proven patches, and everything that is derived from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from vlmend.cli.workspace import digest_of
from vlmend.codemods.codemod import Finding
from vlmend.codemods.engine import FilePatch

_HUNK: Final = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@.*$", re.MULTILINE)


@dataclass(frozen=True)
class AddedFile:
    """A file that a change adds: its regression test."""

    file: str
    after: bytes

    def diff(self) -> str:
        """Return a unified diff that makes the file."""
        lines = self.after.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        added = "".join(f"+{line}" for line in lines)
        head = f"--- /dev/null\n+++ b/{self.file}\n@@ -0,0 +1,{len(lines)} @@\n"
        return head + added


@dataclass(frozen=True)
class Change:
    """What one pull request holds.

    Attributes:
        codemod: whose findings it mends.
        scope: the last part of the branch's name.
        patches: the final diff, file by file; all that follows comes from here.
        tests: the regression tests that belong to it.
    """

    codemod: str
    scope: str
    patches: tuple[FilePatch, ...]
    tests: tuple[AddedFile, ...] = ()

    @property
    def branch(self) -> str:
        return f"vlmend/{self.codemod}/{self.scope}"

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the patches really mend, in the order of the files."""
        found = {f.fingerprint: f for patch in self.patches for f in patch.findings}
        return tuple(found.values())

    @property
    def fingerprints(self) -> tuple[str, ...]:
        return tuple(sorted(f.fingerprint for f in self.findings))

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f.class_name for f in self.findings))

    @property
    def labels(self) -> tuple[str, ...]:
        return ("vlmend", self.codemod)

    @property
    def parts(self) -> tuple[FilePatch | AddedFile, ...]:
        """All files of the change, the tests last."""
        return (*self.patches, *self.tests)

    @property
    def files(self) -> Mapping[str, bytes]:
        return {part.file: part.after for part in self.parts}

    @cached_property
    def diff(self) -> str:
        return "".join(part.diff() for part in self.parts)

    @cached_property
    def digest(self) -> str:
        """Stands for the change wherever in its files it ends up."""
        return diff_digest(self.diff)

    @cached_property
    def added_lines(self) -> tuple[str, ...]:
        return tuple(
            line[1:]
            for patch in self.patches
            for line in patch.diff(0).splitlines()
            if line.startswith("+") and not line.startswith("+++")
        )


def diff_digest(diff: str) -> str:
    """Return a digest of a diff that does not depend on line numbers."""
    return digest_of([_HUNK.sub("@@", diff)])


def hunk_ranges(diff: str) -> list[tuple[int, int]]:
    """Return the (first, last) lines of the old file that each hunk stands in."""
    found: list[tuple[int, int]] = []
    for start, count in _HUNK.findall(diff):
        first, length = int(start), int(count or 1)
        # A hunk without old lines stands between two of them.
        found.append((first, first + max(length, 1) - 1))
    return found


def changes_of(
    groups: Mapping[tuple[str, str], Sequence[Finding]],
    patched: Mapping[tuple[str, str], Iterable[FilePatch]],
) -> list[Change]:
    """Return the changes that remain once each group's patches are proven."""
    found: list[Change] = []
    for codemod, scope in groups:
        patches = tuple(patched.get((codemod, scope), ()))
        if patches:
            found.append(Change(codemod, scope, patches))
    return found
