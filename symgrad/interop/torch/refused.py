"""Calls that torch refuses whatever the values are: its own argument checks are asked.

In: a function of torch's, and the arguments of a call that symgrad has an operation for.  Out:
what torch says against it; empty where it takes them.

The call is made of small tensors of ones, in the dtypes of the trace and at sizes that its
conditions admit.  What is refused there at all sizes that were tried, and of tensors without data
again (their checks are those of the function, or stricter), is refused.  Nothing is said of calls
with numbers that are symbols, of those whose results may be large, and of those that run code of
the program.  A device that the call names is that of the sample: there are no devices in a trace.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.complexes import ComplexTensor
from symgrad.frontend.functions.casting import is_device
from symgrad.frontend.questions import note_limit
from symgrad.frontend.session import Session, current
from symgrad.frontend.sizes import SymInt
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor
from symgrad.interop.torch.constants import inward, is_traced, leaves
from symgrad.interop.torch.dtypes import complex_of, theirs
from symgrad.ir.dim import Dim

_SAMPLES: tuple[Callable[[int], int], ...] = (
    lambda place: 4 + 2 * place, lambda place: 12, lambda place: 2, lambda place: 1,
)  # fmt: skip
"""The sizes that are tried, by the place of their names."""
MOST_ASKED_ELEMENTS = 2**26
MOST_TAKEN = 2**14
_REFUSALS = (RuntimeError, TypeError, ValueError, IndexError)
_PLAIN = (bool, int, float, complex, str, torch.dtype)
_taken = set[Any]()
"""Calls that torch takes, or of which nothing is known: these are not asked again."""


_OF_HISTORIES = frozenset(
    ("backward", "requires_grad_", "retain_grad", "register_hook", "detach_", "grad", "item",
     "share_memory_", "tolist", "numpy")
)  # fmt: skip
"""Methods whose answers are about more than shapes and settings."""
_OF_DEVICES = frozenset(("cpu", "cuda"))
"""Methods that only move a tensor to a device."""


class _Unknown(Exception):
    """The call has an argument that there is no sample of."""


def check(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises UnsupportedOpError for a call that torch refuses: it has no value to judge."""
    if type(current()) is not Session:  # where numbers of axes are symbols, there are no samples
        return
    if func is None or name in _OF_HISTORIES | _OF_DEVICES or name.startswith(("get_", "__")):
        return
    if any(isinstance(one, SelectedTensor) for one in leaves([*args, *kwargs.values()])):
        return  # which has no shape
    call = _described_call(func, args, kwargs)
    if call is not None and call in _taken:
        return
    said = why_refused(func, args, kwargs)
    if said:
        error = UnsupportedOpError(
            f"torch refuses this call of {name.removesuffix('_')}: {said}", location=here()
        )
        raise note_limit(error)
    if call is not None and len(_taken) < MOST_TAKEN:
        _taken.add(call)


