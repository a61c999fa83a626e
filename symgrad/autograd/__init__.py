"""``symgrad.autograd``: what ``torch.autograd`` has, under the same names.

In: nothing.  Out: the names.
"""

from typing import Any

from symgrad.autograd import function as function
from symgrad.autograd import functional as functional
from symgrad.frontend.function import Function as Function
from symgrad.tensor.functional.gradcheck import gradcheck as gradcheck
from symgrad.tensor.functional.gradcheck import gradgradcheck as gradgradcheck
from symgrad.tensor.gradients import backward as backward
from symgrad.tensor.gradients import grad as grad
from symgrad.tensor.modes import enable_grad as enable_grad
from symgrad.tensor.modes import inference_mode as inference_mode
from symgrad.tensor.modes import no_grad as no_grad
from symgrad.tensor.modes import set_grad_enabled as set_grad_enabled


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """The tensor itself, which requires a gradient if that is asked for."""
    return data.requires_grad_() if requires_grad else data
