"""A cache of facts that is broken in any way is an empty one, never an error."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vlmend.cli.cache import FactsStore, cache_directory


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "facts.sqlite3"


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def filled(place: Path, count: int = 3, size: int = 10) -> Path:
    with FactsStore(place) as store:
        store.put_many({key(i): bytes([i % 256]) * size for i in range(count)})
    return place


def works(place: Path) -> bool:
    """Say whether what is put now is found by the next run."""
    with FactsStore(place) as store:
        store.put(key(99), b"new")
    with FactsStore(place) as store:
        return store.get(key(99)) == b"new"


def test_values_come_back(place):
    filled(place)
    with FactsStore(place) as store:
        assert store.get(key(1)) == b"\x01" * 10
        assert store.get(key(7)) is None
        assert store.get_many([key(2), key(7), key(2)]) == {key(2): b"\x02" * 10}


def test_nothing_is_written_before_the_flush(place):
    store = FactsStore(place)
    store.put(key(1), b"a")
    assert store.get(key(1)) == b"a"
    assert not place.parent.exists()
    store.flush()
    assert FactsStore(place).get(key(1)) == b"a"


def test_flushing_twice_and_going_on(place):
    store = FactsStore(place)
    for i in range(3):
        store.put(key(i), bytes([i]))
        store.flush()
        store.flush()
    assert store.get_many(map(key, range(4))) == {key(i): bytes([i]) for i in range(3)}
    assert FactsStore(place).get(key(2)) == b"\x02"


def test_last_value_wins(place):
    filled(place)
    with FactsStore(place) as store:
        assert store.get(key(1)) == b"\x01" * 10
        store.put(key(1), b"better")
    assert FactsStore(place).get(key(1)) == b"better"


def test_empty_values_are_values(place):
    with FactsStore(place) as store:
        store.put(key(1), b"")
    assert FactsStore(place).get(key(1)) == b""


def test_more_keys_than_one_query_takes(place):
    filled(place, 5000)
    found = FactsStore(place).get_many(map(key, range(5000)))
    assert len(found) == 5000


def test_after_one_prefetch_the_file_is_not_asked_again(place):
    filled(place, 5)
    store = FactsStore(place)
    store.get_many(map(key, range(9)))
    filled(place, 9)
    assert store.get(key(4)) == b"\x04" * 10
    assert store.get(key(8)) is None, "asked the file again for a key it did not have"


def test_a_run_that_only_reads_does_not_write(place):
    filled(place)
    before = place.stat().st_mtime_ns
    with FactsStore(place) as store:
        store.get_many(map(key, range(5)))
    assert place.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not a database at all" * 100, id="another file"),
        pytest.param(b"SQLite format 3\0" + bytes(200), id="header only"),
    ],
)
def test_damaged_file_is_an_empty_cache_and_is_replaced(place, content):
    place.parent.mkdir()
    place.write_bytes(content)
    with FactsStore(place) as store:
        assert store.get(key(1)) is None
    assert works(place)


def test_page_of_garbage_is_an_empty_cache_and_is_replaced(place):
    filled(place, 2000, 100)
    data = bytearray(place.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 2000] = os.urandom(2000)
    place.write_bytes(data)
    with FactsStore(place) as store:
        found = store.get_many(map(key, range(2000)))
        assert all(
            v == bytes([int.from_bytes(k) % 256]) * 100 for k, v in found.items()
        )
    assert works(place)


def test_flipped_value_is_not_believed(place):
    filled(place, 1, 64)
    database = sqlite3.connect(place)
    database.execute("UPDATE facts SET value = CAST(value || x'ff' AS BLOB)")
    database.commit()
    database.close()
    with FactsStore(place) as store:
        assert store.get_many([key(0)]) == {}
    assert works(place)


def test_older_version_makes_room(place):
    place.parent.mkdir()
    database = sqlite3.connect(place)
    database.execute("CREATE TABLE facts (something TEXT)")
    database.close()
    with FactsStore(place) as store:
        assert store.get(key(1)) is None
        store.put(key(1), b"new")
    assert FactsStore(place).get(key(1)) == b"new"


def test_cut_file(place):
    filled(place, 2000, 100)
    place.write_bytes(place.read_bytes()[:10_000])
    with FactsStore(place) as store:
        store.get_many(map(key, range(2000)))
    assert works(place)


def test_newer_version_is_left_as_it_is(place):
    filled(place)
    database = sqlite3.connect(place)
    database.execute("PRAGMA user_version=99")
    database.execute("DROP TABLE facts")
    database.execute("CREATE TABLE other (x)")
    database.commit()
    database.close()
    before = place.read_bytes()
    with FactsStore(place) as store:
        assert store.get(key(1)) is None
        store.put(key(1), b"mine")
        assert store.get(key(1)) == b"mine"
    with FactsStore(place) as store:
        store.put(key(2), b"never read before it was written")
    assert place.read_bytes() == before


def test_locked_file_costs_little_and_breaks_nothing(place):
    filled(place)
    lock = sqlite3.connect(place, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    start = time.monotonic()
    store = FactsStore(place)
    assert store.get(key(1)) is None
    store.put(key(50), b"x")
    store.flush()
    assert time.monotonic() - start < 5
    lock.execute("ROLLBACK")
    lock.close()
    assert FactsStore(place).get(key(1)) == b"\x01" * 10


def test_folder_in_place_of_the_file(place):
    place.mkdir(parents=True)
    with FactsStore(place) as store:
        assert store.get(key(1)) is None
        store.put(key(1), b"a")
        assert store.get(key(1)) == b"a"


def test_file_in_place_of_the_folder(place):
    place.parent.write_text("")
    with FactsStore(place) as store:
        store.put(key(1), b"a")
        assert store.get(key(1)) == b"a"


def test_read_only_cache_still_answers(place):
    filled(place)
    place.chmod(0o444)
    place.parent.chmod(0o555)
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from vlmend.cli.cache import FactsStore\n"
        "os.getuid() or os.setuid(65534)\n"
        "with FactsStore(Path(sys.argv[1])) as store:\n"
        "    print(store.get(bytes(31) + b'\\1'))\n"
        "    store.put(b'k', b'v')\n"
    )
    for folder in place.parents:
        if folder.name.startswith("pytest-") and not os.getuid():
            folder.chmod(0o755)
    place.parent.parent.chmod(0o755)
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, str(place)], capture_output=True, text=True
        )
    finally:
        place.parent.chmod(0o755)
    assert done.stderr == ""
    assert done.stdout == f"{bytes([1]) * 10!r}\n"


def test_processes_at_the_same_time(place):
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from vlmend.cli.cache import FactsStore\n"
        "with FactsStore(Path(sys.argv[1])) as store:\n"
        "    for i in range(500):\n"
        "        store.put(f'{sys.argv[2]}-{i}'.encode(), b'x')\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", script, str(place), str(n)])
        for n in range(3)
    ]
    assert [run.wait() for run in runs] == [0, 0, 0]
    wanted = [f"{n}-{i}".encode() for n in range(3) for i in range(500)]
    assert len(FactsStore(place).get_many(wanted)) == 1500


def test_file_stays_within_its_bound_and_keeps_what_is_used(place):
    bound = 1 << 20
    with FactsStore(place, max_bytes=bound) as store:
        store.put_many({key(i): os.urandom(4096) for i in range(200)})
    database = sqlite3.connect(place)
    database.execute("UPDATE facts SET day = day - 30")
    database.commit()
    database.close()
    used = [key(i) for i in range(20)]
    with FactsStore(place, max_bytes=bound) as store:
        assert len(store.get_many(used)) == 20
    with FactsStore(place, max_bytes=bound) as store:
        store.put_many({key(1000 + i): os.urandom(4096) for i in range(100)})
    assert place.stat().st_size < bound
    store = FactsStore(place)
    assert len(store.get_many(used)) == 20
    assert len(store.get_many(key(1000 + i) for i in range(100))) == 100
    assert len(store.get_many(key(i) for i in range(100, 200))) < 100


def test_variable_moves_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("VLMEND_CACHE_DIR", str(tmp_path / "here"))
    assert cache_directory() == tmp_path / "here"
    assert FactsStore().path == tmp_path / "here" / "facts.sqlite3"


def test_default_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("VLMEND_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory().is_relative_to(tmp_path)
    assert cache_directory().name == "vlmend"
