"""Shape specs and annotations are read as documented, and errors say what to write."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.errors import SpecError
from symgrad.frontend.spec import TensorSpec, annotated_spec, parse_spec
from symgrad.frontend.trace import batch_axes
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import ALL, bool_, float32, float64, int16, int64, uint8

N, M = Dim.size("n"), Dim.size("m")

_atoms = st.one_of(st.sampled_from(["n", "m", "rows"]).map(Dim.size), st.integers(0, 9).map(Dim.of))
_sizes = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner), st.builds(lambda a, b: a * b, inner, inner)
    ),
    max_leaves=4,
)


@given(st.lists(_sizes, max_size=4), st.sampled_from(ALL), st.booleans(), st.integers(0, 4))
def test_what_is_printed_is_read(dims: list[Dim], dtype: Any, batch: bool, position: int) -> None:
    place = min(position, len(dims)) if batch else 0
    spec = TensorSpec(tuple(dims), dtype, "batch" if batch else None, place)
    assert parse_spec(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "dims", "dtype"),
    [
        ("n m", (N, M), None),
        ("", (), None),
        ("f64[n 3]", (N, Dim.of(3)), float64),
        ("bool[]", (), bool_),
        ("i64[2*n+1]", (N * 2 + 1,), int64),
        ("n (n+m)//2", (N, (N + M) // 2), None),
        ("float32[n]", (N,), float32),
        ("n, m", (N, M), None),
        ("rows=3 n", (Dim.of(3), N), None),
    ],
)
def test_specs(text: str, dims: tuple[Dim, ...], dtype: Any) -> None:
    assert parse_spec(text) == TensorSpec(dims, dtype)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("c64", float32), ("complex64", float32), ("c128", float64), ("complex", None)],
)
def test_complex_numbers_are_pairs(text: str, dtype: Any) -> None:
    spec = parse_spec(f"{text}[n *batch m]")
    assert spec == TensorSpec((N, M, Dim.of(2)), dtype, "batch", 1, complex=True)
    assert parse_spec(str(spec)) == spec
    assert spec.of("z").endswith(" z[n, *batch, m]")
    plain = replace(spec, dims=(N, Dim.of(2)), batch=None, position=0)
    assert annotated_spec(f"{text}[n]", {}) == plain
    if text != "c64" and text != "c128":
        assert annotated_spec(f'{text.capitalize()}[Tensor, "n"]', {}) == plain


def test_any_number_of_axes() -> None:
    spec = parse_spec("n *batch m")
    assert (spec.batch, spec.position, spec.dims) == ("batch", 1, (N, M))
    assert str(spec.with_batch_axes(batch_axes("b", 2))) == "float[n b_0 b_1 m]"
    assert str(spec.with_batch_axes(batch_axes("b", None))) == "float[n b m]"
    assert spec.with_batch_axes([]) == TensorSpec((N, M))
    assert parse_spec("f32[...]").batch == "batch"


@pytest.mark.parametrize(
    "text",
    [
        *("n-", "f16[n]", "*a *b", "n m)", "n.m", "n**2", "*1", "-1", "n/2", "n//0", "#n"),
        *("n>=2", "n<=2", "n!=2", "n>=m", "2=n", "="),
        *("\ud800", "n" + "+1" * 20_000, "(" * 3_000, "-" * 5_000 + "n"),
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_what_is_no_spec(text: str) -> None:
    with pytest.raises(SpecError):
        parse_spec(text)


class Float:
    """A type as jaxtyping makes them."""

    dim_str = "n 3"
    dtypes: tuple[str, ...] = ("float16", "float32", "float64")


class Float64(Float):
    dtypes = ("float64",)


class Int16(Float):
    dtypes = ("int16",)


class Int(Float):
    dtypes = ("int2", "int4", "int8", "int16", "int32", "int64")


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        ("f32[n m]", TensorSpec((N, M), float32)),
        ("'n m'", TensorSpec((N, M))),
        ("n m", TensorSpec((N, M))),
        (Annotated[Any, "f64[n]"], TensorSpec((N,), float64)),
        (Float, TensorSpec((N, Dim.of(3)))),
        ("Float64", TensorSpec((N, Dim.of(3)), float64)),
        (Optional[Float], TensorSpec((N, Dim.of(3)))),  # noqa: UP045
        (Int16, TensorSpec((N, Dim.of(3)), int16)),
        ("Int", TensorSpec((N, Dim.of(3)), int64)),
        ("UInt8[Missing, 'n']", TensorSpec((N,), uint8)),
        ("float", None),
        ("Tensor", None),
        (int, None),
        (None, None),
    ],
    ids=str,
)
def test_annotations(annotation: Any, wanted: TensorSpec | None) -> None:
    assert annotated_spec(annotation, globals()) == wanted


def test_brackets_alone_are_of_floats() -> None:
    assert parse_spec("[]") == TensorSpec(())
    assert parse_spec(" [n 3] ") == TensorSpec((N, Dim.of(3)))
    with pytest.raises(SpecError):
        parse_spec("[n")
