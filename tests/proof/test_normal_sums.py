"""Rules of docs/rules.md on sums, maxima, products and declared leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.index.parts import apart
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.dtype import float64
from symgrad.ir.expr import ExprPool
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.facts import Facts
from tests.proof.interpreter import Interpreter
from tests.proof.normal_terms import Standard


@pytest.fixture
def a() -> Standard:
    return Standard()


# -- sums, maxima, products


def test_sums_are_linear(a: Standard) -> None:
    """[rule: sum-linear]."""
    x, y = a.at("x", a.k), a.at("y", a.k)
    assert a.sum([a.k], 2 * x + 3 * y) == 2 * a.sum([a.k], x) + 3 * a.sum([a.k], y)
    assert a.sum([a.index("one", 1)], x) == x
    assert a.sum([a.index("none", 0)], x) == 0


def test_sums_of_sums(a: Standard) -> None:
    """[rule: merge]."""
    inner = a.sum([a.j], a.at("w", a.k, a.j) * a.at("v", a.j))
    outer = a.sum([a.k], a.at("u", a.k) * inner)
    other = a.sum([a.j], a.at("v", a.j) * a.sum([a.k], a.at("u", a.k) * a.at("w", a.k, a.j)))
    assert outer == other


def test_components_come_apart(a: Standard) -> None:
    """[rule: components]."""
    x, v = a.at("x", a.k), a.at("v", a.j)
    assert a.sum([a.k, a.j], x * v) == a.sum([a.k], x) * a.sum([a.j], v)
    assert a.sum([a.k, a.j], x) == a.m * a.sum([a.k], x)
    assert a.sum([a.k], x * a.y) == a.y * a.sum([a.k], x)


def test_names_of_bound_variables_do_not_matter(a: Standard) -> None:
    """[rule: rename]."""
    names = [a.index(name, a.n) for name in "pqrs"]
    forwards = backwards = a.x**0
    for left, right in zip(names, names[1:] + names[:1], strict=True):
        forwards = forwards * a.at("c", left, right)
    for left, right in zip(names[::-1], names[-2::-1] + names[-1:], strict=True):
        backwards = backwards * a.at("c", left, right)
    assert a.sum(names, forwards) == a.sum(names[::-1], backwards)
    cube = a.at("c", a.k, a.l) * a.at("c", a.l, a.k)
    square = a.at("c", a.k, a.l) ** 2
    assert a.sum([a.k, a.l], cube) != a.sum([a.k, a.l], square)


def test_deltas_are_eliminated(a: Standard) -> None:
    """[rule: delta]."""
    x = a.at("x", a.k)
    assert a.sum([a.k], a.compare(a.k, "eq", a.i) * x) == a.x
    shifted = a.sum([a.k], a.compare(a.k, "eq", a.i + 1) * x)
    assert shifted == a.compare(a.i + 1, "lt", a.n) * a.at("x", a.i + 1)
    assert shifted != a.at("x", a.i + 1)


def test_flattened_indices(a: Standard) -> None:
    """[rule: flatten]."""
    flat = a.index("f", a.n * a.m)
    row, column = a.floordiv(flat, a.m), a.mod(flat, a.m)
    pairs = a.sum([a.k, a.j], a.at("w", a.k, a.j))
    assert a.sum([flat], a.at("w", row, column)) == pairs
    assert a.sum([a.k, a.j], a.at("v", a.m * a.k + a.j)) == a.sum([flat], a.at("v", flat))
    back = a.sum([a.k, a.j], a.compare(a.m * a.k + a.j, "eq", flat) * a.at("w", a.k, a.j))
    assert a.stage(back - a.at("w", row, column)) is not None
    joint = a.compare(a.m * a.i + a.j, "eq", a.m * a.k)
    assert joint == a.compare(a.i, "eq", a.k) * a.compare(a.j, "eq", 0)


def test_windows_are_quotients(a: Standard) -> None:
    """[rule: flatten]."""
    flat = a.index("f", a.n * a.m)
    inside = a.compare(flat, "ge", a.m * a.k) * a.compare(flat, "lt", a.m * a.k + a.m)
    picked = a.sum([a.k], inside * a.at("x", a.k))
    assert picked == a.at("x", a.floordiv(flat, a.m))
    inner = a.sum([a.j], a.compare(a.m * a.k + a.j, "eq", flat) * a.at("w", a.k, a.j))
    nested = a.sum([a.k], inner)
    assert nested == a.at("w", a.floordiv(flat, a.m), a.mod(flat, a.m))
    wide = a.compare(flat, "ge", a.m * a.k) * a.compare(flat, "le", a.m * a.k + a.m)
    assert a.sum([a.k], wide * a.at("x", a.k)) != picked
    assert a.compare(a.floordiv(flat, a.m), "ge", a.i) == a.compare(flat, "ge", a.m * a.i)


def test_strides(a: Standard) -> None:
    """[rule: stride]."""
    wide = a.index("w", 2 * a.n)
    picked = a.sum([a.k], a.compare(2 * a.k, "eq", wide) * a.at("x", a.k))
    even = a.compare(a.mod(wide, 2), "eq", 0)
    assert a.stage(picked - even * a.at("x", a.floordiv(wide, 2))) is not None


def test_quotients_of_indices(a: Standard) -> None:
    """[rule: floordiv]."""
    assert a.floordiv(a.m * a.i + a.j, a.m) == a.i
    assert a.mod(a.m * a.i + a.j, a.m) == a.j
    assert a.floordiv(a.j, a.m) == 0
    flat = a.index("f", a.n * a.m)
    assert a.floordiv(a.floordiv(flat, a.m), 2) == a.floordiv(flat, 2 * a.m)
    assert a.floordiv(a.m * flat + a.j, a.m * a.n) == a.floordiv(flat, a.n)
    with pytest.raises(Undecided):
        a.floordiv(a.i, a.n - 1)


def test_softmax_rows_sum_to_one(a: Standard) -> None:
    """[rule: fold]."""
    e = a.exp(a.at("w", a.k, a.j))
    softmax = e / a.sum([a.j], e)
    assert a.sum([a.j], softmax) == 1
    assert a.sum([a.k, a.j], softmax * a.at("x", a.k)) == a.sum([a.k], a.at("x", a.k))
    both = a.sum([a.j], softmax * softmax)
    assert a.sum([a.k], both) != a.n


def test_reversed_sums(a: Standard) -> None:
    """[rule: reverse]."""
    assert a.sum([a.k], a.at("x", a.n - 1 - a.k)) == a.sum([a.k], a.at("x", a.k))
    crossed = a.at("x", a.n - 1 - a.k) * a.at("y", a.k)
    assert a.sum([a.k], crossed) != a.sum([a.k], a.at("x", a.k) * a.at("y", a.k))


def test_closed_forms(a: Standard) -> None:
    """[rule: closed-form]."""
    assert a.sum([a.k], a.k) == a.n * (a.n - 1) / 2
    assert a.sum([a.k], a.k**2) == a.n * (a.n - 1) * (2 * a.n - 1) / 6
    assert a.sum([a.k], a.k**3) == (a.n * (a.n - 1) / 2) ** 2
    assert a.sum([a.k], a.compare(a.k, "le", a.i)) == a.i + 1
    assert a.sum([a.k], a.compare(a.k, "ge", a.i) * a.k) == (
        a.n * (a.n - 1) / 2 - a.i * (a.i - 1) / 2
    )


def test_small_sums_are_written_out(a: Standard) -> None:
    """[rule: unroll]."""
    three = a.index("t", 3)
    whole = a.sum([three], a.at("x", three) * a.at("z", a.i, three))
    parts = [a.at("x", value) * a.at("z", a.i, value) for value in range(3)]
    assert a.stage(whole - parts[0] - parts[1] - parts[2]) == "unroll constant axes"
    assert a.stage(whole - parts[0] - parts[1]) is None


@pytest.mark.parametrize("low", [1, 8, 19, 20, 27, 39])
def test_bounds_on_long_axes_have_sums_in_common(a: Standard, low: int) -> None:
    """[rule: unroll]."""
    long = a.index("t", 40)
    body = a.at("z", a.i, long)
    here = a.sum([long], a.compare(long, "ge", low) * body)
    before = a.sum([long], a.compare(long, "ge", low - 1) * body)
    assert a.stage(before - here - a.at("z", a.i, low - 1)) is not None
    assert a.stage(before - here - a.at("z", a.i, low)) is None
    below = a.sum([long], a.compare(long, "lt", low) * body)
    assert a.stage(a.sum([long], body) - below - here) is not None


def test_long_axes_are_written_out_where_nothing_else_helps(a: Standard) -> None:
    """[rule: unroll]."""
    long = a.index("t", 40)
    whole = a.sum([long], a.at("x", long))
    parts = sum(a.at("x", value) for value in range(39)) + a.at("x", 39)
    assert a.stage(whole - parts) == "unroll long axes"
    assert a.stage(whole - parts + a.at("x", 0)) is None


JOINED = "n p", "n q", "m p", "m q"


def _joined(backward: Callable[..., Any]) -> Any:
    class Joined(sg.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, v: Any, w: Any) -> Any:
            ctx.save_for_backward(a, b, v, w)
            return (sg.cat([a, b], 1) @ sg.cat([v, w], 1).t()).exp()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(g, *ctx.saved_tensors)

    return sg.verify(Joined, *JOINED, suggest=False)


def test_sums_over_joined_axes_are_taken_apart() -> None:
    """[rule: parts]."""

    def right(g: Any, a: Any, b: Any, v: Any, w: Any) -> Any:
        d = g * (a @ v.t() + b @ w.t()).exp()
        return d @ v, d @ w, d.t() @ a, d.t() @ b

    def first_alone(g: Any, a: Any, b: Any, v: Any, w: Any) -> Any:
        d = g * (a @ v.t()).exp()
        return d @ v, d @ w, d.t() @ a, d.t() @ b

    assert _joined(right).verdict is sg.PROVED
    assert _joined(first_alone).verdict is sg.REFUTED


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_parts_of_a_reduction_are_together_the_whole(kind: str) -> None:
    """[rule: parts], in numbers."""
    pool, p, q = ExprPool(), Dim.size("p"), Dim.size("q")
    axis = Axis("k", p + q)
    index = Dim.of(axis)
    first = pool.access("a", (index,), float64)
    second = pool.access("b", (index - p,), float64)
    body = pool.select(pool.relation("lt", index, p), first, second)
    found = apart([pool.reduce(kind, axis, body)])
    assert found is not None
    values = {"a": np.array([2.0, -3.0, 0.5]), "b": np.array([4.0, -1.0])}
    whole = np.concatenate([values["a"], values["b"]])
    expected = float(getattr(whole, kind)())
    assert float(Interpreter(values, {"p": 3, "q": 2}, float).value(found[0], {})) == expected
    assert apart([pool.reduce(kind, axis, first)]) is None


def test_integrands_are_combined(a: Standard) -> None:
    """[rule: combine]."""
    x, y = a.at("x", a.k), a.at("y", a.k)
    left = a.sum([a.k], y / (x + 1)) - a.sum([a.k], y / (x + 2))
    right = a.sum([a.k], y / ((x + 1) * (x + 2)))
    assert a.stage(left - right) == "combine integrands"
    assert a.stage(left - 2 * right) is None


def test_a_matrix_times_its_inverse() -> None:
    """[rule: inverse-matrix]."""
    a = Standard(Facts(inverses={"b": "c"}, lengths={"b": Dim.size("n")}))
    product = a.sum([a.l], a.at("c", a.i, a.l) * a.at("b", a.l, a.k))
    assert product == a.compare(a.i, "eq", a.k)
    assert a.sum([a.l], a.at("b", a.i, a.l) * a.at("c", a.l, a.k)) == product
    transposed = a.sum([a.l], a.at("c", a.l, a.i) * a.at("b", a.l, a.k))
    assert transposed != product
    three = a.sum([a.k, a.l], a.at("b", a.i, a.k) * a.at("c", a.k, a.l) * a.at("x", a.l))
    assert three == a.x
    part = a.index("p", a.n - 1)
    assert a.sum([part], a.at("c", a.i, part) * a.at("b", part, a.k)) != product


def test_maxima(a: Standard) -> None:
    """[rule: max]."""
    x = a.at("x", a.k)
    assert a.max(a.k, x + a.y) == a.max(a.k, x) + a.y
    assert a.max(a.k, 3 * x) == 3 * a.max(a.k, x)
    assert a.max(a.k, a.y) == a.y
    assert a.max(a.k, a.y * x) != a.y * a.max(a.k, x)
    assert a.max(a.k, a.exp(a.y) * x) == a.exp(a.y) * a.max(a.k, x)
    assert a.max(a.k, -x) != -a.max(a.k, x)


def test_argmax_ignores_what_does_not_move_it(a: Standard) -> None:
    """[rule: argmax]."""
    x = a.at("x", a.k)
    assert a.argmax(a.k, a.exp(a.y) * x * 2 + a.y) == a.argmax(a.k, x)
    assert a.argmax(a.k, -x) != a.argmax(a.k, x)
    assert a.argmax(a.k, a.y) == 0


def test_products(a: Standard) -> None:
    """[rule: product]."""
    x, y = a.at("x", a.k), a.at("y", a.k)
    assert a.prod(a.k, x * y) == a.prod(a.k, x) * a.prod(a.k, y)
    assert a.prod(a.k, a.exp(x)) == a.exp(a.sum([a.k], x))
    assert a.prod(a.index("t", 3), a.y) == a.y**3
    assert a.prod(a.k, x * 2) == a.prod(a.k, x) * a.exp(a.n * a.log(a.x**0 * 2))
    assert a.prod(a.k, x + y) != a.prod(a.k, x) + a.prod(a.k, y)


def test_products_with_one_factor_taken_out(a: Standard) -> None:
    """[rule: punched-product]."""
    x = a.at("x", a.k)
    others = a.prod(a.k, a.where(a.compare(a.k, "eq", a.i), x**0, x))
    assert others == a.prod(a.k, x) / a.x
    doubled = a.prod(a.k, a.where(a.compare(a.k, "eq", a.i), 2 * x, x + 1))
    assert doubled == a.prod(a.k, x + 1) * 2 * a.x / (a.x + 1)
    assert (a.x + 1).poly in a.owed("inverse")


def test_ranks_are_permutations() -> None:
    """[rule: permutation]."""
    a = Standard(Facts(permutations={"rank": 1}, ranges={"rank": Dim.size("n")}))
    ranks = a.leaf("rank", a.j, a.k, sort="int")
    place = a.index("p", a.n)
    met = a.compare(ranks, "eq", place)
    assert a.sum([a.k], met) == 1
    origin = a.sum([a.k], met * a.k)
    own = a.leaf("rank", a.j, a.i, sort="int")
    assert a.compare(origin, "eq", a.i) == a.compare(own, "eq", place)
    assert a.compare(origin**2, "eq", a.i) != a.compare(own, "eq", place)
    plain = Standard(Facts(ranges={"rank": Dim.size("n")}))
    ranks = plain.leaf("rank", plain.j, plain.k, sort="int")
    assert plain.sum([plain.k], plain.compare(ranks, "eq", plain.index("p", plain.n))) != 1
    outside = a.compare(ranks, "eq", place + 1)
    assert a.sum([a.k], outside) != 1
    part = a.index("q", a.n - 1)
    some = a.leaf("rank", a.j, part, sort="int")
    assert a.sum([part], a.compare(some, "eq", a.index("r", a.n - 1))) != 1
    assert a.sum([part], some) != a.sum([part], part)
    assert a.sum([a.k], a.leaf("rank", a.j, a.k, sort="int")) == a.sum([a.k], a.k)


def test_a_sum_at_one_place_of_a_declared_permutation() -> None:
    """[rule: permutation]."""
    n = Dim.size("n")
    a = Standard(Facts(permutations={"r": 0}, ranges={"r": n}, unique=frozenset({"r"})))
    place = a.index("p", a.n)
    met = a.compare(a.leaf("r", a.k, sort="int"), "eq", place)
    inverse = a.sum([a.k], met * a.k)
    assert a.sum([a.k], met * a.at("x", a.k)) == a.at("x", inverse)
    assert a.sum([a.k], met * a.at("x", a.k) * a.k) == a.at("x", inverse) * inverse
    assert a.sum([a.k], met * a.at("x", a.k)) != a.at("x", place)
    assert a.sum([a.k], met * a.at("x", a.k, a.k)) == a.at("x", inverse, inverse)
    once = Standard(Facts(ranges={"r": n}, unique=frozenset({"r"})))
    met = once.compare(once.leaf("r", once.k, sort="int"), "eq", once.index("p", once.n))
    inverse = once.sum([once.k], met * once.k)
    assert once.sum([once.k], met * once.at("x", once.k)) != once.at("x", inverse)


def test_declared_leaves() -> None:
    """[rule: declared-leaf]."""
    a = Standard(
        Facts(symmetric=frozenset({"c"}), binary=frozenset({"b"}), one_hot={"t": Dim.size("m")})
    )
    assert a.at("c", a.i, a.k) == a.at("c", a.k, a.i)
    assert a.at("b", a.i) ** 2 == a.at("b", a.i)
    hot = a.at("t", a.i, a.j)
    assert hot * hot == hot
    assert a.sum([a.j], hot) == 1
    other = a.index("o", a.m)
    assert a.stage(hot * a.at("t", a.i, other) - hot * a.compare(a.j, "eq", other)) is not None
    square = a.at("c", a.k, a.l) * a.at("x", a.k) * a.at("y", a.l)
    assert a.sum([a.k, a.l], square) == a.sum(
        [a.k, a.l], a.at("c", a.k, a.l) * a.at("x", a.l) * a.at("y", a.k)
    )
