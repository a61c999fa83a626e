"""A recursion maps no memory anew for its frames."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import pytest

from symgrad.frames import in_one_piece


def _deep(depth: int) -> int:
    return 1 + _deep(depth - 1) if depth else 0


def _to_and_fro(depth: int = 300, times: int = 100) -> int:
    """Calls and returns, many times at each depth."""
    for _ in range(times):
        _deep(3)
    return 1 + _to_and_fro(depth - 1, times) if depth else 0


def _faults(call: Callable[[], Any]) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_frames_lie_in_one_piece() -> None:
    _to_and_fro()  # what is compiled and cached, is
    assert _faults(lambda: in_one_piece(_to_and_fro)) < 300


def test_results_and_errors_pass_through() -> None:
    assert in_one_piece(lambda: _deep(500)) == 500
    with pytest.raises(ZeroDivisionError):
        in_one_piece(lambda: 1 // 0)
