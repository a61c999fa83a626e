"""The record ``OP`` of a wrapper: what the runtime makes every call from that is not ordinary.

In: a record, the header, the traced Function, the graphs of its kernels.  Raises Wrong or NotShown
where a call that follows the record is not what the graphs say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symgrad import abi
from symgrad.ir.dim import Dim, maximum, minimum
from symgrad.ir.function import BatchAxes, FunctionCase, FunctionGraphs, SizeCondition
from symgrad.ir.graph import Node
from symgrad.validate.source import Header
from symgrad.validate.wrappers.meaning import Item, Meaning
from symgrad.validate.wrappers.sizes import relation
from symgrad.validate.wrappers.state import NUMBERS, Calls, State
from symgrad.validate.wrappers.values import NotShown, Number, Pointer, Stride, Thing, Wrong


def sizes_of(op: abi.Op, position: int, case: FunctionCase, line: int) -> dict[str, str]:
    """What the sizes of a record are called in the graphs, by where they stand in the shapes."""
    found: dict[str, str] = {}
    if len(op.cases[position].inputs) != len(case.tensors):
        raise Wrong(f"the record has {len(op.cases[position].inputs)} inputs", line)
    for array, node in zip(op.cases[position].inputs, case.tensors, strict=True):
        if len(array.dims) != node.rank:
            raise Wrong(f"{array.name} has {len(array.dims)} axes in the record", line)
        for text, dim in zip(array.dims, node.shape, strict=True):
            words = [one.id for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Name)]
            own = [one for one in dict.fromkeys(words) if one not in ("min", "max")]
            if len(own) == 1 and len(dim.sizes) == 1:
                if found.setdefault(own[0], dim.sizes[0]) != dim.sizes[0]:
                    raise Wrong(f"the size {own[0]} is two sizes of the shapes", line)
    if len(set(found.values())) != len(found):
        raise Wrong("two sizes of the record are one", line)
    return found


class Record:
    """One case of a record."""

    def __init__(
        self, op: abi.Op, position: int, meaning: Meaning, calls: Calls, line: int
    ) -> None:
        self.op, self.case = op, op.cases[position]
        self._meaning, self._calls, self._line = meaning, calls, line
        self._found = meaning.case
        self.names = sizes_of(op, position, self._found, line)
        self._sizes = {name: Dim.size(name) for name in self.names.values()}

    def check(self) -> tuple[Item, ...]:
        """What forward keeps, by the record."""
        self._check_arrays()
        self._check_bindings()
        self._check_conditions()
        outputs = {one.name: i for i, one in enumerate(self.case.outputs)}
        self._forward(self.case.inference, outputs)
        kept = self._kept(self._forward(self.case.forward, outputs))
        masks = [one.mask for one in self.case.backward]
        if any(self.op.differentiable) and self.op.differentiable not in masks:
            raise Wrong("no backward has all gradients", self._line)
        for one in self.case.backward:
            self._backward(one, kept)
        return kept

    # -- what arrays there are

    def dim(self, text: str) -> Dim:
        """A size expression in the sizes of the graphs."""
        try:
            tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise NotShown(f"the size {text}", self._line) from None
        return _dim(tree, {one: Dim.size(own) for one, own in self.names.items()}, self._line)

    def _check_arrays(self) -> None:
        rank = self._found.any_rank
        names = self._meaning.graphs.input_names
        pairs = (
            (self.case.inputs, self._found.tensors, names, rank.inputs if rank else None),
            (
                self.case.outputs, self._found.outputs, self._found.output_names,
                rank.outputs if rank else None,
            ),
        )  # fmt: skip
        for arrays, nodes, known, groups in pairs:
            if tuple(one.name for one in arrays) != tuple(known):
                raise Wrong(f"the record has {[one.name for one in arrays]}", self._line)
            for place, (array, node) in enumerate(zip(arrays, nodes, strict=True)):
                self._is(array, node, groups[place] if groups else None)
                if array.by_value or array.strides:
                    raise Wrong(f"{array.name} of the record is passed otherwise", self._line)
        if self.case.apart != (rank.apart if rank else ()):
            raise Wrong("the record serves other numbers of axes", self._line)

    def _is(self, array: abi.Array, node: Node, group: BatchAxes | None = None) -> None:
        """The array of the record is one of these."""
        shape = tuple(map(self.dim, array.dims))
        if array.dtype != str(node.dtype) or shape != node.shape:
            raise Wrong(f"{array.name} is {node.type}, and {array} in the record", self._line)
        if array.batch != (None if group is None else tuple(group)):
            raise Wrong(f"other axes of {array.name} stand for any number", self._line)

    def _check_bindings(self) -> None:
        for one in self.case.bindings:
            inside = 0 <= one.input < len(self.case.inputs)
            shape = self._found.tensors[one.input].shape if inside else ()
            size = self.names.get(one.size)
            if size is None or not 0 <= one.axis < len(shape) or one.factor < 1:
                raise Wrong(f"the size {one.size} is read off something else", self._line)
            if shape[one.axis] != Dim.size(size) * one.factor + one.offset:
                raise Wrong(f"axis {one.axis} does not tell the size {one.size}", self._line)
        bound = {self.names[one.size] for one in self.case.bindings}
        for node in self._found.tensors:
            for dim in node.shape:
                if not set(dim.sizes) <= bound:
                    raise Wrong(f"the sizes of {dim} are not read off shapes", self._line)

    def _check_conditions(self) -> None:
        said = {self._relation(text) for text in self.case.conditions}
        for sign, dim in needed(self._found):
            constant = dim.constant
            if (sign, dim) not in said and not (
                constant is not None and relation(dim, sign, Dim.of(0)) and _true(sign, constant)
            ):
                raise Wrong(f"the record does not ask for {dim} {sign} 0", self._line)
        if self.case.where != self._found.where:
            raise Wrong("the record asks for something else of the plain numbers", self._line)

    def _relation(self, text: str) -> tuple[str, Dim]:
        tree = ast.parse(text, mode="eval").body
        if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
            raise NotShown(f"the condition {text}", self._line)
        signs = {
            ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
        }  # fmt: skip
        names = {one: Dim.size(own) for one, own in self.names.items()}
        left, right = (_dim(one, names, self._line) for one in (tree.left, tree.comparators[0]))
        return relation(left, signs[type(tree.ops[0])], right)

    # -- calls

    def _state(self) -> State:
        state = State({})
        for place, value in enumerate(self.op.numbers):
            node = self._meaning.numbers[place]
            state.types[Number(place)] = value.number
            if node is not None:
                state.holds[Thing(f"number {place}")] = node
        return state

    def _array(self, state: State, array: abi.Array, holds: Node | None) -> Pointer:
        thing = Thing(array.name)
        state.array(thing, array.dtype, tuple(map(self.dim, array.dims)))
        if holds is not None:
            state.holds[thing] = holds
        return Pointer(thing, "", writable=holds is None, free=array.strides)

    def _arguments(
        self, state: State, kernel: abi.Kernel, given: Mapping[str, Node]
    ) -> Iterator[Any]:
        """What the runtime passes to a kernel."""
        for size in kernel.sizes:
            if size not in self.names:
                raise Wrong(f"{kernel.name} takes the size {size}, which no input has", self._line)
            yield Dim.size(self.names[size])
        numbers = [one.name for one in self.op.numbers]
        for array in kernel.inputs:
            if array.by_value:
                if array.name not in numbers:
                    raise Wrong(f"{kernel.name} takes no number {array.name}", self._line)
                if array.dtype != self.op.numbers[numbers.index(array.name)].number:
                    raise Wrong(f"{kernel.name} takes another number {array.name}", self._line)
                yield Number(numbers.index(array.name))
                continue
            if array.name not in given:
                raise Wrong(f"{kernel.name} takes {array.name}, which is not there", self._line)
            pointer = self._array(state, array, given[array.name])
            yield pointer
            yield from (Stride(pointer.array, axis) for axis in array.strides)
        for array in kernel.outputs:
            yield self._array(state, array, None)
        yield "workspace pointer"
        yield "workspace bytes"

    def _call(self, kernel: abi.Kernel, given: Mapping[str, Node]) -> Any:
        names = [one.name for one in (*kernel.inputs, *kernel.outputs)]
        if len(set(names)) != len(names):
            raise Wrong(f"two arrays of {kernel.name} have one name", self._line)
        if self._calls.record(kernel.name, self._line) != kernel:
            raise NotShown(f"{kernel.name} has two records", self._line)
        state = self._state()
        arguments = list(self._arguments(state, kernel, given))
        call = self._calls.make(kernel.name, arguments, state, self._sizes, self._line)
        self._check_statuses(kernel)
        written = {thing.name: call.outputs[own] for thing, (_, own) in state.written.items()}
        own = {thing.name: name for thing, (_, name) in state.written.items()}
        return call, written, own

    def _check_statuses(self, kernel: abi.Kernel) -> None:
        """What the record says of each status is what the header says."""
        told = statuses(self._calls.header, kernel.name)
        known = kernel.reasons
        fits = (
            len(known) == len(kernel.statuses)
            and told.keys() == known.keys()
            and all(told[number].startswith(said) for number, said in known.items())
        )
        if not fits:
            raise Wrong(f"the statuses of {kernel.name} mean {told}", self._line)

    def _forward(self, kernel: abi.Kernel, outputs: Mapping[str, int]) -> dict[str, Node]:
        names = [one.name for one in self.case.inputs]
        given = dict(zip(names, self._meaning.inputs, strict=True))
        _, written, _ = self._call(kernel, given)
        for name, place in outputs.items():
            if name not in written:
                raise Wrong(f"{kernel.name} does not write {name}", self._line)
            self._meaning.check_output(place, written[name], self._line)
            del written[name]
        extra = {one.array.name for one in self.case.residuals if one.source == "kernel"}
        if not written.keys() <= (extra if kernel == self.case.forward else set()):
            raise Wrong(f"{kernel.name} writes {', '.join(written)} too", self._line)
        return dict(written)

    def _kept(self, extra: Mapping[str, Node]) -> tuple[Item, ...]:
        """What forward keeps: arrays and numbers, then sizes."""
        meaning = self._meaning
        found: list[Item] = []
        passed: dict[str, Sequence[Node | None]] = {
            "input": meaning.inputs,
            "output": meaning.outputs,
            "number": meaning.numbers,
        }
        for one in self.case.residuals:
            if one.source == "kernel":
                node = extra.get(one.array.name)
            else:
                known: Sequence[Node | None] = passed.get(one.source, ())
                node = known[one.position] if 0 <= one.position < len(known) else None
            if node is None:
                raise Wrong(f"what is kept as {one.array.name} is not there", self._line)
            self._check_kept(one, node)
            found.append(Item(node))
        for name in self.case.sizes:
            found.append(Item(axes=name[1:]) if name[0] == "*" else Item(size=self.names[name]))
        return tuple(found)

    def _check_kept(self, one: abi.Residual, node: Node) -> None:
        if one.array.by_value != (one.source == "number"):
            raise Wrong(f"{one.array.name} is kept otherwise", self._line)
        if one.source == "number":
            name = self.op.numbers[one.position].name
            kind = self.op.numbers[one.position].number
            if (one.array.name, one.array.dtype, one.array.dims) != (name, kind, ()):
                raise Wrong(f"the number {name} is kept as {one.array}", self._line)
            return
        own = {"input": self.case.inputs, "output": self.case.outputs}.get(one.source)
        group = own[one.position].batch if own else None
        self._is(one.array, node, None if group is None else BatchAxes(*group))

    # -- backward

    def _backward(self, one: abi.Backward, kept: Sequence[Item]) -> None:
        if len(one.mask) != len(self.case.inputs) or not self._possible(one.mask):
            raise Wrong(f"there is no gradient for {one.mask}", self._line)
        for position in one.zeros:
            if not 0 <= position < len(one.mask) or not one.mask[position]:
                raise Wrong(f"zeros for the input {position}, which is not wanted", self._line)
            self._meaning.check_gradient(position, None, kept, "", {}, "", self._line)
        wanted = [p for p, marked in enumerate(one.mask) if marked and p not in one.zeros]
        if len(one.kernel.outputs) != len(wanted):
            raise Wrong(f"{one.kernel.name} writes other gradients than {wanted}", self._line)
        if not wanted:
            return
        call, written, own = self._call(one.kernel, dict(self._given(one, kept)))
        for position, array in zip(wanted, one.kernel.outputs, strict=True):
            self._is_gradient(array, position)
            self._meaning.check_gradient(
                position,
                written[array.name],
                kept,
                one.kernel.name,
                call.given,
                own[array.name],
                self._line,
            )

    def _possible(self, mask: Sequence[bool]) -> bool:
        return all(
            able or not wanted for able, wanted in zip(self.op.differentiable, mask, strict=True)
        )

    def _is_gradient(self, array: abi.Array, position: int) -> None:
        dims = self.case.inputs[position].dims
        if (array.dtype, array.dims) != (self.case.inputs[position].dtype, dims):
            raise Wrong(f"the gradient {array} has another shape than its input", self._line)

    def _given(self, one: abi.Backward, kept: Sequence[Item]) -> Iterator[tuple[str, Node]]:
        """What a backward kernel is given, by its names: what is kept, then cotangents."""
        positions = [("kept", p) for p in one.residuals] + [("", p) for p in one.cotangents]
        if len(positions) != len(one.kernel.inputs):
            raise Wrong(f"{one.kernel.name} is given {len(positions)} arrays", self._line)
        for (kind, position), array in zip(positions, one.kernel.inputs, strict=True):
            count = len(self.case.residuals) if kind else len(self.case.outputs)
            if not 0 <= position < count:
                raise Wrong(f"{one.kernel.name} is given what is not there", self._line)
            if kind and array.by_value != self.case.residuals[position].array.by_value:
                raise Wrong(f"{array.name} of {one.kernel.name} is passed otherwise", self._line)
            if kind and array.by_value:
                if array.name != self.case.residuals[position].array.name:
                    raise Wrong(f"another number is passed for {array.name}", self._line)
                continue
            node = kept[position].node if kind else self._meaning.cotangents[position]
            if node is None:
                raise Wrong(f"{array.name} of {one.kernel.name} has no cotangent", self._line)
            yield array.name, node


def check_values(op: abi.Op, graphs: FunctionGraphs, line: int) -> None:
    """The plain arguments of the record are those of the Function."""
    said = [
        (one.name, one.text, one.place, one.exact, one.number, one.condition) for one in op.values
    ]
    known = [
        (one.name, one.text, one.place, one.exact, one.number, one.condition)
        for one in graphs.values
    ]
    if said != known:
        raise Wrong("the plain arguments of the record are others", line)
    if not {one.number for one in op.numbers} <= NUMBERS.keys():
        raise NotShown("a plain number of another type", line)


def needed(case: FunctionCase) -> Iterator[tuple[str, Dim]]:
    """What has to hold of the sizes of a case, of those that its inputs tell.

    A size that no input has any more is what an equality says.  Raises NotShown for others.
    """
    known = {size for node in case.tensors for dim in node.shape for size in dim.sizes}
    pending = [*case.conditions, *case.requires]
    changed = True
    while changed:
        changed = False
        for one in pending:
            solved = _solved(one, known)
            if solved is not None:
                pending = [other.substitute(solved) for other in pending if other is not one]
                changed = True
                break
    for one in pending:
        yield relation(one.left, one.relation, one.right)


def _solved(condition: SizeCondition, known: set[str]) -> Mapping[Any, Dim] | None:
    """The size that an equality tells and no input does."""
    if condition.relation != "==":
        return None
    for one, other in (
        (condition.left, condition.right), (condition.right, condition.left),
    ):  # fmt: skip
        atom = one.atom
        if atom is not None and one.sizes and one.sizes[0] not in known:
            if Dim.of(atom) == Dim.size(one.sizes[0]) and one.sizes[0] not in other.sizes:
                return {atom: other}
    return None


def _true(sign: str, constant: int) -> bool:
    return {"==": constant == 0, "!=": constant != 0, "<=": constant <= 0}[sign]


def _dim(node: ast.expr, names: Mapping[str, Dim], line: int) -> Dim:
    """A size expression."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Dim.of(node.value)
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_dim(node.operand, names, line)
    if isinstance(node, ast.BinOp):
        left, right = _dim(node.left, names, line), _dim(node.right, names, line)
        done = {
            ast.Add: lambda: left + right, ast.Sub: lambda: left - right,
            ast.Mult: lambda: left * right, ast.FloorDiv: lambda: left // right,
            ast.Mod: lambda: left % right,
        }.get(type(node.op))  # fmt: skip
        if done is not None:
            return Dim.of(done())  # type: ignore[no-untyped-call]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        made = {"min": minimum, "max": maximum}.get(node.func.id)
        if made is not None:
            return made(*(_dim(one, names, line) for one in node.args))
    raise NotShown(f"the size {ast.unparse(node)}", line)


def statuses(header: Header, kernel: str) -> dict[int, str]:
    """What a header says of the numbers that a kernel returns."""
    text = header.text
    place = text.find(f"int64_t {kernel}_workspace(")
    begin, end = text.rfind("/*", 0, place), text.rfind("*/", 0, place)
    if not 0 <= begin < end or text[end + 2 : place].strip():
        return {}
    found: dict[int, str] = {}
    for line in text[begin + 2 : end].splitlines():
        words = line.strip().removeprefix("*").strip()
        label = re.match(r"returns ([1-9]): ", words)
        if label and int(label[1]) > max(found, default=0):
            found[int(label[1])] = words[label.end() :]
        elif found:
            found[max(found)] += f" {words}"
    return found
