"""``sg.custom_op``: a scalar C function becomes an op as any other.

In: C text or a symbol of the C library, its meaning or its derivative.  Out: the operation, and
its record in the registry.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

import symgrad.frontend.functions as frontend
from symgrad.custom import check
from symgrad.custom.derivative import Template, from_meaning
from symgrad.custom.source import CustomOpError, Source, compiled, from_symbol, from_text
from symgrad.errors import GraphError, SymgradError, UnsupportedOpError, counted
from symgrad.frontend.caller import here
from symgrad.frontend.lift import elementwise as on_operands
from symgrad.frontend.table import public
from symgrad.ir.dtype import float64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.registry import names, withdraw
from symgrad.ir.types import TensorType
from symgrad.ops.exponential_c import FLOATS
from symgrad.ops.record import Constraint, Helper, Kink, elementwise, helpers
from symgrad.proof.scalars import bodies, symbolic, uninterpreted
from symgrad.tensor.functions import FUNCTIONS, publish, retract

Interval = tuple[float, float]
EVERYWHERE: Interval = (-math.inf, math.inf)
VALUE_TOLERANCE = 1e-9

_known: dict[str, tuple[Any, Callable[..., Any]]] = {}
"""What was declared under each name, and the operation."""


def custom_op(
    name: str, *, c: str | None = None, symbol: str | None = None,
    meaning: Callable[..., Any] | None = None, derivative: Callable[..., Any] | None = None,
    domain: Interval | Sequence[Interval] | None = None, tolerance: float = VALUE_TOLERANCE,
    cost: float = 5.0,
) -> Callable[..., Any]:  # fmt: skip
    """Make an op of a scalar C function of one to three doubles.

    ``c``: text that defines ``double <name>(double x, ...)`` and, if there is one,
    ``float <name>f(float x, ...)`` for float32; or ``symbol``: a function of the C library
    (``"j0"``).  ``meaning(sp, x, ...)``: what it computes, as a sympy expression; or, where there
    is none, ``derivative(x)``: its derivative, written with symgrad's operations, in which it may
    occur itself (``sg.<name>``); it is then an unknown function with that derivative, which a
    proof states as a condition.  With both, the derivative is what the derived backward computes.
    ``domain``: the open interval of the operand (a list of them for several) in which all this
    holds.  ``tolerance``: how far the C may be from its meaning, relative to ``1 + |value|``.
    ``cost``: nanoseconds for one element; the schedule reads it.

    The result computes with tensors and symbolic tensors, and is ``sg.<name>`` from now on.
    Raises CustomOpError for a name that is taken, a wrong signature, and values or derivatives
    that differ at a sampled point; BuildError for C that does not compile.
    """
    declared = (c, symbol, _text(meaning), _text(derivative), domain, tolerance, cost)
    if name in _known and _known[name][0] == declared:
        return _known[name][1]
    _check_name(name)
    source = _source(name, c, symbol, meaning, derivative)
    op = _Definition(source, meaning, derivative, _intervals(source, domain), tolerance)
    op.check()
    _register(op, cost)
    call = _operation(op)
    try:
        op.check_later()
    except SymgradError:
        undeclare(name)
        raise
    _known[name] = (declared, call)
    return call


def _check_name(name: str) -> None:
    if not name.isidentifier() or name.startswith("_"):
        raise CustomOpError(f"{name!r} is not a valid op name", location=here())
    shared = " ".join((FLOATS, *(one.source for _, one in helpers() if one.shared)))
    in_c = set(re.findall(r"\w+", shared))
    taken = name in set(names()) or name in FUNCTIONS or name in frontend.FUNCTIONS
    if taken or not in_c.isdisjoint((f"symgrad_{name}", f"symgrad_{name}f")):
        other = "declared differently before" if name in _known else "an operation of symgrad's"
        raise CustomOpError(
            f"the name {name!r} is taken: {other}", location=here(), hint="choose another name"
        )


def _text(function: Callable[..., Any] | None) -> Any:
    """What tells one declaration from another: the code of a function and what it closes over."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function
    cells = getattr(function, "__closure__", None) or ()
    return code.co_code, code.co_consts, code.co_names, tuple(cell.cell_contents for cell in cells)


