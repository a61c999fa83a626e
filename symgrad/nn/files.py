"""States of modules as files in the format of safetensors.

In: a mapping of names to tensors, a path.  Out: a file, or such a mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from symgrad.nn.errors import ModuleKeyError, ModuleTypeError, StateDictError
from symgrad.tensor import Tensor
from symgrad.tensor.creation import known
from symgrad.tensor.tensor import wrap


class MissingPackageError(StateDictError, ImportError):
    """The package ``safetensors`` is not installed."""


def _format() -> Any:
    try:
        from safetensors import numpy
    except ImportError:
        raise MissingPackageError(
            "files of parameters need the package safetensors",
            hint="pip install 'symgrad[nn]'",
        ) from None
    return numpy


def save_file(
    tensors: Mapping[str, Tensor], filename: str | PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Write tensors, such as a ``state_dict``, to a file.  Raises ModuleTypeError."""
    arrays = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise ModuleKeyError(f"names in a file are strings, not {type(name).__name__}")
        if not isinstance(tensor, Tensor):
            raise ModuleTypeError(f"Key `{name}` is invalid, expected symgrad.Tensor but received "
                                  f"{type(tensor).__name__}")  # fmt: skip
        arrays[name] = np.ascontiguousarray(tensor._array).reshape(tensor._array.shape)
    _format().save_file(arrays, filename, dict(metadata) if metadata is not None else None)


def load_file(filename: str | PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a file by name.  Raises StateDictError where it is no such file."""
    numpy = _format()
    try:
        arrays = numpy.load_file(filename)
    except FileNotFoundError:
        raise
    except Exception as error:  # safetensors' own error; KeyError for dtypes that NumPy has not
        raise StateDictError(f"{filename} cannot be read: {error}") from None
    return {name: wrap(known(array)) for name, array in arrays.items()}
