"""A traced Function -> the graphs of its kernels.

In: ``FunctionGraphs``.  ``plan`` makes an ``OpPlan``: named graphs, one a kernel.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from symgrad.budgets import ALL_MASKS_UP_TO
from symgrad.codegen.names import identifier
from symgrad.errors import CodegenError, ControlFlowError, UnsupportedOpError
from symgrad.ir.dtype import NARROW
from symgrad.ir.function import BatchAxes, FunctionCase, FunctionGraphs
from symgrad.ir.graph import Graph, Node
from symgrad.ir.printer import fresh_name
from symgrad.ir.rewrite import extract, rewrite
from symgrad.passes.price import price
from symgrad.passes.quotients import Quotients
from symgrad.passes.restate import Steps, derived, restated
from symgrad.passes.save import choose_saved, saved_to_compare
from symgrad.passes.simplify import simplify
from symgrad.passes.split import Joint, Split, split
from symgrad.passes.stable import CAUSES, Forms
from symgrad.passes.turned import turned


@dataclass(frozen=True)
class KernelPlan:
    """The graph of one kernel.

    ``pruned``: a backward of only some of the gradients.  ``numbers``: the inputs that are plain
    numbers, and the dtypes that calls pass them in.  ``derived``: nobody wrote it, so that its
    roundings are not asked for.
    """

    name: str
    graph: Graph
    pruned: bool = False
    numbers: tuple[tuple[str, str], ...] = ()
    derived: bool = False


@dataclass(frozen=True)
class CasePlan:
    """One case of an op; kernels are referred to by name."""

    case: FunctionCase
    parts: Split
    inference: KernelPlan
    forward: KernelPlan
    backward: tuple[KernelPlan | None, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The tensors that it is called with."""
        return self.case.tensors

    @property
    def batches(self) -> tuple[Sequence[BatchAxes | None], Sequence[BatchAxes | None]]:
        """The axes of each input, and of each output, that stand for any number of axes."""
        any_rank = self.case.any_rank
        if any_rank is not None:
            return any_rank.inputs, any_rank.outputs
        return [None] * len(self.inputs), [None] * len(self.case.outputs)


@dataclass(frozen=True)
class OpPlan:
    """One op: all of its cases.

    ``graphs``: what kernels compute; ``traced``: what was traced, which has the same values;
    ``steps``: what was put in it for what (``passes.restate``).  ``judged``: the Function with its
    hand-written backward, where a derived one takes its place.
    """

    name: str
    graphs: FunctionGraphs
    differentiable: tuple[bool, ...]
    cases: tuple[CasePlan, ...]
    traced: FunctionGraphs
    steps: Steps
    judged: FunctionGraphs | None = None

    @property
    def sizes(self) -> tuple[str, ...]:
        """Every size, in the order in which each kernel takes those that it needs."""
        inputs = (node for case in self.cases for node in case.inputs)
        dims = (dim for node in inputs for dim in node.shape)
        return tuple(dict.fromkeys(size for dim in dims for size in dim.sizes))

    @property
    def kernels(self) -> tuple[KernelPlan, ...]:
        """Every kernel once, forwards first, the pruned backwards last."""
        found: dict[str, KernelPlan] = {}
        for case in self.cases:
            for kernel in (case.inference, case.forward, *case.backward):
                if kernel is not None:
                    found.setdefault(kernel.name, kernel)
        return tuple(sorted(found.values(), key=lambda kernel: kernel.pruned))

    @property
    def restated(self) -> frozenset[str]:
        """The names of the kernels that compute by other forms than those traced."""
        found: set[str] = set()
        for one, old in zip(self.cases, self.traced.cases, strict=True):
            if not _are_alike(one.case, old, lambda case: case.outputs):
                found.update((one.inference.name, one.forward.name))
            if not _are_alike(one.case, old, lambda case: [g.node for g in case.gradients]):
                found.update(kernel.name for kernel in one.backward if kernel is not None)
        return frozenset(found)


def _are_alike(
    one: FunctionCase, other: FunctionCase,
    nodes: Callable[[FunctionCase], Sequence[Node | None]],
) -> bool:  # fmt: skip
    """Are nodes of both the same graph, once they are simplified?"""
    graph = Graph()

    def simplified(case: FunctionCase) -> list[Node | None]:
        roots = [node for node in nodes(case) if node is not None]
        copied = extract({str(place): node for place, node in enumerate(roots)})
        found = simplify(copied).outputs.values()
        new = rewrite(graph, found)
        return [new[node] for node in found]

    return simplified(one) == simplified(other)


