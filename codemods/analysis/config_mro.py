"""Joins a config class with what it inherits.

Config hierarchies are shallow and nearly always single: the order used is depth first,
left to right, each class once, which equals Python's for every class in the releases
read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vlmend.codemods.analysis.config_classes import (
    ROOT_NAMES,
    Architectures,
    ArchitecturesBy,
    ConfigClass,
    Property,
    SubConfig,
)
from vlmend.codemods.codemod import Evidence, Source

Located = tuple[Source, ConfigClass]
FindBase = Callable[[Source, ConfigClass, str], Located | None]

_NOT_CONFIGS = frozenset({"object", "Generic", "ABC", "Protocol"})


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A config class and its ancestors, nearest first.

    Attributes:
        mro: the class itself, then its ancestors.
        missing: bases that could not be found; what they bring is unknown.
    """

    mro: tuple[Located, ...]
    missing: tuple[str, ...] = ()

    @property
    def source(self) -> Source:
        return self.mro[0][0]

    @property
    def config(self) -> ConfigClass:
        return self.mro[0][1]

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def model_type(self) -> str | None:
        """The ``model_type`` of the nearest class that states one."""
        for _, config in self.mro:
            # The root class states an empty one.
            if config.model_type is not None and config.model_type.value:
                return config.model_type.value
        return None

    def model_type_evidence(self) -> Evidence | None:
        """The line that states :attr:`model_type`."""
        for source, config in self.mro:
            if config.model_type is not None and config.model_type.value:
                return Evidence(
                    source,
                    config.file,
                    config.model_type.line,
                    f"{config.name}.model_type is {config.model_type.value!r}",
                )
        return None

    @property
    def fields(self) -> frozenset[str]:
        """Every attribute an instance has, inherited ones included."""
        return frozenset(name for _, config in self.mro for name in config.fields)

    @property
    def complete(self) -> bool:
        """The chain ends in the root class and nothing on it is missing."""
        return not self.missing and any(c.name in ROOT_NAMES for _, c in self.mro)

    def alias(self, attribute: str) -> str:
        """Follow ``attribute_map`` for one attribute."""
        for _, config in self.mro:
            for name, real in config.attribute_map:
                if name == attribute:
                    return real
        return attribute

    def property(self, name: str) -> tuple[Located, Property] | None:
        """Return the nearest property (or ``get_text_config``) of that name."""
        for source, config in self.mro:
            for item in config.properties:
                if item.name == name:
                    return (source, config), item
        return None

    def declared(self, attribute: str) -> tuple[Located, SubConfig] | None:
        """Return what the nearest class that lists sub-configs says of one.

        A class that assigns ``sub_configs`` replaces its base's, so the search ends
        there.
        """
        for source, config in self.mro:
            if config.declared:
                for item in config.declared:
                    if item.name == attribute:
                        return (source, config), item
                return None
        return None

    def built(self, attribute: str) -> tuple[Located, SubConfig] | None:
        """Return what the nearest constructor makes of an attribute."""
        for source, config in self.mro:
            for item in config.built:
                if item.name == attribute:
                    return (source, config), item
        return None

    def sub_config_names(self) -> tuple[str, ...]:
        """The attributes that hold configs, as far as the sources say."""
        names: dict[str, None] = {}
        for _, config in self.mro:
            names.update(dict.fromkeys(item.name for item in config.declared))
            names.update(dict.fromkeys(item.name for item in config.built))
        return tuple(names)

    def architectures(self) -> tuple[tuple[Located, Architectures], ...]:
        """The nearest class's statements of ``architectures`` that reach an instance.

        A bare class attribute does not: see :class:`ArchitecturesBy`.
        """
        for source, config in self.mro:
            found = tuple(
                ((source, config), item)
                for item in config.architectures
                if item.by is not ArchitecturesBy.CLASS_ATTRIBUTE
            )
            if found:
                return found
        return ()

    def shadowed_architectures(self) -> tuple[Located, Architectures] | None:
        """A class attribute ``architectures`` that the base constructor hides."""
        if self.architectures():
            return None
        for source, config in self.mro:
            for item in config.architectures:
                if item.by is ArchitecturesBy.CLASS_ATTRIBUTE:
                    return (source, config), item
        return None


def resolve(start: Located, find_base: FindBase) -> ResolvedConfig:
    """Return ``start`` with its ancestors; ``find_base`` finds a base by name."""
    order: list[Located] = []
    missing: list[str] = []
    seen: set[tuple[Source, str, str]] = set()

    def visit(place: Located) -> None:
        source, config = place
        key = (source, config.file, config.name)
        if key in seen:
            return
        seen.add(key)
        order.append(place)
        if config.name in ROOT_NAMES:
            return
        for base in config.bases:
            if base.rpartition(".")[2] in _NOT_CONFIGS:
                continue
            found = find_base(source, config, base)
            if found is not None:
                visit(found)
            elif not base.endswith("Mixin"):  # Behaviour, such as `PushToHubMixin`.
                missing.append(base)

    visit(start)
    return ResolvedConfig(mro=tuple(order), missing=tuple(missing))
