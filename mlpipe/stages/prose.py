"""What free texts look like, for `profile.json` and `mlpipe drift`: how long they are, and how often the common words stand in them.

Whole texts say nothing here: nearly each stands once. The words are those of a plain look (runs of letters and digits, in small
letters; signs of scripts without blanks one by one), not the tokens of the model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mlpipe.columns import text_counts
from mlpipe.metrics.shift import psi

if TYPE_CHECKING:
    import pyarrow as pa

LONE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"  # Thai, Lao, Myanmar, Khmer, kana, Han
WORDS = re.compile(rf"[{LONE}]|[^\W_{LONE}]+")
TOP = 50  # words: with more of them the index grows by chance alone
EDGES = tuple(i / 10 for i in range(1, 10))
READ = 20_000  # characters of a text that are looked at


def words_of(counts: Mapping[str, int]) -> Counter[str]:
    """How many rows each word stands in; `counts` are rows by text."""
    found: Counter[str] = Counter()
    for text, rows in counts.items():
        for word in set(WORDS.findall(text[:READ].casefold())):
            found[word] += rows
    return found


def prose(counts: Mapping[str, int]) -> dict[str, Any]:
    """`lengths`: characters, rows in ranges (.., e1], (e1, e2], ...; `words`: the common ones, in how many rows; `other` all others."""
    lengths = np.sort(np.repeat([len(text) for text in counts], list(counts.values()))) if counts else np.empty(0, np.int64)
    edges = np.unique(lengths[[int(share * (len(lengths) - 1)) for share in EDGES]]) if len(lengths) else lengths
    edges = edges[edges < lengths[-1]] if len(lengths) else edges
    words = words_of(counts)
    top = sorted(((word, n) for word, n in words.items() if n > 1), key=lambda item: (-item[1], item[0]))[:TOP]
    return {
        "lengths": {"edges": edges.tolist(), "counts": _in_ranges(lengths, edges).tolist()},
        "words": [[word, n] for word, n in top],
        "other": sum(words.values()) - sum(n for _, n in top),
    }


def _in_ranges(lengths: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """int64 [edges + 1]: how many sorted lengths lie in each range."""
    upto = np.searchsorted(lengths, edges, side="right")
    counts: np.ndarray = np.diff(np.concatenate([[0], upto, [len(lengths)]]))
    return counts


class Prose:
    """Lengths and common words of new texts beside those of the profile."""

    kind, test = "text", "words"

    def __init__(self, profile: Mapping[str, Any]) -> None:
        found = profile["prose"]
        self.edges = np.array(found["lengths"]["edges"], dtype=np.int64)
        self.lengths_then = np.array(found["lengths"]["counts"], dtype=np.int64)
        self.at = {word: i for i, (word, _) in enumerate(found["words"])}
        self.words_then = np.array([*(n for _, n in found["words"]), found["other"]], dtype=np.int64)
        self.lengths_now, self.words_now = np.zeros_like(self.lengths_then), np.zeros_like(self.words_then)
        self.missing_then = profile["missing"] / profile["rows"] if profile["rows"] else 0.0
        self.missing = 0

    def look(self, array: pa.Array) -> None:
        """Counts the texts of a chunk."""
        import pyarrow as pa

        self.missing += array.null_count
        counts = text_counts(pa.chunked_array([array]))
        lengths = np.sort(np.repeat([len(text) for text in counts], list(counts.values()))) if counts else np.empty(0, np.int64)
        self.lengths_now += _in_ranges(lengths, self.edges)
        for word, rows in words_of(counts).items():
            self.words_now[self.at.get(word, -1)] += rows

    def shift(self) -> tuple[float | None, None]:
        """The larger PSI, of lengths or of words; no test: words of one text do not come independently."""
        found = [index for index in (psi(self.lengths_then, self.lengths_now), psi(self.words_then, self.words_now)) if index is not None]
        return max(found, default=None), None

    def strange(self, present: int) -> tuple[float | None, float | None]:
        """There is no range and no code to be outside of."""
        return None, None
