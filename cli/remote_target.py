"""``owner/repo@ref``: one commit of a repository on GitHub, kept in the cache."""

from __future__ import annotations

from typing import Final

from vlmend.cli.console import progress
from vlmend.cli.errors import UserError
from vlmend.cli.forge.places import branch_name, repository_name, server_at
from vlmend.cli.forge.token import optional_token
from vlmend.cli.git_run import GitFailed
from vlmend.cli.workspace import Workspace, digest_of

_SUFFIXES: Final = (".py", ".toml", ".cfg", ".txt", ".in")


def fetched(spec: str) -> tuple[Workspace, str]:
    """Fetch what ``owner/repo@ref`` names; no history, no file but source files.

    Returns:
        The clone that has it, and the commit.

    Raises:
        UserError: there is no such repository or ref, or no network.
    """
    name, _, ref = spec.partition("@")
    repository = repository_name(name, "TARGET")
    ref = branch_name(ref, f"TARGET {name}@")
    server = server_at(None)
    token = optional_token(server.host)
    workspace = Workspace.open(server, repository, token, purpose="+target")
    workspace.point("upstream", server.git_url(repository))
    place = f"refs/vlmend/target/{digest_of([ref])}"
    with progress() as report:
        report(f"fetching {spec}", 0, None)
        try:
            workspace.fetch("upstream", [f"+{ref}:{place}"], history=False)
        except GitFailed as error:
            raise _failure(spec, repository, error) from None
        commit = workspace.resolve(place)
        if commit is None:
            raise UserError(f"{spec}: is not a commit")
        workspace.bring("upstream", commit, lambda path: path.endswith(_SUFFIXES))
    return workspace, commit


def _failure(spec: str, repository: str, error: GitFailed) -> UserError:
    told = error.told.casefold()
    if "couldn't find remote ref" in told or "not our ref" in told:
        return UserError(f"{spec}: {repository} has no such branch, tag or commit")
    if "not found" in told or "authentication" in told or "could not read" in told:
        return UserError(
            f"{spec}: no such repository, or it is not public",
            hint="a private one needs a token in GH_TOKEN",
        )
    return UserError(
        f"{spec}: cannot be fetched: {error.message}",
        hint="a folder of that name is written ./OWNER/REPO@REV",
    )
