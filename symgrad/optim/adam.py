"""Adam and AdamW.

In: parameters with gradients.  Out: the same, moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from symgrad.optim.errors import OptimizerValueError
from symgrad.optim.kernels import Update
from symgrad.optim.optimizer import Group, Optimizer, kept, not_negative
from symgrad.optim.updates import AdamUpdate, AMSGradUpdate
from symgrad.tensor import Tensor
from symgrad.tensor.modes import get_default_dtype
from symgrad.tensor.tensor import Array, wrap


class Adam(Optimizer):
    """``torch.optim.Adam``: Kingma and Ba (2015), with AMSGrad and decoupled weight decay."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        not_negative("learning rate", lr)
        not_negative("epsilon value", eps)
        for place, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise OptimizerValueError(f"Invalid beta parameter at index {place}: {beta}")
        not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update_group(self, group: Group) -> None:
        decay = "none"
        if group["weight_decay"] != 0:
            decay = "decoupled" if group["decoupled_weight_decay"] else "coupled"
        formula = AMSGradUpdate if group["amsgrad"] else AdamUpdate
        update = Update(formula, maximize=group["maximize"], weight_decay=decay)
        names = ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"][: 3 if group["amsgrad"] else 2]
        known: dict[Any, Array] = {}
        for parameter, grad in self._written(group):
            state = self.state[parameter]
            step = _next(state)
            key = step, grad.dtype.char
            if key not in known:
                known[key] = _scalars(group, step, grad.dtype)
            arrays = [kept(state, name, parameter) for name in names]
            update(known[key], grad, parameter._array, *arrays)


class AdamW(Adam):
    """``torch.optim.AdamW``: Adam whose weight decay does not go through the averages."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
        amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip


def _next(state: dict[str, Any]) -> float:
    """Count a step; torch keeps the number in a tensor of the default dtype."""
    if "step" not in state:
        state["step"] = wrap(np.zeros((), str(get_default_dtype())))
    step: Tensor = state["step"]
    step._array += 1
    return float(step._array)


def _scalars(group: Group, step: float, dtype: Any) -> Array:
    """The numbers of ``AdamUpdate``, computed in double precision."""
    first, second = group["betas"]
    decay = group["weight_decay"]
    if group["decoupled_weight_decay"]:
        decay = 1 - group["lr"] * decay
    return np.array(
        [
            group["lr"] / (1 - first**step), math.sqrt(1 - second**step), group["eps"],
            1 - first, second, 1 - second, decay,
        ],
        dtype,
    )  # fmt: skip
