"""Feature kinds: fit on train rows -> state -> ONNX nodes. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.features.category import Category, FittedCategory
from mlpipe.features.datetime import Datetime, FittedDatetime
from mlpipe.features.numeric import FittedNumeric, Numeric
from mlpipe.features.subwords import FittedTokens, Tokens
from mlpipe.features.text import FittedText, Text

AnyFeature = Annotated[Numeric | Category | Datetime | Text | Tokens, Field(discriminator="kind")]
AnyFitted = Annotated[FittedNumeric | FittedCategory | FittedDatetime | FittedText | FittedTokens, Field(discriminator="kind")]
