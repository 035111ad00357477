"""Joins the encoder graph, the network and the label decoding into one ONNX model."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from mlpipe.errors import ParityError, SpecError
from mlpipe.exporters.targets import Onnx
from mlpipe.features.graph import ENCODED, RUNTIME_DOMAIN

if TYPE_CHECKING:
    import onnx

SCORES = "decoding/scores"
LARGEST_FILE = 2**31 - 1
TEXT_OPSET = 20  # StringConcat


class Scorer(nn.Module):
    """A network and its activation: tensors in a fixed order -> scores."""

    def __init__(self, net: nn.Module, names: Sequence[str], activate: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.net, self.names, self.activate = net, list(names), activate

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """float32 [B, classes], or float64 [B, 1]."""
        return self.activate(self.net(**dict(zip(self.names, tensors, strict=True))))


def joined(
    encoder: bytes,
    net: nn.Module,
    sample: dict[str, torch.Tensor],
    activate: Callable[[torch.Tensor], torch.Tensor],
    classes: Sequence[str],
    target: Onnx,
) -> onnx.ModelProto:
    """One model from raw rows to answers.

    In:  one input a source column, [batch, 1]. Out: `label` string [batch] and `probability` float32 [batch, classes],
    or `prediction` double [batch]. `sample` has a few rows of each tensor (more than one: torch would freeze a size of 1).
    Holds no paths, stack traces, names of machines or second files. Raises ParityError when it is too large for one file.
    """
    import onnx
    from onnx import compose

    front = onnx.load_model_from_string(encoder)
    runtime = any(node.domain == RUNTIME_DOMAIN for node in front.graph.node)
    if runtime and target.opset < TEXT_OPSET:
        raise SpecError(
            f"export.targets.0.opset is {target.opset}, and texts need operators of opset {TEXT_OPSET}", hint=f"set opset: {TEXT_OPSET}"
        )
    hints = {entry.key: entry.value for entry in front.metadata_props}
    core = _network(net, sample, activate, target.opset)
    back = _decoding(classes, target)
    for model in (front, core, back):
        _pin(model, target, runtime and model is front)
    _free_batch(core)
    core = compose.add_prefix(core, "net/")
    model = compose.merge_models(front, core, io_map=[(f"{ENCODED}{name}", f"net/{name}") for name in sample])
    model = compose.merge_models(model, back, io_map=[(f"net/{SCORES}", SCORES)])
    _pin(model, target, runtime)
    _strip(model)
    if hints:
        onnx.helper.set_model_props(model, hints)
    model.producer_name = "mlpipe"
    model.graph.name = "mlpipe"
    if model.ByteSize() > LARGEST_FILE:
        raise ParityError(f"the model has {model.ByteSize():,} bytes; one ONNX file holds up to 2 GB", hint="train a smaller model")
    onnx.checker.check_model(model, full_check=True)
    names = [(value.name, value.type.tensor_type.shape.dim[0].dim_param) for value in [*model.graph.input, *model.graph.output]]
    frozen = [name for name, batch in names if batch != "batch"]
    if frozen:
        raise ParityError(f"the batch size is frozen in {', '.join(frozen)}", hint="the model's code must not depend on the number of rows")
    return model


def _network(
    net: nn.Module, sample: dict[str, torch.Tensor], activate: Callable[[torch.Tensor], torch.Tensor], opset: int
) -> onnx.ModelProto:
    """The network by torch's exporter, quietly."""
    scorer = Scorer(net, list(sample), activate).eval()
    batch = torch.export.Dim("batch", min=1, max=2**31 - 1)
    levels = {name: logging.getLogger(name).level for name in ("torch.onnx", "onnxscript", "torch.export", "torch")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            program: Any = torch.onnx.export(
                scorer,
                tuple(sample.values()),
                dynamo=True,
                input_names=list(sample),
                output_names=[SCORES],
                opset_version=opset,
                dynamic_shapes=(tuple({0: batch} for _ in sample),),
                verbose=False,
                optimize=True,
            )
    except Exception as fault:
        first = next((line for line in str(fault).splitlines() if line.strip()), type(fault).__name__)
        raise ParityError(
            f"torch cannot export the model: {first[:300]}",
            hint="forward must not branch on the values of its tensors, nor use what ONNX lacks",
        ) from fault
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    model: onnx.ModelProto = program.model_proto
    return model


def _decoding(classes: Sequence[str], target: Onnx) -> onnx.ModelProto:
    """Scores to `label` and `probability`, or to `prediction`."""
    from onnx import TensorProto, helper

    nodes, outputs = [], []
    if classes:
        nodes.append(helper.make_node("ArgMax", [SCORES], ["label/number"], name="label/number", axis=1, keepdims=0))
        keys = list(range(len(classes)))
        nodes.append(
            helper.make_node(
                "LabelEncoder",
                ["label/number"],
                ["label"],
                name="label",
                domain="ai.onnx.ml",
                keys_int64s=keys,
                values_strings=list(classes),
                default_string="",
            )
        )
        nodes.append(helper.make_node("Identity", [SCORES], ["probability"], name="probability"))
        outputs.append(helper.make_tensor_value_info("label", TensorProto.STRING, ["batch"]))
        outputs.append(helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["batch", len(classes)]))
        kind, width = TensorProto.FLOAT, len(classes)
    else:
        axes = helper.make_tensor("prediction/axes", TensorProto.INT64, [1], [1])
        nodes.append(helper.make_node("Squeeze", [SCORES, "prediction/axes"], ["prediction"], name="prediction"))
        outputs.append(helper.make_tensor_value_info("prediction", TensorProto.DOUBLE, ["batch"]))
        kind, width = TensorProto.DOUBLE, 1
    source = helper.make_tensor_value_info(SCORES, kind, ["batch", width])
    graph = helper.make_graph(nodes, "decoding", [source], outputs, initializer=[] if classes else [axes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", target.opset), helper.make_opsetid("ai.onnx.ml", 3)])


def _pin(model: onnx.ModelProto, target: Onnx, runtime: bool) -> None:
    """One operator set and format version for every part; `runtime` says whether it uses onnxruntime's own operators."""
    from onnx import helper

    model.ir_version = target.ir_version
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("", target.opset), helper.make_opsetid("ai.onnx.ml", 3)])
    if runtime:
        model.opset_import.append(helper.make_opsetid(RUNTIME_DOMAIN, 1))


def _free_batch(model: onnx.ModelProto) -> None:
    """Names the first axis of inputs and outputs `batch`, where the exporter left it free under a name of its own."""
    for value in [*model.graph.input, *model.graph.output]:
        first = value.type.tensor_type.shape.dim[0]
        if first.dim_param:
            first.dim_param = "batch"


def _strip(model: onnx.ModelProto) -> None:
    """Removes what says where and how the model was made, and intermediate shapes (they name the exporter's own symbols)."""
    del model.metadata_props[:]
    model.doc_string = ""
    model.producer_version = ""
    graph = model.graph
    # the checker dies of an operator that it does not know, unless what that gives is declared
    foreign = {name for node in graph.node if node.domain == RUNTIME_DOMAIN for name in node.output}
    declared = [value for value in graph.value_info if value.name in foreign]
    del graph.value_info[:]
    graph.value_info.extend(declared)
    del graph.metadata_props[:]
    graph.doc_string = ""
    for item in [*graph.node, *graph.input, *graph.output, *graph.initializer]:
        del item.metadata_props[:]
        item.doc_string = ""
    for function in model.functions:
        del function.metadata_props[:]
        del function.value_info[:]
        for node in function.node:
            del node.metadata_props[:]
            node.doc_string = ""
