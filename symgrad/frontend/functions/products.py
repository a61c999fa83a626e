"""Matrix products and einsum, all by the contraction of two tensors over shared labels."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

from symgrad.errors import DTypeError, ShapeError, counted
from symgrad.frontend.caller import here
from symgrad.frontend.functions.arithmetic import add, mul, sub
from symgrad.frontend.functions.creation import full_like
from symgrad.frontend.functions.joining import stack, unbind
from symgrad.frontend.functions.movement import axis_of
from symgrad.frontend.kinds import is_tensor, refused
from symgrad.frontend.lift import as_tensor, broadcast_shapes
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape
from symgrad.frontend.table import OperationCallError, operation, selecting
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor, fresh
from symgrad.frontend.views import Diagonal, Permute, permute
from symgrad.ir.dtype import promote
from symgrad.ir.graph import Node

Tensor = SymbolicTensor
BATCH = "abcdefgh"


def contract(spec: str, left: Node, right: Node) -> Node:
    """``einsum`` of two nodes of one float dtype.  Raises ShapeError that names the sizes."""
    if left.dtype != right.dtype:
        raise DTypeError(
            f"{left.dtype} cannot be multiplied with {right.dtype} here", location=here(),
            hint=f"convert one of them: .to(sg.{promote(left.dtype, right.dtype)})",
        )  # fmt: skip
    words, _ = spec.split("->")
    sizes: dict[str, Any] = {}
    for word, node in zip(words.split(","), (left, right), strict=True):
        for label, size in zip(word, node.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise _mismatch(left, right, sizes[label], size)
    return current().apply("einsum", left, right, spec=spec)


def _mismatch(left: Node, right: Node, one: Any, other: Any) -> ShapeError:
    shapes = f"{list(Shape.of(left.shape))} and {list(Shape.of(right.shape))}"
    symbolic = one.constant is None or other.constant is None
    return ShapeError(
        f"shapes {shapes} cannot be multiplied: {one} meets {other}", location=here(),
        hint=f"if {one} and {other} are always equal, write one name for both" if symbolic else "",
        equal=[(one, other)],
    )  # fmt: skip


@operation("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices; vectors are rows on the left, columns on the right; batches too."""
    if isinstance(input, SelectedTensor) or isinstance(other, SelectedTensor):
        return _of_selected_matrices(as_tensor(input), as_tensor(other))
    left, right = as_tensor(input).node, as_tensor(other).node
    if not left.rank or not right.rank:
        raise ShapeError("matmul takes tensors with axes; use * for numbers", location=here())
    left_core, right_core = "ik"[-min(left.rank, 2) :], "kj"[: min(right.rank, 2)]
    batch = max(left.rank, right.rank) - 2
    if batch <= 0:
        result = left_core.replace("k", "") + right_core.replace("k", "")
        return fresh(contract(f"{left_core},{right_core}->{result}", left, right), settled=True)
    return _batched(left, right, left_core, right_core)


def _of_selected_matrices(left: Tensor, right: Tensor) -> Tensor:
    """``matmul``; batches are those of one operand, or the same."""
    ranks = left.ndim, right.ndim
    batch = BATCH[: max(*ranks, 2) - 2]
    words = [
        ("" if rank <= 2 else batch) + core
        for rank, core in zip(ranks, ("ik"[-min(ranks[0], 2) :], "kj"[: min(ranks[1], 2)]),
                              strict=True)
    ]  # fmt: skip
    result = batch + "".join(label for word in words for label in word if label in "ij")
    return contracted(f"{words[0]},{words[1]}->{result}", left, right)


def contracted(spec: str, left: Tensor, right: Tensor) -> Tensor:
    """``contract``, also of what a mask selects: its elements are one axis, which both may have.

    Raises UnsupportedOpError where their number would have to be that of an axis, or where there
    would be two such axes.
    """
    words, result = spec.split("->")
    parts = list(zip(words.split(","), (left, right), strict=True))
    labels = []
    for word, one in parts:
        if len(word) != one.ndim:
            raise ShapeError(f"einsum {spec!r}: {word!r} does not label {one.ndim} axes",
                             location=here())  # fmt: skip
        labels.append(word[one.start] if isinstance(one, SelectedTensor) else "")
    first = next((one for _, one in parts if isinstance(one, SelectedTensor)), None)
    if first is None:
        return fresh(contract(spec, left.node, right.node), settled=True)
    own = max(labels)
    masks = [one.mask for _, one in parts if isinstance(one, SelectedTensor)]
    if masks[0] is not masks[-1] or words.count(own) != len(masks):
        raise first.unshaped()
    spare = [letter for letter in string.ascii_letters if letter not in spec]
    written = spec.replace(own, "".join(spare[: first.mask.rank]))
    nodes = [
        one.node if not isinstance(one, SelectedTensor)
        else one.whole if own in result else one.or_else(0)
        for _, one in parts
    ]  # fmt: skip
    found = contract(written, *nodes)
    return SelectedTensor(found, first.mask, result.index(own)) if own in result else fresh(found)


