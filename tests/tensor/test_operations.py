"""Every operation computed eagerly: the values and the gradients that torch gives for the text."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from tests.frontend.test_operations import TorchNames, program, results
from tests.frontend.texts import SIZES, arrays_for, texts

pytestmark = pytest.mark.peers


ELSEWHERE = {
    "x ** 0": "torch: a constant that requires a gradient, of zeros",
    "sg.std_mean(x, dim=1, correction=0)": "the deviation of one element is a kink",
    "x.scatter(1, j, y)": "equal indices: torch's gradient is for different ones only",
    "w.index_copy(0, i, b[:, 0])": "equal indices",
    "z = w.clone(); z[i] = b[:, 0]; out = z": "equal indices",
    "p.polygamma(2)": "the fourth derivative of lgamma is not in the registry",
}
"""Texts whose gradients are not compared, and why."""


def cotangent(shape: Sequence[int], number: int) -> Any:
    """Generic values: no two alike."""
    count = int(np.prod(tuple(shape)))
    return (np.sin(np.arange(1.0, count + 1) * (1.3 + number)) + 0.3).reshape(tuple(shape))


def computed(
    text: str, module: Any, names: Any, arrays: dict[str, Any], differentiable: bool
) -> tuple[Any, Any]:  # fmt: skip
    """The results, and the gradients of the inputs that hold floats."""
    leaves = {name: module.tensor(array) for name, array in arrays.items()}
    for name, leaf in leaves.items():
        if differentiable and arrays[name].dtype.kind == "f":
            leaf.requires_grad_()
    given = {name: leaf * 1 if leaf.requires_grad else leaf for name, leaf in leaves.items()}
    found = results(program(text, {"sg": names, "np": np})(**given))
    tracked = [(n, out) for n, out in enumerate(found) if getattr(out, "requires_grad", False)]
    gradients: list[Any] = []
    if tracked:
        module.autograd.backward(
            [out for _, out in tracked],
            [module.tensor(cotangent(out.shape, n)).to(out.dtype) for n, out in tracked],
        )
        gradients = [(name, leaf.grad) for name, leaf in sorted(leaves.items())]
    return found, gradients


@pytest.mark.parametrize("text", texts())
def test_as_torch(text: str) -> None:
    torch = pytest.importorskip("torch")
    differentiable = text not in ELSEWHERE
    for sizes in SIZES:
        arrays = arrays_for(sizes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted, expected = computed(text, torch, TorchNames(), arrays, differentiable)
            except RuntimeError:  # torch has no gradient here
                differentiable = False
                wanted, expected = computed(text, torch, TorchNames(), arrays, False)
        found, gradients = computed(text, sg, sg, arrays, differentiable)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert str(one.dtype) == str(other.dtype).rpartition(".")[2]
            assert one.requires_grad == other.requires_grad
            assert tuple(one.shape) == tuple(other.shape)
            np.testing.assert_allclose(
                one.detach().numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6
            )
        assert len(gradients) == len(expected)
        for (name, one), (_, other) in zip(gradients, expected, strict=True):
            if one is None:  # torch passes zeros on where nothing is passed on here
                assert other is None or not other.any(), name
            else:
                wanted_gradient = other.clone().numpy()
                np.testing.assert_allclose(one.numpy(), wanted_gradient, rtol=2e-5, atol=2e-6)
