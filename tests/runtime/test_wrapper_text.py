"""The wrapper's text: names that collide, sizes that cannot be read, literals that come back."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.codegen.wrapper.literals import op_literal, size_bindings
from symgrad.codegen.wrapper.safe_names import with_known_conditions, with_safe_sizes
from symgrad.codegen.wrapper.view import render_wrapper, wrapper_view
from symgrad.errors import CodegenError
from symgrad.ir.abi import (
    ArrayArgument,
    BackwardSignature,
    KernelSignature,
    OpSignature,
    Residual,
)
from symgrad.ir.dim import Dim, Size, maximum
from symgrad.ir.dtype import float32
from symgrad.runtime import spec
from symgrad.runtime.package import read_op
from tests.runtime.examples import ALL, GATED, PICK

NAMES = st.sampled_from(["in", "out", "n", "type", "x", "residuals", "max", "_n", "lambda", "y"])


def chain(input_: str, output: str, size: str, statuses: tuple[str, ...] = ()) -> OpSignature:
    """An op with one input, one output and one size, called whatever you like."""
    dim = Dim.size(size)
    x, y = ArrayArgument(input_, float32, (dim,)), ArrayArgument(output, float32, (dim,))
    forward = KernelSignature("chain_forward", (size,), (x,), (y,), statuses)
    gy, gx = dataclasses.replace(y, name="grad_y"), dataclasses.replace(x, name="grad_x")
    backward = KernelSignature("chain_backward", (size,), (x, gy), (gx,))
    return OpSignature(
        "Chain",
        (x,),
        (y,),
        (True,),
        (Residual(x, "input"),),
        forward,
        forward,
        (BackwardSignature((True,), backward, (0,), (0,)),),
        (f"{size} != 7",),
    )


def text_of(signature: OpSignature) -> str:
    view = wrapper_view("Chain", (signature,), files=("chain.c",), header="chain.h")
    return render_wrapper(view)


@given(names=st.lists(NAMES, min_size=3, max_size=3, unique=True))
def test_any_names_give_a_wrapper(names: list[str]) -> None:
    text = text_of(chain(names[0], names[1], names[2]))
    compile(text, "<wrapper>", "exec")
    op = read_op(text)
    assert [array.name for array in op.cases[0].inputs] == [names[0]]
    (condition,) = op.cases[0].conditions
    assert spec.evaluate(condition, {op.cases[0].sizes[0]: 7}) == 0
    assert spec.evaluate(condition, {op.cases[0].sizes[0]: 8}) == 1


def test_tables_keep_the_names_that_users_gave() -> None:
    """Only a local name must make room for the argument ``out``."""
    text = text_of(chain("x", "y", "out"))
    assert read_op(text).cases[0].sizes == ("out",)
    assert 'fields = ("x", "out")' in text
    assert "        out_, = x.shape\n" in text


def test_sizes_that_are_words_of_python() -> None:
    (safe,) = with_safe_sizes((chain("x", "y", "in"),))
    assert safe.inputs[0].shape == (Dim.size("in_"),)
    assert safe.conditions == ("in_ != 7",)
    same = chain("x", "y", "n")
    assert with_safe_sizes((same,)) == (same,)


@given(message=st.text(max_size=20))
def test_any_status_comes_back(message: str) -> None:
    signature = chain("x", "y", "n", (message,))
    literal = op_literal("Chain", (signature,), ("chain.c",), "chain.h", False)
    op = eval(literal, dict(vars(spec)))
    assert op.cases[0].forward.statuses == (message,)


def test_literals_keep_everything() -> None:
    op = read_op(GATED.wrapper())
    (two, one) = op.cases
    assert two.bindings[1] == spec.Binding("in_", 0, 1, factor=2, offset=0)
    assert two.backward[0].zeros == (1,)
    assert one.residuals == ()
    assert one.inputs[0].dims == ("out", "1")
    assert len(op.kernels) == 4
    pick = read_op(PICK.wrapper())
    assert pick.cases[0].residuals == (
        spec.Residual(spec.Array("doubled", "int64", ("n",)), "kernel"),
    )
    assert pick.differentiable == (True, False)


def test_lines_are_short() -> None:
    for one in ALL:
        table = one.wrapper().partition("OP = ")[2].partition("\n\n")[0]
        assert max(map(len, table.splitlines())) <= 100


def with_shape(*shape: Dim) -> OpSignature:
    signature = chain("x", "y", "n")
    x = dataclasses.replace(signature.inputs[0], shape=shape)
    return dataclasses.replace(signature, inputs=(x,))


def test_sizes_are_read_where_they_are_plain() -> None:
    n, m = Dim.size("n"), Dim.size("m")
    bindings = size_bindings(with_shape(3 * n - 2, m + 1, n))
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
        size_bindings(with_shape(*shape))


def test_kernels_that_want_what_the_op_has_not() -> None:
    signature = chain("x", "y", "n")
    stranger = dataclasses.replace(signature.inputs[0], name="stranger")
    forward = dataclasses.replace(signature.forward, inputs=(stranger,))
    with pytest.raises(CodegenError, match="argument 'stranger' the op lacks"):
        text_of(dataclasses.replace(signature, forward=forward))


def test_substitution_is_by_whole_names() -> None:
    """A size ``in`` inside ``inner`` stays."""
    signature = chain("x", "y", "in")
    signature = dataclasses.replace(
        signature,
        conditions=("in != inner",),
        inputs=(ArrayArgument("x", float32, (Dim.of(Size("in")), Dim.size("inner"))),),
    )
    (safe,) = with_safe_sizes((signature,))
    assert safe.conditions == ("in_ != inner",)


def test_conditions_over_sizes_that_were_put_in() -> None:
    """``k == 1`` is in the shapes already; what else mentions k has 1 in its place."""
    signature = dataclasses.replace(
        chain("x", "y", "n"), conditions=("k == 1", "k*n != 3", "j == n + k", "min(j, 4) < n*j")
    )
    assert with_known_conditions(signature).conditions == (
        "(1)*n != 3",
        "min((n + (1)), 4) < n*(n + (1))",
    )
    unknown = dataclasses.replace(signature, conditions=("k != 1",))
    with pytest.raises(CodegenError, match="k != 1 is about the size k, which no input has"):
        text_of(unknown)


def test_conditions_over_sizes_that_are_there_stay() -> None:
    signature = dataclasses.replace(chain("x", "y", "n"), conditions=("n == 4", "n != 3"))
    assert with_known_conditions(signature) == signature
