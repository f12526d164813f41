"""Checks every exchange with the stand-in against GitHub's own description."""

from __future__ import annotations

from typing import Any

from openapi_core import OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError
from werkzeug.datastructures import Headers, ImmutableMultiDict

from vlmend.cli.rig.exchange import PREFIX, Request, Response


class _Asked:
    host_url = "https://api.github.com"

    def __init__(self, request: Request) -> None:
        from urllib.parse import parse_qsl

        self.path = request.path.removeprefix(PREFIX)
        self.method = request.method.lower()
        self.body = request.body or None
        kind = request.headers.get("Content-Type", "application/json")
        self.content_type = kind.partition(";")[0]
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(parse_qsl(request.query)),
            header=Headers(list(request.headers.items())),
            cookie=ImmutableMultiDict(),
        )


class _Answered:
    def __init__(self, response: Response) -> None:
        self.status_code = response.status
        self.data = response.body
        kind = response.headers.get("Content-Type", "")
        self.content_type = kind.partition(";")[0]
        self.headers = Headers(list(response.headers.items()))


class Checker:
    """Holds the description; collects what does not follow it."""

    def __init__(self, description: dict[str, Any]) -> None:
        self._api = OpenAPI.from_dict(description)
        self.problems: list[str] = []
        self.checked = 0
        self._known: set[tuple[str, str, int, bytes]] = set()

    def check(
        self, request: Request, response: Response, *, made_up: bool = False
    ) -> None:
        """Check one exchange.

        A fault may refuse a call with a status that GitHub's description leaves out
        there (any call can be forbidden); its answer is ``made_up`` by the test.
        """
        if not request.path.startswith(PREFIX) or response.status in (301, 307):
            return
        if "/repositories/" in request.path:
            return  # where a redirect leads; GitHub's description leaves it out
        self.checked += 1
        # The same exchange again says nothing new.
        key = (request.method, request.path, response.status, response.body)
        if key in self._known:
            return
        self._known.add(key)
        asked, answered = _Asked(request), _Answered(response)
        told = f"{request.method} {request.path}?{request.query} {response.status}"
        try:
            self._api.validate_request(asked)
        except OpenAPIError as error:
            self.problems.append(f"{told}: request: {_words(error)}")
        if response.status in (401, 429, 502):
            return  # GitHub's description leaves these out
        try:
            self._api.validate_response(asked, answered)
        except OpenAPIError as error:
            if made_up and type(error).__name__ == "ResponseNotFound":
                return
            self.problems.append(f"{told}: response: {_words(error)}")


def _words(error: BaseException) -> str:
    parts = [f"{type(error).__name__}"]
    cause = error.__cause__
    if cause is not None:
        details = getattr(cause, "schema_errors", None) or [cause]
        parts += [
            str(getattr(d, "message", d))[:300]
            + " at "
            + str(list(getattr(d, "absolute_path", [])))
            for d in list(details)[:4]
        ]
    return "; ".join(parts)
