"""What a trace says of backward: what it reads, which gradients it makes, whether they fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from symgrad.errors import (
    ControlFlowError,
    DTypeError,
    ShapeError,
    SymgradError,
    TraceError,
    is_limit,
)
from symgrad.frontend.choices import FAILS_ELSEWHERE
from symgrad.frontend.lift import IndexKindError
from symgrad.ir.function import FunctionGraphs, SizeCondition
from symgrad.ir.graph import Node, ancestors, input_names
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.passes.rules import number
from symgrad.shapes.sizes import rank_fits

FAILING_PRICE = 100
LIMIT_PRICE = FAILING_PRICE - 1
"""Of a backward that is not traced: that says less against the shapes than what it raises."""
RAISING_PRICE = 10
"""Of a backward that raises, beside one whose gradients do not fit: it makes none."""
MISTAKE_PRICE = 1
"""A gradient of the right rank and the wrong sizes is rather a mistake than a wrong guess."""


def having_gradients(graphs: FunctionGraphs) -> set[str]:
    """The inputs of which a gradient is returned; all, where backward says nothing of that."""
    if any(case.problem is not None or not case.gradients for case in graphs.cases):
        return set(graphs.differentiable)
    return {
        one.input for case in graphs.cases for one in case.gradients
        if one.node is not None or one.problem is not None
    }  # fmt: skip


def inputs_read(graphs: FunctionGraphs) -> set[str]:
    """The inputs that forward computes its outputs from."""
    outputs = [node for case in graphs.cases for node in case.outputs]
    return {*input_names(outputs)}


def compared_labels(graphs: FunctionGraphs) -> set[str]:
    """The inputs without a gradient that are compared by ``==`` or ``!=``."""
    roots = [node for case in graphs.cases for node in case.outputs]
    gradients = [one for case in graphs.cases for one in case.gradients]
    roots += [one.returned for one in gradients if one.returned is not None]
    sides = [
        bare(side) for node in ancestors(roots) if node.op in ("eq", "ne") for side in node.args
    ]
    compared = {side.attributes["name"] for side in sides if side.op == "input"}
    return compared - {one.input for one in gradients if one.returned is not None}


def takes_no_floats(graphs: FunctionGraphs) -> bool:
    """Does backward take a tensor for a plain value, a mask or an index, which it then is?"""
    kinds = (ControlFlowError, DTypeError, IndexKindError)
    return any(isinstance(case.problem, kinds) for case in graphs.cases)


def calls_what_is_no_function(graphs: FunctionGraphs) -> bool:
    """Does backward call an argument?  Then that is a function, which nothing stands for."""
    causes = [case.problem.__cause__ for case in graphs.cases if case.problem is not None]
    return any(
        isinstance(cause, TypeError) and str(cause).endswith("object is not callable")
        for cause in causes
    )


def divides_by_zero(graphs: FunctionGraphs) -> bool:
    """Is something divided by the number 0?  A plain value that makes it so is not meant."""
    roots = [node for case in graphs.cases for node in case.outputs]
    roots += [one.returned for case in graphs.cases for one in case.gradients if one.returned]
    return any(
        node.op in ("div", "reciprocal") and number(node.args[-1]) == 0 for node in ancestors(roots)
    )


def price_of_failing(graphs: FunctionGraphs) -> int:
    """What it costs that backward raises, or that its gradients do not fit."""
    problem = problem_of(graphs)
    if problem is None:
        return 0
    raised = any(
        case.problem is not None
        and not (isinstance(case.problem, ShapeError) and case.problem.gradient)
        for case in graphs.cases
    )
    untraced = any(case.problem is not None and is_limit(case.problem) for case in graphs.cases)
    price = MISTAKE_PRICE if rank_fits(problem) else LIMIT_PRICE if untraced else FAILING_PRICE
    return price + RAISING_PRICE * raised


def fits_backward(graphs: FunctionGraphs) -> bool:
    """Does backward run, and has each gradient the shape of its argument?"""
    return problem_of(graphs) is None and not larger_gradients(graphs)


def larger_gradients(graphs: FunctionGraphs) -> set[str]:
    """The arguments whose gradients are larger than they, so that PyTorch sums them."""
    gradients = [one for case in graphs.cases for one in case.gradients]
    return {one.input for one in gradients if one.returned is not one.node}


def refusal_of(graphs: FunctionGraphs) -> SymgradError | None:
    """What forward raises for all sizes but a few numbers; None where it takes more."""
    if not all(_is_few(case.conditions) for case in graphs.cases):
        return None
    return next((one.reason for one in graphs.refused if not _is_few(one.conditions)), None)


def _is_few(conditions: Sequence[SizeCondition]) -> bool:
    """Do they hold for a number alone in the place of a size?"""
    return any(one.relation == "==" and one.right.constant is not None for one in conditions)


def single_axes(graphs: FunctionGraphs) -> int:
    """How many axes of outputs have the size 1, whatever the sizes of the inputs.

    Those that backward sums over are counted, too.  Shapes that add to them are not taken because
    backward fits them: a sum over such an axis does nothing, so that one over a wrong axis would
    not show.
    """
    case = graphs.cases[0]
    returned = [one.returned for one in case.gradients if one.returned is not None]
    summed = [
        node.args[0].shape[axis] for node in ancestors(returned) if node.op == "sum"
        for axis in node.attributes["axes"]
    ]  # fmt: skip
    dims = [*summed, *(dim for node in case.outputs for dim in node.shape)]
    return sum(dim.constant == 1 for dim in dims)


def summed_tensors(graphs: FunctionGraphs) -> frozenset[str]:
    """The tensors whose gradients are made of them and of numbers: of sums over all axes."""
    found = set()
    for name in graphs.differentiable:
        gradients = [
            one.node for case in graphs.cases for one in case.gradients
            if one.input == name and one.node is not None
        ]  # fmt: skip
        numbers = [
            node for node in ancestors(gradients) if all(dim.constant == 1 for dim in node.shape)
        ]
        if _tensors(ancestors(gradients, numbers)) <= {name} and _tensors(ancestors(numbers)):
            found.add(name)
    return frozenset(found)


def work_done(graphs: FunctionGraphs | None) -> Counter[str]:
    """How often gradients are made by each operation that computes, where it is done most often.

    What is done for a few sizes alone does not count.
    """
    found: Counter[str] = Counter()
    for case in graphs.cases if graphs is not None else ():
        if not _is_few(case.conditions):
            roots = [one.returned for one in case.gradients if one.returned is not None]
            found |= Counter(node.op for node in ancestors(roots) if _computes(node))
    return found


def _computes(node: Node) -> bool:
    """Does it make other elements, or leave some out?"""
    return get(node.op).kind not in ("source", "movement") or node.op == "slice"


def _tensors(nodes: Iterable[Node]) -> set[str]:
    """The inputs among some nodes that are no numbers."""
    return {node.attributes["name"] for node in nodes if node.op == "input" and node.shape}


def valued_of(graphs: FunctionGraphs) -> ControlFlowError | None:
    """The error for a trace that has a way for each value of a number; None for any other.

    So has one of which backward fails on one of its ways.
    """
    for case in graphs.cases:
        failing = (one for one in case.observed if one.what == FAILS_ELSEWHERE)
        asked = case.valued or next(failing, None)
        if asked is not None:
            return ControlFlowError(asked.what, location=asked.location, ways=True)
    return None


def asks_ways(error: SymgradError) -> bool:
    """Would a trace have a way for each value of a number, if sizes were numbers?"""
    return isinstance(error, TraceError) and error.ways


def problem_of(graphs: FunctionGraphs) -> SymgradError | None:
    """Why backward is of no use for these shapes: what it raises, a gradient that does not fit."""
    for case in graphs.cases:
        problems = [case.problem, *(one.problem for one in case.gradients)]
        if found := next((problem for problem in problems if problem is not None), None):
            return found
    return None
