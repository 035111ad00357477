"""Checks of the table as a whole: `rows`, `missing`, `not_missing`, `balance`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from mlpipe.checks.base import SHOWN, At, Check, ColumnCheck, Finding, Setting, Tally
from mlpipe.columns import ColumnType, text_counts

if TYPE_CHECKING:
    import pyarrow as pa

Share = Annotated[float, Field(ge=0, le=1)]


class RowCount(Check):
    """How many rows the source has."""

    kind: Literal["rows"] = "rows"
    at_least: Annotated[int, Field(ge=0)] | None = None
    at_most: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _bounds(self) -> RowCount:
        if self.at_least is None and self.at_most is None:
            raise ValueError("rows needs at_least or at_most")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least} is above at_most {self.at_most}")
        return self

    def tally(self, setting: Setting) -> Tally:
        """Counts."""
        return RowsTally(self)

    def known_facts(self) -> dict[str, Any]:
        """The bounds."""
        return {name: bound for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)) if bound is not None}


class RowsTally(Tally):
    """A count."""

    def __init__(self, check: RowCount) -> None:
        self.check, self.count = check, 0

    def look(self, rows: pa.RecordBatch, file: str, first: int) -> None:
        """Counts these rows."""
        self.count += rows.num_rows

    def finding(self) -> Finding:
        """Passed within the bounds."""
        low, high = self.check.at_least, self.check.at_most
        few, many = low is not None and self.count < low, high is not None and self.count > high
        wanted = f"at least {low:,}" if few else f"at most {high:,}" if many else ""
        return Finding(not (few or many), {"rows": self.count}, f"{self.count:,} rows; wanted: {wanted}")


class Missing(ColumnCheck):
    """At most this share of a column's cells may be missing, for each column of its own."""

    kind: Literal["missing"] = "missing"
    at_most: Share

    def tally(self, setting: Setting) -> Tally:
        """Counts gaps."""
        return MissingTally(self.columns, self.at_most)

    def known_facts(self) -> dict[str, Any]:
        """The bound."""
        return {"at_most": self.at_most}


class NotMissing(ColumnCheck):
    """No cell of these columns may be missing."""

    kind: Literal["not_missing"] = "not_missing"

    def tally(self, setting: Setting) -> Tally:
        """Counts gaps."""
        return MissingTally(self.columns, 0.0)


class MissingTally(Tally):
    """Gaps by column, and the first of them."""

    def __init__(self, columns: tuple[str, ...], at_most: float) -> None:
        self.at_most = at_most
        self.gaps = dict.fromkeys(columns, 0)
        self.first: dict[str, list[At]] = {name: [] for name in columns}
        self.rows = 0

    def look(self, rows: pa.RecordBatch, file: str, first: int) -> None:
        """Counts the gaps of these rows."""
        import pyarrow.compute as pc

        self.rows += rows.num_rows
        for name, places in self.first.items():
            array = rows.column(name)
            self.gaps[name] += array.null_count
            if array.null_count and len(places) < SHOWN:
                where = pc.indices_nonzero(array.is_null())[: SHOWN - len(places)].to_pylist()
                places += [At(file, first + row, f"column {name!r} is missing") for row in where]

    def finding(self) -> Finding:
        """Passed when no column has too many."""
        shares = {name: gaps / self.rows if self.rows else 0.0 for name, gaps in self.gaps.items()}
        wrong = [name for name, share in shares.items() if share > self.at_most]
        allowed = f"; at most {self.at_most:.4g} may be" if self.at_most else ""
        said = "; ".join(f"{self.gaps[n]:,} of {self.rows:,} cells of {n!r} are missing ({shares[n]:.4g}){allowed}" for n in wrong)
        observed = {name: {"rows": self.rows, "missing": self.gaps[name], "share": shares[name]} for name in self.gaps}
        return Finding(not wrong, observed, said, [place for name in wrong for place in self.first[name]][:SHOWN])


class Balance(Check):
    """The classes of the target: the share of the smallest one, and that of the largest."""

    kind: Literal["balance"] = "balance"
    at_least: Share | None = None
    at_most: Share | None = None

    @model_validator(mode="after")
    def _bounds(self) -> Balance:
        if self.at_least is None and self.at_most is None:
            raise ValueError("balance needs at_least (the smallest share), at_most (the largest) or both")
        return self

    def fault(self, types: dict[str, ColumnType], task: str) -> str | None:
        """Classes only."""
        return None if task == "classification" else f"only classes have a balance; the task is {task}"

    def tally(self, setting: Setting) -> Tally:
        """Counts classes."""
        return BalanceTally(self, setting.target)

    def known_facts(self) -> dict[str, Any]:
        """The bounds."""
        return {name: bound for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)) if bound is not None}


class BalanceTally(Tally):
    """RowCount by class; rows without a target do not count."""

    def __init__(self, check: Balance, target: str) -> None:
        self.check, self.target = check, target
        self.counts: dict[str, int] = {}

    def look(self, rows: pa.RecordBatch, file: str, first: int) -> None:
        """Counts the classes of these rows."""
        import pyarrow as pa

        for name, count in text_counts(pa.chunked_array([rows.column(self.target)])).items():
            self.counts[name] = self.counts.get(name, 0) + count

    def finding(self) -> Finding:
        """Passed when smallest and largest share are within the bounds."""
        total = sum(self.counts.values())
        ordered = sorted(self.counts, key=lambda name: (self.counts[name], name))
        if not total:
            return Finding(False, {"classes": 0, "rows": 0}, f"no row has a class in {self.target!r}")
        least, most = ordered[0], ordered[-1]
        low, high = self.counts[least] / total, self.counts[most] / total
        said = []
        if self.check.at_least is not None and low < self.check.at_least:
            said.append(f"class {least!r} has a share of {low:.4g} ({self.counts[least]:,} of {total:,} rows), below {self.check.at_least}")
        if self.check.at_most is not None and high > self.check.at_most:
            said.append(f"class {most!r} has a share of {high:.4g} ({self.counts[most]:,} of {total:,} rows), above {self.check.at_most}")
        observed = {"rows": total, "classes": len(ordered), "smallest": [least, low], "largest": [most, high]}
        return Finding(not said, observed, "; ".join(said))
