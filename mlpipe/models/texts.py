"""Networks that turn sequences of codes into one vector a text: a bag, a convolution, a transformer.

Letters: B rows, L codes of a sequence, W width of an embedding, K windows of a convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from mlpipe.features.base import TextSequence

BLOCK = 64  # codes that are looked up at once in an exported graph, which would else hold all of them as vectors in memory
PAD = 0


def exporting() -> bool:
    """Whether torch traces the network for a file, where shapes must not depend on values."""
    return torch.compiler.is_compiling()


class Bag(nn.Module):
    """Codes int64 [B, L] of all sequences of one column -> float32 [B, W]: their embeddings averaged, 0 for an empty text.

    `mean` divides their sum by their number, `sqrt` by its root, so that a long text says more than a short one (TensorFlow's
    combiner `sqrtn`): measured to learn two to three times faster, and as well.
    Each sequence has a stretch of one table; code 0 is no token and takes no part. While training, each token is left out with
    probability `forget` (word dropout, Iyyer et al. 2015, https://aclanthology.org/P15-1162).
    """

    offsets: torch.Tensor

    def __init__(self, sequences: Sequence[TextSequence], width: int, forget: float, pooling: str = "sqrt") -> None:
        super().__init__()
        starts, at = [], 0
        for sequence in sequences:
            starts += [at] * sequence.length
            at += sequence.size - 1  # code 0 has no row of its own
        self.register_buffer("offsets", torch.tensor(starts), persistent=False)
        self.width, self.forget, self.pooling = width, forget, pooling
        self.table = nn.Parameter(torch.randn(at + 1, width) * width**-0.5)
        with torch.no_grad():
            self.table[PAD] = 0.0

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, L] -> [B, W]."""
        present = codes > PAD
        if self.training and self.forget:
            present = present & (torch.rand(codes.shape, device=codes.device) >= self.forget)
        rows = torch.where(present, codes + self.offsets, PAD)
        count = present.sum(1, keepdim=True).clamp(min=1)
        if exporting():
            total = torch.zeros(codes.shape[0], self.width, device=codes.device)
            for start in range(0, codes.shape[1], BLOCK):
                total = total + functional.embedding(rows[:, start : start + BLOCK], self.table).sum(1)
        else:
            ends = present.sum(1).cumsum(0)
            bounds = torch.cat([ends.new_zeros(1), ends[:-1]])
            total = functional.embedding_bag(rows[present], self.table, bounds, mode="sum")
        found: torch.Tensor = total / (count if self.pooling == "mean" else count.to(torch.float32).sqrt())
        return found


class Convolution(nn.Module):
    """Codes int64 [B, L] of one sequence -> float32 [B, K * channels]: the largest answer of each filter over its windows.

    After Kim 2014 (https://arxiv.org/abs/1408.5882). A window begins at a token and may reach beyond the end; an empty text is 0.
    """

    def __init__(self, sequence: TextSequence, width: int, channels: int, windows: Sequence[int], dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(sequence.size, width, padding_idx=PAD)
        self.filters = nn.ModuleList(nn.Conv1d(width, channels, window) for window in windows)
        self.windows, self.width = tuple(windows), channels * len(windows)
        self.dropout = nn.Dropout(dropout)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, L] -> [B, K * channels]."""
        codes = trimmed(codes)
        present = (codes > PAD).unsqueeze(1)
        tokens = self.dropout(self.table(codes)).transpose(1, 2)
        found = []
        for window, layer in zip(self.windows, self.filters, strict=True):
            answers = functional.relu(layer(functional.pad(tokens, (0, window - 1))))
            found.append((answers * present).amax(2))
        return torch.cat(found, 1)


class Attention(nn.Module):
    """One layer of a transformer encoder: self-attention, then two linear layers, each behind a normalisation (pre-norm)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """[B, L, W] with additive mask [B, 1, 1, L] -> [B, L, W]."""
        shape = (tokens.shape[0], tokens.shape[1], self.heads, -1)
        query, key, value = (part.reshape(shape).transpose(1, 2) for part in self.mix(self.before(tokens)).chunk(3, dim=-1))
        scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5) + mask
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).flatten(2)
        tokens = tokens + self.dropout(self.out(mixed))
        found: torch.Tensor = tokens + self.dropout(self.feed(self.after(tokens)))
        return found


