"""Split kinds: which rows train, validate and test. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.splits.column import ColumnSplit
from mlpipe.splits.group import GroupSplit
from mlpipe.splits.order import OrderSplit
from mlpipe.splits.random import RandomSplit
from mlpipe.splits.time import TimeSplit

AnySplit = Annotated[RandomSplit | GroupSplit | TimeSplit | ColumnSplit | OrderSplit, Field(discriminator="kind")]
