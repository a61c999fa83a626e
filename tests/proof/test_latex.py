"""Both gradients of an input as LaTeX: every formula is one, and says what is meant."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.dtype import bool_, float32, int64
from symgrad.ir.expr import Expr, ExprPool
from symgrad.ir.registry import names
from symgrad.ops.record import get
from symgrad.proof.report.latex import LatexWriter, symbol
from tests.proof.latex_grammar import LatexError, check


def op(forward: Any, backward: Any) -> type[sg.Function]:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (sg.Function,), methods)


@pytest.mark.parametrize(
    "wrong",
    ["{", "}", "x_{i}_{j}", "x^{2}^{3}", r"\left(x", r"\frac{1}", r"\frac{1}{}", r"\unknown",
     r"\begin{cases} x", r"\begin{cases} x \end{aligned}", "x & y", "x_i", r"\left(x\right"],
)  # fmt: skip
def test_the_checker_refuses(wrong: str) -> None:
    with pytest.raises(LatexError):
        check(wrong)


@pytest.mark.parametrize(
    ("function", "specs", "true", "hand"),
    [
        (
            op(lambda ctx, x: x.sum(), lambda ctx, grad: grad * 2),
            ("n m",),
            r"\frac{\partial \ell}{\partial x_{i, j}} &= \mathrm{grad\_output}",
            "",
        ),
        (
            op(lambda ctx, x, w: x @ w, lambda ctx, g: (g, g)),
            ("n m", "m k"),
            r"\frac{\partial \ell}{\partial x_{i, j}} &= "
            r"\sum_{l=0}^{k - 1} \mathrm{grad\_output}_{i, l} \, w_{j, l}",
            "",
        ),
        (
            op(lambda ctx, gamma: sg.exp(gamma), lambda ctx, g: g / 2 - g),
            ("n",),
            r"\frac{\partial \ell}{\partial \gamma_{i}} &= "
            r"\mathrm{grad\_output}_{i} \, \mathrm{output}_{i}",
            r"\mathrm{grad\_gamma}_{i} &= \frac{\mathrm{grad\_output}_{i}}{2} - "
            r"\mathrm{grad\_output}_{i}",
        ),
        (
            op(lambda ctx, x: x * 3, lambda ctx, g: sg.where(g > 0, g * g, 0.0)),
            ("n",),
            "",
            r"\mathrm{grad\_x}_{i} &= \begin{cases} \mathrm{grad\_output}_{i}^{2} & "
            r"\text{if } \mathrm{grad\_output}_{i} > 0 \\ 0 & \text{otherwise} \end{cases}",
        ),
    ],
)
def test_formulas(
    function: type[sg.Function], specs: tuple[str, ...], true: str, hand: str
) -> None:
    formulas = sg.verify(function, *specs, suggest=False).formulas
    assert formulas is not None
    first = formulas.gradients[0]
    assert true in (*first.true, "")
    assert hand in (*first.hand, "")


def test_a_report_shows_both_gradients() -> None:
    report = sg.verify(op(lambda ctx, x: sg.tanh(x), lambda ctx, g: g), "n m")
    shown = report._repr_html_()
    assert shown.count("$$") == 4
    assert "true gradient of x:" in shown
    assert "hand-written gradient of x:" in shown
    assert "&amp;=" in shown  # escaped once
    text = report._repr_latex_()
    assert text.startswith("$$")
    assert text.endswith("$$")
    check(text.strip("$"))


def test_cases_of_sizes_are_told_apart() -> None:
    function = op(lambda ctx, x: x.squeeze() * 2, lambda ctx, g: g.view(-1, 1) * 2)
    report = sg.verify(function, "n k")
    assert report.formulas is not None
    check(report._repr_latex_().strip("$"))


def test_matrices_without_elements_are_named() -> None:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.inverse = sg.linalg.inv(a)
        return ctx.inverse * 1.0

    function = op(forward, lambda ctx, g: -ctx.inverse.t() @ g @ ctx.inverse.t())
    text = sg.verify(function, "n n")._repr_latex_()
    check(text.strip("$"))
    assert "{a}^{-1}" in text


def test_deep_chains_stay_short() -> None:
    """What is used twice at every step is written once."""

    def forward(ctx: Any, x: Any) -> Any:
        for _ in range(40):
            x = sg.sin(x) * x + x
        return x

    formulas = sg.verify(op(forward, lambda ctx, g: g), "n", suggest=False).formulas
    assert formulas is not None
    for line in (*formulas.gradients[0].true, *formulas.gradients[0].hand):
        assert len(line) < 8_000
        check(rf"\begin{{aligned}} {line} \end{{aligned}}")


@pytest.mark.parametrize("name", ["x", "gamma", "grad_output", "épaisseur", "w1", "epsilon"])
def test_symbols(name: str) -> None:
    check(symbol(name))


# -- any expression

N, M = Dim.size("n"), Dim.size("m")
AXES = [Axis("i_n", N), Axis("i_m", M), Axis("i_n_1", N)]
ELEMENTWISE = sorted(
    name for name in names()
    if get(name).scalar is not None and name not in ("cast", "where", "logical_not")
)  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn) -> Expr:
    """Expressions over all elementwise ops, reductions, comparisons and indices."""
    pool = ExprPool()
    first, second = Dim.of(AXES[0]), Dim.of(AXES[1])
    plain = [Dim.of(axis) for axis in AXES]
    dims = st.sampled_from([*plain, first + 1, N - 1 - first, N * M, (N * M + second) // 2, M % 3])
    made: list[Expr] = [pool.access("x", (draw(dims), draw(dims)), float32)]
    for _ in range(draw(st.integers(1, 12))):
        operand = st.sampled_from(made)
        kind = draw(st.sampled_from(["literal", "size", "access", "call", "reduce", "where"]))
        if kind == "literal":
            value = draw(st.sampled_from([0.5, -2.0, 1e-5, -3e20, float("inf"), 7.0]))
            made.append(pool.literal(value, float32))
        elif kind == "size":
            made.append(pool.integer(draw(dims), int64))
        elif kind == "access":
            made.append(pool.access(draw(st.sampled_from(["beta", "w_1"])), (draw(dims),), float32))
        elif kind == "call":
            name = draw(st.sampled_from(ELEMENTWISE))
            arity = draw(st.integers(1, 2)) if name in ("relu", "exp", "log") else 2
            operands = [draw(operand) for _ in range(arity)]
            made.append(pool.call(name, *operands, dtype=float32))
        elif kind == "reduce":
            reduction = draw(st.sampled_from(["sum", "prod", "max", "argmin", "any"]))
            made.append(pool.reduce(reduction, draw(st.sampled_from(AXES)), draw(operand)))
        else:
            chosen = pool.call("lt", draw(operand), draw(operand), dtype=bool_)
            made.append(pool.select(chosen, draw(operand), draw(operand)))
            made.append(pool.call("cast", chosen, dtype=float32))
    return made[-1]


@given(expressions())
def test_every_expression_is_a_formula(expression: Expr) -> None:
    lines = LatexWriter({}, {"n", "m", "x"}).formulas("y", expression)
    assert lines[0].startswith("y &= ")
    check(rf"\begin{{aligned}} {' '.join(lines)} \end{{aligned}}")
    defined = re.findall(r"\\mathrm\{(u\d+)\}\S*(?: \S+\})? &=", "\n".join(lines))
    assert len(defined) == len(lines) - 1
    assert set(re.findall(r"\\mathrm\{(u\d+)\}", "\n".join(lines))) == set(defined)
