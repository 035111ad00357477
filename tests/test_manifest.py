"""manifest.py: deterministic, complete, and every change to it or to what it lists is found."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpipe import manifest as manifests
from mlpipe.base import json_text, write_json
from mlpipe.errors import IntegrityError
from mlpipe.manifest import NAME, Artifact, Identity, Input, compose, edited

IDENTITY = Identity("train", 1, {"lr": 0.001, "hidden": [256, 256], "seed": 7}, [Input("encoded-train", {"tensors-v1": "ab"})])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "train"
    (folder / "encoded").mkdir(parents=True)
    (folder / "weights.bin").write_bytes(b"weights")
    (folder / "encoded" / "a.bin").write_bytes(b"a")
    return folder


def written(folder, identity=IDENTITY, parents=()):
    artifacts = [Artifact("weights.bin", "weights", {"tensors-v1": "cd"}), Artifact("encoded", "encoded")]
    manifest = compose(identity, parents, artifacts, folder, {"loss": 0.25}, "ok")
    write_json(folder / NAME, manifest.data)
    return manifest


def test_equal_work_gives_equal_bytes_whatever_the_order_of_settings_and_artifacts(folder):
    one = written(folder)
    config = dict(reversed(IDENTITY.config.items()))
    artifacts = [Artifact("encoded", "encoded"), Artifact("weights.bin", "weights", {"tensors-v1": "cd"})]
    two = compose(Identity("train", 1, config, IDENTITY.inputs), [], artifacts, folder, {"loss": 0.25}, "ok")
    assert json_text(one.data) == json_text(two.data) == (folder / NAME).read_text()
    assert one.digest == two.digest


@pytest.mark.parametrize(
    "other",
    [
        Identity("evaluate", 1, IDENTITY.config, IDENTITY.inputs),
        Identity("train", 2, IDENTITY.config, IDENTITY.inputs),
        Identity("train", 1, {**IDENTITY.config, "lr": 0.002}, IDENTITY.inputs),
        Identity("train", 1, {**IDENTITY.config, "more": None}, IDENTITY.inputs),
        Identity("train", 1, IDENTITY.config, []),
        Identity("train", 1, IDENTITY.config, [Input("encoded-train", {"tensors-v1": "ac"})]),
        Identity("train", 1, IDENTITY.config, [Input("encoded-train", {"tensors-v1": "ab"}, "a.py")]),
    ],
)
def test_everything_in_an_identity_changes_the_id(other):
    assert other.id != IDENTITY.id


def test_an_id_is_the_sha256_of_canonical_json_over_schema_stage_and_identity():
    text = b'{"identity":{"config":{"lr":"0.001"},"inputs":[],"stage_version":1},"schema":"mlpipe/manifest/v1","stage":"train"}'
    assert Identity("train", 1, {"lr": 0.001}, []).id == f"sha256:{hashlib.sha256(text).hexdigest()}"


def test_a_manifest_reads_back_as_it_was_written_and_says_where_artifacts_lie(folder):
    one = written(folder)
    two = manifests.load(folder)
    assert two == one
    assert edited(two) is None
    assert two.path("weights") == folder / "weights.bin"
    assert (two.has("weights"), two.has("model")) == (True, False)
    assert (two.stage, two.verdict, two.results) == ("train", "ok", {"loss": 0.25})
    assert two.input("weights", "tensors-v1") == Input("weights", {"tensors-v1": "cd"})
    assert set(two.input("weights").digest) == {"sha256", "tensors-v1"}
    assert two.output("encoded")["size"] == 1
    with pytest.raises(IntegrityError, match="role 'model'"):
        two.output("model")


def test_no_manifest_is_none_and_a_broken_one_is_an_integrity_error(folder):
    assert manifests.load(folder) is None
    assert manifests.load(folder / "weights.bin") is None
    for text, what in (
        ("{", "cannot be read"),
        ('{"schema": NaN}', "NaN"),
        ("[]", "schema 'list'"),
        ('{"schema": "mlpipe/manifest/v2"}', "v2"),
        (f'{{"schema": "{manifests.SCHEMA}"}}', "lacks id, identity, outputs, parents, results, stage, verdict"),
    ):
        (folder / NAME).write_text(text)
        with pytest.raises(IntegrityError, match=what):
            manifests.load(folder)
    (folder / NAME).write_bytes(b"\xff\xfe")
    with pytest.raises(IntegrityError, match="cannot be read"):
        manifests.load(folder)


def test_readers_ignore_unknown_members_outside_the_identity(folder):
    data = dict(written(folder).data) | {"later": "room"}
    write_json(folder / NAME, manifests.sealed(data))
    assert edited(manifests.load(folder)) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["identity"]["config"].update(lr="0.5"), "id does not fit"),
        (lambda d: d["identity"].update(stage_version=2), "id does not fit"),
        (lambda d: d.update(stage="export"), "id does not fit"),
        (lambda d: d.update(id="sha256:00"), "id does not fit"),
        (lambda d: d["results"].update(loss=0.1), "seal"),
        (lambda d: d.update(verdict="gate_failed"), "seal"),
        (lambda d: d["outputs"][0].update(size=2), "seal"),
        (lambda d: d["outputs"].pop(), "seal"),
        (lambda d: d.pop("seal"), "seal"),
        (lambda d: d["identity"]["config"].update(n=2**60), "2\\^53"),
    ],
)
def test_an_edit_anywhere_in_a_manifest_is_found(folder, change, says):
    data = json.loads(json_text(written(folder).data))
    change(data)
    write_json(folder / NAME, data)
    found = edited(manifests.load(folder))
    assert found is not None
    assert re.search(says, found)


def test_whole_outputs_have_no_faults_and_nothing_extra(folder):
    manifest = written(folder)
    (folder / manifests.VOLATILE).write_text("{}")
    assert manifests.broken_outputs(manifest) == []
    assert manifests.extra_files(manifest) == []


def test_missing_resized_and_flipped_artifacts_are_told_apart(folder):
    manifest = written(folder)
    (folder / "weights.bin").write_bytes(b"weighty")
    (folder / "encoded" / "a.bin").write_bytes(b"ab")
    first, second = manifests.broken_outputs(manifest)
    assert first.startswith("encoded has 2 bytes; the manifest says 1")
    assert second.startswith("weights.bin has changed: sha256:")
    (folder / "weights.bin").unlink()
    assert "weights.bin is missing" in manifests.broken_outputs(manifest)


def test_a_renamed_file_inside_a_folder_is_found(folder):
    manifest = written(folder)
    (folder / "encoded" / "a.bin").rename(folder / "encoded" / "b.bin")
    assert len(manifests.broken_outputs(manifest)) == 1


def test_a_folder_in_place_of_a_file_is_found(folder):
    manifest = written(folder)
    (folder / "weights.bin").unlink()
    (folder / "weights.bin").mkdir()
    (folder / "weights.bin" / "x").write_bytes(b"weights")
    assert len(manifests.broken_outputs(manifest)) == 1


def test_files_that_no_manifest_lists_are_named(folder):
    manifest = written(folder)
    (folder / "notes.txt").write_text("x")
    (folder / "weights.bin.bak").write_text("x")
    assert manifests.extra_files(manifest) == ["notes.txt", "weights.bin.bak"]


def test_parents_are_bound_by_the_bytes_of_their_manifests_and_by_relative_paths(folder, tmp_path):
    parent = written(folder)
    child_folder = tmp_path / "evaluate"
    child_folder.mkdir()
    child = compose(Identity("evaluate", 1, {}, []), [parent], [], child_folder, {}, "ok")
    (entry,) = child.data["parents"]
    assert entry["path"] == "../train/manifest.json"
    assert (child_folder / entry["path"]).resolve() == (folder / NAME).resolve()
    assert entry["manifest_sha256"] == manifests.sha256_bytes((folder / NAME).read_bytes())
    other = written(folder, Identity("train", 1, {"lr": 0.5}, []))
    renewed = child.with_parents([other])
    assert renewed.data["parents"][0]["id"] == other.id
    assert edited(renewed) is None
    assert renewed.id == child.id


@given(st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5), max_size=4))
def test_any_settings_give_an_id_that_survives_json(config):
    identity = Identity("train", 1, config, [])
    assert manifests.id_of("train", json.loads(json.dumps(identity.as_dict()))) == identity.id
