"""What the rounded literals of a backward have to be for it to be right.

In: a ``Subject`` and the name of an input whose gradient is wrong by little.  Out: a ``Constant``
for each literal of the gradient that has to move, or None.

The literals are unknowns of the equations ``gradient = derivative`` at points, in many digits, and
Newton's method solves these.  Each has to be one that the
literal may stand for (``literals.reach``).  Then a
number without digits is looked for: a fraction, a product of powers of what forward's literals are
made of, or a sum of such.  Nothing here is a proof: the gradient with these numbers in place of its
literals is proved by the normal form, or it is not proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import islice
from math import gcd, lcm, prod
from typing import Any

import mpmath

from symgrad.ir.graph import ancestors
from symgrad.proof.oracle.numbers import Array, Precise
from symgrad.proof.oracle.sample import Point
from symgrad.proof.oracle.subject import Subject, literal_of
from symgrad.proof.oracle.values import DomainError, Evaluator, inner
from symgrad.proof.scalars import literals
from symgrad.proof.scalars.literals import Constant
from symgrad.proof.scalars.terms import PI, E, Term, term
from symgrad.proof.scalars.values import number

DIGITS = 110
"""Digits of the equations and of their solution."""
SURE = 75
"""Digits to which a closed form has to agree."""
MOST_UNKNOWNS = 6
MORE_EQUATIONS = 3
"""Equations beyond the number of unknowns, which a solution has to fulfil as well."""
ROUNDS = 8
LONGEST_DENOMINATOR = 10**30
MOST_BASES = 12
"""Numbers that powers of are tried as factors."""
GREATEST_POWER = 1000
GREATEST_FACTOR = 9
"""The digits of the greatest numerator of a coefficient in a sum."""
LONGEST_FACTOR = 10**12
"""No number above is taken apart into primes."""


def solved(subject: Subject, name: str, points: Sequence[Point]) -> dict[float, Constant] | None:
    """What literals of one gradient have to be; None where there is nothing, or it is too far."""
    unknowns = _unknowns(subject, name)
    if not 0 < len(unknowns) <= MOST_UNKNOWNS:
        return None
    with mpmath.workdps(DIGITS), suppress(DomainError, ZeroDivisionError):
        equations = list(_equations(subject, name, points, len(unknowns) + MORE_EQUATIONS))
        if len(equations) < len(unknowns) + 1:
            return None
        values = _newton(subject, equations, unknowns)
        if values is None:
            return None
        found = {}
        for literal, value in zip(unknowns, values, strict=True):
            made = _read(subject, literal, value)
            if made is None:
                return None
            if made.error:
                found[literal] = made
        return found or None
    return None


def _unknowns(subject: Subject, name: str) -> list[float]:
    """Literals of the gradient that forward has not, and that may be rounded."""
    nodes = ancestors([subject.gradients[name]])
    values = dict.fromkeys(float(value) for node in nodes for value in literal_of(node))
    return [
        value for value in values
        if value not in subject.own_literals and subject.reach(value)[0]
        and (not subject.recognised or value in subject.written or not literals.recognise(value))
    ]  # fmt: skip


# -- the equations


class _Equation:
    """``<gradient, direction>`` at a point as a function of literals, and what it has to be."""

    def __init__(
        self, subject: Subject, name: str, point: Point, direction: Array, true: Any
    ) -> None:
        self.subject, self.point, self.direction, self.true = subject, point, direction, true
        self.node = subject.gradients[name]
        self.program = Evaluator([self.node])

    def gap(self, literals_: Mapping[float, Any]) -> Any:
        """How far the gradient is off.  Raises DomainError."""

        def read(value: Any) -> Any:
            return literals_[value] if value in literals_ else self.subject.read(value)

        found = self.program.run(Precise(read), self.point.precise(), self.point.sizes)[self.node]
        gap = inner(found, self.direction) - self.true
        if isinstance(gap, mpmath.mpc) or not mpmath.isfinite(gap):
            raise DomainError("the gradient is not finite")
        return gap


def _equations(
    subject: Subject, name: str, points: Sequence[Point], count: int
) -> Iterator[_Equation]:
    for point in islice(_points(subject, points), count):
        at = subject.evaluate(point, subject.precise)
        direction = subject.direction(name, at)
        true = subject.sympy_derivative(at, {name: direction})
        if not isinstance(true, mpmath.mpc) and mpmath.isfinite(true):
            yield _Equation(subject, name, point, direction, true)


def _points(subject: Subject, points: Sequence[Point]) -> Iterator[Point]:
    """The points that are given, small ones first, then others."""
    yield from sorted(points, key=lambda point: sum(a.size for a in point.numerators.values()))[:2]
    choices = subject.sampler.small_choices(8)
    for attempt in range(4 * MOST_UNKNOWNS if choices else 0):
        at = subject.draw(choices[attempt % len(choices)], 300 + attempt)
        if at is not None:
            yield at.point


def _newton(
    subject: Subject, equations: Sequence[_Equation], unknowns: Sequence[float]
) -> list[Any] | None:
    """The solution next to the literals as written; None where none is near."""
    reach = [mpmath.mpf(r.numerator) / r.denominator for _, r in map(subject.reach, unknowns)]
    start = [_exactly(value) for value in unknowns]
    values = list(start)
    step = mpmath.mpf(10) ** -(DIGITS // 2)
    for _ in range(ROUNDS):
        gaps = _gaps(equations, unknowns, values)
        rows = [[gap] for gap in gaps]
        for place, scale in enumerate(reach):
            moved = [v + (scale * step if n == place else 0) for n, v in enumerate(values)]
            for row, gap, ahead in zip(rows, gaps, _gaps(equations, unknowns, moved), strict=True):
                row.append((ahead - gap) / step)
        change = _solution(rows)
        values = [
            value - scale * by for value, scale, by in zip(values, reach, change, strict=True)
        ]
        if any(abs(v - s) > 2 * r for v, s, r in zip(values, start, reach, strict=True)):
            return None
        if all(abs(by) < mpmath.mpf(10) ** -SURE for by in change):
            break
    scale = 1 + max(abs(equation.true) for equation in equations)
    off = max(map(abs, _gaps(equations, unknowns, values)))
    near = all(_is_near(subject, *pair) for pair in zip(unknowns, values, strict=True))
    return values if near and off < scale * mpmath.mpf(10) ** -SURE else None


def _is_near(subject: Subject, literal: float, value: Any) -> bool:
    """May a literal stand for a number?"""
    inward, outward = (mpmath.mpf(r.numerator) / r.denominator for r in subject.reach(literal))
    error = abs(value) - abs(_exactly(literal))
    unit = abs(error) * mpmath.mpf(10) ** -SURE
    return literals.stands_for(error + unit, (inward + unit, outward))


def _gaps(
    equations: Sequence[_Equation], unknowns: Sequence[float], values: Sequence[Any]
) -> list[Any]:
    read = dict(zip(unknowns, values, strict=True))
    return [equation.gap(read) for equation in equations]


def _solution(rows: list[list[Any]]) -> list[Any]:
    """A solution of ``rows``, each ``[right, *coefficients]``; 0 for what they leave free."""
    count = len(rows[0]) - 1
    found = [mpmath.mpf(0)] * count
    rows = [list(row) for row in rows]
    chosen: list[tuple[int, list[Any]]] = []
    columns = set(range(count))
    greatest = max((abs(one) for row in rows for one in row[1:]), default=0)
    while columns and rows:
        at, column = max(
            ((r, c) for r in range(len(rows)) for c in columns),
            key=lambda place: abs(rows[place[0]][place[1] + 1]),
        )
        pivot = rows.pop(at)
        if abs(pivot[column + 1]) <= greatest * mpmath.mpf(10) ** -20:
            break
        columns.remove(column)
        chosen.append((column, pivot))
        for row in rows:
            factor = row[column + 1] / pivot[column + 1]
            for place, one in enumerate(pivot):
                row[place] -= factor * one
    for column, row in reversed(chosen):
        rest = sum((row[c + 1] * found[c] for c in range(count) if c != column), mpmath.mpf(0))
        found[column] = (row[0] - rest) / row[column + 1]
    return found


def _exactly(value: float) -> Any:
    written = literals.exact(value)
    return mpmath.mpf(written.numerator) / written.denominator


# -- what a number of many digits is


def _read(subject: Subject, literal: float, value: Any) -> Constant | None:
    """What a literal is read as, by its value in many digits."""
    error = abs(value - _exactly(literal))
    if error < mpmath.mpf(10) ** -SURE:
        return Constant(literal, term(literals.exact(literal)), 0.0, repr(literal))
    made = _closed_form(subject, value)
    if made is None:
        return None
    found, text = made
    return Constant(literal, found, float(error), text)


def _closed_form(subject: Subject, value: Any) -> tuple[Term, str] | None:
    fraction = _fraction(value)
    if fraction is not None:
        return term(fraction), literals.decimal(fraction)
    parts = _parts(subject)
    return (
        _multiple(value, [*_constants(subject), *_logarithms(subject)])
        or _power_product(value, _as_written(subject))
        or _power_product(value, parts)
        or _sum(value, parts)
    )


def _multiple(value: Any, constants: Sequence[Part]) -> tuple[Term, str] | None:
    """A rational multiple of a constant, or of its square or reciprocal."""
    for power in (1, 2, -1):
        for known, name in constants:
            factor = _fraction(value / number(known) ** power)
            if factor is not None:
                named = name if power == 1 else f"({name})**{_grouped(Fraction(power))}"
                return term(factor) * known ** term(power), _times(factor, named)
    return None


def _fraction(value: Any) -> Fraction | None:
    mantissa, exponent = abs(mpmath.mpf(value)).man_exp  # which has no sign
    exact = Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (1 if value > 0 else -1)
    found = exact.limit_denominator(LONGEST_DENOMINATOR)
    return found if abs(found - exact) < abs(exact) / 10**SURE else None


Part = tuple[Term, str]


def _as_written(subject: Subject) -> list[Part]:
    """Forward's literals themselves, 2 and pi: their products read best."""
    own = [
        abs(literals.exact(value)) for value in sorted(subject.own_literals)
        if 0 < abs(value) < mpmath.inf and not (subject.recognised and literals.recognise(value))
    ]  # fmt: skip
    bases = dict.fromkeys(one for one in [Fraction(2), *own] if one != 1)
    return [*((term(one), literals.decimal(one)) for one in bases), (PI, "pi")]


