"""The Python wrapper of an op: what its template is shown, and the text.

In: the ``OpSignature`` of each case and the names of the C files.  Out: one frozen view of strings
and tuples, and the text rendered from it.

The wrapper is straight-line code for the ordinary call: it checks types and shapes, takes pointers
and calls the kernel.  Everything else it leaves to ``symgrad.runtime.support``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from symgrad.codegen.environment import environment
from symgrad.codegen.names import literal_text
from symgrad.codegen.wrapper.literals import SizeBinding, op_literal, size_bindings, string_literal
from symgrad.codegen.wrapper.safe_names import (
    safe_name,
    size_names,
    with_readable_sizes,
    with_safe_sizes,
)
from symgrad.errors import CodegenError
from symgrad.ir.abi import (
    ArrayArgument,
    BackwardSignature,
    BatchAxes,
    KernelSignature,
    OpSignature,
)
from symgrad.ir.dim import product
from symgrad.plain import PlainArgument


@dataclass(frozen=True)
class ArrayView:
    """An array in straight-line code: a local name, the name of its pointer ("" for none)."""

    name: str
    pointer: str
    dtype: str
    shape: str
    axes: str = ""


@dataclass(frozen=True)
class CallView:
    """A kernel's call: ``outputs`` are the op's own arrays, ``extras`` are always fresh."""

    kernel: str
    arguments: str
    reads: tuple[ArrayView, ...]
    outputs: tuple[ArrayView, ...]
    extras: tuple[ArrayView, ...]
    out_targets: str
    result: str


@dataclass(frozen=True)
class BackwardView:
    """One backward: ``targets`` takes the residuals apart.

    ``together``: assignments of the sizes that stand for batch axes.  ``arrays``: the residuals
    and cotangents that it reads; ``ignored`` cotangents are unused.
    """

    name: str
    mask: str
    full: bool
    targets: str
    together: tuple[str, ...]
    arrays: tuple[ArrayView, ...]
    ignored: tuple[ArrayView, ...]
    zeros: tuple[ArrayView, ...]
    call: CallView | None
    result: str


@dataclass(frozen=True)
class CaseView:
    """One case: how its sizes are read (``solved``), what must hold (``differs`` must not).

    ``conditions``: what must hold of the sizes themselves.
    """

    residuals_class: str
    residual_fields: str
    residual_names: str
    inputs: tuple[ArrayView, ...]
    solved: tuple[str, ...]
    differs: tuple[str, ...]
    conditions: tuple[str, ...]
    backwards: tuple[BackwardView, ...]


@dataclass(frozen=True)
class FunctionView:
    """``inference`` or ``forward``: the same but for the kernel and what is returned.

    ``keeps``: what is to be said of the arrays that are kept.
    """

    name: str
    annotation: str
    promise: str
    keeps: str
    calls: tuple[tuple[CaseView, CallView], ...]


@dataclass(frozen=True)
class ValueView:
    """A plain argument: the name of the parameter, its own name as a literal, the value's text."""

    local: str
    name: str
    text: str


@dataclass(frozen=True)
class WrapperView:
    """All that ``wrapper.py.j2`` is shown."""

    name: str
    summary: tuple[str, ...]
    runtime: str
    op_literal: str
    parameters: str
    keywords: str
    arguments: str
    values: tuple[ValueView, ...]
    cotangents: tuple[str, ...]
    cotangent_arguments: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dtypes: tuple[tuple[str, str], ...]
    kernels: tuple[str, ...]
    residuals_classes: str
    cases: tuple[CaseView, ...]
    functions: tuple[FunctionView, ...]


@dataclass(frozen=True)
class PackageView:
    """All that ``package.py.j2`` is shown: the modules, and every public name."""

    names: tuple[str, ...]
    exported: tuple[str, ...]


# -- one case of an op as straight-line Python


# More masks than these are left to the careful path: the text must stay readable.
MOST_MASKS = 8


def arrays_of(signature: OpSignature) -> Iterable[ArrayArgument]:
    """Inputs, outputs, residuals."""
    yield from (*signature.inputs, *signature.outputs)
    yield from (residual.array for residual in signature.residuals)


def kernels_of(signature: OpSignature) -> Iterable[KernelSignature]:
    """Every kernel that is called."""
    yield from (signature.inference, signature.forward)
    yield from (one.kernel for one in signature.backward if one.kernel.outputs)


