"""``symgrad build --report``: one page that needs nothing beside it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, Any

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad import compiler, sheet
from symgrad.accuracy import drawn, elementwise
from symgrad.errors import BuildError
from symgrad.tools import sheets
from symgrad.tools.cli import main

OPS = """
import symgrad as sg


class Scores(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n k]", w: "f32[k m]"):
        y = sg.tanh(x @ w)
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, y = ctx.saved_tensors
        g = g * (1 - y * y)
        return g @ w.t(), x.t() @ g
"""


class Weighted(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f32[n m]"], w: Annotated[Any, "f32[m]"]) -> Any:
        ctx.save_for_backward(x, w)
        return (x.exp() * w).sum(-1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        e = g[:, None] * x.exp()
        return e * w, e.sum(0)


class Quotient(sg.Function):
    """The quotient of two infinities where x is large."""

    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f32[n]"]) -> Any:
        ctx.save_for_backward(x)
        return x.exp() / (x.exp() + 2)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x.exp() / (x.exp() + 2) ** 2


@pytest.fixture(autouse=True)
def _fewer_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise.measured, "__defaults__", (1000,))
    monkeypatch.setattr(drawn, "SEEDS", 1)
    monkeypatch.setattr(sheet, "SCALING_ELEMENTS", 4000)


class _Page(HTMLParser):
    """Tags that are open, and where anything from outside would be read from."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        found = dict(attrs)
        self.outside += [found[key] for key in ("src", "href") if key in found]
        self.outside += [tag] if tag in ("script", "link", "img", "iframe") else []

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.slow
def test_a_package_has_a_report_that_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPS)
    out = tmp_path / "out"
    said = ["build", str(tmp_path / "ops.py"), "-o", str(out), "--package", "mine", "--report"]
    run = CliRunner().invoke(main, [*said, "--scaling"])
    assert run.exit_code == 0, run.output
    text = (out / "report.html").read_text()
    page = _Page()
    page.feed(text)
    assert not page.open
    assert page.outside == ["#scores"]
    for word in ("PROVED", "VALIDATED", "scores_forward", "grad_x", "<polyline", "2 threads"):
        assert word in text or (word == "2 threads" and "1 thread" in text)
    assert "url(" not in text
    assert "@import" not in text
    again = CliRunner().invoke(main, [*said, "--check"])
    assert again.exit_code == 0, again.output


def _sheet(function: type[sg.Function]) -> sheet.Sheet:
    made = compiler.judged_plan(compiler.asked_for(function, None), ())
    emitted, _ = compiler.texts(*made, validate=False)
    return sheet.sheet(*made, emitted, None, scaling=True)


@pytest.mark.slow
def test_costs_are_those_of_the_graph() -> None:
    one = _sheet(Weighted)
    forward, backward = one.kernels
    assert forward.calls == backward.calls == "m*n"
    assert forward.operations == "2*m*n"
    assert backward.operations == "3*m*n"
    assert forward.traffic == "4*m*n + 4*n + 4*m"
    assert backward.traffic == "8*m*n + 4*n + 8*m"
    assert re.fullmatch(r"0|.*\d.*", forward.workspace)
    assert one.kept == ()
    assert {m.name for m in one.accuracy.results} == {"output", "grad_x", "grad_w"}
    assert one.scaling is not None
    assert one.scaling.ratios[0] == (1, 1.0)


def test_a_page_says_what_was_not_validated_and_what_is_not_finite() -> None:
    text = sheets.html("a <b>", [_sheet(Quotient)])
    assert "a &lt;b&gt;" in text
    assert "not validated" in text
    assert "not finite at some" in text


def test_another_file_of_the_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / sheets.NAME).write_text("mine")
    with pytest.raises(BuildError, match="in the way"):
        sheets.write(tmp_path, "x", [])
    assert (tmp_path / sheets.NAME).read_text() == "mine"