def _described_call(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """All of a call that torch's checks can depend on; None where there is no sample of it."""
    try:
        given = tuple(map(_described, args))
        named = tuple((key, _described(value)) for key, value in kwargs.items())
        call = func, given, named, current().facts.conditions, torch.get_default_dtype()
        hash(call)
    except (_Unknown, TypeError):
        return None
    return call


def _described(value: Any) -> Any:
    """What an argument's sample is made of.  Raises _Unknown."""
    value = inward(value) if type(value) is torch.SymInt else value
    if isinstance(value, SymbolicTensor):
        return _shape_of(value), _dtype_of(value)
    if isinstance(value, SymInt):
        return SymInt, value.dim
    if isinstance(value, slice):
        return slice, *map(_described, (value.start, value.stop, value.step))
    if isinstance(value, (list, tuple)):
        return type(value), *map(_described, value)
    if value is None or (isinstance(value, _PLAIN) and not is_traced(value)):
        return type(value), value
    raise _Unknown


def _shape_of(value: SymbolicTensor) -> tuple[Dim, ...]:
    if isinstance(value, ComplexTensor):
        return value.pairs.node.shape[:-1]
    return value.node.shape


def _dtype_of(value: SymbolicTensor) -> Any:
    """Torch's dtype."""
    own = value.storage.node.dtype
    return complex_of(own) if isinstance(value, ComplexTensor) else theirs(own)


def why_refused(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What torch says against a call; empty where it takes it, or nothing is known."""
    said = ""
    for sizes in _samples(current(), (*args, *kwargs.values())):
        for device in ("cpu", "meta"):
            found = _said(func, args, kwargs, sizes, device)
            if not found:
                return ""
            said = found
    return said


def _samples(session: Session, values: Sequence[Any]) -> Iterator[dict[str, int]]:
    """Sizes that the conditions of the trace admit, some at once."""
    dims = [dim for one in leaves(list(values)) for dim in _dims(one)]
    names = sorted({name for dim in dims for name in dim.sizes})
    conditions = session.facts.conditions
    names += sorted(
        {name for one in conditions for side in (one.left, one.right) for name in side.sizes}
        - set(names)
    )  # fmt: skip
    tried: list[dict[str, int]] = []
    for sample in _SAMPLES:
        sizes = {name: sample(place) for place, name in enumerate(names)}
        if sizes not in tried and all(one.holds(sizes) for one in conditions):
            tried.append(sizes)
            yield sizes


def _said(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], sizes: Mapping[str, int], device: str
) -> str:  # fmt: skip
    """What torch raises for one sample; empty for nothing."""
    with torch._C.DisableTorchFunction(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            given = [_sample(one, sizes, device) for one in args]
            named = {
                key: device if key == "device" else _sample(value, sizes, device)
                for key, value in kwargs.items()
            }
        except (_Unknown, KeyError, ArithmeticError, RuntimeError):
            return ""
        small = _are_small(list(leaves([*given, *named.values()])))
        return _raised(func, given, named) if small else ""


def _are_small(values: Sequence[Any]) -> bool:
    """Is what a call of them makes of a size that may be made to ask?"""
    counts = sorted(one.numel() for one in values if isinstance(one, torch.Tensor))
    numbers = math.prod(max(abs(one), 1) for one in values if isinstance(one, int))
    most: int = max(math.prod(counts[-2:]), max(counts, default=1) * numbers)
    return most <= MOST_ASKED_ELEMENTS


def _raised(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    drawn = torch.get_rng_state()
    try:
        func(*args, **kwargs)
    except NotImplementedError:
        return ""
    except _REFUSALS as error:
        return str(error).partition("\n")[0] or type(error).__name__
    finally:
        torch.set_rng_state(drawn)
    return ""


def _dims(value: Any) -> tuple[Dim, ...]:
    """The sizes that an argument has, or is."""
    value = inward(value) if type(value) is torch.SymInt else value
    if isinstance(value, SymbolicTensor):
        return tuple(map(Dim.of, _shape_of(value)))
    return (value.dim,) if isinstance(value, SymInt) else ()


def _sample(value: Any, sizes: Mapping[str, int], device: str) -> Any:
    """The argument of the sample.  Raises _Unknown."""
    value = inward(value) if type(value) is torch.SymInt else value
    if isinstance(value, SymbolicTensor):
        shape = [Dim.of(one).at(sizes) for one in _shape_of(value)]
        return torch.ones(shape, dtype=_dtype_of(value), device=device)
    if isinstance(value, torch.Tensor):
        return value.detach().to(device)
    if isinstance(value, SymInt):
        return value.dim.at(sizes)
    if isinstance(value, slice):
        return slice(
            *(_sample(one, sizes, device) for one in (value.start, value.stop, value.step))
        )
    if isinstance(value, (list, tuple)):
        return (list if type(value) is list else tuple)(
            _sample(one, sizes, device) for one in value
        )
    if value is not None and is_device(value):
        return device
    if value is None or (isinstance(value, _PLAIN) and not is_traced(value)):
        return value
    raise _Unknown
