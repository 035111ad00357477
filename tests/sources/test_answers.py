"""Answers of databases as Arrow files."""

from decimal import Decimal

import pyarrow as pa
from pyarrow import parquet as pq

from mlpipe.sources.answers import write_answer


def test_a_decimal_that_is_no_number_is_kept_as_text_or_missing(tmp_path):
    """PostgreSQL's numeric holds NaN and Infinity: the one is missing, the other no decimal, and none is lost."""
    rows = [(Decimal("1.5"), Decimal("1.5")), (Decimal("NaN"), Decimal("Infinity"))]
    write_answer(["a", "b"], rows, tmp_path / "x.parquet", "table t", ordered=True)
    table = pq.read_table(tmp_path / "x.parquet")
    assert pa.types.is_decimal(table.schema.field("a").type)
    assert table.column("a").to_pylist() == [Decimal("1.5"), None]
    assert [str(value) for value in table.column("b").to_pylist()] == ["1.5", "Infinity"]
