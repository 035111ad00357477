"""Feature `category`: each value a code from a table of the values that train rows hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from mlpipe.columns import Column, text_counts
from mlpipe.features.base import Feature, Fitted
from mlpipe.features.graph import GraphBuilder, Part

if TYPE_CHECKING:
    import pyarrow as pa

MISSING, UNKNOWN, FIRST_KNOWN = 0, 1, 2


class FittedCategory(Fitted):
    """A table from text to codes.

    In:  one input, string [B, 1], "" where a value is missing.
    Out: `category` int64 [B, 1]: 0 missing, 1 unknown or rare, 2 and up the values in their order.

    Cells that the source reads as missing ("?") or replaces are in the table too: the graph takes raw cells as they stand.
    """

    kind: Literal["category"] = "category"
    values: tuple[str, ...]
    rare: int = 0
    rare_values: int = 0
    missing: int = 0
    rows: int = 0
    unseen: Literal["code", "fail"] = "code"
    aliases: dict[str, str] = {}  # raw cells that the source reads as another value, or as missing ("")

    def emit(self, graph: GraphBuilder) -> list[Part]:
        """One LabelEncoder (ai.onnx.ml)."""
        text = graph.input(self.column, "text")
        codes = {"": MISSING} | {value: FIRST_KNOWN + i for i, value in enumerate(self.values)}
        codes |= {raw: codes.get(value, UNKNOWN) for raw, value in self.aliases.items() if raw not in codes}
        code = graph.node(
            "LabelEncoder",
            [text],
            f"{self.column}/code",
            domain="ai.onnx.ml",
            keys_strings=list(codes),
            values_int64s=list(codes.values()),
            default_int64=UNKNOWN,
        )
        return [Part("category", code, (self.column,), cardinality=FIRST_KNOWN + len(self.values))]

    def remarks(self) -> list[str]:
        """A column that says nothing is harmless, and named."""
        present, distinct = self.rows - self.missing, len(self.values) + self.rare_values
        if not present:
            return [f"{self.column}: no value in the train rows; it carries nothing"]
        if distinct == 1 and not self.missing:
            return [f"{self.column}: constant in the train rows; it carries nothing"]
        if distinct == present and present > 20:
            return [f"{self.column}: a different value in each of {present:,} train rows; it identifies rows and teaches nothing"]
        return []

    def known(self) -> frozenset[str]:
        """The values that have a code of their own."""
        return frozenset(self.values)

    def strict(self) -> bool:
        """Whether `unseen: fail` was asked for."""
        return self.unseen == "fail"


class Category(Feature):
    """Text values as codes. Missing (0), unknown or rare (1) and known values (2 and up) stay apart.

    A value with fewer than `min_count` train rows has no code of its own but that of unknown values, so that the code
    for the unknown is trained; beyond `max_size` values the rarest are treated likewise.
    """

    kind: Literal["category"] = "category"
    min_count: Annotated[int, Field(ge=1)] = 1
    max_size: Annotated[int, Field(ge=1)] = 10_000
    unseen: Literal["code", "fail"] = "code"

    def raw(self, column: str) -> Column:
        """Text."""
        return Column(name=column, type="text")

    def fit(self, column: str, values: pa.ChunkedArray) -> FittedCategory:
        """Counts the train values; the table is sorted by code point."""
        counts = text_counts(values)
        counts.pop("", None)  # the empty text is how a client sends "missing"
        often = sorted((v for v, n in counts.items() if n >= self.min_count), key=lambda v: (-counts[v], v))[: self.max_size]
        kept = set(often)
        return FittedCategory(
            column=column,
            values=tuple(sorted(kept)),
            rare=sum(n for v, n in counts.items() if v not in kept),
            rare_values=len(counts) - len(kept),
            missing=len(values) - sum(counts.values()),
            rows=len(values),
            unseen=self.unseen,
        )
