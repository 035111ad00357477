"""Metrics: pure functions on whole arrays. METRICS is the registry."""

from mlpipe.metrics import classification, regression
from mlpipe.metrics.base import Metric

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*classification.METRICS, *regression.METRICS)}
