"""How far the distribution of a column has moved: population stability index, Kolmogorov-Smirnov, chi-square.

All of them take counts, so that neither side's rows have to be held.
"""

from __future__ import annotations

import math

import numpy as np


def psi(then: np.ndarray, now: np.ndarray) -> float | None:
    """The population stability index of two rows of counts [cells]: sum over cells of (q - p) * ln(q / p), p and q the shares.

    0 for equal shares. The usual reading: below 0.1 no change to speak of, 0.1 to 0.2 some, above 0.2 a shift that asks for
    action (N. Siddiqi, Credit Risk Scorecards, 2006, with 0.25 as the upper bound; B. Yurdakul, Statistical Properties of
    Population Stability Index, 2018, on how it depends on the number of rows). A cell without rows on one side counts half
    a row there, since the logarithm of 0 is no number. None when one side has no rows.
    """
    if not then.sum() or not now.sum():
        return None
    p, q = (np.where(counts > 0, counts, 0.5) / counts.sum() for counts in (then.astype(float), now.astype(float)))
    there = (then > 0) | (now > 0)
    return float(((q - p) * np.log(q / p))[there].sum())


def kolmogorov_smirnov(then: np.ndarray, now: np.ndarray, rows: tuple[int, int]) -> tuple[float, float] | None:
    """The largest distance of two distribution functions, and its p-value.

    In: counts of rows below and up to some knots, [2, knots] of each side (first row: below, second: up to, the knot
    included), and how many rows each side has. At the knots the distance is exact; between two knots it may be larger by
    the share of train rows that lies between them (none where every distinct value is a knot). The p-value is the
    asymptotic one of the two-sample test, with n m / (n + m), rounded and at least 1, as its size
    (Smirnov 1948; scipy's ks_2samp, method "asymp", two-sided).
    """
    from scipy import stats

    n, m = rows
    if not n or not m:
        return None
    distance = float(np.abs(then / n - now / m).max())
    return distance, float(np.clip(stats.kstwo.sf(distance, max(1, round(n * m / (n + m)))), 0, 1))


def chi_square(then: np.ndarray, now: np.ndarray) -> tuple[float, float] | None:
    """Pearson's chi-square test of homogeneity of two rows of counts [cells], and its p-value; cells without rows are left out.

    None when fewer than two cells have rows, or one side has none.
    """
    from scipy import stats

    there = (then > 0) | (now > 0)
    table = np.stack([then[there], now[there]]).astype(float)
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return None
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return statistic, float(stats.chi2.sf(statistic, table.shape[1] - 1)) if math.isfinite(statistic) else 0.0
