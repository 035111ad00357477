"""Split `group`: all rows of a group land in the same split."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mlpipe.splits.group import GroupSplit


def assigned(split: GroupSplit, groups: dict[str, list], seed: int = 7) -> list[int]:
    rows = pa.RecordBatch.from_arrays([pa.array(v, pa.string()).dictionary_encode() for v in groups.values()], names=list(groups))
    return split.assigner(hashed=("other",), target="y", seed=seed, own_test=False).assign(rows).tolist()


@given(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=40), st.integers(0, 100))
def test_rows_of_one_group_are_never_on_two_sides(names, seed):
    codes = assigned(GroupSplit(by=("g",), valid=0.3, test=0.3), {"g": names}, seed)
    assert len({*zip(names, codes, strict=True)}) == len(set(names))


def test_two_columns_make_a_group_together():
    split = GroupSplit(by=("g", "h"), valid=0.3, test=0.3)
    names = [f"n{i}" for i in range(200)]
    together = assigned(split, {"g": names, "h": names[::-1]})
    assert together == assigned(split, {"h": names[::-1], "g": names})
    assert together != assigned(split, {"g": names[::-1], "h": names})


def test_other_columns_do_not_matter():
    assert GroupSplit(by=("g",)).columns() == ("g",)
