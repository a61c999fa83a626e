"""Facts that are stated in several places hold together: options, lists, decorators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import SpecError
from symgrad.ir.assume import joined, parse_all
from symgrad.tools.cli import main

FACTS = (
    "x=positive", "x < y", "x=x < 4", "y=(0, 9)", "(x * x).sum(-1) <= 20", "y != 2", "x >= 0.25",
)  # fmt: skip


@given(st.lists(st.sampled_from(FACTS), unique=True))
def test_every_fact_of_a_list_is_kept(facts: list[str]) -> None:
    whole = parse_all(joined(facts))
    for fact in facts:
        (name, said), *_ = joined([fact]).items()
        for one in parse_all({name: said}):
            if one.kind == "relation" or one.kind == "nonzero":
                assert one in whole
                continue
            met = [o for o in whole if o.name == one.name and o.kind in ("interval", "positive")]
            lows = [0 if o.kind == "positive" else o.low for o in met]
            own = 0 if one.kind == "positive" else one.low
            assert own is None or any(low is not None and low >= own for low in lows)
            assert one.high is None or any(o.high is not None and o.high <= one.high for o in met)


OPS = """import symgrad as sg


class Root(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x * x).sqrt() + (y - x).abs()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g - g, g


class Halves(sg.Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.save_for_backward(c)
        k = x.shape[1] // 2
        return x[:, :k] * c[:, k:]

    @staticmethod
    def backward(ctx, g):
        (c,) = ctx.saved_tensors
        return sg.cat([g * c[:, : c.shape[1] // 2], sg.zeros_like(g)], 1), None
"""


def verdict(folder: Path, op: str, shapes: str, *options: str) -> str:
    file = folder / "ops.py"
    file.write_text(OPS, encoding="utf-8")
    given = [word for one in options for word in ("--assume", one)]
    done = CliRunner().invoke(main, ["verify", f"{file}:{op}", "--shapes", shapes, *given])
    return "PROVED" if done.exit_code == 0 else done.output


def test_options_for_one_input_hold_together(tmp_path: Path) -> None:
    assert verdict(tmp_path, "Root", "n; n", "x=positive", "x < y") == "PROVED"
    assert "REFUTED" in verdict(tmp_path, "Root", "n; n", "x=positive")
    assert "REFUTED" in verdict(tmp_path, "Root", "n; n", "x < y")
    said = verdict(tmp_path, "Root", "n; n", "x=positive", "x=negative")
    assert "contradicts itself" in said


@pytest.mark.parametrize(
    "relation",
    ["c[:, :k] == c[:, k:]", "c=c[:, :k] == c[:, k:]",
     "c[:, :c.shape[1] // 2] == c[:, c.shape[1] // 2:]", "c[:, -k:]==c[:, :c.shape[1]//2]"],
)  # fmt: skip
def test_a_relation_is_written_on_the_command_line(relation: str, tmp_path: Path) -> None:
    shapes = "n 2*k; n 2*k"
    assert verdict(tmp_path, "Halves", shapes, "c=constant", relation) == "PROVED"
    assert "REFUTED" in verdict(tmp_path, "Halves", shapes, "c=constant")


def test_lists_and_decorators_are_as_options(tmp_path: Path) -> None:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return (x * x).sqrt() + (y - x).abs()

    def backward(ctx: Any, g: Any) -> Any:
        return g - g, g

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    plain: Any = type("Root", (sg.Function,), members)
    for assume in (["x=positive", "x < y"], {"x": ["positive", "x < y"]}, "x=positive and x < y"):
        assert sg.verify(plain, "n", "n", assume=assume).verdict is sg.PROVED
    both = sg.assume(x="positive")(sg.assume(x="x < y")(type("Both", (plain,), {})))
    assert sg.verify(both, "n", "n").verdict is sg.PROVED
    with pytest.raises(SpecError, match="names no input"):
        sg.verify(plain, "n", "n", assume=["positive"])
