"""``Optimizer``: groups of parameters, their settings and what is kept for each between steps.

In: parameters.  Out: the same, moved by ``step``.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from symgrad.optim.errors import OptimizerTypeError, OptimizerValueError
from symgrad.tensor import Tensor
from symgrad.tensor.gradients import zero_grads
from symgrad.tensor.modes import enable_grad
from symgrad.tensor.tensor import Array, wrap

Group = dict[str, Any]


class Optimizer:
    """The parent of the optimizers; a subclass writes ``_update_group``.

    ``foreach``, ``capturable``, ``differentiable`` and ``fused`` say in torch how an update is
    computed: these settings are kept, and not read.

    ``params``: tensors, pairs of a name and a tensor, or dicts with "params" and settings that
    differ from ``defaults``.  Raises OptimizerTypeError, OptimizerValueError.
    """

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise OptimizerTypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type(params).__name__}"
            )
        self.defaults = dict(defaults)
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        given = list(params)
        if not given:
            raise OptimizerValueError("optimizer got an empty parameter list")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with settings of their own."""
        if not isinstance(param_group, dict):
            raise OptimizerTypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, (set, frozenset)):
            raise OptimizerTypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        found = [params] if isinstance(params, Tensor) else list(params)
        if found and isinstance(found[0], tuple):
            group["param_names"] = [name for name, _ in found]
            found = [tensor for _, tensor in found]
        for tensor in found:
            _check_parameter(tensor)
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        known = {one for other in self.param_groups for one in other["params"]}
        if not known.isdisjoint(found):
            raise OptimizerValueError("some parameters appear in more than one parameter group")
        if len(set(found)) != len(found):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error", UserWarning, stacklevel=3,
            )  # fmt: skip
        group["params"] = found
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop every gradient, or fill it with zeros."""
        for group in self.param_groups:
            zero_grads(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the parameters that have a gradient.

        ``closure``: computes the gradients again and returns the loss, which is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update_group(group)
        return loss

    def _update_group(self, group: Group) -> None:
        """Move the parameters of one group.  To be written by the subclass."""
        raise NotImplementedError

    def _written(self, group: Group) -> Iterator[tuple[Tensor, Array]]:
        """The parameters that have a gradient, and its array.

        The caller writes a parameter in place before it asks for the next one.
        """
        for parameter in group["params"]:
            if parameter._grad is not None:
                yield parameter, parameter._grad._array
                parameter.counter().value += 1

    # -- states

    def state_dict(self) -> dict[str, Any]:
        """What is kept and the settings; parameters are numbered from 0, group by group."""
        numbers: dict[Tensor, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(parameter, len(numbers))
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers[parameter] for parameter in group["params"]]
            groups.append(packed)
        state = {numbers[parameter]: kept for parameter, kept in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state.  Raises OptimizerValueError where its groups are others."""
        groups = copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise OptimizerValueError(
                "loaded state dict has a different number of parameter groups"
            )
        pairs = list(zip(self.param_groups, groups, strict=True))
        if any(len(own["params"]) != len(new["params"]) for own, new in pairs):
            raise OptimizerValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        owners: dict[Any, Tensor] = {}
        for own, new in pairs:
            owners.update(zip(new["params"], own["params"], strict=True))
            new["params"] = own["params"]
        self.state = defaultdict(dict)
        for number, kept in state_dict["state"].items():
            owner = owners[number]
            self.state[owner] = {name: _loaded(name, one, owner) for name, one in kept.items()}
        self.param_groups = groups

    # -- text

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(("\n" if number else "") + f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _check_parameter(tensor: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise OptimizerTypeError(
            f"optimizer can only optimize Tensors, but one of the params is {type(tensor).__name__}"
        )
    if not tensor.is_leaf:
        raise OptimizerValueError("can't optimize a non-leaf Tensor")


def _loaded(name: str, value: Any, owner: Tensor) -> Any:
    """A copy of what was kept, in the dtype of its parameter (but for the number of steps)."""
    if not isinstance(value, (Tensor, np.ndarray)):
        return copy.deepcopy(value)
    array = value._array if isinstance(value, Tensor) else value
    dtype = array.dtype if name == "step" else owner._array.dtype
    return wrap(np.array(array, dtype))


# -- for the subclasses


def kept(state: dict[str, Any], name: str, parameter: Tensor) -> Array:
    """The array that is kept under a name, zeros at first."""
    if state.get(name) is None:
        state[name] = wrap(np.zeros(parameter._array.shape, parameter._array.dtype))
    return state[name]._array  # type: ignore[no-any-return]


def not_negative(name: str, value: float) -> None:
    """Raises OptimizerValueError for a negative setting."""
    if not value >= 0.0:
        raise OptimizerValueError(f"Invalid {name}: {value}")
