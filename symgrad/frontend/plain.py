"""Plain numbers as symbols: ``forward(ctx, x, alpha=1.0)`` traced for every alpha at once.

In: a ``Request`` whose plain numbers are defaults.  Out: the same request with ``Region``s in their
place, and ``PlainNumber``s, which the program computes with while it is traced.

Arithmetic gives further symbols.  A comparison with a literal is answered as for the default, and
the region in which the answer is the same is kept.  Whatever else Python asks is answered as for
the default, and the number is *settled*: what was traced holds for that value only.  Nothing is
raised, so that no handler in the traced program can hide a question.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from symgrad.frontend.evidence import Kind, parameters
from symgrad.frontend.request import Argument, Request
from symgrad.frontend.session import current
from symgrad.frontend.sizes import SymFloat, SymInt, ValuedNumber
from symgrad.ir.assume import Assumption
from symgrad.ir.dtype import DType, float64
from symgrad.ir.function import RELATIONS, FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node
from symgrad.ops.movement import bare
from symgrad.plain_values import REQUIRED, PlainArgument

PLAIN = "plain"
"""The kind of the assumption that an input is a plain number, with which nothing is generic."""


@dataclass
class Region:
    """The values of one plain number that a trace holds for; ``value`` is one of them.

    ``settled``: it holds for the value alone.  ``low`` and ``high``: None is unbounded;
    ``low_open`` and ``high_open``: the ends do not belong to it.
    """

    name: str
    value: int | float
    low: Fraction | None = None
    high: Fraction | None = None
    low_open: bool = True
    high_open: bool = True
    settled: bool = False

    @property
    def whole(self) -> bool:
        """Is it an integer?"""
        return isinstance(self.value, int)

    @property
    def dtype(self) -> str:
        """What kernels take it as: Python's float, or an integer of 64 bits."""
        return "int64" if self.whole else "float64"

    def compare(self, relation: str, literal: int | float) -> bool:
        """The answer for the value; the region shrinks to where it is the same."""
        answer = RELATIONS[relation](self.value, literal)
        bound = Fraction(literal)
        if self.value == literal:
            if relation in ("<=", ">") and answer == (relation == "<="):
                self._below(bound, is_open=False)
            elif relation in (">=", "<"):
                self._above(bound, is_open=False)
            else:
                self._above(bound, is_open=False)
                self._below(bound, is_open=False)
        elif self.value > literal:
            self._above(bound, is_open=relation in ("==", "!=", "<=", ">"))
        else:
            self._below(bound, is_open=relation in ("==", "!=", ">=", "<"))
        return answer

    def holds(self, value: float) -> bool:
        """Is it one of the values?"""
        if self.low is not None and not (
            value >= self.low if not self.low_open else value > self.low
        ):
            return False
        return self.high is None or (value < self.high if self.high_open else value <= self.high)

    def to_side(self, bound: Fraction) -> None:
        """Shrink to the numbers on the value's side of another one."""
        (self._above if self.value > bound else self._below)(bound, is_open=True)

    def _above(self, bound: Fraction, *, is_open: bool) -> None:
        if self.low is None or (bound, is_open) > (self.low, self.low_open):
            self.low, self.low_open = bound, is_open

    def _below(self, bound: Fraction, *, is_open: bool) -> None:
        if self.high is None or (-bound, is_open) > (-self.high, self.high_open):
            self.high, self.high_open = bound, is_open

    @property
    def is_everything(self) -> bool:
        """Does it leave out no number?"""
        return self.low is None and self.high is None

    @property
    def interval(self) -> str:
        """``(0, inf)``."""
        low = "(-inf" if self.low is None else f"{'(' if self.low_open else '['}{_number(self.low)}"
        end = ")" if self.high_open else "]"
        return f"{low}, inf)" if self.high is None else f"{low}, {_number(self.high)}{end}"

    @property
    def condition(self) -> str:
        """``alpha > 0``, ``0 <= alpha < 2``; empty where it is everything."""
        below, above = "<" if self.high_open else "<=", ">" if self.low_open else ">="
        if self.is_point:
            return f"{self.name} == {_number(Fraction(self.value))}"
        if self.low is None:
            return "" if self.high is None else f"{self.name} {below} {_number(self.high)}"
        if self.high is None:
            return f"{self.name} {above} {_number(self.low)}"
        reached = "<" if self.low_open else "<="
        return f"{_number(self.low)} {reached} {self.name} {below} {_number(self.high)}"

    @property
    def is_point(self) -> bool:
        """Is it a single value?"""
        return self.low is not None and self.low == self.high

    def __str__(self) -> str:
        if self.low is not None and self.high is not None and not self.is_point:
            return f"all {self._kind} {self.name} in {self.interval}"
        return f"all {self._kind} {self.condition or self.name}"

    @property
    def _kind(self) -> str:
        return "integer" if self.whole else "real"

    def copy(self) -> Region:
        """Another one like it."""
        return replace(self)

    def without(self, other: Region) -> list[Region]:
        """What of it is left outside of another region that lies in it, with values of its own."""
        found = []
        if other.low is not None and (other.low, other.low_open) != (self.low, self.low_open):
            below = self.copy()
            below.high, below.high_open = other.low, not other.low_open
            found.append(below)
        if other.high is not None and (other.high, other.high_open) != (self.high, self.high_open):
            above = self.copy()
            above.low, above.low_open = other.high, not other.high_open
            found.append(above)
        return [one for one in found if one._find_value()]

    def _find_value(self) -> bool:
        """Take a value in it, not at an end if possible; is there one that a float can be?"""
        low, high = self.low, self.high
        if self.whole:
            low, high = self._least, self._greatest
            if low is not None and high is not None and low > high:
                return False
        if low is not None:
            middle = low + 1 if high is None else (low + high) / 2
        else:
            middle = Fraction(0) if high is None else high - 1
        if self.whole:
            self.value = math.floor(middle)
            return True
        try:
            self.value = float(middle)
        except OverflowError:
            return False
        exact = Fraction(self.value)
        if low is not None and low == high:
            return exact == low and not self.low_open and not self.high_open
        return (low is None or exact > low) and (high is None or exact < high)

    @property
    def _least(self) -> Fraction | None:
        """The least integer in it."""
        if self.low is None:
            return None
        return Fraction(math.floor(self.low) + 1 if self.low_open else math.ceil(self.low))

    @property
    def _greatest(self) -> Fraction | None:
        """The greatest integer in it."""
        if self.high is None:
            return None
        return Fraction(math.ceil(self.high) - 1 if self.high_open else math.floor(self.high))

    def touches(self, other: Region) -> bool:
        """Is there nothing between it and a region above it?"""
        if self.high is None or other.low is None:
            return True
        if self.whole and self._greatest is not None and other._least is not None:
            return other._least <= self._greatest + 1
        return other.low < self.high or (
            other.low == self.high and not (self.high_open and other.low_open)
        )

    def assumptions(self) -> tuple[Assumption, ...]:
        """What the proof may take for granted of it."""
        found = [
            Assumption(self.name, "constant", "constant"),
            Assumption(self.name, PLAIN, PLAIN, usual=float(self.value)),
        ]
        if not self.is_everything:
            found.append(
                Assumption(
                    self.name, "interval", self.interval, self.low, self.high, self.low_open,
                    self.high_open,
                )
            )  # fmt: skip
        return tuple(found)


