"""Which config a model has, and which text config an attribute of it leads to.

Joins three bodies of code: the tree that is judged, the vLLM tree beside a plugin, and
the facts about a Transformers release. Only the config files that a question needs are
read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vlmend.codemods.analysis.config_classes import (
    GET_TEXT_CONFIG,
    ROOT_NAMES,
    ConfigClass,
    SubConfig,
)
from vlmend.codemods.analysis.config_sources import ConfigSources
from vlmend.codemods.analysis.transformers_catalog import facts_for
from vlmend.codemods.analysis.transformers_facts import (
    CAUSAL_LM_MAPPING,
    Known,
    TransformersFacts,
)
from vlmend.codemods.analysis.transformers_range import (
    Choice,
    TransformersRange,
    pin_and_floor,
)
from vlmend.codemods.codemod import Evidence, Source

if TYPE_CHECKING:
    from vlmend.codemods.analysis.config_mro import Located, ResolvedConfig
    from vlmend.codemods.analysis.tree import SourceTree

_TEXT_NAMES = ("text_encoder", "decoder", "generator", "text_config")
"""Where ``PretrainedConfig.get_text_config()`` looks, in every release read."""

_BACKBONE = "backbone_config"
"""Transformers fills it by a helper of its own, whatever default is declared."""

_MAX_STEPS = 16


@dataclass(frozen=True, slots=True)
class Unknown:
    """A question about configs that the sources do not answer.

    ``open`` says that the sources leave the answer to the checkpoint.
    """

    reason: str
    evidence: tuple[Evidence, ...] = ()
    open: bool = False


@dataclass(frozen=True, slots=True)
class TextConfig:
    """The config that an attribute path leads to.

    Attributes:
        resolved: the class with its ancestors.
        dynamic: the checkpoint can choose another class; ``resolved`` is then the
            default.
        reason: what makes it dynamic, empty where it is not.
        model_type: of the class, or the literal default that led to it.
        default_architectures: names that an instance has without a checkpoint's saying.
        shadowed_architectures: names that stand as a class attribute only. The base
            constructor hides them (an instance has ``None``), so they state an
            intention.
        causal_lm_name: what the release's causal-LM mapping has for ``model_type``.
        evidence: the links from the start to here, in reading order.
    """

    resolved: ResolvedConfig
    dynamic: bool
    reason: Evidence | None
    model_type: str | None
    default_architectures: tuple[str, ...]
    shadowed_architectures: tuple[str, ...]
    causal_lm_name: str | None
    known: Known
    evidence: tuple[Evidence, ...]

    @property
    def class_name(self) -> str:
        return self.resolved.config.name

    @property
    def source(self) -> Source:
        return self.resolved.source

    @property
    def file(self) -> str:
        return self.resolved.config.file

    @property
    def line(self) -> int:
        return self.resolved.config.line


@dataclass(frozen=True, slots=True)
class AncestorName:
    """A causal LM that an ancestor's ``model_type`` is mapped to."""

    name: str
    ancestor: ConfigClass
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """Where one attribute leads, before anything is said about that class."""

    resolved: ResolvedConfig
    reason: Evidence | None
    model_type: str | None
    architectures: tuple[str, ...]
    evidence: tuple[Evidence, ...]


