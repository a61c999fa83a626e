"""Matrices and orders made ready for the normal form: inverses as the one kind of atom.

In: a ``Subject`` and the facts of its inputs.  Out: the subject with every triangular solve as a
product with an inverse, equal matrices inverted once, and permutations ranked by themselves;
facts about the atoms; domains to print.

A matrix is called symmetric, triangular, or equal to another one only where the normal form has
proved it under no condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symgrad.budgets import DEEPEST_INVERSE, MATRIX_WORK
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr, ExprPool
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.linalg import matmul, transpose, triangle
from symgrad.ops.orthogonal import FACTORS
from symgrad.ops.spectral import VALUES, VECTORS
from symgrad.proof.judge.boundaries import name_of
from symgrad.proof.judge.equality import Equality, sorted_axis
from symgrad.proof.judge.goals import Goal, definitions, is_atom, opaque_atoms
from symgrad.proof.judge.reference import gradient_indices
from symgrad.proof.normal.facts import POSITIVE_INTERVAL, Facts, Orthogonal, Spectrum
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.relations import spelled
from symgrad.proof.words.spelling import is_transposition

EqualUnder = Callable[[Goal, Facts], Equality]
Element = Callable[..., Expr]
Statement = Callable[[ExprPool, Element, Node, Dim, Dim], tuple[Expr, Expr | None]]

_SINGULAR = ("left_vectors", "singular_values", "right_vectors")
_EIGEN = ("eigenvectors", "eigenvalues")
_SPECTRAL = frozenset((*VECTORS, *VALUES))
_INVERTIBLE = ("logdet", "cholesky", *_SINGULAR)
"""Ops whose condition on a square matrix implies that it has an inverse."""
_KINDS = _SPECTRAL | {"inverse", "det", "logdet", "cholesky", "solve_triangular", *FACTORS}


@dataclass(frozen=True)
class Prepared:
    """The subject that is proved, the facts it is proved under, and conditions to print."""

    subject: Subject
    facts: Facts
    conditions: tuple[Condition, ...] = ()


def prepared(subject: Subject, facts: Facts, equal: EqualUnder) -> Prepared:
    """The subject itself where there is nothing to rewrite."""
    if not any(node.op in ("rank", *_KINDS) for node in subject.everything.nodes):
        return Prepared(subject, facts)
    work = _Rewriting(subject, facts, equal)
    return Prepared(work.result(), work.facts, tuple(_domains(subject)))


def _domains(subject: Subject) -> Iterable[Condition]:
    """Where all of it is defined, in the user's names; not what another condition implies."""
    said = {
        "inverse": "{} is invertible",
        "logdet": "{} has a positive determinant",
        "cholesky": "the symmetric part of {} is positive definite",
        "solve_triangular": "the diagonal of {} has no zero",
        "eigenvalues": "the eigenvalues of {} are distinct",
        "eigenvectors": "the eigenvalues of {} are distinct",
        **dict.fromkeys(FACTORS, "the columns of {} are linearly independent"),
        **dict.fromkeys(_SINGULAR, "the singular values of {} are distinct, and not 0"),
    }
    asked = [(node.op, _upright(node.args[0])[0]) for node in subject.everything.nodes
             if node.op in said]  # fmt: skip
    found: dict[Condition, None] = {}
    for op, matrix in asked:
        if op in ("solve_triangular", "inverse") and matrix.op in ("cholesky", "triangular_factor"):
            continue
        if op == "inverse" and any((other, matrix) in asked for other in _INVERTIBLE):
            continue
        label = matrix.name or _spelled(matrix)
        code = f"{label}.det() != 0" if op == "inverse" and matrix in subject.inputs else ""
        found[Condition("domain", said[op].format(label), code=code)] = None
    return found


def _spelled(matrix: Node) -> str:
    try:
        return spelled(matrix).text
    except NoSpelling:
        return "the matrix"


