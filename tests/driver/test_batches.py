"""Kernels for any number of batch axes, against traces in which these axes are written out."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad import abi
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.frontend.anyrank.judge import rank_dependence
from symgrad.frontend.anyrank.serving import serving
from symgrad.frontend.request import bind
from symgrad.frontend.spec import TensorSpec, parse_spec
from symgrad.frontend.trace import trace
from symgrad.kernels import plan, with_backward
from symgrad.numpy_op import NumpyOp
from symgrad.passes.evaluate import evaluate
from tests.frontend.anyrank_programs import BLIND

pytestmark = pytest.mark.usefixtures("unoptimised")

Array = np.ndarray[Any, Any]
AXES = {0: (), 1: (6,), 2: (2, 3), 3: (3, 1, 2), 4: (1, 2, 2, 2)}
NAMED = {"m": 4, "n": 3, "o": 2, "k": 5, "d": 2, "h": 2, "c": 2}
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler was found")


class Weighted(sg.Function):
    """Several groups of axes meet: those of x, which come back, and all of them together."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        y = sg.softmax(x, -1)
        ctx.save_for_backward(x, w, y)
        return y * w, (x * x).reshape(-1), (y * w).sum(-1)

    @staticmethod
    def backward(ctx: Any, g: Any, flat: Any, h: Any) -> Any:
        x, w, y = ctx.saved_tensors
        g = g + h.unsqueeze(-1)
        inner = g * w
        softmax = y * (inner - (inner * y).sum(-1, keepdim=True))
        return softmax + 2 * x * flat.reshape(x.shape), (g * y).reshape(-1, x.shape[-1]).sum(0)


class Between(sg.Function):
    """The batch axes stand between others, in two inputs."""

    @staticmethod
    def forward(ctx: Any, x: Any, z: Any) -> Any:
        ctx.save_for_backward(x, z)
        return x * z, x.sum(0)

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, z = ctx.saved_tensors
        return g * z + h, g * x


class ByItself(sg.Function):
    """Matrices go another way."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.t().sin().t() if x.ndim == 2 else x.sin()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.cos()


class Looks(sg.Function):
    """What it computes depends on the number of axes."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.factor = float(len(x.shape))
        return x * ctx.factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor


