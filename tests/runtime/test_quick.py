"""C that takes calls of Python: what it answers, Python answers as well; the rest it leaves."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import symgrad as sg
from symgrad.abi import Array, Backward, Binding, Case, Kernel, Op, Residual, Value
from symgrad.errors import SymgradError
from symgrad.runtime import pool
from symgrad.runtime.batches import OverBatch
from symgrad.runtime.entry import entry
from symgrad.runtime.op import CompiledOp, shipped_op
from symgrad.runtime.quick import nothing
from symgrad.runtime.size_text import Unbounded, bound, c_expression
from tests.runtime.examples import GATED, KEEP, MATMUL, PICK, SOFTPLUS
from tests.runtime.layouts import LAYOUTS, NDArray

SIZES = st.sampled_from([0, 1, 2, 3, 5])
OTHER_DTYPES = ["float32", "float64", "int64", "int32", "bool"]
EXAMPLES = {one.name: one for one in (SOFTPLUS, MATMUL, PICK, GATED, KEEP)}
OPS: dict[str, CompiledOp] = {}


def op_named(name: str) -> CompiledOp:
    if name not in OPS:
        OPS[name] = EXAMPLES[name].op()
    return OPS[name]


class _Off:
    inference = forward = backward = staticmethod(nothing)


@contextmanager
def without(op: CompiledOp, *ways: str) -> Iterator[None]:
    """``op`` without its quick way, and without straight-line code as well."""
    module: Any = op.module
    kept = {name: vars(module)[name] for name in vars(module) if name in ("_quick", "_pointer")}
    own = op._quick

    def refuse(*_: Any) -> Any:
        raise ValueError

    try:
        module._quick, op._quick = _Off, nothing
        if "straight" in ways:
            module._pointer = refuse
        yield
    finally:
        vars(module).update(kept)
        op._quick = own


def values(array: Array, sizes: dict[str, int], seed: int) -> NDArray:
    shape = [eval(dim, {}, dict(sizes)) for dim in array.dims]
    found = numpy.random.default_rng(seed).standard_normal(shape)
    return (found > 0 if array.dtype == "bool" else found).astype(array.dtype)


def flat(result: Any) -> list[Any]:
    if isinstance(result, tuple):
        return [type(result).__name__, *(part for one in result for part in flat(one))]
    if isinstance(result, OverBatch):
        return [result.batch, *flat(result.residuals)]
    if isinstance(result, numpy.ndarray):
        return [result.shape, str(result.dtype), result.flags.writeable, result.tobytes()]
    return [result]


def outcome(call: Callable[[], Any]) -> list[Any]:
    """What is returned, or the error."""
    try:
        return flat(call())
    except (SymgradError, TypeError, ValueError) as error:
        return [type(error), str(error)]


def ways(op: CompiledOp, call: Callable[[], Any]) -> list[list[Any]]:
    found = [outcome(call)]
    with without(op):
        found.append(outcome(call))
    with without(op, "straight"):
        found.append(outcome(call))
    return found


def changed(draw: Any, array: NDArray) -> Any:
    """An argument as it should be, or not quite."""
    kind = draw(st.sampled_from(["as it is"] * 6 + ["layout", "dtype", "shape", "other"]))
    if kind == "layout" and array.ndim:
        return LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](array)
    if kind == "dtype":
        return array.astype(draw(st.sampled_from(OTHER_DTYPES)))
    if kind == "shape":
        return numpy.zeros(draw(st.lists(SIZES, max_size=3)), array.dtype)
    if kind == "other":
        return draw(st.sampled_from([None, 2.0, [1.0, 2.0], array.dtype.type(1)]))
    return array


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@given(data=st.data())
def test_all_ways_agree(name: str, data: st.DataObject) -> None:
    """Over sizes, layouts, dtypes, shapes, ``out`` and masks, right and wrong: bits and errors."""
    op = op_named(name)
    record = op.module.OP
    case = data.draw(st.sampled_from(record.cases))
    sizes = {one.size: data.draw(SIZES) for one in case.bindings}
    right = [values(array, sizes, seed) for seed, array in enumerate(case.inputs)]
    inputs = [changed(data.draw, one) for one in right]

    def outputs() -> Any:
        made = [values(one, sizes, 7) for one in case.outputs]
        given = [changed(data.draw, one) for one in made]
        whole = given[0] if len(given) == 1 else tuple(given)
        return data.draw(st.sampled_from([None, whole, whole, given]))

    out = outputs()
    for call in (op, op.inference, op.forward):
        first, *others = ways(op, partial(call, *inputs, out=out))
        assert all(first == one for one in others)
    try:
        _, kept = op.forward(*right)
    except SymgradError:
        return
    slopes = [changed(data.draw, values(one, sizes, 3)) for one in case.outputs]
    masks = [None, *itertools.product([False, True], repeat=len(right)), [True], (1,), 1]
    mask = data.draw(st.sampled_from(masks))
    given = tuple(changed(data.draw, values(one, sizes, 5)) for one in case.inputs)
    into = data.draw(st.sampled_from([None, None, given, list(given)]))
    first, *others = ways(
        op, lambda: op.backward(kept, *slopes, needs_input_grad=mask, out=into)
    )  # fmt: skip
    assert all(first == one for one in others)
    parts = list(kept)
    place = data.draw(st.integers(0, len(parts) - 1))
    parts[place] = data.draw(st.sampled_from([-1, True, 2, None, (2,), right[0]]))
    forged = type(kept)(parts[: data.draw(st.sampled_from([len(parts)] * 3 + [1]))])
    first, *others = ways(op, lambda: op.backward(forged, *slopes))
    assert all(first == one for one in others)


SHIPPED = {"nn_mse_loss": 2, "nn_elu": 1}  # the numbers of their inputs


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHIPPED))
@given(data=st.data())
def test_all_ways_agree_for_any_rank(name: str, data: st.DataObject) -> None:
    """Ops that take any number of axes; shapes fit, or one does not."""
    if name not in OPS:
        OPS[name] = shipped_op(name)
    op = OPS[name]
    extra = tuple(data.draw(st.lists(SIZES, max_size=3)))
    draws = numpy.random.default_rng(1)
    right = [draws.standard_normal((*extra, 3), "f4") for _ in range(SHIPPED[name])]
    inputs = [changed(data.draw, one) for one in right]
    for call in (op, op.forward):
        quick, *others = ways(op, partial(call, *inputs))
        assert all(quick == one for one in others)
    y, kept = op.forward(*right)
    assert op.module._quick.forward(tuple(right), None) is not None
    slope = changed(data.draw, numpy.ones_like(y))
    parts = list(kept)
    parts[-1] = data.draw(st.sampled_from([parts[-1], (2,), (-1,), (2.0,), [2], 3]))
    for forged in (kept, type(kept)(parts)):
        quick, *others = ways(op, partial(op.backward, forged, slope))
        assert all(quick == one for one in others)
    assert op.module._quick.backward(kept, (numpy.ones_like(y),), None, None) is not None


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha: float = 2.0, power: int = 3):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x)
        ctx.alpha, ctx.power = alpha, power
        return x * alpha + power

    @staticmethod
    def backward(ctx, grad_y):  # type: ignore[no-untyped-def]
        return grad_y * ctx.alpha, None, None


@pytest.mark.slow
@given(
    alpha=st.sampled_from([1.5, 2, True, -0.0, numpy.float32(2), numpy.nan, "a", None, 2**80]),
    power=st.sampled_from([1, 2.0, True, numpy.int64(2), -(2**63), 2**63]),
)
def test_all_ways_agree_on_plain_numbers(alpha: Any, power: Any) -> None:
    if "Scaled" not in OPS:
        compiled = sg.compile(Scaled, "f32[n]")
        assert isinstance(compiled, CompiledOp)
        OPS["Scaled"] = compiled
    op, x = OPS["Scaled"], numpy.ones(3, "f4")
    assert op.module._quick.inference((x,), None, (2.0, 3)) is not None
    _, kept = op.forward(x)
    place = kept.fields.index("alpha")
    forged = type(kept)((*kept[:place], alpha, *kept[place + 1 :]))
    for call in (
        lambda: op(x), lambda: op(x, alpha), lambda: op(x, alpha=alpha, power=power),
        lambda: op.forward(x, alpha), lambda: op.inference(x, alpha=alpha, power=power),
        lambda: op.backward(forged, x), lambda: op.backward(op.forward(x, alpha, power)[1], x),
    ):  # fmt: skip
        quick, *others = ways(op, call)
        assert all(quick == one for one in others)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_right_calls_are_taken(name: str) -> None:
    """Each case, forward and backward, with and without ``out``: results without Python's help."""
    op = op_named(name)
    for case in op.module.OP.cases:
        sizes = {one.size: 2 for one in case.bindings}
        inputs = tuple(numpy.zeros_like(values(array, sizes, 1)) for array in case.inputs)
        found = op.module._quick.inference(inputs, None)
        outs = found if isinstance(found, tuple) else (found,)
        assert [one.dtype for one in outs] == [one.dtype for one in case.outputs]
        assert op.module._quick.inference(inputs, found) is not None
        result, kept = op.module._quick.forward(inputs, None)
        slopes = result if isinstance(result, tuple) else (result,)
        gradients = op.module._quick.backward(kept, slopes, None, None)
        wanted = op.module.OP.differentiable
        assert [one is not None for one in gradients] == list(wanted)


