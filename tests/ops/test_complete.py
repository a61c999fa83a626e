"""Every op has every fact that the product asks its record for, or the record says why not.

Tests over the registry: a new op is tested because it is there.  A fact is not only there: what
it says is compared with the op's NumPy meaning.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy

import symgrad as sg
from symgrad.errors import DTypeError, GraphError
from symgrad.frontend import unsupported
from symgrad.frontend.functions import FUNCTIONS
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dtype import bool_, float32, float64
from symgrad.ir.expr import ExprPool
from symgrad.ir.types import TensorType
from symgrad.ops.record import Bounds, Op, get
from symgrad.proof.scalars import bodies as scalars
from symgrad.proof.words.code import CodeWriter
from symgrad.proof.words.snippet import Writer
from symgrad.proof.words.spelling import WRITING
from tests.ops.cases import ELEMENTWISE, OPS, Case, for_uses, inside
from tests.ops.test_meanings import assert_close

FACTS = ("program", "code")
"""What a record may lack, if it says why."""


def _lacking(name: str, fact: str) -> bool:
    return fact in get(name).lacks


def _takes_floats(name: str) -> bool:
    """Does an elementwise op take numbers of one float dtype?"""
    op = get(name)
    if op.scalar is None or name == "cast":
        return False
    try:
        op.infer([TensorType(float64)] * (op.arity or 1), {})
    except DTypeError:
        return False
    return True


@pytest.mark.parametrize("name", OPS)
def test_what_a_record_lacks_it_says_why(name: str) -> None:
    op: Op = get(name)
    for fact, why in op.lacks.items():
        assert fact in FACTS
        assert len(why.split()) > 3
        assert getattr(op, fact) is None


def test_every_op_has_a_numpy_program() -> None:
    assert [name for name in OPS if get(name).program is None] == []


@pytest.mark.quick
@pytest.mark.parametrize("name", [name for name in OPS if not _lacking(name, "program")])
def test_the_numpy_program_computes_the_op(name: str) -> None:
    """What a counterexample is shown with."""

    @for_uses(name, least=1)
    def check(case: Case) -> None:
        names = {arg: f"x{place}" for place, arg in enumerate(case.args)}
        writer = Writer(case.sizes, names)
        text = writer.expression(case.node)
        scope: dict[str, Any] = {"np": np, "math": math}
        exec("\n".join(writer.preludes), scope)
        scope |= zip(names.values(), case.arrays, strict=True)
        with np.errstate(all="ignore"):
            found = eval(text, scope)
        dtype = str(case.node.dtype)
        assert_close(np.asarray(found).astype(dtype), case.numpy(), dtype)

    check()


def _written(case: Case) -> bool:
    """Tensors have no slices that go backwards, zeros are float32, and 1 // 0 raises."""
    op, dtype = case.node.op, case.node.dtype
    if op in ("floordiv", "mod", "fmod"):
        return dtype.is_float or bool(np.all(case.arrays[1]))
    backwards = min(case.node.attributes.get("steps", ()), default=1) < 0
    return not backwards and (op not in WRITING or dtype == float32)


@pytest.mark.parametrize("name", [name for name in OPS if not _lacking(name, "code")])
def test_the_tensor_code_computes_the_op(name: str) -> None:
    """What repairs and conditions are written in."""

    @for_uses(name, least=1)
    def check(case: Case) -> None:
        names = {arg: f"x{place}" for place, arg in enumerate(case.args)}
        if not _written(case):
            return
        *before, last = CodeWriter(names).program(case.node).splitlines()
        scope: dict[str, Any] = {"sg": sg, **case.sizes}
        scope |= {
            name: sg.tensor(array) for name, array in zip(names.values(), case.arrays, strict=True)
        }
        exec("\n".join([*before, f"found = {last}"]), scope)
        dtype = str(case.node.dtype)
        assert_close(scope["found"].numpy(), case.numpy(), dtype)

    check()


# -- domains and kinks


def _points(count: int) -> list[Any]:
    """Where kinks and the ends of domains are: multiples of a quarter, all pairs of them."""
    grid = np.arange(-3, 3.25, 0.25)
    return [axis.ravel() for axis in np.meshgrid(*[grid] * count)]


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if _takes_floats(name)])
def test_inside_its_domain_and_off_its_kinks_an_op_is_smooth(name: str) -> None:
    """A domain or a kink that a record does not state shows itself here."""
    op = get(name)
    operands = _points(op.arity or 1)
    good = inside(name, operands)
    operands, step = [operand[good] for operand in operands], 1e-6

    def at(place: int, by: float) -> Any:
        moved = [operand + by * (n == place) for n, operand in enumerate(operands)]
        return op.numpy(*moved, size=None).astype(np.float64)

    value = at(0, 0.0)
    assert value.size
    points = [operand[~np.isfinite(value)] for operand in operands]
    assert not points[0].size, f"{name} is not finite at {points}: its record states no `domain`"
    for place in range(len(operands)):
        right, left = (at(place, step) - value) / step, (value - at(place, -step)) / step
        bent = operands[place][np.abs(right - left) > 1e-3 * (1 + np.abs(left))]
        assert not bent.size, f"{name} is not smooth at {bent}: its record states no `kinks`"


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if _takes_floats(name)])
def test_an_op_has_a_finite_value_exactly_where_it_is_defined(name: str) -> None:
    """So that a condition on a backward that evaluates it is neither too weak nor too strong."""
    op = get(name)
    assert op.scalar is not None
    constraints = op.scalar.domain if op.scalar.defined is None else op.scalar.defined
    operands = _points(op.arity or 1)
    finite = np.isfinite(op.numpy(*operands, size=None).astype(np.float64))
    for *values, found in zip(*operands, finite, strict=True):
        exact = [sympy.Rational(value) for value in values]
        holds = all(_holds(one.kind, one.expression(sympy, *exact)) for one in constraints)
        assert holds == found, f"{name} at {values}"


