"""Dtypes: promotion, and what becomes of integers that do not fit, eager and in kernels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.dtype import ALL, BY_NAME, BY_SHORT, INTEGERS, promote
from tests.suite.adversarial.program import class_of

# Rows and columns in the order of ALL: the table of torch's documentation.
TABLE = """
bool u8  i8  i16 i32 i64 f32 f64
u8   u8  i16 i16 i32 i64 f32 f64
i8   i16 i8  i16 i32 i64 f32 f64
i16  i16 i16 i16 i32 i64 f32 f64
i32  i32 i32 i32 i32 i64 f32 f64
i64  i64 i64 i64 i64 i64 f32 f64
f32  f32 f32 f32 f32 f32 f32 f64
f64  f64 f64 f64 f64 f64 f64 f64
"""


def test_promotion_is_torchs_table() -> None:
    wanted = [BY_SHORT[word] for word in TABLE.split()]
    assert [promote(one, other) for one, other in itertools.product(ALL, ALL)] == wanted


def test_promotion_knows_no_order() -> None:
    for three in itertools.combinations(ALL, 3):
        assert len({promote(*order) for order in itertools.permutations(three)}) == 1


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_names(dtype: Any) -> None:
    assert getattr(sg, str(dtype)) is dtype
    assert BY_NAME[str(dtype)] is dtype
    assert sg.ones(2, dtype=dtype).dtype is dtype
    assert getattr(sg.ones(2), dtype.method)().dtype is dtype
    assert sg.ones(2, dtype=dtype).numpy().dtype == str(dtype)


@given(st.sampled_from(INTEGERS), st.integers(-(2**70), 2**70))
def test_wrapped_is_what_numpy_keeps(dtype: Any, value: int) -> None:
    low = np.array(value % 2**64, np.uint64)
    assert dtype.wrapped(value) == low.astype(str(dtype)).item()


class Mixed(sg.Function):
    """Arithmetic that leaves the range of its dtype at every step."""

    @staticmethod
    def forward(ctx: Any, x: Any, a: Any, b: Any, idx: Any) -> Any:
        s = a * a + a - b.to(a.dtype) * 3
        t = abs(a) // (b % 5 + 1).to(a.dtype)
        factor = s.float() + 2 * t.float() + sg.maximum(a, -a).float() + (a > b).float()
        ctx.save_for_backward(factor, idx)
        ctx.rows = x.shape[0]
        return (factor * x)[idx], a.sum(1), b.amin(1), a + b, a.argmax(1), (-a).clamp(-5, 100)

    @staticmethod
    def backward(ctx: Any, g: Any, *others: Any) -> Any:
        factor, idx = ctx.saved_tensors
        placed = sg.zeros(ctx.rows, factor.shape[1]).index_add(0, idx, g)
        return placed * factor, None, None, None


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [("i8", "u8"), ("i16", "i8"), ("i32", "i16")])
def test_kernels_wrap_as_numpy_does(a: str, b: str) -> None:
    op = sg.compile(Mixed, "f32[n m]", f"{a}[n m]", f"{b}[n m]", "i32[k]", allow=("UNDECIDED",))
    random = np.random.default_rng(3)
    for n, m, k in ((4, 33, 5), (1, 1, 3), (3, 0, 2)):
        whole = [random.standard_normal((n, m)).astype(np.float32)]
        for kind in (BY_SHORT[a], BY_SHORT[b]):
            whole.append(random.integers(kind.least, kind.greatest + 1, (n, m), str(kind)))
        arrays = [*whole, random.integers(0, n, k, np.int32)]
        if not m:  # argmax of nothing
            continue
        tensors = [sg.tensor(array) for array in arrays]
        tensors[0].requires_grad_()
        outputs, residuals = op.forward(*arrays)
        expected = Mixed.apply(*tensors)
        for found, wanted in zip(outputs, expected, strict=True):
            assert found.dtype == wanted.numpy(force=True).dtype
            np.testing.assert_allclose(found, wanted.numpy(force=True), rtol=1e-5)
        cotangent = random.standard_normal((k, m)).astype(np.float32)
        expected[0].backward(sg.tensor(cotangent))
        gradient, *_ = op.backward(residuals, cotangent, *[None] * 5)
        np.testing.assert_allclose(np.asarray(gradient), tensors[0].grad.numpy(), rtol=1e-5)


def _scaled(factor: Any, hand: Any) -> type[sg.Function]:
    class Scaled(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return x * factor(a)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (a,) = ctx.saved_tensors
            return g * hand(a), None

    return Scaled


@pytest.mark.parametrize(
    ("factor", "hand", "fits"),
    [
        (lambda a: (a * a).float(), lambda a: a.float() ** 2, False),
        (lambda a: (a.long() * a).float(), lambda a: a.float() ** 2, True),
        (lambda a: (a + a).float(), lambda a: (2 * a).float(), True),
        (lambda a: (-a).float(), lambda a: -a.float(), False),
        (lambda a: a.int().char().float(), lambda a: a.float(), True),
        (lambda a: a.byte().float(), lambda a: a.float(), False),
        (lambda a: sg.maximum(a, 0 * a).float(), lambda a: a.relu().float(), True),
    ],
)
def test_the_proof_knows_the_range(factor: Any, hand: Any, fits: bool) -> None:
    report = sg.verify(_scaled(factor, hand), "n", "i8[n]")
    assert report.verdict is (sg.PROVED if fits else sg.REFUTED)
    if not fits:
        found = report.inputs["x"].counterexample
        assert found is not None
        program = found.snippet
        assert "np.int8" in program
        exec(compile(program, "counterexample", "exec"), {})


def test_a_wide_integer_stays_an_integer() -> None:
    wide = _scaled(lambda a: (a * a).float(), lambda a: a.float() ** 2)
    assert sg.verify(wide, "n", "i64[n]").verdict is sg.PROVED


def test_a_jitted_function_takes_narrow_integers() -> None:
    @sg.jit
    def loss(x: Any, k: Any, rows: Any) -> Any:
        return ((x[rows] * (k * k).float()) ** 2).sum()

    random = np.random.default_rng(1)
    for size in (3, 40):
        k = sg.tensor(random.integers(0, 256, size, np.uint8))
        rows = sg.tensor(random.integers(0, 5, size, np.int32))
        x = sg.rand(5).requires_grad_()
        plain = sg.tensor(x.detach().numpy()).requires_grad_()
        loss(x, k, rows).backward()
        ((plain[rows] * (k * k).float()) ** 2).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), plain.grad.numpy(), rtol=1e-4)


def test_what_is_no_dtype_is_refused() -> None:
    x = sg.ones(2)
    assert x.to("cuda:0").dtype is sg.float32
    assert x.to("float64").dtype is sg.float64
    for wrong in ("float16", "bfloat16", "flaot32", "nowhere"):
        with pytest.raises(sg.SymgradError, match="not a dtype that symgrad supports"):
            x.to(wrong)
    for name in ("int32", "int64"):
        with pytest.raises(sg.SymgradError, match="bits, none of which is a known number"):
            x.to(name) & x.to(name)


@pytest.mark.parametrize("name", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("symbol", ["and", "or", "xor"])
def test_bits_of_two_unknown_integers_are_those_of_numpy(name: str, symbol: str) -> None:
    """All pairs of 8 bits, and of 16 those around the places where bits change."""
    limits = np.iinfo(name)
    ends = {sign * 2**place + by for place in range(16) for sign in (1, -1) for by in (-1, 0, 1)}
    short = range(limits.min, limits.max + 1) if limits.bits == 8 else ends
    values = np.array([one for one in short if limits.min <= one <= limits.max], name)
    left, right = np.meshgrid(values, values)
    method = f"__{symbol}__"
    found = getattr(sg.tensor(left), method)(sg.tensor(right))
    wanted = getattr(left, method)(right)
    assert found.numpy().dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize(
    ("mask", "verdict"),
    [
        (lambda a, b: a & b, sg.PROVED), (lambda a, b: a + b - (a | b), sg.PROVED),
        (lambda a, b: a | b, sg.REFUTED), (lambda a, b: a ^ b, sg.REFUTED),
        (lambda a, b: b, sg.REFUTED),
    ],
)  # fmt: skip
def test_a_mask_of_bits_of_two_tensors(mask: Any, verdict: Any) -> None:
    class Masked(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return x * (a & b)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * mask(*ctx.saved_tensors), None, None

    report = sg.verify(Masked, "n", "u8[n]", "u8[n]", suggest=False)
    assert report.verdict == verdict, str(report)


DEFAULTS = (
    ("sg.zeros(3).dtype == sg.float64", True), ("sg.tensor(1.0).element_size() == 8", True),
    ("(sg.ones(1) * x).dtype == sg.float64", True), ("x.dtype == sg.int64", False),
    ("sg.zeros(3, dtype=x.dtype).dtype == sg.int64", False),
    ("sg.zeros(3).dtype == sg.int64", False),
)  # fmt: skip


@pytest.mark.parametrize(("text", "asks"), DEFAULTS)
def test_what_depends_on_the_default_dtype_is_printed(text: str, asks: bool) -> None:
    source = f"""
class Asks(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x if {text} else 2 * g * x
"""
    report = sg.verify(class_of("Asks", source, sg), "f32[n]")
    assert str(report.verdict) == "PROVED"
    said = "if the default dtype is float32, as when it was judged"
    assert (said in " ".join(str(report).split())) == asks
