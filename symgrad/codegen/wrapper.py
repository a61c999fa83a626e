"""The Python wrapper of an op: what its template is shown, and the text.

In: the record of an op.  Out: one frozen view of strings and tuples, and the text rendered from it.

The wrapper asks C for the whole call, then is straight-line code for the ordinary one: it checks
types and shapes, takes pointers and calls the kernel.  Everything else it leaves to
``symgrad.runtime.support``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword

from symgrad.abi import (
    C_TYPES,
    LARGE,
    Array,
    Backward,
    Case,
    Kernel,
    Op,
    Record,
    Value,
    literal,
    with_names,
)
from symgrad.budgets import MOST_STRAIGHT_MASKS
from symgrad.codegen.calls import WORDS, renamed, safe_name
from symgrad.codegen.environment import environment
from symgrad.codegen.names import literal_text
from symgrad.errors import CodegenError
from symgrad.ir.dtype import BY_NAME


@dataclass(frozen=True)
class ArrayView:
    """An array in straight-line code: a local name, the name of its pointer ("" for none).

    ``fresh``: makes a new one.  ``number``: the Python type where it is a plain number, which has
    no pointer.
    """

    name: str
    pointer: str
    dtype: str
    shape: str
    fresh: str = ""
    axes: str = ""
    number: str = ""


@dataclass(frozen=True)
class CallView:
    """A kernel's call: ``outputs`` are the op's own arrays, ``extras`` are always fresh."""

    kernel: str
    arguments: str
    reads: tuple[ArrayView, ...]
    outputs: tuple[ArrayView, ...]
    extras: tuple[ArrayView, ...]
    out_targets: str
    several: bool
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
    calls: tuple[CallView, ...]
    result: str


@dataclass(frozen=True)
class CaseView:
    """One case: how its sizes are read (``solved``), what must hold (``differs`` must not).

    ``conditions``: what must hold of the sizes themselves.
    """

    residuals_class: str
    residual_fields: str
    residual_names: str
    residual_numbers: str
    inputs: tuple[ArrayView, ...]
    where: tuple[str, ...]
    solved: tuple[str, ...]
    differs: tuple[str, ...]
    conditions: tuple[str, ...]
    backwards: tuple[BackwardView, ...]


@dataclass(frozen=True)
class FunctionView:
    """``inference`` or ``forward``: the same but for the kernel and what is returned.

    ``keeps``: a warning about the arrays that are kept.
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
class NumberView:
    """A plain number that the kernels take: its parameter and type, and what must not hold."""

    local: str
    type: str
    text: str
    differs: str


@dataclass(frozen=True)
class WrapperView:
    """All that ``wrapper.py.j2`` is shown."""

    name: str
    summary: tuple[str, ...]
    runtime: str
    abi: str
    records: str
    op_literal: str
    parameters: str
    arguments: str
    fixed: bool
    values: tuple[ValueView, ...]
    numbers: tuple[NumberView, ...]
    number_arguments: str
    number_names: str
    renamed: str
    cotangents: tuple[str, ...]
    cotangent_names: tuple[str, ...]
    cotangent_arguments: str
    inputs: str
    outputs: str
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


WIDTH = 100
PYTHON = {"float64": "float", "int64": "int"}
"""What Python calls the type of a plain number."""
# What the code of a function needs; its classes are Residuals, Residuals1 and so on.
RESERVED = WORDS.union(("out", "type", "tuple", "float", "int"))


def tuple_text(parts: Iterable[str]) -> str:
    """``(a,)``, ``(a, b)``: a tuple's text."""
    found = list(parts)
    return f"({found[0]},)" if len(found) == 1 else f"({', '.join(found)})"


def _targets(parts: Iterable[str]) -> str:
    """``a,``, ``a, b``, ``()``: what stands left of ``=`` to take a tuple apart."""
    return tuple_text(parts)[1:-1] or "()"


def _product(dims: Sequence[str]) -> str:
    """The number of elements of an array of these sizes."""
    factors = [dim if re.fullmatch(r"\w+", dim) else f"({dim})" for dim in dims if dim != "1"]
    return "*".join(factors) or "1"


def _fresh(count: str, shape: str, dtype: str) -> str:
    """What makes an array of ``count`` elements: over memory of the pool where it is large."""
    small = f"_empty({shape}, _{dtype})"
    least = LARGE // BY_NAME[dtype].itemsize
    if count.isdigit() and int(count) < least:
        return small
    return f"{small} if {count} < {least} else _leased({shape}, _{dtype})"


