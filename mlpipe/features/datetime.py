"""Feature `datetime`: a point in time as calendar parts, cyclical where they come round again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field, field_validator

from mlpipe.columns import Column, check_format
from mlpipe.features.base import Feature, Fitted
from mlpipe.features.graph import GraphBuilder, Part

if TYPE_CHECKING:
    import pyarrow as pa

DatePart = Literal["age", "year", "month", "day", "weekday", "day_of_year", "hour", "minute"]
PERIODS = {"month": 12, "day": 31, "weekday": 7, "day_of_year": 366, "hour": 24, "minute": 60}


class FittedDatetime(Fitted):
    """Calendar parts of a time, computed inside the graph.

    In:  one input, double [B, 1]: seconds since 1970-01-01T00:00:00, NaN where the time is missing.
    Out: `numeric` float32 [B, 1] for `age` and for `year` (standardised over the train rows); `plain` float32 [B, 2] for
         each part that comes round again: sin and cos of 2 pi part / period; `plain` [B, 1]: 1.0 where it was missing.

    A missing time is filled with the train median. Year, month and day come from days since the epoch by Howard
    Hinnant's civil_from_days (http://howardhinnant.github.io/date_algorithms.html), in int64, right for all years here.
    """

    kind: Literal["datetime"] = "datetime"
    format: str
    parts: tuple[DatePart, ...]
    fill: float
    mean: dict[str, float]
    deviation: dict[str, float]
    indicator: bool
    constant: bool = False
    empty: bool = False

    def emit(self, graph: GraphBuilder) -> list[Part]:
        """Fill, floor to seconds and days, then each part by integer arithmetic."""
        c = self.column
        x = graph.input(c, "timestamp")
        gap = graph.node("IsNaN", [x], f"{c}/missing")
        filled = graph.node("Where", [gap, graph.constant(f"{c}/fill", np.array([[self.fill]])), x], f"{c}/filled")
        # the years 0001 to 9999, so that a huge number cannot overflow the integers
        low, high = graph.constant(f"{c}/low", np.array(-62135596800.0)), graph.constant(f"{c}/high", np.array(253402300799.0))
        held = graph.node("Clip", [filled, low, high], f"{c}/held")
        whole = graph.node("Cast", [graph.node("Floor", [held], f"{c}/floor")], f"{c}/seconds", to=7)
        calendar = _Calendar(graph, c, whole)
        out: list[Part] = []
        for part in self.parts:
            if part in ("age", "year"):
                value = held if part == "age" else graph.node("Cast", [calendar.part("year")], f"{c}/year/double", to=11)
                centred = graph.node(
                    "Sub", [value, graph.constant(f"{c}/{part}/mean", np.array([[self.mean[part]]]))], f"{c}/{part}/centred"
                )
                deviation = graph.constant(f"{c}/{part}/deviation", np.array([[self.deviation[part]]]))
                scaled = graph.node("Div", [centred, deviation], f"{c}/{part}/scaled")
                bounds = [graph.constant(f"{c}/{part}/{side}", np.array(bound)) for side, bound in (("least", -10.0), ("most", 10.0))]
                scaled = graph.node("Clip", [scaled, *bounds], f"{c}/{part}/bounded")
                out.append(Part("numeric", graph.node("Cast", [scaled], f"{c}/{part}/numeric", to=1), (f"{c} {part}",)))
                continue
            # from a table: what onnxruntime's Sin gives in the last bit depends on how it cuts a batch for the processor's vectors
            turns = [2 * math.pi * step / PERIODS[part] for step in range(PERIODS[part])]
            for wave, values in (("sin", [math.sin(turn) for turn in turns]), ("cos", [math.cos(turn) for turn in turns])):
                table = graph.constant(f"{c}/{part}/{wave}/table", np.array(values, dtype=np.float32))
                out.append(Part("plain", graph.node("Gather", [table, calendar.part(part)], f"{c}/{part}/{wave}"), (f"{c} {part} {wave}",)))
        if self.indicator:
            out.append(Part("plain", graph.node("Cast", [gap], f"{c}/indicator", to=1), (f"{c} is missing",)))
        return out

    def remarks(self) -> list[str]:
        """A column that says nothing is harmless, and named."""
        if self.empty:
            return [f"{self.column}: no value in the train rows; it carries nothing"]
        return [f"{self.column}: constant in the train rows; it carries nothing"] if self.constant else []


class _Calendar:
    """Integer calendar arithmetic on int64 [B, 1] seconds, one node after the other, each part made once."""

    def __init__(self, graph: GraphBuilder, column: str, seconds: str) -> None:
        self.graph, self.column, self.made = graph, column, dict[str, str]()
        self.made["seconds"] = seconds

    def _constant(self, value: int) -> str:
        return self.graph.constant(f"{self.column}/const/{value}", np.array([[value]], dtype=np.int64))

    def _op(self, op: str, left: str, right: int | str, name: str) -> str:
        other = self._constant(right) if isinstance(right, int) else right
        return self.graph.node(op, [left, other], f"{self.column}/cal/{name}")

    def _floor_div(self, left: str, by: int, name: str) -> str:
        """Division rounded down, also for negative numbers (ONNX's Div cuts towards zero, its Mod has the divisor's sign)."""
        rest = self._op("Mod", left, by, f"{name}/rest")
        return self._op("Div", self._op("Sub", left, rest, f"{name}/whole"), by, name)

    def part(self, name: str) -> str:
        """The edge of a calendar part, int64 [B, 1]. Months, days and days of the year count from 0, weekdays from Monday = 0."""
        if name not in self.made:
            self.made[name] = getattr(self, f"_{name}")()
        return self.made[name]

    def _days(self) -> str:
        return self._floor_div(self.part("seconds"), 86_400, "days")

    def _time(self) -> str:
        return self._op("Mod", self.part("seconds"), 86_400, "time")

    def _hour(self) -> str:
        return self._op("Div", self.part("time"), 3_600, "hour")

    def _minute(self) -> str:
        return self._op("Div", self._op("Mod", self.part("time"), 3_600, "minute/of_hour"), 60, "minute")

    def _weekday(self) -> str:
        return self._op("Mod", self._op("Add", self.part("days"), 3, "weekday/shifted"), 7, "weekday")  # 1970-01-01 was a Thursday

    def _shifted(self) -> str:
        return self._op("Add", self.part("days"), 719_468, "shifted")  # days since 0000-03-01

    def _era(self) -> str:
        return self._floor_div(self.part("shifted"), 146_097, "era")

    def _doe(self) -> str:
        return self._op("Mod", self.part("shifted"), 146_097, "doe")  # day of the 400-year era

    def _yoe(self) -> str:
        doe = self.part("doe")
        a = self._op("Sub", doe, self._op("Div", doe, 1_460, "yoe/a"), "yoe/b")
        b = self._op("Add", a, self._op("Div", doe, 36_524, "yoe/c"), "yoe/d")
        c = self._op("Sub", b, self._op("Div", doe, 146_096, "yoe/e"), "yoe/f")
        return self._op("Div", c, 365, "yoe")

    def _doy_march(self) -> str:
        yoe = self.part("yoe")
        a = self._op("Mul", yoe, 365, "doy/a")
        b = self._op("Add", a, self._op("Div", yoe, 4, "doy/b"), "doy/c")
        c = self._op("Sub", b, self._op("Div", yoe, 100, "doy/d"), "doy/e")
        return self._op("Sub", self.part("doe"), c, "doy_march")

    def _month_march(self) -> str:
        return self._op("Div", self._op("Add", self._op("Mul", self.part("doy_march"), 5, "mp/a"), 2, "mp/b"), 153, "month_march")

    def _month(self) -> str:
        return self._op("Mod", self._op("Add", self.part("month_march"), 2, "month/shifted"), 12, "month")

    def _day(self) -> str:
        months = self._op("Add", self._op("Mul", self.part("month_march"), 153, "day/a"), 2, "day/b")
        return self._op("Sub", self.part("doy_march"), self._op("Div", months, 5, "day/c"), "day")

    def _year(self) -> str:
        march = self._op("Add", self.part("yoe"), self._op("Mul", self.part("era"), 400, "year/era"), "year/march")
        early = self._op("Div", self.part("month_march"), 10, "year/early")  # January and February belong to the next year
        return self._op("Add", march, early, "year")

    def _day_of_year(self) -> str:
        """Days since 1 January: this day less the day that 1 January is, found from the year before it."""
        before = self._op("Sub", self.part("year"), 1, "jan/year")
        a = self._op("Mul", before, 365, "jan/a")
        b = self._op("Add", a, self._floor_div(before, 4, "jan/b"), "jan/c")
        c = self._op("Sub", b, self._floor_div(before, 100, "jan/d"), "jan/e")
        d = self._op("Add", c, self._floor_div(before, 400, "jan/f"), "jan/g")
        january = self._op("Sub", d, 719_162, "jan")  # days from 0001-01-01 to 1970-01-01
        return self._op("Sub", self.part("days"), january, "day_of_year")


class Datetime(Feature):
    """Times and dates: calendar parts. `format` is a strptime format or `iso` (ISO 8601).

    Text is turned into seconds by a host step (`mlpipe.columns.parse_moment`), the same in prepare and predict; the
    calendar itself is inside the graph. `age` is the time itself, standardised.
    """

    kind: Literal["datetime"] = "datetime"
    format: str = "iso"
    parts: Annotated[tuple[DatePart, ...], Field(min_length=1)] = ("age", "month", "day", "weekday", "hour")
    indicator: Literal["auto", "always", "never"] = "auto"

    @field_validator("format")
    @classmethod
    def _anywhere(cls, value: str) -> str:
        return check_format(value)

    def raw(self, column: str) -> Column:
        """A timestamp."""
        return Column(name=column, type="timestamp", format=self.format)

    def fit(self, column: str, values: pa.ChunkedArray) -> FittedDatetime:
        """The median time, and mean and deviation of the parts that are standardised."""
        import pyarrow as pa

        micros = values.drop_null().cast(pa.int64()).to_numpy()
        missing = len(values) - len(micros)
        seconds = micros / 1e6
        indicator = self.indicator == "always" or (self.indicator == "auto" and 0 < missing < len(values))
        mean, deviation = {}, {}
        years = micros.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970.0
        for part, sample in (("age", seconds), ("year", years)):
            if part in self.parts:
                mean[part] = float(sample.mean()) if len(sample) else 0.0
                spread = float(sample.std()) if len(sample) and sample.min() < sample.max() else 0.0
                deviation[part] = spread if spread > 0 else 1.0
                mean[part] = float(sample[0]) if len(sample) and not spread else mean[part]  # not 1e-7 beside a time that never changes
        return FittedDatetime(
            column=column,
            format=self.format,
            parts=self.parts,
            fill=float(np.median(seconds)) if len(seconds) else 0.0,
            mean=mean,
            deviation=deviation,
            indicator=indicator,
            constant=bool(len(micros)) and not missing and bool((micros == micros[0]).all()),
            empty=not len(micros),
        )
