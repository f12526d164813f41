"""Names from a tree, a branch and a message that want to be more than names."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
from markdown_it import MarkdownIt
from worlds import FORK, TOKEN, UPSTREAM, Forge

from vlmend.cli.rig.model import run_git
from vlmend.cli.rig.sample import MODELS, commit_files, make_pair, sample_files, wrapper

pytestmark = pytest.mark.rig

CLASS = "Ünïcode_x_onerror_alert"
BROKEN = {"vega_vision": "VegaVision", "_lead_ing": CLASS}
TEMPLATE = """\
## What <script>alert(1)</script> {{ 7 * 7 }}

## How **tested** `x` [y](javascript:z)

- [ ] {% raw %} $(touch /tmp/pwned) <img src=x onerror=alert(1)>
"""


@pytest.fixture
def hostile(world):
    """A fork whose own files try it all."""
    home = world.place / "hostile"
    home.mkdir()
    forge = Forge(home)
    forge.add_account("you", TOKEN)
    files = sample_files(BROKEN)
    files[".github/PULL_REQUEST_TEMPLATE.md"] = TEMPLATE
    files["-rf $(touch pwned) `id`.py"] = "x = 1\n"
    files[f"{MODELS}/{{{{7*7}}}} <b>.py"] = wrapper("Odd")
    # A tree that brings templates and settings of its own is not asked for either.
    files["templates/drafts/title.txt.j2"] = "pwned"
    files["title.txt.j2"] = "pwned"
    up, fork = make_pair(forge, files, UPSTREAM, FORK)
    commit_files(up, {"docs/x.md": "x\n"}, "$(id) {{ 1 }} <!-- --> #1 @grace (#7)")
    run_git(fork.folder, "update-ref", "refs/heads/vlmend/-x/--y", "main")
    world.fresh(forge)
    return world


def test_nothing_in_a_text_does_anything(hostile):
    ended = hostile.draft("--group-by", "class")
    assert ended.code == 0, hostile.everything()
    assert len(hostile.open_heads()) == 2
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    for pull in hostile.fork.pulls.values():
        assert "pwned" not in pull.title
        assert "49" not in pull.body.split("## How")[0]
        assert "<script" not in pull.body
        assert "<img" not in pull.body
        kinds = {"html_block": [], "html_inline": []}
        links = []
        for token in reader.parse(pull.body):
            for one in (token, *(token.children or ())):
                if one.type in kinds:
                    kinds[one.type].append(one.content)
                if one.type == "link_open":
                    links.append(one.attrs["href"])
        assert kinds["html_inline"] == []
        for block in kinds["html_block"]:
            assert block.startswith(("<details>", "</details>")), block
        assert all(link.startswith(hostile.rig.web) for link in links)
        assert pull.head.replace("/", "").replace("-", "").isascii()
    assert not list(hostile.place.rglob("pwned"))


def test_messages_stay_messages(hostile):
    assert hostile.draft("--group-by", "class").code == 0
    for head in hostile.open_heads():
        message = run_git(hostile.fork.folder, "log", "-1", "--format=%B", head)
        trailers = run_git(
            hostile.fork.folder, "log", "-1", "--format=%(trailers:only)", head
        )
        keys = {line.partition(":")[0] for line in trailers.splitlines() if line}
        assert keys == {"Vlmend-Fingerprints", "Vlmend-Change", "Co-authored-by"}
        assert "{{" not in message


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--base", "--upload-pack=x"), "not the name of a branch"),
        (("--base", "a b"), "not the name of a branch"),
        (("--fork", "-x/y"), "not a repository"),
        (("--fork", "you/vllm;id"), "not a repository"),
        (("--fork", "you/../x"), "not a repository"),
        (("--upstream", "http://x/y"), "not a repository"),
    ],
)
def test_hostile_words_on_the_command_line(world, words, told):
    given = {"--fork": FORK, "--upstream": UPSTREAM} | {words[0]: words[1]}
    ended = world.run("draft", *(f"{k}={v}" for k, v in given.items()))
    assert ended.code == 2, ended
    assert told in ended.err


def test_a_template_of_the_users_own_is_escaped_too_and_cannot_reach_out(world):
    folder = world.place / "mine"
    folder.mkdir()
    title = "{{ change.classes[0] }} {{ ''.__class__.__mro__ }}"
    (folder / "title.txt.j2").write_text(title)
    ended = world.draft("--templates", str(folder))
    assert ended.code == 2
    assert "template title.txt.j2" in ended.text
    (folder / "title.txt.j2").write_text("{{ nothing_like_it }}")
    ended = world.draft("--templates", str(folder))
    assert ended.code == 2
    assert "is undefined" in ended.text
    (folder / "title.txt.j2").write_text("Mine: {{ names }}")
    assert world.draft("--templates", str(folder)).code == 0
    assert all(p.title.startswith("Mine: ") for p in world.fork.pulls.values())


def test_two_runs_at_once_end_with_one_pull_request_each(make_world, world):
    """Two machines: each has a cache of its own, and both see the same fork."""
    other = make_world()
    other.fresh()
    # The second world's runs go to the first one's forge.
    words = ("draft", "--fork", FORK, "--upstream", UPSTREAM)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(world.run, *words)
        second = pool.submit(
            other.run, *words, GITHUB_API_URL=world.rig.url, cache="cold"
        )
        codes = {first.result().code, second.result().code}
    assert codes == {0}, world.everything() + other.everything()
    heads = world.open_heads()
    assert len(heads) == len(set(heads)) == 2
    assert len(world.fork.pulls) == 2


def test_the_seed_is_never_changed(world):
    before = copy.deepcopy(world.seed.repositories)
    world.draft()
    assert {n: r.pulls for n, r in before.items()} == {
        n: r.pulls for n, r in world.seed.repositories.items()
    }
