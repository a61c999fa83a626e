"""A placed picture as the text of an SVG.

In: ``Placed``.  Out: a string.

The template only prints a frozen view.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from symgrad.codegen.environment import environment
from symgrad.codegen.names import printable
from symgrad.drawing.layout import MARGIN, PANEL, Arrow, Box, Placed, Point, shortened
from symgrad.drawing.picture import BACKWARD, FORWARD, SAVED

TITLE, LEGEND, EDGE, ROUND = 66.0, 46.0, 24.0, 6.0
_LEGEND = {
    "parameter": "parameter", "leaf": "leaf, has a gradient", "data": "no gradient",
    "operation": "operation", "output": "output", "saved": "saved for backward",
    "cotangent": "incoming gradient", "gradient": "gradient",
}  # fmt: skip
_CENTRED, _CAPTION = 7.3, 20.0


@dataclass(frozen=True)
class PanelView:
    """A background and its caption."""

    css: str
    x: str
    y: str
    width: str
    height: str
    caption: str
    caption_x: str
    caption_y: str


@dataclass(frozen=True)
class ArrowView:
    """A path; ``css``: its kind."""

    css: str
    path: str


@dataclass(frozen=True)
class BoxView:
    """A rectangle with one or two lines of text."""

    css: str
    x: str
    y: str
    width: str
    height: str
    radius: str
    text_x: str
    first_y: str
    name: str
    gap: str
    label: str
    second_y: str
    detail: str
    tooltip: str


@dataclass(frozen=True)
class DrawingView:
    """All that the template is shown."""

    width: str
    height: str
    title: str
    note: str
    x: str
    title_y: str
    note_y: str
    panels: tuple[PanelView, ...]
    arrows: tuple[ArrowView, ...]
    boxes: tuple[BoxView, ...]
    legend: tuple[BoxView, ...]


def svg(placed: Placed) -> str:
    """The SVG of a placed picture."""
    template = environment().get_template("drawing.svg.j2")
    return template.render(drawing=view(placed))


def view(placed: Placed) -> DrawingView:
    """What the template is shown."""
    left, top = EDGE + PANEL, TITLE + PANEL + _CAPTION
    legend = _legend(placed, top + placed.height + PANEL + 22)
    right = [placed.width + 2 * left, *(float(one.x) + float(one.width) + EDGE for one in legend)]
    title = escape(placed.picture.title)
    right.append(len(placed.picture.title) * 11.0 + 2 * EDGE)
    return DrawingView(
        width=_number(max(right)),
        height=_number(float(legend[-1].y if legend else top + placed.height) + LEGEND),
        title=title,
        note=escape(placed.picture.note),
        x=_number(EDGE),
        title_y=_number(34),
        note_y=_number(53),
        panels=tuple(_panels(placed, left, top)),
        arrows=tuple(
            ArrowView(arrow.kind, _path(arrow, left, top))
            for arrow in sorted(placed.arrows, key=lambda arrow: arrow.kind != "saved")
        ),
        boxes=tuple(_box(box, left, top) for box in placed.boxes),
        legend=legend,
    )


def _panels(placed: Placed, left: float, top: float) -> list[PanelView]:
    captions = {FORWARD: "forward ↓", BACKWARD: "backward ↑"}
    return [
        PanelView(
            f"panel-{panel.stage}", _number(left + panel.left - PANEL),
            _number(top + panel.top - PANEL - _CAPTION),
            _number(panel.width + 2 * PANEL), _number(panel.height + 2 * PANEL + _CAPTION),
            captions[panel.stage], _number(left + panel.left - PANEL + 14),
            _number(top + panel.top - PANEL - _CAPTION + 21),
        )
        for panel in placed.panels
    ]  # fmt: skip


def _box(box: Box, left: float, top: float) -> BoxView:
    vertex, pill = box.vertex, box.vertex.stage == SAVED
    name, label = shortened(vertex.name), vertex.label
    if vertex.name and label and not pill:
        label = shortened(f"{vertex.name} {label}")[len(name) + 1 :]
    shown = vertex.detail if pill else label
    middle = box.top + top + box.height / 2
    tooltip = vertex.tooltip or f"{vertex.name} {vertex.label} {vertex.detail}".strip()
    return BoxView(
        css=vertex.kind, x=_number(left + box.left), y=_number(top + box.top),
        width=_number(box.width), height=_number(box.height),
        radius=_number(box.height / 2 if pill else 7),
        text_x=_number(left + box.middle),
        first_y=_number(middle + 4 if pill or not vertex.detail else middle - 3),
        name=escape(name), gap=" " if name and shown else "", label=escape(shortened(shown)),
        second_y=_number(middle + 13), detail="" if pill else escape(shortened(vertex.detail)),
        tooltip=escape(tooltip),
    )  # fmt: skip


def _legend(placed: Placed, y: float) -> tuple[BoxView, ...]:
    """One small box for each kind that occurs, in rows as wide as the picture."""
    kinds = [
        kind for kind in _LEGEND if any(box.vertex.kind == kind for box in placed.boxes)
    ]  # fmt: skip
    found: list[BoxView] = []
    x, most = EDGE, max(placed.width + 2 * (EDGE + PANEL), 420.0)
    for kind in kinds:
        width = len(_LEGEND[kind]) * _CENTRED * 0.9 + 2 * MARGIN
        if x + width > most - EDGE and x > EDGE:
            x, y = EDGE, y + 30
        found.append(
            BoxView(
                css=kind, x=_number(x), y=_number(y), width=_number(width), height="22",
                radius=_number(11 if kind == "saved" else 6), text_x=_number(x + width / 2),
                first_y=_number(y + 15), name="", gap="", label=_LEGEND[kind], second_y="0",
                detail="", tooltip=_LEGEND[kind],
            )
        )  # fmt: skip
        x += width + 10
    return tuple(found)


# -- paths


def _path(arrow: Arrow, left: float, top: float) -> str:
    points = [(x + left, y + top) for x, y in arrow.points]
    return _square(points) if arrow.square else _curved(points)


def _curved(points: Sequence[Point]) -> str:
    """Smooth from point to point, leaving and arriving upright; straight on in a column."""
    parts = [f"M{_pair(points[0])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 == x1:
            parts.append(f"L{_pair((x1, y1))}")
        else:
            half = (y0 + y1) / 2
            parts.append(f"C{_pair((x0, half))} {_pair((x1, half))} {_pair((x1, y1))}")
    return "".join(parts)


def _square(points: Sequence[Point]) -> str:
    """Along corners, which are rounded."""
    parts = [f"M{_pair(points[0])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        parts.append(f"L{_pair(_toward(corner, before))}")
        parts.append(f"Q{_pair(corner)} {_pair(_toward(corner, after))}")
    parts.append(f"L{_pair(points[-1])}")
    return "".join(parts)


def _toward(corner: Point, other: Point) -> Point:
    """A point near a corner, on the way to another."""
    x, y = other[0] - corner[0], other[1] - corner[1]
    length = abs(x) + abs(y)
    step = min(ROUND, length / 2) / length if length else 0.0
    return corner[0] + x * step, corner[1] + y * step


def _pair(point: Point) -> str:
    return f"{_number(point[0])},{_number(point[1])}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def escape(text: str) -> str:
    """Text as it may stand in XML, where control characters may not be written at all."""
    return html.escape(printable(text))
