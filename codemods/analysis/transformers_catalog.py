"""The shipped facts: how they are stored, and how one release is loaded.

``catalog/VERSION.json`` lists the config classes and mappings of one release;
``catalog/classes.json`` holds what the classes say, one line each, shared by all
releases (most classes do not change from one to the next). A class is only decoded when
it is asked for, so that loading a release costs a few milliseconds. Lines are stored
relative to the ``class`` statement: a changed licence header makes no new class.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from vlmend.codemods.analysis.config_classes import (
    Architectures,
    ArchitecturesBy,
    ConfigClass,
    Property,
    Stated,
    SubConfig,
)
from vlmend.codemods.analysis.transformers_facts import Mapped, TransformersFacts
from vlmend.codemods.analysis.transformers_range import (
    Choice,
    TransformersRange,
    choose,
    release_of,
)

FORMAT = 1
"""Raised whenever what is stored changes its meaning."""

POOL = "classes.json"


class CatalogError(Exception):
    """No facts about that release are shipped; the message names the nearest ones."""


@cache
def available_versions() -> tuple[str, ...]:
    """Return the releases whose facts are shipped, oldest first."""
    names = (item.name for item in _folder().iterdir())
    found = (
        name.removesuffix(".json")
        for name in names
        if name.endswith(".json") and name != POOL
    )
    return tuple(sorted(found, key=release_of))


@cache
def load(version: str) -> TransformersFacts:
    """Return the facts of one shipped release.

    Raises:
        CatalogError: that release is not shipped.
    """
    if version not in available_versions():
        raise CatalogError(
            f"no facts about Transformers {version} are shipped; "
            f"there are {', '.join(available_versions())}"
        )
    index = json.loads((_folder() / f"{version}.json").read_bytes())
    return decode(index, _pool())


@dataclass(frozen=True, slots=True)
class ShippedFacts:
    """Facts for both ends of what a tree allows, with why these releases were taken."""

    floor: TransformersFacts
    pin: TransformersFacts
    floor_choice: Choice
    pin_choice: Choice


def facts_for(allowed: TransformersRange) -> ShippedFacts:
    """Return the shipped facts for a tree's floor and pin; see :func:`.choose`."""
    floor, pin = choose(allowed, available_versions())
    return ShippedFacts(load(floor.version), load(pin.version), floor, pin)


def _folder() -> Traversable:
    return files(__name__.rpartition(".")[0]) / "catalog"


@cache
def _pool() -> list[bytes]:
    return split_pool((_folder() / POOL).read_bytes())


def split_pool(data: bytes) -> list[bytes]:
    """Return the entries of :func:`join_pool` undecoded, by line."""
    return [line.rstrip(b",") for line in data.split(b"\n")[1:-2]]


def join_pool(pool: Iterable[str]) -> str:
    """Return the classes of all releases as one JSON array with an entry a line."""
    return "[\n" + ",\n".join(pool) + "\n]\n"


def decode(index: Mapping[str, Any], pool: list[bytes]) -> TransformersFacts:
    """Return facts from their stored form; the reverse of :func:`encode`."""
    paths: list[str] = index["files"]
    places: dict[str, list[tuple[str, int, int]]] = {}
    for name, file, line, entry in index["classes"]:
        places.setdefault(name, []).append((paths[file], line, entry))
    mappings = {
        mapping: {
            key: Mapped(
                tuple([names] if isinstance(names, str) else names), paths[f], line
            )
            for key, names, f, line in entries
        }
        for mapping, entries in index["mappings"].items()
    }
    return TransformersFacts(index["version"], _Classes(places, pool), mappings)


def encode(facts: TransformersFacts, pool: dict[str, int]) -> dict[str, Any]:
    """Return the stored form of facts; what their classes say is added to ``pool``."""
    paths: dict[str, int] = {}
    classes = [
        [
            config.name,
            paths.setdefault(config.file, len(paths)),
            config.line,
            pool.setdefault(_encode_class(config), len(pool)),
        ]
        for config in facts.all_classes()
    ]
    mappings = {
        name: [
            [
                key,
                entry.names[0] if len(entry.names) == 1 else list(entry.names),
                paths.setdefault(entry.file, len(paths)),
                entry.line,
            ]
            for key, entry in entries.items()
        ]
        for name, entries in facts.mappings.items()
    }
    return {
        "format": FORMAT,
        "version": facts.version,
        "files": list(paths),
        "classes": classes,
        "mappings": mappings,
    }


class _Classes(Mapping[str, tuple[ConfigClass, ...]]):
    """Config classes by name, decoded when asked for."""

    def __init__(
        self, places: Mapping[str, list[tuple[str, int, int]]], pool: list[bytes]
    ) -> None:
        self._places = places
        self._pool = pool
        self._decoded: dict[str, tuple[ConfigClass, ...]] = {}

    def __getitem__(self, name: str) -> tuple[ConfigClass, ...]:
        if name not in self._decoded:
            self._decoded[name] = tuple(
                _decode_class(name, file, line, json.loads(self._pool[entry]))
                for file, line, entry in self._places[name]
            )
        return self._decoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _encode_class(config: ConfigClass) -> str:
    """What a class says, without its name, file and place; absent keys are empty."""
    start = config.line
    stored: dict[str, Any] = {
        "bases": list(config.bases),
        "type": config.model_type
        and [config.model_type.value, config.model_type.line - start],
        "declared": [_encode_sub(sub, start) for sub in config.declared],
        "built": [_encode_sub(sub, start) for sub in config.built],
        "architectures": [
            [list(a.names), a.line - start, a.by.value] for a in config.architectures
        ],
        "properties": [
            [p.name, p.line - start, p.path and list(p.path)] for p in config.properties
        ],
        "fields": " ".join(config.fields),
        "aliases": [list(pair) for pair in config.attribute_map],
        "init": config.own_init,
    }
    return json.dumps({k: v for k, v in stored.items() if v}, separators=(",", ":"))


def _encode_sub(sub: SubConfig, start: int) -> list[Any]:
    return [
        sub.name,
        sub.line - start,
        list(sub.classes),
        sub.dynamic,
        sub.model_type,
        list(sub.architectures),
        sub.declared,
        sub.reason,
    ]


def _decode_class(
    name: str, file: str, start: int, stored: Mapping[str, Any]
) -> ConfigClass:
    stated = stored.get("type")
    return ConfigClass(
        name=name,
        file=file,
        line=start,
        bases=tuple(stored.get("bases", ())),
        model_type=Stated(stated[0], stated[1] + start) if stated else None,
        declared=tuple(_decode_sub(s, start) for s in stored.get("declared", ())),
        built=tuple(_decode_sub(s, start) for s in stored.get("built", ())),
        architectures=tuple(
            Architectures(tuple(names), line + start, ArchitecturesBy(by))
            for names, line, by in stored.get("architectures", ())
        ),
        properties=tuple(
            Property(n, line + start, None if path is None else tuple(path))
            for n, line, path in stored.get("properties", ())
        ),
        fields=tuple(stored.get("fields", "").split()),
        attribute_map=tuple((a, b) for a, b in stored.get("aliases", ())),
        own_init=stored.get("init", False),
    )


def _decode_sub(stored: list[Any], start: int) -> SubConfig:
    name, line, classes, dynamic, model_type, architectures, declared, reason = stored
    return SubConfig(
        name,
        line + start,
        tuple(classes),
        dynamic,
        model_type,
        tuple(architectures),
        declared,
        reason,
    )
