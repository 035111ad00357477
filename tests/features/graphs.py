"""Runs fitted states as the graph that they write. Helpers of the tests in this folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlpipe.features.base import Fitted
from mlpipe.features.encode import session
from mlpipe.features.graph import ENCODED, TENSORS, GraphBuilder, Part


def model_of(fitted: Sequence[Fitted]) -> tuple[bytes, list[Part]]:
    """The graph of some columns, and its parts."""
    graph = GraphBuilder()
    parts = [part for state in fitted for part in state.emit(graph)]
    present = [(name, [part for part in parts if part.tensor == name]) for name in TENSORS]
    return graph.model([(name, mine) for name, mine in present if mine]).SerializeToString(), parts


def run(fitted: Fitted | Sequence[Fitted], **columns: list) -> dict[str, np.ndarray]:
    """The tensors for some cells: numbers as double with None as NaN, text as string with None as ""."""
    states = [fitted] if isinstance(fitted, Fitted) else list(fitted)
    model, _ = model_of(states)
    feed = {}
    for state in states:
        cells = columns[state.column]
        if state.kind == "category":
            feed[state.column] = np.array(["" if c is None else c for c in cells], dtype=object).reshape(-1, 1)
        else:
            feed[state.column] = np.array([np.nan if c is None else c for c in cells], dtype=np.float64).reshape(-1, 1)
    opened = session(model, 1)
    names = [output.name for output in opened.get_outputs()]
    return dict(zip([name.removeprefix(ENCODED) for name in names], opened.run(names, feed), strict=True))
