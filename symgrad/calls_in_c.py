"""Calls of kernels in C with the values that they must give: what ``ctest`` runs of a project.

In: the records of ops and their samples.  Out: frozen views of texts, which a template lays out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from symgrad import abi
from symgrad.abi import Array, Case, Kernel, Op, Residual


@dataclass(frozen=True)
class ArrayView:
    """An array of C: ``values`` are its initialiser, "" for one that a kernel writes."""

    name: str
    type: str
    count: int
    values: str = ""


@dataclass(frozen=True)
class CallView:
    """One call.  ``compared``: arrays that it writes, each with the one that has its values."""

    kernel: str
    sizes: str
    arguments: str
    written: tuple[ArrayView, ...]
    compared: tuple[tuple[ArrayView, ArrayView], ...]


@dataclass(frozen=True)
class SampleView:
    """One sample of an op: what is given, and the calls in their order."""

    name: str
    given: tuple[ArrayView, ...]
    calls: tuple[CallView, ...]


Pairs = Sequence[tuple[ArrayView, ArrayView]]


def views(op: Op, samples: Sequence[Mapping[str, Any]]) -> Iterator[SampleView]:
    """The samples of an op; those that no case serves are left out."""
    for number, sample in enumerate(samples):
        for case in op.cases:
            sizes = _sizes(case, sample)
            if sizes is not None:
                yield _Calls(op, case, sample, sizes).view(f"{op.name}_{number}")
                break


def _sizes(case: Case, sample: Mapping[str, Any]) -> dict[str, Any] | None:
    """All sizes by name; None where the case does not serve the shapes and numbers."""
    shapes = [tuple(table["shape"]) for table in sample["inputs"]]
    if len(shapes) != len(case.inputs):
        return None
    if any(len(s) != len(a.dims) for s, a in zip(shapes, case.inputs, strict=True)):
        return None
    known: dict[str, Any] = {}
    for one in case.bindings:
        known[one.size] = (shapes[one.input][one.axis] - one.offset) // one.factor
    for shape, array in zip(shapes, case.inputs, strict=True):
        if array.batch is not None:
            name, axis, count = array.batch
            known[f"*{name}"] = shape[axis : axis + count]
    sizes = abi.all_sizes(case, [known[name] for name in case.sizes])
    fits = all(abi.shape_of(a, sizes) == s for s, a in zip(shapes, case.inputs, strict=True))
    holds = (*case.conditions, *case.where)
    names = {**sizes, **sample["numbers"]}
    return sizes if fits and all(abi.value_of(one, names) for one in holds) else None


class _Calls:
    """The calls of one sample."""

    def __init__(
        self, op: Op, case: Case, sample: Mapping[str, Any], sizes: dict[str, Any]
    ) -> None:
        self.op, self.case, self.sample, self.sizes = op, case, sample, sizes
        self.inputs = self._given("x", case.inputs, sample["inputs"])
        self.wanted = self._given("y", case.outputs, sample["outputs"])
        self.slopes = self._given("g", case.outputs, sample["cotangents"])

    def view(self, name: str) -> SampleView:
        names = [one.name for one in self.case.inputs]
        known = {names[place]: view.name for place, view in self.inputs.items()}
        known |= {one: _number(value) for one, value in self.sample["numbers"].items()}
        calls: list[CallView] = []
        made: dict[str, ArrayView] = {}
        for kernel in dict.fromkeys((self.case.inference, self.case.forward)):
            made = self._written(kernel, "made" if kernel == self.case.forward else "inferred")
            pairs = [(made[self.case.outputs[n].name], view) for n, view in self.wanted.items()]
            values = [known[one.name] for one in kernel.inputs]
            calls.append(self._call(kernel, values, list(made.values()), pairs))
        gradients, backward = self._backward(made)
        given = (*self.inputs.values(), *self.wanted.values(), *self.slopes.values(), *gradients)
        return SampleView(name, given, (*calls, *backward))

    def _backward(
        self, made: Mapping[str, ArrayView]
    ) -> tuple[Sequence[ArrayView], Sequence[CallView]]:
        """The values of the gradients, and the call that gives all of them, if there is one."""
        one = next((b for b in self.case.backward if b.mask == self.op.differentiable), None)
        if one is None or not one.kernel.outputs:
            return (), ()
        values = [self._kept(self.case.residuals[place], made) for place in one.residuals]
        values += [self.slopes[place].name for place in one.cotangents]
        places = [p for p, wanted in enumerate(one.mask) if wanted and p not in one.zeros]
        written = list(self._written(one.kernel, "slope").values())
        tables = self.sample["gradients"]
        wanted = {
            place: _array(f"d{place}", self.case.inputs[place], tables[str(place)])
            for place in places
            if str(place) in tables
        }
        pairs = [(written[places.index(place)], view) for place, view in wanted.items()]
        return tuple(wanted.values()), (self._call(one.kernel, values, written, pairs),)

    def _kept(self, residual: Residual, made: Mapping[str, ArrayView]) -> str:
        """What stands for a residual in the call of backward."""
        if residual.source == "number":
            return _number(self.sample["numbers"][self.op.numbers[residual.position].name])
        if residual.source == "input":
            return self.inputs[residual.position].name
        own = self.case.outputs[residual.position] if residual.source == "output" else None
        return made[(own or residual.array).name].name

    def _given(
        self, letter: str, arrays: Sequence[Array], tables: Sequence[Any]
    ) -> dict[int, ArrayView]:
        return {
            place: _array(f"{letter}{place}", array, table)
            for place, (array, table) in enumerate(zip(arrays, tables, strict=True))
            if table is not None
        }

    def _written(self, kernel: Kernel, name: str) -> dict[str, ArrayView]:
        """The arrays that a kernel writes, by the names that it has for them."""
        return {
            one.name: ArrayView(f"{name}{place}", abi.C_TYPES[one.dtype], self._count(one))
            for place, one in enumerate(kernel.outputs)
        }

    def _count(self, array: Array) -> int:
        return max(1, prod(abi.evaluate(dim, self.sizes) for dim in array.dims))

    def _call(
        self, kernel: Kernel, values: Sequence[str], written: Sequence[ArrayView], pairs: Pairs
    ) -> CallView:
        sizes = ", ".join(str(abi.evaluate(size, self.sizes)) for size in kernel.sizes)
        arguments = [sizes] if sizes else []
        for array, value in zip(kernel.inputs, values, strict=True):
            shape = [abi.evaluate(dim, self.sizes) for dim in array.dims]
            arguments += [value, *(str(prod(shape[axis + 1 :])) for axis in array.strides)]
        arguments += [one.name for one in written]
        return CallView(kernel.name, sizes, ", ".join(arguments), tuple(written), tuple(pairs))


def _array(name: str, array: Array, table: Mapping[str, Any]) -> ArrayView:
    values = [_number(value) for value in table["values"]]
    return ArrayView(
        name, abi.C_TYPES[array.dtype], max(1, prod(table["shape"])), ", ".join(values) or "0"
    )


def _number(value: Any) -> str:
    """A number of JSON as C spells it."""
    said = json.dumps(int(value) if isinstance(value, bool) else value)
    return said.replace("Infinity", "INFINITY").replace("NaN", "NAN")
