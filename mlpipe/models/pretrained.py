"""Model `pretrained`: a text encoder of Hugging Face's from a local folder, frozen or trained on, and a head."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from mlpipe.base import expand, read_json
from mlpipe.errors import DataError, SpecError, listed
from mlpipe.models.text import TextModel
from mlpipe.schema import Tensors

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import nn

CONFIG, WEIGHTS, TOKENISER = "config.json", "model.safetensors", "tokenizer.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
RELATIVE = "(relative to the pipeline file's folder)"
SAVE = "transformers' `model.save_pretrained(FOLDER)` writes config.json and model.safetensors"


class Pretrained(TextModel):
    """A text encoder from a folder of Hugging Face's (config.json, model.safetensors), for texts of the feature `tokens`.

    `freeze` leaves it as it is and trains the head alone: each text then goes through it once, before the first epoch. Otherwise
    all of it is trained; take a small rate, such as 0.00003. Weights are read from safetensors only, and nothing is fetched.
    """

    needs: ClassVar[tuple[str, ...]] = ("tokens",)

    kind: Literal["pretrained"] = "pretrained"
    path: Annotated[str, Field(min_length=1)]
    freeze: bool = True
    pooling: Literal["mean", "first"] = "mean"
    _base: Path | None = PrivateAttr(default=None)

    @classmethod
    def locations(cls) -> frozenset[str]:
        """The path keeps `${env:NAME}` as it is."""
        return frozenset({"path"})

    def resolved_against(self, base: Path) -> Pretrained:
        """Knows the pipeline file's folder."""
        copy = self.model_copy()
        copy._base = base  # noqa: SLF001 (its own class)
        return copy

    def _folder(self, base: Path | None) -> Path:
        folder: Path = (base or Path()) / expand(self.path)
        return folder

    def files(self, base: Path) -> list[tuple[str, Path]]:
        """config.json and model.safetensors. Raises DataError when one is not there; weights that are a pickle are never read."""
        folder = self._folder(base)
        if not folder.is_dir():
            raise DataError(f"train.model.path: there is no folder {self.path} {RELATIVE}", hint=SAVE)
        if not (folder / CONFIG).is_file():
            raise DataError(f"train.model.path: {self.path} holds no {CONFIG}", hint=f"{SAVE}; name that folder")
        if not (folder / WEIGHTS).is_file():
            if list(folder.glob("model*.safetensors")):
                raise DataError(
                    f"train.model.path: the weights in {self.path} are in several files, and one {WEIGHTS} is read",
                    hint='`model.save_pretrained(FOLDER, max_shard_size="100GB")` writes one',
                )
            pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
            if pickles:
                raise DataError(
                    f"train.model.path: {self.path} has its weights as {listed(pickles, 3)}, a pickle, which can run any code; not read",
                    hint=f"turn it into {WEIGHTS} where you trust it: `AutoModel.from_pretrained(FOLDER).save_pretrained(NEW)`",
                )
            raise DataError(f"train.model.path: {self.path} holds no {WEIGHTS}", hint=SAVE)
        shown = self.path.rstrip("/")
        found = [(f"{shown}/{name}", folder / name) for name in (CONFIG, WEIGHTS)]
        if (folder / TOKENISER).is_file():  # it says whether the texts' tokeniser is the one that the weights were made with
            found.append((f"{shown}/{TOKENISER}", folder / TOKENISER))
        return found

    def measure(self, encoded: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """The encoder's config, so that the trained model needs the folder no more, and the vocabulary of its tokeniser."""
        from mlpipe.features.tokeniser import tokeniser_of, vocabulary_digest

        files = self.files(self._base or Path())
        shown, path = files[0]
        try:
            config = read_json(path)
            name = config["model_type"]
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise SpecError(f"train.model.path: {shown} is no config of a model: {fault!r}", hint=SAVE) from None
        known = _kinds()
        if name not in known:
            raise SpecError(
                f"train.model.path: {shown} is of the kind {name!r}, which transformers does not know",
                hint="code that comes with a model is not run; take an encoder such as BERT, DistilBERT, RoBERTa or MPNet",
            )
        vocabulary = None
        if len(files) > 2:
            shown, path = files[2]
            vocabulary = vocabulary_digest(tokeniser_of(path.read_bytes(), shown))
        plain = {key: value for key, value in config.items() if key not in VOLATILE and not key.startswith("_")}
        return {"config": plain, "vocabulary": vocabulary}

    def texts(self, tensors: Tensors, arguments: Mapping[str, Any]) -> nn.Module:
        """The encoder, not yet loaded. Raises SpecError when encoder and tokens do not fit each other."""
        from mlpipe.models import pretraining

        if words := [sequence.column for sequence in tensors.text if sequence.unit != "tokens"]:
            raise SpecError(
                f"the model 'pretrained' reads tokens, and {words[0]!r} gives words and characters",
                hint="give it the feature: {kind: tokens, columns: [...], tokeniser: FOLDER}, or take the model mlp",
            )
        for sequence in tensors.text:
            wanted = arguments["vocabulary"]
            if wanted and sequence.vocabulary and wanted != sequence.vocabulary:
                raise SpecError(
                    f"the tokeniser of {sequence.column!r} is not that of {self.path}: the same ids would mean other words",
                    hint=f"set the feature's tokeniser: {self.path}",
                )
        return pretraining.Encoded(tensors.text, arguments["config"], self.path, self.pooling, self.freeze)

    def load(self, net: nn.Module) -> None:
        """The encoder's weights from model.safetensors. Raises SpecError when they do not fit config.json."""
        from mlpipe.models import pretraining

        pretraining.load(pretraining.texts_of(net), self._folder(self._base), self.path)

    def ahead(self, net: nn.Module, tensors: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """With `freeze`: each text's vector, float32 [N, width], in place of its ids."""
        from mlpipe.models import pretraining

        if not self.freeze:
            return tensors
        return {**tensors, "text": pretraining.texts_of(net).vectors(tensors["text"])}


VOLATILE = {"transformers_version", "auto_map", "architectures", "torch_dtype", "dtype", "use_cache"}  # say nothing of the network


def _kinds() -> Any:
    """The kinds of encoder that transformers can build by itself. Raises SpecError without the package."""
    try:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    except ImportError:
        raise SpecError(
            "the model 'pretrained' needs the package transformers, which is not installed", hint="pip install transformers"
        ) from None
    return CONFIG_MAPPING
