"""What was judged is judged again exactly when something that it read changed."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

import pytest

from vlmend.codemods import DirectoryTree, MemoryTree, OverlayTree, Session
from vlmend.codemods.analysis.memory import UNSTABLE, Memory
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.values import ClassRef

MODELS = "vllm/model_executor/models"

WRAPPER = """\
import torch.nn as nn

from .interfaces import SupportsMultiModal, SupportsPP
from .utils import init_vllm_registered_model
from vllm.transformers_utils.configs.{module} import {name}Config


class {name}ForConditionalGeneration(nn.Module, SupportsMultiModal, SupportsPP):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        config: {name}Config = vllm_config.model_config.hf_config
        with self._mark_language_model(vllm_config):
            self.language_model = init_vllm_registered_model(
                vllm_config=vllm_config, hf_config=config.text_config
            )
{rest}
    def forward(self, input_ids, positions, intermediate_tensors=None, **kwargs):
        return self.language_model(input_ids, positions, intermediate_tensors)
"""
HAND_UP = """\
        self.make_empty_intermediate_tensors = (
            self.language_model.make_empty_intermediate_tensors
        )
"""
CONFIG = """\
from transformers import LlamaConfig, PretrainedConfig


class {name}Config(PretrainedConfig):
    sub_configs = {{"text_config": LlamaConfig}}

    def __init__(self, text_config=None, **kwargs):
        self.text_config = LlamaConfig(**(text_config or {{}}))
        super().__init__(**kwargs)
