"""Export target `onnx`: one self-contained file that takes raw rows."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from mlpipe.base import Settings

HIGHEST_IR = 10  # what onnxruntime 1.18 and later read
LOWEST_RUNTIME = "1.18"


class Onnx(Settings):
    """ONNX with a pinned operator set and format version, so that older runtimes load it; both stand in the manifest.

    `tolerance` bounds |exported - trained| of every score: a probability as it stands, a prediction divided by the larger of its
    own size and the deviation of the train targets (with `transform: log` by its own size).
    """

    kind: Literal["onnx"] = "onnx"
    opset: Annotated[int, Field(ge=18, le=20)] = 20
    ir_version: Annotated[int, Field(ge=8)] = HIGHEST_IR
    tolerance: Annotated[float, Field(gt=0)] = 1e-5

    @field_validator("ir_version")
    @classmethod
    def _readable(cls, value: int) -> int:
        if value > HIGHEST_IR:
            raise ValueError(f"ir_version {value} is newer than {HIGHEST_IR}, the newest that onnxruntime {LOWEST_RUNTIME} reads")
        return value