def _parts(subject: Subject) -> list[Part]:
    """What the literals of forward are made of: numbers without common factors, and constants."""
    wholes, others = {2, 3, 5}, _constants(subject)
    for value in subject.own_literals:
        known = literals.recognise(value) if subject.recognised else None
        exact = None
        if 0 < abs(value) < mpmath.inf:
            exact = literals.exact(value) if known is None else known.term.number
        if exact is not None:
            wholes |= {abs(exact.numerator), exact.denominator}
    primes = sorted(set().union(*map(_primes, wholes)))[:MOST_BASES]
    found: list[Part] = [(term(prime), str(prime)) for prime in primes]
    found += [(PI, "pi"), (E, "e")]
    return [*found, *(pair for pair in others if not _is_of(pair[0]))]


def _constants(subject: Subject) -> list[Part]:
    """The irrational constants that literals of forward are read as."""
    if not subject.recognised:
        return []
    read = map(literals.recognise, sorted(subject.own_literals))
    found = {known.term: known.name for known in read if known is not None}
    return [pair for pair in found.items() if pair[0].number is None]


def _logarithms(subject: Subject) -> list[Part]:
    """The logarithms of forward's literals, which the slopes of powers have as factors."""
    exact = (
        literals.exact(value) for value in sorted(subject.own_literals) if 0 < value < mpmath.inf
    )
    return [
        (Term("log", (term(one),)), f"log({literals.decimal(one)})") for one in exact if one != 1
    ]