class Names:
    """Local names: those of the record, unless Python or the wrapper needs them.

    Parameters keep their names before sizes do.  Those that Python has no name for come first, and
    get the name of no other.
    """

    def __init__(self, op: Op) -> None:
        classes = (residuals_class(position) for position in range(len(op.cases)))
        self._reserved = RESERVED.union(classes)
        self._taken: set[str] = set()
        self._given: dict[tuple[str, str], str] = {}
        self._numbers = tuple(one.name for one in op.numbers)
        inputs = _common(op, "inputs")
        values = [one.name for one in op.values if one.name.isidentifier()]
        given = [*((one, "array") for one in inputs), *((one, "value") for one in values)]
        self._taken = {*inputs, *values}
        for name, kind in given:
            if not _callable(name):
                self.of(name, kind)
        self._taken = set(self._given.values())
        parameters = {name: self.of(name, kind) for name, kind in given}
        self.known = {name: name if _callable(name) else own for name, own in parameters.items()}
        self.renamed = {
            name: own for name, own in parameters.items() if own != name and _callable(name)
        }
        sizes = {binding.size for case in op.cases for binding in case.bindings}
        self._sizes = renamed(sizes, self._reserved | self._taken)
        self._taken |= {self._sizes.get(size, size) for size in sizes}
        for case in op.cases:
            for array in case.arrays:
                if not array.by_value:
                    self.of(array.name)

    def of(self, wanted: str, kind: str = "array") -> str:
        """The local name for ``wanted`` as an array, cotangent or gradient; always the same."""
        key = (kind, wanted)
        if key not in self._given:
            self._given[key] = safe_name(wanted, self._taken, self._reserved)
            self._taken.add(self._given[key])
        return self._given[key]

    def of_numbers(self, expression: str) -> str:
        """An expression over plain numbers, in their local names."""
        return with_names(expression, {one: self.of(one, "value") for one in self._numbers})

    def local(self, expression: str) -> str:
        """An expression over sizes, in their local names; ``*name``: the axes of this name."""
        if expression.startswith("*"):
            return f"_axes_{expression[1:]}"
        return with_names(expression, self._sizes)

    def shape(self, array: Array) -> str:
        """The shape of an array as a tuple's text."""
        words = list(map(self.local, array.dims))
        if array.batch is not None:
            name, axis, count = array.batch
            words[axis : axis + count] = [f"*{self.local(f'*{name}')}"]
        return tuple_text(words)


def residuals_class(position: int) -> str:
    """The wrapper's name for what forward keeps in a case."""
    return f"Residuals{position or ''}"


