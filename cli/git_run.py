"""Running git where nothing of the tree's, or of the user's, can act on its own.

Hooks, credential helpers, pagers and editors are off. The token reaches git through a
small script that reads one environment variable, and only for calls that talk to the
forge.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from vlmend.cli.errors import UserError
from vlmend.cli.forge.token import Token

_SECRET: Final = "VLMEND_GIT_SECRET"  # noqa: S105 - the name of a variable
_ASKPASS: Final = f"""#!/bin/sh
case "$1" in
[Uu]sername*) printf '%s\\n' x-access-token ;;
*) printf '%s\\n' "${_SECRET}" ;;
esac
"""
_QUIET: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TRACE_REDACT": "1",
    # Configuration can ask for these, too, and can have variables written out.
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
}
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "http.followRedirects=initial",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "maintenance.auto=false",
    "gc.auto=0",
)
_INHERITED: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
)
_LOUD: Final = ("GIT_TRACE", "GIT_CURL_VERBOSE")
"""What begins so makes git write down what it sends, and with which variables."""


class GitFailed(UserError):
    """Git ended with an error.

    Attributes:
        told: what git said, secrets taken out.
    """

    def __init__(self, message: str, told: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.told = told

    def __reduce__(self) -> tuple[object, ...]:
        return (GitFailed, (self.message, self.told))


class GitRunner:
    """Runs git commands in one folder.

    Args:
        folder: where git runs.
        token: for :meth:`network`; None reaches public repositories only.
    """

    def __init__(self, folder: Path, token: Token | None = None) -> None:
        try:
            import git
        except ImportError:  # GitPython's way to say that there is no git program
            raise UserError("git was not found", hint="install git") from None
        loud = [name for name in os.environ if name.startswith(_LOUD)]
        for name in (*_INHERITED, *loud):
            # Set by a hook that runs vlmend; they would redirect every call below.
            os.environ.pop(name, None)
        self.folder = folder
        self._program = git.Git(folder)
        self._token = token

    def run(
        self,
        *words: str,
        given: bytes | None = None,
        env: Mapping[str, str] | None = None,
        settings: Iterable[str] = (),
    ) -> str:
        """Run git without the token; return what it printed.

        Args:
            words: the subcommand and its arguments; put ``--`` before any name.
            given: standard input.
            env: variables to set.
            settings: ``key=value`` pairs for this call.
        """
        return self._run(words, given, env or {}, settings).decode(
            "utf-8", "surrogateescape"
        )

    def raw(self, *words: str, given: bytes | None = None) -> bytes:
        """Run git without the token; return the exact bytes that it printed."""
        return self._run(words, given, {}, ())

    def network(self, *words: str, given: bytes | None = None) -> str:
        """Run a git command that talks to the forge; only this one gets the token."""
        with self._asking() as env:
            return self._run(words, given, env, ()).decode("utf-8", "replace")

    @contextmanager
    def _asking(self) -> Generator[dict[str, str]]:
        if self._token is None:
            yield {}
            return
        with tempfile.TemporaryDirectory(prefix="vlmend-") as folder:
            script = Path(folder) / "askpass"
            script.touch(mode=0o700)
            script.write_text(_ASKPASS)
            yield {"GIT_ASKPASS": str(script), _SECRET: self._token.reveal()}

    def _run(
        self,
        words: tuple[str, ...],
        given: bytes | None,
        env: Mapping[str, str],
        settings: Iterable[str],
    ) -> bytes:
        import git

        command = ["git"]
        for setting in (*_SETTINGS, *settings):
            command += ["-c", setting]
        with tempfile.TemporaryFile() as stdin:
            stdin.write(given or b"")
            stdin.seek(0)
            try:
                done = self._program.execute(
                    [*command, *words],
                    istream=stdin,
                    env={**_QUIET, **env},
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                )
            except git.GitCommandError as error:
                raise self._failure(words[0], error) from None
        return bytes(done)

    def _failure(self, verb: str, error: Exception) -> GitFailed:
        # GitPython's own report repeats the command; what git said is enough.
        parts = (getattr(error, "stderr", ""), getattr(error, "stdout", ""))
        told = "\n".join(
            part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part)
            for part in parts
            if part
        )
        told = told.replace("stderr:", "").replace("stdout:", "").strip(" '\n")
        if self._token is not None:
            told = self._token.masked(told)
        return GitFailed(f"git {verb} failed: {_telling_line(told)}", told)


def _telling_line(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    for lead in ("remote: error:", "fatal:", "error:", "remote:"):
        found = [line for line in lines if line.startswith(lead)]
        if found:
            return found[0].removeprefix("remote: ")
    return lines[-1] if lines else "it did not say why"
