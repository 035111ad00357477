"""The network behind `pretrained`: an encoder of transformers', pooled to one vector a text.

Letters: B rows, L ids of one column, W width of the encoder.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mlpipe.console import console
from mlpipe.errors import SpecError, listed
from mlpipe.features.base import TextSequence
from mlpipe.models.texts import PAD, exporting, trimmed

TOKENS = {
    "cpu": 1024
}  # that go through the encoder at once where no gradient is kept: measured a fifth faster than 4,096, which leave the cache
MOST_TOKENS = 65_536  # the same on an accelerator
BLOCK = 2048  # rows that are sorted by length together


class Encoded(nn.Module):
    """Ids int64 [B, sum of L] of one or more columns -> float32 [B, columns * W]: the pooled answer of one encoder for all columns.

    `mean` is over a text's tokens, `first` the first token's vector. A missing text is 0. Vectors, float32, pass as they are:
    they are what `vectors` made of ids.
    """

    def __init__(self, sequences: Sequence[TextSequence], config: Mapping[str, Any], path: str, pooling: str, freeze: bool) -> None:
        super().__init__()
        self.encoder = new_encoder(config, path)
        self.pooling, self.freeze = pooling, freeze
        self.lengths = [sequence.length for sequence in sequences]
        self.pads = [sequence.pad for sequence in sequences]
        self._check(sequences, path)
        self.width = self.each * len(self.lengths)
        if freeze:
            self.encoder.requires_grad_(False).eval()

    def _check(self, sequences: Sequence[TextSequence], path: str) -> None:
        """Raises SpecError when the encoder lacks words or places for the tokens."""
        config: Any = self.encoder.config
        for sequence in sequences:
            if sequence.size > config.vocab_size:
                raise SpecError(
                    f"the tokeniser of {sequence.column!r} has ids up to {sequence.size - 1:,}, "
                    f"and {path} knows {config.vocab_size:,} tokens",
                    hint=f"set the feature's tokeniser to the one that belongs to {path}",
                )
            if config.pad_token_id is not None and config.pad_token_id != sequence.pad:
                raise SpecError(
                    f"the tokeniser of {sequence.column!r} pads with id {sequence.pad}, and {path} with {config.pad_token_id}",
                    hint=f"set the feature's tokeniser to the one that belongs to {path}",
                )
        training = self.encoder.training
        self.encoder.eval()
        longest = max(sequences, key=lambda sequence: sequence.length)
        whole = torch.full((1, longest.length), min(2 + longest.pad, longest.size - 1))
        try:
            with torch.no_grad():
                self.each = int(self._states(whole, torch.ones_like(whole)).shape[-1])
        except (IndexError, RuntimeError, ValueError, TypeError, AttributeError) as fault:
            places = getattr(config, "max_position_embeddings", None)
            told = f" (it has {places:,} places)" if places else ""
            raise SpecError(
                f"{path} cannot read {longest.length:,} tokens of {longest.column!r}{told}: {str(fault).splitlines()[0][:150]}",
                hint="lower the feature's max_length, or take an encoder of texts such as BERT",
            ) from None
        self.encoder.train(training)

    def train(self, mode: bool = True) -> Encoded:
        """A frozen encoder stays in evaluation mode: its own dropout would blur what it knows."""
        super().train(mode)
        if self.freeze:
            self.encoder.eval()
        return self

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, sum of L] -> [B, columns * W]; vectors [B, columns * W] -> the same."""
        if codes.is_floating_point():
            return codes
        parts = [self._column(part, pad) for part, pad in zip(torch.split(codes, self.lengths, 1), self.pads, strict=True)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _column(self, codes: torch.Tensor, pad: int) -> torch.Tensor:
        """[B, L] -> [B, W]."""
        if exporting() or (self.training and not self.freeze):
            return self._pooled(trimmed(codes), pad)
        with torch.no_grad() if self.freeze else contextlib.nullcontext():
            return self._sorted(codes, pad)

    def _sorted(self, codes: torch.Tensor, pad: int) -> torch.Tensor:
        """The same, in small batches of texts of like length: long texts do not widen the short."""
        used = (codes > PAD) * torch.arange(1, codes.shape[1] + 1, device=codes.device)
        lengths, order = used.amax(1).sort(stable=True)
        found = torch.empty(codes.shape[0], self.each, device=codes.device)
        start, sizes, most = 0, lengths.tolist(), TOKENS.get(codes.device.type, MOST_TOKENS)
        while start < len(sizes):
            end = start + 1
            while end < len(sizes) and (end + 1 - start) * max(1, sizes[end]) <= most:
                end += 1
            rows = order[start:end]
            found[rows] = self._pooled(codes[rows, : max(1, sizes[end - 1])], pad)
            start = end
        return found

    def _pooled(self, codes: torch.Tensor, pad: int) -> torch.Tensor:
        """[B, L] -> [B, W]. A missing text attends to its first place, so that no row is without any, and gives 0."""
        present = codes > PAD
        ids = torch.where(present, codes, pad)
        if pad:  # the ids of 0 and of the padding token were exchanged at the door
            ids = torch.where(codes == pad, 0, ids)
        seen = torch.cat([torch.ones_like(present[:, :1]), present[:, 1:]], 1)
        states = self._states(ids, seen.long())
        weights = present.to(states.dtype)
        if self.pooling == "first":
            return states[:, 0] * weights[:, :1]
        total = (states * weights.unsqueeze(2)).sum(1)
        found: torch.Tensor = total / weights.sum(1, keepdim=True).clamp(min=1.0)
        return found

    def _states(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return found

    def vectors(self, codes: torch.Tensor) -> torch.Tensor:
        """Ids [N, sum of L] (int32 or int64, perhaps a mapped file) -> float32 [N, columns * W], in evaluation mode, where the ids are."""
        found = torch.empty(codes.shape[0], self.width, device=codes.device)
        with torch.no_grad(), console.progress("encoding texts", codes.shape[0]) as bar:
            for start in range(0, codes.shape[0], BLOCK):
                part = codes[start : start + BLOCK].long()
                found[start : start + len(part)] = self.eval()(part)
                bar.advance(len(part))
        return found


def new_encoder(config: Mapping[str, Any], path: str) -> nn.Module:
    """The encoder that a config describes, its weights drawn from torch's current generator. Raises SpecError for what is none."""
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    with quiet():
        try:
            settings = CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))
            if getattr(settings, "is_encoder_decoder", False) or not isinstance(getattr(settings, "vocab_size", None), int):
                raise ValueError("it is no encoder of texts")
            encoder: nn.Module = AutoModel.from_config(settings, attn_implementation="eager", dtype=torch.float32)
        except (ValueError, TypeError, KeyError, AttributeError, ImportError, RuntimeError) as fault:
            raise SpecError(
                f"train.model.path: transformers cannot build the {config['model_type']} of {path}: {str(fault).splitlines()[0][:200]}",
                hint="take an encoder such as BERT, DistilBERT, RoBERTa or MPNet",
            ) from None
    if hasattr(encoder, "pooler"):  # a head of its own, of which nothing is used here
        encoder.pooler = None  # type: ignore[assignment]  # what its own code sets where no such head is asked for
    return encoder