class _Rewriting:
    """One pass over the nodes of a subject, arguments first, Cholesky factors before all else."""

    def __init__(self, subject: Subject, facts: Facts, equal: EqualUnder) -> None:
        self.subject, self.facts, self.equal = subject, facts, equal
        self.graph = Graph()
        self.matrices: list[Node] = []
        self.factor: dict[Node, Node] = {}
        self._judged: set[Node] = set()

    def result(self) -> Subject:
        """The subject in a graph of its own."""
        old = self.subject
        roots = old.everything.results
        factors = [node for node in old.everything.nodes if node.op == "cholesky"]
        new = rewrite(self.graph, [*factors, *roots], rule=self._made)
        return old.changed(graph=self.graph, new=new)

    def _made(self, node: Node, args: Sequence[Node]) -> Node | None:
        if node.op == "inverse":
            return self._inverse(args[0])
        if node.op == "solve_triangular":
            inverse = self._triangular_inverse(args[0], node.attributes["upper"])
            return matmul(inverse, args[1])
        if node.op == "det":
            return self._det(args[0])
        if node.op == "logdet":
            return self._apply("logdet", args[0])
        if node.op == "rank" and self._is_permutation(args[0], node.attributes["axis"]):
            downward = node.attributes["descending"]
            return node.shape[node.attributes["axis"]] - 1 - args[0] if downward else args[0]
        if node.op in _SPECTRAL:
            return self._spectrum(node, args[0])
        if node.op in FACTORS:
            return self._factor(node.op, args[0])
        if node.op == "cholesky":
            made = self.graph.apply("cholesky", self._known(args[0])[0])
            self._learn_factor(made)
            return made
        return None

    def _is_permutation(self, node: Node, axis: int) -> bool:
        """Is it the ranks along an axis, or where each rank came from?  Its ranks are then itself.

        So are those of an input that holds every index once.
        """
        if node.op == "input":
            return self.facts.permutations.get(str(node.attributes["name"])) == axis
        return sorted_axis(node) == axis

    # -- inverses

    def _inverse(self, matrix: Node, depth: int = 0) -> Node:
        source, turned = _upright(matrix)
        if source.op == "inverse":
            found = source.args[0]
        elif (parts := _square_factors(source)) and depth < DEEPEST_INVERSE:
            first, last = (self._inverse(part, depth + 1) for part in parts)
            found = matmul(last, first)
        else:
            found, turned = self._inverse_of(source, turned)
        return transpose(found) if turned else found

    def _inverse_of(self, source: Node, turned: bool) -> tuple[Node, bool]:
        matrix, other = self._known(source)
        if matrix in self.factor and name_of(matrix) in self.facts.symmetric:
            half = self._plain_inverse(self.factor[matrix])
            return matmul(transpose(half), half), False
        return self._plain_inverse(matrix), turned != other

    def _plain_inverse(self, matrix: Node) -> Node:
        """The atom; what the matrix is, it is too."""
        self._judge(matrix)
        made = self.graph.apply("inverse", matrix)
        facts, name = self.facts, name_of(matrix)
        inverses = {**facts.inverses, name_of(made): name}
        kinds = [kind for kind in _STATEMENTS if name in getattr(facts, kind)]
        lengths = {**facts.lengths, name_of(made): made.shape[-1]}
        self._learn(made, kinds, inverses=inverses, lengths=lengths)
        return made

    def _triangular_inverse(self, matrix: Node, upper: bool) -> Node:
        """The inverse of one triangle: of the matrix itself where the other one is 0."""
        source, turned = _upright(matrix)
        upper = upper != turned
        self._judge(source)
        known = self.facts.upper if upper else self.facts.lower
        if name_of(source) not in known:
            source = triangle(source, "ge" if upper else "le")
        found = self._inverse(source)
        return transpose(found) if turned else found

    def _det(self, matrix: Node) -> Node:
        """That of a transposed matrix is the same, that of an inverse one over it."""
        source, _ = _upright(matrix)
        if source.op == "inverse":
            return self.graph.apply("reciprocal", self._det(source.args[0]))
        return self._apply("det", source)

    def _apply(self, op: str, matrix: Node) -> Node:
        """A determinant, whose derivative the inverse is in."""
        known, _ = self._known(matrix)
        self._plain_inverse(known)
        return self.graph.apply(op, known)

    # -- eigenvalues, singular values

    def _spectrum(self, node: Node, source: Node) -> Node:
        """The values or vectors of a matrix that was seen before, if it is equal to that."""
        matrix, turned = self._known(source)
        if turned and node.op in _SINGULAR:
            matrix = source
        attributes = dict(node.attributes)
        made = {
            op: self.graph.apply(op, matrix, **attributes)
            for op in (_SINGULAR if node.op in _SINGULAR else _EIGEN)
        }
        self._learn_spectrum(matrix, *(made.values() if len(made) == 3 else _both(made.values())))
        return made[node.op]

    def _learn_spectrum(self, matrix: Node, left: Node, values: Node, right: Node) -> None:
        rows, columns = matrix.shape[-2:]
        known = Spectrum(
            name_of(matrix), name_of(left), name_of(values), name_of(right), rows, columns,
            values.shape[-1],
        )  # fmt: skip
        found = {**self.facts.spectra, known.left: known, known.right: known}
        positive = {} if left is right else {known.values: POSITIVE_INTERVAL}
        self._judged.update((left, right))
        self.facts = replace(
            self.facts, spectra=found, intervals={**self.facts.intervals, **positive}
        )

    # -- orthogonal and triangular factors

    def _factor(self, op: str, source: Node) -> Node:
        """That of a matrix that was seen before, if it is equal to that."""
        matrix, turned = self._known(source)
        matrix = source if turned else matrix
        factor, upper = (self.graph.apply(name, matrix) for name in FACTORS)
        self._judged.update((factor, upper))
        self._learn(
            upper, ["upper"], lengths={**self.facts.lengths, name_of(upper): upper.shape[-1]}
        )
        inverse = self._plain_inverse(upper)
        rows, count = matrix.shape[-2:]
        known = Orthogonal(
            name_of(matrix), name_of(factor), name_of(upper), name_of(inverse), rows, count
        )
        found = {**self.facts.orthogonal, known.factor: known}
        self.facts = replace(self.facts, orthogonal=found)
        return factor if op == factor.op else upper

    # -- what matrices are

    def _known(self, matrix: Node) -> tuple[Node, bool]:
        """A matrix seen before that equals this one, or its transpose; else this one."""
        source, turned = _upright(matrix)
        for other in self.matrices:
            if other is source:
                return other, turned
        for other in self.matrices:
            if other.shape != source.shape or other.op == source.op == "input":
                continue
            for across in (False, True):
                if self._holds(source, _same_as(other, across), other):
                    return other, turned != across
        self.matrices.append(source)
        self._judge(source)
        return source, turned

    def _learn_factor(self, factor: Node) -> None:
        matrix = factor.args[0]
        self.factor[matrix] = factor
        self._judged.add(factor)
        factors = {**self.facts.factors, name_of(factor): name_of(matrix)}
        lengths = {**self.facts.lengths, name_of(factor): factor.shape[-1]}
        self._learn(factor, ["lower"], factors=factors, lengths=lengths)
        self._plain_inverse(factor)  # which its derivative is made of

    def _judge(self, matrix: Node) -> None:
        """Find out whether a computed matrix is symmetric or triangular."""
        if matrix in self._judged or matrix.op == "input" or is_atom(matrix):
            return
        self._judged.add(matrix)
        for kind, statement in _STATEMENTS.items():
            if self._holds(matrix, statement):
                self._learn(matrix, [kind])

    def _learn(self, matrix: Node, kinds: Iterable[str], **changed: Any) -> None:
        """Note that a matrix is of some kinds; ``changed``: other facts."""
        name = name_of(matrix)
        more: dict[str, Any] = {kind: getattr(self.facts, kind) | {name} for kind in kinds}
        self.facts = replace(self.facts, **more, **changed)

    def _holds(
        self, matrix: Node, statement: Statement, other: Node | None = None
    ) -> bool:  # fmt: skip
        """Is a statement about the elements proved, under no condition?"""
        opened = [node for node in (matrix, other) if node is not None and not is_atom(node)]
        cuts = opaque_atoms(ancestors([matrix, *opened]))
        lowering = Lowering(self.graph, [node for node in cuts if node not in opened])
        *batch, row, column = gradient_indices(matrix.shape)

        def element(node: Node, *at: Dim) -> Expr:
            return lowering.element(node, (*batch, *at), body=not is_atom(node))

        left, right = statement(lowering.pool, element, matrix, row, column)
        leaves = lowering.leaves()
        goal = Goal(left, right, leaves, definitions(lowering), MATRIX_WORK)
        answer = self.equal(goal, self.facts)
        return answer.equal and not answer.conditions


