"""The C that Python calls: it sees at once that a call is right, and runs the kernel.

In: an ``Op``.  Out: C text behind that of ``binding``, or none.

It serves what the straight-line code of a wrapper serves, and does the same; ``pool`` makes
large results.  Arrays whose rows lie apart go to the kernels that take them, and small ones of
other layouts as copies, as ``Caller`` has it.
Of a call that is anything else it returns None, and explains nothing: that is for Python.  The
functions follow ``Caller``: ``inference(inputs, out, numbers)``, ``forward(inputs, out, numbers)``,
``backward(residuals, cotangents, needs_input_grad, out)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .abi import C_TYPES, LARGE, Array, Backward, Case, Kernel, Op
from .entry_text import ENTRY, MODULE
from .size_text import Unbounded, bound, c_expression

_DTYPES = tuple(C_TYPES)
_FLOATS = ("float32", "float64")
_MOST_INPUTS = 60  # a bit for each
_MOST_AXES = 32  # that are no batch axes
_MOST_FUNCTIONS = 8  # of one case, for sets of wanted gradients
_LARGEST, _LEAST = 40, 8  # powers of two
_EXACT = 1 << 62


def entry(op: Op) -> str:
    """The functions, and the module that holds them."""
    if len(op.differentiable) > _MOST_INPUTS or any(one.condition for one in op.numbers):
        return ""
    made: list[_Entry | None] = [_entry_or_none(op, place) for place in range(len(op.cases))]
    if not any(made):
        return ""
    first = made.index(None) if None in made else len(made)  # cases are tried in their order
    forwards = [one for one in made[:first] if one is not None]
    backwards = [one for one in made if one is not None]
    texts = [text for one in backwards for text in one.texts()]
    return ENTRY % {"dtypes": len(_DTYPES), "large": LARGE} + "".join(texts) + MODULE % {
        "inputs": len(op.differentiable),
        "numbers": len(op.numbers),
        "outputs": len(op.cases[0].outputs),
        "inference": "\n".join(one.tries("inference") for one in forwards),
        "forward": "\n".join(one.tries("forward") for one in forwards),
        "backward": "\n".join(one.choices() for one in backwards),
        "all": f"{_bits(op.differentiable)}LL",
        "module": op.module.rpartition(".")[2],
    }  # fmt: skip


def _entry_or_none(op: Op, place: int) -> _Entry | None:
    try:
        return _Entry(op, place)
    except Unbounded:
        return None


def _bits(mask: Sequence[bool]) -> int:
    return sum(1 << place for place, wanted in enumerate(mask) if wanted)


def _product(dims: Iterable[str]) -> str:
    return "*".join(f"({dim})" for dim in dims) or "1"


class _Entry:
    """The functions of one case.  Raises Unbounded where Python has to look at its sizes.

    ``limit``: sizes up to it make no integer of 64 bits overflow.
    """

    def __init__(self, op: Op, place: int) -> None:
        self.op, self.place, self.case = op, place, op.cases[place]
        together = self.case.batches
        self.groups = list(together)
        self.ones = {size for sizes in together.values() for size in sizes[:-1]}
        self.wholes = {sizes[-1]: group for group, sizes in together.items()}
        bound_sizes = (one.size for one in self.case.bindings)
        self.order = tuple(dict.fromkeys((*bound_sizes, *self.ones, *self.wholes)))
        self.numbers = {one.name: index for index, one in enumerate(op.numbers)}
        self.limit = _limit(self.case)
        self._lines: list[str] = []
        self._shapes: dict[str, tuple[str, str]] = {}

    def texts(self) -> Iterable[str]:
        """The C of all functions."""
        case = self.case
        yield self._forward("forward", case.forward)
        if case.inference != case.forward:
            yield self._forward("inference", case.inference)
        for one in self._backwards():
            yield self._backward(one)

    def tries(self, name: str) -> str:
        """The call of ``forward``, which keeps what it computes, or of ``inference``."""
        own = name if self.case.inference != self.case.forward else "forward"
        kind = f"PyTuple_GetItem(kinds, {self.place})" if name == "forward" else "0"
        call = f"symgrad_call_{own[0]}{self.place}(args[0], args[1], numbers, {kind})"
        return f"    if (!found && !PyErr_Occurred()) found = {call};"

    def choices(self) -> str:
        """The choice among its backward functions."""
        given = "(args[0], args[1], args[3])"
        cases = "".join(
            f"        case {_bits(one.mask)}LL: found = {self._name(one)}{given}; break;\n"
            for one in self._backwards()
        )
        count = len(self.case.residuals) + len(self.case.sizes)
        return (
            f"    if (kind == PyTuple_GetItem(kinds, {self.place}) && PyTuple_Size(args[0]) =="
            f" {count})\n        switch (mask) {{\n{cases}        }}"
        )

    def _backwards(self) -> list[Backward]:
        full = self.op.differentiable
        ordered = sorted(self.case.backward, key=lambda one: one.mask != full)
        return ordered[:_MOST_FUNCTIONS]

    def _name(self, backward: Backward) -> str:
        return f"symgrad_call_b{self.place}_{_bits(backward.mask)}"

    # -- forward

    def _forward(self, name: str, kernel: Kernel) -> str:
        case = self.case
        self._begin()
        taken = {array.name: array for array in kernel.inputs}
        for index, array in enumerate(case.inputs):
            value = f"PyTuple_GetItem(inputs, {index})"
            self._declare(f"in{index}", value, array, taken.get(array.name))
        self._refuse(self._wrong_rank(index, array) for index, array in enumerate(case.inputs))
        self._sizes_of_inputs()
        self._refuse(self._differs())
        given = self._read_numbers("PyTuple_GetItem(numbers, {})", self.numbers)
        given |= {one.name: f"in{index}" for index, one in enumerate(case.inputs)}
        names = {array.name for array in kernel.outputs}
        extras = [
            one.array for one in case.residuals
            if one.source == "kernel" and one.array.name in names
        ]  # fmt: skip
        made = [*case.outputs, *extras]
        outs = len(case.outputs)
        into = ["symgrad_none(out)"]
        if outs > 1:
            self._refuse([f"!symgrad_is_out(out, {outs})"])
            into = [f"symgrad_out(out, {index})" for index in range(outs)]
        self._make(made, [*into, *("0" for _ in extras)])
        given |= {one.name: _array(f"made[{index}]") for index, one in enumerate(made)}
        kept = f"kind ? symgrad_kept(kind, {self._kept(made)}) : 0" if name == "forward" else "0"
        self._line(f"PyObject *const kept = {kept};")
        if name == "forward":
            self._line(f"if (kind && !kept) return symgrad_drop({len(made)}, made, 0);")
        self._run(kernel, given, len(made), "kept")
        self._line(f"return symgrad_results({outs}, {len(made)}, made, kept);")
        parameters = "PyObject *inputs, PyObject *out, PyObject *numbers, PyObject *kind"
        unused = "(void)numbers; (void)kind;"
        return self._function(f"symgrad_call_{name[0]}{self.place}({parameters})", unused)

    def _wrong_rank(self, index: int, array: Array) -> str:
        if array.batch is None:
            return f"!in{index} || in{index}->nd != {len(array.dims)}"
        least = len(array.dims) - array.batch[2]
        return f"!in{index} || in{index}->nd < {least}"

    def _axis(self, index: int, axis: int) -> str:
        """The extent of an axis that is no batch axis."""
        array = self.case.inputs[index]
        if array.batch is None or axis < array.batch[1]:
            return f"in{index}->dims[{axis}]"
        return f"in{index}->dims[in{index}->nd - {len(array.dims) - axis}]"

    def _axes(self, index: int) -> str:
        """The batch axes of an input."""
        array = self.case.inputs[index]
        assert array.batch is not None
        _, start, count = array.batch
        return f"{{in{index}->nd - {len(array.dims) - count}, in{index}->dims + {start}}}"

    def _sizes_of_inputs(self) -> None:
        seen: set[str] = set()
        for index, array in enumerate(self.case.inputs):
            group = array.batch and f"*{array.batch[0]}"
            if group and group not in seen:
                seen.add(group)
                number = self.groups.index(group)
                self._line(f"const struct symgrad_axes axes{number} = {self._axes(index)};")
        self._together()
        for one in self.case.bindings:
            if one.size in self.ones or one.size in self.wholes:
                continue
            extent = self._axis(one.input, one.axis)
            if not one.plain:
                extent = f"symgrad_solved({extent}, {one.factor}, {one.offset})"
            self._line(f"const int64_t {self._c(one.size)} = {extent};")
        self._limited()

    def _together(self) -> None:
        """The sizes that stand for batch axes."""
        for size in sorted(self.ones):
            self._line(f"const int64_t {self._c(size)} = 1;")
        for size, group in self.wholes.items():
            number = self.groups.index(group)
            count = f"symgrad_count(&axes{number}, {self._most})"
            self._line(f"const int64_t {self._c(size)} = {count};")

    def _limited(self) -> None:
        """Every size is from 0 to the limit."""
        own = [size for size in self.order if size not in self.ones]
        self._refuse(f"{self._c(size)} < 0 || {self._c(size)} > {self._most}" for size in own)

    @property
    def _most(self) -> str:
        return f"INT64_C({self.limit})"

    def _differs(self) -> Iterable[str]:
        """What is so of no call that this case serves."""
        case = self.case
        for number in range(len(self.groups)):
            yield from (f"axes{number}.count == {count}" for count in case.apart)
        for index, array in enumerate(case.inputs):
            inside = range(0)
            if array.batch is not None:
                group, start, count = array.batch
                inside = range(start, start + count)
                number = self.groups.index(f"*{group}")
                axes = f"(struct symgrad_axes){self._axes(index)}"
                yield f"!symgrad_same(axes{number}, {axes})"
            for axis, dim in enumerate(array.dims):
                if axis not in inside:
                    yield f"{self._axis(index, axis)} != {self._c(dim)}"
        yield from self._unmet()

    def _unmet(self) -> Iterable[str]:
        return (f"!({self._c(condition)})" for condition in self.case.conditions)

    def _kept(self, made: Sequence[Array]) -> str:
        """The tuple of what forward keeps."""
        places = {one.name: index for index, one in enumerate(made)}
        parts = []
        for one in self.case.residuals:
            if one.source == "input":
                parts.append(f"symgrad_again((PyObject *)in{one.position})")
            elif one.source == "number":
                place = self.numbers[one.array.name]
                parts.append(f"symgrad_again(PyTuple_GetItem(numbers, {place}))")
            elif one.source == "output":
                parts.append(f"symgrad_again(made[{one.position}])")
            else:
                parts.append(f"symgrad_again(made[{places[one.array.name]}])")
        for size in self.case.sizes:
            if size in self.groups:
                parts.append(f"symgrad_tuple_of(axes{self.groups.index(size)})")
            else:
                parts.append(f"PyLong_FromLongLong({self._c(size)})")
        return f"symgrad_tuple({', '.join([str(len(parts)), *parts])})"

    # -- backward

    def _backward(self, backward: Backward) -> str:
        case, kernel = self.case, backward.kernel
        self._begin()
        self._sizes_of_residuals()
        self._refuse(self._unmet())
        kept = {i: case.residuals[i].array for i in backward.residuals}
        places = {one.name: i for i, one in kept.items() if one.by_value}
        numbers = self._read_numbers("PyTuple_GetItem(kept, {})", places)
        taken = iter(kernel.inputs)
        given: list[str] = []
        reads: list[str] = []
        for i, one in kept.items():
            wanted = next(taken)
            if one.by_value:
                given.append(numbers[one.name])
            else:
                given.append(f"kept{i}")
                reads.append(self._read(f"kept{i}", f"PyTuple_GetItem(kept, {i})", one, wanted))
        slopes = dict(zip(backward.cotangents, taken, strict=True))
        for place, array in enumerate(case.outputs):
            value = f"PyTuple_GetItem(cotangents, {place})"
            if place in backward.cotangents:
                reads.append(self._read(f"slope{place}", value, array, slopes[place]))
            elif array.dtype in _FLOATS:
                shape = self._shape(array)
                reads.append(f"!symgrad_is_none_or({value}, {_dtype(array)}, {shape})")
        given += [f"slope{place}" for place in backward.cotangents]
        self._refuse(reads)
        names = (array.name for array in kernel.inputs)
        return self._gradients(backward, dict(zip(names, given, strict=True)))

    def _gradients(self, backward: Backward, given: Mapping[str, str]) -> str:
        case = self.case
        places = [place for place, wanted in enumerate(backward.mask) if wanted]
        made = [case.inputs[place] for place in places]
        self._refuse([
            "out != Py_None" if backward.zeros else f"!symgrad_is_out(out, {len(backward.mask)})"
        ])  # fmt: skip
        self._make(made, [f"symgrad_out(out, {place})" for place in places])
        for index, place in enumerate(places):
            if place in backward.zeros:
                self._line(f"symgrad_clear(made[{index}], {self._count(case.inputs[place])});")
        written = [i for i, place in enumerate(places) if place not in backward.zeros]
        if written:
            outputs = zip(backward.kernel.outputs, written, strict=True)
            own = {array.name: _array(f"made[{index}]") for array, index in outputs}
            self._run(backward.kernel, {**given, **own}, len(made), "0")
        parts = [
            f"made[{places.index(place)}]" if wanted else "symgrad_again(Py_None)"
            for place, wanted in enumerate(backward.mask)
        ]
        self._line(f"return symgrad_tuple({', '.join([str(len(parts)), *parts])});")
        parameters = "PyObject *kept, PyObject *cotangents, PyObject *out"
        return self._function(f"{self._name(backward)}({parameters})", "(void)cotangents;")

    def _sizes_of_residuals(self) -> None:
        first = len(self.case.residuals)
        for index, size in enumerate(self.case.sizes, first):
            item = f"PyTuple_GetItem(kept, {index})"
            if size in self.groups:
                number = self.groups.index(size)
                self._line(f"Py_ssize_t memory{number}[SYMGRAD_MOST];")
                self._line(
                    f"const struct symgrad_axes axes{number} ="
                    f" {{symgrad_axes_of({item}, memory{number}), memory{number}}};"
                )
                self._refuse([f"axes{number}.count < 0"])
            else:
                self._line(f"const int64_t {self._c(size)} = symgrad_size({item});")
        self._together()
        self._limited()

    def _declare(self, name: str, value: str, array: Array, taken: Array | None) -> None:
        """Declare an array; ``taken``: as the kernel takes it, None where it does not.

        Python says whether batch axes of any step are one.
        """
        free = taken.strides if taken is not None else ()
        if taken is None or (free and array.batch is not None):
            read = f"symgrad_read({value}, {_dtype(array)})"
        else:
            self._line(f"SYMGRAD_OWNED PyObject *own_{name} = 0;")
            mask = sum(1 << axis for axis in free)
            lies = f"{_dtype(array)}, {mask}, {_bytes(array)}"
            read = f"symgrad_taken({value}, {lies}, out, &own_{name})"
        self._line(f"struct symgrad_array *const {name} = {read};")

    def _read(self, name: str, value: str, array: Array, taken: Array) -> str:
        """Declare an array; what is so where it is not what a kernel takes."""
        self._declare(name, value, array, taken)
        return f"!{name} || !symgrad_has({name}, {self._shape(array)})"

    # -- parts of functions

    def _begin(self) -> None:
        self._lines, self._shapes = [], {}

    def _line(self, text: str) -> None:
        self._lines.append(f"    {text}")

    def _refuse(self, tests: Iterable[str]) -> None:
        found = list(dict.fromkeys(tests))
        if found:
            self._line(f"if ({' || '.join(found)}) return 0;")

    def _function(self, signature: str, unused: str) -> str:
        body = "\n".join([f"    {unused}", *self._lines])
        return f"\nstatic PyObject *{signature}\n{{\n{body}\n}}\n"

    def _c(self, expression: str) -> str:
        """An expression over sizes."""
        return c_expression(expression, self.order)

    def _read_numbers(self, item: str, places: Mapping[str, int]) -> dict[str, str]:
        """Declare plain numbers; how the kernels are given them."""
        kinds = {one.name: one.number for one in self.op.numbers}
        for name, place in places.items():
            whole = kinds[name] == "int64"
            kind, reader = ("int64_t", "whole") if whole else ("double", "real")
            self._line(f"{kind} number{place};")
            self._refuse([f"!symgrad_{reader}({item.format(place)}, &number{place})"])
        return {name: f"number{place}" for name, place in places.items()}

    def _shape(self, array: Array) -> str:
        """Declare a shape, once; how it is passed."""
        key = repr((array.dims, array.batch))
        if key not in self._shapes:
            name = f"shape{len(self._shapes)}"
            if array.batch is None:
                dims = ", ".join(map(self._c, array.dims)) or "0"
                self._line(f"const Py_ssize_t {name}[] = {{{dims}}};")
                self._shapes[key] = str(len(array.dims)), name
            else:
                group, start, count = array.batch
                self._line(f"Py_ssize_t {name}[SYMGRAD_MOST + {len(array.dims)}];")
                self._line(f"int {name}_nd = 0;")
                for dim in array.dims[:start]:
                    self._line(f"{name}[{name}_nd++] = {self._c(dim)};")
                number = self.groups.index(f"*{group}")
                self._line(f"{name}_nd = symgrad_append({name}, {name}_nd, axes{number});")
                for dim in array.dims[start + count :]:
                    self._line(f"{name}[{name}_nd++] = {self._c(dim)};")
                self._shapes[key] = f"{name}_nd", name
        return ", ".join(self._shapes[key])

    def _count(self, array: Array) -> str:
        return f"{_product(map(self._c, array.dims))}*{_bytes(array)}"

    def _make(self, arrays: Sequence[Array], given: Sequence[str]) -> None:
        """Declare ``made``: the arrays that a kernel writes, in those that are given or new."""
        calls = [
            f"!(made[{index}] = symgrad_write({one}, {_dtype(array)}, {self._shape(array)},"
            f" {self._count(array)}))"
            for index, (array, one) in enumerate(zip(arrays, given, strict=True))
        ]
        self._line(f"PyObject *made[{max(1, len(arrays))}] = {{0}};")
        if calls:
            drop = f"symgrad_drop({len(arrays)}, made, 0)"
            self._line(f"if ({' || '.join(calls)}) return {drop};")

    def _run(self, kernel: Kernel, given: Mapping[str, str], made: int, kept: str) -> None:
        """Call a kernel.  ``given``: the numbers and arrays by the names that it has for them."""
        arguments = [self._c(size) for size in kernel.sizes]
        for array in kernel.inputs:
            one = given[array.name]
            arguments.append(one if array.by_value else f"{one}->data")
            dims = list(map(self._c, array.dims))
            for axis in () if array.by_value else array.strides:
                usual = _product(dims[axis + 1 :])
                arguments.append(f"symgrad_step({one}, {axis}, {usual}, {_bytes(array)})")
        arguments += [f"{given[array.name]}->data" for array in kernel.outputs]
        self._line("SYMGRAD_ALIGNED char block[SYMGRAD_BLOCK];")
        self._line("PyThreadState *const thread = PyEval_SaveThread();")
        call = f"call_{kernel.name}({', '.join([*arguments, 'block', 'sizeof block'])})"
        self._line(f"const int status = {call};")
        self._line("PyEval_RestoreThread(thread);")
        self._line(f"if (status) return symgrad_drop({made}, made, {kept});")


def _dtype(array: Array) -> int:
    return _DTYPES.index(array.dtype)


def _bytes(array: Array) -> str:
    return f"(int64_t)sizeof({C_TYPES[array.dtype]})"


def _array(value: str) -> str:
    return f"((struct symgrad_array *){value})"


def _limit(case: Case) -> int:
    """The largest size with which nothing that is computed overflows.  Raises Unbounded."""
    kernels = [case.forward, case.inference, *(one.kernel for one in case.backward)]
    arrays = [*case.arrays, *(one for k in kernels for one in (*k.inputs, *k.outputs))]
    texts = {*case.conditions, *(size for kernel in kernels for size in kernel.sizes)}
    texts |= {f"8*{_product(one.dims)}" for one in arrays}
    if case.where or any(len(one.dims) > _MOST_AXES for one in arrays):
        raise Unbounded
    for power in range(_LARGEST, _LEAST, -1):
        if all(bound(text, 1 << power) < _EXACT for text in texts):
            return 1 << power
    raise Unbounded
