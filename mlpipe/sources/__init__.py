"""Source kinds: chunks of raw rows. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.sources.arrow import Arrow
from mlpipe.sources.csv import Csv
from mlpipe.sources.documents import Documents
from mlpipe.sources.excel import Excel
from mlpipe.sources.fixed import Fixed
from mlpipe.sources.json import Json
from mlpipe.sources.jsonl import Jsonl
from mlpipe.sources.ods import Ods
from mlpipe.sources.parquet import Parquet
from mlpipe.sources.sql import Sql

AnySource = Annotated[Csv | Parquet | Jsonl | Json | Arrow | Excel | Ods | Fixed | Sql | Documents, Field(discriminator="kind")]
