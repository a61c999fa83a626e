"""``jvp`` on a Function: the hand-written forward derivative, how it is called and traced.

In: a Function that defines ``jvp``.  Out: its tangents; a Function that returns what forward does
and the tangents beside it, for the proof.

As in PyTorch ``jvp(ctx, *tangents)`` gets one tangent for each argument of forward, None for what
has none, reads what ``ctx.save_for_forward`` kept, and returns one tangent for each output.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symgrad.errors import ProtocolError, SymgradError, counted, is_limit
from symgrad.frontend.conversions import symbolic_conversions
from symgrad.frontend.evidence import AnyFunction, parameters
from symgrad.frontend.function import (
    Context,
    Function,
    class_of,
    new_context,
    run_forward,
    state_of,
)
from symgrad.frontend.request import Argument, Request
from symgrad.frontend.session import as_symgrad_error, current
from symgrad.frontend.tensor import SymbolicTensor

PREFIX = "tangent_"


class JvpError(ProtocolError):
    """``jvp`` failed, or returned what are no tangents of the outputs.

    ``undecided``: it does what cannot be traced, which says nothing of whether it is right.
    """

    undecided = False


def failure(error: SymgradError, *, undecided: bool) -> JvpError:
    """What an error of a trace says of ``jvp``."""
    found = JvpError(error.what, location=error.location, hint=error.hint)
    found.undecided = undecided
    return found


def has_jvp(function: AnyFunction) -> bool:
    """Is there a hand-written ``jvp``?"""
    return class_of(function).jvp is not Function.jvp


def run_jvp(
    function: AnyFunction, ctx: Context, tangents: Sequence[Any],
    outputs: Sequence[Any],
) -> list[Any]:  # fmt: skip
    """The tangent of each output, None for none.  Raises JvpError for another number of them."""
    returned = class_of(function).jvp(ctx, *tangents)
    found = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(found) != len(outputs):
        raise JvpError(
            f"jvp of {class_of(function).__name__} returned "
            f"{counted(len(found), 'tangent')} for {counted(len(outputs), 'output')}",
            hint="return one for each output, None for one without a derivative",
        )
    return found


# -- for the proof


def pushing(request: Request, *, reference: AnyFunction | None = None) -> Request:
    """The Function that returns the float outputs of forward, and behind them their tangents.

    Its arguments are those of forward, then ``tangent_<name>`` for each float tensor.
    ``reference``: whose outputs are returned instead (a declared surrogate's).
    """
    floats = [arg for arg in request.tensors if _is_float(arg)]
    along = [replace(arg, name=PREFIX + arg.name) for arg in floats]
    arguments = tuple(replace(arg, keyword=False) for arg in (*request.arguments, *along))
    names = [arg.name for arg in arguments]

    def forward(ctx: Any, *values: Any) -> Any:
        with symbolic_conversions(request.function, (one.value for one in request.arguments)):
            return _both(request, reference, dict(zip(names, values, strict=True)))

    def backward(ctx: Any, *cotangents: Any) -> Any:
        return (None,) * len(names)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("ctx", *names)]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    members: dict[str, Any] = {
        "forward": staticmethod(forward), "backward": staticmethod(backward),
        "symgrad_guest": request.cls.symgrad_guest,
    }  # fmt: skip
    made = type(request.cls.__name__, (Function,), members)
    return Request(made, arguments, assumptions=request.assumptions)


def _is_float(argument: Argument) -> bool:
    spec = argument.spec
    return spec is not None and (spec.dtype is None or spec.dtype.is_float)


def _both(request: Request, reference: Any, given: Mapping[str, Any]) -> Any:
    """The float outputs, and their tangents."""
    function = request.function
    ctx = new_context(function, dict(request.init))
    positional = [given[arg.name] for arg in request.positional]
    named = {arg.name: given[arg.name] for arg in request.arguments if arg.keyword}
    ctx.needs_input_grad = tuple(
        isinstance(value, SymbolicTensor) and value.dtype.is_float for value in positional
    )
    result = run_forward(function, ctx, positional, named)
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    said = state_of(ctx)
    constant = said.non_differentiable
    tangents = [given.get(PREFIX + arg.name) for arg in request.positional]
    tangents += [None] * _left_out(request)
    said.pushing = True
    try:
        found = run_jvp(function, ctx, tangents, outputs)
        pairs = [
            (output, _fitting(output, tangent))
            for output, tangent in zip(outputs, found, strict=True)
            if isinstance(output, SymbolicTensor) and output.dtype.is_float
            and not any(output is one for one in constant)
        ]  # fmt: skip
    except JvpError:
        raise
    except Exception as error:
        known = as_symgrad_error(error, "jvp")
        raise failure(known, undecided=is_limit(known)) from None
    finally:
        said.pushing = False
    if reference is not None:
        other = _uncut(
            lambda: run_forward(reference, new_context(reference, {}), positional, named)
        )
        others = list(other) if isinstance(other, (tuple, list)) else [other]
        pairs = [(one, tangent) for one, (_, tangent) in zip(others, pairs, strict=True)]
    values = [one * 1.0 if any(one is given for given in positional) else one for one, _ in pairs]
    return (*values, *(tangent for _, tangent in pairs))


def _uncut(run: Callable[[], Any]) -> Any:
    """What a declared surrogate gives.  Raises JvpError where it detaches something."""
    session = current()
    before, session.detached = session.detached, None
    try:
        found = run()
        if session.detached is None:
            return found
    finally:
        where, session.detached = session.detached, before
    problem = JvpError("the declared surrogate detaches a value", location=where)
    problem.undecided = True
    raise problem


def _left_out(request: Request) -> int:
    """How many trailing defaults of forward, which a call may pass, ``jvp`` has parameters for."""
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = inspect.signature(request.cls.jvp).parameters.values()
    wanted = [one for one in own if one.kind in by_position and one.default is one.empty]
    able = [one for one in parameters(request.function) if one.kind in by_position]
    passed = len(request.positional)
    return max(0, min(len(wanted) - 1, len(able)) - passed)


def _fitting(output: SymbolicTensor, tangent: Any) -> Any:
    """The tangent of an output, zeros for None.  Raises JvpError for another shape."""
    if tangent is None:
        return output * 0.0
    if not isinstance(tangent, SymbolicTensor):
        raise JvpError(f"jvp returned a {type(tangent).__name__} where a tensor is needed")
    if tangent.node.shape != output.node.shape:
        raise JvpError(
            f"jvp returned a tangent of {tangent.node.type} for an output of {output.node.type}"
        )
    return tangent * 1.0 if tangent is output else tangent
