"""What a run of ``draft`` was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vlmend.cli.commits import Identity
from vlmend.cli.drafts.proving import Prover
from vlmend.cli.drafts.scopes import GroupBy


@dataclass(frozen=True)
class Wishes:
    """What ``draft`` was asked for, beyond how the forge is reached."""

    group_by: GroupBy = GroupBy.SCOPE
    max_new: int = 2
    max_open: int = 5
    dry_run: bool = False
    not_duplicate: str | None = None
    reopen: bool = False
    signoff: bool = False
    identity: Identity | None = None
    signing: tuple[str, ...] = ()
    hooks: Path | None = None
    templates: Sequence[Path] = ()
    prover: Prover | None = None
