"""Mutants of right backwards: one node changed, at random but reproducibly.

In: a ``Subject`` whose gradients are right.  Out: subjects with one gradient changed, what the
numbers say of them, and what the normal form says without having seen any number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from symgrad.errors import SymgradError
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.judge.decide import proving
from symgrad.proof.oracle.refute import confirmed, tolerance
from symgrad.proof.oracle.subject import NoPointError, Subject, precisely
from symgrad.proof.oracle.values import DomainError

BUDGET = 60_000
_UNARY = ("exp", "tanh", "sigmoid", "square", "sin", "cos", "abs", "relu", "sign")
_BINARY = ("add", "sub", "mul", "maximum", "minimum")


@dataclass(frozen=True)
class Mutant:
    """A changed gradient; ``change`` says what was done."""

    subject: Subject
    name: str
    change: str


def mutants(subject: Subject, random: Random, count: int) -> Iterator[Mutant]:
    """``count`` attempts; those that change a node without breaking shapes."""
    forward = set(subject.forward.nodes)
    for _ in range(count):
        name = random.choice(sorted(subject.gradients))
        root = subject.gradients[name]
        inner = [
            node for node in ancestors([root])
            if node not in forward and node.dtype.is_float and node.op not in ("input", "constant")
        ]  # fmt: skip
        if not inner:
            continue
        target = random.choice(inner)
        try:
            changed, change = _changed(subject, target, random)
            mutated = _replaced(root, target, changed)
        except SymgradError:
            continue
        if mutated is root or mutated.shape != root.shape:
            continue
        yield Mutant(_with(subject, name, mutated), name, change)


def _changed(subject: Subject, node: Node, random: Random) -> tuple[Node, str]:
    graph = node.graph
    same = [
        other for other in subject.everything.nodes
        if other.shape == node.shape and other.dtype == node.dtype and other is not node
    ]  # fmt: skip
    kind = random.randrange(9)
    if kind == 0:
        return -node, "negated"
    if kind == 1:
        factor = random.choice((2.0, 0.5, 3.0))
        return node * factor, f"times {factor}"
    if kind == 2 and node.args:
        return graph.expand(node.args[0], node.shape), "replaced by its first operand"
    if kind == 3 and len(node.args) == 2 and node.op in ("sub", "div"):
        return graph.apply(node.op, *node.args[::-1]), "operands exchanged"
    if kind == 4 and node.op in _BINARY:
        other_op = random.choice([op for op in _BINARY if op != node.op])
        return graph.apply(other_op, *node.args), f"{node.op} became {other_op}"
    if kind == 5 and node.rank >= 2 and node.shape[-1] == node.shape[-2]:
        axes = (*range(node.rank - 2), node.rank - 1, node.rank - 2)
        return graph.apply("permute", node, axes=axes), "transposed"
    if kind == 6 and node.op in _UNARY:
        other_op = random.choice([op for op in _UNARY if op != node.op])
        return graph.apply(other_op, *node.args), f"{node.op} became {other_op}"
    if same and kind in (7, 8):
        other = random.choice(same)
        return (other, "another node") if kind == 7 else (node + other, "another node added")
    return node + 1.0, "one added"


def _replaced(root: Node, old: Node, new: Node) -> Node:
    made = {old: new}
    for node in ancestors([root], stop=[old]):
        args = [made.get(arg, arg) for arg in node.args]
        if node is not old and any(a is not b for a, b in zip(args, node.args, strict=True)):
            made[node] = node.graph.apply(node.op, *args, **node.attributes)
    return made.get(root, root)


def _with(subject: Subject, name: str, gradient: Node) -> Subject:
    return Subject(
        subject.graph, subject.inputs, subject.outputs, {name: gradient},
        conditions=subject.conditions, assumptions=subject.assumptions,
    )  # fmt: skip


def differs(mutant: Mutant, points: int = 6) -> bool | None:
    """Is the mutant wrong at some point, in 60 digits?  None: it could not be evaluated."""
    subject = mutant.subject
    try:
        subject.settle()
    except NoPointError:
        return None
    tried = 0
    for number, sizes in enumerate(islice(subject.sampler.size_choices(), 3 * points)):
        if tried >= points:
            break
        at = subject.draw(sizes, number)
        if at is None:
            continue
        tried += 1
        if confirmed(subject, at.point, mutant.name):
            return True
        with precisely():
            try:
                exact = subject.evaluate_precise(at.point)
                along = {mutant.name: subject.direction(mutant.name, exact)}
                if not subject.compare(exact, along).gap <= tolerance():
                    return None
            except DomainError:
                continue
    return False if tried else None


def proved(mutant: Mutant) -> bool:
    """Does the normal form prove the mutant?  No number is looked at."""
    return proving(mutant.subject, BUDGET).prover.prove(mutant.name).equal
