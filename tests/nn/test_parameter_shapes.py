"""Shapes of weights, biases and running averages: what torch refuses is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import symgrad as sg
from symgrad import nn
from symgrad.errors import SymgradError

pytestmark = pytest.mark.peers

SHAPES = [shape for axes in range(3) for shape in itertools.product((1, 2, 3), repeat=axes)]
INPUTS = [(2, 3), (2, 3, 2), (1, 3), (3,)]
ROWS = [(3,), (2,), (1,), (2, 3), (3, 2), (1, 3)]

Call = Callable[..., Any]


def _normalised() -> Iterator[tuple[str, Call]]:
    for x, rows, param in itertools.product(INPUTS, ROWS, SHAPES):
        case = f"{x} {rows} {param}"
        yield (
            f"layer_norm weight {case}",
            lambda F, t, x=x, rows=rows, own=param: F.layer_norm(t(x), rows, t(own)),
        )
        yield (
            f"layer_norm bias {case}",
            lambda F, t, x=x, rows=rows, own=param: F.layer_norm(t(x), rows, None, t(own)),
        )
        yield (
            f"rms_norm {case}",
            lambda F, t, x=x, rows=rows, own=param: F.rms_norm(t(x), rows, t(own)),
        )


def _channels() -> Iterator[tuple[str, Call]]:
    names = ("running_mean", "running_var", "weight", "bias")
    for x, name, param, flag in itertools.product(INPUTS, names, [*SHAPES, None], (True, False)):
        case = f"{name} {x} {param} {flag}"

        def given(t: Any, x: Any = x, name: str = name, param: Any = param) -> dict[str, Any]:
            every = {one: t((x[min(1, len(x) - 1)],)) for one in names}
            return {**every, name: None if param is None else t(param)}

        yield (
            f"batch_norm {case}",
            lambda F, t, x=x, given=given, flag=flag: F.batch_norm(t(x), **given(t), training=flag),
        )
        yield (
            f"instance_norm {case}",
            lambda F, t, x=x, given=given, flag=flag: F.instance_norm(
                t(x), **given(t), use_input_stats=flag
            ),
        )
    for x, groups, param in itertools.product(INPUTS, (1, 3), SHAPES):
        yield (
            f"group_norm {x} {groups} {param}",
            lambda F, t, x=x, groups=groups, own=param: F.group_norm(t(x), groups, t(own), t(own)),
        )


def _others() -> Iterator[tuple[str, Call]]:
    for x, param in itertools.product(INPUTS, SHAPES):
        if len(x) > 2 and param[1:] == (1,):
            continue  # a bias [n, 1]: whether torch takes it is decided by how it flattens x
        yield f"prelu {x} {param}", lambda F, t, x=x, own=param: F.prelu(t(x), t(own))
        yield (
            f"linear {x} {param}",
            lambda F, t, x=x, own=param: F.linear(t(x), t((5, x[-1])), t(own)),
        )
        yield (
            f"linear of a bias {x} {param}",
            lambda F, t, x=x, own=param: F.linear(t(x), t((3, x[-1])), t(own)),
        )
    for shape in [*SHAPES, (1, 2, 3)]:
        yield f"embedding {shape}", lambda F, t, own=shape: F.embedding(t((2,)).long() * 0, t(own))


CASES = {name: call for each in (_normalised, _channels, _others) for name, call in each()}
STRICTER = ("batch_norm weight", "batch_norm bias", "linear of a bias (3,)", "linear (3,)")
"""Rows of one: a weight of shape [1, m] for m channels, a bias of shape [1, m] for a vector."""


@pytest.mark.parametrize("kind", sorted({name.split()[0] for name in CASES}))
def test_what_torch_refuses_is_refused(kind: str) -> None:
    import torch

    def accepts(functional: Any, make: Any, call: Call, error: Any) -> bool:
        try:
            call(functional, make)
        except error:
            return False
        return True

    for name, call in CASES.items():
        if not name.startswith(kind):
            continue
        mine = accepts(nn.functional, lambda shape: sg.ones(*shape), call, SymgradError)
        theirs = accepts(
            torch.nn.functional, torch.ones, call, (RuntimeError, ValueError, IndexError)
        )
        assert mine == theirs or (theirs and name.startswith(STRICTER)), name
