"""Replacing one file: wholly, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmend.cli.errors import UserError
from vlmend.cli.files import replace_file, uncommitted


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path):
    place = tmp_path / "model.py"
    place.write_bytes(b"saved by an editor a moment ago\n")
    with pytest.raises(UserError, match="changed while vlmend was reading"):
        replace_file(place, b"as it was read\n", b"as it should be\n")
    assert place.read_bytes() == b"saved by an editor a moment ago\n"


def test_a_file_that_vanished_is_not_made_again(tmp_path: Path):
    place = tmp_path / "model.py"
    with pytest.raises(UserError, match="cannot be written: No such file"):
        replace_file(place, b"", b"as it should be\n")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_beside_the_file(tmp_path: Path):
    place = tmp_path / "model.py"
    place.write_bytes(b"before\r\n")
    replace_file(place, b"before\r\n", b"after\r\n")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        "model.py": b"after\r\n"
    }


def test_names_that_git_would_read_as_patterns(make_repo):
    repo = make_repo({"a[1].py": "1\n", "a1.py": "1\n", "b c.py": "1\n", "ü.py": "1\n"})
    for name in ("a1.py", "b c.py", "ü.py"):
        (repo / name).write_text("2\n")
    files = ["a[1].py", "a1.py", "b c.py", "ü.py"]
    assert uncommitted(repo, files) == {"a1.py", "b c.py", "ü.py"}


def test_outside_of_git_nothing_is_uncommitted(tmp_path: Path):
    (tmp_path / "a.py").write_text("1\n")
    assert uncommitted(tmp_path, ["a.py"]) == frozenset()
