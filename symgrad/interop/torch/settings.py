"""Settings that torch refuses: probabilities outside of [0, 1], negative deviations.

In: a setting, which is a number, a symbol for one or a tensor, and its bounds.  Out: nothing, or
the error that torch raises.

What is so for some plain numbers only splits the trace.  Of data it is a demand: the verdict prints
it where it is not shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.errors import SymgradError
from symgrad.frontend.caller import here
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.questions import note_raised
from symgrad.frontend.refusals import is_so
from symgrad.frontend.session import current
from symgrad.frontend.table import OperationValueError
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.graph import Node
from symgrad.ops.integers import truth
from symgrad.ops.movement import bare
from symgrad.ops.record import get

_OPS = {">": "gt", ">=": "ge", "<=": "le"}


def check_within(value: Any, low: float, high: float | None, what: str) -> None:
    """Raises what torch raises where a setting is less than ``low`` or more than ``high``."""
    _check(value, ">=", low, what)
    if high is not None:
        _check(value, "<=", high, what)


def check_above(value: Any, low: float, what: str) -> None:
    """Raises what torch raises where a setting is not more than ``low``."""
    _check(value, ">", low, what)


def _check(value: Any, relation: str, end: float, what: str) -> None:
    if is_symbolic_tensor(value):
        node = as_tensor(value).node
        held = node.graph.binary(_OPS[relation], node, end)
        current().demanded.note(truth(held), here())
    elif not is_so(value, relation, end, f"{what} is {relation} {end}"):
        raise refused(f"{what} has to be {relation} {end}")


def refused(what: str) -> SymgradError:
    """The error for a call that torch refuses, which the program may handle."""
    return note_raised(OperationValueError(what, location=here()))


def is_symbolic_tensor(value: Any) -> bool:
    """Is a setting data of the trace?"""
    return isinstance(value, SymbolicTensor)


def as_number(value: Any) -> Any:
    """The one number that a tensor is filled with, which may be a symbol; else the value."""
    if not is_symbolic_tensor(value):
        return value
    node = bare(as_tensor(value).node)
    known = current().numbers.get(node)
    found = _filled(node) if known is None else known
    return value if found is None else found


def _filled(node: Node) -> float | None:
    """The number that all elements of a node are; None where that is not plain."""
    node = bare(node)
    if node.op == "constant":
        return float(node.attributes["value"].value)
    record = get(node.op)
    if record.kind != "elementwise":
        return None
    args = [_filled(arg) for arg in node.args]
    if not args or None in args:
        return None
    with np.errstate(all="ignore"):
        return float(record.numpy(*map(np.float64, args), size=_no_size, **node.attributes))


def _no_size(size: Any) -> int:
    raise AssertionError(f"an elementwise op reads the size {size}")