def _batched(left: Node, right: Node, left_core: str, right_core: str) -> Tensor:
    """Batch axes of size 1 are left out of the operand that has them, so nothing is copied."""
    session = current()
    shapes = left.shape[: left.rank - len(left_core)], right.shape[: right.rank - len(right_core)]
    batch = broadcast_shapes(*shapes)
    labels = BATCH[: len(batch)]
    words = []
    nodes = []
    for node, core, shape in zip((left, right), (left_core, right_core), shapes, strict=True):
        own = labels[len(labels) - len(shape) :]
        kept = [
            (label, size) for label, size, wide in zip(own, shape, batch[-len(shape) :] if shape
                                                       else (), strict=True)
            if not (size == 1 and wide != 1)
        ]  # fmt: skip
        words.append("".join(label for label, _ in kept) + core)
        core_shape = node.shape[node.rank - len(core) :]
        nodes.append(session.reshape(node, (*(size for _, size in kept), *core_shape)))
    rest = left_core.replace("k", "") + right_core.replace("k", "")
    return fresh(contract(f"{words[0]},{words[1]}->{labels}{rest}", *nodes))


def _operator(self: Any, other: Any) -> Any:
    return matmul(self, other)


def _reflected(self: Any, other: Any) -> Any:
    return matmul(other, self)


setattr(SymbolicTensor, "__matmul__", selecting("matmul", _operator))  # noqa: B010
setattr(SymbolicTensor, "__rmatmul__", selecting("matmul", _reflected))  # noqa: B010


def _of_ranks(name: str, spec: str, *operands: Any) -> Tensor:
    given = [as_tensor(operand) for operand in operands]
    words, _ = spec.split("->")
    if any(isinstance(one, SelectedTensor) for one in given):
        return contracted(spec, *given)
    nodes = [one.node for one in given]
    for word, node in zip(words.split(","), nodes, strict=True):
        if len(word) != node.rank:
            raise ShapeError(
                f"{name} takes a tensor of {len(word)} axes, not {node.rank}", location=here(),
                hint="matmul (@) takes any number of axes",
            )  # fmt: skip
    return fresh(contract(spec, *nodes), settled=True)


