"""Model kinds: tensors -> outputs. The union is the registry."""

from typing import Annotated

from pydantic import Field

from mlpipe.models.linear import Linear
from mlpipe.models.mlp import Mlp
from mlpipe.models.pretrained import Pretrained
from mlpipe.models.python import Python
from mlpipe.models.text import TextBag, TextCnn, Transformer

AnyModel = Annotated[Linear | Mlp | TextBag | TextCnn | Transformer | Pretrained | Python, Field(discriminator="kind")]