@dataclass(frozen=True)
class Union:
    """Values of one number: regions that do not touch, in order."""

    regions: tuple[Region, ...]

    @property
    def is_point(self) -> bool:
        """Is it a single value?"""
        return len(self.regions) == 1 and self.regions[0].is_point

    @property
    def condition(self) -> str:
        """``alpha < 0 or alpha > 1``; empty where it is everything."""
        return " or ".join(filter(None, (one.condition for one in self.regions)))

    @property
    def text(self) -> str:
        """``all real alpha > 0``, ``all real alpha with alpha < 0 or alpha > 1``."""
        first = self.regions[0]
        if len(self.regions) == 1:
            return str(first)
        if all(one.is_point for one in self.regions):
            values = " or ".join(map(_number, (Fraction(one.value) for one in self.regions)))
            return f"{first.name} = {values}"
        return f"all {first._kind} {first.name} with {self.condition}"


def union(regions: Iterable[Region]) -> Union:
    """The values of regions of one number."""
    found: list[Region] = []
    for one in sorted(regions, key=lambda one: (one.low is not None, one.low or 0, one.low_open)):
        if found and found[-1].touches(one):
            found[-1].high, found[-1].high_open = one.high, one.high_open
        else:
            found.append(one.copy())
    return Union(tuple(found))


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else repr(float(value))


# -- requests


