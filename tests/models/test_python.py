"""Model `python`: the user's own module; every file of it enters the id; what is wrong is said plainly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from mlpipe.errors import SpecError
from mlpipe.models.python import Python
from mlpipe.schema import Tensors

TENSORS = Tensors(numeric=("a",))
NET = """\
from torch import nn
from {where} import SIZE


class Net(nn.Linear):
    def __init__(self, tensors, outputs):
        super().__init__(len(tensors.numeric), SIZE)
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py".replace("/init/.py", "/__init__.py").replace("/init.py", "/__init__.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def code(folder: Path, target: str = "net.py:Net") -> list[str]:
    files = Python(object=target).code(folder)
    assert all(path.is_file() for _, path in files)
    return [shown for shown, _ in files]


def build(folder: Path, target: str = "net.py:Net", **options):
    return Python(object=target, options=options).resolved_against(folder).build(TENSORS, 2, {})


def test_a_class_in_a_file_is_made_with_tensors_outputs_and_options(tmp_path):
    write(tmp_path, net="from torch import nn\nclass Net(nn.Linear):\n    def __init__(self, tensors, outputs, extra=0):\n"
                        "        super().__init__(len(tensors.numeric) + extra, outputs)\n")  # fmt: skip
    assert (build(tmp_path).in_features, build(tmp_path, extra=3).in_features, build(tmp_path).out_features) == (1, 4, 2)


@pytest.mark.parametrize(
    "statement", ["import {}", "from {} import x", "import os, {}", "def f():\n    import {}", "if True:\n    from {} import *"]
)
def test_modules_beside_it_enter_the_id_however_they_are_imported(tmp_path, statement):
    write(tmp_path, net=statement.format("helper"), helper="import deep", deep="import os", other="x = 1")
    assert code(tmp_path) == ["net.py", "deep.py", "helper.py"]


def test_packages_beside_it_enter_the_id_with_everything_on_the_way(tmp_path):
    write(
        tmp_path,
        net="from pkg.sub.part import x\nimport pkg.top as t\n",
        pkg__init="import extra",
        pkg__top="from . import low\nfrom .sub import part",
        pkg__low="",
        pkg__sub__init="",
        pkg__sub__part="from ..low import a\nfrom . import near",
        pkg__sub__near="",
        pkg__unused="",
        extra="",
    )
    assert code(tmp_path) == [
        "net.py",
        "extra.py",
        "pkg/__init__.py",
        "pkg/low.py",
        "pkg/sub/__init__.py",
        "pkg/sub/near.py",
        "pkg/sub/part.py",
        "pkg/top.py",
    ]


def test_imports_in_a_circle_and_of_nothing_end(tmp_path):
    write(tmp_path, net="import a\nimport nowhere\nimport os.path", a="import b", b="import a, net")
    assert code(tmp_path) == ["net.py", "a.py", "b.py"]


def test_a_file_in_a_folder_is_shown_as_it_is_written(tmp_path):
    write(tmp_path, nets__net="import helper", nets__helper="")
    assert code(tmp_path, "nets/net.py:Net") == ["nets/net.py", "helper.py"]


def test_files_outside_its_folder_are_none_of_its_code(tmp_path):
    write(tmp_path, nets__net="from ..secret import x\nfrom .... import y", secret="")
    assert code(tmp_path, "nets/net.py:Net") == ["nets/net.py"]


def test_an_installed_module_enters_the_id_with_what_it_imports_of_its_own_package(tmp_path, monkeypatch):
    write(
        tmp_path,
        mlpipe_test_pkg__init="",
        mlpipe_test_pkg__nets="import torch\nfrom mlpipe_test_pkg.layers import L\n",
        mlpipe_test_pkg__layers="from .low import x",
        mlpipe_test_pkg__low="",
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert code(Path("/"), "mlpipe_test_pkg.nets:Net") == [
        "nets.py", "mlpipe_test_pkg/__init__.py", "mlpipe_test_pkg/layers.py", "mlpipe_test_pkg/low.py"]  # fmt: skip


def test_a_class_of_an_installed_package_is_made(tmp_path):
    assert build(tmp_path, "torch.nn:Identity") is not None
    with pytest.raises(SpecError, match="no installed package 'no_such_package'"):
        Python(object="no_such_package.nets:Net").code(tmp_path)
    with pytest.raises(SpecError, match="has no module"):
        Python(object="mlpipe.no_such_module:Net").code(tmp_path)


def test_two_folders_with_modules_of_one_name_do_not_mix(tmp_path):
    for folder, size in (("one", 1), ("two", 2)):
        write(tmp_path / folder, net=NET.format(where="mlpipe_test_shared"), mlpipe_test_shared=f"SIZE = {size}")
    assert [build(tmp_path / folder).out_features for folder in ("one", "two", "one")] == [1, 2, 1]


def test_the_search_path_is_left_as_it_was(tmp_path):
    write(tmp_path, net="raise RuntimeError('boom')")
    before = list(sys.path)
    with pytest.raises(RuntimeError, match="boom"):
        build(tmp_path)
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("class Nett: pass", "net.py:Net", "did you mean 'Nett'?"),
        ("Net = 5", "net.py:Net", "no torch.nn.Module class"),
        ("class Net: pass", "net.py:Net", "no torch.nn.Module class"),
        (
            "from torch import nn\nclass Net(nn.Module):\n    def __init__(self): pass",
            "net.py:Net",
            r"called as Net\(tensors, outputs, \*\*options\)",
        ),
        ("", "other.py:Net", "there is no file other.py"),
    ],
)
def test_what_is_no_model_is_refused_plainly(tmp_path, text, target, words):
    write(tmp_path, net=text)
    with pytest.raises(SpecError, match=words):
        build(tmp_path, target)


def test_a_file_that_is_no_python_is_refused_with_its_line(tmp_path):
    write(tmp_path, net="import os\nclass Net(:\n")
    with pytest.raises(SpecError, match=r"net\.py, line 2"):
        code(tmp_path)


def test_a_file_with_a_mark_at_its_head_is_read_as_python_does(tmp_path):
    (tmp_path / "net.py").write_bytes(b"\xef\xbb\xbfimport helper\n")
    write(tmp_path, helper="")
    assert code(tmp_path) == ["net.py", "helper.py"]


@pytest.mark.parametrize("target", ["net.py", ":Net", "net.py:", "net.py:a-b", "net.py:Net()"])
def test_an_object_of_another_form_is_refused(target):
    with pytest.raises(ValidationError, match="not of the form"):
        Python(object=target)
