"""Releases come from a real index, are checked, and are kept."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from pathlib import Path

import pytest
from packaging.version import Version

from vlmend.cli.errors import UserError
from vlmend.cli.pip_config import config_files, read_pip_config
from vlmend.cli.releases import (
    cached_versions,
    get_release,
    nearest,
    parse_version,
)


def cache_of(index) -> Path:
    return index.root.parent / "cache" / "releases"


def left_behind(index) -> list[str]:
    store = cache_of(index)
    return sorted(p.name for p in store.iterdir()) if store.is_dir() else []


def test_release_is_fetched_checked_and_unpacked(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    steps: list[tuple[str, int, int | None]] = []

    release = get_release(Version("9.1"), progress=lambda *step: steps.append(step))

    assert release.version == "9.1.0"
    assert (release.root / "vllm/model_executor/models/tiny.py").is_file()
    assert left_behind(package_index) == ["vllm-9.1.0"]
    stages = {stage for stage, _, _ in steps}
    assert stages == {"downloading vllm 9.1.0", "unpacking vllm 9.1.0"}
    _, done, total = steps[-1]
    assert done == total


def test_second_run_asks_the_network_nothing(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    first = get_release(Version("9.1.0"))
    package_index.asked.clear()

    assert get_release(Version("9.1.0")) == first
    assert package_index.asked == []
    assert cached_versions() == ("9.1.0",)


def test_entry_without_receipt_is_fetched_again(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    broken = cache_of(package_index) / "vllm-9.1.0"
    (broken / "vllm").mkdir(parents=True)

    release = get_release(Version("9.1.0"))

    assert release.root == broken
    assert (release.root / "vllm/model_executor/models/tiny.py").is_file()


def test_receipt_of_another_form_is_no_release(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    root = get_release(Version("9.1.0")).root
    (root / ".vlmend.json").write_text(json.dumps(["9.1.0"]))

    assert cached_versions() == ()


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        pytest.param("9.1.7", ["9.1.0", "9.1.1"], id="same series first"),
        pytest.param("9.3.0", ["9.2.0", "9.4.0"], id="neighbours"),
        pytest.param("99", ["9.4.0"], id="beyond the newest"),
        pytest.param("0.1", ["9.1.0"], id="before the first"),
    ],
)
def test_wrong_version_names_the_nearest(package_index, tree_files, wanted, names):
    for version in ("9.1.0", "9.1.1", "9.2.0", "9.4.0", "9.5.0rc1"):
        package_index.add(version, tree_files)

    with pytest.raises(UserError, match=f"vllm=={wanted} does not exist") as caught:
        get_release(Version(wanted))

    near = caught.value.message.partition("nearest: ")[2].split(", ")
    assert set(names) <= set(near)
    assert "9.5.0rc1" not in near
    assert len(near) <= 3
    assert left_behind(package_index) == []


def test_wheel_only_release_says_so(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    package_index.add("9.2.0", wheel=True)

    with pytest.raises(UserError, match="9.2.0 is published without a source dist"):
        get_release(Version("9.2.0"))


def test_nearest_is_sorted_and_short():
    among = [Version(v) for v in ("0.1", "0.2", "0.3", "0.4", "0.5")]
    near = nearest(Version("0.3.1"), among)
    assert near == [Version("0.2"), Version("0.3"), Version("0.4")]


@pytest.mark.parametrize("text", ["", "latest", "0.21.*", "0.21.0 ; x"])
def test_no_version(text):
    with pytest.raises(UserError, match="is not a version"):
        parse_version(text)


def test_wrong_hash_is_refused_and_leaves_nothing(package_index, tree_files):
    package_index.add("9.1.0", tree_files, digest="0" * 64)

    with pytest.raises(UserError, match=r"its sha256 is .* but the index says 0000"):
        get_release(Version("9.1.0"))

    assert left_behind(package_index) == []


def test_cut_archive_is_refused_and_leaves_nothing(package_index, tree_files):
    package_index.add("9.1.0", tree_files, cut=200)

    with pytest.raises(UserError, match="damaged or cut short"):
        get_release(Version("9.1.0"))

    assert left_behind(package_index) == []


def test_file_that_is_gone(package_index, tree_files):
    package_index.add("9.1.0", tree_files).unlink()

    with pytest.raises(UserError, match="cannot be downloaded: .*404"):
        get_release(Version("9.1.0"))

    assert left_behind(package_index) == []


@pytest.mark.parametrize("status", [403, 500, 503])
def test_refusing_index_is_named(package_index, tree_files, status):
    package_index.add("9.1.0", tree_files)
    package_index.status = status

    with pytest.raises(UserError, match=rf"index cannot be used: .*\({status}\)"):
        get_release(Version("9.1.0"))


def test_no_network_and_no_cache_is_one_line(package_index, monkeypatch, tree_files):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")

    with pytest.raises(UserError, match="index cannot be used: http://127") as caught:
        get_release(Version("9.1.0"))

    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2


def test_no_network_but_another_release_in_the_cache(
    package_index, monkeypatch, tree_files
):
    package_index.add("9.1.0", tree_files)
    get_release(Version("9.1.0"))
    package_index.status = 500

    with pytest.raises(UserError) as caught:
        get_release(Version("9.2.0"))

    assert "usable as they are: 9.1.0" in (caught.value.hint or "")


def test_dropped_connection_is_tried_again(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    package_index.drop = 1

    assert get_release(Version("9.1.0")).version == "9.1.0"
    assert package_index.asked[:2] == ["GET /simple/vllm/"] * 2


def test_connection_that_keeps_dropping_is_given_up(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    package_index.drop = 99

    with pytest.raises(UserError, match="index cannot be used"):
        get_release(Version("9.1.0"))

    assert len(package_index.asked) == 3


def test_index_that_is_down_costs_only_itself(package_index, monkeypatch, tree_files):
    package_index.add("9.1.0", tree_files)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", package_index.url)

    assert get_release(Version("9.1.0")).version == "9.1.0"


def test_find_links_without_any_index(package_index, monkeypatch, tree_files):
    package_index.add("9.1.0", tree_files)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv(
        "PIP_FIND_LINKS", f"/no/such/folder {package_index.root / 'files'}"
    )

    assert get_release(Version("9.1.0")).version == "9.1.0"
    assert package_index.asked == []


def test_no_index_means_none(package_index, monkeypatch, tree_files):
    package_index.add("9.1.0", tree_files)
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(UserError, match="has no source distribution"):
        get_release(Version("9.1.0"))

    assert package_index.asked == []


def test_release_for_another_python_can_be_read(package_index, tree_files):
    package_index.add("9.1.0", tree_files, requires_python="<3")

    assert get_release(Version("9.1.0")).version == "9.1.0"


def test_index_in_a_folder(package_index, monkeypatch, tree_files):
    package_index.add("9.1.0", tree_files)
    monkeypatch.setenv("PIP_INDEX_URL", (package_index.root / "simple").as_uri())

    assert get_release(Version("9.1.0")).version == "9.1.0"
    assert package_index.asked == []


def test_password_in_the_address(package_index, monkeypatch, tree_files):
    package_index.add("9.1.0", tree_files)
    package_index.password = "ada:secret"
    open_url = package_index.url
    monkeypatch.setenv("PIP_INDEX_URL", open_url.replace("//", "//ada:secret@"))

    assert get_release(Version("9.1.0")).version == "9.1.0"


def test_password_in_netrc(package_index, monkeypatch, tree_files, tmp_path):
    package_index.add("9.1.0", tree_files)
    package_index.password = "ada:secret"
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ada password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))

    assert get_release(Version("9.1.0")).version == "9.1.0"


def test_wrong_password_is_not_shown(package_index, monkeypatch, tree_files):
    package_index.add("9.1.0", tree_files)
    package_index.password = "ada:secret"
    wrong = package_index.url.replace("//", "//ada:hunter2@")
    monkeypatch.setenv("PIP_INDEX_URL", wrong)
    monkeypatch.setenv("NETRC", os.devnull)

    with pytest.raises(UserError, match=r"\(401\)") as caught:
        get_release(Version("9.1.0"))

    assert "hunter2" not in caught.value.message
    assert "hunter2" not in str(caught.value.hint)


def test_password_for_an_index_that_is_down_is_not_shown(package_index, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://ada:hunter2@127.0.0.1:9/simple")

    with pytest.raises(UserError, match=r"\*\*\*@127.0.0.1:9") as caught:
        get_release(Version("9.1.0"))

    assert "hunter2" not in caught.value.message


def test_cache_that_cannot_be_made(package_index, monkeypatch, tree_files, tmp_path):
    package_index.add("9.1.0", tree_files)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VLMEND_CACHE_DIR", str(tmp_path / "file" / "cache"))

    with pytest.raises(UserError, match="cannot be created") as caught:
        get_release(Version("9.1.0"))

    assert "VLMEND_CACHE_DIR" in (caught.value.hint or "")


def test_cache_belongs_to_its_owner(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    get_release(Version("9.1.0"))

    assert stat.S_IMODE(cache_of(package_index).stat().st_mode) == 0o700


def test_runs_at_the_same_time_agree(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    found: list[Path] = []
    start = threading.Barrier(4)

    def run() -> None:
        start.wait()
        found.append(get_release(Version("9.1.0")).root)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len(set(found)) == 1
    assert left_behind(package_index) == ["vllm-9.1.0"]


def test_leftovers_of_a_killed_run_are_swept_after_a_day(package_index, tree_files):
    package_index.add("9.1.0", tree_files)
    package_index.add("9.2.0", tree_files)
    old, fresh = (cache_of(package_index) / f"partial-{n}" for n in ("old", "fresh"))
    for folder in (old, fresh):
        folder.mkdir(parents=True)
    os.utime(old, (1, 1))

    get_release(Version("9.1.0"))

    assert not old.exists()
    assert fresh.exists()


class TestPipConfig:
    """The files and variables that pip documents, in its order."""

    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        for name in [n for n in os.environ if n.startswith("PIP_")]:
            monkeypatch.delenv(name)
        monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
        monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
        monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
        return tmp_path

    @staticmethod
    def write(place: Path, text: str) -> Path:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def test_user_file_beats_shared_file(self, home):
        self.write(home / "xdg/pip/pip.conf", "[global]\nindex-url = http://a\n")
        self.write(home / ".config/pip/pip.conf", "[global]\nindex-url = http://b\n")

        assert read_pip_config().index_url == "http://b"

    def test_variable_beats_files(self, home, monkeypatch):
        self.write(home / ".config/pip/pip.conf", "[global]\nindex-url = http://b\n")
        monkeypatch.setenv("PIP_INDEX_URL", "http://c")

        assert read_pip_config().index_url == "http://c"

    def test_empty_variable_is_not_set(self, home, monkeypatch):
        self.write(home / ".config/pip/pip.conf", "[global]\nindex-url = http://b\n")
        monkeypatch.setenv("PIP_INDEX_URL", "")

        assert read_pip_config().index_url == "http://b"

    def test_command_section_beats_global(self, home):
        self.write(
            home / ".config/pip/pip.conf",
            "[install]\nindex_url = http://b\n[global]\nindex-url = http://a\n",
        )

        assert read_pip_config().index_url == "http://b"

    def test_named_file_replaces_the_users(self, home, monkeypatch):
        self.write(home / ".config/pip/pip.conf", "[global]\nproxy = http://b\n")
        named = self.write(home / "own.conf", "[global]\nindex-url = http://n\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(named))

        assert read_pip_config().index_url == "http://n"
        assert read_pip_config().proxy is None

    def test_null_device_turns_files_off(self, home, monkeypatch):
        self.write(home / "xdg/pip/pip.conf", "[global]\nindex-url = http://a\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)

        assert list(config_files(os.environ)) == []
        assert read_pip_config().index_url is None

    def test_lists_may_span_lines(self, home):
        self.write(
            home / ".config/pip/pip.conf",
            "[global]\nextra-index-url =\n  http://a\n  http://b\n"
            "find-links = /x /y\ntrusted-host = h:81\nno-index = yes\n"
            "cert = /c.pem\nclient-cert = /k.pem\ntimeout = 7\n",
        )

        config = read_pip_config()

        assert config.extra_index_urls == ("http://a", "http://b")
        assert config.find_links == ("/x", "/y")
        assert config.trusted_hosts == ("h:81",)
        assert config.no_index
        assert (config.cert, config.client_cert) == ("/c.pem", "/k.pem")
        assert config.timeout == 7.0

    def test_damaged_file_is_named(self, home):
        place = self.write(home / ".config/pip/pip.conf", "index-url = http://b\n")

        with pytest.raises(UserError, match="pip's configuration") as caught:
            read_pip_config()

        assert str(place) in caught.value.message

    def test_missing_certificate_is_named(self, package_index, monkeypatch):
        monkeypatch.setenv("PIP_CERT", "/no/such.pem")

        with pytest.raises(UserError, match=r"/no/such.pem: pip's certificate"):
            get_release(Version("9.1.0"))