def numbers(request: Request) -> dict[str, int | float]:
    """The plain numbers of a request that nobody stated: the defaults that forward takes."""
    return {
        name: value for name, value in defaults(request).items()
        if type(value) in (int, float) and math.isfinite(value)
    }  # fmt: skip


def stated_numbers(request: Request) -> dict[str, int | float]:
    """The plain numbers of a request that somebody stated."""
    sizes = {*request.sizes, *request.batches.values()}
    return {
        one.name: one.value for one in request.arguments
        if one.given and not one.is_tensor and one.name not in sizes
        and type(one.value) in (int, float) and math.isfinite(one.value)
    }  # fmt: skip


def defaults(request: Request) -> dict[str, Any]:
    """The plain arguments of forward that nobody stated, and their defaults."""
    known = {one.name: one for one in request.arguments}
    found = {}
    sizes = {*request.sizes, *request.batches.values()}
    kinds = {Kind.POSITIONAL_OR_KEYWORD, Kind.KEYWORD_ONLY}
    if request.cls.symgrad_plain is not None:  # of a library whose adapter takes all by name
        kinds.add(Kind.POSITIONAL_ONLY)
    for one in parameters(request.function):
        argument = known.get(one.name)
        if one.name in sizes:
            continue  # a report could not tell the two apart
        if one.kind not in kinds or one.default is one.empty:
            continue
        if argument is not None and (argument.is_tensor or argument.given):
            continue
        found[one.name] = one.default
    return found


def with_regions(request: Request, regions: Mapping[str, Region]) -> Request:
    """The request with regions in place of numbers, in all shapes that are inferred for it too."""

    def with_facts(one: Request) -> Request:
        tensors = {tensor.name for tensor in one.tensors}
        facts = [
            fact for name, region in regions.items() if name not in tensors
            for fact in region.assumptions()
        ]  # fmt: skip
        return replace(one, assumptions=(*one.assumptions, *facts))

    return _with(request, regions, with_facts)


def with_values(request: Request, values: Mapping[str, Any]) -> Request:
    """The request with other plain arguments, in all shapes that are inferred for it too."""
    return _with(request, values, lambda one: one)


def _with(
    request: Request, values: Mapping[str, Any], change: Callable[[Request], Request]
) -> Request:
    """The request, and each that is inferred for it, with these plain arguments, changed."""

    def changed(one: Request) -> Request:
        known = {argument.name for argument in one.arguments}
        passed = defaults(one)
        arguments = tuple(
            replace(argument, value=values[argument.name])
            if _is_replaced(argument, values) else argument
            for argument in one.arguments
        )  # fmt: skip
        left = tuple(
            Argument(name, value=value, keyword=True, given=False)
            for name, value in values.items() if name not in known and name in passed
        )  # fmt: skip
        return replace(change(one), arguments=(*arguments, *left))

    return _in_all(request, changed)


def as_unstated(request: Request, names: Iterable[str], like: Request) -> Request:
    """The request with some plain arguments as another one has them, of which nobody stated them.

    ``like``: where they are not among its arguments, they are no positional ones.
    """
    known = {one.name for one in like.arguments}
    unstated = frozenset(names)

    def changed(one: Request) -> Request:
        arguments = tuple(
            replace(argument, given=False, keyword=argument.keyword or argument.name not in known)
            if argument.name in unstated else argument
            for argument in one.arguments
        )  # fmt: skip
        return replace(one, arguments=arguments)

    return _in_all(request, changed)


def _in_all(request: Request, change: Callable[[Request], Request]) -> Request:
    """The request, and each that is inferred for it, changed."""
    guess = request.guess
    if guess is not None:
        resized = guess.resized
        guess = replace(
            guess,
            presences=tuple(
                replace(one, request=_in_all(one.request, change)) for one in guess.presences
            ),
            others=tuple(_in_all(one, change) for one in guess.others),
            resized=resized and (lambda: (_in_all(one, change) for one in resized())),
        )
    return replace(change(request), guess=guess)


