"""What a kernel computes in ``int64_t`` does not overflow, within limits that are said."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

import pytest

import symgrad as sg
from symgrad.codegen.calls import SizeNames
from symgrad.frontend.trace import trace
from symgrad.ir.atoms import Atom, Size
from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import float32, int64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.kernels import KernelPlan, plan
from symgrad.validate.symbolic import overflow
from symgrad.validate.symbolic.integers import TRIPS, Integers, least, quotient
from symgrad.validate.symbolic.kernel import validate
from symgrad.validate.symbolic.memory import NotShown
from symgrad.validate.symbolic.overflow import Limits, Reach
from symgrad.validate.symbolic.values import Values
from tests.codegen import programs
from tests.codegen.programs import Builder
from tests.codegen.programs import M as COLUMNS
from tests.codegen.programs import N as ROWS
from tests.validate.test_symbolic import Emitted, emitted, kernels

N, M, K = (Dim.size(name) for name in "nmk")
FORWARD = "nn_softmax_forward"

# -- against all numbers of 8 bits


@pytest.mark.parametrize("less", [0, 2])
@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.slow)])
def test_what_is_shown_to_fit_does_in_8_bits(
    seeds: range, less: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``less``: of a size that is granted, and that is divided by: windows are of such sizes."""
    in_8_bits(monkeypatch)
    shown, limited = 0, 0
    for seed in seeds:
        integers = Integers()
        limits = Limits([N * M * K])
        limits.grant((N - less) * M)
        reach = Reach(integers, Values(integers), limits)
        reach.named(GROUPS, [Dim.of(1), quotient(N, Dim.of(2))])
        integers.limit("t", -5, 5)
        integers.bound("#groups", lambda _: [Dim.of(GROUPS) - 1])
        integers.know(BLOCKS, N - 1 - (M + 1) * Dim.of(BLOCKS))
        rng = random.Random(seed)
        values = list(computed(rng, less))
        for value in values:
            reach.computed(value, 1)
        try:
            reach.settle()
        except NotShown:
            continue
        shown += 1
        limited += bool(limits.stated)
        met = list(admitted(limits.stated, less))
        met.sort(key=lambda sizes: sizes["n"] * sizes["m"] * sizes["k"])
        for sizes in [*met[-15:], *rng.sample(met, min(len(met), 15))]:
            for value in values:
                for number in numbers(value, sizes):
                    assert -128 <= number <= 127, (seed, str(value), sizes, limits.stated)
    assert shown > len(seeds) / 4
    assert limited > len(seeds) / 20


@pytest.mark.parametrize("kind", ["product", "quotient"])
def test_what_sizes_less_a_number_bound_fits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_8_bits(monkeypatch)
    whole = {"product": N * M, "quotient": quotient(7 * N, N - 2)}[kind]
    shown = 0
    for factor in range(1, 64):
        integers, limits = Integers(), Limits(())
        limits.grant((N - 2) * M)
        reach = Reach(integers, Values(integers), limits)
        reach.computed(factor * whole, 1)
        try:
            reach.settle()
        except NotShown:
            continue
        shown += 1
        for sizes in admitted(limits.stated, 2):
            if sizes["n"] > 2:
                assert max(numbers(factor * whole, sizes)) <= 127, (factor, sizes)
    assert shown > 1


