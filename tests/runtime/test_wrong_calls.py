"""Every wrong call is told apart: what is wrong, of which array, what to do.  Never a crash."""

from __future__ import annotations

from collections.abc import Callable
from operator import mul
from typing import Any

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symgrad.errors import KernelArgumentError, KernelTypeError, SymgradError
from symgrad.runtime import support
from symgrad.runtime.op import CompiledOp
from symgrad.runtime.workspace import workspace

F4 = numpy.float32


def ones(*shape: int, dtype: Any = F4) -> numpy.ndarray[Any, Any]:
    return numpy.ones(shape, dtype)


def read_only(*shape: int) -> numpy.ndarray[Any, Any]:
    array = ones(*shape)
    array.flags.writeable = False
    return array


class FakeTensor:
    """Stands for a tensor of another library."""


FakeTensor.__module__ = "torch"

WRONG_INPUTS: dict[str, tuple[Any, type[SymgradError], str]] = {
    "list": ([[1.0]], KernelTypeError, r"input x is a list, .*\n.*asarray\(value, dtype=numpy.flo"),
    "float": (1.5, KernelTypeError, r"input x is a float, not a NumPy array"),
    "None": (None, KernelTypeError, r"input x is a NoneType.*\n.*decided when the op is compiled"),
    "tensor": (FakeTensor(), KernelTypeError, r"torch\.FakeTensor.*\n.*detach\(\)\.cpu\(\)"),
    "double": (ones(2, 2, dtype="f8"), KernelTypeError, r"dtype float64, float32 .*\n.*\.astype\("),
    "half": (ones(2, 2, dtype="f2"), KernelTypeError, r"dtype float16, float32 is expected"),
    "integers": (ones(2, 2, dtype="i4"), KernelTypeError, r"dtype int32, float32 is expected"),
    "strings": (numpy.array([["a"]]), KernelTypeError, r"dtype <U1, float32 is expected"),
    "objects": (ones(2, 2, dtype=object), KernelTypeError, r"dtype object.*\n.*Python objects"),
    "masked": (numpy.ma.ones((2, 2), F4), KernelTypeError, r"masked array.*\n.*filled"),
    "vector": (ones(3), KernelArgumentError, r"shape \(3,\): 1 axis where .* has 2 axes"),
    "scalar": (F4(1), KernelArgumentError, r"0 axes where"),
}


@pytest.mark.parametrize("name", sorted(WRONG_INPUTS))
@pytest.mark.parametrize("method", ["__call__", "forward"])
def test_inputs(softplus: CompiledOp, method: str, name: str) -> None:
    value, kind, message = WRONG_INPUTS[name]
    with pytest.raises(kind, match=message) as caught:
        getattr(softplus, method)(value)
    assert isinstance(caught.value, kind)
    assert str(caught.value).startswith("Softplus")


WRONG_OUT: dict[str, tuple[Callable[[Any], Any], type[SymgradError], str]] = {
    "shape": (
        lambda x: ones(2, 4),
        KernelArgumentError,
        r"out for y has the shape \(2, 4\), the r",
    ),
    "rank": (lambda x: ones(6), KernelArgumentError, r"out for y has the shape \(6,\): 1 axis"),
    "dtype": (
        lambda x: ones(2, 3, dtype="f8"),
        KernelTypeError,
        r"out for y has the dtype float64",
    ),
    "list": (lambda x: [[0.0] * 3] * 2, KernelArgumentError, r"2 arrays, 1 .* each output"),
    "read-only": (lambda x: read_only(2, 3), KernelArgumentError, r"out for y is read-only"),
    "repeated": (
        lambda x: numpy.lib.stride_tricks.as_strided(ones(3), (2, 3), (0, 4)),
        KernelArgumentError,
        r"same memory for several elements",
    ),
    "swapped": (lambda x: ones(2, 3).astype(">f4"), KernelTypeError, r"byte order"),
    "itself": (lambda x: x, KernelArgumentError, r"out for y shares memory with x.*\n.*in place"),
    "reversed": (lambda x: x.reshape(-1)[::1].reshape(2, 3), KernelArgumentError, r"shares memory"),
    "scalar": (lambda x: F4(1), KernelArgumentError, r"0 axes"),
    "nothing in it": (lambda x: (), KernelArgumentError, r"out holds 0 arrays"),
}


