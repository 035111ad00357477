"""Small helpers: run the command line as cron does, write tables and pipeline files, read what stages wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlpipe.base import json_text
from mlpipe.run import STAGES
from mlpipe.spec import load_pipeline
from mlpipe.stages.base import Options, Outcome
from mlpipe.stages.chain import run_stages

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    rc: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def environment(extra: Mapping[str, str] | None = None, *, clean: bool = False) -> dict[str, str]:
    """The environment of a command: one thread; `clean` has nothing but PATH."""
    base = {"PATH": os.environ["PATH"]} if clean else dict(os.environ)
    return {**base, "OMP_NUM_THREADS": "1", **(extra or {})}


def mlpipe(
    *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None, clean: bool = False, timeout: int = 300
) -> Result:
    """Runs the command line in a process of its own, with no terminal and no standard input."""
    command = [sys.executable, "-m", "mlpipe", *map(str, arguments)]
    done = subprocess.run(
        command,
        env=environment(env, clean=clean),
        cwd=cwd,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def start(*arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Starts the command line and comes back at once; stderr and stdout are one pipe."""
    command = [sys.executable, "-m", "mlpipe", *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def clean_failure(result: Result, *needles: object) -> None:
    """A failure that a person can act on: non-zero exit, no traceback, every needle named."""
    assert result.rc != 0, f"exit code 0 on a failure:\n{result.text}"
    assert "Traceback (most recent call last)" not in result.text, result.text
    low = result.text.lower()
    for needle in needles:
        alternatives = needle if isinstance(needle, (tuple, list)) else [needle]
        assert any(str(a).lower() in low for a in alternatives), f"message does not name {needle!r}:\n{result.text}"


def write_pipeline(path: Path, settings: Mapping[str, Any]) -> Path:
    """A pipeline file; JSON is YAML."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_text(settings), encoding="utf-8")
    return path


def table_csv(path: Path, rows: int = 120, *, start: int = 0, classes: Sequence[str] = ("no", "yes")) -> Path:
    """A small made-up table: two numbers (one with gaps), a colour (with gaps) and a label that depends on them."""
    colours = ("red", "green", "blue", "")
    lines = ["x1,x2,colour,label"]
    for i in range(start, start + rows):
        x1, x2, colour = (i * 37 % 100) / 10, (i * 53 % 89) - 40, colours[i * 7 % 11 % 4]
        label = classes[
            int(x1 + (2 if colour == "red" else 0) + x2 / 30 > 5.5) if len(classes) == 2 else (i * 37 % 100) * len(classes) // 100
        ]
        lines.append(f"{x1},{'' if i % 13 == 0 else x2},{colour},{label}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def small_settings(**changes: Any) -> dict[str, Any]:
    """Settings for `table_csv`, with changes as `train__epochs=3` or whole sections."""
    settings: dict[str, Any] = {
        "name": "small",
        "seed": 3,
        "task": {"kind": "classification", "target": "label"},
        "prepare": {
            "source": {"kind": "csv", "path": "train.csv"},
            "split": {"kind": "random", "valid": 0.2, "test": 0.2},
            "features": [{"kind": "numeric", "columns": ["x1", "x2"]}, {"kind": "category", "columns": ["colour"]}],
        },
        "train": {"model": {"kind": "mlp", "hidden": [8], "dropout": 0.2}, "epochs": 4, "batch_size": 16, "patience": None},
    }
    for key, value in changes.items():
        *path, last = key.split("__")
        node = settings
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return settings


def small(folder: Path, **changes: Any) -> Path:
    """A pipeline file in `folder` with its table beside it."""
    if not (folder / "train.csv").exists():
        table_csv(folder / "train.csv")
    return write_pipeline(folder / "small.yaml", small_settings(**changes))


def chain(file: Path, runs: Path, *, until: str = "export", overrides: Sequence[str] = (), **options: Any) -> dict[str, Outcome]:
    """Runs stages in this process; what became of each."""
    names = STAGES[: STAGES.index(until) + 1]
    return {o.stage: o for o in run_stages(load_pipeline(file, overrides), runs, names, Options(**options))}


def states(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """`{"prepare": "ran", ...}`."""
    return {name: outcome.state for name, outcome in outcomes.items()}


def manifests_of(run: Path) -> dict[str, bytes]:
    """The bytes of every manifest below a run folder."""
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in sorted(run.rglob("manifest.json"))}


def strict_json(path: Path) -> Any:
    """A JSON file; NaN and Infinity are refused."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{path} holds {constant}, which is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