class CaseMaker:
    """Makes the view of one case.

    ``full``: the inputs that have a gradient; ``cotangents``: the local name of each output's.
    """

    def __init__(
        self, names: Names, position: int, case: Case, full: tuple[bool, ...],
        cotangents: Sequence[str],
    ) -> None:  # fmt: skip
        self.names = names
        self.position = position
        self.case = case
        self.full = full
        self.cotangents = cotangents
        self.residuals_class = residuals_class(position)

    def inference(self) -> CallView:
        """The call that computes the outputs alone."""
        return self._forward_call(self.case.inference, self._result())

    def forward(self) -> CallView:
        """The call that also computes what is kept."""
        kept = (self._kept(index) for index in range(len(self.case.residuals)))
        sizes = map(self.names.local, self.case.sizes)
        axes = (f"tuple({size})" if size.startswith("_axes_") else size for size in sizes)
        result = f"{self._result()}, {self.residuals_class}({tuple_text((*kept, *axes))})"
        return self._forward_call(self.case.forward, result)

    def _result(self) -> str:
        names = [self.names.of(array.name) for array in self.case.outputs]
        return names[0] if len(names) == 1 else tuple_text(names)

    def view(self) -> CaseView:
        """What the functions share."""
        case = self.case
        fields = (*(residual.array.name for residual in case.residuals), *case.sizes)
        ordered = sorted(case.backward, key=lambda one: one.mask != self.full)[:MOST_STRAIGHT_MASKS]
        kept = [r.array for r in case.residuals]
        words = [
            f"{literal_text(one.name)} ({PYTHON[one.dtype] if one.by_value else one})"
            for one in kept
        ]
        return CaseView(
            residuals_class=self.residuals_class,
            residual_fields=literal(fields),
            residual_names=", ".join(words) or "nothing but sizes",
            residual_numbers=literal(_numbers_of(case)) if _numbers_of(case) else "",
            inputs=tuple(self._input(index) for index in range(len(case.inputs))),
            where=tuple(map(self.names.of_numbers, case.where)),
            solved=tuple(self._solved()),
            differs=tuple(self._differs()),
            conditions=tuple(map(self.names.local, case.conditions)),
            backwards=tuple(self._backward(one) for one in ordered),
        )

    def _view(self, array: Array, name: str, pointer: bool = True) -> ArrayView:
        if array.by_value:
            return ArrayView(name, name, array.dtype, "()", number=PYTHON[array.dtype])
        shape = self.names.shape(array)
        fresh = _fresh(_product(list(map(self.names.local, array.dims))), shape, array.dtype)
        return ArrayView(name, f"_p_{name}" if pointer else "", array.dtype, shape, fresh)

    # -- sizes

    def _axis(self, index: int, axis: int) -> str:
        """The local that an axis of an input's shape goes to: the size's own where it is bare."""
        for binding in self.case.bindings:
            if (binding.input, binding.axis, binding.plain) == (index, axis, True):
                return self.names.local(binding.size)
        return f"_{self.names.of(self.case.inputs[index].name)}_{axis}"

    def _input(self, index: int) -> ArrayView:
        array = self.case.inputs[index]
        view = self._view(array, self.names.of(array.name))
        axes = [self._axis(index, axis) for axis in range(len(array.dims))]
        if array.batch is not None:
            _, start, count = array.batch
            axes[start : start + count] = [f"*{self._axes(index)}"]
        return replace(view, axes=_targets(axes))

    def _axes(self, index: int) -> str:
        """The local that the batch axes of an input go to: those of the first one give the name."""
        groups = [one.batch[0] if one.batch else None for one in self.case.inputs]
        group = groups[index]
        first = groups.index(group) == index
        return self.names.local(f"*{group}") if first else f"_axes{index}_{group}"

    def _together(self) -> Iterable[str]:
        """The sizes that stand for batch axes."""
        for group, sizes in self.case.batches.items():
            *ones, whole = map(self.names.local, sizes)
            yield from (f"{one} = 1" for one in ones)
            yield f"{whole} = _prod({self.names.local(group)})"

    def _solved(self) -> Iterable[str]:
        yield from self._together()
        for binding in self.case.bindings:
            if not binding.plain:
                extent = self._axis(binding.input, binding.axis)
                shifted = f"({extent} - {binding.offset})" if binding.offset else extent
                yield f"{self.names.local(binding.size)} = {shifted} // {binding.factor}"

    def _differs(self) -> Iterable[str]:
        local = self.names.local
        for binding in self.case.bindings:
            if binding.offset > 0:
                yield f"{local(binding.size)} < 0"
        for group in self.case.batches if self.case.apart else ():
            yield f"len({local(group)}) in {self.case.apart!r}"
        for index, array in enumerate(self.case.inputs):
            inside = range(0)
            if array.batch is not None:
                group, start, count = array.batch
                inside = range(start, start + count)
                if self._axes(index) != local(f"*{group}"):
                    yield f"{self._axes(index)} != {local(f'*{group}')}"
            for axis, dim in enumerate(map(local, array.dims)):
                found = self._axis(index, axis)
                if found != dim and axis not in inside:
                    yield f"{found} != {dim}"
        for condition in self.case.conditions:
            yield f"not ({local(condition)})"

    # -- calls

    def _arguments(self, kernel: Kernel, inputs: Iterable[str], outputs: Iterable[str]) -> str:
        """What a kernel is called with, for contiguous arrays."""
        words = list(map(self.names.local, kernel.sizes))
        for array, pointer in zip(kernel.inputs, inputs, strict=True):
            words.append(pointer)
            dims = list(map(self.names.local, array.dims))
            words += [_product(dims[axis + 1 :]) for axis in array.strides]
        words += outputs
        return ", ".join([*words, "_workspace.pointer", "_workspace.size"])

    def _forward_call(self, kernel: Kernel, result: str) -> CallView:
        inputs = {
            a.name: self._view(a, self.names.of(a.name, "value"))
            for a in kernel.inputs if a.by_value
        }  # fmt: skip
        inputs |= {a.name: self._view(a, self.names.of(a.name)) for a in self.case.inputs}
        own = {a.name: self._view(a, self.names.of(a.name)) for a in self.case.outputs}
        extras = {
            r.array.name: self._view(r.array, self.names.of(r.array.name))
            for r in self.case.residuals
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
            reads=tuple(one for one in reads if not one.number),
            outputs=tuple(own.values()),
            extras=tuple(extras.values()),
            out_targets=", ".join(view.name for view in own.values()),
            several=len(own) > 1,
            result=result,
        )

    def _kept(self, index: int) -> str:
        residual = self.case.residuals[index]
        sources = {"input": self.case.inputs, "output": self.case.outputs}
        if residual.source in sources:
            return self.names.of(sources[residual.source][residual.position].name)
        if residual.source == "number":
            return self.names.of(residual.array.name, "value")
        return self.names.of(residual.array.name)

    # -- backward

    def _backward(self, backward: Backward) -> BackwardView:
        case = self.case
        locals_ = [
            self.names.of(one.array.name, "value" if one.array.by_value else "array")
            for one in case.residuals
        ]
        needed = [one if i in backward.residuals else "_" for i, one in enumerate(locals_)]
        residuals = tuple(
            self._view(case.residuals[index].array, locals_[index]) for index in backward.residuals
        )
        cotangents, ignored = [], []
        for position, array in enumerate(case.outputs):
            name = self.cotangents[position]
            if position in backward.cotangents:
                cotangents.append(self._view(array, name))
            elif array.dtype.startswith("float"):
                ignored.append(self._view(array, name, pointer=False))
        gradients = {
            position: self._view(array, self.names.of(f"grad_{array.name}", "gradient"))
            for position, array in enumerate(case.inputs)
            if backward.mask[position]
        }
        written = {p: v for p, v in gradients.items() if p not in backward.zeros}
        result = tuple_text(
            gradients[p].name if p in gradients else "None" for p in range(len(case.inputs))
        )
        bits = "".join("1" if marked else "0" for marked in backward.mask)
        return BackwardView(
            name=f"_backward{self.position or ''}_{bits}",
            mask=repr(backward.mask),
            full=backward.mask == self.full,
            targets=_targets((*needed, *map(self.names.local, self.case.sizes))),
            together=tuple(self._together()),
            arrays=(*residuals, *cotangents),
            ignored=tuple(ignored),
            zeros=tuple(gradients[p] for p in backward.zeros),
            calls=self._backward_call(backward, cotangents, residuals, written, result),
            result=result,
        )

    def _backward_call(
        self,
        backward: Backward,
        cotangents: Sequence[ArrayView],
        residuals: Sequence[ArrayView],
        written: dict[int, ArrayView],
        result: str,
    ) -> tuple[CallView, ...]:
        if not written:
            return ()
        by_position = dict(zip(sorted(backward.cotangents), cotangents, strict=True))
        reads = [view.pointer for view in residuals]
        reads += [by_position[position].pointer for position in backward.cotangents]
        outs = (written[p].name if p in written else "_" for p in range(len(backward.mask)))
        writes = [view.pointer for view in written.values()]
        call = CallView(
            kernel=backward.kernel.name,
            arguments=self._arguments(backward.kernel, reads, writes),
            reads=(),
            outputs=tuple(written.values()),
            extras=(),
            out_targets=_targets(outs),
            several=True,
            result=result,
        )
        return (call,)


