"""Files behind a URL: `https://`, `s3://`, `gs://` and whatever else fsspec knows, fetched whole before they are read.

A copy lies in a folder of its own, named after the path as written, and has its digest and the server's ETag beside it. It
is written aside and renamed, so that a broken download leaves the old copy. A pinned file (`sha256`) whose copy is good is
not fetched again; another is fetched anew unless the server says by a strong ETag that it is still the same.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlpipe.base import ENV, expand, machine_faults, sync_folder, write_json
from mlpipe.console import console
from mlpipe.digest import sha256_bytes, sha256_file
from mlpipe.errors import DataError, IntegrityError, MachineError

SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
FACTS = ".facts.json"
CONNECT_SECONDS, READ_SECONDS = 30, 120


def is_far(path: str) -> bool:
    """Whether an expanded path is a URL."""
    return SCHEME.match(path) is not None


def refuse_secrets(written: str) -> None:
    """Raises ValueError for a URL with a password in it: it would stand in manifests and messages."""
    plain = ENV.sub("", written)  # what stands in an environment variable is not in the file
    if re.match(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#@]*:[^/?#@]+@", plain) or re.search(
        r"[?&]([a-z-]*(password|passwd|pwd|token|secret|signature|api_?key)|sig)=[^&#]+", plain, re.IGNORECASE
    ):
        raise ValueError("a password stands in it, or a token; put the whole URL into an environment variable and write ${env:NAME}")


@contextmanager
def fresh_folder(folder: Path, key: str) -> Iterator[Path]:
    """A new folder that takes the place of `folder/key` when the block ends well, and leaves it as it was otherwise."""
    aside = folder / f".{key}.{os.getpid()}.tmp"
    with machine_faults(folder):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        try:
            yield aside
            for path in aside.iterdir():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            shutil.rmtree(folder / key, ignore_errors=True)
            aside.rename(folder / key)
            sync_folder(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def key_of(text: str) -> str:
    """The name of the folder in which the copy of something lies."""
    return sha256_bytes(text.encode())[:16]


def fetch(written: str, folder: Path, pin: str | None) -> Path:
    """The whole file behind a path, in `folder`.

    Raises DataError when there is nothing or it cannot be reached, IntegrityError when it is not the file that `pin` names,
    MachineError when a package that its kind of URL needs is not installed.
    """
    url = expand(written)
    key = key_of(written)
    name = re.sub(r"[?#].*$", "", url).rstrip("/").rsplit("/", 1)[-1] or "file"
    copy, facts = folder / key / name, _facts(folder / key)
    whole = copy.is_file() and facts.get("sha256") == sha256_file(copy)
    if whole and pin and facts["sha256"] == pin:
        return copy
    system = _system(url, written)
    with _told(url, written):
        etag = _etag(system, url)
        if whole and etag and etag == facts.get("etag") and not pin:
            console.detail(f"  {written} has not changed (ETag)")
            return copy
        console.say(f"  fetches {written}")
        with fresh_folder(folder, key) as aside:
            system.get_file(url, str(aside / name))
            digest = sha256_file(aside / name)
            if pin and pin != digest:
                raise IntegrityError(
                    f"{written} is not the file that the pipeline file names: its sha256 is {digest}",
                    faults=[f"sha256 in the pipeline file: {pin}"],
                    hint="find out why it changed, then write the new digest under `sha256` if the change is meant",
                )
            write_json(aside / FACTS, {"sha256": digest, "etag": etag})
    return copy


def _facts(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / FACTS).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _system(url: str, written: str) -> Any:
    """The file system of fsspec for a URL."""
    scheme = url.partition("://")[0].lower()
    try:
        import fsspec

        if scheme in ("http", "https"):
            import aiohttp

            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)
            return fsspec.filesystem(scheme, client_kwargs={"timeout": timeout, "trust_env": True}, skip_instance_cache=True)
        return fsspec.filesystem(scheme)
    except ImportError as fault:
        package = fault.name or re.sub(r"^.*[Ii]nstall (\S+).*$", r"\1", str(fault))
        raise MachineError(
            f"{scheme}:// needs the package {package}, which is not installed", hint=f"pip install {package}, or 'mlpipe[remote]' for https"
        ) from None
    except ValueError:
        raise DataError(
            f"{written}: {scheme}:// is no kind of address that can be read", hint="https://, s3://, gs://, or a path"
        ) from None


def _etag(system: Any, url: str) -> str | None:
    """What the server calls this version of a file, where that is a promise about its bytes."""
    tag = system.info(url).get("ETag")
    return str(tag) if tag and not str(tag).startswith("W/") else None


@contextmanager
def _told(url: str, written: str) -> Iterator[None]:
    """Turns what a network does into a DataError that names the path as written, never what an environment variable holds."""
    try:
        yield
    except (DataError, IntegrityError, MachineError):
        raise
    except Exception as fault:
        cause: BaseException = fault
        while isinstance(cause, FileNotFoundError) and cause.__cause__ is not None:
            cause = cause.__cause__  # fsspec's http calls everything "not found" that went wrong
        told = _worded(cause, url, written)
        if told is None:
            raise
        raise told from None


def _worded(fault: BaseException, url: str, written: str) -> DataError | None:
    """A network's fault in our words; None for one that no network makes."""
    status = getattr(fault, "status", None)
    if isinstance(fault, FileNotFoundError) or status == 404:
        return DataError(f"there is nothing at {written} (not found)", hint="check the address; it may have moved")
    if isinstance(fault, TimeoutError):
        return DataError(f"{written} did not answer in time", hint="try again later; a slow server or a proxy may be the cause")
    if status is not None:
        what = f"the server answered {status} {getattr(fault, 'message', '')}".rstrip()
        hint = "it needs a key: see the documentation of its fsspec package" if status in (401, 403) else "try again later"
        return DataError(f"{written} cannot be read: {what}", hint=hint)
    if isinstance(fault, (OSError, ValueError, RuntimeError)) or type(fault).__module__.split(".")[0] in ("aiohttp", "botocore", "gcsfs"):
        what = str(fault).replace(url, written) or type(fault).__name__
        if url != written:  # nothing of what a variable holds
            host = re.sub(r"^[^/]*//(?:[^/@]*@)?([^/?#]*).*$", r"\1", url)
            what = type(fault).__name__ if any(part in what for part in url.split("/")[3:] if part) else what.replace(host, "the host")
        return DataError(f"{written} cannot be reached: {what}", hint="is the address right, and the network there?")
    return None
