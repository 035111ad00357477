"""YAML 1.2 with positions: values as plain Python, overrides from the command line, and the line on which a setting stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlpipe.errors import SpecError


def parse_yaml(text: str, file: Path | str) -> Any:
    """YAML 1.2 with positions kept. Raises SpecError with line and column."""
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import RoundTripConstructor
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    class Constructor(RoundTripConstructor):
        """Leaves a date as the text it is: a cell that it is compared with is text, too."""

    Constructor.add_constructor("tag:yaml.org,2002:timestamp", Constructor.construct_yaml_str)
    reader = YAML(typ="rt", pure=True)  # keeps positions; makes no objects of its own, whatever the tags say
    reader.Constructor = Constructor
    try:
        return reader.load(text)
    except MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = (fault.problem or str(fault)).split("\n")[0]
        raise SpecError(
            f"{file}{where}: {problem}", hint="the file is no valid YAML there: indentation, quotes and colons are the usual causes"
        ) from None
    except YAMLError as fault:
        raise SpecError(f"{file}: {str(fault).splitlines()[0]}") from None


def plain(value: Any) -> Any:
    """Ruamel's round-trip values as plain Python ones."""
    if isinstance(value, Mapping):
        return {_name(key, value): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if type(value).__name__ == "ScalarBoolean":
        return bool(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str(value)


def apply_override(tree: Any, override: str) -> None:
    """Puts `a.b=c` into the tree; the value is read as YAML, numbers in the path are places in lists."""
    path, sign, text = override.partition("=")
    names = path.strip().split(".")
    if not sign or not all(names):
        raise SpecError(f"--set {override!r} is not of the form a.b=value", hint="for example --set train.epochs=5")
    value = parse_yaml(text, f"--set {path}") if text.strip() else ""
    node = tree
    for i, name in enumerate(names):
        last = i == len(names) - 1
        if isinstance(node, list):
            if not name.isdigit() or int(name) >= len(node):
                raise SpecError(
                    f"--set {path}: {'.'.join(names[:i])} is a list of {len(node)}; {name!r} is no place in it", hint="places count from 0"
                )
            key: Any = int(name)
        elif isinstance(node, dict):
            key = name
            if not last and node.get(key) is None:
                node[key] = {}
        else:
            raise SpecError(f"--set {path}: {'.'.join(names[:i])} is a single value")
        if last:
            node[key] = value
        else:
            node = node[key]


def line_of(tree: Any, where: Sequence[int | str]) -> int:
    """The line (from 1) on which the deepest part of `where` that the file has stands."""
    line = 1
    node: Any = tree
    for part in where:
        marks = getattr(getattr(node, "lc", None), "data", None) or {}
        if part in marks:
            line = marks[part][0] + 1
        inside = part in node if isinstance(node, dict) else isinstance(node, list) and isinstance(part, int) and part < len(node)
        if not inside:
            break
        node = node[part]
    return line


def _name(key: Any, where: Any) -> str:
    """A key as text. Raises SpecError for one of which YAML has lost the spelling: `true`, `1.50` and `007` match no cell."""
    if isinstance(key, str) or type(key) is int:
        return str(key)
    marks = getattr(getattr(where, "lc", None), "data", None) or {}
    line = f"line {marks[key][0] + 1}: " if key in marks else ""
    raise SpecError(f"{line}the name {plain(key)!r} is not text", hint="put it in quotes, as it stands in the data")