def _holds(kind: str, value: Any) -> bool:
    value = sympy.sympify(value)
    if kind == "regular":
        return not (value.is_integer and value <= 0)
    return bool({"positive": value > 0, "nonnegative": value >= 0, "nonzero": value != 0}[kind])


# -- facts about functions that stay as they are in normal forms

REAL_LINE = np.linspace(-20, 20, 20_001)


def _functions() -> list[str]:
    """Ops that are one function of sympy's, of one real number and with no domain."""
    ops = [get(name) for name in ELEMENTWISE]
    return [
        op.name for op in ops
        if op.arity == 1 and op.scalar is not None and not op.scalar.domain
        and (kind := scalars.body(op.name, 1).kind) and scalars.op_of(kind) is op
    ]  # fmt: skip


def _values(name: str, x: Any) -> Any:
    return get(name).numpy(x, size=None)


@pytest.mark.parametrize("name", _functions())
def test_bounds_are_stated_and_hold(name: str) -> None:
    scalar = get(name).scalar
    assert scalar is not None
    bounds = scalar.bounds or Bounds(None, None)
    near, far = _values(name, REAL_LINE), _values(name, 2 * REAL_LINE)
    assert (bounds.low is not None) == (np.min(far) > np.min(near) - 0.1)
    assert (bounds.high is not None) == (np.max(far) < np.max(near) + 0.1)
    if bounds.low is not None:
        assert bounds.low <= np.min(far) <= bounds.low + 0.5
    if bounds.high is not None:
        assert bounds.high - 0.5 <= np.max(far) <= bounds.high
    if bounds.open:
        inside = _values(name, REAL_LINE[np.abs(REAL_LINE) < 3])
        assert bounds.low is None or np.all(inside > bounds.low)
        assert bounds.high is None or np.all(inside < bounds.high)


@pytest.mark.parametrize("name", _functions())
def test_what_rises_is_stated(name: str) -> None:
    scalar = get(name).scalar
    assert scalar is not None
    x = REAL_LINE[np.abs(REAL_LINE) < 3]
    assert scalar.rising == bool(np.all(np.diff(_values(name, x)) > 0))


GROWING = [
    name for name in ELEMENTWISE
    if get(name).arity == 1 and _takes_floats(name) and get(name).kind == "elementwise"
    and name != "shift" and not name.startswith("wrap_")
]  # fmt: skip


def _inside_domain(domain: Any, at: float) -> bool:
    """Is a number inside a domain?"""
    symbol = sympy.Symbol("x", real=True)
    for one in domain:
        value = float(sympy.sympify(one.expression(sympy, symbol)).subs(symbol, at))
        if not (abs(value) if one.kind == "nonzero" else value) > 1e-9:
            return False
    return True


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_on_its_domain_is_stated(name: str) -> None:
    scalar = get(name).scalar
    assert scalar is not None
    x = np.array([one for one in np.linspace(-3, 3, 49) if _inside_domain(scalar.domain, one)])
    values, h = _values(name, x), 1e-5
    slopes = (_values(name, x + h) - _values(name, x - h)) / (2 * h)
    grows = np.all(np.diff(values) > 0) and np.all(slopes > 1e-6)
    assert scalar.growing == bool(grows)


def test_what_is_there_is_not_called_unsupported() -> None:
    """A name that is both a function and a method is none that torch alone has."""
    listed = {name for name in FUNCTIONS if unsupported.known(name)}
    assert not {name for name in listed if hasattr(SymbolicTensor, name)}


@pytest.mark.parametrize("name", _functions())
def test_sympy_knows_the_parity_and_the_value_at_zero(name: str) -> None:
    kind = scalars.body(name, 1).kind
    at, mirrored = _values(name, REAL_LINE), _values(name, -REAL_LINE)
    even, odd = np.allclose(at, mirrored), np.allclose(at, -mirrored)
    assert scalars.parity(kind) == (1 if even else -1 if odd else 0)
    zero = scalars.at_zero(kind)
    assert zero is not None
    assert float(zero) == _values(name, np.zeros(1))[0]


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if _takes_floats(name)])
def test_every_partial_has_a_form_in_index_notation(name: str) -> None:
    """What the proof compares the VJP with."""
    op, pool = get(name), ExprPool()
    assert op.arity is not None
    operands = [pool.access(f"x{place}", (), float64) for place in range(op.arity)]
    for place in range(op.arity):
        if op.infer([TensorType(float64)] * op.arity, {}).dtype == bool_:
            return
        if name == "tetragamma":  # where the registry ends
            with pytest.raises(GraphError):
                scalars.partial_expr(pool, name, operands, place, float64)
        else:
            scalars.partial_expr(pool, name, operands, place, float64)
