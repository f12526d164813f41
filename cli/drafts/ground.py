"""What every forge verb stands on: fork, upstream, clone, base commit and judgement."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vlmend.cli.commits import require_push
from vlmend.cli.console import progress
from vlmend.cli.errors import UserError
from vlmend.cli.forge.client import Forge, connect
from vlmend.cli.forge.identity import (
    Pair,
    require_rights,
    resolve_pair,
    wait_until_readable,
)
from vlmend.cli.forge.places import (
    Server,
    branch_name,
    repository_name,
    server_at,
)
from vlmend.cli.forge.sync import fast_forward
from vlmend.cli.forge.token import Token, find_token
from vlmend.cli.git_run import GitFailed
from vlmend.cli.workspace import Workspace
from vlmend.cli.world import World

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged

FORK_REFS = "refs/vlmend/fork/"


@dataclass(frozen=True)
class Access:
    """How a forge is reached, as asked for on the command line.

    It takes the token out of the environment when it is made: nothing that is started
    after that inherits it.
    """

    fork: str
    upstream: str
    base: str | None = None
    api_url: str | None = None
    token_file: Path | None = None
    max_wait: float = 300.0
    borrowed: Path | None = None
    create_fork: bool = False
    sync: bool = False
    server: Server = field(init=False)
    token: Token = field(init=False)

    def __post_init__(self) -> None:
        server = server_at(self.api_url)
        repository_name(self.fork, "--fork")
        repository_name(self.upstream, "--upstream")
        object.__setattr__(self, "server", server)
        object.__setattr__(self, "token", find_token(self.token_file, server.host))


@dataclass(frozen=True)
class Ground:
    """A fork that was looked at.

    Attributes:
        base: the fork's branch that drafts go to.
        commit: where that branch is.
        upstream_branch: the branch of upstream that it is compared with.
        upstream_commit: where that is.
    """

    forge: Forge
    pair: Pair
    workspace: Workspace
    base: str
    commit: str
    upstream_branch: str
    upstream_commit: str

    @property
    def behind(self) -> int:
        """How many commits of upstream's the base lacks."""
        return self.workspace.count(self.commit, self.upstream_commit)

    @property
    def ahead(self) -> int:
        """How many commits the base has that upstream lacks."""
        return self.workspace.count(self.upstream_commit, self.commit)

    def branches(self) -> dict[str, str]:
        """Return our branches in the fork: name and commit."""
        refs = self.workspace.refs(FORK_REFS)
        return {n: c for n, c in refs.items() if n.startswith("vlmend/")}

    def refetch(self) -> None:
        """Look at the fork's branches again."""
        self.workspace.fetch("fork", _fork_refspecs(self.base))


def prepare(access: Access, world: World) -> Ground:
    """Resolve, check, clone and fetch; nothing is written to the forge but a new fork.

    Raises:
        UserError: something does not exist, rights are missing, or the gate holds.
    """
    server, token = access.server, access.token
    fork = repository_name(access.fork, "--fork")
    upstream = repository_name(access.upstream, "--upstream")
    forge = connect(server, token, world, access.max_wait)
    pair = resolve_pair(forge, fork, upstream, create=access.create_fork)
    require_rights(pair, token)
    base = branch_name(access.base or str(pair.fork.default_branch), "--base")
    with progress() as report:
        report(f"fetching {pair.fork_name}", 0, None)
        workspace = Workspace.open(server, pair.fork_name, token, access.borrowed)
        workspace.point("fork", server.git_url(pair.fork_name))
        workspace.point("upstream", server.git_url(pair.upstream_name))
        ground = _fetched(forge, pair, workspace, base, new=access.create_fork)
    if token.is_installation:
        require_push(workspace, ground.commit)
    if access.sync and fast_forward(
        forge, pair, workspace, base, ground.commit, ground.upstream_commit
    ):
        ground = _fetched(forge, pair, workspace, base, new=False)
    return ground


def _fork_refspecs(base: str) -> tuple[str, ...]:
    return (
        f"+refs/heads/{base}:{FORK_REFS}{base}",
        f"+refs/heads/vlmend/*:{FORK_REFS}vlmend/*",
    )


def _fetched(
    forge: Forge, pair: Pair, workspace: Workspace, base: str, *, new: bool
) -> Ground:
    upstream_branch = _fetch_upstream(pair, workspace, base)

    def readable() -> bool:
        try:
            workspace.fetch("fork", _fork_refspecs(base))
        except GitFailed as error:
            if "couldn't find remote ref" in error.told:
                raise UserError(f"{pair.fork_name}: has no branch {base!r}") from None
            if new and "not found" in error.told:
                return False
            raise
        return True

    wait_until_readable(forge, pair.fork_name, readable)
    refs = workspace.refs("refs/vlmend/")
    commit = refs.get(f"fork/{base}")
    above = refs.get(f"upstream/{upstream_branch}")
    assert commit is not None, "it was just fetched"
    assert above is not None, "it was just fetched"
    return Ground(forge, pair, workspace, base, commit, upstream_branch, above)


def _fetch_upstream(pair: Pair, workspace: Workspace, base: str) -> str:
    """Fetch upstream's branch of the same name, or its main one; return which."""
    for branch in dict.fromkeys((base, str(pair.upstream.default_branch))):
        try:
            workspace.fetch(
                "upstream", [f"+refs/heads/{branch}:refs/vlmend/upstream/{branch}"]
            )
        except GitFailed as error:
            if "couldn't find remote ref" not in error.told:
                raise
        else:
            return branch
    raise UserError(f"{pair.upstream_name}: has no branch {base!r}")


@contextmanager
def judged_at(
    workspace: Workspace,
    remote: str,
    commit: str,
    label: str,
    codemods: Sequence[str],
    *,
    configured: bool = False,
) -> Generator[Judged]:
    """Judge one commit of the workspace.

    Args:
        workspace: has the commit.
        remote: where its files are fetched from.
        commit: its full id.
        label: what it is called in messages.
        codemods: ids; empty means all.
        configured: the tree's own configuration says what it wants to be told, as it
            does for ``scan``: which codemods, what is left out, what is ignored. It has
            no say in anything else; least of all, it cannot ask for more than proven
            fixes.

    Raises:
        UserError: it is no vLLM tree, or its configuration is no use.
    """
    from vlmend.cli.cache import FactsStore
    from vlmend.cli.judge import Judged, configured_codemods, shown_as_asked
    from vlmend.cli.select import Selection
    from vlmend.cli.settings import Settings, checked, find_settings
    from vlmend.cli.targets import MODELS, Target
    from vlmend.codemods.engine import Session

    workspace.bring(remote, commit)
    with ExitStack() as stack:
        tree = workspace.tree(commit)
        stack.callback(tree.close)
        if not tree.is_dir(MODELS):
            raise UserError(f"{label}: not a vLLM tree: there is no {MODELS}/ in it")
        settings = checked(find_settings(tree)) if configured else Settings()
        chosen, broken = configured_codemods(codemods, settings)
        target = Target(
            label, "git", tree, "vllm", revision=commit, repository=workspace.folder
        )
        cache = stack.enter_context(FactsStore())
        with progress() as report:
            session = Session(
                tree,
                codemods=chosen,
                cache=cache,
                on_progress=partial(report, f"judging {label}"),
            )
            result = shown_as_asked(session.run(), settings)
        yield Judged(
            target,
            None,
            chosen,
            session,
            result,
            Selection(excluded=settings.exclude),
            settings,
            broken=broken,
        )
