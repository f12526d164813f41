"""What is asked of a class, one function per contract. They note; they do not judge."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from vlmend.cli.proof.harness.building import Run
from vlmend.cli.proof.harness.recorder import Recorder

TOKENS = 8
OUTPUT = 6000


def probe_build(run: Run, recorder: Recorder) -> None:
    """Only build."""
    del recorder
    run.build()


def probe_delegation(run: Run, recorder: Recorder) -> None:
    """Ask for the tensors that a rank after the first begins with, as a runner does."""
    del recorder
    torch = run.build()
    run.enter("call")
    run.facts["tensors"] = _described(
        run.model.make_empty_intermediate_tensors(
            batch_size=TOKENS, dtype=torch.bfloat16, device=torch.device("cpu")
        )
    )


def _described(answer: Any) -> dict[str, Any]:
    kind = type(answer)
    tensors = getattr(answer, "tensors", None)
    described: dict[str, Any] = {"type": kind.__name__}
    if isinstance(tensors, Mapping):
        described["shapes"] = {k: list(v.shape) for k, v in tensors.items()}
    return described


def probe_architectures(run: Run, recorder: Recorder) -> None:
    """Build, and see what each narrowed view's name stands for."""
    registry = import_module("vllm.model_executor.models").ModelRegistry
    try:
        run.build()
    finally:
        known = set(registry.get_supported_archs())
        for call in recorder.calls:
            names = call.get("after") or ()
            call["registered"] = [name for name in names if name in known]
    run.enter("call")
    for call, view in zip(recorder.calls, recorder.views, strict=True):
        if view is not None and call["registered"]:
            call["kin"] = _kin(run, view, call["registered"][0])


def _kin(run: Run, view: Any, name: str) -> dict[str, Any]:
    """Compare what a view's name stands for with what was built from the view.

    The class that the name registers is built from the same view; its class, or the
    class of its backbone, must be an ancestor of something in the model.
    """
    registry = import_module("vllm.model_executor.models").ModelRegistry
    wanted: Any = registry._try_load_model_cls(name)
    if wanted is None:
        return {"error": f"{name} cannot be loaded"}
    inside = [m for key, m in run.model.named_modules() if key and key.count(".") < 3]
    if any(isinstance(module, wanted) for module in inside):
        return {"through": wanted.__name__}
    # Layers are listed by name, and those of the model have taken the names.
    view.compilation_config.static_forward_context.clear()
    try:
        alone = run.built(view, wanted)
    except Exception as error:  # noqa: BLE001 - any failure is an answer
        text = f"{type(error).__name__}: {error}".split("\n")[0]
        return {"error": f"{name} cannot be built from the view: {text}"}
    backbone = type(getattr(alone, "model", alone))
    if any(isinstance(module, backbone) for module in inside):
        return {"through": backbone.__name__}
    return {"stranger": f"{wanted.__name__} with {backbone.__name__}"}


def probe_forward(run: Run, recorder: Recorder) -> None:
    """Call the real forward as each runner does, spies in place of the inner models."""
    del recorder
    from vlmend.cli.proof.harness.spies import called

    model_class = run.load_class()
    from vlmend.cli.proof.harness.stand_ins import pretend_groups

    pretend_groups(run.job["pp"], run.job["rank"])
    run.enter("call")
    run.facts["calls"] = [called(model_class, keys) for keys in run.job["keywords"]]


def probe_test(run: Run, recorder: Recorder) -> None:
    """Run a test file with pytest, in a folder of its own."""
    del recorder
    pytest = import_module("pytest")
    run.enter("call")
    wanted = run.job["test"]
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, wanted["name"])
        file.write_text(wanted["text"], "utf-8")
        said = Path(place, "output")
        os.chdir(place)
        with said.open("w", encoding="utf-8") as stream, redirect_stdout(stream):
            code = pytest.main(
                [
                    *("-q", "--tb=short", "--color=no", "--noconftest"),
                    "--show-capture=no",
                    *("-p", "no:cacheprovider", "--disable-warnings"),
                    *("--rootdir", place, file.name),
                ]
            )
        text = _without_places(said.read_text("utf-8"), place)
        run.facts["tests"] = {"exit": int(code), "output": text[-OUTPUT:]}


def _without_places(text: str, *places: str) -> str:
    """Make paths relative: where things lie on this machine is nobody's business."""
    for place in sorted({*places, *filter(None, sys.path)}, key=len, reverse=True):
        text = text.replace(f"{os.path.relpath(place)}/", "").replace(f"{place}/", "")
    return text


PROBES = {
    "build": probe_build,
    "delegation": probe_delegation,
    "architectures": probe_architectures,
    "forward": probe_forward,
    "test": probe_test,
}
