"""Source kinds: chunks of raw rows. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.sources.csv import Csv
from mlpipe.sources.jsonl import Jsonl
from mlpipe.sources.parquet import Parquet

AnySource = Annotated[Csv | Parquet | Jsonl, Field(discriminator="kind")]
