"""Parts of an axis whose bounds lie outside are refused as torch refuses them, for every size.

What a kernel serves must not reach beyond its arrays: sizes are only known at the call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.numpy_op import NumpyOp

pytestmark = pytest.mark.peers
torch: Any = pytest.importorskip("torch")

PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "narrow": lambda lib, x: x.narrow(0, 1, 2),
    "narrow of nothing": lambda lib, x: x.narrow(0, 3, 0),
    "narrow from behind": lambda lib, x: x.narrow(0, -3, 2),
    "narrow, negative": lambda lib, x: x.narrow(0, 0, x.shape[0] - 3),
    "kthvalue": lambda lib, x: lib.kthvalue(x, 3, 0)[0],
    "kthvalue from the end": lambda lib, x: lib.kthvalue(x, x.shape[0] - 1, 0)[0],
    "topk": lambda lib, x: lib.topk(x, x.shape[0] - 2, 0)[0],
    "split": lambda lib, x: x.split([x.shape[0] - 3, 3], 0)[1],
    "pad": lambda lib, x: lib.nn.functional.pad(x, (0, 0, -2, -1)),
    "select": lambda lib, x: x.select(0, 2),
    "unfold": lambda lib, x: x.unfold(0, 3, 2),
}


def answer(call: Callable[[], Any]) -> Any:
    """The array; None where there is none."""
    try:
        found = call()
    except (sg.SymgradError, RuntimeError, IndexError):
        return None
    return np.asarray(found.detach() if hasattr(found, "detach") else found)


@pytest.mark.parametrize("name", PARTS)
def test_as_torch(name: str) -> None:
    part = PARTS[name]
    function = type("Part", (sg.Function,), {"forward": staticmethod(lambda ctx, x: part(sg, x))})
    op = NumpyOp(plan(trace(function, "f64[n m]")))
    for n in range(7):
        values = np.sin(np.arange(3.0 * n)).reshape(n, 3)
        wanted = answer(partial(part, torch, torch.from_numpy(values)))
        compiled = answer(partial(op, values))
        eager = answer(partial(part, sg, sg.from_numpy(values)))
        for found in (eager, compiled):
            assert (found is None) == (wanted is None), n
            if wanted is not None:
                np.testing.assert_array_equal(found, wanted)


def test_jit_reads_nothing_beyond_its_arrays() -> None:
    x = sg.from_numpy(np.arange(3.0).reshape(1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start, length in ((1, 9), (-5, 1), (2, 2)):
            with pytest.raises(sg.SymgradError):
                sg.jit(lambda x, a=start, b=length: x.narrow(1, a, b))(x)
