"""Feature `text`: words and characters, and n-grams of both, as codes from vocabularies of the train rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from mlpipe.columns import Column, text_counts
from mlpipe.features.base import Feature, Fitted, TextSequence
from mlpipe.features.graph import GraphBuilder, Part
from mlpipe.features.tokens import FIRST_KNOWN, PIECE, UNKNOWN, Tokens

if TYPE_CHECKING:
    import pyarrow as pa

FIT_ROWS = 2048
CODE_BYTES = 32  # that a code takes on its way through the graph: int64, some of them at a time
PENDING = 1 << 23  # n-gram keys that are gathered before they are counted


class FittedText(Fitted):
    """Vocabularies of one column of text.

    In:  one input, string [B, 1], "" where a value is missing.
    Out: `text` int64 [B, L], one sequence behind the other: words, word n-grams, characters, character n-grams, as far as they
    are asked for. Codes: 0 behind the end and for an n-gram that is not in the vocabulary, 1 an unknown or rare word or
    character, 2 and up the vocabulary in its order. A missing text is all 0.

    `length` is how many characters are read, by train's longest text and `max_characters`; `words_length` and `characters_length`
    are the lengths of the sequences (folding can lengthen a text).
    """

    kind: Literal["text"] = "text"
    fold: bool
    length: int
    words_length: int = 0
    characters_length: int = 0
    words: tuple[str, ...] = ()
    word_ngrams: tuple[tuple[str, ...], ...] = ()  # of 2 words, 3 words, ...; blanks between them
    characters: tuple[str, ...] = ()
    character_ngrams: tuple[tuple[str, ...], ...] = ()  # of 2 characters, 3, ...
    rows: int = 0
    missing: int = 0
    distinct: int = 0
    cut: int = 0  # train rows whose text is longer
    aliases: dict[str, str] = {}  # raw cells that the source reads as another value, or as missing ("")

    def emit(self, graph: GraphBuilder) -> list[Part]:
        """The nodes of `Tokens`; a part for each sequence."""
        tokens, parts = self.tokens(graph), []
        if self.words_length:
            codes = tokens.codes(tokens.words(), "words/1", self.words, self.words_length)
            parts += self._sequences("words", tokens, codes, self.words, self.words_length, self.word_ngrams)
        if size := self.characters_length:
            codes = tokens.codes(tokens.characters(), "characters/1", self.characters, size)
            parts += self._sequences("characters", tokens, codes, self.characters, size, self.character_ngrams)
        graph.row_bytes += sum(part.width for part in parts) * CODE_BYTES
        return parts

    def tokens(self, graph: GraphBuilder) -> Tokens:
        """The start of the graph: the text, cut and folded."""
        return Tokens(graph, self.column, fold=self.fold, characters=self.length, aliases=self.aliases)

    def _sequences(
        self,
        unit: Literal["words", "characters"],
        tokens: Tokens,
        codes: str,
        vocabulary: tuple[str, ...],
        length: int,
        ngrams: tuple[tuple[str, ...], ...],
    ) -> list[Part]:
        base = FIRST_KNOWN + len(vocabulary)
        numbers = {token: number for number, token in enumerate(vocabulary, FIRST_KNOWN)}
        split = str.split if unit == "words" else list
        keys = [np.array([_key((numbers[t] for t in split(gram)), base) for gram in grams], dtype=np.int64) for grams in ngrams]
        keys = keys[: max(0, length - 1)]
        while keys and not len(keys[-1]):  # no train text has one that is frequent enough
            keys.pop()
        edges = [codes, *tokens.ngrams(codes, unit, length, base, keys)]
        sizes = [base, *(FIRST_KNOWN + len(known) for known in keys)]
        return [
            Part("text", edge, sequence=TextSequence(column=self.column, unit=unit, order=order, length=length - order + 1, size=size))
            for order, (edge, size) in enumerate(zip(edges, sizes, strict=True), 1)
        ]

    def remarks(self) -> list[str]:
        """A column that says nothing is harmless, and named; so are texts that are cut."""
        present, found = self.rows - self.missing, []
        if not present:
            return [f"{self.column}: no value in the train rows; it carries nothing"]
        if not self.words and not self.characters:
            found.append(f"{self.column}: no word or character stands in enough train rows to be known; it carries nothing (`min_count`)")
        if self.distinct == 1 and not self.missing:
            found.append(f"{self.column}: constant in the train rows; it carries nothing")
        if self.cut:
            share = f"{self.cut:,} of {present:,} train texts are"
            found.append(f"{self.column}: {share} longer than {self.length:,} characters; the rest of them is not read (`max_characters`)")
        return found


def _key(codes: Iterable[int], base: int) -> int:
    key = 0
    for code in codes:
        key = key * base + code
    return key


class Text(Feature):
    """Texts as words and characters, and n-grams of both, cut and coded inside the graph.

    A word is a run of letters, marks and digits; of scripts without blanks (Chinese, Japanese, Thai, ...) each sign is a word.
    Each vocabulary holds what at least `min_count` train rows have, the most frequent `max_size` of it.
    """

    kind: Literal["text"] = "text"
    words: Annotated[int, Field(ge=0, le=3)] = 2
    characters: Annotated[int, Field(ge=0, le=5)] = 4
    fold: bool = True
    min_count: Annotated[int, Field(ge=1)] = 2
    max_size: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    max_characters: Annotated[int, Field(ge=1, le=1_000_000)] = 2048

    @model_validator(mode="after")
    def _something(self) -> Text:
        if not self.words and not self.characters:
            raise ValueError("words: 0 and characters: 0 leave nothing of a text; set one of them to 1 or more")
        return self

    def raw(self, column: str) -> Column:
        """Text."""
        return Column(name=column, type="text")

    def fit(self, column: str, values: pa.ChunkedArray) -> FittedText:
        """Counts tokens in two passes over the distinct train texts, cut by the very nodes of the graph."""
        counts = text_counts(values)
        counts.pop("", None)  # the empty text is how a client sends "missing"
        longest = max((len(text) for text in counts), default=1)
        length = -(-min(self.max_characters, longest) // PIECE) * PIECE
        bare = FittedText(
            column=column,
            fold=self.fold,
            length=length,
            rows=len(values),
            missing=len(values) - sum(counts.values()),
            distinct=len(counts),
            cut=sum(n for text, n in counts.items() if len(text) > length),
        )
        texts, weights = list(counts), np.array(list(counts.values()), dtype=np.int64)
        words, characters, lengths = self._unigrams(bare, texts, weights)
        fitted = bare.model_copy(
            update={
                "words": words,
                "characters": characters,
                "words_length": max(1, lengths["words"]) if self.words else 0,
                "characters_length": max(1, lengths["characters"]) if self.characters else 0,
            }
        )
        grams = self._ngrams(fitted, texts, weights)
        return fitted.model_copy(update={"word_ngrams": grams[0], "character_ngrams": grams[1]})

    # ---- counting

    def _unigrams(self, bare: FittedText, texts: list[str], weights: np.ndarray) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, int]]:
        """Vocabularies of words and characters, and how many of them the longest text has."""
        units = [unit for unit, order in (("words", self.words), ("characters", self.characters)) if order]
        found: dict[str, Counter[str]] = {unit: Counter() for unit in units}
        longest = dict.fromkeys(("words", "characters"), 0)
        for batch, mine in self._batches(bare, texts, weights, units):
            for unit, tokens in zip(units, batch, strict=True):
                longest[unit] = max(longest[unit], tokens.shape[1])
                for row, count in zip(tokens.tolist(), mine.tolist(), strict=True):
                    counter = found[unit]
                    for token in set(row):
                        counter[token] += count
        sizes = {"words": self._most(self.words), "characters": self._most(self.characters)}
        words, characters = (_often(found.get(unit, Counter()), self.min_count, sizes[unit]) for unit in ("words", "characters"))
        return words, characters, longest

    def _most(self, order: int) -> int:
        """How large a vocabulary may be for the key of an n-gram to fit into 63 bits."""
        return min(self.max_size, int(2 ** (63 / max(1, order))) - FIRST_KNOWN - 1)

    def _ngrams(
        self, fitted: FittedText, texts: list[str], weights: np.ndarray
    ) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
        """The n-grams of words and of characters, by their order, from 2."""
        wanted = [("words", self.words, fitted.words, " "), ("characters", self.characters, fitted.characters, "")]
        wanted = [entry for entry in wanted if entry[1]]
        tables = {unit: [KeyCounts() for _ in range(2, order + 1)] for unit, order, _, _ in wanted}
        if any(tables.values()):
            for batch, mine in self._batches(fitted, texts, weights, [f"{unit}/1" for unit, *_ in wanted]):
                for codes, (unit, order, vocabulary, _) in zip(batch, wanted, strict=True):
                    base, key = FIRST_KNOWN + len(vocabulary), codes
                    whole = codes > UNKNOWN
                    for n in range(2, min(order, codes.shape[1]) + 1):
                        key = key[:, :-1] * base + codes[:, n - 1 :]
                        whole = whole[:, :-1] & (codes[:, n - 1 :] > UNKNOWN)
                        tables[unit][n - 2].add(np.where(whole, key, -1), mine)
        grams = {}
        for unit, _, vocabulary, mark in wanted:
            base = FIRST_KNOWN + len(vocabulary)
            grams[unit] = tuple(
                tuple(mark.join(_tokens(key, n, base, vocabulary)) for key in table.often(self.min_count, self.max_size))
                for n, table in enumerate(tables[unit], 2)
            )
        return grams.get("words", ()), grams.get("characters", ())

    def _batches(
        self, fitted: FittedText, texts: list[str], weights: np.ndarray, edges: list[str]
    ) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
        """What the graph gives on these edges for the texts, in the order of their length: long ones do not widen the short."""
        from onnx import TensorProto, helper

        from mlpipe.features.encode import rows_at_once, session

        graph = GraphBuilder()
        if any("/" in edge for edge in edges):
            fitted.emit(graph)
        else:
            tokens = fitted.tokens(graph)
            for unit in edges:
                tokens.words() if unit == "words" else tokens.characters()
        kind = TensorProto.INT64 if any("/" in edge for edge in edges) else TensorProto.STRING
        names = [f"{fitted.column}/{edge}" for edge in edges]
        model = graph.finished([helper.make_tensor_value_info(name, kind, ["batch", f"{name}/any"]) for name in names])
        run = session(model.SerializeToString(), 1)
        order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), texts[i]))
        size = min(FIT_ROWS, rows_at_once(run))
        for start in range(0, len(order), size):
            mine = order[start : start + size]
            rows: Any = np.array([[texts[i]] for i in mine], dtype=object)
            found = [array[: len(mine)] for array in run.run(names, {fitted.column: rows})]
            yield found, weights[mine]


class KeyCounts:
    """In how many rows each key of an n-gram stands; sorted arrays, merged now and then, so that memory stays with the distinct keys."""

    def __init__(self) -> None:
        self.keys, self.counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._size = 0

    def add(self, keys: np.ndarray, weights: np.ndarray) -> None:
        """Counts the keys [B, L] of rows that stand for `weights` [B] rows each; below 0 is no key, and a row counts once."""
        ordered = np.sort(keys, axis=1)
        fresh = ordered >= 0
        fresh[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
        found = ordered[fresh], np.repeat(weights, fresh.sum(axis=1))
        self._waiting.append(found)
        self._size += len(found[0])
        if self._size > PENDING:
            self._merge()

    def _merge(self) -> None:
        keys = np.concatenate([self.keys, *(keys for keys, _ in self._waiting)])
        counts = np.concatenate([self.counts, *(counts for _, counts in self._waiting)])
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.empty(0, np.int64)
        self.keys, self.counts = keys[starts], np.add.reduceat(counts, starts) if len(starts) else counts
        self._waiting, self._size = [], 0

    def often(self, least: int, most: int) -> list[int]:
        """The keys of at least `least` rows, the `most` frequent of them, in their order."""
        self._merge()
        enough = self.counts >= least
        keys, counts = self.keys[enough], self.counts[enough]
        kept = np.lexsort((keys, -counts))[:most]
        found: list[int] = np.sort(keys[kept]).tolist()
        return found


def _often(counts: Counter[str], least: int, most: int) -> tuple[str, ...]:
    """The tokens of at least `least` rows, the `most` frequent of them, by code point."""
    del counts[""]
    often = sorted((token for token, n in counts.items() if n >= least), key=lambda token: (-counts[token], token))
    return tuple(sorted(often[:most]))


def _tokens(key: int, order: int, base: int, vocabulary: tuple[str, ...]) -> list[str]:
    """The tokens of an n-gram's key."""
    found = []
    for _ in range(order):
        key, code = divmod(key, base)
        found.append(vocabulary[code - FIRST_KNOWN])
    return found[::-1]