def _windows(array: NDArray) -> NDArray:
    """Rows that overlap."""
    return as_strided(array, strides=(array.itemsize, array.itemsize))


def _repeated(array: NDArray) -> NDArray:
    """Rows that are one."""
    return numpy.broadcast_to(array[0], array.shape)


PACKED = [LAYOUTS[name] for name in ("fortran", "every other", "backwards", "misaligned")]


@pytest.mark.parametrize("lay", [LAYOUTS["rows apart"], *PACKED, _windows, _repeated])
def test_other_layouts_are_taken(lay: Callable[[NDArray], NDArray]) -> None:
    """Rows that lie apart as they are; others packed, where there is no ``out`` to overlap."""
    op = op_named("Matmul")
    quick = op.module._quick
    x, w = lay(numpy.arange(12.0).reshape(3, 4)), lay(numpy.arange(8.0).reshape(4, 2))
    y, kept = quick.forward((x, w), None)
    assert numpy.array_equal(y, x @ w)
    as_it_is = lay is LAYOUTS["rows apart"]
    assert [one is given for one, given in zip(kept, (x, w), strict=False)] == [as_it_is] * 2
    assert numpy.array_equal(kept[0], x)
    slope = lay(numpy.arange(6.0).reshape(3, 2))
    grad_x, grad_w = quick.backward(kept, (slope,), None, None)
    assert numpy.array_equal(grad_x, slope @ w.T)
    assert numpy.array_equal(grad_w, x.T @ slope)
    assert (quick.inference((x, w), numpy.empty((3, 2))) is not None) == as_it_is
    assert quick.backward(kept, (slope,), None, (grad_x, grad_w)) is None


