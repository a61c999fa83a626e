"""Is the label of a program true?  Its backward under torch, against difference quotients.

In: a ``Program`` over torch and a point.  Out: how far the gradient that torch hands out is from
the derivative of forward there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tests.suite.adversarial.generated import Draft
from tests.suite.adversarial.points import Place, parameters, place
from tests.suite.adversarial.program import RIGHT, WRONG, At, Program, at
from tests.suite.corpus_loader import TorchAdaptor

STEP, LONGEST, WIDE = 1e-5, 1e-3, 4e-3
RAISED = float("inf")


def difference(program: Program, point: At, seed: int = 0, *, least: float = 1.0) -> float:
    """The largest difference of an element, relative to the true one; infinite if it raises.

    Relative to the true one and ``least`` together.
    """
    with _quiet():
        look = Look(program, point, place(program, point, seed))
        try:
            pairs = look.pairs()
        except Exception:
            return RAISED
        return max((_distance(hand, true, least) for hand, true in pairs), default=0.0)


def _distance(hand: Any, true: Any, least: float) -> float:
    if tuple(hand.shape) != tuple(true.shape):
        return RAISED
    known = torch.isfinite(true)
    gap = (hand - true).abs() / (least + true.abs())
    gap = torch.where(torch.isfinite(hand), gap, torch.full_like(gap, RAISED))[known]
    return float(gap.max()) if gap.numel() else 0.0


@contextmanager
def _quiet() -> Iterator[None]:
    """float64 as torch's default dtype, without warnings."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(before)


