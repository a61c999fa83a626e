"""What operations are given: every argument counts, and what does not fit is refused."""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.functions import FUNCTIONS
from symgrad.frontend.table import IGNORED
from symgrad.ir.dtype import bool_
from symgrad.nn import functional
from symgrad.tensor import creation

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
WITHOUT_EFFECT = {
    **dict.fromkeys(IGNORED, "where memory lies"),
    "_stacklevel": "of a warning that there is none of",
    "compute_mode": "one way to compute is there",
    "ignored": "its names are known ones",
    "inplace": "of a dropout that drops nothing",
    "momentum": "of running statistics, which are refused",
    "norm_type": "of max_norm, which is refused",
    "output_size": "the size is known",
    "sorted": "always",
    "stable": "always",
    "threshold": "softplus is exact everywhere",
    "volatile": "as in torch",
}


def unread(call: Callable[..., Any]) -> set[str]:
    """The parameters of a function that its body never reads."""
    code = call.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    rest = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
    count += sum(bool(code.co_flags & flag) for flag in rest)
    read: set[str] = set()
    for line in dis.get_instructions(code):
        if line.opname.startswith(("LOAD_", "MAKE_CELL")):
            value = line.argval
            read.update(value if isinstance(value, tuple) else (value,))
    return {*code.co_varnames[:count]} - read


def operations(holder: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, entry in holder.items():
        if isinstance(entry, types.SimpleNamespace):
            if name not in ("amp", "autograd", "cuda", "jit"):
                yield from operations(vars(entry), f"{prefix}{name}.")
        elif callable(entry) and not inspect.isclass(entry):
            call = inspect.unwrap(entry)
            if isinstance(call, types.FunctionType) and call.__module__.startswith("symgrad"):
                yield prefix + name, call


def test_no_operation_ignores_an_argument() -> None:
    methods = {
        name: entry
        for name, entry in vars(sg.Tensor).items()
        if not name.startswith("_") and not isinstance(entry, property)
    }
    known = {"device", "Variable", "get_device", "is_complex", "cpu", "cuda"}
    given = [
        *operations(FUNCTIONS), *operations(methods, "Tensor."), *operations(creation.EAGER),
        *operations(vars(functional), "functional."),
    ]  # fmt: skip
    assert len(given) > 500
    found = {
        name: names
        for name, call in given
        if name.removeprefix("Tensor.") not in known
        and (names := unread(call) - set(WITHOUT_EFFECT))
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "sg.zeros(2, dtpye=sg.float64)", "sg.arange(3, foo=1)", "sg.empty(2, foo=1)",
        "sg.ones_like(x, foo=1)", "x.new_zeros(2, foo=1)", "sg.scalar_tensor(1, foo=1)",
        "x.unique(foo=1)", "x.clone(foo=1)", "x.sum(0, axis=0)", "x.softmax(0, axis=1)",
        "sg.cat([x, x], 0, axis=0)", "x.sum(axis=0, dim=1)", "x.median(keepdim=True)",
        "x.median(None)", "sg.nanmedian(x, dim=None, keepdim=True)", "x.cumsum(0, axis=0)",
    ],
)  # fmt: skip
def test_unknown_arguments_and_those_said_twice_are_refused(text: str) -> None:
    with pytest.raises(TypeError):
        eval(text, {"sg": sg, "x": sg.ones(2, 3)})


def test_numbers_that_do_not_fit_are_refused_wherever_they_are_written() -> None:
    one = sg.tensor([0])
    writes: tuple[Callable[..., Any], ...] = (
        lambda x, v: x.__setitem__(0, v),
        lambda x, v: x.__setitem__(slice(None), v),
        lambda x, v: x.__setitem__(x == 0, v),
        lambda x, v: x.__setitem__(one, v),
        lambda x, v: x.index_fill(0, one, v),
        lambda x, v: x.scatter(0, one, v),
        lambda x, v: x.masked_fill(x == 0, v),
    )
    for name in INTEGERS:
        dtype = getattr(sg, name)
        greatest = int(np.iinfo(name).max)
        kind = {"int32": "int"}.get(name, f"{name}_t")
        for number in (greatest + 1, float("nan"), float("inf")):
            for write in writes:
                x = sg.zeros(2, dtype=dtype)
                with pytest.raises(RuntimeError, match=f"type {kind} without overflow"):
                    write(x, number)
                assert x.tolist() == [0, 0]
        x = sg.zeros(2, dtype=dtype)
        x[0] = greatest
        assert x.tolist() == [greatest, 0]
    floats = sg.zeros(2)
    with pytest.raises(RuntimeError, match="type float without overflow"):
        floats[0] = 1e300
    floats[0] = float("inf")
    assert floats.tolist() == [float("inf"), 0.0]