def test_large_results_lie_in_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    op = op_named("Softplus")
    large = numpy.zeros((200, 200), "f4")
    quick = op.module._quick
    found = quick.inference((large,), None)
    assert found.shape == large.shape
    assert (found == op(large)).all()
    begin = found.ctypes.data
    del found
    assert quick.forward((large,), None)[0].ctypes.data == begin
    assert quick.inference((large.T,), None) is None
    assert quick.inference((large,), numpy.empty_like(large)) is not None
    errors: list[BaseException] = [KeyboardInterrupt(), MemoryError()]

    def refuse(_: int) -> Any:
        raise errors.pop()

    monkeypatch.setattr(pool._pool, "take", refuse)
    assert quick.inference((large,), None) is None, "Python says that there is no memory"
    with pytest.raises(KeyboardInterrupt):
        quick.inference((large,), None)


def test_overlapping_memory_is_left_to_python() -> None:
    op = op_named("Softplus")
    x = numpy.zeros((2, 3), "f4")
    assert op.module._quick.inference((x,), x) is None
    _, kept = op.forward(x)
    assert op.module._quick.backward(kept, (x,), None, (x,)) is None


def test_calls_leave_no_references() -> None:
    op = op_named("Keep")
    x, mask = numpy.ones(3, "f4"), numpy.array([True, False, True])
    wrong, apart = numpy.ones(4, "f4"), numpy.ones(6, "f4")[::2]

    def calls() -> None:
        out = numpy.empty(3, "f4"), numpy.empty(3, bool)
        bad = out[0], wrong
        for inputs, into in itertools.product(
            ((x, mask), (wrong, mask), (apart, mask), (apart, wrong)), (None, out, bad)
        ):
            op.module._quick.inference(inputs, into)
            found = op.module._quick.forward(inputs, into)
            if found is not None:
                op.module._quick.backward(found[1], (x, None), None, None)
                op.module._quick.backward(found[1], (apart, None), None, None)
                op.module._quick.backward(found[1], (wrong, None), None, (x, None))

    counted = (x, mask, wrong, apart, None, x.dtype, mask.dtype, op.module.Residuals)
    calls()
    gc.collect()
    before = [sys.getrefcount(one) for one in counted]
    for _ in range(100):
        calls()
    gc.collect()
    after = [sys.getrefcount(one) for one in counted]
    assert all(abs(a - b) < 50 for a, b in zip(before, after, strict=True)), (before, after)


