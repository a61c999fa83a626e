"""Where forward jumps or bends, the report names it, however forward comes to it."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from tests.suite.adversarial.program import class_of, class_text

JUMPS = {
    "x * x + (x > 3).to(x.dtype)": {"x == 3"},
    "x * x + (x == 3).to(x.dtype)": {"x == 3"},
    "x * x + ((x > 1) & (x < 2)).to(x.dtype)": {"x == 1", "x == 2"},
    "x * x + (x > 3).any().to(x.dtype)": {"x == 3"},
    "x * x + x.long().to(x.dtype)": {"x == x.floor()"},
    "x * x + x.bool().to(x.dtype)": {"x == 0"},
    "x * x + x.floor()": {"x == x.floor()"},
    "x * x + x // 2": {"x / 2 == (x / 2).floor()"},
    "x * x + x.sign()": {"x == 0"},
    "x * x + sg.heaviside(x, x * 0)": {"x == 0"},
    "x * x + sg.copysign(x * 0 + 1, x)": {"x == 0"},
    "x * x + x.argmax().to(x.dtype)": {"the maximum of x is reached more than once"},
    "x * x + (x > x.mean()).to(x.dtype)": {"x == x.mean()"},
    "sg.where(x == 3, 100.0, x * x)": {"x == 3"},
    "x * x + sg.where((x > 1) & (x < 2), 1.0, 0.0)": {"x == 1", "x == 2"},
}
SMOOTH = (
    "sg.where(x == 3, 9.0, x * x)",
    "z = x == 0; s = sg.where(z, 1.0, x); x * x + 0 * sg.where(z, 1.0, s.sin() / s)",
    "x * x + 0 * (x > 3).to(x.dtype)",
    "i = sg.arange(x.shape[0]); x * x + (i > 2).to(x.dtype)",
)


def kinks(forward: str) -> set[str]:
    text = class_text("Judged", forward, "2 * g * x", "x")
    found = sg.verify(class_of("Judged", text, sg), "n", suggest=False)
    assert found.verdict == sg.PROVED, str(found)
    return {str(c).partition(" (yours")[0] for c in found.conditions if c.kind in ("kink", "ties")}


@pytest.mark.parametrize("forward", JUMPS)
def test_jumps_of_forward_are_named(forward: str) -> None:
    assert kinks(forward) == JUMPS[forward]


@pytest.mark.parametrize("forward", SMOOTH)
def test_nothing_is_named_where_forward_is_smooth(forward: str) -> None:
    assert kinks(forward) == set()


SMOOTH_BESIDE = {
    "1000000.0 * x * x.abs()": ("2000000.0 * g * x.abs()", set[str]()),
    "x * x.abs() + sg.relu(x - 1)": ("g * (2 * x.abs() + (x > 1).to(x.dtype))", {"x == 1"}),
    "x * x.abs() + (x > 1).to(x.dtype)": ("2 * g * x.abs()", {"x == 1"}),
    "x * x.abs() * sg.relu(x + 1)": (
        "g * (2 * x.abs() * sg.relu(x + 1) + x * x.abs() * (x > -1).to(x.dtype))", {"x == -1"},
    ),
    "x * sg.relu(x) + 0 * sg.relu(x - 2)": ("2 * g * sg.relu(x)", set()),
}  # fmt: skip


@pytest.mark.parametrize("forward", SMOOTH_BESIDE)
def test_what_is_smooth_is_not_named_for_what_bends_elsewhere(forward: str) -> None:
    backward, named = SMOOTH_BESIDE[forward]
    found = sg.verify(
        class_of("Judged", class_text("Judged", forward, backward, "x"), sg), "n", suggest=False
    )
    assert found.verdict == sg.PROVED, str(found)
    said = {str(one).partition(" (yours")[0] for one in found.conditions if one.kind == "kink"}
    assert said == named


# the gradient of a maximum by a mask, and what is left out of it
_MASK = "(g.unsqueeze({a}) * ({y} == {y}.{r}({a}, keepdim=True)).to(x.dtype))"
MAXIMA = {
    "one axis": ("x.amax(1)", _MASK.format(y="x", r="amax", a=1),
                 {"the maximum of x along axis 1 is reached more than once"}),
    "the first of those that tie": ("x.max(1).values", _MASK.format(y="x", r="amax", a=1),
                 {"the maximum of x along axis 1 is reached more than once"}),
    "a minimum": ("-(-x).amax(0)", _MASK.format(y="x", r="amin", a=0),
                  {"the minimum of x along axis 0 is reached more than once",
                   "the maximum of -x along axis 0 is reached more than once"}),
    "not a whole axis": (
        "x[:, 1:].amax(1)",
        "sg.zeros_like(x) + (sg.arange(x.shape[1]) > 0) * (x == x[:, 1:].amax(1, keepdim=True))"
        ".to(x.dtype) * g.unsqueeze(1)",
        {"the maximum of x[:, 1:] along axis 1 is reached more than once",
         "x[i, 1 + j] - x[i, 1 + k] == 0", "two elements of x are equal"}),
    "of absolute values": (
        "x.abs().amax(1)", _MASK.format(y="x.abs()", r="amax", a=1) + " * x.sign()",
        {"the maximum of x.abs() along axis 1 is reached more than once", "x == 0",
         "x[i, j] - x[i, k] == 0", "x[i, j] + x[i, k] == 0"}),
}  # fmt: skip


@pytest.mark.parametrize("name", MAXIMA)
def test_ties_of_a_maximum_are_those_of_its_greatest_elements(name: str) -> None:
    """Said once, in the words of the tensor; where it is not one, of all that is compared."""
    forward, backward, said = MAXIMA[name]
    judged = class_of("Judged", class_text("Judged", forward, backward, "x"), sg)
    found = sg.verify(judged, "n m", suggest=False)
    assert found.verdict == sg.PROVED, str(found)
    assert {str(one).partition(" (yours")[0] for one in found.conditions} == said, str(found)


# a weight where a label is one value, which backward forgets: labels have such values
FORGOTTEN: dict[str, tuple[str, str, dict[str, str]]] = {
    "any number": ("x * sg.where(t == 1, w, 1.0)", "g", {}),
    "constant": ("x * (1 + w * (t == 1).to(x.dtype))", "g", {"t": "constant"}),
    "constant, a mask": ("x * (t != 255).to(x.dtype)", "g", {"t": "constant"}),
    "a value that no double is": ("x * sg.where(t * 3 == 1, w, 1.0)", "g", {}),
    "a small change": ("x * sg.where(t == 1, 1.00001, 1.0)", "g", {}),
    "nothing at one element": ("(x - x.mean()) * sg.where(t == 1, w, 1.0)", "g - g.mean()", {}),
}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_what_a_label_is_compared_with_is_judged(case: str) -> None:
    """There forward is a function of x as anywhere; what no float64 is can only be named."""
    forward, backward, assume = FORGOTTEN[case]
    text = class_text("Judged", forward, f"{backward}, None, None", "xtw")
    known = {"w": "constant", **assume}
    found = sg.verify(class_of("Judged", text, sg), "n", "n", "", assume=known, suggest=False)
    if "no double" in case:
        assert "t == 1/3" in [one.text for one in found.inputs["x"].conditions], str(found)
    else:
        assert found.inputs["x"].verdict == sg.REFUTED, str(found)


RIGHT = {  # the same, but that backward asks as forward does
    "a weight": ("x * sg.where(t == 1, w, 1.0)", "g * sg.where(t == 1, w, 1.0)"),
    "a mask": ("x * (t != 255).to(x.dtype)", "g * (t != 255).to(x.dtype)"),
    "a pair": ("x * (t == w).to(x.dtype)", "g * (w == t).to(x.dtype)"),
    "another branch": ("x * sg.where(t == 0, 1.0, t)", "g * (t + (t == 0).to(x.dtype))"),
    "a limit": (
        "x * sg.where(t == 0, 1.0, sg.where(t == 0, 1.0, t).sin() / sg.where(t == 0, 1.0, t))",
        "g * sg.where(t == 0, 1.0, t.sin() / t)",
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_nothing_is_left_out_where_a_label_is_asked_as_forward_asks_it(case: str) -> None:
    forward, backward = RIGHT[case]
    text = class_text("Judged", forward, f"{backward}, None, None", "xtw")
    known = {"w": "constant", "t": "constant"}
    found = sg.verify(class_of("Judged", text, sg), "n", "n", "n", assume=known, suggest=False)
    assert found.inputs["x"].verdict == sg.PROVED, str(found)
    assert {one.kind for one in found.inputs["x"].conditions} == {"declared"}, str(found)


def test_the_side_that_a_label_is_on_counts_at_the_threshold() -> None:
    text = class_text("Judged", "x * (t > 0).to(x.dtype)", "g * (t >= 0).to(x.dtype), None", "xt")
    found = sg.verify(class_of("Judged", text, sg), "n", "n", assume={"t": "constant"})
    assert found.verdict == sg.REFUTED, str(found)


def test_nothing_is_named_where_a_constant_goes_on_smoothly() -> None:
    text = class_text("Judged", "sg.where(t == 0, 0.0, t * x)", "t * g, None", "xt")
    assume = {"t": "constant"}
    found = sg.verify(class_of("Judged", text, sg), "n", "n", assume=assume, suggest=False)
    assert found.verdict == sg.PROVED, str(found)
    assert not [one for one in found.conditions if one.kind == "kink"], str(found)


class Weighted(sg.Function):
    """Backward forgets the weight of what is labelled 1."""

    @staticmethod
    def forward(ctx: Any, x: Any, t: Any, w: float = 3.0) -> Any:
        ctx.save_for_backward(x, t)
        return sg.where(t == 1, w, 1.0) * x * t

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        return g * t, g * x, None


def test_a_weight_of_any_value_is_judged() -> None:
    """The jump is named where it is one: for the gradient of the label itself."""
    found = sg.verify(Weighted, "n", "n", suggest=False)
    assert found.inputs["x"].verdict == sg.REFUTED
    assert found.inputs["t"].verdict == sg.PROVED
    assert "t == 1" in [one.text for one in found.inputs["t"].conditions], str(found)


def test_numbers_that_are_declared_binary_meet_no_threshold() -> None:
    text = class_text("Judged", "x * x + (y > 0.5).to(x.dtype)", "2 * g * x, None", "xy")
    specs, assume = ("n", "n"), {"y": "binary"}
    found = sg.verify(class_of("Judged", text, sg), *specs, assume=assume, suggest=False)
    assert not [c for c in found.conditions if c.kind == "kink"], str(found)


BOTH = {  # forwards that choose, and bend nowhere, with their gradients
    "x * x.abs()": "2 * g * x.abs()",
    "x.relu() ** 2": "2 * g * x.relu()",
    "x / (1 + x.abs())": "g / (1 + x.abs()).square()",
    "sg.where(x > 0, x, x.exp() - 1)": "g * sg.where(x > 0, 1.0, x.exp())",
    "sg.where(x > 1, x, (x * x + 1) / 2)": "g * x.clamp(max=1)",
    "c = x.clamp(-1, 1); x * c - c * c / 2": "g * x.clamp(-1, 1)",
    "m = (x.abs() < 1).to(x.dtype); m * x * x / 2 + (1 - m) * (x.abs() - 0.5)": (
        "g * x.clamp(-1, 1)"
    ),
    "sg.where(x > 0, sg.where(x < 1, x * x, 2 * x - 1), 0.0)": "2 * g * x.clamp(0, 1)",
}
BENT = {  # where one choice has another value, or another slope, its boundary is named
    "x.abs()": ("g * x.sign()", {"x == 0"}),
    "sg.where(x > 0, x + 1, x)": ("g", {"x == 0"}),
    "sg.where(x > 0, x, 2 * (x.exp() - 1))": ("g * sg.where(x > 0, 1.0, 2 * x.exp())", {"x == 0"}),
    "c = x.clamp(-1, 1); x * c - c * c": (
        "c = x.clamp(-1, 1); g * (c + (x - 2 * c) * (x.abs() < 1))", {"x == 1", "x == -1"},
    ),
    "x * x.abs() + (x - 1).relu()": ("g * (2 * x.abs() + (x > 1))", {"x == 1"}),
    "x.relu() ** 2 + (x > 0) * 1.0": ("2 * g * x.relu()", {"x == 0"}),
    "x * x.relu() + x.abs() * x.sign()": ("g * (2 * x.relu() + 1)", {"x == 0"}),
}  # fmt: skip


def named(forward: str, backward: str) -> set[str]:
    found = sg.verify(
        class_of("Judged", class_text("Judged", forward, backward, "x"), sg), "n", suggest=False
    )
    assert found.verdict == sg.PROVED, str(found)
    return {str(c).partition(" (yours")[0] for c in found.conditions if c.kind == "kink"}


@pytest.mark.slow
@pytest.mark.parametrize("forward", BOTH)
def test_no_kink_is_named_where_both_branches_have_one_derivative(forward: str) -> None:
    assert named(forward, BOTH[forward]) == set()


@pytest.mark.slow
@pytest.mark.parametrize("seen", [True, False], ids=("by points", "by proof"))
@pytest.mark.parametrize("forward", BENT)
def test_a_kink_is_named_where_the_branches_differ(
    forward: str, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not seen:  # where no point shows that forward bends, the proof does not say it is smooth
        monkeypatch.setattr("symgrad.proof.judge.smooth.bent", lambda *_: False)
    backward, expected = BENT[forward]
    assert named(forward, backward) == expected


TIED = {
    "sg.maximum(x, x)": "g",
    "sg.maximum(x, x.relu())": "g * (x > 0)",
    "sg.minimum(x.abs(), x)": "g",
    "sg.minimum(-x, x.abs())": "-g",
    "sg.maximum(x - x.floor(), x - x.floor())": "g",
}


@pytest.mark.parametrize("forward", TIED)
def test_operands_that_are_equal_in_an_open_set_have_one_derivative_there(forward: str) -> None:
    for backward, verdicts in (
        (TIED[forward], [sg.PROVED]),
        (f"3 * ({TIED[forward]})", [sg.REFUTED, sg.SURROGATE]),
        (f"({TIED[forward]}) * (x < 5)", [sg.REFUTED, sg.SURROGATE]),
    ):
        text = class_text("Judged", forward, backward, "x")
        found = sg.verify(class_of("Judged", text, sg), "n", suggest=False)
        assert found.verdict in verdicts, str(found)


@pytest.mark.slow
def test_a_huber_loss_has_no_kink_for_all_thresholds() -> None:
    text = class_text(
        "Judged", "d = x - y; a = d.abs(); sg.where(a <= t, 0.5 * d * d, t * (a - 0.5 * t))",
        "c = sg.minimum(sg.maximum(x - y, -t), t); g * c, -g * c, None", "xyt",
    )  # fmt: skip
    assume = {"t": "positive"}
    found = sg.verify(class_of("Judged", text, sg), "n", "n", "", assume=assume, suggest=False)
    assert found.inputs["x"].verdict == sg.PROVED, str(found)
    assert not [one for one in found.inputs["x"].conditions if one.kind == "kink"], str(found)


# jumps of what rounds: what backward has there is refuted, or not said to be proved
FLOORS = tuple(
    backward.format(u=u)
    for u in ("x", "(x / 7 + 0.3)", "(x * x / 13 + 0.1)", "x.exp()")
    for backward in (
        "u = {u}\n2 * g * x * (u.ceil() - u.floor())",
        "u = {u}\n-2 * g * x * (u.floor() + (-u).floor())",
        "u = {u}\n2 * g * x * (1.0 + (u == u.floor()) * 1.0)",
        "u = {u}\n2 * g * x * ((u - u.floor()) > 0)",
        "u = {u}\nsg.where(u % 1 == 0, 0.0, 2 * g * x)",
        "u = {u}\n2 * g * x * (-(u // 1) - ((-u) // 1))",
    )
)


@pytest.mark.parametrize("backward", FLOORS[::3])
def test_what_is_wrong_where_a_floor_jumps_is_not_proved(backward: str) -> None:
    text = class_text("Judged", "x * x", backward, "x")
    found = sg.verify(class_of("Judged", text, sg), "n", suggest=False)
    said = [c for c in found.conditions if c.kind == "null set"]
    assert found.verdict != sg.PROVED or said, str(found)


class MeanOfGroup(sg.Function):
    """The mean of each group, clamped where it is empty: a count has no kink in ``x``."""

    @staticmethod
    def forward(ctx: Any, x: Any, index: Any) -> Any:
        count = sg.zeros(3, dtype=x.dtype).index_add(0, index, sg.ones_like(x)).clamp(min=1)
        ctx.save_for_backward(index, count)
        return sg.zeros(3, dtype=x.dtype).index_add(0, index, x) / count

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        index, count = ctx.saved_tensors
        return (g / count)[index], None


class WrongWhereAlone(MeanOfGroup):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        index, count = ctx.saved_tensors
        return (g / sg.where(count == 1, 2, count))[index], None


def test_a_count_of_integers_has_no_kink() -> None:
    found = sg.verify(MeanOfGroup, "e", "i64[e]", suggest=False)
    assert found.verdict == sg.PROVED
    assert [str(one) for one in found.inputs["x"].conditions] == ["0 <= index < 3"]
    wrong = sg.verify(WrongWhereAlone, "e", "i64[e]", suggest=False)
    assert wrong.verdict == sg.REFUTED
