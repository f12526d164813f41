"""Hugging Face config classes as plain data.

What a model's config looks like decides which language model sits inside a wrapper. The
classes that say it live in Transformers and in vLLM's own
``transformers_utils/configs``; both are read from source (:mod:`.config_reader`) into
the values below, never imported.

Names of classes stand as the source writes them (``transformers.LlamaConfig`` keeps its
dots); joining them across files is the work of :mod:`.text_configs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

GET_TEXT_CONFIG = "get_text_config()"
"""The step of an attribute path that stands for a call of that method."""

ROOT_NAMES = frozenset({"PretrainedConfig", "PreTrainedConfig"})
"""The class all configs derive from; the second spelling came with 4.57."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A literal and the line it stands on."""

    value: str
    line: int


@dataclass(frozen=True, slots=True)
class SubConfig:
    """What one class says about one of its sub-configs.

    Attributes:
        name: the attribute that holds the sub-config.
        line: where it is said.
        classes: the config classes it can be, as written; one in nearly every case.
        dynamic: the checkpoint chooses the class (``AutoConfig``,
            ``CONFIG_MAPPING[...]``, a helper function): ``classes`` is then only part
            of the answer.
        model_type: the literal default where the checkpoint does not choose.
        architectures: the names that this class itself gives the sub-config.
        declared: the class is taken from ``sub_configs``, under this key.
        reason: why it is so, in the words of the source.
    """

    name: str
    line: int
    classes: tuple[str, ...] = ()
    dynamic: bool = False
    model_type: str | None = None
    architectures: tuple[str, ...] = ()
    declared: str | None = None
    reason: str = ""


class ArchitecturesBy(StrEnum):
    """How a config class states ``architectures``."""

    CLASS_ATTRIBUTE = "class attribute"
    """``architectures = ["X"]`` in the class body. The constructor of the base class
    assigns ``self.architectures`` from its keyword (``None`` by default) in every
    Transformers release, so this alone never reaches an instance."""
    KEYWORD = "keyword"
    """Put among the keywords that go to the base constructor: a default where it is
    guarded (``setdefault``, ``if ... is None``)."""
    ASSIGNED = "assigned"
    """``self.architectures = [...]``: whatever the checkpoint says."""


@dataclass(frozen=True, slots=True)
class Architectures:
    """One statement of ``architectures`` in a config class.

    ``names`` is empty where the source computes them.
    """

    names: tuple[str, ...]
    line: int
    by: ArchitecturesBy


@dataclass(frozen=True, slots=True)
class Property:
    """A property or ``get_text_config`` method of a config class.

    Attributes:
        path: the attributes it leads through, where its only ``return`` is such a path
            from ``self``; ``("thinker_config", "get_text_config()")`` for example.
    """

    name: str
    line: int
    path: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConfigClass:
    """One config class, as its own ``class`` statement tells it (nothing inherited).

    Attributes:
        file: POSIX path relative to the root of its source.
        bases: as written.
        declared: ``sub_configs`` or ``sub_configs_defaults``.
        built: what its ``__init__`` or ``__post_init__`` makes of sub-configs.
        fields: every attribute an instance gets from this class: parameters,
            assignments to ``self``, dataclass fields, class attributes, properties.
        attribute_map: alias to real name.
        own_init: it has an ``__init__`` of its own.
    """

    name: str
    file: str
    line: int
    bases: tuple[str, ...] = ()
    model_type: Stated | None = None
    declared: tuple[SubConfig, ...] = ()
    built: tuple[SubConfig, ...] = ()
    architectures: tuple[Architectures, ...] = ()
    properties: tuple[Property, ...] = ()
    fields: tuple[str, ...] = ()
    attribute_map: tuple[tuple[str, str], ...] = ()
    own_init: bool = False


@dataclass(frozen=True, slots=True)
class ImportedName:
    """``from module import name as local``; ``name`` is empty for ``import module``."""

    local: str
    module: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class RegisteredConfig:
    """``AutoConfig.register("model_type", SomeConfig)`` at the top of a module."""

    model_type: str
    class_name: str
    line: int


@dataclass(frozen=True, slots=True)
class ConfigModule:
    """The config classes of one file and the names it imports."""

    file: str
    classes: tuple[ConfigClass, ...] = ()
    imports: tuple[ImportedName, ...] = ()
    registrations: tuple[RegisteredConfig, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> ConfigClass | None:
        """Return the class of that bare name, the last one where a file has two."""
        for config in reversed(self.classes):
            if config.name == name:
                return config
        return None

    def imported(self, local: str) -> ImportedName | None:
        """Return the import that binds ``local``, the last one where there are two."""
        for item in reversed(self.imports):
            if item.local == local:
                return item
        return None
