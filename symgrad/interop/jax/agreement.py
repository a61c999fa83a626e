"""Does ``fwd`` return what ``fun`` returns?  JAX runs it in the place of ``fun`` to differentiate.

In: a request.  Out: a finding.

The derivative of ``weight * fun(x)`` by the weight is ``fun(x)``; it is judged against ``fwd(x)``
as a hand-written gradient is.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from symgrad.deadline import TimeUp
from symgrad.errors import SymgradError
from symgrad.frontend.function import Function, new_context, raw_method
from symgrad.frontend.request import Argument, Request
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.trace import trace_request
from symgrad.ir.assume import parse_all
from symgrad.ir.dtype import float64
from symgrad.proof.report.records import CounterexampleReport, Finding, InputReport
from symgrad.proof.report.rendering import worded
from symgrad.proof.report.verdict import Verdict, failure
from symgrad.proof.verify import VerifyOptions, verify_function

NAME = "fwd returns what fun returns"
_WEIGHT = "weight"
_apart: ContextVar[list[bool]] = ContextVar("apart")
"""Gets whether both are other nodes, in each trace; it is no state of the program."""
_CONSTANT = "no gradient by it is judged"
"""How it is said that an argument is constant, as they all are here."""


def findings(request: Request, rank: int | None) -> tuple[Finding, ...]:
    """The finding, for so many batch axes.  ``fwd`` that computes the same is not judged."""
    apart: list[bool] = []
    token = _apart.set(apart)
    weight = _WEIGHT
    while any(one.name == weight for one in request.arguments):
        weight += "_"
    try:
        graphs = trace_request(_weighted(request, weight), batch_rank=rank)
        asked = any(case.observed or case.state for case in graphs.cases)
        if not any(apart) and not asked:
            return (Finding(NAME, Verdict.PROVED),)
        report = verify_function(graphs, VerifyOptions(suggest=False))
    except SymgradError as error:
        return (Finding(NAME, Verdict.UNDECIDED, error.what),)
    except TimeUp as error:
        return (Finding(NAME, Verdict.UNDECIDED, failure(error)),)
    finally:
        _apart.reset(token)
    return (_finding(report.inputs[weight], weight),)


def _finding(found: InputReport, weight: str) -> Finding:
    if found.verdict is Verdict.PROVED:
        said = "; ".join(
            worded(one) for one in found.conditions if not one.text.endswith(_CONSTANT)
        )  # fmt: skip
        return Finding(NAME, found.verdict, said)
    point = found.counterexample
    if found.verdict is Verdict.REFUTED and point is not None:
        return Finding(NAME, found.verdict, _at(point, weight))
    return Finding(NAME, Verdict.UNDECIDED, found.reason)


def _at(point: CounterexampleReport, weight: str) -> str:
    sizes = [f"{name} = {value}" for name, value in point.sizes.items()]
    values = [
        f"{name} = {value}" for name, value in point.inputs.items()
        if name != weight and not name.startswith("grad_")
    ]  # fmt: skip
    return f"at {', '.join((*sizes, *values))} fwd returns another output than fun"


def _weighted(request: Request, weight: str) -> Request:
    """The Function ``weight * fun(x)``, whose backward returns ``fwd(x)`` for the weight."""
    cls: Any = request.cls
    names = [weight, *(one.name for one in request.arguments)]

    def forward(ctx: Any, scale: Any, *values: Any) -> Any:
        inner: Any = new_context(cls, {})
        returned = cls.forward(inner, *values)
        outputs = _floats(returned if isinstance(returned, tuple) else (returned,))
        ctx.found = _floats(inner.fwd_outputs)
        pairs = zip(outputs, ctx.found, strict=True)
        _apart.get().append(any(one.node is not other.node for one, other in pairs))
        ctx.save_for_backward(*ctx.found)
        return tuple(one * scale.to(one.dtype) for one in outputs)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        pairs = zip(ctx.found, cotangents, strict=True)
        total = sum((one * cotangent).sum().to(float64) for one, cotangent in pairs)
        return (total, *(None for _ in names[1:]))

    kind = inspect.Parameter.POSITIONAL_ONLY
    described = [inspect.Parameter(name, kind) for name in ("ctx", *names)]
    forward.__signature__ = inspect.Signature(described)  # type: ignore[attr-defined]
    plain, _ = raw_method(cls, "forward")
    forward.__wrapped__ = plain  # type: ignore[attr-defined]
    forward.__module__ = cls.__module__
    members = {
        "__module__": cls.__module__, "forward": staticmethod(forward),
        "backward": staticmethod(backward),
        "symgrad_guest": cls.symgrad_guest,
    }  # fmt: skip
    made: Any = type(cls.__name__, (Function,), members)
    constant = [
        one for argument in request.arguments
        if argument.spec is not None for one in parse_all({argument.name: "constant"})
    ]  # fmt: skip
    known = {(one.name, one.kind) for one in request.assumptions}
    return replace(
        request, function=made, order=1, guess=None,
        arguments=(Argument(weight, TensorSpec((), dtype=float64)), *request.arguments),
        assumptions=(
            *request.assumptions, *(one for one in constant if (one.name, one.kind) not in known)
        ),
    )  # fmt: skip


def _floats(leaves: Sequence[Any]) -> list[Any]:
    """The tensors, as floats."""
    tensors = [one for one in leaves if isinstance(one, SymbolicTensor)]
    return [one if one.dtype.is_float else fresh(one.node).to(float64) for one in tensors]
