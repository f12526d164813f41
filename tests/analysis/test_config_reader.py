"""What is read from one config class, form by form."""

from __future__ import annotations

from textwrap import dedent

import pytest

from vlmend.codemods.analysis.config_classes import (
    GET_TEXT_CONFIG,
    ArchitecturesBy,
    ConfigClass,
    SubConfig,
)
from vlmend.codemods.analysis.config_reader import read_config_module


def read(source: str) -> ConfigClass:
    module = read_config_module(dedent(source).encode(), "pkg/configs/box.py")
    return module.classes[-1]


def in_init(body: str, head: str = "") -> ConfigClass:
    """A class of the older generation with the given constructor body."""
    lines = "\n".join(f"        {line}" for line in dedent(body).splitlines())
    return read(
        f"class BoxConfig(PretrainedConfig):\n{head}"
        f"    def __init__(self, text_config=None, **kwargs):\n{lines}\n"
    )


def sub(config: ConfigClass, name: str = "text_config") -> SubConfig:
    (found,) = (item for item in config.built if item.name == name)
    return found


BUILT = [
    pytest.param(
        "self.text_config = InkConfig(**text_config)",
        (("InkConfig",), False, None),
        id="a class called with the dict is that class",
    ),
    pytest.param(
        """
        if text_config is None:
            text_config = InkConfig()
        elif isinstance(text_config, dict):
            text_config = InkConfig(**text_config)
        self.text_config = text_config
        """,
        (("InkConfig",), False, None),
        id="a local that every branch fills with one class is that class",
    ),
    pytest.param(
        """
        self.text_config = (
            InkConfig(**text_config) if isinstance(text_config, dict) else text_config
        )
        """,
        (("InkConfig",), False, None),
        id="a given instance is passed through and opens nothing",
    ),
    pytest.param(
        "self.text_config = text_config or pens.InkConfig.from_dict({})",
        (("pens.InkConfig",), False, None),
        id="from_dict of a class is that class, with its dots",
    ),
    pytest.param(
        """
        if text_config is None:
            self.text_config = InkConfig()
        else:
            self.text_config = PenConfig(**text_config)
        """,
        (("InkConfig", "PenConfig"), False, None),
        id="two branches with two classes are both kept",
    ),
    pytest.param(
        'self.text_config = CONFIG_MAPPING["ink"]()',
        ((), True, "ink"),
        id="a mapping is dynamic even with a literal key",
    ),
    pytest.param(
        """
        if isinstance(text_config, dict):
            text_config["model_type"] = text_config.get("model_type", "ink")
            text_config = CONFIG_MAPPING[text_config["model_type"]](**text_config)
        elif text_config is None:
            text_config = CONFIG_MAPPING["ink"]()
        self.text_config = text_config
        """,
        ((), True, "ink"),
        id="the default model type is found through the item",
    ),
    pytest.param(
        """
        kind = text_config["model_type"] if "model_type" in text_config else "ink"
        self.text_config = transformers.CONFIG_MAPPING[kind](**text_config)
        """,
        ((), True, "ink"),
        id="the default model type is found through a local",
    ),
    pytest.param(
        """
        text_config["model_type"] = (
            text_config["model_type"] if "model_type" in text_config else "ink"
        )
        self.text_config = CONFIG_MAPPING[text_config["model_type"]](**text_config)
        """,
        ((), True, "ink"),
        id="an item that refers to itself ends",
    ),
    pytest.param(
        """
        if isinstance(vision_config, dict):
            kind = vision_config.get("model_type", "eye")
            self.vision_config = CONFIG_MAPPING[kind](**vision_config)
        if isinstance(text_config, dict):
            kind = text_config.get("model_type", "ink")
            self.text_config = CONFIG_MAPPING[kind](**text_config)
        """,
        ((), True, "ink"),
        id="a reused local means what the nearest assignment says",
    ),
    pytest.param(
        """
        kind = "ink"
        if text_config:
            kind = "pen"
        self.text_config = CONFIG_MAPPING[kind]()
        """,
        ((), True, None),
        id="a local assigned in a branch as well has no one default",
    ),
    pytest.param(
        """
        if text_config:
            self.text_config = CONFIG_MAPPING["pen"]()
        else:
            self.text_config = CONFIG_MAPPING["ink"]()
        """,
        ((), True, None),
        id="two defaults are none",
    ),
    pytest.param(
        "self.text_config = AutoConfig.for_model(kind, **text_config)",
        ((), True, None),
        id="AutoConfig is dynamic",
    ),
    pytest.param(
        "self.text_config = PretrainedConfig(**text_config)",
        ((), True, None),
        id="the bare root class is dynamic",
    ),
    pytest.param(
        """
        if kind in CONFIG_MAPPING:
            self.text_config = CONFIG_MAPPING[kind](**text_config)
        else:
            self.text_config = InkConfig(**text_config)
        """,
        (("InkConfig",), True, None),
        id="one dynamic branch makes all of it dynamic",
    ),
    pytest.param(
        "self.text_config = get_config(name, trust_remote_code=False)",
        ((), True, None),
        id="a helper function is dynamic",
    ),
    pytest.param(
        """
        cls = InkConfig if small else PenConfig
        self.text_config = cls(**text_config)
        """,
        (("InkConfig", "PenConfig"), False, None),
        id="a local that holds a class is followed",
    ),
]


