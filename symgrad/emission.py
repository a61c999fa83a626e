"""An op's plan -> the texts of its files: C, header, wrapper.

In: an ``OpPlan`` and what is known of its proof.  Out: ``EmittedOp``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from symgrad.abi import Op
from symgrad.codegen import EmittedKernel, FileDoc, KernelDoc, emit_file, emit_kernel
from symgrad.codegen.calls import SizeNames
from symgrad.codegen.emit.kernel import described
from symgrad.codegen.wrapper.view import render_wrapper, wrapper_view
from symgrad.ir.formula import formulas
from symgrad.kernels import KernelPlan, OpPlan, mark_of, op_record


@dataclass(frozen=True)
class EmittedOp:
    """The texts of one op.  ``texts``: C files and header by file name."""

    op: Op
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
    emitted = {kernel.name: _emit(kernel, proof, sizes) for kernel in plan.kernels}
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


def _emit(kernel: KernelPlan, proof: str, sizes: SizeNames) -> EmittedKernel:
    title = kernel.name.replace("_", " ")
    line = proof if "backward" in kernel.name else ""
    doc = KernelDoc(title, formulas(kernel.graph), line)
    return emit_kernel(kernel.graph, kernel.name, doc, sizes)
