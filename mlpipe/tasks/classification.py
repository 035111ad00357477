"""Task `classification`: two or more classes."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlpipe.columns import Column, text_counts
from mlpipe.errors import DataError, did_you_mean, listed
from mlpipe.tasks.base import FittedTask, Task

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

UNSEEN = -1


class FittedClassification(FittedTask):
    """Classes in order, and how many train rows each has.

    Two classes: one network output, the logit of the second (positive) class. More: one output a class.
    """

    kind: Literal["classification"] = "classification"
    classes: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def outputs(self) -> int:
        """1 for two classes, else their number."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def encode(self, values: pa.Array) -> np.ndarray:
        """Class numbers, int64 [rows]; -1 for a class that train lacks."""
        import pyarrow as pa

        array: Any = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        number = {name: i for i, name in enumerate(self.classes)}
        table = np.array([*(number.get(v, UNSEEN) for v in array.dictionary.to_pylist()), UNSEEN], dtype=np.int64)
        codes: np.ndarray = array.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)
        numbers: np.ndarray = table[codes]
        return numbers

    def loss(self, outputs: torch.Tensor, target: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
        """Cross-entropy, each row weighted by its class's weight if weights [classes] are given, over the weights' sum."""
        from torch.nn import functional

        if self.outputs > 1:
            return functional.cross_entropy(outputs, target, weight=weights)
        logits, truth = outputs[:, 0], target.to(outputs.dtype)
        if weights is None:
            return functional.binary_cross_entropy_with_logits(logits, truth)
        row = weights[target]
        return functional.binary_cross_entropy_with_logits(logits, truth, weight=row, reduction="sum") / row.sum()

    def activate(self, outputs: torch.Tensor) -> torch.Tensor:
        """Probabilities, float32 [B, classes]."""
        import torch

        if self.outputs > 1:
            return torch.softmax(outputs, dim=1)
        positive = torch.sigmoid(outputs)
        return torch.cat([1 - positive, positive], dim=1)

    def decode(self, scores: np.ndarray) -> np.ndarray:
        """The class with the largest probability; of equal ones the first."""
        labels: np.ndarray = np.array(self.classes, dtype=object)[scores.argmax(axis=1)]
        return labels

    def size(self, scores: np.ndarray) -> np.ndarray:
        """1: probabilities differ by what they differ by."""
        return np.ones_like(scores)

    def truth(self, values: pa.Array) -> np.ndarray:
        """Class names as they stand, unseen ones too; equal names are one object."""
        import pyarrow as pa

        coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        names: np.ndarray = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        found: np.ndarray = names[coded.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)]
        return found

    def baseline(self, rows: int) -> np.ndarray:
        """The train shares of the classes, for every row."""
        shares = np.array(self.counts, dtype=np.float64) / sum(self.counts)
        return np.broadcast_to(shares, (rows, len(shares)))  # one row, shown many times

    def summary(self) -> dict[str, Any]:
        """Rows of each class in train."""
        return {"classes": dict(zip(self.classes, self.counts, strict=True))}


class Classification(Task):
    """Two or more classes. With two, `positive` names the one that precision, recall and ROC AUC speak of (default: the last)."""

    kind: Literal["classification"] = "classification"
    positive: str | None = None

    def raw(self) -> Column:
        """Text: labels are names, also where they look like numbers."""
        return Column(name=self.target, type="text")

    def fit(self, values: pa.ChunkedArray) -> FittedClassification:
        """The classes of the train rows, in order of number where all are whole numbers, else of code points."""
        counts = text_counts(values)
        if len(counts) < 2:
            only = f"only one class: {next(iter(counts))}" if counts else "no value"
            raise DataError(
                f"the target {self.target!r} has {only} in the {len(values):,} train rows", hint="classification needs two classes or more"
            )
        alike: dict[str, list[str]] = {}
        for name in counts:
            alike.setdefault(re.sub(r"[\s\u200b-\u200d\u2060\ufeff]+", " ", unicodedata.normalize("NFKC", name)).strip(), []).append(name)
        if twins := [sorted(names) for names in alike.values() if len(names) > 1]:
            raise DataError(
                f"classes of {self.target!r} differ only in blanks or in the spelling of one sign",
                faults=[", ".join(f"{name!a} ({counts[name]:,} rows)" for name in names) for names in twins],
                hint="`strip: true` takes blanks off, `replace` maps one spelling to the other",
            )
        whole = all(re.fullmatch(r"-?[0-9]+", name) for name in counts)
        classes = sorted(counts, key=(lambda name: (int(name), name)) if whole else None)
        if self.positive is not None:
            if len(classes) > 2:
                raise DataError(
                    f"positive: {self.positive!r} is for two classes; {self.target!r} has {len(classes)}", hint="leave `positive` out"
                )
            if self.positive not in classes:
                raise DataError(
                    f"positive: {self.positive!r} is no class of {self.target!r} (it has: {listed(classes)})",
                    hint=did_you_mean(self.positive, classes) or "name one of them",
                )
            classes = sorted(classes, key=lambda name: name == self.positive)
        return FittedClassification(target=self.target, classes=tuple(classes), counts=tuple(counts[name] for name in classes))

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """The usual four."""
        return ("accuracy", "f1", "roc_auc", "log_loss")
