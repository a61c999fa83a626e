"""The gradients of a compiled op as an op of their own, so that they can be differentiated.

In: what ``sg.compile`` returned.  Out: another such op, of the inputs and the cotangents.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.compiler import compile
from symgrad.errors import KernelArgumentError
from symgrad.frontend.evidence import parameters
from symgrad.frontend.function import (
    Context,
    Function,
    attributes_of,
    class_of,
    has_backward,
    new_context,
    run_backward,
    run_forward,
    state_of,
)
from symgrad.frontend.request import Argument, Request
from symgrad.ir.printer import fresh_name


def gradients_of(op: Any) -> Any:
    """The gradients that the backward of ``op`` computes, compiled; their derivative is derived.

    It takes the inputs, then a cotangent for each floating output, then the plain numbers; it gives
    the gradients of all floating inputs.  What forward saved is differentiated as well, as a
    function of the inputs.  Raises KernelArgumentError for an op of a package, and for one without
    a backward of its own, and what ``sg.compile`` raises.
    """
    request: Request | None = getattr(op, "origin", None)
    if request is None:
        raise KernelArgumentError(
            f"nothing says which Function {op!r} was compiled from",
            hint="pass what sg.compile returned",
        )
    if not has_backward(request.function):
        raise KernelArgumentError(
            f"{class_of(request.function).__name__} has no backward whose derivative can be taken",
            hint="write a backward: the one that was derived for it is a kernel, and no program",
        )
    record = op.caller.op
    case = max(record.cases, key=_generality)
    floating = [one for one in case.outputs if one.dtype.startswith("float")]
    arrays = (*case.inputs, *floating)
    groups = {
        group: max((_run(one, name) for one in arrays), key=len)
        for group, name in request.batches.items()
    }  # fmt: skip
    return compile(_gradients(request, record), *(_spec(one, groups) for one in arrays))


class _Finished(Context):
    """The ctx of a forward that is over, inside of another forward."""

    def __init__(self, inner: Context) -> None:
        self._symgrad_state = state_of(inner)
        self._needs_input_grad = inner.needs_input_grad
        self.__dict__.update(attributes_of(inner))

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What the forward kept."""
        return state_of(self).saved


def _generality(case: Any) -> tuple[int, int, int]:
    """More for the case whose shapes hold for more sizes, and then for the one with more axes."""
    dims = [dim for array in (*case.inputs, *case.outputs) for dim in array.dims]
    return -sum(dim.isdigit() for dim in dims), -len(case.conditions), len(dims)


def _run(array: Any, name: str) -> list[str]:
    """Those of its sizes that are batch axes of this name, written out."""
    return [dim for dim in array.dims if re.fullmatch(rf"{name}_\d+", dim)]


def _spec(array: Any, groups: Mapping[str, list[str]]) -> str:
    """The spec of an array: ``f32[n *s m]``.  ``groups``: what batch axes are, written out.

    Raises KernelArgumentError for an array with a part of them.
    """
    dims = [one.replace(" ", "") for one in array.dims]
    if array.batch is not None:
        name, axis, count = array.batch
        dims[axis : axis + count] = [f"*{name}"]
    for group, axes in groups.items():
        own = [place for place, dim in enumerate(dims) if dim in axes]
        if own and dims[own[0] : own[-1] + 1] != axes:
            raise KernelArgumentError(
                f"{array.name}[{', '.join(dims)}] has some of the axes *{group}, not all of them",
                hint='compile the op for one number of axes: "n m", not "*batch m"',
            )
        if own:
            dims[own[0] : own[-1] + 1] = [f"*{group}"]
    kind = array.dtype.replace("float", "f").replace("uint", "u").replace("int", "i")
    return f"{kind}[{' '.join(dims)}]"


def _gradients(request: Request, record: Any) -> type[Function]:
    """The Function whose forward is the backward of another."""
    numbers = {one.name for one in record.numbers}
    floating = [one.dtype.startswith("float") for one in record.cases[0].outputs]
    count = len(request.tensors)

    def forward(ctx: Context, *given: Any, **named: Any) -> Any:
        inner = new_context(request.function, dict(request.init))
        tensors, cotangents = iter(given[:count]), iter(given[count:])
        values = {
            one.name: next(tensors) if one.is_tensor else named.get(one.name, one.value)
            for one in request.arguments
        }
        inner.needs_input_grad = tuple(one.is_tensor for one in request.positional)
        made = run_forward(
            request.function, inner, [values[one.name] for one in request.positional],
            {one.name: values[one.name] for one in request.arguments if one.keyword},
        )  # fmt: skip
        outputs = made if isinstance(made, (tuple, list)) else [made]
        every = [
            next(cotangents) if has else one.new_zeros(one.shape)
            for one, has in zip(outputs, floating, strict=True)
        ]
        found = run_backward(request.function, _Finished(inner), every)
        return _of_tensors(found, request.positional, given[:count], record.differentiable)

    own = {one.name: one for one in parameters(request.function)}
    kind = inspect.Parameter
    names = [one.name for one in request.tensors]
    for place, has in enumerate(floating):
        if has:
            names.append(fresh_name(f"grad_{place}", {*names, *own}))
    taken = [kind(name, kind.POSITIONAL_OR_KEYWORD) for name in ("ctx", *names)]
    taken += [own[name].replace(kind=kind.KEYWORD_ONLY) for name in sorted(numbers)]
    vars(forward)["__signature__"] = inspect.Signature(taken)
    name = f"{record.name}_gradients"
    members = {
        "forward": staticmethod(forward), "__module__": __name__,
        "symgrad_guest": class_of(request.function).symgrad_guest,
    }  # fmt: skip
    return type(name, (Function,), members)


def _of_tensors(
    found: Any, positional: Sequence[Argument], tensors: Sequence[Any], wanted: Sequence[bool]
) -> Any:
    """The gradients of the tensors that have one; zeros for None."""
    listed = list(found) if isinstance(found, (tuple, list)) else [found]
    by_name: Mapping[str, Any] = {
        one.name: value for one, value in zip(positional, listed, strict=False)
    }
    names = [one.name for one in positional if one.is_tensor]
    made = [
        tensor.new_zeros(tensor.shape) if by_name.get(name) is None else by_name[name]
        for name, tensor, asked in zip(names, tensors, wanted, strict=True) if asked
    ]  # fmt: skip
    return made[0] if len(made) == 1 else tuple(made)
