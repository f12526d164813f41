"""What can go wrong with one call, and how a run may end then."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from vlmend.cli.rig.exchange import PREFIX, Request, Response, invalid, refusal

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes."
LIMIT = "You have exceeded a secondary rate limit. Please wait."
OK, STOP, TROUBLE = 0, 3, 2


@dataclass(frozen=True)
class Fault:
    """What is answered instead, how often, and the exit codes that are right."""

    name: str
    forever: bool
    codes: tuple[int, ...]

    def answer(self, act: Callable[[], Response]) -> Response | None:
        match self.name:
            case "502 then ok" | "502 for ever":
                return refusal(502, "Bad Gateway")
            case "429 with Retry-After":
                return refusal(429, LIMIT, Retry_After="30")
            case "429 without Retry-After":
                return refusal(429, LIMIT)
            case "429 for ever":
                return refusal(429, LIMIT, Retry_After="60")
            case "403 secondary limit":
                return refusal(403, SECONDARY)
            case "403 primary limit":
                reset = str(int(time.time()) + 20)
                headers = {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": reset}
                return refusal(403, "API rate limit exceeded for user ID 1.", **headers)
            case "403 permission":
                return refusal(403, "Resource not accessible by personal access token")
            case "403 Actions may not":
                told = "GitHub Actions is not permitted to create or approve"
                return refusal(403, f"{told} pull requests.")
            case "404":
                return refusal(404, "Not Found")
            case "422 exists":
                return invalid("A pull request already exists for you:branch.")
            case "422 drafts":
                told = "Draft pull requests are not supported in this repository."
                return refusal(422, told)
            case "422 invalid":
                return invalid("it is not valid")
            case "422 not settled":
                return invalid("Could not resolve to a node")
            case "timeout":
                response = act()
                time.sleep(1.2)
                return response
            case "dropped after the write":
                act()
                return None
            case "dropped before":
                return None
        raise AssertionError(self.name)


API_FAULTS = (
    Fault("502 then ok", False, (OK,)),
    Fault("502 for ever", True, (TROUBLE,)),
    Fault("429 with Retry-After", False, (OK,)),
    Fault("429 without Retry-After", False, (OK,)),
    Fault("429 for ever", True, (STOP,)),
    Fault("403 secondary limit", False, (OK,)),
    Fault("403 primary limit", False, (OK,)),
    Fault("403 permission", True, (TROUBLE,)),
    Fault("403 Actions may not", True, (TROUBLE,)),
    Fault("404", True, (TROUBLE,)),
    Fault("422 exists", True, (TROUBLE,)),
    Fault("422 drafts", True, (TROUBLE,)),
    Fault("422 invalid", True, (TROUBLE,)),
    Fault("422 not settled", False, (OK,)),
    Fault("timeout", False, (OK,)),
    Fault("dropped after the write", False, (OK,)),
    Fault("dropped before", False, (OK,)),
)
GIT_FAULTS = (
    Fault("502 for ever", True, (TROUBLE,)),
    Fault("403 permission", True, (TROUBLE,)),
    Fault("404", True, (TROUBLE,)),
    # Git itself asks once; what was pushed is found by the next run, or by this one.
    Fault("dropped after the write", False, (OK, TROUBLE)),
    Fault("dropped before", False, (OK, TROUBLE)),
)


def faults_of(kind: str) -> tuple[Fault, ...]:
    """Return all that can happen to a kind of call."""
    return GIT_FAULTS if ".git/" in kind else API_FAULTS


def kind_of(request: Request) -> str:
    """Name a call, whatever its numbers and names."""
    path = re.sub(r"/\d+\b", "/N", request.path.removeprefix(PREFIX))
    path = re.sub(r"/[0-9a-f]{40}\b", "/SHA", path)
    keys = re.sub(r"=[^&]*", "", request.query)
    if "git" in path.rpartition("/")[2] or "info/refs" in path:
        keys = request.query
    return f"{request.method} {path}?{keys}"


def only_reads(request: Request) -> bool:
    """Say whether a call leaves everything as it is, so that before equals after."""
    return request.method == "GET" or request.path.endswith("git-upload-pack")
