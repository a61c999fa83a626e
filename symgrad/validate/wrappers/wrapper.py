"""One wrapper: does every call that it makes fit the C, and compute what was traced?

In: the wrapper's text, the header, the traced Function, the graphs of its kernels.
Out: ``Outcome``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symgrad import abi
from symgrad.ir.dim import Dim, Size
from symgrad.ir.function import FunctionGraphs
from symgrad.ir.graph import Graph, Node
from symgrad.validate.source import Header
from symgrad.validate.symbolic.kernel import Outcome
from symgrad.validate.wrappers.forms import check_chooses, check_straight, check_tries
from symgrad.validate.wrappers.machine import FALL, RAISE, RETURN, End, Machine, spelled
from symgrad.validate.wrappers.meaning import Item, Meaning
from symgrad.validate.wrappers.naming import (
    check_cotangents,
    check_name,
    known_as,
    parameter_names,
)
from symgrad.validate.wrappers.program import Program, read
from symgrad.validate.wrappers.record import Record, check_values, needed
from symgrad.validate.wrappers.state import Calls, State, at, shape_of
from symgrad.validate.wrappers.values import (
    Attribute,
    Axes,
    AxesTuple,
    Defined,
    Entry,
    Kept,
    KeptClass,
    Known,
    NotShown,
    Number,
    Path,
    Result,
    Shape,
    Table,
    Thing,
    Wrong,
    is_asked,
)


def validate(
    text: str, header: Header, op: abi.Op, graphs: FunctionGraphs, kernels: Mapping[str, Graph]
) -> Outcome:
    """Does the wrapper ``text`` call the kernels as their graphs and the Function say?

    ``op``: the record of calls, by which the C is validated; that of the text is the same.
    ``graphs``: as kernels were made of them; ``kernels``: the graph of each kernel, against which
    the C is validated.
    """
    try:
        program = read(text)
        if program.op != op:
            raise NotShown("the record of calls is not that of the C", program.line)
        paths = _Wrapper(program, header, graphs, kernels).check()
    except Wrong as problem:
        return Outcome(False, f"wrong: {problem.reason}", problem.line)
    except NotShown as problem:
        return Outcome(False, problem.reason, problem.line)
    except RecursionError:
        return Outcome(False, "it is nested too deeply", passing=True)
    except SyntaxError as problem:
        return Outcome(False, f"{problem.text} in its record is no expression")
    except Exception as error:  # nothing passes by default
        reason = f"not understood: {type(error).__name__}: {error}"
        return Outcome(False, reason, passing=True)
    return Outcome(True, paths=paths)


class _Wrapper:
    """All functions of one text."""

    def __init__(
        self, program: Program, header: Header, graphs: FunctionGraphs,
        kernels: Mapping[str, Graph],
    ) -> None:  # fmt: skip
        if program.op is None:
            raise NotShown("there is no record of calls")
        self.program, self.graphs, self.op = program, graphs, program.op
        self.line = program.line
        if len(self.op.cases) != len(graphs.cases):
            raise Wrong(f"there are {len(graphs.cases)} cases", self.line)
        if len(program.fields) != len(graphs.cases):
            raise Wrong("what forward keeps has no class in some case", self.line)
        self._header = header
        self.meanings = [Meaning(graphs, case, kernels) for case in graphs.cases]
        self.calls = [Calls(header, self.op.kernels, one) for one in self.meanings]
        self.kept: list[tuple[Item, ...]] = []
        self.paths = 0

    def check(self) -> int:
        """The number of paths."""
        check_values(self.op, self.graphs, self.line)
        self._check_differentiable()
        for place, meaning in enumerate(self.meanings):
            record = Record(self.op, place, meaning, self.calls[place], self.line)
            self.kept.append(record.check())
            self._check_fields(place)
        self._check_numbers()
        for name in ("inference", "forward"):
            _Forward(self, name).check()
        _Backward(self).check()
        return self.paths

    def _check_differentiable(self) -> None:
        """The inputs that have a gradient in some case."""
        found = tuple(
            any(meaning.gradients[place] is not None for meaning in self.meanings)
            or (self.graphs.derived and name in self.graphs.differentiable)
            for place, name in enumerate(self.graphs.input_names)
        )
        if self.op.differentiable != found:
            raise Wrong(f"the inputs that have a gradient are {found}", self.line)

    def _check_fields(self, place: int) -> None:
        """What is kept is called as the record calls it."""
        case = self.op.cases[place]
        names = (*(one.array.name for one in case.residuals), *case.sizes)
        numbers = tuple(one.array.name for one in case.residuals if one.array.by_value)
        if self.program.fields[place] != (names, numbers):
            raise Wrong(f"what is kept is {names}", self.line)

    def _check_numbers(self) -> None:
        """``_NUMBERS``: the parameters of ``forward`` that are the numbers."""
        if self.op.numbers:
            found = self.program.globals.get("_NUMBERS")
            wanted = tuple(_Forward(self, "forward").number_names())
            if found != wanted:
                line = self.program.lines.get("_NUMBERS", self.line)
                raise Wrong(f"_NUMBERS are {wanted}", line)

    def function(self, name: str) -> ast.FunctionDef:
        """A function of the text."""
        found = self.program.functions.get(name)
        if found is None:
            raise NotShown(f"there is no function {name}", self.line)
        return found


class _Forward:
    """``inference`` or ``forward``."""

    def __init__(self, wrapper: _Wrapper, name: str) -> None:
        self.wrapper, self.name = wrapper, name
        self.function = wrapper.function(name)
        self._public = self._known_as()
        self._parameters()
        self._case = 0

    # -- parameters

    def _known_as(self) -> dict[str, str]:
        """What callers know each parameter as."""
        defined = self.wrapper.program.globals[self.name]
        table = defined.renamed if isinstance(defined, Defined) else ()
        arguments = self.function.args
        own = [one.arg for one in (*arguments.args, *arguments.kwonlyargs)]
        return known_as(own, table, self.function.lineno)

    @property
    def _known(self) -> list[abi.Value]:
        """The plain arguments that are parameters."""
        return [one for one in self.wrapper.op.values if one.name.isidentifier()]

    @property
    def _wanted(self) -> dict[str, str]:
        """What callers have to know each argument as."""
        inputs = self.wrapper.graphs.input_names
        return parameter_names([*inputs, *(one.name for one in self._known)])

    def _parameters(self) -> None:
        """Inputs come first; plain arguments where ``apply`` takes them, or by name."""
        arguments = self.function.args
        line = self.function.lineno
        if arguments.posonlyargs or arguments.vararg or arguments.kwarg:
            raise NotShown("other parameters", line)
        inputs = self.wrapper.graphs.input_names
        positional = [one.arg for one in arguments.args]
        if len(positional) < len(inputs):
            raise Wrong(f"{self.name} takes {len(positional)} arguments by position", line)
        self.inputs = positional[: len(inputs)]
        wanted = self._wanted
        for own, name in zip(self.inputs, inputs, strict=True):
            check_name(self._public[own], name, wanted, line)
        free = len(positional) - len(arguments.defaults)
        defaults = dict(zip(positional[free:], arguments.defaults, strict=True))
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        defaults |= {one.arg: value for one, value in pairs if value is not None}
        if defaults.keys() & set(self.inputs):
            raise Wrong("an input has a default", line)
        self.values = self._plain(positional[len(inputs) :], defaults)
        last = arguments.kwonlyargs[-1].arg if arguments.kwonlyargs else ""
        if last != "out" or self._public[last] != last or not _is_none(defaults.get("out")):
            raise Wrong("out is no parameter, or is not None by default", line)

    def _plain(
        self, behind: Sequence[str], defaults: Mapping[str, ast.expr]
    ) -> dict[str, abi.Value]:
        """The plain arguments, by their parameters."""
        arguments = self.function.args
        line = self.function.lineno
        wanted = self._wanted
        known = {wanted[one.name]: one for one in self._known}
        found: dict[str, abi.Value] = {}
        for own in (*behind, *(one.arg for one in arguments.kwonlyargs)):
            value = known.get(self._public[own])
            if value is not None:
                found[own] = value
                self._check_default(value, defaults.get(own), line)
            elif own != "out":
                raise Wrong(f"the parameter {own} is no argument of the Function", line)
        places = [found[own].place for own in behind]
        there = sorted(one.place for one in self.wrapper.op.values if one.place is not None)
        last = [place for i, place in enumerate(there) if place == len(self.inputs) + i]
        if [one for one in last if one in places] != places:
            raise Wrong("plain arguments come in another order than in apply", line)
        missing = [one.name for one in known.values() if one not in found.values()]
        if missing:
            raise Wrong(f"{missing[0]} is no parameter", line)
        return found

    def _check_default(self, value: abi.Value, default: ast.expr | None, line: int) -> None:
        """The value that is compiled in, or the number that the Function has as default."""
        if not value.number:
            env = self.wrapper.program.globals
            found = env.get(default.id) if isinstance(default, ast.Name) else None
            if found != Known("AS_COMPILED"):
                raise Wrong(f"the default of {value.name} is not what is compiled in", line)
        elif (default is None) != (not value.text):
            raise Wrong(f"the default of {value.name} is {value.text or 'none'}", line)
        elif default is not None:
            if ast.dump(default) != ast.dump(ast.parse(value.text, mode="eval").body):
                raise Wrong(f"the default of {value.name} is {value.text}", line)

    def number_names(self) -> Iterator[str]:
        """The parameters that are the plain numbers, in the order of the record."""
        for one in self.wrapper.op.numbers:
            yield next(self._public[own] for own, value in self.values.items() if value == one)

    # -- the run

    def check(self) -> None:
        """Every path of it."""
        state = State({own: Thing(f"input {i}") for i, own in enumerate(self.inputs)})
        numbers = self.wrapper.op.numbers
        for own, value in self.values.items():
            state.names[own] = (
                Number(numbers.index(value)) if value.number else Thing(f"value {value.name}")
            )
        state.names["out"] = Thing("out")
        check_tries(self.function)
        body = list(self.function.body)
        blocks = [one for one in body if isinstance(one, ast.Try)]
        if len(blocks) != len(self.wrapper.op.cases):
            raise NotShown(f"{self.name} tries {len(blocks)} cases", self.function.lineno)
        self._blocks(body, state)

    def _blocks(self, body: Sequence[ast.stmt], state: State) -> None:
        """One case is tried after the other; then the runtime is called."""
        case = 0
        machine = Machine(self.function, self.wrapper.program.globals, self._calling)
        for one in body:
            self._case = min(case, len(self.wrapper.op.cases) - 1)
            meaning = self.wrapper.meanings[self._case]
            self._give(state, meaning)
            ends = machine.run([one], state)
            for end in ends:
                self._end(end)
            falling = [end.state for end in ends if end.how == FALL]
            if isinstance(one, ast.Try):
                case += 1
            if len(falling) > 1:
                raise NotShown("the paths are not told apart", one.lineno)
            if not falling:
                if one is not body[-1]:
                    raise NotShown("statements that are never reached", one.lineno)
                return
            state = falling[0]
        raise Wrong(f"{self.name} returns nothing", self.function.lineno)

    @staticmethod
    def _give(state: State, meaning: Meaning) -> None:
        """What the arguments hold, in the terms of a case."""
        for place, node in enumerate(meaning.inputs):
            state.holds[Thing(f"input {place}")] = node
        for place, number in enumerate(meaning.numbers):
            state.holds.pop(Thing(f"number {place}"), None)
            if number is not None:
                state.holds[Thing(f"number {place}")] = number

    def _calling(self, kernel: str, arguments: Sequence[Any], state: State, line: int) -> None:
        sizes = self._sizes(state, line)
        self._check_served(state, sizes, line)
        self.wrapper.calls[self._case].make(kernel, arguments, state, sizes, line)

    def _groups(self, state: State) -> dict[str, Axes]:
        """The axes that each ``*name`` stands for, by the first input that has them."""
        case = self.wrapper.graphs.cases[self._case]
        found: dict[str, Axes] = {}
        for place, group in enumerate(case.any_rank.inputs if case.any_rank else ()):
            if group is not None:
                axes = Axes(f"input {place}.axes")
                found.setdefault(group.name, axes)
        return found

    def _sizes(self, state: State, line: int) -> dict[str, Dim]:
        """The sizes of the case, read off the shapes of the inputs; all shapes must agree."""
        case = self.wrapper.graphs.cases[self._case]
        pairs: list[tuple[Dim, Dim, str]] = []
        for place, node in enumerate(case.tensors):
            thing = Thing(f"input {place}")
            if thing not in state.arrays or state.dtypes.get(thing) != str(node.dtype):
                raise Wrong(f"{self.inputs[place]} was not checked to be {node.dtype}", line)
            group = case.any_rank.inputs[place] if case.any_rank else None
            pairs += self._axes(place, node, group, state, line)
        sizes = _solved(pairs, state)
        for wanted, found, what in pairs:
            missing = [name for name in wanted.sizes if name not in sizes]
            if missing:
                raise NotShown(f"no axis tells the size {missing[0]}", line)
            state.facts.require(found, at(wanted, sizes), what, line)
        return sizes

    def _axes(
        self, place: int, node: Node, group: Any, state: State, line: int
    ) -> Iterator[tuple[Dim, Dim, str]]:
        """Each axis of an input: what the graph says, what the array has."""
        name = self.inputs[place]
        shape = state.shapes.get(Thing(f"input {place}"))
        if shape is None:
            raise Wrong(f"the shape of {name} was not checked", line)
        dims = list(node.shape)
        plain: list[Dim] = []
        if group is not None:
            start, end = group.axis, group.axis + group.number
            if len(shape) != len(dims) - group.number + 1 or not isinstance(shape[start], Axes):
                raise Wrong(f"{name} is taken apart as an array of other axes", line)
            axes = state.facts.axes(shape[start])
            if axes != state.facts.axes(self._groups(state)[group.name]):
                raise Wrong(f"{name} was not checked to have the axes *{group.name}", line)
            for dim in dims[start : end - 1]:
                yield dim, Dim.of(1), f"an axis of {name}"
            yield dims[end - 1], axes.count, f"the axes *{group.name} of {name}"
            dims[start:end] = []
            shape = (*shape[:start], *shape[start + 1 :])
        for one in shape:
            if not isinstance(one, Dim):
                raise Wrong(f"{name} is taken apart as an array of any number of axes", line)
            plain.append(one)
        if len(plain) != len(dims):
            raise Wrong(f"{name} has {len(dims)} axes, not {len(plain)}", line)
        for axis, (wanted, found) in enumerate(zip(dims, plain, strict=True)):
            yield wanted, found, f"axis {axis} of {name}"

    def _check_served(self, state: State, sizes: Mapping[str, Dim], line: int) -> None:
        """The case serves these sizes, axes and numbers."""
        case = self.wrapper.graphs.cases[self._case]
        facts = state.facts
        for name, dim in sizes.items():
            if not facts.holds(dim, ">=", Dim.of(0)):
                raise Wrong(f"the size {name} may be negative: {facts.of(dim)}", line)
        for sign, dim in needed(case):
            if not facts.holds(at(dim, sizes), sign, Dim.of(0)):
                raise Wrong(f"the case is for {dim} {sign} 0, which was not checked", line)
        apart = {(facts.axes(one), count) for one, count in facts.apart}
        for axes in self._groups(state).values():
            for count in case.any_rank.apart if case.any_rank else ():
                if (facts.axes(axes), count) not in apart:
                    raise Wrong(f"the case does not serve {count} axes", line)
        self._check_plain(state, case.where, line)

    def _check_plain(self, state: State, where: Sequence[str], line: int) -> None:
        """Plain values are those that are compiled in, and the case is for these numbers."""
        op = self.wrapper.op
        for value in self.values.values():
            if not value.number and value.name not in state.checked:
                raise Wrong(f"{value.name} is not compared with what is compiled in", line)
        places = {one.name: place for place, one in enumerate(op.numbers)}
        conditions = [one.condition for one in op.numbers if one.condition]
        for text in (*where, *conditions):
            if spelled(ast.parse(text, mode="eval").body, places) not in state.conditions:
                raise Wrong(f"{text} was not checked", line)
        for place, one in enumerate(op.numbers):
            if state.types.get(Number(place)) != one.number:
                raise Wrong(f"the type of {one.name} was not checked", line)

    # -- how it ends

    def _end(self, end: End) -> None:
        if end.how == FALL:
            return
        self.wrapper.paths += 1
        if end.how == RAISE:
            raise Wrong(f"{self.name} raises what is not meant for callers", end.line)
        if isinstance(end.value, Result):
            self._check_careful(end)
            return
        value = end.value
        if self.name == "forward":
            if not isinstance(value, tuple) or len(value) != 2:
                raise Wrong("forward does not return a pair", end.line)
            value, kept = value
            self._check_kept(kept, end)
        self._check_outputs(value, end)

    def _check_careful(self, end: End) -> None:
        """The runtime gets the whole call."""
        given = tuple(Thing(f"input {i}") for i in range(len(self.inputs)))
        numbers = tuple(Number(i) for i in range(len(self.wrapper.op.numbers)))
        wanted = (given, Thing("out"), *([numbers] if numbers else []))
        check_answered(end)
        way = "quick" if is_asked(end.value) else "careful"
        if end.value != Result(Path(f"{way}.{self.name}"), wanted):
            raise Wrong(f"the runtime is not given this call of {self.name}", end.line)
        checked = Machine._all_checked(end.state)
        for value in self.values.values():
            if not value.number and value.name not in checked:
                raise Wrong(f"{value.name} is not compared with what is compiled in", end.line)

    def _check_outputs(self, value: Any, end: End) -> None:
        """Each output holds what it should, in an array of its own or in that of ``out``."""
        case = self.wrapper.graphs.cases[self._case]
        meaning = self.wrapper.meanings[self._case]
        several = len(case.outputs) > 1
        found = value if several else (value,)
        if not isinstance(found, tuple) or len(found) != len(case.outputs):
            raise Wrong(f"{self.name} does not return {len(case.outputs)} outputs", end.line)
        given = end.state.none.get((Thing("out"), "none")) is False
        sizes = self._sizes(end.state, end.line)
        check_memory(found, end)
        for place, array in enumerate(found):
            into = Thing(f"out[{place}]") if several else Thing("out")
            name = case.output_names[place]
            if given != (array == into):
                raise Wrong(f"{name} is returned in another array than out", end.line)
            group = case.any_rank.outputs[place] if case.any_rank else None
            shape = shape_of(case.outputs[place], self._group(group, end.state), sizes)
            check_array(array, case.outputs[place], shape, end, name)
            holds = end.state.holds.get(array)
            if holds is None:
                raise Wrong(f"nothing is written to {name}", end.line)
            meaning.check_output(place, holds, end.line)

    def _group(self, group: Any, state: State) -> tuple[int, int, Axes] | None:
        if group is None:
            return None
        return group.axis, group.number, self._groups(state)[group.name]

    def _check_kept(self, kept: Any, end: End) -> None:
        """What is kept is what the record says, in its order."""
        if not isinstance(kept, Kept) or kept.case != self._case:
            raise Wrong("forward keeps what belongs to another case", end.line)
        wanted = self.wrapper.kept[self._case]
        if len(wanted) != len(kept.items):
            raise Wrong(f"forward keeps {len(kept.items)} things, not {len(wanted)}", end.line)
        sizes, groups = self._sizes(end.state, end.line), self._groups(end.state)
        facts = end.state.facts
        for place, (item, value) in enumerate(zip(wanted, kept.items, strict=True)):
            if item.node is not None:
                thing = Thing(f"number {value.position}") if isinstance(value, Number) else value
                if end.state.holds.get(thing) is not item.node:
                    raise Wrong(f"forward keeps something else at place {place}", end.line)
            elif item.size:
                if not isinstance(value, Dim):
                    raise Wrong(f"no size is kept at place {place}", end.line)
                facts.require(value, sizes[item.size], f"what is kept as {item.size}", end.line)
            elif not isinstance(value, AxesTuple) or (
                facts.axes(value.axes) != facts.axes(groups[item.axes])
            ):
                raise Wrong(f"other axes are kept at place {place}", end.line)


class _Backward:
    """``backward``, and the functions that it has for the gradients that are wanted."""

    def __init__(self, wrapper: _Wrapper) -> None:
        self.wrapper = wrapper
        self.function = wrapper.function("backward")
        self._case = 0
        self._sizes: dict[str, Dim] = {}
        self._groups: dict[str, Axes] = {}

    def check(self) -> None:
        """``backward`` itself, then each function of its table."""
        arguments = self.function.args
        line = self.function.lineno
        count = len(self.wrapper.op.cases[0].outputs)
        names = [one.arg for one in arguments.args]
        last = [one.arg for one in arguments.kwonlyargs]
        other = arguments.posonlyargs or arguments.vararg or arguments.kwarg or arguments.defaults
        if len(names) != count + 1 or last != ["needs_input_grad", "out"] or other:
            raise Wrong(f"backward takes the residuals and {count} cotangents", line)
        defined = self.wrapper.program.globals["backward"]
        table = defined.renamed if isinstance(defined, Defined) else ()
        if names[0] != "residuals" or table:
            raise Wrong("callers know the parameters of backward by other names", line)
        check_cotangents(names[1:], self.wrapper.graphs.cases[0].output_names, line)
        if not all(map(_is_none, arguments.kw_defaults)):
            raise Wrong("needs_input_grad or out is not None by default", line)
        cotangents = [Thing(f"cotangent {i}") for i in range(count)]
        state = State(dict(zip(names, [Thing("residuals"), *cotangents], strict=True)))
        state.names |= {name: Thing(name) for name in last}
        check_chooses(self.function)
        machine = Machine(self.function, self.wrapper.program.globals, self._refuse)
        ends = machine.run(self.function.body, state)
        tables = [self._table(end, cotangents) for end in ends]
        self.wrapper.paths += len(ends)
        found = [one for one in tables if one is not None]
        if len(ends) != 3 or len(found) != 1:
            raise NotShown("backward does not choose among its functions", line)
        for key, function in found[0].entries:
            self._entry(key, function)

    @staticmethod
    def _refuse(kernel: str, arguments: Sequence[Any], state: State, line: int) -> None:
        raise NotShown("backward calls a kernel itself", line)

    def _table(self, end: End, cotangents: Sequence[Thing]) -> Table | None:
        """The table that a path chooses from; None where it calls the runtime."""
        given = (Thing("residuals"), tuple(cotangents), Thing("needs_input_grad"), Thing("out"))
        for way in ("careful", "quick"):
            if end.how == RETURN and end.value == Result(Path(f"{way}.backward"), given):
                check_answered(end)
                return None
        if end.how == RETURN and isinstance(end.value, Result):
            entry = end.value.function
            passed = (Thing("residuals"), *cotangents, Thing("out"))
            if isinstance(entry, Entry) and end.value.arguments == passed:
                own = Attribute(Thing("residuals"), "type")
                if entry.key == (own, Thing("needs_input_grad")):
                    return entry.table
        raise Wrong("backward passes on another call", end.line)

    # -- one function

    def _entry(self, key: Any, function: Any) -> None:
        line = self.wrapper.program.lines.get("_BACKWARDS", self.function.lineno)
        if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], KeptClass)):
            raise NotShown("a key of another kind", line)
        if not isinstance(function, Defined) or function.renamed:
            raise NotShown("something else than a function", line)
        mask = self.wrapper.op.differentiable if key[1] is None else key[1]
        able = self.wrapper.op.differentiable
        usual = isinstance(mask, tuple) and len(mask) == len(able) and set(mask) <= {True, False}
        if not usual or any(wanted and not one for wanted, one in zip(mask, able, strict=True)):
            raise Wrong(f"there are no gradients {mask}", line)
        self._case = key[0].case
        self._run(self.wrapper.function(function.name), mask)

    def _run(self, function: ast.FunctionDef, mask: Sequence[bool]) -> None:
        """A function that computes the gradients of ``mask``."""
        arguments = function.args
        names = [one.arg for one in arguments.args]
        count = len(self.wrapper.op.cases[0].outputs)
        simple = ast.unparse(arguments) == ", ".join(names)
        if not simple or len(names) != count + 2:
            raise Wrong(f"{function.name} takes other arguments", function.lineno)
        state = self._start(names)
        check_straight(function)
        machine = Machine(function, self.wrapper.program.globals, self._calling)
        ends = machine.run(function.body, state)
        for end in ends:
            self.wrapper.paths += 1
            if end.how == FALL:
                raise Wrong(f"{function.name} returns nothing", function.lineno)
            if end.how == RETURN:
                self._check_gradients(end, mask)
        if not any(end.how == RETURN for end in ends):
            raise NotShown(f"{function.name} never returns", function.lineno)

    def _start(self, names: Sequence[str]) -> State:
        """What forward kept, one cotangent for each output, and ``out``."""
        meaning = self.wrapper.meanings[self._case]
        state = State({})
        self._sizes, self._groups = {}, {}
        items: list[Any] = []
        numbers = list(meaning.numbers)
        for place, item in enumerate(self.wrapper.kept[self._case]):
            if item.size:
                items.append(Dim.size(f"kept {item.size}"))
                self._sizes[item.size] = items[-1]
            elif item.axes:
                self._groups[item.axes] = Axes(f"kept {item.axes}")
                items.append(AxesTuple(self._groups[item.axes]))
            elif any(item.node is one for one in numbers):
                position = next(i for i, one in enumerate(numbers) if item.node is one)
                items.append(Number(position))
                state.holds[Thing(f"number {position}")] = item.node
            else:
                items.append(Thing(f"kept {place}"))
                state.holds[items[-1]] = item.node
        self._sizes |= dict(self._together())
        cotangents = [Thing(f"cotangent {i}") for i in range(len(names) - 2)]
        for thing, node in zip(cotangents, meaning.cotangents, strict=True):
            if node is not None:
                state.holds[thing] = node
        given = [Kept(self._case, tuple(items)), *cotangents, Thing("out")]
        state.names = dict(zip(names, given, strict=True))
        return state

    def _together(self) -> Iterator[tuple[str, Dim]]:
        """The sizes that stand for any number of axes."""
        case = self.wrapper.graphs.cases[self._case]
        pairs = zip(case.tensors, case.any_rank.inputs if case.any_rank else (), strict=False)
        for node, group in pairs:
            if group is None or group.name not in self._groups:
                continue
            *ones, whole = node.shape[group.axis : group.axis + group.number]
            for one in ones:
                yield str(one), Dim.of(1)
            yield str(whole), self._groups[group.name].count

    def _calling(self, kernel: str, arguments: Sequence[Any], state: State, line: int) -> None:
        self.wrapper.calls[self._case].make(kernel, arguments, state, self._sizes, line)

    def _check_gradients(self, end: End, mask: Sequence[bool]) -> None:
        """One gradient for each input that is wanted, None for the others."""
        case = self.wrapper.graphs.cases[self._case]
        if not isinstance(end.value, tuple) or len(end.value) != len(mask):
            raise Wrong(f"backward does not return {len(mask)} gradients", end.line)
        check_memory([one for one in end.value if one is not None], end)
        given = end.state.none.get((Thing("out"), "none")) is False
        for place, (array, wanted) in enumerate(zip(end.value, mask, strict=True)):
            name = f"the gradient of {self.wrapper.graphs.input_names[place]}"
            if not wanted:
                if array is not None:
                    raise Wrong(f"{name} is returned, and not wanted", end.line)
                continue
            if not isinstance(array, Thing) or given != (array == Thing(f"out[{place}]")):
                raise Wrong(f"{name} is returned in another array than out", end.line)
            group = case.any_rank.inputs[place] if case.any_rank else None
            axes = None
            if group is not None:
                axes = (group.axis, group.number, self._groups[group.name])
            shape = shape_of(case.tensors[place], axes, self._sizes)
            check_array(array, case.tensors[place], shape, end, name)
            self._check_gradient(place, array, end)

    def _check_gradient(self, place: int, array: Thing, end: End) -> None:
        meaning, state = self.wrapper.meanings[self._case], end.state
        kept = self.wrapper.kept[self._case]
        if array not in state.holds:
            raise Wrong(f"nothing is written to the gradient {place}", end.line)
        written = state.written.get(array)
        if written is None:
            meaning.check_gradient(place, state.holds[array], kept, "", {}, "", end.line)
            return
        call, output = written
        meaning.check_gradient(
            place, state.holds[array], kept, call.kernel, call.given, output, end.line
        )


def _solved(pairs: Sequence[tuple[Dim, Dim, str]], state: State) -> dict[str, Dim]:
    """The sizes that axes tell: bare ones first, then those in a linear expression."""
    sizes: dict[str, Dim] = {}
    for wanted, found, _ in pairs:
        atom = wanted.atom
        if isinstance(atom, Size):
            sizes.setdefault(atom.name, state.facts.of(found))
    for wanted, found, _ in pairs:
        names = [name for name in wanted.sizes if name not in sizes]
        if len(names) != 1 or len(wanted.sizes) != 1:
            continue
        size = Dim.size(names[0])
        offset = wanted.substitute({Size(names[0]): Dim.of(0)})
        factor = (wanted - offset).exact_quotient(size)
        if factor is None or factor.constant is None:
            continue
        value = (state.facts.of(found) - offset).exact_quotient(factor)
        if value is not None:
            sizes[names[0]] = value
    return sizes


def check_answered(end: End) -> None:
    """What C returns of a whole call is returned where it is not None alone."""
    if is_asked(end.value) and end.state.none.get((end.value, "none")) is not False:
        raise Wrong("None may be returned", end.line)


def check_array(array: Any, node: Node, shape: Shape, end: End, name: str) -> None:
    """It is an array of the dtype of the node, of this shape."""
    state = end.state
    if not isinstance(array, Thing) or array not in state.arrays:
        raise Wrong(f"{name} is no array", end.line)
    if state.dtypes.get(array) != str(node.dtype):
        raise Wrong(f"{name} has the dtype {state.dtypes.get(array)}, not {node.dtype}", end.line)
    found, wanted = state.facts.shape(state.shapes.get(array, ())), state.facts.shape(shape)
    if array not in state.shapes or len(found) != len(wanted):
        raise Wrong(f"{name} has the shape {_text(found)}, not {_text(wanted)}", end.line)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(one, Dim) and isinstance(other, Dim):
            state.facts.require(one, other, f"an axis of {name}", end.line)
        elif one != other:
            raise Wrong(f"{name} has the shape {_text(found)}, not {_text(wanted)}", end.line)


def check_memory(results: Sequence[Any], end: End) -> None:
    """Each result is an array of its own, fresh or of ``out``; nothing else of it is written."""
    state = end.state
    absent = state.none.get((Thing("out"), "none"))
    if absent is None:
        raise Wrong("it is not looked at whether out is given", end.line)
    for array in results:
        if not isinstance(array, Thing) or not (array.fresh if absent else array.of_out):
            raise Wrong(f"a result is no {'new array' if absent else 'array of out'}", end.line)
    if len(set(results)) < len(results):
        raise Wrong("two results are one array", end.line)
    for array in state.written:
        if not array.fresh and array not in results:
            raise Wrong(f"{array.name} is written, and not returned", end.line)


def _text(shape: Shape) -> str:
    return f"({', '.join(str(one) if isinstance(one, Dim) else '*' for one in shape)})"


def _is_none(default: ast.expr | None) -> bool:
    return isinstance(default, ast.Constant) and default.value is None
