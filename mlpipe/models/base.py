"""What every model kind is: settings that build a network from plain numbers."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mlpipe.base import Settings
from mlpipe.schema import Tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import torch
    from torch import nn


class Model(Settings):
    """A kind of network. The module that `build` returns is called with the present tensors by name and gives [B, outputs]."""

    needs: ClassVar[tuple[str, ...]] = ()  # kinds of features of which the pipeline must have one

    @abstractmethod
    def build(self, tensors: Tensors, outputs: int, arguments: Mapping[str, Any]) -> nn.Module:
        """The network, its weights drawn from torch's current generator. `arguments` are what `measure` found."""

    def measure(self, encoded: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Numbers that the network needs from the encoded train rows (bin edges, say); plain data, kept in model.json."""
        return {}

    def candidates(self) -> tuple[Model, ...]:
        """Settings to try when one of them says `auto`; the best on the valid rows is taken. Empty: nothing to choose."""
        return ()

    def files(self, base: Path) -> list[tuple[str, Path]]:
        """Files that training starts from (pretrained weights), as (path for people, where it lies); their digests enter train's id."""
        return []

    def load(self, net: nn.Module) -> None:
        """Puts the weights that training starts from into a new network. Not called for a network that gets its trained ones."""

    def ahead(self, net: nn.Module, tensors: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """What a part of the network that stays as it is makes of all rows, once for all epochs.

        The network takes what comes back in place of the tensors, and answers the same.
        """
        return tensors

    def code(self, base: Path) -> list[tuple[str, Path]]:
        """Files of the user's own code, as (path for people, where it lies); their digests enter the id."""
        return []

    def resolved_against(self, base: Path) -> Model:
        """The same model, able to find files that its settings name relative to the pipeline file's folder."""
        return self
