"""What an argument of forward may be: a tensor of some rank and dtype, a number, a plain value.

In: a Function.  Out: ``Unknown`` records: an argument with its candidates, the cheapest first.
Imports: the frontend, ``symgrad.ir.dtype``, ``symgrad.errors``.

Evidence is taken from annotations and from the source: what forward keeps as an attribute of ctx
is a number, since torch keeps tensors with ``save_for_backward``; what ``if`` asks is a flag.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symgrad.errors import SpecError
from symgrad.frontend.annotations import annotated_spec
from symgrad.frontend.arguments import bind, parameters
from symgrad.frontend.function import Function, class_of, init_parameters, raw_method
from symgrad.frontend.source import method_sources
from symgrad.frontend.spec import TensorSpec
from symgrad.ir.dtype import DType, bool_, int64

AnyFunction = type[Function] | Function
Parameter = inspect.Parameter


@dataclass(frozen=True)
class Candidate:
    """A tensor of ``rank`` axes; a tensor with a given ``spec``; or a plain ``value``.

    ``price``: the order in which candidates are tried.  ``constant``: a number of which no
    gradient is wanted.  ``absent``: None for an optional argument.
    """

    price: int
    rank: int | None = None
    dtype: DType | None = None
    spec: TensorSpec | None = None
    value: Any = None
    constant: bool = False
    absent: bool = False

    @property
    def is_tensor(self) -> bool:
        """Is it traced as a tensor?"""
        return self.rank is not None or self.spec is not None


@dataclass(frozen=True)
class Unknown:
    """An argument and its candidates, the cheapest first; ``plain``: it takes no spec."""

    name: str
    candidates: tuple[Candidate, ...]
    plain: bool = False


def are_known(function: AnyFunction, static: Mapping[str, Any] | None = None) -> bool:
    """Do annotations, defaults and ``static`` say what every argument of forward is?"""
    values = static or {}
    if any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters(function)):
        return False
    if any(_is_open(one) and one.name not in values for one in init_parameters(function).values()):
        return False
    try:
        return any(argument.is_tensor for argument in bind(function, (), values).arguments)
    except SpecError:
        return False


def unknowns(function: AnyFunction, static: Mapping[str, Any]) -> Iterator[Unknown]:
    """The arguments to find, and those whose annotation says what they are, in call order."""
    for name, parameter in init_parameters(function).items():
        if name not in static and _is_open(parameter):
            yield Unknown(name, _plain_values(parameter), plain=True)
    evidence = _evidence(function)
    forward, _ = raw_method(function, "forward")
    scope = getattr(inspect.unwrap(forward), "__globals__", {})
    for parameter in parameters(function):
        if parameter.name in static or parameter.kind is Parameter.VAR_KEYWORD:
            continue
        if parameter.kind is Parameter.VAR_POSITIONAL:
            yield from (Unknown(f"{parameter.name}_{i}", _TENSORS) for i in range(2))
            continue
        spec = annotated_spec(parameter.annotation, scope)
        if spec is not None:
            given = (Candidate(0, spec=spec.with_own_axes(parameter.name)),)
            yield Unknown(parameter.name, given, parameter.kind is Parameter.KEYWORD_ONLY)
        elif _is_open(parameter) or parameter.default is None:
            yield _unknown(parameter, evidence.get(parameter.name, ""))


# -- prices


def _priced(candidates: Sequence[Candidate], extra: int = 0) -> tuple[Candidate, ...]:
    raised = [replace(one, price=one.price + extra) for one in candidates]
    return tuple(sorted(raised, key=lambda one: one.price))


_FLOATS = {2: 0, 1: 1, 3: 2, 0: 3, 4: 4}
_INTEGERS = {1: 4, 2: 5, 3: 6, 0: 7, 4: 8}
_TRUTHS = {2: 6, 1: 7, 3: 8, 0: 9, 4: 10}
_TENSORS = _priced(
    [
        Candidate(price, rank, dtype)
        for dtype, prices in ((None, _FLOATS), (int64, _INTEGERS), (bool_, _TRUTHS))
        for rank, price in prices.items()
    ]
)
_CONSTANT = Candidate(0, rank=0, constant=True)
_WHOLE = tuple(Candidate(price, value=value) for price, value in enumerate((-1, 1, 2, 0)))
_FLAG = (Candidate(0, value=True), Candidate(12, value=False))
"""Without the flag less is computed: what an argument is would not show."""
_PLAIN = {"int": _WHOLE, "bool": _FLAG, "float": (_CONSTANT, Candidate(1, value=0.5))}
_NUMBER = (_CONSTANT, *_priced(_WHOLE, 1), *_priced(_TENSORS, 4))
_FLAG_OR_ELSE = (*_FLAG, *_priced(_WHOLE, 12), *_priced(_TENSORS, 4))
_ANYTHING = (*_TENSORS, *_priced(_WHOLE, 8))


def _unknown(parameter: Parameter, evidence: str) -> Unknown:
    if parameter.kind is Parameter.KEYWORD_ONLY:
        return Unknown(parameter.name, _plain_values(parameter), plain=True)
    candidates = _PLAIN.get(_annotation(parameter))
    if candidates is None:
        candidates = {"number": _NUMBER, "flag": _FLAG_OR_ELSE}.get(evidence, _ANYTHING)
    if parameter.default is None:
        candidates = (*candidates, Candidate(5, absent=True))
    return Unknown(parameter.name, _priced(candidates))


def _plain_values(parameter: Parameter) -> tuple[Candidate, ...]:
    """For an argument that cannot be a tensor."""
    found = _PLAIN.get(_annotation(parameter), (*_WHOLE, *_priced(_FLAG, 4)))
    if parameter.default is None:
        found = (*found, Candidate(0, absent=True))
    return _priced([one for one in found if not one.is_tensor])


def _is_open(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty


def _annotation(parameter: Parameter) -> str:
    """``int``, ``float`` or ``bool`` where the annotation says so."""
    found = parameter.annotation
    return found if isinstance(found, str) else str(getattr(found, "__name__", ""))


# -- evidence


def _evidence(function: AnyFunction) -> dict[str, str]:
    """``number`` or ``flag`` for names that the source uses as such."""
    try:
        tree = ast.parse(method_sources(class_of(function)))
    except SyntaxError:
        return {}
    kept: set[str] = set()
    saved: set[str] = set()
    asked: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            kept |= _names(node.value)
        elif isinstance(node, (ast.If, ast.IfExp)):
            asked |= _names(node.test)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "save_for_backward":
            saved.update(*(_names(argument) for argument in node.args))
    numbers = dict.fromkeys(sorted(kept - saved), "number")
    return numbers | dict.fromkeys(sorted(asked - saved), "flag")


def _names(tree: ast.expr) -> set[str]:
    """The names that a tuple, a condition or a plain expression consists of."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    if isinstance(tree, (ast.Tuple, ast.List)):
        return set().union(*(_names(part) for part in tree.elts))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return _names(tree.operand)
    if isinstance(tree, ast.BoolOp):
        return set().union(*(_names(part) for part in tree.values))
    return set()