# -- the whole wrapper


_RECORDS = "Array, Backward, Binding, Case, Kernel, Op, Residual"
_KEEPS = (
    "`backward` reads inputs and outputs themselves, not copies: do not write to them before it."
)


def wrapper_view(
    op: Op, *, runtime: str = "symgrad.runtime", summary: Sequence[str] = ()
) -> WrapperView:  # fmt: skip
    """The view of an op, whose cases are tried in their order.

    ``runtime`` is where the wrapper imports from (``"._runtime"`` in a generated package);
    ``summary`` are lines for its docstring.
    """
    names = Names(op)
    outputs, inputs = _common(op, "outputs"), [names.of(name) for name in _common(op, "inputs")]
    cotangents = tuple(names.of(f"grad_{name}", "cotangent") for name in outputs)
    public = _cotangent_names(outputs)
    shown, behind, among = _values(names, len(inputs), op.values)
    numbers = _numbers(names, op.numbers)
    makers = [CaseMaker(names, *one, op.differentiable, cotangents) for one in enumerate(op.cases)]
    cases = tuple(maker.view() for maker in makers)
    dtypes = {
        array.dtype: C_TYPES[array.dtype]
        for case in op.cases for array in case.arrays if not array.by_value
    }  # fmt: skip
    return WrapperView(
        name=op.name,
        summary=tuple(map(literal_text, summary)),
        runtime=runtime,
        records=_RECORDS + (", Value" if op.values else ""),
        abi=f"{runtime}.abi" if runtime.startswith(".") else "symgrad.abi",
        op_literal=laid_out(op, 0, "OP = "),
        parameters=", ".join(
            [*(f"{one}: _Array" for one in inputs), *behind, "*", *among, "out: Any = None"]
        ),
        arguments=tuple_text(inputs),
        fixed=len(op.numbers) < len(op.values),
        values=shown,
        numbers=numbers,
        number_arguments=tuple_text(one.local for one in numbers) if numbers else "",
        number_names=literal(tuple(names.known[one.name] for one in op.numbers)),
        renamed=_renamed(names),
        cotangents=cotangents,
        cotangent_names=public,
        cotangent_arguments=tuple_text(public),
        inputs=_described(inputs, [one.inputs for one in op.cases]),
        outputs=_described(outputs, [one.outputs for one in op.cases]),
        dtypes=tuple(sorted(dtypes.items())),
        kernels=tuple(dict.fromkeys(kernel.name for kernel in op.kernels)),
        residuals_classes=tuple_text(case.residuals_class for case in cases),
        cases=cases,
        functions=_functions(cases, makers),
    )


