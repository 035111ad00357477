"""Feature `tokens` and its host step: ids by the package tokenizers, 0 for nothing, cut where max_length says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from mlpipe.errors import DataError, IntegrityError, SpecError
from mlpipe.features.subwords import FittedTokens, Tokens
from mlpipe.features.tokeniser import STEP, Tokeniser, step_settings, tokeniser_of, tokenisers
from tests.small_bert import WORDS, wordpiece


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return wordpiece(tmp_path_factory.mktemp("bert"))


def fit(file: Path, texts: list[str | None], **settings: object) -> FittedTokens:
    feature = Tokens.model_validate({"columns": ["t"], "tokeniser": file.name, **settings}).resolved_against(file.parent)
    return feature.fit("t", pa.chunked_array([pa.array(texts, pa.string()).dictionary_encode()]))


def step(file: Path, length: int, pad: int = 0) -> Tokeniser:
    return Tokeniser(tokeniser_of(file.read_bytes(), file.name), length, pad)


def cells(*texts: str) -> np.ndarray:
    return np.array(texts, dtype=object).reshape(-1, 1)


def test_ids_are_the_tokenisers_own_with_zeros_behind_the_end(file):
    made = step(file, 8)(cells("my card", "", "rate", "my card"))
    whole = tokeniser_of(file.read_bytes(), "t")
    ids = whole.encode("my card").ids
    assert made.dtype == np.int64
    assert made.tolist()[0] == ids + [0] * (8 - len(ids))
    assert made.tolist()[1] == [0] * 8  # missing: not even the marks
    assert made.tolist()[3] == made.tolist()[0]


def test_what_the_file_says_of_padding_and_cutting_does_not_count(file, tmp_path):
    """Sentence encoders ship files that pad everything to 128."""
    whole = tokeniser_of(file.read_bytes(), "t")
    whole.enable_padding(length=40, pad_id=0, pad_token="[PAD]")
    whole.enable_truncation(3)
    whole.save(str(tmp_path / "tokenizer.json"))
    assert step(tmp_path / "tokenizer.json", 12)(cells("where is my card")).tolist() == step(file, 12)(cells("where is my card")).tolist()


def test_a_long_text_keeps_its_marks_and_is_counted(file):
    made = step(file, 5)
    (row,) = made(cells("card " * 30)).tolist()
    marks = [made._tokeniser.token_to_id(mark) for mark in ("[CLS]", "[SEP]")]
    assert [row[0], row[-1]] == marks
    assert made.cut == 1
    made(cells("card", "card " * 9, "card " * 9))
    assert made.cut == 3


def test_a_padding_token_that_is_not_0_is_exchanged_with_it(tmp_path):
    """RoBERTa's id 0 begins every text, and 1 pads: here 0 must mean nothing."""
    marks = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")
    file = wordpiece(tmp_path, special=marks)
    state = fit(file, ["my card"], max_length=8)
    assert state.pad == 1
    ids = tokeniser_of(file.read_bytes(), "t").encode("my card").ids
    assert ids[0] == 0
    (row,) = step(file, 8, state.pad)(cells("my card")).tolist()
    assert row == [1, *ids[1:], *[0] * (8 - len(ids))]


def test_a_fit_counts_rows_and_texts_that_are_cut(file):
    state = fit(file, ["card " * 20, None, "card", "", "card " * 20], max_length=6)
    assert (state.rows, state.missing, state.distinct, state.cut, state.length) == (5, 2, 2, 2, 6)
    assert state.size == tokeniser_of(file.read_bytes(), "t").get_vocab_size()
    assert state.remarks() == ["t: 2 of 3 train texts have more than 6 tokens; the rest of them is not read (`max_length`)"]
    assert "no value" in fit(file, [None, ""]).remarks()[0]


