"""Model `python`: the user's own module, from a file beside the pipeline file or from an installed package."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import PrivateAttr, field_validator

from mlpipe.errors import SpecError, did_you_mean
from mlpipe.models.base import Model
from mlpipe.schema import Tensors

if TYPE_CHECKING:
    from torch import nn


class Python(Model):
    """`object: "my_net.py:Net"` (a file, relative to the pipeline file) or `object: "package.module:Net"` (installed).

    The class is a torch.nn.Module, made as `Net(tensors, outputs, **options)`, where `tensors` has the tuples of names
    `numeric`, `plain`, `category`, the tuple `cardinalities` and the sequences `text`; it is called with those that are not empty, by name:
    `forward(numeric=..., category=...)`, and gives float32 [B, outputs]. Its file enters the id, and so do the
    modules beside it that it imports.
    """

    kind: Literal["python"] = "python"
    object: str
    options: dict[str, Any] = {}
    _base: Path | None = PrivateAttr(default=None)

    @field_validator("object")
    @classmethod
    def _two_parts(cls, value: str) -> str:
        where, _, name = value.rpartition(":")
        if not where or not name.isidentifier():
            raise ValueError(f"{value!r} is not of the form file.py:Class or package.module:Class")
        return value

    def resolved_against(self, base: Path) -> Python:
        """Knows the pipeline file's folder."""
        copy = self.model_copy()
        copy._base = base  # noqa: SLF001 (its own class)
        return copy

    @property
    def _is_file(self) -> bool:
        return self.object.rpartition(":")[0].endswith(".py")

    def _file(self, base: Path) -> Path:
        where = self.object.rpartition(":")[0]
        if self._is_file:
            path = base / where
            if not path.is_file():
                raise SpecError(f"train.model.object: there is no file {where} (relative to the pipeline file's folder)")
            return path
        top, *rest = where.split(".")
        found = importlib.util.find_spec(top)
        if found is None:
            raise SpecError(f"train.model.object: no installed package {top!r}", hint="install it, or name a file: my_net.py:Net")
        root = Path(found.submodule_search_locations[0]) if found.submodule_search_locations else Path(found.origin or "")
        path = root.joinpath(*rest) if rest else root
        for candidate in (path.with_suffix(".py"), path / "__init__.py", path):
            if candidate.is_file():
                return candidate
        raise SpecError(f"train.model.object: package {top!r} has no module {where!r}")

    def code(self, base: Path) -> list[tuple[str, Path]]:
        """The class's file and what it imports from its own folder, in sorted order."""
        main = self._file(base)
        root = main.parent if self._is_file else _root(main)
        found, waiting = {main}, [main]
        while waiting:
            for path in _local_imports(waiting.pop(), root):
                if path not in found:
                    found.add(path)
                    waiting.append(path)
        shown = self.object.rpartition(":")[0] if self._is_file else main.name
        return [(shown if p == main else p.relative_to(root).as_posix(), p) for p in sorted(found, key=lambda p: (p != main, p))]

    def build(self, tensors: Tensors, outputs: int, arguments: Mapping[str, Any]) -> nn.Module:
        """An instance of the class. Raises SpecError when it is not there, is no module or refuses its options."""
        from torch import nn

        where, _, name = self.object.rpartition(":")
        module = self._load(where)
        found = getattr(module, name, None)
        if found is None:
            names = [n for n in vars(module) if not n.startswith("_")]
            raise SpecError(f"train.model.object: {where} has no {name!r}", hint=did_you_mean(name, names))
        if not (isinstance(found, type) and issubclass(found, nn.Module)):
            raise SpecError(f"train.model.object: {self.object} is no torch.nn.Module class")
        try:
            with _importable(self._file(self._base or Path()).parent if self._is_file else None):
                return found(tensors, outputs, **self.options)
        except SystemExit as fault:
            raise SpecError(f"train.model.object: {self.object} ends the process (exit code {fault.code}) when it is made") from None
        except TypeError as fault:
            raise SpecError(
                f"train.model.object: {self.object} cannot be made: {fault}", hint="it is called as Net(tensors, outputs, **options)"
            ) from fault

    def _load(self, where: str) -> Any:
        if not self._is_file:
            return importlib.import_module(where)
        base = self._base or Path()
        path = self._file(base)
        files = [file for _, file in self.code(base)]
        _forget_modules([*files, *_BROUGHT])
        _BROUGHT.update(files)
        spec = importlib.util.spec_from_file_location(f"mlpipe_user_{path.stem}", path)
        assert spec is not None and spec.loader is not None  # a .py file has a loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        with _importable(path.parent):
            spec.loader.exec_module(module)
        return module


_BROUGHT: set[Path] = set()  # files of models loaded before: another folder's `layers.py` must not stand in for this one's


def _forget_modules(files: list[Path]) -> None:
    """Removes modules made from these files, which may have changed since this process imported them."""
    wanted = {str(file.resolve()) for file in files}
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if origin and str(Path(origin).resolve()) in wanted:
            del sys.modules[name]


@contextmanager
def _importable(folder: Path | None) -> Iterator[None]:
    """While this holds, modules in a folder are found.

    What runs must be the text that the id was made from: a cached file is judged by time and size, and none is left there.
    """
    if folder is None:
        yield
        return
    kept = sys.dont_write_bytecode, sys.pycache_prefix
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode, sys.pycache_prefix = True, str(folder / ".mlpipe-keeps-no-cache")
    try:
        yield
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = kept
        sys.path.remove(str(folder))


def _root(file: Path) -> Path:
    """The folder that an installed module's absolute imports start from: above its outermost package."""
    folder = file.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _local_imports(file: Path, root: Path) -> list[Path]:
    """Files below `root` that a Python file imports by name, packages on the way included. Raises SpecError when it is not Python."""
    try:
        tree = ast.parse(file.read_bytes(), filename=file.name)
    except SyntaxError as fault:
        raise SpecError(f"{file.name}, line {fault.lineno}: {fault.msg}") from None
    names: list[tuple[Path, list[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(root, alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else root
            stem = node.module.split(".") if node.module else []
            names += [(start, [*stem, alias.name]) for alias in node.names]
    paths = [start.joinpath(*parts[:depth]) for start, parts in names for depth in range(1, len(parts) + 1)]
    candidates = [file for path in paths for file in (path.with_name(f"{path.name}.py"), path / "__init__.py")]
    return [path for path in candidates if path.is_file() and path.is_relative_to(root)]
