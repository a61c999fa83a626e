"""The special functions that NumPy and ``math`` lack, as text for programs that need only these.

In: nothing.  Out: the text of functions of one number.  Sources: as in ``special_numpy``; but
``erfinv`` is Newton's method for ``math.erf`` and ``math.erfc``.
"""

from __future__ import annotations

ERFINV = '''\
def _erfinv(y):
    """The inverse of math.erf, by Newton's method."""
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    x = 0.0
    for _ in range(100):
        off = math.erfc(abs(x)) - (1 - abs(y)) if abs(y) > 0.5 else abs(y) - math.erf(abs(x))
        x = abs(x) + off * math.sqrt(math.pi) / 2 * math.exp(min(x * x, 700))
    return math.copysign(x, y)
'''

DIGAMMA = '''\
def _digamma(x):
    """The derivative of math.lgamma: recurrence to x >= 12, then the asymptotic series."""
    if x <= 0:
        if x == math.floor(x):
            return math.copysign(math.inf, -x) if x == 0 else math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * (x - math.floor(x)))
    total = 0.0
    while x < 12:
        total, x = total - 1 / x, x + 1
    w, series = 1 / (x * x), 0.0
    for c in (-1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12):
        series = series * w + c
    return total + math.log(x) - 0.5 / x + w * series
'''

TRIGAMMA = '''\
def _trigamma(x):
    """The second derivative of math.lgamma: recurrence, then the asymptotic series."""
    if x < 0.5:
        sine = math.sin(math.pi * (x - math.floor(x)))
        return math.pi**2 / (sine * sine) - _trigamma(1 - x) if sine else math.inf
    total = 0.0
    while x < 12:
        total, x = total + 1 / (x * x), x + 1
    w, series = 1 / (x * x), 0.0
    for c in (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = series * w + c
    return total + (1 + 0.5 / x + w * series) / x
'''

TETRAGAMMA = '''\
def _tetragamma(x):
    """The third derivative of math.lgamma: recurrence, then the asymptotic series."""
    if x < 0.5:
        angle = math.pi * (x - math.floor(x))
        if not math.sin(angle):
            return math.nan
        return _tetragamma(1 - x) - 2 * math.pi**3 * math.cos(angle) / math.sin(angle) ** 3
    total = 0.0
    while x < 12:
        total, x = total - 2 / (x * x * x), x + 1
    w, series = 1 / (x * x), 0.0
    for c in (-35 / 2, 691 / 210, -5 / 6, 3 / 10, -1 / 6, 1 / 6, -1 / 2):
        series = series * w + c
    return total + w * (w * series - 1 - 1 / x)
'''