def _primes(whole: int) -> set[int]:
    """The primes of a whole number; of a long one, itself."""
    if whole < 2:
        return set()
    from symgrad.proof.oracle.flint import fmpz  # a verdict without such literals is without it

    return {int(p) for p, _ in fmpz(whole).factor()} if whole < LONGEST_FACTOR else {whole}


def _is_of(constant: Term) -> bool:
    """Is it a product of powers of numbers and pi?"""
    return all(part.kind in ("Mul", "Pow", "pi", "E", "Rational") for part in constant.parts())


def _power_product(value: Any, parts: Sequence[Part]) -> tuple[Term, str] | None:
    logs = [mpmath.log(abs(value)), *(mpmath.log(abs(number(one))) for one, _ in parts)]
    found = mpmath.pslq(logs, tol=mpmath.mpf(10) ** -SURE, maxcoeff=GREATEST_POWER, maxsteps=5000)
    if not found or not found[0]:
        return None
    made, texts = term(1 if value > 0 else -1), []
    for power, (one, text) in zip(found[1:], parts, strict=True):
        exponent = Fraction(-power, found[0])
        if exponent:
            made = made * one ** term(exponent)
            texts.append(text if exponent == 1 else f"{text}**{_grouped(exponent)}")
    return made, ("-" if value < 0 else "") + "*".join(texts)


