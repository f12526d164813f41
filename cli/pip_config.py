"""Where packages come from on this machine, in the words of pip's own configuration.

Whoever could install vlmend has an index, a proxy and a certificate that work; asking
for them a second time would be rude. Only the settings that concern downloads are read,
from the files and variables that pip documents, and in pip's order.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vlmend.cli.errors import UserError

_SECTIONS: Final = ("global", "install", "download")
_TRUE: Final = ("y", "yes", "t", "true", "on", "1")
_DEFAULT_TIMEOUT: Final = 15.0


@dataclass(frozen=True)
class PipConfig:
    """The settings that decide what is downloaded, and how.

    Attributes:
        index_url: the main index, or None for the index client's own default.
        extra_index_urls: further indexes.
        find_links: folders, pages and files that hold distributions.
        trusted_hosts: ``host`` or ``host:port`` whose certificate is not checked.
        no_index: no index is asked; only ``find_links`` count.
        cert: file or folder with the certificates to trust, or None.
        client_cert: file with the client's certificate and key, or None.
        proxy: proxy to use beside those of the environment, or None.
        timeout: seconds that a connection may stay silent.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    no_index: bool = False
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    timeout: float = _DEFAULT_TIMEOUT


def read_pip_config(environ: Mapping[str, str] | None = None) -> PipConfig:
    """Read pip's configuration files and ``PIP_*`` variables.

    Args:
        environ: the environment; ``os.environ`` if None.

    Raises:
        UserError: a configuration file cannot be parsed.
    """
    env = os.environ if environ is None else environ
    values: dict[str, str] = {}
    for path in config_files(env):
        values.update(_read_file(path))
    values.update(_read_environment(env))
    return PipConfig(
        index_url=values.get("index-url") or None,
        extra_index_urls=_words(values.get("extra-index-url")),
        find_links=_words(values.get("find-links")),
        trusted_hosts=_words(values.get("trusted-host")),
        no_index=values.get("no-index", "").lower() in _TRUE,
        cert=values.get("cert")
        or env.get("REQUESTS_CA_BUNDLE")
        or env.get("CURL_CA_BUNDLE")
        or None,
        client_cert=values.get("client-cert") or None,
        proxy=values.get("proxy") or None,
        timeout=_seconds(values.get("timeout") or values.get("default-timeout")),
    )


def config_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the configuration files that exist, those that win last.

    Args:
        environ: the environment that says where they are.
    """
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    places = [*_global_files(environ)]
    # As in pip: a file named by the variable takes the place of the user's own.
    if not (named and Path(named).exists()):
        places += _user_files(environ)
    places.append(Path(sys.prefix) / _file_name())
    if named:
        places.append(Path(named))
    yield from (place for place in places if place.is_file())


def _file_name() -> str:
    return "pip.ini" if sys.platform == "win32" else "pip.conf"


def _home(environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME")
    return Path(home) if home else Path("~").expanduser()


def _global_files(environ: Mapping[str, str]) -> Iterator[Path]:
    name = _file_name()
    if sys.platform == "win32":
        yield Path(environ.get("PROGRAMDATA", "C:\\ProgramData"), "pip", name)
    elif sys.platform == "darwin":
        yield Path("/Library/Application Support/pip", name)
    else:
        shared = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
        yield from (Path(d, "pip", name) for d in shared.split(os.pathsep) if d)
        yield Path("/etc", name)


def _user_files(environ: Mapping[str, str]) -> Iterator[Path]:
    name, home = _file_name(), _home(environ)
    yield home / ("pip" if sys.platform == "win32" else ".pip") / name
    if sys.platform == "win32":
        yield Path(environ.get("APPDATA", str(home)), "pip", name)
        return
    library = home / "Library/Application Support/pip"
    if sys.platform == "darwin" and library.is_dir():
        yield library / name
    else:
        own = environ.get("XDG_CONFIG_HOME")
        yield Path(own or home / ".config", "pip", name)


def _read_file(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: pip's configuration cannot be read: {error}"
        ) from None
    found: dict[str, str] = {}
    for section in _SECTIONS:
        if parser.has_section(section):
            found.update(
                (_normal(key), value.strip()) for key, value in parser.items(section)
            )
    return found


def _read_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in environ.items():
        # pip takes an empty variable for one that is not set.
        if key.startswith("PIP_") and value:
            yield _normal(key.removeprefix("PIP_")), value.strip()


def _normal(key: str) -> str:
    return key.lower().replace("_", "-").removeprefix("--")


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(text.split()) if text else ()


def _seconds(text: str | None) -> float:
    try:
        return max(float(text), 1.0) if text else _DEFAULT_TIMEOUT
    except ValueError:
        return _DEFAULT_TIMEOUT
