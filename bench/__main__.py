"""`python -m bench [NAME ...]`: runs all benchmarks, or the ones named, and writes RESULTS.md and results.json beside this file."""

from __future__ import annotations

import datetime
import importlib
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import results
from bench.workspace import DATA, Workspace

NAMES = ("startup", "prepare", "train", "cycle", "predict", "documents", "scale")
ONLY_NAMED = ("documents", "scale")  # take minutes and gigabytes of disk


def main(names: list[str]) -> int:
    """The exit code: 0 when all ran (whether or not limits are met), 2 for a name that is none."""
    if unknown := [name for name in names if name not in NAMES]:
        print(f"bench: {unknown[0]!r} is no benchmark (there are: {', '.join(NAMES)})", file=sys.stderr)
        return 2
    if not DATA.is_dir():
        print("bench: skipped, as the folder ../shared/data/adult is absent", file=sys.stderr)
        return 0
    facts = results.machine()
    fresh: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="mlpipe-bench-") as folder:
        work = Workspace(Path(folder))
        for name in names or [name for name in NAMES if name not in ONLY_NAMED]:
            load, began = os.getloadavg()[0], time.perf_counter()
            date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
            section = importlib.import_module(f"bench.{name}").bench(work)
            fresh[name] = {
                **asdict(section),
                "results": [result.as_dict() for result in section.results],
                "date": date,
                "load": load,
            }
            print(f"bench: {name} took {time.perf_counter() - began:.0f} s", file=sys.stderr)
    results.write(Path(__file__).parent, facts, fresh, NAMES)
    print(results.markdown({"machine": facts, "benchmarks": fresh}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
