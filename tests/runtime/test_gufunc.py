"""Ops with NumPy's keywords: ``numpy.vectorize`` and ``numpy.matmul`` are the oracles."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import KernelArgumentError, KernelTypeError, SymgradError
from symgrad.runtime.op import CompiledOp

PLACES = st.permutations([0, 1, 2]).map(lambda order: tuple(order[:2]))
EXTENTS = st.sampled_from([0, 1, 2, 3])


@given(
    sizes=st.tuples(EXTENTS, EXTENTS, EXTENTS, EXTENTS), places=st.tuples(PLACES, PLACES, PLACES)
)
def test_axes(matmul: CompiledOp, sizes: Any, places: Any) -> None:
    batch, n, k, m = sizes
    draw = numpy.random.default_rng(1).standard_normal
    last = (-2, -1)
    x, w = draw((batch, n, k)), draw((batch, k, m))
    product = sg.gufunc(matmul)
    moved = [numpy.moveaxis(one, last, own) for one, own in zip((x, w), places, strict=False)]
    expected = numpy.matmul(*moved, axes=list(places))
    y, kept = product.forward(*moved, axes=list(places))
    assert y.shape == expected.shape
    assert numpy.allclose(y, expected)
    out = numpy.empty_like(expected)
    assert product(*moved, axes=list(places), out=out) is out
    assert numpy.array_equal(out, y)
    gradients = product.backward(kept, y)
    _, residuals = matmul.forward(x, w)
    plain = matmul.backward(residuals, x @ w)
    for found, whole, own in zip(gradients, plain, places, strict=False):
        assert numpy.allclose(found, numpy.moveaxis(whole, last, own))


class Dot(sg.Function):
    """A product of vectors."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return (x * w).sum()

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad_y * w, grad_y * x


def test_one_axis_and_casting() -> None:
    dot = sg.gufunc(sg.compile(Dot, "f64[n]", "f64[n]"))
    assert dot.signature == "(n),(n)->()"
    assert (dot.nin, dot.nout, dot.nargs, dot.__name__) == (2, 1, 3, "dot")
    x, w = numpy.arange(12.0).reshape(3, 4), numpy.arange(3.0)
    oracle = numpy.vectorize(numpy.dot, signature=dot.signature)
    assert numpy.array_equal(dot(x, w[:, None], axis=0), oracle(x.T, w))
    assert numpy.array_equal(dot(x, w[:, None], axes=[0, (0,)]), oracle(x.T, w))
    y, kept = dot.forward(x, w, axes=[(0,), (0,), ()])
    gx, gw = dot.backward(kept, numpy.ones(4))
    assert numpy.array_equal(gx, numpy.repeat(w[:, None], 4, 1))
    assert numpy.array_equal(gw, x.sum(1))
    single = x.astype("f4")
    with pytest.raises(KernelTypeError, match="dtype float32"):
        dot(single, w, axis=0)
    assert numpy.array_equal(dot(single.T, w, casting="safe"), y)
    with pytest.raises(KernelTypeError, match="cannot be converted"):
        dot(x.T * 1j, w, casting="same_kind")


def test_what_is_wrong(matmul: CompiledOp) -> None:
    product, x = sg.gufunc(matmul), numpy.ones((2, 2))
    assert repr(product) == "<gufunc Matmul, signature='(n,k),(k,m)->(n,m)'>"
    with pytest.raises(KernelTypeError, match="one shared axis"):
        product(x, x, axis=0)
    with pytest.raises(KernelTypeError, match="both given"):
        product(x, x, axis=0, axes=[(0, 1)] * 3)
    with pytest.raises(KernelArgumentError, match=r"does not fit the signature"):
        product(x, x, axes=[(0, 1), (0, 1)])
    with pytest.raises(KernelArgumentError, match="axes"):
        product(x, x, axes=[(0, 5), (0, 1), (0, 1)])
    with pytest.raises(KernelTypeError, match="1 input given, 2"):
        product(x)
    with pytest.raises(KernelTypeError, match="second result of forward"):
        product.backward(matmul.forward(x, x)[1], x)
    with pytest.raises(KernelTypeError, match="no compiled op"):
        sg.gufunc(numpy.add)


@pytest.mark.parametrize("axes", [(0, 2**70), (0, 1.0), (0, "a"), None, (0, 5), (0, 0)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_wrong_axes_name_their_operand(matmul: CompiledOp, axes: Any, place: int) -> None:
    x, given = numpy.ones((2, 2)), [(0, 1), (0, 1), (0, 1)]
    given[place] = axes
    case = matmul.caller.op.cases[0]
    name = (*case.inputs, *case.outputs)[place].name
    for out in (None, numpy.empty((2, 2))):
        with pytest.raises(SymgradError, match=f"Matmul: the axes of {name}: ") as error:
            sg.gufunc(matmul)(x, x, axes=given, out=out)
        assert isinstance(error.value, (KernelArgumentError, KernelTypeError))


def test_what_is_wrong_in_a_call(matmul: CompiledOp) -> None:
    """The errors name the op, and say where an array goes."""
    product, x = sg.gufunc(matmul), numpy.ones((2, 2))
    with pytest.raises(KernelTypeError, match="Matmul: 3 inputs given, 2 expected") as error:
        product(x, x, x)
    assert "out=" in error.value.hint
    for call in (product, product.forward):
        with pytest.raises(KernelTypeError, match="Matmul has no plain argument 'where'"):
            call(x, x, where=True)
    for axes in (7, [(0, 1)] * 4, 10**5000, [(0, 1), (0, 1), 10**5000]):
        with pytest.raises(KernelArgumentError, match=r"Matmul: axes=.* does not fit"):
            product(x, x, axes=axes)
    for casting in ("any", 3):
        with pytest.raises(KernelArgumentError, match="Matmul: casting is"):
            product(x, x, casting=casting)
    dot = sg.gufunc(sg.compile(Dot, "f64[n]", "f64[n]"))
    wrong: Any = (0.0, "a", (0, 1))
    for axis in wrong:
        with pytest.raises(KernelTypeError, match="dot: axis: "):
            dot(x, x, axis=axis)
    for axis in (7, 2**70):
        with pytest.raises(KernelArgumentError, match="dot: the axes of x: "):
            dot(x, x, axis=axis)
