"""Write the pages of this folder that come from the code.

``python docs/generate.py`` writes them; with ``--check`` it writes nothing and exits
with 1 when one is not in step. The codemods' pages are their docstrings, the page of
verbs is what ``--help`` says. With ``--transcripts`` the commands shown in the README
are run, on real releases, and what they print is put below them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from vlmend.cli.explain import documentation
from vlmend.cli.main import VERBS, vlmend
from vlmend.codemods import all_codemods

HERE = Path(__file__).resolve().parent
NOTICE = "<!-- Written by docs/generate.py; change {source} instead. -->\n\n"


TRANSCRIPT = re.compile(
    r"(<!-- transcript -->\n```console\n\$ vlmend (?P<words>.*)\n)"
    r"(?P<shown>(?:.*\n)*?)```"
)
LEFT_OUT = "[...]\n"


def with_transcripts(text: str) -> str:
    """Return the text with the output of each command that it shows.

    Where lines are left out, as many are shown on either side as were there before.
    """

    def run(block: re.Match[str]) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "vlmend.cli", *block["words"].split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
        )
        lines = [f"{line.rstrip()}\n" for line in done.stdout.splitlines()]
        if LEFT_OUT in block["shown"]:
            before, _, after = block["shown"].partition(LEFT_OUT)
            first, last = before.count("\n"), len(lines) - after.count("\n")
            lines = [*lines[:first], LEFT_OUT, *lines[last:]]
        return f"{block[1]}{''.join(lines)}```"

    return TRANSCRIPT.sub(run, text)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every generated page: where it stands, and what it says."""
    codemods = all_codemods()
    for codemod in codemods:
        notice = NOTICE.format(source="the codemod's docstring")
        yield Path("codemods", f"{codemod.id}.md"), notice + documentation(codemod)
    lines = [f"- [{c.id}]({c.id}.md): {c.summary}" for c in codemods]
    notice = NOTICE.format(source="the codemods")
    yield (
        Path("codemods/README.md"),
        f"{notice}# Codemods\n\n" + "\n".join(lines) + "\n",
    )
    yield Path("verbs.md"), _verbs()


def _verbs() -> str:
    text = NOTICE.format(source="the verbs' docstrings") + "# Verbs\n"
    top = click.Context(vlmend, info_name="vlmend", terminal_width=88)
    for verb in ("", *VERBS):
        command = vlmend.get_command(top, verb) if verb else vlmend
        assert command is not None
        context = (
            click.Context(command, info_name=verb, parent=top, terminal_width=88)
            if verb
            else top
        )
        help_text = "\n".join(
            line.rstrip() for line in command.get_help(context).splitlines()
        )
        text += f"\n## vlmend {verb}".rstrip() + f"\n\n```text\n{help_text}\n```\n"
    return text


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--transcripts", action="store_true")
    asked = parser.parse_args()
    readme = HERE.parent / "README.md"
    if asked.transcripts:
        readme.write_text(with_transcripts(readme.read_text("utf-8")), "utf-8")
    expected = {HERE / place: text for place, text in pages()}
    stray = set((HERE / "codemods").glob("*.md")) - set(expected)
    stale = [
        place
        for place, text in expected.items()
        if not place.is_file() or place.read_text("utf-8") != text
    ]
    if asked.check:
        for place in sorted([*stale, *stray]):
            sys.stderr.write(f"{place.relative_to(HERE.parent)}: not in step\n")
        return 1 if stale or stray else 0
    for place in stray:
        place.unlink()
    for place in stale:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(expected[place], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
