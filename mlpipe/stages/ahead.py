"""Two things at once, in order: a reader that works ahead in a thread, and a map over a small pool of threads.

Arrow, numpy and onnxruntime let go of the interpreter while they work, so a second thread is worth a second core.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

WAIT = 0.1  # seconds between looks at whether the other side is still there


def ahead(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The items, made in a thread up to `depth` ahead of their use. What the maker raises is raised here."""
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(entry: tuple[bool, Any]) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(entry, timeout=WAIT)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        try:
            for item in items:
                if not put((True, item)):
                    return
        except BaseException as fault:  # noqa: BLE001 (handed over to the thread that waits)
            put((False, fault))
        else:
            put((False, None))

    maker = threading.Thread(target=make, name="mlpipe-ahead", daemon=True)
    maker.start()
    try:
        while True:
            good, item = waiting.get()
            if good:
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        stopped.set()
        maker.join()


def mapped(function: Callable[[T], R], items: Iterable[T], workers: int = 2) -> Iterator[R]:
    """`function` of each item, in order, on a few threads; at most one item more than there are workers is under way."""
    with ThreadPoolExecutor(workers, "mlpipe-map") as pool:
        under_way: deque[Future[R]] = deque()
        for item in items:
            under_way.append(pool.submit(function, item))
            if len(under_way) > workers:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