def test_a_tokeniser_for_another_language_is_noticed(file):
    """It would read every text as the same unknown tokens, and no error would say so."""
    assert fit(file, ["カードはどこ", "新しい"]).unknown == 1.0
    told = "t: 33% of the train tokens are unknown to the tokeniser; is it for another language?"
    assert fit(file, ["カード", "my card"]).remarks() == [told]
    assert fit(file, ["my card", "the rate"]).unknown == 0.0


def test_a_vocabulary_is_known_by_its_content(file, tmp_path):
    """The same vocabulary in a file written otherwise is the same; another one is another."""
    (tmp_path / "same").mkdir()
    same = tmp_path / "same" / "tokenizer.json"
    same.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")), indent=3), encoding="utf-8")
    one, two, other = fit(file, ["a"]), fit(same, ["a"]), fit(wordpiece(tmp_path / "other", ["something else"]), ["a"])
    assert (one.vocabulary == two.vocabulary, one.digest == two.digest) == (True, False)
    assert one.vocabulary != other.vocabulary


def test_a_folder_stands_for_its_file(file):
    feature = Tokens.model_validate({"columns": ["t"], "tokeniser": file.parent.name})
    assert feature.files(file.parent.parent) == [(f"{file.parent.name}/tokenizer.json", file)]


def test_what_is_no_tokeniser_is_refused(file, tmp_path):
    with pytest.raises(DataError, match=r"the tokeniser gone/x\.json is not there"):
        Tokens.model_validate({"columns": ["t"], "tokeniser": "gone/x.json"}).files(tmp_path)
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "vocab.txt").write_text("a\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"slow/tokenizer.json is not there .*, only vocab.txt"):
        Tokens.model_validate({"columns": ["t"], "tokeniser": "slow"}).files(tmp_path)
    bad = tmp_path / "tokenizer.json"
    bad.write_text("{}", encoding="utf-8")
    with pytest.raises(SpecError, match="is no tokeniser"):
        fit(bad, ["a"])
    bad.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="is no tokeniser"):
        fit(bad, ["a"])
    with pytest.raises(ValidationError):
        fit(file, ["a"], max_length=3)


def test_a_tokeniser_without_a_padding_token_is_refused(tmp_path):
    file = wordpiece(tmp_path, special=[mark for mark in WORDS if mark != "[PAD]"])
    with pytest.raises(SpecError, match="has no padding token"):
        fit(file, ["a"])


def test_a_step_checks_its_version_and_its_file(file):
    """Ids of another tokeniser would be a wrong answer without a word."""
    folder = file.parent
    (folder / "tokeniser").mkdir(exist_ok=True)
    copy = folder / "tokeniser" / file.name
    copy.write_bytes(file.read_bytes())
    state = fit(file, ["my card"], max_length=8)
    made = {"column": "t", "step": STEP, "version": 1, "settings": step_settings(file.name, state.digest, state.length, state.pad)}
    assert tokenisers([made], folder)["t"](cells("my card")).tolist() == step(file, 8)(cells("my card")).tolist()
    assert tokenisers([{**made, "step": "another"}], folder) == {}
    with pytest.raises(IntegrityError, match="has version 2, and this mlpipe knows 1"):
        tokenisers([{**made, "version": 2}], folder)
    copy.write_text(copy.read_text(encoding="utf-8").replace("card", "cord"), encoding="utf-8")
    with pytest.raises(IntegrityError, match="is not the tokeniser that the model was made with"):
        tokenisers([made], folder)
    copy.unlink()
    with pytest.raises(IntegrityError, match="cannot be read"):
        tokenisers([made], folder)


@pytest.mark.parametrize(
    "text", ["\x00", "e\u0301\u0327", "\U0001f600" * 50, "\u05e9\u05dc\u05d5\u05dd \u202e", " \t\n", "[PAD] [CLS]", "x" * 100_000]
)
def test_every_text_has_ids(file, text):
    made = step(file, 16)(cells(text))
    assert made.shape == (1, 16)
    assert made.min() >= 0
    assert made.max() < 120
