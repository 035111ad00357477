"""Export targets. The union is the registry."""

from mlpipe.exporters.targets import Onnx

AnyTarget = Onnx