class Refuses(sg.Function):
    """Does not accept vectors."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.ndim < 2:
            raise ValueError("a matrix is needed")
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


SERVED: dict[str, tuple[Any, tuple[str, ...], Sequence[int]]] = {
    "weighted": (Weighted, ("f64[*batch m]", "f64[m]"), (0, 1, 2, 3, 4)),
    "all": (Weighted, ("f64[n *batch m]", "f64[m]"), (0, 1, 2, 3, 4)),
    "between": (Between, ("f64[n *batch m]", "f64[n *batch m]"), (0, 1, 2, 3, 4)),
    "by itself": (ByItself, ("f64[*batch m]",), (0, 1, 2, 3, 4)),
    "looks": (Looks, ("f64[*batch m]",), (0, 1, 2, 3)),
    "refuses": (Refuses, ("f64[*batch m]",), (1, 2, 3, 4)),
}


@cache
def compiled(name: str) -> Any:
    function, specs, _ = SERVED[name]
    return sg.compile(function, *specs)


def drawn(specs: Sequence[TensorSpec], axes: tuple[int, ...]) -> list[Array]:
    generator = np.random.default_rng(len(axes))
    found = []
    for one in specs:
        shape = [dim.at(NAMED) for dim in one.dims]
        if one.batch is not None:
            shape[one.position : one.position] = axes
        kind = str(one.dtype or "float32")
        found.append(generator.uniform(-2, 2, shape).astype(kind))
    return found


def several(found: Any) -> list[Array]:
    return list(found) if isinstance(found, tuple) else [found]


def written_out(function: Any, specs: Sequence[str], arrays: Sequence[Array], rank: int) -> Any:
    """The outputs, and the gradients for cotangents: of the trace with so many batch axes."""
    graphs = with_backward(trace(function, *specs, batch_rank=rank))
    feeds = dict(zip(graphs.input_names, arrays, strict=True))
    sizes = {
        str(dim): extent
        for node, array in zip(graphs.cases[0].inputs, arrays, strict=True)
        for dim, extent in zip(node.shape, array.shape, strict=True)
        if str(dim).isidentifier()
    }
    (case,) = (
        one for one in graphs.cases
        if all(abi.evaluate(str(condition), sizes) for condition in one.conditions)
    )  # fmt: skip

    def gradients(cotangents: Sequence[Array]) -> list[Array | None]:
        pairs = zip(case.cotangents, cotangents, strict=True)
        given = {node.attributes["name"]: value for node, value in pairs if node is not None}
        found = {one.input: one.node for one in case.gradients if one.node is not None}
        values = evaluate(list(found.values()), {**feeds, **given}, sizes)
        named = dict(zip(found, values, strict=True))
        return [named.get(name) for name in feeds]

    return evaluate(case.outputs, feeds, sizes), gradients


def same(found: Sequence[Array | None], wanted: Sequence[Array | None]) -> None:
    for one, other in zip(found, wanted, strict=True):
        if other is None or one is None:
            assert one is other or not np.any(one if other is None else other)
            continue
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        tolerance = 1e-4 if one.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def apart(array: Array) -> Array:
    """The same numbers, in the opposite order of axes, every other element of the memory."""
    wide = np.zeros((*array.shape[::-1], 2), array.dtype)
    wide[..., 0] = array.T
    return wide[..., 0].T


def contiguous(array: Array) -> Array:
    return array


def check(op: Any, function: Any, specs: Sequence[str], rank: int, lay: Any = contiguous) -> None:
    arrays = drawn([parse_spec(one) for one in specs], AXES[rank])
    outputs, gradients = written_out(function, specs, arrays, rank)
    found, residuals = op.forward(*map(lay, arrays))
    same(several(found), outputs)
    same(several(op(*map(lay, arrays))), outputs)
    generator = np.random.default_rng(9)
    cotangents = [
        generator.standard_normal(one.shape).astype(one.dtype) if one.dtype.kind == "f" else None
        for one in outputs
    ]
    expected = gradients(cotangents)
    for mask in itertools.product((True, False), repeat=len(arrays)):
        given = [None if one is None else lay(one) for one in cotangents]
        got = op.backward(residuals, *given, needs_input_grad=mask)
        same(got, [one if asked else None for one, asked in zip(expected, mask, strict=True)])
    for one, array in zip(op.caller.op.cases[-1].inputs, arrays, strict=True):
        assert residuals.arrays.get(one.name, array).shape == array.shape


LAYOUTS: dict[str, Callable[[Array], Array]] = {"contiguous": contiguous, "apart": apart}


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SERVED)
def test_every_number_of_axes(name: str, layout: str) -> None:
    function, specs, ranks = SERVED[name]
    for rank in ranks:
        check(compiled(name), function, specs, rank, LAYOUTS[layout])


@pytest.mark.slow
@needs_compiler
def test_results_go_to_arrays_of_the_caller() -> None:
    op = compiled("weighted")
    for axes in AXES.values():
        x, w = drawn([parse_spec(one) for one in SERVED["weighted"][1]], axes)
        outputs, residuals = op.forward(x, w)
        own = tuple(np.full_like(one, np.nan) for one in outputs)
        assert op.forward(x, w, out=own)[0][0] is own[0]
        same(own, outputs)
        found = op.backward(residuals, *outputs)
        buffers = tuple(np.full_like(one, np.nan) for one in (x, w))
        op.backward(residuals, *outputs, out=buffers)
        same(buffers, found)


@needs_compiler
def test_behind_the_tape() -> None:
    op = compiled("weighted")
    for axes in AXES.values():
        arrays = drawn([parse_spec(one) for one in SERVED["weighted"][1]], axes)
        x, w = (sg.from_numpy(one).requires_grad_() for one in arrays)
        ours = sg.autograd.grad(sum(one.square().sum() for one in op(x, w)), (x, w))
        eager = sg.autograd.grad(sum(one.square().sum() for one in Weighted.apply(x, w)), (x, w))
        same([one.numpy() for one in ours], [one.numpy() for one in eager])


@needs_compiler
def test_axes_that_disagree() -> None:
    op = compiled("between")
    x = np.zeros((3, 2, 5, 4))
    with pytest.raises(KernelArgumentError, match=r"x and z disagree on \*batch: \(2, 5\) and \(5"):
        op.forward(x, np.zeros((3, 5, 2, 4)))
    with pytest.raises(KernelArgumentError, match=r"disagree on m: 4 \(axis 3 of .* and 5"):
        op.forward(x, np.zeros((3, 2, 5, 5)))
    with pytest.raises(KernelArgumentError, match=r"1 axis where float64\[n, \*batch, m\] has at"):
        op.forward(x, np.zeros(3))
    _, residuals = op.forward(x, x)
    with pytest.raises(KernelArgumentError, match=r"has the shape \(3, 10, 4\), .* has \(3, 2, 5"):
        op.backward(residuals, np.zeros((3, 10, 4)), np.zeros((2, 5, 4)))


@needs_compiler
@pytest.mark.parametrize(
    ("name", "rank", "said"),
    [
        (
            "looks",
            4,
            r"5 axes where float64\[m\] has 1 axis\n.*for float64\[m\] or .*batch_2, m\]$",
        ),
        ("refuses", 0, r"no kernel serves 0 axes for \*batch"),
    ],
)
def test_numbers_of_axes_that_were_not_proved_are_refused(name: str, rank: int, said: str) -> None:
    with pytest.raises(KernelArgumentError) as caught:
        compiled(name).forward(np.zeros((*AXES[rank], 4)))
    assert re.search(said, str(caught.value))


@needs_compiler
def test_one_kernel_serves_all() -> None:
    """One axis in C, whatever their number."""
    (case,) = compiled("weighted").caller.op.cases
    assert case.inputs[0].dims == ("batch", "m")
    assert str(case.inputs[0]) == "float64[*batch, m]"
    assert [str(one) for one in case.outputs] == [
        "float64[*batch, m]", "float64[batch*m]", "float64[*batch]",
    ]  # fmt: skip


FAST = ("star", "equal shapes", "flattened", "weight", "einsum", "left of the batch axis",
        "two batch axes",
        "scatter", "last size", "sum_to_size")  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        one if one in FAST else pytest.param(one, marks=pytest.mark.slow)
        for one in sorted(BLIND)
        if one != "deepcopy"  # cuts a value off, which needs a backward by hand
    ],
)
def test_programs_that_are_blind_to_the_number_of_axes(name: str) -> None:
    """On NumPy: one axis in place of all of them gives what a trace with each number gives."""
    program, written = BLIND[name]
    specs = [one if "[" in one else f"f64[{one}]" for one in written]
    members = {"forward": staticmethod(lambda ctx, *args: program(*args))}
    function = type("Blind", (sg.Function,), members)
    numbers = rank_dependence(bind(function, specs))
    assert isinstance(numbers, frozenset)
    graphs = trace(function, *specs)
    op = NumpyOp(plan(replace(graphs, cases=serving(bind(function, specs), numbers))))
    for rank in sorted({0, 1, 2, 3} - numbers):
        check(op, function, specs, rank)


@needs_compiler
def test_residuals_whose_axes_were_made_up() -> None:
    op = compiled("weighted")
    x, w = drawn([parse_spec(one) for one in SERVED["weighted"][1]], (2, 3))
    outputs, residuals = op.forward(x, w)
    assert residuals.sizes == {"m": 4}
    assert residuals[-1] == (2, 3)
    for axes in ((6,), (3, 2), (2, 3, 9), (-2, -3), (2.0, 3.0), 6, None, ("2", 3)):
        with pytest.raises((KernelArgumentError, KernelTypeError)):
            op.backward(type(residuals)((*residuals[:-1], axes)), *outputs)