def tuple_text(parts: Iterable[str]) -> str:
    """``(a,)``, ``(a, b)``: a tuple's text."""
    found = list(parts)
    return f"({found[0]},)" if len(found) == 1 else f"({', '.join(found)})"


def _targets(parts: Iterable[str]) -> str:
    """``a,``, ``a, b``, ``()``: what stands left of ``=`` to take a tuple apart."""
    return tuple_text(parts)[1:-1] or "()"


def _axes_of(batch: BatchAxes) -> str:
    """The local that holds the axes of a group of batch axes."""
    return f"_axes_{batch.name}"


def _shape(array: ArrayArgument) -> str:
    words = list(map(str, array.shape))
    if array.batch is not None:
        _, axis, count = array.batch
        words[axis : axis + count] = [f"*{_axes_of(array.batch)}"]
    return tuple_text(words)


def described(array: ArrayArgument) -> str:
    """Its dtype and shape, as in a shape specification."""
    return f"{array.dtype}[{', '.join(array.words)}]"


class Names:
    """Local names: those of the signatures, unless Python or the wrapper needs them."""

    def __init__(self, signatures: Sequence[OpSignature]) -> None:
        self._taken: set[str] = set().union(*map(size_names, signatures))
        self._given: dict[tuple[str, str], str] = {}
        for one in signatures:
            for array in arrays_of(one):
                self.of(array.name)

    def of(self, wanted: str, kind: str = "array") -> str:
        """The local name for ``wanted`` as an array, cotangent or gradient; always the same."""
        key = (kind, wanted)
        if key not in self._given:
            self._given[key] = safe_name(wanted, self._taken)
            self._taken.add(self._given[key])
        return self._given[key]


