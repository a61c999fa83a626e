"""A traced Function -> its kernels: their graphs, what a call looks like, C, header, wrapper.

In: ``FunctionGraphs``.  ``plan`` makes an ``OpPlan``: named graphs, one a kernel.  ``op_record``
makes of it the record that wrappers are written from; ``emit`` the texts of the op's files.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from symgrad import abi
from symgrad.autodiff import vjp
from symgrad.budgets import ALL_MASKS_UP_TO
from symgrad.codegen import EmittedKernel, FileDoc, KernelDoc, emit_file, emit_kernel
from symgrad.codegen.calls import SizeNames, known_conditions, size_bindings
from symgrad.codegen.emit.kernel import described
from symgrad.codegen.names import identifier
from symgrad.codegen.wrapper import render_wrapper, wrapper_view
from symgrad.errors import CodegenError
from symgrad.ir.formula import formulas
from symgrad.ir.function import BatchAxes, FunctionCase, FunctionGraphs, Gradient
from symgrad.ir.graph import Graph, Node
from symgrad.ir.printer import fresh_name
from symgrad.passes.save import choose_saved, saved_to_compare
from symgrad.passes.simplify import simplify
from symgrad.passes.split import Joint, Split, split

KernelOf = Callable[[str], abi.Kernel]


@dataclass(frozen=True)
class KernelPlan:
    """The graph of one kernel.  ``pruned``: a backward of only some of the gradients."""

    name: str
    graph: Graph
    pruned: bool = False


@dataclass(frozen=True)
class CasePlan:
    """One case of an op; kernels are referred to by name."""

    case: FunctionCase
    parts: Split
    inference: KernelPlan
    forward: KernelPlan
    backward: tuple[KernelPlan | None, ...]

    @property
    def batches(self) -> tuple[Sequence[BatchAxes | None], Sequence[BatchAxes | None]]:
        """The axes of each input, and of each output, that stand for any number of axes."""
        any_rank = self.case.any_rank
        if any_rank is not None:
            return any_rank.inputs, any_rank.outputs
        return [None] * len(self.case.inputs), [None] * len(self.case.outputs)


@dataclass(frozen=True)
class OpPlan:
    """One op: all of its cases."""

    name: str
    graphs: FunctionGraphs
    differentiable: tuple[bool, ...]
    cases: tuple[CasePlan, ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        """Every size, in the order in which each kernel takes those that it needs."""
        inputs = (node for case in self.cases for node in case.case.inputs)
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
    return replace(graphs, cases=tuple(_with_derived(graphs, case) for case in graphs.cases))


def plan(graphs: FunctionGraphs, *, pruned: bool = True, name: str = "") -> OpPlan:
    """Split each case into its kernels.

    A case in which backward fails gets no kernels, so that calls with its sizes are refused.  Where
    every case fails, the error of backward is raised.  ``pruned=False``: one backward kernel of all
    gradients, and none of only some.  ``name``: the op's name, by default after the Function.
    """
    graphs = with_backward(graphs)
    graphs = replace(graphs, cases=_named_alike(graphs, _usable(graphs.cases)))
    joints = [joint_of(graphs, case) for case in graphs.cases]
    differentiable = tuple(
        any(joint.gradients[position] is not None for joint in joints)
        or (graphs.derived and name in graphs.differentiable)
        for position, name in enumerate(graphs.input_names)
    )
    name = name or op_name(graphs.name)
    wanted = masks(differentiable)[: None if pruned else 1]
    cases = tuple(
        _plan_case(name, number, len(joints), case, joint, wanted)
        for number, (case, joint) in enumerate(zip(graphs.cases, joints, strict=True))
    )
    return OpPlan(name, graphs, differentiable, cases)


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


def op_record(
    op: OpPlan, kernel_of: KernelOf, *, name: str = "", files: Sequence[str] = (), header: str,
    blas: bool = False,
) -> abi.Op:  # fmt: skip
    """The record of calls of the op.  ``kernel_of``: the record of a kernel by its name."""
    return abi.Op(
        name=name or op.name,
        differentiable=op.differentiable,
        cases=tuple(_case_record(op, case, kernel_of) for case in op.cases),
        files=tuple(files),
        header=header,
        blas=blas,
        values=tuple(
            abi.Value(one.name, one.text, place=one.place, exact=one.exact)
            for one in op.graphs.values
        ),
    )


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


def _with_derived(graphs: FunctionGraphs, case: FunctionCase) -> FunctionCase:
    if case.gradients:
        return case
    wanted = [case.inputs[graphs.input_names.index(name)] for name in graphs.differentiable]
    found = vjp(case.outputs, case.cotangents, wanted)
    pairs = zip(graphs.differentiable, found, strict=True)
    return replace(case, gradients=tuple(Gradient(name, node, node) for name, node in pairs))


def joint_of(graphs: FunctionGraphs, case: FunctionCase) -> Joint:
    """The case with one gradient an input, and with what its forward saves."""
    if case.problem is not None:
        raise case.problem
    gradients: list[Node | None] = [None] * len(case.inputs)
    for returned in case.gradients:
        if returned.problem is not None:
            raise returned.problem
        gradients[graphs.input_names.index(returned.input)] = returned.node
    joint = Joint(
        case.inputs, case.outputs, case.output_names, case.cotangents, tuple(gradients), case.saved
    )
    if graphs.derived:
        return replace(joint, saved=choose_saved(joint))
    return replace(joint, saved=(*joint.saved, *saved_to_compare(joint)))


def _plan_case(
    name: str, number: int, count: int, case: FunctionCase, joint: Joint,
    wanted: list[tuple[bool, ...]],
) -> CasePlan:  # fmt: skip
    parts = split(joint, wanted)
    mark = mark_of(number) if count > 1 else ""
    forward = KernelPlan(f"{name}_forward{mark}", simplify(parts.forward))
    extra = any(residual.source == "kernel" for residual in parts.residuals)
    inference = (
        KernelPlan(f"{name}_inference{mark}", simplify(parts.inference)) if extra else forward
    )  # fmt: skip
    return CasePlan(case, parts, inference, forward, tuple(_backwards(name, mark, parts)))


def _backwards(name: str, mark: str, parts: Split) -> Iterator[KernelPlan | None]:
    for number, one in enumerate(parts.backward):
        if not one.gradients:
            yield None
            continue
        bits = "".join("1" if wanted else "0" for wanted in one.mask)
        suffix = f"_{bits}" if number else ""
        yield KernelPlan(f"{name}_backward{mark}{suffix}", simplify(one.graph), pruned=number > 0)


# -- records


def _case_record(op: OpPlan, case: CasePlan, kernel_of: KernelOf) -> abi.Case:
    found, sizes = case.case, SizeNames(op.sizes)
    inputs, outputs = (
        tuple(map(sizes.array, names, nodes, [()] * len(nodes), batches))
        for names, nodes, batches in zip(
            (op.graphs.input_names, found.output_names), (found.inputs, found.outputs),
            case.batches, strict=True,
        )
    )  # fmt: skip
    inference, forward = kernel_of(case.inference.name), kernel_of(case.forward.name)
    backward = tuple(_backward_records(op, case, kernel_of))
    kernels = (inference, forward, *(one.kernel for one in backward))
    needed = {size for kernel in kernels for size in kernel.sizes}
    shapes = [node.shape for node in found.inputs]
    bindings = size_bindings(op.name, shapes, needed, sizes)
    conditions = map(sizes.condition, (*found.conditions, *found.requires))
    own = {"input": inputs, "output": outputs}
    return abi.Case(
        inputs=inputs,
        outputs=outputs,
        bindings=bindings,
        residuals=tuple(
            abi.Residual(
                replace(own[one.source][one.position], name=one.name)
                if one.source in own
                else sizes.array(one.name, one.node),
                one.source,
                position=one.position,
            )
            for one in case.parts.residuals
        ),
        inference=inference,
        forward=forward,
        backward=backward,
        conditions=known_conditions(op.name, conditions, {one.size for one in bindings}),
        apart=found.any_rank.apart if found.any_rank else (),
    )


def _backward_records(
    op: OpPlan, case: CasePlan, kernel_of: KernelOf
) -> Iterator[abi.Backward]:  # fmt: skip
    for one, kernel in zip(case.parts.backward, case.backward, strict=True):
        zeros = tuple(
            position
            for position, wanted in enumerate(one.mask)
            if wanted and position not in one.gradients
        )
        if kernel is None:
            record = abi.Kernel(f"{op.name}_backward_nothing", sizes=(), inputs=(), outputs=())
        else:
            record = kernel_of(kernel.name)
            _check_order(record, one.graph)
        yield abi.Backward(
            mask=one.mask,
            kernel=record,
            residuals=one.residuals if kernel else (),
            cotangents=one.cotangents if kernel else (),
            zeros=zeros,
        )


def _check_order(record: abi.Kernel, graph: Graph) -> None:
    names = tuple(array.name for array in record.inputs)
    if names != tuple(graph.inputs):
        raise CodegenError(f"{record.name} takes {names}, its graph {tuple(graph.inputs)}")


# -- files


@dataclass(frozen=True)
class EmittedOp:
    """The texts of one op.  ``texts``: C files and header by file name."""

    op: abi.Op
    texts: dict[str, str]
    summary: tuple[str, ...]

    def wrapper(self, runtime: str = "symgrad.runtime") -> str:
        """The Python wrapper; ``runtime``: the package that it imports what it calls from."""
        return render_wrapper(wrapper_view(self.op, runtime=runtime, summary=self.summary))


def emit(plan: OpPlan, proof: str, *, name: str | None = None) -> EmittedOp:
    """Emit every kernel of an op.

    Forwards and the backward of all gradients go to ``<name>.c``, pruned backwards to
    ``<name>_pruned.c``.  ``proof``: the line that says what was proved.
    """
    stem = name or plan.name
    sizes = SizeNames(plan.sizes)
    emitted = {kernel.name: _emitted(kernel, proof, sizes) for kernel in plan.kernels}
    main = [emitted[kernel.name] for kernel in plan.kernels if not kernel.pruned]
    pruned = [emitted[kernel.name] for kernel in plan.kernels if kernel.pruned]
    summary = (f"{plan.graphs.name}, written by symgrad.", proof)
    texts = {f"{stem}.c": _source(main, stem, summary)}
    if pruned:
        only = "Backwards of some of the gradients only; the name tells which inputs'."
        texts[f"{stem}_pruned.c"] = _source(pruned, stem, (*summary, only))
    header = f"{stem}.h"
    whole = emit_file([*main, *pruned], FileDoc(stem, (*summary, *_contract(plan))))
    op = op_record(
        plan, lambda name: emitted[name].record, name=stem, files=tuple(texts), header=header,
        blas=whole.needs_blas,
    )  # fmt: skip
    return EmittedOp(op, {**texts, header: whole.header}, (proof,))


def _source(kernels: Sequence[EmittedKernel], stem: str, lines: tuple[str, ...]) -> str:
    return emit_file(kernels, FileDoc(stem, lines)).source


def _contract(plan: OpPlan) -> Iterator[str]:
    """What holds for every kernel of an op, for the top of its header."""
    if plan.sizes:
        sizes = ", ".join(plan.sizes)
        yield f"Each kernel takes the sizes that it needs first, in this order: {sizes}."
    for name, size in _batches(plan).items():
        yield f"*{name} is any number of axes, taken as one: {size} is the number of all elements."
    yield from _RULES
    for number, one in enumerate(plan.cases if len(plan.cases) > 1 else ()):
        inputs = ", ".join(map(described, plan.graphs.input_names, one.case.inputs, one.batches[0]))
        conditions = " and ".join(map(str, one.case.conditions))
        yield f"{mark_of(number)}: for {inputs}{', where ' if conditions else ''}{conditions}."
    if any(kernel.pruned for kernel in plan.kernels):
        digits = ", ".join(plan.graphs.input_names)
        yield f"Digits at the end, one for each of {digits}: 1 where its gradient is an output."


def _batches(plan: OpPlan) -> dict[str, str]:
    """The size that stands for each group of batch axes."""
    return {
        batch.name: str(node.shape[batch.axis + batch.number - 1])
        for one in plan.cases
        for node, batch in zip(one.case.inputs, one.batches[0], strict=True)
        if batch is not None
    }


_RULES = (
    "Arrays are C-contiguous, but for the inputs with strides behind them: x_s0 counts elements"
    " from one index of axis 0 to the next. No output overlaps any other array.",
    "The workspace begins at a multiple of 64 bytes and has the number of bytes that"
    " <kernel>_workspace returns for the same sizes; it may be NULL for 0. Its content means"
    " nothing before and after the call.",
    "A kernel returns 0 once its outputs are written, or else a number that is explained above it;"
    " then they may hold anything. It keeps no state and allocates nothing.",
)


def _emitted(kernel: KernelPlan, proof: str, sizes: SizeNames) -> EmittedKernel:
    title = kernel.name.replace("_", " ")
    line = proof if "backward" in kernel.name else ""
    doc = KernelDoc(title, formulas(kernel.graph), line)
    return emit_kernel(kernel.graph, kernel.name, doc, sizes)
