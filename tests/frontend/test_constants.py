"""What is computed of numbers alone has a value in a trace: that which torch computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from tests.frontend.support import run
from tests.frontend.test_operations import TorchNames, program
from tests.frontend.texts import SIZES, SPECS, arrays_for

TEXTS = [
    "x * int(sg.tensor([1.0, 2.5]).sum() * 2)",
    "x[:, :sg.tensor([3, 1]).min().item()]",
    "x * [2.0, 3.0][sg.tensor([3.0, 7.0]).argmin()]",
    "sg.stack([x + n for n in range(sg.tensor([2, 3]).sum().item())])",
    "sg.stack([x + n for n in range(int(sg.tensor(9.0).sqrt()))])",
    "sg.eye(3, dtype=sg.int64).nonzero() + i.sum()",
    "sg.ones(2, 2).triu().nonzero()[:, 1]",
    "x * float(sg.tensor(0.1, dtype=sg.float32))",
    "x * float(sg.tensor(0.1, dtype=sg.float32) * 3)",
    "x * int(i.sum())",
    "j.unsqueeze(-1) >> sg.arange(3) & 1",
    "1 << sg.tensor([0, 3, 5])",
    "x * (2.0 if sg.tensor(8.0).log2() > 2.5 else 3.0)",
    "x * (2.0 if sg.tensor(0.1).exp() != sg.tensor(0.2).exp() else 3.0)",
    "(j - 3).to(sg.int32) & sg.tensor([[12]])",
]
UNKNOWN = [
    "x * int(sg.tensor(8.0).log2())",  # another library may round it down
    "x * int(sg.tensor([0.1, 1e8], dtype=sg.float32).sum())",  # the order of the sum matters
    "x * (2.0 if sg.tensor([0.1] * 10).sum() == 1 else 3.0)",
    "x * (2.0 if sg.tensor(2.0**24, dtype=sg.float32) + 1 == 2**24 + 1 else 3.0)",
    "x * (2.0 if sg.tensor(8.0).log2().floor() == 3 else 3.0)",
    "j >> i.sum()",
    "j >> 64",
    "j & i.sum()",
    "sg.ones(x.shape[0]).nonzero() * 1 @ i[:1]",
]


@pytest.mark.peers
@pytest.mark.parametrize("text", TEXTS)
def test_as_torch(text: str) -> None:
    import torch

    points = [(sizes, arrays_for(sizes)) for sizes in SIZES]
    traced = run(program(text, {"sg": sg}), list(SPECS.values()), points)
    for (_, arrays), (found,) in zip(points, traced, strict=True):
        tensors = {name: torch.tensor(array) for name, array in arrays.items()}
        wanted = program(text, {"sg": TorchNames()})(**tensors)
        assert str(found.dtype) == str(wanted.dtype).rpartition(".")[2]
        np.testing.assert_array_equal(found, wanted.numpy())


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_may_be_another_number_has_no_value(text: str) -> None:
    call: Any = program(text, {"sg": sg})
    with pytest.raises(sg.errors.SymgradError):
        run(call, list(SPECS.values()), [])
