"""Writing files so that nobody ever finds half of one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from vlmend.cli.errors import Refused, UserError


def replace_file(path: Path, before: bytes, after: bytes) -> None:
    """Put ``after`` in place of ``before``, wholly or not at all.

    The new content is written beside the file and takes its place in one step, with the
    same mode and owner. A link is followed: the file behind it changes, the link stays.

    Raises:
        UserError: the file changed since it was read, or it cannot be written.
    """
    real = path.resolve()
    try:
        if real.read_bytes() != before:
            raise UserError(f"{path}: changed while vlmend was reading; left alone")
        _swap(real, after)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"{path}: cannot be written: {reason}; left as it was"
        ) from error


def write_file(path: Path, content: bytes) -> None:
    """Write a file of our own, new or in place of an older one, wholly or not at all.

    What is no regular file (a pipe, ``/dev/stdout``) is written to as it is.

    Raises:
        UserError: it cannot be written.
    """
    real = path.resolve()
    try:
        if real.exists() and not real.is_file():
            real.write_bytes(content)
        else:
            _swap(real, content)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{path}: cannot be written: {reason}") from error


def _swap(path: Path, content: bytes) -> None:
    state = path.stat() if path.exists() else None
    # The name is chosen before the file is there: an interrupt finds what to take away,
    # whenever it comes.
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}.vlmend")
    try:
        with open(scratch, "xb", opener=_private) as stream:
            stream.write(content)
            stream.flush()
            descriptor = stream.fileno()
            if state is None:
                os.fchmod(descriptor, 0o666 & ~_umask())
            else:
                with suppress(PermissionError):  # only root may give files away
                    os.fchown(descriptor, state.st_uid, state.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(state.st_mode))
            os.fsync(descriptor)
        scratch.replace(path)
    except FileExistsError:
        raise  # the name is another's
    except BaseException:  # an interrupt, too, must not leave the scratch file behind
        with suppress(OSError):
            scratch.unlink()
        raise


def _private(name: str, flags: int) -> int:
    """Open a file that nobody else may read before it has its own mode."""
    return os.open(name, flags, 0o600)


def _umask() -> int:
    # The only way to ask is to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def uncommitted(root: Path, files: Iterable[str]) -> frozenset[str]:
    """Return those of ``files`` whose content git could not give back.

    A folder outside any git work tree has nothing that is committed; so nothing in it
    is uncommitted either.

    Raises:
        Refused: there is a work tree, but git cannot be asked about it.
    """
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return frozenset()
    names = list(files)
    if not names:
        return frozenset()
    try:
        import git
    except ImportError:  # GitPython's way to say that there is no git program
        raise Refused(
            f"{root}: is a git work tree, and git was not found to look for changes",
            hint="install git, or take the risk with --allow-dirty",
        ) from None
    program = git.Git(root)
    try:
        # A repository's own settings must not run programs of its choice here.
        listed = program.execute(
            ["git", "-c", "core.fsmonitor=false", "status", "--porcelain=v1", "-z"]
            + ["--no-renames", "--untracked-files=all", "--"]
            + [f":(literal){name}" for name in names],
            env={"GIT_OPTIONAL_LOCKS": "0"},
            strip_newline_in_stdout=False,
        )
        prefix = program.execute(["git", "rev-parse", "--show-prefix"])
    except git.GitCommandError as error:
        reason = " ".join(str(error.stderr).replace("stderr:", "").split())
        raise Refused(
            f"{root}: git cannot tell what is uncommitted: {reason}",
            hint="put that right, or take the risk with --allow-dirty",
        ) from error
    changed = {entry[3:] for entry in str(listed).split("\0") if entry}
    return frozenset(name for name in names if f"{prefix}{name}" in changed)
