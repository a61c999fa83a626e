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
from dataclasses import replace
from typing import Any

import numpy as np

from symgrad.frontend.evidence import Kind, parameters
from symgrad.frontend.regions import PLAIN, Region, Union, union
from symgrad.frontend.request import Argument, Request
from symgrad.frontend.session import current
from symgrad.frontend.sizes import SymFloat, SymInt, ValuedNumber
from symgrad.ir.dtype import DType, float64
from symgrad.ir.function import RELATIONS, FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node
from symgrad.ops.movement import bare
from symgrad.plain_values import REQUIRED, PlainArgument

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
    """The plain arguments of forward that nobody stated, and their defaults.

    So are those without a default for which a number was chosen.
    """
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
        if one.kind not in kinds or (one.default is one.empty and argument is None):
            continue
        if argument is not None and (argument.is_tensor or argument.given):
            continue
        if one.name in request.left_out:
            continue
        chosen = None if argument is None else argument.value
        chosen = chosen.value if isinstance(chosen, Region) else chosen
        found[one.name] = chosen if one.default is one.empty else one.default
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

    return in_all(request, changed)


def as_unstated(request: Request, names: Iterable[str], like: Request) -> Request:
    """The request with some plain arguments as another one has them, of which nobody stated them.

    ``like``: where they are not among its arguments, they are no positional ones.
    """
    known = {one.name for one in like.arguments}
    unstated = frozenset(names)

    def changed(one: Request) -> Request:
        arguments = tuple(
            replace(argument, given=False, keyword=argument.keyword or argument.name not in known)
            if argument.name in unstated and not argument.is_tensor else argument
            for argument in one.arguments
        )  # fmt: skip
        return replace(one, arguments=arguments)

    return in_all(request, changed)


def in_all(request: Request, change: Callable[[Request], Request]) -> Request:
    """The request, and each that is inferred for it, changed."""
    guess = request.guess
    if guess is not None:
        resized, known = guess.resized, guess

        def near() -> Request | None:
            return known.fitting and in_all(known.fitting, change)

        guess = replace(
            guess,
            near=near,
            presences=tuple(
                replace(one, request=in_all(one.request, change)) for one in guess.presences
            ),
            others=tuple(in_all(one, change) for one in guess.others),
            resized=resized and (lambda: (in_all(one, change) for one in resized())),
        )
    return replace(change(request), guess=guess)


def by_place(request: Request) -> Request:
    """The request with all arguments passed by position, as far as they can be.

    ``torch.autograd.Function.apply`` takes no keywords.
    """
    passed = request.by_place[: request.passed]
    places = {one.name for one in passed}
    if any(one.keyword and one.name not in places for one in request.arguments):
        return request
    return replace(request, arguments=tuple(replace(one, keyword=False) for one in passed))


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

    def type_is_asked(self) -> None:
        """Note that what was traced may hold for numbers of its type alone."""
        for region in self.regions:
            region.typed = True

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