def test_it_is_right_where_there_is_no_entry() -> None:
    op = op_named("Matmul")
    x = numpy.arange(6.0).reshape(2, 3)
    with without(op):
        assert numpy.array_equal(op(x, x.T.copy()), x @ x.T)


# -- the bounds of what C computes of sizes

EXPRESSIONS = ["n*m - 3", "min(n, m + 2)*n", "max(n - m, 1)", "(n + 5) // 3", "n % 7 - m", "n*n*m"]
UNBOUNDED = ["n // m", "n % m", "n // 0", "n**2", "f(n)", "n < m < 3", "n if m else 3"]


@given(text=st.sampled_from(EXPRESSIONS), n=st.integers(0, 50), m=st.integers(0, 50))
def test_bounds_hold(text: str, n: int, m: int) -> None:
    assert abs(eval(text, {"min": min, "max": max}, {"n": n, "m": m})) <= bound(text, 50)


@pytest.mark.parametrize("text", UNBOUNDED)
def test_what_is_not_bounded(text: str) -> None:
    with pytest.raises(Unbounded):
        bound(text, 50)


def chain(dim: str, **more: Any) -> Op:
    x, y = Array("x", "float32", ("n", "m")), Array("y", "float32", (dim,))
    kernel = Kernel("chain_forward", sizes=("n", "m"), inputs=(x,), outputs=(y,))
    slope = Kernel("chain_backward", sizes=("n", "m"), inputs=(x, y), outputs=(x,))
    case = Case(
        inputs=(x,), outputs=(y,), residuals=(Residual(x, "input"),),
        bindings=(Binding("n", input=0, axis=0), Binding("m", input=0, axis=1)),
        inference=kernel, forward=kernel,
        backward=(Backward(mask=(True,), kernel=slope, residuals=(0,), cotangents=(0,)),),
    )  # fmt: skip
    return Op(
        name="Chain", differentiable=(True,), cases=(case,), files=("chain.c",),
        header="chain.h", **more,
    )  # fmt: skip


def test_what_c_cannot_judge_is_left_to_python() -> None:
    """A size that divides, one that overflows at once, a number with a condition."""
    assert "PyInit__chain_entry" in entry(chain("n + m"))
    assert entry(chain("n // m")) == ""
    assert entry(chain("*".join("n" * 12))) == ""
    alpha = Value("alpha", "1.0", place=1, number="float64", condition="alpha > 0")
    assert entry(chain("n + m", values=(alpha,))) == ""
    assert c_expression("n + m", ("m", "n")) == "size1 + size0"
