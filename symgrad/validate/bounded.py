"""An independent oracle: a kernel executed at small sizes, and compared with its graph.

In: a parsed unit, the record of a kernel's call, its graph.  Out: ``Equal``, or ``Wrong`` with
sizes, inputs and the line of C.

Nothing is proved here: sizes are few, and inputs are drawn.  But nothing is shared with the
symbolic validation either, which is judged by it.  Arrays are tried contiguous and with gaps;
macros at their own values, at others that their guards admit, and those for the lengths of blocks
at small numbers, so that blocks end inside of small arrays; rows in as many groups as the C says,
and in several where there are few.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np
from flint import arb, fmpq

from symgrad import abi
from symgrad.errors import KernelArgumentError
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.record import get
from symgrad.passes.evaluate import evaluate
from symgrad.validate.machine import Fault, Machine, Memory, Pointer
from symgrad.validate.meaning import APPROXIMATE, Meaning, Tensor
from symgrad.validate.reals import Ball, Reals, Undecided, precision, shown
from symgrad.validate.sizes import size_called
from symgrad.validate.source import CType, Unit, Unsupported

Sizes = Mapping[str, int]
Admits = Callable[[Sizes], bool]

BITS = (128, 512)
SMALL = 4
MOST_SIZES = 30
LARGE = 131
"""Rows that make two groups of more than one tile of 64."""
MOST_ELEMENTS = 1500
MOST_ITERATIONS = 60_000
ITERATIONS_A_VALUE = 4
"""Of a right kernel, for each value that the graph has on the way; with copies, zeros, groups."""
HUGE = 2**31
MOST_GRANTED = 2**50
"""Elements of an array: with more of them, int64_t may overflow."""
CLOSE = fmpq(1, 10**6)


@dataclass(frozen=True)
class Equal:
    """Nothing wrong was found.

    ``undecided``: calls that no precision was enough for, or that go on where there is much to do.
    """

    calls: int
    sizes: tuple[Sizes, ...]
    undecided: int = 0
    refused: int = 0

    def __str__(self) -> str:
        return f"equal in {self.calls} calls at {len(self.sizes)} sizes"


@dataclass(frozen=True)
class Wrong:
    """What is wrong, where, and for which call.  ``line`` is 0 where no line of C is to blame.

    For an output of a wrong value it is the line that wrote it.
    """

    reason: str
    line: int = 0
    source: str = ""
    sizes: Sizes = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """What is wrong for which call, without the line."""
        names = {**self.sizes, **self.constants}
        told = ", ".join(f"{name} = {value}" for name, value in names.items())
        given = "; ".join(f"{name} = {text}" for name, text in self.inputs.items())
        return f"{self.reason}, for {told or 'no sizes'}{given and f', with {given}'}"

    def __str__(self) -> str:
        where = f"line {self.line}: {self.source}: " if self.line else ""
        return f"{where}{self.told}"


class _Found(Exception):
    def __init__(self, wrong: Wrong) -> None:
        self.wrong = wrong


def check(
    unit: Unit, kernel: abi.Kernel, graph: Graph, admits: Admits = lambda sizes: True,
    *, most_sizes: int = MOST_SIZES, most_iterations: int = MOST_ITERATIONS,
) -> Equal | Wrong:  # fmt: skip
    """Execute a kernel at small sizes.  ``admits``: does it serve these?  Raises Unsupported.

    What goes on for ``most_iterations`` is wrong, unless the graph itself has so much to do.
    """
    try:
        return _Check(unit, kernel, graph, admits, most_sizes, most_iterations).run()
    except _Found as found:
        return found.wrong


# -- the interface


def interface(unit: Unit, kernel: abi.Kernel) -> str:
    """What is wrong with the signature of a kernel, by the record of its calls; or ""."""
    signature = unit.signatures.get(kernel.name)
    companion = unit.signatures.get(f"{kernel.name}_workspace")
    if signature is None or companion is None:
        return f"{kernel.name} or its _workspace is not defined"
    size = CType("int64_t")
    wanted = [size] * len(kernel.sizes)
    for one in kernel.inputs:
        base = abi.C_TYPES[one.dtype]
        wanted.append(CType(base) if one.by_value else CType(base, 1, True, True))
        wanted += [size] * len(one.strides)
    wanted += [CType(abi.C_TYPES[one.dtype], 1, False, True) for one in kernel.outputs]
    wanted.append(CType("void", 1))
    given = [kind for _, kind in signature.parameters]
    if signature.result != CType("int") or signature.static:
        return f"{kernel.name} returns {signature.result}"
    if given != wanted:
        return (
            f"{kernel.name} takes {', '.join(map(str, given))}, not {', '.join(map(str, wanted))}"
        )
    taken = [kind for _, kind in companion.parameters]
    if companion.static or companion.result != size or taken != [size] * len(kernel.sizes):
        return f"{companion.name} takes {', '.join(map(str, taken))}"
    return ""


# -- the trials


class _Check:
    def __init__(
        self, unit: Unit, kernel: abi.Kernel, graph: Graph, admits: Admits, most_sizes: int,
        most_iterations: int,
    ) -> None:  # fmt: skip
        self._unit = unit
        self._kernel = kernel
        self._graph = graph
        self._admits = admits
        self._most_sizes = most_sizes
        self._most_iterations = most_iterations
        self._names = _size_names(kernel, graph)
        self._nodes = ancestors(graph.outputs.values())
        self._indexed = any(get(node.op).kind == "indexing" for node in self._nodes)
        self._mode = 0
        self._calls = self._undecided = self._refused = 0
        self._tried: list[Sizes] = []

    def run(self) -> Equal | Wrong:
        wrong = interface(self._unit, self._kernel)
        if wrong:
            signature = self._unit.signatures.get(self._kernel.name)
            line = signature.line if signature else 0
            return Wrong(wrong, line, self._unit.source(line))
        settings = list(_settings(self._unit))
        for number, sizes in enumerate(self._small()):
            self._at(
                sizes, settings if number < 8 else settings[number % len(settings) :][:1], number
            )
        for number, sizes in enumerate(self._large()):
            self._at(sizes, [*settings[:1], *settings[2:3], *settings[4:]], number, large=True)
        if self._unit.externals.keys() - self._unit.defined.keys():
            self._huge(settings[0])
        return Equal(self._calls, tuple(self._tried), self._undecided, self._refused)

    # -- sizes

    def _small(self) -> Iterator[Sizes]:
        names = self._names
        first = [
            {name: 2 + place % 3 for place, name in enumerate(names)},
            {name: 4 - place % 3 for place, name in enumerate(names)},
            dict.fromkeys(names, 1),
            dict.fromkeys(names, 3),
        ]
        most = SMALL if len(names) <= 2 else 3 if len(names) == 3 else 2
        grid: list[dict[str, int]] = []
        if len(names) <= 6:
            ranges = product(range(most + 1), repeat=len(names))
            grid = [dict(zip(names, one, strict=True)) for one in ranges]
        random.Random(len(names)).shuffle(grid)
        spread = [{**first[0], name: value} for name in names for value in (0, 1, 5, 9)]
        yield from self._admitted([*first, *spread, *grid], self._most_sizes)

    def _large(self) -> Iterator[Sizes]:
        """One size at a time so large that rows make tiles and groups."""
        names = self._names
        rows = 260 if "block_rows" in self._unit.functions else LARGE
        other = 3 if len(names) < 3 else 2
        yield from self._admitted(
            [{one: rows if one == name else other for one in names} for name in names], len(names)
        )

    def _admitted(self, tried: Sequence[Sizes], most: int) -> Iterator[Sizes]:
        found: list[Sizes] = []
        for sizes in tried:
            if len(found) == most:
                return
            if sizes not in found and self._is_admitted(sizes):
                found.append(sizes)
                yield sizes

    def _is_admitted(self, sizes: Sizes) -> bool:
        try:
            shapes = [dim.at(sizes) for node in self._nodes for dim in node.shape]
            return min(shapes, default=0) >= 0 and self._admits(sizes)
        except ZeroDivisionError:
            return False

    def _is_granted(self, sizes: Sizes) -> bool:
        """Is nothing that the graph computes longer than an array that can be passed?"""
        lengths = (prod(dim.at(sizes) for dim in node.shape) for node in self._nodes)
        return max(lengths, default=0) < MOST_GRANTED

    # -- one point

    def _at(
        self, sizes: Sizes, settings: Sequence[_Setting], seed: int, large: bool = False
    ) -> None:  # fmt: skip
        elements = sum(
            prod(dim.at(sizes) for dim in node.shape) for node in self._graph.outputs.values()
        )
        if large and elements > MOST_ELEMENTS:
            return
        self._tried.append(sizes)
        for bits in BITS:
            try:
                with precision(bits):
                    self._compared(sizes, settings, seed, large)
                return
            except Undecided:
                continue
        self._undecided += 1

    def _compared(self, sizes: Sizes, settings: Sequence[_Setting], seed: int, large: bool) -> None:
        reals = Reals()
        feeds, refused, wanted, meaning = self._drawn(sizes, seed, reals)
        close = not meaning.used.isdisjoint(APPROXIMATE)
        much = large or refused or meaning.values * ITERATIONS_A_VALUE > self._most_iterations
        for number, setting in enumerate(settings):
            constants = setting.told()
            call = _Call(self._kernel, self._graph, sizes, feeds, padded=(seed + number) % 2 == 1)
            machine = setting.machine(self._unit, reals, self._most_iterations)
            self._calls += 1
            try:
                status, outputs = call.run(machine)
            except Fault as fault:
                if fault.long and much:
                    self._undecided += 1
                    continue
                raise self._found(fault.reason, fault.line, sizes, constants, feeds) from fault
            if (status != 0) != refused:
                what = "an index is out of range" if refused else "nothing is out of range"
                reason = f"it returns {status}, though {what}"
                raise self._found(reason, 0, sizes, constants, feeds)
            if refused:
                self._refused += 1
                continue
            for name, memory in outputs.items():
                reason, line = _unequal(name, memory, wanted[name], close)
                if reason:
                    raise self._found(reason, line, sizes, constants, feeds)

    def _found(
        self, reason: str, line: int, sizes: Sizes, constants: Mapping[str, int],
        feeds: Mapping[str, Tensor],
    ) -> _Found:  # fmt: skip
        told = {
            name: "[" + ", ".join(map(shown, feed.values[:12])) + "]"
            for name, feed in feeds.items()
        }
        source = self._unit.source(line)
        return _Found(Wrong(reason, line, source, dict(sizes), dict(constants), told))

    def _drawn(
        self, sizes: Sizes, seed: int, reals: Reals
    ) -> tuple[dict[str, Tensor], bool, dict[str, Tensor], Meaning]:
        """Inputs, whether a call with them is refused, what it gives, and by what this was found.

        Of some kinds of numbers the first for which everything has a value.
        """
        best: tuple[int, Any] | None = None
        undecided: Undecided | None = None
        for turn in range(len(_MODES)):
            mode = (self._mode + turn) % len(_MODES)
            feeds, refused = self._accepted(sizes, seed, mode)
            meaning = Meaning(self._graph, sizes, feeds, reals)
            try:
                wanted = {} if refused else {
                    name: meaning.output(name) for name in self._graph.outputs
                }  # fmt: skip
            except Undecided as error:
                undecided = error
                continue
            without = sum(
                one is None or (isinstance(one, float) and one != one)
                for tensor in wanted.values() for one in tensor.values
            )  # fmt: skip
            found = feeds, refused, wanted, meaning
            if not without:
                self._mode = mode
                return found
            if best is None or without < best[0]:
                best = without, found
        if best is None:
            raise undecided or Undecided("no inputs")
        chosen: tuple[dict[str, Tensor], bool, dict[str, Tensor], Meaning] = best[1]
        return chosen

    def _accepted(self, sizes: Sizes, seed: int, mode: int) -> tuple[dict[str, Tensor], bool]:
        """Inputs whose indices are in range, as far as some are found; in some trials others."""
        ranges = (3, 2, 1) if seed % 4 != 3 else (6,)
        feeds: dict[str, Tensor] = {}
        for most in ranges:
            draw = random.Random(f"{seed} {mode} {most}")
            feeds = {
                name: _draw(node, sizes, draw, mode, most, self._whole(most))
                for name, node in self._graph.inputs.items()
            }
            if not self._indexed or not self._refuses(feeds, sizes):
                return feeds, False
        return feeds, True

    def _whole(self, most: int) -> list[int]:
        """The integers that are drawn: few, and those that the graph mentions."""
        mentioned = {
            int(node.attributes["value"].value)
            for node in self._nodes
            if node.op == "constant"
            and node.dtype.is_integer
            and "value" in node.attributes
            and hasattr(node.attributes["value"], "value")
        }
        return [*range(most), *(sorted(mentioned) if most > 1 else ())]

    def _refuses(self, feeds: Mapping[str, Tensor], sizes: Sizes) -> bool:
        """Does the reference backend refuse these inputs?"""
        arrays = {
            name: np.array(
                [
                    float(one.p) / float(one.q) if isinstance(one, fmpq) else one
                    for one in feed.values
                ],
                dtype=str(self._graph.inputs[name].dtype),
            ).reshape(feed.shape)
            for name, feed in feeds.items()
        }
        try:
            evaluate(list(self._graph.outputs.values()), arrays, dict(sizes))
        except KernelArgumentError:
            return True
        return False

    def _huge(self, setting: _Setting) -> None:
        """Sizes that no int holds: the kernel leaves, or goes on for too long to tell."""
        for name in self._names:
            sizes = {one: HUGE if one == name else 1 for one in self._names}
            if not self._is_admitted(sizes):
                continue
            feeds = {one: Tensor((), ()) for one in self._graph.inputs}
            call = _Call(self._kernel, self._graph, sizes, feeds, padded=False, virtual=True)
            try:
                call.run(setting.machine(self._unit, Reals(), 300))
            except Fault as fault:
                if not (fault.long or (fault.wide and not self._is_granted(sizes))):
                    told = setting.told()
                    raise self._found(fault.reason, fault.line, sizes, told, {}) from fault


def _size_names(kernel: abi.Kernel, graph: Graph) -> list[str]:
    """The sizes of a graph.  Raises Unsupported where the kernel takes another one."""
    found: dict[str, None] = {}
    for node in ancestors(graph.outputs.values()):
        for dim in node.shape:
            found.update(dict.fromkeys(dim.sizes))
    for node in graph.inputs.values():
        for dim in node.shape:
            found.update(dict.fromkeys(dim.sizes))
    others = [name for name in kernel.sizes if not size_called(name, found)]
    return [*found, *others]


@dataclass(frozen=True)
class _Setting:
    """Values of macros; ``groups``: into how many rows are cut, None for as many as C says."""

    constants: Mapping[str, int]
    groups: int | None = None

    def machine(self, unit: Unit, reals: Reals, limit: int) -> Machine:
        """What executes the unit."""
        most = self.groups
        if most is None:
            return Machine(unit, reals, self.constants, limit=limit)
        helpers: dict[str, Callable[..., int]] = {
            "row_groups": lambda rows, least, top: _groups(rows, least, top, most),
            "product_groups": lambda rows, work, top: _groups(rows, work, top, most),
            "block_rows": lambda numbers, again, least: 1 + (numbers + again + 2 * least) % 3,
        }
        return Machine(unit, reals, self.constants, helpers, tight=True, limit=limit)

    def told(self) -> dict[str, int]:
        """What a reader must know to call the kernel in the same way."""
        return {**self.constants, **({"groups": self.groups} if self.groups else {})}


def _groups(rows: int, least: int, most: int, spread: int) -> int:
    """A number of groups: several of few rows, and another one for other arguments.

    Where the C says so much of the least number of rows, no group begins behind the last row.
    """
    found = max(1, min(rows // (1 + least % 3), spread + most % 3))
    while least >= most - 1 and (found - 1) * -(-rows // found) > rows:
        found -= 1
    return found


def _settings(unit: Unit) -> Iterator[_Setting]:
    """As the file stands; then with small blocks, and few rows in several groups.

    A kernel is right for any lengths of blocks and any number of groups.
    """
    own = {name: one.value for name, one in unit.constants.items()}
    yield _Setting(own)
    cut = not {"row_groups", "product_groups", "block_rows"}.isdisjoint(unit.functions)
    cut |= any(macro.kind == "round_up" for macro in unit.macros.values())
    seen = [_Setting(own)]
    for short, block, groups in ((2, 2, 2), (0, 3, 1), (3, 1, 3), (1000, 5, 2)):
        values = {
            name: short if one.open and one.admits(short) else one.value if one.open else block
            for name, one in unit.constants.items()
        }
        setting = _Setting(values, groups if cut else None)
        if setting not in seen:
            seen.append(setting)
            yield setting


_MODES = ("any", "positive", "unit", "large")


def _draw(
    node: Node, sizes: Sizes, draw: random.Random, mode: int, most: int, whole: Sequence[int]
) -> Tensor:  # fmt: skip
    shape = tuple(dim.at(sizes) for dim in node.shape)
    count = prod(shape)
    if node.dtype.is_float:
        return Tensor(shape, [_real(draw, _MODES[mode]) for _ in range(count)])
    if not node.dtype.is_integer:
        return Tensor(shape, [draw.randrange(2) for _ in range(count)])
    fits = [one for one in whole if node.dtype.least <= one <= node.dtype.greatest]
    return Tensor(shape, [draw.choice(fits) for _ in range(count)])


def _real(draw: random.Random, mode: str) -> fmpq:
    if mode == "any":
        return fmpq(draw.randint(-9, 9), draw.choice((2, 4)))
    if mode == "positive":
        return fmpq(draw.randint(1, 15), 4)
    if mode == "unit":
        return fmpq(draw.randint(-7, 7), 8)
    return fmpq(draw.randint(5, 30), 4)


# -- one call


class _Everywhere(dict[int, Any]):
    """Memory too large to be drawn: ones everywhere."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._value = value

    def get(self, key: int, default: Any = None) -> Any:
        return self._value


