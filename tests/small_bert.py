"""A folder as Hugging Face's models come in, made here: a BERT of two layers with drawn weights, and its WordPiece tokeniser."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TEXTS = (
    *("please send my card to the new address", "the card has not arrived yet", "where is my card", "my new card is lost"),
    *("what is the exchange rate of the euro", "which rate do you take for dollars", "exchange my euros", "the rate was wrong"),
)


def wordpiece(folder: Path, texts: Sequence[str] = TEXTS, *, special: Sequence[str] = WORDS, size: int = 120) -> Path:
    """tokenizer.json: lower case, words of these texts and letters, [CLS] and [SEP] around each; always `size` tokens.

    Put together by hand: what the package's trainer gives differs from process to process.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = [word for text in texts for word in text.lower().split()]
    pieces = [sign for letter in string.ascii_lowercase for sign in (letter, f"##{letter}")]
    tokens = list(dict.fromkeys([*special, *pieces, *words]))
    tokens += [f"[unused{number}]" for number in range(size - len(tokens))]
    assert len(tokens) == size
    made = Tokenizer(models.WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens([*special])
    ends = [(mark, made.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def small_bert(folder: Path, *, kind: str = "bert", tokeniser: bool = True, **changes: Any) -> Path:
    """The folder: config.json, model.safetensors, tokenizer.json. `kind` is a name of transformers' for an encoder."""
    import torch
    from transformers import AutoConfig, AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    if tokeniser:
        wordpiece(folder)
    usual = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48} if kind == "distilbert" else usual
    with torch.random.fork_rng():
        torch.manual_seed(11)
        config = AutoConfig.for_model(kind, **{"vocab_size": 120, "max_position_embeddings": 64, "pad_token_id": 0, **sizes, **changes})
        config.initializer_range = changes.get("initializer_range", 0.08)  # so that texts differ in their vectors, by their words
        AutoModel.from_config(config).save_pretrained(folder)
    return folder
