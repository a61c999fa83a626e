"""One case of a Function made ready for judging: its programs, its sampler, its readings.

In: a ``FunctionCase``.  Out: ``Subject``, which evaluates the case at points.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice, product
from typing import Any

import mpmath
import numpy as np

from symgrad.budgets import KEPT_EVALUATIONS, MODE_CHOICES, OTHER_MODES, OTHER_SIZES, REDRAWS
from symgrad.errors import SymgradError
from symgrad.ir.assume import Assumption
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import OPPOSITE
from symgrad.ir.function import Demanded, Relation, SizeCondition
from symgrad.ir.graph import Graph, Node, Scalar, ancestors
from symgrad.ops.integers import Demand, labels
from symgrad.ops.movement import bare
from symgrad.proof.oracle.admitted import Admitted
from symgrad.proof.oracle.numbers import DIGITS, Arithmetic, Array, Double, Precise
from symgrad.proof.oracle.sample import MODES, Point, Sampler, Unsatisfiable
from symgrad.proof.oracle.stated import Stated, moved
from symgrad.proof.oracle.values import (
    Differences,
    DomainError,
    Evaluator,
    inner,
    is_finite,
    objective,
    tangents,
)
from symgrad.proof.reasons import NOWHERE
from symgrad.proof.scalars import literals

_DOUBLE = Double()


class NoPointError(SymgradError):
    """No point was found at which the forward is defined and finite."""


class NoSizesError(NoPointError):
    """No sizes were found that meet the conditions of a case."""


@dataclass(frozen=True)
class Evaluation:
    """A case at one point, in one arithmetic."""

    point: Point
    values: Mapping[Node, Array]
    weights: Mapping[Node, Array]
    objective: Any
    differences: Differences


@dataclass(frozen=True)
class Comparison:
    """Along one direction: the difference quotient and what the hand-written gradient says."""

    quotient: Any
    claimed: Any
    scale: Any

    @property
    def gap(self) -> Any:
        """Their distance relative to their size; infinite where the claim is not finite."""
        gap = abs(self.quotient - self.claimed)
        if isinstance(gap, (mpmath.mpf, mpmath.mpc)):
            return gap / self.scale if mpmath.isfinite(gap) else mpmath.inf
        return gap / self.scale if np.isfinite(gap) else np.inf


class Subject:
    """A case, ready to be evaluated.

    ``outputs``: pairs of an output and its cotangent, float outputs only.  ``gradients``: the
    hand-written gradient node of each input that has one.  ``recognised``: rounded constants
    among the literals are read as what they round.  ``relations``: what is stated of the inputs,
    without which forward is taken to be undefined.  ``like``: a subject that may have the same
    nodes; what is known of them is taken over.
    """

    demanded: tuple[Demanded, ...] = ()
    """What operations demand of integers; nothing is refuted without it."""
    apart: Subject | None = None
    """The same where what a surrogate detaches is an input: it has the kinks (``held``)."""

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Node],
        outputs: Sequence[tuple[Node, Node]],
        gradients: Mapping[str, Node],
        *,
        conditions: Sequence[SizeCondition] = (),
        assumptions: Iterable[Assumption] = (),
        recognised: bool = False,
        relations: Sequence[Relation] = (),
        like: Subject | None = None,
    ) -> None:
        self.graph = graph
        self.relations = tuple(relations)
        self.stated = Stated(self.relations, inputs)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.gradients = dict(gradients)
        self.conditions = tuple(conditions)
        self.assumptions = tuple(assumptions)
        self.recognised = recognised
        self._evaluators: dict[tuple[Node, ...], Evaluator] = (
            {} if like is None else like._evaluators
        )
        weights = [cotangent for _, cotangent in outputs]
        self.forward = self._evaluator([node for node, _ in outputs])
        results = [*self.forward.results, *weights, *self.gradients.values(), *self.inputs]
        self.everything = self._evaluator(results)
        drawn = [*inputs, *(node for node in weights if node not in inputs)]
        self.sampler: Sampler = Sampler(
            drawn, self.everything.nodes, conditions, self.assumptions,
            [node for node in weights if node not in inputs], forward=self.forward.nodes,
            like=None if like is None or like.everything is not self.everything else like.sampler,
        )  # fmt: skip
        self.precise = Precise(self.read)
        self.balls: Arithmetic | None = None
        """As ``precise``, in balls, once it was asked for (``quotients``)."""
        self.without_balls = False
        """Is it known that some op has no form in balls?"""
        self.by_name = {node.attributes["name"]: node for node in inputs}
        self.read_as: tuple[str, ...] = ()
        self.beyond: tuple[tuple[Node, str, Fraction], ...] = ()
        """What was put for approximations, as sentences, and where these differ."""
        self.solved: Mapping[float, literals.Constant] = {}
        """What rounded literals of backward have to be, where that was found."""
        self.saved: tuple[Node, ...] = ()
        """What backward can read by name: saved tensors, set by whoever knows them."""
        self.settled = False
        """Are the modes found, or taken over from another subject?"""
        self.copies: Mapping[Node, Node] = {}
        """Where the nodes of the case went, of which this is a copy."""
        self.programs: dict[Any, Evaluator] = {}
        """Parts of it as programs, by whoever made them."""
        self.bends: tuple[Node, ...] | None = None
        """Nodes of forward with kinks that a report names, once they are known."""
        self.returned: dict[str, Node] = {}
        """Gradients whose shape does not fit their inputs, as backward returned them."""
        self._drawn: dict[Any, Evaluation | None] = {}
        self._precise: dict[int, Evaluation] = {}

    def demand(self, demanded: Sequence[Demanded]) -> None:
        """Take what operations demand of integers: points are drawn that meet it.

        What is demanded of an input as it is bounds it, as an index is bounded.
        """
        self.demanded = tuple(demanded)
        if demanded:
            self.sampler.admitted = Admitted(one for one in demanded if not one.wished).of
        self.sampler.ascending = frozenset(filter(None, map(_ascending, self.demanded)))
        for one in demanded:
            name, found = labels(Demand(one.node, one.low, one.high, one.apart)) or ("", None)
            use = self.sampler.uses.get(name)
            if use is not None and found is not None:
                use.demand(found)

    def is_as_wished(self, point: Point) -> bool:
        """Does all hold at a point that a counterexample is wished to be at?"""
        return self._holds(
            [one for one in self.demanded if one.wished and one.apart is not None], point
        )

    def is_as_demanded(self, point: Point) -> bool:
        """Does all hold at a point that forward demands to hold, and raises without?"""
        return self._holds([one for one in self.demanded if _is_truth(one)], point)

    def _holds(self, demanded: Sequence[Demanded], point: Point) -> bool:
        if not demanded:
            return True
        try:
            with np.errstate(all="ignore"):
                found = self._evaluator([one.node for one in demanded]).run(
                    _DOUBLE, point.doubles(), point.sizes
                )
        except DomainError:
            return False
        held = [
            found[one.node] if one.apart is None else found[one.node] != one.apart
            for one in demanded
        ]
        return all(bool(np.all(one)) for one in held)

    def _evaluator(self, results: Sequence[Node]) -> Evaluator:
        """The program of some nodes, made once for all subjects of one graph."""
        key = tuple(results)
        found = self._evaluators.get(key)
        if found is None:
            found = self._evaluators[key] = Evaluator(results)
        return found

    def changed(
        self, names: Iterable[str] | None = None, *, graph: Graph | None = None,
        new: Mapping[Node, Node] | None = None, gradients: Mapping[str, Node] | None = None,
        **given: Any,
    ) -> Subject:  # fmt: skip
        """The same with some of the gradients alone, sampled in the same modes.

        ``graph`` and ``new``: another graph, and where the nodes went; inputs that are not there
        are made.  ``gradients``: others in place of its own, in that graph.  ``given``:
        ``conditions``, ``assumptions`` or ``recognised``, in place of its own; ``sizes``: what
        stands for some of them.
        """
        there = self.graph if graph is None else graph

        def at(node: Node) -> Node:
            if new is None or node in new:
                return node if new is None else new[node]
            return there.input(str(node.attributes["name"]), node.type)

        own = {name: getattr(self, name) for name in ("conditions", "assumptions", "recognised")}
        own["relations"] = moved(self.relations, there, new, given.pop("sizes", None))
        kept = self.gradients if names is None else names
        found = Subject(
            there,
            [at(node) for node in self.inputs],
            [(at(node), at(cotangent)) for node, cotangent in self.outputs],
            dict(gradients or {name: at(self.gradients[name]) for name in kept}),
            like=self if there is self.graph else None,
            **own | given,
        )
        found.settle_as(self.sampler.modes if self.settled else {})
        found.read_as, found.solved = self.read_as, self.solved
        found.beyond = tuple(
            (point if new is None else new.get(point, point), relation, limit)
            for point, relation, limit in self.beyond
        )
        return found

    def read(self, value: Scalar) -> Any:
        """A literal, as this subject reads it."""
        constant = self.constant(value)
        return literals.precise(value, recognised=False, constant=constant)

    def constant(self, value: Scalar) -> literals.Constant | None:
        """What a literal is read as, where not as it is written."""
        if not isinstance(value, float):
            return None
        known = self.products.get(value)
        if known is None and self.recognised and value not in self.written:
            return literals.recognise(value)
        return known

    @cached_property
    def own_literals(self) -> frozenset[float]:
        """The literals of forward."""
        return frozenset(float(v) for node in self.forward.nodes for v in literal_of(node))

    @cached_property
    def printed(self) -> Mapping[float, int]:
        """How many digits literals of backward have in the source, where these end in zeros."""
        found: dict[float, int] = {}
        for reader in self.everything.nodes:
            where = reader.location
            values = {abs(float(v)) for arg in reader.args for v in literal_of(arg)}
            if where is None or not values:
                continue
            digits = literals.printed_digits(linecache.getline(where.file, where.line))
            for value in values:
                if value in digits and value not in self.own_literals:
                    found[value] = max(digits[value], found.get(value, 0))
        return found

    @cached_property
    def written(self) -> frozenset[float]:
        """Literals whose zeros at the end show that they round no known constant."""
        found = set()
        for value, digits in self.printed.items():
            known = literals.recognise(value)
            if known is not None and known.error > literals.reach(value, digits):
                found |= {value, -value}
        return frozenset(found)

    def reach(self, value: Scalar) -> literals.Reach:
        """How far the number that is meant may lie from a literal."""
        digits = self.printed.get(abs(value))
        return literals.reach(value, digits), literals.outward(value, digits)

    def slack(self, value: Scalar) -> Fraction:
        """How far it may lie before a difference refutes anything."""
        own = value in self.own_literals
        return literals.slack(value, self.printed.get(abs(value)), own=own)

    @cached_property
    def products(self) -> Mapping[float, literals.Constant]:
        """What literals of backward are read as: what was solved for, or products of forward's.

        The latter where constants are recognised.
        """
        if self.solved or not self.recognised:
            return self.solved
        others = {
            float(v): self.reach(v) for node in self.everything.nodes for v in literal_of(node)
            if literals.recognise(v) is None or v in self.written
        }  # fmt: skip
        return literals.products(self.own_literals, others)

    # -- evaluation

    def evaluate(self, point: Point, arithmetic: Arithmetic) -> Evaluation:
        """Values of everything at a point.  Raises DomainError where the forward is undefined."""
        feeds = point.precise() if arithmetic is not _DOUBLE else point.doubles()
        self.stated.check(feeds, point.sizes, arithmetic)
        values = self.everything.run(arithmetic, feeds, point.sizes)
        weights = {cotangent: values[cotangent] for _, cotangent in self.outputs}
        total = objective(self.outputs, values, weights)
        differences = Differences(
            self.forward, self.outputs, arithmetic, feeds, point.sizes, weights
        )
        return Evaluation(point, values, weights, total, differences)

    def evaluate_feeds(
        self, feeds: Mapping[str, Array], sizes: Mapping[str, int]
    ) -> Mapping[Node, Any]:
        """Values of everything at these inputs, in double precision."""
        with np.errstate(all="ignore"):
            return self.everything.run(_DOUBLE, dict(feeds), sizes)

    def evaluate_double(self, point: Point) -> Evaluation:
        """In double precision."""
        with np.errstate(all="ignore"):
            return self.evaluate(point, _DOUBLE)

    def evaluate_precise(self, point: Point) -> Evaluation:
        """In 60 digits; call inside ``mpmath.workdps(DIGITS)``."""
        found = self._precise.get(id(point))
        if found is None or found.point is not point:
            if len(self._precise) >= KEPT_EVALUATIONS:
                self._precise.clear()
            found = self._precise[id(point)] = self.evaluate(point, self.precise)
        return found

    def compare(self, at: Evaluation, directions: Mapping[str, Array]) -> Comparison:
        """Difference quotient against hand-written gradients, along ``directions`` by input."""
        with np.errstate(all="ignore"):
            quotient, mass = at.differences.slope(directions)
            claimed: Any = 0
            scale: Any = abs(quotient)
            for name, direction in directions.items():
                gradient = at.values[self.gradients[name]]
                if not is_finite(gradient):
                    claimed = np.nan if gradient.dtype != object else mpmath.nan
                    break
                claimed = claimed + inner(gradient, direction)
                scale = scale + np.add.reduce(abs(gradient * direction), axis=None)
            double = gradient_is_double(at)
            floor = 1e-3 * float(mass) + 1e-9
            return Comparison(quotient, claimed, scale + (floor if double else floor / 1000))

    def sympy_derivative(self, at: Evaluation, directions: Mapping[str, Array]) -> Any:
        """The derivative along ``directions`` by sympy's partials, in 60 digits."""
        found = tangents(self.forward, self.precise, at.values, directions, at.point.sizes)
        total: Any = mpmath.mpf(0)
        for node, cotangent in self.outputs:
            along = found[node]
            if along is not None:
                total = total + inner(at.weights[cotangent], along)
        return total

    def direction(self, name: str, at: Evaluation, seed: int = 0) -> Array:
        """A generic direction for one input, in the arithmetic of the evaluation.

        Inputs of one shape have different ones: what depends on differences alone is seen too.
        """
        shape = at.values[self.by_name[name]].shape
        numbers = generic_numbers(name, seed, shape)
        if gradient_is_double(at):
            return np.asarray(numbers / 512)
        exact = np.empty(shape, dtype=object)
        exact[...] = np.frompyfunc(lambda n: mpmath.mpf(int(n)) / 512, 1, 1)(numbers)
        return exact

    # -- points

    def draw(self, sizes: Mapping[str, int], number: int) -> Evaluation | None:
        """A point of these sizes where the forward is finite, evaluated in doubles; or None."""
        for attempt in range(REDRAWS):
            found = self._at(sizes, number, attempt)
            if found is not None:
                return found
        return None

    def _at(self, sizes: Mapping[str, int], number: int, attempt: int = 0) -> Evaluation | None:
        """The point that an attempt at drawing one gives, or None; the last few are kept."""
        sampler = self.sampler
        key = tuple(sizes.items()), number, attempt, tuple(sampler.modes.values())
        if key not in self._drawn:
            if len(self._drawn) >= KEPT_EVALUATIONS:
                self._drawn.clear()
            try:
                style = sampler.style(number, attempt)
                point = sampler.point(sizes, number + 1000 * attempt, style)
                self._drawn[key] = self.evaluate_double(self.stated.placed(point, sampler))
            except (DomainError, Unsatisfiable):
                self._drawn[key] = None
        return self._drawn[key]

    def settle_as(self, modes: Mapping[str, str]) -> None:
        """Take the modes that were found for another subject of the same forward."""
        self.sampler.modes.update(
            {name: mode for name, mode in modes.items() if name in self.sampler.modes}
        )
        self.settled = bool(modes)

    def settle(self) -> None:
        """Find for each input a mode (any real, positive, ...) in which the forward is finite.

        Raises NoPointError.
        """
        if self.settled:
            return
        self.sampler.modes.update(self._best_modes())
        self.settled = True

    def _best_modes(self) -> dict[str, str]:
        sizes = next(self.sampler.size_choices(), None)
        if sizes is None:
            raise NoSizesError(self.sampler.nowhere())
        best: tuple[float, dict[str, str]] = (0.0, {})
        for modes in self._mode_choices():
            self.sampler.modes.update(modes)
            rate = self._success(sizes)
            if rate > best[0]:
                best = (rate, dict(self.sampler.modes))
            if rate >= 0.5:
                break
        if not best[0]:  # forward may be finite for other sizes alone
            best = self._best_elsewhere()
        if not best[0] and any(node.dtype == bool_ for node in self.inputs):
            best = self._redrawn(sizes)
        if not best[0]:
            stated = " and ".join(one.text for one in self.relations)
            said = f", and for which {stated}" if stated else ""
            raise NoPointError(f"{NOWHERE}{said}")
        return best[1]

    def _best_elsewhere(self) -> tuple[float, dict[str, str]]:
        """The first modes in which a point of other sizes is found."""
        count = len(self.sampler.symbols) + OTHER_SIZES
        for sizes in islice(self.sampler.size_choices(), 1, count):
            for modes in islice(self._mode_choices(), OTHER_MODES):
                self.sampler.modes.update(modes)
                if rate := self._success(sizes):
                    return rate, dict(self.sampler.modes)
        return 0.0, {}

    def _redrawn(self, sizes: Mapping[str, int]) -> tuple[float, dict[str, str]]:
        """The first modes in which a redrawn point is found: few masks leave each row an entry."""
        for modes in islice(self._mode_choices(), len(MODES)):
            self.sampler.modes.update(modes)
            if self.draw(sizes, 0) is not None:
                return 0.25, dict(self.sampler.modes)
        return 0.0, {}

    def _success(self, sizes: Mapping[str, int]) -> float:
        """How often a point is found, where that is not often; 0.5: often enough."""
        good = 0
        for attempt in range(4):
            if self._at(sizes, attempt) is None:
                if not good and attempt == 1:
                    return 0.0
                continue
            good += 1
            if good == 2:
                break
        return good / 4

    def _mode_choices(self) -> Iterator[dict[str, str]]:
        """All real first; then as few inputs as possible in another mode."""
        names = [n.attributes["name"] for n in self.inputs if n.dtype.is_float]
        yield dict.fromkeys(names, "real")
        for mode in MODES[1:]:
            yield dict.fromkeys(names, mode)
        if len(names) > 1:
            choices = product(MODES, repeat=min(len(names), 4))
            ranked = sorted(choices, key=lambda modes: sum(mode != "real" for mode in modes))
            for modes in ranked[1:MODE_CHOICES]:
                yield dict.fromkeys(names, "real") | dict(zip(names, modes, strict=False))