def op_name(name: str) -> str:
    """``SoftmaxCrossEntropy`` as ``softmax_cross_entropy``: a module, its files, its C functions.

    It may be a name of C: the names of kernels have a suffix.
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    found = identifier(words.lower(), otherwise="op")
    return f"{found}_" if keyword.iskeyword(found) else found


def mark_of(case: int) -> str:
    """The part of a kernel's name that tells its case, where there are several cases."""
    return f"_case{case}"


def with_backward(graphs: FunctionGraphs) -> FunctionGraphs:
    """The Function, with a derived backward where it has no hand-written one."""
    if not graphs.derived:
        return graphs
    return replace(
        graphs,
        cases=tuple(case if case.gradients else derived(graphs, case) for case in graphs.cases),
    )


def in_other_forms(graphs: FunctionGraphs) -> tuple[FunctionGraphs, Steps]:
    """The Function in the forms of ``passes.stable`` and ``passes.quotients``, and what was put."""
    ops = {node.op for case in graphs.cases for node in case.graph.nodes}
    if ops.isdisjoint(CAUSES) and not (graphs.derived and "div" in ops):
        return graphs, Steps()
    from symgrad.proof.judge.same import is_same

    forms = Forms(is_same)
    late: dict[Node, Node] = {}
    found = restated(graphs, forms, lambda case: Quotients(case.outputs, is_same, late))
    steps = Steps(forms.steps, late)
    return (found, steps) if steps.pairs else (graphs, Steps())


def preferred(hand: OpPlan, prefer: str) -> OpPlan:
    """The plan with the backward that is preferred; both are proved equal."""
    if prefer == "hand" or hand.traced.derived:
        return hand
    names = [
        one.input for case in hand.traced.cases for one in case.gradients if one.node is not None
    ]
    bare = replace(
        hand.traced, derived=True, differentiable=tuple(dict.fromkeys(names)),
        cases=tuple(replace(case, gradients=(), saved=()) for case in hand.traced.cases),
    )  # fmt: skip
    found = plan(bare, name=hand.name)
    if prefer == "auto" and _price(found) >= _price(hand):
        return hand
    return replace(found, judged=hand.traced)


def _price(planned: OpPlan) -> float:
    """What forward and the backward of all gradients cost."""
    kernels = [one for case in planned.cases for one in (case.forward, *case.backward[:1])]
    return sum(price(kernel.graph) for kernel in kernels if kernel is not None)


def plan(
    graphs: FunctionGraphs, *, pruned: bool = True, name: str = "", steady: bool = True
) -> OpPlan:  # fmt: skip
    """Split each case into its kernels.

    A case in which backward fails gets no kernels, so that calls with its sizes are refused.  Where
    every case fails, the error of backward is raised.  ``pruned=False``: one backward kernel of all
    gradients, and none of only some.  ``name``: the op's name, by default after the Function.
    ``steady``: in stable forms.
    """
    graphs = with_backward(graphs)
    for case in graphs.cases:
        if drawn := next((node for node in case.graph.nodes if node.op == "draw"), None):
            raise UnsupportedOpError(
                f"{graphs.name} draws random numbers, for which there are no kernels",
                location=drawn.location, hint="draw outside, and pass the draw as an input",
            )  # fmt: skip
        if stored := next((node for node in case.graph.nodes if node.dtype in NARROW), None):
            raise UnsupportedOpError(
                f"{graphs.name} stores values as {stored.dtype}, for which there are no kernels",
                location=stored.location,
            )
        if raised := case.raises:
            raise ControlFlowError(
                f"a kernel cannot raise for the values of a tensor: {raised.what}",
                location=raised.location, hint="look at the values before the call of the op",
            )  # fmt: skip
    traced = replace(graphs, cases=_named_alike(graphs, _usable(graphs.cases)))
    graphs, steps = in_other_forms(traced) if steady else (traced, Steps())
    joints = [joint_of(graphs, case) for case in graphs.cases]
    differentiable = tuple(
        any(joint.gradients[position] is not None for joint in joints)
        or (graphs.derived and name in graphs.differentiable)
        for position, name in enumerate(graphs.input_names)
    )
    name = name or op_name(graphs.name)
    wanted = masks(differentiable)[: None if pruned else 1]
    passed = {one.name: one.number for one in graphs.values if one.number}
    cases = tuple(
        _plan_case(
            name,
            mark_of(number) if len(joints) > 1 else "",
            case,
            joint,
            wanted,
            passed,
            derived=graphs.derived,
        )
        for number, (case, joint) in enumerate(zip(graphs.cases, joints, strict=True))
    )
    return OpPlan(name, graphs, differentiable, cases, traced, steps)


