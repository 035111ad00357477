"""Many documents: what is known from before, what has to be converted, what came of each, and whether that may pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from mlpipe.console import console
from mlpipe.digest import sha256_file
from mlpipe.documents.cache import Cache
from mlpipe.documents.pool import Document, Limits, convert_all
from mlpipe.documents.result import Converted, How
from mlpipe.errors import DataError, MachineError, listed

SHOWN = 50


@dataclass(frozen=True)
class Policy:
    """What of failures: whether one ends the work, how many may be left out, whether incomplete documents count as good."""

    skip: bool = False
    most: int | float | None = None  # a number of documents, or below 1 a share of them
    partial: bool = False


@dataclass
class Gathered:
    """The documents that count, in their order, and what is to be told of all of them.

    What was read of them stays on disk until `whole` asks for it: many documents do not fit into memory.
    """

    good: list[tuple[Document, Converted]] = field(default_factory=list)
    bad: list[tuple[Document, Converted]] = field(default_factory=list)
    fresh: int = 0
    cache: Cache | None = None
    digests: dict[str, str] = field(default_factory=dict)  # of documents whose result is on disk, by name

    def whole(self) -> Iterator[tuple[Document, Converted]]:
        """The documents that count with all that was read of them, one by one."""
        for document, found in self.good:
            if (digest := self.digests.get(document.name)) is None or self.cache is None:
                yield document, found
            elif (kept := self.cache.get(document.name, digest)) is not None:
                yield document, kept
            else:
                raise MachineError(f"what was read of {document.name} is gone from {self.cache.folder.name}", hint="run prepare again")

    def account(self) -> dict[str, Any]:
        """For the manifest: counts, and by name what is not plainly well. Holds nothing that depends on the cache."""
        everything = [*self.good, *self.bad]
        partial = [(document, found) for document, found in self.good if found.status == "partial"]
        unwell = sorted([*self.bad, *partial], key=lambda pair: pair[0].name)
        entries = [
            {"path": d.name, "status": f.status, "reason": f.reason, "detail": f.detail, **({"lost_pages": list(f.lost)} if f.lost else {})}
            for d, f in unwell
        ]
        counts = {status: sum(found.status == status for _, found in everything) for status in ("ok", "partial", "failed")}
        return {
            "read": len(everything),
            **counts,
            "left_out": len(self.bad),
            "pages": sum(found.pages for _, found in self.good),
            "not_ok": entries,
            "without_text": sorted(document.name for document, found in self.good if found.silent),
            "blank_pages": {d.name: list(f.blank) for d, f in self.good if f.blank and not f.silent},
            "read_by_ocr": {d.name: list(f.scanned) for d, f in self.good if f.scanned},
            "guessed_encoding": {d.name: f.encoding for d, f in self.good if f.guessed},
        }

    def notes(self) -> list[str]:
        """What people should know of documents that count."""
        account, found = self.account(), []
        for entry in account["not_ok"]:
            what = "left out: " if entry["status"] == "failed" or any(d.name == entry["path"] for d, _ in self.bad) else ""
            found.append(f"{entry['path']}: {what}{entry['reason']}" + (f" ({entry['detail']})" if entry["detail"] else ""))
        if silent := account["without_text"]:
            found.append(f"{len(silent):,} documents hold no text: {listed(silent, 20)}")
        if blank := account["blank_pages"]:
            shown = [f"{name} ({', '.join(map(str, pages[:10]))})" for name, pages in blank.items()]
            found.append(f"pages without text in {len(blank):,} documents: {listed(shown, 20)}")
        if scanned := account["read_by_ocr"]:
            count = sum(map(len, scanned.values()))
            found.append(f"{count:,} pages of {len(scanned):,} documents were read by OCR: {listed(scanned, 20)}")
        if guessed := account["guessed_encoding"]:
            shown = [f"{name} ({encoding})" for name, encoding in guessed.items()]
            found.append(f"the encoding of {len(guessed):,} files is a guess, as browsers make it: {listed(shown, 20)}; `encoding` says it")
        return found


def gather(
    documents: Sequence[Document],
    how: How,
    cache: Cache,
    workers: int,
    limits: Limits,
    policy: Policy,
    command: Sequence[str] | None = None,
) -> Gathered:
    """Converts what is not known from before. Every document is tried before a failure ends the work.

    Raises DataError for failures that the policy does not allow, each with its name and reason.
    """
    with ThreadPoolExecutor(4) as threads:
        digests = list(threads.map(lambda document: sha256_file(document.file), documents))
    # a password is no part of a key: a locked file that was opened once would else stay open to all
    results: dict[int, Converted] = {}
    kept: dict[str, str] = {}
    for i, document in enumerate(documents):
        known = cache.get(document.name, digests[i])
        if known is not None and not (known.reason == "password" and document.password):
            results[i] = known.light()
            kept[document.name] = digests[i]
    missing = [i for i in range(len(documents)) if i not in results]
    if documents:
        console.say(
            f"  documents: {len(documents):,} found, {len(documents) - len(missing):,} known from before, {len(missing):,} to convert"
        )
    jobs = [documents[i] for i in missing]
    pages, every = 0, max(1, len(jobs) // 10)
    with console.progress("documents", len(jobs)) as bar:
        for count, (number, found) in enumerate(convert_all(jobs, how, workers, limits) if jobs else (), 1):
            document = documents[missing[number]]
            digest = digests[missing[number]]
            if not document.password and cache.put(document.name, digest, found):
                kept[document.name], found = digest, found.light()
            results[missing[number]] = found
            pages += found.pages
            bar.advance(1, f"documents {count:,} of {len(jobs):,}, {pages:,} pages")
            if not console.terminal() and count % every == 0 and len(jobs) >= 20:
                console.say(f"  documents: {count:,} of {len(jobs):,} converted, {pages:,} pages")
    gathered = Gathered(fresh=len(missing), cache=cache, digests=kept)
    for i, document in enumerate(documents):
        found = results[i]
        counts = found.status == "ok" or (found.status == "partial" and policy.partial)
        (gathered.good if counts else gathered.bad).append((document, found))
    _judge(gathered, policy, len(documents))
    return gathered


def _judge(gathered: Gathered, policy: Policy, total: int) -> None:
    """Raises DataError when failures must not pass."""
    bad = gathered.bad
    most = None if policy.most is None else int(policy.most * total) if policy.most < 1 else int(policy.most)
    if not bad or (policy.skip and (most is None or len(bad) <= most)):
        return
    faults = [f"{document.name}: {found.why()}" for document, found in bad[:SHOWN]]
    if len(bad) > SHOWN:
        faults.append(f"... and {len(bad) - SHOWN:,} more")
    slow = any(found.reason in ("time limit", "memory limit") for _, found in bad)
    partial = any(found.status == "partial" for _, found in bad)
    if policy.skip:
        what, hint = f"{len(bad):,} of {total:,} documents failed, more than max_failures: {policy.most} allows", "mend them, or allow more"
    else:
        what, hint = f"{len(bad):,} of {total:,} documents failed", "mend or remove them, or set on_error: skip to leave them out, counted"
    more = "; allow_partial: true keeps incomplete ones" if partial else ""
    more += "; time_limit and memory_limit say what one document may take" if slow else ""
    raise DataError(what, faults=faults, hint=hint + more)
