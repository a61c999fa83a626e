"""What was measured, as plain records.

In: numbers.  Out: records, and dictionaries for JSON.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

ULP = "ulp"
OF_SUM = "u of the sum of magnitudes"
MEASURES = {
    ULP: "error in units of the last place of the true value",
    OF_SUM: "error in units of roundoff (2^-24 in float32, 2^-53 in float64) of the sum of"
    " magnitudes: a sum counts those of its terms, a product those of its factors, a function its"
    " value and what its operands have lost",
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """One point: an error, the inputs, what the kernel gives and what is true.

    ``at``: inputs by name, or the sizes and the scale of inputs that are drawn.
    """

    error: float
    at: dict[str, float]
    kernel: float
    true: float


@dataclass(frozen=True)
class Measured:
    """One output or gradient, in one precision.

    ``worst``: of the points where the true value is finite and so is the kernel's; ``broken``: at
    how many the kernel's is not, and the one of these that is nearest to 0.  ``curve``: the worst
    error for each sign and exponent (to base 2) of the first input, or of the largest size.
    """

    name: str
    kernel: str
    dtype: str
    measure: str
    points: int
    worst: Place | None
    broken: int = 0
    first_broken: Place | None = None
    curve: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True)
class Special:
    """A special value of one input; ``limit``: of the formula, NaN where it has none."""

    name: str
    dtype: str
    input: str
    value: str
    kernel: float
    limit: float

    @property
    def agrees(self) -> bool:
        """Is it the limit, but for rounding?"""
        if math.isnan(self.limit) or not math.isfinite(self.kernel + self.limit):
            return math.isnan(self.limit) or self.kernel == self.limit
        return math.isclose(self.kernel, self.limit, rel_tol=1e-3, abs_tol=1e-37)


@dataclass(frozen=True)
class Accuracy:
    """One op.  ``notes``: what was measured, in words; ``failed``: why nothing was."""

    name: str
    results: tuple[Measured, ...] = ()
    special: tuple[Special, ...] = ()
    notes: tuple[str, ...] = ()
    failed: str = ""
    sizes: list[dict[str, int]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self)
        for one, record in zip(self.special, found["special"], strict=True):
            record["agrees"] = one.agrees
        return found

    @property
    def worst(self) -> float:
        """The greatest error of all; infinite where a kernel is not finite."""
        if any(one.broken for one in self.results):
            return math.inf
        return max((one.worst.error for one in self.results if one.worst), default=0.0)
