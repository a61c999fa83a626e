"""Functions and methods of torch in a trace: the graph computes what torch does.

The arguments are those that torch tests its operations with, a few of each.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
import types
import unittest
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from symgrad.errors import SymgradError  # noqa: E402
from symgrad.frontend.session import Session, activate  # noqa: E402
from symgrad.frontend.tensor import SymbolicTensor, fresh  # noqa: E402
from symgrad.interop.torch.dtypes import ours  # noqa: E402
from symgrad.interop.torch.running import GUEST  # noqa: E402
from symgrad.ir.dim import Dim  # noqa: E402
from symgrad.ir.graph import Node  # noqa: E402
from symgrad.ir.types import TensorType  # noqa: E402
from symgrad.passes.evaluate import evaluate  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]

SAMPLES = 2
LARGEST = 400
UNLIKE = (
    "empty",
    "entr",
    "logspace",
    "allclose",
    "equal",
    "item",
    "bernoulli",
    "normal",
    "eigh",
    "eigvalsh",
)
"""Names of operations of which values cannot be compared: memory that is not initialised, the
logarithm of a negative number, reading values, random draws; a ramp of numbers alone; eigenvalues
of matrices that are not symmetric, of which torch reads one triangle."""
LEAST = 600
"""So many operations, as functions, methods and in place, are there at least."""


def operations() -> list[Any]:
    """What torch tests its operations with."""
    stand_in = types.ModuleType("expecttest")  # which the tests of torch alone need
    stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", stand_in)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("torch.testing._internal.common_methods_invocations")
    return list(module.op_db)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    else:
        yield value


def mapped(value: Any, change: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {name: mapped(item, change) for name, item in value.items()}
    return value


def is_usable(value: Any) -> bool:
    if not isinstance(value, torch.Tensor):
        return not isinstance(value, complex)
    try:
        ours(value.dtype)
    except SymgradError:
        return False
    return value.layout == torch.strided and value.numel() <= LARGEST


def calls(operation: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Each variant of an operation with some arguments."""
    dtype = next((one for one in (torch.float64, torch.int64) if one in operation.dtypes), None)
    if dtype is None or any(word in operation.name for word in UNLIKE):
        return
    try:
        samples = list(itertools.islice(operation.sample_inputs("cpu", dtype), 100))
    except Exception:  # some need what is not installed
        return
    usable = [one for one in samples
              if all(map(is_usable, leaves([one.input, one.args, one.kwargs])))]  # fmt: skip
    chosen = usable[:: max(1, len(usable) // SAMPLES)][:SAMPLES]
    variants = {
        "function": operation.op, "method": operation.method_variant,
        "in place": operation.inplace_variant,
    }  # fmt: skip
    for variant, call in variants.items():
        some = chosen if variant == "function" else chosen[:1]
        for one in some if call is not None else ():
            yield f"{operation.name}, {variant}", call, (one.input, *one.args), one.kwargs


@cache
def _made() -> list[tuple[str, Any, Any, Any]]:
    """On a thread of its own: torch looks at the whole stack for each operation."""
    torch.manual_seed(0)
    with ThreadPoolExecutor(1) as thread:
        return list(
            itertools.chain.from_iterable(thread.map(lambda one: list(calls(one)), operations()))
        )


def every_call() -> Iterator[tuple[str, Any, Any, Any]]:
    """The calls of all operations, made once for all tests, which copy the tensors.

    What a test draws is the same whether it is the first one or not.  Seeds for accelerators,
    which are not there, are not kept: each is, with the whole stack.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (torch.cuda, torch.xpu, torch.mtia):
            patch.setattr(module, "manual_seed_all", lambda seed: None)
        made = _made()
        torch.manual_seed(0)
        yield from made


def traced(call: Any, args: Any, kwargs: Any) -> list[Any]:
    """The values of the graph that a call gives."""
    session = Session()
    feeds: dict[str, Any] = {}
    session.guest = GUEST

    def lifted(tensor: Any) -> Any:
        name = f"x{len(feeds)}"
        feeds[name] = tensor.detach().numpy().copy()
        shape = tuple(map(Dim.of, tensor.shape))
        return fresh(session.graph.input(name, TensorType(ours(tensor.dtype), shape)), name)

    with activate(session):
        result = list(leaves(call(*mapped(args, lifted), **mapped(kwargs, lifted))))
        found = [node_of(one) if issubclass(type(one), SymbolicTensor) else one for one in result]
    nodes = [one for one in found if isinstance(one, Node)]
    values = iter(evaluate(nodes, feeds))
    return [next(values) if isinstance(one, Node) else one for one in found]


def node_of(tensor: Any) -> Any:
    """The node of a traced tensor, which the program does not see."""
    return inspect.getattr_static(type(tensor).__mro__[1], "node").fget(tensor)


def is_same(wanted: Any, found: Any) -> bool:
    if not isinstance(wanted, torch.Tensor):
        return bool(wanted == found)
    narrow = wanted.dtype in (torch.float16, torch.bfloat16)  # in the graph they are not rounded
    array = (wanted.float() if narrow else wanted).detach().numpy()
    if isinstance(found, torch.Tensor):
        found = found.numpy()
    near = 1e-2 if narrow else 1e-5
    return (
        array.shape == found.shape
        and array.dtype == found.dtype
        and bool(np.allclose(array, found, rtol=near, atol=near / 10, equal_nan=True))
    )


@pytest.mark.filterwarnings("ignore")
def test_the_graph_computes_what_torch_does() -> None:
    right: set[str] = set()
    wrong: list[str] = []
    for name, call, args, kwargs in every_call():
        try:
            given = mapped(args, torch.clone), mapped(kwargs, torch.clone)
            wanted = list(leaves(call(*given[0], **given[1])))
            if not all(map(is_usable, wanted)):
                continue
        except Exception:
            continue
        try:
            found = traced(call, args, kwargs)
        except SymgradError:  # with the line, and no verdict
            continue
        except KeyError as error:  # what is drawn has no value in the graph
            if "for draw" not in str(error):
                raise
            continue
        same = len(found) == len(wanted) and all(map(is_same, wanted, found))
        right.add(name)
        if not same:
            wrong.append(f"{name}: {args} {kwargs}")
    assert not wrong, "\n".join(wrong)
    assert len(right) >= LEAST
