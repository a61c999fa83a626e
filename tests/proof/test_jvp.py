"""A hand-written ``jvp`` is judged: PROVED where it is the derivative, else REFUTED at a point."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.proof.report.records import Finding


def jvp_line(function: Any, *specs: str, **named: Any) -> Finding:
    (found,) = [one for one in sg.verify(function, *specs, **named).protocol if one.name == "jvp"]
    return found


class Scaled(sg.Function):
    """Broadcasts, saves other tensors for jvp than for backward, has a plain argument."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, power: Any) -> Any:
        y = sg.tanh(x) * w
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w, y)
        ctx.power = power
        return y**power

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        t = sg.tanh(x)
        inner = grad * ctx.power * (t * w) ** (ctx.power - 1)
        return inner * w * (1 - t * t), (inner * t).sum(0), None

    @staticmethod
    def jvp(ctx: Any, x_t: Any, w_t: Any, none: Any) -> Any:
        x, w, y = ctx.saved_tensors
        t = sg.tanh(x)
        return ctx.power * y ** (ctx.power - 1) * (x_t * w * (1 - t * t) + t * w_t)


def changed(jvp: Any) -> Any:
    return type("Changed", (Scaled,), {"jvp": staticmethod(jvp)})


def test_the_derivative_is_proved() -> None:
    found = jvp_line(Scaled, "n m", "m", static={"power": 2})
    assert str(found.verdict) == "PROVED"


def right(ctx: Any, x_t: Any, w_t: Any, none: Any) -> Any:
    return Scaled.jvp(ctx, x_t, w_t, none)


