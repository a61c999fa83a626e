"""Thresholds found in sorted rows: when what is above them is known by ranks, and when not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import symgrad as sg
from symgrad.frontend.trace import trace_request
from symgrad.proof.judge.equality import facts_of, with_ranks
from symgrad.proof.judge.supports import with_supports
from symgrad.proof.verify import subject_of
from symgrad.shapes import requested
from tests.suite.corpus import projections

Forward = Callable[[Any], Any]


def places(x: Any, start: int = 1) -> Any:
    return sg.arange(start, x.shape[-1] + start, dtype=x.dtype)


def projected(
    x: Any, *, asked: float = 1.0, read: float = 1.0, start: int = 1, downward: bool = True,
    back: int = 1, divisor: int = 0, weight: float = 1.0,
) -> Any:  # fmt: skip
    """The projection onto the simplex, where nothing is said otherwise."""
    ordered = sg.sort(x, -1, downward)[0]
    total = ordered.cumsum(-1)
    count = (places(x, start) * ordered > weight * total - asked).sum(-1, keepdim=True)
    return x - (total.gather(-1, count - back) - read) / (count + divisor)


def rooted(
    x: Any, *, sign: float = -1.0, level: float = 1.0, least: float = 0.0, power: int = 2,
    read: float = 1.0,
) -> Any:  # fmt: skip
    """1.5-entmax without its square, where nothing is said otherwise."""
    ordered = sg.sort(x, -1, True)[0]
    count = places(x)
    mean = ordered.cumsum(-1) / count
    spread = count * ((ordered**power).cumsum(-1) / count - mean**power)
    tau = mean + sign * sg.sqrt(((level - spread) / count).clamp(min=least))
    kept = (tau <= ordered).sum(-1, keepdim=True)
    return x - read * tau.gather(-1, kept - 1)


def unsorted(x: Any) -> Any:
    total = x.cumsum(-1)
    count = (places(x) * x > total - 1).sum(-1, keepdim=True)
    return x - (total.gather(-1, count - 1) - 1) / count


def weighted(x: Any) -> Any:
    """The elements are compared with thresholds of their own places."""
    ordered = sg.sort(x, -1, True)[0]
    total = ordered.cumsum(-1)
    count = (places(x) * ordered > total - 1).sum(-1, keepdim=True)
    return x + 0.1 * places(x) - (total.gather(-1, count - 1) - 1) / count


def turned(x: Any) -> Any:
    """What is compared falls where the element grows."""
    ordered = sg.sort(x, -1, True)[0]
    total = ordered.cumsum(-1)
    count = (places(x) * ordered > total - 1).sum(-1, keepdim=True)
    return (total.gather(-1, count - 1) - 1) / count - 2 * x


def half(x: Any) -> Any:
    """Every other row is sorted by itself, the sums are of all."""
    ordered = sg.sort(x, -1, True)[0]
    total = ordered.flip(0).cumsum(-1)
    count = (places(x) * ordered > total - 1).sum(-1, keepdim=True)
    return x - (total.gather(-1, count - 1) - 1) / count


RIGHT: dict[str, Forward] = {
    "simplex": projected,
    "radius": lambda x: projected(x, asked=2.5, read=2.5),
    "shifted": lambda x: projected(x - x.amax(-1, keepdim=True)),
    "scaled": lambda x: projected(x / 0.5),
    "rooted": rooted,
    "another level": lambda x: rooted(x, level=0.25),
}
OTHER: dict[str, Forward] = {
    "another radius is asked for": lambda x: projected(x, asked=2.0),
    "another radius is read": lambda x: projected(x, read=2.0),
    "places from 0": lambda x: projected(x, start=0),
    "places from 2": lambda x: projected(x, start=2),
    "upwards": lambda x: projected(x, downward=False),
    "the second but last place": lambda x: projected(x, back=2),
    "one more is counted": lambda x: projected(x, divisor=1),
    "half of the sum": lambda x: projected(x, weight=0.5),
    "no radius": lambda x: projected(x, asked=0.0, read=0.0),
    "unsorted": unsorted,
    "weighted": weighted,
    "turned": turned,
    "rows of others": half,
    "the greater root": lambda x: rooted(x, sign=1.0),
    "half of the root": lambda x: rooted(x, sign=-0.5),
    "a root that is never 0": lambda x: rooted(x, least=0.1),
    "cubes": lambda x: rooted(x, power=3),
    "nothing under the root": lambda x: rooted(x, level=0.0),
    "half of the threshold": lambda x: rooted(x, read=0.5),
}


def function(gap: Forward) -> type[sg.Function]:
    class Projection(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = gap(x).clamp(min=0)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            kept = (y > 0).to(g.dtype)
            return kept * (g - (kept * g).sum(-1, keepdim=True) / kept.sum(-1, keepdim=True))

    return Projection


def decided(gap: Forward) -> int:
    """How many conditions on the row are conditions on ranks."""
    graphs = trace_request(requested(function(gap), ("n m",)))
    subject = subject_of(graphs.cases[0], graphs.assumptions)
    facts = facts_of(subject.assumptions, subject.sampler.uses, subject.conditions)
    return len(with_supports(subject, with_ranks(facts, subject.everything.nodes)).decided)


@pytest.mark.parametrize("name", RIGHT)
def test_the_support_is_known_by_ranks(name: str) -> None:
    assert decided(RIGHT[name]) >= 2


@pytest.mark.parametrize("name", OTHER)
def test_no_other_threshold_says_anything_of_ranks(name: str) -> None:
    assert decided(OTHER[name]) == 0


@pytest.mark.parametrize("name", ["another radius is read", "one more is counted"])
def test_no_other_threshold_is_proved(name: str) -> None:
    report = sg.verify(function(OTHER[name]), "n m", suggest=False)
    assert report.verdict == "REFUTED"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Sparsemax", "Entmax", "EntmaxSquare", "EntmaxCount", "EntmaxTwice"]
)
def test_a_row_without_others(name: str) -> None:
    """What is known of the last place holds without an index of rows."""
    report = sg.verify(getattr(projections, name), "n", suggest=False)
    assert report.verdict == ("PROVED" if name in ("Sparsemax", "Entmax") else "REFUTED")
