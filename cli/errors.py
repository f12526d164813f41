"""What goes wrong for reasons that a person can do something about."""

from __future__ import annotations

from typing import Final

EXIT_TROUBLE: Final = 2
"""Exit code of a wrong call, a bad target, or a tool that failed."""
EXIT_REFUSED: Final = 3
"""Exit code of a request that vlmend declines on purpose."""


class UserError(Exception):
    """A failure that ends the command with one line, not with a traceback.

    Attributes:
        message: one line: what is wrong, and where.
        hint: one line on what to do about it, or None.
        exit_code: the exit code that the command ends with.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, exit_code: int = EXIT_TROUBLE
    ) -> None:
        one_line = " ".join(message.split())
        super().__init__(one_line)
        self.message = one_line
        self.hint = None if hint is None else " ".join(hint.split())
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the trip home from a worker process, keywords included."""
        return (_rebuild, (type(self), self.message, self.hint, self.exit_code))


class Refused(UserError):
    """A request that vlmend declines on purpose: exit code 3."""

    def __init__(
        self, message: str, *, hint: str | None = None, exit_code: int = EXIT_REFUSED
    ) -> None:
        super().__init__(message, hint=hint, exit_code=exit_code)


def _rebuild(
    kind: type[UserError], message: str, hint: str | None, exit_code: int
) -> UserError:
    return kind(message, hint=hint, exit_code=exit_code)
