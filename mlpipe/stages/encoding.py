"""Second pass of prepare: typed rows through the encoder graph, into tensors on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlpipe.base import SPLITS, Split
from mlpipe.console import console
from mlpipe.errors import DataError, listed
from mlpipe.features.encode import Encoder
from mlpipe.features.graph import CODES
from mlpipe.features.tokeniser import Tokeniser
from mlpipe.schema import Schema
from mlpipe.stages.ahead import mapped
from mlpipe.stages.encoded import TensorWriter, check_finite
from mlpipe.stages.leaking import Leaks
from mlpipe.stages.strangers import Strangers
from mlpipe.tasks.classification import FittedClassification

ENCODE_ROWS = 65_536
ENCODE_CELLS = 1 << 23  # of the tensors of one batch: texts have thousands a row


def encode_splits(
    out: Path, encoder: bytes, schema: Schema, steps: Mapping[str, Tokeniser], rows: Mapping[Split, int], leaks: Leaks, notes: list[str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Writes `encoded/<split>/` from `<split>.parquet`, by way of the host `steps`.

    Returns digests by split, and values that train lacks by split and column.

    Raises DataError for a number that becomes infinite, and for a split without any class of the train rows.
    """
    from pyarrow import parquet as pq

    run = Encoder(encoder, schema.columns, threads=1, steps=steps)
    target = schema.task.target
    texts = [column.name for column in schema.columns if column.type == "text"] + (
        [target] if isinstance(schema.task, FittedClassification) else []
    )
    names = list(dict.fromkeys([*(column.name for column in schema.columns), target]))
    size = max(1, min(ENCODE_ROWS, ENCODE_CELLS // max(1, sum(map(schema.tensors.width, schema.tensors.present)))))
    digests: dict[str, str] = {}
    unseen: dict[str, Any] = {}
    for split in (name for name in SPLITS if rows[name]):
        strangers = Strangers(schema, steps)
        file = pq.ParquetFile(out / f"{split}.parquet", read_dictionary=texts)
        with TensorWriter(out / "encoded" / split, rows[split]) as writer, console.progress(f"encoding {split}", rows[split]) as bar:
            for batch, tensors in mapped(lambda batch: (batch, run(batch)), file.iter_batches(batch_size=size, columns=names)):
                for name, tensor in tensors.items():
                    check_finite(name, tensor, schema)
                    writer.write(name, tensor.astype(np.int32) if name in CODES else tensor)
                writer.write("target", schema.task.encode(batch.column(target)))
                leaks.look(split, batch, schema, rows[split])
                if split != "train":
                    strangers.look(batch)
                bar.advance(batch.num_rows)
        digests[split] = writer.digest.hexdigest()
        if found := strangers.told(split, notes):
            unseen[split] = found
        if (lost := found.get(target)) and lost["rows"] == rows[split]:
            raise DataError(
                f"none of the {rows[split]:,} {split} rows has a class of the train rows",
                faults=[f"{split}: {listed(lost['values'], 5)}", f"train: {listed(schema.task.summary()['classes'], 5)}"],
                hint="the same classes are spelt in two ways? `replace` maps one spelling to the other",
            )
    return digests, unseen