def _source(
    name: str, c: str | None, symbol: str | None, meaning: Callable[..., Any] | None,
    derivative: Callable[..., Any] | None,
) -> Source:  # fmt: skip
    if (c is None) == (symbol is None):
        raise CustomOpError(
            f"{name!r} needs either c= or symbol=", location=here(),
            hint='c="double f(double x) { return ...; }", or symbol="j0"',
        )  # fmt: skip
    if meaning is None and derivative is None:
        raise CustomOpError(
            f"{name!r} needs a meaning or a derivative",
            location=here(),
            hint="meaning=lambda sp, x: sp.sin(x) / x, or derivative=lambda x: sg.cos(x)",
        )
    operands = _operands(meaning, 1) if meaning is not None else _operands(derivative, 0)
    source = from_text(name, c) if c is not None else from_symbol(name, str(symbol), operands)
    if operands != source.arity:
        raise CustomOpError(
            f"the C of {name!r} takes {counted(source.arity, 'operand')}, its meaning or "
            f"derivative {operands}",
            location=here(),
        )
    if meaning is None and source.arity != 1:
        raise CustomOpError(
            f"{name!r} takes {source.arity} operands and has no meaning", location=here(),
            hint="a function known by its derivative alone takes one operand",
        )  # fmt: skip
    return source


def _operands(function: Any, hidden: int) -> int:
    return len(inspect.signature(function).parameters) - hidden


def _intervals(source: Source, domain: Any) -> list[Interval]:
    if domain is None:
        return [EVERYWHERE] * source.arity
    pairs = [domain] if domain and not isinstance(domain[0], (tuple, list)) else list(domain)
    fits = len(pairs) == source.arity and all(len(pair) == 2 for pair in pairs)
    if not fits or any(not low < high for low, high in pairs):
        raise CustomOpError(
            f"domain={domain!r} is not an open interval for each of {source.arity} operands",
            location=here(), hint="domain=(0, float('inf'))",
        )  # fmt: skip
    return [(float(low), float(high)) for low, high in pairs]


class _Definition:
    """All that is known of one custom op."""

    def __init__(
        self, source: Source, meaning: Any, derivative: Any, domain: list[Interval],
        tolerance: float,
    ) -> None:  # fmt: skip
        self.source, self.name, self.arity = source, source.name, source.arity
        self.domain, self.tolerance = domain, tolerance
        self.meaning, self.derivative = meaning, derivative
        self.function = compiled(source)
        self.symbols = symbolic.SYMBOLS[: self.arity]
        self.body: Any = None
        self.kind: Any = None
        if meaning is not None:
            self.body = sympy.sympify(meaning(sympy, *self.symbols))
            unknown = self.body.free_symbols - set(self.symbols)
            if unknown:
                raise CustomOpError(f"the meaning of {self.name!r} has symbols {unknown}")
            self._check_differentiable()
        else:
            self.kind = _function_class(self)
            self.body = self.kind(*self.symbols)

    @functools.cached_property
    def template(self) -> Template:
        """The declared derivative, traced when it is first needed: it may use the op itself."""
        assert self.derivative is not None
        return Template(self.name, self.derivative, self.arity)

    def derivatives(self) -> list[Any]:
        """The declared derivatives as sympy expressions."""
        return self.template.expressions(self.symbols)

    def _check_differentiable(self) -> None:
        """Raises CustomOpError for a meaning whose derivative sympy or the registry lacks."""
        hint = "leave the meaning out and declare derivative="
        partials = [sympy.diff(self.body, symbol) for symbol in self.symbols]
        if self.body.has(AppliedUndef) or any(
            one.has(sympy.Derivative, sympy.Subs) for one in partials
        ):
            raise CustomOpError(
                f"sympy cannot differentiate the meaning of {self.name!r}", hint=hint
            )
        if self.derivative is None:
            graph = Graph()
            operands = [graph.input(f"x{n}", TensorType(float64)) for n in range(self.arity)]
            try:
                self._from_meaning(operands)
            except (GraphError, UnsupportedOpError) as error:
                raise CustomOpError(f"{self.name!r}: {error.what}", hint=hint) from error

    def check(self) -> None:
        """Compare C, meaning and derivative.  Raises CustomOpError."""
        if self.meaning is None:
            return  # once it is in the registry: its derivative may be made of itself
        value = symbolic.lambdified(self.body, self.arity)
        check.check_values(
            self.name, self.function, value, self.domain, self.tolerance, self.source.single
        )
        if self.derivative is not None:
            true = [sympy.diff(self.body, symbol) for symbol in self.symbols]
            given = [symbolic.lambdified(one, self.arity) for one in self.derivatives()]
            truth = [symbolic.lambdified(one, self.arity) for one in true]
            tolerance = max(self.tolerance, VALUE_TOLERANCE)
            check.check_derivatives(self.name, given, truth, self.domain, tolerance)

    def check_later(self) -> None:
        """The same for a derivative without a meaning, unless it needs ops yet to be declared."""
        if self.meaning is not None:
            return
        try:
            derivative = symbolic.lambdified(self.derivatives()[0], 1)
        except NameError:
            return
        except AttributeError as error:
            if str(error).startswith("module 'symgrad' has no attribute"):
                return
            raise
        check.check_slope(self.name, self.function, derivative, self.domain)

    def vjp(self, g: Node, node: Node, *operands: Node) -> Sequence[Node]:
        """The cotangents of the operands."""
        if self.derivative is not None:
            found = self.template.nodes(operands)
        else:
            found = self._from_meaning(operands)
        return [g * one for one in found]

    @functools.cached_property
    def _from_meaning(self) -> Callable[[Sequence[Node]], list[Node]]:
        return from_meaning(self.body, self.arity)


