"""What an op is: one frozen record, from which every stage reads what it needs.

In: the facts of an op, each once.  Out: ``Op`` records, registered by name, and the constructors
``elementwise``, ``reduction`` and ``structural``.

An op says its shape rule (``infer``), its NumPy meaning, its meaning in index notation (``lower``;
for an elementwise op a scalar function with a sympy body and a C spelling), its vector-Jacobian
product, from graph to graph, and how it is written: as a NumPy program, as tensor code, in LaTeX.
What follows from these is stated nowhere: the partial derivatives, the values in 60 digits and
parity come from the sympy body.  sympy is handed to the scalar meanings as their first argument,
so that importing ops does not import it.  ``tests/ops/test_complete.py`` compares each fact with
the NumPy meaning.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from symgrad.errors import DTypeError, GraphError, ShapeError, counted
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Expr, ExprPool
from symgrad.ir.graph import Node
from symgrad.ir.registry import lookup, names, register
from symgrad.ir.types import TensorType

Array = np.ndarray[Any, Any]
Vjp = Callable[[Node, Node], Sequence["Node | None"]]
Tangent = Callable[[Node, Sequence["Node | None"]], "Node | None"]
Infer = Callable[[Sequence[TensorType], Mapping[str, Any]], TensorType]
SizeOf = Callable[[DimLike], int]


class Reader(Protocol):
    """What ``lower`` is given: the elements of the node's arguments, and fresh axes."""

    pool: ExprPool

    def read(self, argument: int, *indices: DimLike) -> Expr:
        """The element of an argument."""
        ...

    def read_all(self, elements: Sequence[tuple[int, Sequence[DimLike]]]) -> list[Expr]:
        """Elements of several arguments."""
        ...

    def index(self, argument: int, *indices: DimLike) -> Dim:
        """The element of an integer argument, for use as an index."""
        ...

    def reduce(self, kind: str, extents: Sequence[Dim], body: Callable[..., Expr]) -> Expr:
        """Reduce ``body(axis, ...)`` over new axes of these extents, the last one innermost."""
        ...


Lower = Callable[[Reader, Node, tuple[Dim, ...]], Expr]
Program = str | Callable[..., str]


@dataclass(frozen=True)
class Constraint:
    """Where an op is defined: ``expression(sp, *args)`` is positive, nonnegative or nonzero.

    Or ``regular``: it is not 0, -1, -2 and so on, where the gamma function has its poles.
    """

    kind: str
    expression: Callable[..., Any]


@dataclass(frozen=True)
class Kink:
    """Where an op has no derivative: ``expression(sp, *args) == 0``; what the VJP uses there."""

    expression: Callable[..., Any]
    convention: str


@dataclass(frozen=True)
class Infix:
    """``left symbol right`` in C."""

    symbol: str


@dataclass(frozen=True)
class Function:
    """A function of ``math.h``: the suffix ``f`` is added for f32.  ``vector``: libmvec has it."""

    name: str
    vector: bool = False


@dataclass(frozen=True)
class Template:
    """C text with ``{0}``, ``{1}`` for the operands.

    ``{f}`` is the suffix of f32 functions, ``{T}`` the C type of the result.  Operands are
    substituted in parentheses unless atomic; literals are written ``{lit:0.5}``.
    """

    text: str
    vector_functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Helper:
    """A C function that no C library has: ``source`` defines ``symgrad_<name>``.

    ``types``: of what it takes and returns; for ``float``, ``source`` defines ``symgrad_<name>f``,
    without which f32 operands are converted to double, and the result back.  ``shared``: it stands
    in the header of all files, where templates may call it, and is proved to be as close as its
    text says.  ``formula``: it has the bits of this.
    """

    name: str
    source: str
    types: tuple[str, ...] = ("double",)
    shared: bool = False
    formula: Template | None = None


Spelling = Infix | Function | Template | Helper


@dataclass(frozen=True)
class Latex:
    """LaTeX with ``{0}``, ``{1}`` for the operands; without them, what a function is called.

    ``{0:sum}``: in parentheses where the operand binds less than a sum does.  ``binding``: how
    tightly all of it binds: ``logic relation sum big product power atom``.
    """

    text: str
    binding: str = "power"


@dataclass(frozen=True)
class Bounds:
    """Between which numbers all values lie; None: there is no bound.  ``open``: never at one."""

    low: int | None
    high: int | None
    open: bool = False


