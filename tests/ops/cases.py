"""Arbitrary uses of each op of the registry: arguments, attributes, data.

In: the name of an op.  Out: a hypothesis strategy of ``Case``.  There is one generator a kind;
what an attribute may be is said once, by the attribute's name and, for movement, by the op's.
A new elementwise op or reduction needs nothing here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Any

import numpy as np
import sympy
from hypothesis import settings
from hypothesis import strategies as st

from symgrad.errors import DTypeError, ShapeError
from symgrad.ir import dtype as dtypes
from symgrad.ir.dim import Dim, product
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Graph, Node
from symgrad.ir.registry import names
from symgrad.ir.types import TensorType
from symgrad.ops.record import Op, get
from symgrad.ops.spectral import VALUES, VECTORS

Array = np.ndarray[Any, Any]
Uses = tuple[list[TensorType], dict[str, Any]]

OPS = [name for name in names() if get(name).kind not in ("source", "marker")]
ELEMENTWISE = [name for name in OPS if get(name).kind == "elementwise"]
FLOATS = (dtypes.float32, dtypes.float64)
SYMBOLS = ("n", "m", "k")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 3.0, np.inf, -np.inf, np.nan)
_DIMS = (*map(Dim.size, SYMBOLS), Dim.of(1), Dim.of(2), Dim.of(3))
MARGIN = 0.05
"""How far from kinks and the ends of domains ordinary data stays."""


@dataclass(frozen=True)
class Case:
    """One use of an op: ``node`` is its result, ``args`` are inputs whose arrays are ``feeds``."""

    node: Node
    feeds: Mapping[str, Array]
    sizes: Mapping[str, int]
    seed: int = 0

    def source(self) -> np.random.Generator:
        """Of what a test draws besides: the same for the same use."""
        return np.random.default_rng((self.seed, 1))

    @property
    def args(self) -> tuple[Node, ...]:
        return self.node.args

    @property
    def arrays(self) -> list[Array]:
        return [self.feeds[arg.attributes["name"]] for arg in self.args]

    def numpy(self) -> Array:
        return self.call(self.arrays)

    def call(self, arrays: Sequence[Array]) -> Array:
        """The op's NumPy meaning on other arrays of these shapes."""
        return get(self.node.op).numpy(*arrays, size=self.size, **self.node.attributes)

    def size(self, dim: Any) -> int:
        return Dim.of(dim).at(self.sizes)

    def __repr__(self) -> str:
        return f"Case({self.node!r}, {dict(self.node.attrs)}, {dict(self.feeds)}, {self.sizes})"


def use(
    name: str,
    seed: int,
    *,
    floats: bool = False,
    special: bool = False,
    double: bool = False,
    least: int = 0,
) -> Case:
    """A use of the op ``name``, drawn from ``seed``.

    ``floats``: of float dtype only (``double``: f64); ``special``: with infinities, NaN, zeros
    and ties, else inside the domain and off the kinks; ``least``: of the symbolic sizes.
    """
    draw = Random(seed)
    sizes = {symbol: draw.choice(range(least, 5)) for symbol in SYMBOLS}
    wanted = (dtypes.float64,) if double else FLOATS if floats else dtypes.ALL
    types, attrs = _uses(draw, get(name), sizes, wanted)
    graph = Graph()
    args = [graph.input(f"x{i}", type) for i, type in enumerate(types)]
    node = graph.apply(name, *args, **attrs)
    arrays = _data(np.random.default_rng(seed), get(name), node, sizes, special)
    return Case(node, {f"x{i}": array for i, array in enumerate(arrays)}, sizes, seed)


def cases(name: str, **options: Any) -> st.SearchStrategy[Case]:
    """Uses of the op ``name`` as a strategy; ``options`` are those of ``use``."""
    return st.integers(0, 2**32 - 1).map(lambda seed: use(name, seed, **options))


