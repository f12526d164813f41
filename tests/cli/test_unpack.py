"""An archive is unpacked safely or not at all."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from pathlib import Path

import pytest

from vlmend.cli.errors import UserError
from vlmend.cli.targets import resolve_target
from vlmend.cli.unpack import ArchiveError, is_wanted, unpack_sdist

TOP = "vllm-9.1.0"
MODEL = f"{TOP}/vllm/model_executor/models/tiny.py"


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    return info


GOOD = (member(MODEL), b"class Tiny: ...\n")


def written(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "er" / "out"
    folder.mkdir(parents=True)
    return folder


def test_only_what_is_read_is_written(make_archive, out):
    names = ["setup.py", "vllm/a.py", "vllm/a.json", "csrc/k.cu", "tests/t.py"]
    archive = make_archive([(member(f"{TOP}/{n}"), b"x") for n in names])

    assert unpack_sdist(archive, out) == 3
    assert written(out) == {"setup.py", "vllm/a.py", "tests/t.py"}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("vllm/model_executor/models/registry.py", True),
        ("vllm/models/kimi_k3/nvidia/model.py", True),
        ("requirements/common.txt", True),
        ("requirements-common.txt", True),
        (".github/PULL_REQUEST_TEMPLATE.md", True),
        ("AGENTS.md", True),
        ("tests/AGENTS.md", True),
        ("PKG-INFO", True),
        ("pyproject.toml", True),
        ("vllm/config.json", False),
        ("vllm", False),
        ("examples/a.py", False),
        ("docs/vllm/a.py", False),
        ("vllm.egg-info/PKG-INFO", False),
        (".github/workflows/PULL_REQUEST_TEMPLATE.md", False),
    ],
)
def test_wanted(path, wanted):
    assert is_wanted(path) is wanted


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("../evil.py", id="parent"),
        pytest.param(f"{TOP}/../../evil.py", id="parent inside"),
        pytest.param(f"{TOP}/vllm/../../../evil.py", id="parent below a kept folder"),
        pytest.param("/tmp/vlmend-evil.py", id="absolute"),
        pytest.param(f"{TOP}/vllm/..\\..\\evil.py", id="backslash"),
        pytest.param("C:/vllm/evil.py", id="drive"),
        pytest.param(f"{TOP}/vllm/\x1b[2Jevil.py", id="terminal control"),
    ],
)
def test_names_that_lead_out_condemn_the_archive(make_archive, out, tmp_path, name):
    archive = make_archive([(member(name), b"evil"), GOOD])
    before = written(tmp_path)

    with pytest.raises(ArchiveError, match="not unpacked") as caught:
        unpack_sdist(archive, out)

    assert written(tmp_path) == before
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        pytest.param(tarfile.SYMTYPE, "/etc", id="link to a folder"),
        pytest.param(tarfile.SYMTYPE, "../../../outside", id="relative link"),
        pytest.param(tarfile.LNKTYPE, f"{TOP}/vllm/a.py", id="hard link"),
        pytest.param(tarfile.CHRTYPE, "", id="character device"),
        pytest.param(tarfile.BLKTYPE, "", id="block device"),
        pytest.param(tarfile.FIFOTYPE, "", id="pipe"),
    ],
)
def test_what_is_no_file_is_not_created(make_archive, out, kind, link):
    archive = make_archive([(member(f"{TOP}/vllm/a.py", kind, link), b""), GOOD])

    unpack_sdist(archive, out)

    assert [p for p in out.rglob("*") if p.is_symlink()] == []
    assert written(out) == {MODEL.partition("/")[2]}


def test_no_file_is_written_through_a_link(make_archive, out, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    archive = make_archive(
        [
            (member(f"{TOP}/vllm", tarfile.SYMTYPE, str(outside)), b""),
            (member(f"{TOP}/vllm/evil.py"), b"evil"),
        ]
    )

    unpack_sdist(archive, out)

    assert list(outside.iterdir()) == []
    assert written(out) == {"vllm/evil.py"}


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(member(MODEL), id="the same name twice"),
        pytest.param(member(f"{MODEL}/more.py"), id="a file as a folder"),
    ],
)
def test_contradictory_members(make_archive, out, second):
    with pytest.raises(ArchiveError, match="is there twice, or a folder too"):
        unpack_sdist(make_archive([GOOD, (second, b"y")]), out)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9, 0.999])
def test_cut_short(make_archive, out, share):
    noise = os.urandom(50_000).hex().encode()
    archive = make_archive([GOOD, (member(f"{TOP}/vllm/big.py"), noise)])
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * share)])

    with pytest.raises(ArchiveError, match="damaged"):
        unpack_sdist(archive, out)


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(0.0, id="in the first header"),
        pytest.param(0.5, id="in a file, seen by the checksum alone"),
    ],
)
def test_flipped_byte(make_archive, out, share):
    noise = os.urandom(50_000).hex().encode()
    archive = make_archive([GOOD, (member(f"{TOP}/vllm/big.py"), noise)])
    data = bytearray(archive.read_bytes())
    data[max(int(len(data) * share), 30)] ^= 0xFF
    archive.write_bytes(data)

    with pytest.raises(ArchiveError, match="damaged"):
        unpack_sdist(archive, out)


def test_broken_compression(make_archive, out):
    noise = os.urandom(50_000).hex().encode()
    archive = make_archive([GOOD, (member(f"{TOP}/vllm/big.py"), noise)])
    whole = archive.read_bytes()
    for at in range(len(whole) // 2, len(whole)):
        broken = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
        try:
            gzip.decompress(broken)
        except zlib.error:
            break  # most flips are seen by the checksum alone; this one is not
        except OSError:
            continue
    archive.write_bytes(broken)

    with pytest.raises(ArchiveError, match="damaged"):
        unpack_sdist(archive, out)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<html>not found</html>", id="a web page"),
        pytest.param(gzip.compress(b"no tar in here" * 100), id="gzip without a tar"),
    ],
)
def test_no_archive_at_all(tmp_path, out, content):
    place = tmp_path / "vllm-9.1.0.tar.gz"
    place.write_bytes(content)

    with pytest.raises(ArchiveError, match=r"vllm-9.1.0.tar.gz"):
        unpack_sdist(place, out)


def test_archive_of_something_else(make_archive, out):
    archive = make_archive([(member("other-1.0/other/a.py"), b"x")])

    with pytest.raises(ArchiveError, match="not a source distribution of vLLM"):
        unpack_sdist(archive, out)


def test_bomb_in_a_member_is_not_unpacked(make_archive, out):
    archive = make_archive([GOOD, (member(f"{TOP}/csrc/zero"), bytes(3 << 20))])

    with pytest.raises(ArchiveError, match="more than a release"):
        unpack_sdist(archive, out, max_total_bytes=1 << 20)


def test_bomb_in_a_header_is_not_unpacked(tmp_path, out):
    header = member(f"{TOP}/x", tarfile.XHDTYPE)
    header.size = 3 << 20
    place = tmp_path / "vllm-9.1.0.tar.gz"
    with gzip.open(place, "wb") as zipped:
        zipped.write(header.tobuf(tarfile.GNU_FORMAT) + bytes(header.size))

    with pytest.raises(ArchiveError, match="more than a release"):
        unpack_sdist(place, out, max_total_bytes=1 << 20)


def test_oversized_source_file(make_archive, out):
    archive = make_archive([GOOD, (member(f"{TOP}/vllm/a.py"), bytes(17 << 20))])

    with pytest.raises(ArchiveError, match=r"vllm/a.py has 17 MiB"):
        unpack_sdist(archive, out)


def test_full_disk_is_one_line(make_archive, tmp_path):
    archive = make_archive([GOOD])
    blocked = tmp_path / "out"
    blocked.write_text("a file where the folder should be")

    with pytest.raises(UserError, match="cannot unpack vllm-9.1.0.tar.gz"):
        unpack_sdist(archive, blocked)


def test_progress_ends_at_the_size_of_the_archive(make_archive, out):
    noise = os.urandom(500_000)
    archive = make_archive([GOOD, (member(f"{TOP}/csrc/last"), noise)])
    steps: list[tuple[int, int]] = []

    unpack_sdist(archive, out, progress=lambda *step: steps.append(step))

    size = archive.stat().st_size
    assert steps[-1] == (size, size)
    assert all(done <= size for done, _ in steps)


def test_hostile_sdist_as_target_leaves_nothing(make_archive, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    archive = make_archive([GOOD, (member(f"{TOP}/../../evil.py"), b"evil")])

    with pytest.raises(ArchiveError):
        resolve_target(str(archive))

    assert list(scratch.iterdir()) == []


def test_sparse_members_are_passed_over(tmp_path, out):
    # GNU tar's sparse form claims gigabytes in a few bytes of archive.
    sparse = member(f"{TOP}/vllm/holes.py", tarfile.GNUTYPE_SPARSE)
    block = bytearray(sparse.tobuf(tarfile.GNU_FORMAT))
    block[386:398] = b"00000000000\0"  # offset of the only piece
    block[398:410] = b"00000000000\0"  # its length
    block[482:483] = b"\0"
    block[483:495] = b"77777777777\0"  # the size it claims
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    place = tmp_path / "vllm-9.1.0.tar.gz"
    tail = io.BytesIO()
    with tarfile.open(fileobj=tail, mode="w") as archive:
        info = member(MODEL)
        info.size = 1
        archive.addfile(info, io.BytesIO(b"x"))
    with gzip.open(place, "wb") as zipped:
        zipped.write(bytes(block) + tail.getvalue())

    assert unpack_sdist(place, out) == 1
    assert written(out) == {MODEL.partition("/")[2]}
