"""Titles, commit messages and pull request texts, rendered from ``templates/drafts``.

Templates come with vlmend, from the command line, or from the user's own configuration;
never from the tree. What they print is escaped unless it was made by us.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vlmend.cli.commits import CHANGE, DISCLOSURE, FINGERPRINTS, SIGN_OFF
from vlmend.cli.drafts.change import Change
from vlmend.cli.drafts.escape import (
    Markdown,
    cell,
    code,
    commit_text,
    fenced,
    flat,
    html,
    link,
    plain,
    prose,
    shell,
    worded,
)
from vlmend.cli.drafts.fitting import fitted
from vlmend.cli.drafts.proving import Proven
from vlmend.cli.drafts.shapes import Shape
from vlmend.cli.errors import UserError
from vlmend.cli.forge.pulls import own_line
from vlmend.cli.past.since import Knows, nothing_known, present_since
from vlmend.cli.version import version

if TYPE_CHECKING:
    from jinja2 import Environment

    from vlmend.cli.drafts.around import Surroundings
    from vlmend.cli.forge.duplicates import Searched
    from vlmend.codemods.codemod import Evidence, Finding

MAX_BODY: Final = 60_000
"""GitHub takes 65536 characters; the rest is for what a person adds."""
TOOL_ADDRESS: Final = "vlmend@noreply.invalid"


@dataclass(frozen=True)
class TestRun:
    """What a person ran, and what came of it."""

    command: str
    result: str


@dataclass(frozen=True)
class Subject:
    """Everything that the texts of one pull request are made from.

    Attributes:
        change: the final diff and its findings.
        around: what the tree says beside the findings.
        searched: the duplicate searches and what they found.
        not_duplicate: why a hit is none, in the person's words.
        web: address of the pages of the repository that holds the base commit; empty
            where no page is known to show the lines.
        repository: its name.
        base: full id of the base commit.
        shape: what the tree's own template asks for.
        tests: what a person ran; empty for an unattended draft.
        proven: what running the change has shown; nothing where it was not run.
        knows: says whether a commit is part of the base's history.
        target: what was judged, as a command line names it.
    """

    change: Change
    around: Surroundings
    searched: Searched
    web: str
    repository: str
    base: str
    shape: Shape
    not_duplicate: str | None = None
    tests: Sequence[TestRun] = field(default=())
    proven: Proven = field(default_factory=Proven)
    knows: Knows = nothing_known
    target: str = ""

    def since(self, finding: Finding) -> str:
        """Return since when a defect is there, or nothing where it is not known."""
        return present_since(finding, self.knows)

    def permalink(self, file: str, line: int) -> str:
        """Return the address of a line at the base commit, or nothing."""
        if not self.web:
            return ""
        return f"{self.web}/{self.repository}/blob/{self.base}/{file}#L{line}"


class Texts:
    """Renders texts.

    Args:
        folders: where templates are looked for before vlmend's own.
    """

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self._folders = list(folders)

    def title(self, change: Change) -> str:
        """Return the title that the final diff deserves."""
        text = self._plain("title.txt.j2", {"change": change, "names": _names(change)})
        return flat(text)[:200]

    def commit(self, subject: Subject, sealed: str, signed_by: str | None) -> str:
        """Return the commit message, trailers included.

        Args:
            subject: what it is about.
            sealed: digest of exactly what the commit changes.
            signed_by: the person who signs off, or None.
        """
        change = subject.change
        trailers = [
            (FINGERPRINTS, ", ".join(change.fingerprints)),
            (CHANGE, f"{change.digest} {sealed}"),
            (DISCLOSURE, f"vlmend {version()} <{TOOL_ADDRESS}>"),
        ]
        if signed_by is not None:
            trailers.append((SIGN_OFF, signed_by))
        body = self._plain(
            "commit.txt.j2",
            {"subject": subject, "change": change, "title": self.title(change)},
        )
        lines = "".join(f"{key}: {value}\n" for key, value in trailers)
        return f"{_wrapped(body)}\n\n{lines}"

    def body(self, subject: Subject) -> str:
        """Return the text of the pull request, in the shape that the tree asks for."""
        text = self._markdown(f"{subject.shape.kind}.md.j2", subject, brief=False)
        if len(text) > MAX_BODY:
            text = self._markdown(f"{subject.shape.kind}.md.j2", subject, brief=True)
        change = subject.change
        return fitted(text, MAX_BODY, own_line(change.digest, change.fingerprints))

    def closing(self, reasons: Sequence[str]) -> str:
        """Return the comment with which a draft is closed."""
        env = self._environment(plain)
        return _rendered(env, "closing.md.j2", {"reasons": reasons}).strip()

    def _markdown(self, name: str, subject: Subject, *, brief: bool) -> str:
        def place(evidence: Evidence) -> Markdown:
            shown = f"{flat(evidence.file)}:{evidence.line}"
            if evidence.source != "tree":
                return Markdown(f"{code(shown)} ({plain(evidence.source.value)})")
            return link(shown, subject.permalink(evidence.file, evidence.line))

        change = subject.change
        env = self._environment(plain)
        values: dict[str, Any] = {
            "subject": subject,
            "change": change,
            "around": subject.around,
            "searched": subject.searched,
            "shape": subject.shape,
            "place": place,
            "brief": brief,
            "version": version(),
            "proven": proven_words(subject.proven),
            "own_line": Markdown(own_line(change.digest, change.fingerprints)),
            "target": subject.target or f"{subject.repository}@{subject.base}",
        }
        return f"{_squeezed(_rendered(env, name, values))}\n"

    def _plain(self, name: str, values: Mapping[str, Any]) -> str:
        env = self._environment(commit_text)
        return _rendered(env, name, values).strip()

    def _environment(self, finalize: Callable[[object], str]) -> Environment:
        return _environment(tuple(self._folders), finalize)

    @cached_property
    def own_folders(self) -> tuple[Path, ...]:
        """The folders that were given, for messages."""
        return tuple(self._folders)


_FILTERS: Final[Mapping[str, Any]] = {
    "cell": cell,
    "code": code,
    "commit_text": commit_text,
    "fenced": fenced,
    "html": html,
    "link": link,
    "prose": prose,
    "shell": shell,
    "worded": worded,
    "raw": Markdown,
}


@cache
def _environment(
    folders: tuple[Path, ...], finalize: Callable[[object], str]
) -> Environment:
    """Return where templates are compiled, once for all texts of a run."""
    from jinja2 import (
        ChoiceLoader,
        FileSystemLoader,
        FunctionLoader,
        StrictUndefined,
    )
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Not HTML: every value is escaped for Markdown by `finalize`.
    env = ImmutableSandboxedEnvironment(
        loader=ChoiceLoader([FileSystemLoader(folders), FunctionLoader(_own_template)]),
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(_FILTERS)
    return env


def proven_words(proven: Proven) -> dict[str, Any]:
    """Return what a text says of a proof at run time, in plain words."""
    from vlmend.cli.proof.telling import LIMITS_OF_IT, describe_config

    return {
        "proofs": [
            {
                "name": proof.finding.class_name,
                "outcome": str(proof.verdict.outcome),
                "reason": proof.verdict.reason,
                "stage": proof.verdict.stage,
                "rows": proof.verdict.shown,
                "config": describe_config(proof),
            }
            for proof in proven.proofs
        ],
        "versions": ", ".join(
            f"{name} {found}" for name, found in proven.proofs[0].versions.items()
        )
        if proven.proofs
        else "",
        "tests": proven.offered,
        "not_shown": LIMITS_OF_IT,
    }


def template_folders(given: Path | None) -> list[Path]:
    """Return where templates are looked for first: as asked, then the user's own."""
    import platformdirs

    own = platformdirs.user_config_path("vlmend", appauthor=False) / "templates"
    return [folder for folder in (given, own) if folder is not None and folder.is_dir()]


