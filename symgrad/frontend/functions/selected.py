"""What a mask selects, along its other axes; and the greatest, the least and the spread of it.

In: ``x[mask]``.  Out: what an operation along axes that the mask does not cover gives of all of
``x``, selected by the same mask; of its own axis, a tensor.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.frontend.caller import here
from symgrad.frontend.functions.arithmetic import div, sub
from symgrad.frontend.functions.mathematics import square
from symgrad.frontend.functions.movement import axes_of
from symgrad.frontend.functions.reductions import mean, reduce, sum, taken
from symgrad.frontend.functions.selecting import depends
from symgrad.frontend.lift import elementwise
from symgrad.frontend.questions import questions
from symgrad.frontend.session import current
from symgrad.frontend.table import ALONG_SELECTED, FUNCTIONS, of_selected
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor, fresh

Tensor = SymbolicTensor


# -- along other axes


def _along(name: str) -> Callable[..., Any]:
    """The operation of a name, of the whole tensor."""
    plain = FUNCTIONS[name]
    parameters = inspect.signature(plain)

    def call(source: SelectedTensor, *args: Any, **kwargs: Any) -> Any:
        bound = parameters.bind(fresh(source.whole), *args, **kwargs)
        bound.apply_defaults()
        axes = bound.arguments["dim"]
        if axes is None or isinstance(axes, Tensor):
            return _of_all(name, source, bound.arguments)
        moved, own = taken(source, axes)
        if own:
            return _of_own(name, source, bound.arguments)
        bound.arguments["dim"] = moved if isinstance(axes, (list, tuple)) else moved[0]
        found = plain(*bound.args, **bound.kwargs)
        return _selected(found, source, moved)

    return call


def _selected(found: Any, source: SelectedTensor, axes: Sequence[int]) -> Any:
    """A result of the whole tensor, selected by the same mask; axes may be gone."""
    if isinstance(found, tuple):
        parts = [_selected(one, source, axes) for one in found]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    node = found.node
    gone = [axis for axis in axes if axis < source.start] if node.rank < source.whole.rank else ()
    return SelectedTensor(node, source.mask, source.start - len(gone))


# -- of all that is selected


_EMPTY = {"amax": -math.inf, "max": -math.inf, "amin": math.inf, "min": math.inf}


def _of_own(name: str, source: SelectedTensor, given: dict[str, Any]) -> Any:
    """An operation along the axis of what is selected.  Raises UnsupportedOpError."""
    if name in ("var", "std"):
        return _spread(name, source, given)
    if name not in ("amax", "amin"):
        raise depends(source)
    axes, _ = taken(source, given["dim"])
    if given["keepdim"]:
        raise depends(source)
    return _extreme(name, source, axes)


def _of_all(name: str, source: SelectedTensor, given: dict[str, Any]) -> Any:
    if name in ("var", "std"):
        return _spread(name, source, given)
    if name not in _EMPTY or given["dim"] is not None or given.get("other") is not None:
        raise depends(source)
    return _extreme(f"a{name.removeprefix('a')}", source, tuple(range(source.whole.rank)))


def _extreme(name: str, source: SelectedTensor, axes: tuple[int, ...]) -> Tensor:
    """The greatest or least of what is selected; of nothing, there is none."""
    if not source.dtype.is_float or source.is_counted:
        raise depends(source)
    known = questions()
    if known is not None:
        known.assume(f"the mask of whose elements the {_WORDS[name]} is taken selects one", here())
    return fresh(current().apply(name, source.or_else(_EMPTY[name]), axes=axes))


_WORDS = {"amax": "greatest", "amin": "least"}


def _spread(name: str, source: SelectedTensor, given: dict[str, Any]) -> Any:
    """The variance, or its root, of what is selected."""
    axes, unbiased, correction = given["dim"], given["unbiased"], given["correction"]
    if isinstance(axes, bool):
        axes, unbiased = None, axes
    less = (1 if unbiased else 0) if correction is None else correction
    if given["keepdim"] or axes_of(axes, source.rank) != (source.start,):
        raise depends(source)
    middle = mean(source, axes, True)
    total = sum(square(sub(source, middle)), axes)
    number = fresh(reduce("sum", current().cast(source.mask, source.dtype), None))
    found = div(total, sub(number, less))
    return elementwise("root", found) if name == "std" else found


for _name in ALONG_SELECTED:
    of_selected(_name)(_along(_name))
