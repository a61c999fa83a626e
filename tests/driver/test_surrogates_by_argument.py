"""Each gradient may be the derivative of a function of its own: declared by argument."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import symgrad as sg
from symgrad import compiler
from symgrad.errors import SpecError


class BinaryLinear(sg.Function):
    """The gradients of input and bias are true, that of the weight is straight through."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
        ctx.save_for_backward(x, weight)
        return x @ weight.sign().mT + bias

    @staticmethod
    def sign(g: Any) -> Any:
        return g

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, weight = ctx.saved_tensors
        inside = (weight.abs() <= 1).float()
        return cls.sign(g @ weight.sign()), g.mT @ x * inside, g.sum(0)


class WrongInput(BinaryLinear):
    @staticmethod
    def sign(g: Any) -> Any:
        return -g


class Codebook(sg.Function):
    """Forward picks rows of a codebook, whose gradient is true."""

    @staticmethod
    def forward(ctx: Any, x: Any, book: Any) -> Any:
        index = (x.unsqueeze(1) - book.unsqueeze(0)).square().sum(-1).argmin(1)
        ctx.save_for_backward(index, book)
        return book.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        index, book = ctx.saved_tensors
        return g.clone(), sg.zeros_like(book).index_add(0, index, g)


class LearnedRange(sg.Function):
    """The limit has to be positive: that is declared beside the function."""

    @staticmethod
    def forward(ctx: Any, x: Any, limit: Any) -> Any:
        ctx.save_for_backward(x, limit)
        return (sg.minimum(x.relu(), limit) * 15 / limit).round() * limit / 15

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, limit = ctx.saved_tensors
        inside = (x > 0) & (x < limit)
        return g * inside.float(), (g * (x >= limit).float()).sum().reshape(limit.shape)


class Neuron(sg.Function):
    """Two outputs; the spike is subtracted from the potential."""

    @staticmethod
    def forward(ctx: Any, x: Any, v: Any) -> Any:
        h = 0.9 * v + x
        spike = (h > 1).float()
        ctx.save_for_backward(h)
        return spike, h - spike

    @staticmethod
    def backward(ctx: Any, of_spike: Any, of_v: Any) -> Any:
        (h,) = ctx.saved_tensors
        slope = 1 / (1 + 10 * (h - 1).abs()) ** 2
        of_h = of_v + (of_spike - of_v) * slope
        return of_h, 0.9 * of_h


SPECS: dict[type[sg.Function], tuple[str, ...]] = {LearnedRange: ("n m", "")}


def declared(function: type[sg.Function], folder: Path, lines: str, **more: Any) -> Any:
    path = folder / "symgrad.toml"
    path.write_text(f'[functions."{function.__qualname__}"]\n{lines}\n')
    return sg.verify(function, *SPECS.get(function, ()), config=path, suggest=False, **more)


UNHURRIED = 600  # seconds: on any machine
LINES = {
    BinaryLinear: 'surrogate = { weight = "x @ weight.clamp(-1, 1).mT + bias" }',
    Codebook: 'surrogate = { x = "x" }',
    LearnedRange: 'assume = { limit = "positive" }\nsurrogate = "',
    Neuron: 'surrogate = "((0.9 * v + x - 1) / ',
}


@pytest.mark.slow
@pytest.mark.parametrize("function", LINES)
def test_the_lines_that_are_printed_declare_it(
    function: type[sg.Function], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "DECLARATION_SECONDS", UNHURRIED)
    found = sg.verify(function, *SPECS.get(function, ()), timeout=UNHURRIED)
    assert str(found.verdict) == "SURROGATE?"
    lines = {one.declaration for one in found.inputs.values() if one.surrogate}
    (line,) = lines
    assert line.startswith(LINES[function]), line
    assert all(f"        {one}\n" in str(found) for one in line.splitlines())
    assert declared(function, tmp_path, line, timeout=UNHURRIED).verdict == sg.PROVED


@pytest.mark.slow
def test_only_the_gradients_that_are_named_are_judged_against_it(tmp_path: Path) -> None:
    line = 'surrogate = { weight = "x @ weight.clamp(-1, 1).mT + bias" }'
    found = declared(WrongInput, tmp_path, line)
    assert {name: str(one.verdict) for name, one in found.inputs.items()} == {
        "x": "REFUTED", "weight": "PROVED", "bias": "PROVED",
    }  # fmt: skip
    found = declared(BinaryLinear, tmp_path, line.replace("-1, 1", "-2, 2"))
    assert str(found.inputs["weight"].verdict) == "REFUTED"
    assert found.inputs["weight"].counterexample is not None
    found = declared(BinaryLinear, tmp_path, line, audit=True)
    assert "the gradient of weight is judged against the declared surrogate" in str(found)
    assert found.verdict == sg.PROVED


def test_a_name_that_is_no_argument_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'w' is no argument of forward"):
        declared(BinaryLinear, tmp_path, 'surrogate = { w = "x" }')
    with pytest.raises(SpecError, match="is wrong"):
        declared(BinaryLinear, tmp_path, "surrogate = { x = 1 }")
