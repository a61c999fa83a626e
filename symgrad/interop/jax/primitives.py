"""What most of JAX's primitives are here: functions of elements, movement, reductions, products.

In: an ``Equation``.  Out: the node of its result.  Fills ``RULES``.
"""

from __future__ import annotations

import operator
import string
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.frontend.functions import linalg
from symgrad.frontend.functions.arithmetic import power
from symgrad.frontend.history import DETACHED, detached
from symgrad.frontend.session import Session
from symgrad.frontend.tensor import fresh
from symgrad.frontend.views import concatenate, permute
from symgrad.frontend.windows import part
from symgrad.interop.jax.equations import Equation, note_cut, rule
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, int64
from symgrad.ir.graph import Node

# -- functions of elements

_SAME = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "digamma",
    "erf", "erfc", "exp", "exp2", "expm1", "floor", "lgamma", "log", "log1p", "rsqrt", "sin",
    "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
_NAMED = {"logistic": "sigmoid", "erf_inv": "erfinv"}
_NUMBERS = {"add": "add", "add_any": "add", "sub": "sub", "mul": "mul", "neg": "neg", "abs": "abs",
            "sign": "sign", "max": "maximum", "min": "minimum", "square": "square",
            "rem": "fmod"}  # fmt: skip
_NEUTRAL = {"add": 0, "mul": 1}
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
_LOGIC = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor", "not": "logical_not"}


def elementwise(equation: Equation, op: str) -> Node:
    """An op of elements; JAX leaves numbers without axes as they are."""
    return equation.session.apply(op, *map(equation.full, equation.args))


@rule(*_SAME, *_NAMED)
def _function(equation: Equation) -> Node:
    if not equation.dtype.is_float:
        raise equation.refused("for integers")
    return elementwise(equation, _NAMED.get(equation.name, equation.name))


@rule(*_NUMBERS)
def _arithmetic(equation: Equation) -> Node:
    op = _NUMBERS[equation.name]
    if op in _NEUTRAL and equation.dtype.is_integer:
        for one, other in (equation.args, equation.args[::-1]):
            if known_number(one) == _NEUTRAL[op]:  # as jax.numpy.arange has it
                return equation.full(other)
    if equation.dtype != bool_:
        return elementwise(equation, op)
    if op in ("maximum", "minimum", "add", "mul"):
        return elementwise(equation, "logical_or" if op in ("maximum", "add") else "logical_and")
    raise equation.refused("for truth values")


@rule("div")
def _div(equation: Equation) -> Node:
    if equation.dtype.is_float:
        return elementwise(equation, "div")
    left, right = map(equation.full, equation.args)
    rest = equation.session.apply("fmod", left, right)
    return equation.session.apply("floordiv", equation.session.apply("sub", left, rest), right)


@rule("pow")
def _pow(equation: Equation) -> Node:
    base, exponent = equation.args
    kind = equation.dtype
    number = known_number(exponent)
    if number is not None:
        return equation.full(power(fresh(base), number).node)
    cast = equation.session.cast
    return equation.session.apply(
        "pow", cast(equation.full(base), kind), cast(equation.full(exponent), kind)
    )


_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def known_size(node: Node) -> Dim | None:
    """The size that a node is everywhere; None where it is none, or may be more than a size."""
    while node.op in ("expand", "reshape", "cast"):
        node = node.args[0]
    if node.op == "size":
        found: Dim = Dim.of(node.attributes["dim"])
        return found
    if node.op == "constant":
        number = node.attributes["value"].value
        whole = isinstance(number, (int, float)) and number == number // 1
        return Dim.of(int(number)) if whole else None
    if node.op in _WHOLE:
        sides = [known_size(one) for one in node.args]
        if sides[0] is not None and sides[1] is not None:
            return _WHOLE[node.op](sides[0], sides[1])
    return None


_WHOLE: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
}  # fmt: skip


def known_number(node: Node) -> Any:
    """The number that a node is everywhere; None where it is none."""
    while node.op in ("expand", "reshape", "cast"):
        node = node.args[0]
    return node.attributes["value"].value if node.op == "constant" else None


