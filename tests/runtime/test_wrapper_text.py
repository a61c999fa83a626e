"""The wrapper's text: names that collide, sizes that cannot be read, literals that come back."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad import abi
from symgrad.abi import Array, Backward, Binding, Case, Kernel, Op, Residual
from symgrad.codegen.calls import SizeNames, known_conditions, size_bindings
from symgrad.codegen.wrapper import laid_out, render_wrapper, wrapper_view
from symgrad.errors import CodegenError
from symgrad.ir.dim import Dim, maximum
from symgrad.ir.function import SizeCondition
from symgrad.runtime.libraries import read_op
from tests.runtime.examples import ALL, GATED, PICK

NAMES = st.sampled_from(["in", "out", "n", "type", "x", "residuals", "max", "_n", "lambda", "y"])


def chain(input_: str, output: str, size: str, statuses: tuple[str, ...] = ()) -> Case:
    """A case with one input, one output and one size, called whatever you like."""
    names = SizeNames((size,))
    dim = names.of(size)
    x, y = Array(input_, "float32", (dim,)), Array(output, "float32", (dim,))
    gy, gx = dataclasses.replace(y, name="grad_y"), dataclasses.replace(x, name="grad_x")
    forward = Kernel(
        "chain_forward", sizes=(dim,), inputs=(x,), outputs=(y,), statuses=statuses
    )  # fmt: skip
    backward = Kernel("chain_backward", sizes=(dim,), inputs=(x, gy), outputs=(gx,))
    return Case(
        inputs=(x,),
        outputs=(y,),
        bindings=size_bindings("Chain", [(Dim.size(size),)], (), names),
        residuals=(Residual(x, "input"),),
        inference=forward,
        forward=forward,
        backward=(Backward(mask=(True,), kernel=backward, residuals=(0,), cotangents=(0,)),),
        conditions=(names.condition(SizeCondition(Dim.size(size), "!=", Dim.of(7))),),
    )


def op_of(*cases: Case) -> Op:
    return Op(
        name="Chain", differentiable=(True,), cases=cases, files=("chain.c",), header="chain.h"
    )


def text_of(case: Case) -> str:
    return render_wrapper(wrapper_view(op_of(case)))


@given(names=st.lists(NAMES, min_size=3, max_size=3, unique=True))
def test_any_names_give_a_wrapper(names: list[str]) -> None:
    text = text_of(chain(names[0], names[1], names[2]))
    compile(text, "<wrapper>", "exec")
    op = read_op(text)
    assert [array.name for array in op.cases[0].inputs] == [names[0]]
    (condition,) = op.cases[0].conditions
    assert abi.evaluate(condition, {op.cases[0].sizes[0]: 7}) == 0
    assert abi.evaluate(condition, {op.cases[0].sizes[0]: 8}) == 1


def test_tables_keep_the_names_that_users_gave() -> None:
    """Only a local name must make room for the argument ``out``."""
    text = text_of(chain("x", "y", "out"))
    assert read_op(text).cases[0].sizes == ("out",)
    assert 'fields = ("x", "out")' in text
    assert "        out_, = x.shape\n" in text


def test_sizes_that_are_words_of_python() -> None:
    names = SizeNames(("in", "in_", "n", "max"))
    assert [names.of(size) for size in ("in", "in_", "n", "max")] == ["in__", "in_", "n", "max_"]
    assert names.text(maximum(Dim.size("max"), Dim.size("in"))) == "max(in__, max_)"
    assert "if in_ == 7" not in text_of(chain("x", "y", "in"))
    assert chain("x", "y", "in").inputs[0].dims == ("in_",)


@given(message=st.text(max_size=20), file=st.text(max_size=20))
def test_any_text_comes_back(message: str, file: str) -> None:
    op = dataclasses.replace(op_of(chain("x", "y", "n", (message,))), files=(file, file))
    assert eval(repr(op), dict(vars(abi))) == op
    assert eval(laid_out(op, 0), dict(vars(abi))) == op


def test_literals_keep_everything() -> None:
    op = read_op(GATED.wrapper())
    (two, one) = op.cases
    assert two.bindings[1] == Binding("in_", input=0, axis=1, factor=2)
    assert two.backward[0].zeros == (1,)
    assert one.residuals == ()
    assert one.inputs[0].dims == ("out", "1")
    assert len(op.kernels) == 4
    pick = read_op(PICK.wrapper())
    assert pick.cases[0].residuals == (Residual(Array("doubled", "int64", ("n",)), "kernel"),)
    assert pick.differentiable == (True, False)


def test_lines_are_short() -> None:
    for one in ALL:
        table = one.wrapper().partition("OP = ")[2].partition("\n\n")[0]
        assert max(map(len, table.splitlines())) <= 100


def test_sizes_are_read_where_they_are_plain() -> None:
    n, m = Dim.size("n"), Dim.size("m")
    bindings = size_bindings("op", [(3 * n - 2, m + 1, n)], (), SizeNames())
    assert [(b.size, b.axis, b.factor, b.offset) for b in bindings] == [
        ("n", 2, 1, 0),
        ("m", 1, 1, 1),
    ]


@pytest.mark.parametrize(
    "shape",
    [
        (Dim.size("m"),),
        (Dim.size("n") * Dim.size("m"),),
        (Dim.size("n") // 2,),
        (-Dim.size("n") + 4,),
        (maximum(Dim.size("n"), 4),),
        (Dim.of(3),),
    ],
    ids=str,
)
def test_a_size_that_cannot_be_read(shape: tuple[Dim, ...]) -> None:
    with pytest.raises(CodegenError, match=r"no input's shape tells the size [nm]"):
        size_bindings("op", [shape], ("n",), SizeNames())


def test_kernels_that_want_what_the_op_has_not() -> None:
    case = chain("x", "y", "n")
    stranger = dataclasses.replace(case.inputs[0], name="stranger")
    forward = dataclasses.replace(case.forward, inputs=(stranger,))
    with pytest.raises(CodegenError, match="argument 'stranger' the op lacks"):
        text_of(dataclasses.replace(case, forward=forward))


def test_substitution_is_by_whole_names() -> None:
    """A size ``in`` inside ``inner`` stays, and so does ``out`` inside ``outer``."""
    names = SizeNames(("in", "inner"))
    condition = SizeCondition(Dim.size("in"), "!=", Dim.size("inner"))
    assert names.condition(condition) == "in_ != inner"
    x = Array("x", "float32", ("out", "outer"))
    case = dataclasses.replace(
        chain("x", "y", "out"),
        inputs=(x,),
        bindings=(Binding("out", input=0, axis=0), Binding("outer", input=0, axis=1)),
        conditions=("out != outer",),
    )
    assert "if not (out_ != outer):" in text_of(case)


def test_conditions_over_sizes_that_were_put_in() -> None:
    """``k == 1`` is in the shapes already; what else mentions k has 1 in its place."""
    always = ("k != 7", "k + 1 > k")  # with 1 for k
    conditions = ("k == 1", "k*n != 3", *always, "j == n + k", "min(j, 4) < n*j")
    assert known_conditions("op", conditions, {"n"}) == (
        "(1)*n != 3",
        "min((n + (1)), 4) < n*(n + (1))",
    )
    with pytest.raises(CodegenError, match="k != 1 is about the size k, which no input has"):
        known_conditions("op", ("k != 1",), {"n"})


def test_conditions_over_sizes_that_are_there_stay() -> None:
    conditions = ("n == 4", "n != 3")
    assert known_conditions("op", conditions, {"n"}) == conditions
