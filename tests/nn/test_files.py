"""States of modules in files: the format of safetensors, read and written by both libraries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import symgrad as sg
from symgrad import nn
from symgrad.ir.dtype import ALL
from symgrad.nn.errors import ModuleTypeError, StateDictError
from symgrad.nn.files import MissingPackageError

ANY = st.sampled_from([str(dtype) for dtype in ALL]).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0))
)


@given(st.dictionaries(st.text("abc.01", min_size=1, max_size=5), ANY, max_size=4))
def test_round_trip(tmp_path_factory: Any, given_arrays: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("state") / "x.safetensors"
    nn.save_file({name: sg.from_numpy(one) for name, one in given_arrays.items()}, path)
    found = nn.load_file(path)
    assert sorted(found) == sorted(given_arrays)
    for name, array in given_arrays.items():
        assert found[name].numpy().dtype == array.dtype
        assert np.array_equal(found[name].numpy(), array, equal_nan=array.dtype.kind == "f")


def test_a_module(tmp_path: Path) -> None:
    one = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    one(sg.randn(5, 2))
    nn.save_file(one.state_dict(), tmp_path / "x.safetensors", {"format": "pt"})
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    other.load_state_dict(nn.load_file(tmp_path / "x.safetensors"))
    for name, tensor in one.state_dict().items():
        assert np.array_equal(other.state_dict()[name].numpy(), tensor.numpy())


def test_not_contiguous(tmp_path: Path) -> None:
    nn.save_file({"x": sg.arange(6).reshape(2, 3).t()}, tmp_path / "x")
    assert nn.load_file(tmp_path / "x")["x"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModuleTypeError, match=r"expected symgrad\.Tensor"):
        nn.save_file({"x": 3}, tmp_path / "x")  # type: ignore[dict-item]
    (tmp_path / "y").write_bytes(b"nothing")
    with pytest.raises(StateDictError, match="cannot be read"):
        nn.load_file(tmp_path / "y")
    with pytest.raises(FileNotFoundError):
        nn.load_file(tmp_path / "z")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'symgrad\[nn\]'"):
        nn.load_file(tmp_path / "y")


@pytest.mark.peers
def test_with_torch(tmp_path: Path) -> None:
    """A model that torch saved is ours, and one that we saved is torch's."""
    import torch
    from safetensors import torch as theirs

    def made(module: Any) -> Any:
        return module.Sequential(
            module.Linear(3, 4), module.LayerNorm(4), module.MultiheadAttention(4, 2)
        )

    path = tmp_path / "x.safetensors"
    model = made(torch.nn)
    theirs.save_file(model.state_dict(), path)
    own = made(nn)
    assert str(own.load_state_dict(nn.load_file(path))) == "<All keys matched successfully>"
    for name, tensor in model.state_dict().items():
        assert np.array_equal(own.state_dict()[name].numpy(), tensor.numpy())
    with sg.no_grad():
        own[0].weight.fill_(2.0)
    nn.save_file(own.state_dict(), path)
    model.load_state_dict(theirs.load_file(path))
    assert bool((model[0].weight == 2.0).all())
