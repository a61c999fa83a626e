"""Options that are None by default, without annotations, and flags of three states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import symgrad as sg

Forward = Callable[..., Any]
FACTORS = {None: 1, "a": 2, "b": 3}


def judged(forward: Forward, backward: Forward) -> Any:
    """The report on a Function of these two, of which nothing is stated."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return sg.verify(type("Op", (sg.Function,), members))


def compared(ctx: Any, x: Any, act: Any = None) -> Any:
    ctx.act = act
    return 2 * x if act == "twice" else 1 * x


def compared_elsewhere(ctx: Any, x: Any, act: Any = None) -> Any:
    ctx.act = act
    return pick(x, act)


def pick(x: Any, act: Any) -> Any:
    return 2 * x if act == "twice" else 1 * x


def looked_up(ctx: Any, x: Any, act: Any = None) -> Any:
    ctx.act = act
    return x * {None: 1, "a": 2, "b": 3}[act]


def looked_up_elsewhere(ctx: Any, x: Any, act: Any = None) -> Any:
    ctx.act = act
    return x * FACTORS[act]


def of_compared(ctx: Any, g: Any) -> Any:
    return 2 * g if ctx.act == "twice" else 1 * g, None


def of_looked_up(ctx: Any, g: Any) -> Any:
    return g * FACTORS[ctx.act], None


def of_none(ctx: Any, g: Any) -> Any:
    return 1 * g, None


@pytest.mark.parametrize(
    ("forward", "backward", "values", "wrong"),
    [
        (compared, of_compared, "None or 'twice' or 'other'", "'twice'"),
        (compared_elsewhere, of_compared, "None or 'twice' or 'other'", "'twice'"),
        (looked_up, of_looked_up, "None or 'a' or 'b'", "'a'"),
        (looked_up_elsewhere, of_looked_up, "None or 'a' or 'b'", "'a'"),
    ],
)
def test_an_option_of_none_is_judged_at_texts(
    forward: Forward, backward: Forward, values: str, wrong: str
) -> None:
    assert judged(forward, backward).stated == f"PROVED for act = {values}"
    assert judged(forward, of_none).stated == f"REFUTED for act = {wrong}"


def test_an_option_of_none_is_judged_at_none_as_well() -> None:
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g, None

    assert judged(compared_elsewhere, backward) == sg.REFUTED


def test_a_text_that_backward_alone_compares_with() -> None:
    def forward(ctx: Any, x: Any, act: Any = None) -> Any:
        ctx.act = act
        return 2 * x

    def backward(ctx: Any, g: Any) -> Any:
        return -2 * g if ctx.act == "neg" else 2 * g, None

    assert judged(forward, backward).stated == "REFUTED for act = 'neg'"


def summed(ctx: Any, x: Any, dim: Any = None) -> Any:
    ctx.dim, ctx.shape = dim, x.shape
    return x.sum() if dim is None else x.sum(dim, keepdim=True)


def test_an_axis_of_none_is_judged_at_every_axis() -> None:
    def right(ctx: Any, g: Any) -> Any:
        return g.expand(ctx.shape), None

    def wrong(ctx: Any, g: Any) -> Any:
        return g.expand(ctx.shape) * (1 if ctx.dim is None else 2), None

    assert judged(summed, right).stated == "PROVED for dim = None or -2 or -1 or 0 or 1"
    assert judged(summed, wrong).stated == "REFUTED for dim = -2"


def test_a_count_of_none_is_judged_at_counts() -> None:
    def forward(ctx: Any, x: Any, times: Any = None) -> Any:
        for _ in range(times or 3):
            x = 2 * x
        return x

    assert judged(forward, lambda ctx, g: (8 * g, None)).stated == "REFUTED for times = 1"


def test_where_no_other_values_are_found_a_note_says_so() -> None:
    def asked(ctx: Any, x: Any, act: Any = None) -> Any:
        return 2 * x if act is not None and act.startswith("t") else 1 * x

    note = "act is judged at None alone: no other values of it are known"
    assert note in judged(asked, of_none).notes
    assert note not in judged(compared, of_compared).notes


def three_states(ctx: Any, x: Any, double: Any = None) -> Any:
    ctx.double = double
    if double is None:
        return 1 * x
    return 2 * x if double else 3 * x


def of_three_states(ctx: Any, g: Any) -> Any:
    if ctx.double is False:
        g = 3 * g
    elif ctx.double is True:
        g = 2 * g
    return g, None


def without_a_default(ctx: Any, x: Any, double: Any) -> Any:
    ctx.double = double
    if double is None:
        return 1 * x
    return 2 * x if double is True else 3 * x


@pytest.mark.parametrize("forward", [three_states, without_a_default])
def test_what_is_asked_by_is_alone_is_none_true_or_false(forward: Forward) -> None:
    assert judged(forward, of_three_states).stated == "PROVED for double = None or True or False"

    def wrong(ctx: Any, g: Any) -> Any:
        return g * (2 if ctx.double is True else 1), None

    assert judged(forward, wrong).stated == "REFUTED for double = False"
