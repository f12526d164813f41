"""Real trees, run for real: what must be proven, and what must be refuted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vlmend.cli.proof.shadow import make_shadow

MODELS = "vllm/model_executor/models"
COHERE = "Cohere2VisionForConditionalGeneration"
A_CLASSES = (
    "Cosmos3EdgeForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
)
K_CLASSES = ("InternLM2ForCausalLM", "Step1ForCausalLM")
D, A, K = "delegate-intermediate-tensors", "explicit-architectures", "forward-kwargs"

pytestmark = [pytest.mark.verify, pytest.mark.usefixtures("kept_environments")]


def verify(target, codemod, *classes, before=None, code=0, more=()):
    words = [sys.executable, "-m", "vlmend.cli", "verify", str(target), "--yes"]
    words += ["--codemod", codemod, "--format", "json"]
    words += [f"--class={name}" for name in classes]
    words += ["--before", str(before)] if before else []
    words += more
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == code, done.stderr + done.stdout[-2000:]
    return json.loads(done.stdout)


def verdicts(document):
    return {proof["class"]: proof["verdict"] for proof in document["proofs"]}


def check_test(document, file, classes):
    """The regression test fails before, passes after, and covers all classes."""
    (test,) = document["tests"]
    assert test["offered"], test["before"] + test["after"]
    assert (test["file"], sorted(test["classes"])) == (file, sorted(classes))
    assert "failed" in test["before"].splitlines()[-1]
    assert "failed" not in test["after"].splitlines()[-1]
    home = str(Path.home())
    assert home not in test["before"]
    assert home not in test["text"]


def test_delegation_is_proven_with_keys_and_shapes(release):
    release("0.21.0")
    document = verify("vllm==0.21.0", D, COHERE)
    assert verdicts(document) == {COHERE: "PROVEN"}
    (proof,) = document["proofs"]
    run = proof["runs"][0]
    assert (run["pipeline_parallel_size"], run["rank"]) == (2, 1)
    assert run["before"]["tensors"] == {"type": "NoneType"}
    assert set(run["after"]["tensors"]["shapes"]) == {"hidden_states", "residual"}
    assert proof["versions"]["transformers"] == "5.5.3"
    assert proof["config"]["class"].endswith(".Cohere2VisionConfig")
    assert "text_config" in proof["config"]["filled_in"]
    place = "tests/model_executor/test_empty_intermediate_tensors.py"
    check_test(document, place, [COHERE])


def test_architectures_are_proven_with_both_chains_of_failure(release):
    release("0.29.0")
    document = verify("vllm==0.29.0", A, *A_CLASSES)
    assert verdicts(document) == dict.fromkeys(A_CLASSES, "PROVEN")
    for proof in document["proofs"]:
        two, one = proof["runs"]
        assert (
            "No model architectures are specified" in two["before"]["error"]["message"]
        )
        assert one["before"]["error"]["type"] == "IndexError"
        assert two["before"]["views"][-1]["after"] is None
        assert two["after"]["stage"] == one["after"]["stage"] == "done"
        assert all(view["after"] for view in two["after"]["views"])
    check_test(document, "tests/model_executor/test_inner_architectures.py", A_CLASSES)


def test_forward_is_proven(release):
    release("0.33.0")
    document = verify("vllm==0.33.0", K, *K_CLASSES)
    assert verdicts(document) == dict.fromkeys(K_CLASSES, "PROVEN")
    check_test(document, "tests/model_executor/test_forward_keywords.py", K_CLASSES)


@pytest.mark.parametrize(
    ("version", "codemod", "classes"),
    [("0.22.0", D, (COHERE,)), ("0.30.0", A, A_CLASSES)],
)
def test_after_upstreams_fix_there_is_nothing_to_prove(
    release, version, codemod, classes
):
    release(version)
    assert verify(f"vllm=={version}", codemod, *classes)["proofs"] == []


def broken(root: Path, place: Path, changes: dict[str, tuple[str, str]]) -> Path:
    """Return a copy of a tree in which some files say something else."""
    patched = {}
    for name, (old, new) in changes.items():
        text = (root / MODELS / name).read_text()
        assert text.count(old) == 1, (name, text.count(old))
        patched[f"{MODELS}/{name}"] = text.replace(old, new).encode()
    return make_shadow(root, place, patched)


def test_an_attribute_without_the_method_is_refuted(release, tmp_path):
    root = release("0.21.0")
    wrong = broken(
        root,
        tmp_path / "wrong",
        {
            "cohere2_vision.py": (
                (
                    "                architectures=config.text_config.architectures,\n"
                    "            )\n"
                ),
                (
                    "                architectures=config.text_config.architectures,\n"
                    "            )\n"
                    "        self.make_empty_intermediate_tensors = lambda **_: None\n"
                ),
            )
        },
    )
    document = verify(wrong, D, COHERE, before=root, code=1)
    assert verdicts(document) == {COHERE: "REFUTED"}


def test_wrong_architecture_names_are_refuted(release, tmp_path):
    root = release("0.29.0")
    old = "with_hf_config(config.text_config)"
    new = 'with_hf_config(config.text_config, architectures=["{}"])'
    names = ("Qwen3ForCausaLM", "LlamaForCausalLM")
    changes = {}
    for file, name in zip(("qwen3_vl.py", "qwen3_vl_moe.py"), names, strict=True):
        text = (root / MODELS / file).read_text()
        changes[file] = (old, new.format(name)) if text.count(old) == 1 else None
    assert all(changes.values()), changes
    wrong = broken(root, tmp_path / "wrong", changes)
    document = verify(wrong, A, *A_CLASSES[1:], before=root, code=1)
    assert verdicts(document) == dict.fromkeys(A_CLASSES[1:], "REFUTED")


def test_a_forward_that_no_longer_hands_on_is_refuted(release, tmp_path):
    root = release("0.33.0")
    text = (root / MODELS / "step1.py").read_text()
    head, _, tail = text.rpartition("            intermediate_tensors,\n")
    place = make_shadow(
        root,
        tmp_path / "wrong",
        {
            f"{MODELS}/step1.py": (
                head.replace(
                    "intermediate_tensors: IntermediateTensors | None,",
                    "intermediate_tensors: IntermediateTensors | None = None,",
                )
                + "            None,\n"
                + tail
            ).encode()
        },
    )
    document = verify(place, K, "Step1ForCausalLM", before=root, code=1)
    assert verdicts(document) == {"Step1ForCausalLM": "REFUTED"}


def test_a_revision_and_a_plugin_are_proven_like_a_release(release, tmp_path, git):
    root = release("0.21.0")
    name = "cohere2_vision.py"
    source = (root / MODELS / name).read_text()
    # The same class, outside of the tree and registered from there.
    plugin = tmp_path / "plugin"
    package = plugin / "far_models"
    package.mkdir(parents=True)
    (plugin / "pyproject.toml").write_text(
        '[project]\nname = "far-models"\nversion = "1"\ndependencies = ["vllm"]\n'
        '[project.entry-points."vllm.general_plugins"]\nfar = "far_models:register"\n'
    )
    (package / "__init__.py").write_text(
        "from vllm import ModelRegistry\n\n\ndef register():\n"
        "    ModelRegistry.register_model(\n"
        f'        "{COHERE}", "far_models.wrapper:{COHERE}"\n    )\n'
    )
    away = source.replace("from .", "from vllm.model_executor.models.")
    (package / "wrapper.py").write_text(away)
    git(plugin, "init", "-q", "-b", "main")
    git(plugin, "add", "-A")
    git(plugin, "commit", "-q", "-m", "Start")
    # What is in the folder by now is not what is asked about.
    (package / "wrapper.py").write_text("raise ImportError\n")
    target = f"{plugin}@HEAD"
    document = verify(target, D, COHERE, more=("--vllm", str(root)))
    assert verdicts(document) == {COHERE: "PROVEN"}
    (proof,) = document["proofs"]
    assert proof["module"] == "far_models.wrapper"
    assert proof["runs"][0]["after"]["built"] == f"far_models.wrapper:{COHERE}"


def test_ctrl_c_leaves_nothing_running(release, tmp_path):
    root = release("0.21.0")
    # A tree whose import never ends.
    after = make_shadow(
        root,
        tmp_path / "hanging",
        {f"{MODELS}/__init__.py": b"import time\ntime.sleep(600)\n"},
    )
    words = [sys.executable, "-m", "vlmend.cli", "verify", str(after), "--yes"]
    words += ["--before", str(root), "--codemod", D, f"--class={COHERE}"]
    env = os.environ | {"TMPDIR": str(tmp_path)}
    child = subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, start_new_session=True, env=env
    )
    deadline = time.monotonic() + 120
    while not harnesses(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert harnesses(tmp_path)
    os.kill(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert (child.returncode, said.strip()) == (130, "vlmend: interrupted")
    time.sleep(0.5)
    assert harnesses(tmp_path) == []


def harnesses(place: Path) -> list[str]:
    """Return the processes that run a tree on behalf of a test."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:
            continue
        if b"vlmend.cli.proof.harness" in line and str(place).encode() in line:
            found.append(line.decode())
    return found
