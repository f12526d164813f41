"""What stands in for the parts of a machine that a proof does without.

Real are the tree's own configuration, its loader's ``initialize_model`` and the model
class. Stood in for, and only here: packages that serve requests or need a device, the
process groups, the subprocess that inspects a class, and moving modules to a device.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

SERVING = frozenset(
    {
        "aiohttp",
        "cbor2",
        "fastapi",
        "gguf",
        "llguidance",
        "openai",
        "openai_harmony",
        "oss_harmony",
        "partial_json_parser",
        "prometheus_client",
        "pybase64",
        "torchvision",
        "uvloop",
        "xgrammar",
    }
)
"""Packages that vLLM imports at its top and that no proof needs.

The list is fixed on purpose: installing "the missing module" is how an environment ends
up with a CUDA build. Packages whose mere presence switches kernels on (triton,
flash_attn) are not in it.
"""

PROCESSING = frozenset(
    {
        "compressed_tensors",
        "librosa",
        "mistral_common",
        "soundfile",
        "soxr",
        "tiktoken",
        "timm",
        "torchaudio",
    }
)
"""Packages that single models import: preparing input and reading weights.

vLLM's core looks whether some of them are there, so they stand in only after it.
"""


class _Name(type):
    """Lets a stand-in be subscripted, called and asked for anything."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _blank(name)

    def __or__(cls, other: Any) -> Any:
        return other

    def __ror__(cls, other: Any) -> Any:
        return other

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


class _Blank(metaclass=_Name):
    """Takes any call, any attribute and any subscript, and does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        return import_module("pydantic_core").core_schema.any_schema()

    def __call__(self, *arguments: Any, **_: Any) -> Any:
        # A decorator hands back what it decorates.
        if len(arguments) == 1 and callable(arguments[0]):
            return arguments[0]
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Blank()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


def _blank(name: str) -> type[_Blank]:
    made: Any = _Name(name, (_Blank,), {"__module__": __name__})
    assert isinstance(made, type)
    return made


class _StandInModule(ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _blank(name)
        setattr(self, name, made)
        return made


class _Finder(MetaPathFinder, Loader):
    """Found last, so that a package that is there is always preferred."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] in self._names:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        del module


def stand_in_for_packages() -> None:
    """Let imports of the packages in :data:`SERVING` succeed where they are absent.

    Transformers asks once which packages there are. It is asked first, so that it never
    takes a stand-in for the real thing.
    """
    checks = import_module("transformers.utils.import_utils")
    for name, check in list(vars(checks).items()):
        if name.startswith("is_") and name.endswith("_available") and callable(check):
            try:
                check()
            except Exception:  # noqa: BLE001, S112 - it wants arguments; not our matter
                continue
    sys.meta_path.append(_Finder(SERVING))


def stand_in_for_processing() -> None:
    """Let imports of the packages in :data:`PROCESSING` succeed where absent."""
    sys.meta_path.append(_Finder(PROCESSING))


class _Tokenizer(_Blank):
    """Knows no word; every text is one token to it."""

    vocab: Mapping[str, int] = defaultdict(int)

    def get_vocab(self) -> dict[str, int]:
        return {}

    def encode(self, *_: Any, **__: Any) -> list[int]:
        return [0]


def stand_in_for_tokenizers() -> None:
    """Let a model ask for a tokenizer while it is built: it does not come with one."""
    with suppress(ImportError, AttributeError):  # an era that keeps it elsewhere
        context = import_module("vllm.multimodal.processing.context")
        kind = context.InputProcessingContext

        def get_tokenizer(self: Any) -> Any:
            return self.tokenizer if self.tokenizer is not None else _Tokenizer()

        kind.get_tokenizer = get_tokenizer
    with suppress(ImportError, AttributeError):
        for name in ("vllm.tokenizers.registry", "vllm.tokenizers"):
            module = import_module(name)
            original = module.cached_tokenizer_from_config
            vars(module)["cached_tokenizer_from_config"] = _or_a_tokenizer(original)


def _or_a_tokenizer(original: Callable[..., Any]) -> Callable[..., Any]:
    def cached_tokenizer_from_config(*given: Any, **named: Any) -> Any:
        found = original(*given, **named)
        return _Tokenizer() if found is None else found

    return cached_tokenizer_from_config


def choose_cpu() -> None:
    """Make the tree's own CPU platform the current one."""
    platforms = import_module("vllm.platforms")
    cpu = import_module("vllm.platforms.cpu")
    vars(platforms)["_current_platform"] = cpu.CpuPlatform()


def inspect_in_process() -> None:
    """Have the registry look at a class here instead of in a process of its own."""
    registry = import_module("vllm.model_executor.models.registry")

    def run(function: Callable[[], Any]) -> Any:
        return function()

    vars(registry)["_run_in_subprocess"] = run


class _ProcessGroup:
    """Answers who is in the group; sends nothing."""

    def __init__(self, size: int, rank: int) -> None:
        self._size, self._rank = size, rank

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank


def pretend_groups(pipeline_size: int, rank: int) -> None:
    """Stand in for the process groups: this is rank ``rank`` of a pipeline.

    The objects are of the tree's own class, only never initialised: whatever they
    answer is what that class's code makes of the ranks.
    """
    state = import_module("vllm.distributed.parallel_state")
    torch = import_module("torch")
    for name, kind in list(vars(state)["__annotations__"].items()):
        if "GroupCoordinator" not in str(kind) or not name.startswith("_"):
            continue
        in_pipeline = name in ("_PP", "_WORLD")
        size, place = (pipeline_size, rank) if in_pipeline else (1, 0)
        group = object.__new__(state.GroupCoordinator)
        vars(group).update(
            rank=rank,
            local_rank=rank,
            ranks=list(range(size)) if in_pipeline else [rank],
            world_size=size,
            rank_in_group=place,
            unique_name=name,
            device=torch.device("meta"),
            device_group=_ProcessGroup(size, place),
            cpu_group=_ProcessGroup(size, place),
            device_communicator=None,
            mq_broadcaster=None,
            use_device_communicator=False,
            use_custom_op_call=False,
            use_cpu_custom_send_recv=False,
        )
        vars(state)[name] = group


def keep_on_meta() -> None:
    """Let a module that moves itself to a device stay where it is: it has no data."""
    torch = import_module("torch")

    def to(self: Any, *_: Any, **__: Any) -> Any:
        return self

    torch.nn.Module.to = to


def quiet() -> None:
    """Send what the tree's code prints to nowhere: reports have their own channel."""
    blackhole = os.open(os.devnull, os.O_WRONLY)
    os.dup2(blackhole, 1)
    os.close(blackhole)


def stand_in_for_operators() -> None:
    """Hand out a placeholder for a compiled operator that is not there.

    Only inside functions: at module level an absent operator must stay absent, since
    that is how vLLM finds out what it was built with.
    """
    namespace = import_module("torch._ops")._OpNamespace
    original = namespace.__getattr__

    def getattr_(self: Any, name: str) -> Any:
        try:
            return original(self, name)
        except AttributeError:
            here = inspect.currentframe()
            caller = here.f_back if here else None
            if name.startswith("__") or caller is None or not _in_vllm(caller):
                raise
            return _Blank()

    namespace.__getattr__ = getattr_


def _in_vllm(frame: FrameType) -> bool:
    """Say whether the code that asks is a function of vLLM."""
    asker = str(frame.f_globals.get("__name__", ""))
    return asker.startswith("vllm") and frame.f_code.co_name != "<module>"
