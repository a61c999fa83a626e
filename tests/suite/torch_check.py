"""Is what the corpus says true?  Each backward against difference quotients, by torch.

In: a ``Case`` bound to torch.  Out: a ``Finding`` a point that was tried.  Cotangents and
directions are generic; the gradient is compared along random directions.  All in float64.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tests.suite.marks import Case
from tests.suite.sampling import (
    SCALES,
    Unsatisfiable,
    sample_arguments,
    size_choices,
    size_names,
)
from tests.suite.torch_apply import caller

STEP = 1e-6
FEWEST = 16  # points to try
SAME = 2e-6  # relative: below it two numbers are taken for equal


@dataclass(frozen=True)
class Finding:
    """One point: how far backward is from the truth there, or how else it failed.

    ``kind``: empty where all is well, else one of ``marks.KINDS``.  ``error``: the difference,
    relative to the size of the true value.
    """

    kind: str
    error: float
    sizes: dict[str, Any]
    detail: str = ""


def findings(case: Case, seed: int = 0) -> Iterator[Finding]:
    """Try a Function at every choice of sizes; skip the points where forward is not finite."""
    names = size_names(case)
    choices = size_choices(names)
    rounds = max(2, -(-FEWEST // len(choices)))
    for position, sizes in enumerate(choices * rounds):
        generator = np.random.default_rng((seed, position))
        scale = SCALES[(position + position // len(choices)) % len(SCALES)]
        try:
            arguments = sample_arguments(case, sizes, generator, scale)
        except Unsatisfiable:
            continue
        finding = examine(case, arguments, sizes, generator)
        if finding is not None:
            yield finding
    if case.shown_by:
        yield from _where_it_shows(case, seed)


def _where_it_shows(case: Case, seed: int) -> Iterator[Finding]:
    """The points that a case's ``shown_by`` names."""
    hints = {name: text for name, text in case.shown_by.items() if isinstance(text, str)}
    sizes = {name: size for name, size in case.shown_by.items() if not isinstance(size, str)}
    told = replace(case, assume={**case.assume, **hints})
    for position in range(4):
        generator = np.random.default_rng((seed, FEWEST, position))
        chosen = {**size_choices(size_names(case))[0], **sizes}
        arguments = sample_arguments(told, chosen, generator, 1.0)
        finding = examine(case, arguments, chosen, generator)
        if finding is not None:
            yield finding


def examine(
    case: Case, arguments: dict[str, Any], sizes: dict[str, Any], generator: np.random.Generator
) -> Finding | None:
    """Compare at one point; None where forward or its difference quotient is not finite."""
    with _DoublePrecision():
        point = Point(case, arguments, generator)
        if not point.finite:
            return None
        try:
            kind, error = point.compare()
        except RuntimeError as problem:
            kind = "shape" if "invalid gradient at index" in str(problem) else "error"
            if "modified by an inplace operation" in str(problem):
                kind = "reentrant"
            return Finding(kind, float("inf"), sizes, str(problem))
        except Exception as problem:
            return Finding("error", float("inf"), sizes, repr(problem))
    return None if np.isnan(error) else Finding(kind, error, sizes)


class _DoublePrecision:
    """float64 as torch's default dtype, and its warnings about old style silenced."""

    def __enter__(self) -> None:
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        self.silenced = warnings.catch_warnings()
        self.silenced.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *problem: object) -> None:
        self.silenced.__exit__(*problem)  # type: ignore[arg-type]
        torch.set_default_dtype(self.before)