def masks(differentiable: tuple[bool, ...]) -> list[tuple[bool, ...]]:
    """The sets of wanted gradients that get a kernel of their own, all of them first."""
    count = sum(differentiable)
    if not count:
        return []
    options = [(True, False) if possible else (False,) for possible in differentiable]
    if count <= ALL_MASKS_UP_TO:
        return [mask for mask in product(*options) if any(mask)]
    single = (
        tuple(position == wanted for position in range(len(differentiable)))
        for wanted, possible in enumerate(differentiable)
        if possible
    )
    return [differentiable, *single]


# -- planning


def _usable(cases: tuple[FunctionCase, ...]) -> tuple[FunctionCase, ...]:
    """The cases whose backward gave gradients of usable shapes; all of them where none did."""
    usable = tuple(
        case
        for case in cases
        if case.problem is None and all(found.problem is None for found in case.gradients)
    )
    return usable or cases


def _named_alike(
    graphs: FunctionGraphs, cases: tuple[FunctionCase, ...]
) -> tuple[FunctionCase, ...]:
    """The cases with one name for each output.

    An output keeps its name where all cases agree on it.  Raises CodegenError where the number of
    outputs depends on sizes.
    """
    if len({len(case.outputs) for case in cases}) > 1:
        told = "; ".join(
            f"{len(case.outputs)} for {' and '.join(map(str, case.conditions))}" for case in cases
        )
        raise CodegenError(
            f"the number of outputs of {graphs.name} depends on sizes: {told}",
            location=graphs.location,
            hint="compile it for sizes at which it is the same, with numbers in the shape specs",
        )
    names: list[str] = []
    for position, found in enumerate(zip(*(case.output_names for case in cases), strict=True)):
        wanted = found[0]
        if len(set(found)) > 1:
            wanted = "output" if len(cases[0].outputs) == 1 else f"output_{position}"
        names.append(fresh_name(wanted, {*graphs.input_names, *names}))
    return tuple(replace(case, output_names=tuple(names)) for case in cases)


def joint_of(graphs: FunctionGraphs, case: FunctionCase) -> Joint:
    """The case with one gradient an input, and with what its forward saves."""
    if case.problem is not None:
        raise case.problem
    if case.updated:
        raise UnsupportedOpError(
            f"forward of {graphs.name} writes into {', '.join(case.updated)}: kernels do not",
            location=graphs.location, hint="return the new values as outputs",
        )  # fmt: skip
    if case.selected:
        raise UnsupportedOpError(
            f"{graphs.name} returns as many elements as a mask selects: kernels do not",
            location=graphs.location, hint="return the whole tensor with sg.where(mask, x, 0)",
        )  # fmt: skip
    inputs = case.tensors
    gradients: list[Node | None] = [None] * len(inputs)
    for returned in case.gradients:
        if returned.problem is not None:
            raise returned.problem
        gradients[graphs.input_names.index(returned.input)] = returned.node
    joint = Joint(
        inputs, case.outputs, case.output_names, case.cotangents, tuple(gradients), case.saved,
        numbers=case.numbers,
    )  # fmt: skip
    if graphs.derived:
        return replace(joint, saved=choose_saved(joint))
    return replace(joint, saved=(*joint.saved, *saved_to_compare(joint)))


def _plan_case(
    name: str, mark: str, case: FunctionCase, joint: Joint, wanted: list[tuple[bool, ...]],
    passed: Mapping[str, str], *, derived: bool,
) -> CasePlan:  # fmt: skip
    """``passed``: the dtypes of the plain numbers that calls pass."""
    parts = split(joint, wanted)
    known = {str(node.name): passed[str(node.name)] for node in joint.numbers}

    def kernel(
        suffix: str, graph: Graph, *, pruned: bool = False, derived: bool = False
    ) -> KernelPlan:  # fmt: skip
        numbers = tuple((one, known[one]) for one in graph.inputs if one in known)
        return KernelPlan(f"{name}_{suffix}", turned(simplify(graph)), pruned, numbers, derived)

    forward = kernel(f"forward{mark}", parts.forward)
    backward = partial(kernel, derived=derived)
    extra = any(residual.source == "kernel" for residual in parts.residuals)
    inference = kernel(f"inference{mark}", parts.inference) if extra else forward
    return CasePlan(case, parts, inference, forward, tuple(_backwards(mark, parts, backward)))


def _backwards(
    mark: str, parts: Split, kernel: Callable[..., KernelPlan]
) -> Iterator[KernelPlan | None]:
    for number, one in enumerate(parts.backward):
        if not one.gradients:
            yield None
            continue
        bits = "".join("1" if wanted else "0" for wanted in one.mask)
        suffix = f"_{bits}" if number else ""
        yield kernel(f"backward{mark}{suffix}", one.graph, pruned=number > 0)