@rule("integer_pow")
def _integer_pow(equation: Equation) -> Node:
    (base,) = equation.args
    exponent = equation.params["y"]
    if not exponent:
        return equation.full(equation.session.constant(1, equation.dtype))
    return power(fresh(base), exponent).node


@rule("cbrt")
def _cbrt(equation: Equation) -> Node:
    (x,) = equation.args
    magnitude = power(fresh(equation.session.apply("abs", x)), 1 / 3).node
    return equation.session.apply("mul", equation.session.apply("sign", x), magnitude)


@rule(*_COMPARED)
def _comparison(equation: Equation) -> Node:
    shape, session = equation.shape, equation.session
    sides = [session.expand(one, shape) for one in equation.args]
    if sides[0].dtype == bool_:
        if equation.name not in ("eq", "ne"):
            raise equation.refused("for truth values")
        found = session.apply("logical_xor", *sides)
        return found if equation.name == "ne" else session.apply("logical_not", found)
    extents = [known_size(one) for one in sides]
    if extents[0] is not None and extents[1] is not None:
        answer = session.truth(extents[0], _RELATIONS[equation.name], extents[1])
        return equation.full(session.constant(answer, bool_))
    return session.apply(equation.name, *sides)


@rule(*_LOGIC)
def _logic(equation: Equation) -> Node:
    if equation.dtype != bool_:
        raise equation.refused("for integers")
    return elementwise(equation, _LOGIC[equation.name])


@rule("is_finite")
def _is_finite(equation: Equation) -> Node:
    return fresh(equation.args[0]).isfinite().node  # type: ignore[no-any-return]


@rule("round")
def _round(equation: Equation) -> Node:
    (x,), session = equation.args, equation.session
    if int(equation.params["rounding_method"]) == 1:  # to the even one
        return session.apply("round", x)
    half = session.expand(session.constant(0.5, x.dtype), x.shape)
    magnitude = session.apply("floor", session.apply("add", session.apply("abs", x), half))
    return session.apply("mul", session.apply("sign", x), magnitude)


@rule("select_n")
def _select(equation: Equation) -> Node:
    which, *cases = equation.args
    session = equation.session
    number = known_number(which)
    if number is not None:
        return equation.full(cases[int(number)])
    found = cases[0]
    for number, case in enumerate(cases[1:], 1):
        chosen = which
        if which.dtype != bool_:
            wanted = session.expand(session.constant(number, which.dtype), which.shape)
            chosen = session.apply("eq", which, wanted)
        found = session.apply(
            "where", equation.full(chosen), equation.full(case), equation.full(found)
        )
    return found


@rule("clamp")
def _clamp(equation: Equation) -> Node:
    low, x, high = map(equation.full, equation.args)
    return equation.session.apply("minimum", equation.session.apply("maximum", x, low), high)


@rule("convert_element_type")
def _convert(equation: Equation) -> Node:
    return equation.session.cast(equation.args[0], equation.dtype)


@rule("copy", "copy_p", "optimization_barrier", "device_put", "sharding_constraint")
def _identity(equation: Equation) -> Sequence[Node]:
    return equation.args


@rule("stop_gradient")
def _stop_gradient(equation: Equation) -> Sequence[Node]:
    note_cut(equation)
    if not equation.session.cuts:
        return equation.args
    return [detached(equation.session, one, DETACHED) for one in equation.args]


@rule("dim_as_value")
def _size(equation: Equation) -> Node:
    return equation.session.size(sizes().ours(equation.params["dim"]), equation.dtype)


# -- movement


@rule("broadcast_in_dim")
def _broadcast(equation: Equation) -> Node:
    node, kept = equation.args[0], equation.params["broadcast_dimensions"]
    lined = [Dim.of(1)] * len(equation.shape)
    for axis, place in enumerate(kept):
        lined[place] = node.shape[axis]
    return equation.full(equation.session.reshape(node, lined))


