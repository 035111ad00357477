"""Feature kinds: fit on train rows -> state -> ONNX nodes. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.features.category import Category, FittedCategory
from mlpipe.features.datetime import Datetime, FittedDatetime
from mlpipe.features.numeric import FittedNumeric, Numeric

AnyFeature = Annotated[Numeric | Category | Datetime, Field(discriminator="kind")]
AnyFitted = Annotated[FittedNumeric | FittedCategory | FittedDatetime, Field(discriminator="kind")]