@pytest.mark.parametrize(("body", "expected"), BUILT)
def test_constructor_tells_sub_config(
    body: str, expected: tuple[tuple[str, ...], bool, str | None]
) -> None:
    found = sub(in_init(body))
    assert (found.classes, found.dynamic, found.model_type) == expected


NOT_SUB_CONFIGS = [
    pytest.param("self.width = max(1, 2)", id="a number"),
    pytest.param("self.text_config = text_config", id="only what was given"),
    pytest.param('self.text_config = kwargs.pop("text_config", None)', id="a keyword"),
    pytest.param("self.text_config = dict(text_config)", id="a plain dict"),
    pytest.param("self.text_config = {}", id="a literal"),
]


@pytest.mark.parametrize("body", NOT_SUB_CONFIGS)
def test_constructor_tells_nothing(body: str) -> None:
    assert in_init(body).built == ()


def test_line_is_the_constructing_call() -> None:
    found = sub(in_init("x = 1\nself.text_config = InkConfig()"))
    assert found.line == 4


def test_declared_class_is_used_by_the_constructor() -> None:
    config = in_init(
        'self.text_config = self.sub_configs["text_config"](**text_config)',
        '    sub_configs = {"text_config": InkConfig, "vision_config": AutoConfig}\n',
    )
    assert [(d.name, d.classes, d.dynamic) for d in config.declared] == [
        ("text_config", ("InkConfig",), False),
        ("vision_config", (), True),
    ]
    assert sub(config).declared == "text_config"
    assert not sub(config).dynamic


def test_sub_config_specs() -> None:
    config = read(
        """
        class BoxConfig(PreTrainedConfig):
            sub_configs_defaults = {
                "a": SubConfigSpec(config_class=InkConfig),
                "b": SubConfigSpec(config_class=AutoConfig, model_type="ink"),
                "c": PenConfig,
                "d": SubConfigSpec(AutoConfig, "pen"),
                "e": PreTrainedConfig,
            }
        """
    )
    found = [(d.classes, d.dynamic, d.model_type) for d in config.declared]
    assert found == [
        (("InkConfig",), False, None),
        ((), True, "ink"),
        (("PenConfig",), False, None),
        ((), True, "pen"),
        ((), True, None),
    ]


ARCHITECTURES = [
    pytest.param(
        'kwargs.setdefault("architectures", ["X"])',
        [(("X",), ArchitecturesBy.KEYWORD)],
        id="setdefault",
    ),
    pytest.param(
        """
        if "architectures" not in kwargs:
            kwargs["architectures"] = ["X"]
        """,
        [(("X",), ArchitecturesBy.KEYWORD)],
        id="guarded item",
    ),
    pytest.param(
        'self.architectures = ["X"]',
        [(("X",), ArchitecturesBy.ASSIGNED)],
        id="assignment",
    ),
    pytest.param(
        'self.architectures = architectures or ["X"]',
        [(("X",), ArchitecturesBy.ASSIGNED)],
        id="assignment with a fallback",
    ),
    pytest.param(
        """
        if architectures is None:
            architectures = ["X"]
        super().__init__(architectures=architectures, **kwargs)
        """,
        [(("X",), ArchitecturesBy.KEYWORD)],
        id="parameter that is handed on",
    ),
    pytest.param(
        'super().__init__(architectures=["X"], **kwargs)',
        [(("X",), ArchitecturesBy.KEYWORD)],
        id="keyword of the base constructor",
    ),
    pytest.param(
        """
        if small:
            self.architectures = ["X"]
        else:
            self.architectures = ["Y"]
        """,
        [(("X",), ArchitecturesBy.ASSIGNED), (("Y",), ArchitecturesBy.ASSIGNED)],
        id="two branches are two statements",
    ),
    pytest.param(
        'kwargs["architectures"] = [a + "Draft" for a in names]',
        [((), ArchitecturesBy.KEYWORD)],
        id="computed names are kept as unknown",
    ),
    pytest.param("self.architectures = architectures", [], id="passed on only"),
    pytest.param('architectures = ["X"]', [], id="a local that goes nowhere"),
]


