"""Any number of batch axes at once: what is blind to their number, and what is caught.

The claim under test: where ``rank_dependence`` finds nothing, a program does for every number of
batch axes what it does for one, after the batch indices are flattened.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import SymgradError
from symgrad.frontend.anyrank.call import RULES, rule_of
from symgrad.frontend.anyrank.judge import rank_dependence
from symgrad.frontend.anyrank.session import Observation
from symgrad.frontend.request import bind
from symgrad.frontend.spec import parse_spec
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.trace import trace
from symgrad.ir.dtype import float64
from symgrad.ir.graph import ancestors
from symgrad.ops.record import get
from symgrad.passes.evaluate import evaluate
from tests.frontend.anyrank_programs import BLIND, LOOKING
from tests.frontend.support import Array, case_for

SIZES = {"m": 3, "n": 2, "k": 4, "o": 2, "h": 2, "d": 3, "c": 2}
BATCHES = ((), (6,), (2, 3), (1, 2, 3))


def function(program: Callable[..., Any], count: int) -> Any:
    """A Function whose forward is the program."""

    def forward(ctx: Any, *args: Any) -> Any:
        result = program(*args)
        return result if isinstance(result, SymbolicTensor) else args[0] * 1

    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * count

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Program", (sg.Function,), members)


def arrays(specs: tuple[str, ...], batch: tuple[int, ...]) -> list[Array]:
    """Inputs with these batch axes: the first elements of what the largest batch gets."""
    generator = np.random.default_rng(5)
    found = []
    for text in specs:
        spec = parse_spec(text)
        inner = [dim.at(SIZES) for dim in spec.dims]
        at, many = spec.position, [] if spec.batch is None else [6]
        whole: Array = generator.normal(size=(*inner[:at], *many, *inner[at:]))
        kind = str(spec.dtype or "float64")
        whole = (whole > 0) if kind == "bool" else whole.astype(kind)
        if many:
            whole = np.take(whole, range(math.prod(batch)), axis=at)
            whole = whole.reshape((*inner[:at], *batch, *inner[at:]))
        found.append(whole)
    return found


def outputs(found: Any, specs: tuple[str, ...], batch: tuple[int, ...]) -> list[Array]:
    """What forward gives for these batch axes."""
    sizes = dict(SIZES)
    for text in specs:
        name = parse_spec(text).batch
        sizes |= {f"{name}_{axis}": size for axis, size in enumerate(batch)}
    graphs = trace(found, *specs, dtype=float64, batch_rank=len(batch))
    case = case_for(graphs, sizes)
    feeds: Mapping[str, Array] = dict(
        zip(graphs.input_names, arrays(specs, batch), strict=True)
    )  # fmt: skip
    return evaluate(case.outputs, feeds, sizes)


@pytest.mark.parametrize("name", BLIND)
def test_blind(name: str) -> None:
    """It is known to be blind, and it is: the flattened results are those of one batch axis."""
    program, specs = BLIND[name]
    found = function(program, len(specs))
    assert rank_dependence(bind(found, specs), dtype=float64) == frozenset()
    for batch in BATCHES:
        results = outputs(found, specs, batch)
        flat = outputs(found, specs, (math.prod(batch),))
        for one, other in zip(results, flat, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one.ravel(), other.ravel(), rtol=1e-9)


@pytest.mark.parametrize("name", LOOKING)
def test_looking(name: str) -> None:
    """It is caught, and the report says where."""
    program, specs = LOOKING[name]
    observation = rank_dependence(bind(function(program, len(specs)), specs))
    assert isinstance(observation, Observation)
    assert not observation.what.startswith(("with ", "tracing it raises"))  # caught in the trace


# -- the table of operations

AXES = frozenset(
    "dim axis dims dim0 dim1 dim2 start_dim end_dim dimension source".split()  # noqa: SIM905
)
BLOCKS = ("enable_grad", "inference_mode", "no_grad", "set_grad_enabled")
OPERATIONS = sorted(
    name
    for name, call in FUNCTIONS.items()
    if callable(call) and hasattr(call, "__wrapped__") and name not in BLOCKS
)


def with_axis(name: str, call: Callable[..., Any], x: Any, axis: int) -> Any:
    """The operation along an axis, other arguments being whatever will do."""
    given = {"tensors": [x, x], "sizes": (2, 2)}
    args, kwargs = [], {}
    for name, parameter in inspect.signature(call).parameters.items():
        plain = parameter.default is not parameter.empty
        if name in AXES:
            kwargs[name] = axis
        elif not plain and parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not kwargs:
            args.append(given.get(name, x))
        elif not plain and parameter.kind not in (2, 4):  # *args, **kwargs
            kwargs[name] = given.get(name, x)
    return call(*args, **kwargs)


@pytest.mark.parametrize(
    "name",
    [name for name in OPERATIONS if AXES & set(inspect.signature(FUNCTIONS[name]).parameters)],
)
def test_axis_across_the_batch_axis(name: str) -> None:
    """Whatever takes an axis is caught where it is counted across the batch axis."""
    for axis in (1, -4):
        found = function(lambda x, axis=axis: with_axis(name, FUNCTIONS[name], x, axis), 1)
        observation = rank_dependence(bind(found, ["*batch 4 4"]))
        assert isinstance(observation, Observation)
        assert any(
            text in observation.what
            for text in ("counted across", "takes the axis", "not known", "takes an index")
        ), observation


UNLISTED = [name for name in OPERATIONS if rule_of(name, FUNCTIONS[name]) is None]


@pytest.mark.parametrize("name", UNLISTED)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_unlisted_operations_do_more_than_compute_elements(name: str, count: int) -> None:
    """What is made of elementwise ops alone has their rule, or is named with them."""

    def program(*args: Any) -> Any:
        result = FUNCTIONS[name](*args)
        assert isinstance(result, SymbolicTensor)
        return result

    try:
        (case,) = trace(function(program, count), *["n m"] * count).cases
    except (SymgradError, AssertionError, TypeError, ValueError):
        return
    kinds = {get(node.op).kind for node in ancestors(case.outputs) if node.op != "expand"}
    alone = "elementwise" in kinds and kinds <= {"elementwise", "source"}
    assert not alone or name == "prelu", "its weights may belong to axis 1"


@pytest.mark.parametrize("name", UNLISTED)
def test_unlisted(name: str) -> None:
    """An operation without a rule is taken to depend on the number of axes."""

    def program(x: Any) -> Any:
        return FUNCTIONS[name](x) if name != "meshgrid" else FUNCTIONS[name](x, x)

    observation = rank_dependence(bind(function(program, 1), ["*batch 4 4"]))
    assert isinstance(observation, Observation)
    assert "is not known" in observation.what


def test_rules_name_operations() -> None:
    """No rule is for a name that does not exist."""
    linalg = vars(FUNCTIONS["linalg"])
    for name in RULES:
        known = hasattr(SymbolicTensor, name) or name in FUNCTIONS
        assert known or name.removeprefix("linalg.") in linalg, name