def test_no_integer_is_divided_by_zero() -> None:
    for name in INTEGERS:
        x = sg.tensor([5, 7], dtype=getattr(sg, name))
        for zero in (0, sg.tensor(0), x * 0, x - 5):
            for divide in (
                lambda a, b: a // b, lambda a, b: a % b, sg.fmod, sg.remainder, sg.floor_divide,
                lambda a, b: sg.div(a, b, rounding_mode="trunc"), lambda a, b: a.__ifloordiv__(b),
            ):  # fmt: skip
                with pytest.raises(ZeroDivisionError) as caught:
                    divide(x, zero)
                assert isinstance(caught.value, RuntimeError)
                assert isinstance(caught.value, sg.SymgradError)
        assert x.tolist() == [5, 7]
        assert (x[:0] // 0).shape == (0,)
    with pytest.raises(ZeroDivisionError):
        7 // sg.tensor([0])
    assert sg.tensor([1.0]).floor_divide(0).item() == float("inf")


def test_nothing_is_written_into_another_dtype() -> None:
    whole, parts, one = sg.zeros(2, dtype=sg.int64), sg.tensor([3.5]), sg.tensor([0])
    writes: tuple[Callable[[], Any], ...] = (
        lambda: whole.scatter(0, one, parts), lambda: whole.scatter_add(0, one, parts),
        lambda: whole.scatter_reduce(0, one, parts, "sum"), lambda: whole.index_add(0, one, parts),
        lambda: whole.index_copy(0, one, parts), lambda: whole.index_put((one,), parts),
        lambda: whole.index_put((one,), parts, accumulate=True),
    )  # fmt: skip
    for write in writes:
        with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
            write()


def test_sums_of_integers_that_skip_nan_are_exact() -> None:
    x = sg.tensor([2**62 + 1, 2])
    assert x.nansum().item() == 2**62 + 3
    assert x.int().nansum().dtype == sg.int64
    assert sg.tensor([1.0, float("nan")]).nansum(dtype=sg.int64).item() == 1


@pytest.mark.peers
def test_ramps_of_integers_are_those_of_torch() -> None:
    import torch

    for name in ("uint8", "int64"):
        for start, end in ((0, 10), (10, 0), (0.5, 9.7)):
            for steps in (0, 1, 2, 3, 4, 7):
                found = sg.linspace(start, end, steps, dtype=getattr(sg, name))
                wanted = torch.linspace(start, end, steps, dtype=getattr(torch, name))
                assert found.tolist() == wanted.tolist()
    assert sg.linspace(0, 10, 4, dtype=sg.int64).tolist() == [0, 3, 6, 10]


def test_over_no_axes_any_and_all_are_the_truth_of_each_element() -> None:
    x = sg.tensor([[0, 2], [1, 0]], dtype=sg.uint8)
    for call in (sg.any, sg.all):
        assert call(x, dim=()).tolist() == [[0, 1], [1, 0]]
        assert call(x.float(), dim=[], keepdim=True).tolist() == [[False, True], [True, False]]


def test_different_slices_and_norms_in_another_dtype() -> None:
    x = sg.tensor([[1, 2], [1, 2], [0, 5]])
    rows, places, counts = x.unique(return_inverse=True, return_counts=True, dim=0)
    assert rows.tolist() == [[0, 5], [1, 2]]
    assert (places.tolist(), counts.tolist()) == ([1, 1, 0], [1, 2])
    assert sg.norm(sg.ones(4), dtype=sg.float64).dtype == sg.float64
    assert sg.linalg.vector_norm(sg.ones(4), dtype=sg.float64).dtype == sg.float64


def test_classes_of_tensors_make_tensors_of_their_dtype() -> None:
    for name, dtype in (("Bool", bool_), ("Byte", sg.uint8), ("Char", sg.int8),
                        ("Short", sg.int16), ("Int", sg.int32), ("Long", sg.int64),
                        ("Float", sg.float32), ("Double", sg.float64)):  # fmt: skip
        kind = getattr(sg, f"{name}Tensor")
        for made in (kind([0, 1]), kind(np.array([0, 1])), kind(kind([0, 1]))):
            assert (made.dtype, made.tolist()) == (dtype, [0, 1])
        assert kind(2, 3).shape == kind(sg.Size([2, 3])).shape == (2, 3)
        assert kind().shape == (0,)
        assert sg.ones(2).type(kind).dtype == dtype == kind.dtype
        assert isinstance(made, kind)
        assert not isinstance(made, sg.LongTensor if name != "Long" else sg.IntTensor)
    with pytest.raises(TypeError):
        sg.LongTensor(sg.ones(2))
    with pytest.raises(RuntimeError, match="overflow"):
        sg.ByteTensor([1, 300])
    with pytest.raises(RuntimeError, match="overflow"):
        sg.zeros(1, dtype=sg.int8).new([300])
    traced = sg.jit(lambda x: x + sg.LongTensor([0, 1]).type(sg.FloatTensor), strict=True)
    assert traced(sg.ones(2)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "text",
    [
        "x.amax()", "x.amin(1)", "x.aminmax()", "x.max()", "x.max(1)", "x.min(0)", "x.diff()",
        "x.isfinite()", "x.isinf()", "x.sign()", "x.sgn()", "x.maximum(x[0])", "x.minimum(x[0])",
        "x.int().isinf()", "x.int().isfinite()",
    ],
)  # fmt: skip
@pytest.mark.peers
def test_bools_as_in_torch(text: str) -> None:
    import torch

    rows = [[True, False, True], [False, False, True]]
    found, wanted = (eval(text, {"x": library.tensor(rows)}) for library in (sg, torch))
    several = isinstance(wanted, tuple)
    pairs = zip(found, wanted, strict=True) if several else [(found, wanted)]
    for one, other in pairs:
        assert (one.tolist(), str(one.dtype)) == (other.tolist(), str(other.dtype)[6:])


def test_labels_are_long_or_byte() -> None:
    x = sg.tensor([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0]])
    labels = sg.tensor([2, 0])
    for loss in (functional.cross_entropy, functional.nll_loss):
        assert loss(x, labels.byte()).item() == loss(x, labels).item()
        for wrong in (labels.int(), labels.short(), labels > 1):
            with pytest.raises(RuntimeError, match="target dtype to be Long or Byte, but got"):
                loss(x, wrong)
    with pytest.raises(RuntimeError, match="of type LongTensor"):
        functional.one_hot(labels.int())
    with pytest.raises(RuntimeError, match="Expected a long tensor for index, but got Int"):
        x.take(labels.int())


