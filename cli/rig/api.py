"""The stand-in's answers: the few endpoints that vlmend calls, with GitHub's rules."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from vlmend.cli.rig.model import Account, Comment, Forge, Pull, Repository, run_git
from vlmend.cli.rig.payloads import Payloads

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


class Api:
    """Answers requests to the API; not safe for threads, its caller holds a lock."""

    def __init__(self, forge: Forge, address: str) -> None:
        self.forge = forge
        self.payloads = Payloads(forge, address)
        self._routes: list[tuple[str, re.Pattern[str], Callable[..., Response]]] = [
            ("GET", re.compile(r"/user"), self._user),
            ("GET", re.compile(r"/search/issues"), self._search),
        ]
        for method, rest, handler in (
            ("GET", "", self._repository),
            ("GET", "/actions/permissions", self._actions_permissions),
            ("GET", "/branches/(.+)", self._branch),
            ("POST", "/forks", self._fork),
            ("POST", "/merge-upstream", self._merge_upstream),
            ("GET", "/pulls", self._pulls),
            ("POST", "/pulls", self._create_pull),
            ("GET", r"/pulls/(\d+)", self._pull),
            ("PATCH", r"/pulls/(\d+)", self._edit_pull),
            ("GET", r"/pulls/(\d+)/reviews", self._reviews),
            ("GET", r"/issues/(\d+)", self._issue),
            ("GET", r"/issues/(\d+)/comments", self._comments),
            ("POST", r"/issues/(\d+)/comments", self._add_comment),
            ("POST", r"/issues/(\d+)/labels", self._add_labels),
            ("GET", "/commits/([0-9a-f]+)/check-runs", self._check_runs),
            ("GET", "/commits/([0-9a-f]+)/status", self._status),
        ):
            pattern = re.compile(rf"/repos/([^/]+/[^/]+){rest}")
            self._routes.append((method, pattern, self._in_repository(handler)))

    def answer(self, request: Request) -> Response:
        """Return the answer to a request below the prefix."""
        account = self.account(request.headers.get("Authorization", ""))
        if account is None:
            return refusal(401, "Bad credentials")
        path = self._named(unquote(request.path.removeprefix(PREFIX)))
        for method, pattern, handler in self._routes:
            found = pattern.fullmatch(path)
            if method == request.method and found is not None:
                return handler(request, account, *found.groups())
        return refusal(404, "Not Found")

    def _named(self, path: str) -> str:
        """Return where a redirect by number leads."""
        found = re.fullmatch(r"/repositories/(\d+)(/.*)?", path)
        repo = self.forge.repositories.get(int(found[1])) if found else None
        if found is None or repo is None:
            return path
        return f"/repos/{repo.full_name}{found[2] or ''}"

    def account(self, authorization: str) -> Account | None:
        """Return whose token this is."""
        secret = re.sub(r"^(?:token|bearer) ", "", authorization, flags=re.IGNORECASE)
        return self.forge.accounts.get(secret)

    def _in_repository(
        self, handler: Callable[..., Response]
    ) -> Callable[..., Response]:
        def handle(
            request: Request, account: Account, name: str, *rest: str
        ) -> Response:
            repo = self.forge.find(name)
            if repo is not None:
                return handler(request, account, repo, *rest)
            number = self.forge.former_names.get(name.casefold())
            if number is None or number not in self.forge.repositories:
                return refusal(404, "Not Found")
            tail = unquote(request.path).removeprefix(f"{PREFIX}/repos/{name}")
            query = f"?{request.query}" if request.query else ""
            url = f"{self.payloads.api}/repositories/{number}{tail}{query}"
            moved = {"message": "Moved Permanently", "url": url}
            moved["documentation_url"] = "https://docs.github.com/rest"
            # What changes something is not repeated elsewhere without being told so.
            return answer(301 if request.method == "GET" else 307, moved, Location=url)

        return handle

    # --- repositories ----------------------------------------------------------------

    def _user(self, _: Request, account: Account) -> Response:
        if account.kind == "Bot":
            return refusal(403, "Resource not accessible by integration")
        return answer(200, self.payloads.public_user(account.login))

    def _repository(self, _: Request, account: Account, repo: Repository) -> Response:
        scopes = {"X-OAuth-Scopes": ", ".join(account.scopes)} if account.scopes else {}
        shown = self.payloads.repository(repo, account.login)
        if account.kind == "Bot":
            # As GitHub does for every app: these are a person's rights.
            shown["permissions"] = dict.fromkeys(shown["permissions"], False)
        return answer(200, shown, **scopes)

    def _actions_permissions(
        self, _: Request, account: Account, repo: Repository
    ) -> Response:
        del account
        enabled = "actions" not in repo.refusals
        return answer(200, {"enabled": enabled, "sha_pinning_required": False})

    def _branch(
        self, _: Request, account: Account, repo: Repository, name: str
    ) -> Response:
        del account
        sha = repo.head(name)
        if sha is None:
            return refusal(404, "Branch not found")
        return answer(200, self.payloads.branch(repo, name, sha))

    def _fork(self, request: Request, account: Account, repo: Repository) -> Response:
        owner = request.json.get("organization") or account.login
        made = self.forge.find(f"{owner}/{repo.name}")
        if made is None:
            made = self.forge.add_repository(f"{owner}/{repo.name}", parent=repo)
            made.writers.add(account.login)
            made.not_ready = 2
        return answer(202, self.payloads.repository(made, account.login))

    def _merge_upstream(
        self, request: Request, account: Account, repo: Repository
    ) -> Response:
        branch = str(request.json.get("branch"))
        parent = self.forge.repositories.get(repo.parent or 0)
        new = parent.head(branch) if parent is not None else None
        old = repo.head(branch)
        if parent is None or new is None or old is None:
            return refusal(422, "The upstream branch could not be found")
        run_git(repo.folder, "fetch", "-q", "--no-tags", str(parent.folder), new)
        if run_git(repo.folder, "merge-base", old, new) != old:
            return refusal(409, "There are merge conflicts")
        paths = run_git(repo.folder, "diff", "--name-only", old, new)
        if ".github/workflows/" in paths and "workflow" not in account.scopes:
            return refusal(
                422,
                "refusing to allow an OAuth App to create or update workflow without"
                " `workflow` scope",
            )
        run_git(repo.folder, "update-ref", f"refs/heads/{branch}", new, old)
        kind = "none" if old == new else "fast-forward"
        return answer(
            200,
            {
                "message": "Successfully fetched and fast-forwarded",
                "merge_type": kind,
                "base_branch": f"{parent.owner}:{branch}",
            },
        )

    # --- pull requests ---------------------------------------------------------------

    def _shown(self, repo: Repository, pull: Pull, *, full: bool) -> dict[str, Any]:
        self.forge.publish_head(repo, pull)
        return self.payloads.pull(repo, pull, full=full)

    def _pulls(self, request: Request, account: Account, repo: Repository) -> Response:
        del account
        state = request.parameter("state", "open")
        head = request.parameter("head")
        base = request.parameter("base")
        found = [
            pull
            for pull in reversed(repo.pulls.values())
            if not pull.is_issue
            and state in ("all", pull.state)
            and (not head or f"{pull.head_owner}:{pull.head}" == head)
            and (not base or pull.base == base)
        ]
        size, page = (int(request.parameter(n, d)) for n, d in _PAGING)
        part = found[(page - 1) * size : page * size]
        links = {}
        if page * size < len(found):
            url = f"{self.payloads.api}/repos/{repo.full_name}/pulls"
            rest = re.sub(r"&?\bpage=\d+", "", request.query)
            links["Link"] = f'<{url}?{rest}&page={page + 1}>; rel="next"'
        return answer(200, [self._shown(repo, p, full=False) for p in part], **links)

    def _create_pull(
        self, request: Request, account: Account, repo: Repository
    ) -> Response:
        asked = request.json
        if "forbidden" in repo.refusals:
            return refusal(403, "Resource not accessible by personal access token")
        owner, _, head = str(asked["head"]).rpartition(":")
        owner = owner or repo.owner
        origin = next(
            (
                r
                for r in self.forge.repositories.values()
                if r.owner.casefold() == owner.casefold()
                and (r.source or r.id) == (repo.source or repo.id)
            ),
            None,
        )
        sha = origin.head(head) if origin is not None else None
        if origin is None or sha is None:
            return invalid(f"head {asked['head']} could not be found", "head")
        if repo.head(str(asked["base"])) is None:
            return invalid(f"base {asked['base']} could not be found")
        for pull in repo.pulls.values():
            if (
                pull.state == "open"
                and (pull.head_repository, pull.head) == (origin.id, head)
                and pull.base == asked["base"]
            ):
                return invalid(f"A pull request already exists for {owner}:{head}.")
        if asked.get("draft") and "drafts" in repo.refusals:
            return refusal(
                422, "Draft pull requests are not supported in this repository."
            )
        if asked.get("maintainer_can_modify") and "collab" in repo.refusals:
            return invalid("fork_collab Fork collab can't be granted", "fork_collab")
        pull = self.forge.open_pull(
            repo,
            origin,
            head,
            str(asked["title"]),
            str(asked.get("body") or ""),
            account.login,
            base=str(asked["base"]),
            draft=bool(asked.get("draft")),
        )
        return answer(201, self.payloads.pull(repo, pull, full=True))

    def _pull(
        self, _: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        del account
        pull = repo.pulls.get(int(number))
        if pull is None or pull.is_issue:
            return refusal(404, "Not Found")
        return answer(200, self._shown(repo, pull, full=True))

    def _edit_pull(
        self, request: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        pull = repo.pulls.get(int(number))
        if pull is None:
            return refusal(404, "Not Found")
        asked = request.json
        pull.title = asked.get("title", pull.title)
        pull.body = asked.get("body", pull.body)
        state = asked.get("state", pull.state)
        if state == "open" and pull.state == "closed":
            origin = self.forge.repositories.get(pull.head_repository)
            if origin is None or origin.head(pull.head) != pull.head_sha:
                return invalid("state cannot be changed. The branch was force-pushed")
            pull.closed = pull.closed_by = None
        elif state == "closed" and pull.state == "open":
            pull.closed, pull.closed_by = self.forge.stamp(), account.login
        pull.state = state
        return answer(200, self._shown(repo, pull, full=True))

    def _reviews(
        self, _: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        del account
        pull = repo.pulls[int(number)]
        build = self.payloads.review
        return answer(200, [build(repo, pull, *review) for review in pull.reviews])

    # --- issues ----------------------------------------------------------------------

    def _issue(
        self, _: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        del account
        pull = repo.pulls.get(int(number))
        if pull is None:
            return refusal(404, "Not Found")
        closed_by = self.payloads.user(pull.closed_by) if pull.closed_by else None
        return answer(200, self.payloads.issue(repo, pull) | {"closed_by": closed_by})

    def _comments(
        self, _: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        del account
        comments = repo.pulls[int(number)].comments
        build = self.payloads.comment
        return answer(200, [build(repo, int(number), c) for c in comments])

    def _add_comment(
        self, request: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        pull = repo.pulls[int(number)]
        body = str(request.json["body"])
        comment = Comment(self.forge.new_id(), account.login, body, self.forge.stamp())
        pull.comments.append(comment)
        return answer(201, self.payloads.comment(repo, pull.number, comment))

    def _add_labels(
        self, request: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        del account
        pull = repo.pulls[int(number)]
        body = json.loads(request.body)
        names = body["labels"] if isinstance(body, dict) else body
        pull.labels += [str(n) for n in names if str(n) not in pull.labels]
        return answer(200, [self.payloads.label(repo, name) for name in pull.labels])

    def _search(self, request: Request, account: Account) -> Response:
        del account
        words = shlex.split(request.parameter("q"))
        named = [w.removeprefix("repo:") for w in words if w.startswith("repo:")]
        repo = self.forge.find(named[0]) if named else None
        if repo is None:
            return refusal(422, "The listed repositories cannot be searched")
        terms = [w.casefold() for w in words if ":" not in w]
        found = [
            self.payloads.issue(repo, issue) | {"score": 1.0}
            for issue in repo.pulls.values()
            if issue.is_issue == ("is:issue" in words)
            and issue.state == "open"
            and all(t in f"{issue.title}\n{issue.body}".casefold() for t in terms)
        ]
        incomplete = "search" in repo.refusals
        document: dict[str, object] = {"search_type": "lexical"}
        document |= {"total_count": len(found), "incomplete_results": incomplete}
        return answer(200, document | {"items": found[:100]})

    # --- commits ---------------------------------------------------------------------

    def _check_runs(
        self, _: Request, account: Account, repo: Repository, sha: str
    ) -> Response:
        del account
        checks = repo.checks.get(sha, [])
        build = self.payloads.check_run
        runs = [build(repo, sha, c, i) for i, c in enumerate(checks, start=1)]
        return answer(200, {"total_count": len(runs), "check_runs": runs})

    def _status(
        self, _: Request, account: Account, repo: Repository, sha: str
    ) -> Response:
        del account
        url = f"{self.payloads.api}/repos/{repo.full_name}/commits/{sha}"
        return answer(
            200,
            {
                "state": "pending",
                "sha": sha,
                "total_count": 0,
                "statuses": [],
                "repository": self.payloads.repository(repo),
                "commit_url": url,
                "url": f"{url}/status",
            },
        )


_PAGING: Final = (("per_page", "30"), ("page", "1"))