WRONG = {
    "a factor": (lambda ctx, x, w, _: right(ctx, x, w, _) * 2.0, "instead of"),
    "a lost term": (lambda ctx, x, w, _: right(ctx, x, w * 0.0, _), "along tangent_w"),
    "a term without a tangent": (
        lambda ctx, x, w, _: right(ctx, x, w, _) + 0.5,
        "that are not 0",
    ),
    "not linear": (lambda ctx, x, w, _: right(ctx, x * x, w, _), "along the tangents"),
    "linear but for a kink": (lambda ctx, x, w, _: right(ctx, x.abs(), w, _), "along the tangents"),
    "a jump": (lambda ctx, x, w, _: right(ctx, x, w, _) + x.floor(), "along the tangents"),
    "a jump by a factor": (lambda ctx, x, w, _: right(ctx, x.round(), w, _), "along the tangents"),
    "a far jump": (lambda ctx, x, w, _: right(ctx, x, w + (w > 1000), _), "along the tangents"),
    "a jump of places": (lambda ctx, x, w, _: right(ctx, x, w, _) + w.argmax(), "the tangents"),
    "integers": (lambda ctx, x, w, _: right(ctx, x, w, _) + x.to("int64"), "along the tangents"),
    "None": (lambda ctx, x, w, _: None, "is 0 instead of"),
    "summed": (lambda ctx, x, w, _: right(ctx, x, w, _).sum(0), "f32[m] for an output of f32[n m]"),
    "two of them": (lambda ctx, x, w, _: (x, x), "2 tangents for 1 output"),
    "an error": (lambda ctx, x, w, _: x.reshape(7), "it fails"),
    "no tensor": (lambda ctx, x, w, _: 3.0, "float where a tensor is needed"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_anything_else_is_refuted(name: str) -> None:
    jvp, said = WRONG[name]
    report = sg.verify(changed(jvp), "n m", "m", static={"power": 2})
    assert str(report.verdict) == "REFUTED"
    assert all(str(one.verdict) == "PROVED" for one in report.inputs.values())
    (found,) = [one for one in report.protocol if one.name == "jvp"]
    assert str(found.verdict) == "REFUTED"
    assert said in found.text


class Cube(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * grad * x * x


def by_its_sign(ctx: Any, x_t: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 3 * x * x * x_t.abs() * x_t.sign()


def in_two_halves(ctx: Any, x_t: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 3 * x * x * (x_t.relu() - (-x_t).relu())


def clamped(ctx: Any, x_t: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 3 * x * x * (x_t.clamp(min=0) + x_t.clamp(max=0))


def by_cases(ctx: Any, x_t: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 3 * x * x * sg.where(x_t == 0, 0 * x_t, x_t)


@pytest.mark.parametrize(
    ("jvp", "excepted"),
    [(by_its_sign, "but where tangent_x == 0"), (in_two_halves, ""), (clamped, ""), (by_cases, "")],
)  # fmt: skip
def test_the_derivative_with_kinks_in_the_tangents_is_proved(jvp: Any, excepted: str) -> None:
    found = jvp_line(type("Kinked", (Cube,), {"jvp": staticmethod(jvp)}), "n")
    assert (str(found.verdict), found.text) == ("PROVED", excepted)


def test_what_cannot_be_traced_is_undecided() -> None:
    def by_values(ctx: Any, x_t: Any, w_t: Any, none: Any) -> Any:
        return right(ctx, x_t, w_t, none) * (1.0 if x_t.sum() > 0 else 2.0)

    assert str(jvp_line(changed(by_values), "n m", "m", static={"power": 2}).verdict) == "UNDECIDED"


def test_a_jvp_that_keeps_something_is_undecided() -> None:
    calls = [0]

    def counting(ctx: Any, x_t: Any, w_t: Any, none: Any) -> Any:
        calls[0] += 1
        found = right(ctx, x_t, w_t, none)
        return found if calls[0] < 40 else found * 2.0

    found = jvp_line(changed(counting), "n m", "m", static={"power": 2})
    assert str(found.verdict) == "UNDECIDED"


def test_questions_about_sizes_split_the_trace() -> None:
    def by_size(ctx: Any, x_t: Any, w_t: Any, none: Any) -> Any:
        found = right(ctx, x_t, w_t, none)
        return found * 2.0 if x_t.shape[1] == 3 else found

    found = jvp_line(changed(by_size), "n m", "m", static={"power": 2})
    assert str(found.verdict) == "REFUTED"


def test_the_point_is_told() -> None:
    jvp, _ = WRONG["a factor"]
    reason = jvp_line(changed(jvp), "n m", "m", static={"power": 2}).text
    for part in ("m = 1", "n = 1", "x = ", "w = ", "tangent_x = "):
        assert part in reason


def test_conditions_are_told() -> None:
    class Root(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = sg.log(x)
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad / ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, x_t: Any) -> Any:
            return x_t / ctx.saved_tensors[0]

    found = jvp_line(Root, "n")
    assert str(found.verdict) == "PROVED"
    assert "x > 0" in found.text


class Normalised(sg.Function):
    """Several outputs, one of them integers; reductions; setup_context; any batch axes."""

    @staticmethod
    def forward(x: Any) -> Any:
        centred = x - x.mean(-1, keepdim=True)
        return centred, x.argmax(-1), (x * x).sum(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_centred: Any, _: Any, grad_total: Any) -> Any:
        (x,) = ctx.saved_tensors
        back = grad_centred - grad_centred.mean(-1, keepdim=True)
        return back + 2.0 * x * grad_total.unsqueeze(-1)

    @staticmethod
    def jvp(ctx: Any, x_t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return x_t - x_t.mean(-1, keepdim=True), None, 2.0 * (x * x_t).sum(-1)


@pytest.mark.parametrize("spec", ["n m", "m", "*batch m"])
def test_several_outputs_and_any_rank(spec: str) -> None:
    assert str(sg.verify(Normalised, spec).verdict) == "PROVED"
    assert str(jvp_line(Normalised, spec).verdict) == "PROVED"


def test_against_a_declared_surrogate() -> None:
    class Straight(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.round()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

        @staticmethod
        def jvp(ctx: Any, x_t: Any) -> Any:
            return x_t

    assert str(jvp_line(Straight, "n").verdict) == "REFUTED"
    assert str(jvp_line(sg.surrogate(lambda x: x)(Straight), "n").verdict) == "PROVED"


def test_saved_tensors_in_jvp_are_those_saved_for_forward() -> None:
    class Forgot(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2.0 * grad * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, x_t: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2.0 * x * x_t

    found = jvp_line(Forgot, "n")
    assert str(found.verdict) == "REFUTED"
    assert "not enough values" in found.text


def test_what_is_saved_for_forward_has_its_own_name() -> None:
    class Named(sg.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2.0 * grad * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, x_t: Any) -> Any:
            (x,) = ctx.saved_for_forward
            return 2.0 * x * x_t

    assert str(jvp_line(Named, "n").verdict) == "PROVED"


def test_without_jvp_there_is_no_line() -> None:
    class Plain(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2.0 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2.0 * grad

    assert "jvp" not in [one.name for one in sg.verify(Plain, "n").protocol]


class Checked(Cube):
    """Forward raises where something is negative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if (x < 0).any():
            raise ValueError("negative")
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x * x


class CheckedByItsSum(Checked):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.sum() < 0:
            raise ValueError("negative")
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x * x


def of_modulus(ctx: Any, x_t: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 3 * x * abs(x) * x_t


def of_four(ctx: Any, x_t: Any) -> Any:
    (x,) = ctx.saved_tensors
    return 4 * x * x * x_t


def raising(ctx: Any, x_t: Any) -> Any:
    if (x_t < 0).any():
        raise ValueError("negative")
    return Cube.jvp(ctx, x_t)


@pytest.mark.parametrize(
    ("function", "jvp", "verdict"),
    [
        (Checked, of_modulus, "PROVED"), (Checked, of_four, "REFUTED"),
        (CheckedByItsSum, of_four, "UNDECIDED"), (Cube, raising, "UNDECIDED"),
    ],
)  # fmt: skip
def test_a_jvp_is_judged_where_forward_does_not_raise(
    function: Any, jvp: Any, verdict: str
) -> None:
    found = jvp_line(type("Pushed", (function,), {"jvp": staticmethod(jvp)}), "n")
    assert str(found.verdict) == verdict
