"""What the user declared of the inputs: the assumptions under which a proof is made.

In: names of tensors and sizes with what is known of them.  Out: one frozen record that every rule
reads; nothing is assumed that is not in it, except that sizes are at least 1.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr
from symgrad.ir.function import SizeCondition
from symgrad.ops.integers import Labels
from symgrad.proof.scalars.literals import Constant


@dataclass(frozen=True)
class Interval:
    """Where the elements of a real tensor lie; None is unbounded."""

    low: Fraction | None = None
    high: Fraction | None = None
    low_open: bool = True
    high_open: bool = True


HOT = "hot index of "
"""What the integer leaf is called that says where a one-hot tensor is 1."""

POSITIVE_INTERVAL = Interval(low=Fraction(0))
NONNEGATIVE_INTERVAL = Interval(low=Fraction(0), low_open=False)


@dataclass(frozen=True)
class Decision:
    """``point > 0`` exactly where ``holds``, a condition on integers; both over the axes ``@0``...

    ``define``: what the elements of computed index tensors in both are; see ``Goal``.
    """

    point: Expr
    holds: Expr
    define: Callable[[str, tuple[Dim, ...]], Expr | None]


@dataclass(frozen=True)
class Spectrum:
    """``matrix = left diag(values) rightᵀ``, all by name, with orthonormal columns left and right.

    ``rows``, ``columns``: the sizes of the matrix; ``count``: how many values there are.  Of
    eigenvalues, ``left`` is ``right``, and the matrix stands for its symmetric part.
    """

    matrix: str
    left: str
    values: str
    right: str
    rows: Dim
    columns: Dim
    count: Dim

    def length(self, vectors: str) -> Dim:
        """The number of elements of a vector."""
        return self.rows if vectors == self.left else self.columns


@dataclass(frozen=True)
class Orthogonal:
    """``matrix = factor upper``, all by name, with orthonormal columns; ``inverse``: that of upper.

    ``rows``, ``count``: the sizes of the matrix.
    """

    matrix: str
    factor: str
    upper: str
    inverse: str
    rows: Dim
    count: Dim

    def length(self, vectors: str) -> Dim:
        """The number of elements of a column."""
        return self.rows


@dataclass(frozen=True)
class Facts:
    """Declared assumptions, by name.

    ``intervals``: bounds of a real tensor's elements.  ``ranges``: the number of values of an
    integer tensor, whose elements lie in ``0 <= element < range``.  ``labels``: those of which
    forward replaces some.  ``least_sizes``: the least
    value of a size where it is more than 1 (``n != 1`` is 2).  ``symmetric``: the last two axes
    of the tensor may be exchanged.  ``one_hot``: along its last axis, of this size, the tensor
    is 1 once, else 0.  ``binary``: the elements are 0 or 1.  ``unique``: no value occurs twice
    in the rank-1 integer tensor.  ``inverses``: this tensor is the inverse of that one, as
    matrices over the last two axes.  ``lower``, ``upper``: over its last two axes the tensor is
    triangular.  ``factors``: this tensor is the lower Cholesky factor of the symmetric part of
    that one.  ``lengths``: how many rows an inverse, or a factor, has.  ``spectra``: what the
    columns of this tensor are vectors of.  ``orthogonal``: what this tensor is the orthogonal
    factor of.  ``permutations``: along this axis, whose size is its declared range, the integer
    tensor holds every index once.
    ``orders``: this permutation tells the ranks of that real tensor along the axis; downwards where
    True.  ``plain``: inputs that are plain numbers: what holds almost everywhere has to hold so for
    each of their values.
    ``computed``: tensors whose elements are computed from others, and may be 0 for all of these.
    ``stated``: expressions over the axes ``@0``, ``@1``... that are ``>`` or ``>=`` 0, whatever the
    values of these.  ``decided``: conditions on reals that are conditions on integers.
    ``recognise``: read rounded known constants as what they round; ``products``: what some
    literals are read as, whether or not constants are recognised; ``written``: literals that are
    no rounded constants.  ``conditions``: on sizes, that the case holds for.
    """

    intervals: Mapping[str, Interval] = field(default_factory=dict)
    ranges: Mapping[str, Dim] = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict)
    least_sizes: Mapping[str, int] = field(default_factory=dict)
    symmetric: frozenset[str] = frozenset()
    one_hot: Mapping[str, Dim] = field(default_factory=dict)
    binary: frozenset[str] = frozenset()
    unique: frozenset[str] = frozenset()
    inverses: Mapping[str, str] = field(default_factory=dict)
    lower: frozenset[str] = frozenset()
    upper: frozenset[str] = frozenset()
    factors: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, Dim] = field(default_factory=dict)
    spectra: Mapping[str, Spectrum] = field(default_factory=dict)
    orthogonal: Mapping[str, Orthogonal] = field(default_factory=dict)
    permutations: Mapping[str, int] = field(default_factory=dict)
    orders: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()
    computed: Container[str] = frozenset()
    stated: tuple[tuple[Expr, str], ...] = ()
    decided: tuple[Decision, ...] = ()
    recognise: bool = False
    products: Mapping[float, Constant] = field(default_factory=dict)
    written: frozenset[float] = frozenset()
    conditions: tuple[SizeCondition, ...] = ()

    def may_vanish(self, tensor: str) -> bool:
        """Is it a plain number that may be 0, throughout a call, or computed and perhaps always 0?

        [rule: plain-number]
        """
        if tensor not in self.plain and tensor not in self.computed:
            return False
        known = self.intervals.get(tensor, Interval())
        above = known.low is not None and (known.low > 0 or (known.low == 0 and known.low_open))
        below = known.high is not None and (known.high < 0 or (known.high == 0 and known.high_open))
        return not (above or below)

    def range_of(self, tensor: str) -> Dim | None:
        """The number of values of an integer tensor, or of the hot index of a one-hot one."""
        if tensor.startswith(HOT):
            return self.one_hot.get(tensor[len(HOT) :])
        return self.ranges.get(tensor)
