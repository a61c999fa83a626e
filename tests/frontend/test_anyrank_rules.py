"""The rules for any rank, by drawn calls: what they admit is blind to the number of batch axes.

Every operation with a rule is called with drawn tensors and arguments.  Where nothing is observed,
the values for 0, 1, 2 and 3 batch axes must be those for one axis of as many elements.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import SymgradError
from symgrad.frontend.anyrank.call import RULES, rule_of
from symgrad.frontend.anyrank.judge import rank_dependence
from symgrad.frontend.anyrank.session import Observation
from symgrad.frontend.request import bind
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dtype import float64
from tests.frontend.support import Array
from tests.frontend.test_anyrank import BATCHES, outputs

LAYOUTS = ("*batch m", "*batch m m", "*batch 3 4", "*batch 2 h m", "n *batch", "n *batch m",
           "*batch", "n n *batch m k")  # fmt: skip
OTHERS = ("m", "m k", "3 4", "4", "n m", "i64[m]", "", "1", "h m")
INDICES: tuple[Any, ...] = (
    Ellipsis, 0, slice(None), (Ellipsis, 0), (Ellipsis, None), (None, Ellipsis, 0),
    (0, Ellipsis, -1), (Ellipsis, slice(1, None)), (Ellipsis, [0, 1]), (0, 0),
)  # fmt: skip
EQUATIONS = ("...i,...i->...", "...i->...", "...ij->...ji", "ij,jk->ik", "...i,ij->...j", "...,...")
POOLS: dict[str, tuple[Any, ...]] = {
    "keepdim": (True, False), "descending": (True, False), "unbiased": (True, False),
    "equation": EQUATIONS, "key": INDICES, "pad": ((1, 1), (0, 1, 1, 0), (1, 0, 0, 1, 1, 1)),
    "chunks": (1, 2), "n": (1, 2), "k": (1, 2), "p": (1, 2), "num_classes": (5,),
    "split_size_or_sections": (1, [1, 2], [2, 2]), "split_sizes": ([1, 2], [1, 1]),
    "reduction": ("sum", "mean", "none"), "upper": (True, False), "index": (0, 1, "T1", "T2"),
}  # fmt: skip
AXES = ("dim", "axis", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "dimension",
        "source", "destination", "axes_given")  # fmt: skip
SHAPED = ("view", "reshape", "expand", "zeros", "ones", "empty", "new_zeros", "new_ones", "sizes")
NUMBERS = ("shifts", "repeats", "offset", "diagonal", "start", "length", "step", "size", "N")
SHAPES: tuple[Callable[..., Any], ...] = (
    lambda x, y: x.shape, lambda x, y: y.shape, lambda x, y: x.shape[:-1] + (2, -1),  # noqa: RUF005
    lambda x, y: (-1, 3), lambda x, y: (-1,), lambda x, y: (2, *y.shape), lambda x, y: y.shape[-1:],
)  # fmt: skip


def argument(draw: Any, name: str, default: Any) -> Any:
    """Something for a parameter of that name; ``T0``, ``T1``... stand for tensors."""
    if name in AXES:
        return draw(st.sampled_from([-1, -2, -3, 0, 1, 2, (-1, -2), (0, -1), default]))
    if name in SHAPED or name in ("normalized_shape", "shape"):
        return draw(st.sampled_from(SHAPES))
    if name in POOLS:
        return draw(st.sampled_from(POOLS[name]))
    if name in NUMBERS:
        return draw(st.integers(-1, 2))
    if name == "tensors":
        return ["T0", "T1"]
    if default is not inspect.Parameter.empty and draw(st.booleans()):
        return default
    return draw(st.sampled_from(["T0", "T1", "T1", "T2", 2.0]))


def arguments(draw: Any, name: str, call: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for a call; the first tensor first."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in inspect.signature(call).parameters.values():
        kind, default = parameter.kind, parameter.default
        if kind is parameter.VAR_KEYWORD or parameter.name in ("dtype", "inplace", "out"):
            continue
        if not args and parameter.name not in ("size", "equation", "tensors"):
            args.append("T0")
        elif kind is parameter.VAR_POSITIONAL:
            word = name if name in SHAPED else parameter.name
            args += [argument(draw, word, None) for _ in range(draw(st.integers(1, 2)))]
        elif kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = argument(draw, parameter.name, default)
        else:
            args.append(argument(draw, parameter.name, default))
    return args, kwargs


def function(name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A Function that makes the call, and gives what it returns and what became of the tensors."""

    def resolved(value: Any, tensors: list[Any]) -> Any:
        if isinstance(value, str) and value in ("T0", "T1", "T2"):
            return tensors[int(value[1])]
        if isinstance(value, list):
            return [resolved(item, tensors) for item in value]
        return value(*tensors[:2]) if value in SHAPES else value

    def forward(ctx: Any, *given: Any) -> Any:
        tensors = [tensor.clone() for tensor in given]
        values = [resolved(value, tensors) for value in args]
        result = called(name)(*values, **{n: resolved(v, tensors) for n, v in kwargs.items()})
        found = (
            result if isinstance(result, tuple) and type(result).__name__ != "Shape" else [result]
        )
        return (*[one for one in found if isinstance(one, SymbolicTensor)], *tensors)

    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Called", (sg.Function,), members)


