"""One way to call the API: spaced writes, visible waits, bounded patience.

PyGithub's own retries are off: they wait in silence, and repeat a POST that may have
worked. Here a write whose outcome is unknown is looked up before it is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from vlmend.cli.console import note
from vlmend.cli.errors import Refused, UserError
from vlmend.cli.world import World

if TYPE_CHECKING:
    from github import GithubException

Result = TypeVar("Result")

BETWEEN_WRITES: Final = 1.0
_PAUSES: Final = (1.0, 3.0, 8.0)
"""Waits before another try when the server fails; then it is given up."""
_NO_HINT_WAIT: Final = 60.0
"""GitHub's advice for a limit that names no time."""


class LimitReached(Refused):
    """The forge asks for more patience than ``--max-wait`` allows; a clean stop."""


class ForgeError(UserError):
    """The forge said no, or said nothing.

    Attributes:
        status: the HTTP status, 0 where there was no answer.
        told: what the forge said.
    """

    def __init__(
        self, message: str, status: int, told: str, *, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.told = told

    def __reduce__(self) -> tuple[object, ...]:
        return (ForgeError, (self.message, self.status, self.told))


class Calls:
    """Makes calls, one after the other.

    Args:
        world: time and patience.
        max_wait: seconds that a run may wait for limits, all in all.
        mask: takes secrets out of what a server says; one may repeat what it was sent.
    """

    def __init__(
        self, world: World, max_wait: float, mask: Callable[[str], str] = str
    ) -> None:
        self._clock = world.clock
        self._mask = mask
        self._max_wait = max_wait
        self._waited = 0.0
        self._wrote_at: float | None = None

    def read(self, what: str, act: Callable[[], Result]) -> Result:
        """Make a call that changes nothing.

        Args:
            what: for messages, as in "list pull requests of x/y".
            act: the call; anything lazy must be used up in it.

        Raises:
            ForgeError: no, or no answer.
            LimitReached: the wait would be too long.
        """
        return self._run(what, act, lambda: None)

    def write(
        self,
        what: str,
        act: Callable[[], Result],
        landed: Callable[[], Result | None] = lambda: None,
    ) -> Result:
        """Make a call that changes something.

        Args:
            what: for messages, as in "open a pull request".
            act: the call.
            landed: looks for the result of an earlier try whose answer was lost; leave
                it out where doing it twice is the same as doing it once.
        """
        return self._run(what, lambda: self._spaced(act), landed)

    def _spaced(self, act: Callable[[], Result]) -> Result:
        if self._wrote_at is not None:
            left = self._wrote_at + BETWEEN_WRITES - self._clock.now()
            if left > 0:
                self._clock.sleep(left)
        try:
            return act()
        finally:
            self._wrote_at = self._clock.now()

    def _run(
        self,
        what: str,
        act: Callable[[], Result],
        landed: Callable[[], Result | None],
    ) -> Result:
        from github import GithubException
        from requests.exceptions import RequestException

        pauses = iter(_PAUSES)
        while True:
            try:
                return act()
            except RequestException as error:
                failure = ForgeError(
                    f"cannot {what}: no answer ({_network_words(error)})", 0, ""
                )
            except RuntimeError as error:  # PyGithub's word for a redirect elsewhere
                told = self._mask(" ".join(str(error).split()))
                raise ForgeError(f"cannot {what}: {told}", 0, told) from None
            except GithubException as error:
                wait = _limit_wait(error, self._clock.now())
                if wait is not None:
                    self._wait(what, wait)
                    continue
                failure = _failure(what, error, self._mask)
                if error.status < 500 and not _not_settled(error):
                    raise failure from None
            pause = next(pauses, None)
            if pause is not None:
                # What was sent may still be on its way to be done: wait, then look.
                self._clock.sleep(pause)
            found = landed()
            if found is not None:
                return found
            if pause is None:
                raise failure from None

    def poll(self, act: Callable[[], bool], pauses: tuple[float, ...]) -> bool:
        """Try something that takes time on the other side until it works."""
        for pause in (*pauses, None):
            if act():
                return True
            if pause is not None:
                self._clock.sleep(pause)
        return False

    def _wait(self, what: str, seconds: float) -> None:
        if self._waited + seconds > self._max_wait:
            raise LimitReached(
                f"cannot {what}: GitHub's rate limit asks for {seconds:.0f} s more,"
                f" --max-wait allows {max(self._max_wait - self._waited, 0):.0f} s",
                hint="run the same command later; it goes on where it stopped",
            )
        self._waited += seconds
        note(f"rate limit: waiting {seconds:.0f} s before another try to {what}")
        self._clock.sleep(seconds)


def _limit_wait(error: GithubException, now: float) -> float | None:
    """Return how long GitHub asks to wait, or None where it is no limit."""
    from github.Requester import Requester

    if error.status not in (403, 429):
        return None
    headers = {k.casefold(): str(v) for k, v in (error.headers or {}).items()}
    message = str(_told(error))
    if error.status == 403 and not (
        "retry-after" in headers or Requester.isRateLimitError(message)
    ):
        return None
    with suppress(KeyError, ValueError):
        return max(float(headers["retry-after"]), 1.0)
    if headers.get("x-ratelimit-remaining") == "0":
        with suppress(KeyError, ValueError):
            return max(float(headers["x-ratelimit-reset"]) - now, 0.0) + 1.0
    return _NO_HINT_WAIT


def _not_settled(error: GithubException) -> bool:
    # What was written a moment ago is not known everywhere yet.
    return error.status == 422 and "could not resolve" in str(error.data).casefold()


def _told(error: GithubException) -> str:
    data = error.data
    if not isinstance(data, dict):
        return str(data or error.message or "")
    details = [
        str(item.get("message") or item.get("code") or "")
        for item in data.get("errors") or ()
        if isinstance(item, dict)
    ]
    parts = [str(data.get("message") or ""), *details]
    return ": ".join(part for part in parts if part)


def _failure(
    what: str, error: GithubException, mask: Callable[[str], str]
) -> ForgeError:
    told = mask(" ".join(_told(error).split()))
    hint = None
    if error.status == 401:
        hint = "the token is not valid (any more)"
    elif error.status in (301, 307, 308):
        hint = "it was renamed meanwhile; run the same command again"
    elif error.status == 403:
        hint = _permission_hint(told)
    elif error.status == 404:
        hint = "it does not exist, or the token cannot see it"
    elif error.status >= 500:
        hint = "GitHub has trouble; run the same command later"
    words = f"cannot {what}: {told or 'refused'} ({error.status})"
    return ForgeError(words, error.status, told, hint=hint)


def _permission_hint(told: str) -> str:
    if "github actions" in told.casefold():
        return (
            "in the fork: Settings, Actions, General: allow GitHub Actions to create"
            " pull requests; or use another token"
        )
    return "the token needs 'Contents' and 'Pull requests', both read and write"


def _network_words(error: Exception) -> str:
    from requests.exceptions import Timeout

    if isinstance(error, Timeout):
        return "timeout"
    return type(error).__name__
