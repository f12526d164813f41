"""Notes every narrowed view of the configuration: where, from what, to what."""

from __future__ import annotations

import functools
import inspect
from importlib import import_module
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

DEPTH = 8


class Recorder:
    """Keeps what ``VllmConfig.with_hf_config`` was called with and made of it.

    A call is noted even where the construction of the view dies later: what it had
    resolved by then stands in the frame that died.
    """

    def __init__(self, roots: tuple[Path, ...]) -> None:
        self.calls: list[dict[str, Any]] = []
        self.views: list[Any] = []
        self._roots = roots

    def install(self) -> None:
        """Wrap the tree's own method."""
        config = import_module("vllm.config").VllmConfig
        original = config.with_hf_config
        code = original.__code__

        @functools.wraps(original)
        def with_hf_config(this: Any, hf_config: Any, *rest: Any, **named: Any) -> Any:
            call = {
                "frames": frames(_caller(), self._roots),
                "model_type": getattr(hf_config, "model_type", None),
                "config": type(hf_config).__name__,
                "given": list(rest[0] if rest else named.get("architectures") or ()),
                "before": getattr(hf_config, "architectures", None),
            }
            self.calls.append(call)
            self.views.append(None)
            place = len(self.views) - 1
            try:
                view = original(this, hf_config, *rest, **named)
            except BaseException as error:
                call["after"] = _left_behind(error.__traceback__, code, hf_config)
                call["error"] = f"{type(error).__name__}: {error}".split("\n")[0]
                raise
            call["after"] = getattr(view.model_config.hf_config, "architectures", None)
            self.views[place] = view
            return view

        config.with_hf_config = with_hf_config


def _caller() -> FrameType | None:
    """Return the frame that called the function that asks."""
    here = inspect.currentframe()
    asked = here.f_back if here else None
    return asked.f_back if asked else None


def _left_behind(
    traceback: TracebackType | None, code: Any, hf_config: Any
) -> list[str] | None:
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code is code:
            hf_config = frame.f_locals.get("hf_config", hf_config)
        traceback = traceback.tb_next
    found = getattr(hf_config, "architectures", None)
    return None if found is None else list(found)


def frames(frame: FrameType | None, roots: tuple[Path, ...]) -> list[dict[str, Any]]:
    """Return the callers in the tree, nearest first."""
    found: list[dict[str, Any]] = []
    while frame is not None and len(found) < DEPTH:
        place = relative(frame.f_code.co_filename, roots)
        if place is not None:
            found.append(
                {
                    "file": place,
                    "line": frame.f_lineno,
                    "function": frame.f_code.co_qualname
                    if hasattr(frame.f_code, "co_qualname")
                    else frame.f_code.co_name,
                }
            )
        frame = frame.f_back
    return found


def relative(file: str, roots: tuple[Path, ...]) -> str | None:
    """Return a path below one of the roots, as a finding spells it, or None."""
    for root in roots:
        if file.startswith(f"{root}/"):
            return file[len(str(root)) + 1 :]
    return None
