"""The house as DESIGN.md draws it (section 3): imports point down one list, wherever in a file they stand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mlpipe

ROOT = Path(mlpipe.__file__).parent

# from the roof to the ground; rooms on one floor do not import each other
FLOORS = [
    {"__main__"},
    {"cli"},
    {"stages"},
    {"spec"},
    {"exporters", "training"},
    {"models", "sources", "metrics"},
    {"schema", "documents"},
    {"features", "tasks", "splits", "checks", "leaks"},
    {"run"},
    {"manifest"},
    {"columns"},
    {"base", "console", "stopping", "yamlfile"},
    {"digest", "errors"},
    {"__init__"},
]
FLOOR = {room: height for height, rooms in enumerate(reversed(FLOORS)) for room in rooms}

# what siblings of a folder share beside its base.py
SHARED = {
    "features": {"graph", "encode", "tokens", "tokeniser"},
    # sql.py's answer and documents.py's rows are Parquet files, and documents.py's labels a CSV file
    "sources": {"streams", "textlines", "remote", "jsontext", "sheets", "answers", "database", "parquet", "csv", "families"},
    "models": {"network", "texts", "text", "pretraining"},
    "splits": {"random"},  # group.py hashes as random.py does
}
FREE = {"cli", "stages", "training", "exporters", "documents"}  # rooms whose files are parts of one work and know each other


def room(path: Path) -> str:
    """The first name below mlpipe: `features` for features/numeric.py, `run` for run.py."""
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> list[tuple[int, list[str]]]:
    """(line, names below mlpipe) of every import in a file: inside functions and under TYPE_CHECKING too."""
    return imports_in(path.read_text(encoding="utf-8"), list(path.relative_to(ROOT).parts))


def imports_in(text: str, place: list[str]) -> list[tuple[int, list[str]]]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = ["mlpipe", *place][: -node.level] if node.level else []
            names = [[*start, *(node.module.split(".") if node.module else []), alias.name] for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "import_module", "__import__"):
            names = [str(arg.value).split(".") for arg in node.args[:1] if isinstance(arg, ast.Constant)]
        else:
            continue
        found += [(node.lineno, name[1:]) for name in names if name[0] == "mlpipe"]
    return found


def faults(place: list[str], imports: list[tuple[int, list[str]]]) -> list[str]:
    """What a file imports that lies on its own floor or above, or beside it in its own folder."""
    mine = place[0].removesuffix(".py")
    said = []
    for line, name in imports:
        where = f"{'/'.join(place)}, line {line}: imports mlpipe.{'.'.join(name)}"
        target = name[0] if name and name[0] in FLOOR else "__init__"
        if target != mine:
            if FLOOR[target] >= FLOOR[mine]:
                said.append(f"{where}, which is not below {mine}")
        elif len(place) > 1 and mine not in FREE and place[-1] != "__init__.py":
            sibling = name[1] if len(name) > 1 else ""
            if sibling not in {"base", place[1].removesuffix(".py"), *SHARED.get(mine, set())}:
                said.append(f"{where}, its sibling")
    return said


FILES = sorted(ROOT.rglob("*.py"))


def test_every_room_stands_on_a_floor():
    """A new file or folder is drawn in FLOORS (and in DESIGN.md) before it is used."""
    rooms = {room(path) for path in FILES}
    assert rooms - set(FLOOR) == set()
    assert {"spec", "features", "run", "digest"} <= rooms


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_down(path):
    place = list(path.relative_to(ROOT).parts)
    assert faults(place, imported(path)) == []


@pytest.mark.parametrize("kind", sorted(SHARED))
def test_what_siblings_share_is_there_and_used(kind):
    """A helper that is gone, or that nobody uses, leaves this picture."""
    for helper in SHARED[kind]:
        assert (ROOT / kind / f"{helper}.py").is_file()
        assert [path for path in FILES if path.stem != helper and [kind, helper] in [name[:2] for _, name in imported(path)]]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("digest.py", "from mlpipe import run"),
        ("digest.py", "import mlpipe.base"),
        ("errors.py", "from mlpipe.digest import canonical"),
        ("base.py", "def f():\n    from mlpipe.columns import Column"),
        ("features/numeric.py", "if TYPE_CHECKING:\n    from mlpipe.schema import Schema"),
        ("features/numeric.py", "from ..schema import Schema"),
        ("features/numeric.py", "from mlpipe.features.category import Category"),
        ("features/numeric.py", "from . import category"),
        ("features/numeric.py", "from mlpipe.features import AnyFeature"),
        ("features/numeric.py", "from mlpipe.tasks.base import Task"),
        ("sources/csv.py", "from mlpipe.models.base import Model"),
        ("splits/time.py", "from mlpipe.splits.group import GroupSplit"),
        ("spec.py", "importlib.import_module('mlpipe.stages.prepare')"),
        ("schema.py", "import os, mlpipe.models"),
        ("training/loop.py", "from mlpipe.spec import PipelineSpec"),
    ],
)
def test_an_import_that_points_up_or_aside_is_found(place, text):
    parts = place.split("/")
    assert len(faults(parts, imports_in(text, parts))) == 1


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("features/numeric.py", "from mlpipe.features.graph import Part\nfrom .base import Feature\nfrom mlpipe.columns import Column"),
        ("features/__init__.py", "from mlpipe.features.numeric import Numeric"),
        ("schema.py", "from mlpipe.features import AnyFitted\nfrom mlpipe.tasks import AnyFittedTask"),
        ("models/mlp.py", "from mlpipe.models import network\nfrom mlpipe.schema import Tensors\nimport torch"),
        ("splits/group.py", "from mlpipe.splits.random import HashAssigner"),
        ("cli/main.py", "from mlpipe import __version__\nfrom mlpipe.cli.common import options"),
    ],
)
def test_imports_that_point_down_are_no_faults(place, text):
    parts = place.split("/")
    assert faults(parts, imports_in(text, parts)) == []