def for_uses(name: str, **options: Any) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """A test of as many uses of the op as the profile of hypothesis says.

    Hypothesis itself would take most of the time, and could only make the seed smaller: a use is
    small as it is.
    """
    profile = settings()
    random = Random(0) if profile.derandomize else SystemRandom()

    def test(check: Callable[[Case], None]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(profile.max_examples):
                case = use(name, random.getrandbits(32), **options)
                try:
                    check(case)
                except BaseException:
                    print(f"seed {case.seed}: {case}")
                    raise

        return run

    return test


def resized(case: Case, sizes: Mapping[str, int], special: bool) -> Case:
    """The same use of the op, on arrays of other sizes."""
    source = np.random.default_rng(sum(sizes.values()))
    arrays = _data(source, get(case.node.op), case.node, sizes, special)
    return Case(case.node, dict(zip(case.feeds, arrays, strict=True)), sizes)


def differentiable(name: str) -> bool:
    """Does the op have a derivative, and a rule for it?"""
    return get(name).vjp is not None and name != "tetragamma"


# -- shapes and attributes


def _dims(draw: Random, count: int) -> tuple[Dim, ...]:
    return tuple(draw.choices(_DIMS, k=count))


def _shape(draw: Random, least: int = 0, most: int = 3) -> tuple[Dim, ...]:
    return _dims(draw, draw.randint(least, most))


def _uses(draw: Random, op: Op, sizes: Mapping[str, int], wanted: Sequence[DType]) -> Uses:
    if op.name in STRUCTURES:
        dtype = draw.choice([d for d in wanted if _accepts(op.name, d)])
        return STRUCTURES[op.name](draw, dtype, sizes)
    if op.kind == "elementwise":
        signature = draw.choice(signatures(op.name, tuple(wanted)))
        shape = _shape(draw)
        return [TensorType(dtype, shape) for dtype in signature], {}
    assert op.kind == "reduction", f"say in STRUCTURES how {op.name!r} is used"
    dtype = draw.choice([d for d in wanted if _accepts(op.name, d)])
    shape = _shape(draw, least=1)
    axes = tuple(sorted(draw.sample(range(len(shape)), draw.randint(1, len(shape)))))
    one_axis = op.name in ("argmax", "argmin", "max", "min")
    return [TensorType(dtype, shape)], {"axes": axes[:1] if one_axis else axes}


@functools.cache
def signatures(name: str, wanted: tuple[DType, ...]) -> list[tuple[DType, ...]]:
    """The dtypes of the operands that an elementwise op takes."""
    arity = get(name).arity
    assert arity is not None
    found = []
    for dtype in wanted:
        for first in (dtype, dtypes.bool_):
            signature = (first, *[dtype] * (arity - 1))
            try:
                get(name).infer([TensorType(d) for d in signature], {})
            except DTypeError:
                continue
            if signature not in found:
                found.append(signature)
    return found


def _one_axis(dtype: DType) -> Uses:
    return [TensorType.of(dtype, (1,))], {"axes": (0,)}


def _one_matrix(dtype: DType) -> Uses:
    return [TensorType.of(dtype, (1, 1))], {}


_PROBES: dict[str, Callable[[DType], Uses]] = {
    "inverse": _one_matrix, "det": _one_matrix, "logdet": _one_matrix, "cholesky": _one_matrix,
    "eigenvalues": _one_matrix, "eigenvectors": _one_matrix,
    "orthogonal_factor": _one_matrix, "triangular_factor": _one_matrix,
    **dict.fromkeys(
        ("left_vectors", "singular_values", "right_vectors"),
        lambda d: ([TensorType.of(d, (1, 1))], {"count": Dim.of(1)}),
    ),
    "solve_triangular": lambda d: ([TensorType.of(d, (1, 1))] * 2, {"upper": True}),
    "rank": lambda d: ([TensorType.of(d, (1,))], {"axis": 0, "descending": False}),
    "einsum": lambda d: ([TensorType.of(d, (1,))] * 2, {"spec": "i,i->"}),
    "index_add": lambda d: (
        [TensorType.of(d, (1,)), TensorType.of(dtypes.int64, (1,))], {"shape": (1,)}
    ),
    "cumsum": lambda d: ([TensorType.of(d, (1,))], {"axis": 0, "reverse": False}),
    "cumprod": lambda d: ([TensorType.of(d, (1,))], {"axis": 0, "reverse": False}),
}  # fmt: skip


def _accepts(name: str, dtype: DType) -> bool:
    if name in STRUCTURES and name not in _PROBES:
        return True
    probe = _PROBES.get(name, _one_axis)
    try:
        get(name).infer(*probe(dtype))
    except DTypeError:
        return False
    return True


def _cast(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    wanted = FLOATS if dtype.is_float and draw.random() < 0.5 else dtypes.ALL
    return [TensorType(dtype, _shape(draw))], {"dtype": draw.choice(wanted)}


def _expand(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    shape = _shape(draw)
    kept = tuple(Dim.of(1) if draw.random() < 0.5 else size for size in shape)
    return [TensorType(dtype, kept[draw.randint(0, len(kept)) :])], {"shape": shape}


def _reshape(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    """Factors, grouped in two ways."""
    factors = _dims(draw, draw.randint(0, 4))

    def grouped() -> tuple[Dim, ...]:
        shape: list[Dim] = []
        for factor in factors:
            if shape and draw.random() < 0.5:
                shape[-1] = shape[-1] * factor
            else:
                shape.append(factor)
            if draw.randint(0, 5) == 0:
                shape.append(Dim.of(1))
        return tuple(shape)

    return [TensorType(dtype, grouped())], {"shape": grouped()}


def _permute(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    shape = _shape(draw, most=4)
    return [TensorType(dtype, shape)], {"axes": tuple(draw.sample(range(len(shape)), len(shape)))}


def _scan(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    shape = _shape(draw, least=1)
    axis = draw.randint(0, len(shape) - 1)
    return [TensorType(dtype, shape)], {"axis": axis, "reverse": draw.random() < 0.5}


def _parts(draw: Random, part: Sequence[Dim]) -> tuple[Any, Any, tuple[Dim, ...]]:
    """Starts and steps of a part, and a whole that it fits in."""
    starts, steps, whole = [], [], []
    for size in part:
        before, after = draw.randint(0, 2), draw.randint(0, 2)
        step = draw.choice([1, 1, 2, 3, -1, -2])
        covered = size * abs(step)
        starts.append(Dim.of(before) if step > 0 else covered + (before - 1))
        steps.append(step)
        whole.append(covered + before + after)
    return tuple(starts), tuple(steps), tuple(whole)


def _slice(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    part = _shape(draw)
    starts, steps, whole = _parts(draw, part)
    return [TensorType(dtype, whole)], {"starts": starts, "steps": steps, "sizes": part}


def _unslice(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    part = _shape(draw)
    starts, steps, whole = _parts(draw, part)
    return [TensorType(dtype, part)], {"starts": starts, "steps": steps, "shape": whole}


def _concat(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    shape = _shape(draw, least=1)
    axis = draw.randint(0, len(shape) - 1)
    lengths = _dims(draw, draw.randint(1, 3))
    types = [TensorType(dtype, (*shape[:axis], size, *shape[axis + 1 :])) for size in lengths]
    return types, {"axis": axis}


def _diagonal(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    offset = draw.randint(-2, 2)
    rows, columns = _dims(draw, 2)
    shape = [rows + max(-offset, 0), columns + max(offset, 0)]
    if extra := draw.random() < 0.5:
        shape.insert(draw.randint(0, 2), _dims(draw, 1)[0])
    axes = tuple(draw.sample(range(2 + extra), 2))
    shape[axes[0]] = rows + max(-offset, 0)
    shape[axes[1]] = columns + max(offset, 0)
    return [TensorType(dtype, tuple(shape))], {"offset": offset, "axes": axes}


def _places(draw: Random, sizes: Mapping[str, int]) -> tuple[tuple[Dim, ...], tuple[Dim, ...], int]:
    """The shape of the places, the shape that is indexed, how many axes are."""
    whole, where = _shape(draw, least=1), _shape(draw, most=2)
    count = draw.randint(1, len(whole))
    if product(list(where)).at(sizes):  # there is something to index, so there must be room
        whole = tuple(size if size.at(sizes) else Dim.of(2) for size in whole)
    return where, whole, count


def _index(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    where, whole, count = _places(draw, sizes)
    return [TensorType(dtype, whole)] + [TensorType(dtypes.int64, where)] * count, {}


def _index_add(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    where, whole, count = _places(draw, sizes)
    part = TensorType(dtype, where + whole[count:])
    return [part, *[TensorType(dtypes.int64, where)] * count], {"shape": whole}


def _einsum(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    extents = dict(zip("abcd", _dims(draw, 4), strict=True))
    words = ["".join(draw.sample("abcd", draw.randint(0, 4))) for _ in range(2)]
    labels = sorted(set(words[0] + words[1]))
    kept = draw.sample(labels, draw.randint(0, len(labels)))
    types = [TensorType(dtype, tuple(extents[label] for label in word)) for word in words]
    return types, {"spec": f"{words[0]},{words[1]}->{''.join(kept)}"}


def _matrix(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    size = _dims(draw, 1)
    return [TensorType(dtype, (*_shape(draw, most=1), *size, *size))], {}


def _decomposed(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    rows, columns = _dims(draw, 2)
    count = min(rows, columns, key=lambda size: size.at(sizes))
    return [TensorType(dtype, (*_shape(draw, most=1), rows, columns))], {"count": count}


def _tall(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    pair = sorted(_dims(draw, 2), key=lambda size: size.at(sizes))
    return [TensorType(dtype, (*_shape(draw, most=1), pair[1], pair[0]))], {}


def _solve_triangular(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    (matrix,), _ = _matrix(draw, dtype, sizes)
    right = TensorType(dtype, (*matrix.shape[:-1], *_dims(draw, 1)))
    return [matrix, right], {"upper": draw.random() < 0.5}


def _rank(draw: Random, dtype: DType, sizes: Mapping[str, int]) -> Uses:
    types, attrs = _scan(draw, dtype, sizes)
    return types, {"axis": attrs["axis"], "descending": draw.random() < 0.5}


STRUCTURES: dict[str, Callable[[Random, DType, Mapping[str, int]], Uses]] = {
    "cast": _cast, "expand": _expand, "reshape": _reshape, "permute": _permute,
    "cumsum": _scan, "cumprod": _scan, "slice": _slice, "unslice": _unslice, "concat": _concat,
    "diagonal": _diagonal, "index": _index, "index_add": _index_add, "einsum": _einsum,
    "rank": _rank, "inverse": _matrix, "det": _matrix, "logdet": _matrix, "cholesky": _matrix,
    "solve_triangular": _solve_triangular, "eigenvalues": _matrix, "eigenvectors": _matrix,
    "left_vectors": _decomposed, "singular_values": _decomposed, "right_vectors": _decomposed,
    "orthogonal_factor": _tall, "triangular_factor": _tall,
}  # fmt: skip


# -- data


def _data(
    source: np.random.Generator, op: Op, node: Node, sizes: Mapping[str, int], special: bool
) -> list[Array]:
    shapes = [tuple(size.at(sizes) for size in arg.shape) for arg in node.args]
    if op.kind == "indexing":
        whole = node if op.name == "index_add" else node.args[0]
        bounds = [size.at(sizes) for size in whole.shape]
        first = _plain(source, node.args[0].dtype, shapes[0], special)
        return [first] + [
            source.integers(0, max(bounds[axis], 1), size=shape, dtype=np.int64)
            for axis, shape in enumerate(shapes[1:])
        ]
    if op.name.startswith("wrap_"):
        return [source.integers(-(2**40), 2**40, size=shape) for shape in shapes]
    if op.name in (*VECTORS, *VALUES):
        return [_distinct(source, node.args[0].dtype, shapes[0])]
    if op.kind == "linalg":
        return [_regular(source, arg.dtype, s) for arg, s in zip(node.args, shapes, strict=True)]
    if op.kind == "elementwise" and not special and op.scalar and node.args[-1].dtype.is_float:
        count = int(np.prod(shapes[0]))
        columns = _inside(source, op.name, node, count)
        return [column.reshape(shapes[0]) for column in columns]
    numbers = SPECIAL if source.random() < 0.5 else SPECIAL[:8]  # the last are not finite
    palette = source.choice(np.array(numbers), size=3).tolist()  # few values: ties and twins
    return [
        _plain(source, arg.dtype, shape, special, palette)
        for arg, shape in zip(node.args, shapes, strict=True)
    ]


def _regular(source: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Matrices that are symmetric, positive definite and well conditioned where square."""
    values = source.uniform(-1, 1, size=shape)
    if shape[-1] == shape[-2]:
        values = values @ np.swapaxes(values, -1, -2) / max(shape[-1], 1) + np.eye(shape[-1])
    return np.asarray(values, str(dtype))


def _distinct(source: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Matrices, symmetric where square, whose eigenvalues or singular values are well apart."""
    values = source.uniform(-0.2, 0.2, size=shape)
    if shape[-1] == shape[-2]:
        values = values + np.swapaxes(values, -1, -2)
    ramp = source.permutation(max(shape[-2:])) + 1.0
    diagonal = np.zeros(shape[-2:])
    np.fill_diagonal(diagonal, ramp)
    return np.asarray(values + diagonal, str(dtype))


def _plain(
    source: np.random.Generator,
    dtype: DType,
    shape: tuple[int, ...],
    special: bool,
    palette: Sequence[float] = (),
) -> Array:
    if dtype == dtypes.bool_:
        return source.random(shape) < 0.5
    if dtype.is_integer:
        small = not dtype.wraps or source.random() < 0.5
        low, high = (-3, 3) if small and dtype.signed else (0, 6) if small else (
            dtype.least, dtype.greatest)  # fmt: skip
        return source.integers(low, high, size=shape, dtype=str(dtype), endpoint=True)
    if special:
        return source.choice(np.array(palette or SPECIAL), size=shape).astype(str(dtype))
    value: Array = source.uniform(-3, 3, size=shape).astype(str(dtype))
    return value


def _inside(source: np.random.Generator, name: str, node: Node, count: int) -> list[Array]:
    """Operands in the domain of an op and off its kinks, by rejection."""
    parts: list[list[Array]] = []
    kept = 0
    while kept < count or not parts:
        drawn = [_plain(source, arg.dtype, (64,), False) for arg in node.args]
        good = inside(name, drawn)
        parts.append([operand[good] for operand in drawn])
        kept += int(good.sum())
    return [np.concatenate(columns)[:count] for columns in zip(*parts, strict=True)]


def inside(name: str, operands: Sequence[Array]) -> Array:
    """Where the operands lie inside the domain of an op and off its kinks."""
    good = np.ones(operands[0].shape, bool)
    with np.errstate(all="ignore"):
        for kind, expression in _margins(name, len(operands)):
            value = np.asarray(expression(*(np.asarray(o, np.float64) for o in operands)))
            good &= value > MARGIN if kind != "nonzero" else np.abs(value) > MARGIN
    return good


@functools.cache
def _margins(name: str, arity: int) -> list[tuple[str, Callable[..., Any]]]:
    scalar = get(name).scalar
    assert scalar is not None
    symbols = sympy.symbols(f"x:{arity}", real=True)
    found = [(c.kind, c.expression(sympy, *symbols)) for c in scalar.domain]
    found += [("nonzero", kink.expression(sympy, *symbols)) for kink in scalar.kinks]
    return [(kind, sympy.lambdify(symbols, expr, "numpy")) for kind, expr in found]


__all__ = [
    "ELEMENTWISE", "FLOATS", "OPS", "Case", "ShapeError", "cases", "differentiable", "inside",
    "signatures",
]  # fmt: skip