def texts_of(net: nn.Module) -> Encoded:
    """The part of the network that reads texts."""
    texts = net.texts
    assert isinstance(texts, Encoded)  # `Pretrained.build` put it there
    return texts


def load(texts: Encoded, folder: Path, path: str) -> None:
    """Puts the weights of `folder` into the encoder: model.safetensors and nothing else, from this disk and nowhere else.

    Raises SpecError when a weight is missing, or has another shape than config.json says.
    """
    from transformers import AutoModel

    wanted = texts.encoder.state_dict()
    with quiet():
        try:
            found, report = AutoModel.from_pretrained(
                folder,
                config=texts.encoder.config,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except Exception as fault:  # transformers and safetensors raise classes of many kinds
            raise SpecError(
                f"train.model.path: the weights in {path} cannot be read: {str(fault).splitlines()[0][:200]}",
                hint="is the file whole? model.safetensors and config.json belong together",
            ) from fault
    weights = found.state_dict()
    absent = [name for name in wanted if name not in weights or name in set(report["missing_keys"])]
    if absent:
        raise SpecError(
            f"train.model.path: model.safetensors in {path} lacks {len(absent):,} of {len(wanted):,} weights of the encoder: "
            f"{listed(absent, 3)}",
            hint="model.safetensors and config.json belong together",
        )
    odd = [name for name, weight in wanted.items() if weights[name].is_floating_point() and not bool(torch.isfinite(weights[name]).all())]
    if odd:
        raise SpecError(f"train.model.path: weights in {path} are not finite: {listed(odd, 3)}", hint="is the file whole?")
    if unused := sorted(report["unexpected_keys"]):  # heads, as a rule; or layers that config.json does not have
        console.say(f"  {path}: {len(unused):,} weights are not used: {listed(unused, 3)}")
    texts.encoder.load_state_dict({name: weights[name] for name in wanted})


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """While this holds transformers neither prints nor shows bars: what matters is raised."""
    from transformers.utils import logging as talk

    level, bars = talk.get_verbosity(), talk.is_progress_bar_enabled()
    talk.set_verbosity(logging.CRITICAL)
    talk.disable_progress_bar()
    try:
        yield
    finally:
        talk.set_verbosity(level)
        if bars:
            talk.enable_progress_bar()