@pytest.mark.parametrize("off", [0, 1, -1])
def test_a_remainder_by_a_sum_is_small_whatever_it_is_multiplied_by(
    off: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``row - (row // d)*d`` where another multiple of the quotient stands beside it.

    ``off``: by how much the multiple is wrong, so that it is no remainder.
    """
    in_8_bits(monkeypatch)
    row, divisor = Dim.of(Axis("row", M * (N - 2))), N - 2
    whole = quotient(row, divisor)
    rest = K * (row - (divisor + off) * whole)
    shown = 0
    for factor in range(1, 16):
        integers, limits = Integers(), Limits(())
        limits.grant(M * (N - 2), K * (N - 2), K * M)
        reach = Reach(integers, Values(integers), limits)
        value = factor * (rest + K * whole)
        reach.computed(value, 1)
        try:
            reach.settle()
        except NotShown:
            continue
        shown += 1
        for sizes in admitted(limits.stated, 2):
            if sizes["n"] > 2 and max(1, sizes["k"]) * max(sizes["n"] - 2, sizes["m"]) < 8:
                assert max((*numbers(value, sizes), 0), key=abs) <= 127, (factor, sizes)
    assert shown or off


def in_8_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is granted is less than 8, and 127 the largest number."""
    for name, number in {"BITS": 3, "_LEAST_BITS": 2, "_LARGE": 2, "_LARGEST": 127}.items():
        monkeypatch.setattr(overflow, name, number)


GROUPS = Element("#groups", (N,))
"""``n < 4 ? 1 : n / 2``, as a function of the C."""
SHORT = Element("t", ())
"""An element of an array of -5 to 5."""
BLOCKS = Axis("q", Dim.of(Element(TRIPS, (N, M + 1))))
"""The rounds of a loop from 0 to n, by steps of m + 1."""


def computed(rng: random.Random, less: int) -> Iterator[Dim]:
    """The integers of a small program, each computed from those before it."""
    blocks = Axis("b", quotient(N + 1, Dim.of(2)))
    inside = Axis("i", least(Dim.of(2), N - 2 * Dim.of(blocks)))
    row = 2 * Dim.of(blocks) + Dim.of(inside)
    found = [
        N, M, K, Dim.of(Axis("j", M)), Dim.of(Axis("p", K)), row, N - row, Dim.of(1), Dim.of(3),
        least(N, Dim.of(4)), Dim.of(GROUPS), quotient(N + Dim.of(GROUPS) - 1, Dim.of(GROUPS)),
        (M + 1) * Dim.of(BLOCKS), Dim.of(Axis("g", Dim.of(GROUPS))), Dim.of(SHORT),
        least(N - 5 * K, M - 2), quotient(7 * N, M + 1), quotient(5 * N, Dim.of(2)),
    ]  # fmt: skip
    for _ in range(rng.randint(2, 6)):
        one, other = rng.choice(found), rng.choice(found)
        kind = rng.choice("+*-/%**")
        if kind in "/%":
            other = rng.choice([Dim.of(2), Dim.of(3), M - less if less else M + 1, Dim.of(GROUPS)])
            whole = quotient(one, other)
            made = whole if kind == "/" else one - other * whole
            if any(factor < 0 for _, factor in one.terms) or SHORT in one.atoms:
                continue
        else:
            made = {"+": one + other, "-": one - other, "*": one * other}[kind]
        found.append(made)
        yield made


def admitted(stated: tuple[str, ...], less: int) -> Iterator[dict[str, int]]:
    """All sizes that meet what is granted, and what is stated."""
    for found in product(range(8), repeat=3):
        sizes = dict(zip("nmk", found, strict=True))
        counted = {name: max(1, size) for name, size in sizes.items()}
        granted = (counted["n"] - less) * counted["m"] < 8
        if less and not (sizes["n"] >= less and sizes["m"] > less):
            continue
        if granted and all(eval(one, {}, counted) for one in stated):
            yield sizes


def numbers(value: Dim, sizes: Mapping[str, int]) -> Iterator[int]:
    """Its value for all values of its axes, those that others depend on first."""
    known: dict[Atom, int] = {Size(name): size for name, size in sizes.items()}

    def lookup(atom: Atom) -> int:
        if atom in known or not isinstance(atom, Element):
            return known[atom]
        first, *others = (one.evaluate(lookup) for one in atom.indices)
        if atom.tensor == TRIPS:
            return -(-first // others[0])
        return 1 if first < 4 else first // 2

    def walk(axes: list[Axis]) -> Iterator[int]:
        if not axes:
            for short in (-5, 5) if SHORT in value.atoms else (0,):
                known[SHORT] = short
                yield value.evaluate(lookup)
            return
        for place in range(axes[0].extent.evaluate(lookup)):
            known[axes[0]] = place
            yield from walk(axes[1:])

    inner = {axis for one in value.axes for axis in one.extent.axes}
    yield from walk(sorted({*value.axes, *inner}, key=lambda one: len(one.extent.axes)))


def test_what_is_known_of_an_element_at_one_place_is_not_elsewhere() -> None:
    integers = Integers()
    values, limits = Values(integers), Limits(())
    limits.grant(M * K)
    index = Axis("j", 2 * N)

    def facts(indices: tuple[Dim, ...]) -> list[Dim]:
        value = Dim.of(Element("t", indices))
        return [value, M - 1 - value] if integers.within(indices[0], N) else []

    integers.bound("t", facts)
    address = Dim.of(Element("t", (Dim.of(index),))) * K
    reach = Reach(integers, values, limits)
    with integers.given(N - 1 - Dim.of(index)):
        reach.computed(address, 1)
    reach.settle()
    reach.computed(address, 2)
    with pytest.raises(NotShown, match="may overflow"):
        reach.settle()


# -- kernels


@pytest.mark.parametrize("name", ["nn_relu", "nn_gelu", "nn_softmax", "nn_log_softmax"])
def test_kernels_of_one_array_have_no_limits(name: str) -> None:
    for one in kernels(name).values():
        assert validate(*one).limits == ()


def test_a_product_of_matrices_is_for_all_sizes() -> None:
    outcome = validate(*emitted(KernelPlan("k_linear", programs.linear())))
    assert outcome.validated
    assert outcome.limits == ()


class Convolution(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        return sg.conv2d(x, weight)


def test_rows_of_a_convolution_of_any_batch_are_for_all_sizes() -> None:
    op = plan(trace(Convolution, "b 2 n m", "2 2 3 1"))
    (case,) = op.cases
    conditions = (*case.case.conditions, *case.case.requires)
    *_, of_weight = op.kernels
    outcome = validate(*emitted(of_weight, SizeNames(op.sizes)), conditions)
    assert outcome.validated, outcome.reason
    assert outcome.limits == ()


@pytest.mark.slow
def test_a_workspace_that_is_longer_than_each_array_is_a_limit() -> None:
    outcome = validate(*emitted(KernelPlan("k_attention", programs.attention())))
    assert outcome.validated
    assert [one.partition(" ")[0] for one in outcome.limits] == ["b*k*m*n", "b*m*n"]


OVERFLOWS = {
    "a factor that is divided out": ("i*m;", "i*m*4611686018427387904/4611686018427387904;"),
    "a number that is taken away again": (
        "i*m;", "i*m + 9223372036854775807 - 9223372036854775807;",
    ),
    "powers that are divided out": ("i*m;", "i*m*m*m*m/m/m/m;"),
    "a product that is not computed": ("i*m;", "i*m + n*n*n - n*n*n;"),
    "a condition of a parallel loop": ("m*n > ", "m*n*m*n > "),
    "a number that is too large": ("i*m;", "i*m + 9223372036854775807*4*0;"),
    "a negative number": ("i*m;", "i*m - n*m*100000 + n*m*100000;"),
}  # fmt: skip
FITS = {
    "a small factor": ("i*m;", "i*m*8/8;"),
    "a small number": ("i*m;", "i*m + 4294967296 - 4294967296;"),
    "a size beside": ("i*m;", "i*m + n - n;"),
}


@pytest.mark.parametrize("what", OVERFLOWS)
def test_what_overflows_on_the_way_is_not_validated(what: str) -> None:
    outcome = validate(*edited(*OVERFLOWS[what]))
    assert not outcome.validated
    assert "may overflow" in outcome.reason
    assert outcome.line


@pytest.mark.parametrize("what", FITS)
def test_what_fits_on_the_way_is_validated(what: str) -> None:
    outcome = validate(*edited(*FITS[what]))
    assert outcome.validated, outcome.reason
    assert outcome.limits == ()


def edited(old: str, new: str) -> Emitted:
    text, record, graph = kernels("nn_softmax")[FORWARD]
    start = text.index(f"int {FORWARD}(")
    assert old in text[start:], text[start:]
    return text[:start] + text[start:].replace(old, new), record, graph


def test_what_is_granted_has_a_limit_where_its_factor_is_large() -> None:
    outcome = validate(*edited("i*m;", "i*m - n*m*9000 + n*m*9000;"))
    assert outcome.validated
    assert outcome.limits == ("m*n < 2**47",)


@pytest.mark.parametrize(("factors", "fits"), [("n*m", True), ("n*m*n*m", False)])
def test_what_the_size_of_the_workspace_is_computed_by_fits(factors: str, fits: bool) -> None:
    text, record, graph = kernels("nn_softmax")[FORWARD]
    start = text.index("_workspace(")
    changed = text[:start] + text[start:].replace("return 0;", f"return {factors}*0;", 1)
    assert validate(changed, record, graph).validated == fits


def test_the_users_integers_are_theirs_but_no_larger_ones() -> None:
    graph = Graph()
    x = graph.input("x", TensorType(int64, (N,)))
    graph.output("y", graph.binary("mul", x, 5))
    text, record, graph = emitted(KernelPlan("k_times", graph))
    assert validate(text, record, graph).validated
    (factor,) = set(re.findall(r"x\[\w+\] ?\* ?5|5 ?\* ?x\[\w+\]", text))
    for wrong in (
        f"{factor}*1099511627776/1099511627776",
        f"{factor} + 1099511627776 - 1099511627776",
    ):
        assert not validate(text.replace(factor, wrong), record, graph).validated


def _of_data() -> Graph:
    b = Builder(int64)
    x, y = b.input("x", ROWS, COLUMNS), b.input("y", ROWS, COLUMNS)
    wide = b.apply("cast", x, dtype=float32) * b.apply("cast", y, dtype=float32)
    return b.outputs(g=b.apply("gt", x, y), u=x + y, w=wide, p=x * x + y)


@cache
def data() -> Emitted:
    return emitted(KernelPlan("k_data", _of_data()))


BEYOND = {
    "a difference for a comparison": ("x_ij > y_ij", "x_ij - y_ij > 0"),
    "the next integer for a comparison": ("x_ij > y_ij", "x_ij >= y_ij + 1"),
    "both negated": ("x_ij > y_ij", "-x_ij < -y_ij"),
    "both scaled": ("x_ij > y_ij", "x_ij*2 > y_ij*2"),
    "a product of integers for one of floats": ("(float)x_ij*(float)y_ij", "(float)(x_ij*y_ij)"),
    "powers that cancel": (
        "x_ij*x_ij + y_ij", "x_ij*x_ij + y_ij + x_ij*x_ij*x_ij*x_ij - x_ij*x_ij*x_ij*x_ij",
    ),
    "a number that is taken away again": ("x_ij + y_ij", "x_ij + 1 + y_ij - 1"),
    "an element twice": ("x_ij*x_ij + y_ij", "x_ij*x_ij + 2*y_ij - y_ij"),
    "elements of two places": (
        "x_ij + y_ij", "(x_ij + y[i*y_s0]) - y[i*y_s0] + y_ij",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BEYOND)
def test_what_the_graph_does_not_compute_of_elements_may_overflow(what: str) -> None:
    text, record, graph = data()
    assert validate(text, record, graph).validated
    old, new = BEYOND[what]
    text, old, new = (re.sub("_ij|_i\\b", "_e", one) for one in (text, old, new))
    assert old in text, text
    assert not validate(text.replace(old, new), record, graph).validated


@pytest.mark.parametrize(
    ("old", "new"),
    [("x_e*x_e + y_e", "y_e + x_e*x_e"), ("= x_e + y_e;", "= (y_e + x_e) - y_e + y_e;")],
)  # fmt: skip
def test_what_the_graph_computes_of_elements_the_c_may(old: str, new: str) -> None:
    text, record, graph = data()
    text = re.sub("_ij|_i\\b", "_e", text)
    assert old in text, text
    outcome = validate(text.replace(old, new), record, graph)
    assert outcome.validated, outcome.reason


def test_sums_and_products_of_elements_are_the_graphs_on_the_way_too() -> None:
    b = Builder(int64)
    x, y = b.input("x", ROWS, COLUMNS), b.input("y", ROWS, COLUMNS)
    graph = b.outputs(
        rows=b.apply("sum", x * y, axes=(1,)), columns=b.apply("sum", x, axes=(0,)),
        whole=b.apply("sum", x, axes=(0, 1)), factors=b.apply("prod", x, axes=(1,)),
        running=b.apply("cumsum", x, axis=1, reverse=False), sizes=b.apply("abs", x),
    )  # fmt: skip
    text, record, graph = emitted(KernelPlan("k_sums", graph))
    outcome = validate(text, record, graph)
    assert outcome.validated, outcome.reason
    for old, new in (("+= x_ij*y_ij", "+= x_ij*y_ij*y_ij"), ("*= x_ij", "*= x_ij*x_ij"),
                     ("columns_part[g*m + j]", "columns_part[j]")):  # fmt: skip
        if old in text:
            assert not validate(text.replace(old, new), record, graph).validated


CONVERTED = {
    "times 0": "x[i]*y[i] + (float)(0*(int64_t)truncf(x[i]))",
    "from itself": "x[i]*y[i] + (float)((int64_t)truncf(x[i]) - (int64_t)truncf(x[i]))",
    "in a comparison": "(int64_t)truncf(x[i]) == (int64_t)truncf(x[i]) ? x[i]*y[i] : x[i]",
    "a constant": "x[i]*y[i] + (float)(0*(int64_t)1e300)",
}  # fmt: skip


@pytest.mark.parametrize("what", CONVERTED)
def test_a_float_becomes_an_integer_where_it_does_in_the_graph(what: str) -> None:
    b = Builder(float32)
    graph = b.outputs(z=b.input("x", ROWS) * b.input("y", ROWS))
    text, record, graph = emitted(KernelPlan("k_product", graph))
    (old,) = re.findall(r"z\[i\] = (.*);", text)
    assert validate(text, record, graph).validated
    assert not validate(text.replace(old, CONVERTED[what]), record, graph).validated
