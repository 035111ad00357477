"""Check kinds: what must hold of the rows that are read. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.checks.fresh import Fresh
from mlpipe.checks.keys import Unique
from mlpipe.checks.table import Balance, Missing, NotMissing, RowCount
from mlpipe.checks.values import Allowed, Pattern, Range

AnyCheck = Annotated[
    Unique | Range | Allowed | Pattern | Missing | NotMissing | RowCount | Balance | Fresh,
    Field(discriminator="kind"),
]
