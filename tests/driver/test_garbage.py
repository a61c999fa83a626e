"""The thresholds of garbage collection are as before once a verdict is made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import symgrad as sg
from symgrad.frontend.trace import trace_request
from symgrad.garbage import OBJECTS, fewer_collections


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


class Square(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad_y


def test_they_are_high_inside_and_as_before_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noted(*args: Any, **options: Any) -> Any:
        seen.append(gc.get_threshold()[0])
        return trace_request(*args, **options)

    monkeypatch.setattr("symgrad.compiler.trace_request", noted)
    gc.set_threshold(600, 7, 8)
    assert sg.verify(Square, "n").ok
    assert set(seen) == {OBJECTS}
    assert gc.get_threshold() == (600, 7, 8)
    with pytest.raises(KeyError), fewer_collections():
        raise KeyError
    assert gc.get_threshold() == (600, 7, 8)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (10 * OBJECTS, 5, 5)])
def test_what_the_program_has_chosen_stays(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with fewer_collections():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen
    gc.set_threshold(700, 10, 10)
    with fewer_collections():
        gc.set_threshold(*chosen)
    assert gc.get_threshold() == chosen


def test_threads_overlap() -> None:
    gc.set_threshold(700, 10, 10)
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with fewer_collections():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with fewer_collections():
        thread.start()
        entered.wait(10)
    assert gc.get_threshold()[0] == OBJECTS
    leave.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)
