"""mlpipe: raw data to a verified ONNX model in four commands, chained by manifests."""

import os

__version__ = "0.1.0"

# onnxruntime 1.29 and later sends telemetry by default and writes under ~/.cache; it reads this when it is imported.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
