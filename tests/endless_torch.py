"""PyTorch on CUDA with one fault: a difference keeps the device busy for minutes (`--adapter torch=tests.endless_torch:Endless`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.torch import Torch

if TYPE_CHECKING:
    import torch

#: What a GPU's clock counts in ten minutes and more: a kernel that nothing ends would keep the GPU for good.
TICKS = 2 * 10**12


class Endless(Torch):
    """PyTorch, whose differences are queued behind a kernel that goes on and on."""

    def sub(self, x: Any, y: Any) -> Any:
        """Subtract, much later."""
        torch.cuda._sleep(TICKS)
        return x - y
