"""``vlmend init-action``: the workflow that runs vlmend in a repository on GitHub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vlmend.cli.forge_options import UPSTREAM

if TYPE_CHECKING:
    from vlmend.cli.action.workflow import Existing, Wanted


@click.command("init-action")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option(
    "--mode",
    type=click.Choice(["draft", "report", "guard"]),
    help="draft: drafts in a fork, every night. report: findings, every night. guard:"
    " every pull request. [default: draft, or what the file there has]",
)
@click.option(
    "--repository",
    metavar="OWNER/REPO",
    help="Where it runs, and nowhere else [default: the remote `origin` of FOLDER].",
)
@click.option(
    "--action",
    metavar="OWNER/REPO@COMMIT",
    help="vlmend's own action, by commit id [default: what this vlmend was built or"
    " installed from, where that is recorded].",
)
@click.option(
    "--schedule",
    metavar="CRON",
    help="When, in UTC [default: some time of the night, by OWNER/REPO].",
)
@click.option(
    "--upstream",
    metavar="OWNER/REPO",
    help=f"What the fork is a fork of, for draft [default: {UPSTREAM}].",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; say whether the file is as it would be written now.",
)
@click.option("--force", is_flag=True, help="Write over a file that was edited.")
def command(folder: Path, check: bool, force: bool, **asked: Any) -> int:
    """Write .github/workflows/vlmend.yml into FOLDER, a checkout.

    Run again, it brings the file up to date with this vlmend, with the options that the
    file was written with. A file that a person has edited stays as it is: the
    difference is shown, and --force writes all the same. With --check, exits with 1
    unless the file is there and up to date.

    \b
    Examples
      vlmend init-action                     drafts in this fork, every night
      vlmend init-action --mode guard        a check of every pull request
      vlmend init-action --check             whether the file is out of date
    """  # noqa: D301 - click wants the character
    from vlmend.cli.action.workflow import PLACE, read_existing, render
    from vlmend.cli.errors import Refused, UserError
    from vlmend.cli.files import write_file

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    place = folder / PLACE
    existing = None
    if place.is_file():
        try:
            existing = read_existing(place.read_bytes().decode())
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise UserError(f"{place}: cannot be read: {reason}") from None
    wanted = _wanted(folder, existing, asked)
    text = render(wanted)
    if check:
        return _checked(place, existing, text)
    if existing is not None and existing.text == text:
        click.echo(f"{place}: up to date")
        return 0
    if existing is not None:
        _show(existing.text, text, place)
        if existing.edited and not force:
            raise Refused(
                f"{place}: was edited; left as it is",
                hint="the difference is above; --force writes over it",
            )
    _make_folder(place.parent)
    write_file(place, text.encode())
    click.echo(f"{place}: written, for {wanted.repository}, mode {wanted.mode}")
    if existing is None:
        _tell_next(wanted)
    return 0


def _checked(place: Path, existing: Existing | None, text: str) -> int:
    from vlmend.cli.outcome import EXIT_FINDINGS

    if existing is None:
        click.echo(f"{place}: is not there; `vlmend init-action` writes it")
        return EXIT_FINDINGS
    if existing.text == text:
        click.echo(f"{place}: up to date")
        return 0
    _show(existing.text, text, place)
    state = "edited" if existing.edited else "out of date"
    remedy = "--force writes over it" if existing.edited else "without --check, updates"
    click.echo(f"{place}: {state}; {remedy}")
    return EXIT_FINDINGS


def _wanted(folder: Path, existing: Existing | None, asked: dict[str, Any]) -> Wanted:
    """Return what is to be written: as typed, else as in the file, else the usual."""
    from vlmend.cli.action.origin import known_origin, pinned
    from vlmend.cli.action.workflow import Wanted, checked_schedule, usual_schedule
    from vlmend.cli.errors import UserError
    from vlmend.cli.forge.places import repository_name

    before = _options(existing)
    mode = asked["mode"] or before.get("--mode") or "draft"
    repository = asked["repository"] or before.get("--repository") or _origin(folder)
    # What this vlmend comes from is newer than what the file was written with.
    action = asked["action"] or known_origin() or before.get("--action")
    if action is None:
        raise UserError(
            "which vlmend the workflow is to run is not known: this one was installed"
            " from a folder, not from a release or a repository",
            hint="--action OWNER/REPO@COMMIT, with the full id of a commit of vlmend's",
        )
    schedule = asked["schedule"] or before.get("--schedule")
    upstream = asked["upstream"] or before.get("--upstream") or UPSTREAM
    if mode == "guard" and asked["schedule"]:
        raise click.UsageError("--schedule: a guard runs on pull requests")
    if mode != "draft" and asked["upstream"]:
        raise click.UsageError("--upstream: only drafts need to know it")
    repository = repository_name(repository, "--repository")
    return Wanted(
        mode,
        repository,
        pinned(action),
        ""
        if mode == "guard"
        else checked_schedule(schedule or usual_schedule(repository)),
        repository_name(upstream, "--upstream") if mode == "draft" else "",
    )


def _options(existing: Existing | None) -> dict[str, str]:
    """Return the options that a file was written with; those it has not, it has not."""
    if existing is None:
        return {}
    return dict(zip(existing.words[::2], existing.words[1::2], strict=False))


def _origin(folder: Path) -> str:
    from contextlib import suppress

    from vlmend.cli.action.origin import repository_of
    from vlmend.cli.errors import UserError
    from vlmend.cli.local_git import LocalGit

    url = ""
    with suppress(UserError):
        url = LocalGit(folder).text("remote", "get-url", "origin")
    found = repository_of(url)
    if found is None:
        raise UserError(
            f"{folder}: has no remote `origin` on GitHub",
            hint="name the repository that it is for: --repository OWNER/REPO",
        )
    return found


def _show(before: str, after: str, place: Path) -> None:
    import difflib

    from vlmend.cli.console import printable

    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(place), "as written now", n=2
    )
    for line in lines:
        click.echo(printable(line.rstrip("\n")))


def _make_folder(folder: Path) -> None:
    from vlmend.cli.errors import UserError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}") from None


def _tell_next(wanted: Wanted) -> None:
    from vlmend.cli.console import note

    note("Commit and push it to the main branch. Then, on GitHub:")
    if wanted.mode != "guard":
        note("- tab Actions: allow workflows; in a new fork they are off")
    if wanted.mode == "draft":
        note(
            "- Settings, Actions, General: allow GitHub Actions to create pull requests"
        )
    if wanted.mode == "report":
        note("- a private repository needs code scanning, or the upload fails")
    if wanted.mode != "guard":
        note("- tab Actions, vlmend, Run workflow: the first run, at once")
    else:
        note("- Settings, Rules: require the check `guard`, if it is to block a merge")
