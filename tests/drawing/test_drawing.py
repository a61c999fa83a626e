"""Pictures: everything is shown once, nothing overlaps, and what is saved crosses."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import ops
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.drawing.draw import draw
from symgrad.drawing.function import function_picture
from symgrad.drawing.layout import PANEL, Box, Placed, place
from symgrad.drawing.picture import BACKWARD, FORWARD, SAVED, Builder, DrawingError, Vertex
from symgrad.errors import SpecError
from symgrad.frontend.trace import trace
from symgrad.tools.cli import main

EXAMPLES = [ops.Linear, ops.Tanh, ops.Gelu, ops.LayerNorm, ops.SoftmaxCrossEntropy]


class Derived(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        return sg.tanh(x * w + 1.0).sum(1)


class Squeezed(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.shape = x.shape
        return x.sum(1, keepdim=True).squeeze()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.reshape(-1, 1).expand(ctx.shape)


def apart(first: Box, second: Box) -> bool:
    return (
        first.left + first.width <= second.left or second.left + second.width <= first.left
        or first.bottom <= second.top or second.bottom <= first.top
    )  # fmt: skip


def check(placed: Placed) -> None:
    for first, second in itertools.combinations(placed.boxes, 2):
        assert apart(first, second), (first, second)
    assert len(placed.boxes) == len(placed.picture.vertices)
    for box in placed.boxes:
        assert box.left >= -1e-6
        assert box.left + box.width <= placed.width + 1e-6
        assert box.bottom <= placed.height + 1e-6
    for arrow in placed.arrows:
        if not arrow.square:  # past boxes; it may touch their sides
            for x, y in arrow.points[1:-1]:
                assert not any(b.left + 4 < x < b.left + b.width - 4 and b.top <= y <= b.bottom
                               for b in placed.boxes)  # fmt: skip
    for panel in placed.panels:
        inside = [box for box in placed.boxes if box.vertex.stage == panel.stage]
        assert all(panel.left <= b.left + 1e-6 for b in inside)
        assert all(b.left + b.width <= panel.left + panel.width + 1e-6 for b in inside)
    for left, right in itertools.pairwise(placed.panels):
        assert left.left + left.width + PANEL < right.left - PANEL


def parsed(drawing: Any) -> ElementTree.Element:
    return ElementTree.fromstring(str(drawing))


@pytest.mark.parametrize("function", [*EXAMPLES, Derived])
def test_functions(function: Any) -> None:
    specs = ("n m", "m") if function is Derived else ()
    drawing = draw(function, *specs)
    check(place(drawing.picture))
    vertices = drawing.picture.vertices
    stages = {stage: [v for v in vertices if v.stage == stage] for stage in (FORWARD, BACKWARD)}
    inputs = {v.name for v in stages[FORWARD] if v.kind in ("leaf", "data")}
    assert inputs == set(trace(function, *specs).input_names)
    gradients = {v.name for v in stages[BACKWARD] if v.kind == "gradient"}
    assert gradients == {f"grad {n}" for n in trace(function, *specs).differentiable}
    assert len(parsed(drawing).findall(".//{*}path")) >= len(drawing.picture.edges)


def test_saved_tensors_cross_from_forward_to_backward() -> None:
    picture = draw(ops.LayerNorm).picture
    pills = [n for n, vertex in enumerate(picture.vertices) if vertex.stage == SAVED]
    assert [picture.vertices[n].name for n in pills] == [
        "weight", "inverse_deviation", "normalized",
    ]  # fmt: skip
    for pill in pills:
        (source,) = {e.source for e in picture.edges if e.target == pill}
        targets = {e.target for e in picture.edges if e.source == pill}
        assert picture.vertices[source].stage == FORWARD
        assert targets
        assert {picture.vertices[n].stage for n in targets} == {BACKWARD}
    crossing = {
        (picture.vertices[e.source].stage, picture.vertices[e.target].stage) for e in picture.edges
    }
    assert (FORWARD, BACKWARD) not in crossing


def test_a_case_is_chosen_and_named() -> None:
    graphs = trace(Squeezed, "n m")
    assert len(graphs.cases) == 2
    notes = [function_picture(graphs, number).note for number in range(2)]
    assert notes == ["case 0 of 2, for n != 1", "case 1 of 2, for n == 1"]
    assert "case 1 of 2" in str(draw(graphs, case=1))
    with pytest.raises(DrawingError, match="no case 2"):
        draw(graphs, case=2)


class Twice(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = sg.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (y,) = ctx.saved_tensors
        return grad * y


def test_the_tape_of_a_tensor() -> None:
    x = sg.ones(2, 3)
    weight = sg.ones(3, 4, requires_grad=True)
    bias = sg.zeros(4, requires_grad=True)
    hidden = Twice.apply(x @ weight + bias)
    loss = (hidden * hidden).sum()
    drawing = draw(loss, params={"weight": weight})
    check(place(drawing.picture))
    kinds = {vertex.name: vertex.kind for vertex in drawing.picture.vertices if vertex.name}
    assert kinds["weight"] == "parameter"
    assert kinds["bias"] == "leaf"
    assert kinds["x"] == "saved"  # the box of the constant, and the pill behind it
    assert kinds["weight.grad"] == kinds["bias.grad"] == "gradient"
    assert kinds["grad loss"] == "cotangent"
    named = {vertex.name: vertex.label for vertex in drawing.picture.vertices if vertex.label}
    assert named["hidden"] == "Twice"
    labels = [vertex.label for vertex in drawing.picture.vertices if vertex.stage == BACKWARD]
    assert {"MmBackward0", "AddBackward0", "TwiceBackward", "SumBackward0"} <= set(labels)


def test_kernels_on_the_tape() -> None:
    x = sg.ones(2, 3, requires_grad=True)
    square = sg.jit(lambda a: sg.sin(a) * a)
    y = square(sg.compile(ops.Tanh)(x)).sum()
    picture = draw(y).picture
    check(place(picture))
    labels = {vertex.label for vertex in picture.vertices}
    assert {"Tanh", "TanhBackward", "sum"} <= labels
    pills = [n for n, vertex in enumerate(picture.vertices) if vertex.stage == SAVED]
    assert pills
    for pill in pills:
        assert any(edge.target == pill for edge in picture.edges)
        assert any(edge.source == pill for edge in picture.edges)


def test_what_was_freed_is_not_shown_as_saved() -> None:
    x = sg.ones(3, requires_grad=True)
    y = sg.exp(x).sum()
    assert any(vertex.stage == SAVED for vertex in draw(y).picture.vertices)
    y.backward()
    assert not any(vertex.stage == SAVED for vertex in draw(y).picture.vertices)


def test_a_leaf_alone_and_several_tensors() -> None:
    x = sg.ones(3, requires_grad=True)
    assert [vertex.name for vertex in draw(x).picture.vertices if vertex.stage == FORWARD] == ["x"]
    first, second = x * 2.0, x.exp()
    picture = draw([first, second]).picture
    assert {v.name for v in picture.vertices if v.kind == "output"} == {"first", "second"}
    assert {v.name for v in picture.vertices if v.kind == "cotangent"} == {
        "grad first", "grad second",
    }  # fmt: skip


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_any_graph_is_placed_without_overlaps(data: st.DataObject) -> None:
    builder = Builder()
    count = data.draw(st.integers(1, 50))
    for n in range(count):
        name = data.draw(st.sampled_from(["", "x", "a_name_that_is_rather_long_for_a_box"]))
        builder.add(Vertex(FORWARD, "operation", name, "op", "f32[n m]"))
        for source in data.draw(st.sets(st.integers(0, max(n - 1, 0)), max_size=3)) if n else ():
            builder.join(source, n)
    mirrored = list(builder.edges)
    for n in reversed(range(count)):
        builder.add(Vertex(BACKWARD, "operation", "", f"undo {n}", "f32[n m]"))
    for edge in mirrored:
        builder.join(2 * count - 1 - edge.target, 2 * count - 1 - edge.source)
    for n in sorted(data.draw(st.sets(st.integers(0, count - 1), max_size=10))):
        pill = builder.add(Vertex(SAVED, "saved", f"t{n}", "", "f32[n m]"))
        builder.join(n, pill)
        builder.join(pill, 2 * count - 1 - n)
    check(place(builder.picture("any")))


def test_names_are_escaped_and_the_picture_repeats_exactly() -> None:
    builder = Builder()
    builder.add(Vertex(FORWARD, "operation", "a<b&c", 'say "so"', "f32[n]"))
    picture = builder.picture("<title>")
    from symgrad.drawing.draw import Drawing

    root = parsed(Drawing(picture))
    assert "a<b&c" in [span.text for span in root.iter("{http://www.w3.org/2000/svg}tspan")]
    assert str(draw(ops.LayerNorm)) == str(draw(ops.LayerNorm))


def test_saved_to_a_file_and_shown_by_notebooks(tmp_path: Path) -> None:
    drawing = sg.draw(ops.Tanh)
    path = drawing.save(tmp_path / "tanh.svg")
    assert path.read_text(encoding="utf-8") == drawing._repr_svg_() == str(drawing)


def test_too_much_to_draw_is_refused() -> None:
    x = sg.ones(1, requires_grad=True)
    for _ in range(3000):
        x = x + 1.0
    with pytest.raises(DrawingError, match="at most 2000"):
        draw(x)


def test_other_things_are_refused() -> None:
    with pytest.raises(SpecError, match="not int"):
        draw(3)


def test_the_command_line_draws_one_function(tmp_path: Path) -> None:
    path = tmp_path / "linear.svg"
    source = str(Path(ops.__file__))
    done = CliRunner().invoke(main, ["show", f"{source}:Linear", "--draw", str(path)])
    assert done.exit_code == 0, done.output
    assert parsed(path.read_text(encoding="utf-8")).tag.endswith("svg")
    done = CliRunner().invoke(main, ["show", source, "--draw", str(path)])
    assert done.exit_code == 2
    assert "add :Class" in done.output


def test_the_panels_are_apart_where_nothing_is_saved() -> None:
    x = sg.ones(3, requires_grad=True)
    drawing = draw((x * 2).sum())
    assert not [one for one in drawing.picture.vertices if one.stage == SAVED]
    check(place(drawing.picture))
    (output,) = [one for one in drawing.picture.vertices if one.kind == "output"]
    assert [output.name, output.label].count("output") == 1