@dataclass
class _Call:
    """A call of a kernel.  ``padded``: the inputs with strides have gaps between their rows."""

    kernel: abi.Kernel
    graph: Graph
    sizes: Sizes
    feeds: Mapping[str, Tensor]
    padded: bool
    virtual: bool = False

    def run(self, machine: Machine) -> tuple[int, dict[str, Memory]]:
        """The status, and the outputs.  Raises Fault, Undecided, Unsupported."""
        sizes = [self._size(name) for name in self.kernel.sizes]
        count = machine.call(f"{self.kernel.name}_workspace", sizes)
        if count < 0:
            raise Fault(f"the workspace has {count} bytes", 0)
        arguments: list[Any] = list(sizes)
        for place, one in enumerate(self.kernel.inputs):
            arguments += self._input(one, 1 + place if self.padded else 0)
        outputs: dict[str, Memory] = {}
        for array, (name, node) in zip(
            self.kernel.outputs, self.graph.outputs.items(), strict=True
        ):
            base = abi.C_TYPES[array.dtype]
            memory = Memory(array.name, base, prod(self._shape(array, node)), lines={})
            outputs[name] = memory
            arguments.append(Pointer(memory, 0, base))
        arguments.append(Pointer(Memory("the workspace", "", count), 0, "void"))
        return machine.call(self.kernel.name, arguments), outputs

    def _size(self, name: str) -> int:
        found = size_called(name, self.sizes)
        if len(found) != 1:
            raise Unsupported(f"the size {name}")
        return self.sizes[found[0]]

    def _shape(self, array: abi.Array, node: Node) -> tuple[int, ...]:
        shape = tuple(dim.at(self.sizes) for dim in node.shape)
        told = {name: self._size(name) for name in self.kernel.sizes} | dict(self.sizes)
        if array.batch is None and abi.shape_of(array, told) != shape:
            raise Fault(f"the record says that {array.name} is {array}", 0)
        return shape

    def _input(self, array: abi.Array, gap: int) -> list[Any]:
        node = self.graph.inputs[array.name]
        feed = self.feeds[array.name]
        if array.by_value:
            return [_ONES[node.dtype.is_float] if self.virtual else feed.values[0]]
        shape = self._shape(array, node)
        strides = _strides(shape, array.strides, gap)
        base = abi.C_TYPES[array.dtype]
        last = sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))
        count = last + 1 if all(shape) else 0
        cells: dict[int, Any] = {}
        if self.virtual:
            cells = _Everywhere(_ONES[node.dtype.is_float])
        else:
            for place, value in zip(product(*map(range, shape)), feed.values, strict=True):
                at = sum(index * step for index, step in zip(place, strides, strict=True))
                cells[at] = value
        memory = Memory(array.name, base, count, cells, const=True)
        return [Pointer(memory, 0, base), *(strides[axis] for axis in array.strides)]