class Unused(torch.autograd.Function):
    """Makes a number of tensors, and gives None for the cotangent of each."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tensors[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return (None,) * len(ctx.needs_input_grad)


MANY = 40
"""So many other calls."""


class Look:
    """A program at a place, in the circumstances that the point names."""

    def __init__(self, program: Program, point: At, somewhere: Place) -> None:
        self.program, self.point, self.somewhere = program, point, somewhere
        self.generator = np.random.default_rng(len(program.name))
        self.weights: list[Any] = []

    def pairs(self) -> list[tuple[Any, Any]]:
        """What backward gives and what is true, for each input that requires a gradient."""
        if self.point.how == "between":
            self.others()
        outputs = self.outputs(self.tensors())
        self.weights = [
            torch.tensor(self.generator.standard_normal(tuple(one.shape)) + 0.3)
            if torch.is_tensor(one) and one.is_floating_point() else None
            for one in outputs
        ]  # fmt: skip
        for _ in range(MANY if self.point.how == "often" else 0):
            self.other()
        ways = {"pushed": self.pushed, "twice": self.twice, "again": self.again}
        how = ways.get(self.point.how, self.once)
        return (self.second if self.program.order == 2 and not self.point.how else how)()

    # -- tensors

    def tensors(self, arrays: Any = None) -> dict[str, Any]:
        """Fresh tensors with these values, without gradients; other values are of 64 bits."""
        single = self.point.how == "float32" and arrays is None
        found = {}
        for name, value in (self.somewhere.arrays if arrays is None else arrays).items():
            made = torch.tensor(value)
            found[name] = made.float() if single and made.is_floating_point() else made
        if self.point.how == "same":
            first = next(iter(found.values()))
            found = dict.fromkeys(found, first)
        return found

    def attached(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The leaves that require gradients, and what is passed to forward."""
        given = self.tensors()
        leaves: dict[str, Any] = {}
        for name, value in given.items():
            if name in self.point.frozen or not value.is_floating_point():
                continue
            if self.point.how == "same" and leaves:
                given[name] = next(iter(given.values()))
                continue
            leaf = torch.nn.Parameter(value) if self.point.how == "parameter" else value
            leaves[name] = leaf.requires_grad_()
            given[name] = self.passed(leaf)
        return leaves, given

    def passed(self, leaf: Any) -> Any:
        """The leaf as forward gets it."""
        if self.point.how == "computed":
            return leaf * 1
        if self.point.how == "strided":
            return torch.stack((leaf, leaf), -1).select(-1, 0)
        if self.point.how == "graded":
            leaf.grad = torch.ones_like(leaf)
        return leaf

    def outputs(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """What forward gives through ``apply``."""
        values = {**given, **self.somewhere.plain}
        ordered = [values[name] for name in parameters(self.program) if name in values]
        found = self.program.function.apply(*ordered)
        return found if isinstance(found, tuple) else (found,)

    # -- what backward gives

    def once(self) -> list[tuple[Any, Any]]:
        """One backward; with another forward before it where the point says so."""
        leaves, given = self.attached()
        outputs = self.outputs(given)
        if self.point.how == "between":
            self.others()
        for _ in range(MANY if self.point.how == "begun" else 0):
            self.outputs(self.tensors())
        if self.point.how in ("own", "shared"):
            self.own(outputs, leaves)
        hand = self.gradients(outputs, leaves, 1.0)
        if self.program.tiny:
            plain, fresh = self.attached()
            true = self.gradients(self.plain_outputs(fresh), plain, 1.0)
            return [(hand[name], true[name]) for name in leaves]
        return [(hand[name], self.quotients(name)) for name in leaves]

    def others(self) -> None:
        """The same Function with other values: both ways, and forward with another size."""
        other = self.other()
        longer = {name: np.concatenate([value, value]) for name, value in other.items()}
        self.outputs(self.tensors(longer))

    def other(self) -> dict[str, Any]:
        """The same Function with other values, both ways."""
        other = {name: value + 1.5 for name, value in self.somewhere.arrays.items()}
        leaves = self.tensors(other)
        outputs = self.outputs({name: leaf.requires_grad_() for name, leaf in leaves.items()})
        torch.autograd.grad(sum(one.sum() for one in outputs), list(leaves.values()))
        return other

    def own(self, outputs: tuple[Any, ...], leaves: dict[str, Any]) -> None:
        """The cotangents are tensors that the call knows: an input, or one for all outputs."""
        first = next(iter(leaves.values()))
        if self.point.how == "shared":
            first = torch.ones_like(outputs[0])
        self.weights = [None if weight is None else first for weight in self.weights]

    def again(self) -> list[tuple[Any, Any]]:
        """Six backwards of one forward."""
        leaves, given = self.attached()
        outputs = self.outputs(given)
        found = [self.gradients(outputs, leaves, 1.0) for _ in range(6)]
        return [(one[name], self.quotients(name)) for name in leaves for one in found]

    def twice(self) -> list[tuple[Any, Any]]:
        """Two backwards of one forward, with other cotangents."""
        leaves, given = self.attached()
        outputs = self.outputs(given)
        first = self.gradients(outputs, leaves, 1.0)
        second = self.gradients(outputs, leaves, 3.0)
        pairs = []
        for name in leaves:
            true = self.quotients(name)
            pairs += [(first[name], true), (second[name], 3 * true)]
        return pairs

    def gradients(
        self, outputs: tuple[Any, ...], leaves: dict[str, Any], scale: float, graph: bool = False
    ) -> dict[str, Any]:
        """The gradients for the cotangents times ``scale``."""
        used = [
            (one, weight if scale == 1.0 else (scale * weight).to(one.dtype))
            for number, (one, weight) in enumerate(zip(outputs, self.weights, strict=True))
            if weight is not None and number not in self.point.absent and one.requires_grad
        ]
        if not used:
            given = (one for one in outputs if one.requires_grad)
            nothing = Unused.apply(*given)
            used = [(nothing, torch.ones_like(nothing))]
        found = torch.autograd.grad(
            [one for one, _ in used], list(leaves.values()), [weight for _, weight in used],
            retain_graph=True, allow_unused=True, create_graph=graph,
        )  # fmt: skip
        return {
            name: torch.zeros_like(leaf) if grad is None else grad
            for (name, leaf), grad in zip(leaves.items(), found, strict=True)
        }

    # -- what is true

    def value(self, arrays: Any) -> float:
        """The cotangents times the outputs."""
        with torch.no_grad():
            outputs = self.outputs(self.tensors(arrays))
        return sum(
            float((weight * one).sum())
            for number, (one, weight) in enumerate(zip(outputs, self.weights, strict=True))
            if weight is not None and number not in self.point.absent
        )

    def quotients(self, name: str) -> Any:
        """Central difference quotients, element by element."""
        start = self.somewhere.arrays
        moved = [name]
        if self.point.how == "same":
            start = dict.fromkeys(start, next(iter(start.values())))
            moved = list(start)
        found = np.zeros_like(start[name])
        for index in np.ndindex(found.shape):
            size = max(1.0, abs(start[name][index]))
            step = WIDE * size if self.program.wide else min(STEP * size, LONGEST)
            ends = {}
            for times in (1, -1, 2, -2) if self.program.wide else (1, -1):
                arrays = dict(start)
                for one in moved:
                    arrays[one] = start[one].copy()
                    arrays[one][index] += times * step
                ends[times] = self.value(arrays)
            found[index] = (ends[1] - ends[-1]) / (2 * step)
            if self.program.wide:  # of fourth order
                found[index] = (4 * found[index] - (ends[2] - ends[-2]) / (4 * step)) / 3
        return torch.tensor(found)

    def second(self) -> list[tuple[Any, Any]]:
        """The derivative of the gradient, as torch finds it, against torch's own of forward."""
        leaves, given = self.attached()
        hand = self.gradients(self.outputs(given), leaves, 1.0, graph=True)
        plain, fresh = self.attached()
        true = self.gradients(self.plain_outputs(fresh), plain, 1.0, graph=True)
        return [(_again(hand[name], leaves), _again(true[name], plain)) for name in leaves]

    def plain_outputs(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """Forward as ordinary operations that torch records."""
        ctx = type("Context", (), {"__getattr__": lambda self, name: lambda *given: None})()
        found = self.program.function.forward(ctx, *given.values(), *self.somewhere.plain.values())
        return found if isinstance(found, tuple) else (found,)

    def pushed(self) -> list[tuple[Any, Any]]:
        """The hand-written jvp against a quotient along the tangent."""
        import torch.autograd.forward_ad as forward_mode

        tangents = {
            name: torch.tensor(self.generator.standard_normal(value.shape))
            for name, value in self.somewhere.arrays.items()
        }
        with forward_mode.dual_level():
            duals = {
                name: forward_mode.make_dual(value, tangents[name])
                for name, value in self.tensors().items()
            }
            hand = [forward_mode.unpack_dual(one).tangent for one in self.outputs(duals)]
        ends = []
        for sign in (1, -1):
            arrays = {
                name: value + sign * STEP * tangents[name].numpy()
                for name, value in self.somewhere.arrays.items()
            }
            ends.append(self.outputs(self.tensors(arrays)))
        return [
            (one, (ahead - behind) / (2 * STEP))
            for one, ahead, behind in zip(hand, *ends, strict=True)
        ]


def _again(gradient: Any, leaves: dict[str, Any]) -> Any:
    """The derivative of the sum of weighed elements of a gradient."""
    weights = torch.linspace(0.5, 1.5, max(gradient.numel(), 1)).reshape(gradient.shape)
    if not gradient.requires_grad:
        return torch.zeros(sum(leaf.numel() for leaf in leaves.values()))
    found = torch.autograd.grad(
        (gradient * weights).sum(), list(leaves.values()), allow_unused=True
    )
    return torch.cat([
        (torch.zeros_like(leaf) if one is None else one).reshape(-1)
        for leaf, one in zip(leaves.values(), found, strict=True)
    ])  # fmt: skip


# -- labels of programs that were drawn

WRONG_FROM, RIGHT_TO, ROUNDED_TO, HALF = 1e-4, 1e-6, 2e-5, 0.5
LEAST = 1e-4
"""Gradients that a counterexample may have, beside the noise of a difference quotient."""
HALF_OF_TINY = 0.5
"""How far a gradient is from one that is too small for a quotient: more than what may cancel."""


def labelled(draft: Draft, over: Any) -> Program | None:
    """The program over symgrad (``over``) with the label that torch gives it; None if unclear.

    Of one whose literals are off by so little that no torch sees it, the label that it was drawn
    with, if it is right within what torch sees.
    """
    program = draft.program(TorchAdaptor("symgrad"))
    most = ROUNDED_TO if draft.rounded else RIGHT_TO
    suspects = {str(point): point for point in draft.suspects}.values()
    there = replace(draft, text=draft.elsewhere or draft.text).program(TorchAdaptor("symgrad"))
    gaps = {
        point: difference(there if point.how == "gpu" else program, point) for point in suspects
    }
    usual = [difference(program, at(), seed) for seed in (0, 1)]
    if any(most < gap < WRONG_FROM for gap in (*gaps.values(), *usual)):
        return None
    if draft.off is not None and max((*gaps.values(), *usual)) <= most:
        label = RIGHT if draft.off <= HALF else WRONG
        return draft.program(over, label, () if label == RIGHT else (at(),))
    fails = tuple(point for point, gap in gaps.items() if gap >= WRONG_FROM)
    hides = max(usual) < WRONG_FROM
    if not hides:
        seeds = [seed for seed, gap in enumerate(usual) if gap >= WRONG_FROM]
        fails = (*(_written_out(program, seed) for seed in seeds), *fails)
    made = draft.program(over, WRONG if fails else RIGHT, fails)
    return replace(made, hides=hides)


def _written_out(program: Program, seed: int) -> At:
    """The generic point of a seed with all its values."""
    somewhere = place(program, at(), seed)
    arrays = {name: array.tolist() for name, array in somewhere.arrays.items()}
    return At({**somewhere.sizes, **arrays})


def confirmed(draft: Draft, report: Any) -> bool:
    """Whether backward is wrong at a counterexample of the report.

    By quotients, or by torch's own derivative of forward, which tells tiny gradients from 0.
    """
    program = draft.program(TorchAdaptor("symgrad"))
    names, most = parameters(program), ROUNDED_TO if draft.rounded else RIGHT_TO
    found = [one.counterexample for one in report.inputs.values() if one.counterexample is not None]
    points = [
        at(**one.sizes, **{name: value for name, value in one.inputs.items() if name in names})
        for one in found
    ]
    first = replace(program, order=1)  # of a double backward, the gradient may be wrong itself
    tiny = replace(program, tiny=True)
    return any(
        difference(one, point, least=LEAST) > most for point in points for one in (program, first)
    ) or any(HALF_OF_TINY < difference(tiny, point, least=1e-300) < RAISED for point in points)