def laid_out(value: object, indent: int, prefix: str = "") -> str:
    """The literal of a record on one line where that fits, else one part a line."""
    flat = literal(value)
    if indent + len(prefix) + len(flat) + 1 <= WIDTH or not isinstance(value, (Record, tuple)):
        return flat
    if isinstance(value, Record):
        parts, opening = value.arguments(), f"{type(value).__name__}("
    else:
        parts, opening = [("", one) for one in value], "("
    keys = [(f"{key}=" if key else "", one) for key, one in parts]
    inner = " " * (indent + 4)
    lines = [f"{inner}{key}{laid_out(one, indent + 4, key)}," for key, one in keys]
    return "\n".join([opening, *lines, " " * indent + ")"])


def _common(op: Op, kind: str) -> tuple[str, ...]:
    """The names of the inputs or outputs, the same in all cases.  Raises CodegenError."""
    found = {tuple(array.name for array in getattr(one, kind)) for one in op.cases}
    if len(found) > 1:
        raise CodegenError(f"{op.name}: its cases call their {kind} differently")
    return found.pop()


def _cotangent_names(outputs: Sequence[str]) -> tuple[str, ...]:
    """What callers of ``backward`` know each cotangent as, whatever else has that name."""
    found: list[str] = []
    for name in outputs:
        found.append(safe_name(f"grad_{name}", found, RESERVED))
    return tuple(found)


def _described(names: Sequence[str], cases: Sequence[Sequence[Array]]) -> str:
    """``y: float32[n, m] or float32[n]``: each array with what it is in one case or another."""
    kinds = (" or ".join(dict.fromkeys(map(str, arrays))) for arrays in zip(*cases, strict=True))
    pairs = zip(names, kinds, strict=True)
    return ", ".join(f"{literal_text(name)}: {kind}" for name, kind in pairs)


def _values(
    names: Names, inputs: int, values: Sequence[Value]
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
        last = one.place == inputs + position
        value = f" = {one.text}" if one.text else ""
        default = f"{PYTHON[one.number]}{value}" if one.number else "Any = _AS_COMPILED"
        last = last and (bool(value) or not any("=" in other for other in behind))
        (behind if last else among).append(f"{local}: {default}")
        if not one.number:
            shown.append(ValueView(local, literal(one.name), literal_text(one.text)))
    return tuple(shown), behind, among


def _numbers(names: Names, numbers: Sequence[Value]) -> tuple[NumberView, ...]:
    """The plain numbers that the kernels take, in the order of the record."""
    found = []
    for one in numbers:
        local = names.of(one.name, "value")
        differs = f"not ({names.of_numbers(one.condition)})" if one.condition else ""
        whole = one.number == "int64"
        which = f"{'an integer' if whole else 'a number'}{one.condition and f', {one.condition}'}"
        found.append(NumberView(local, PYTHON[one.number], literal_text(which), differs))
    return tuple(found)


def _callable(name: str) -> bool:
    """Can callers name an argument so?"""
    return name.isidentifier() and not iskeyword(name) and name != "out"


def _renamed(names: Names) -> str:
    """The parameters that Python calls by another name, as a dict; empty where there are none.

    One called ``out`` goes by its other name: ``out`` is what is written into.
    """
    shown = [f"{literal(name)}: {literal(own)}" for name, own in sorted(names.renamed.items())]
    return f"{{{', '.join(shown)}}}" if shown else ""


def _numbers_of(case: Case) -> tuple[str, ...]:
    return tuple(one.array.name for one in case.residuals if one.array.by_value)


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
