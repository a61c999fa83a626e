"""Domain conditions as a person wants them: only those that may fail, each once, in user's words.

In: the requirements of a finished proof, its context, the graph.  Out: ``Condition`` records.

A condition that always holds is dropped (``positivity``).  Conditions that differ by the names of
indices or by a positive factor are one.  Where the forward takes the root or the logarithm of
what must be positive, or divides by what must not be 0, it is printed as the forward has it, in
the names of its variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from symgrad.budgets import DOMAIN_CANDIDATES, DOMAIN_WORK
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.graph import Graph, Node
from symgrad.proof.judge.masks import is_mask
from symgrad.proof.judge.positivity import holds, primitive
from symgrad.proof.judge.reference import gradient_indices
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import POSITIVE, by_condition, factor_sign, substitute
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Proof, Requirement
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.poly import ONE, Poly, direct_atoms, of_atom
from symgrad.proof.report.records import Condition
from symgrad.proof.scalars.bodies import restricted_operands
from symgrad.proof.words.code import CodeWriter, NoSpelling
from symgrad.proof.words.polytext import PolyText


@dataclass
class _Entry:
    """One condition: its shortest text, whether it is strict and whether it is about the sign."""

    poly: Poly
    text: str
    nonzero: bool = False
    nonnegative: bool = False


def domain_conditions(
    requirements: Iterable[Requirement], context: Proof, leaves: Mapping[str, Node],
    graph: Graph | None = None,
) -> list[Condition]:  # fmt: skip
    """What has to be printed of the requirements of one proof.

    ``leaves``: the nodes that cut names stand for.  ``graph``: where to look for user's words.
    """
    entries: dict[str, _Entry] = {}
    found: list[Condition] = []
    for requirement in requirements:
        if requirement.relation == "row":
            said = PolyText(leaves).relation(requirement.poly, requirement.relation)
            found.append(Condition("domain", said))
            continue
        for piece in _beside_masks(context, requirement):
            if not holds(context, piece.poly, piece.relation):
                for poly in _parts(context, piece):
                    _take(entries, context, poly, piece.relation, leaves)
    words = _user_words(context, graph, leaves) if graph is not None and entries else {}
    found += _of_branches(entries, context, leaves)
    for key, entry in entries.items():
        text = words.get(key, entry.text)
        kind, relation = "domain", ">" if entry.nonzero else ">="
        if not entry.nonnegative:
            kind, relation = "nonzero", "=="
        always = where_zero(context, entry.poly) if entry.nonzero else ""
        about = condition_about(context, entry.poly, "!=" if relation == "==" else relation, leaves)
        found.append(Condition(kind, f"{text} {relation} 0{always}", about))
    return list(dict.fromkeys(found))


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
            texts = [f"{one.text} {'>' if one.nonzero else '>='} 0" for one in both]
            found.append(Condition("domain", f"{texts[0]} or {texts[1]}, each on its own branch"))
        else:
            entries[key], entries[opposite] = both
    return found


def _take(
    entries: dict[str, _Entry], context: Proof, poly: Poly, relation: str,
    leaves: Mapping[str, Node],
) -> None:  # fmt: skip
    key, text = condition_key(context, poly, leaves), PolyText(leaves).of(poly)
    entry = entries.setdefault(key, _Entry(poly, text))
    entry.text = min(entry.text, text, key=len)
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


def condition_key(context: Proof, poly: Poly, leaves: Mapping[str, Node]) -> str:
    """Equal for polynomials that are positive multiples of each other up to names of indices.

    A power of one base stands for the base: they have one sign.
    """
    return PolyText(leaves).of(_base(context, poly))


def condition_about(
    context: Proof, poly: Poly, relation: str, leaves: Mapping[str, Node]
) -> str:  # fmt: skip
    """Equal for conditions that are one: the relation, the key and the extents of the indices."""
    text = PolyText(leaves)
    key = text.of(_base(context, poly))
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


def _user_words(context: Proof, graph: Graph, leaves: Mapping[str, Node]) -> dict[str, str]:
    """The operands of roots, logarithms and quotients as code, by the keys of their normal forms.

    Of several with one key the shortest, those under roots and logarithms first.
    """
    found: dict[str, tuple[bool, int, str]] = {}
    writer = CodeWriter([node for node in graph.nodes if node.name and node.op != "input"])
    for node, divides in _operands(graph):
        for cuts in [list(leaves.values()), []] if leaves else [[]]:
            try:
                key = condition_key(context, _normal_form(context, graph, node, cuts), leaves)
                text = writer.text(node, level=5)
                item = divides, len(text), text
            except (SymgradError, Undecided, NoSpelling, KeyError):
                continue
            found[key] = min(found.get(key, item), item)
    return {key: text for key, (_, _, text) in found.items()}


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


def _normal_form(context: Proof, graph: Graph, node: Node, cuts: Sequence[Node]) -> Poly:
    """Raises SymgradError, Undecided."""
    lowering = Lowering(graph, [cut for cut in cuts if cut.graph is graph and cut is not node])
    element = lowering.element(node, gradient_indices(node.shape))
    before, context.budget = context.budget, context.work + DOMAIN_WORK
    try:
        return Conversion(context).poly(element)
    finally:
        context.budget = before