def _sum(value: Any, parts: Sequence[Part]) -> tuple[Term, str] | None:
    """A rational number, and rational multiples of forward's constants or of one logarithm."""
    constants = [pair for pair in parts if pair[0].number is None and pair[0] != E]
    bases = [one for one, _ in parts if one.number is not None]
    for basis in (constants, [(Term("log", (one,)), "") for one in bases]):
        values = [value, mpmath.mpf(1), *(number(one) for one, _ in basis)]
        digits = min(GREATEST_FACTOR, (SURE - 5) // len(values))  # more of them fit by chance
        found = mpmath.pslq(
            values, tol=mpmath.mpf(10) ** -SURE, maxcoeff=10**digits, maxsteps=10000
        )
        if not found or not found[0]:
            continue
        offset, *factors = (Fraction(-factor, found[0]) for factor in found[1:])
        if basis is not constants:
            basis, factors = _logarithm(bases, factors)
        pairs = [(term(1), "1"), *basis]
        made, texts = term(0), []
        for by, (one, text) in zip([offset, *factors], pairs, strict=True):
            if by:
                made = made + term(by) * one
                texts.append(_times(by, text))
        return made, " + ".join(texts)
    return None


def _logarithm(
    bases: Sequence[Term], factors: Sequence[Fraction]
) -> tuple[list[Part], list[Fraction]]:
    """A sum of multiples of logarithms as a multiple of one, of a number that is not long."""
    below = lcm(*(by.denominator for by in factors))
    common = Fraction(gcd(*(int(by * below) for by in factors)), below)
    powers = [int(by / common) for by in factors] if common else []
    if max(map(abs, powers), default=0) > GREATEST_POWER:
        logs = [
            (Term("log", (one,)), f"log({literals.decimal(one.number or Fraction(1))})")
            for one in bases
        ]
        return logs, list(factors)
    inside = prod(
        ((one.number or 1) ** power for one, power in zip(bases, powers, strict=False)),
        start=Fraction(1),
    )
    return [(Term("log", (term(inside),)), f"log({literals.decimal(inside)})")], [common]


def _times(by: Fraction, text: str) -> str:
    if text == "1" or by == 1:
        return text if by == 1 else _grouped(by)
    return f"{_grouped(by)}*{text}"


def _grouped(value: Fraction) -> str:
    text = literals.decimal(value)
    return f"({text})" if "/" in text or text.startswith("-") else text