"""


@pytest.fixture
def files(judge) -> dict[str, bytes]:
    """A tree in which every road that a judgement takes has a file."""
    texts = {
        f"{MODELS}/llama.py": (
            "import torch.nn as nn\n\n"
            "from .interfaces import SupportsPP\n"
            "from .utils import make_empty_intermediate_tensors_factory\n\n\n"
            "class LlamaForCausalLM(nn.Module, SupportsPP):\n"
            '    def __init__(self, *, vllm_config, prefix=""):\n'
            "        super().__init__()\n"
            "        self.make_empty_intermediate_tensors = (\n"
            '            make_empty_intermediate_tensors_factory(["h"], 8)\n'
            "        )\n\n"
            "    def forward(self, input_ids, positions, intermediate_tensors=None):\n"
            "        return input_ids\n"
        ),
        f"{MODELS}/heir.py": (
            "from .bare import BareForConditionalGeneration\n\n\n"
            "class HeirForConditionalGeneration(BareForConditionalGeneration):\n"
            "    pass\n"
        ),
        f"{MODELS}/base.py": (
            "from .wired import WiredForConditionalGeneration\n\n\n"
            "class Unbuilt(WiredForConditionalGeneration):\n"
            '    def __init__(self, *, vllm_config, prefix=""):\n'
            "        pass\n"
        ),
        f"{MODELS}/built.py": (
            "from .base import Unbuilt\n\n\n"
            "class BuiltForConditionalGeneration(Unbuilt):\n    pass\n"
        ),
    }
    for name, rest in (("Bare", ""), ("Wired", HAND_UP)):
        module = name.lower()
        texts[f"{MODELS}/{module}.py"] = WRAPPER.format(
            name=name, module=module, rest=rest
        )
        texts[f"vllm/transformers_utils/configs/{module}.py"] = CONFIG.format(name=name)
    return judge(texts).files


@dataclass
class Store:
    """The cache, and nothing else: what one run leaves for the next."""

    rows: dict[bytes, bytes] = field(default_factory=dict)

    def get(self, key: bytes) -> bytes | None:
        return self.rows.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self.rows[key] = value

    def flush(self) -> None:
        pass


@pytest.fixture
def found_anew(monkeypatch) -> list[object]:
    """The kept questions that had to be answered again."""
    asked: list[object] = []
    real = Memory._find

    def find(self, key, compute, home):
        if home is not None:
            asked.append(key)
        return real(self, key, compute, home)

    monkeypatch.setattr(Memory, "_find", find)
    return asked


def names(keys) -> set[str]:
    """Return the classes that questions are about."""
    return {part.name for key in keys for part in key if isinstance(part, ClassRef)}


def run(files, store=None):
    return Session(MemoryTree(files), cache=store).run()


def delegation(result):
    """Return what one of the codemods says, by class."""
    return {
        f.class_name: f.status.value
        for f in result.findings
        if f.codemod == "delegate-intermediate-tensors"
    }


def test_the_tree_exercises_every_road(files):
    said = delegation(run(files))
    assert said["BareForConditionalGeneration"] == "fixable"
    assert said["WiredForConditionalGeneration"] == "satisfied"
    assert "Unbuilt" in said


def test_nothing_is_judged_again_where_nothing_changed(files, found_anew):
    store = Store()
    before = run(files, store)
    # Not a model: the whole scan is not stored under this listing, its answers are.
    fresh = {**files, "vllm/model_executor/models/zzz.py": b"x = 1\n"}
    assert found_anew
    found_anew.clear()
    assert run(fresh, store).findings == before.findings
    assert names(found_anew) == set()


def test_only_what_read_the_changed_file_is_judged_again(files, found_anew):
    store = Store()
    run(files, store)
    found_anew.clear()
    heir = f"{MODELS}/heir.py"
    run(files | {heir: files[heir] + b"\n# changed\n"}, store)
    again = names(found_anew)
    assert "HeirForConditionalGeneration" in again
    assert again.isdisjoint({"LlamaForCausalLM", "WiredForConditionalGeneration"})


def test_a_changed_inner_model_has_its_wrapper_judged_again(files, found_anew):
    store = Store()
    run(files, store)
    found_anew.clear()
    inner = f"{MODELS}/llama.py"
    lacking = files[inner].replace(b"make_empty_intermediate_tensors =", b"other =")
    result = run(files | {inner: lacking}, store)
    again = names(found_anew)
    assert {"LlamaForCausalLM", "WiredForConditionalGeneration"} <= again
    assert delegation(result)["WiredForConditionalGeneration"] != "satisfied"


def test_every_file_counts(files):
    """A line more at the top of any file moves whatever is cited there."""
    store = Store()
    run(files, store)
    moved = 0
    for name in files:
        changed = files | {name: b"# moved\n" + files[name]}
        full = run(changed)
        assert run(changed, store) == full, name
        moved += full != run(files)
    assert moved > 8


def test_a_file_that_goes_or_comes_counts(files):
    store = Store()
    run(files, store)
    for name in files:
        fewer = {k: v for k, v in files.items() if k != name}
        assert run(fewer, store) == run(fewer), name
        assert run(files, store) == run(files), name


def test_a_file_that_cannot_be_read_is_reported_by_every_run(files):
    """Also where only one judgement reads it, and that one is taken from the cache."""
    wired = f"{MODELS}/wired.py"
    use = b"        super().__init__()\n        self.tower = Tower()\n"
    text = files[wired].replace(b"        super().__init__()\n", use)
    broken = files | {
        wired: b"from .tower import Tower\n" + text,
        f"{MODELS}/tower.py": b"def broken(:\n",
    }
    store = Store()
    full = run(broken)
    assert [error.file for error in full.errors] == [f"{MODELS}/tower.py"]
    assert run(broken, store) == full
    other = broken | {f"{MODELS}/heir.py": files[f"{MODELS}/heir.py"] + b"# x\n"}
    assert run(other, store).errors == full.errors


def edited(source: bytes, chance: random.Random) -> bytes:
    """Do what a person, or an accident, does to a file."""
    lines = source.decode().splitlines(keepends=True) or ["\n"]
    at = chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, "# a word\n")
        case 2:
            lines.insert(at, lines[chance.randrange(len(lines))])
        case 3:
            words = re.findall(r"\b[A-Za-z_]\w{3,}\b", lines[at]) or ["x"]
            lines[at] = lines[at].replace(chance.choice(words), "Renamed")
        case 4:
            lines = lines[:at]
    return "".join(lines).encode()


@pytest.mark.parametrize("seed", range(6))
def test_after_any_edits_the_short_way_comes_to_the_same_result(files, seed):
    chance = random.Random(seed)
    store = Store()
    now = dict(files)
    for _ in range(25):
        name = chance.choice(sorted(now))
        now[name] = edited(now[name], chance) if chance.random() < 0.8 else files[name]
        assert run(now, store) == run(now)


@pytest.mark.parametrize("seed", range(3))
def test_an_overlaid_index_comes_to_the_same_result(files, seed):
    chance = random.Random(seed)
    session = Session(MemoryTree(files))
    session.run()
    for _ in range(25):
        name = chance.choice(sorted(files))
        changed = edited(files[name], chance)
        fresh = session.overlaid(name, changed)
        full = Session(OverlayTree(MemoryTree(files), {name: changed})).run()
        assert fresh.run() == full, name


def test_a_question_past_the_index_is_heard(files):
    index = ModelIndex(MemoryTree(files))
    with index.reading() as needs:
        index.roots[0].tree.exists("requirements/common.txt")
        index.roots[0].tree.read(f"{MODELS}/utils.py")
        index.source_of(index.roots[0], f"{MODELS}/inner.py")
    assert {(need[0], need[2]) for need in needs} == {
        ("exists", "requirements/common.txt"),
        ("read", f"{MODELS}/utils.py"),
        ("read", f"{MODELS}/inner.py"),
    }


def test_what_the_configs_read_once_is_needed_by_all_who_ask(files):
    index = ModelIndex(MemoryTree(files))
    module = "vllm.transformers_utils.configs.bare"
    needs: list[set[object]] = []
    for _ in range(2):
        with index.reading() as one:
            index.configs.pin.follow("BareConfig", module, ("text_config",))
        needs.append(one)
    assert needs[0] == needs[1]
    assert any(getattr(n, "path", "").endswith("configs/bare.py") for n in needs[1])


def test_an_answer_from_within_a_circle_is_not_remembered(files):
    index = ModelIndex(MemoryTree(files))

    def first() -> tuple[str, ...]:
        return index.remember(
            "first", lambda: ("first", *second()), on_cycle=("circle",)
        )

    def second() -> tuple[str, ...]:
        return index.remember(
            "second", lambda: ("second", *first()), on_cycle=("circle",)
        )

    with index.reading() as needs:
        assert first() == ("first", "second", "circle")
    assert UNSTABLE in needs
    assert second() == ("second", "first", "second", "circle")


def test_a_damaged_answer_is_found_again(files):
    store = Store()
    expected = run(files, store)
    for key in store.rows:
        store.rows[key] = b"\x80\x04junk"
    assert run(files, store) == expected


@pytest.mark.replay
@pytest.mark.parametrize("version", ["0.21.0", "0.33.0"])
def test_edits_of_a_real_release(release, version, found_anew):
    tree = DirectoryTree(release(version))
    store = Store()
    session = Session(tree, cache=store)
    session.run()
    read = sorted(
        f"{name.replace('.', '/')}.py"
        for name, module in session.index._modules.items()
        if module is not None and tree.exists(f"{name.replace('.', '/')}.py")
    )
    chance = random.Random(version)
    always = [f"{MODELS}/{n}.py" for n in ("interfaces", "registry", "utils", "llama")]
    for name in [*always, *chance.sample(read, 12)]:
        changed = OverlayTree(tree, {name: b"# moved\n" + tree.read(name)})
        assert Session(changed, cache=store).run() == Session(changed).run(), name
