"""What a view without a name of its own is called, as far as the tree tells.

Looks at a view in the order in which vLLM does: names on the config already, the name
that ``with_hf_config`` fills in, what the registry makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vlmend.codemods.analysis.text_configs import TextConfig, Unknown
from vlmend.codemods.analysis.transformers_facts import Known
from vlmend.codemods.analysis.view_configs import ViewConfig


class Mapping(StrEnum):
    """How Transformers' causal-LM mapping speaks of a config's model type."""

    MAPPED = "mapped"
    UNMAPPED = "unmapped"
    DISAGREES = "the releases disagree"


@dataclass(frozen=True, slots=True)
class Filled:
    """The name that Transformers' mapping has for a view.

    Attributes:
        mapping: what the releases that the tree allows say together.
        name: the name at the release that the tree is tested with; empty for none.
        why: the root cause where there is no name, or what the releases disagree on.
        note: that one release does not know the class, as a clause; empty otherwise.
    """

    mapping: Mapping
    name: str
    why: str = ""
    note: str = ""


def filled_name(config: ViewConfig) -> Filled:
    """Read the name that is filled in under both releases that matter.

    ``config.pin`` must be a known, static text config.
    """
    pin, floor = config.pin, config.floor
    assert isinstance(pin, TextConfig)
    name = pin.causal_lm_name or ""
    note = ""
    if isinstance(floor, Unknown):
        note = f"at the oldest allowed Transformers, {floor.reason}"
    elif floor.causal_lm_name != pin.causal_lm_name:
        other = floor.causal_lm_name or "nothing"
        why = (
            f"model_type {pin.model_type!r} is mapped to {name or 'nothing'} at the "
            f"Transformers that the tree is tested with and to {other} at the oldest "
            "one that it allows"
        )
        return Filled(Mapping.DISAGREES, name, why)
    if name:
        return Filled(Mapping.MAPPED, name, note=note)
    return Filled(Mapping.UNMAPPED, "", _root_cause(pin), note)


def _root_cause(config: TextConfig) -> str:
    """Say why Transformers has no causal LM for a config class."""
    if config.model_type is None:
        return f"{config.class_name} states no model_type"
    what = f"model_type {config.model_type!r} of {config.class_name}"
    if config.known is Known.MODEL:
        return f"{what} is known to Transformers, but is no causal language model there"
    if config.known is Known.CONFIG:
        return f"{what} is known to Transformers as a config only"
    return f"{what} is unknown to Transformers' model and causal-LM mappings"
