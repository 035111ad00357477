"""A small builder for the encoder graph: it collects nodes, constants and inputs, and names every edge after its column.

onnx is imported when a graph is built, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlpipe.errors import SpecError
from mlpipe.features.base import TextSequence

if TYPE_CHECKING:
    import onnx

OPSET = 20
ML_OPSET = 3
IR_VERSION = 10

InputType = Literal["number", "text", "timestamp", "tokens"]  # the types of columns, and ids that a host step makes of a text
TensorName = Literal["numeric", "plain", "category", "text"]
TENSORS: tuple[TensorName, ...] = ("numeric", "plain", "category", "text")
CODES = ("category", "text")  # the tensors of int64 codes; the others are float32
ENCODED = "encoded/"  # before a tensor's name: a column may well be called `category`
RUNTIME_DOMAIN = "com.microsoft"  # onnxruntime's own operators, of which the features of text use `Tokenizer`
AT_ONCE = "mlpipe.rows_at_once"  # in a model's metadata: how many rows a run should take, lest its strings fill the memory
MOST_AT_ONCE = 4096
MEMORY = 96 << 20  # bytes that the strings of one run may take


@dataclass(frozen=True)
class Part:
    """Columns that a feature adds to one of the tensors a network eats.

    `numeric` (float32) may be embedded by the network; `plain` (float32: indicators, sines and cosines) enters as it
    is; `category` (int64) are codes, `cardinality` of them: 0 missing, 1 unknown or rare, 2 and up known; `text` (int64) is a
    sequence of such codes.
    """

    tensor: TensorName
    edge: str
    names: tuple[str, ...] = ()
    cardinality: int = 0
    sequence: TextSequence | None = None

    @property
    def width(self) -> int:
        """How many columns of the tensor it makes."""
        return self.sequence.length if self.sequence else len(self.names)


class GraphBuilder:
    """Collects what becomes `encoder.onnx`."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: list[tuple[str, InputType, int]] = []
        self.row_bytes = 0  # what the strings of one row take on the way
        self._declared: list[onnx.ValueInfoProto] = []
        self._taken: set[str] = set()

    def input(self, column: str, kind: InputType, width: int = 1) -> str:
        """The graph input of a source column: its exact name, shape `[batch, width]`; text is string, tokens int64, all else double."""
        self._take(column)
        self.inputs.append((column, kind, width))
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

    def strings(self, op: str, inputs: Sequence[str], output: str, rank: int, **attributes: Any) -> str:
        """A node of onnxruntime's own that gives strings of `rank` axes; without the declaration onnx's checker dies of them."""
        import onnx

        shape = [f"{output}/{axis}" for axis in range(rank)]
        self._declared.append(onnx.helper.make_tensor_value_info(output, onnx.TensorProto.STRING, shape))
        return self.node(op, inputs, output, domain=RUNTIME_DOMAIN, **attributes)

    def model(self, outputs: Sequence[tuple[TensorName, list[Part]]]) -> onnx.ModelProto:
        """The checked model: each tensor, an output `encoded/<name>`, is the concatenation of its parts along axis 1."""
        from onnx import TensorProto, helper

        shown = []
        for tensor, parts in outputs:
            self.node("Concat", [part.edge for part in parts], f"{ENCODED}{tensor}", axis=1)
            width = sum(part.width for part in parts)
            kind = TensorProto.INT64 if tensor in CODES else TensorProto.FLOAT
            shown.append(helper.make_tensor_value_info(f"{ENCODED}{tensor}", kind, ["batch", width]))
        return self.finished(shown)

    def finished(self, shown: Sequence[onnx.ValueInfoProto]) -> onnx.ModelProto:
        """The checked model with these outputs."""
        import onnx
        from onnx import TensorProto, helper

        kinds = {
            "text": TensorProto.STRING,
            "number": TensorProto.DOUBLE,
            "timestamp": TensorProto.DOUBLE,
            "tokens": TensorProto.INT64,
        }
        graph = helper.make_graph(
            self.nodes,
            "encoder",
            [helper.make_tensor_value_info(name, kinds[kind], ["batch", width]) for name, kind, width in self.inputs],
            list(shown),
            initializer=[onnx.numpy_helper.from_array(value, name) for name, value in self.constants.items()],
            value_info=self._declared,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        if self._declared:
            opsets.append(helper.make_opsetid(RUNTIME_DOMAIN, 1))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="mlpipe")
        if self.row_bytes:
            helper.set_model_props(model, {AT_ONCE: str(max(1, min(MOST_AT_ONCE, MEMORY // self.row_bytes)))})
        onnx.checker.check_model(model, full_check=True)
        return model
