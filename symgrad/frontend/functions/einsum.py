"""``einsum``: sums of products, written with labels.

In: an equation, tensors.  Out: a tensor.

Operands are taken together two at a time, from the left; a label that no later operand has is
summed as soon as it can be.
"""

from __future__ import annotations

import string
from typing import Any

from symgrad.errors import ShapeError
from symgrad.frontend.functions.products import contract
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.session import current, here
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import permute
from symgrad.ir.graph import Node

Tensor = SymbolicTensor


@operation("einsum", method=False)
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products: ``einsum("bij,bjk->bik", x, y)``."""
    given = (
        operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    )
    nodes = [as_tensor(operand).node for operand in given]
    words, result = _parse(equation, nodes)
    terms = [_diagonals(word, node) for word, node in zip(words, nodes, strict=True)]
    word, node = terms[0]
    for position, (other, right) in enumerate(terms[1:], 1):
        needed = set(result).union(*(word for word, _ in terms[position + 1 :]))
        word, node = _pair(word, node, other, right, needed)
    return fresh(_arranged(word, node, result))


def _parse(equation: str, nodes: list[Node]) -> tuple[list[str], str]:
    """The labels of the operands and of the result, ellipses written out."""
    text = equation.replace(" ", "")
    left, arrow, result = text.partition("->")
    words = left.split(",")
    if len(words) != len(nodes):
        raise ShapeError(f"einsum {equation!r} with {len(nodes)} operands", location=here())
    spare = [letter for letter in string.ascii_letters if letter not in text]
    ranks = [
        node.rank - len(word.replace("...", "")) for word, node in zip(words, nodes, strict=True)
    ]
    widest = max(
        (rank for word, rank in zip(words, ranks, strict=True) if "..." in word), default=0
    )
    batch = "".join(spare[:widest])
    full = [
        word.replace("...", batch[widest - rank :] if rank else "")
        for word, rank in zip(words, ranks, strict=True)
    ]
    for word, node in zip(full, nodes, strict=True):
        if len(word) != node.rank:
            raise ShapeError(
                f"einsum {equation!r}: {word!r} does not label {node.rank} axes", location=here()
            )
    if not arrow:
        seen = "".join(full)
        result = batch + "".join(
            sorted(label for label in set(seen) if seen.count(label) == 1 and label not in batch)
        )
    return full, result.replace("...", batch)


def _diagonals(word: str, node: Node) -> tuple[str, Node]:
    """A label that an operand has twice takes its diagonal."""
    session = current()
    while len(set(word)) < len(word):
        label = next(label for label in word if word.count(label) > 1)
        first = word.index(label)
        second = word.index(label, first + 1)
        node = session.apply("diagonal", node, offset=0, axes=(first, second))
        word = word[:first] + word[first + 1 : second] + word[second + 1 :] + label
    return word, node


def _pair(word: str, left: Node, other: str, right: Node, needed: set[str]) -> tuple[str, Node]:
    word, left = _drop_single(word, left, other, right)
    other, right = _drop_single(other, right, word, left)
    result = "".join(label for label in dict.fromkeys(word + other) if label in needed)
    return result, contract(f"{word},{other}->{result}", left, right)


def _drop_single(word: str, node: Node, other: str, right: Node) -> tuple[str, Node]:
    """Axes of size 1 that meet longer ones broadcast: they are left out."""
    sizes = dict(zip(other, right.shape, strict=True))
    kept = [
        axis for axis, label in enumerate(word)
        if not (node.shape[axis] == 1 and sizes.get(label, 1) != 1)
    ]  # fmt: skip
    if len(kept) == len(word):
        return word, node
    shape = tuple(node.shape[axis] for axis in kept)
    return "".join(word[axis] for axis in kept), current().reshape(node, shape)


def _arranged(word: str, node: Node, result: str) -> Node:
    """Sum the labels that the result lacks, and put the rest in its order."""
    session = current()
    axes = tuple(axis for axis, label in enumerate(word) if label not in result)
    if axes:
        node = session.apply("sum", node, axes=axes)
        word = "".join(label for label in word if label in result)
    if sorted(word) != sorted(result):
        raise ShapeError(f"einsum: the result {result!r} has unknown labels", location=here())
    return permute(session, node, tuple(word.index(label) for label in result))