@pytest.mark.parametrize("wrap", [tuple, list])
@pytest.mark.parametrize(
    "call",
    ["exp(X)", "sigmoid(X)", "add(x, X)", "where(x > 0, X, x)", "maximum(x, X)", "sum(X, 0)",
     "softmax(X, 0)", "linear(X, w)", "matmul(x, X)", "gather(x, 0, X)", "reshape(X, (2,))",
     "clamp(x, X)", "index_select(x, 0, X)", "masked_fill(x, X, 1.0)", "mse_loss(X, x)"],
)  # fmt: skip
def test_a_tuple_of_tensors_is_no_tensor(call: str, wrap: Callable[..., Any]) -> None:
    x = sg.ones(2)

    def apply(x: Any, w: Any) -> Any:
        names = {"x": x, "w": w, "X": wrap([x])}
        return eval(f"sg.{call}", {"sg": sg}, names)

    with pytest.raises(TypeError, match=f"not {wrap.__name__}"):
        apply(x, sg.ones(3, 2))
    with pytest.raises(TypeError, match=f"not {wrap.__name__}"):
        sg.vmap(apply, (0, None))(sg.ones(4, 2), sg.ones(3, 2))
    with pytest.raises(TypeError, match=f"not {wrap.__name__}"):
        sg.jit(apply, strict=True)(x, sg.ones(3, 2))
