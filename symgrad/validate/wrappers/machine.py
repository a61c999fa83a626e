"""The statements that wrappers are made of, executed symbolically: every path of a function.

In: the syntax tree of a function, what its names stand for.  Out: how each path ends.

A path ends by returning or by raising.  What the text itself would raise (an array that is no
buffer, a shape of another rank) is not followed: such a call does not go on, and the handlers of
the text catch all of it.  What is not among these statements raises NotShown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from symgrad import abi
from symgrad.ir.dim import Dim, maximum, minimum
from symgrad.ir.dtype import BY_NAME
from symgrad.validate.wrappers.forms import is_of_kinds, is_of_numbers, locals_of
from symgrad.validate.wrappers.sizes import relation
from symgrad.validate.wrappers.state import State
from symgrad.validate.wrappers.values import (
    Attribute,
    Axes,
    AxesTuple,
    CArray,
    Defined,
    DTypeValue,
    Entry,
    Kept,
    KeptClass,
    KernelName,
    Known,
    NotShown,
    Number,
    Path,
    Pointer,
    Result,
    Shape,
    Table,
    Thing,
    Wrong,
    is_asked,
)

FALL, RETURN, RAISE = "falls through", "returns", "raises"
Calling = Callable[[str, Sequence[Any], State, int], None]
_SIGNS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass
class End:
    """How a path ends, and where."""

    how: str
    value: Any
    state: State
    line: int


class Machine:
    """Runs one function of a text.

    ``globals``: what its names stand for; ``calling``: what a call of a kernel does that returns 0.
    """

    def __init__(
        self, function: ast.FunctionDef, globals_: Mapping[str, Any], calling: Calling
    ) -> None:
        self._name = function.name
        self._locals = locals_of(function)
        self._globals = globals_
        self._calling = calling
        self._fresh = 0

    # -- statements

    def run(self, statements: Sequence[ast.stmt], state: State) -> list[End]:
        """Every end of a block; the first entry of each is how it ends."""
        ends: list[End] = []
        states = [state]
        for one in statements:
            after: list[State] = []
            for before in states:
                for end in self._step(one, before):
                    if end.how == FALL:
                        after.append(end.state)
                    else:
                        ends.append(end)
            states = after
        return [*ends, *(End(FALL, None, one, 0) for one in states)]

    def _step(self, one: ast.stmt, state: State) -> Iterator[End]:
        line = one.lineno
        if isinstance(one, ast.If):
            yield from self._branch(one, state)
            return
        if isinstance(one, ast.Try):
            yield from self._try(one, state)
            return
        if isinstance(one, ast.Raise):
            if one.cause or not isinstance(one.exc, ast.Name):
                raise NotShown("another exception", line)
            if self._value(one.exc, state) != Known("Unusual"):
                raise NotShown("another exception", line)
            yield End(RAISE, None, state, line)
            return
        if isinstance(one, ast.Return):
            value = None if one.value is None else self._value(one.value, state)
            yield End(RETURN, value, state, line)
            return
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            self._assign(one.targets[0], self._value(one.value, state), state)
        elif isinstance(one, ast.Expr):
            if not isinstance(one.value, ast.Constant):
                self._check(one.value, state)
        elif not isinstance(one, ast.Pass):
            raise NotShown(f"the statement {ast.unparse(one).splitlines()[0]}", line)
        yield End(FALL, None, state, line)

    def _check(self, call: ast.expr, state: State) -> None:
        """A plain value is compared with the one that is compiled in."""
        found = self._value(call, state)
        if not isinstance(found, Result) or found.function != Path("careful.values.check"):
            raise NotShown(f"the statement {ast.unparse(call)}", call.lineno)
        if len(found.arguments) != 3:
            raise NotShown(f"the statement {ast.unparse(call)}", call.lineno)
        label, name, value = found.arguments
        op = self._globals.get("OP")
        if not isinstance(op, abi.Op) or label != f"{op.name}.{self._name}":
            raise Wrong(f"errors name {label}", call.lineno)
        if value != Thing(f"value {name}"):
            raise Wrong(f"another value is checked in place of {name}", call.lineno)
        state.checked.add(name)

    def _branch(self, one: ast.If, state: State) -> Iterator[End]:
        """Both sides; where one of them changes nothing, what it has learned is forgotten."""
        ends: list[End] = []
        for truth, block in ((True, one.body), (False, one.orelse)):
            other = state.copy()
            if self._test(one.test, truth, other):
                ends += self.run(block, other)
        quiet = not any(
            isinstance(node, ast.Assign) for part in one.body for node in ast.walk(part)
        )
        falling = [end for end in ends if end.how == FALL]
        quiet = quiet and all(end.state.called == state.called for end in falling)
        if len(falling) > 1 and quiet and not one.orelse:
            found = self._joined(falling, state)
            ends = [end for end in ends if end.how != FALL] + [found]
        yield from ends

    def _joined(self, falling: Sequence[End], before: State) -> End:
        """The state before a statement that only checks, with what holds on both of its sides."""
        after = before.copy()
        after.checked |= set.intersection(*(self._all_checked(end.state) for end in falling))
        return End(FALL, None, after, 0)

    @staticmethod
    def _all_checked(state: State) -> set[str]:
        """The plain values that are what is compiled in: left out, or compared."""
        left_out = {
            thing.name.removeprefix("value ") for (thing, what), truth in _flags(state)
            if what == "as compiled" and truth
        }  # fmt: skip
        return state.checked | left_out

    def _try(self, one: ast.Try, state: State) -> Iterator[End]:
        """Whatever the body raises, its handler goes on with the names from before it."""
        handlers = one.handlers
        usual = len(handlers) == 1 and handlers[0].type is not None and not handlers[0].name
        if not usual or one.orelse or one.finalbody:
            raise NotShown("another try statement", one.lineno)
        assert handlers[0].type is not None
        if self._value(handlers[0].type, state) != Known("UNUSUAL"):
            raise NotShown("a handler of other exceptions", handlers[0].lineno)
        after = state.copy()
        for name in _assigned(one.body):
            after.names.pop(name, None)
        for end in self.run(one.body, state.copy()):
            if end.how == RETURN:
                yield end
        yield from self.run(handlers[0].body, after)

    # -- assignments

    def _assign(self, target: ast.expr, value: Any, state: State) -> None:
        if isinstance(target, ast.Name):
            state.names[target.id] = value
            return
        if not isinstance(target, ast.Tuple):
            raise NotShown(f"an assignment to {ast.unparse(target)}", target.lineno)
        parts = self._parts(target, value, state)
        for one, part in zip(target.elts, parts, strict=True):
            inner = one.value if isinstance(one, ast.Starred) else one
            if not isinstance(inner, ast.Name):
                raise NotShown(f"an assignment to {ast.unparse(one)}", target.lineno)
            state.names[inner.id] = part

    def _parts(self, target: ast.Tuple, value: Any, state: State) -> Sequence[Any]:
        """A value taken apart."""
        count = len(target.elts)
        starred = [i for i, one in enumerate(target.elts) if isinstance(one, ast.Starred)]
        if isinstance(value, Attribute) and value.what == "shape":
            return self._axes_of(value.of, count, starred, state, target.lineno)
        if isinstance(value, Kept) and not starred:
            if len(value.items) != count:
                raise NotShown(f"{len(value.items)} things are kept, not {count}", target.lineno)
            return value.items
        if isinstance(value, Thing) and value in state.tuples and not starred:
            return [Thing(f"{value.name}[{i}]") for i in range(count)]
        if isinstance(value, tuple) and len(value) == count and not starred:
            return value
        raise NotShown("something else is taken apart", target.lineno)

    @staticmethod
    def _axes_of(
        array: Any, count: int, starred: Sequence[int], state: State, line: int
    ) -> Sequence[Any]:
        if array not in state.arrays or len(starred) > 1:
            raise NotShown("the shape of something else", line)
        shape: list[Dim | Axes] = [
            Dim.size(f"{array.name}.shape[{i if not starred or i < starred[0] else i - count}]")
            for i in range(count)
        ]
        for place in starred:
            shape[place] = Axes(f"{array.name}.axes")
        known = state.shapes.setdefault(array, tuple(shape))
        if not state.facts.unify(tuple(shape), known):
            raise NotShown("the shape is taken apart in another way", line)
        return shape

    # -- tests

    def _test(self, test: ast.expr, truth: bool, state: State) -> bool:
        """A whole test: the call of a kernel, its opposite, or what is known without a call."""
        negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        call = test.operand if isinstance(test, ast.UnaryOp) and negated else test
        if isinstance(call, ast.Call):
            function = self._value(call.func, state)
            if isinstance(function, KernelName) and not call.keywords:
                self._call_kernel(function, call, truth != negated, state)
                return True
        return self._assume(test, truth, state)

    def _assume(self, test: ast.expr, truth: bool, state: State) -> bool:
        """Add what a test says where it is true, or false; False where it cannot be."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._assume(test.operand, not truth, state)
        if isinstance(test, ast.BoolOp) and not self._of_numbers(test, state):
            if not is_of_kinds(test):
                raise NotShown(f"the test {ast.unparse(test)}", test.lineno)
            if isinstance(test.op, ast.And) == truth:
                return all(self._assume(one, truth, state) for one in test.values)
            return True
        condition = self._of_numbers(test, state)
        if condition:
            if truth:
                state.conditions.add(condition)
            return True
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compare(test, truth, state)
        raise NotShown(f"the test {ast.unparse(test)}", test.lineno)

    def _of_numbers(self, test: ast.expr, state: State) -> str:
        """A condition on plain numbers, in one spelling; empty for anything else."""
        called = {one.func for one in ast.walk(test) if isinstance(one, ast.Call)}
        known: dict[str, int] = {}
        for node in ast.walk(test):
            if not isinstance(node, ast.Name):
                continue
            value = self._value(node, state) if self._has(node.id, state) else None
            if node in called:
                if value not in (Known("min"), Known("max")):
                    return ""
            elif isinstance(value, Number) and value in state.types:
                known[node.id] = value.position
            else:
                return ""
        if not known or not is_of_numbers(test):
            return ""
        return spelled(test, known)

    def _call_kernel(
        self, function: KernelName, call: ast.Call, failed: bool, state: State
    ) -> None:
        """A call, the only one of its path; where it fails, what it wrote holds nothing known."""
        if state.called:
            raise NotShown(f"a second kernel is called: {function.name}", call.lineno)
        state.called = True
        arguments = [self._value(one, state) for one in call.args]
        if not failed:
            self._calling(function.name, arguments, state, call.lineno)
            return
        for one in arguments:
            if isinstance(one, Pointer):
                state.holds.pop(one.array, None)
                state.written.pop(one.array, None)

    def _compare(self, test: ast.Compare, truth: bool, state: State) -> bool:
        left, right = self._value(test.left, state), self._value(test.comparators[0], state)
        op, line = test.ops[0], test.lineno
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self._identical(left, right, isinstance(op, ast.Is) == truth, state, line)
        if isinstance(op, (ast.In, ast.NotIn)):
            self._length(left, right, isinstance(op, ast.In) == truth, state, line)
            return True
        sign = _SIGNS[type(op)]
        sign = sign if truth else _OPPOSITE[sign]
        if isinstance(left, Attribute) and left.what == "shape" and isinstance(right, tuple):
            if sign == "==":
                self._has_shape(left.of, right, state, line)
        elif isinstance(left, Axes) and isinstance(right, Axes):
            if sign == "==":
                state.facts.equate_axes(left, right)
        elif isinstance(left, Dim) and isinstance(right, Dim):
            constant = relation(left, sign, right)[1].constant
            if constant is not None:
                return state.facts.holds(left, sign, right)
            state.facts.relate(left, sign, right)
        else:
            raise NotShown(f"the test {ast.unparse(test)}", line)
        return True

    def _identical(self, left: Any, right: Any, same: bool, state: State, line: int) -> bool:
        """``is``: a type, a dtype, None, what stands for a value that is not passed."""
        if right is None or right == Known("AS_COMPILED"):
            key = (left, "none" if right is None else "as compiled")
            if not is_asked(left) and (not isinstance(left, Thing) or left in state.arrays):
                raise NotShown("what cannot be None is compared with it", line)
            return state.none.setdefault(key, same) == same
        if not isinstance(left, Attribute):
            raise NotShown("another comparison", line)
        if not same:
            return True
        if left.what == "type" and isinstance(left.of, Number):
            wanted = {Known("float"): "float64", Known("int"): "int64"}.get(right)
            if wanted is None:
                raise NotShown("another type of a number", line)
            state.types[left.of] = wanted
        elif left.what == "type" and right == Known("ndarray"):
            state.arrays.add(_thing(left.of))
        elif left.what == "type" and right == Known("tuple"):
            state.tuples.add(_thing(left.of))
        elif left.what == "dtype" and isinstance(right, DTypeValue) and left.of in state.arrays:
            state.dtypes[left.of] = right.name
        else:
            raise NotShown("another comparison", line)
        return True

    @staticmethod
    def _has_shape(array: Any, shape: Shape, state: State, line: int) -> None:
        if array not in state.arrays or not all(isinstance(one, (Dim, Axes)) for one in shape):
            raise NotShown("the shape of something else", line)
        known = state.shapes.setdefault(array, shape)
        if not state.facts.unify(known, shape):
            raise NotShown("a shape that does not fit", line)

    @staticmethod
    def _length(left: Any, right: Any, inside: bool, state: State, line: int) -> None:
        """``len(axes) in (0, 1)``."""
        if not (
            isinstance(left, tuple) and left[:1] == ("length of",) and isinstance(right, tuple)
        ):
            raise NotShown("another test of membership", line)
        if not inside:
            state.facts.apart |= {(left[1], one.constant) for one in right}

    # -- expressions

    def _has(self, name: str, state: State) -> bool:
        return name in (state.names if name in self._locals else self._globals)

    def _value(self, node: ast.expr, state: State) -> Any:
        if isinstance(node, ast.Name):
            if not self._has(node.id, state):
                raise NotShown(f"the name {node.id}", node.lineno)
            return state.names[node.id] if node.id in self._locals else self._globals[node.id]
        if isinstance(node, ast.Constant):
            value = node.value
            return Dim.of(value) if type(value) is int else value
        if isinstance(node, ast.Tuple):
            return tuple(self._element(one, state) for one in node.elts)
        if isinstance(node, (ast.BinOp, ast.UnaryOp)):
            return self._arithmetic(node, state)
        if isinstance(node, ast.IfExp):
            return self._allocated(node, state)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, state)
        if isinstance(node, ast.Subscript):
            table = self._value(node.value, state)
            if isinstance(table, Table):
                return Entry(table, self._value(node.slice, state))
        if isinstance(node, ast.Call) and not node.keywords:
            return self._call(node, state)
        raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)

    def _allocated(self, node: ast.IfExp, state: State) -> Any:
        """``empty(...) if n < 32768 else leased(...)``: an array by the number of its elements."""
        test, small, large = node.test, node.body, node.orelse
        if (
            isinstance(test, ast.Compare) and [type(op) for op in test.ops] == [ast.Lt]
            and isinstance(small, ast.Call) and isinstance(large, ast.Call)
            and self._value(small.func, state) == Known("empty")
            and self._value(large.func, state) == Known("leased")
            and list(map(ast.dump, small.args)) == list(map(ast.dump, large.args))
            and not (small.keywords or large.keywords)
        ):  # fmt: skip
            made = self._call(small, state)
            sizes = (one.count if isinstance(one, Axes) else one for one in state.shapes[made])
            least = abi.LARGE // BY_NAME[state.dtypes[made]].itemsize
            if self._value(test.left, state) == prod(sizes, start=Dim.of(1)) and self._value(
                test.comparators[0], state
            ) == Dim.of(least):
                return made
        raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)

    def _element(self, node: ast.expr, state: State) -> Any:
        """Of a tuple; ``*axes`` are all of these axes."""
        if not isinstance(node, ast.Starred):
            return self._value(node, state)
        value = self._value(node.value, state)
        if isinstance(value, AxesTuple):
            return value.axes
        if isinstance(value, Axes):
            return value
        raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)

    def _arithmetic(self, node: ast.BinOp | ast.UnaryOp, state: State) -> Any:
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, state)
            if isinstance(node.op, ast.USub) and isinstance(value, Dim):
                return -value
            raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)
        left, right = self._value(node.left, state), self._value(node.right, state)
        if isinstance(left, Dim) and isinstance(right, Dim):
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right != 0:
                if isinstance(node.op, ast.Mod):
                    return left % right
                return self._quotient(left, right, state)
        raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)

    @staticmethod
    def _quotient(left: Dim, right: Dim, state: State) -> Dim:
        """Sizes of shapes divided are a size of their own, so that shapes are solved for it."""
        shapes = [name for name in left.sizes if ".shape[" in name]
        return state.facts.quotient(left, right) if shapes else left // right

    def _attribute(self, node: ast.Attribute, state: State) -> Any:
        value = self._value(node.value, state)
        if isinstance(value, Thing) and value in state.arrays and node.attr in ("shape", "dtype"):
            return Attribute(value, node.attr)
        if isinstance(value, Path):
            if value.name == "library.lib" and node.attr.startswith("call_"):
                return KernelName(node.attr.removeprefix("call_"))
            found = f"{value.name}.{node.attr}"
            if found in ("workspace.pointer", "workspace.size"):
                return "workspace pointer" if node.attr == "pointer" else "workspace bytes"
            return Path(found)
        raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)

    def _call(self, node: ast.Call, state: State) -> Any:
        function = self._value(node.func, state)
        if any(isinstance(one, ast.Starred) for one in node.args):
            raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)
        given = [self._value(one, state) for one in node.args]
        if isinstance(function, Known):
            made = self._known(function.name, given, state, node)
            if made is not None:
                return made
        elif function == Path("library.ffi.from_buffer"):
            return self._pointer(given, node, state)
        elif isinstance(function, KeptClass) and len(given) == 1 and isinstance(given[0], tuple):
            return Kept(function.case, given[0])
        elif isinstance(function, (Entry, Defined)) or (
            isinstance(function, Path) and function.name.startswith(("careful.", "quick."))
        ):
            return Result(function, tuple(given))
        raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)

    def _known(self, name: str, given: Sequence[Any], state: State, node: ast.Call) -> Any:
        if name in ("empty", "zeros") and len(given) == 2:
            shape, dtype = given
            if isinstance(shape, tuple) and isinstance(dtype, DTypeValue):
                self._fresh += 1
                found = Thing(f"array {self._fresh}")
                if not all(isinstance(one, (Dim, Axes)) for one in shape):
                    raise NotShown("an array of another shape", node.lineno)
                state.array(found, dtype.name, shape)
                if name == "zeros":
                    state.holds[found] = None
                return found
        if name == "type" and len(given) == 1 and isinstance(given[0], (Thing, Number)):
            return Attribute(given[0], "type")
        if name == "type" and len(given) == 1 and isinstance(given[0], Kept):
            return KeptClass(given[0].case)
        if len(given) == 1 and isinstance(given[0], (Axes, AxesTuple)):
            axes = given[0].axes if isinstance(given[0], AxesTuple) else given[0]
            axes = state.facts.axes(axes)
            made = {"prod": axes.count, "tuple": AxesTuple(axes), "len": ("length of", axes)}
            return made.get(name)
        if name in ("min", "max") and len(given) == 2:
            if all(isinstance(one, Dim) for one in given):
                return (minimum if name == "min" else maximum)(*given)
        return None

    @staticmethod
    def _pointer(given: Sequence[Any], node: ast.Call, state: State) -> Pointer:
        """What is passed for an array: ``from_buffer`` refuses one that is not C-contiguous."""
        kinds = len(given) in (2, 3) and isinstance(given[0], CArray)
        if not kinds or not isinstance(given[1], Thing) or given[2:] not in ([], [True]):
            raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)
        if len(given) == 3 and not given[1].of_out:
            raise NotShown(f"{ast.unparse(node.args[1])} is not to be written", node.lineno)
        return Pointer(given[1], given[0].base, writable=given[1].fresh or len(given) == 3)


def _thing(value: Thing | Number) -> Thing:
    """An object; raises NotShown for a number."""
    if isinstance(value, Number):
        raise NotShown("a number is taken for an object")
    return value


def _flags(state: State) -> Iterator[tuple[tuple[Thing, str], bool]]:
    return iter(state.none.items())


def _assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements assign to."""
    return {
        node.id for one in statements for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }  # fmt: skip


def spelled(test: ast.expr, places: Mapping[str, int]) -> str:
    """A condition on plain numbers, these called by their places."""

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            found = places.get(node.id)
            return node if found is None else ast.Name(f"number_{found}", node.ctx)

    copied = ast.parse(ast.unparse(test), mode="eval").body
    return ast.unparse(Renamed().visit(copied))