def by_place(request: Request) -> Request:
    """The request with all arguments passed by position, as far as they can be.

    ``torch.autograd.Function.apply`` takes no keywords.
    """
    known = {one.name: one for one in request.arguments}
    own = [
        one for one in parameters(request.function)
        if one.kind in (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    named = [place for place, one in enumerate(own) if one.name in known]
    if len(known) != len(named) or any(one.name not in known for one in request.arguments):
        return request
    passed = [
        replace(known[one.name], keyword=False) if one.name in known
        else Argument(one.name, value=one.default, given=False)
        for one in own[: max(named, default=-1) + 1]
    ]  # fmt: skip
    return replace(request, arguments=tuple(passed))


def _is_replaced(one: Argument, values: Mapping[str, Any]) -> bool:
    """Does another value take an argument's place?  Not that of an absent tensor."""
    if one.name not in values or one.is_tensor:
        return False
    return not one.given or type(one.value) in (int, float)


def as_numbers(
    request: Request, found: Mapping[str, Union] | None = None
) -> tuple[PlainArgument, ...]:  # fmt: skip
    """The plain arguments of a request, with what stands for numbers said to be passed by calls.

    ``found``: for which values they may be passed, if it is not as the request says.
    """
    values = request.plain_values()
    names = [one.name for one in parameters(request.function) if one.kind is not Kind.KEYWORD_ONLY]
    if found is None:
        found = {
            one.name: union([one.value]) for one in values if isinstance(one.value, Region)
        }  # fmt: skip
    made = []
    defaults = numbers(request)
    for one in values:
        place = one.place
        if found and (one.name in found or place is not None) and one.name in names:
            place = names.index(one.name)  # numbers are passed by name in a trace
        if one.name in found:
            known = found[one.name]
            value = defaults.get(one.name, known.regions[0].value)
            number = "" if known.regions[0].settled or known.is_point else known.regions[0].dtype
            condition = known.condition if number else ""
            made.append(PlainArgument(one.name, value, place, number, condition))
        else:
            made.append(replace(one, place=place))
    return tuple(made)


def passed_numbers(request: Request) -> tuple[frozenset[str], Request]:
    """The inputs that callers pass as Python numbers, and the request with numbers in their place.

    These are the regions, what is annotated ``float``, and what was inferred to be a number.
    """
    symbols = {one.name for one in request.assumptions if one.kind == PLAIN}
    own = {one.name for one in request.tensors if one.spec is not None and not one.spec.dims}
    regions = {one.name for one in request.arguments if isinstance(one.value, Region)}
    arguments = tuple(
        replace(one, spec=None, value=_ANY_NUMBER) if one.name in symbols & own else one
        for one in request.arguments
    )
    arguments = tuple(
        replace(one, value=one.value.value) if isinstance(one.value, Region) else one
        for one in arguments
    )
    plain = tuple(one for one in request.assumptions if not symbols & set(one.inputs))
    return frozenset(symbols & own | regions), replace(
        request, arguments=arguments, assumptions=plain
    )


_ANY_NUMBER = 0.7209827024316872
"""What stands for a number of which nothing is known."""


def with_passed(request: Request, graphs: FunctionGraphs) -> FunctionGraphs:
    """The cases with the numbers that have no default, ``alpha: float``, passed as numbers.

    A proof takes them for inputs of no axes that are constant.
    """
    symbols = {one.name for one in request.assumptions if one.kind == PLAIN}
    names = [one.name for one in request.tensors if one.name in symbols]
    if not names:
        return graphs
    order = [one.name for one in parameters(request.function) if one.kind is not Kind.KEYWORD_ONLY]
    passed = tuple(
        PlainArgument(name, REQUIRED, order.index(name) if name in order else None, "float64")
        for name in names
    )
    kept = [name not in names for name in graphs.input_names]
    return replace(
        graphs,
        cases=tuple(_with_passed(case, names, kept) for case in graphs.cases),
        input_names=tuple(itertools.compress(graphs.input_names, kept)),
        differentiable=tuple(name for name in graphs.differentiable if name not in names),
        values=(*passed, *graphs.values),
    )


def _with_passed(case: FunctionCase, names: Sequence[str], kept: Sequence[bool]) -> FunctionCase:
    ranks = case.any_rank
    if ranks is not None:
        ranks = replace(ranks, inputs=tuple(itertools.compress(ranks.inputs, kept)))
    return replace(
        case,
        plain=(*names, *case.plain),
        gradients=tuple(one for one in case.gradients if one.input not in names),
        any_rank=ranks,
    )


# -- while a Function is traced


_WHOLE = frozenset(("add", "sub", "mul", "neg"))
_COMPUTE: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "neg": operator.neg, "pow": operator.pow, "sqrt": math.sqrt, "exp": math.exp,
    "rsqrt": lambda x: 1 / math.sqrt(x), "log": math.log, "log2": math.log2, "log10": math.log10,
    "log1p": math.log1p, "tanh": math.tanh, "sin": math.sin, "cos": math.cos, "abs": math.fabs,
}  # fmt: skip


class PlainNumber(ValuedNumber):
    """A plain number, or what was computed from some, while a Function is traced.

    ``regions``: of the numbers that it depends on.  ``value``: what it is for their defaults; None
    where sizes take part.  ``is_whole``: it is an integer.
    """

    __slots__ = ("regions",)

    def __init__(
        self, op: str, args: tuple[Any, ...], regions: tuple[Region, ...],
        value: int | float | None, *, whole: bool,
    ) -> None:  # fmt: skip
        super().__init__(op, args)
        self.regions = regions
        self.value = value
        self.is_whole = whole

    @classmethod
    def of(cls, region: Region) -> PlainNumber:
        """The number itself."""
        return cls(PLAIN, (), (region,), region.value, whole=region.whole)

    def node(self, dtype: DType) -> Node:
        """It as a number of the graph in progress: computed as Python does, then rounded."""
        session = current()
        if not dtype.is_float:
            return session.constant(self.settle(), dtype)
        if self.op != PLAIN:
            found = super().node(float64)
        else:
            found = session.plain_number(self.regions[0].name)
        session.numbers[bare(found)] = self
        return session.cast(found, dtype)

    @property
    def stands_for(self) -> Any:
        """Its value for the defaults."""
        return self.op if self.value is None else self.value

    def derived(self, op: str, args: tuple[Any, ...]) -> SymFloat:
        """What ``op`` makes of it and other numbers."""
        regions = {
            region.name: region for arg in args if is_plain_number(arg)
            for region in arg.regions
        }  # fmt: skip
        whole = all(map(_is_whole, args))
        if whole and op == "pow":
            whole = type(args[1]) is int and args[1] >= 0
            if not whole:
                _settle(regions.values())
        elif op not in _WHOLE:
            whole = False
        return PlainNumber(op, args, tuple(regions.values()), _value(op, args), whole=whole)

    def settle(self) -> Any:
        """Its value: from here on the trace holds for the defaults of its numbers alone."""
        _settle(self.regions)
        if self.value is None:
            raise self._no_number("known value")
        return self.value

    def _compare(self, relation: str, other: Any) -> Any:
        if isinstance(other, np.generic):
            other = other.item()
        if type(other) not in (bool, int, float) and not issubclass(
            type(other), (SymFloat, SymInt)
        ):
            return NotImplemented
        if self.op == PLAIN and type(other) in (bool, int, float) and math.isfinite(other):
            return self.regions[0].compare(relation, other)
        own = self.settle()
        known = other.settle() if is_plain_number(other) else other
        return RELATIONS[relation](own, known)

    def __eq__(self, other: object) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(">=", other)

    __hash__ = ValuedNumber.__hash__

    def __bool__(self) -> bool:
        return bool(self._compare("!=", 0))

    def __abs__(self) -> Any:
        return abs(self.settle())

    def __pos__(self) -> Any:
        return self

    def __floordiv__(self, other: Any) -> Any:
        return self.settle() // _settled(other)

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self.settle()

    def __mod__(self, other: Any) -> Any:
        return self.settle() % _settled(other)

    def __rmod__(self, other: Any) -> Any:
        return other % self.settle()

    def __divmod__(self, other: Any) -> Any:
        return divmod(self.settle(), _settled(other))

    def __rdivmod__(self, other: Any) -> Any:
        return divmod(other, self.settle())


def is_plain_number(value: Any) -> bool:
    """Is it a plain number of a trace?  Its ``__class__`` says otherwise."""
    return issubclass(type(value), PlainNumber)


def _settle(regions: Any) -> None:
    for region in regions:
        region.settled = True


def _settled(value: Any) -> Any:
    return value.settle() if is_plain_number(value) else value


def _is_whole(value: Any) -> bool:
    if is_plain_number(value):
        return bool(value.is_whole)
    return type(value) in (bool, int) or isinstance(value, (SymInt, np.integer))


def _value(op: str, args: tuple[Any, ...]) -> Any:
    known = [arg.value if is_plain_number(arg) else arg for arg in args]
    try:
        if any(isinstance(one, (SymFloat, SymInt)) or one is None for one in known):
            return None
        return _COMPUTE[op](*known)
    except (ArithmeticError, ValueError, KeyError):
        return None