@operation("mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    return _of_ranks("mm", "ik,kj->ij", input, mat2)


@operation("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices."""
    return _of_ranks("bmm", "bik,bkj->bij", input, mat2)


@operation("mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    return _of_ranks("mv", "ik,k->i", input, vec)


@operation("dot", "vdot")
def dot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two vectors."""
    return _of_ranks("dot", "k,k->", input, other)


@operation("outer", "ger")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of the elements of two vectors."""
    return _of_ranks("outer", "i,j->ij", input, vec2)


@operation("inner")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last axes of both."""
    left, right = as_tensor(input), as_tensor(other)
    if not left.ndim or not right.ndim:
        return mul(left, right)
    first = "abcdefgh"[: left.ndim - 1]
    second = "ijlmnopq"[: right.ndim - 1]
    return fresh(contract(f"{first}k,{second}k->{first}{second}", left.node, right.node))


@operation("tensordot")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Products summed over several axes: the last of one with the first of the other, or given."""
    left, right = as_tensor(a), as_tensor(b)
    if not isinstance(dims, (int, tuple, list)):
        raise OperationCallError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}", location=here(),
        )  # fmt: skip
    if not isinstance(dims, int) and not all(isinstance(one, (tuple, list)) for one in dims):
        raise refused("tensordot", "dims", "tuple of ints", dims[0])
    if isinstance(dims, int):
        if dims < 0:
            raise OperationCallError(
                f"tensordot expects dims >= 0, but got dims={dims}", location=here()
            )
        dims = (list(range(left.ndim - dims, left.ndim)), list(range(dims)))
    first = [chr(ord("a") + axis) for axis in range(left.ndim)]
    second = [chr(ord("n") + axis) for axis in range(right.ndim)]
    for one, other in zip(*(_several(group) for group in dims), strict=True):
        second[other % right.ndim] = first[one % left.ndim]
    shared = set(first) & set(second)
    result = "".join(label for label in (*first, *second) if label not in shared)
    return fresh(contract(f"{''.join(first)},{''.join(second)}->{result}", left.node, right.node))


def _several(group: Any) -> list[int]:
    return list(group) if isinstance(group, (tuple, list)) else [group]


def _scaled_sum(name: str, multiply: Callable[[Any, Any], Tensor]) -> None:
    def call(input: Tensor, *operands: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
        *scales, left, right = operands  # old programs give beta, or beta and alpha, first
        if scales:
            beta = scales[0]
            alpha = scales[1] if len(scales) > 1 else alpha
        return _affine(input, multiply(left, right), beta, alpha)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``beta * input + alpha * {multiply.__name__}(x, y)``."
    operation(name, inplace=True)(call)


def _affine(input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    scaled = product if isinstance(alpha, (int, float)) and alpha == 1 else mul(product, alpha)
    if isinstance(beta, (int, float)) and beta == 0:
        return add(full_like(input, 0), scaled)  # whatever stands in input, NaN included
    plain = isinstance(beta, (int, float)) and beta == 1
    return add(input if plain else mul(input, beta), scaled)


for _name, _multiply in (("addmm", mm), ("baddbmm", bmm), ("addmv", mv), ("addr", outer)):
    _scaled_sum(_name, _multiply)


@operation("cross")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along an axis of size 3: the first such one where none is named."""
    left, right = as_tensor(input), as_tensor(other)
    if left.ndim != right.ndim:
        raise ShapeError("cross takes two tensors of as many axes", location=here())
    if dim is None:
        dim = next((axis for axis, size in enumerate(left.shape) if size == 3), -1)
    axis = axis_of(dim, left.ndim)
    if left.shape[axis] != 3 or right.shape[axis] != 3:
        raise ShapeError("cross takes an axis of size 3", location=here())
    a, b = unbind(left, axis), unbind(right, axis)
    pairs = ((1, 2), (2, 0), (0, 1))
    return stack([sub(mul(a[i], b[j]), mul(a[j], b[i])) for i, j in pairs], axis)


@operation("kron")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Each element of one tensor times the whole other, side by side."""
    left, right = as_tensor(input), as_tensor(other)
    rank = max(left.ndim, right.ndim)
    shapes = [(*[1] * (rank - x.ndim), *x.shape) for x in (left, right)]
    wide = left.reshape(*(part for size in shapes[0] for part in (size, 1)))
    fine = right.reshape(*(part for size in shapes[1] for part in (1, size)))
    result: Tensor = mul(wide, fine).reshape(*(a * b for a, b in zip(*shapes, strict=True)))
    return result


# -- einsum
#
# Operands are contracted two at a time, from the left; a label that no later operand has is summed
# as soon as it can be.


@operation("einsum", method=False)
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products: ``einsum("bij,bjk->bik", x, y)``."""
    given = (
        operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    )
    for operand in given:
        if not is_tensor(operand):
            raise refused("einsum", "operands", "Tensor", operand)
    if any(isinstance(operand, SelectedTensor) for operand in given) and _is_pair(equation):
        return contracted(_written_out(equation), *given)
    nodes = [as_tensor(operand).node for operand in given]
    words, result = _parse(equation, nodes)
    if len(nodes) == 1 and set(words[0]) == set(result):
        return _view(words[0], as_tensor(given[0]), result)
    terms = [_diagonals(word, node) for word, node in zip(words, nodes, strict=True)]
    word, node = terms[0]
    for position, (other, right) in enumerate(terms[1:], 1):
        needed = set(result).union(*(word for word, _ in terms[position + 1 :]))
        word, node = _pair(word, node, other, right, needed)
    return fresh(_arranged(word, node, result))


def _is_pair(equation: str) -> bool:
    """Has it two operands, each with different labels?"""
    words = equation.replace(" ", "").partition("->")[0].split(",")
    alone = all(len(set(word)) == len(word) for word in words)
    return len(words) == 2 and alone and "." not in equation


def _written_out(equation: str) -> str:
    """The equation with its result."""
    words, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow:
        found = words.replace(",", "")
        result = "".join(sorted(label for label in set(found) if found.count(label) == 1))
    return f"{words}->{result}"


def _parse(equation: str, nodes: list[Node]) -> tuple[list[str], str]:
    """The labels of the operands and of the result, ellipses written out."""
    text = equation.replace(" ", "")
    left, arrow, result = text.partition("->")
    words = left.split(",")
    if len(words) != len(nodes):
        raise ShapeError(
            f"einsum {equation!r}: {counted(len(nodes), 'operand')} given, {len(words)} expected",
            location=here(),
        )
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


def _view(word: str, source: Tensor, result: str) -> Tensor:
    """An operand of which nothing is summed, in the order of the result, and in its own memory."""
    word, steps = _diagonal_steps(word)
    order = _order(word, result)
    return source.shared(*steps, Permute(order))


def _diagonals(word: str, node: Node) -> tuple[str, Node]:
    """A label that an operand has twice takes its diagonal."""
    word, steps = _diagonal_steps(word)
    for step in steps:
        node = step.read(current(), node)
    return word, node


def _diagonal_steps(word: str) -> tuple[str, list[Diagonal]]:
    """The labels, each once, and the diagonals that are taken of those that are there twice."""
    steps = []
    while len(set(word)) < len(word):
        label = next(label for label in word if word.count(label) > 1)
        first = word.index(label)
        second = word.index(label, first + 1)
        steps.append(Diagonal(0, (first, second)))
        word = word[:first] + word[first + 1 : second] + word[second + 1 :] + label
    return word, steps


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
    return permute(session, node, _order(word, result))


def _order(word: str, result: str) -> tuple[int, ...]:
    """The axes in the order of the result.  Raises ShapeError."""
    if sorted(word) != sorted(result):
        raise ShapeError(f"einsum: the result {result!r} has unknown labels", location=here())
    return tuple(word.index(label) for label in result)
