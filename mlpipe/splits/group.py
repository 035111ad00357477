"""Split `group`: all rows of a group land in the same split."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mlpipe.splits.base import Assigner, SplitSettings
from mlpipe.splits.random import HashAssigner


class GroupSplit(SplitSettings):
    """By a seeded hash of the group columns: a patient, a customer or a document is never on both sides.

    Shares are those of groups, not of rows.
    """

    kind: Literal["group"] = "group"
    by: Annotated[tuple[str, ...], Field(min_length=1)]

    def columns(self) -> tuple[str, ...]:
        """The group columns."""
        return self.by

    def assigner(self, *, hashed: tuple[str, ...], target: str, seed: int, own_test: bool) -> Assigner:
        """Hashes the group columns alone."""
        return HashAssigner(self.by, seed, self.valid, 0.0 if own_test else self.test, named=True)
