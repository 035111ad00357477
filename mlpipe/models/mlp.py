"""Model `mlp`: embeddings, then hidden layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from mlpipe.models.base import Model
from mlpipe.schema import Tensors

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

SCALES = (0.1, 1.0, 4.0, 16.0)

Positive = Annotated[int, Field(ge=1)]


class Mlp(Model):
    """A multilayer perceptron on tables, with or without texts among the columns.

    Categories of up to `one_hot_up_to` codes are one-hot, larger ones are embedded `category_width` wide. Numbers enter as
    they are, or embedded: `periodic` (sines and cosines; `frequency_scale: auto` tries none, 0.1, 1, 4 and 16 for a few
    epochs and keeps what does best on the valid rows) or `piecewise_linear` (bins at quantiles of the train rows).
    A text column is the mean of the embeddings of its tokens, `text_width` wide, as in `text_bag`.
    """

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[Positive, ...] = (256, 256)
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    normalisation: Literal["none", "batch", "layer"] = "none"
    activation: Literal["relu", "gelu", "silu"] = "relu"
    numeric_embedding: Literal["none", "periodic", "piecewise_linear"] = "none"
    embedding_width: Positive = 24
    frequencies: Positive = 48
    frequency_scale: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    bins: Annotated[int, Field(ge=2)] = 48
    one_hot_up_to: Annotated[int, Field(ge=0)] = 64
    category_width: Positive = 16
    text_width: Positive = 64
    forget: Annotated[float, Field(ge=0, lt=1)] = 0.3

    def candidates(self) -> tuple[Model, ...]:
        """For `frequency_scale: auto`: no embedding, then each scale."""
        if self.numeric_embedding != "periodic" or self.frequency_scale != "auto":
            return ()
        plain = self.model_copy(update={"numeric_embedding": "none"})
        return (plain, *(self.model_copy(update={"frequency_scale": scale}) for scale in SCALES))

    def measure(self, encoded: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Bin edges of each numeric column, float32 quantiles of the train rows."""
        if self.numeric_embedding != "piecewise_linear" or "numeric" not in encoded:
            return {}
        return {"bins": [bin_edges(column, self.bins) for column in encoded["numeric"].T]}

    def build(self, tensors: Tensors, outputs: int, arguments: Mapping[str, Any]) -> nn.Module:
        """The network. A scale that is still `auto` is 1 (there was nothing to try it on)."""
        from mlpipe.models import network, texts

        embedding = None
        if tensors.numeric and self.numeric_embedding == "periodic":
            scale = 1.0 if self.frequency_scale == "auto" else self.frequency_scale
            embedding = network.periodic(len(tensors.numeric), self.embedding_width, self.frequencies, scale)
        elif tensors.numeric and self.numeric_embedding == "piecewise_linear":
            embedding = network.piecewise_linear(arguments["bins"], self.embedding_width)
        return network.TabularNet(
            numeric=len(tensors.numeric),
            plain=len(tensors.plain),
            cardinalities=tensors.cardinalities,
            outputs=outputs,
            hidden=self.hidden,
            dropout=self.dropout,
            normalisation=self.normalisation,
            activation=self.activation,
            embedding=embedding,
            one_hot_up_to=self.one_hot_up_to,
            category_width=self.category_width,
            texts=texts.bags(tensors.text, self.text_width, self.forget) if tensors.text else None,
        )


def bin_edges(column: np.ndarray, bins: int) -> list[float]:
    """Distinct quantiles of one encoded column, at least two of them (a constant column gets a bin around its value)."""
    import numpy as np

    edges = np.unique(np.quantile(np.asarray(column, dtype=np.float64), np.linspace(0, 1, bins + 1)).astype(np.float32))
    if len(edges) < 2:
        width = max(1.0, abs(float(edges[0])) / 8)  # 1e9 + 1 is 1e9 in float32
        edges = np.array([edges[0] - width, edges[0] + width], dtype=np.float32)
    return [float(edge) for edge in edges]
