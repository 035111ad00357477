"""What came of documents before, by the content of the file, its ending, the versions of the readers and the settings."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mlpipe.base import replace_file
from mlpipe.documents.result import NOT_KEPT, Converted, How
from mlpipe.documents.sniff import LEGACY, ending_of, office
from mlpipe.errors import MachineError

PACKAGES = ("docling", "docling-core", "docling-parse", "pypdfium2", "rapidocr")
KNOWN = ".documents"  # the folder in a run folder
WORK = 2  # raised when our own part of a conversion changes


def versions() -> dict[str, str]:
    """The packages that decide what comes of a document. Raises MachineError when one is not installed; imports none."""
    found = {"mlpipe.documents": str(WORK)}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            raise MachineError(
                f"the source `documents` needs the package {name}, which is not installed", hint=f"pip install {name}"
            ) from None
    return found


class Cache:
    """A folder of results: `<sha256 of the bytes>.<digest of the rest>.json.gz`, each written whole or not at all."""

    def __init__(self, folder: Path, how: How) -> None:
        self.folder, self.how, self.versions = folder, how, versions()

    def _path(self, name: str, sha256: str) -> Path:
        ending = ending_of(name)
        rest: dict[str, object] = {"ending": ending, "how": self.how.as_dict(), "versions": self.versions}
        if ending in LEGACY:
            rest["office"] = office() is not None
        key = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:16]
        return self.folder / f"{sha256}.{key}.json.gz"

    def get(self, name: str, sha256: str) -> Converted | None:
        """What is known of a document; a damaged entry is as good as none."""
        try:
            return Converted.model_validate(json.loads(gzip.decompress(self._path(name, sha256).read_bytes())))
        except (OSError, ValueError, EOFError):
            return None

    def put(self, name: str, sha256: str, found: Converted) -> bool:
        """Keeps a result, unless another try may end otherwise; whether it is kept."""
        if found.reason in NOT_KEPT:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(found.model_dump(mode="json", exclude_defaults=True), sort_keys=True).encode()
        replace_file(self._path(name, sha256), gzip.compress(text, 6, mtime=0))
        return True


def forget_others(folder: Path, digests: Iterable[str]) -> None:
    """Removes what is known of files that are no longer there, by the digests of those that are."""
    wanted = set(digests)
    for path in folder.glob("*.json.gz"):
        if path.name.partition(".")[0] not in wanted:
            path.unlink(missing_ok=True)
