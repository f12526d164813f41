"""Is somebody mending this already? Asked before any draft, and again by publish.

Open pull requests are compared by what they touch, not by what they say: their heads
are fetched without file contents, and only a file that differs from every version that
upstream ever had was changed by the pull request. Their titles and texts, and issues,
are searched for the names of the classes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from vlmend.cli.errors import UserError
from vlmend.cli.forge.calls import ForgeError
from vlmend.cli.forge.client import Forge
from vlmend.cli.forge.pulls import BRANCH_PREFIX, Draft, PullRequests
from vlmend.cli.workspace import Workspace

if TYPE_CHECKING:
    from github.Repository import Repository

_MAX_NAMES: Final = 6
"""Issue searches per change; GitHub allows 30 searches a minute."""
_NEAR: Final = 3
"""Lines of context: changes closer than this conflict, or belong together."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where somebody seems to be at it already."""

    kind: str
    number: int
    title: str
    url: str
    why: str


@dataclass(frozen=True, slots=True)
class Search:
    """One question, and what came back; None where it is not known."""

    question: str
    found: int | None
    note: str = ""


@dataclass(frozen=True)
class Searched:
    """All that was searched for one change."""

    hits: tuple[Hit, ...] = ()
    searches: tuple[Search, ...] = ()
    ours: tuple[Draft, ...] = ()
    """Own pull requests upstream from the same branch."""

    @property
    def complete(self) -> bool:
        return all(search.found is not None for search in self.searches)


@dataclass(frozen=True, slots=True)
class Question:
    """What a change touches and names.

    Attributes:
        branch: the change's branch.
        names: class and architecture names.
        before: each touched file as it is on the base.
        regions: per file, the (first, last) lines that the change stands in.
    """

    branch: str
    names: tuple[str, ...]
    before: Mapping[str, bytes]
    regions: Mapping[str, Sequence[tuple[int, int]]]