@rule("reshape", "squeeze", "expand_dims")
def _reshape(equation: Equation) -> Node:
    node, order = equation.args[0], equation.params.get("dimensions")
    if equation.name == "reshape" and order is not None:
        node = permute(equation.session, node, tuple(order))
    return equation.session.reshape(node, equation.shape)


@rule("transpose")
def _transpose(equation: Equation) -> Node:
    return permute(equation.session, equation.args[0], tuple(equation.params["permutation"]))


@rule("rev")
def _rev(equation: Equation) -> Node:
    (node,) = equation.args
    turned = equation.params["dimensions"]
    starts = tuple(
        size - 1 if axis in turned else Dim.of(0) for axis, size in enumerate(node.shape)
    )
    steps = tuple(-1 if axis in turned else 1 for axis in range(node.rank))
    return equation.session.apply("slice", node, starts=starts, steps=steps, sizes=node.shape)


@rule("slice")
def _slice(equation: Equation) -> Node:
    (node,) = equation.args
    starts = sizes().shape(equation.params["start_indices"])
    steps = tuple(equation.params["strides"] or (1,) * node.rank)
    return part(equation.session, node, starts, equation.shape, steps)


@rule("pad")
def _pad(equation: Equation) -> Node:
    node, value = equation.args
    session, known = equation.session, sizes()
    edges = [tuple(map(known.ours, one)) for one in equation.params["padding_config"]]
    starts, shape = [], []
    for (low, high, _), size in zip(edges, node.shape, strict=True):
        if low.constant is None or high.constant is None:
            raise equation.refused("by symbolic sizes")
        starts.append(Dim.of(max(-low.constant, 0)))
        shape.append(size - starts[-1] - max(-high.constant, 0))
    if any(one[2] != 0 for one in edges) and any(one != 0 for one in starts):
        raise equation.refused("between elements and by less than nothing at once")
    node = part(session, node, starts, shape)
    steps = tuple((edge[2].constant or 0) + 1 for edge in edges)
    offsets = tuple(Dim.of(max(edge[0].constant or 0, 0)) for edge in edges)
    spread: dict[str, Any] = {"shape": equation.shape, "starts": offsets, "steps": steps}
    if node.shape == equation.shape:
        return node
    if known_number(value) == 0:
        return session.apply("unslice", node, **spread)
    marks = session.expand(session.constant(True, bool_), node.shape)
    hit = session.apply("unslice", marks, **spread)
    return session.apply(
        "where", hit, session.apply("unslice", node, **spread), equation.full(value)
    )


@rule("concatenate")
def _concatenate(equation: Equation) -> Node:
    axis = equation.params["dimension"]
    pieces = [one for one in equation.args if one.shape[axis] != 0] or list(equation.args[:1])
    return concatenate(equation.session, pieces, axis)


@rule("stack")
def _stack(equation: Equation) -> Node:
    axis = equation.params.get("axis", equation.params.get("dimension", 0))
    shape = [*equation.args[0].shape]
    shape.insert(axis, Dim.of(1))
    pieces = [equation.session.reshape(one, shape) for one in equation.args]
    return concatenate(equation.session, pieces, axis)


@rule("tile")
def _tile(equation: Equation) -> Node:
    (node,), session = equation.args, equation.session
    times = sizes().shape(equation.params["reps"])
    whole = [*(Dim.of(1) for _ in times[node.rank :]), *node.shape]
    lined = [part for size in whole for part in (Dim.of(1), size)]
    wide = [part for count, size in zip(times, whole, strict=True) for part in (count, size)]
    return session.reshape(session.expand(session.reshape(node, lined), wide), equation.shape)


@rule("split")
def _split(equation: Equation) -> Sequence[Node]:
    (node,), axis = equation.args, equation.params["axis"]
    found, start = [], Dim.of(0)
    for shape in equation.shapes:
        starts = [start if one == axis else Dim.of(0) for one in range(node.rank)]
        found.append(part(equation.session, node, starts, shape))
        start = start + shape[axis]
    return found


