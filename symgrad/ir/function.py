"""A traced Function: forward and the hand-written backward in one graph.

In: what the frontend found.  Out: frozen records that the later stages read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

from symgrad.budgets import MOST_OUTPUTS
from symgrad.errors import Location, SymgradError
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Atom, Derived, Dim
from symgrad.ir.encoding import PLAIN
from symgrad.ir.graph import Graph, Node
from symgrad.plain_values import PlainArgument

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class SizeCondition:
    """A relation between sizes that a case holds for.

    ``relation`` is one of ``== != < <= > >=``.  In a case with ``k == 1``, 1 is already put for k
    in the graph.
    """

    left: Dim
    relation: str
    right: Dim

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Does it hold at these sizes?  Raises KeyError for a size that is not among them."""
        return RELATIONS[self.relation](self.left.at(sizes), self.right.at(sizes))

    @property
    def numbers(self) -> frozenset[int]:
        """Sizes around those where it may change: what it compares with and what it divides by."""
        sides = (self.left, self.right)
        compared = {0} | {side.constant for side in sides if side.constant is not None}
        divisors = {
            atom.right.constant for side in sides for atom in side.atoms
            if isinstance(atom, Derived) and atom.right.constant is not None
        }  # fmt: skip
        multiples = {d * k + c for d in divisors for c in compared for k in (1, 2, c)}
        return frozenset(n + step for n in compared | multiples for step in (-1, 0, 1))

    def substitute(self, mapping: Mapping[Atom, Dim]) -> SizeCondition:
        """The condition with atoms replaced."""
        left, right = self.left.substitute(mapping), self.right.substitute(mapping)
        return SizeCondition(left, self.relation, right)


def strongest(conditions: Sequence[SizeCondition]) -> list[SizeCondition]:
    """The conditions without those that another one implies: ``4 <= c`` of ``2 <= c``, ``4 <= c``.

    For printing: a bound is only compared with bounds.
    """
    found = list(dict.fromkeys(conditions))
    for one in tuple(found):
        own = _excess(one)
        others = [value for c in found if c is not one and (value := _excess(c)) is not None]
        if own is not None and any((own - value).at_least(0) for value in others):
            found.remove(one)
    return found


def _excess(condition: SizeCondition) -> Dim | None:
    """What is at least 0 exactly if a bound holds; None for any other condition."""
    least, most = condition.left, condition.right
    if condition.relation in (">", ">="):
        least, most = most, least
    if condition.relation in ("<=", ">="):
        return most - least
    return most - least - 1 if condition.relation in ("<", ">") else None


@dataclass(frozen=True)
class Gradient:
    """What backward returned for one tensor input.

    ``node``: the gradient, None where backward returned None; ``returned``: as it was before it
    was summed down to the input's shape (the same node where that was not needed).
    ``problem``: why there is no usable gradient (a shape that cannot be summed down ...).
    """

    input: str
    node: Node | None
    returned: Node | None = None
    location: Location | None = None
    problem: SymgradError | None = None


@dataclass(frozen=True)
class AppliedRule:
    """How a Function that was applied is differentiated: by its own backward.

    ``cotangents``: an input of the graph for each thing that it returned, None where there is no
    derivative.  ``gradients``: what its backward makes of them, one for each float tensor that it
    was given, None for none.  ``problem``: backward failed.  ``once``: it is marked
    once_differentiable.
    """

    name: str
    cotangents: tuple[Node | None, ...]
    gradients: tuple[Node | None, ...]
    location: Location | None = None
    problem: SymgradError | None = None
    once: bool = False


@dataclass(frozen=True)
class HistoryRecord:
    """What PyTorch would record of a trace, beside the markers in its graph.

    ``rules``: what differentiates the ``applied`` nodes, by their attribute ``rule``; that of the
    Function itself first.  ``overwritten``: values that backward wrote over in place;
    ``writes``: what it wrote.  ``reason``: why the record cannot be told; empty where it can.
    """

    rules: tuple[AppliedRule, ...] = ()
    overwritten: tuple[Node, ...] = ()
    writes: tuple[Node, ...] = ()
    reason: str = ""


