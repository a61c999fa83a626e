"""Rows that a whole number read from a tensor names: ``table[index[i].item()]``, ``table[i]``.

torch takes a tensor without axes for a number there, and gives a view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.frontend.evidence import evidence_of  # noqa: E402
from symgrad.frontend.guests import taken  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
Write = Callable[[Any, Any, Any], None]


def rows(write: Write) -> Any:
    """A class that selects rows; ``write`` brings an incoming row to the table of gradients."""

    class Rows(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, index: Any) -> Any:
            ctx.save_for_backward(index)
            ctx.count = x.shape[0]
            return x[index]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (index,) = ctx.saved_tensors
            table = g.new_zeros(ctx.count, g.shape[1])
            for place, row in zip(index, g, strict=True):
                write(table, place, row)
            return table, None

    return Rows


def _add(table: Any, place: Any, row: Any) -> None:
    table[place] += row


def _add_by_number(table: Any, place: Any, row: Any) -> None:
    table[place.item()] += row


def _add_through_a_view(table: Any, place: Any, row: Any) -> None:
    own = table[place]
    own += row


def _add_through_a_view_by_number(table: Any, place: Any, row: Any) -> None:
    table[place.item()].add_(row)


def _add_from_the_end(table: Any, place: Any, row: Any) -> None:
    own = table[place - len(table)]
    own[:] = own + row


def _add_by_a_column(table: Any, place: Any, row: Any) -> None:
    table.t()[:, place].add_(row)


RIGHT: list[Write] = [
    _add, _add_by_number, _add_through_a_view, _add_through_a_view_by_number, _add_from_the_end,
    _add_by_a_column,
]  # fmt: skip


def _overwrite(table: Any, place: Any, row: Any) -> None:
    table[place.item()] = row


def _add_to_a_copy(table: Any, place: Any, row: Any) -> None:
    own = table[place.item()].clone()
    own += row


def _add_twice(table: Any, place: Any, row: Any) -> None:
    own = table[place]
    own += row
    table[place] += row


def _add_one_further(table: Any, place: Any, row: Any) -> None:
    table[place.item() - 1] += row


WRONG: list[Write] = [_overwrite, _add_to_a_copy, _add_twice, _add_one_further]
SHAPES = "n m", "i64[3]"


@pytest.mark.parametrize("write", RIGHT)
def test_what_adds_to_rows_is_proved(write: Write) -> None:
    report = sg.verify(rows(write), *SHAPES, suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    assert "0 <= index < n" in str(report)


@pytest.mark.parametrize("write", WRONG)
def test_what_does_something_else_is_refuted(write: Write) -> None:
    report = sg.verify(rows(write), *SHAPES, suggest=False)
    assert report.verdict is sg.REFUTED, str(report)


def test_a_place_that_is_only_written_has_to_be_there() -> None:
    class Cleared(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, place: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, None

    class Marked(Cleared):
        @staticmethod
        def forward(ctx: Any, x: Any, place: Any) -> Any:
            table = torch.zeros(4)
            own = table[place]
            own.zero_()
            return x * 2

    assert "place" not in str(sg.verify(Cleared, "n", "i64[]", suggest=False).conditions)
    report = sg.verify(Marked, "n", "i64[]", suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    assert "place" in " ".join(map(str, report.conditions))


def test_what_has_rows_that_are_indices_is_one() -> None:
    class Memory(Function):
        @staticmethod
        def forward(ctx: Any, inputs: Any, targets: Any, table: Any) -> Any:
            ctx.save_for_backward(inputs, targets)
            ctx.table = table
            return inputs.mm(table.t())

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            inputs, targets = ctx.saved_tensors
            for x, y in zip(inputs, targets, strict=True):
                ctx.table[y] = (ctx.table[y] + x) / 2
            return g.mm(ctx.table), None, None

    assert evidence_of(taken(Memory))["targets"] == "index"


def test_a_backward_that_is_not_traced_is_no_reason_for_other_shapes() -> None:
    class Unlisted(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, index: Any) -> Any:
            ctx.save_for_backward(index)
            ctx.count = x.shape[0]
            return x[index]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (index,) = ctx.saved_tensors
            table = g.new_zeros(ctx.count, g.shape[1])
            for place in index.numpy():
                table[place] += 1
            return table, None

    report = sg.verify(Unlisted, suggest=False)
    assert report.verdict is sg.UNDECIDED, str(report)
