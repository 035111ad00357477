"""Every registered kind, read from the unions."""

from __future__ import annotations

from typing import Any, get_args

from mlpipe.checks import AnyCheck
from mlpipe.exporters import AnyTarget
from mlpipe.features import AnyFeature
from mlpipe.metrics import METRICS
from mlpipe.models import AnyModel
from mlpipe.sources import AnySource
from mlpipe.splits import AnySplit
from mlpipe.tasks import AnyTask
from mlpipe.training.optimisers import AnyOptimiser, AnySchedule

UNIONS: dict[str, Any] = {
    "sources": AnySource,
    "splits": AnySplit,
    "checks": AnyCheck,
    "features": AnyFeature,
    "tasks": AnyTask,
    "models": AnyModel,
    "optimisers": AnyOptimiser,
    "schedules": AnySchedule,
    "targets": AnyTarget,
}


def members(union: Any) -> list[Any]:
    """The settings classes of a union (or of the one class that stands in its place)."""
    inner = get_args(union)
    return list(get_args(inner[0])) if inner else [union]


def kind_of(settings: Any) -> str:
    """The name under `kind`."""
    return str(settings.model_fields["kind"].default)


def all_kinds() -> dict[str, dict[str, str]]:
    """`{"sources": {"csv": "Delimited text. ..."}, ..., "metrics": {...}}`: the first sentence of each kind's docstring."""
    found = {group: {kind_of(c): _first(c.__doc__ or "") for c in members(union)} for group, union in UNIONS.items()}
    found["metrics"] = {metric.name: f"{metric.task}: {metric.meaning}" for metric in METRICS.values()}
    return found


def _first(text: str) -> str:
    line = " ".join(text.split())
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]
