"""Learning rates that change from epoch to epoch.

In: an optimizer.  Out: the "lr" of its groups, set by ``step``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.optim.errors import OptimizerStateError, OptimizerTypeError, OptimizerValueError
from symgrad.optim.optimizer import Optimizer


class LRScheduler:
    """The parent of the schedulers; a subclass writes ``get_lr``.

    ``last_epoch``: -1 to begin; another number continues from there, with the groups' "initial_lr".
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise OptimizerTypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise OptimizerStateError(
                    "param 'initial_lr' is not specified in param_groups"
                    f"[{number}] when resuming an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self._advance()

    def get_lr(self) -> list[float]:
        """The learning rates at ``last_epoch``.  To be written by the subclass."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The learning rates that were set last."""
        return self._last_lr

    def step(self) -> None:
        """Set the learning rates of the next epoch; call it after ``optimizer.step()``."""
        self._advance()

    def _advance(self) -> None:
        self.last_epoch += 1
        found = self.get_lr()
        for group, rate in zip(self.optimizer.param_groups, found, strict=True):
            group["lr"] = rate
        self._last_lr = list(found)

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {name: one for name, one in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rates times ``lr_lambda(epoch)``: one function, or one for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Any],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise OptimizerValueError(
                f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}"
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The learning rates at ``last_epoch``."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * factor(self.last_epoch) for base, factor in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the functions."""
        found = super().state_dict()
        found.pop("lr_lambdas")
        return found


class StepLR(LRScheduler):
    """The rates times ``gamma`` every ``step_size`` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The learning rates at ``last_epoch``."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rates to ``eta_min`` in ``T_max`` epochs, and back."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The learning rates at ``last_epoch``."""
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]
