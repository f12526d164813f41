"""Serves the stand-in API and the real ``git http-backend``, on loopback only."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from base64 import b64decode
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from vlmend.cli.rig.api import Api
from vlmend.cli.rig.exchange import PREFIX, Request, Response, refusal
from vlmend.cli.rig.model import Forge, Repository

Intercept = Callable[[Request, Callable[[], Response]], Response | None]
"""Stands between a request and its answer; None drops the connection."""

_GIT: Final = re.compile(r"/([^/]+/[^/]+?)\.git(/.*)")


class Rig:
    """One running stand-in.

    Attributes:
        forge: what it remembers.
        url: base URL of the API.
        intercept: see :data:`Intercept`.
    """

    def __init__(self, forge: Forge, intercept: Intercept | None = None) -> None:
        self.forge = forge
        self.intercept = intercept
        self._lock = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, rig=self))
        self.web = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.web}{PREFIX}"
        self.api = Api(forge, self.url)

    @contextmanager
    def running(self) -> Generator[Rig]:
        """Serve until the end of the ``with``."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def respond(self, request: Request) -> Response | None:
        """Answer a request, or not."""

        def act() -> Response:
            if request.path.startswith(PREFIX):
                with self._lock:
                    return self.api.answer(request)
            return self._git(request)

        if self.intercept is None:
            return act()
        return self.intercept(request, act)

    def _git(self, request: Request) -> Response:
        found = _GIT.fullmatch(request.path)
        if found is None:
            return refusal(404, "Not Found")
        repo = self.forge.find(found[1])
        if repo is None:
            return self._moved(request, found[1], found[2])
        if repo.not_ready:
            repo.not_ready -= 1
            return refusal(404, "Not Found")
        login = self._login(request.headers.get("Authorization", ""))
        writes = "receive-pack" in f"{request.path}?{request.query}"
        if login is None:
            # Reading a public repository needs no login; a wrong one is refused.
            if "Authorization" in request.headers or writes:
                return Response(401, b"", {"WWW-Authenticate": 'Basic realm="GitHub"'})
        elif writes and login not in repo.writers:
            return Response(403, b"Permission denied\n", {"Content-Type": "text/plain"})
        return _backend(repo, found[2], request, login or "")

    def _moved(self, request: Request, name: str, rest: str) -> Response:
        """Lead from a former name to the current one, as GitHub does for git, too."""
        number = self.forge.former_names.get(name.casefold())
        repo = self.forge.repositories.get(number or 0)
        if repo is None:
            return refusal(404, "Not Found")
        query = f"?{request.query}" if request.query else ""
        where = f"{self.web}/{repo.full_name}.git{rest}{query}"
        return Response(301, b"", {"Location": where})

    def _login(self, authorization: str) -> str | None:
        with suppress(ValueError):
            pair = b64decode(authorization.removeprefix("Basic ")).decode()
            account = self.forge.accounts.get(pair.partition(":")[2])
            return None if account is None else account.login
        return None


def _backend(repo: Repository, rest: str, request: Request, login: str) -> Response:
    variables = {
        "PATH": os.environ.get("PATH", ""),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PROJECT_ROOT": str(repo.folder.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{repo.folder.name}{rest}",
        "QUERY_STRING": request.query,
        "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "REMOTE_USER": login,
        "REMOTE_ADDR": "127.0.0.1",
    }
    for header, name in (
        ("Content-Encoding", "HTTP_CONTENT_ENCODING"),
        ("Git-Protocol", "GIT_PROTOCOL"),
    ):
        if header in request.headers:
            variables[name] = request.headers[header]
    done = subprocess.run(
        ["git", "http-backend"],
        input=request.body,
        capture_output=True,
        env=variables,
        check=False,
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    headers: dict[str, str] = {}
    status = 200
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(": ")
        if name.casefold() == "status":
            status = int(value.split()[0])
        elif name:
            headers[name] = value
    return Response(status, body, headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that is gone is what the tests are about.
        del request, client_address


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in one packet: no waiting for the other side's receipt.
    wbufsize = -1

    def __init__(self, *args: Any, rig: Rig) -> None:
        self.rig = rig
        super().__init__(*args)

    def handle_any(self) -> None:
        """Hand a request to the rig and its answer to the client."""
        path, _, query = self.path.partition("?")
        body = self._body()
        headers = dict(self.headers.items())
        response = self.rig.respond(Request(self.command, path, query, headers, body))
        if response is None:
            self.close_connection = True
            return
        self.send_response(response.status)
        for name, value in response.headers.items():
            if name.casefold() not in ("content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        self.wfile.write(response.body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").casefold() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        del format, args