def _function_class(op: _Definition) -> Any:
    """A sympy function whose derivative is the declared one."""

    def fdiff(self: Any, argindex: int = 1) -> Any:
        return op.template.expressions(self.args)[0]

    methods = {"fdiff": fdiff, "nargs": 1, "is_real": True}
    return type(bodies.PREFIX + op.name, (sympy.Function,), methods)


def _register(op: _Definition, cost: float) -> None:
    """Enter the op in the registry and the proof's table."""
    parameters = [
        inspect.Parameter(f"x{place}", inspect.Parameter.POSITIONAL_ONLY)
        for place in range(op.arity + 1)
    ]

    def body(sp: Any, *operands: Any) -> Any:
        if op.kind is not None:
            return op.kind(*operands)
        return op.meaning(sp, *operands)

    body.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    elementwise(
        op.name, numpy=op.function, sympy=body, vjp=op.vjp, cost=cost,
        c=Helper(op.name, op.source.text, ("double", "float")[: 1 + op.source.single]),
        domain=tuple(_constraints(op.domain)), kinks=tuple(_kinks(op)),
        code=f"{{sg}}.{op.name}({', '.join(f'{{{place}}}' for place in range(op.arity))})",
        lacks={"program": "what it computes is said in C"},
    )  # fmt: skip
    if op.kind is not None:
        uninterpreted.declare(
            op.name, op.kind, lambda x: float(op.function(np.array([x], np.float64))[0])
        )
    else:
        uninterpreted.MEANINGS[op.name] = _said(op)


def undeclare(name: str) -> None:
    """Take a custom op back, so that it can be declared again; graphs that hold it are void."""
    withdraw(name)
    _known.pop(name, None)
    uninterpreted.withdraw(name)
    retract(name)


def _said(op: _Definition) -> str:
    letters = sympy.symbols("x y z", real=True)[: op.arity]
    shown = op.body.xreplace(dict(zip(op.symbols, letters, strict=True)))
    operands = ", ".join(map(str, letters))
    return f"{op.name}({operands}) is {shown}, as declared and checked at sampled points"


def _operation(op: _Definition) -> Callable[..., Any]:
    """``sg.<name>``: on symbolic tensors while something is traced, else on tensors."""

    def call(*operands: Any) -> Any:
        if len(operands) != op.arity:
            raise CustomOpError(
                f"{op.name}: {counted(len(operands), 'operand')} given, {op.arity} expected",
                location=here(),
            )
        return on_operands(op.name, *operands, floats=True)

    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = f"The custom op ``{op.name}`` of each element."
    frontend.FUNCTIONS[op.name] = public(op.name, call)
    return publish(op.name)


# -- domains and kinks


def _constraints(domain: Sequence[Interval]) -> list[Constraint]:
    found = []
    for place, (low, high) in enumerate(domain):
        if math.isfinite(low):
            found.append(Constraint("positive", _above(place, low)))
        if math.isfinite(high):
            found.append(Constraint("positive", _below(place, high)))
    return found


def _above(place: int, low: float) -> Callable[..., Any]:
    return lambda sp, *operands: operands[place] - sp.Rational(repr(low))


def _below(place: int, high: float) -> Callable[..., Any]:
    return lambda sp, *operands: sp.Rational(repr(high)) - operands[place]


def _kinks(op: _Definition) -> list[Kink]:
    """Where the pieces of a meaning meet."""
    found: dict[Any, None] = {}
    for part in sympy.preorder_traversal(op.body):
        if isinstance(part, (sympy.Abs, sympy.sign, sympy.Heaviside)):
            found.setdefault(part.args[0])
        elif isinstance(part, (sympy.Max, sympy.Min)):
            found.update(dict.fromkeys(one - part.args[0] for one in part.args[1:]))
        elif isinstance(part, sympy.core.relational.Relational):
            found.setdefault(part.lhs - part.rhs)
    convention = "the derivative of the declared meaning, as sympy takes it"
    return [Kink(_at(op, expression), convention) for expression in found]


def _at(op: _Definition, expression: Any) -> Callable[..., Any]:
    def where(sp: Any, *operands: Any) -> Any:
        return expression.xreplace(dict(zip(op.symbols, operands, strict=True)))

    return where
