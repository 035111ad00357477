"""The host step `text to token ids`: a tokeniser of Hugging Face's, run at the door because no graph can do it.

Prepare, evaluate, export and predict have their texts turned into ids here and nowhere else, by the package tokenizers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.digest import canonical, sha256_bytes
from mlpipe.errors import IntegrityError, MachineError, SpecError

if TYPE_CHECKING:
    import tokenizers

STEP = "text to token ids"
VERSION = 1
FOLDER = "tokeniser"  # beside a schema.json: the files that its steps name
PADS = ("[PAD]", "<pad>", "<|pad|>", "<PAD>", "[pad]")
AT_ONCE = 1024  # texts whose tokens are held at once: the package keeps offsets and pieces of each


def tokeniser_of(data: bytes, name: str) -> tokenizers.Tokenizer:
    """The tokeniser in the bytes of a tokenizer.json. Raises MachineError without the package, SpecError when it is none."""
    try:
        import tokenizers
    except ImportError:
        raise MachineError("token ids need the package tokenizers, which is not installed", hint="pip install tokenizers") from None
    try:
        found = tokenizers.Tokenizer.from_str(data.decode("utf-8"))
    except Exception as fault:  # noqa: BLE001 (the package raises plain Exception)
        raise SpecError(f"{name} is no tokeniser: {str(fault).splitlines()[0][:200]}", hint=MAKE) from None
    return found


MAKE = "transformers' `tokenizer.save_pretrained(FOLDER)` writes tokenizer.json"


def pad_of(tokeniser: tokenizers.Tokenizer, data: bytes, name: str) -> int:
    """The id of the padding token: the file's own setting, or a token that is called so. Raises SpecError when there is none."""
    said = json.loads(data).get("padding")
    if said and isinstance(said.get("pad_id"), int):
        return int(said["pad_id"])
    for token in PADS:
        if (found := tokeniser.token_to_id(token)) is not None:
            return int(found)
    raise SpecError(
        f"{name} has no padding token ({', '.join(PADS[:2])})", hint="take the tokeniser of an encoder such as BERT, or give it one"
    )


def unknown_of(tokeniser: tokenizers.Tokenizer, data: bytes) -> int | None:
    """The id of what the tokeniser does not know; None where it has none, since it falls back to bytes."""
    made = json.loads(data)["model"]
    name, number = made.get("unk_token"), made.get("unk_id")
    found = tokeniser.token_to_id(name) if isinstance(name, str) else number
    return int(found) if isinstance(found, int) else None


def vocabulary_digest(tokeniser: tokenizers.Tokenizer) -> str:
    """sha256 of which text has which id: equal for two files that say it in different ways."""
    return sha256_bytes(canonical(tokeniser.get_vocab(with_added_tokens=True)))


class Tokeniser:
    """Texts to codes, int64 [rows, length]: 0 behind the end, and where a text is missing.

    A code is the tokeniser's id, but for a tokeniser whose padding token is not 0: there the two ids are exchanged, so that 0
    is never a token. `cut` counts texts that have more tokens than `length`.
    """

    def __init__(self, tokeniser: tokenizers.Tokenizer, length: int, pad: int) -> None:
        self._tokeniser, self.length, self.pad = tokeniser, length, pad
        self._tokeniser.no_padding()
        self._tokeniser.enable_truncation(length)
        self._lock = threading.Lock()
        self.cut = 0

    def __call__(self, texts: np.ndarray) -> np.ndarray:
        """Object [rows, 1] or [rows] of texts, "" for missing -> int64 [rows, length]. Equal texts are cut once."""
        cells = texts.reshape(-1).tolist()
        numbers: dict[str, int] = {}
        where = np.fromiter((numbers.setdefault(text, len(numbers)) for text in cells), dtype=np.int64, count=len(cells))
        codes, longer = self._distinct(list(numbers))
        with self._lock:
            self.cut += int(longer[where].sum())
        found: np.ndarray = codes[where]
        return found

    def _distinct(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Codes of each text, and whether it is cut."""
        codes = np.zeros((len(texts), self.length), dtype=np.int64)
        longer = np.zeros(len(texts), dtype=bool)
        for row, coded in enumerate(self._encoded(texts)):
            if texts[row]:
                ids = coded.ids
                codes[row, : len(ids)] = exchanged(np.array(ids, dtype=np.int64), self.pad)
                longer[row] = bool(coded.overflowing)
        return codes, longer

    def looked_at(self, counts: Mapping[str, int], unknown: int | None) -> tuple[int, float]:
        """How many of the texts, each there so many times, are cut; of the tokens of the different ones, what share is `unknown`."""
        cut = tokens = without = 0
        for n, coded in zip(counts.values(), self._encoded(list(counts)), strict=True):
            cut += n if coded.overflowing else 0
            own = [number for number, mark in zip(coded.ids, coded.special_tokens_mask, strict=True) if not mark]
            tokens += len(own)
            without += own.count(unknown) if unknown is not None else 0
        return cut, round(without / tokens, 6) if tokens else 0.0

    def _encoded(self, texts: list[str]) -> Iterator[tokenizers.Encoding]:
        for start in range(0, len(texts), AT_ONCE):
            yield from self._tokeniser.encode_batch(texts[start : start + AT_ONCE])


def exchanged(ids: Any, pad: int) -> Any:
    """Ids with 0 and `pad` exchanged; done twice it changes nothing. An array, and where `pad` is 0 the same one."""
    return ids if pad == 0 else np.where(ids == 0, pad, np.where(ids == pad, 0, ids))


def step_settings(file: str, digest: str, length: int, pad: int) -> dict[str, str]:
    """What a schema says of the step for one column, as text; `file` lies in `FOLDER`."""
    return {"tokeniser": f"{FOLDER}/{file}", "sha256": digest, "max_length": str(length), "pad": str(pad)}


def tokenisers(steps: Iterable[Mapping[str, Any]], folder: Path) -> dict[str, Tokeniser]:
    """The tokenisers by column of a schema's host steps (`column`, `step`, `version`, `settings`), whose files lie in `folder`.

    Raises IntegrityError for a step of another version, and for a file that is not the one that the step was made with.
    """
    found: dict[str, Tokeniser] = {}
    for step in steps:
        if step["step"] != STEP:
            continue
        settings = step["settings"]
        if step["version"] != VERSION:
            raise IntegrityError(
                f"{step['column']}: the step {STEP!r} has version {step['version']}, and this mlpipe knows {VERSION}",
                hint="run it with the mlpipe that made it, or run prepare again",
            )
        path = folder / settings["tokeniser"]
        try:
            data = path.read_bytes()
        except OSError as fault:
            raise IntegrityError(f"{path} cannot be read: {(fault.strerror or str(fault)).lower()}", hint="put the file back") from None
        if sha256_bytes(data) != settings["sha256"]:
            raise IntegrityError(f"{path} is not the tokeniser that the model was made with", hint="put the file back")
        found[step["column"]] = Tokeniser(tokeniser_of(data, str(path)), int(settings["max_length"]), int(settings["pad"]))
    return found


def tokenised(arrays: Mapping[str, np.ndarray], steps: Mapping[str, Tokeniser]) -> dict[str, np.ndarray]:
    """Arrays by column, with those of `steps` turned from texts into codes."""
    return {name: steps[name](array) if name in steps else array for name, array in arrays.items()}
