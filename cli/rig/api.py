"""The stand-in's answers: the few endpoints that vlmend calls, with GitHub's rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from vlmend.cli.rig.exchange import PREFIX, Request, Response, answer, refusal
from vlmend.cli.rig.model import Account, Forge, Repository, run_git
from vlmend.cli.rig.payloads import Payloads
from vlmend.cli.rig.pull_routes import PullRoutes


class Api:
    """Answers requests to the API; not safe for threads, its caller holds a lock."""

    def __init__(self, forge: Forge, address: str) -> None:
        self.forge = forge
        self.payloads = Payloads(forge, address)
        pulls = PullRoutes(forge, self.payloads)
        self._routes: list[tuple[str, re.Pattern[str], Callable[..., Response]]] = [
            ("GET", re.compile(r"/user"), self._user),
            ("GET", re.compile(r"/search/issues"), pulls.search),
        ]
        for method, rest, handler in (
            ("GET", "", self._repository),
            ("GET", "/actions/permissions", self._actions_permissions),
            ("GET", "/branches/(.+)", self._branch),
            ("POST", "/forks", self._fork),
            ("POST", "/merge-upstream", self._merge_upstream),
            ("GET", "/pulls", pulls.pulls),
            ("POST", "/pulls", pulls.open_pull),
            ("GET", r"/pulls/(\d+)", pulls.pull),
            ("PATCH", r"/pulls/(\d+)", pulls.edit_pull),
            ("GET", r"/pulls/(\d+)/reviews", pulls.reviews),
            ("GET", r"/issues/(\d+)", pulls.issue),
            ("GET", r"/issues/(\d+)/comments", pulls.comments),
            ("POST", r"/issues/(\d+)/comments", pulls.add_comment),
            ("POST", r"/issues/(\d+)/labels", pulls.add_labels),
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
