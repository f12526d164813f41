"""What became of our drafts and pull requests: looked up, not remembered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.commits import look_at_branch
from vlmend.cli.drafts.ground import Ground
from vlmend.cli.drafts.history import defects
from vlmend.cli.forge.calls import ForgeError
from vlmend.cli.forge.places import same_repository
from vlmend.cli.forge.pulls import Draft, PullRequests

if TYPE_CHECKING:
    from github.Repository import Repository

    from vlmend.codemods.codemod import ScanResult

_BAD: Final = ("failure", "timed_out", "cancelled", "action_required", "error")


@dataclass(frozen=True, slots=True)
class FailingCheck:
    """A check that fails, and whether it fails without us, too.

    Attributes:
        ours: False where the same check fails on the base; None where that is unknown.
    """

    name: str
    url: str
    ours: bool | None
    base_url: str = ""


@dataclass(frozen=True)
class State:
    """One pull request.

    Attributes:
        checks: in one word, or why they are not known.
        review: in a few words.
        refused_by: the person who closed it without a merge.
        touched_by: the person who has committed to its branch.
        unknown: what GitHub did not tell about a closed one, and why.
    """

    repository: str
    draft: Draft
    state: str
    checks: str = "none"
    failing: tuple[FailingCheck, ...] = ()
    review: str = "none"
    mergeable: bool | None = None
    fixed_upstream: bool = False
    refused_by: str = ""
    touched_by: str = ""
    unknown: str = ""


@dataclass(frozen=True)
class Leftover:
    """A branch that no open pull request stands for.

    Attributes:
        ours: nobody but vlmend has committed there.
        closed: there was one, and it is closed; else a run was interrupted.
    """

    branch: str
    commit: str
    ours: bool
    closed: bool


@dataclass
class StatusReader:
    """Reads the state of everything that came from one fork.

    Attributes:
        ground: the fork.
        upstream_result: upstream's branch, judged.
    """

    ground: Ground
    upstream_result: ScanResult
    _base_checks: dict[tuple[str, str], dict[str, tuple[str, str]]] = field(
        default_factory=dict
    )

    def drafts(self) -> list[State]:
        """Return every draft inside the fork, then every pull request upstream."""
        pair = self.ground.pair
        inside = PullRequests(self.ground.forge, pair.fork)
        above = PullRequests(self.ground.forge, pair.upstream)
        found = [self._state(pair.fork, inside, d) for d in inside.own()]
        heads = set(self.ground.branches()) | {s.draft.head for s in found}
        for branch in sorted(heads):
            found += [
                self._state(pair.upstream, above, draft)
                for draft in above.with_head(pair.owner, branch)
            ]
        return found

    def leftovers(self, states: Iterable[State]) -> list[Leftover]:
        """Return our branches that no open pull request stands for."""
        listed = list(states)
        busy = {s.draft.head for s in listed if s.draft.state == "open"}
        known = {s.draft.head for s in listed}
        look = partial(look_at_branch, self.ground.workspace)
        return [
            Leftover(name, commit, look(commit).ours, name in known)
            for name, commit in sorted(self.ground.branches().items())
            if name not in busy
        ]

    def _state(
        self, repository: Repository, pulls: PullRequests, draft: Draft
    ) -> State:
        name = str(repository.full_name)
        gone = bool(draft.fingerprints) and not set(draft.fingerprints) & set(
            defects(self.upstream_result)
        )
        if draft.merged:
            return State(name, draft, "merged", fixed_upstream=gone)
        if draft.state == "closed":
            who, unknown = self._refused_by(pulls, draft)
            return State(
                name,
                draft,
                "closed",
                fixed_upstream=gone,
                refused_by=who,
                unknown=unknown,
            )
        checks, failing = self._checks(repository, draft)
        review, mergeable = self._review(repository, draft)
        return State(
            repository=name,
            draft=draft,
            state="draft" if draft.draft else "open",
            checks=checks,
            failing=failing,
            review=review,
            mergeable=mergeable,
            fixed_upstream=gone,
            touched_by=self._touched_by(draft),
        )

    def _refused_by(self, pulls: PullRequests, draft: Draft) -> tuple[str, str]:
        """Return who closed it, unless we did; and why that is not known."""
        try:
            by_us = pulls.closed_by_us(draft.number)
        except ForgeError as error:
            return "", f"who closed it is unknown: {error.message}"
        return ("" if by_us else pulls.closer(draft.number) or "somebody"), ""

    def _touched_by(self, draft: Draft) -> str:
        head = self.ground.branches().get(draft.head)
        if head is None:
            return ""
        state = look_at_branch(self.ground.workspace, head)
        return "" if state.ours else state.person

    # --- checks ----------------------------------------------------------------------

    def _checks(
        self, repository: Repository, draft: Draft
    ) -> tuple[str, tuple[FailingCheck, ...]]:
        try:
            results = self._results(repository, draft.head_sha)
            base = self._on_base(repository, draft.base)
        except ForgeError as error:
            return f"unknown ({error.message})", ()
        failing = tuple(
            FailingCheck(
                name,
                url,
                None if name not in base else base[name][0] not in _BAD,
                base.get(name, ("", ""))[1],
            )
            for name, (result, url) in results.items()
            if result in _BAD
        )
        if not results:
            return "none", ()
        if any(result == "pending" for result, _ in results.values()):
            return "pending", failing
        if not failing:
            return "passing", ()
        theirs = all(check.ours is False for check in failing)
        return ("failing, not ours" if theirs else "failing"), failing

    def _on_base(self, repository: Repository, base: str) -> dict[str, tuple[str, str]]:
        key = (str(repository.full_name), base)
        if key not in self._base_checks:
            sha = self.ground.forge.calls.read(
                f"look up {base} of {key[0]}",
                lambda: str(repository.get_branch(base).commit.sha),
            )
            self._base_checks[key] = self._results(repository, sha)
        return self._base_checks[key]

    def _results(self, repository: Repository, sha: str) -> dict[str, tuple[str, str]]:
        """Return every check on a commit: name to (result, link)."""

        def ask() -> dict[str, tuple[str, str]]:
            commit = f"{repository.url}/commits/{sha}"
            requester = self.ground.forge.github.requester
            _, runs = requester.requestJsonAndCheck("GET", f"{commit}/check-runs")
            _, told = requester.requestJsonAndCheck("GET", f"{commit}/status")
            found = {
                str(run["name"]): (
                    str(run["conclusion"] or "pending"),
                    str(run["html_url"]),
                )
                for run in runs["check_runs"]
            }
            for status in told["statuses"]:
                link = str(status["target_url"] or "")
                found[str(status["context"])] = (str(status["state"]), link)
            return found

        return self.ground.forge.calls.read(f"read the checks of {sha[:12]}", ask)

    # --- people ----------------------------------------------------------------------

    def _review(self, repository: Repository, draft: Draft) -> tuple[str, bool | None]:
        def ask() -> tuple[dict[str, str], bool | None]:
            pull = repository.get_pull(draft.number)
            latest = {
                _login(review): str(review.state)
                for review in pull.get_reviews()
                if review.state in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")
            }
            mergeable: Any = pull.mergeable
            return latest, mergeable

        try:
            latest, mergeable = self.ground.forge.calls.read(
                f"read the reviews of #{draft.number}", ask
            )
        except ForgeError:
            return "unknown", None
        for state, words in _REVIEWS:
            people = sorted(who for who, what in latest.items() if what == state)
            if people:
                return f"{words} by {', '.join(people)}", mergeable
        return "none", mergeable


_REVIEWS: Final = (("CHANGES_REQUESTED", "changes wanted"), ("APPROVED", "approved"))


def document(states: Iterable[State], leftovers: Iterable[Leftover]) -> dict[str, Any]:
    """Return the JSON document of ``vlmend status --format json``."""
    return {
        "schema_version": 1,
        "pull_requests": [
            {
                "repository": s.repository,
                "number": s.draft.number,
                "url": s.draft.url,
                "title": s.draft.title,
                "branch": s.draft.head,
                "state": s.state,
                "checks": s.checks,
                "failing": [
                    {
                        "name": c.name,
                        "url": c.url,
                        "ours": c.ours,
                        "base_url": c.base_url,
                    }
                    for c in s.failing
                ],
                "review": s.review,
                "mergeable": s.mergeable,
                "fingerprints": list(s.draft.fingerprints),
                "fixed_upstream": s.fixed_upstream,
                "refused_by": s.refused_by or None,
                "refused_at": _refused_at(s),
                "unknown": s.unknown or None,
                "touched_by": s.touched_by or None,
            }
            for s in states
        ],
        "leftovers": [
            {
                "branch": one.branch,
                "commit": one.commit,
                "ours": one.ours,
                "closed": one.closed,
            }
            for one in leftovers
        ],
    }


def _refused_at(state: State) -> str | None:
    moment = state.draft.closed_at
    return moment.isoformat() if state.refused_by and moment is not None else None


def _login(review: Any) -> str:
    # GitHub says null for an account that was deleted.
    return "somebody" if review.user is None else str(review.user.login)


def is_inside(state: State, fork: str) -> bool:
    """Say whether a pull request is one inside the fork."""
    return same_repository(state.repository, fork)
