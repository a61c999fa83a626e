"""Whatever a program does, the judge says PROVED, REFUTED, UNDECIDED, or a SymgradError."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import SymgradError
from symgrad.proof import verify
from symgrad.proof.judge import decide
from symgrad.proof.oracle import subject
from symgrad.tools.judging import judge

LITERALS = (
    *(0.0, -0.0, 5e-324, 1e-300, 1e-9, 0.3, 1.0, -2.0, 2.3e6, -1e9, 1e9, 1e17, 1e300, 10**30, 3),
    *(float("inf"), -float("inf"), float("nan"), True),
)
SPECS = ("", "n", "n m", "1", "0", "n 1", "0 n", "n n", "i64[n]", "i64[]", "bool[n]", "f64[m]")

Step = Callable[..., Any]
literal = st.sampled_from(LITERALS)
unary: st.SearchStrategy[Step] = st.one_of(
    st.sampled_from([
        lambda x: x, lambda x: x.exp(), lambda x: abs(x), lambda x: sg.relu(x), lambda x: x.sum(),
        lambda x: x.sqrt(), lambda x: x.log(), lambda x: x.reshape(-1), lambda x: x.squeeze(),
        lambda x: x.reshape(0, -1), lambda x: x.unsqueeze(0), lambda x: x.mean(-1), lambda x: -x,
        lambda x: x.amax(0), lambda x: x.cumsum(0), lambda x: x[0], lambda x: x.float(),
        lambda x: x.flip(0), lambda x: x.detach(), lambda x: 1 / x, lambda x: x.reshape(0),
        lambda x: sg.softmax(x, -1), lambda x: x.sum(0, keepdim=True), lambda x: x[..., :2],
        lambda x: x.max() - x.min(), lambda x: sg.stack([x, x]), lambda x: x.long(),
    ]),
    literal.map(lambda a: lambda x: x * a),
    literal.map(lambda a: lambda x: x + a),
    literal.map(lambda a: lambda x: x**a),
    literal.map(lambda a: lambda x: (x > a) * x),
    literal.map(lambda a: lambda x: x == a),
    st.tuples(literal, literal).map(lambda ab: lambda x: sg.clamp(x, *ab)),
    st.tuples(literal, literal).map(lambda ab: lambda x: sg.where(x >= ab[0], x, ab[1])),
)  # fmt: skip
binary: st.SearchStrategy[Step] = st.sampled_from([
    lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, lambda x, y: x / y,
    lambda x, y: sg.maximum(x, y), lambda x, y: x @ y, lambda x, y: sg.where(x > y, x, y),
    lambda x, y: x.expand_as(y), lambda x, y: x**y,
])  # fmt: skip
steps = st.lists(
    st.one_of(
        st.tuples(unary, st.integers(0, 9), st.none()),
        st.tuples(binary, st.integers(0, 9), st.integers(0, 9)),
    ),
    max_size=4,
)
wholes = st.lists(st.integers(0, 9), min_size=1, max_size=3)


def run(program: Any, wanted: Any, known: list[Any]) -> list[Any]:
    """The values that a program makes of some, as picked by ``wanted``; None for None."""
    values = list(known) or [sg.ones(3)]
    for call, first, second in program:
        given = [values[i % len(values)] for i in (first, second) if i is not None]
        values.append(call(*given))
    return [None if one is None else values[one % len(values)] for one in wanted]


@st.composite
def functions(draw: st.DrawFn) -> tuple[type[sg.Function], list[str]]:
    specs = draw(st.lists(st.sampled_from(SPECS), max_size=3))
    forward_steps, outputs = draw(steps), draw(wholes)
    backward_steps = draw(steps)
    gradients = draw(
        st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=len(specs), max_size=len(specs))
    )

    def forward(ctx: Any, *inputs: Any) -> Any:
        ctx.save_for_backward(*inputs)
        found = run(forward_steps, outputs, list(inputs))
        return found[0] if len(found) == 1 else tuple(found)

    def backward(ctx: Any, *grads: Any) -> Any:
        return tuple(run(backward_steps, gradients, [*grads, *ctx.saved_tensors]))

    methods: dict[str, Any] = {"forward": staticmethod(forward)}
    if draw(st.integers(0, 4)):
        methods["backward"] = staticmethod(backward)
    return type("Drawn", (sg.Function,), methods), specs


def judged(function: type[sg.Function], specs: list[str], **options: Any) -> Any:
    try:
        report = sg.verify(function, *specs, **options)
    except SymgradError:
        return None
    assert bool(report) == (str(report.verdict) == "PROVED")
    assert "the judge failed" not in str(report) or not report
    json.dumps(report.to_dict())
    assert report._repr_html_()
    return report


def check(drawn: tuple[type[sg.Function], list[str]], order: int) -> None:
    report = judged(*drawn, suggest=False, order=order)
    if report is not None:
        assert "the judge failed" not in str(report), str(report)


FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(functions(), st.sampled_from([1, 2]))
def test_no_program_breaks_the_judge(drawn: Any, order: int) -> None:
    check(drawn, order)


@pytest.mark.slow
@settings(FEW, max_examples=60)
@given(functions(), st.sampled_from([1, 2]))
def test_no_program_of_many_breaks_the_judge(drawn: Any, order: int) -> None:
    check(drawn, order)


# -- what broke it once


def op(forward: Any, backward: Any) -> type[sg.Function]:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (sg.Function,), methods)


def saving(forward: Any) -> Any:
    def saved(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return forward(x)

    return saved


def of_saved(backward: Any) -> Any:
    return lambda ctx, grad: backward(ctx.saved_tensors[0], grad)


@pytest.mark.parametrize("bound", [1e7, 1e9, 1e30, 1e300, float("inf")])
def test_comparisons_with_large_literals(bound: float) -> None:
    forward = saving(lambda x: sg.clamp(x, -bound, bound))
    right = op(forward, of_saved(lambda x, g: g * ((x >= -bound) & (x <= bound))))
    report = sg.verify(right, "f64[n]")  # no float32 is compared with 1e300, as in torch
    assert report
    kinks = [str(one) for one in report.conditions if one.kind == "kink"]
    assert len(kinks) == (0 if bound == float("inf") else 2)
    assert all("yours gives 1 there" in one for one in kinks)


def test_a_number_that_is_returned_as_it_is() -> None:
    assert sg.verify(op(lambda ctx, x: x, lambda ctx, g: g), "")
    assert sg.verify(op(lambda ctx, x: x, lambda ctx, g: 2 * g), "") == sg.SURROGATE


def test_repairs_of_nothing_at_all() -> None:
    wrong = op(lambda ctx, x: (x * 2).reshape(x.shape[0], -1), lambda ctx, g: g)
    assert judge(wrong, ("0 n",)).verdict in ("PROVED", "REFUTED", "UNDECIDED", "ERROR")


# -- the judge's own defects

SQUARE = op(saving(lambda x: sg.relu(x) * x), of_saved(lambda x, g: 2 * g * sg.relu(x)))
WRONG = op(saving(lambda x: sg.relu(x) * x), of_saved(lambda x, g: g * sg.relu(x)))
PARTS = [
    (verify, "kinks"), (decide, "proving"), (decide, "corners"), (verify, "findings"),
    (verify, "subject_of"), (verify, "judge_declared"), (verify, "input_reports"),
    (verify, "second_order"), (subject, "objective"), (decide, "domains"),
    (verify, "variants_agree"), (verify, "find_conditions"), (verify, "diagnose"),
    (decide, "suspicious"), (subject, "tangents"), (verify, "counterexample_report"),
]  # fmt: skip
ALWAYS_NEEDED = {*PARTS[:9]} - {(decide, "corners")}


def broken(*arguments: Any, **options: Any) -> Any:
    raise OverflowError("too large to convert")


@pytest.mark.parametrize(("module", "name"), PARTS, ids=lambda one: getattr(one, "__name__", one))
def test_a_defect_of_the_judge_never_passes(
    module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, broken)
    report = judged(SQUARE, ["n"], order=2)
    if (module, name) in ALWAYS_NEEDED:
        assert report == sg.UNDECIDED
        assert "the judge failed with OverflowError" in str(report)
    assert not judged(WRONG, ["n"], order=2)


def test_a_defect_for_one_input_leaves_the_verdicts_on_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from symgrad.proof.judge.prove import Prover

    old = Prover.prove
    monkeypatch.setattr(
        Prover, "prove", lambda self, name: broken() if name == "x" else old(self, name)
    )
    function = op(lambda ctx, x, y: x + 2 * y, lambda ctx, g: (g, 2 * g))
    report = sg.verify(function, "n", "n")
    assert [str(one.verdict) for one in report.inputs.values()] == ["UNDECIDED", "PROVED"]
    assert "OverflowError" in report.inputs["x"].reason
