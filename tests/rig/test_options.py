"""What a person asks for on the command line, or in git's and the tree's settings."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from worlds import BROKEN, FORK, SOUND, TOKEN, UPSTREAM

from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import MODELS, commit_files, registry, wrapper

pytestmark = pytest.mark.rig

FAMILY = "vlmend/delegate-intermediate-tensors/polaris"
SINGLES = "vlmend/delegate-intermediate-tensors/singles"
VEGA = "VegaVisionForConditionalGeneration"


# --- signing -------------------------------------------------------------------------


@pytest.fixture
def signer(world):
    """A person whose commits are signed, by a key made for this test."""
    assert shutil.which("ssh-keygen"), "install openssh-client"
    key = world.place / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", key]
    subprocess.run(words, check=True)
    public = key.with_suffix(".pub").read_text().strip()
    allowed = world.place / "allowed"
    allowed.write_text(f"ada@example.invalid {public}\n")
    config = world.place / "gitconfig"
    config.write_text(
        "[user]\n\tname = Ada Example\n\temail = ada@example.invalid\n"
        f"\tsigningKey = {key}.pub\n"
        "[gpg]\n\tformat = ssh\n[commit]\n\tgpgSign = true\n"
        f'[gpg "ssh"]\n\tallowedSignersFile = {allowed}\n'
    )
    return config


def signature(world, config, branch):
    """Return how git judges the signature of a branch's commit, and whose it is."""
    words = ["git", "-C", world.fork.folder, "log", "-1", "--format=%G? %GS", branch]
    env = {"GIT_CONFIG_GLOBAL": str(config), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=env)
    return done.stdout.strip()


def test_configured_signing_is_honoured(world, signer):
    variables = {"GIT_CONFIG_GLOBAL": str(signer)}
    assert world.draft(**variables).code == 0, world.everything()
    for branch in (FAMILY, SINGLES):
        assert signature(world, signer, branch) == "G ada@example.invalid"
    # It is ours all the same: running again changes nothing.
    assert world.draft(**variables).out.count("unchanged") == 2


def test_what_is_published_is_signed_too(world, signer):
    variables = {"GIT_CONFIG_GLOBAL": str(signer)}
    assert world.draft("--class", VEGA).code == 0, world.everything()
    assert signature(world, signer, SINGLES) == "N"
    answers = ["y", "pytest", "3 passed", "", "y", UPSTREAM]
    words = ("publish", f"{FORK}#1", "--upstream", UPSTREAM)
    ended = world.at_terminal(answers, *words, **variables)
    assert ended.code == 0, world.everything()
    assert signature(world, signer, SINGLES) == "G ada@example.invalid"


def test_a_key_that_is_gone_is_one_line(world, signer):
    (world.place / "key").unlink()
    ended = world.draft(GIT_CONFIG_GLOBAL=str(signer))
    assert ended.code == 2
    assert ended.out.count("failed ") == 2
    assert "Traceback" not in ended.text
    assert world.fork.pulls == {}


# --- where the server is -------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "/"])
def test_an_enterprise_server_is_named_by_option(world, ending):
    words = ("--api-url", f"{world.rig.url}{ending}")
    ended = world.draft(*words, GITHUB_API_URL="")
    assert ended.code == 0, world.everything()
    assert world.rig.url.endswith("/api/v3")
    assert world.open_heads() == [FAMILY, SINGLES]
    # Links lead to the server's pages, not to its API.
    body = next(iter(world.fork.pulls.values())).body
    assert f"]({world.rig.web}/{FORK}/blob/" in body


def test_the_option_comes_before_the_variable(world):
    elsewhere = "https://forge.invalid/api/v3"
    ended = world.draft("--api-url", world.rig.url, GITHUB_API_URL=elsewhere)
    assert ended.code == 0, world.everything()


def test_a_server_that_is_not_there_is_one_line(world):
    ended = world.draft("--api-url", "http://127.0.0.1:9/api/v3")
    assert ended.code == 2
    (line,) = [x for x in ended.err.splitlines() if x.startswith("vlmend: ")]
    assert "no answer" in line


# --- a person looks ------------------------------------------------------------------

LOOK = "LookVL"
CHAINED = """

class ChainedForCausalLM(InnerForCausalLM):
    pass
"""


@pytest.fixture
def doubtful(world):
    """A class whose fix a person must look at, and no other."""
    names = {m: n for m, n in (BROKEN | SOUND).items() if m not in BROKEN}
    text = wrapper(LOOK, sound=True).replace(
        "        inputs_embeds=None,\n        **kwargs: object,\n",
        "        inputs_embeds=None,\n",
    )
    files = {f"{MODELS}/{module}.py": None for module in BROKEN}
    files |= {
        f"{MODELS}/look_vl.py": text,
        f"{MODELS}/registry.py": registry(names | {"look_vl": LOOK}),
    }
    commit_files(world.fork, files, "Something to look at")
    return world


REVIEW = ("draft", "--fork", FORK, "--upstream", UPSTREAM, "--level", "review", "-i")


def test_without_review_there_is_nothing_to_draft(doubtful):
    assert doubtful.draft().code == 0, doubtful.everything()
    assert doubtful.fork.pulls == {}


def test_a_person_who_agrees_gets_a_draft(doubtful):
    ended = doubtful.at_terminal(["y"], *REVIEW)
    assert ended.code == 0, doubtful.everything()
    (pull,) = doubtful.fork.pulls.values()
    assert LOOK in pull.title
    assert "a person must look at it" in pull.body


