"""Numbers that Python refuses: ``1 / 0``, ``math.sqrt(-1)``, ``2.0**1024``.

In: an operation of numbers that are symbols while a Function is traced.  Out: the exception that
Python raises for them, or none.

That a number is refused for some sizes only is a question, which splits the trace; for some values
of a plain number only, a comparison of that number.  What bounds show is not asked.  What can be
neither shown nor asked is taken for granted, and the verdict prints it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symgrad.errors import ControlFlowError
from symgrad.frontend.caller import here, may_handle
from symgrad.frontend.questions import note_limit, questions
from symgrad.frontend.session import Session, active, current
from symgrad.ir.dim import Dim
from symgrad.ir.function import RELATIONS

_SHORT = 2**20
"""Floats are exact in arithmetic where they are quotients of integers below it, by a power of 2."""
_ROUNDED = 1e-12
"""By how much, relatively, what was computed in doubles may be off."""
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LARGEST_SIZE = 2.0**63
_LARGEST = math.log(sys.float_info.max)
_SINE = math.log(2) + _LARGEST


@dataclass(frozen=True)
class Need:
    """What an operation needs of its operand in ``place``: ``relation`` to ``number``.

    Otherwise Python raises ``error``; the verdict prints ``text`` where that is not known.
    ``overflow``: the float would be too large, which matters of plain numbers where it is handled.
    """

    place: int
    relation: str
    number: float
    error: Callable[[], Exception]
    text: str
    overflow: bool = False


def _by_zero() -> Exception:
    return ZeroDivisionError("division by zero")


_NOT_ZERO = "what is divided by is not 0"
_NO_OVERFLOW = "no power overflows"
_DIVISION = (Need(1, "!=", 0, _by_zero, _NOT_ZERO),)


def _domain(name: str, *needs: tuple[str, float]) -> tuple[Need, ...]:
    def error() -> Exception:
        return ValueError("math domain error")

    text = f"math.{name}() is called for numbers that it is defined for"
    return tuple(Need(0, relation, number, error, text) for relation, number in needs)


def _finite(name: str, *needs: tuple[str, float]) -> tuple[Need, ...]:
    def error() -> Exception:
        return OverflowError("math range error")

    return tuple(
        Need(0, relation, number, error, f"math.{name}() does not overflow", overflow=True)
        for relation, number in needs
    )


_NEEDS: dict[str, tuple[Need, ...]] = {
    "div": _DIVISION, "floordiv": _DIVISION, "mod": _DIVISION,
    "sqrt": _domain("sqrt", (">=", 0)),
    "log": _domain("log", (">", 0)), "log2": _domain("log2", (">", 0)),
    "log10": _domain("log10", (">", 0)), "log1p": _domain("log1p", (">", -1)),
    "acos": _domain("acos", (">=", -1), ("<=", 1)), "asin": _domain("asin", (">=", -1), ("<=", 1)),
    "atanh": _domain("atanh", (">", -1), ("<", 1)), "acosh": _domain("acosh", (">=", 1)),
    "lgamma": _domain("lgamma", (">", 0)),
    "exp": _finite("exp", ("<=", _LARGEST)), "expm1": _finite("expm1", ("<=", _LARGEST)),
    "exp2": _finite("exp2", ("<", sys.float_info.max_exp)),
    "sinh": _finite("sinh", ("<=", _SINE), (">=", -_SINE)),
    "cosh": _finite("cosh", ("<=", _SINE), (">=", -_SINE)),
}  # fmt: skip
"""What each operation of numbers needs."""


_unchecked: ContextVar[bool] = ContextVar("symgrad_unchecked", default=False)


@contextmanager
def never_refused() -> Iterator[None]:
    """A block that computes as NumPy does: what has no value is NaN or infinite."""
    token = _unchecked.set(True)
    try:
        yield
    finally:
        _unchecked.reset(token)


def check(op: str, args: tuple[Any, ...]) -> None:
    """Raises what Python raises for ``op`` of these numbers, and NeedsDecision."""
    session = active()
    if session is None or _unchecked.get():
        return
    for need in _of_power(*args) if op == "pow" else _NEEDS.get(op, ()):
        if not _meets(session, args[need.place], need):
            raise need.error()


def check_size(session: Session, size: Dim, error: Callable[[], Exception]) -> None:
    """Raises an error where a number of elements is negative."""
    if not session.holds(size, ">=", 0):
        raise error()


def is_so(value: Any, relation: str, number: float, text: str) -> bool:
    """Does a number stand in a relation to another one?

    That it does for some values only splits the trace; what cannot be asked is taken to be so, and
    the verdict prints ``text``.
    """
    return _meets(current(), value, Need(0, relation, number, _by_zero, text))


def _complex() -> Exception:
    return note_limit(
        ControlFlowError("a complex number is computed, or a power of 0", location=here())
    )


def _of_power(base: Any, power: Any) -> Iterable[Need]:
    """What ``base**power`` needs; a power of a negative number may be a complex one."""
    if type(power) in (int, float):
        if power < 0:
            yield Need(0, "!=", 0, _by_zero, _NOT_ZERO)
        if power % 1:
            yield Need(0, ">=", 0, _complex, "no root of a negative number is taken")
        if power > 1 and not _is_whole(base):
            limit = sys.float_info.max ** (1 / power) * (1 - _ROUNDED)
            yield from _below(limit) if _regions(base) or limit < _LARGEST_SIZE else ()
    elif type(base) not in (int, float) or base <= 0:
        yield Need(0, ">", 0, _complex, "what is raised to a power is positive")
    elif base != 1 and (type(base) is float or _dim(power) is None):
        yield _of_exponential(base)


def _of_exponential(base: float) -> Need:
    """What ``base**power`` needs of its power: that the float is not too large."""
    limit = _LARGEST / math.log(base) * (1 - _ROUNDED)
    relation = "<=" if base > 1 else ">="
    return Need(1, relation, limit, _too_large, _NO_OVERFLOW, overflow=True)


def _below(limit: float) -> Iterable[Need]:
    """What a base needs: that the float is not too large."""
    for relation, bound in (("<=", limit), (">=", -limit)):
        yield Need(0, relation, bound, _too_large, _NO_OVERFLOW, overflow=True)


def _too_large() -> Exception:
    return OverflowError(34, "Numerical result out of range")


def _is_whole(value: Any) -> bool:
    """Is it an integer, whose powers are exact?"""
    return _dim(value) is not None or bool(getattr(value, "is_whole", False))


# -- does a number meet what is needed?


def _meets(session: Session, value: Any, need: Need) -> bool:
    """Is it so?  Asks; where nothing can be asked it is, and the verdict prints it."""
    if not _is_symbol(value):
        return RELATIONS[need.relation](value, need.number)
    bound = Fraction(need.number)
    if _shown(session, value, need.relation, bound):
        return True
    if need.overflow and _regions(value) and not may_handle():
        return True
    asked = _asked(session, value, need.relation, bound)
    if asked is not None:
        return asked
    known = questions()
    if known is not None:
        known.assume_here(need.text, here())
    return True


def _asked(session: Session, value: Any, relation: str, bound: Fraction) -> bool | None:
    """Whether it is so in this trace; None where nothing can be asked."""
    regions, line = _regions(value), _line(value)
    if line is not None:
        factor, shift = line
        way = relation if factor > 0 else _FLIPPED[relation]
        answer: bool = regions[0].compare(way, (bound - shift) / factor)
        return answer
    found = _quotient(value)
    if found is not None:
        above, below = found
        difference = above * bound.denominator - below * bound.numerator
        if relation not in ("==", "!="):
            difference = difference * (below if below.constant is None else _sign(below.constant))
        return session.holds(difference, relation, 0)
    zero = _is_zero(session, value) if bound == 0 and relation in ("==", "!=") else None
    if zero is not None:
        return zero is (relation == "==")
    if bound == 0 and relation == ">" and _shown(session, value, ">=", bound):
        return _asked(session, value, "!=", bound)
    for region in regions:
        region.settled = True
    known: Any = value.value if regions else None
    return None if known is None else RELATIONS[relation](known, float(bound))


def _sign(number: int) -> int:
    return 1 if number > 0 else -1


def _is_zero(session: Session, value: Any) -> bool | None:
    """Is a number 0 that is no quotient of polynomials?  None: that cannot be asked."""
    op, args = _parts(value)
    if op in ("sqrt", "abs", "neg", "tanh", "div", "cast"):
        deciding = args[:1]
    elif op == "mul":
        deciding = args
    elif op == "pow" and _shown(session, args[1], ">", Fraction(0)):
        deciding = args[:1]
    else:
        return None
    found = False
    for one in deciding:
        if not _is_symbol(one):
            found = found or one == 0
            continue
        if _shown(session, one, "!=", Fraction(0)):
            continue
        zero = _asked(session, one, "==", Fraction(0))
        if zero is None:
            return None
        found = found or zero
    return found


def _is_symbol(value: Any) -> bool:
    return _dim(value) is not None or _parts(value)[0] != ""


def _dim(value: Any) -> Dim | None:
    """The size that a number is; None for any other."""
    return value.dim if hasattr(type(value), "dim") else None


def _parts(value: Any) -> tuple[str, tuple[Any, ...]]:
    """The operation that a number was computed by, and its operands; "" for no such number."""
    return (value.op, value.args) if hasattr(type(value), "args") else ("", ())


def _regions(value: Any) -> tuple[Any, ...]:
    """The regions of the plain numbers that it depends on."""
    found: tuple[Any, ...] = getattr(value, "regions", ()) if _holds_regions(value) else ()
    return found


def _holds_regions(value: Any) -> bool:
    return hasattr(type(value), "regions")


# -- plain numbers


def _line(value: Any) -> tuple[Fraction, Fraction] | None:
    """``a`` and ``b`` of ``a x + b`` of one plain number, which doubles do not round at 0."""
    op, args = _parts(value)
    if _holds_regions(value) and not args:
        return Fraction(1), Fraction(0)
    if op == "neg":
        found = _line(args[0])
        return None if found is None else (-found[0], -found[1])
    if op not in ("add", "sub", "mul") or len(args) != 2:
        return None
    lines = [_line(one) if _is_symbol(one) else None for one in args]
    numbers = [None if _is_symbol(one) else _short(one) for one in args]
    place = next((place for place, one in enumerate(lines) if one is not None), None)
    if place is None or numbers[1 - place] is None:
        return None
    (factor, shift), other = lines[place], numbers[1 - place]  # type: ignore[misc]
    assert other is not None
    if op == "mul":
        is_power = other != 0 and abs(other.numerator) & (abs(other.numerator) - 1) == 0
        return (factor * other, shift * other) if is_power else None
    if op == "add":
        return factor, shift + other
    return (factor, shift - other) if place == 0 else (-factor, other - shift)


def _short(value: Any) -> Fraction | None:
    """A number that arithmetic of doubles is exact with; None for another."""
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, (int, float)) or not math.isfinite(number):
        return None
    exact = Fraction(number)
    fits = isinstance(number, int) or max(abs(exact.numerator), exact.denominator) <= _SHORT
    return exact if fits else None


# -- sizes


def _quotient(value: Any) -> tuple[Dim, Dim] | None:
    """It as a quotient of polynomials of sizes; None where it is none, or doubles round it."""
    if not _is_symbol(value):
        exact = _short(value)
        return None if exact is None else (Dim.of(exact.numerator), Dim.of(exact.denominator))
    dim = _dim(value)
    if dim is not None:
        return dim, Dim.of(1)
    op, args = _parts(value)
    if op not in ("add", "sub", "mul", "div", "neg") or _regions(value):
        return None
    found = [_quotient(one) for one in args]
    if any(one is None for one in found):
        return None
    (a, b), *rest = found  # type: ignore[misc]
    if op == "neg":
        return -a, b
    c, d = rest[0]  # type: ignore[misc]
    if op == "mul":
        return a * c, b * d
    if op == "div":
        return a * d, b * c
    return (a * d + b * c if op == "add" else a * d - b * c), b * d


# -- bounds


Bounds = tuple[float, float]
_ANYTHING: Bounds = (-math.inf, math.inf)


def _shown(session: Session, value: Any, relation: str, bound: Fraction) -> bool:
    """Do bounds of a number show that it stands in a relation to another one?"""
    low, high = _bounds(session, value)
    if relation == "!=":
        return low > bound or high < bound
    if relation in (">", ">="):
        return low > bound or (relation == ">=" and low == bound)
    if relation in ("<", "<="):
        return high < bound or (relation == "<=" and high == bound)
    return False


def _bounds(session: Session, value: Any) -> Bounds:
    """Between which numbers it lies."""
    if not _is_symbol(value):
        return float(value), float(value)
    dim = _dim(value)
    if dim is not None:
        return _of_size(session, dim)
    op, args = _parts(value)
    if not args:
        regions = _regions(value)
        return _of_region(regions[0]) if regions else _ANYTHING
    compute = _BOUNDS.get(op)
    if compute is None:
        return _ANYTHING
    if op == "mul" and args[0] is args[1]:
        compute = _square
    try:
        found = compute(*(_bounds(session, one) for one in args))
    except (ArithmeticError, ValueError):
        return _ANYTHING
    return _ANYTHING if any(map(math.isnan, found)) else found


def _of_size(session: Session, dim: Dim) -> Bounds:
    """Bounds of a polynomial of sizes: those at the least sizes, or 0, where they are some."""
    facts = session.facts
    at = [dim.substitute({atom: Dim.of(1) for atom in dim.atoms}).constant, 1, 0, -1]
    known = sorted({one for one in at if one is not None})
    low = [one for one in known if facts.decide(dim, ">=", one)]
    high = [one for one in known if facts.decide(dim, "<=", one)]
    return (float(low[-1]) if low else -math.inf), (float(high[0]) if high else math.inf)


def _of_region(region: Any) -> Bounds:
    """Bounds of a plain number; an open end is no value of it."""
    tiny = math.ulp(0.0)
    low = -math.inf if region.low is None else float(region.low) + tiny * bool(region.low_open)
    high = math.inf if region.high is None else float(region.high) - tiny * bool(region.high_open)
    return low, high


def _wider(low: float, high: float) -> Bounds:
    return low - abs(low) * _ROUNDED if math.isfinite(low) else low, (
        high + abs(high) * _ROUNDED if math.isfinite(high) else high
    )


def _times(x: float, y: float) -> float:
    return 0.0 if 0 in (x, y) else x * y


def _corners(compute: Callable[[float, float], float], a: Bounds, b: Bounds) -> Bounds:
    found = [compute(x, y) for x in a for y in b]
    return _wider(min(found), max(found))


def _multiplied(a: Bounds, b: Bounds) -> Bounds:
    return _corners(_times, a, b)


def _square(a: Bounds, _: Bounds) -> Bounds:
    ends = sorted(map(abs, a))
    low = 0.0 if a[0] <= 0 <= a[1] else ends[0]
    return _wider(_times(low, low), _times(ends[1], ends[1]))


def _divided(a: Bounds, b: Bounds) -> Bounds:
    if b[0] <= 0 <= b[1]:
        return _ANYTHING
    return _multiplied(a, _wider(1 / b[1], 1 / b[0]))


def _added(a: Bounds, b: Bounds) -> Bounds:
    return _wider(a[0] + b[0], a[1] + b[1])


def _negated(a: Bounds) -> Bounds:
    return -a[1], -a[0]


def _absolute(a: Bounds) -> Bounds:
    ends = sorted(map(abs, a))
    return (0.0 if a[0] <= 0 <= a[1] else ends[0]), ends[1]


def _rising(
    compute: Callable[[float], float], low: float = -math.inf, at: float = -math.inf
) -> Callable[[Bounds], Bounds]:
    """Bounds of a growing function that is defined from ``low`` on, where it is ``at``."""

    def of(a: Bounds) -> Bounds:
        def value(x: float) -> float:
            if x <= low and math.isfinite(low):
                return at
            try:
                return compute(x)
            except OverflowError:
                return math.inf

        return _wider(value(a[0]), value(a[1]))

    return of


def _power(a: Bounds, b: Bounds) -> Bounds:
    """Of positive numbers; else of an even power."""
    if a[0] <= 0:
        is_even = b[0] == b[1] and b[0] > 0 and b[0] % 2 == 0
        return (0.0, math.inf) if is_even or a[0] == 0 else _ANYTHING

    def raised(x: float, y: float) -> float:
        try:
            return x**y if math.isfinite(x) or y else 1.0
        except OverflowError:
            return math.inf

    return _corners(raised, a, b)


_exp = _rising(math.exp)
_BOUNDS: dict[str, Callable[..., Bounds]] = {
    "add": _added, "sub": lambda a, b: _added(a, _negated(b)), "mul": _multiplied,
    "div": _divided, "neg": _negated, "abs": _absolute, "pow": _power,
    "sqrt": _rising(math.sqrt, 0, 0), "log": _rising(math.log, 0), "log2": _rising(math.log2, 0),
    "log10": _rising(math.log10, 0), "log1p": _rising(math.log1p, -1), "exp": _exp,
    "tanh": _rising(math.tanh), "sin": lambda a: (-1.0, 1.0), "cos": lambda a: (-1.0, 1.0),
    "rsqrt": lambda a: _divided((1.0, 1.0), _rising(math.sqrt, 0, 0)(a)),
    "cosh": lambda a: (1.0, math.inf), "exp2": _rising(lambda x: 2.0**x),
}  # fmt: skip
