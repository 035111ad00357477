"""Results and how they are written: `bench/results.json` for machines, `bench/RESULTS.md` for people."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("mlpipe", "numpy", "pandas", "pyarrow", "torch", "onnx", "onnxruntime", "scikit-learn", "polars", "duckdb")


@dataclass(frozen=True)
class Result:
    """One number of mlpipe, beside another one where there is something to compare it with.

    `limit` is the most that the ratio may be, or the number itself where there is nothing beside it.
    """

    what: str
    value: float
    unit: str
    beside: str = ""
    other: float | None = None
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """`value` over `other`."""
        return None if self.other is None else self.value / self.other

    @property
    def met(self) -> bool | None:
        """Whether the limit holds; None where there is none."""
        if self.limit is None:
            return None
        return (self.value if self.ratio is None else self.ratio) <= self.limit

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "ratio": self.ratio, "met": self.met}


@dataclass(frozen=True)
class Section:
    """The results of one benchmark: what it does in a sentence or two, the commands, the numbers."""

    about: str
    commands: Sequence[str]
    results: Sequence[Result]


def machine() -> dict[str, Any]:
    """What the numbers depend on: cores, processor, versions. Nothing that names the machine or its user."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = (line.partition(":") for line in info.read_text(encoding="utf-8").splitlines())
        model = next((value.strip() for name, _, value in lines if name.strip() == "model name"), model)
    return {
        "cores": os.cpu_count(),
        "processor": model,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def shown(command: Sequence[str], places: Mapping[str, str]) -> str:
    """A command as a reader would type it: no folder of this machine in it."""
    text = " ".join(["python", *command[1:]]).replace("python -m mlpipe", "mlpipe")
    for place, name in sorted(places.items(), key=lambda item: -len(item[0])):
        text = text.replace(place, name)
    return text


def markdown(record: Mapping[str, Any]) -> str:
    """RESULTS.md from the content of results.json."""
    facts = dict(record["machine"])
    cores, processor, system, python = (facts.pop(name) for name in ("cores", "processor", "system", "python"))
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`python -m bench [NAME ...]`). Ratios are taken side by side in one run, the commands in turns;",
        "each time is the best of its runs, each peak of memory the highest.",
        "A ratio of two times below 1 means that mlpipe is quicker; one of two rates (rows/s) above 1 means the same.",
        "",
        f"{cores} cores, {processor}, {system}; Python {python}, {', '.join(f'{name} {number}' for name, number in facts.items())}.",
        "torch trains with one thread on both sides; all else has the threads that it takes by itself.",
    ]
    for name, section in record["benchmarks"].items():
        lines += ["", f"## {name}", "", section["about"], "", f"{section['date']}, load {section['load']:.1f} when it began.", ""]
        lines += ["```", *section["commands"], "```", "", "| | mlpipe | beside | ratio | limit | |", "|---|---:|---:|---:|---:|---|"]
        lines += [_row(result) for result in section["results"]]
    return "\n".join(lines) + "\n"


def _row(result: Mapping[str, Any]) -> str:
    beside = "" if result["other"] is None else f"{_number(result['other'])} {result['unit']} ({result['beside']})"
    ratio = "" if result["ratio"] is None else f"{result['ratio']:.2f}"
    unit = "" if result["ratio"] is not None else f" {result['unit']}"
    limit = "" if result["limit"] is None else f"{_number(result['limit'])}{unit}"
    met = {None: "", True: "met", False: "**not met**"}[result["met"]]
    return f"| {result['what']} | {_number(result['value'])} {result['unit']} | {beside} | {ratio} | {limit} | {met} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def merged(old: Mapping[str, Any] | None, facts: Mapping[str, Any], fresh: Mapping[str, Any], order: Sequence[str]) -> dict[str, Any]:
    """The new record. Benchmarks that did not run now keep their last numbers, if those are of the same machine and versions."""
    kept = old["benchmarks"] if old and old["machine"] == facts else {}
    both = {**kept, **fresh}
    return {"machine": dict(facts), "benchmarks": {name: both[name] for name in order if name in both}}


def write(folder: Path, facts: Mapping[str, Any], fresh: Mapping[str, Any], order: Sequence[str]) -> None:
    """Writes both files."""
    path = folder / "results.json"
    old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    record = merged(old, facts, fresh, order)
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "RESULTS.md").write_text(markdown(record), encoding="utf-8")
