"""What prepare learned, in one file: raw columns, fitted features, tensors, the fitted target.

Everything in it comes from the train rows and the settings, so that a change to a test row leaves its bytes alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlpipe.base import Settings, read_json
from mlpipe.columns import Column
from mlpipe.errors import IntegrityError
from mlpipe.features import AnyFitted
from mlpipe.features.base import TextSequence
from mlpipe.features.graph import TENSORS
from mlpipe.tasks import AnyFittedTask


class Tensors(Settings):
    """The tensors that a network eats, by the names of their columns.

    `numeric` float32 [B, F] may be embedded; `plain` float32 [B, P] enters as it is; `category` int64 [B, C] holds codes
    below `cardinalities`; `text` int64 [B, L] holds sequences of codes, one behind the other. A tensor without columns is not
    there at all.
    """

    numeric: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    cardinalities: tuple[int, ...] = ()
    text: tuple[TextSequence, ...] = ()

    @property
    def present(self) -> tuple[str, ...]:
        """The names of the tensors that have columns, in the order in which networks take them."""
        return tuple(name for name in TENSORS if getattr(self, name))

    def width(self, name: str) -> int:
        """How many columns a tensor has."""
        return sum(sequence.length for sequence in self.text) if name == "text" else len(getattr(self, name))


class HostStep(Settings):
    """Something that happens before the graph because a graph cannot do it."""

    column: str
    step: str
    version: int
    settings: dict[str, str]


class Schema(Settings):
    """`schema.json` of a prepared run."""

    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    features: tuple[AnyFitted, ...]
    tensors: Tensors
    task: AnyFittedTask
    host_steps: tuple[HostStep, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return self.model_dump(mode="json")


def load_schema(path: Path) -> Schema:
    """The schema in a file. Raises IntegrityError when it is none."""
    try:
        return Schema.model_validate(read_json(path))
    except (OSError, ValueError) as fault:
        raise IntegrityError(f"{path} is no schema: {fault}", hint="run prepare again with --force") from None