_ONES = {True: fmpq(1), False: 0}


def _strides(shape: Sequence[int], free: Sequence[int], gap: int) -> list[int]:
    """The strides of an array in elements; those of ``free`` axes with gaps."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(range(len(shape))):
        if axis in free:
            step += gap
        strides[axis] = step
        step *= max(shape[axis], 1)
    return strides


# -- comparison


def _unequal(name: str, memory: Memory, wanted: Tensor, close: bool) -> tuple[str, int]:
    """Where an output is another one, and which line wrote it; ("", 0) where it is equal.

    Raises Undecided.
    """
    lines = memory.lines or {}
    for place, expected in enumerate(wanted.values):
        got = memory.cells.get(place)
        if got is None:
            return f"{name}[{place}] was never written", 0
        if expected is None or (isinstance(expected, float) and expected != expected):
            continue
        if not _same(got, expected, close):
            return f"{name}[{place}] is {shown(got)}, not {shown(expected)}", lines.get(place, 0)
    return "", 0


def _same(got: Any, expected: Any, close: bool) -> bool:
    if isinstance(got, float) or isinstance(expected, float):
        return bool(got == expected)
    if isinstance(got, Ball) or isinstance(expected, Ball) or close:
        return _overlap(got, expected, close)
    return bool(got == expected)


def _overlap(got: Any, expected: Any, close: bool) -> bool:
    """Are two reals equal, as far as balls tell?"""
    left = got.value if isinstance(got, Ball) else arb(got)
    right = expected.value if isinstance(expected, Ball) else arb(expected)
    if close:
        return not abs(left - right) > CLOSE * (1 + abs(right))
    if not left.overlaps(right):
        return False
    if (left - right).rad() > arb(2) ** -40 * (1 + abs(right)):
        raise Undecided(f"{shown(got)} or {shown(expected)}")
    return True