@rule("iota")
def _iota(equation: Equation) -> Node:
    session, shape, axis = equation.session, equation.shape, equation.params["dimension"]
    ramp = session.cast(session.apply("iota", length=shape[axis]), equation.dtype)
    lined = [size if one == axis else Dim.of(1) for one, size in enumerate(shape)]
    return equation.full(session.reshape(ramp, lined))


# -- reductions, scans, order

_REDUCED = {"reduce_sum": "sum", "reduce_prod": "prod", "reduce_max": "amax",
            "reduce_min": "amin", "reduce_and": "all", "reduce_or": "any"}  # fmt: skip


@rule(*_REDUCED)
def _reduce(equation: Equation) -> Node:
    axes, op = tuple(equation.params["axes"]), _REDUCED[equation.name]
    (node,) = equation.args
    if not axes:
        return node
    if node.dtype == bool_ and op in ("amax", "amin"):
        op = "any" if op == "amax" else "all"
    if (node.dtype == bool_) != (op in ("all", "any")):
        raise equation.refused(f"for {node.dtype}")
    return equation.session.apply(op, node, axes=axes)


@rule("argmax", "argmin")
def _position(equation: Equation) -> Node:
    (node,) = equation.args
    found = equation.session.apply(equation.name, node, axes=tuple(equation.params["axes"]))
    return equation.session.cast(found, equation.dtype)


@rule("cumsum", "cumprod")
def _scan(equation: Equation) -> Node:
    axis, reverse = equation.params["axis"], equation.params["reverse"]
    return equation.session.apply(equation.name, equation.args[0], axis=axis, reverse=reverse)


@rule("sort")
def _sort(equation: Equation) -> Sequence[Node]:
    axis = equation.params["dimension"]
    if equation.params["num_keys"] != 1:
        raise equation.refused("with several keys")
    return reordered(equation, axis, equation.args)


def reordered(
    equation: Equation, axis: int, nodes: Sequence[Node], *, descending: bool = False
) -> list[Node]:
    """Nodes with the elements of an axis in the order that sorts the first of them."""
    session, first = equation.session, nodes[0]
    with session.building() as graph:
        ranks = graph.apply("rank", first, axis=axis, descending=descending)
        places = [
            ranks if one == axis else ramp(session, first.shape, one)
            for one in range(first.rank)
        ]  # fmt: skip
        return [graph.apply("index_add", one, *places, shape=first.shape) for one in nodes]


def ramp(session: Session, shape: Sequence[Dim], axis: int) -> Node:
    """The index along an axis, in a shape."""
    line = session.apply("iota", length=shape[axis])
    lined = [size if one == axis else Dim.of(1) for one, size in enumerate(shape)]
    return session.expand(session.reshape(line, lined), shape)


@rule("top_k")
def _top_k(equation: Equation) -> Sequence[Node]:
    (node,), axis = equation.args, equation.args[0].rank - 1
    if equation.params.get("axis", axis) not in (axis, -1):
        raise equation.refused("along another axis than the last one")
    places = ramp(equation.session, node.shape, axis)
    found = reordered(equation, axis, (node, places), descending=True)
    starts = [Dim.of(0)] * node.rank
    return [part(equation.session, one, starts, equation.shapes[0]) for one in found]


# -- products


@rule("dot_general")
def _dot_general(equation: Equation) -> Node:
    (left_summed, right_summed), (left_batch, right_batch) = equation.params["dimension_numbers"]
    left, right = equation.args
    names = iter(string.ascii_letters)
    words: list[dict[int, str]] = [{}, {}]
    for own, other in (*zip(left_batch, right_batch, strict=True),
                       *zip(left_summed, right_summed, strict=True)):  # fmt: skip
        words[0][own] = words[1][other] = next(names)
    for word, node in zip(words, (left, right), strict=True):
        word.update({axis: next(names) for axis in range(node.rank) if axis not in word})
    texts = ["".join(word[axis] for axis in range(len(word))) for word in words]
    summed = {words[0][axis] for axis in left_summed}
    batch = [words[0][axis] for axis in left_batch]
    rest = [name for text in texts for name in text if name not in summed and name not in batch]
    spec = f"{texts[0]},{texts[1]}->{''.join((*batch, *rest))}"
    session = equation.session
    if left.dtype != right.dtype:
        raise equation.refused(f"for {left.dtype} and {right.dtype}")
    if left.dtype.is_float:
        return session.cast(session.apply("einsum", left, right, spec=spec), equation.dtype)
    return _summed_product(equation, texts, "".join((*batch, *rest)), sorted(summed))