def _both(made: Iterable[Node]) -> tuple[Node, Node, Node]:
    """Eigenvectors are on both sides of their values."""
    vectors, values = made
    return vectors, values, vectors


def _zero_where(relation: str) -> Statement:
    """The elements whose row stands in a relation to their column are 0."""

    def statement(
        pool: ExprPool, element: Element, matrix: Node, row: Dim, column: Dim
    ) -> tuple[Expr, Expr | None]:
        zero = pool.literal(0.0, matrix.dtype)
        there = pool.relation(relation, row, column)
        return pool.select(there, element(matrix, row, column), zero), None

    return statement


def _same_as(other: Node | None, across: bool) -> Statement:
    """Equal to another matrix, or to its transpose; None: to itself."""

    def statement(
        pool: ExprPool, element: Element, matrix: Node, row: Dim, column: Dim
    ) -> tuple[Expr, Expr | None]:
        there = (column, row) if across else (row, column)
        return element(matrix, row, column), element(other or matrix, *there)

    return statement


_STATEMENTS = {
    "symmetric": _same_as(None, across=True),
    "lower": _zero_where("lt"),
    "upper": _zero_where("gt"),
}
"""What is looked for in a computed matrix, by the name of the fact."""


def _upright(matrix: Node) -> tuple[Node, bool]:
    """The matrix without transpositions, and whether their number is odd."""
    turned = False
    while is_transposition(matrix):
        matrix, turned = matrix.args[0], not turned
    return matrix, turned


def _square_factors(node: Node) -> tuple[Node, Node] | None:
    """Two square matrices that the node is the product of."""
    if node.op != "einsum" or len(node.args) != 2:
        return None
    left, right = node.args
    same = left.shape == right.shape == node.shape
    return (left, right) if same and matmul(left, right) is node else None
