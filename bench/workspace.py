"""The adult data as the benchmarks use them: a temporary folder with repeated files, and one finished run."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from bench.measure import ROOT, mlpipe, run

DATA = ROOT.parent / "shared" / "data" / "adult"
PIPELINE = ROOT / "pipelines" / "adult.yaml"


class Workspace:
    """A folder for what benchmarks write. Needs ../shared/data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.train, self.test = DATA / "adult-train.csv", DATA / "adult-test.csv"

    def repeated(self, times: int) -> Path:
        """adult-train.csv `times` times over, without the empty line that it ends in (40 times: 1,302,440 rows)."""
        path = self.folder / f"adult-{times}.csv"
        if not path.is_file():
            once = self.train.read_bytes().rstrip(b"\n") + b"\n"
            with path.open("wb") as file:
                for _ in range(times):
                    file.write(once)
        return path

    def pipeline(self, *, runs: str = "runs", train: Path | None = None) -> list[str]:
        """`pipelines/adult.yaml` with its files where they lie here, and a folder for runs."""
        places = [f"prepare.source.path={train or self.train}", f"prepare.test.path={self.test}"]
        return [str(PIPELINE), *(part for place in places for part in ("--set", place)), "--runs", str(self.folder / runs)]

    @cached_property
    def finished(self) -> list[str]:
        """The arguments of a pipeline whose run is finished and fresh."""
        run(mlpipe("run", *self.pipeline(), "-q"), ROOT)
        return self.pipeline()

    @cached_property
    def export(self) -> Path:
        """The export of that run."""
        _ = self.finished
        return self.folder / "runs" / "adult" / "export"

    @property
    def places(self) -> dict[str, str]:
        """Folders of this machine, and what a reader is shown instead."""
        return {str(self.folder): "TMP", str(DATA): "../shared/data/adult", str(ROOT): ".", f"{ROOT}/": ""}
