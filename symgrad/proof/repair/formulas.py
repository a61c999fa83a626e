"""Both gradients of an input as formulas: the true one and the hand-written one.

In: subjects.  Out: ``Formulas``, whose LaTeX is made when it is asked for.

A value that the user named is written by its name, and defined below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from symgrad.budgets import FORMULA_CHARACTERS, FORMULA_LINES, SHORTER_FORM_WORK
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim, Element
from symgrad.ir.expr import Access, Expr, IntValue, postorder
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.judge.goals import is_atom, opaque_atoms
from symgrad.proof.judge.reference import gradient_indices
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.repair.suggest import avoidable, derived_nodes, proved_under
from symgrad.proof.report.latex import LatexWriter, symbol

_TOO_LONG = r"\text{(too long to be written down)}"
_NO_FORM = r"\text{(has no index notation)}"
_UNWRITTEN = ([f"&{_TOO_LONG}"], [f"&{_NO_FORM}"])


@dataclass(frozen=True)
class GradientFormulas:
    """Formulas of one input in one case of sizes: lines of LaTeX, aligned at ``&=``.

    The first line is the gradient, the others define the names in it.  ``hand`` is empty where
    backward returned no usable gradient.
    """

    name: str
    when: str
    true: tuple[str, ...]
    hand: tuple[str, ...]


class Formulas:
    """The formulas of a Function, case by case."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.subjects = tuple(subjects)

    @cached_property
    def gradients(self) -> tuple[GradientFormulas, ...]:
        """All of them, in the order of the inputs."""
        return tuple(
            GradientFormulas(
                name, " and ".join(map(str, subject.conditions)),
                tuple(_true(subject, name)), tuple(_hand(subject, name)),
            )
            for subject in self.subjects for name in _differentiable(subject)
        )  # fmt: skip

    def of(self, name: str) -> list[GradientFormulas]:
        """Those of one input."""
        return [one for one in self.gradients if one.name == name]


def _differentiable(subject: Subject) -> list[str]:
    """The inputs that have a gradient, in order."""
    constant = {known.name for known in subject.assumptions if known.kind == "constant"}
    return [
        name for name, node in subject.by_name.items()
        if node.dtype.is_float and name not in constant
    ]  # fmt: skip


def _hand(subject: Subject, name: str) -> list[str]:
    node = subject.gradients.get(name)
    return [] if node is None else _lines(node, f"grad_{name}", "")


def _true(subject: Subject, name: str) -> list[str]:
    """The derived gradient; a shorter form of it where that is proved."""
    found = derived_nodes(subject, name)
    for one in found[:-1]:
        lines = _lines(one.node, name, "partial")
        if lines in _UNWRITTEN:
            continue
        under = proved_under(subject, name, one.node, SHORTER_FORM_WORK, one.copies)
        if under is not None and not avoidable(subject, under):
            return lines
    return _lines(found[-1].node, name, "partial") if found else [f"&{_NO_FORM}"]


def _lines(node: Node, name: str, kind: str) -> list[str]:
    try:
        lines = _Definitions(node).lines(name, kind)
    except SymgradError:
        return [f"&{_NO_FORM}"]
    if len(lines) > FORMULA_LINES or sum(map(len, lines)) > FORMULA_CHARACTERS:
        return [f"&{_TOO_LONG}"]
    return lines


class _Definitions:
    """A node, and the named nodes that it is made of, each as one line."""

    def __init__(self, node: Node) -> None:
        nodes = ancestors([node])
        named = [
            one for one in nodes
            if one.name and one.args and one is not node and one.op not in ("expand", "reshape")
        ]  # fmt: skip
        self.node = node
        self.cuts = {f"%{one.index}": one for one in (*named, *opaque_atoms(nodes))}
        self.lowering = Lowering(node.graph, self.cuts.values())
        sizes = {name for one in nodes for dim in one.shape for name in dim.sizes}
        inputs = {str(one.attributes["name"]) for one in nodes if one.op == "input"}
        self.names = dict(_names(self.cuts, inputs))
        self.writer = LatexWriter(self.names, {*sizes, *inputs})

    def lines(self, name: str, kind: str) -> list[str]:
        """The gradient called ``name``, then what it is made of."""
        at = gradient_indices(self.node.shape)
        left = self.writer.element(name, at)
        if kind == "partial":
            left = rf"\frac{{\partial \ell}}{{\partial {left}}}"
        body = self.lowering.element(self.node, at, body=True)
        todo = self._used(body)  # which names what lowering had to cut
        found = self.writer.formulas(left, body)
        done: set[str] = set()
        while todo and len(found) <= FORMULA_LINES:
            cut = max(todo, key=lambda one: self.cuts[one].index)
            todo.remove(cut)
            done.add(cut)
            lines, used = self._definition(self.cuts[cut])
            found += lines
            todo |= used - done
        return found

    def _definition(self, node: Node) -> tuple[list[str], set[str]]:
        if is_atom(node):
            return [self._matrix(node)], {
                f"%{arg.index}" for arg in node.args if f"%{arg.index}" in self.cuts
            }
        at = gradient_indices(node.shape)
        body = self.lowering.element(node, at, body=True)
        left = self.writer.element(self.names[f"%{node.index}"], at)
        used = self._used(body)
        return self.writer.formulas(left, body), used

    def _matrix(self, node: Node) -> str:
        """``A^{-1}`` and the like, which have no elements in index notation."""
        inside = ", ".join(self._whole(arg) for arg in node.args)
        right = rf"\operatorname{{{node.op.replace('_', ' ')}}}\left({inside}\right)"
        if node.op == "inverse":
            right = f"{{{inside}}}^{{-1}}"
        return f"{symbol(self.names[f'%{node.index}'])} &= {right}"

    def _whole(self, node: Node) -> str:
        return symbol(self.names.get(f"%{node.index}", node.label))

    def _used(self, body: Expr) -> set[str]:
        """The cut nodes that an expression reads, those that lowering had to cut included."""
        for node in self.lowering.forced:
            if f"%{node.index}" not in self.cuts:
                self.cuts[f"%{node.index}"] = node
                self.names[f"%{node.index}"] = f"t{node.index}"
        found: set[str] = set()
        for part in postorder([body]):
            if isinstance(part, Access):
                found.add(part.tensor)
                dims: Sequence[Dim] = part.indices
            else:
                dims = (part.value,) if isinstance(part, IntValue) else ()
            found |= {
                atom.tensor for dim in dims for atom in dim.atoms if isinstance(atom, Element)
            }
        return {name for name in found if name in self.cuts}


def _names(cuts: Mapping[str, Node], taken: set[str]) -> Iterator[tuple[str, str]]:
    """What cut nodes are called: each name once."""
    used = set(taken)
    numbers = count(1)
    for key, node in cuts.items():
        name = node.name
        while not name or name in used:
            name = f"{node.name or 't'}{next(numbers)}"
        used.add(name)
        yield key, name
