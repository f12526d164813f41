"""Records in the form in which GitHub's API hands them out.

The form follows GitHub's OpenAPI description; the tests check every answer against it.
"""

from __future__ import annotations

from typing import Any, Final

from vlmend.cli.rig.model import Check, Comment, Forge, Pull, Repository

Json = dict[str, Any]

# fmt: off
_USER_LINKS: Final = (
    "events", "followers", "following", "gists", "organizations", "received_events",
    "repos", "starred", "subscriptions",
)
_REPOSITORY_LINKS: Final = (
    "archive", "assignees", "blobs", "branches", "collaborators", "comments", "commits",
    "compare", "contents", "contributors", "deployments", "downloads", "events",
    "forks", "git_commits", "git_refs", "git_tags", "hooks", "issue_comment",
    "issue_events", "issues", "keys", "labels", "languages", "merges", "milestones",
    "notifications", "pulls", "releases", "stargazers", "statuses", "subscribers",
    "subscription", "tags", "teams", "trees",
)
_PULL_LINKS: Final = (
    "comments", "commits", "issue", "review_comment", "review_comments", "statuses",
)
# fmt: on


class Payloads:
    """Builds answers.

    Args:
        forge: what is remembered.
        api: base URL of the API; PyGithub insists on links that belong to it.
    """

    def __init__(self, forge: Forge, api: str) -> None:
        self.forge = forge
        self.api = api

    def user(self, login: str) -> Json:
        """Return a simple user."""
        url = f"{self.api}/users/{login}"
        bot = login.endswith("[bot]")
        return {
            "login": login,
            "id": self.forge.user_id(login),
            "node_id": f"U_{login}",
            "avatar_url": f"{self.forge.web}/{login}.png",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.forge.web}/{login}",
            **{f"{link}_url": f"{url}/{link}" for link in _USER_LINKS},
            "type": "Bot" if bot else "User",
            "site_admin": False,
        }

    def public_user(self, login: str) -> Json:
        """Return the account of whoever asks."""
        stamp = self.forge.stamp()
        nothing = ("bio", "blog", "company", "email", "hireable", "location", "name")
        counts = ("followers", "following", "public_gists", "public_repos")
        return {
            **self.user(login),
            **dict.fromkeys(nothing),
            "blog": "",
            **dict.fromkeys(counts, 0),
            "created_at": stamp,
            "updated_at": stamp,
            "user_view_type": "public",
        }

    def repository(self, repo: Repository, viewer: str | None = None) -> Json:
        """Return a repository; parents only where a viewer asks about this one."""
        url = f"{self.api}/repos/{repo.full_name}"
        page = f"{self.forge.web}/{repo.full_name}"
        stamp = self.forge.stamp()
        found: Json = {
            "id": repo.id,
            "node_id": f"R_{repo.id}",
            "name": repo.name,
            "full_name": repo.full_name,
            "owner": self.user(repo.owner),
            "private": False,
            "html_url": page,
            "description": None,
            "fork": repo.parent is not None,
            "url": url,
            **{f"{link}_url": f"{url}/{link}" for link in _REPOSITORY_LINKS},
            "git_url": f"git:{page.removeprefix('https:')}.git",
            "ssh_url": f"git@forge.invalid:{repo.full_name}.git",
            "clone_url": f"{page}.git",
            "svn_url": page,
            "mirror_url": None,
            "homepage": None,
            "language": None,
            "license": None,
            "default_branch": repo.default_branch,
            "archived": repo.archived,
            "disabled": False,
            "visibility": "public",
            "topics": [],
            "pushed_at": stamp,
            "created_at": stamp,
            "updated_at": stamp,
        }
        counts = (
            "forks forks_count open_issues open_issues_count size stargazers_count"
            " watchers watchers_count network_count subscribers_count"
        )
        found |= dict.fromkeys(counts.split(), 0)
        has = ("issues", "projects", "wiki", "pages", "discussions", "downloads")
        found |= {f"has_{what}": what == "issues" for what in has}
        if viewer is not None:
            may_write = viewer in repo.writers
            found["permissions"] = {
                "admin": viewer == repo.owner,
                "maintain": may_write,
                "push": may_write,
                "triage": may_write,
                "pull": True,
            }
            for role, number in (("parent", repo.parent), ("source", repo.source)):
                if number is not None and number in self.forge.repositories:
                    found[role] = self.repository(self.forge.repositories[number])
        return found

    def branch(self, repo: Repository, name: str, sha: str) -> Json:
        """Return a branch, with as much of its commit as the description demands."""
        url = f"{self.api}/repos/{repo.full_name}"
        commit = f"{url}/commits/{sha}"
        person = {"name": "A", "email": "a@example.invalid", "date": self.forge.stamp()}
        tree = {"sha": sha, "url": f"{url}/git/trees/{sha}"}
        return {
            "name": name,
            "commit": {
                "sha": sha,
                "node_id": f"C_{sha}",
                "url": commit,
                "html_url": f"{self.forge.web}/{repo.full_name}/commit/{sha}",
                "comments_url": f"{commit}/comments",
                "commit": {
                    "url": f"{url}/git/commits/{sha}",
                    "author": person,
                    "committer": person,
                    "message": "",
                    "comment_count": 0,
                    "tree": tree,
                },
                "author": self.user(repo.owner),
                "committer": self.user(repo.owner),
                "parents": [],
            },
            "_links": {"html": f"{self.forge.web}/{repo.full_name}", "self": url},
            "protected": False,
            "protection": {"enabled": False},
            "protection_url": f"{url}/branches/{name}/protection",
        }

    def pull(self, receiver: Repository, pull: Pull, *, full: bool) -> Json:
        """Return a pull request, with the slow fields only when asked for."""
        url = f"{self.api}/repos/{receiver.full_name}/pulls/{pull.number}"
        page = f"{self.forge.web}/{receiver.full_name}/pull/{pull.number}"
        origin = self.forge.repositories.get(pull.head_repository)
        head_sha = pull.head_sha
        link_names = (
            "comments commits statuses html issue review_comments review_comment self"
        )
        found: Json = {
            "url": url,
            "id": 10_000 * receiver.id + pull.number,
            "node_id": f"PR_{receiver.id}_{pull.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            **{f"{link}_url": f"{url}/{link}" for link in _PULL_LINKS},
            "issue_url": f"{self.api}/repos/{receiver.full_name}/issues/{pull.number}",
            "number": pull.number,
            "state": pull.state,
            "locked": False,
            "title": pull.title,
            "user": self.user(pull.user),
            "body": pull.body,
            "labels": [self.label(receiver, name) for name in pull.labels],
            "milestone": None,
            "created_at": pull.created,
            "updated_at": self.forge.stamp(),
            "closed_at": pull.closed,
            "merged_at": pull.closed if pull.merged else None,
            "merge_commit_sha": None,
            "assignee": None,
            "draft": pull.draft,
            "head": {
                "label": f"{pull.head_owner}:{pull.head}",
                "ref": pull.head,
                "sha": head_sha,
                "user": self.user(pull.head_owner),
                "repo": None if origin is None else self.repository(origin),
            },
            "base": {
                "label": f"{receiver.owner}:{pull.base}",
                "ref": pull.base,
                "sha": receiver.head(pull.base) or head_sha,
                "user": self.user(receiver.owner),
                "repo": self.repository(receiver),
            },
            "_links": {name: {"href": url} for name in link_names.split()},
            "author_association": "OWNER",
            "auto_merge": None,
        }
        if full:
            found |= {
                "merged": pull.merged,
                "mergeable": None if pull.merged else True,
                "mergeable_state": "clean",
                "merged_by": None,
                "maintainer_can_modify": False,
                "comments": len(pull.comments),
                "review_comments": 0,
                "commits": 1,
                "additions": 1,
                "deletions": 0,
                "changed_files": 1,
            }
        return found

    def label(self, repo: Repository, name: str) -> Json:
        """Return a label."""
        return {
            "id": 1 + sum(name.encode()),
            "node_id": f"L_{name}",
            "url": f"{self.api}/repos/{repo.full_name}/labels/{name}",
            "name": name,
            "description": "",
            "color": "ededed",
            "default": False,
        }

    def issue(self, repo: Repository, pull: Pull) -> Json:
        """Return an issue, or a pull request seen as one."""
        url = f"{self.api}/repos/{repo.full_name}/issues/{pull.number}"
        kind = "issues" if pull.is_issue else "pull"
        return {
            "url": url,
            "repository_url": f"{self.api}/repos/{repo.full_name}",
            "labels_url": f"{url}/labels",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": f"{self.forge.web}/{repo.full_name}/{kind}/{pull.number}",
            "id": 10_000 * repo.id + pull.number,
            "node_id": f"I_{repo.id}_{pull.number}",
            "number": pull.number,
            "title": pull.title,
            "user": self.user(pull.user),
            "labels": [self.label(repo, name) for name in pull.labels],
            "state": pull.state,
            "locked": False,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "comments": len(pull.comments),
            "created_at": pull.created,
            "updated_at": self.forge.stamp(),
            "closed_at": pull.closed,
            "author_association": "NONE",
            "body": pull.body,
        }

    def comment(self, repo: Repository, number: int, comment: Comment) -> Json:
        """Return a comment."""
        issue = f"{self.api}/repos/{repo.full_name}/issues/{number}"
        page = f"{self.forge.web}/{repo.full_name}/pull/{number}"
        return {
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "url": f"{self.api}/repos/{repo.full_name}/issues/comments/{comment.id}",
            "html_url": f"{page}#issuecomment-{comment.id}",
            "issue_url": issue,
            "user": self.user(comment.user),
            "body": comment.body,
            "created_at": comment.created,
            "updated_at": comment.created,
            "author_association": "OWNER",
        }

    def check_run(self, repo: Repository, sha: str, check: Check, number: int) -> Json:
        """Return a finished check run."""
        stamp = self.forge.stamp()
        page = f"{self.forge.web}/{repo.full_name}/runs/{number}"
        return {
            "id": number,
            "node_id": f"CR_{number}",
            "head_sha": sha,
            "name": check.name,
            "url": f"{self.api}/repos/{repo.full_name}/check-runs/{number}",
            "html_url": page,
            "details_url": page,
            "status": "completed",
            "conclusion": check.conclusion,
            "started_at": stamp,
            "completed_at": stamp,
            "external_id": "",
            "check_suite": {"id": 1},
            "output": {
                "title": None,
                "summary": None,
                "text": None,
                "annotations_count": 0,
                "annotations_url": page,
            },
            "app": None,
            "pull_requests": [],
        }

    def review(self, repo: Repository, pull: Pull, user: str, state: str) -> Json:
        """Return a review; no ``user`` is one whose account was deleted."""
        page = f"{self.forge.web}/{repo.full_name}/pull/{pull.number}"
        return {
            "id": 1 + sum(user.encode()),
            "node_id": f"PRR_{user}",
            "user": self.user(user) if user else None,
            "body": "",
            "state": state,
            "html_url": page,
            "pull_request_url": page,
            "_links": {"html": {"href": page}, "pull_request": {"href": page}},
            "commit_id": pull.head_sha,
            "submitted_at": self.forge.stamp(),
            "author_association": "MEMBER",
        }
