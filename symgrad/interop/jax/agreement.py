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

import jax
import jax.numpy as jnp

from symgrad.deadline import TimeUp
from symgrad.errors import Location, SymgradError
from symgrad.frontend.function import (
    Function,
    new_context,
    raw_method,
    surrogate_of,
    surrogates_of,
)
from symgrad.frontend.request import Argument, Request
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.trace import trace_request
from symgrad.interop.jax.equations import cuts
from symgrad.interop.jax.tracing import Tree, precision, run
from symgrad.ir.assume import parse_all
from symgrad.ir.dtype import float64
from symgrad.proof.report.records import CounterexampleReport, Finding, InputReport, Report
from symgrad.proof.report.rendering import worded
from symgrad.proof.report.verdict import Verdict, failure
from symgrad.proof.verify import VerifyOptions, verify_function

NAME = "fwd returns what fun returns"
_WEIGHT = "weight"
_apart: ContextVar[list[bool]] = ContextVar("apart")
"""Gets whether both are other nodes, in each trace; it is no state of the program."""
_CONSTANT = "no gradient by it is judged"
"""How it is said that an argument is constant, as they all are here."""


def completed(request: Request, report: Report, rank: int | None) -> Report:
    """A report with the finding on ``fwd``, for so many batch axes.

    Where the derivative of ``fun`` in JAX is not that of its values, because it says itself what is
    differentiated (``stop_gradient``, nested custom rules), nothing is decided.
    """
    if not hasattr(request.cls, "symgrad_rules"):
        return report
    apart: list[bool] = []
    lines: list[Location | None] = []
    tokens = _apart.set(apart), cuts.set(lines)
    try:
        found = _agreement(request, rank, apart)
    finally:
        _apart.reset(tokens[0])
        cuts.reset(tokens[1])
    report = replace(report, protocol=(*report.protocol, found))
    declared = surrogate_of(request.function) is not None or surrogates_of(request.function)
    if not lines or declared or report.verdict is Verdict.UNDECIDED or _is_true(request, rank):
        return report
    said = (
        f"fun says itself what is differentiated, with stop_gradient or a nested rule ({lines[0]}):"
        " no proof was found that its derivative in JAX is that of its values"
    )
    inputs = {
        name: replace(
            one, verdict=Verdict.UNDECIDED, reason=said, surrogate="", suggestion=None,
            diagnosis=(), derived=None, counterexample=None, method="", conditions=(), cases=(),
        )
        for name, one in report.inputs.items()
    }  # fmt: skip
    return replace(report, inputs=inputs)


def _agreement(request: Request, rank: int | None, apart: Sequence[bool]) -> Finding:
    """The finding on ``fwd``; one that computes the same as ``fun`` is not judged."""
    weight = _WEIGHT
    while any(one.name == weight for one in request.arguments):
        weight += "_"
    try:
        graphs = trace_request(_weighted(request, weight), batch_rank=rank)
        asked = any(case.observed or case.state for case in graphs.cases)
        if not any(apart) and not asked:
            return Finding(NAME, Verdict.PROVED)
        report = verify_function(graphs, VerifyOptions(suggest=False))
    except SymgradError as error:
        return Finding(NAME, Verdict.UNDECIDED, error.what)
    except TimeUp as error:
        return Finding(NAME, Verdict.UNDECIDED, failure(error))
    return _finding(report.inputs[weight], weight)


def _is_true(request: Request, rank: int | None) -> bool:
    """Is the derivative of ``fun`` in JAX that of its values?"""
    try:
        graphs = trace_request(_differentiated(request), batch_rank=rank)
        return verify_function(graphs, VerifyOptions(suggest=False)).verdict is Verdict.PROVED
    except (SymgradError, TimeUp):
        return False


def _differentiated(request: Request) -> Request:
    """The Function of ``fun``, whose backward is ``jax.vjp``."""
    cls: Any = request.cls
    fun = cls.symgrad_rules[0]

    def forward(ctx: Any, *values: Any, **passed: Any) -> Any:
        inner: Any = new_context(cls, {})
        returned = cls.forward(inner, *values, **passed)
        ctx.save_for_backward(*(one for one in values if isinstance(one, SymbolicTensor)))
        ctx.given = inner.call.flat
        return returned

    def backward(ctx: Any, *cotangents: Any) -> Any:
        given = ctx.given
        floats = [
            place for place, one in enumerate(given)
            if isinstance(one, SymbolicTensor) and one.dtype.is_float
        ]  # fmt: skip
        weights = [one for one in cotangents if one is not None]

        def pulled(values: Any, weights: Any) -> Any:
            def outputs(*moved: Any) -> list[Any]:
                known = list(values)
                for place, one in zip(floats, moved, strict=True):
                    known[place] = one
                leaves = jax.tree_util.tree_leaves(fun(*cls.symgrad_layout.grouped(known)))
                return [one for one in leaves if jnp.issubdtype(jnp.result_type(one), jnp.floating)]

            return jax.vjp(outputs, *(values[place] for place in floats))[1](list(weights))

        with precision(given):
            found = run(pulled, [Tree.of(tuple(given)), Tree.of(tuple(weights))], "jax.vjp").leaves
        gradients = dict(zip(floats, found, strict=True))
        return tuple(gradients.get(place) for place in range(len(given)))

    return replace(request, function=_made(cls, forward, backward, ()), order=1, guess=None)


def _made(cls: Any, forward: Any, backward: Any, more: Sequence[str]) -> Any:
    """A Function of the user's code, with more arguments before those of ``cls``."""
    plain, hidden = raw_method(cls, "forward")
    own = list(inspect.signature(plain).parameters.values())
    kind = inspect.Parameter.POSITIONAL_ONLY
    added = [inspect.Parameter(name, kind) for name in more]
    forward.__signature__ = inspect.Signature([*own[:hidden], *added, *own[hidden:]])
    forward.__wrapped__ = plain
    forward.__module__ = cls.__module__
    members = {
        "__module__": cls.__module__, "forward": staticmethod(forward),
        "backward": staticmethod(backward), "symgrad_guest": cls.symgrad_guest,
        "symgrad_rules": cls.symgrad_rules, "symgrad_function": cls.symgrad_function,
        "symgrad_layout": cls.symgrad_layout,
    }  # fmt: skip
    return type(cls.__name__, (Function,), members)


def _finding(found: InputReport, weight: str) -> Finding:
    if found.verdict is Verdict.PROVED:
        said = "; ".join(
            worded(one) for one in found.conditions if not one.text.endswith(_CONSTANT)
        )  # fmt: skip
        return Finding(NAME, found.verdict, said, limits=bool(said))
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

    def forward(ctx: Any, scale: Any, *values: Any, **passed: Any) -> Any:
        inner: Any = new_context(cls, {})
        returned = cls.forward(inner, *values, **passed)
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

    made = _made(cls, forward, backward, (weight,))
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
