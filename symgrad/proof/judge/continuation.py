"""Forward on a boundary as it is beside it: values of comparisons, and removable singularities.

In: a ``Subject`` and boundaries.  Out: the outputs of forward, with other nodes.

``where(x == 0, 1, sin(s) / s)``, with ``s = where(x == 0, 1, x)``, is ``sin(x) / x`` beside the
boundary, which has an analytic continuation.  Where forward has a derivative on the boundary, it
is that of the continuation: forward is the continuation off a null set, a derivative is continuous
along each line that leaves the set, and these lines are dense.  Its value and its derivative are
the first two coefficients of a power series in ``t = x - 0``.

Comparisons that are the same on both sides of a boundary are put as they are there.  Then each
elementwise node that divides by what vanishes on a boundary becomes a choice: at the elements that
a mask puts on the boundary ``h0 + h1 (point - value)``, elsewhere what it was.  The coefficients
are exact expressions in the other operands.  What is not shown (that a leading coefficient does
not vanish, that lower ones do, that a logarithm or a root is taken of something positive) makes
the continuation unknown: then there is no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy

from symgrad.errors import GraphError
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.judge.boundaries import Boundary, changes
from symgrad.proof.judge.masks import masks_of
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.scalars import literals
from symgrad.proof.scalars.bodies import restricted_operands, translated
from symgrad.proof.scalars.symbolic import SYMBOLS, as_term, body
from symgrad.proof.words.relations import number

TERMS = 8
"""How many coefficients are computed."""
LARGEST = 2**53
MOST_NODES = 400
LONGEST = 40
"""Operations of an expression that does not depend on the point; a longer one gets a symbol."""
_MOVES = ("expand", "reshape", "permute", "cast")
_ENTIRE = (
    sympy.exp, sympy.sin, sympy.cos, sympy.sinh, sympy.cosh, sympy.tanh, sympy.atan, sympy.asinh,
    sympy.erf, sympy.erfc,
)  # fmt: skip
"""Functions that are analytic on the whole real line."""
_OF_POSITIVE = (sympy.log, sympy.loggamma, sympy.digamma, sympy.polygamma)
"""Functions that are analytic where their last operand is positive."""


class Unknown(Exception):
    """No continuation is shown."""


# -- power series in one variable, with exact coefficients


@dataclass(frozen=True)
class Series:
    """``sum_k parts[k] t**(low + k)``, up to what is smaller than the last of these powers."""

    low: int
    parts: tuple[Any, ...]

    @property
    def end(self) -> int:
        """The first power that is not known."""
        return self.low + len(self.parts)

    def at(self, power: int) -> Any:
        """A coefficient.  Raises Unknown."""
        if power >= self.end:
            raise Unknown
        return self.parts[power - self.low] if power >= self.low else sympy.Integer(0)


def constant(value: Any) -> Series:
    """What does not depend on the variable."""
    return _series(0, [value, *[sympy.Integer(0)] * (TERMS - 1)])


def _series(low: int, parts: Iterable[Any]) -> Series:
    """The series, without coefficients in front that are 0."""
    found = [sympy.expand(part) for part in parts][:TERMS]
    while found and found[0] == 0:
        found, low = found[1:], low + 1
    return Series(low, tuple(found))


def add(left: Series, right: Series) -> Series:
    """The sum."""
    low, end = min(left.low, right.low), min(left.end, right.end)
    return _series(low, [left.at(k) + right.at(k) for k in range(low, end)])


def mul(left: Series, right: Series) -> Series:
    """The product."""
    low = left.low + right.low
    count = min(len(left.parts), len(right.parts))
    return _series(
        low,
        [sum(left.parts[i] * right.parts[k - i] for i in range(k + 1)) for k in range(count)],
    )


def inverse(one: Series) -> Series:
    """The reciprocal.  Raises Unknown where the leading coefficient may vanish."""
    if not one.parts or one.parts[0].is_nonzero is not True:
        raise Unknown
    first = one.parts[0]
    found = [1 / first]
    for k in range(1, len(one.parts)):
        rest = sum(one.parts[i] * found[k - i] for i in range(1, k + 1))
        found.append(sympy.expand(-rest / first))
    return _series(-one.low, found)


def composed(function: Any, inner: Series, *, positive: bool) -> Series:
    """A function of a series.  ``positive``: it is analytic at positive numbers alone."""
    if inner.low < 0 or inner.end < 1:
        raise Unknown
    start = inner.at(0)
    if positive and start.is_positive is not True:
        raise Unknown
    w = sympy.Dummy("w", real=True)
    change = _series(1, [inner.at(k) for k in range(1, inner.end)])
    derivative, result = function(w), constant(function(start))
    power, factorial = constant(sympy.Integer(1)), 1
    for k in range(1, TERMS):
        derivative, factorial = sympy.diff(derivative, w), factorial * k
        power = mul(power, change)
        if power.low >= TERMS or not power.parts:
            break
        value = derivative.xreplace({w: start}) / factorial
        result = add(result, mul(constant(value), power))
    return Series(result.low, result.parts[: max(inner.end - result.low, 0)])


class _Walk:
    """The series of a sympy expression, given those of its symbols."""

    def __init__(self, known: Mapping[Any, Series]) -> None:
        self.known = known
        self.singular = False
        """Was anything divided by what vanishes?"""

    def of(self, expression: Any) -> Series:
        if expression in self.known:
            return self.known[expression]
        if expression.is_number:
            if expression.is_finite is not True or expression.is_real is not True:
                raise Unknown
            return constant(expression)
        if expression.is_Add or expression.is_Mul:
            first, *others = [self.of(part) for part in expression.args]
            for other in others:
                first = (add if expression.is_Add else mul)(first, other)
            return first
        if expression.is_Pow:
            return self._power(*expression.args)
        if isinstance(expression, _ENTIRE):
            return composed(type(expression), self.of(expression.args[0]), positive=False)
        if isinstance(expression, _OF_POSITIVE):
            *orders, operand = expression.args
            if all(order.is_Integer for order in orders):
                kind = type(expression)
                return composed(lambda w: kind(*orders, w), self.of(operand), positive=True)
        raise Unknown

    def _power(self, base: Any, exponent: Any) -> Series:
        if base is sympy.E:
            return composed(sympy.exp, self.of(exponent), positive=False)
        inner = self.of(base)
        if exponent.is_Integer and abs(int(exponent)) < TERMS:
            return self._integer(inner, int(exponent))
        if exponent.is_number:
            return composed(lambda w: w**exponent, inner, positive=True)
        logarithm = composed(sympy.log, inner, positive=True)
        return composed(sympy.exp, mul(self.of(exponent), logarithm), positive=False)

    def _integer(self, base: Series, exponent: int) -> Series:
        if exponent < 0:
            self.singular |= base.low > 0
            base = inverse(base)
        result = constant(sympy.Integer(1))
        for _ in range(abs(exponent)):
            result = mul(result, base)
        return result


# -- nodes as series at one boundary

Moves = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
"""What was done to a node to bring it to another shape: ops with their attributes."""


def moved(node: Node, moves: Moves) -> Node:
    """A node with moves applied; a cast leaves truth values alone."""
    for op, attributes in moves:
        if op != "cast" or node.dtype.is_float:
            node = node.graph.apply(op, node, **dict(attributes))
    return node


@dataclass(frozen=True)
class Line:
    """A node beside a boundary, as a series in ``point - value``.

    ``moves``: from the shape of the point to its own.  ``pole``: something that it reads has no
    value on the boundary; ``singular``: it divides there itself.
    """

    series: Series
    moves: Moves = ()
    pole: bool = False
    singular: bool = False


class _Beside:
    """The nodes of a graph near one boundary."""

    def __init__(
        self, boundary: Boundary, nodes: Sequence[Node], known: Mapping[str, set[Node]]
    ) -> None:
        self.boundary, self.known = boundary, known
        self.leaves: dict[Any, tuple[Node, Moves]] = {}
        self._symbols: dict[tuple[Node, Moves], Any] = {}
        self._lines: dict[Node, Line | None] = {}
        self._values: dict[Node, Any] = {}
        self.moving: set[Node] = {boundary.point}
        for node in nodes:
            if any(arg in self.moving for arg in node.args):
                self.moving.add(node)
        value = boundary.value
        if isinstance(value, Node) and value in self.moving:
            raise Unknown

    def line(self, node: Node) -> Line | None:
        """A node that depends on the point; None where nothing is known."""
        if node not in self._lines:
            try:
                self._lines[node] = self._made(node)
            except (Unknown, GraphError):
                self._lines[node] = None
        return self._lines[node]

    def puzzling(self, node: Node) -> bool:
        """May it have no value on the boundary, as far as is known here?"""
        if get(node.op).scalar is None or node not in self.moving or self.line(node) is not None:
            return False
        return any(node.args[place] in self.moving for place, _ in restricted_operands(node.op))

    def _made(self, node: Node) -> Line | None:
        if node is self.boundary.point:
            value = self.boundary.value
            start = self._value(value) if isinstance(value, Node) else _rational(value)
            more = [sympy.Integer(0)] * (TERMS - 2)
            return Line(_series(0, [start, sympy.Integer(1), *more]))
        if node.op in _MOVES:
            return self._through(node)
        op = get(node.op)
        if op.scalar is None or not node.dtype.is_float:
            return None
        known, moves, pole = [], None, False
        for arg in node.args:
            if arg not in self.moving:
                known.append(constant(self._value(arg)))
                continue
            line = self.line(arg)
            if line is None or (moves is not None and line.moves != moves):
                return None
            known.append(line.series)
            moves, pole = line.moves, pole or line.pole
        walk = _Walk(dict(zip(SYMBOLS, known, strict=False)))
        series = walk.of(body(op, len(node.args)))
        assert moves is not None
        return Line(series, moves, series.low < 0 or pole, walk.singular)

    def _through(self, node: Node) -> Line | None:
        line = self.line(node.args[0])
        if line is None or not node.args[0].dtype.is_float or not node.dtype.is_float:
            return None
        move = ((node.op, node.attrs),)
        parts = tuple(self._put(part, move) for part in line.series.parts)
        return Line(Series(line.series.low, parts), (*line.moves, *move), line.pole)

    def _put(self, part: Any, move: Moves) -> Any:
        """An expression in another shape."""
        leaves = {symbol: self.leaves[symbol] for symbol in part.free_symbols}
        new = {s: self._symbol(leaf, (*moves, *move)) for s, (leaf, moves) in leaves.items()}
        return part.xreplace(new)

    def _value(self, node: Node) -> Any:
        """A node that does not depend on the point, as an expression."""
        if node not in self._values:
            self._values[node] = self._expression(node)
        return self._values[node]

    def _expression(self, node: Node) -> Any:
        value = number(node)
        if value is not None and not _rounded(node):
            return _rational(value)
        if node.op == "cast" and (truth := bare(node)).op == "constant":
            return sympy.Integer(int(truth.attributes["value"].value))
        if not node.dtype.is_float:
            return self._symbol(node, ())
        if node.op in _MOVES and node.args[0].dtype.is_float:
            return self._put(self._value(node.args[0]), ((node.op, node.attrs),))
        op = get(node.op)
        if op.scalar is None or op.scalar.kinks or not node.args:
            return self._symbol(node, ())
        known = [self._value(arg) for arg in node.args]
        found = body(op, len(known)).xreplace(dict(zip(SYMBOLS, known, strict=False)))
        fine = found.is_real is True and sympy.count_ops(found) <= LONGEST
        return found if fine else self._symbol(node, ())

    def _symbol(self, node: Node, moves: Moves) -> Any:
        if (node, moves) not in self._symbols:
            known = {kind: True for kind, nodes in self.known.items() if node in nodes}
            symbol = sympy.Dummy(f"q{len(self._symbols)}", real=True, **known)
            self._symbols[node, moves] = symbol
            self.leaves[symbol] = node, moves
        return self._symbols[node, moves]


def _rounded(node: Node) -> bool:
    """Is a number one of many digits, which other stages may read as what it rounds?"""
    while node.op in _MOVES:
        node = node.args[0]
    value = node.attributes["value"].value
    return isinstance(value, float) and bool(literals.slack(value, own=True))


def _rational(value: Fraction) -> Any:
    if max(abs(value.numerator), value.denominator) > LARGEST:
        raise Unknown
    return sympy.Rational(value.numerator, value.denominator)


# -- the outputs


def continued(
    subject: Subject, found: Sequence[Boundary], discrete: set[str], *, everywhere: bool = False
) -> list[tuple[Node, Node]] | None:
    """The outputs as they are beside some boundaries.

    The elements that lie on them are those of ``masks_of``.  None where there is nothing
    to continue, or where that is not shown.  ``discrete``: inputs that equal numbers on more than
    null sets.  ``everywhere``: each division by what depends on a point has to be understood.
    """
    off = dict(_both_alike(subject, found, discrete))
    if not off or len(subject.forward.nodes) > MOST_NODES:
        return None
    outputs = [node for node, _ in subject.outputs]
    beside = rewrite(subject.graph, outputs, None, _choosing(off), named=False)
    order = ancestors([beside[node] for node in outputs])
    if any(one.point not in subject.everything.nodes for one in found):
        return None
    known = _demanded(subject, [beside[node] for node in outputs])
    try:
        near = [_Beside(one, order, known) for one in found]
        new: dict[Node, Node] = {}
        poles: dict[Node, set[int]] = {}
        for node in order:
            if everywhere and any(one.puzzling(node) for one in near):
                return None
            new[node] = _continued(subject.graph, node, found, near, new, poles)
        if any(poles.get(beside[node]) for node in outputs):
            return None
    except (Unknown, GraphError):
        return None
    return [(new[beside[node]], cotangent) for node, cotangent in subject.outputs]


def extended(subject: Subject, discrete: set[str]) -> list[tuple[Node, Node]] | None:
    """The outputs of forward with its continuation wherever it asks for single values.

    In ``where(x == 0, 0, x * x)`` and ``where(x == 0, 1, sin(s) / s)`` the derivative of the
    branch for 0 is not that of forward; that of the continuation is.  None where forward asks for
    no single values, or where no continuation is shown.
    """
    graph, nodes = subject.graph, subject.forward.nodes
    asked = [pair for node in nodes if node.op in COMPARISONS for pair in changes(node)]
    found = list(dict.fromkeys(boundary for boundary, sides in asked if sides[0] == sides[2]))
    outputs = continued(subject, found, discrete, everywhere=True) if found else None
    if outputs is None:
        return None
    known = {
        mask: graph.apply("eq", one.point, _asked(graph, one))
        for mask, one in zip(masks_of(graph, found), found, strict=True)
    }
    new = rewrite(graph, [node for node, _ in outputs], known, named=False)
    return [(new[node], cotangent) for node, cotangent in outputs]


def _asked(graph: Graph, boundary: Boundary) -> Node:
    value = boundary.value
    node = value if isinstance(value, Node) else graph.lift(float(value), boundary.point)
    return graph.expand(node, boundary.point.shape)


def _both_alike(
    subject: Subject, found: Sequence[Boundary], discrete: set[str]
) -> Iterator[tuple[Node, bool]]:
    """Comparisons that change on one of some boundaries, with what they are on both of its sides.

    Such a one is that everywhere else: its boundaries are null sets.
    """
    wanted = set(found)
    for node in subject.forward.nodes:
        if node.op not in COMPARISONS:
            continue
        own = list(changes(node))
        if not any(boundary in wanted for boundary, _ in own):
            continue
        if any(not b.inputs or b.inputs & discrete or s[0] != s[2] for b, s in own):
            continue
        values = {sides[0] for _, sides in own}
        if len(values) == 1 and (len(own) == 1 or node.op in ("eq", "ne")):
            yield node, bool(values.pop())


def _choosing(off: Mapping[Node, bool]) -> Any:
    """The rule that puts truth values for comparisons, and takes the branch that they choose."""
    known: dict[Node, bool] = {}

    def truth(node: Node, args: Sequence[Node]) -> bool | None:
        values = [known.get(arg) for arg in args]
        if node in off:
            return off[node]
        if node.op in ("expand", "reshape", "permute"):
            return values[0]
        if node.op == "logical_not":
            return None if values[0] is None else not values[0]
        if node.op in ("logical_and", "logical_or"):
            decisive = node.op == "logical_or"
            if decisive in values:
                return decisive
            return None if None in values else not decisive
        return None

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node.op == "where" and (chosen := known.get(args[0])) is not None:
            return args[1] if chosen else args[2]
        value = truth(node, args)
        if value is None or node.dtype.name != "bool_":
            return None
        made = node.graph.expand(node.graph.constant(value, node.dtype), node.shape)
        known[made] = value
        return made

    return rule


def _demanded(subject: Subject, outputs: Sequence[Node]) -> dict[str, set[Node]]:
    """Nodes that are positive, and nodes that are not 0, wherever forward is defined.

    What only the branch of a choice demands does not count.
    """
    declared = {a.name for a in subject.assumptions if a.kind == "positive"}
    found: dict[str, set[Node]] = {"positive": set(), "nonzero": set()}
    for node in ancestors(outputs, follow=_conditions_alone):
        if node.op == "input" and node.attributes["name"] in declared:
            found["positive"].add(node)
        for place, kind in restricted_operands(node.op) if get(node.op).scalar is not None else ():
            if kind in found:
                found[kind].add(node.args[place])
    return found


def _conditions_alone(node: Node) -> Sequence[Node]:
    return node.args[:1] if node.op == "where" else node.args


def _continued(
    graph: Graph, node: Node, found: Sequence[Boundary], near: Sequence[_Beside],
    new: Mapping[Node, Node], poles: dict[Node, set[int]],
) -> Node:  # fmt: skip
    """What stands for a node: on each boundary on which it is singular, its continuation."""
    args = [new[arg] for arg in node.args]
    inherited = {k for arg in node.args for k in poles.get(arg, ())}
    singular: dict[int, Line] = {}
    for k, one in enumerate(near):
        line = one.line(node) if node in one.moving and node.args else None
        if line is not None and (line.singular or k in inherited):
            singular[k] = line
        elif k in inherited:
            raise Unknown
    if not singular:
        same = all(arg is old for arg, old in zip(args, node.args, strict=True))
        return node if same else graph.apply(node.op, *args, **node.attributes)
    masks = masks_of(graph, found)
    for k, line in singular.items():
        if line.singular:
            on, moving = moved(masks[k], line.moves), near[k].moving
            args = [
                graph.apply("where", on, graph.lift(1.0, arg), arg) if old in moving else arg
                for arg, old in zip(args, node.args, strict=True)
            ]
    made = graph.apply(node.op, *args, **node.attributes)
    for k, line in singular.items():
        if line.series.low < 0:
            poles.setdefault(node, set()).add(k)
            continue
        jet = _jet(made, found[k], line, near[k], new)
        made = graph.apply("where", moved(masks[k], line.moves), jet, made)
    return made


def _jet(
    like: Node, boundary: Boundary, line: Line, beside: _Beside, new: Mapping[Node, Node]
) -> Node:
    """``h0 + h1 (point - value)``, in the shape of a node."""
    start, slope = line.series.at(0), line.series.at(1)
    made = _written(like, start, beside, new)
    if slope == 0:
        return made
    graph, value = like.graph, boundary.value
    base = value if isinstance(value, Node) else graph.lift(1.0, boundary.point)
    if not isinstance(value, Node):
        base = _written(base, _rational(value), beside, new)
    away = moved(graph.apply("sub", boundary.point, base), line.moves)
    return graph.apply("add", made, graph.apply("mul", _written(like, slope, beside, new), away))


def _written(like: Node, value: Any, beside: _Beside, new: Mapping[Node, Node]) -> Node:
    """An expression in leaves as a node."""
    symbols = sorted(value.free_symbols, key=str)
    if len(symbols) > len(SYMBOLS) or any(
        max(abs(one.p), one.q) > LARGEST for one in value.atoms(sympy.Rational)
    ):
        raise Unknown
    operands = []
    for symbol in symbols:
        leaf, moves = beside.leaves[symbol]
        operands.append(moved(new.get(leaf, leaf), moves))
    given = value.xreplace(dict(zip(symbols, SYMBOLS, strict=False)))
    made: Node = translated(_Nodes(like), as_term(given), operands, like.dtype)
    return made if made.rank or not like.rank else made.graph.expand(made, like.shape)


class _Nodes:
    """What an expression is made of, as nodes of one shape; numbers stay numbers."""

    def __init__(self, like: Node) -> None:
        self.like = like

    def call(self, name: str, *operands: Any, dtype: Any) -> Node:
        """An elementwise op.  Raises Unknown for pi, which is no node."""
        if name == "pi":
            raise Unknown
        return self.like.graph.apply(name, *self._alike(operands))

    def literal(self, value: float, dtype: Any) -> Node:
        """A number."""
        return bare(self.like.graph.lift(value, self.like))

    def select(self, condition: Node, value: Node, other: Node) -> Node:
        """A choice."""
        return self.like.graph.apply("where", *self._alike((condition, value, other)))

    def _alike(self, operands: Sequence[Node]) -> list[Node]:
        """The operands in one shape."""
        if not any(one.rank for one in operands):
            return list(operands)
        return [one if one.rank else one.graph.expand(one, self.like.shape) for one in operands]
