"""The backward operations of ATen that classes call by name, and torch has no definition of.

In: the arguments of ``torch.ops.aten.name_backward``.  Out: gradients.

Most are the reverse of what the operation computes; those that get the places of elements, or
that ask on which side of a threshold an element is, are written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.autodiff.reverse import vjp
from symgrad.errors import UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.questions import note_limit
from symgrad.frontend.session import current
from symgrad.frontend.table import functions
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.graph import Node
from symgrad.ir.rewrite import rewrite

Tensor = SymbolicTensor


def pulled(
    name: str, grad: Any, made: Callable[..., Any], *inputs: Any, mask: Sequence[bool] | None = None
) -> tuple[Any, ...]:  # fmt: skip
    """What arrives at the inputs of an operation, by the rules of the operations it is made of.

    ``mask``: of which inputs it is asked; None stands for the others.
    """
    session = current()
    if session.any_rank:
        session.observe(f"{name} is called")  # type: ignore[attr-defined]
    if session.history is not None and session.history.following:
        session.history.give_up(f"the derivative of {name} is not followed")
    own = [as_tensor(one).node for one in inputs]
    leaves = [session.apply("detach", one, why=f"{name}:{at}") for at, one in enumerate(own)]
    output = as_tensor(made(*map(fresh, leaves))).node
    given = session.expand(session.cast(as_tensor(grad).node, output.dtype), output.shape)
    found = vjp([output], [given], leaves)
    back: Mapping[Node, Node] = dict(zip(leaves, own, strict=True))
    new = rewrite(session.graph, [one for one in found if one is not None], back)
    asked = mask or (True,) * len(own)
    return tuple(
        None if not wanted
        else functions.zeros_like(fresh(source)) if node is None
        else fresh(new[node])
        for wanted, node, source in zip(asked, found, own, strict=True)
    )  # fmt: skip


def _alone(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    """Of an operation of one tensor, which the backward gets after what arrives."""

    def call(grad: Any, input: Any, *settings: Any, **named: Any) -> Any:
        return pulled(name, grad, lambda one: made(one, *settings, **named), input)[0]

    return call


def _of_shape(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    """Of a linear operation, of whose input the backward gets the sizes."""

    def call(grad: Any, sizes: Any, *settings: Any, **named: Any) -> Any:
        like = functions.zeros(*sizes, dtype=as_tensor(grad).dtype)
        return pulled(name, grad, lambda one: made(one, *settings, **named), like)[0]

    return call


def _resized(mode: str, name: str) -> Callable[..., Any]:
    """Of images in other sizes: ``grad, output_size, input_size, [align_corners], scales``."""

    def call(grad: Any, output_size: Any, input_size: Any, *given: Any, **named: Any) -> Any:
        settings = list(given)
        align = named.get(
            "align_corners", settings.pop(0) if mode in _ALIGNED and settings else None
        )
        scales = [*settings, *(named[key] for key in named if key.startswith("scale"))]
        if any(one is not None for one in scales):
            _refuse(f"{name} is given scales", "leave them out: they follow from the sizes")
        like = functions.zeros(*input_size, dtype=as_tensor(grad).dtype)
        how = {"mode": mode, "align_corners": align}
        sizes = list(output_size)
        return pulled(name, grad, lambda one: functions.interpolate(one, sizes, **how), like)[0]

    return call


_ALIGNED = ("linear", "bilinear", "bicubic", "trilinear")


def _refuse(what: str, hint: str) -> None:
    raise note_limit(UnsupportedOpError(what, location=here(), hint=hint))


GRID_MODES, GRID_PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sampler(input: Any, grid: Any, mode: int, padding_mode: int, align_corners: bool) -> Any:
    """``F.grid_sample`` with numbers for its modes."""
    return functions.grid_sample(
        input, grid, GRID_MODES[mode], GRID_PADDINGS[padding_mode], align_corners
    )


def _grid_sampler_backward(
    grad_output: Any, input: Any, grid: Any, interpolation_mode: int, padding_mode: int,
    align_corners: bool, output_mask: Sequence[bool] = (True, True),
) -> Any:  # fmt: skip
    by_input, by_grid = pulled(
        "grid_sampler_2d_backward", grad_output,
        lambda *two: grid_sampler(two[0], two[1], interpolation_mode, padding_mode, align_corners),
        input, grid, mask=(output_mask[0], True),
    )  # fmt: skip
    return by_input, by_grid if output_mask[1] else functions.zeros_like(as_tensor(grid))


def _pool_backward(count: int) -> Callable[..., Any]:
    """Of the greatest elements: what arrives goes to the places that are given."""

    def call(
        grad_output: Any, input: Any, *settings: Any, indices: Any = None, **named: Any
    ) -> Any:
        places = as_tensor(settings[-1] if indices is None else indices)
        source, given = as_tensor(input), as_tensor(grad_output)
        lead, own = source.shape[:-count], source.shape[-count:]
        flat = functions.zeros(*lead, math.prod(own), dtype=source.dtype)
        found = flat.scatter_add(-1, places.flatten(-count), given.flatten(-count))
        return found.reshape(*lead, *own)

    return call


def _shrink_backward(grad: Any, input: Any, lambd: Any) -> Any:
    """Nothing passes from -lambd to lambd."""
    source = as_tensor(input)
    inside = functions.logical_and(source >= -lambd, source <= lambd)
    return functions.where(inside, 0.0, as_tensor(grad))


def _cdist_backward(grad: Any, x1: Any, x2: Any, p: float, cdist: Any) -> Any:
    return pulled(
        "_cdist_backward", grad, lambda one, other: functions.cdist(one, other, p), x1, x2
    )[0]


def _padded(mode: str) -> Callable[..., Any]:
    return lambda one, padding: functions.pad(one, list(padding), mode=mode)


def _unfolded(one: Any, dim: int, size: int, step: int) -> Any:
    return current().call("unfold", vars(SymbolicTensor)["unfold"], (one, dim, size, step), {})


BACKWARDS: dict[str, Callable[..., Any]] = {
    "grid_sampler_2d": grid_sampler, "grid_sampler": grid_sampler,
    "grid_sampler_2d_backward": _grid_sampler_backward,
    "softshrink_backward": _shrink_backward, "hardshrink_backward": _shrink_backward,
    "glu_backward": _alone("glu_backward", lambda one, dim: functions.glu(one, dim)),
    "_cdist_backward": _cdist_backward,
    "unfold_backward": _of_shape("unfold_backward", _unfolded),
    "_adaptive_avg_pool2d_backward": lambda grad, input: _alone(
        "_adaptive_avg_pool2d_backward",
        lambda one: functions.adaptive_avg_pool2d(one, tuple(as_tensor(grad).shape[-2:])),
    )(grad, input),
    **{f"max_pool{count}d_with_indices_backward": _pool_backward(count) for count in (2, 3)},
    **{
        f"avg_pool{count}d_backward": _alone(
            f"avg_pool{count}d_backward",
            lambda one, *settings, count=count, **named:
                getattr(functions, f"avg_pool{count}d")(one, *settings, **named),
        )
        for count in (2, 3)
    },
    **{
        f"{kind}_pad{count}d_backward": _alone(f"{kind}_pad{count}d_backward", _padded(mode))
        for kind, mode in (("reflection", "reflect"), ("replication", "replicate"))
        for count in (1, 2, 3)
    },
    **{
        f"upsample_{mode}{count}d_backward": _resized(mode, f"upsample_{mode}{count}d_backward")
        for mode, counts in (("nearest", (1, 2, 3)), ("linear", (1,)), ("bilinear", (2,)),
                             ("bicubic", (2,)), ("trilinear", (3,)))
        for count in counts
    },
}  # fmt: skip
"""What ATen's backward operations are, and two that have other arguments there."""
