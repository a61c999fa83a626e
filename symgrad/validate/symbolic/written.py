"""Is an output computed as it is written: each operation, in its order and its type?

In: the value found from the C and the graph's formula, which are one real number.  Out: the names
of what differs; ``NotShown`` where float32 may stand for a float64 of the graph.

Both are compared from their roots, with operations that are known by their names alone.  Where
they differ, a rule that takes one for the other says how; its parts are compared in the same way.
Where no rule does, it is ``OTHER``.  What is compared is one real number at each step.  Signs of
zeros are not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from symgrad.ir.dim import Atom, Axis, Derived, Dim, Element
from symgrad.ir.dtype import DType, float32, float64
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce, postorder
from symgrad.validate.rounding import nearest
from symgrad.validate.symbolic import orders
from symgrad.validate.symbolic.exact import Exact
from symgrad.validate.symbolic.memory import NotShown
from symgrad.validate.symbolic.normal import Reals, divisors
from symgrad.validate.symbolic.values import Values, facts_of, is_defined, narrow

WIDER = "double arithmetic for float32"
TERMS = f"sums {orders.TERMS}"
FACTORS = "products of several factors in another order"
RECIPROCAL = "divisions as products with a reciprocal"
DRAWN = "factors of all terms multiplied after a sum"
SPLIT = "sums taken term by term"
EXCHANGED = "sums over two axes exchanged"
MERGED = "sums of sums as one sum"
OTHER = "other operations in another order"
STABLE = "forms that do not overflow"
READ_AGAIN = "quotients of forward that are read again"
_WORDS = {"sum": "sums", "prod": "products"}
DIFFERENCES = (
    *(f"{word} {one}" for word in _WORDS.values() for one in orders.ORDERS),
    MERGED, EXCHANGED, DRAWN, SPLIT, FACTORS, RECIPROCAL, WIDER, STABLE,
    READ_AGAIN, OTHER,
)  # fmt: skip
"""All that is said, in the order in which it is said."""
_OF_SUMS, _OF_PRODUCTS = ("add", "neg"), ("mul", "div", "neg")
_KEEPS = ("where", "maximum", "minimum", "neg", "abs", "floor", "ceil", "trunc", "round")
"""Functions that round nothing."""


def in_order(differences: Collection[str]) -> tuple[str, ...]:
    """The differences as they are said."""
    return tuple(one for one in DIFFERENCES if one in differences)


def sentence(differences: Sequence[str]) -> str:
    """What a text says of a kernel."""
    if not differences:
        return "Evaluated as written."
    return f"Evaluated as written but for: {', '.join(differences)}."


@dataclass(frozen=True)
class _Part:
    """A term with its sign, or a factor with its power."""

    value: Expr
    sign: int


class Written:
    """The differences of the outputs of one kernel."""

    def __init__(self, values: Values, reals: Reals, floats: Collection[DType]) -> None:
        self._values, self.reals, self._floats = values, reals, frozenset(floats)
        self._integers = values.integers
        self._exact = Exact(values)
        self._found: set[str] = set()
        self._open: dict[tuple[Expr, Expr], bool] = {}
        self._rounds: dict[Expr, bool] = {}
        self._rules: tuple[Callable[[Expr, Expr], bool], ...] = (
            self._of_one_place, self._of_zeros, self._of_reversed, self._of_terms,
            self._of_factors, self._of_flat, self._of_rows, self._of_exchanged, self._of_drawn,
            self._of_split,
        )  # fmt: skip

    def alike(self) -> Written:
        """The same, where more is known: what it finds is found here."""
        other = Written(self._values, Reals(self._values), self._floats)
        other._found = self._found
        return other

    @property
    def differences(self) -> set[str]:
        """Those of all outputs that were compared."""
        return self._found

    def compare(self, found: Expr, wanted: Expr) -> None:
        """Notes how ``found`` differs from ``wanted``; they are one real number.

        Raises NotShown where float32 may stand for float64.
        """
        self._pair(self._exact.of(found), self._exact.of(wanted))

    def is_as(self, found: Expr, wanted: Expr) -> bool:
        """Is one evaluated as the other, in the same types, but for orders that are known?"""
        if not self._is_one(found, wanted):
            return False
        own = Written(self._values, self.reals, self._floats)
        try:
            own.compare(found, wanted)
        except NotShown:
            return False
        return own.differences.isdisjoint((OTHER, WIDER))

    # -- one step

    def _pair(self, c: Expr, graph: Expr) -> None:
        c, graph = narrow(c), narrow(graph)
        if c is graph:
            return
        if (c, graph) in self._open:
            if self._open[c, graph]:
                self._other(c, graph)
            return
        self._open[c, graph] = True
        if self._is_rounded(c) or self._is_rounded(graph):
            self._step(c, graph)
        self._open[c, graph] = False

    def _step(self, c: Expr, graph: Expr) -> None:
        if self._narrowed(c, graph):
            return
        self._check_types([c], [graph])
        if isinstance(c, Reduce) and isinstance(graph, Reduce) and self._same_axis(c, graph):
            return
        if isinstance(c, Call) and isinstance(graph, Call) and self._same_function(c, graph):
            return
        if not any(rule(c, graph) for rule in self._rules):
            self._other(c, graph)

    def _other(self, c: Expr, graph: Expr) -> None:
        self._check_types(self._rounding(c), self._rounding(graph) or [graph])
        for one in self._rounding(c):
            if isinstance(one, Reduce):
                self._say_order(one)
        self._found.add(OTHER)

    def _is_rounded(self, root: Expr) -> bool:
        """Is anything in it rounded?"""
        for one in postorder([root], self._rounds):
            inner = any(self._rounds[part] for part in one.args)
            self._rounds[one] = inner or self._rounds_itself(one)
        return self._rounds[root]

    def _rounds_itself(self, one: Expr) -> bool:
        if isinstance(one, (Access, IntValue)):
            dims = one.indices if isinstance(one, Access) else (one.value,)
            return any(self._is_computed(atom) for dim in dims for atom in dim.atoms)
        if not one.dtype.is_float:
            return False
        if isinstance(one, Reduce):
            return one.kind in orders.ROUNDED
        return isinstance(one, Call) and one.function not in _KEEPS and narrow(one) is one

    def _is_computed(self, atom: Atom) -> bool:
        """Is it an integer that is made of what is rounded?"""
        if isinstance(atom, Derived):
            return any(map(self._is_computed, (*atom.left.atoms, *atom.right.atoms)))
        if not isinstance(atom, Element):
            return False
        if any(self._is_computed(one) for dim in atom.indices for one in dim.atoms):
            return True
        return is_defined(atom) and self._is_rounded(self._values.definition(atom))

    def _rounding(self, root: Expr) -> list[Expr]:
        return [one for one in postorder([root]) if self._rounds_itself(one)]

    def _check_types(self, c: Sequence[Expr], graph: Sequence[Expr]) -> None:
        """What the graph rounds to float64 is not rounded to float32."""
        own = {one.dtype for one in c if one.dtype.is_float and self._rounds_itself(one)}
        wanted = set(self._floats)
        if len(wanted) > 1:
            wanted = {one.dtype for one in graph if one.dtype.is_float}
        if float32 in own and wanted != {float32}:
            raise NotShown("it is computed in float, where the graph has, or may have, float64")
        if float64 not in wanted:
            rounding = (one for one in c if one.dtype == float64 and self._rounds_itself(one))
            self._found.update(map(_wider, rounding))

    def _narrowed(self, c: Expr, graph: Expr) -> bool:
        """Where one of them is rounded to float32: what is rounded."""
        inner, wanted = _rounded(c), _rounded(graph)
        if inner is None:
            return False
        if wanted is None and graph.dtype == float64:
            raise NotShown("something is rounded to float, and the graph has float64 there")
        self._pair(inner, graph if wanted is None else wanted)
        return True

    def _is_one(self, left: Expr, right: Expr) -> bool:
        return left is right or self.reals.normal(left) == self.reals.normal(right)

    # -- the same operation

    def _same_function(self, c: Call, graph: Call) -> bool:
        if c.function != graph.function or len(c.operands) != len(graph.operands):
            return False
        if c.function == "where":
            return self._same_choice(c, graph)
        for operands in (graph.operands, graph.operands[::-1]):
            pairs = list(zip(c.operands, operands, strict=True))
            if all(self._is_one(*pair) for pair in pairs):
                for pair in pairs:
                    self._pair(*pair)
                return True
            if c.function not in ("add", "mul", "maximum", "minimum"):
                return False
        return False

    def _same_choice(self, c: Call, graph: Call) -> bool:
        test, *sides = c.operands
        wanted, *others = graph.operands
        if not self._is_one(test, wanted):
            return False
        self._pair(test, wanted)
        for truth, side, other in zip((True, False), sides, others, strict=True):
            facts = facts_of(self._values, test, truth)
            if not self._same_side(facts, side, other):
                return False
        return True

    def _same_side(self, facts: Sequence[Dim], side: Expr, other: Expr) -> bool:
        """What was compared elsewhere need not be one number where these facts hold."""
        outer = self._open
        self._open = {} if facts else outer
        try:
            with self.reals.given(*facts):
                if not self._is_one(side, other):
                    return False
                self._pair(side, other)
        finally:
            self._open = outer
        return True

    def _same_axis(self, c: Reduce, graph: Reduce) -> bool:
        """Both over one range, of one value."""
        settled = self._integers.settled
        if c.kind != graph.kind or settled(c.axis.extent) != settled(graph.axis.extent):
            return False
        body = graph.body
        if graph.axis != c.axis:
            if c.axis in body.free:
                return False
            body = self._with_axis(graph, c.axis)
        if not self._is_one(c.body, body):
            return False
        self._say_order(c)
        if (orders.ON in c.order) != (orders.ON in graph.order):
            self._found.add(f"{_WORDS[c.kind]} {orders.BEGUN}")
        joint, whole = _is_joint(c), _is_joint(graph)
        if c.kind in orders.ROUNDED and joint != whole:
            self._found.add(MERGED if joint else f"{_WORDS[c.kind]} {orders.BLOCKS}")
        self._pair(self._apart(c.body, joint), self._apart(body, whole))
        return True

    def _apart(self, body: Expr, joint: bool) -> Expr:
        """What a sum is over, by itself; ``joint``: it was one sum with it."""
        inner = narrow(body)
        if not joint or not isinstance(inner, Reduce):
            return body
        order = tuple(one for one in inner.order if one != orders.ON)
        return self._values.pool.reduce(inner.kind, inner.axis, inner.body, order)

    def _say_order(self, c: Reduce) -> None:
        for one in c.order:
            if one != orders.ON:
                self._found.add(f"{_WORDS[c.kind]} {one}")

    # -- rules

    def _of_one_place(self, c: Expr, graph: Expr) -> bool:
        """A sum that is 0 but at one place, as what stands there."""
        one, two = self._at_place(c), self._at_place(graph)
        if (one is c and two is graph) or not self._is_one(one, two):
            return False
        self._pair(one, two)
        return True

    def _at_place(self, value: Expr) -> Expr:
        if not isinstance(value, Reduce) or value.kind != "sum":
            return value
        body, axis = value.body, value.axis
        if not isinstance(body, Call) or body.function != "where" or not _is_zero(body.operands[2]):
            return value
        for test in _conjuncts(body.operands[0]):
            sides = test.operands if isinstance(test, Call) and test.function == "eq" else ()
            for one, other in zip(sides, sides[::-1], strict=True):
                if other.dtype.is_float or axis in other.free or not _is_place(one, axis):
                    continue
                place = self._values.integer(other)
                if self._integers.within(place, axis.extent):
                    return self._exact.of(self._values.substitute(body, {axis: place}))
        return value

    def _of_zeros(self, c: Expr, graph: Expr) -> bool:
        """A sum that is 0 beyond some place, as that up to there."""
        one, two = self._shortened(c), self._shortened(graph)
        if (one is c and two is graph) or not self._is_one(one, two):
            return False
        self._pair(one, two)
        return True

    def _shortened(self, value: Expr) -> Expr:
        if not isinstance(value, Reduce) or value.kind not in orders.ROUNDED:
            return value
        body, nothing = value.body, float(value.kind == "prod")
        if not isinstance(body, Call) or body.function != "where":
            return value
        other = body.operands[2]
        if not isinstance(other, Literal) or float(other.value) != nothing:
            return value
        for test in _conjuncts(body.operands[0]):
            for fact in facts_of(self._values, test, True):
                found = self.reals.shorter(value.axis, self.reals.integer(fact + 1))
                if found is not None and found[0].extent != value.axis.extent:
                    within = self._values.substitute(body, found[1])
                    made = self._reduced(value.kind, found[0], within, value.order)
                    return value if made is None else made
        return value

    def _of_reversed(self, c: Expr, graph: Expr) -> bool:
        """A sum from its last term to its first."""
        if not (isinstance(c, Reduce) and isinstance(graph, Reduce)) or c.kind != graph.kind:
            return False
        turned = self._values.substitute(c.body, {c.axis: c.axis.extent - 1 - Dim.of(c.axis)})
        made = self._reduced(c.kind, c.axis, turned, c.order)
        if made is None or not self._may_match(made, graph):
            return False
        if c.kind in orders.ROUNDED:
            self._found.add(f"{_WORDS[c.kind]} {orders.REVERSED}")
        return self._same_axis(made, graph)

    def _of_terms(self, c: Expr, graph: Expr) -> bool:
        """Sums of the same terms, in another order."""
        own, wanted = _spine(c, _OF_SUMS), _spine(graph, _OF_SUMS)
        if not own and not wanted:
            return False
        if not self._matched(list(_terms(c, 1)), list(_terms(graph, 1)), TERMS):
            return False
        self._check_types(own, wanted or self._rounding(graph) or [graph])
        return True

    def _of_factors(self, c: Expr, graph: Expr) -> bool:
        """Products and quotients of the same factors, in another order."""
        own, wanted = _spine(c, _OF_PRODUCTS), _spine(graph, _OF_PRODUCTS)
        parts, others = (
            [one for one in _factors(side, 1) if not isinstance(one.value, Literal)]
            for side in (c, graph)
        )
        if not (own or wanted) or _numbers(c) != _numbers(graph):
            return False
        ones = sum(map(_is_reciprocal, own)) != sum(map(_is_reciprocal, wanted))
        if not self._matched(parts, others, RECIPROCAL if ones and len(parts) < 3 else FACTORS):
            return False
        self._check_types(own, wanted or self._rounding(graph) or [graph])
        return True

    def _matched(self, own: list[_Part], wanted: list[_Part], name: str) -> bool:
        """Are they the same parts?  Each is compared with its own."""
        if len(own) != len(wanted):
            return False
        left, pairs = list(wanted), []
        for part in own:
            for other in left:
                if other.sign == part.sign and self._is_one(part.value, other.value):
                    pairs.append((part.value, other.value))
                    left.remove(other)
                    break
            else:
                return False
        self._found.add(name)
        for pair in pairs:
            self._pair(*pair)
        return True

    def _of_flat(self, c: Expr, graph: Expr) -> bool:
        """A sum over two axes as one over their product."""
        nests = _of_one_kind(c, graph)
        for side in (0, 1) if nests is not None else ():
            assert nests is not None
            found = self._flat(nests[side])
            if found is None:
                continue
            one, two = (found[0], nests[1]) if side == 0 else (nests[0], found[0])
            if self._may_match(one, two):
                if one.kind in orders.ROUNDED and not found[1]:
                    self._found.add(MERGED if side else f"{_WORDS[one.kind]} {orders.BLOCKS}")
                self._pair(one, two)
                return True
        return False

    def _of_rows(self, c: Expr, graph: Expr) -> bool:
        """A sum over rows of an axis as one over the axis."""
        nests = _of_one_kind(c, graph)
        if nests is None:
            return False
        for one, two in ((self._in_rows(nests[0]), graph), (c, self._in_rows(nests[1]))):
            pair = _of_one_kind(one, two)
            if pair is not None and self._may_match(*pair):
                self._pair(*pair)
                return True
        return False

    def _of_exchanged(self, c: Expr, graph: Expr) -> bool:
        """A sum over two axes, with the other one outside."""
        nests = _of_one_kind(c, graph)
        swapped = None if nests is None else self._swapped(nests[1])
        if nests is None or swapped is None or not self._may_match(nests[0], swapped):
            return False
        if swapped.kind in orders.ROUNDED:
            self._found.add(EXCHANGED)
        return self._same_axis(nests[0], swapped)

    def _may_match(self, c: Reduce, graph: Reduce) -> bool:
        settled = self._integers.settled
        if settled(c.axis.extent) != settled(graph.axis.extent) or c.axis in graph.body.free:
            return c.axis == graph.axis and self._is_one(c.body, graph.body)
        return self._is_one(c.body, self._with_axis(graph, c.axis))

    def _with_axis(self, value: Reduce, axis: Axis) -> Expr:
        """What it is over, of another axis."""
        body = self._values.substitute(value.body, {value.axis: Dim.of(axis)})
        return self._exact.of(body)

    def _reduced(self, kind: str, axis: Axis, body: Expr, order: orders.Order) -> Reduce | None:
        made = self._exact.of(self._values.reduce(kind, axis, body, order))
        return made if isinstance(made, Reduce) else None

    def _flat(self, nest: Reduce) -> tuple[Reduce, bool] | None:
        """A nest as one reduction, and whether it is computed as one."""
        inner = narrow(nest.body)
        if not isinstance(inner, Reduce) or inner.kind != nest.kind:
            return None
        double = [orders.DOUBLE] if inner is not nest.body else []
        joint, deeper = orders.ON in inner.order, self._flat(inner)
        if deeper is not None:
            inner, joint = deeper[0], joint and deeper[1]
        if nest.axis in inner.axis.extent.axes:
            return None
        whole = self._values.axis("f", nest.axis.extent * inner.axis.extent)
        place = Dim.of(whole) - inner.axis.extent * Dim.of(nest.axis)
        body = self._values.substitute(inner.body, {inner.axis: place})
        if nest.axis in body.free:
            return None
        inside = (one for one in inner.order if one != orders.ON)
        order = orders.named(*nest.order, *inside, *double)
        made = self._reduced(nest.kind, whole, body, order)
        return None if made is None else (made, joint)

    def _in_rows(self, flat: Reduce) -> Reduce | None:
        """One reduction as a nest, where what it is over divides its axis."""
        found = divisors(flat.axis, self.reals.normal(flat.body))
        for step in dict.fromkeys(found):
            count = flat.axis.extent.exact_quotient(step)
            if count is None or count == 1 or step == 1:
                continue
            outer, inner = self._values.axis("u", count), self._values.axis("u", step)
            body = self._values.substitute(
                flat.body, {flat.axis: step * Dim.of(outer) + Dim.of(inner)}
            )
            row = self._values.reduce(flat.kind, inner, body, (orders.ON,))
            return self._reduced(flat.kind, outer, row, flat.order)
        return None

    def _swapped(self, nest: Reduce) -> Reduce | None:
        inner = nest.body
        if not isinstance(inner, Reduce) or inner.kind != nest.kind:
            return None
        if nest.axis in inner.axis.extent.axes:
            return None
        within = self._values.reduce(nest.kind, nest.axis, inner.body, inner.order)
        return self._reduced(nest.kind, inner.axis, within, nest.order)

    def _of_drawn(self, c: Expr, graph: Expr) -> bool:
        """A factor that all terms of a sum have, multiplied with the sum."""
        one, two = self._drawn(c), self._drawn(graph)
        if one is c and two is graph:
            return False
        self._check_types(self._rounding(c), self._rounding(graph))
        self._found.add(DRAWN)
        self._pair(one, two)
        return True

    def _drawn(self, value: Expr) -> Expr:
        if not isinstance(value, Reduce) or value.kind != "sum" or not value.dtype.is_float:
            return value
        parts = list(_factors(value.body, 1))
        free = [one for one in parts if value.axis not in one.value.free]
        bound = [one for one in parts if value.axis in one.value.free]
        if not free or not bound:
            return value
        total = self._values.reduce("sum", value.axis, self._multiplied(bound), value.order)
        return self._exact.of(self._multiplied([_Part(total, 1), *free]))

    def _multiplied(self, parts: Sequence[_Part]) -> Expr:
        pool = self._values.pool
        ordered = sorted(parts, key=lambda one: -one.sign)
        first, *others = ordered
        made = first.value
        if first.sign < 0:
            made = pool.call("div", pool.literal(1.0, made.dtype), made, dtype=made.dtype)
        for one in others:
            name = "mul" if one.sign > 0 else "div"
            made = pool.call(name, made, one.value, dtype=made.dtype)
        return made

    def _of_split(self, c: Expr, graph: Expr) -> bool:
        """A sum of sums of terms, as the sum of the sums of each."""
        one, two = self._split(c), self._split(graph)
        if one is c and two is graph:
            return False
        self._check_types(self._rounding(c), self._rounding(graph))
        self._found.add(SPLIT)
        self._pair(one, two)
        return True

    def _split(self, value: Expr) -> Expr:
        if not isinstance(value, Reduce) or value.kind != "sum" or not value.dtype.is_float:
            return value
        parts = list(_terms(value.body, 1))
        if len(parts) < 2:
            return value
        made: Expr | None = None
        for one in parts:
            total = self._values.reduce("sum", value.axis, one.value, value.order)
            total = self._exact.negated(total) if one.sign < 0 else total
            made = total if made is None else self._added(made, total)
        assert made is not None
        return self._exact.of(made)

    def _added(self, one: Expr, other: Expr) -> Expr:
        return self._values.pool.call("add", one, other, dtype=one.dtype)


def _terms(value: Expr, sign: int) -> Iterator[_Part]:
    if isinstance(value, Call) and value.function == "neg":
        yield from _terms(value.operands[0], -sign)
    elif isinstance(value, Call) and value.function == "add" and value.dtype.is_float:
        for one in value.operands:
            yield from _terms(one, sign)
    else:
        yield _Part(value, sign)


def _factors(value: Expr, sign: int) -> Iterator[_Part]:
    """The factors; a quotient has the power -1."""
    if isinstance(value, Call) and value.dtype.is_float:
        if value.function == "neg":
            yield from _factors(value.operands[0], sign)
            return
        if value.function in ("mul", "div"):
            yield from _factors(value.operands[0], sign)
            other = -sign if value.function == "div" else sign
            yield from _factors(value.operands[1], other)
            return
    yield _Part(value, sign)


def _numbers(value: Expr) -> list[tuple[float, int]]:
    """The numbers that a value is multiplied by, and divided by; not 1."""
    found = [
        (nearest(float(one.value.value), one.value.dtype.c), one.sign)
        for one in _factors(value, 1) if isinstance(one.value, Literal)
    ]  # fmt: skip
    return sorted(one for one in found if abs(one[0]) != 1)


def _spine(value: Expr, functions: Sequence[str]) -> list[Call]:
    """The operations that terms, or factors, are taken from."""
    if not isinstance(value, Call) or value.function not in functions or not value.dtype.is_float:
        return []
    return [value, *(one for part in value.operands for one in _spine(part, functions))]


def _is_reciprocal(value: Call) -> bool:
    if value.function != "div" or not isinstance(value.operands[0], Literal):
        return False
    return float(value.operands[0].value) == 1.0


def _wider(one: Expr) -> str:
    """What is said of double where float32 would do."""
    if isinstance(one, Reduce) and narrow(one.body) is not one.body:
        return f"{_WORDS[one.kind]} {orders.DOUBLE}"
    return WIDER


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Literal) and float(value.value) == 0


def _is_place(value: Expr, axis: Axis) -> bool:
    return isinstance(value, IntValue) and value.value == Dim.of(axis)


def _conjuncts(value: Expr) -> Iterator[Expr]:
    if isinstance(value, Call) and value.function == "logical_and":
        for one in value.operands:
            yield from _conjuncts(one)
    else:
        yield value


def _of_one_kind(c: Expr | None, graph: Expr | None) -> tuple[Reduce, Reduce] | None:
    if isinstance(c, Reduce) and isinstance(graph, Reduce) and c.kind == graph.kind:
        return c, graph
    return None


def _rounded(value: Expr) -> Expr | None:
    """What is rounded to float32 there."""
    if isinstance(value, Call) and value.function == "cast" and value.dtype == float32:
        return value.operands[0] if value.operands[0].dtype == float64 else None
    return None


def _is_joint(value: Reduce) -> bool:
    """Is it one sum with that inside?"""
    inner = narrow(value.body)
    return isinstance(inner, Reduce) and inner.kind == value.kind and orders.ON in inner.order
