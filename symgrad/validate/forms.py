"""Has an op the values of what was traced, where other forms were put in it?

In: the traced Function, that of which kernels were made, what was put for what.  Out: yes or no.

Each form is proved to be what it was put for, by the normal form of the proof.  Putting all of them
again in what was traced has to give the Function of the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node
from symgrad.passes.restate import Put, Steps, restated
from symgrad.proof.judge.same import is_same


def is_restated(traced: FunctionGraphs, graphs: FunctionGraphs, steps: Steps) -> bool:
    """Is ``graphs`` what was traced, with proved ``steps`` put in it and with its derivative?"""
    if not all(is_same(node, found) for node, found in steps.pairs):
        return False
    into = [case.graph for case in graphs.cases]
    late = _put(steps.late)
    again = restated(traced, _put(steps.everywhere), lambda case: late, into)
    return [*map(_values, again.cases)] == [*map(_values, graphs.cases)]


def _put(steps: Mapping[Node, Node]) -> Put:
    return lambda node, readers: steps.get(node, node)


def _values(case: FunctionCase) -> list[Node | None]:
    """What a case is given, and what it computes."""
    gradients = (one.node for one in case.gradients)
    return [*case.inputs, *case.cotangents, *case.outputs, *case.saved, *gradients]