class BatchAxes(NamedTuple):
    """Axes of a shape that stand for any number of axes of an array, ``*name`` in its spec.

    They are ``number`` axes from ``axis`` on: the last one has as many elements as all axes of the
    array together, those before it have one.
    """

    name: str
    axis: int
    number: int


@dataclass(frozen=True)
class AnyRank:
    """Which axes of the inputs and outputs of a case stand for any number of axes.

    ``apart``: the numbers of axes that the case does not stand for.
    """

    inputs: tuple[BatchAxes | None, ...]
    outputs: tuple[BatchAxes | None, ...]
    apart: tuple[int, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A question of the program's about its call, and the answer that a trace gave.

    ``given``: the answer was decided before.  ``real``: there are calls with either answer.
    """

    question: str
    value: bool
    given: bool
    real: bool
    location: Location | None

    @property
    def key(self) -> tuple[str, bool]:
        """The question and the answer."""
        return self.question, self.value


@dataclass(frozen=True)
class Asked:
    """What the program asks of a tensor or size beside the graph, and where."""

    what: str
    location: Location | None

    def __str__(self) -> str:
        return f"{self.what} ({self.location})" if self.location else self.what


@dataclass(frozen=True)
class Unwritten:
    """A node that has to be 0 everywhere; else the program reads memory that nobody wrote."""

    node: Node
    asked: Asked


@dataclass(frozen=True)
class Demanded:
    """What an operation raises without: ``low <= node < high``, or that no element is ``apart``.

    ``wished``: nothing raises without it, but a counterexample at which it holds says more.
    ``said``: in words, where the node would say less.
    """

    node: Node
    low: Dim | None
    high: Dim | None
    apart: int | None
    location: Location | None
    wished: bool = False
    said: str = ""


@dataclass(frozen=True)
class Loop:
    """A loop that waits for a value, which its line asks for once a round.

    ``least``: the fewest values that it asks for, as far as it is judged.  ``constant``: the most
    after which forward, each time that it ends with no more, gives what depends on no input.
    """

    location: Location
    least: int
    constant: int


@dataclass(frozen=True)
class Relation:
    """A stated relation between inputs: each element of ``node`` is ``kind`` 0: > >= != or ==.

    ``text``: as it was written; ``end``: the same with ``==``.  Of an equality, ``solved`` are the
    ways to make the input ``name`` meet it, each of which changes nothing that meets it.
    """

    text: str
    kind: str
    node: Node
    end: str = ""
    name: str = ""
    solved: tuple[Node, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that it needs."""
        return (self.node, *self.solved)

    def put(self, new: Mapping[Node, Node]) -> Relation:
        """The same with other nodes."""
        return replace(self, node=new[self.node], solved=tuple(new[one] for one in self.solved))


@dataclass(frozen=True)
class FunctionCase:
    """One trace.  ``graph`` holds everything; the rest says which node is what.

    ``inputs``: the tensor inputs in call order, then the plain numbers that are symbols and that
    the program computes with, whose names are ``plain``.  ``cotangents``: one for each output, None
    for an output that has none (integers, marked non-differentiable).  ``gradients``: one for each
    differentiable input, in order; empty when ``backward`` is None.  ``saved``: what forward
    keeps for backward (``save_for_backward`` and tensors set on ctx), by the name it was saved
    from.  ``problem``: backward raised; the gradients are empty.  ``written``: saved tensors,
    inputs or cotangents that backward mutated in place, by name; ``updated``: inputs that forward
    mutated without ``mark_dirty``.  ``requires``: what
    follows from sizes being at least 1 and was used, so that a kernel must check it for size 0.
    ``record``: what PyTorch would record of it, where the trace follows that.  ``surplus``: inputs
    without a gradient (integers) of which backward returned one.  ``materializes``:
    backward gets zeros, not None, for an output without a cotangent.  ``any_rank``: it serves any
    number of batch axes.  ``answers``: the questions that split it; ``observed``: what the program
    asked that has no answer for all calls; ``assumed``: what the verdict has to print.
    ``left_out``: the arguments that no call passes, as ``assumed`` says.  ``where``:
    what must hold of plain numbers, as expressions.  ``relations``: what is stated of the inputs.
    ``state``: why later calls may compute something else.  ``parameters``: what backward calls the
    cotangents, where it has one parameter for each output.  ``unwritten``: what has to be 0, so
    that nothing is computed from memory that nobody wrote.  ``demanded``: what its operations raise
    without, and is not plain.  ``symmetric``: the inputs that its operations take to be so.
    ``by_default``: it has floats of the default dtype.  ``expanded``: a cotangent is a number that
    backward gets expanded, and the output is its sum.  ``chosen``: what it answers where
    the program asks of elements; ``raises``: the question that it raises for, if it does for some
    answer.  ``bounds``: what is demanded of its inputs, where the proof may use that.
    ``ways``: what it is on each way through the program, where those were joined to one case.
    ``loop``: the loop that waits for a value, if one does.  ``selected``: the places of outputs
    that are what a mask selects: ``where(mask, whole, 0)`` stands for ``whole[mask]``, and so does
    its cotangent for what backward gets.  ``valued``: where Python has to know a number, of which
    there is a way for each value.
    """

    conditions: tuple[SizeCondition, ...]
    graph: Graph
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    output_names: tuple[str, ...]
    cotangents: tuple[Node | None, ...]
    gradients: tuple[Gradient, ...]
    saved: tuple[Node, ...]
    problem: SymgradError | None = None
    written: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    requires: tuple[SizeCondition, ...] = ()
    record: HistoryRecord | None = None
    surplus: tuple[str, ...] = ()
    materializes: bool = True
    any_rank: AnyRank | None = None
    answers: tuple[Answer, ...] = ()
    observed: tuple[Asked, ...] = ()
    assumed: tuple[Asked, ...] = ()
    left_out: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    state: tuple[Asked, ...] = ()
    parameters: tuple[str, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    demanded: tuple[Demanded, ...] = ()
    symmetric: frozenset[str] = frozenset()
    by_default: bool = False
    expanded: bool = False
    chosen: tuple[bool, ...] = ()
    raises: Asked | None = None
    bounds: tuple[Assumption, ...] = ()
    ways: tuple[FunctionCase, ...] = ()
    loop: Loop | None = None
    selected: tuple[int, ...] = ()
    valued: Asked | None = None

    @property
    def aliases(self) -> dict[str, str]:
        """What backward calls the cotangents, by their names."""
        if len(self.parameters) != len(self.cotangents) or {*self.parameters} & {*self._names}:
            return {}
        pairs = zip(self.cotangents, self.parameters, strict=True)
        return {node.attributes["name"]: word for node, word in pairs if node is not None and word}

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(node.attributes["name"] for node in self.inputs)

    @property
    def changed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What backward, and what forward, mutated in place."""
        return self.written, self.updated

    @property
    def tensors(self) -> tuple[Node, ...]:
        """The tensor inputs."""
        return tuple(node for node in self.inputs if node.attributes["name"] not in self.plain)

    @property
    def numbers(self) -> tuple[Node, ...]:
        """The plain numbers that are symbols."""
        return tuple(node for node in self.inputs if node.attributes["name"] in self.plain)


@dataclass(frozen=True)
class OtherCall:
    """A case traced with another call of the same Function between its forward and its backward.

    The calls come in this order: forward, the other forward, backward, backward again with other
    cotangents, the other backward.  ``case``: the first call; ``other``: the second one, at the
    numbers ``sizes``, with the dtype ``dtype`` for inputs of no other, and with one tensor for all
    of a tuple in ``same``: inputs by name, ``output 0`` and ``cotangent 0``; None where forward
    does not accept it.  ``hooked``: saved tensors are other objects in the second call; ``unlike``:
    these inputs are of another dtype; ``asks_dtypes``: the program asks for one.
    ``leaked``: where a tensor of one call was met in another one.  ``names``: the size symbols of
    the first call.
    ``earlier``: in words the other call, where it is of other plain arguments or shapes, and its
    backward is over too; then ``case`` is what ``alone`` is beside it.  ``given``: its arguments by
    name, of tensors the types; ``between``: it comes between forward and backward.
    """

    case: FunctionCase
    other: FunctionCase | None
    sizes: Mapping[str, int]
    dtype: str
    same: tuple[tuple[str, ...], ...]
    leaked: Asked | None
    names: tuple[str, ...]
    hooked: bool = False
    unlike: tuple[str, ...] = ()
    asks_dtypes: bool = False
    earlier: str = ""
    alone: FunctionCase | None = None
    given: tuple[tuple[str, Any], ...] = ()
    between: bool = False


@dataclass(frozen=True)
class RefusedCase:
    """Sizes that forward itself does not accept, and what it raised there."""

    conditions: tuple[SizeCondition, ...]
    reason: SymgradError


@dataclass(frozen=True)
class InnerCall:
    """A Function applied inside another one: its forward was inlined, its backward not used.

    ``function``: the class, or the instance.  ``arguments``: by position, the type of a tensor or
    the value of a plain argument; ``keywords``: those passed by name.
    """

    function: Any
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()
    location: Location | None = None


@dataclass(frozen=True)
class FunctionGraphs:
    """A traced Function, all of its cases.

    ``differentiable``: the inputs that have a gradient (float, not declared otherwise).
    ``derived``: there is no hand-written backward.  ``static``: the non-tensor arguments that
    are passed.  ``assumptions``: what is declared of the inputs.
    ``source``: the text of forward and backward, for digests.  ``refused``: sizes that have no
    case, because forward does not accept them.  ``inner``: the Functions that it applies.
    ``asked``: the inputs that require a gradient.  ``answers``: what the trace was told of the
    call; ``told``: that in a sentence; ``real``: there are such calls.  ``once``: backward is
    marked once_differentiable.  ``values``: the non-tensor arguments, defaults that were not passed
    and the attributes of an instance among them; ``state``: those of them that calls change.
    """

    name: str
    location: Location | None
    cases: tuple[FunctionCase, ...]
    input_names: tuple[str, ...]
    differentiable: tuple[str, ...]
    derived: bool
    static: tuple[tuple[str, Any], ...] = field(default=(), metadata={PLAIN: True})
    source: str = ""
    assumptions: tuple[Assumption, ...] = ()
    refused: tuple[RefusedCase, ...] = ()
    inner: tuple[InnerCall, ...] = ()
    asked: tuple[str, ...] = ()
    once: bool = False
    values: tuple[PlainArgument, ...] = field(default=(), metadata={PLAIN: True})
    answers: tuple[tuple[str, bool], ...] = ()
    told: str = ""
    real: bool = True
    state: frozenset[str] = field(default=frozenset(), metadata={PLAIN: True})

    @property
    def traces(self) -> tuple[FunctionCase, ...]:
        """The cases, and each way of those that were joined in their place."""
        return tuple(one for case in self.cases for one in case.ways or (case,))

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The names of plain arguments, and their values as text, but for ``state``."""
        shown = (value for value in self.values if value.name not in self.state)
        return tuple((value.name, value.text) for value in shown)


Pattern = Sequence[bool]
"""For each output: is its cotangent given?"""


def patterns(graphs: FunctionGraphs) -> list[Pattern]:
    """For each output, is its cotangent given: all that backward may get but all.

    Those with the fewest given come first: none is, where a Function that is applied to the outputs
    gives None for each.  Of very many outputs only none, each alone, and all but each.
    Empty where backward never gets None.
    """
    found: list[Pattern] = []
    for case in graphs.cases:
        if not case.materializes:
            one = [node is not None for node in case.cotangents]
            found += [mask for mask in _masks(one) if mask not in found]
    return sorted(found, key=sum)


def _masks(differentiable: Sequence[bool]) -> Iterator[Pattern]:
    count = sum(differentiable)
    for mask in product(*((True, False) if one else (False,) for one in differentiable)):
        given = sum(mask)
        if given < count and (count <= MOST_OUTPUTS or given in (0, 1, count - 1)):
            yield mask
