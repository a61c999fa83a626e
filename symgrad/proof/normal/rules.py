"""The table of rules: who makes each kind of atom, and which special rules conditions have.

In: the modules built on ``algebra``.  Out: ``RULES``, which every ``Proof`` is given.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import at_least, equal_integers, floordiv, leaf, positive
from symgrad.proof.normal.context import Rules
from symgrad.proof.normal.functions import angle, apply, exponential
from symgrad.proof.normal.maxima import against_maximum, argmax, maximum
from symgrad.proof.normal.permutations import compared, decided, extreme, inverse_at
from symgrad.proof.normal.products import product
from symgrad.proof.normal.sums import sum_over

RULES = Rules(
    make={
        kinds.LEAF: leaf,
        kinds.EXP: exponential,
        kinds.FUNCTION: apply,
        kinds.ANGLE: angle,
        kinds.POWER: lambda context, base: base,
        kinds.POSITIVE: positive,
        kinds.ATLEAST: at_least,
        kinds.EQUAL: equal_integers,
        kinds.FLOORDIV: floordiv,
        kinds.MAXIMUM: maximum,
        kinds.ARGMAX: argmax,
        kinds.PRODUCT: product,
        kinds.SUM: sum_over,
    },
    comparisons=(decided, against_maximum),
    signs=(decided,),
    piece_comparisons=(compared,),
    equalities=(inverse_at, extreme),
)
