"""What is known about one Transformers release, as data.

Facts are shipped for the releases that vLLM's requirements name
(``catalog/``, written by ``.ci/build-catalog``) and can be read from any unpacked
release (:func:`~vlmend.codemods.analysis.transformers_reader.read_transformers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from vlmend.codemods.analysis.config_classes import ROOT_NAMES, ConfigClass
from vlmend.codemods.analysis.config_mro import Located, ResolvedConfig, resolve
from vlmend.codemods.codemod import Evidence, Source

CONFIG_MAPPING = "CONFIG_MAPPING_NAMES"
MODEL_MAPPING = "MODEL_MAPPING_NAMES"
CAUSAL_LM_MAPPING = "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"
IMAGE_TEXT_MAPPING = "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES"
MULTIMODAL_MAPPING = "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES"
MAPPINGS = (
    CONFIG_MAPPING,
    MODEL_MAPPING,
    CAUSAL_LM_MAPPING,
    IMAGE_TEXT_MAPPING,
    MULTIMODAL_MAPPING,
)
"""The mappings that are read, by the name Transformers gives them."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """One entry of a mapping: ``names`` has several where the source has a tuple."""

    names: tuple[str, ...]
    file: str
    line: int


class Known(StrEnum):
    """How far a release knows a ``model_type``."""

    CAUSAL_LM = "causal language model"
    MODEL = "model, but no causal language model"
    CONFIG = "config class only"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TransformersFacts:
    """Config classes and mappings of one release.

    Attributes:
        classes: by bare name; a name that two files define keeps both, in file order.
        mappings: by mapping name, then by ``model_type``.
    """

    version: str
    classes: Mapping[str, tuple[ConfigClass, ...]]
    mappings: Mapping[str, Mapping[str, Mapped]]

    def config_class(self, name: str, module: str = "") -> ConfigClass | None:
        """Return the class of that bare name.

        ``module`` (dotted) decides where several files define it; without a match the
        class that ``CONFIG_MAPPING_NAMES`` would reach, the first one, is returned.
        """
        found = self.classes.get(name, ())
        if not found and name in ROOT_NAMES:
            other = next(iter(ROOT_NAMES - {name}))
            found = self.classes.get(other, ())
        folder = module.replace(".", "/")
        for config in found:
            if folder and config.file.startswith((f"{folder}/", f"{folder}.py")):
                return config
        return found[0] if found else None

    def resolve(self, name: str, module: str = "") -> ResolvedConfig | None:
        """Return the class with all that it inherits inside Transformers."""
        config = self.config_class(name, module)
        if config is None:
            return None
        return resolve(
            (Source.TRANSFORMERS, config),
            lambda _, owner, base: self.base_of(owner, base),
        )

    def base_of(self, config: ConfigClass, name: str) -> Located | None:
        """Return the class that ``name`` means in the file of ``config``.

        Names of config classes are unique within a release, but for a copy in the same
        file, so that no import needs to be followed.
        """
        name = name.rpartition(".")[2]
        found = self.classes.get(name, ())
        beside = [c for c in found if c.file == config.file]
        best = beside[0] if beside else self.config_class(name)
        return None if best is None else (Source.TRANSFORMERS, best)

    def mapped(self, mapping: str, model_type: str) -> Mapped | None:
        """Return the entry of one mapping, ``None`` where there is none."""
        return self.mappings.get(mapping, {}).get(model_type)

    def causal_lm(self, model_type: str) -> Mapped | None:
        """Return the causal language model that the release maps the type to."""
        return self.mapped(CAUSAL_LM_MAPPING, model_type)

    def known(self, model_type: str) -> Known:
        """Say how far the release knows the type."""
        if self.mapped(CAUSAL_LM_MAPPING, model_type):
            return Known.CAUSAL_LM
        if any(
            self.mapped(name, model_type)
            for name in (MODEL_MAPPING, IMAGE_TEXT_MAPPING, MULTIMODAL_MAPPING)
        ):
            return Known.MODEL
        if self.mapped(CONFIG_MAPPING, model_type):
            return Known.CONFIG
        return Known.UNKNOWN

    def evidence(self, mapping: str, model_type: str) -> Evidence | None:
        """Return one entry of a mapping as evidence."""
        entry = self.mapped(mapping, model_type)
        if entry is None:
            return None
        return Evidence(
            Source.TRANSFORMERS,
            entry.file,
            entry.line,
            f"Transformers {self.version} maps {model_type!r} to "
            f"{' or '.join(entry.names)} ({mapping})",
        )

    def all_classes(self) -> Iterator[ConfigClass]:
        """Yield every config class, by name."""
        for name in sorted(self.classes):
            yield from self.classes[name]