@pytest.mark.parametrize("name", sorted(WRONG_OUT))
@pytest.mark.parametrize("method", ["__call__", "forward", "backward"])
def test_out(softplus: CompiledOp, method: str, name: str) -> None:
    make, kind, message = WRONG_OUT[name]
    x = numpy.random.default_rng(1).standard_normal((2, 3)).astype(F4)
    if method == "backward":
        _, residuals = softplus.forward(x)
        message = message.replace("out for y", "out for x").replace("each output", "each input")
        message = message.replace("memory with x", "memory with .*")
        given = make(x) if name in ("list", "nothing in it") else (make(x),)
        with pytest.raises(kind, match=message):
            softplus.backward(residuals, ones(2, 3), out=given)
        return
    before = x.copy()
    with pytest.raises(kind, match=message):
        getattr(softplus, method)(x, out=make(x))
    assert numpy.array_equal(x, before)


def test_out_that_overlaps_in_part(softplus: CompiledOp) -> None:
    base = ones(9)
    for start in (0, 2, 3):
        with pytest.raises(KernelArgumentError, match="shares memory"):
            softplus(base[:6].reshape(2, 3), out=base[start : start + 6].reshape(2, 3))
    longer = ones(12)
    softplus(longer[:6].reshape(2, 3), out=longer[6:].reshape(2, 3))


