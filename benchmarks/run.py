"""What a scan costs, as ratios within one run.

    python benchmarks/run.py [--target vllm==0.33.0] [--rounds 3] [--with-libcst]

Peers work on the same folders: one ast-grep pattern, and (with
``--with-libcst``, which takes minutes) the LibCST tool with an idle codemod.
CPU seconds are user plus system of the whole process tree, the best round.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PATTERN = "self.make_empty_intermediate_tensors = $VALUE"
FOLDERS = ("vllm/model_executor/models", "vllm/models")
IDLE = """
    import libcst as cst
    from libcst.codemod import VisitorBasedCodemodCommand


    class Idle(VisitorBasedCodemodCommand):
        DESCRIPTION = "changes nothing"
"""


@dataclass(frozen=True)
class Cost:
    """CPU seconds and peak memory (MiB) of one command."""

    cpu: float
    memory: float


def measure(command: Sequence[str], environment: dict[str, str], folder: Path) -> Cost:
    """Run a command in a process of its own and return what it took.

    A scan may exit with 1, which only says that it found something.
    """
    fine = (0, 1) if "scan" in command else (0,)
    # A child of a fresh child: RUSAGE_CHILDREN then holds this command alone.
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=False,
            )
            if done.returncode not in fine:
                sys.stderr.write(done.stderr.decode(errors="replace"))
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = used.ru_utime + used.ru_stime
            os.write(writer, f"{cpu} {used.ru_maxrss / 1024}".encode())
            code = 0 if done.returncode in fine else 1
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    cpu, memory = said.split()
    return Cost(float(cpu), float(memory))


class Bench:
    """The commands of one run, on one tree."""

    def __init__(self, root: Path, work: Path, rounds: int) -> None:
        self.root = root
        self.work = work
        self.rounds = rounds
        self.folders = [str(root / f) for f in FOLDERS if (root / f).is_dir()]
        self.environment = {**os.environ, "VLMEND_CACHE_DIR": str(work / "cache")}
        self.vlmend = [sys.executable, "-m", "vlmend.cli"]

    def best(self, command: Sequence[str], before: Callable[[], None]) -> Cost:
        """Return the cheapest of all rounds; ``before`` runs ahead of each."""
        costs = []
        for _ in range(self.rounds):
            before()
            costs.append(measure(command, self.environment, self.work))
        return Cost(min(c.cpu for c in costs), max(c.memory for c in costs))

    def nothing(self) -> None:
        """Leave everything as it is."""

    def forget(self) -> None:
        """Make the next scan a cold one."""
        shutil.rmtree(self.work / "cache", ignore_errors=True)

    def commit(self) -> None:
        """Make the tree a repository, so that a change can be compared with it."""
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
        for words in (("init", "-q"), ("add", "-Af"), ("commit", "-qm", "A release")):
            subprocess.run(["git", "-C", self.root, *who, *words], check=True)

    def touch(self) -> None:
        """Change one model file, differently each time."""
        model = self.root / FOLDERS[0] / "llava.py"
        model.write_bytes(model.read_bytes() + b"\n# changed\n")

    def scan(self, *codemods: str) -> list[str]:
        """Return a scan's command."""
        chosen = [word for one in codemods for word in ("--codemod", one)]
        return [*self.vlmend, "scan", str(self.root), *chosen]

    def ast_grep(self) -> list[str]:
        """Return the peer's command."""
        program = shutil.which("ast-grep", path=str(Path(sys.executable).parent))
        program = program or shutil.which("ast-grep")
        if program is None:
            raise SystemExit("ast-grep is missing: pip install ast-grep-cli")
        return [program, "run", "--lang", "python", "--pattern", PATTERN, *self.folders]

    def libcst(self) -> list[str]:
        """Return the other peer's command: an idle codemod in two processes."""
        (self.work / "idle.py").write_text(textwrap.dedent(IDLE))
        (self.work / ".libcst.codemod.yaml").write_text('modules: ["."]\n')
        tool = [
            sys.executable,
            "-m",
            "libcst.tool",
            "codemod",
            "-x",
            "idle.Idle",
            "-j2",
        ]
        return [*tool, "--no-format", *self.folders]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="vllm==0.33.0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--with-libcst", action="store_true")
    options = parser.parse_args()
    from vlmend.cli.targets import resolve_target

    with tempfile.TemporaryDirectory() as name, resolve_target(options.target) as found:
        if found.root is None:
            raise SystemExit(f"{options.target}: not a tree on disk")
        root = Path(name, "tree")
        shutil.copytree(found.root, root)
        bench = Bench(root, Path(name), options.rounds)
        for folder in bench.folders:
            files = list(Path(folder).rglob("*.py"))
            lines = sum(file.read_bytes().count(b"\n") for file in files)
            print(
                f"{Path(folder).relative_to(root)}: {len(files)} files, {lines} lines"
            )
        report(bench, with_libcst=options.with_libcst)


def report(bench: Bench, *, with_libcst: bool) -> None:
    """Run every command and print the table."""
    peer = bench.best(bench.ast_grep(), bench.nothing)
    one = "delegate-intermediate-tensors"
    rows = [("ast-grep, one pattern", peer)]
    if with_libcst:
        bench.rounds, rounds = 1, bench.rounds
        rows.append(
            ("idle libcst.tool -j 2", bench.best(bench.libcst(), bench.nothing))
        )
        bench.rounds = rounds
    rows.append(
        ("vlmend scan, cold, one codemod", bench.best(bench.scan(one), bench.forget))
    )
    rows.append(
        ("vlmend scan, cold, all codemods", bench.best(bench.scan(), bench.forget))
    )
    rows.append(
        ("vlmend scan, warm, all codemods", bench.best(bench.scan(), bench.nothing))
    )
    rows.append(
        ("vlmend scan, one file changed", bench.best(bench.scan(), bench.touch))
    )
    bench.commit()
    bench.best(bench.scan(), bench.nothing)
    changed = bench.best([*bench.scan(), "--changed"], bench.touch)
    rows.append(("vlmend scan --changed, one file", changed))
    rows.append(("vlmend --help", bench.best([*bench.vlmend, "--help"], bench.nothing)))
    print(f"\n| {'command':32} | CPU s | of ast-grep | peak MiB |")
    print(f"|{'-' * 34}|------:|------------:|---------:|")
    for name, cost in rows:
        ratio = f"{cost.cpu / peer.cpu:.2f}x"
        print(f"| {name:32} | {cost.cpu:5.2f} | {ratio:>11} | {cost.memory:8.0f} |")


if __name__ == "__main__":
    main()