class Point:
    """Arguments, cotangents and the gradients that backward gives there."""

    def __init__(
        self, case: Case, arguments: dict[str, Any], generator: np.random.Generator
    ) -> None:
        self.case, self.arguments, self.generator = case, arguments, generator
        self.call = caller(case)
        self.inputs = [
            name
            for name, value in arguments.items()
            if torch.is_tensor(value) and value.dtype == torch.float64
        ]
        outputs = [value for value in self.outputs(arguments) if value is not None]
        self.finite = all(bool(torch.isfinite(value).all()) for value in outputs)
        self.weights = [self.normal(value.shape) for value in outputs]

    def normal(self, shape: Any) -> Any:
        """A generic tensor; of uneven mean, so that signs do not cancel."""
        return torch.tensor(self.generator.standard_normal(tuple(shape)) + 0.3)

    def outputs(self, arguments: dict[str, Any]) -> tuple[Any, ...]:
        """What forward gives: the surrogate's forward where one is declared."""
        fresh = {
            name: value.clone() if torch.is_tensor(value) else value
            for name, value in arguments.items()
        }
        with torch.no_grad():
            if self.case.surrogate is None:
                return self.call(fresh)
            values = self.case.surrogate(*fresh.values())
        return values if isinstance(values, tuple) else (values,)

    def value(self, arguments: dict[str, Any]) -> float:
        """The cotangents times the outputs."""
        pairs = zip(self.weights, self.outputs(arguments), strict=True)
        return sum(float((weight * out).sum()) for weight, out in pairs if _is_float(out))

    def true_derivative(self, name: str, direction: Any) -> float:
        """Along ``direction`` in the input ``name``, by central differences."""
        moved = [
            self.value({**self.arguments, name: self.arguments[name] + sign * STEP * direction})
            for sign in (1, -1)
        ]
        self.magnitude = 1e-3 * abs(moved[0])  # where the quotient's rounding errors come from
        return (moved[0] - moved[1]) / (2 * STEP)

    def attached(self, names: list[str]) -> tuple[list[Any], list[Any]]:
        """The inputs ``names`` as leaves, and the outputs recorded from these."""
        leaves = {name: self.arguments[name].clone().requires_grad_() for name in names}
        self.given = {name: leaf * 1 for name, leaf in leaves.items()}
        outputs = list(self.call({**self.arguments, **self.given}))
        self.before = {name: value.detach().clone() for name, value in self.given.items()}
        return list(leaves.values()), outputs

    def gradients(self, outputs: list[Any], leaves: list[Any], scale: float = 1.0) -> list[Any]:
        """What backward gives for the cotangents times ``scale``; zeros for None."""
        used = [
            (out, scale * weight)
            for out, weight in zip(outputs, self.weights, strict=True)
            if _is_float(out) and out.requires_grad
        ]
        if not used:
            return [torch.zeros_like(leaf) for leaf in leaves]
        before = [weight.clone() for _, weight in used]
        found = torch.autograd.grad(
            [out for out, _ in used],
            leaves,
            [weight for _, weight in used],
            retain_graph=True,
            allow_unused=True,
        )
        changed = any(
            not torch.equal(old, weight) for old, (_, weight) in zip(before, used, strict=True)
        )
        self.mutated = changed or any(
            not torch.equal(self.before[name], value.detach()) for name, value in self.given.items()
        )
        return [
            torch.zeros_like(leaf) if grad is None else grad
            for leaf, grad in zip(leaves, found, strict=True)
        ]

    def compare(self) -> tuple[str, float]:
        """The kind of the first failure and how large the difference is."""
        leaves, outputs = self.attached(self.inputs)
        hand = self.gradients(outputs, leaves)
        if self.mutated:
            return "mutates", float("inf")
        error = max(
            (self._distance(*pair) for pair in zip(self.inputs, hand, strict=True)), default=0.0
        )
        if error > SAME or np.isnan(error):
            return "value", error
        again = self.gradients(outputs, leaves)
        error = max((_gap(*pair) for pair in zip(hand, again, strict=True)), default=0.0)
        if error > SAME:
            return "reentrant", error
        scaled = self.gradients(outputs, leaves, scale=-2.5)
        error = max(
            (_gap(-2.5 * one, two) for one, two in zip(hand, scaled, strict=True)), default=0.0
        )
        if error > SAME:
            return "nonlinear", error
        error = max((self._alone(*pair) for pair in zip(self.inputs, hand, strict=True)), default=0)
        if error > SAME:
            return "guards", error
        if self.case.order == 2:
            return self._compare_second()
        return "", 0.0

    def _alone(self, name: str, hand: Any) -> float:
        """How the gradient of one input changes where no other is asked for."""
        leaves, outputs = self.attached([name])
        try:
            (alone,) = self.gradients(outputs, leaves)
        except RuntimeError:
            raise
        except Exception:
            return float("inf")
        return _gap(hand, alone)

    def _distance(self, name: str, hand: Any) -> float:
        if self.case.assume.get(name) == "constant":
            return 0.0
        worst = 0.0
        for _ in range(3):
            direction = self.normal(hand.shape)
            true = self.true_derivative(name, direction)
            error = abs(float((hand * direction).sum()) - true)
            if np.isfinite(true):  # else forward is not finite nearby, and the point says nothing
                error = float("inf") if np.isnan(error) else error
                worst = max(worst, error / (1 + abs(true) + self.magnitude))
        return worst

    def _compare_second(self) -> tuple[str, float]:
        """The derivative of backward, as torch takes it, against its difference quotient."""
        leaves = [self.arguments[name].clone().requires_grad_() for name in self.inputs]
        cotangents = [weight.clone().requires_grad_() for weight in self.weights]
        directions = [self.normal(leaf.shape) for leaf in [*leaves, *cotangents]]
        weights = [self.normal(leaf.shape) for leaf in leaves]

        def first(values: list[Any]) -> Any:
            mine, given = values[: len(leaves)], values[len(leaves) :]
            fresh = {**self.arguments, **dict(zip(self.inputs, mine, strict=True))}
            grads = torch.autograd.grad(
                self.call(fresh), mine, given, create_graph=True, allow_unused=True
            )
            pairs = zip(weights, grads, strict=True)
            return sum((weight * grad).sum() for weight, grad in pairs if grad is not None)

        total = first([*leaves, *cotangents])
        found = torch.autograd.grad(total, [*leaves, *cotangents], allow_unused=True)
        hand = sum(
            float((grad * way).sum())
            for grad, way in zip(found, directions, strict=True)
            if grad is not None
        )
        values = []
        for sign in (1, -1):
            moved = [
                (leaf.detach() + sign * STEP * way).requires_grad_()
                for leaf, way in zip([*leaves, *cotangents], directions, strict=True)
            ]
            values.append(float(first(moved)))
        true = (values[0] - values[1]) / (2 * STEP)
        error = abs(hand - true) / (1 + abs(true))
        return ("second order", error) if error > SAME else ("", error)


