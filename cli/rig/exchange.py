"""One request and one answer, in GitHub's forms."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs

PREFIX: Final = "/api/v3"


@dataclass(frozen=True)
class Request:
    """One request as it came in."""

    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.body or b"{}")
        assert isinstance(found, dict)
        return found

    def parameter(self, name: str, default: str = "") -> str:
        return parse_qs(self.query).get(name, [default])[0]


@dataclass(frozen=True)
class Response:
    """One answer as it goes out."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def answer(status: int, document: object, **headers: str) -> Response:
    """Return a JSON answer."""
    fields = {"Content-Type": "application/json; charset=utf-8"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, json.dumps(document).encode(), fields)


def refusal(status: int, message: str, **headers: str) -> Response:
    """Return an error in GitHub's form."""
    document: dict[str, object] = {
        "message": message,
        "documentation_url": "https://docs.github.com/rest",
    }
    if status != 422:
        document["status"] = str(status)
    return answer(status, document, **headers)


def invalid(message: str, field_name: str = "base") -> Response:
    """Return GitHub's form of "validation failed"."""
    errors = [{"resource": "PullRequest", "code": "custom", "message": message}]
    errors[0]["field"] = field_name
    return answer(
        422,
        {
            "message": "Validation Failed",
            "errors": errors,
            "documentation_url": "https://docs.github.com/rest",
        },
    )
