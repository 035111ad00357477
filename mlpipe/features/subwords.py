"""Feature `tokens`: the ids that a tokeniser of Hugging Face's makes of a text, before the graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PrivateAttr

from mlpipe.base import expand
from mlpipe.columns import Column, text_counts
from mlpipe.digest import sha256_bytes
from mlpipe.errors import DataError, SpecError
from mlpipe.features.base import Feature, Fitted, TextSequence
from mlpipe.features.graph import GraphBuilder, Part
from mlpipe.features.tokeniser import MAKE, Tokeniser, pad_of, tokeniser_of, unknown_of, vocabulary_digest

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "tokenizer.json"
WIDE = 12  # heads and widths of a usual encoder: what it keeps of a row on its way decides how many rows a graph takes at once
STATES = 8 * 768
OFTEN = 0.1  # unknown tokens: a tokeniser of the right language has next to none


class FittedTokens(Fitted):
    """A tokeniser and how much of a text is read.

    In:  one input, int64 [B, L]: ids, 0 behind the end and where a text is missing; made of text by the host step.
    Out: `text` int64 [B, L], the same ids, below `size`.

    Where the tokeniser's padding token is not 0, its id and 0 are exchanged (`pad`). `digest` is of the file, `vocabulary` of
    which text has which id.
    """

    kind: Literal["tokens"] = "tokens"
    digest: str
    vocabulary: str
    length: int
    size: int
    pad: int = 0
    rows: int = 0
    missing: int = 0
    distinct: int = 0
    cut: int = 0  # train rows whose text has more tokens
    unknown: float = 0.0  # of the tokens of the different train texts, those that the tokeniser has no id for

    def emit(self, graph: GraphBuilder) -> list[Part]:
        """The input alone."""
        edge = graph.input(self.column, "tokens", self.length)
        graph.row_bytes += self.length * (WIDE * self.length + STATES) * 4
        sequence = TextSequence(
            column=self.column, unit="tokens", length=self.length, size=self.size, pad=self.pad, vocabulary=self.vocabulary
        )
        return [Part("text", edge, sequence=sequence)]

    def remarks(self) -> list[str]:
        """A column that says nothing, texts that are cut, and texts that the tokeniser can hardly read."""
        present = self.rows - self.missing
        if not present:
            return [f"{self.column}: no value in the train rows; it carries nothing"]
        found = [f"{self.column}: constant in the train rows; it carries nothing"] if self.distinct == 1 and not self.missing else []
        if self.cut:
            share = f"{self.cut:,} of {present:,} train texts have"
            found.append(f"{self.column}: {share} more than {self.length:,} tokens; the rest of them is not read (`max_length`)")
        if self.unknown >= OFTEN:
            found.append(f"{self.column}: {self.unknown:.0%} of the train tokens are unknown to the tokeniser; is it for another language?")
        return found


class Tokens(Feature):
    """The token ids of a pretrained tokeniser, for the model `pretrained`.

    No graph can run such a tokeniser: the input of the column in model.onnx takes ids, int64 [batch, max_length], and what makes
    them, tokenizer.json, lies in the export folder. `mlpipe predict` does both.
    """

    kind: Literal["tokens"] = "tokens"
    tokeniser: Annotated[str, Field(min_length=1)]
    max_length: Annotated[int, Field(ge=4, le=8192)] = 128
    _base: Path | None = PrivateAttr(default=None)

    @classmethod
    def locations(cls) -> frozenset[str]:
        """The path keeps `${env:NAME}` as it is."""
        return frozenset({"tokeniser"})

    def raw(self, column: str) -> Column:
        """Text."""
        return Column(name=column, type="text")

    def resolved_against(self, base: Path) -> Tokens:
        """Knows the pipeline file's folder."""
        copy = self.model_copy()
        copy._base = base  # noqa: SLF001 (its own class)
        return copy

    def files(self, base: Path) -> list[tuple[str, Path]]:
        """tokenizer.json, named itself or by its folder. Raises DataError when it is not there."""
        path, shown = base / expand(self.tokeniser), self.tokeniser
        if path.is_dir():
            path, shown = path / NAME, f"{self.tokeniser.rstrip('/')}/{NAME}"
        if path.is_file():
            return [(shown, path)]
        where = "(relative to the pipeline file's folder)"
        slow = [name for name in ("vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model") if (path.parent / name).is_file()]
        raise DataError(
            f"prepare.features: the tokeniser {shown} is not there {where}" + (f", only {slow[0]}" if slow else ""),
            hint=f"name a folder with tokenizer.json, or that file; {MAKE}",
        )

    def fit(self, column: str, values: pa.ChunkedArray) -> FittedTokens:
        """Counts texts that are cut; all else is the tokeniser's. Raises SpecError for a file that is none, and for too small a length."""
        ((shown, path),) = self.files(self._base or Path())
        try:
            data = path.read_bytes()
        except OSError as fault:
            raise SpecError(f"{shown} cannot be read: {(fault.strerror or str(fault)).lower()}") from None
        tokeniser = tokeniser_of(data, shown)
        pad = pad_of(tokeniser, data, shown)
        marks = tokeniser.num_special_tokens_to_add(is_pair=False)
        if self.max_length <= marks:
            raise SpecError(f"max_length {self.max_length} leaves no token beside the {marks} marks that {shown} adds", hint="128 is usual")
        vocabulary, size = vocabulary_digest(tokeniser), 1 + max(tokeniser.get_vocab(with_added_tokens=True).values(), default=0)
        counts = text_counts(values)
        counts.pop("", None)  # the empty text is how a client sends "missing"
        cut, unknown = Tokeniser(tokeniser, self.max_length, pad).looked_at(counts, unknown_of(tokeniser, data))
        return FittedTokens(
            column=column,
            digest=sha256_bytes(data),
            vocabulary=vocabulary,
            length=self.max_length,
            size=size,
            pad=pad,
            rows=len(values),
            missing=len(values) - sum(counts.values()),
            distinct=len(counts),
            cut=cut,
            unknown=unknown,
        )
