"""The kernels of an op as texts: C, header, and what the Python wrapper is written from.

In: an ``OpPlan``.  ``op_record`` makes of it the record of calls that wrappers are written from;
``emit`` the texts of the op's files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symgrad import abi
from symgrad.codegen.calls import SizeNames, known_conditions, size_bindings
from symgrad.codegen.emit.file import PRELUDE, FileDoc, emit_file, included, prelude
from symgrad.codegen.emit.kernel import EmittedKernel, KernelDoc, described, emit_kernel
from symgrad.codegen.fallback import render_fallback
from symgrad.codegen.wrapper import render_wrapper, wrapper_view
from symgrad.errors import CodegenError
from symgrad.ir.formula import formulas
from symgrad.ir.graph import Graph
from symgrad.kernels import CasePlan, KernelPlan, OpPlan, mark_of
from symgrad.passes.split import ResidualNode

KernelOf = Callable[[str], abi.Kernel]


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
        includes=(PRELUDE,) if files else (),
        blas=blas,
        values=tuple(
            abi.Value(
                one.name, one.text, place=one.place, exact=one.exact, number=one.number,
                condition=one.condition,
            )
            for one in op.graphs.values
        ),
    )  # fmt: skip


# -- records


def _case_record(op: OpPlan, case: CasePlan, kernel_of: KernelOf) -> abi.Case:
    found, sizes = case.case, SizeNames(op.sizes)
    inputs, outputs = (
        tuple(map(sizes.array, names, nodes, [()] * len(nodes), batches))
        for names, nodes, batches in zip(
            (op.graphs.input_names, found.output_names), (found.tensors, found.outputs),
            case.batches, strict=True,
        )
    )  # fmt: skip
    inference, forward = kernel_of(case.inference.name), kernel_of(case.forward.name)
    backward = tuple(_backward_records(op, case, kernel_of))
    kernels = (inference, forward, *(one.kernel for one in backward))
    needed = {size for kernel in kernels for size in kernel.sizes}
    shapes = [node.shape for node in found.tensors]
    bindings = size_bindings(op.name, shapes, needed, sizes)
    conditions = map(sizes.condition, (*found.conditions, *found.requires))
    own = {"input": inputs, "output": outputs}
    numbers = {one.name: one.number for one in op.graphs.values if one.number}
    return abi.Case(
        inputs=inputs,
        outputs=outputs,
        bindings=bindings,
        residuals=tuple(_residual(one, own, sizes, numbers) for one in case.parts.residuals),
        inference=inference,
        forward=forward,
        backward=backward,
        conditions=known_conditions(op.name, conditions, {one.size for one in bindings}),
        apart=found.any_rank.apart if found.any_rank else (),
        where=found.where,
    )


def _residual(
    one: ResidualNode, own: Mapping[str, Sequence[abi.Array]], sizes: SizeNames,
    numbers: Mapping[str, str],
) -> abi.Residual:  # fmt: skip
    """The record of what backward is given; ``numbers``: the dtypes of those that calls pass."""
    if one.source == "number":
        array = abi.Array(one.name, numbers[one.name], (), by_value=True)
        return abi.Residual(array, "number", position=list(numbers).index(one.name))
    if one.source in own:
        array = replace(own[one.source][one.position], name=one.name)
    else:
        array = sizes.array(one.name, one.node)
    return abi.Residual(array, one.source, position=one.position)


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
class Notes:
    """What is known of the texts.

    ``source`` is said under the proof on the top of each file, ``wrapper`` in the wrapper,
    ``kernels`` above a kernel, by its name.
    """

    source: str = ""
    wrapper: str = ""
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class EmittedOp:
    """The texts of one op.  ``texts``: C files and headers by file name."""

    op: abi.Op
    texts: dict[str, str]
    summary: tuple[str, ...]

    def unit(self, file: str) -> str:
        """A C file with the header that it includes in it."""
        return included(self.texts[file], self.texts[PRELUDE])

    def wrapper(self, runtime: str = "symgrad.runtime") -> str:
        """The Python wrapper; ``runtime``: the package that it imports what it calls from."""
        return render_wrapper(wrapper_view(self.op, runtime=runtime, summary=self.summary))


def emit(
    plan: OpPlan, proof: str, *, name: str | None = None, notes: Notes | None = None
) -> EmittedOp:
    """Emit every kernel of an op.

    Forwards and the backward of all gradients go to ``<name>.c``, pruned backwards to
    ``<name>_pruned.c``.  ``proof``: the line that says what was proved.
    """
    stem, said = name or plan.name, notes or Notes()
    sizes = SizeNames(plan.sizes)
    emitted = {kernel.name: _emitted(kernel, proof, said, sizes) for kernel in plan.kernels}
    main = [emitted[kernel.name] for kernel in plan.kernels if not kernel.pruned]
    pruned = [emitted[kernel.name] for kernel in plan.kernels if kernel.pruned]
    title = f"{plan.graphs.name}, written by symgrad."
    summary = tuple(filter(None, (title, proof, said.source)))
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
    return EmittedOp(
        op,
        {**texts, header: whole.header, PRELUDE: prelude()},
        tuple(filter(None, (proof, said.wrapper))),
    )


def fallback(plan: OpPlan, runtime: str) -> str | None:
    """The programs for NumPy of an op; None where NumPy lacks one of its operations."""
    kernels = {kernel.name: kernel.graph for kernel in plan.kernels}
    return render_fallback(plan.graphs.name, runtime, kernels, SizeNames(plan.sizes))


def _source(kernels: Sequence[EmittedKernel], stem: str, lines: tuple[str, ...]) -> str:
    return emit_file(kernels, FileDoc(stem, lines)).source


def _contract(plan: OpPlan) -> Iterator[str]:
    """What holds for every kernel of an op, for the top of its header."""
    if plan.sizes:
        sizes = ", ".join(plan.sizes)
        yield f"Each kernel takes the sizes that it needs first, in this order: {sizes}."
    for value in plan.graphs.values:
        if value.number:
            whole = value.number == "int64"
            kind = "an integer (int64_t)" if whole else "a number (double)"
            yield (
                f"{value.name} is {kind}, rounded to the precision of what it meets; "
                f"{f'{value.text} by default' if value.text else 'each call gives it'}"
                f"{value.condition and f', {value.condition}'}."
            )
    for name, size in _batches(plan).items():
        yield f"*{name} is any number of axes, taken as one: {size} is the number of all elements."
    yield from _RULES
    for number, one in enumerate(plan.cases if len(plan.cases) > 1 else ()):
        inputs = ", ".join(map(described, plan.graphs.input_names, one.inputs, one.batches[0]))
        conditions = " and ".join(map(str, (*one.case.where, *one.case.conditions)))
        yield f"{mark_of(number)}: for {inputs}{', where ' if conditions else ''}{conditions}."
    if any(kernel.pruned for kernel in plan.kernels):
        digits = ", ".join(plan.graphs.input_names)
        yield f"Digits at the end, one for each of {digits}: 1 where its gradient is an output."


def _batches(plan: OpPlan) -> dict[str, str]:
    """The size that stands for each group of batch axes."""
    return {
        batch.name: str(node.shape[batch.axis + batch.number - 1])
        for one in plan.cases
        for node, batch in zip(one.inputs, one.batches[0], strict=True)
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


def _emitted(kernel: KernelPlan, proof: str, said: Notes, sizes: SizeNames) -> EmittedKernel:
    title = kernel.name.replace("_", " ")
    lines = (proof if "backward" in kernel.name else "", *said.kernels.get(kernel.name, ()))
    doc = KernelDoc(title, formulas(kernel.graph), tuple(filter(None, lines)))
    numbers = dict(kernel.numbers)
    return emit_kernel(kernel.graph, kernel.name, doc, sizes, numbers, derived=kernel.derived)
