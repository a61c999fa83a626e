"""Stochastic gradient descent.

In: parameters with gradients.  Out: the same, moved.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from symgrad.optim.errors import OptimizerValueError
from symgrad.optim.kernels import Update
from symgrad.optim.optimizer import Group, Optimizer, kept, not_negative
from symgrad.optim.updates import MomentumUpdate, SGDUpdate


class SGD(Optimizer):
    """``torch.optim.SGD``: with momentum, dampening, weight decay, Nesterov's look ahead."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0,
        dampening: float = 0, weight_decay: float = 0, nesterov: bool = False, *,
        maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        not_negative("learning rate", lr)
        not_negative("momentum value", momentum)
        not_negative("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise OptimizerValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update_group(self, group: Group) -> None:
        momentum, decay = group["momentum"], group["weight_decay"]
        static = {"maximize": group["maximize"], "weight_decay": decay != 0}
        plain = Update(SGDUpdate, **static)
        heavy = Update(MomentumUpdate, **static, nesterov=group["nesterov"])
        for parameter, grad in self._written(group):
            array = parameter._array
            if momentum == 0:
                plain(np.array([group["lr"], decay], array.dtype), grad, array)
            else:
                state = self.state[parameter]
                first = state.get("momentum_buffer") is None
                factors = (0.0, 1.0) if first else (momentum, 1 - group["dampening"])
                scalars = np.array([group["lr"], decay, momentum, *factors], array.dtype)
                heavy(scalars, grad, array, kept(state, "momentum_buffer", parameter))
