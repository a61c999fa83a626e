"""Every operation of symbolic tensors gives what torch gives for the same text."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from tests.frontend.support import run
from tests.frontend.texts import SIZES, SPECS, arrays_for, texts

pytestmark = pytest.mark.peers

NAMES = ", ".join(SPECS)


class TorchNames:
    """``sg`` in the text, over torch."""

    def __getattr__(self, name: str) -> Any:
        import torch

        for holder in (torch.nn.functional, torch):
            if hasattr(holder, name):
                return getattr(holder, name)
        raise AttributeError(f"torch has no function {name!r}: compose it of others")


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def program(text: str, namespace: dict[str, Any]) -> Any:
    """The text as a function: an expression, or statements that set ``out``."""
    *before, last = [part.strip() for part in text.split(";")]
    lines = [*before, f"return {last.removeprefix('out = ')}"]
    exec(f"def f({NAMES}):\n    " + "\n    ".join(lines), namespace)
    return namespace["f"]


def with_torch(text: str, arrays: dict[str, Any]) -> list[Any]:
    """What torch gives."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = {name: torch.tensor(array) for name, array in arrays.items()}
        return results(program(text, {"sg": TorchNames(), "np": np})(**tensors))


@pytest.mark.parametrize("text", texts())
def test_as_torch(text: str) -> None:
    points = [(sizes, arrays_for(sizes)) for sizes in SIZES]
    traced = run(program(text, {"sg": sg, "np": np}), list(SPECS.values()), points)
    for (_, arrays), found in zip(points, traced, strict=True):
        wanted = with_torch(text, arrays)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert str(one.dtype) == str(other.dtype).rpartition(".")[2]
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-6, atol=1e-7)
            assert one.shape == tuple(other.shape)


def test_every_name_of_torch_is_there_or_known_to_be_missing() -> None:
    """A tensor method of torch's that symgrad lacks gets an error that names it."""
    import torch

    from symgrad.frontend import unsupported
    from symgrad.frontend.tensor import SymbolicTensor

    names = {name for name in dir(torch.Tensor) if not name.startswith("_")}
    missing = {name for name in names if not hasattr(SymbolicTensor, name)}
    assert sorted(name for name in missing if not unsupported.known(name)) == []
