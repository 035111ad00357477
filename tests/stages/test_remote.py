"""Files behind URLs: fetched once, whole or not at all, pinned by sha256; nothing is asked unless a run needs it."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mlpipe.errors import DataError, IntegrityError, MachineError
from mlpipe.sources import remote
from mlpipe.sources.csv import Csv
from mlpipe.spec import load_pipeline
from mlpipe.stages.base import Options
from mlpipe.stages.chain import run_stages, steps
from mlpipe.stages.check import check_sources
from mlpipe.stages.verify import verify
from tests.helpers import chain, small_settings, states, table_csv, write_pipeline


class Site:
    """A server on this machine: files by path, how it behaves, and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.tags = False
        self.status = 200
        self.cut = False
        self.pause = 0.0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(body=True)

            def do_HEAD(self) -> None:
                self._answer(body=False)

            def _answer(self, *, body: bool) -> None:
                path = self.path.partition("?")[0]
                site.asked.append(f"{self.command} {path}")
                threading.Event().wait(site.pause)
                data = site.files.get(path)
                self.send_response(404 if data is None else site.status)
                self.send_header("Content-Length", str(len(data or b"")))
                if site.tags and data is not None:
                    self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()[:9]}"')
                self.end_headers()
                if body and data is not None:
                    self.wfile.write(data[: len(data) // 2] if site.cut else data)
                self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def fetched(self) -> int:
        return sum(line.startswith("GET") for line in self.asked)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.server.shutdown()
    made.server.server_close()


def pipeline(folder: Path, site: Site, **source: Any) -> Path:
    site.files.setdefault("/d/train.csv", table_csv(folder / "made.csv").read_bytes())
    settings = {"kind": "csv", "path": f"{site.url}/d/train.csv", **source}
    return write_pipeline(folder / "small.yaml", small_settings(prepare__source=settings))


def pin(site: Site) -> str:
    return hashlib.sha256(site.files["/d/train.csv"]).hexdigest()


def test_a_run_fetches_and_what_comes_after_prepare_does_not(tmp_path, site):
    file = pipeline(tmp_path, site)
    runs = tmp_path / "runs"
    first = chain(file, runs, until="prepare")["prepare"]
    assert first.manifest.identity["inputs"] == [{"role": "source", "path": f"{site.url}/d/train.csv", "digest": {"sha256": pin(site)}}]
    assert site.fetched == 1
    assert states(chain(file, runs, until="prepare")) == {"prepare": "fresh"}
    site.asked.clear()
    loaded = load_pipeline(file)
    told = steps(loaded, runs)[0]
    assert told.state == "fresh"
    assert "not asked for" in told.reason
    assert any("fetched when it is prepared" in line for line in check_sources(loaded))
    assert any("not fetched again" in line for line in verify(runs / "small", tmp_path).lines)
    run_stages(loaded, runs, ["train"], Options())
    assert site.asked == []
    site.files["/d/train.csv"] += b"1.0,2.0,red,yes\n"
    again = chain(file, runs, until="prepare")["prepare"]
    assert (again.state, again.reason) == ("ran", f"source {site.url}/d/train.csv changed")
    assert len(list((runs / "small/.snapshots").iterdir())) == 1


def test_a_strong_etag_saves_the_fetching(tmp_path, site):
    site.tags = True
    file = pipeline(tmp_path, site)
    chain(file, tmp_path / "runs", until="prepare")
    chain(file, tmp_path / "runs", until="prepare")
    assert site.fetched == 1
    site.files["/d/train.csv"] += b"1.0,2.0,red,yes\n"
    chain(file, tmp_path / "runs", until="prepare")
    assert site.fetched == 2
    (copy,) = (tmp_path / "runs/small/.snapshots").rglob("train.csv")
    copy.write_bytes(b"changed by somebody")
    chain(file, tmp_path / "runs", until="prepare")
    assert site.fetched == 3


def test_a_pinned_file_is_fetched_once_and_another_is_refused(tmp_path, site):
    site.files["/d/train.csv"] = table_csv(tmp_path / "made.csv").read_bytes()
    file = pipeline(tmp_path, site, sha256=pin(site))
    chain(file, tmp_path / "runs", until="prepare")
    site.asked.clear()
    chain(file, tmp_path / "runs", until="prepare")
    assert site.asked == []
    good = pin(site)
    site.files["/d/train.csv"] += b"\n"
    with pytest.raises(IntegrityError) as caught:
        chain(file, tmp_path / "other", until="prepare")
    assert good in str(caught.value)
    assert pin(site) in str(caught.value)
    assert not list((tmp_path / "other").rglob("train.csv"))


def test_local_files_can_be_pinned_too(tmp_path):
    table_csv(tmp_path / "train.csv")
    file = write_pipeline(tmp_path / "small.yaml", small_settings(prepare__source={"kind": "csv", "path": "train.csv", "sha256": "0" * 64}))
    with pytest.raises(IntegrityError, match=r"train\.csv is not the file"):
        chain(file, tmp_path / "runs", until="prepare")


def test_what_cannot_be_fetched_is_told_and_the_old_copy_stays(tmp_path, site, monkeypatch):
    file = pipeline(tmp_path, site)
    chain(file, tmp_path / "runs", until="prepare")
    (copy,) = (tmp_path / "runs/small/.snapshots").rglob("train.csv")
    before = copy.read_bytes()
    site.cut = True
    with pytest.raises(DataError, match=r"cannot be (reached|read)"):
        chain(file, tmp_path / "runs", until="prepare")
    site.cut, site.status = False, 503
    with pytest.raises(DataError, match="the server answered 503"):
        chain(file, tmp_path / "runs", until="prepare")
    site.status = 403
    with pytest.raises(DataError, match="the server answered 403"):
        chain(file, tmp_path / "runs", until="prepare")
    site.status, site.pause = 200, 3.0
    monkeypatch.setattr(remote, "READ_SECONDS", 0.3)
    with pytest.raises(DataError, match="did not answer in time"):
        chain(file, tmp_path / "runs", until="prepare")
    site.pause = 0.0
    del site.files["/d/train.csv"]
    with pytest.raises(DataError, match="there is nothing at"):
        chain(file, tmp_path / "runs", until="prepare")
    assert copy.read_bytes() == before
    assert not list((tmp_path / "runs/small/.snapshots").glob(".*"))


def test_a_server_that_is_not_there(tmp_path):
    from tests.postgres import free_port

    source = Csv(path=f"http://127.0.0.1:{free_port()}/x.csv")
    with pytest.raises(DataError, match="cannot be reached"):
        source.local(tmp_path, tmp_path / "copies")


def test_what_a_variable_holds_is_not_told(tmp_path, site, monkeypatch):
    monkeypatch.setenv("SITE", site.url + "/hunter2")
    source = Csv(path="${env:SITE}/x.csv?key=abc")
    with pytest.raises(DataError) as caught:
        source.local(tmp_path, tmp_path / "copies")
    assert "${env:SITE}/x.csv" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    site.status = 500
    site.files["/hunter2/x.csv"] = b"a\n1\n"
    with pytest.raises(DataError) as caught:
        source.local(tmp_path, tmp_path / "copies")
    assert "hunter2" not in str(caught.value)


def test_other_files_beside_it_are_read_in_the_order_written(tmp_path, site):
    site.files["/d/a.csv.gz"] = gzip.compress(b"x\n1\n")
    (tmp_path / "b.csv").write_text("x\n2\n")
    source = Csv(path=[f"{site.url}/d/a.csv.gz?v=1", "b.csv"])
    assert [path for _, path in source.listing(tmp_path)] == [None, tmp_path / "b.csv"]
    local = source.local(tmp_path, tmp_path / "copies")
    assert [v for chunk in local.chunks(tmp_path, ["x"]) for v in chunk.rows.column("x").to_pylist()] == ["1", "2"]
    assert [chunk.file for chunk in local.chunks(tmp_path, ["x"])] == [f"{site.url}/d/a.csv.gz?v=1", "b.csv"]
    with pytest.raises(DataError, match="not on this machine"):
        source.files(tmp_path)


def test_a_package_that_is_missing_and_an_unknown_kind_of_address(tmp_path):
    with pytest.raises(DataError, match="nosuch:// is no kind of address"):
        Csv(path="nosuch://x/y.csv").local(tmp_path, tmp_path / "copies")
    with pytest.raises(MachineError, match="s3:// needs the package s3fs"):
        Csv(path="s3://bucket/y.csv").local(tmp_path, tmp_path / "copies")


@pytest.mark.parametrize("path", ["https://me:hunter2@host/x.csv", ["a.csv", "ftp://me:hunter2@host/x.csv"]])
def test_a_password_in_a_path_is_refused(path):
    with pytest.raises(ValueError, match="a password stands in it"):
        Csv(path=path)
    assert Csv(path="https://me:${env:PW}@host/x.csv").path == "https://me:${env:PW}@host/x.csv"