@dataclass
class DuplicateSearch:
    """Searches one upstream; what several changes need is asked once.

    Attributes:
        forge: the connection.
        upstream: where to look.
        workspace: the clone.
        base: upstream's own commit, whose history is compared with.
        owner: whose branches are our own.
    """

    forge: Forge
    upstream: Repository
    workspace: Workspace
    base: str
    owner: str
    _open: list[Draft] | None = field(default=None, init=False)
    _trouble: str = field(default="", init=False)
    _heads: dict[int, str] = field(default_factory=dict, init=False)

    def search(self, question: Question) -> Searched:
        """Return everything that may make a change superfluous."""
        hits: list[Hit] = []
        searches: list[Search] = []
        self._list_open()
        name = str(self.upstream.full_name)
        by_name = self._naming(question)
        searches.append(self._told(f"open pull requests of {name} naming", by_name))
        hits += by_name
        try:
            touching = self._touching(question)
        except UserError as error:
            searches.append(
                Search(f"open pull requests of {name} touching", None, error.message)
            )
        else:
            searches.append(
                self._told(f"open pull requests of {name} touching", touching)
            )
            known = {hit.number for hit in hits}
            hits += [hit for hit in touching if hit.number not in known]
        found, more = self._issues(question)
        hits += found
        searches += more
        ours, one = self._own(question)
        searches.append(one)
        hits += [
            Hit("own pull request", p.number, p.title, p.url, "closed without a merge")
            for p in ours
            if p.state == "closed" and not p.merged
        ]
        return Searched(tuple(hits), tuple(searches), tuple(ours))

    def _told(self, what: str, hits: Sequence[Hit]) -> Search:
        end = "the classes" if what.endswith("naming") else "the same lines"
        known = len(hits) if not self._trouble else None
        return Search(f"{what} {end}", known, self._trouble)

    # --- pull requests ---------------------------------------------------------------

    def _list_open(self) -> None:
        if self._open is not None:
            return
        try:
            listed = PullRequests(self.forge, self.upstream).open_ones()
        except ForgeError as error:
            self._open, self._trouble = [], error.message
            return
        label = f"{self.owner}:{BRANCH_PREFIX}".casefold()
        self._open = [
            p for p in listed if not p.head_label.casefold().startswith(label)
        ]

    def _naming(self, question: Question) -> list[Hit]:
        found: list[Hit] = []
        for pull in self._open or ():
            name = _named(question.names, f"{pull.title}\n{pull.body}")
            if name:
                found.append(_hit(pull, f"names {name}"))
        return found

    def _touching(self, question: Question) -> list[Hit]:
        heads = self._fetch_heads()
        found: list[Hit] = []
        for path in question.before:
            for number, head in self._changed_by(path, heads).items():
                if self._overlaps(question, path, head):
                    pull = next(p for p in self._open or () if p.number == number)
                    found.append(_hit(pull, f"changes the same lines of {path}"))
        return found

    def _fetch_heads(self) -> dict[int, str]:
        """Bring the heads of all open pull requests; commits and folders only."""
        if not self._heads and self._open:
            self.workspace.fetch(
                "upstream",
                (
                    f"+refs/pull/{p.number}/head:refs/vlmend/pulls/{p.number}"
                    for p in self._open
                ),
            )
            refs = self.workspace.refs("refs/vlmend/pulls/")
            wanted = {p.number for p in self._open}
            self._heads = {int(n): c for n, c in refs.items() if int(n) in wanted}
        return self._heads

    def _changed_by(self, path: str, heads: Mapping[int, str]) -> dict[int, str]:
        """Return the heads whose version of a file upstream never had."""
        if not heads:
            return {}
        git = self.workspace.git
        log = git.run(
            "log", "--format=", "--raw", "--no-abbrev", "-m", self.base, "--", path
        )
        upstreams = {
            line.split(" ")[3] for line in log.splitlines() if line.startswith(":")
        }
        found: dict[int, str] = {}
        for number, head in heads.items():
            listed = git.raw("ls-tree", "-z", "--full-tree", head, "--", path)
            fields = listed.partition(b"\t")[0].split()
            if len(fields) == 3 and fields[2].decode() not in upstreams:
                found[number] = head
        return found

    def _overlaps(self, question: Question, path: str, head: str) -> bool:
        """Say whether a pull request changes lines next to ours."""
        fork_point = self.workspace.merge_base(self.base, head)
        if fork_point is None:
            return True
        wanted = {fork_point: [path], head: [path]}
        self.workspace.bring_versions("upstream", wanted)
        old = self.workspace.read(fork_point, path)
        new = self.workspace.read(head, path)
        if old is None or new is None:
            return True
        theirs = changed_lines(old, new)
        ours = moved(question.regions[path], question.before[path], old)
        return any(
            a - _NEAR <= d and c <= b + _NEAR for a, b in ours for c, d in theirs
        )

    # --- issues and our own ----------------------------------------------------------

    def _issues(self, question: Question) -> tuple[list[Hit], list[Search]]:
        hits: dict[int, Hit] = {}
        searches: list[Search] = []
        name = str(self.upstream.full_name)
        for wanted in question.names[:_MAX_NAMES]:
            asked = f'repo:{name} is:issue is:open "{wanted}"'
            try:
                rows, incomplete = self.forge.calls.read(
                    "search issues", partial(self._search, asked)
                )
            except ForgeError as error:
                searches.append(Search(asked, None, error.message))
                continue
            # The index is fuzzy; only the exact name counts.
            exact = [row for row in rows if _named((wanted,), row[3])]
            for number, title, url, _ in exact:
                hits[number] = Hit("issue", number, title, url, f"names {wanted}")
            note = "GitHub says that its answer is incomplete" if incomplete else ""
            searches.append(Search(asked, None if incomplete else len(exact), note))
        left = question.names[_MAX_NAMES:]
        if left:
            searches.append(Search("issues naming more classes", None, "not asked"))
        return list(hits.values()), searches

    def _search(self, asked: str) -> tuple[list[tuple[int, str, str, str]], bool]:
        headers, data = self.forge.github.requester.requestJsonAndCheck(
            "GET", "/search/issues", parameters={"q": asked, "per_page": 100}
        )
        del headers
        rows = [
            (
                int(item["number"]),
                str(item["title"]),
                str(item["html_url"]),
                f"{item['title']}\n{item.get('body') or ''}",
            )
            for item in data["items"]
        ]
        more = int(data["total_count"]) > len(rows)
        return rows, bool(data["incomplete_results"]) or more

    def _own(self, question: Question) -> tuple[list[Draft], Search]:
        name = str(self.upstream.full_name)
        what = f"own earlier pull requests to {name} from {question.branch}"
        try:
            found = PullRequests(self.forge, self.upstream).with_head(
                self.owner, question.branch
            )
        except ForgeError as error:
            return [], Search(what, None, error.message)
        return found, Search(what, len(found))


def _hit(pull: Draft, why: str) -> Hit:
    return Hit("pull request", pull.number, pull.title, pull.url, why)


def _named(names: Iterable[str], text: str) -> str:
    for name in names:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            return name
    return ""


def changed_lines(old: bytes, new: bytes) -> list[tuple[int, int]]:
    """Return the (first, last) lines of ``old`` that ``new`` changes."""
    matcher = difflib.SequenceMatcher(
        None, old.splitlines(), new.splitlines(), autojunk=False
    )
    return [
        (first + 1, max(last, first + 1))
        for tag, first, last, _, _ in matcher.get_opcodes()
        if tag != "equal"
    ]


def moved(
    regions: Sequence[tuple[int, int]], old: bytes, new: bytes
) -> list[tuple[int, int]]:
    """Return where lines of ``old`` are in ``new``, or nearest to it."""
    if old == new:
        return list(regions)
    matcher = difflib.SequenceMatcher(
        None, old.splitlines(), new.splitlines(), autojunk=False
    )
    places: dict[int, int] = {}
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            places[block.a + offset + 1] = block.b + offset + 1
    found: list[tuple[int, int]] = []
    for first, last in regions:
        lines = [places[n] for n in range(first, last + 1) if n in places]
        if not lines and places:
            nearest = min((abs(n - first), n) for n in places)[1]
            lines = [places[nearest]]
        if lines:
            found.append((min(lines), max(lines)))
    return found
