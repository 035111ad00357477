"""Models on texts: `text_bag`, `text_cnn`, `transformer`. A vector for each text column, joined with all other columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from mlpipe.errors import SpecError
from mlpipe.models.base import Model
from mlpipe.schema import Tensors

if TYPE_CHECKING:
    from torch import nn

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]


class TextModel(Model):
    """What models on texts share: the head, and what becomes of numbers and categories beside the text."""

    needs: ClassVar[tuple[str, ...]] = ("text", "tokens")

    hidden: tuple[Positive, ...] = ()
    dropout: Share = 0.1
    one_hot_up_to: Annotated[int, Field(ge=0)] = 64
    category_width: Positive = 16

    @abstractmethod
    def texts(self, tensors: Tensors, arguments: Mapping[str, Any]) -> nn.Module:
        """The part of the network that reads the texts."""

    def build(self, tensors: Tensors, outputs: int, arguments: Mapping[str, Any]) -> nn.Module:
        """The network. Raises SpecError when there is no text."""
        from mlpipe.models import network

        if not tensors.text:
            raise SpecError(
                f"the model {self.kind!r} reads text, and no feature gives any",  # type: ignore[attr-defined]  # every kind has one
                hint="add a feature: {kind: text, columns: [...]}, or take the model mlp",
            )
        return network.TabularNet(
            numeric=len(tensors.numeric),
            plain=len(tensors.plain),
            cardinalities=tensors.cardinalities,
            outputs=outputs,
            hidden=self.hidden,
            dropout=self.dropout,
            normalisation="none",
            activation="relu",
            embedding=None,
            one_hot_up_to=self.one_hot_up_to,
            category_width=self.category_width,
            texts=self.texts(tensors, arguments),
        )


class TextBag(TextModel):
    """The averaged embeddings of words, characters and their n-grams, then one linear layer (or `hidden` ones before it).

    Fast and strong: after fastText (Joulin et al. 2016, https://arxiv.org/abs/1607.01759), with exact vocabularies instead of hashes.
    """

    kind: Literal["text_bag"] = "text_bag"
    width: Positive = 64
    forget: Share = 0.3
    pooling: Literal["sqrt", "mean"] = "sqrt"

    def texts(self, tensors: Tensors, arguments: Mapping[str, Any]) -> nn.Module:
        """A bag for each column."""
        from mlpipe.models import texts

        return texts.bags(tensors.text, self.width, self.forget, self.pooling)


class TextCnn(TextModel):
    """Filters over windows of a text's words (or characters), the largest answer of each, then one linear layer."""

    kind: Literal["text_cnn"] = "text_cnn"
    unit: Literal["words", "characters"] = "words"
    width: Positive = 128
    channels: Positive = 128
    windows: Annotated[tuple[Positive, ...], Field(min_length=1)] = (2, 3, 4)
    dropout: Share = 0.3

    def texts(self, tensors: Tensors, arguments: Mapping[str, Any]) -> nn.Module:
        """A convolution for each column."""
        from mlpipe.models import texts

        return texts.ordered(
            tensors.text, self.unit, lambda sequence: texts.Convolution(sequence, self.width, self.channels, self.windows, self.dropout)
        )


class Transformer(TextModel):
    """A small transformer encoder over a text's words (or characters), trained from scratch; its mean, then one linear layer."""

    kind: Literal["transformer"] = "transformer"
    unit: Literal["words", "characters"] = "words"
    width: Positive = 128
    layers: Positive = 2
    heads: Positive = 4
    max_length: Positive = 256

    @model_validator(mode="after")
    def _divides(self) -> Transformer:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be shared by {self.heads} heads; take a multiple of {self.heads}")
        return self

    def texts(self, tensors: Tensors, arguments: Mapping[str, Any]) -> nn.Module:
        """An encoder for each column."""
        from mlpipe.models import texts

        return texts.ordered(
            tensors.text,
            self.unit,
            lambda sequence: texts.Transformer(sequence, self.width, self.layers, self.heads, self.max_length, self.dropout),
        )