@pytest.mark.parametrize("typed", ["n", "q"])
def test_a_person_who_does_not_agree_gets_none(doubtful, typed):
    ended = doubtful.at_terminal([typed], *REVIEW)
    assert ended.code == 0, doubtful.everything()
    assert doubtful.fork.pulls == {}


# --- what the branch itself asks for -------------------------------------------------

IGNORE = f"""\
[[ignore]]
class = "{VEGA}"
codemod = "delegate-intermediate-tensors"
reason = "it is being rewritten"
"""
TABLES = {
    "codemods": 'codemods = ["explicit-architectures"]\n',
    "exclude": 'exclude = ["VegaVision*", "Polaris*"]\n',
    "exclude in pyproject": "",
}


@pytest.mark.parametrize("table", TABLES)
def test_what_the_branch_leaves_out_is_not_drafted(world, table):
    files = {"vlmend.toml": TABLES[table]}
    if not TABLES[table]:
        files = {
            "pyproject.toml": '[tool.vlmend]\nexclude = ["*vl*", "Vega*", "*VL*"]\n'
        }
    commit_files(world.fork, files, "Configure")
    ended = world.draft(cache="cold")
    assert ended.code == 0, world.everything()
    assert world.fork.pulls == {}


def test_what_the_branch_ignores_is_not_drafted_and_not_called_mended(world):
    assert world.draft().code == 0
    commit_files(world.fork, {"vlmend.toml": IGNORE}, "Configure")
    for ended in (world.draft(), world.run("close-fixed", *REVIEW[1:5])):
        assert ended.code == 0, world.everything()
        assert "the base asks not to see what it mends" in " ".join(ended.out.split())
        assert world.open_heads() == [FAMILY, SINGLES]


def test_what_is_typed_comes_before_what_the_branch_says(world):
    commit_files(world.fork, {"vlmend.toml": TABLES["codemods"]}, "Configure")
    ended = world.draft("--codemod", "delegate-intermediate-tensors")
    assert ended.code == 0, world.everything()
    assert world.open_heads() == [FAMILY, SINGLES]


def test_the_branch_cannot_ask_for_what_a_person_must_look_at(doubtful):
    commit_files(doubtful.fork, {"vlmend.toml": 'level = "review"\n'}, "Configure")
    assert doubtful.draft().code == 0, doubtful.everything()
    assert doubtful.fork.pulls == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("codemods = 3\n", "must be a list of strings", id="a-wrong-kind"),
        pytest.param('codemods = ["x-y"]\n', "vlmend.toml: there is no", id="unknown"),
        pytest.param('templates = "x"\n', "unknown key 'templates'", id="templates"),
        pytest.param('upstream = "a/b"\n', "unknown key 'upstream'", id="upstream"),
    ],
)
def test_a_configuration_that_is_no_use_is_one_line(world, text, told):
    commit_files(world.fork, {"vlmend.toml": text}, "Configure")
    ended = world.draft()
    assert ended.code == 2
    assert told in ended.err
    assert world.fork.pulls == {}


def test_a_misspelled_class_is_named(world):
    ended = world.draft("--class", "VegaVison*")
    assert ended.code == 2
    assert "no model class matches --class VegaVison*" in ended.err


# --- caps ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "opened"),
    [
        pytest.param(("--max-new", "1"), [1, 2, 2], id="max-new"),
        pytest.param(("--max-new", "0"), [0, 0], id="none-new"),
        pytest.param(("--max-open", "1"), [1, 1], id="max-open"),
    ],
)
def test_what_a_cap_holds_back_is_no_failure(world, words, opened):
    for count in opened:
        ended = world.draft(*words)
        assert ended.code == 0, world.everything()
        assert len(world.open_heads()) == count
        assert ("held back" in ended.out) == (count < 2)


def test_a_limit_that_is_too_long_says_what_is_done_and_left(world):
    posted = []

    def limited(request, act):
        if request.method == "POST" and request.path.endswith("/pulls"):
            posted.append(request)
            if len(posted) > 1:
                from vlmend.cli.rig.exchange import refusal

                return refusal(429, "secondary rate limit", Retry_After="900")
        return act()

    world.fault = limited
    ended = world.draft("--max-wait", "60")
    assert ended.code == 3, world.everything()
    assert f"done: 1; left: {SINGLES}" in ended.err


def test_the_first_lines_for_a_newcomer(world):
    """No token, a wrong one, no fork: one line each, and what to do."""
    nothing = {"GITHUB_TOKEN": "", "PATH": "/usr/bin:/bin"}
    cases = [
        (world.draft("--dry-run", **nothing), "no GitHub token", "gh auth login"),
        (
            world.draft("--dry-run", GITHUB_TOKEN="ghp_wrong"),
            "Bad credentials (401)",
            "the token is not valid",
        ),
        (
            world.run(
                "draft", "--fork", "me/vllm", "--upstream", UPSTREAM, "--dry-run"
            ),
            "me/vllm: no such repository, or the token cannot see it",
            "--create-fork makes it",
        ),
    ]
    for ended, told, hint in cases:
        assert ended.code == 2
        assert ended.out == ""
        lines = ended.err.splitlines()
        assert len([x for x in lines if x.startswith("vlmend: ")]) == 1, lines
        assert told in ended.err
        assert hint in ended.err
        assert len(lines) <= 3
    assert run_git(world.fork.folder, "for-each-ref", "refs/heads/vlmend") == ""
    assert TOKEN not in "".join(world.told)
