"""Task kinds: loss, activation, decoding. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.tasks.classification import Classification, FittedClassification
from mlpipe.tasks.regression import FittedRegression, Regression

AnyTask = Annotated[Classification | Regression, Field(discriminator="kind")]
AnyFittedTask = Annotated[FittedClassification | FittedRegression, Field(discriminator="kind")]
