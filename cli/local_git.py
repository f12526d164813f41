"""Quick questions to the git of a local repository.

GitPython costs a tenth of a second before its first answer; what a scan of a work tree
asks on every run is asked here. Nothing that a repository configures runs for it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from vlmend.cli.errors import UserError

_SETTINGS: Final = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_ELSEWHERE: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Set in a hook; they would lead to another repository, or to half of an index."""

_REGULAR: Final = (b"100644", b"100755", b"100664")


class LocalGit:
    """Git, asked from inside one folder.

    Args:
        place: a folder of a work tree, or of a bare repository.
    """

    def __init__(self, place: Path) -> None:
        self.place = place

    def ask(
        self, *words: str, ok: Sequence[int] = (0,), given: bytes = b""
    ) -> tuple[int, bytes]:
        """Run a command that changes nothing; return its exit code and output.

        Raises:
            UserError: git is not there, or the exit code is not one of ``ok``.
        """
        variables = {k: v for k, v in os.environ.items() if k not in _ELSEWHERE}
        try:
            done = subprocess.run(
                ["git", *_SETTINGS, "-C", self.place, *words],
                input=given,
                capture_output=True,
                env={**variables, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
                check=False,
            )
        except FileNotFoundError as error:
            raise UserError("git was not found", hint="install git") from error
        if done.returncode in ok:
            return done.returncode, done.stdout
        said = done.stderr.decode("utf-8", "replace")
        if "dubious ownership" in said:
            raise UserError(
                f"{self.place}: git refuses a repository of another owner",
                hint=f"git config --global --add safe.directory {self.place}",
            )
        if "not a git repository" in said:
            raise UserError(f"{self.place}: not a git repository")
        lines = said.strip().splitlines() or ["it did not say why"]
        raise UserError(f"{self.place}: git {words[0]}: {lines[-1]}")

    def text(self, *words: str) -> str:
        """Return what a command prints, without the last line end."""
        return os.fsdecode(self.ask(*words)[1]).rstrip("\n")

    def commit(self, revision: str) -> str | None:
        """Return the full id of the commit that a revision names, if there is one."""
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options")
        code, out = self.ask(*words, revision + "^{commit}", ok=(0, 1, 128))
        return out.decode("ascii").strip() if code == 0 else None

    @property
    def is_shallow(self) -> bool:
        """Whether the history was cut when the repository was cloned."""
        return self.text("rev-parse", "--is-shallow-repository") == "true"

    def contents(
        self, commit: str, names: Sequence[str], below: str
    ) -> dict[str, bytes | None]:
        """Return files as a commit has them; ``None`` where it has no such file.

        Args:
            names: relative to ``below``, which ends with a slash or is empty.
        """
        paths = {os.fsencode(f"{below}{name}"): name for name in names}
        # Very many names do not fit on a command line; then all are listed.
        asked = [os.fsdecode(path) for path in paths] if len(paths) <= 500 else []
        listed = self.ask(
            *(
                "--literal-pathspecs",
                "ls-tree",
                "-r",
                "-z",
                "--full-tree",
                commit,
                "--",
            ),
            *asked,
        )[1]
        found: dict[str, bytes] = {}
        for record in listed.split(b"\0"):
            head, _, path = record.partition(b"\t")
            if path in paths and head.split(b" ")[0] in _REGULAR:
                found[paths[path]] = head.split(b" ")[2]
        batch = b"".join(each + b"\n" for each in found.values())
        out = self.ask("cat-file", "--batch", given=batch)[1] if found else b""
        contents: dict[str, bytes | None] = dict.fromkeys(names)
        for name in found:
            head, _, rest = out.partition(b"\n")
            size = int(head.split(b" ")[2])
            contents[name], out = rest[:size], rest[size + 1 :]
        return contents
