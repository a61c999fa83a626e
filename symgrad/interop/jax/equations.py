"""The equations that JAX has traced, as part of the graph in progress.

In: a closed jaxpr, and nodes for what it takes.  Out: nodes for what it returns, each with the
user's line that its equation has.

Only equations that something returned depends on are looked at, and those with effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jax._src import source_info_util

from symgrad.budgets import MOST_CONSTANTS
from symgrad.errors import Location, SymgradError, UnsupportedOpError
from symgrad.frontend.caller import here, place, placed
from symgrad.frontend.lift import array_node
from symgrad.frontend.questions import note_limit
from symgrad.frontend.session import Session, current
from symgrad.interop.jax.dtypes import ours
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node
from symgrad.ops.integers import Demand


@dataclass(frozen=True)
class Equation:
    """One equation: a primitive applied to nodes.

    ``shapes`` and ``dtypes``: what it gives; ``source``: as JAX has it.
    """

    name: str
    session: Session
    args: tuple[Node, ...]
    params: dict[str, Any]
    shapes: tuple[tuple[Dim, ...], ...]
    dtypes: tuple[DType | None, ...]
    source: Any

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of its only result."""
        return self.shapes[0]

    @property
    def dtype(self) -> DType:
        """The dtype of its only result.  Raises UnsupportedOpError."""
        return self.dtypes[0] or ours(self.source.outvars[0].aval.dtype)

    def full(self, node: Node) -> Node:
        """A node broadcast to the shape of the result."""
        return self.session.expand(node, self.shape)

    def refused(self, why: str = "") -> SymgradError:
        """The error where it cannot be part of a graph."""
        said = f"JAX's primitive {self.name} is not supported{f' {why}' if why else ''}"
        return note_limit(UnsupportedOpError(said, location=here()))


cuts: ContextVar[list[Location | None] | None] = ContextVar("cuts", default=None)
"""Gets the lines at which a program says itself what a derivative is; None where nobody asks."""


def note_cut(equation: Equation) -> None:
    """The equation has a derivative of its own: ``stop_gradient``, or a nested custom rule."""
    found = cuts.get()
    if found is not None and any(one.dtype.is_float for one in equation.args):
        found.append(here())


Rule = Callable[[Equation], "Node | Sequence[Node]"]
RULES: dict[str, Rule] = {}
"""What each primitive is here, by its name."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Say what primitives of these names are."""

    def register(found: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, found))
        return found

    return register


# -- going through


_COUNTING = frozenset(
    ("add", "sub", "mul", "square", "pow", "integer_pow", "reduce_sum", "reduce_prod",
     "cumsum", "cumprod", "dot_general", "scatter-add", "scatter-mul", "neg", "abs", "div")
)  # fmt: skip
"""Primitives whose results may leave 32 bits: of integers of these, JAX would wrap them around."""

_SILENT = frozenset(("debug_callback", "debug_print"))
"""Primitives that only print."""


def evaluate(closed: Any, given: Sequence[Node], name: str = "") -> list[Node]:
    """What a closed jaxpr gives for these nodes.  ``name``: that of the function that it is of."""
    return run(closed.jaxpr, [constant(one) for one in closed.consts], given, name)


def run(jaxpr: Any, consts: Sequence[Node], given: Sequence[Node], name: str = "") -> list[Node]:
    """What a jaxpr gives for these constants and nodes."""
    known: dict[Any, Node] = {}
    known.update(zip(jaxpr.constvars, consts, strict=True))
    known.update(zip(jaxpr.invars, given, strict=True))

    def read(atom: Any) -> Node:
        return constant(atom.val, atom.aval.dtype) if hasattr(atom, "val") else known[atom]

    for one in _needed(jaxpr):
        with placed(_line(one, name)):
            found = _applied(one, tuple(map(read, one.invars)))
        known.update(zip(one.outvars, found, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _needed(jaxpr: Any) -> list[Any]:
    """The equations that something returned depends on, in order."""
    wanted = {atom for atom in jaxpr.outvars if not hasattr(atom, "val")}
    found = []
    for one in reversed(jaxpr.eqns):
        silent = one.primitive.name in _SILENT
        if not wanted.isdisjoint(one.outvars) or (one.effects and not silent):
            found.append(one)
            wanted.update(atom for atom in one.invars if not hasattr(atom, "val"))
    return found[::-1]


def _applied(one: Any, args: tuple[Node, ...]) -> list[Node]:
    session, known = current(), sizes()
    avals = [outvar.aval for outvar in one.outvars]
    equation = Equation(
        one.primitive.name, session, args, one.params,
        tuple(known.shape(getattr(aval, "shape", ())) for aval in avals),
        tuple(_dtype(aval) for aval in avals), one,
    )  # fmt: skip
    found = RULES.get(equation.name)
    if found is None:
        raise equation.refused()
    try:
        made = found(equation)
    except SymgradError as error:
        error.location = error.location or place()
        raise note_limit(error) from error.__cause__
    nodes = [made] if isinstance(made, Node) else list(made)
    if equation.name in _COUNTING and str(avals[0].dtype) == "int32":
        session.demanded.note(Demand(nodes[0], low=Dim.of(-(2**31)), high=Dim.of(2**31)))
    for node, shape in zip(nodes, equation.shapes, strict=True):
        assert node.shape == shape, f"{equation.name} gives {node.shape} instead of {shape}"
    return nodes


def _dtype(aval: Any) -> DType | None:
    try:
        return ours(aval.dtype)
    except (SymgradError, AttributeError):
        return None


def constant(value: Any, dtype: Any = None) -> Node:
    """An array that the program has from outside.  Raises UnsupportedOpError for a large one.

    ``dtype``: what JAX takes a number for.
    """
    array = np.asarray(value)
    kind = ours(array.dtype if dtype is None else dtype)
    if array.size > MOST_CONSTANTS and array.min() == array.max():
        array = array.reshape(-1)[:1]
        whole = tuple(map(Dim.of, np.shape(value)))
        return current().expand(constant(array[0], dtype), whole)
    return array_node(current(), array, kind)


# -- the user's lines


def _line(one: Any, name: str) -> Location | None:
    """The user's line that an equation has.

    JAX keeps what it traced of an inner function, with the lines of the call that it traced first:
    only lines of the function itself are those of this call too.
    """
    traceback = one.source_info.traceback
    found = None if traceback is None else _frame(traceback)
    if found is None or (place() is not None and name and found.function != name):
        return None
    return found


@lru_cache(maxsize=1024)
def _frame(traceback: Any) -> Location | None:
    for frame in source_info_util.user_frames(traceback):
        if "/symgrad/interop/jax/" in frame.file_name.replace("\\", "/"):
            return None
        same = frame.start_line == frame.end_line
        columns = (frame.start_column, frame.end_column) if same else None
        return Location(
            frame.file_name, frame.start_line, frame.function_name.rpartition(".")[2], columns
        )
    return None