def called(name: str) -> Any:
    """The operation, as a function of the tensor."""
    if name.startswith("linalg."):
        return getattr(FUNCTIONS["linalg"], name.removeprefix("linalg."))
    if callable(FUNCTIONS.get(name)):
        return FUNCTIONS[name]
    if isinstance(inspect.getattr_static(SymbolicTensor, name), property):
        return lambda input: getattr(input, name)
    if name.startswith("__"):
        return lambda input, *args: getattr(type(input), name)(input, *args)
    return lambda input, *args, **kwargs: getattr(input, name)(*args, **kwargs)


def signature_of(name: str) -> Callable[..., Any]:
    """What bears the signature of an operation."""
    found: Any = inspect.getattr_static(SymbolicTensor, name, None)
    if callable(FUNCTIONS.get(name)) or "." in name or isinstance(found, property):
        return called(name)
    return found


OF_OPS = sorted(
    name for name, call in {**vars(SymbolicTensor), **FUNCTIONS}.items()
    if isinstance(call, FunctionType) and name not in RULES and rule_of(name, call)
)  # fmt: skip
"""Operations that have the rule of elementwise ops because they are elementwise."""
STRUCTURAL = sorted(RULES)


def check(name: str, data: st.DataObject) -> None:
    """Draw a call; if nothing is observed, compare the numbers of batch axes."""
    first = data.draw(st.sampled_from(LAYOUTS))
    others = st.sampled_from((first, first, *OTHERS, f"i64[{first}]", f"bool[{first}]", *LAYOUTS))
    specs = (first, data.draw(others), data.draw(others))
    found = function(name, *arguments(data.draw, name, signature_of(name)))
    try:
        observation = rank_dependence(bind(found, specs), dtype=float64)
    except SymgradError:
        return
    if isinstance(observation, Observation):
        differs = observation.what.startswith("with ")  # a rule is wrong
        assert not differs or observation.what.endswith("other cases"), observation
        return
    for batch in BATCHES:
        results = values(found, specs, batch)
        flat = values(found, specs, (math.prod(batch),))
        for one, other in zip(results, flat, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one.ravel(), other.ravel(), rtol=1e-7, atol=1e-12)


def values(found: Any, specs: tuple[str, ...], batch: tuple[int, ...]) -> list[Array]:
    """What forward gives for these batch axes; nothing where its sizes are negative."""
    try:
        return outputs(found, specs, batch)
    except (SymgradError, ValueError):
        return []


@pytest.mark.slow
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(STRUCTURAL), data=st.data())
def test_structural(name: str, data: st.DataObject) -> None:
    check(name, data)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(sorted({*RULES, *OF_OPS})), data=st.data())
def test_any(name: str, data: st.DataObject) -> None:
    check(name, data)
