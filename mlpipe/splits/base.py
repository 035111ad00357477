"""What every split kind is: it gives each row to train (0), valid (1) or test (2)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from mlpipe.base import Settings

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

TRAIN, VALID, TEST = 0, 1, 2

Share = Annotated[float, Field(ge=0, lt=1)]


class Assigner:
    """Assigns rows to splits. A kind that needs a look at all rows first says so and is shown them."""

    looks = False
    hashes: np.ndarray | None = None  # uint64 [rows]: of the rows assigned last, where the kind hashes whole rows

    def look(self, rows: pa.RecordBatch) -> None:
        """Shows the assigner rows before any is assigned (only where `looks` is true)."""

    def settle(self) -> None:
        """Ends the look. Raises DataError when the rows seen cannot be split as asked."""

    def assign(self, rows: pa.RecordBatch) -> np.ndarray:
        """uint8 [rows]: 0 train, 1 valid, 2 test."""
        raise AssertionError(f"{type(self).__name__} does not assign")


class SplitSettings(Settings):
    """How rows are split. `valid` and `test` are shares; with a test source of its own, `test` does not count."""

    valid: Share = 0.1
    test: Share = 0.2

    @model_validator(mode="after")
    def _leaves_train(self) -> SplitSettings:
        if self.valid + self.test >= 1:
            raise ValueError(f"valid {self.valid} + test {self.test} leave no rows to train on")
        return self

    @property
    def validates(self) -> bool:
        """Whether there are to be valid rows."""
        return self.valid > 0

    def columns(self) -> tuple[str, ...]:
        """Columns that the split reads beside the features and the target."""
        return ()

    @abstractmethod
    def assigner(self, *, hashed: tuple[str, ...], target: str, seed: int, own_test: bool) -> Assigner:
        """An assigner. `hashed` are the columns whose content is a row's identity; `own_test` says that a test source exists."""