@dataclass(frozen=True, eq=False)
class Scalar:
    """An elementwise op as a scalar function.

    ``sympy(sp, *symbols)``: its meaning on the reals.  ``c_integer``, ``c_single``: its spelling
    for integers and for f32, where that is another one.  ``chooses``: the result is an operand, -1,
    0 or 1 (unsigned never -1), so that it lies in every integer dtype that the operands have.
    ``cost``: ns for one f32 element in a vectorised loop, as measured.  ``domain``: where it has a
    value and, off its kinks, a derivative.  ``defined``: where it has a finite value, if that is
    more.  ``latex``: in formulas; None where it depends on more than the operands' texts.
    ``bounds``: of its values.  ``growing``: it is strictly increasing on its domain, with a
    derivative that does not vanish inside.
    """

    sympy: Callable[..., Any]
    c: Spelling
    cost: float
    domain: tuple[Constraint, ...] = ()
    kinks: tuple[Kink, ...] = ()
    c_integer: Spelling | None = None
    c_single: Spelling | None = None
    chooses: bool = False
    latex: Latex | None = None
    bounds: Bounds | None = None
    growing: bool = False
    defined: tuple[Constraint, ...] | None = None

    @property
    def rising(self) -> bool:
        """Is it continuous and increasing on the whole real line?"""
        return self.growing and not self.domain