class CaseMaker:
    """Makes the view of one case.

    ``signature`` has sizes that can be local names, ``table`` the same ones as users call them.
    ``cotangents``: the local name of each output's, the same in all cases.
    """

    def __init__(
        self, names: Names, position: int, signature: OpSignature, table: OpSignature,
        cotangents: Sequence[str],
    ) -> None:  # fmt: skip
        self.names = names
        self.position = position
        self.signature = signature
        self.table = table
        self.cotangents = cotangents
        self.sizes = size_bindings(signature)
        batches = (array.batch for array in signature.inputs if array.batch is not None)
        self.batches = {batch.name: batch for batch in batches}

    @property
    def residuals_class(self) -> str:
        """The wrapper's name for what forward keeps."""
        return f"Residuals{self.position or ''}"

    def inference(self) -> CallView:
        """The call that computes the outputs alone."""
        return self._forward_call(self.signature.inference, self._result())

    def forward(self) -> CallView:
        """The call that also computes what is kept."""
        kept = [self._kept(index) for index in range(len(self.signature.residuals))]
        axes = (f"tuple({_axes_of(batch)})" for batch in self.batches.values())
        everything = tuple_text((*kept, *self._kept_sizes(self.sizes), *axes))
        result = f"{self._result()}, {self.residuals_class}({everything})"
        return self._forward_call(self.signature.forward, result)

    def _kept_sizes(self, bindings: Iterable[SizeBinding]) -> list[str]:
        """The sizes that are kept for backward: those of batch axes follow from the axes."""
        return [one.size for one in bindings if self._batch_at(one.input, one.axis) is None]

    def _batch_at(self, index: int, axis: int) -> BatchAxes | None:
        """The batch axes that an axis of an input belongs to."""
        batch = self.signature.inputs[index].batch
        inside = batch is not None and batch.axis <= axis < batch.axis + batch.number
        return batch if inside else None

    def _result(self) -> str:
        names = [self.names.of(array.name) for array in self.signature.outputs]
        return names[0] if len(names) == 1 else tuple_text(names)

    def view(self) -> CaseView:
        """What the functions share."""
        signature = self.signature
        fields = [residual.array.name for residual in signature.residuals]
        sizes = self._kept_sizes(size_bindings(self.table))
        sizes += [f"*{name}" for name in self.batches]
        full = signature.differentiable
        ordered = sorted(signature.backward, key=lambda one: one.mask != full)[:MOST_MASKS]
        words = [
            f"{literal_text(r.array.name)} ({described(r.array)})" for r in self.table.residuals
        ]
        return CaseView(
            residuals_class=self.residuals_class,
            residual_fields=tuple_text(map(string_literal, (*fields, *sizes))),
            residual_names=", ".join(words) or "nothing but sizes",
            inputs=tuple(self._input(index) for index in range(len(signature.inputs))),
            solved=tuple(self._solved()),
            differs=tuple(self._differs()),
            conditions=signature.conditions,
            backwards=tuple(self._backward(one) for one in ordered),
        )

    def _view(self, array: ArrayArgument, name: str, pointer: bool = True) -> ArrayView:
        dtype = array.dtype.name.rstrip("_")
        return ArrayView(name, f"_p_{name}" if pointer else "", dtype, _shape(array))

    # -- sizes

    def _axis(self, index: int, axis: int) -> str:
        """The local that an axis of an input's shape goes to: the size's own where it is bare."""
        for binding in self.sizes:
            if (binding.input, binding.axis, binding.plain) == (index, axis, True):
                return binding.size
        return f"_{self.names.of(self.signature.inputs[index].name)}_{axis}"

    def _input(self, index: int) -> ArrayView:
        array = self.signature.inputs[index]
        view = self._view(array, self.names.of(array.name))
        axes = [self._axis(index, axis) for axis in range(len(array.shape))]
        if array.batch is not None:
            _, start, count = array.batch
            axes[start : start + count] = [f"*{self._axes(index, array.batch)}"]
        return ArrayView(view.name, view.pointer, view.dtype, view.shape, _targets(axes))

    def _axes(self, index: int, batch: BatchAxes) -> str:
        """The local that the batch axes of an input go to."""
        groups = [one.batch.name if one.batch else None for one in self.signature.inputs]
        return (
            _axes_of(batch) if groups.index(batch.name) == index else f"_axes{index}_{batch.name}"
        )

    def _together(self) -> Iterable[str]:
        """The sizes that stand for batch axes."""
        for index, array in enumerate(self.signature.inputs):
            if array.batch is not None and self._axes(index, array.batch) == _axes_of(array.batch):
                _, start, count = array.batch
                *ones, whole = map(str, array.shape[start : start + count])
                yield from (f"{one} = 1" for one in ones)
                yield f"{whole} = _prod({_axes_of(array.batch)})"

    def _solved(self) -> Iterable[str]:
        yield from self._together()
        for binding in self.sizes:
            if not binding.plain:
                extent = self._axis(binding.input, binding.axis)
                shifted = f"({extent} - {binding.offset})" if binding.offset else extent
                yield f"{binding.size} = {shifted} // {binding.factor}"

    def _differs(self) -> Iterable[str]:
        for binding in self.sizes:
            if binding.offset > 0:
                yield f"{binding.size} < 0"
        for batch in self.batches.values() if self.signature.apart else ():
            yield f"len({_axes_of(batch)}) in {self.signature.apart!r}"
        for index, array in enumerate(self.signature.inputs):
            if array.batch is not None and self._axes(index, array.batch) != _axes_of(array.batch):
                yield f"{self._axes(index, array.batch)} != {_axes_of(array.batch)}"
            for axis, dim in enumerate(array.shape):
                local = self._axis(index, axis)
                if local != str(dim) and self._batch_at(index, axis) is None:
                    yield f"{local} != {dim}"
        for condition in self.signature.conditions:
            yield f"not ({condition})"

    # -- calls

    def _arguments(
        self, kernel: KernelSignature, inputs: Iterable[str], outputs: Iterable[str]
    ) -> str:
        """What a kernel is called with, for contiguous arrays."""
        words = list(kernel.sizes)
        for array, pointer in zip(kernel.inputs, inputs, strict=True):
            words.append(pointer)
            words += [str(product(array.shape[axis + 1 :])) for axis in array.strides]
        words += outputs
        return ", ".join([*words, "_workspace.pointer", "_workspace.size"])

    def _forward_call(self, kernel: KernelSignature, result: str) -> CallView:
        inputs = {a.name: self._view(a, self.names.of(a.name)) for a in self.signature.inputs}
        own = {a.name: self._view(a, self.names.of(a.name)) for a in self.signature.outputs}
        extras = {
            r.array.name: self._view(r.array, self.names.of(r.array.name))
            for r in self.signature.residuals
            if r.source == "kernel" and r.array.name in {a.name for a in kernel.outputs}
        }
        written = {**own, **extras}
        try:
            reads = [inputs[array.name] for array in kernel.inputs]
            writes = [written[array.name].pointer for array in kernel.outputs]
        except KeyError as error:
            raise CodegenError(
                f"kernel {kernel.name} has an argument {error} the op lacks"
            ) from None
        return CallView(
            kernel=kernel.name,
            arguments=self._arguments(kernel, [view.pointer for view in reads], writes),
            reads=tuple(reads),
            outputs=tuple(own.values()),
            extras=tuple(extras.values()),
            out_targets=", ".join(view.name for view in own.values()),
            result=result,
        )

    def _kept(self, index: int) -> str:
        residual = self.signature.residuals[index]
        sources = {"input": self.signature.inputs, "output": self.signature.outputs}
        if residual.source in sources:
            return self.names.of(sources[residual.source][residual.position].name)
        return self.names.of(residual.array.name)

    # -- backward

    def _backward(self, backward: BackwardSignature) -> BackwardView:
        signature = self.signature
        locals_ = [self.names.of(residual.array.name) for residual in signature.residuals]
        needed = [one if i in backward.residuals else "_" for i, one in enumerate(locals_)]
        residuals = tuple(
            self._view(signature.residuals[index].array, locals_[index])
            for index in backward.residuals
        )
        cotangents, ignored = [], []
        for position, array in enumerate(signature.outputs):
            name = self.cotangents[position]
            if position in backward.cotangents:
                cotangents.append(self._view(array, name))
            elif array.dtype.is_float:
                ignored.append(self._view(array, name, pointer=False))
        gradients = {
            position: self._view(array, self.names.of(f"grad_{array.name}", "gradient"))
            for position, array in enumerate(signature.inputs)
            if backward.mask[position]
        }
        written = {p: v for p, v in gradients.items() if p not in backward.zeros}
        result = tuple_text(
            gradients[p].name if p in gradients else "None" for p in range(len(signature.inputs))
        )
        bits = "".join("1" if marked else "0" for marked in backward.mask)
        return BackwardView(
            name=f"_backward{self.position or ''}_{bits}",
            mask=repr(backward.mask),
            full=backward.mask == signature.differentiable,
            targets=_targets(
                (*needed, *self._kept_sizes(self.sizes), *map(_axes_of, self.batches.values()))
            ),
            together=tuple(self._together()),
            arrays=(*residuals, *cotangents),
            ignored=tuple(ignored),
            zeros=tuple(gradients[p] for p in backward.zeros),
            call=self._backward_call(backward, cotangents, residuals, written, result),
            result=result,
        )

    def _backward_call(
        self,
        backward: BackwardSignature,
        cotangents: Sequence[ArrayView],
        residuals: Sequence[ArrayView],
        written: dict[int, ArrayView],
        result: str,
    ) -> CallView | None:
        if not written:
            return None
        by_position = dict(zip(sorted(backward.cotangents), cotangents, strict=True))
        reads = [view.pointer for view in residuals]
        reads += [by_position[position].pointer for position in backward.cotangents]
        outs = (written[p].name if p in written else "_" for p in range(len(backward.mask)))
        return CallView(
            kernel=backward.kernel.name,
            arguments=self._arguments(
                backward.kernel, reads, [view.pointer for view in written.values()]
            ),
            reads=(),
            outputs=tuple(written.values()),
            extras=(),
            out_targets=_targets(outs),
            result=result,
        )


