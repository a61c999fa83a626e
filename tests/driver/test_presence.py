"""Optional tensors are judged given and absent: a verdict says which, and the worst counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.budgets import MOST_OPTIONAL
from symgrad.compiler import show
from symgrad.errors import NotProvedError
from symgrad.frontend.request import bind, presences
from symgrad.tools.cli import main

SOURCE = """
import symgrad as sg


class Linear(sg.Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        ctx.has = bias is not None
        y = x @ weight.t()
        return y + bias if bias is not None else y

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        grad_x = g @ weight if ctx.has else FACTOR * g @ weight
        return grad_x, g.t() @ x, (g.sum(0) if ctx.has else None)
"""
ANNOTATED = SOURCE.replace(
    "x, weight, bias=None", 'x: "f32[n m]", weight: "f32[k m]", bias: "f32[k]" = None'
)
SAID = "for bias given or absent"


def scaled(source: str, factor: int) -> str:
    return source.replace("FACTOR", str(factor))


@pytest.mark.parametrize(("source", "factor"), [(SOURCE, 2), (ANNOTATED, 1)])
def test_every_presence_is_judged_and_told(tmp_path: Path, source: str, factor: int) -> None:
    file, junit, written = (tmp_path / name for name in ("ops.py", "junit.xml", "test_ops.py"))
    file.write_text(scaled(source, factor))
    options = ["--junit", str(junit), "--write-test", str(written)]
    run = CliRunner().invoke(main, ["verify", str(file), *options])
    assert run.exit_code == factor - 1
    assert "bias given; bias absent" in junit.read_text()
    assert SAID in run.output
    assert (f"REFUTED {SAID}" in run.output) == (factor == 2)
    made = json.loads(CliRunner().invoke(main, ["verify", str(file), "--json"]).stdout)
    found = made["results"][0] if "results" in made else made
    assert (found[0] if type(found) is list else found)["presences"] == [
        "bias given",
        "bias absent",
    ]
    if factor == 2:
        assert "Function.apply(x, weight, None)" in written.read_text()


def test_plugin_says_the_presences(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(right=scaled(SOURCE, 1), wrong=scaled(ANNOTATED, 2))
    result = pytester.runpytest("--symgrad", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"*Linear PASSED, PROVED {SAID}*"])


class LinearBad(sg.Function):
    """Wrong where the bias is absent."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.has = bias is not None
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, weight = ctx.saved_tensors
        grad_x = g @ weight if ctx.has else 2 * g @ weight
        return grad_x, g.t() @ x, (g.sum(0) if ctx.has else None)


@sg.assume(shift="positive")
class Needed(sg.Function):
    """Its forward takes no None."""

    @staticmethod
    def forward(ctx: Any, x: Any, shift: Any = None) -> Any:
        return x + shift

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, g


class Scaled(sg.Function):
    """Two optional tensors; wrong where the first alone is absent."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any = None, shift: Any = None) -> Any:
        ctx.save_for_backward(x, scale)
        ctx.has = shift is not None
        y = x if scale is None else x * scale
        return y if shift is None else y + shift

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, scale = ctx.saved_tensors
        wrong = scale is None and ctx.has
        grad_x = g + g if wrong else g if scale is None else g * scale
        return grad_x, None if scale is None else g * x, g if ctx.has else None


def test_what_is_stated_as_none_stays_one_case() -> None:
    assert sg.verify(LinearBad, "n m", "k m", "k") == sg.REFUTED
    assert "with bias absent" in sg.verify(LinearBad, "n m", "k m", "k").inputs["x"].reason
    absent = sg.verify(LinearBad, "n m", "k m", None)
    assert (str(absent.verdict), absent.presences) == ("REFUTED", ())
    needed = sg.verify(Needed, "n", "n", assume={"shift": "(0, 1)"})
    assert needed.presences == ("shift given",)
    assert needed.verdict == sg.PROVED
    assert any(note.startswith("not accepted with shift absent: ") for note in needed.notes)


def test_every_subset_of_a_few_is_judged() -> None:
    report = sg.verify(Scaled, "n", "n", "n")
    assert report.verdict == sg.REFUTED
    assert "with shift given, scale absent" in report.inputs["x"].reason
    assert len(report.presences) == 4

    def forward(
        ctx: Any, x: Any, a: Any = None, b: Any = None, c: Any = None, d: Any = None
    ) -> Any:
        return x

    many = type("Many", (sg.Function,), {"forward": staticmethod(forward)})
    assert MOST_OPTIONAL == 3
    assert [one.given for one in presences(bind(many, ["n"] * 5))] == [
        ("a", "b", "c", "d"), ("a",), ("b",), ("c",), ("d",), ()
    ]  # fmt: skip


def test_what_is_compiled_says_for_which_presence() -> None:
    text = show(LinearBad, "n m", "k m", "k", stage="c")
    assert "PROVED for bias given" in text
    assert "absent" not in text
    with pytest.raises(NotProvedError):
        sg.compile(LinearBad, "n m", "k m", None)


def only_one(a: Any, b: Any) -> Any:
    if a is not None and b is not None:
        raise ValueError("a or b, not both")
    return chosen(a, b)


def chosen(a: Any, b: Any) -> Any:
    return a if a is not None else b


ACCEPTS: dict[str, Any] = {
    "elif": lambda x, a, b: x if chosen(a, b) is None else x @ chosen(a, b),
    "other rank": lambda x, a, b: x @ a if a is not None else x if b is None else x * b,
    "not both": lambda x, a, b: (only_one(a, b), x if chosen(a, b) is None else x @ chosen(a, b))[
        1
    ],
    "one at least": lambda x, a, b: x @ chosen(a, b),
    "both or none": lambda x, a, b: x if a is None and b is None else x @ a + b,
}


def either(kind: str, wrong: Any) -> type[sg.Function]:
    """Two optional tensors; the gradient of x is doubled where ``wrong`` says so."""
    accepts = ACCEPTS[kind]

    def forward(ctx: Any, x: Any, a: Any = None, b: Any = None) -> Any:
        ctx.save_for_backward(x, a, b)
        return accepts(x, a, b)

    def backward(ctx: Any, g: Any) -> Any:
        x, a, b = ctx.saved_tensors
        factor = 2 if wrong(a is not None, b is not None) else 1
        if kind == "other rank" and a is None and b is not None:
            return factor * g * b, None, (g * x).sum_to_size(*b.shape)
        if kind == "both or none" and a is not None:
            return factor * (g @ a.t()), x.t() @ g, g.sum_to_size(*b.shape)
        if chosen(a, b) is None:
            return factor * g, None, None
        of_matrix = x.t() @ g
        return (
            factor * (g @ chosen(a, b).t()), None if a is None else of_matrix,
            None if b is None or a is not None else of_matrix,
        )  # fmt: skip

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Either", (sg.Function,), members)


CALLS = {
    "elif": [(True, True), (True, False), (False, True), (False, False)],
    "other rank": [(True, False), (False, True), (False, False)],
    "not both": [(True, False), (False, True), (False, False)],
    "one at least": [(True, True), (True, False), (False, True)],
    "both or none": [(True, True), (False, False)],
}


@pytest.mark.parametrize(
    ("kind", "call"), [(k, one) for k, calls in CALLS.items() for one in calls]
)
def test_inferred_shapes_hide_no_presence(kind: str, call: tuple[bool, bool]) -> None:
    """Whatever call is wrong alone: it is judged, with shapes that forward accepts."""
    report = sg.verify(either(kind, lambda *given: given == call), suggest=False)
    assert report.verdict > sg.UNDECIDED
    assert "No shapes were given; symgrad inferred x[n, m]" in report.inferred


@pytest.mark.parametrize("kind", CALLS)
def test_inferred_shapes_of_each_presence_are_told(kind: str) -> None:
    report = sg.verify(either(kind, lambda *given: False), suggest=False)
    assert report == sg.PROVED
    assert len(report.presences) == len(CALLS[kind]) + (kind == "other rank")
    notes = " ".join(report.notes)
    assert ("not accepted with" in notes) == (kind in ("not both", "one at least", "both or none"))


def test_a_presence_without_shapes_is_undecided() -> None:
    """Forward takes ``b`` alone, but in no shapes that are tried."""

    def forward(ctx: Any, x: Any, a: Any = None, b: Any = None) -> Any:
        ctx.given, ctx.alone = a is not None, a is None and b is not None
        if ctx.alone:
            if 2 * b.ndim != 10:
                raise ValueError(f"b has {b.ndim} axes")
            return x * b.sum()
        return x + a if ctx.given else x * 1.0

    def backward(ctx: Any, g: Any) -> Any:
        return (2 * g if ctx.alone else g), (g if ctx.given else None), None

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    report = sg.verify(type("Hidden", (sg.Function,), members), suggest=False)
    assert report == sg.UNDECIDED
    said = " ".join(str(report).split())
    assert "b given, a absent: no shapes were found that forward accepts" in said