class ConfigIndex(ConfigSources):
    """Answers questions about the configs of one target."""

    def root(
        self, name: str, module: str
    ) -> tuple[ResolvedConfig, tuple[Evidence, ...]] | None:
        """Return the class that a model annotated ``name`` really gets.

        vLLM's registry beats Transformers: where it has the annotated class's model
        type, its class is the one that the checkpoint is loaded with.
        """
        resolved = self.resolve(name, module)
        if resolved is None:
            return None
        evidence = [_place(resolved)]
        model_type = resolved.model_type
        if resolved.source is Source.TRANSFORMERS and model_type:
            found = self.registered(model_type)
            if found is not None and found[0] != resolved.mro[0]:
                located, line = found
                resolved = self.join(located)
                evidence += [line, _place(resolved)]
        return resolved, tuple(evidence)

    def follow(
        self, name: str, module: str, path: tuple[str, ...] = ()
    ) -> TextConfig | Unknown:
        """Return the config that ``config.<path>`` is, for a config of class ``name``.

        ``module`` is where the asking file imports the class from. A step may be
        :data:`GET_TEXT_CONFIG`. Steps that the checkpoint decides are followed along
        their default, and the result is ``dynamic``.
        """
        start = self.root(name, module)
        if start is None:
            return Unknown(
                f"no config class {name} is found in {module or 'the tree'} "
                f"(Transformers {self.facts.version})"
            )
        resolved, evidence = start
        return self.follow_from(resolved, path, evidence)

    def follow_from(
        self,
        resolved: ResolvedConfig,
        path: tuple[str, ...],
        evidence: tuple[Evidence, ...] = (),
    ) -> TextConfig | Unknown:
        """Like :meth:`follow`, from a class that is already known."""
        step = _Step(resolved, None, None, (), evidence)
        steps = list(path)
        for _ in range(_MAX_STEPS):
            if not steps:
                return self._describe(step)
            attribute = steps.pop(0)
            through = self._through(step, attribute)
            if isinstance(through, Unknown):
                return through
            if isinstance(through, tuple):
                more, line = through
                steps[:0] = more
                if line is not None:
                    step = replace(step, evidence=(*step.evidence, line))
                continue
            step = through
        return Unknown("the attribute path goes round in circles", step.evidence)

    def _through(
        self, step: _Step, attribute: str
    ) -> _Step | Unknown | tuple[list[str], Evidence | None]:
        """One step: a class, or other attributes to go through instead."""
        resolved = step.resolved
        found = resolved.property(attribute)
        if found is not None and found[0][1].name not in ROOT_NAMES:
            (source, owner), item = found
            if item.path is None:
                return Unknown(
                    f"{owner.name}.{attribute} computes what it returns",
                    (
                        *step.evidence,
                        Evidence(source, owner.file, item.line, "computed here"),
                    ),
                )
            route = ".".join(item.path)
            line = Evidence(
                source,
                owner.file,
                item.line,
                f"{owner.name}.{attribute} is self.{route}",
            )
            return list(item.path), line
        if attribute == GET_TEXT_CONFIG:
            return self._get_text_config(step)
        sub = self._sub_config(step, attribute)
        if isinstance(sub, Unknown):
            real = resolved.alias(attribute)
            if real != attribute:
                return [real], None
            for old, new in self.vllm.attribute_aliases.items():
                if attribute == new and old in resolved.sub_config_names():
                    return [old], None
        return sub

    def _get_text_config(
        self, step: _Step
    ) -> Unknown | tuple[list[str], Evidence | None]:
        names = set(step.resolved.sub_config_names())
        names |= {
            item.name for _, config in step.resolved.mro for item in config.properties
        }
        usable = [name for name in _TEXT_NAMES if name in names]
        if len(usable) > 1:
            return Unknown(
                f"get_text_config() of {step.resolved.name} is ambiguous: "
                f"{', '.join(usable)}",
                step.evidence,
            )
        return usable, None

    def _sub_config(self, step: _Step, attribute: str) -> _Step | Unknown:
        resolved = step.resolved
        built, declared = resolved.built(attribute), resolved.declared(attribute)
        if built is not None and built[1].declared is not None:
            declared = resolved.declared(built[1].declared) or declared
        said = [found for found in (built, declared) if found is not None]
        if not said:
            lacks = (
                ""
                if not resolved.missing
                else f" (bases {', '.join(resolved.missing)} unknown)"
            )
            known = (
                "sets it in a way that is not read"
                if (attribute in resolved.fields)
                else "has no such attribute"
            )
            return Unknown(
                f"{resolved.name} {known}: {attribute}{lacks}", step.evidence
            )
        evidence = tuple(_say(place, sub) for place, sub in said)
        open_ones = [
            line
            for (_, sub), line in zip(said, evidence, strict=True)
            if sub.dynamic and not _overruled(sub, built)
        ]
        candidates = self._candidates(said)
        architectures = next((s.architectures for _, s in said if s.architectures), ())
        default = next((s.model_type for _, s in said if s.model_type), None)
        if attribute == _BACKBONE:
            default = None
        step_evidence = (*step.evidence, *evidence)
        if len(candidates) == 1:
            located = candidates[0]
            reason = step.reason or (open_ones[0] if open_ones else None)
            joined = self.join(located)
            return _Step(
                joined,
                reason,
                joined.model_type,
                architectures,
                (*step_evidence, _place(joined)),
            )
        if len(candidates) > 1:
            names = " or ".join(config.name for _, config in candidates)
            return Unknown(f"{resolved.name}.{attribute} is {names}", step_evidence)
        if default is not None:
            found = self.for_model_type(default)
            if found is None:
                return Unknown(
                    f"{resolved.name}.{attribute} defaults to model_type {default!r}, "
                    f"which Transformers {self.facts.version} does not know",
                    step_evidence,
                    open=bool(open_ones),
                )
            located, line = found
            reason = step.reason or (open_ones[0] if open_ones else evidence[0])
            joined = self.join(located)
            return _Step(
                joined,
                reason,
                default,
                architectures,
                (*step_evidence, line, _place(joined)),
            )
        unresolved = [name for _, sub in said for name in sub.classes]
        if unresolved and not open_ones:
            return Unknown(
                f"{resolved.name}.{attribute} is {unresolved[0]}, which is not found",
                step_evidence,
            )
        return Unknown(
            f"{resolved.name}.{attribute} is chosen by the checkpoint "
            f"({(open_ones or evidence)[0].statement})",
            step_evidence,
            open=bool(open_ones),
        )

    def _candidates(self, said: list[tuple[Located, SubConfig]]) -> list[Located]:
        """The classes that a sub-config can be; the constructor's word counts first."""
        for (source, owner), sub in said:
            found: list[Located] = []
            for name in sub.classes:
                located = self._base(source, owner, name)
                if located is not None and located not in found:
                    found.append(located)
            if found:
                return found
        return []

    def _describe(self, step: _Step) -> TextConfig:
        resolved = step.resolved
        model_type = resolved.model_type or step.model_type
        evidence = list(step.evidence)
        stated = resolved.model_type_evidence()
        if stated is not None:
            evidence.append(stated)
        names = step.architectures
        if not names:
            given = resolved.architectures()
            if len(given) == 1 and given[0][1].names:
                (source, owner), item = given[0]
                names = item.names
                evidence.append(
                    Evidence(
                        source,
                        owner.file,
                        item.line,
                        f"{owner.name} gives architectures {list(names)} "
                        f"({item.by.value})",
                    )
                )
        shadowed = resolved.shadowed_architectures()
        if shadowed is not None:
            (source, owner), item = shadowed
            evidence.append(
                Evidence(
                    source,
                    owner.file,
                    item.line,
                    f"{owner.name} states architectures {list(item.names)} as a class "
                    "attribute, which the base constructor hides from instances",
                )
            )
        mapped = self.facts.causal_lm(model_type) if model_type else None
        if model_type and (line := self.facts.evidence(CAUSAL_LM_MAPPING, model_type)):
            evidence.append(line)
        return TextConfig(
            resolved=resolved,
            dynamic=step.reason is not None,
            reason=step.reason,
            model_type=model_type,
            default_architectures=names,
            shadowed_architectures=shadowed[1].names if shadowed else (),
            causal_lm_name=mapped.names[0] if mapped else None,
            known=self.facts.known(model_type) if model_type else Known.UNKNOWN,
            evidence=tuple(dict.fromkeys(evidence)),
        )

    def causal_lm_by_ancestry(self, resolved: ResolvedConfig) -> AncestorName | None:
        """Return the causal LM of the nearest class whose model type is mapped.

        The class itself counts; so does each ancestor under its own ``model_type``: a
        text config that only renames its type is still the config of its base's model.
        """
        for source, config in resolved.mro:
            if config.model_type is None:
                continue
            mapped = self.facts.causal_lm(config.model_type.value)
            line = self.facts.evidence(CAUSAL_LM_MAPPING, config.model_type.value)
            if mapped is None or line is None:
                continue
            stated = Evidence(
                source,
                config.file,
                config.model_type.line,
                f"{resolved.name} is a {config.name}, whose model_type is "
                f"{config.model_type.value!r}"
                if config is not resolved.config
                else f"{config.name}.model_type is {config.model_type.value!r}",
            )
            return AncestorName(mapped.names[0], config, (stated, line))
        return None


