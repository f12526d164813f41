"""Bringing a fork's branch forward, and never in any other direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmend.cli.errors import Refused, UserError
from vlmend.cli.forge.calls import ForgeError
from vlmend.cli.forge.client import Forge
from vlmend.cli.forge.identity import Pair
from vlmend.cli.workspace import Workspace

if TYPE_CHECKING:
    from github.Repository import Repository


def fast_forward(
    forge: Forge, pair: Pair, workspace: Workspace, branch: str, ours: str, theirs: str
) -> bool:
    """Move the fork's branch to upstream's commit, if that only adds commits.

    Args:
        forge: the connection.
        pair: fork and upstream.
        workspace: has both commits.
        branch: the branch, of the same name on both sides.
        ours: the commit that the fork's branch is at.
        theirs: the commit that upstream's branch is at.

    Returns:
        Whether the branch moved.

    Raises:
        Refused: the fork has commits of its own.
        UserError: the token may not, or GitHub did something else.
    """
    if workspace.is_ancestor(theirs, ours):
        return False
    name = f"{pair.fork_name}:{branch}"
    if not workspace.is_ancestor(ours, theirs):
        raise Refused(
            f"{name}: has commits that upstream does not have; --sync only moves"
            " forward",
            hint="without --sync the drafts are based on the fork's branch as it is",
        )
    fork: Repository = pair.fork
    try:
        done = forge.calls.write(
            f"bring {name} forward", lambda: fork.merge_upstream(branch)
        )
    except ForgeError as error:
        if "workflow" in error.told.casefold():
            raise UserError(
                f"{name}: upstream changed files below .github/workflows, and the token"
                " lacks the 'workflow' scope",
                hint="sync the fork by hand, or leave --sync out",
            ) from None
        if error.status == 409:
            raise Refused(f"{name}: has commits that upstream does not have") from None
        raise
    if str(done.merge_type) not in ("fast-forward", "none"):
        raise UserError(
            f"{name}: GitHub made a commit of its own ({done.merge_type}); look at it"
        )
    return True
