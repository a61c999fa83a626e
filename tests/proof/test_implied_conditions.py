"""What follows from printed signs is not printed, and nothing else is left away."""

from __future__ import annotations

import ast
import itertools
from typing import Any

import numpy as np
import pytest

from symgrad.proof.report.distinct import is_left_out
from symgrad.proof.report.implied import Sign, sign_of, without_implied
from symgrad.proof.report.records import Condition

EPS = Condition("declared", "eps > 0")
FOLLOWS = (
    Condition("nonzero", "eps == 0", code="eps == 0"),
    Condition("domain", "x * x + eps**2 > 0", code="x * x + eps**2 > 0"),
    Condition("domain", "u", code="u.square().mean(1, keepdim=True) + eps > 0"),
    Condition("domain", "v", code="(x - y).abs() * eps >= 0"),
)
STAYS = (
    Condition("nonzero", "x == 0", code="x == 0"),
    Condition("domain", "x * y + eps > 0", code="x * y + eps > 0"),
    Condition("domain", "x * x - eps > 0", code="x * x - eps > 0"),
    Condition("domain", "eps * x > 0", code="eps * x > 0"),
    Condition("domain", "x > 0", code="x > 0"),
    Condition("kink", "eps > 0", code="eps - 1 == 0"),
)


@pytest.mark.parametrize("one", FOLLOWS, ids=str)
def test_what_follows_is_said_once(one: Condition) -> None:
    assert without_implied([one, EPS]) == (EPS,)
    assert without_implied([one]) == (one,)
    assert without_implied([one, Condition("kink", "eps > 0")])[0] == one


@pytest.mark.parametrize("one", STAYS, ids=str)
def test_what_does_not_follow_stays(one: Condition) -> None:
    assert without_implied([one, EPS]) == (one, EPS)


PARTS = ("e", "x", "2", "0", "x * x", "e * x", "e + 1", "x**2", "e**3", "x**3", "1 / e", "e - 1")


@pytest.mark.parametrize("op", ["+", "-", "*", "/"])
def test_signs_are_those_of_values(op: str) -> None:
    random = np.random.default_rng(0)
    for left, right in itertools.product(PARTS, PARTS):
        tree = ast.parse(f"({left}) {op} ({right})", mode="eval").body
        sign = sign_of(tree, {"e": Sign.POSITIVE})
        for _ in range(8):
            names: dict[str, Any] = {"e": float(random.gamma(1.0)), "x": float(random.normal())}
            names["x"] *= int(random.integers(2))
            try:
                value = eval(ast.unparse(tree), {}, names)
            except ZeroDivisionError:
                continue
            assert value > 0 or sign < Sign.POSITIVE, ast.unparse(tree)
            assert value >= 0 or sign is Sign.ANY, ast.unparse(tree)


def test_one_set_is_known_with_a_number_for_a_name() -> None:
    general = Condition("kink", "loss == 0", code="a.sum(1) - b + margin == 0")
    own = Condition("kink", "here", code="a.sum(1) - b == -1")
    assert is_left_out(own, [general], {"margin": "1.0"})
    assert not is_left_out(own, [general], {"margin": "2.0"})
    assert not is_left_out(own, [general], {})
