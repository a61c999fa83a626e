"""Branches on whether a mask selects anything: ``if mask.any(): x[mask] = ...``.

In: the trace in which each such mask selects something, and how to trace again where some select
nothing.  Out: why the first one does not stand for all calls; nothing where it does.

Where a mask selects nothing, ``where(mask, a, b)`` is b.  So the first trace with False for the
mask has to be what the program does where it selects nothing: the same nodes.  That is compared for
each choice of masks that select nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from symgrad.errors import (
    ControlFlowError,
    Location,
    ShapeError,
    SpecError,
    SymgradError,
    UnsupportedOpError,
)
from symgrad.ir.dtype import bool_
from symgrad.ir.function import Asked, FunctionCase
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite

MOST_MASKS = 3
"""Masks that one program may ask of: each choice of these is a trace."""
_KEEPING = ("expand", "reshape", "permute", "slice", "detach", "cast", "sum", "any")
"""Operations whose result is False, or 0, where that is all they get."""

_OTHERWISE = (ControlFlowError, ShapeError, SpecError, UnsupportedOpError)
"""Errors that say themselves what is not possible."""

Masks = Sequence[Node]


def standing_for_all(
    case: FunctionCase, asked: Sequence[tuple[Node, Location | None]],
    trace: Callable[[Masks], FunctionCase],
) -> FunctionCase:  # fmt: skip
    """The case; what keeps it from standing for calls in which masks select nothing is observed."""
    if not asked or case.problem is not None:
        return case
    found = _differences(case, [node for node, _ in asked], trace)
    notes = tuple(Asked(one, asked[0][1]) for one in found)
    return replace(case, observed=(*case.observed, *notes))


def on_values(
    error: SymgradError, asked: Sequence[tuple[Node, Location | None]]
) -> SymgradError:  # fmt: skip
    """The error of a trace: where it asked of masks, another answer may have led elsewhere."""
    if not asked or isinstance(error, _OTHERWISE):
        return error
    what = "Python cannot branch on whether a mask selects anything here"
    return ControlFlowError(
        f"{what}: where it does, {error.what}", location=asked[0][1],
        hint="use torch.where(cond, a, b), which computes both",
    )  # fmt: skip


def _differences(
    case: FunctionCase, masks: Masks, trace: Callable[[Masks], FunctionCase]
) -> Iterator[str]:
    """Why a case does not stand for calls in which some of these masks select nothing."""
    known = list(dict.fromkeys(masks))
    if len(known) > MOST_MASKS:
        yield f"more than {MOST_MASKS} masks are asked whether they select anything"
        return
    for count in range(1, len(known) + 1):
        for empty in itertools.combinations(known, count):
            if not _same(case, empty, trace):
                yield "it does something else where a mask selects nothing, and asks for that"
                return


def _same(case: FunctionCase, empty: Masks, trace: Callable[[Masks], FunctionCase]) -> bool:
    try:
        other = trace(empty)
    except SymgradError:
        return False
    if (case.problem is None) != (other.problem is None) or case.changed != other.changed:
        return False
    if len(case.observed) < len(other.observed) or len(case.assumed) < len(other.assumed):
        return False
    graph = Graph()
    return _results(case, empty, graph) == _results(other, empty, graph)


def _results(case: FunctionCase, empty: Masks, graph: Graph) -> list[Node | None]:
    """The outputs and gradients of a case with False for the masks."""
    nodes = [*case.outputs, *(gradient.node for gradient in case.gradients)]
    given = [node for node in nodes if node is not None]
    absent = {rewrite(graph, [mask], named=False)[mask] for mask in empty}
    cotangents = {
        node: _input(graph, f"cotangent {place}", node)
        for place, node in enumerate(case.cotangents) if node is not None
    }  # fmt: skip
    whole = rewrite(graph, given, cotangents, named=False)
    folded = rewrite(
        graph, [whole[node] for node in given], rule=_Folding(absent).rule, named=False
    )
    return [None if node is None else folded[whole[node]] for node in nodes]


def _input(graph: Graph, name: str, like: Node) -> Node:
    return graph.inputs[name] if name in graph.inputs else graph.input(name, like.type)


class _Folding:
    """Masks that select nothing are False, and what is chosen by them is left out."""

    def __init__(self, absent: set[Node]) -> None:
        self.absent, self.zeros = absent, set[Node]()

    def rule(self, node: Node, args: Sequence[Node]) -> Node | None:
        """What stands for a node whose arguments are these."""
        if node in self.absent:
            made = _full(node, False)
            self.zeros.add(made)
            return made
        if not args or args[0] not in self.zeros:
            return None
        if node.op == "where":
            return args[2]
        if node.op in _KEEPING:
            made = _full(node, False if node.dtype == bool_ else 0)
            self.zeros.add(made)
            return made
        return None


def _full(node: Node, value: int | bool) -> Node:
    graph = node.graph
    number = float(value) if node.dtype.is_float else value
    return graph.expand(graph.constant(number, node.dtype), node.shape)
