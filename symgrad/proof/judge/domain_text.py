"""Domain conditions as a person wants them: only those that may fail, each once, in user's words.

In: the requirements of a finished proof, its context, the graph.  Out: ``Condition`` records.

A condition that always holds is dropped (``positivity``).  Conditions that differ by the names of
indices or by a positive factor are one.  Where the forward takes the root or the logarithm of
what must be positive, or divides by what must not be 0, it is printed as the forward has it, in
the names of its variables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from symgrad.budgets import DOMAIN_CANDIDATES, DOMAIN_WORK, WORD_CHARACTERS
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.proof.judge.boundaries import is_square
from symgrad.proof.judge.families import Families
from symgrad.proof.judge.masks import is_mask
from symgrad.proof.judge.positivity import holds, primitive
from symgrad.proof.judge.ranges import ANY, APART, Range, Ranges, of_names, point
from symgrad.proof.judge.reference import gradient_indices
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import POSITIVE, by_condition, factor_sign, from_dim, substitute
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Obligation, Proof, Requirement
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.poly import ONE, Poly, all_atoms, direct_atoms, of_atom
from symgrad.proof.report.records import Condition
from symgrad.proof.scalars.bodies import restricted_operands
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.polytext import PolyText
from symgrad.proof.words.relations import reached_twice, related, solved, spelled


def tied_maximum(
    obligation: Obligation, nodes: Mapping[str, Node], context: Proof
) -> Condition | None:
    """Where the greatest element of a tensor is not the only one, if an obligation is about that.

    ``nodes``: what leaves stand for.  None where what is compared are not the elements of one,
    along whole axes.
    """
    sides = {value: Poly({one: 1}).atom for one, value in obligation.base.terms.items()}
    one, other = sides.get(1), sides.get(-1)
    if not obligation.of_greatest or len(obligation.base.terms) != 2 or not one or not other:
        return None
    if not one.kind == other.kind == kinds.LEAF or one.data[0] != other.data[0]:
        return None
    node = nodes.get(one.data[0])
    places = list(zip(one.data[1], other.data[1], strict=True))
    apart = [axis for axis, (left, right) in enumerate(places) if left != right]
    moving = [
        index.atom for axis in apart for index in places[axis]
        if node is not None and _is_whole(index.atom, node.shape[axis], context)
    ]  # fmt: skip
    if node is None or len({*moving}) < 2 * len(apart):
        return None
    extreme = "maximum" if {*moving[::2]} & {*(obligation.distinct or ())[:1]} else "minimum"
    try:
        said = reached_twice(node, extreme, apart)
    except NoSpelling:
        return None
    return Condition("ties", said.text, code=said.code)


def _is_whole(index: Atom | None, size: Dim, context: Proof) -> bool:
    """Does an index take all values along an axis?"""
    if index is None or index.kind != kinds.INDEX:
        return False
    return bool(index.data[1] == from_dim(context, size))


@dataclass
class _Entry:
    """One condition: the form with the shortest text; is it strict, is it about the sign?"""

    poly: Poly
    text: str
    nonzero: bool = False
    nonnegative: bool = False

    @property
    def demanded(self) -> str:
        """What has to hold: ``>``, ``>=`` or ``!=``."""
        return self._sign if self.nonnegative else "!="

    @property
    def relation(self) -> str:
        """What is printed; what must not be 0 is printed as the set on which it is."""
        return self._sign if self.nonnegative else "=="

    @property
    def _sign(self) -> str:
        return ">" if self.nonzero else ">="


def domain_conditions(
    requirements: Iterable[Requirement], context: Proof, leaves: Mapping[str, Node],
    graph: Graph | None = None, families: Families | None = None,
) -> tuple[list[Condition], list[tuple[Node, Range]]]:  # fmt: skip
    """What has to be printed of the requirements of one proof, and what it says of single nodes.

    ``leaves``: the nodes that cut names stand for.  ``graph``: where to look for user's words.
    ``families``: writes out what cut names stand for.
    """
    entries: dict[str, _Entry] = {}
    found: list[Condition] = []
    for requirement in requirements:
        if requirement.relation == "row":
            found.append(PolyText(leaves).condition("domain", requirement.poly, "row"))
            continue
        for piece in _beside_masks(context, requirement):
            if not holds(context, piece.poly, piece.relation, families):
                for poly in _parts(context, piece):
                    _take(entries, context, poly, piece.relation, leaves)
    polys = [entry.poly for entry in entries.values()]
    words = _user_words(context, graph, leaves, polys) if graph is not None and entries else {}
    found += _of_branches(entries, context, leaves)
    sought = [
        _Sought(entry, *one)
        for key, entry in entries.items()
        for one in _told(entry, words.get(key), leaves)
    ]
    kept = _independent(sought, context, graph)
    for one in kept:
        entry = one.entry
        always = where_zero(context, entry.poly) if entry.nonzero else ""
        about = condition_about(context, entry.poly, entry.demanded, leaves)
        said = None if one.node is None else _of_node(one.node, one.relation, one.right, always)
        if said is None:
            kind = "nonzero" if entry.relation == "==" else "domain"
            said = PolyText(leaves).condition(kind, entry.poly, entry.relation, always)
        found.append(replace(said, about=about))
    known = [(one.node, one.known) for one in kept if one.node is not None]
    return list(dict.fromkeys(found)), known


@dataclass(frozen=True, eq=False)
class _Sought:
    """A condition as a relation between a node and a number, where it is one."""

    entry: _Entry
    node: Node | None
    relation: str
    right: Fraction

    @property
    def known(self) -> Range:
        """Where the elements of the node lie."""
        end = self.right, not self.relation.endswith("=")
        if self.relation == "==":
            return ANY if self.right else APART
        return Range(end) if self.relation.startswith(">") else Range(high=end)


def _told(
    entry: _Entry, node: Node | None, leaves: Mapping[str, Node]
) -> list[tuple[Node | None, str, Fraction]]:
    if node is None:
        whole = PolyText(leaves).whole(entry.poly, entry.relation)
        return [(None, entry.relation, Fraction(0))] if whole is None else [*_bared(*whole)]
    return [*_bared(node, entry.relation, Fraction(0))]


def _bared(node: Node, relation: str, right: Fraction) -> Iterator[tuple[Node, str, Fraction]]:
    """The simplest relations that are together the same.

    A square is positive, and a root is not 0, where its base is not 0; a product is not 0 where
    no factor is.
    """
    node, relation, right = solved(node, relation, right)
    strict = right == 0 and relation in (">", "==")
    if strict and (node.op in ("abs", "square") or is_square(node)):
        yield from _bared(node.args[0], "==", right)
    elif strict and node.op in ("sqrt", "root"):
        yield from _bared(node.args[0], relation, right)
    elif strict and relation == "==" and node.op == "mul":
        for factor in node.args:
            yield from _bared(factor, relation, right)
    else:
        yield node, relation, right


def _independent(sought: Sequence[_Sought], context: Proof, graph: Graph | None) -> list[_Sought]:
    """The conditions that neither hold always nor follow from the others."""
    inputs = {} if graph is None else of_names(graph.inputs, context.facts)
    base = Ranges(inputs, context.facts.least_sizes)
    kept = [one for one in sought if one.node is None or not _is_met(base, one)]
    if len(kept) > MOST_COMPARED:
        return kept
    for one in sorted(kept, key=_depth, reverse=True):
        if one.node is not None:
            known = base.copy()
            for other in kept:
                if other is not one and other.node is not None:
                    known.learn(other.node, other.known)
            if _is_met(known, one):
                kept.remove(one)
    return kept


def _depth(one: _Sought) -> tuple[int, bool]:
    """Those that are implied, if any, come first: of what is computed later, and weak ones."""
    return (-1 if one.node is None else one.node.index), one.relation.endswith("=")


def _is_met(ranges: Ranges, one: _Sought) -> bool:
    assert one.node is not None
    gap = ranges.of(one.node) + point(-one.right)
    if one.relation == "==":
        return ranges.of(one.node).nonzero if not one.right else gap.nonzero
    if one.relation.startswith("<"):
        gap = -gap
    return gap.nonnegative if one.relation.endswith("=") else gap.positive


MOST_COMPARED = 12
"""Conditions that are compared with one another."""


def _of_node(node: Node, relation: str, right: Fraction, remark: str) -> Condition | None:
    try:
        said = related(node, relation, right)
    except NoSpelling:
        return None
    kind = "nonzero" if relation == "==" else "domain"
    return Condition(kind, said.text + remark, code=said.code)


MOST_MASKS = 3


def _beside_masks(context: Proof, requirement: Requirement) -> list[Requirement]:
    """What it demands where the masks in it hold, and where they do not."""
    masks = sorted((a for a in direct_atoms(requirement.poly) if is_mask(a)), key=lambda a: a.key)
    pieces = [requirement.poly]
    for one in masks[:MOST_MASKS]:
        pieces = [part for piece in pieces for part in by_condition(context, piece, one)]
    return [replace(requirement, poly=piece) for piece in dict.fromkeys(pieces)]


def _of_branches(
    entries: dict[str, _Entry], context: Proof, leaves: Mapping[str, Node]
) -> list[Condition]:
    """Conditions that exclude each other, taken out of ``entries``: each is of one branch only."""
    found = []
    for key, entry in list(entries.items()):
        opposite = condition_key(context, entry.poly.scaled(-1), leaves)
        if key not in entries or opposite not in entries or key == opposite:
            continue
        both = entries.pop(key), entries.pop(opposite)
        if all(one.nonnegative for one in both):
            one, other = (
                PolyText(leaves).condition("domain", entry.poly, entry.relation) for entry in both
            )
            found.append(Condition("domain", f"{one.text} or {other.text}, each on its own branch"))
        else:
            entries[key], entries[opposite] = both
    return found


def _take(
    entries: dict[str, _Entry], context: Proof, poly: Poly, relation: str,
    leaves: Mapping[str, Node],
) -> None:  # fmt: skip
    key, text = condition_key(context, poly, leaves), PolyText(leaves).of(poly)
    entry = entries.setdefault(key, _Entry(poly, text))
    if len(text) < len(entry.text):
        entry.poly, entry.text = poly, text
    entry.nonzero |= relation != ">="
    entry.nonnegative |= relation != "!="


def _parts(context: Proof, requirement: Requirement) -> list[Poly]:
    """What must not be 0 for a product not to be 0; else the polynomial itself."""
    poly = requirement.poly
    if requirement.relation != "!=" or len(poly.terms) != 1:
        return [poly]
    parts = [
        atom.data[0] if atom.kind == kinds.POWER else of_atom(atom)
        for atom, exponent in next(iter(poly.terms))
        if exponent > 0 and factor_sign(context, atom, exponent) != POSITIVE
    ]
    return parts or [poly]


def condition_key(
    context: Proof, poly: Poly, leaves: Mapping[str, Node], most: int | None = None
) -> str:
    """Equal for polynomials that are positive multiples of each other up to names of indices.

    A power of one base stands for the base: they have one sign.  Raises NoSpelling where it would
    have more than ``most`` characters.
    """
    return PolyText(leaves, most=most).key(_base(context, poly))


def condition_about(
    context: Proof, poly: Poly, relation: str, leaves: Mapping[str, Node]
) -> str:  # fmt: skip
    """Equal for conditions that are one: the relation, the key and the extents of the indices."""
    text = PolyText(leaves)
    key = text.key(_base(context, poly))
    return f"{relation} {key} over {', '.join(text.extents())}"


def _base(context: Proof, poly: Poly) -> Poly:
    base = primitive(context, poly)
    if len(base.terms) == 1:
        ((monomial, value),) = base.terms.items()
        if len(monomial) == 1 and monomial[0][0].kind == kinds.POWER and value > 0:
            atom, exponent = monomial[0]
            if exponent > 0:
                base = primitive(context, atom.data[0])
    return base


def where_zero(context: Proof, poly: Poly) -> str:
    """The sizes that make it 0 by being 1."""
    before, context.budget = context.budget, context.work + DOMAIN_WORK
    try:
        sizes = sorted(
            atom.data[0] for atom in _sizes_in(poly)
            if not substitute(context, poly, {atom: ONE}).terms
        )  # fmt: skip
    except Undecided:
        return ""
    finally:
        context.budget = before
    return f" (at {' or '.join(f'{size} == 1' for size in sizes)} it is always 0)" if sizes else ""


def _sizes_in(poly: Poly) -> list[Atom]:
    """Sizes among the factors and the extents of the sums of a polynomial."""
    found: dict[Atom, None] = {}
    for monomial in poly.terms:
        for atom, _ in monomial:
            own = [of_atom(atom)] if atom.kind == kinds.SIZE else []
            extents = [b.data[1] for b in atom.data[0]] if atom.kind == kinds.SUM else []
            for extent in (*own, *extents):
                found.update(
                    dict.fromkeys(a for m in extent.terms for a, _ in m if a.kind == kinds.SIZE)
                )
    return list(found)


# -- the user's words


def _user_words(
    context: Proof, graph: Graph, leaves: Mapping[str, Node], wanted: Sequence[Poly]
) -> dict[str, Node]:  # fmt: skip
    """The operands of roots, logarithms and quotients, by the keys of their normal forms.

    Of several with one key that with the shortest text, those under roots and logarithms first.
    ``wanted``: what words are looked for; an operand that reads none of the leaves of a condition
    is no word for it, and one in terms of inputs alone is none for a condition on leaves.
    """
    named = [_leaves_of(poly, leaves) for poly in wanted]
    found: dict[str, tuple[bool, int, int, Node]] = {}
    forms = _NormalForms(context, graph)
    for node, divides in _operands(graph):
        read = _read_by(node, leaves.values())
        cuttings = [list(leaves.values())] if any(one <= read for one in named) else []
        cuttings += [[]] if not all(named) and leaves and read else []
        for cuts in cuttings:
            try:
                form = forms.of(node, cuts)
                key = condition_key(context, form, leaves, WORD_CHARACTERS)
                item = divides, len(spelled(node).text), node.index, node
            except (SymgradError, Undecided, NoSpelling, KeyError):
                continue
            found[key] = min(found.get(key, item), item)
    return {key: node for key, (_, _, _, node) in found.items()}


def _leaves_of(poly: Poly, leaves: Mapping[str, Node]) -> frozenset[Node]:
    """The leaves that a polynomial is made of."""
    names = {str(atom.data[0]) for atom in all_atoms(poly) if atom.kind == kinds.LEAF}
    return frozenset(leaves[name] for name in names if name in leaves)


def _read_by(node: Node, leaves: Collection[Node]) -> frozenset[Node]:
    """The leaves that a node is computed from, with nothing below them looked at."""
    own = [one for one in leaves if one.graph is node.graph and one is not node]
    return frozenset(ancestors([node], stop=own)).intersection(own)


def _operands(graph: Graph) -> Iterator[tuple[Node, bool]]:
    seen: set[Node] = set()
    for node in graph.nodes:
        for place, kind in restricted_operands(node.op):
            operand = node.args[place]
            while operand.op in ("expand", "reshape") and not operand.name:
                operand = operand.args[0]
            if operand.op not in ("constant", "size") and operand not in seen:
                seen.add(operand)
                yield operand, kind == "nonzero"
        if len(seen) >= DOMAIN_CANDIDATES:
            return


class _NormalForms:
    """Normal forms of nodes; what several are computed from is written out once."""

    def __init__(self, context: Proof, graph: Graph) -> None:
        self.context, self.graph = context, graph
        self._writers: dict[frozenset[Node], tuple[Lowering, Conversion]] = {}

    def of(self, node: Node, cuts: Sequence[Node]) -> Poly:
        """Raises SymgradError, Undecided."""
        own = frozenset(cut for cut in cuts if cut.graph is self.graph and cut is not node)
        if own not in self._writers:
            self._writers[own] = Lowering(self.graph, own), Conversion(self.context)
        lowering, conversion = self._writers[own]
        element = lowering.element(node, gradient_indices(node.shape))
        context = self.context
        before, context.budget = context.budget, context.work + DOMAIN_WORK
        try:
            return conversion.poly(element)
        finally:
            context.budget = before
