"""The formulas of the optimizers, as symgrad traces them into kernels.

In: a parameter, its gradient, what is kept between steps, numbers.  Out: the new values of the
parameter and of what is kept, in the order in which they came.

The order of the operations is that of ``torch.optim``.  ``scalars`` holds what changes from step
to step or from group to group, so that one kernel serves all settings; what changes the formula is
a plain argument.
"""

from __future__ import annotations

from typing import Any

import symgrad as sg


def _direction(grad: Any, param: Any, maximize: bool, weight_decay: Any) -> Any:
    """The gradient, downhill, with that of the penalty ``weight_decay |param|² / 2``."""
    grad = -grad if maximize else grad
    return grad if weight_decay is None else grad + weight_decay * param


class SGDUpdate(sg.Function):
    """``p - lr g``.  ``scalars``: lr, weight_decay."""

    @staticmethod
    def forward(
        ctx: Any, param: Any, grad: Any, scalars: Any, maximize: bool, weight_decay: bool
    ) -> Any:
        """The parameter."""
        penalty = scalars[1] if weight_decay else None
        return param - scalars[0] * _direction(grad, param, maximize, penalty)


class MomentumUpdate(sg.Function):
    """``b = momentum b + (1 - dampening) g``, then ``p - lr b``, or ``p - lr (g + momentum b)``.

    ``scalars``: lr, weight_decay, momentum, and the factors of b and of g in the sum.  At the
    first step these are 0 and 1: then the buffer is the gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, param: Any, grad: Any, momentum_buffer: Any, scalars: Any, maximize: bool,
        weight_decay: bool, nesterov: bool,
    ) -> Any:  # fmt: skip
        """The parameter and the buffer."""
        penalty = scalars[1] if weight_decay else None
        direction = _direction(grad, param, maximize, penalty)
        buffer = momentum_buffer * scalars[3] + scalars[4] * direction
        step = direction + scalars[2] * buffer if nesterov else buffer
        return param - scalars[0] * step, buffer


def _moments(grad: Any, exp_avg: Any, exp_avg_sq: Any, scalars: Any) -> tuple[Any, Any]:
    """The running averages of the gradient and of its square."""
    first = exp_avg + scalars[3] * (grad - exp_avg)
    return first, exp_avg_sq * scalars[4] + scalars[5] * grad * grad


def _decayed(
    param: Any, grad: Any, scalars: Any, maximize: bool, weight_decay: str
) -> tuple[Any, Any]:
    """The parameter and the gradient after the decay: "none", "coupled" or "decoupled"."""
    if weight_decay == "decoupled":
        param = param * scalars[6]
    penalty = scalars[6] if weight_decay == "coupled" else None
    return param, _direction(grad, param, maximize, penalty)


class AdamUpdate(sg.Function):
    """Kingma and Ba (2015); decoupled decay: Loshchilov and Hutter (2019).

    ``scalars``: the step size ``lr / (1 - beta1^t)``, ``sqrt(1 - beta2^t)``, eps, 1 - beta1,
    beta2, 1 - beta2, and the weight decay (decoupled: ``1 - lr weight_decay``).
    """

    @staticmethod
    def forward(
        ctx: Any, param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, scalars: Any,
        maximize: bool, weight_decay: str,
    ) -> Any:  # fmt: skip
        """The parameter and both averages."""
        param, direction = _decayed(param, grad, scalars, maximize, weight_decay)
        first, second = _moments(direction, exp_avg, exp_avg_sq, scalars)
        root = sg.sqrt(second) / scalars[1] + scalars[2]
        return param - scalars[0] * first / root, first, second


class AMSGradUpdate(sg.Function):
    """Adam that divides by the greatest average so far (Reddi and others, 2018)."""

    @staticmethod
    def forward(
        ctx: Any, param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any,
        scalars: Any, maximize: bool, weight_decay: str,
    ) -> Any:  # fmt: skip
        """The parameter, both averages and the greatest second one."""
        param, direction = _decayed(param, grad, scalars, maximize, weight_decay)
        first, second = _moments(direction, exp_avg, exp_avg_sq, scalars)
        greatest = sg.maximum(max_exp_avg_sq, second)
        root = sg.sqrt(greatest) / scalars[1] + scalars[2]
        return param - scalars[0] * first / root, first, second, greatest
