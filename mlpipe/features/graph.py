"""A small builder for the encoder graph: it collects nodes, constants and inputs, and names every edge after its column.

onnx is imported when a graph is built, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlpipe.errors import SpecError

if TYPE_CHECKING:
    import onnx

    from mlpipe.columns import ColumnType

OPSET = 20
ML_OPSET = 3
IR_VERSION = 10

TensorName = Literal["numeric", "plain", "category"]
TENSORS: tuple[TensorName, ...] = ("numeric", "plain", "category")
ENCODED = "encoded/"  # before a tensor's name: a column may well be called `category`


@dataclass(frozen=True)
class Part:
    """Columns that a feature adds to one of the tensors a network eats.

    `numeric` (float32) may be embedded by the network; `plain` (float32: indicators, sines and cosines) enters as it
    is; `category` (int64) are codes, `cardinality` of them: 0 missing, 1 unknown or rare, 2 and up known.
    """

    tensor: TensorName
    edge: str
    names: tuple[str, ...]
    cardinality: int = 0


class GraphBuilder:
    """Collects what becomes `encoder.onnx`."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: list[tuple[str, ColumnType]] = []
        self._taken: set[str] = set()

    def input(self, column: str, kind: ColumnType) -> str:
        """The graph input of a source column: its exact name, shape `[batch, 1]`; text is string, all else double."""
        self._take(column)
        self.inputs.append((column, kind))
        return column

    def constant(self, name: str, value: Any) -> str:
        """An initializer."""
        if name not in self.constants:  # a feature may ask twice for the same one
            self._take(name)
        self.constants[name] = np.asarray(value)
        return name

    def _take(self, name: str) -> None:
        """Raises SpecError when two edges would have one name: a column is called what another column's nodes are."""
        if name in self._taken:
            raise SpecError(f"the encoder graph would have two edges named {name!r}", hint="rename or leave out the column of that name")
        self._taken.add(name)

    def node(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """A node with one output; its name is its output's."""
        import onnx

        self._take(output)
        self.nodes.append(onnx.helper.make_node(op, list(inputs), [output], name=output, **attributes))
        return output

    def model(self, outputs: Sequence[tuple[TensorName, list[Part]]]) -> onnx.ModelProto:
        """The checked model: each tensor, an output `encoded/<name>`, is the concatenation of its parts along axis 1."""
        import onnx
        from onnx import TensorProto, helper

        shown = []
        for tensor, parts in outputs:
            self.node("Concat", [part.edge for part in parts], f"{ENCODED}{tensor}", axis=1)
            width = sum(len(part.names) for part in parts)
            kind = TensorProto.INT64 if tensor == "category" else TensorProto.FLOAT
            shown.append(helper.make_tensor_value_info(f"{ENCODED}{tensor}", kind, ["batch", width]))
        kinds = {"text": TensorProto.STRING, "number": TensorProto.DOUBLE, "timestamp": TensorProto.DOUBLE}
        graph = helper.make_graph(
            self.nodes,
            "encoder",
            [helper.make_tensor_value_info(name, kinds[kind], ["batch", 1]) for name, kind in self.inputs],
            shown,
            initializer=[onnx.numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="mlpipe")
        onnx.checker.check_model(model, full_check=True)
        return model
