"""What every feature kind is: settings that are fitted on train rows, and a fitted state that writes itself as ONNX nodes."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from mlpipe.base import Settings
from mlpipe.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from mlpipe.features.graph import GraphBuilder, Part


class TextSequence(Settings):
    """A stretch of the tensor `text`: `length` codes of one text column, 0 behind the end.

    `unit` says of what: words or characters (and n-grams of `order` of them), or a tokeniser's own tokens. Codes are below `size`:
    1 unknown or rare (among words and characters; an n-gram that is not known is 0), 2 and up known. Tokens have the tokeniser's
    own ids, 0 and that of its padding token, `pad`, exchanged; `vocabulary` tells which tokeniser it is.
    """

    column: str
    unit: Literal["words", "characters", "tokens"]
    order: int = 1
    length: int
    size: int
    pad: int = 0
    vocabulary: str | None = None


class Fitted(Settings):
    """What was counted on the train rows of one column: plain numbers and text, so that JSON holds it whole."""

    column: str

    @abstractmethod
    def emit(self, graph: GraphBuilder) -> list[Part]:
        """Adds this column's input and nodes to the graph; returns the tensor columns that they make."""

    def remarks(self) -> list[str]:
        """What a user should know about this column, such as that it carries nothing."""
        return []

    def known(self) -> frozenset[str] | None:
        """The values with a code of their own, or None when any value is as good as another."""
        return None

    def strict(self) -> bool:
        """Whether a value that was not seen in training is a fault."""
        return False


class Feature(Settings):
    """One kind of preprocessing for some columns."""

    columns: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]

    @abstractmethod
    def raw(self, column: str) -> Column:
        """The typed raw column that this feature reads."""

    def files(self, base: Path) -> list[tuple[str, Path]]:
        """Files that decide the fitted state beside the rows, as (path for people, where it lies); their digests enter the id."""
        return []

    def resolved_against(self, base: Path) -> Feature:
        """The same feature, able to find files that its settings name relative to the pipeline file's folder."""
        return self

    @abstractmethod
    def fit(self, column: str, values: pa.ChunkedArray) -> Fitted:
        """The fitted state of one column from its typed train values."""
