"""``vlmend demo``: the whole flow of ``draft``, against a forge on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from vlmend.cli.rig.model import Forge, Repository
    from vlmend.cli.rig.server import Rig

_UPSTREAM: Final = "them/vllm"
_FORK: Final = "you/vllm"
_TOKEN: Final = "a-token-that-opens-nothing"  # noqa: S105 - for the stand-in only


@click.command("demo")
@click.option("--text", is_flag=True, help="Print the text of each pull request, too.")
def command(text: bool) -> int:
    """Show what `draft` does: offline, without a token, in a few seconds.

    A forge is started on this machine: real git repositories, and a stand-in for the
    API. It holds a vLLM in miniature and a fork of it. Then `vlmend draft` runs, again
    and again, while something happens upstream. Nothing outlives the demo.

    \b
    Examples
      vlmend demo
      vlmend demo --text
      vlmend demo | less
    """  # noqa: D301 - click wants the character
    from vlmend.cli.rig.model import Forge
    from vlmend.cli.rig.sample import make_pair, sample_files
    from vlmend.cli.rig.server import Rig

    with tempfile.TemporaryDirectory(prefix="vlmend-demo-") as scratch:
        place = Path(scratch)
        (place / "forge").mkdir()
        forge = Forge(place / "forge")
        forge.add_account("you", _TOKEN)
        upstream, fork = make_pair(forge, sample_files(), _UPSTREAM, _FORK)
        with Rig(forge).running() as rig:
            return _Demo(place, forge, rig, upstream, fork).run(text)


class _Demo:
    def __init__(
        self,
        place: Path,
        forge: Forge,
        rig: Rig,
        upstream: Repository,
        fork: Repository,
    ) -> None:
        self._place = place
        self._forge = forge
        self._rig = rig
        self._upstream = upstream
        self._fork = fork

    def run(self, text: bool) -> int:
        """Go through the story; return the first exit code that is not 0."""
        from vlmend.cli.rig.sample import MODELS, commit_files, wrapper

        _say(
            "A fork of a small vLLM: three classes break a contract, two of one family."
        )
        code = self._vlmend("draft")
        _say("Again: nothing to do, so nothing happens.")
        code = code or self._vlmend("draft")
        _say("Upstream mends one of the three, and the fork follows.")
        mended = {f"{MODELS}/vega_vision.py": wrapper("VegaVision", sound=True)}
        commit_files(self._upstream, mended, "Hand up tensors in VegaVision (#7)")
        code = code or self._vlmend("draft", "--sync")
        _say("What became of it all:")
        code = code or self._vlmend("status")
        if text:
            for pull in self._fork.pulls.values():
                click.echo(f"\n{pull.title}\n\n{self._told(pull.body)}")
        return code

    def _vlmend(self, verb: str, *more: str) -> int:
        words = (verb, "--fork", _FORK, "--upstream", _UPSTREAM, *more)
        click.echo(f"\n$ vlmend {' '.join(words)}")
        hidden = ("GH_TOKEN", "GITHUB_TOKEN", "GITHUB_ACTIONS")
        env = {k: v for k, v in os.environ.items() if k not in hidden}
        env |= {
            "GITHUB_API_URL": self._rig.url,
            "GITHUB_TOKEN": _TOKEN,
            "VLMEND_CACHE_DIR": str(self._place / "cache"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "NO_PROXY": "127.0.0.1",
        }
        for role in ("AUTHOR", "COMMITTER"):
            env[f"GIT_{role}_NAME"] = "You"
            env[f"GIT_{role}_EMAIL"] = "you@example.invalid"
        done = subprocess.run(
            [sys.executable, "-m", "vlmend.cli", *words],
            cwd=self._place,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
        )
        click.echo(self._told(done.stdout), nl=False)
        return done.returncode

    def _told(self, text: str) -> str:
        # Where the stand-in listens changes from run to run and means nothing.
        return text.replace(self._rig.web, self._forge.web)


def _say(sentence: str) -> None:
    click.echo(f"\n{click.style(sentence, bold=True)}")