def apart(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Has each element of an array of float32 its own bytes?  By a list of all of them."""
    places = [sum(map(mul, index, strides)) for index in numpy.ndindex(*shape)]
    return len({place + byte for place in places for byte in range(4)}) == 4 * len(places)


@given(
    shape=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    strides=st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(lambda s: (s[0] * 2, s[1] * 2)),
)
@example(shape=(2, 3), strides=(4, 4))
@example(shape=(2, 3), strides=(12, 8))
@example(shape=(2, 2), strides=(8, 2))
def test_out_that_overlaps_itself(
    softplus: CompiledOp, shape: tuple[int, int], strides: tuple[int, int]
) -> None:
    x = numpy.random.default_rng(1).standard_normal(shape).astype(F4)
    memory = numpy.zeros(256, "u1")
    out = numpy.ndarray(shape, F4, memory, offset=128, strides=strides)
    if apart(shape, strides):
        assert numpy.array_equal(softplus(x, out=out), softplus(x))
        return
    with pytest.raises(KernelArgumentError, match="the same memory for several elements"):
        softplus(x, out=out)
    assert not memory.any()


def test_outs_that_overlap_each_other(pick: CompiledOp) -> None:
    index, both = numpy.array([0, 1]), ones(2)
    with pytest.raises(KernelArgumentError, match="out for first shares memory with y"):
        pick(ones(2, 3), index, out=(both, both))
    with pytest.raises(KernelArgumentError, match="out holds 1 array, 2 expected"):
        pick(ones(2, 3), index, out=both)


def test_out_of_backward_overlaps(softplus: CompiledOp, gated: CompiledOp) -> None:
    x, gy = ones(2, 3), ones(2, 3)
    _, residuals = softplus.forward(x)
    for taken in (x, gy):
        before = taken.copy()
        with pytest.raises(KernelArgumentError, match="out for x shares memory"):
            softplus.backward(residuals, gy, out=(taken,))
        assert numpy.array_equal(taken, before)
    wide, c = ones(1, 2, dtype="f8"), numpy.array(1.0)
    _, residuals = gated.forward(wide, c)
    cotangent = ones(1, 1, dtype="f8")
    with pytest.raises(KernelArgumentError, match="out for c shares memory"):
        gated.backward(residuals, cotangent, out=(None, cotangent.reshape(())))
    assert cotangent[0, 0] == 1


def test_sizes_that_disagree(matmul: CompiledOp, pick: CompiledOp) -> None:
    with pytest.raises(KernelArgumentError) as caught:
        matmul(ones(2, 3, dtype="f8"), ones(4, 5, dtype="f8"))
    assert str(caught.value) == (
        "Matmul: x and w disagree on k: 3 (axis 1 of (2, 3)) and 4 (axis 0 of (4, 5))\n"
        "  hint: the op is compiled for x: float64[n, k], w: float64[k, m]"
    )
    with pytest.raises(KernelArgumentError, match=r"x and index disagree on n: 3 .* and 2"):
        pick.forward(ones(3, 2), numpy.array([0, 1]))


def test_an_axis_that_no_size_fits(gated: CompiledOp) -> None:
    with pytest.raises(KernelArgumentError, match=r"axis 1 cannot be 2\*in_ for any size in_"):
        gated(ones(2, 3, dtype="f8"), numpy.array(1.0))


def test_sizes_that_no_case_serves(pick: CompiledOp, gated: CompiledOp) -> None:
    with pytest.raises(KernelArgumentError, match=r"no kernel serves n = 1, v = 1\n.*v != 1"):
        pick(ones(1, 1), numpy.array([0]))
    with pytest.raises(KernelArgumentError, match="no kernel serves out = 2, in_ = 0"):
        gated(ones(2, 0, dtype="f8"), numpy.array(1.0))


def test_status_of_the_kernel(pick: CompiledOp) -> None:
    for wrong in (-1, 2, 2**62, -(2**63)):
        with pytest.raises(
            KernelArgumentError, match=r"Pick.forward: an index is out of range\n.*at least 0"
        ):
            pick.forward(ones(2, 2), numpy.array([0, wrong]))
    with pytest.raises(KernelTypeError, match="index has the dtype int32, int64 is expected"):
        pick(ones(2, 2), numpy.array([0, 1], "i4"))


@pytest.mark.parametrize(
    ("cotangent", "kind", "message"),
    [
        (ones(2, 2), KernelArgumentError, r"cotangent of y has the shape \(2, 2\), y has \(2, 3\)"),
        (ones(1, 3), KernelArgumentError, r"cotangent of y has the shape"),
        (ones(6), KernelArgumentError, r"1 axis where"),
        (ones(2, 3, dtype="f8"), KernelTypeError, r"cotangent of y has the dtype float64"),
        (1.0, KernelTypeError, r"cotangent of y is a float"),
    ],
    ids=["shape", "broadcast", "rank", "dtype", "float"],
)
def test_cotangents(
    softplus: CompiledOp, cotangent: Any, kind: type[SymgradError], message: str
) -> None:
    _, residuals = softplus.forward(ones(2, 3))
    with pytest.raises(kind, match=message):
        softplus.backward(residuals, cotangent)


def test_residuals_of_another_op(softplus: CompiledOp, matmul: CompiledOp) -> None:
    _, foreign = matmul.forward(ones(2, 3, dtype="f8"), ones(3, 1, dtype="f8"))
    y, own = softplus.forward(ones(2, 3))
    with pytest.raises(KernelTypeError, match="first argument is the residuals of Matmul, not"):
        softplus.backward(foreign, y)
    assert repr(foreign) == "<residuals of Matmul: x: float64(2, 3), w: float64(3, 1)>"
    for wrong in (foreign, tuple(own), None, y, [own]):
        with pytest.raises(
            KernelTypeError, match=r"not the residuals of Softplus\n.*second result"
        ):
            softplus.backward(wrong, y)


@pytest.mark.parametrize("wrong", [(True, False), (), True, "yes", 1])
def test_masks(softplus: CompiledOp, wrong: Any) -> None:
    y, residuals = softplus.forward(ones(2, 3))
    with pytest.raises(
        KernelArgumentError, match=r"needs_input_grad is .*, but Softplus takes 1 input"
    ):
        softplus.backward(residuals, y, needs_input_grad=wrong)


def test_more_workspace_than_there_is(matmul: CompiledOp) -> None:
    """What a kernel asks for is a number of its own; here the answers are put in its mouth."""
    answers = {2**62: "a workspace of 4611686018427387904 bytes, more than there is"}
    answers[2**63 - 1] = "more than there is"
    workspace.release()
    for bytes_, message in answers.items():

        class Library:
            """Refuses as the C does when the workspace is too small."""

            ffi, programs = matmul.module._library.ffi, None

            class lib:
                call_matmul_forward = staticmethod(lambda *_: -3)
                needed_matmul_forward = staticmethod(lambda *_, bytes_=bytes_: bytes_)

        stub: Any = Library
        caller = support.Caller(matmul.module.OP, stub, (matmul.module.Residuals,))
        with pytest.raises(KernelArgumentError, match=message):
            caller.inference((ones(2, 3, dtype="f8"), ones(3, 1, dtype="f8")))


def test_a_broadcast_input_too_large_to_pack(softplus: CompiledOp) -> None:
    huge = numpy.broadcast_to(F4(1), (2**40, 2**20))
    with pytest.raises((MemoryError, KernelArgumentError)):
        softplus(huge)
