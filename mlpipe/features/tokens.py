"""Text to tokens as nodes of the encoder graph, with plain onnxruntime: folding, words, characters, n-grams.

Letters: B rows, P pieces of a text, N = B * P, L the length of a sequence.

Folding goes character by character through one table, so that it depends neither on a locale nor on the machine: each
character becomes its compatibility decomposition, case-folded (Unicode's NFKD and full case folding, by Python's
unicodedata). `É`, `é` and `e` with a combining accent become one text, and so do wide and narrow forms. Hangul
syllables stay whole.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

from mlpipe.features.graph import GraphBuilder

PIECE = 64  # characters that are folded at once: a text is cut into such pieces first, lest a long one widen all of its batch
SAME = "\ufdd1"  # what the folding table gives for a character that stays as it is; a noncharacter, in no text
LONE = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"  # scripts without blanks between words
WORD = rf"[{LONE}]\p{{M}}*|(?:[^\P{{L}}{LONE}]|\p{{M}}|\p{{N}})+"  # for RE2: one such sign, or a run of letters, marks, digits
MISSING, UNKNOWN, FIRST_KNOWN = 0, 1, 2
STRING_BYTES = 32  # of a short std::string


@cache
def folding() -> dict[str, str]:
    """Each character that folding changes, and what it becomes; about 6,800 of them."""
    table = {}
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000 or 0xAC00 <= point < 0xD7A4:  # surrogates, Hangul syllables
            continue
        before, folded = "", chr(point)
        while folded != before:
            before, folded = folded, unicodedata.normalize("NFKD", folded).casefold()
        if folded != chr(point):
            table[chr(point)] = folded
    return table


class Tokens:
    """Emits the nodes that cut one text column into tokens, named after the column."""

    def __init__(self, graph: GraphBuilder, column: str, *, fold: bool, characters: int, aliases: dict[str, str]) -> None:
        """Texts are cut behind `characters` signs, rounded up to whole pieces."""
        self.graph, self.column, self.fold = graph, column, fold
        self.pieces = max(1, -(-characters // PIECE))
        graph.row_bytes += self.pieces * PIECE * STRING_BYTES * (5 if fold else 2)
        self._whole = self._text(aliases)

    def _name(self, what: str) -> str:
        return f"{self.column}/{what}"

    def _constant(self, what: str, value: object) -> str:
        return self.graph.constant(self._name(what), value)

    def _ints(self, what: str, *values: int) -> str:
        return self._constant(what, np.array(values, dtype=np.int64))

    def _table(self, source: str, what: str, table: dict[str, str]) -> str:
        """Strings by a table; those that it lacks stay as they are."""
        graph = self.graph
        mapped = graph.node("LabelEncoder", [source], self._name(f"{what}/found"), domain="ai.onnx.ml", keys_strings=list(table),
                            values_strings=list(table.values()), default_string=SAME)  # fmt: skip
        stays = graph.node("Equal", [mapped, self._constant("same", np.array(SAME, dtype=object))], self._name(f"{what}/stays"))
        return graph.node("Where", [stays, source, mapped], self._name(what))

    def _text(self, aliases: dict[str, str]) -> str:
        """String [B + 1]: the text, cut and folded, and an empty one."""
        graph, name = self.graph, self._name
        cell = graph.input(self.column, "text")
        if aliases:
            cell = self._table(cell, "text/meant", aliases)
        given = graph.node("Reshape", [cell, self._ints("flat", -1)], name("text/given"))
        # an empty text behind the last: `Tokenizer` gives no second axis for no rows
        flat = graph.node("Concat", [given, self._constant("last", np.array([""], dtype=object))], name("text/flat"), axis=0)
        pieces = graph.strings("Tokenizer", [flat], name("pieces/all"), 2, tokenexp=f"(?s).{{1,{PIECE}}}", **TOKENIZER)
        rows = graph.node("Shape", [flat], name("rows"))
        one = graph.node("Concat", [rows, self._ints("one", 1)], name("pieces/one"), axis=0)
        empty = graph.node("Expand", [self._constant("empty", np.array("", dtype=object)), one], name("pieces/empty"))
        # one empty piece more: a batch of empty texts then has a piece a row, too
        some = graph.node("Concat", [pieces, empty], name("pieces/some"), axis=1)
        kept = self._slice(some, "pieces/kept", 0, self.pieces)
        if not self.fold:
            return self._joined(kept, "text", self.pieces, rows)
        flat_pieces = graph.node("Reshape", [kept, self._ints("flat", -1)], name("pieces/flat"))
        signs = graph.strings("Tokenizer", [flat_pieces], name("signs"), 2, separators=[""], **TOKENIZER)
        folded = self._table(signs, "signs/folded", folding())
        whole = self._joined(folded, "pieces/folded", PIECE, graph.node("Shape", [flat_pieces], name("pieces/count")))
        back = graph.node("Reshape", [whole, graph.node("Shape", [kept], name("pieces/shape"))], name("pieces/back"))
        return self._joined(back, "text", self.pieces, rows)

    def _slice(self, source: str, what: str, start: int, end: int, step: int = 1) -> str:
        """Part of axis 1."""
        bounds = [self._ints(f"at/{number}", number) for number in (start, end)]
        return self.graph.node("Slice", [source, *bounds, self._ints("at/1", 1), self._ints(f"at/{step}", step)], self._name(what))

    def _joined(self, parts: str, what: str, width: int, rows: str) -> str:
        """String [rows]: the parts of each row, at most `width` of them, one behind the other; pairs are joined until one is left."""
        graph, name = self.graph, self._name
        size = 1 << (width - 1).bit_length()
        shape = graph.node("Concat", [rows, self._ints(f"at/{size}", size)], name(f"{what}/shape"), axis=0)
        padding = graph.node("Expand", [self._constant("empty", np.array("", dtype=object)), shape], name(f"{what}/padding"))
        long = graph.node("Concat", [parts, padding], name(f"{what}/padded"), axis=1)
        joined = self._slice(long, f"{what}/{size}", 0, size)
        while size > 1:
            left = self._slice(joined, f"{what}/{size}/left", 0, size, 2)
            right = self._slice(joined, f"{what}/{size}/right", 1, size, 2)
            size //= 2
            joined = graph.node("StringConcat", [left, right], name(f"{what}/{size}"))
        return graph.node("Reshape", [joined, self._ints("flat", -1)], name(what))

    # ---- tokens and their codes

    def words(self) -> str:
        """String [B + 1, any]: words, "" behind the last; the row behind the last text is empty."""
        return self.graph.strings("Tokenizer", [self._whole], self._name("words"), 2, tokenexp=WORD, **TOKENIZER)

    def characters(self) -> str:
        """String [B + 1, any]: characters, "" behind the last; the row behind the last text is empty."""
        return self.graph.strings("Tokenizer", [self._whole], self._name("characters"), 2, separators=[""], **TOKENIZER)

    def codes(self, tokens: str, what: str, vocabulary: tuple[str, ...], length: int) -> str:
        """int64 [B, L]: codes of tokens, 0 behind the last, 1 for the unknown."""
        graph, name = self.graph, self._name
        keys = ["", *vocabulary]
        values = [MISSING, *range(FIRST_KNOWN, FIRST_KNOWN + len(vocabulary))]
        found = graph.node("LabelEncoder", [tokens], name(f"{what}/found"), domain="ai.onnx.ml", keys_strings=keys, values_int64s=values,
                           default_int64=UNKNOWN)  # fmt: skip
        shape = graph.node("Concat", [name("rows"), self._ints(f"at/{length}", length)], name(f"{what}/shape"), axis=0)
        padding = graph.node("Expand", [self._constant("nothing", np.int64(MISSING)), shape], name(f"{what}/padding"))
        long = graph.node("Concat", [found, padding], name(f"{what}/long"), axis=1)
        whole = self._slice(long, f"{what}/whole", 0, length)
        return graph.node("Slice", [whole, self._ints("at/0", 0), self._ints("at/-1", -1), self._ints("at/0", 0)], name(what))

    def ngrams(self, codes: str, what: str, length: int, base: int, keys: list[np.ndarray]) -> list[str]:
        """int64 [B, L - n + 1] for n = 2, 3, ...: codes of the n-grams whose keys are listed, 0 for all others.

        The key of codes a, b, c is (a * base + b) * base + c.
        """
        graph, name = self.graph, self._name
        key, edges = codes, []
        times = self._constant(f"{what}/base", np.int64(base))
        for order, known in enumerate(keys, 2):
            first = self._slice(key, f"{what}/{order}/first", 0, length - order + 1)
            last = self._slice(codes, f"{what}/{order}/last", order - 1, length)
            shifted = graph.node("Mul", [first, times], name(f"{what}/{order}/shifted"))
            key = graph.node("Add", [shifted, last], name(f"{what}/{order}/key"))
            edges.append(
                graph.node("LabelEncoder", [key], name(f"{what}/{order}"), domain="ai.onnx.ml", keys_int64s=[-1, *known.tolist()],
                           values_int64s=[MISSING, *range(FIRST_KNOWN, FIRST_KNOWN + len(known))], default_int64=MISSING)
            )  # fmt: skip
        return edges


TOKENIZER = {"mark": 0, "mincharnum": 1, "pad_value": ""}
