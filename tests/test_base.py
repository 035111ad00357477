"""base.py: settings that refuse what they do not know, strict JSON, whole files."""

from __future__ import annotations

import errno

import pytest
from pydantic import ValidationError

from mlpipe.base import Settings, expand, json_text, machine_faults, read_json, replace_file
from mlpipe.errors import MachineError, SpecError


class Inner(Settings):
    path: str
    note: str = ""

    @classmethod
    def locations(cls):
        return frozenset({"path"})


class Outer(Settings):
    inner: Inner
    several: tuple[Inner, ...] = ()
    names: tuple[str, ...] = ()
    table: dict[str, str] = {}
    size: float = 1.0


def test_settings_are_frozen_and_refuse_unknown_names_and_numbers_that_are_not_finite():
    with pytest.raises(ValidationError, match="extra"):
        Inner(path="a", colour="red")
    with pytest.raises(ValidationError, match="frozen"):
        Inner(path="a").note = "b"
    for size in (float("nan"), float("inf")):
        with pytest.raises(ValidationError, match="finite"):
            Outer(inner={"path": "a"}, size=size)


def test_variables_are_expanded_everywhere_but_in_locations(monkeypatch):
    """A path or password of one machine stays `${env:NAME}` also where the settings lie inside others."""
    monkeypatch.setenv("WHERE", "/secret")
    text = "${env:WHERE}/x"
    read = Outer.model_validate(
        {"inner": {"path": text, "note": text}, "several": [{"path": text, "note": text}], "names": [text], "table": {"k": text}}
    )
    assert read.inner == Inner.model_construct(path=text, note="/secret/x")
    assert read.several == (read.inner,)
    assert (read.names, read.table) == (("/secret/x",), {"k": "/secret/x"})


def test_a_variable_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(SpecError, match="NOWHERE is not set"):
        expand({"a": ["${env:NOWHERE}"]})
    with pytest.raises(ValidationError, match="NOWHERE is not set"):
        Outer(inner={"path": "a", "note": "${env:NOWHERE}"})


def test_what_is_no_variable_stays_as_it_is():
    assert expand(["$HOME", "${HOME}", "${env:}", 5, None]) == ["$HOME", "${HOME}", "${env:}", 5, None]


def test_json_is_written_with_sorted_keys_and_a_final_newline_and_never_with_nan():
    assert json_text({"b": 1, "a": "ü"}) == '{\n  "a": "ü",\n  "b": 1\n}\n'
    with pytest.raises(ValueError, match="JSON"):
        json_text({"a": float("nan")})


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_json_that_holds_no_number_is_refused(tmp_path, constant):
    (tmp_path / "a.json").write_text(f'{{"a": {constant}}}', encoding="utf-8")
    with pytest.raises(ValueError, match=constant):
        read_json(tmp_path / "a.json")


def test_a_replaced_file_is_whole_and_leaves_nothing_beside_it(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"old")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MachineError, match="no space left"):
        replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_an_error_of_another_kind_is_not_dressed_up(tmp_path):
    with pytest.raises(FileNotFoundError), machine_faults(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "no such file")