@dataclass(frozen=True)
class TreeConfigs:
    """The configs of one target under both Transformers releases that matter.

    Attributes:
        allowed: what the requirements say, with the lines.
        pin: answers by the release that the tree is tested with; ask this one first.
        floor: answers by the oldest release that the tree allows.
        pin_choice: which release stands for the pin, and whether it is the very one.
        floor_choice: the same for the floor.
    """

    allowed: TransformersRange
    pin: ConfigIndex
    floor: ConfigIndex
    pin_choice: Choice
    floor_choice: Choice


def read_configs(
    tree: SourceTree,
    base: SourceTree | None = None,
    facts: TransformersFacts | None = None,
) -> TreeConfigs:
    """Return the configs of a target, by the Transformers releases that it allows.

    Args:
        tree: the target.
        base: the vLLM tree beside a plugin; its requirements are the ones that count.
        facts: one release to judge by instead of the shipped ones.
    """
    source = Source.TREE if base is None else Source.BASE
    allowed = pin_and_floor(base or tree, source)
    if facts is not None:
        statement = f"facts of Transformers {facts.version}, as asked"
        choice = Choice(facts.version, facts.version, True, statement)
        index = ConfigIndex(tree, facts, base)
        return TreeConfigs(allowed, index, index, choice, choice)
    shipped = facts_for(allowed)
    pin = ConfigIndex(tree, shipped.pin, base)
    same = shipped.floor is shipped.pin
    floor = pin if same else ConfigIndex(tree, shipped.floor, base)
    return TreeConfigs(allowed, pin, floor, shipped.pin_choice, shipped.floor_choice)


def _overruled(sub: SubConfig, built: tuple[Located, SubConfig] | None) -> bool:
    """A declared ``AutoConfig`` gives way to a constructor that names the class.

    True of the generation with ``__init__`` only: there ``sub_configs`` is a hint for
    loading, and the constructor runs. In the dataclass generation the base class builds
    from ``sub_configs_defaults`` whatever is still a dict.
    """
    if built is None or sub is built[1]:
        return False
    (_, owner), made = built
    return owner.own_init and bool(made.classes) and not made.dynamic


def _place(resolved: ResolvedConfig) -> Evidence:
    config = resolved.config
    return Evidence(
        resolved.source, config.file, config.line, f"config class {config.name}"
    )


def _say(place: Located, sub: SubConfig) -> Evidence:
    source, owner = place
    statement = f"{owner.name}.{sub.name} is {sub.reason}"
    if sub.dynamic and sub.model_type:
        statement += f", by default {sub.model_type!r}"
    if sub.architectures:
        statement += f", given architectures {list(sub.architectures)}"
    return Evidence(source, owner.file, sub.line, statement)
