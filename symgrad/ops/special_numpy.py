"""The special functions that NumPy lacks, on arrays.

In: float arrays.  Out: arrays of their dtype.

Sources: AS241 (M. J. Wichura, Applied Statistics 37, 1988, 477-484) for ``erfinv``; recurrence to
x >= 12 and the asymptotic series (Abramowitz and Stegun 6.3.18, 6.4.12, 6.4.13), reflection for
x < 0 (6.3.7 and its derivatives), for the polygammas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# AS241, highest power first: numerators and denominators near 0, in the tail, far out.
NEAR = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip

# The asymptotic series in 1/x^2, highest power first, without the leading terms.
DIGAMMA_SERIES = (-1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)
TRIGAMMA_SERIES = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
TETRAGAMMA_SERIES = (-35 / 2, 691 / 210, -5 / 6, 3 / 10, -1 / 6, 1 / 6, -1 / 2)
STEPS = 12
"""Recurrence steps that bring every positive x to where the series holds to double precision."""


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of the standard library, element by element."""
    over = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(over(x)).astype(x.dtype)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except ValueError:  # a pole
        return math.inf
    except OverflowError:
        return math.inf


erf = _each(math.erf)
erfc = _each(math.erfc)
lgamma = _each(_lgamma)


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    total = np.zeros_like(x)
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


def _quotient(pair: tuple[Sequence[float], Sequence[float]], x: Array) -> Array:
    return _polynomial(pair[0], x) / _polynomial(pair[1], x)


def erfinv(x: Array) -> Array:
    """The inverse of erf: infinite at -1 and 1, NaN beyond."""
    y = np.asarray(x, np.float64)
    half = y / 2
    near = half * _quotient(NEAR, 0.180625 - half * half)
    depth = np.sqrt(-np.log((1 - np.abs(y)) / 2))
    tail = np.where(depth <= 5, _quotient(TAIL, depth - 1.6), _quotient(FAR, depth - 5))
    tail = np.where(np.isinf(depth), np.inf, tail)
    normal = np.where(np.abs(half) <= 0.425, near, np.copysign(tail, y))
    return np.asarray(normal / math.sqrt(2)).astype(x.dtype)


def _recurred(start: Array, step: Callable[[Array], Array]) -> tuple[Array, Array]:
    """The sum of ``step`` at start, start + 1 ... below ``STEPS``, and where that ends."""
    total, z = np.zeros_like(start), start
    for _ in range(STEPS):
        low = z < STEPS
        total = np.where(low, total + step(z), total)
        z = np.where(low, z + 1, z)
    return total, z


def digamma(x: Array) -> Array:
    """The derivative of lgamma; as in torch, minus infinity at 0 and NaN at the other poles."""
    y = np.asarray(x, np.float64)
    below = y < 0
    start = np.where(below, 1 - y, y)
    total, z = _recurred(start, lambda z: -1 / z)
    w = 1 / (z * z)
    total = total + np.log(z) - 0.5 / z + w * _polynomial(DIGAMMA_SERIES, w)
    turn = y - np.floor(y)
    total = np.where(below, total - math.pi / np.tan(math.pi * turn), total)
    total = np.where(below & (turn == 0), np.nan, total)
    return np.where(y == 0, np.copysign(np.inf, -y), total).astype(x.dtype)


def trigamma(x: Array) -> Array:
    """The derivative of digamma: infinite at the poles."""
    y = np.asarray(x, np.float64)
    below = y < 0.5
    start = np.where(below, 1 - y, y)
    total, z = _recurred(start, lambda z: 1 / (z * z))
    w = 1 / (z * z)
    total = total + (1 + 0.5 / z + w * _polynomial(TRIGAMMA_SERIES, w)) / z
    sine = np.sin(math.pi * (y - np.floor(y)))
    return np.where(below, math.pi**2 / (sine * sine) - total, total).astype(x.dtype)


def tetragamma(x: Array) -> Array:
    """The derivative of trigamma: NaN at the poles."""
    y = np.asarray(x, np.float64)
    below = y < 0.5
    start = np.where(below, 1 - y, y)
    total, z = _recurred(start, lambda z: -2 / (z * z * z))
    w = 1 / (z * z)
    total = total + w * (w * _polynomial(TETRAGAMMA_SERIES, w) - 1 - 1 / z)
    angle = math.pi * (y - np.floor(y))
    reflected = total - 2 * math.pi**3 * np.cos(angle) / np.sin(angle) ** 3
    reflected = np.where(np.sin(angle) == 0, np.nan, reflected)
    return np.where(below, reflected, total).astype(x.dtype)