class Transformer(nn.Module):
    """Codes int64 [B, L] of one sequence -> float32 [B, W]: the mean over the tokens of a transformer encoder.

    After Vaswani et al. 2017 (https://arxiv.org/abs/1706.03762), with learned positions and a first token of its own, which also
    stands for an empty text.
    """

    def __init__(self, sequence: TextSequence, width: int, layers: int, heads: int, length: int, dropout: float) -> None:
        super().__init__()
        self.width, self.length = width, min(length, sequence.length)
        self.table = nn.Embedding(sequence.size, width, padding_idx=PAD)
        self.first = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(self.length + 1, width) * 0.02)
        self.layers = nn.ModuleList(Attention(width, heads, dropout) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        with torch.no_grad():
            self.table.weight.mul_(0.02)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, L] -> [B, W]."""
        codes = trimmed(codes[:, : self.length])
        present = torch.cat([torch.ones_like(codes[:, :1]), (codes > PAD).long()], 1).to(torch.float32)
        tokens = torch.cat([self.first.expand(codes.shape[0], -1, -1), self.table(codes)], 1)
        tokens = self.dropout(tokens + self.positions[: codes.shape[1] + 1])
        mask = ((1.0 - present) * -1e9)[:, None, None, :]
        for layer in self.layers:
            tokens = layer(tokens, mask)
        weights = (present / present.sum(1, keepdim=True)).unsqueeze(2)
        found: torch.Tensor = (self.last(tokens) * weights).sum(1)
        return found


def trimmed(codes: torch.Tensor) -> torch.Tensor:
    """Codes [B, L] without the columns behind the longest text of the batch; all of them where a graph is made."""
    if exporting():
        return codes
    used = (codes > PAD).any(0).nonzero()
    return codes[:, : int(used[-1]) + 1 if len(used) else 1]


class Texts(nn.Module):
    """The tensor `text`, int64 [B, L] -> float32 [B, width]: one encoder for each text column, joined."""

    def __init__(self, sequences: Sequence[TextSequence], encoder: Callable[[Sequence[TextSequence]], tuple[nn.Module, int, int]]) -> None:
        """`encoder` makes the module of a column from its sequences, and says which codes it takes: from where, how many."""
        super().__init__()
        self.encoders, self.bounds, at = nn.ModuleList(), [], 0
        for column in dict.fromkeys(sequence.column for sequence in sequences):
            mine = [sequence for sequence in sequences if sequence.column == column]
            module, start, length = encoder(mine)
            self.encoders.append(module)
            self.bounds.append((at + start, at + start + length))
            at += sum(sequence.length for sequence in mine)
        widths: list[Any] = [module.width for module in self.encoders]
        self.width = int(sum(widths))

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, L] -> [B, width]."""
        parts = [encoder(codes[:, start:end]) for encoder, (start, end) in zip(self.encoders, self.bounds, strict=True)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def bags(sequences: Sequence[TextSequence], width: int, forget: float, pooling: str = "sqrt") -> Texts:
    """A bag of all the sequences of each column."""

    def encoder(mine: Sequence[TextSequence]) -> tuple[nn.Module, int, int]:
        return Bag(mine, width, forget, pooling), 0, sum(sequence.length for sequence in mine)

    return Texts(sequences, encoder)


def ordered(sequences: Sequence[TextSequence], unit: str, make: Callable[[TextSequence], nn.Module]) -> Texts:
    """A network over the tokens of each column in their order: those of `unit`, or else the column's first sequence."""

    def encoder(mine: Sequence[TextSequence]) -> tuple[nn.Module, int, int]:
        number = next((i for i, sequence in enumerate(mine) if (sequence.unit, sequence.order) == (unit, 1)), 0)
        return make(mine[number]), sum(sequence.length for sequence in mine[:number]), mine[number].length

    return Texts(sequences, encoder)
