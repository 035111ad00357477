"""Model `linear`: logistic or linear regression on the encoded columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from mlpipe.models.base import Model
from mlpipe.schema import Tensors

if TYPE_CHECKING:
    from torch import nn


class Linear(Model):
    """One linear layer over numbers, one-hot categories and the mean of the embeddings of a text's tokens."""

    kind: Literal["linear"] = "linear"

    def build(self, tensors: Tensors, outputs: int, arguments: Mapping[str, Any]) -> nn.Module:
        """A network without hidden layers."""
        from mlpipe.models import texts
        from mlpipe.models.network import TabularNet

        return TabularNet(
            numeric=len(tensors.numeric),
            plain=len(tensors.plain),
            cardinalities=tensors.cardinalities,
            outputs=outputs,
            hidden=(),
            dropout=0.0,
            normalisation="none",
            activation="relu",
            embedding=None,
            one_hot_up_to=max(tensors.cardinalities, default=0),
            category_width=1,
            texts=texts.bags(tensors.text, outputs, 0.0) if tensors.text else None,
        )
