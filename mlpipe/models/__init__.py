"""Model kinds: tensors -> outputs. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.models.linear import Linear
from mlpipe.models.mlp import Mlp
from mlpipe.models.python import Python

AnyModel = Annotated[Linear | Mlp | Python, Field(discriminator="kind")]