def _own_template(name: str) -> str | None:
    place = files("vlmend.templates").joinpath("drafts", name)
    return place.read_text("utf-8") if place.is_file() else None


def _rendered(env: Environment, name: str, values: Mapping[str, Any]) -> str:
    from jinja2 import TemplateError

    try:
        return env.get_template(name).render(values)
    except TemplateError as error:
        raise UserError(f"template {name}: {error}") from error


def _names(change: Change) -> str:
    short = [_short(name) for name in change.classes]
    if len(short) > 3:
        return f"{', '.join(short[:2])} and {len(short) - 2} more"
    return " and ".join(filter(None, [", ".join(short[:-1]), short[-1]]))


def _short(name: str) -> str:
    for ending in ("ForConditionalGeneration", "ForCausalLM"):
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name


def _wrapped(text: str) -> str:
    """Break the paragraphs of a message at 72 columns; indented lines stay."""
    import textwrap

    parts = [
        line
        if line.startswith(" ") or index == 0
        else textwrap.fill(
            line, 72, break_long_words=False, break_on_hyphens=False, tabsize=1
        )
        for index, line in enumerate(text.splitlines())
    ]
    return "\n".join(parts)


def _squeezed(text: str) -> str:
    """Leave no more than one empty line between paragraphs, outside of code."""
    lines: list[str] = []
    fence = ""
    for line in text.strip().splitlines():
        bare = line.lstrip()
        if bare.startswith("```"):
            mark = bare[: len(bare) - len(bare.lstrip("`"))]
            fence = "" if fence == mark else fence or mark
        if fence or line.strip() or (lines and lines[-1].strip()):
            lines.append(line.rstrip() if not fence else line)
    return "\n".join(lines)
