"""A new elementwise op is one record and one public function: everything else follows.

The ops here exist only while this module runs.  Their names are no names of torch's or NumPy's:
those may become ops.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.lift import elementwise as on_operands
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.graph import Node
from symgrad.ir.registry import withdraw
from symgrad.ops.record import Latex, Template, apply, elementwise
from symgrad.tensor import functions as public

SHAPE = (3, 4)


@dataclass(frozen=True)
class New:
    """What is declared, and a backward by hand."""

    record: Callable[[], Any]
    call: Callable[..., Any]
    backward: Callable[..., Any]
    formula: str


# -- the whole of what adding an op takes


def _bell() -> None:
    elementwise(
        "bell", numpy="1 / (1 + {0} * {0})", sympy=lambda sp, x: 1 / (1 + x**2),
        c=Template("{lit:1} / ({lit:1} + {0} * {0})"), code="{sg}.bell({0})",
        latex=r"\operatorname{bell}", vjp=lambda g, y, x: (g * (x * -2.0) * (y * y),),
    )  # fmt: skip


def _smooth_greatest_vjp(g: Node, z: Node, x: Node, y: Node) -> tuple[Node, Node]:
    return g * apply("exp2", x - z), g * apply("exp2", y - z)


def _smooth_greatest() -> None:
    elementwise(
        "smooth_greatest", numpy=np.logaddexp2,
        sympy=lambda sp, x, y: sp.log(2**x + 2**y) / sp.log(2),
        c=Template("log2{f}(exp2{f}({0}) + exp2{f}({1}))", ("log2", "exp2")), cost=0.9,
        latex=Latex(r"\log_{{2}}\left(2^{{{0}}} + 2^{{{1}}}\right)"), vjp=_smooth_greatest_vjp,
    )  # fmt: skip


def bell(input: Any) -> Any:
    """``1 / (1 + x²)``."""
    return on_operands("bell", input, floats=True)


def smooth_greatest(input: Any, other: Any) -> Any:
    """``log2(2**x + 2**y)``."""
    return on_operands("smooth_greatest", input, other, floats=True)


# --


def _bell_backward(g: Any, x: Any) -> Any:
    return g * -2.0 * x * sg.square(sg.bell(x))


def _smooth_greatest_backward(g: Any, x: Any, y: Any) -> Any:
    return g * sg.exp2(x - sg.smooth_greatest(x, y)), g / (1 + sg.exp2(x - y))


NEW = {
    "bell": New(_bell, bell, _bell_backward, r"\operatorname{bell}\left(x_{i, j}\right)"),
    "smooth_greatest": New(
        _smooth_greatest,
        smooth_greatest,
        _smooth_greatest_backward,
        r"\log_{2}\left(2^{x_{i, j}} + ",
    ),
}


@pytest.fixture(params=sorted(NEW))
def new(request: pytest.FixtureRequest) -> Iterator[tuple[str, int, New]]:
    """The name of an op, how many operands it takes, what was declared; it is withdrawn after."""
    name: str = request.param
    NEW[name].record()
    operation(name, method=False)(NEW[name].call)
    public.publish(name)
    try:
        yield name, NEW[name].call.__code__.co_argcount, NEW[name]
    finally:
        withdraw(name)
        public.retract(name)


def _arrays(count: int, dtype: Any = np.float64) -> list[Any]:
    source = np.random.default_rng(3)
    return [source.normal(size=SHAPE).astype(dtype) for _ in range(count)]


def _function(name: str, count: int, backward: Callable[..., Any]) -> type[sg.Function]:
    """A Function that applies the op."""

    def forward(ctx: Any, x: Any, *rest: Any) -> Any:
        ctx.save_for_backward(x, *rest)
        return getattr(sg, name)(x, *rest)

    def one(ctx: Any, x: Any) -> Any:
        return forward(ctx, x)

    def two(ctx: Any, x: Any, y: Any) -> Any:
        return forward(ctx, x, y)

    def back(ctx: Any, g: Any) -> Any:
        return backward(g, *ctx.saved_tensors)

    members = {"forward": staticmethod(one if count == 1 else two), "backward": staticmethod(back)}
    return type("Applied", (sg.Function,), members)


def _expected(name: str, arrays: list[Any]) -> Any:
    return 1 / (1 + arrays[0] ** 2) if name == "bell" else np.logaddexp2(*arrays)


def _quotients(name: str, arrays: list[Any], step: float = 1e-6) -> list[Any]:
    """Difference quotients by each operand."""
    doubles = [array.astype(np.float64) for array in arrays]
    found = []
    for place in range(len(arrays)):
        ahead, behind = (
            [array + by * (n == place) for n, array in enumerate(doubles)] for by in (step, -step)
        )
        found.append((_expected(name, ahead) - _expected(name, behind)) / (2 * step))
    return found


def test_it_is_eager_differentiated_jitted_and_mapped(new: tuple[str, int, New]) -> None:
    name, count, _ = new
    arrays = _arrays(count)
    wanted = _expected(name, arrays)
    call = getattr(sg, name)
    slopes = []
    for function in (call, sg.jit(lambda *xs: call(*xs)), sg.vmap(call)):
        tensors = [sg.tensor(array, requires_grad=True) for array in arrays]
        found = function(*tensors)
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12)
        found.sum().backward()
        slopes.append([tensor.grad.numpy() for tensor in tensors])
    for place, quotient in enumerate(_quotients(name, arrays)):
        for found in slopes:
            np.testing.assert_allclose(found[place], quotient, atol=1e-8)


def test_its_backward_is_proved_twice_for_any_rank(new: tuple[str, int, New]) -> None:
    name, count, declared = new
    report = sg.verify(_function(name, count, declared.backward), *["*batch m"] * count, order=2)
    assert str(report.verdict) == "PROVED", report
    assert "any number of axes" in report.domain


def test_a_wrong_backward_is_refuted_by_a_program(new: tuple[str, int, New]) -> None:
    name, count, declared = new

    def wrong(*args: Any) -> Any:
        found = declared.backward(*args)
        return found * 2.0 if count == 1 else (found[0] * 2.0, found[1])

    report = sg.verify(_function(name, count, wrong), *["n m"] * count)
    assert str(report.verdict) == "REFUTED"
    counterexample = report.inputs["x"].counterexample
    assert counterexample is not None
    assert counterexample.snippet
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(counterexample.snippet, {})
    hand, true = (float(line.rpartition(" ")[2]) for line in printed.getvalue().splitlines())
    assert hand == pytest.approx(2 * true, rel=1e-4)


def test_it_is_written_in_formulas(new: tuple[str, int, New]) -> None:
    name, count, declared = new
    assert (
        declared.formula
        in sg.verify(
            _function(name, count, lambda g, *xs: tuple(g * getattr(sg, name)(*xs) for _ in xs)),
            *["n m"] * count,
        )._repr_latex_()
    )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_it_is_compiled(new: tuple[str, int, New], dtype: str) -> None:
    name, count, declared = new
    arrays = _arrays(count, np.float32 if dtype == "f32" else np.float64)
    compiled = sg.compile(_function(name, count, declared.backward), *[f"{dtype}[n m]"] * count)
    found, residuals = compiled.forward(*arrays)
    tolerance = 1e-5 if dtype == "f32" else 1e-12
    np.testing.assert_allclose(found, _expected(name, arrays), rtol=tolerance, atol=tolerance)
    slopes = compiled.backward(residuals, np.ones(SHAPE, arrays[0].dtype))
    for slope, quotient in zip(slopes, _quotients(name, arrays), strict=True):
        np.testing.assert_allclose(np.asarray(slope), quotient, atol=10 * tolerance + 1e-8)


def test_it_is_gone_afterwards() -> None:
    for name in NEW:
        assert not hasattr(sg, name)
        assert not hasattr(SymbolicTensor, name)