def _is_float(value: Any) -> bool:
    return torch.is_tensor(value) and value.dtype == torch.float64


def _gap(one: Any, two: Any) -> float:
    if one.numel() == 0:
        return 0.0
    return float((one - two).abs().max() / (1 + one.abs().max()))


def gradcheck(case: Case, seed: int = 0, shapes: int = 3) -> list[dict[str, Any]]:
    """The sizes, of the first few choices, at which torch's own gradcheck fails."""
    failing = []
    call = caller(case)
    for position, sizes in enumerate(size_choices(size_names(case))[:shapes]):
        try:
            arguments = sample_arguments(case, sizes, np.random.default_rng((seed, position)), 1.0)
        except Unsatisfiable:
            continue
        names = [
            name
            for name, value in arguments.items()
            if _is_float(value) and case.assume.get(name) != "constant"
        ]

        def floats(
            *values: Any, arguments: dict[str, Any] = arguments, names: list[str] = names
        ) -> Any:
            moved = {name: value * 1 for name, value in zip(names, values, strict=True)}
            return tuple(out for out in call({**arguments, **moved}) if _is_float(out))

        leaves = [arguments[name].requires_grad_() for name in names]
        with _DoublePrecision():
            if not all(bool(torch.isfinite(out).all()) for out in floats(*leaves)):
                continue
            if not torch.autograd.gradcheck(floats, leaves, raise_exception=False):
                failing.append(sizes)
    return failing
