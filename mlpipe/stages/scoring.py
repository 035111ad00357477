"""Answers of an exported model, shaped as the trained model's. Needs onnxruntime, never torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mlpipe.errors import IntegrityError, ParityError
from mlpipe.exporters.parity import in_batches
from mlpipe.exporters.targets import HIGHEST_IR
from mlpipe.features.encode import rows_at_once, session
from mlpipe.features.graph import AT_ONCE


class Exported:
    """A loaded model.onnx: raw arrays `[rows, 1]` by column name -> scores and labels."""

    def __init__(self, model: bytes, name: str, threads: int = 0) -> None:
        try:
            self._session = session(model, threads)
        except Exception as fault:  # noqa: BLE001 (onnxruntime raises classes of its own for a file that it does not take)
            raise IntegrityError(
                f"{name} cannot be loaded: {_versions(model)}{str(fault).splitlines()[0]}", hint="export it again"
            ) from None
        self.outputs = [output.name for output in self._session.get_outputs()]
        self.inputs = [(value.name, value.type, value.shape) for value in self._session.get_inputs()]
        self.at_once = rows_at_once(self._session) if AT_ONCE in self._session.get_modelmeta().custom_metadata_map else None

    def __call__(self, rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
        """Scores float64 [N, K] and labels object [N], or predictions float64 [N, 1] and None.

        A model of long texts takes only some rows at once, as its file says, so that their tokens do not fill the memory.
        """
        if self.at_once and len(next(iter(rows.values()))) > self.at_once:
            found: tuple[np.ndarray, np.ndarray | None] = in_batches(self._some, rows, self.at_once)
            return found
        return self._some(rows)

    def _some(self, rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
        if "label" in self.outputs:
            labels, scores = self._run(["label", "probability"], rows)
            return scores.astype(np.float64), labels
        (prediction,) = self._run(["prediction"], rows)
        return prediction.reshape(-1, 1).astype(np.float64), None

    def _run(self, outputs: list[str], rows: dict[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs. Raises ParityError when the graph fails on these rows, as one with a frozen batch size does."""
        try:
            found: list[np.ndarray] = self._session.run(outputs, rows)
        except Exception as fault:  # noqa: BLE001 (onnxruntime raises classes of its own)
            count = len(next(iter(rows.values())))
            raise ParityError(
                f"the exported model fails on a batch of {count:,} rows: {str(fault).splitlines()[0][:300]}",
                hint="the model's code must not depend on the number of rows or on their values",
            ) from None
        return found

    def check_batch_axis(self) -> None:
        """Raises ParityError when an input's batch axis is not free and named."""
        frozen: Sequence[str] = [name for name, _, shape in self.inputs if not isinstance(shape[0], str)]
        if frozen:
            raise ParityError(f"the batch axis of {', '.join(frozen)} is not free")


def _versions(model: bytes) -> str:
    """Both format versions when the file's is newer than what is read here."""
    import onnx

    try:
        found = onnx.load_model_from_string(model).ir_version
    except Exception:  # noqa: BLE001 (any parser's complaint means that this is no ONNX file)
        return "it is no ONNX file; "
    return f"its format version is {found}, and this runtime is sure to read up to {HIGHEST_IR}; " if found > HIGHEST_IR else ""


def load_exported(path: Path, threads: int = 0) -> Exported:
    """The model in a file. Raises IntegrityError when it is not there or cannot be loaded."""
    try:
        return Exported(path.read_bytes(), str(path), threads)
    except OSError as fault:
        raise IntegrityError(
            f"{path} cannot be read: {(fault.strerror or str(fault)).lower()}", hint="is it the folder that export wrote?"
        ) from None