@pytest.mark.parametrize(("body", "expected"), ARCHITECTURES)
def test_constructor_tells_architectures(
    body: str, expected: list[tuple[tuple[str, ...], ArchitecturesBy]]
) -> None:
    assert [(a.names, a.by) for a in in_init(body).architectures] == expected


def test_class_attribute_is_told_apart_and_can_be_handed_on() -> None:
    head = '    architectures = ["X"]\n'
    plain = in_init("super().__init__(**kwargs)", head)
    assert [a.by for a in plain.architectures] == [ArchitecturesBy.CLASS_ATTRIBUTE]
    handed_on = in_init(
        'kwargs["architectures"] = list(type(self).architectures)', head
    )
    assert [(a.names, a.by) for a in handed_on.architectures][1:] == [
        (("X",), ArchitecturesBy.KEYWORD)
    ]


SUB_ARCHITECTURES = [
    pytest.param(
        'self.text_config = InkConfig(architectures=["Ink"])', id="as a keyword"
    ),
    pytest.param(
        """
        text_config.setdefault("architectures", ["Ink"])
        self.text_config = InkConfig(**text_config)
        """,
        id="in the dict",
    ),
]


@pytest.mark.parametrize("body", SUB_ARCHITECTURES)
def test_wrapper_gives_its_sub_config_architectures(body: str) -> None:
    assert sub(in_init(body)).architectures == ("Ink",)


def test_fields_are_all_that_an_instance_has() -> None:
    config = read(
        """
        class BoxConfig(PreTrainedConfig):
            model_type = "box"
            attribute_map = {"size": "width"}
            depth: int = 3
            _secret = 1

            def __init__(self, height=1, **kwargs):
                self.area = height
                self._hidden = 1
                setattr(self, "weight", 2)
                kwargs.setdefault("colour", "red")

            @property
            def volume(self):
                return 1

            def validate(self):
                self.valid = True
        """
    )
    assert set(config.fields) == {
        *("model_type", "attribute_map", "size", "width", "depth", "height", "area"),
        *("weight", "colour", "volume", "valid"),
    }
    assert config.attribute_map == (("size", "width"),)
    assert config.model_type is not None
    assert (config.model_type.value, config.model_type.line) == ("box", 3)


PATHS = [
    pytest.param("self.inner", ("inner",), id="an attribute"),
    pytest.param(
        "self.inner.get_text_config()", ("inner", GET_TEXT_CONFIG), id="a call of it"
    ),
    pytest.param("self", (), id="itself"),
    pytest.param("make(self)", None, id="something computed"),
    pytest.param("self.inner.copy()", None, id="another method"),
]


@pytest.mark.parametrize(("returned", "path"), PATHS)
def test_property_leads_along_a_path(
    returned: str, path: tuple[str, ...] | None
) -> None:
    config = read(
        f"""
        class BoxConfig(PretrainedConfig):
            @property
            def text_config(self):
                return {returned}

            def get_text_config(self, decoder=False):
                return {returned}
        """
    )
    assert [(p.name, p.path) for p in config.properties] == [
        ("text_config", path),
        (GET_TEXT_CONFIG, path),
    ]


def test_module_knows_imports_aliases_and_registrations() -> None:
    module = read_config_module(
        b"import transformers\n"
        b"from transformers import LlamaConfig as L\n"
        b"from .pen import PenConfig\n"
        b"from ..shared.ink import InkConfig\n"
        b"try:\n    from a import AConfig\nexcept ImportError:\n    pass\n"
        b"OldConfig = PenConfig\n"
        b'AutoConfig.register("pen", PenConfig)\n',
        "pkg/configs/box.py",
    )
    assert [(i.local, i.module, i.name) for i in module.imports] == [
        ("transformers", "transformers", ""),
        ("L", "transformers", "LlamaConfig"),
        ("PenConfig", "pkg.configs.pen", "PenConfig"),
        ("InkConfig", "pkg.shared.ink", "InkConfig"),
        ("AConfig", "a", "AConfig"),
    ]
    assert module.aliases == (("OldConfig", "PenConfig"),)
    assert [(r.model_type, r.class_name) for r in module.registrations] == [
        ("pen", "PenConfig")
    ]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(b"class X(:\n", id="does not parse"),
        pytest.param(b"x = 1\0", id="null byte"),
    ],
)
def test_broken_source_is_an_error(source: bytes) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        read_config_module(source, "x.py")