# -- the whole wrapper


_KEEPS = (
    "`backward` reads inputs and outputs themselves, not copies: do not write to them before it."
)


def wrapper_view(
    name: str,
    signatures: Sequence[OpSignature],
    *,
    files: Sequence[str],
    header: str,
    blas: bool = False,
    runtime: str = "symgrad.runtime",
    summary: Sequence[str] = (),
    values: Sequence[PlainArgument] = (),
) -> WrapperView:
    """The view of the op ``name`` whose cases are ``signatures``, tried in this order.

    ``files`` and ``header`` name its C; ``runtime`` is where the wrapper imports from
    (``"._runtime"`` in a generated package); ``summary`` are lines for its docstring; ``values``:
    the plain arguments that it is compiled for.
    Raises CodegenError where a size cannot be read off the shapes of the inputs.
    """
    tables = with_readable_sizes(signatures)
    signatures = with_safe_sizes(signatures)
    names = Names(signatures)
    cotangents = tuple(names.of(f"grad_{name}", "cotangent") for name in _common(tables, "outputs"))
    inputs = [names.of(name) for name in _common(tables, "inputs")]
    shown, behind, among = _values(names, len(inputs), values)
    makers = [
        CaseMaker(names, position, one, table, cotangents)
        for position, (one, table) in enumerate(zip(signatures, tables, strict=True))
    ]
    cases = tuple(maker.view() for maker in makers)
    dtypes = {a.dtype.name.rstrip("_"): a.dtype.c for one in signatures for a in arrays_of(one)}
    kernels = dict.fromkeys(k.name for one in signatures for k in kernels_of(one))
    return WrapperView(
        name=name,
        summary=tuple(map(literal_text, summary)),
        runtime=runtime,
        op_literal=op_literal(name, tables, files, header, blas, values),
        parameters=", ".join([*(f"{one}: _Array" for one in inputs), *behind]),
        keywords="".join(f"{one}, " for one in among),
        arguments=tuple_text(inputs),
        values=shown,
        cotangents=cotangents,
        cotangent_arguments=tuple_text(cotangents),
        inputs=_described(inputs, [one.inputs for one in tables]),
        outputs=_described(_common(tables, "outputs"), [one.outputs for one in tables]),
        dtypes=tuple(sorted(dtypes.items())),
        kernels=tuple(kernels),
        residuals_classes=tuple_text(case.residuals_class for case in cases),
        cases=cases,
        functions=_functions(cases, makers),
    )


