"""Numbers with a point among integers: the graph has what the dtype holds, as torch has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dtype import bool_, float32, int32, int64, uint8
from symgrad.ir.graph import Graph

CUT: dict[str, Callable[[Any], Any]] = {
    "full_like": lambda x: sg.full_like(x.long(), 1.5),
    "fill_": lambda x: sg.zeros_like(x, dtype=sg.int32).fill_(1.5),
    "of a size": lambda x: sg.full(x.shape, 0.5 * x.numel() / x.numel() + 1, dtype=sg.int64),
    "of an element": lambda x: sg.full_like(x.long(), (x.detach().mean() * 0 + 1.5).item()),
    "masked_fill": lambda x: sg.zeros_like(x).long().masked_fill(x * 0 < 1, 1.5),
    "addcmul": lambda x: sg.addcmul(*[sg.ones_like(x).long()] * 3, value=0.5),
    "compared": lambda x: 1 if sg.ones(1, dtype=sg.int64).sum().item() < 1.5 else 1.5,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CUT)
def test_what_is_cut_off_is_proved_as_it_is(name: str) -> None:
    def verdict(slope: float) -> str:
        class Op(sg.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * CUT[name](x)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * slope

        return str(sg.verify(Op, "n").verdict)

    assert (verdict(1), verdict(1.5) == "PROVED") == ("PROVED", False)


@pytest.mark.parametrize(
    ("number", "dtype", "held"),
    [(1.5, int64, 1), (-1.5, int64, -1), (2.7, int32, 2), (-0.5, uint8, 0), (0.5, bool_, True),
     (0.0, bool_, False), (1.5, float32, 1.5)],
)  # fmt: skip
def test_a_constant_is_what_its_dtype_holds(number: float, dtype: Any, held: Any) -> None:
    value = Graph().constant(number, dtype).attributes["value"].value
    assert (type(value), value) == (type(held), held)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_no_integer_is_infinite(number: float) -> None:
    with pytest.raises(sg.SymgradError, match="cannot be converted to int64"):
        Graph().constant(number, int64)


RAMPS = [
    ((1.5, 8.3, 1.7), [1, 2, 3, 4, 5, 6, 7]),
    ((-1.5, 2.5), [-1, 0, 1]),
    ((0, 6, 1.5), range(6)),
]


@pytest.mark.parametrize(("bounds", "ramp"), RAMPS)
def test_a_ramp_of_integers_counts_what_is_left_of_its_bounds(bounds: Any, ramp: Any) -> None:
    assert np.asarray(sg.arange(*bounds, dtype=sg.int64)).tolist() == [*ramp]
    assert len(np.asarray(sg.arange(0, 6, 0.3))) == 20


SETTINGS: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "threshold": (lambda x: sg.nn.functional.threshold(x, 1.5, 2.7), [2, 2, 3]),
    "hardtanh": (lambda x: sg.nn.functional.hardtanh(x, -1, 2.7), [1, 2, 2]),
    "index_add": (lambda x: x.index_add(0, sg.tensor([0, 1]), x[:2], alpha=1.5), [2, 4, 3]),
    "heaviside": (lambda x: sg.heaviside(x - 2, x), [0, 2, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_an_op_on_integers_is_one(name: str) -> None:
    call, expected = SETTINGS[name]
    found = np.asarray(call(sg.tensor([1, 2, 3])))
    assert (str(found.dtype), found.tolist()) == ("int64", expected)