def _summed_product(
    equation: Equation, texts: Sequence[str], kept: str, summed: Sequence[str]
) -> Node:
    """The product of integers or truth values, multiplied out."""
    session, whole = equation.session, f"{kept}{''.join(summed)}"
    extents = {
        name: size for text, node in zip(texts, equation.args, strict=True)
        for name, size in zip(text, node.shape, strict=True)
    }  # fmt: skip
    shape = tuple(extents[name] for name in whole)
    factors = []
    for text, node in zip(texts, equation.args, strict=True):
        order = sorted(range(node.rank), key=lambda axis: whole.index(text[axis]))
        lined = [extents[name] if name in text else Dim.of(1) for name in whole]
        moved = permute(session, session.cast(node, int64), tuple(order))
        factors.append(session.expand(session.reshape(moved, lined), shape))
    axes = tuple(range(len(kept), len(whole)))
    product = session.apply("mul", *factors)
    return session.cast(
        session.apply("sum", product, axes=axes) if axes else product, equation.dtype
    )


# -- matrices


@rule("cholesky")
def _cholesky(equation: Equation) -> Node:
    return linalg.cholesky(fresh(equation.args[0])).node


@rule("triangular_solve")
def _triangular_solve(equation: Equation) -> Node:
    matrix, right = equation.args
    session, params = equation.session, equation.params
    if params["unit_diagonal"]:
        raise equation.refused("with a unit diagonal")
    upper = not params["lower"]
    if params["transpose_a"]:
        matrix, upper = _turned(session, matrix), not upper
    if params["left_side"]:
        return session.apply("solve_triangular", matrix, right, upper=upper)
    sides = _turned(session, matrix), _turned(session, right)
    return _turned(session, session.apply("solve_triangular", *sides, upper=not upper))


@rule("eigh")
def _eigh(equation: Equation) -> Sequence[Node]:
    """JAX returns the eigenvectors first."""
    if equation.params.get("subset_by_index") is not None:
        raise equation.refused("for some eigenvalues alone")
    if not equation.params.get("sort_eigenvalues", True):
        raise equation.refused("without an order of the eigenvalues")
    side = "L" if equation.params["lower"] else "U"
    found = linalg.eigh(fresh(equation.args[0]), side)
    return found.eigenvectors.node, found.eigenvalues.node


@rule("svd")
def _svd(equation: Equation) -> Sequence[Node]:
    """JAX returns the singular values first, and alone where no vectors are asked for."""
    params, matrix = equation.params, fresh(equation.args[0])
    if params.get("subset_by_index") is not None:
        raise equation.refused("for some singular values alone")
    if equation.shapes[0][-1] not in matrix.node.shape[-2:]:
        raise equation.refused(
            'of matrices whose shorter side is not known (write "n n", or "n+k n")'
        )
    if not params["compute_uv"]:
        return (linalg.svdvals(matrix).node,)
    left, values, right = linalg.linalg_svd(matrix, full_matrices=params["full_matrices"])
    return values.node, left.node, right.node


@rule("qr")
def _qr(equation: Equation) -> Sequence[Node]:
    raise equation.refused("(write it with jnp.linalg.cholesky of a.T @ a)")


def _turned(session: Session, node: Node) -> Node:
    """Matrices transposed."""
    axes = list(range(node.rank))
    return permute(session, node, (*axes[:-2], axes[-1], axes[-2]))
