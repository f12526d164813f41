"""The stand-in's answers about pull requests and issues."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Final

from vlmend.cli.rig.exchange import Request, Response, answer, invalid, refusal
from vlmend.cli.rig.model import Account, Comment, Forge, Pull, Repository
from vlmend.cli.rig.payloads import Payloads

_PAGING: Final = (("per_page", "30"), ("page", "1"))


class PullRoutes:
    """Answers for one forge; its caller holds a lock."""

    def __init__(self, forge: Forge, payloads: Payloads) -> None:
        self.forge = forge
        self.payloads = payloads

    # --- pull requests ---------------------------------------------------------------

    def _shown(self, repo: Repository, pull: Pull, *, full: bool) -> dict[str, Any]:
        self.forge.publish_head(repo, pull)
        return self.payloads.pull(repo, pull, full=full)

    def pulls(self, request: Request, account: Account, repo: Repository) -> Response:
        """List pull requests, filtered and in pages."""
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

    def open_pull(
        self, request: Request, account: Account, repo: Repository
    ) -> Response:
        """Open a pull request, by GitHub's rules."""
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

    def pull(
        self, _: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        """Show one pull request."""
        del account
        pull = repo.pulls.get(int(number))
        if pull is None or pull.is_issue:
            return refusal(404, "Not Found")
        return answer(200, self._shown(repo, pull, full=True))

    def edit_pull(
        self, request: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        """Change, close or open one again."""
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

    def reviews(
        self, _: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        """List what reviewers said."""
        del account
        pull = repo.pulls[int(number)]
        build = self.payloads.review
        return answer(200, [build(repo, pull, *review) for review in pull.reviews])

    # --- issues ----------------------------------------------------------------------

    def issue(
        self, _: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        """Show one issue, or a pull request as one."""
        del account
        pull = repo.pulls.get(int(number))
        if pull is None:
            return refusal(404, "Not Found")
        closed_by = self.payloads.user(pull.closed_by) if pull.closed_by else None
        return answer(200, self.payloads.issue(repo, pull) | {"closed_by": closed_by})

    def comments(
        self, _: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        """List the comments."""
        del account
        comments = repo.pulls[int(number)].comments
        build = self.payloads.comment
        return answer(200, [build(repo, int(number), c) for c in comments])

    def add_comment(
        self, request: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        """Add a comment."""
        pull = repo.pulls[int(number)]
        body = str(request.json["body"])
        comment = Comment(self.forge.new_id(), account.login, body, self.forge.stamp())
        pull.comments.append(comment)
        return answer(201, self.payloads.comment(repo, pull.number, comment))

    def add_labels(
        self, request: Request, account: Account, repo: Repository, number: str
    ) -> Response:
        """Add labels."""
        del account
        pull = repo.pulls[int(number)]
        body = json.loads(request.body)
        names = body["labels"] if isinstance(body, dict) else body
        pull.labels += [str(n) for n in names if str(n) not in pull.labels]
        return answer(200, [self.payloads.label(repo, name) for name in pull.labels])

    def search(self, request: Request, account: Account) -> Response:
        """Search open issues, or pull requests, for words."""
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
