"""Whether text is laid out in columns of fixed width: places that are blank in every line part the columns."""

from __future__ import annotations

from typing import Any

from mlpipe.stages.look.layout import has_header

LEAST_LINES = 4
LEAST_HEADLESS = 12  # in fewer lines blanks stand above each other by chance


def fixed_width(sample: str, target: str | None, *, whole: bool) -> tuple[dict[str, Any], dict[str, list[str]], bool] | None:
    """Settings of a `fixed` source with their evidence, and whether the columns have no names; None when no columns are seen.

    In: the beginning of a text file (`whole`: all of it). The last line of a part is not looked at.
    """
    lines = [line for line in sample.splitlines() if line.strip()]
    lines = lines if whole else lines[:-1]
    if len(lines) < LEAST_LINES or "\t" in sample:
        return None
    length = max(map(len, lines))
    padded = [line.ljust(length) for line in lines]
    used = [any(line[at] != " " for line in padded) for at in range(length)]
    cuts: list[tuple[int, int]] = []
    for at, mine in enumerate(used):
        if mine and (at == 0 or not used[at - 1]):
            cuts.append((at, at + 1))
        elif mine:
            cuts[-1] = (cuts[-1][0], at + 1)
    joined: list[tuple[int, int]] = []
    for first, last in cuts:  # without a name above it, what stands behind a blank belongs to the column before it
        if joined and not padded[0][first:last].strip():
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    if has_header([(n, [line[first:last].strip() for first, last in joined]) for n, line in enumerate(padded, 1)], target):
        cuts = joined
    elif len(lines) < LEAST_HEADLESS:
        return None
    if len(cuts) < 2:
        return None
    records = [(number, [line[first:last].strip() for first, last in cuts]) for number, line in enumerate(padded, 1)]
    names = records[0][1]
    named = has_header(records, target) and all(names) and len(set(names)) == len(names)
    # a column begins where the one before ends: a longer value further down is then not cut
    begins = [0, *(last + 1 for _, last in cuts[:-1])]
    columns = names if named else [f"column_{i}" for i in range(1, len(cuts) + 1)]
    settings: dict[str, Any] = {
        "columns": {name: [begin + 1, last] for name, begin, (_, last) in zip(columns, begins, cuts, strict=True)},
    }
    notes = {"columns": [f"{len(cuts)} columns, parted by places that are blank in all {len(lines):,} lines looked at"]}
    if named:
        settings["skip_lines"] = 1 + next(i for i, line in enumerate(sample.splitlines()) if line.strip())
        notes["skip_lines"] = ["the first line holds the names"]
    if any(len(line) < cuts[-1][1] for line in lines):
        settings["pad"] = True
        notes["pad"] = ["blanks at the end of some lines are cut off"]
    return settings, notes, not named
