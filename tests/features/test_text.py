"""Feature `text`: what the graph gives equals the tokens worked out by hand from the fitted vocabularies."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import numpy as np
import onnx
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from mlpipe.columns import Column
from mlpipe.features.encode import Encoder, rows_at_once, session
from mlpipe.features.text import FittedText, Text
from mlpipe.features.tokens import PIECE, folding
from tests.features.graphs import model_of

TRAIN = [
    "The cat sat on the mat.",
    "the CAT sat on the hat",
    "Ein Café in München",
    "ein cafe\u0301 in MU\u0308NCHEN!",
    "我要听音乐",
    "我要音乐 now",
    "Straße",
    "STRASSE 12",
    "",
    "don't stop",
    "don't go",
]
AWKWARD = [
    "",
    " ",
    "\n\t ",
    "\U0001f600",
    "e\u0301",
    "é",
    "x" * 100_000,
    "שלום עולם",
    "a\u0000b",
    "ﬁ",
    "Ｆｕｌｌ",
    "nan",
    "\u0301",
    "한국어",
]


def fitted(texts: list[str | None], **settings) -> FittedText:
    column = pa.chunked_array([pa.array(texts, pa.string()).dictionary_encode()])
    return Text(**{"columns": ["t"], "min_count": 1, **settings}).fit("t", column)


def codes(state: FittedText, texts: list[str]) -> dict[str, list[list[int]]]:
    """What the graph gives, by sequence."""
    model, parts = model_of([state])
    rows = pa.RecordBatch.from_arrays([pa.array(texts, pa.string()).dictionary_encode()], names=["t"])
    tensor = Encoder(model, [Column(name="t", type="text")])(rows)["text"]
    found, at = {}, 0
    for part in parts:
        sequence = part.sequence
        found[f"{sequence.unit}/{sequence.order}"] = tensor[:, at : at + sequence.length].tolist()
        at += sequence.length
    assert at == tensor.shape[1]
    return found


def fold(sign: str) -> str:
    if 0xAC00 <= ord(sign) < 0xD7A4:
        return sign
    for _ in range(4):
        sign = unicodedata.normalize("NFKD", sign).casefold()
    return sign


def words(text: str) -> list[str]:
    """Runs of letters, marks and digits; Han, kana and Thai signs one by one, with the marks behind them."""
    found, run = [], False
    for sign in text:
        lone = any(name in unicodedata.name(sign, "") for name in ("CJK UNIFIED", "HIRAGANA LETTER", "KATAKANA LETTER", "THAI CHARACTER"))
        mark = unicodedata.category(sign)[0] == "M"
        if lone and not mark:
            found.append(sign)
            run = True
            alone = True
        elif mark and run:
            found[-1] += sign
        elif unicodedata.category(sign)[0] in "LMN":
            if run and not alone:
                found[-1] += sign
            else:
                found.append(sign)
            run, alone = True, False
        else:
            run = False
    return found


def by_hand(state: FittedText, text: str) -> dict[str, list[int]]:
    text = text[: -(-state.length // PIECE) * PIECE]
    text = "".join(map(fold, text)) if state.fold else text
    tables = {
        "words": (words(text), state.words, state.words_length, state.word_ngrams, " "),
        "characters": (list(text), state.characters, state.characters_length, state.character_ngrams, ""),
    }
    found = {}
    for unit, (tokens, vocabulary, length, grams, mark) in tables.items():
        if length:
            tokens = tokens[:length]
            table = {token: i for i, token in enumerate(vocabulary, 2)}
            found[f"{unit}/1"] = [table.get(token, 1) for token in tokens] + [0] * (length - len(tokens))
            for order, known in enumerate(grams, 2):
                table = {gram: i for i, gram in enumerate(known, 2)}
                made = [table.get(mark.join(tokens[i : i + order]), 0) for i in range(len(tokens) - order + 1)]
                if known and length >= order:
                    found[f"{unit}/{order}"] = made + [0] * (length - order + 1 - len(made))
    return found


@pytest.mark.parametrize(
    "settings", [{}, {"fold": False}, {"words": 3, "characters": 5}, {"words": 0}, {"characters": 0}, {"min_count": 2}]
)
def test_the_graph_gives_what_the_vocabularies_say(settings):
    state = fitted(TRAIN, **settings)
    texts = [*TRAIN, *AWKWARD, "the cat in MÜNCHEN", "a mat, a hat, a 音乐"]
    found = codes(state, texts)
    for i, text in enumerate(texts):
        assert {name: rows[i] for name, rows in found.items()} == by_hand(state, text.replace("\u0000", "\u0000")), repr(text[:40])


SIGNS = st.characters(codec="utf-8", categories=("Lu", "Ll", "Lt", "Lm", "Nd", "Nl", "Mn", "Zs", "Po", "Sc", "Sk", "So", "Cc"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(SIGNS, max_size=90), min_size=1, max_size=5))
def test_any_text_gives_what_the_vocabularies_say(texts):
    """Characters and their n-grams, of any text, in whatever company."""
    state = fitted([*texts, *TRAIN], words=0, characters=3)
    found = codes(state, texts)
    for i, text in enumerate(texts):
        assert {name: rows[i] for name, rows in found.items()} == by_hand(state, text)


def test_a_row_does_not_depend_on_the_rows_beside_it():
    state = fitted(TRAIN)
    together = codes(state, [*TRAIN, *AWKWARD])
    for i, text in enumerate([*TRAIN, *AWKWARD]):
        assert {name: rows[0] for name, rows in codes(state, [text]).items()} == {name: rows[i] for name, rows in together.items()}


@pytest.mark.parametrize(
    "spellings",
    [
        ("Café", "CAFÉ", "cafe\u0301", "cafE\u0301", "ｃａｆé"),
        ("straße", "STRASSE", "Strasse", "STRAẞE"),
        ("ﬁn", "FIN", "fin"),
        ("Ωmega", "ωMEGA"),
        ("ﾃﾞｰﾀ", "データ"),
    ],
)
def test_spellings_that_mean_the_same_are_one_word(spellings):
    state = fitted([spellings[0]])
    first, *others = (by_hand(state, text) for text in spellings)
    assert all(other == first for other in others)
    found = codes(state, list(spellings))
    assert all(row == rows[0] for rows in found.values() for row in rows)
    assert found["words/1"][0][0] >= 2


def test_without_folding_case_tells_words_apart():
    found = codes(fitted(["Cat cat"], fold=False), ["Cat", "cat", "CAT"])["words/1"]
    assert found[0][0] != found[1][0]
    assert found[2][0] == 1


def test_a_token_counts_once_a_row_and_equal_rows_count_each():
    texts = ["a a a b", "b c", "b c", "d"]
    assert fitted(texts, min_count=2).words == ("b", "c")
    assert fitted(texts, min_count=3).words == ("b",)
    assert fitted(texts, min_count=2).word_ngrams == (("b c",),)
    assert fitted(texts, min_count=1, max_size=2).words == ("b", "c")  # the most frequent; a before d would be next


def test_pairs_go_over_known_words_only():
    """An unknown word between two known ones makes no pair of them."""
    state = fitted(["a b", "a b", "a x b"], min_count=2)
    assert state.words == ("a", "b")
    assert state.word_ngrams == (("a b",),)
    assert codes(state, ["a b", "a x b", "a y b"])["words/2"] == [[2, 0], [0, 0], [0, 0]]


def test_missing_is_0_and_unknown_is_1():
    state = fitted(["known words", None], characters=0, words=1)
    assert codes(state, ["", "known strange words", "?!"])["words/1"] == [[0, 0], [2, 1], [0, 0]]
    assert (state.rows, state.missing) == (2, 1)


def test_cells_that_the_source_reads_otherwise_go_into_the_graph_as_they_stand():
    state = fitted(["known words", "n/a words"], characters=0).model_copy(update={"aliases": {"n/a": "", "kw": "known words"}})
    found = codes(state, ["n/a", "kw", "known words", "n/a words"])["words/1"]
    assert found[0] == [0, 0, 0]
    assert found[1] == found[2]
    assert found[3][0] >= 2


def test_texts_are_cut_and_it_is_told():
    state = fitted(["ab " * 100, "ab", "cd"], max_characters=100)
    assert state.length == 2 * PIECE
    assert state.remarks() == ["t: 1 of 3 train texts are longer than 128 characters; the rest of them is not read (`max_characters`)"]
    found = codes(state, ["ab " * 100, "x" * 128 + " cd", "x" * 100 + " cd"])
    assert sum(code > 0 for code in found["words/1"][0]) == 43
    assert 3 not in found["words/1"][1]
    assert found["words/1"][2][:2] == [1, 3]


def test_a_column_without_texts_is_harmless():
    state = fitted([None, None])
    assert state.remarks() == ["t: no value in the train rows; it carries nothing"]
    assert set(np.ravel(codes(state, ["", "something"])["words/1"])) <= {0, 1}


def test_a_vocabulary_without_entries_is_told():
    state = fitted(["a", "b", "c"], min_count=5)
    assert state.remarks() == ["t: no word or character stands in enough train rows to be known; it carries nothing (`min_count`)"]
    assert codes(state, ["a", ""]) == {"words/1": [[1], [0]], "characters/1": [[1], [0]]}


def test_settings_that_leave_nothing_are_refused():
    with pytest.raises(ValidationError, match="leave nothing of a text"):
        Text(columns=["t"], words=0, characters=0)


def test_the_graph_uses_standard_operators_and_one_of_onnxruntime():
    model = onnx.load_model_from_string(model_of([fitted(TRAIN)])[0])
    assert {(node.domain, node.op_type) for node in model.graph.node if node.domain not in ("", "ai.onnx.ml")} == {
        ("com.microsoft", "Tokenizer")
    }
    assert not [node for node in model.graph.node if node.op_type == "StringNormalizer"]  # it depends on the machine's locales


def test_long_texts_are_encoded_some_rows_at_a_time():
    short, long = (session(model_of([fitted(["x" * length])])[0], 1) for length in (64, 2048))
    assert rows_at_once(short) == 4096
    assert rows_at_once(long) < 1000


def test_the_folding_table_reaches_its_end():
    table = folding()
    assert all("".join(map(fold, to)) == to for to in table.values())
    assert table["É"] == "e\u0301"
    assert "각" not in table


def test_the_same_rows_in_another_order_give_the_same_state():
    assert fitted(TRAIN[::-1]) == fitted(TRAIN)
    assert list(pairwise(fitted(TRAIN).words)) == list(pairwise(sorted(fitted(TRAIN).words)))
