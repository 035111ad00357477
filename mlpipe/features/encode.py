"""Runs `encoder.onnx`: the only implementation of preprocessing. Prepare, evaluate, parity and predict all come through here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.columns import Column
from mlpipe.features.graph import AT_ONCE, ENCODED, MOST_AT_ONCE
from mlpipe.features.tokeniser import Tokeniser, tokenised

if TYPE_CHECKING:
    import onnx
    import onnxruntime as ort
    import pyarrow as pa

NO_STEPS: Mapping[str, Tokeniser] = MappingProxyType({})


def session(model: bytes, threads: int = 0) -> ort.InferenceSession:
    """An onnxruntime session on the CPU that neither spins while idle nor prints warnings. `threads` 0 is onnxruntime's choice."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def rows_at_once(run: ort.InferenceSession) -> int:
    """How many rows a run should take: what a graph makes on the way then stays in the processor's cache, or at least in memory."""
    return int(run.get_modelmeta().custom_metadata_map.get(AT_ONCE, MOST_AT_ONCE))


def feed(rows: pa.RecordBatch, columns: Iterable[Column], steps: Mapping[str, Tokeniser] = NO_STEPS) -> dict[str, np.ndarray]:
    """Typed raw rows as the arrays that a graph takes: `[rows, 1]`, string with "" for missing, or double with NaN.

    A timestamp becomes seconds since 1970-01-01; a text with one of the host `steps` becomes ids, int64 `[rows, length]`.
    """
    arrays = {}
    for column in columns:
        array: Any = rows.column(column.name)
        arrays[column.name] = (_texts(array) if column.type == "text" else doubles(array, column)).reshape(-1, 1)
    return tokenised(arrays, steps)


def doubles(array: pa.Array, column: Column) -> np.ndarray:
    """float64 [rows] of a number or timestamp column, NaN where a value is missing."""
    import pyarrow as pa

    if column.type == "timestamp":
        micros = array.cast(pa.int64())
        values: np.ndarray = micros.fill_null(0).to_numpy(zero_copy_only=False) / 1e6
        return np.where(array.is_null().to_numpy(zero_copy_only=False), np.nan, values)
    numbers: np.ndarray = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _texts(array: Any) -> np.ndarray:
    """Object [rows] of text, missing as "" (onnxruntime would turn a NaN into the text "nan")."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        table = np.array([*array.dictionary.to_pylist(), ""], dtype=object)
        codes: np.ndarray = array.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)
        texts: np.ndarray = table[codes]
        return texts
    return np.array(array.fill_null("").to_pylist(), dtype=object)


class Encoder:
    """Encodes typed raw rows with the graph, cheaply.

    A table of categories (a LabelEncoder right behind a text input) runs on the distinct values of a chunk instead of
    on every cell; its codes are then handed to the rest of the same graph. Both halves are cut from the model given, so
    the answer is the model's own: `tests/features/test_encode.py` compares the two.
    """

    def __init__(self, model: bytes, columns: Sequence[Column], threads: int = 0, steps: Mapping[str, Tokeniser] = NO_STEPS) -> None:
        import onnx

        self.columns, self.steps = list(columns), steps
        whole = onnx.load_model_from_string(model)
        self.tensors = [output.name.removeprefix(ENCODED) for output in whole.graph.output]
        tables, rest = split_tables(whole)
        self._tables = {column: session(part.SerializeToString(), 1) for column, part in tables.items()}
        self._rest = session(rest.SerializeToString(), threads)
        self._slice = rows_at_once(self._rest)

    def __call__(self, rows: pa.RecordBatch) -> dict[str, np.ndarray]:
        """The tensors of a batch, each `[rows, width]`."""
        arrays: dict[str, np.ndarray] = {}
        for column in self.columns:
            array: Any = rows.column(column.name)
            if column.name in self._tables:
                arrays[f"{column.name}/code"] = self._codes(column.name, array)
            else:
                arrays |= feed(rows, [column], self.steps)
        names = [f"{ENCODED}{name}" for name in self.tensors]
        parts = [
            self._rest.run(names, {name: array[start : start + self._slice] for name, array in arrays.items()})
            for start in range(0, max(1, rows.num_rows), self._slice)
        ]
        return {name: np.concatenate(pieces) for name, pieces in zip(self.tensors, zip(*parts, strict=True), strict=True)}

    def _codes(self, column: str, array: Any) -> np.ndarray:
        """int64 [rows, 1]: the table's codes of a dictionary-encoded column, by way of its distinct values."""
        import pyarrow as pa

        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        distinct = np.array([*array.dictionary.to_pylist(), ""], dtype=object).reshape(-1, 1)
        codes = self._tables[column].run(None, {column: distinct})[0].reshape(-1)
        where: np.ndarray = array.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
        found: np.ndarray = codes[where].reshape(-1, 1)
        return found


def split_tables(model: onnx.ModelProto) -> tuple[dict[str, onnx.ModelProto], onnx.ModelProto]:
    """A model for each category table, and the model of all that remains with the codes as inputs `<column>/code`."""
    import onnx
    from onnx import TensorProto, helper

    texts = {value.name: value for value in model.graph.input if value.type.tensor_type.elem_type == TensorProto.STRING}
    uses = [name for node in model.graph.node for name in node.input]
    tables, rest = {}, onnx.ModelProto()
    rest.CopyFrom(model)
    for node in model.graph.node:
        column = node.input[0] if node.op_type == "LabelEncoder" else ""
        if column not in texts or uses.count(column) != 1 or node.output[0] != f"{column}/code":
            continue
        code = helper.make_tensor_value_info(node.output[0], TensorProto.INT64, ["batch", 1])
        graph = helper.make_graph([node], "table", [texts[column]], [code])
        tables[column] = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
        rest.graph.node.remove(node)
        rest.graph.input.remove(texts[column])
        rest.graph.input.append(code)
    return tables, rest