@dataclass(frozen=True, eq=False)
class Op:
    """One op.  ``numpy(*arrays, size, **attrs)`` evaluates it; ``size`` gives a Dim's value.

    ``arity``: how many arguments it takes, None for any number of at least one.
    ``linear``: the positions of the arguments in which it is linear when the others are held
    (both of a product's): its tangent is the sum, over these, of the op with that argument
    replaced by its tangent.  Where that is not so, and the op is not elementwise, it has a
    ``tangent`` of its own: ``tangent(node, tangents of args) -> Node``, None for a zero.
    ``lower`` and ``scalar`` None: it has no meaning in index notation (inputs, linalg).
    Everywhere None stands for a zero tangent or cotangent; ``vjp`` None: the derivative is zero
    wherever there is one.
    ``ufunc``: the NumPy ufunc that ``numpy`` wraps, where it is one that keeps dtypes: callers
    that look after floating-point warnings themselves may call it directly, and broadcast.
    ``program``: ``numpy`` as text that needs NumPy alone: see ``numpy_text``.  ``prelude``: the
    functions that it calls, as text that stands before it.
    ``code``: how users write it with tensors, as in PyTorch: ``{0}`` and ``{1}`` are the operands,
    ``{sg}`` the module, ``{over}`` the attribute ``axes`` as an argument; other names are
    attributes.  What depends on more than these is written by ``proof.words.code``.
    ``lacks``: why a fact that an op should have is not there, by the name of the field.
    """

    name: str
    kind: str  # source, elementwise, reduction, contraction, movement, indexing or linalg
    arity: int | None
    rule: Infer
    numpy: Callable[..., Array]
    lower: Lower | None = None
    scalar: Scalar | None = None
    vjp: Vjp | None = None
    linear: tuple[int, ...] = ()
    tangent: Tangent | None = None
    ufunc: np.ufunc | None = None
    program: Program | None = None
    prelude: str = ""
    code: str | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)

    def numpy_text(self, operands: Sequence[str], facts: Mapping[str, Any]) -> str | None:
        """The op applied to operands (names) in a program that needs NumPy alone.

        ``facts``: the attributes with every Dim as a number, and ``kind`` (the name of the
        result's dtype there), ``shape`` (of the result) and ``shapes`` (of the operands).
        """
        if isinstance(self.program, str):
            return self.program.format(*operands, **facts)
        return None if self.program is None else self.program(*operands, **facts)

    def infer(self, args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
        """The type of the result.  Raises ShapeError or DTypeError."""
        if len(args) != self.arity and (self.arity is not None or not args):
            raise GraphError(
                f"{self.name}: {counted(len(args), 'argument')} given, {self.arity} expected"
            )
        return self.rule(args, attrs)


def get(name: str) -> Op:
    """The record of an op.  Raises UnsupportedOpError."""
    found = lookup(name)
    assert isinstance(found, Op)
    return found


def is_own(op: Op) -> bool:
    """Is it an elementwise op of symgrad, and not one that a user defined?"""
    return op.scalar is not None and op.scalar.sympy.__module__.startswith("symgrad.ops.")


def vector_operands() -> dict[str, int]:
    """The functions of ``math.h`` that libmvec has and an op is: how many operands they take."""
    found = {}
    for op in map(get, names()):
        if op.scalar is not None and isinstance(op.scalar.c, Function) and op.scalar.c.vector:
            found[op.scalar.c.name] = op.arity or 1
    return found


def helpers() -> Iterator[tuple[str, Helper]]:
    """The ops, and the records of their C functions."""
    for op in names():
        scalar = get(op).scalar
        for one in (scalar.c, scalar.c_integer, scalar.c_single) if scalar is not None else ():
            if isinstance(one, Helper):
                yield op, one


def of_one(rule: Callable[[Node, Node], Node | None]) -> Tangent:
    """The tangent of an op of one argument, which is zero where that of the argument is."""
    return lambda node, tangents: None if tangents[0] is None else rule(node, tangents[0])


def apply(name: str, *args: Node, **attrs: Any) -> Node:
    """The node ``name(*args)`` in the graph of its first argument."""
    return args[0].graph.apply(name, *args, **attrs)


def compare(name: str, left: Node, right: Node | float) -> Node:
    """``left <name> right`` as a bool node, for ``eq ne lt le gt ge``."""
    return left.graph.binary(name, left, right)


def choose(condition: Node, chosen: Node | float, other: Node | float) -> Node:
    """``where(condition, chosen, other)``; one of the two may be a number."""
    if not isinstance(chosen, Node):
        assert isinstance(other, Node)
        return apply("where", condition, other.graph.lift(chosen, other), other)
    if not isinstance(other, Node):
        return apply("where", condition, chosen, chosen.graph.lift(other, chosen))
    return apply("where", condition, chosen, other)


# -- constructors: each fills in what ops of a kind have in common


def elementwise(
    name: str,
    *,
    numpy: str | np.ufunc | Callable[..., Any],
    sympy: Callable[..., Any],
    c: Spelling,
    vjp: Callable[..., Sequence[Node | None]] | None,
    cost: float = 0.02,
    domain: tuple[Constraint, ...] = (),
    defined: tuple[Constraint, ...] | None = None,
    kinks: tuple[Kink, ...] = (),
    result: DType | None = None,
    takes: Callable[[DType], bool] = lambda dtype: dtype.is_float,
    c_integer: Spelling | None = None,
    c_single: Spelling | None = None,
    chooses: bool = False,
    program: Program | None = None,
    prelude: str = "",
    code: str | None = None,
    latex: str | Latex | None = None,
    bounds: Bounds | None = None,
    growing: bool = False,
    lacks: Mapping[str, str] | None = None,
) -> Op:
    """A scalar function applied to each element.  Among integers it wraps around, as in NumPy.

    ``numpy``: a ufunc, the text of an expression with ``{0}``, ``{1}`` for the operands, or
    another function; ``program`` says the text where it is not NumPy's name of the ufunc, and
    ``prelude`` the text of the functions that it calls.  ``code``: by default a method of its name,
    for several operands a function.  ``latex``: by default a function of its name.
    ``vjp(g, y, *args)`` returns a cotangent for each argument; None: it is piecewise constant
    (comparisons, rounding).  ``result``: its dtype where it is not that of the arguments.
    """
    arity = len(inspect.signature(sympy).parameters) - 1  # the first is the module
    operands = ", ".join(f"{{{place}}}" for place in range(arity))
    latex = latex or rf"\operatorname{{{name.replace('_', ' ')}}}"
    formula = Latex(latex) if isinstance(latex, str) else latex
    by_default = f"{{0}}.{name}()" if arity == 1 else f"{{sg}}.{name}({operands})"
    if isinstance(numpy, str):
        program, numpy = numpy, _function(numpy, arity)
    elif isinstance(numpy, np.ufunc) and program is None:
        program = f"np.{numpy.__name__}({operands})"

    def evaluate(*arrays: Array, size: SizeOf) -> Array:
        with np.errstate(all="ignore"):
            value = np.asarray(numpy(*map(np.asarray, arrays)))
        return value.astype(str(result) if result else np.asarray(arrays[0]).dtype, copy=False)

    op = Op(
        name, "elementwise", arity, _one_dtype(name, takes, result), evaluate,
        scalar=Scalar(
            sympy, c, cost, domain, kinks, c_integer, c_single, chooses, formula, bounds, growing,
            defined,
        ),
        vjp=None if vjp is None else lambda node, g: vjp(g, node, *node.args),
        ufunc=numpy if isinstance(numpy, np.ufunc) else None, program=program,
        prelude=prelude, code=by_default if code is None else code, lacks=lacks or {},
    )  # fmt: skip
    register(op)
    return op


def _one_dtype(name: str, takes: Callable[[DType], bool], result: DType | None) -> Infer:
    """The shape rule of operands that have one shape and one dtype."""

    def rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
        for arg in args:
            if not takes(arg.dtype):
                raise DTypeError(f"{name} does not take {arg.dtype}")
            if arg.dtype != args[0].dtype:
                raise DTypeError(f"{name} takes operands of one dtype, not {_types(args)}")
        return TensorType(result or args[0].dtype, same_shape(name, args))

    return rule


def _function(text: str, arity: int) -> Callable[..., Any]:
    """The function of arrays that an expression over ``np`` is the text of."""
    names = [f"x{place}" for place in range(arity)]
    made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {text.format(*names)}", {"np": np})
    return made


def structural(
    name: str,
    kind: str,
    *,
    rule: Infer,
    numpy: Callable[..., Any],
    lower: Lower | None,
    vjp: Vjp | None,
    arity: int | None = 1,
    linear: tuple[int, ...] = (),
    tangent: Tangent | None = None,
    program: Program | None = None,
    code: str | None = None,
    prelude: str = "",
    lacks: Mapping[str, str] | None = None,
) -> Op:
    """An op that moves, selects or combines elements: its meaning is a body in index notation."""

    def evaluate(*arrays: Array, **attrs: Any) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(numpy(*map(np.asarray, arrays), **attrs))

    op = Op(
        name, kind, arity, rule, evaluate, lower=lower, vjp=vjp, linear=linear, tangent=tangent,
        program=program, code=code, prelude=prelude, lacks=lacks or {},
    )  # fmt: skip
    register(op)
    return op


def adds_up(dtype: DType) -> bool:
    """Floats and int64: sums of narrower integers are sums of int64."""
    return dtype != bool_ and not dtype.wraps


def reduction(
    name: str,
    *,
    numpy: Callable[..., Any],
    reduce: str,
    vjp: Vjp | None,
    linear: bool = False,
    result: DType | None = None,
    takes: Callable[[DType], bool] = adds_up,
    tangent: Tangent | None = None,
    one_axis: bool = False,
    program: Program,
    code: str,
) -> Op:
    """A reduction over the attribute ``axes`` (sorted, non-negative); these axes disappear."""
    check = check_axis if one_axis else check_axes

    def rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
        (arg,) = args
        if not takes(arg.dtype):
            raise DTypeError(f"{name} does not take {arg.dtype}")
        axes = check(name, attrs["axes"], arg.rank)
        return TensorType(result or arg.dtype, without(arg.shape, axes))

    def lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
        axes = node.attributes["axes"]
        extents = [node.args[0].shape[axis] for axis in axes]
        return reader.reduce(
            reduce, extents, lambda *bound: reader.read(0, *insert(indices, axes, bound))
        )

    return structural(
        name, "reduction", rule=rule,
        numpy=lambda array, *, size, axes: numpy(array, axis=axes),
        lower=lower, vjp=vjp, linear=(0,) if linear else (), tangent=tangent, program=program,
        code=code,
    )  # fmt: skip


# -- helpers for shape rules


def same_shape(name: str, args: Sequence[TensorType]) -> tuple[Dim, ...]:
    """The one shape of elementwise operands.  Raises ShapeError."""
    for arg in args:
        if arg.shape != args[0].shape:
            raise ShapeError(f"{name} takes operands of one shape, not {_types(args)}")
    return args[0].shape


def check_axes(name: str, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """``axes`` when they are sorted, distinct and in range.  Raises ShapeError."""
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < rank for axis in axes):
        raise ShapeError(f"{name}: the axes {axes} do not fit a tensor of rank {rank}")
    return axes


def check_axis(name: str, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """``axes`` where it is one axis in range.  Raises ShapeError."""
    if len(check_axes(name, axes, rank)) != 1:
        raise ShapeError(f"{name} takes exactly one axis, not {axes}")
    return axes


def without(shape: tuple[Dim, ...], axes: Sequence[int]) -> tuple[Dim, ...]:
    """``shape`` less some axes."""
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def insert(
    indices: Sequence[DimLike], axes: Sequence[int], values: Sequence[DimLike]
) -> tuple[DimLike, ...]:
    """``indices`` with ``values`` put in so that they stand at the positions ``axes``."""
    rest = iter(indices)
    put = dict(zip(axes, values, strict=True))
    rank = len(indices) + len(axes)
    return tuple(put[axis] if axis in put else next(rest) for axis in range(rank))


def _types(args: Sequence[TensorType]) -> str:
    return " and ".join(map(str, args))