def literal_of(node: Node) -> tuple[Scalar, ...]:
    """The value of a float literal, alone or spread to a shape; nothing for any other node."""
    while node.op == "expand":
        node = node.args[0]
    if node.op == "constant" and node.dtype.is_float:
        return (node.attributes["value"].value,)
    return ()


@lru_cache(maxsize=2048)
def generic_numbers(name: str, seed: int, shape: tuple[int, ...]) -> Array:
    """Integers of which 512ths are a generic direction for an input."""
    random = np.random.default_rng((seed, *name.encode(), *shape))
    numbers = random.integers(300, 1000, shape) * np.where(random.random(shape) < 0.5, -1, 1)
    return np.asarray(numbers)


def gradient_is_double(at: Evaluation) -> bool:
    """Was this evaluated in double precision?"""
    return at.differences.arithmetic is _DOUBLE


def precisely() -> Any:
    """The working precision of every 60-digit evaluation, as a context."""
    return mpmath.workdps(DIGITS)


def _ascending(demanded: Demanded) -> str:
    """The input of floats whose elements are compared with one another; empty for other demands."""
    for node in ancestors([demanded.node] if _is_truth(demanded) else []):
        if node.op in OPPOSITE and node.rank > 1:
            left, right = map(bare, node.args)
            if left is right and left.op == "input" and left.rank and left.dtype.is_float:
                return str(left.attributes["name"])
    return ""


def _is_truth(demanded: Demanded) -> bool:
    return demanded.node.dtype == bool_ and demanded.apart is None and not demanded.wished