def _common(signatures: Sequence[OpSignature], kind: str) -> tuple[str, ...]:
    """The names of the inputs or outputs, the same in all cases.  Raises CodegenError."""
    found = {tuple(array.name for array in getattr(one, kind)) for one in signatures}
    if len(found) > 1:
        raise CodegenError(f"{signatures[0].name}: its cases call their {kind} differently")
    return found.pop()


def _described(names: Sequence[str], cases: Sequence[Sequence[ArrayArgument]]) -> tuple[str, ...]:
    """``y: float32[n, m] or float32[n]``: each array with what it is in one case or another."""
    kinds = (
        " or ".join(dict.fromkeys(map(described, arrays))) for arrays in zip(*cases, strict=True)
    )
    return tuple(f"{literal_text(name)}: {kind}" for name, kind in zip(names, kinds, strict=True))


def _values(
    names: Names, inputs: int, values: Sequence[PlainArgument]
) -> tuple[tuple[ValueView, ...], list[str], list[str]]:
    """The plain arguments; as parameters, those that come after all inputs and the others.

    One whose name is no word of Python is none: ``**{"a b": 1}`` is left to the op's own call.
    """
    shown: list[ValueView] = []
    behind: list[str] = []
    among: list[str] = []
    for position, one in enumerate(sorted(values, key=lambda one: (one.place is None, one.place))):
        if not one.name.isidentifier():
            continue
        local = names.of(one.name, "value")
        shown.append(ValueView(local, string_literal(one.name), literal_text(one.text)))
        last = one.place == inputs + position
        (behind if last else among).append(f"{local}: Any = _AS_COMPILED")
    return tuple(shown), behind, among


def _functions(cases: Sequence[CaseView], makers: Sequence[CaseMaker]) -> tuple[FunctionView, ...]:
    """``inference`` and ``forward``, which differ in the kernel and in what is returned."""
    pairs = list(zip(cases, makers, strict=True))
    alone = tuple((case, maker.inference()) for case, maker in pairs)
    keeping = tuple((case, maker.forward()) for case, maker in pairs)
    promise = "Return the outputs, and what `backward` needs"
    return (
        FunctionView("inference", "Any", "Return the outputs alone", "", alone),
        FunctionView("forward", "tuple[Any, _Residuals]", promise, _KEEPS, keeping),
    )


def render_wrapper(view: WrapperView) -> str:
    """The text of the wrapper."""
    return environment().get_template("wrapper.py.j2").render(op=view)


def render_package(modules: Sequence[str]) -> str:
    """The text of a generated package's ``__init__.py``, given the names of its modules."""
    names = tuple(sorted(modules))
    exported = tuple(sorted((*names, "get_num_threads", "set_num_threads")))
    return environment().get_template("package.py.j2").render(package=PackageView(names, exported))
