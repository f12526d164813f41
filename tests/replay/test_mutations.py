"""Real model files, damaged at random: no crash, and no patch without its proof."""

from __future__ import annotations

import random
import time

import pytest

from vlmend.codemods import DirectoryTree, FilePatch, Session
from vlmend.codemods.delegate_intermediate_tensors import DelegateIntermediateTensors

HAND_UP = "make_empty_intermediate_tensors"
WORDS = (
    HAND_UP,
    "language_model",
    "SupportsPP",
    "__init__",
    "super()",
    "vllm_config",
    "return",
    "self",
)


def mutate(source: str, chance: random.Random) -> str:
    """Damage a file in one or two places, most often near what is read."""
    lines = source.splitlines(keepends=True)
    wired = [i for i, line in enumerate(lines) if f"self.{HAND_UP} = (" in line]
    if wired and chance.random() < 0.5:
        at = chance.choice(wired)
        del lines[at : at + 3]
    near = [i for i, line in enumerate(lines) if any(w in line for w in WORDS)]
    for _ in range(chance.randint(1, 2)):
        if not lines:
            break
        at = chance.choice(near) if near and chance.random() < 0.8 else 0
        at = min(at or chance.randrange(len(lines)), len(lines) - 1)
        match chance.randrange(8):
            case 0:
                del lines[at : at + chance.randint(1, 3)]
            case 1:
                lines[at] = lines[at].replace(chance.choice(WORDS), "renamed", 1)
            case 2:
                lines.insert(at, lines[at])
            case 3:
                lines[at] = " " * chance.choice((0, 4, 8, 12)) + lines[at].lstrip()
            case 4:
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
            case 5:
                text = lines[at]
                column = len(text) - len(text.lstrip())
                word = chance.choice(
                    ("if vllm_config.x:", "while x:", "try:", "with y:")
                )
                lines[at] = " " * column + word + "\n    " + text
            case 6:
                other = chance.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 7:
                lines[at] = lines[at].replace(HAND_UP, HAND_UP + "x")
    return "".join(lines)


def damage(session: Session, rounds: int, seconds: float, seed: int) -> tuple[int, int]:
    """Judge damaged files; return how many were judged and how many mended."""
    chance = random.Random(seed)
    index = session.index
    files = sorted({index.file_of(ref) for ref in index.model_classes})
    before = {f.fingerprint for f in session.run().findings}
    judged = mended = 0
    end = time.process_time() + seconds
    chance.shuffle(files)
    for _ in range(rounds):
        for file in files[:150]:
            if time.process_time() > end:
                return judged, mended
            source = index.roots[0].tree.read(file).decode()
            text = mutate(source, chance)
            fresh = session.overlaid(file, text.encode())
            result = fresh.run()
            judged += 1
            found = [f for f in result.findings if f.edits]
            for patch in fresh.patches(found):
                # The patch has passed its proof; nothing else may have changed.
                assert isinstance(patch, FilePatch), (patch.reason, text)
                mended += 1
                lines = patch.after.decode().splitlines()
                for line in text.splitlines():
                    assert line in lines
                again = fresh.overlaid(patch.file, patch.after)
                broken = [f for f in again.run().findings if f.edits]
                assert broken == [], text
                # What is handed up is an attribute that the class itself sets.
                assert f".{HAND_UP}\n" in patch.after.decode()
            assert before  # the session below is left as it was
    return judged, mended


@pytest.fixture(scope="module")
def session(release):
    return Session(
        DirectoryTree(release("0.33.0")), codemods=(DelegateIntermediateTensors(),)
    )


def test_damaged_files_are_survived(session):
    judged, mended = damage(session, 1, 6.0, seed=1)
    assert judged >= 8
    assert mended >= 1


@pytest.mark.replay
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_damaged_files_are_survived(session, seed):
    judged, mended = damage(session, 3, 30.0, seed=seed)
    assert judged >= 40
    assert mended >= 5
