"""Errors and times as pictures: SVG without anything beside it.

In: ``Measured`` records, or pairs of numbers.  Out: SVG text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from symgrad.accuracy.records import ULP, Measured
from symgrad.codegen.environment import environment

WIDTH, HEIGHT, GAP = 420, 220, 24
LEFT, TOP, BOTTOM = 52, 34, 40
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e", "#59636e")
LEAST_ERROR, MOST_ERROR = 0.1, 1e9
"""Between these errors are drawn; what is outside is drawn at the edge."""


@dataclass(frozen=True)
class Tick:
    """A mark on an axis, and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """One line: the points of each unbroken piece."""

    name: str
    colour: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Panel:
    """Lines over one pair of axes, with its place in the picture."""

    title: str
    under: str
    beside: str
    left: float
    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


@dataclass(frozen=True)
class Axis:
    """From numbers to places; logarithmic, or not."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a number; of one outside, the edge."""
        low, high, value = (
            (math.log10(v) if self.log else v) for v in (self.low, self.high, self._inside(value))
        )
        part = 0.5 if high == low else (value - low) / (high - low)
        return round(self.start + part * (self.end - self.start), 1)

    def _inside(self, value: float) -> float:
        return min(max(value, self.low), self.high)


def errors(measured: Sequence[Measured]) -> str:
    """The worst errors over the range of the input, or by size: one panel a precision."""
    panels: list[Panel] = []
    for dtype in dict.fromkeys(one.dtype for one in measured):
        drawn = [one for one in measured if one.dtype == dtype and one.curve]
        if drawn:
            panels.append(_errors_panel(dtype, drawn, len(panels)))
    return _picture("worst error", panels)


def _errors_panel(dtype: str, drawn: Sequence[Measured], number: int) -> Panel:
    left = number * (WIDTH + GAP)
    elementwise = drawn[0].measure == ULP
    exponents = [exponent for one in drawn for _, exponent, _ in one.curve]
    low, high = min(exponents), max(exponents)
    found = [error for one in drawn for _, _, error in one.curve]
    top = min(MOST_ERROR, 10.0 ** math.ceil(math.log10(max(*found, 1.0)) + 0.1))
    up = Axis(LEAST_ERROR, top, HEIGHT - BOTTOM, TOP, log=True)
    span = high - low + 1
    ends = (-span if elementwise else 0, span)
    across = Axis(*ends, left + LEFT, left + WIDTH - 12)

    def place(sign: int, exponent: int) -> float:
        return across.at(sign * (exponent - low + 0.5))

    lines = []
    for index, one in enumerate(drawn):
        pieces = []
        for sign in (-1, 1):
            points = sorted(
                (place(sign, e), up.at(error)) for s, e, error in one.curve if s == sign
            )
            pieces.append(" ".join(f"{x},{y}" for x, y in points))
        colour = COLOURS[index % len(COLOURS)]
        lines.append(Line(one.name, colour, tuple(filter(None, pieces))))
    signs = (-1, 1) if elementwise else (1,)
    marks = _marks(low, high)[1 if elementwise else 0 :]
    ticks = [
        Tick(place(sign, e), f"{'-' if sign < 0 else ''}2^{e}") for sign in signs for e in marks
    ]
    under = "first input" if elementwise else "size"
    return Panel(dtype, under, drawn[0].measure, left, tuple(lines), tuple(ticks), _powers(up))


def _marks(low: int, high: int) -> list[int]:
    """A few exponents."""
    step = max(1, (high - low) // 3)
    return list(range(low, high + 1, step))


def _powers(axis: Axis) -> tuple[Tick, ...]:
    low, high = round(math.log10(axis.low)), round(math.log10(axis.high))
    step = max(1, (high - low) // 5)
    return tuple(Tick(axis.at(10.0**p), f"{10.0**p:g}") for p in range(low, high + 1, step))


def times(title: str, rows: Iterable[tuple[str, Sequence[tuple[int, float]]]]) -> str:
    """How many times faster so many threads are: one line a kernel."""
    rows = list(rows)
    most = max((n for _, pairs in rows for n, _ in pairs), default=1)
    highest = max((ratio for _, pairs in rows for _, ratio in pairs), default=1.0)
    across = Axis(1, max(most, 2), LEFT, WIDTH - 12)
    up = Axis(0, max(highest, most) * 1.05, HEIGHT - BOTTOM, TOP)
    lines = []
    for number, (name, pairs) in enumerate(rows):
        points = " ".join(f"{across.at(threads)},{up.at(ratio)}" for threads, ratio in pairs)
        lines.append(Line(name, COLOURS[number % len(COLOURS)], (points,)))
    ticks = tuple(Tick(across.at(n), str(n)) for n in range(1, most + 1))
    marks = tuple(Tick(up.at(n), f"{n}") for n in range(math.ceil(up.high)))
    return _picture(title, [Panel(title, "threads", "times", 0, tuple(lines), ticks, marks)])


def _picture(title: str, panels: Sequence[Panel]) -> str:
    names = max((len(panel.lines) for panel in panels), default=0)
    width = max(len(panels), 1) * (WIDTH + GAP) - GAP
    return environment().get_template("plot.svg.j2").render(
        title=title, panels=panels, width=width, height=HEIGHT + 16 * names, left=LEFT, top=TOP,
        bottom=HEIGHT - BOTTOM, inner=WIDTH - LEFT - 12,
    )  # fmt: skip
