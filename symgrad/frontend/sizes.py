"""Symbolic sizes as the user's program sees them: ``x.shape[0]``, ``x.size(-1) // 2``, ``1 / n``.

In: ``Dim`` of the graph.  Out: integers and floats that compute symbolically and whose comparisons
decide (and split the trace where they have to).
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

from symgrad.budgets import MOST_FACTORS
from symgrad.errors import ControlFlowError
from symgrad.frontend.caller import asked_by_a_cache, asker, asks_for_a_class, here, importing
from symgrad.frontend.integers import (
    arrangements,
    combinations,
    differing,
    greatest_divisor,
    joined,
    masked,
    nearest,
    rounded,
    truncated,
)
from symgrad.frontend.questions import note_limit, observed, questions, text_asked
from symgrad.frontend.refusals import check, never_refused
from symgrad.frontend.session import active, current
from symgrad.frontend.spoken import only_said
from symgrad.ir import dim as dims
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, float64
from symgrad.ir.function import RELATIONS
from symgrad.ir.graph import Node

SIZE_MATH = "symgrad_math"
"""The method of another library's symbolic sizes that ``math``'s functions are, given their name
and arguments."""


class AnyRankSize:
    """The sizes of all batch axes, as one item of a shape, to be handed on and not looked at.

    ``dim``: the size of the batch axis.  ``ticket``: the one call that it is for; None: it is ours.
    """

    __slots__ = ("dim", "ticket")

    def __init__(self, dim: Dim, ticket: Any = None) -> None:
        self.dim = dim
        self.ticket = ticket


def is_size(value: Any) -> bool:
    """Is it an integer that may serve as a size: an int, a symbolic one, a NumPy integer?"""
    return isinstance(value, (int, SymInt, np.integer)) and not isinstance(value, (bool, np.bool_))


def as_dim(value: Any) -> Dim:
    """The ``Dim`` of a size.  Raises ControlFlowError for what is no integer."""
    if isinstance(value, (SymInt, AnyRankSize)):
        return value.dim
    if isinstance(value, Dim):
        return value
    if is_size(value):
        return Dim.of(int(value))
    if isinstance(value, ValuedNumber) and value.is_whole:
        return Dim.of(int(value))
    if isinstance(value, SymFloat):
        raise ControlFlowError(
            f"{value} is not an integer, so it cannot be a size", location=here(),
            hint="divide sizes with //",
        )  # fmt: skip
    raise ControlFlowError(
        f"a size must be an integer, not {type(value).__name__}", location=here(),
        hint="the value of a tensor cannot be a size or a loop bound: sizes come from shapes",
    )  # fmt: skip


def as_size(dim: Dim | int) -> Any:
    """A ``Dim`` as the user sees it: an int when it is one, else a SymInt."""
    number = Dim.of(dim)
    session = active()
    if session is not None and session.any_rank:
        number = session.flat(number)
    return SymInt(number) if number.constant is None else number.constant


class Shape(tuple[Any, ...]):
    """The shape of a tensor: a tuple of ints and symbolic sizes."""

    __slots__ = ()

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks: the program knows shapes by the class of its library."""
        session = active()
        guest = None if session is None else session.guest
        return Shape if guest is None or asker() is None else guest.shape()

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a shape cannot be set")

    @staticmethod
    def of(shape: Iterable[Dim]) -> Shape:
        """The shape of these sizes."""
        session = active()
        if session is None or not session.any_rank:
            return Shape(map(as_size, shape))
        whole = map(Dim.of, shape)
        return Shape(as_size(d) if session.flat(d) == d else AnyRankSize(d) for d in whole)

    def numel(self) -> Any:
        """The number of elements."""
        return as_size(dims.product([as_dim(size) for size in self]))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Shape(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Shape:
        return Shape((*self, *other))

    def __radd__(self, other: Any) -> Shape:
        return Shape((*other, *self))

    def __mul__(self, times: Any) -> Any:
        return Shape(tuple(self) * times)

    __rmul__ = __mul__


def size_text(shape: Iterable[Any]) -> str:
    """A shape as the shapes of tensors are written."""
    return f"symgrad.Size({list(shape)})"


class _Symbolic:
    """What symbolic integers and floats share: comparisons, and arithmetic that gives a float."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of the class that the trace in progress has for it."""
        session = active()
        guest = None if session is None else session.guest
        return object.__new__(cls if guest is None else guest.variant(cls))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's functions of sizes, and arithmetic with NumPy numbers."""
        compute = _UFUNCS.get(ufunc.__name__)
        if compute is None or method != "__call__" or kwargs:
            return NotImplemented
        with never_refused() if ufunc.__name__ in _OF_FLOATS else nullcontext():
            return compute(*(_plain(value) for value in inputs))

    def node(self, dtype: DType) -> Node:
        """It as a number of the graph in progress."""
        raise NotImplementedError

    def _no_number(self, wanted: str) -> ControlFlowError:
        error = ControlFlowError(
            f"the size {self} is symbolic, so it has no {wanted} while a Function is traced",
            location=here(),
            hint="use it as it is in arithmetic, or write a number for it in the shape spec",
            number=self.needed,
        )
        note_limit(error)
        return error

    @property
    def needed(self) -> Dim | None:
        """The size that has to be a number for this to be one."""
        return getattr(self, "dim", None)

    def __float__(self) -> float:
        raise self._no_number("float value (float(), math functions)")

    def __int__(self) -> int:
        if _is_said():
            return _ANY_SIZE
        raise self._no_number("int value")

    def __index__(self) -> int:
        if _is_said():
            return _ANY_SIZE
        raise self._no_number("int value (range(), list indices)")

    def __truediv__(self, other: Any) -> Any:
        return _float("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _float("div", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def _compare(self, relation: str, other: Any) -> bool:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self._compare("==", other)

    def __ne__(self, other: object) -> bool:
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> bool:
        return self._compare("<", other)

    def __le__(self, other: Any) -> bool:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> bool:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> bool:
        return self._compare(">=", other)

    def __bool__(self) -> bool:
        return self._compare("!=", 0)

    def sqrt(self) -> SymFloat:
        """The square root; NumPy and math call it by this name."""
        return computed("sqrt", (self,))

    def log(self) -> SymFloat:
        """The natural logarithm."""
        return computed("log", (self,))

    def exp(self) -> SymFloat:
        """The exponential."""
        return computed("exp", (self,))


_ANY_SIZE = 1
"""What a message shows in the place of a size: ``print("%d rows" % len(x))``."""


def _is_said() -> bool:
    """Does the program ask for a number that it only prints?"""
    return questions() is not None and asker(3) is not None and only_said()


class SymInt(_Symbolic):
    """A symbolic integer.  Arithmetic gives symbolic integers, comparisons decide."""

    __slots__ = ("dim",)
    is_whole = True

    def __init__(self, dim: Dim) -> None:
        self.dim = dim

    def node(self, dtype: DType) -> Node:
        """It as a number of the graph in progress."""
        return current().size(self.dim, dtype)

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks: the program's sizes are integers."""
        return SymInt if asker() is None else int

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a size cannot be set")

    def __getattr__(self, name: str) -> Any:
        if asker() is not None and hasattr(int, name):
            raise self._no_number(f"{name}")
        raise AttributeError(name)

    @property
    def real(self) -> SymInt:
        """Itself."""
        return self

    numerator = real

    @property
    def imag(self) -> int:
        """None: 0."""
        return 0

    @property
    def denominator(self) -> int:
        """1."""
        return 1

    def conjugate(self) -> SymInt:
        """Itself."""
        return self

    def as_integer_ratio(self) -> tuple[SymInt, int]:
        """Itself over 1."""
        return self, 1

    def bit_length(self) -> int:
        """Of a number: not known of a symbol."""
        raise self._no_number("bit_length()")

    def __repr__(self) -> str:
        text_asked("a size")
        return str(self.dim)

    def __format__(self, spec: str) -> str:
        text_asked("a size")
        with suppress(ValueError):  # of "d" and the like, which texts do not have
            return format(str(self.dim), spec)
        return str(self.dim)

    def __hash__(self) -> int:
        if asked_by_a_cache():
            raise TypeError("a size of a traced tensor has no hash")
        observed(f"the hash of the size {self.dim} is asked for, as sets and dictionaries do")
        return hash(self.dim)

    def __floor__(self) -> SymInt:
        return self

    __ceil__ = __trunc__ = __floor__

    def __round__(self, digits: int | None = None) -> Any:
        return rounded(self, digits)

    def __invert__(self) -> Any:
        return as_size(-self.dim - 1)

    def __and__(self, other: Any) -> Any:
        return self._bits("&", other, masked)

    def __or__(self, other: Any) -> Any:
        return self._bits("|", other, joined)

    def __xor__(self, other: Any) -> Any:
        return self._bits("^", other, differing)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> Any:
        return self._bits("<<", other, lambda size, places: size * _power_of_two(places))

    def __rshift__(self, other: Any) -> Any:
        return self._bits(">>", other, lambda size, places: size // _power_of_two(places))

    def __rlshift__(self, other: Any) -> Any:
        return self._bits("<<", other, None)

    def __rrshift__(self, other: Any) -> Any:
        return self._bits(">>", other, None)

    def _bits(self, sign: str, other: Any, compute: Callable[[Any, int], Any] | None) -> Any:
        """What an operation on bits makes of it and a number."""
        if not is_size(other):
            return NotImplemented
        if compute is None or isinstance(other, SymInt):
            raise self._no_number(f"known bits ({sign} takes a size and a number)")
        return compute(self, int(other))

    def __neg__(self) -> Any:
        return as_size(-self.dim)

    def __pos__(self) -> SymInt:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __add__(self, other: Any) -> Any:
        return _integer(self, other, lambda a, b: (a + b).shortened, "add")

    def __radd__(self, other: Any) -> Any:
        return _integer(other, self, lambda a, b: (a + b).shortened, "add")

    def __sub__(self, other: Any) -> Any:
        return _integer(self, other, lambda a, b: (a - b).shortened, "sub")

    def __rsub__(self, other: Any) -> Any:
        return _integer(other, self, lambda a, b: (a - b).shortened, "sub")

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            raise self._no_number("int value to repeat a sequence by")
        return _integer(self, other, lambda a, b: a * b, "mul")

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            raise self._no_number("int value to repeat a sequence by")
        return _integer(other, self, lambda a, b: a * b, "mul")

    def __floordiv__(self, other: Any) -> Any:
        return _integer(self, other, lambda a, b: a // b, "floordiv")

    def __rfloordiv__(self, other: Any) -> Any:
        return _integer(other, self, lambda a, b: a // b, "floordiv")

    def __mod__(self, other: Any) -> Any:
        return _integer(self, other, lambda a, b: a % b, "mod")

    def __rmod__(self, other: Any) -> Any:
        return _integer(other, self, lambda a, b: a % b, "mod")

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if isinstance(other, int) and 0 <= other <= MOST_FACTORS:
            power = as_size(dims.product([self.dim] * other))
            return power if modulo is None else power % modulo
        if modulo is not None:
            raise self._no_number("known power to divide")
        return _float("pow", self, other)

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            raise self._no_number("known value as a power")
        if isinstance(other, (int, float, np.number)) and not isinstance(other, _Symbolic):
            if other < 0:
                sign = 1 - 2 * (self % 2)
                return sign if other == -1 else sign * _float("pow", -other, self)
            if other == 0:
                return other ** self._compared_with_zero()
        return _float("pow", other, self)

    def _compared_with_zero(self) -> int:
        """1, 0 or -1."""
        return 1 if self > 0 else 0 if self == 0 else -1

    def _compare(self, relation: str, other: Any) -> bool:
        if isinstance(other, (float, np.floating)):
            if not math.isfinite(other) or (relation in ("==", "!=") and other % 1):
                return RELATIONS[relation](1.5, float(other))  # the same for any size
            other = math.floor(other) if relation in (">", "<=") else math.ceil(other)
        if not is_size(other):
            return NotImplemented  # type: ignore[no-any-return]
        return current().truth(self.dim, relation, as_dim(other))


def _is_binary(number: float) -> bool:
    """Is it an integer, or a binary fraction of few places?"""
    return math.isfinite(number) and number.as_integer_ratio()[1] <= _FEW and abs(number) <= _MANY


_FEW = 1 << 10
_MANY = 1 << 16


def _is_short(*numbers: Dim) -> bool:
    """Are they powers of two, by which floats are multiplied and divided exactly?"""
    known = [one.constant for one in numbers]
    return all(one is not None and abs(one) & (abs(one) - 1) == 0 for one in known)


def _ratio(value: Any) -> tuple[Dim, Dim] | None:
    """Two integers of which Python computes the quotient; None for any other number.

    It may round, but not to an integer or a binary fraction that the quotient is not, nor away from
    one that it is: where that takes part in what is added, or divides, the rest is exact.
    """
    value = _plain(value)
    if is_size(value):
        return as_dim(value), Dim.of(1)
    if isinstance(value, float):
        above, below = value.as_integer_ratio() if _is_binary(value) else (0, 0)
        return (Dim.of(above), Dim.of(below)) if below else None
    if not issubclass(type(value), SymFloat) or issubclass(type(value), ValuedNumber):
        return None
    if value.op not in ("add", "sub", "mul", "div", "neg"):
        return None
    found = [_ratio(one) for one in value.args]
    return None if None in found else _ratio_of(value.op, *found)  # type: ignore[arg-type]


def _ratio_of(op: str, *ratios: tuple[Dim, Dim]) -> tuple[Dim, Dim] | None:
    (a, b), *rest = ratios
    if op == "neg":
        return -a, b
    ((c, d),) = rest
    if op == "div":
        return (a * d, b * c) if _is_short(d) else None
    if op == "mul":
        exact = any(_is_short(*pair) for pair in ((b, d), (a, b), (c, d)))
        return (a * c, b * d) if exact else None
    if not (_is_short(b) or _is_short(d)):
        return None
    return (a * d + c * b if op == "add" else a * d - c * b), b * d


def _power_of_two(places: int) -> int:
    return 1 << places


def _integer(left: Any, right: Any, compute: Callable[[Dim, Dim], Dim], op: str) -> Any:
    if op in ("floordiv", "mod") and is_size(left) and is_size(right):
        check(op, (left, right))
    if is_size(left) and is_size(right):
        return as_size(compute(as_dim(left), as_dim(right)))
    return _float(op, left, right)


def _float(op: str, left: Any, right: Any) -> Any:
    for side in (left, right):
        if not isinstance(side, (int, float, np.number, _Symbolic)):
            return NotImplemented
    check(op, (left, right))
    if op == "pow" and isinstance(right, float) and abs(right) == 0.5:
        return _made("sqrt" if right > 0 else "rsqrt", (left,))
    return _made(op, (left, right))


def computed(op: str, args: tuple[Any, ...]) -> SymFloat:
    """The float ``op(*args)`` of numbers, sizes and such floats.  Raises what Python raises."""
    check(op, args)
    return _made(op, args)


def _made(op: str, args: tuple[Any, ...]) -> SymFloat:
    symbols = [arg for arg in args if isinstance(arg, SymFloat)]
    made = next((found for arg in symbols if (found := arg.derived(op, args)) is not None), None)
    return SymFloat(op, args) if made is None else made


class SymFloat(_Symbolic):
    """A float computed from symbolic sizes: ``op`` of numbers, sizes and other such floats.

    It becomes a node of the dtype that it meets, as a Python float takes a tensor's dtype.
    """

    __slots__ = ("args", "op")
    is_whole: bool = False

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        self.op = op
        self.args = args

    def node(self, dtype: DType) -> Node:
        """It as a number of the graph in progress; an integer is what is left before its point."""
        session = current()
        if not (dtype.is_float or self.is_whole):
            return session.cast(self.node(float64), dtype)
        operands = [
            arg.node(dtype) if isinstance(arg, _Symbolic) else session.constant(_plain(arg), dtype)
            for arg in self.args
        ]
        return session.apply(self.op, *operands)

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks: it is a float."""
        return SymFloat if asker() is None else float

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a number cannot be set")

    def type_is_asked(self) -> None:
        """Called where the program asks whether it is an int or a float."""

    @property
    def stands_for(self) -> Any:
        """What describes it when the trace is over."""
        return self

    @property
    def needed(self) -> Dim | None:
        """The first size that it is computed from."""
        found = [arg.needed for arg in self.args if isinstance(arg, _Symbolic)]
        return next((one for one in found if one is not None), None)

    def derived(self, op: str, args: tuple[Any, ...]) -> SymFloat | None:
        """What ``op`` makes of it and other numbers, where it has a class of its own for that."""
        return None

    def __repr__(self) -> str:
        text_asked("a number made of sizes")
        return f"{self.op}({', '.join(map(str, self.args))})"

    def __format__(self, spec: str) -> str:
        text_asked("a number made of sizes")
        return repr(self)

    def _quotient(self) -> tuple[Dim, Dim]:
        """The two integers that it is the quotient of.  Raises ControlFlowError."""
        found = _ratio(self)
        if found is None:
            raise self._no_number("int value")
        return found

    def __floor__(self) -> Any:
        left, right = self._quotient()
        return as_size(left // right)

    def __ceil__(self) -> Any:
        left, right = self._quotient()
        return as_size(-(-left // right))

    def __round__(self, digits: int | None = None) -> Any:
        if digits is not None:
            raise self._no_number("rounded value")
        return nearest(*map(as_size, self._quotient()))

    def __trunc__(self) -> Any:
        return truncated(*map(as_size, self._quotient()))

    @property
    def real(self) -> SymFloat:
        """Itself."""
        return self

    @property
    def imag(self) -> float:
        """None: 0."""
        return 0.0

    def conjugate(self) -> SymFloat:
        """Itself."""
        return self

    def is_integer(self) -> bool:
        """Of a number: not known of what sizes make."""
        raise self._no_number("known value")

    def as_integer_ratio(self) -> tuple[int, int]:
        """Of a number: not known of what sizes make."""
        raise self._no_number("known value")

    def hex(self) -> str:
        """Of a number: not known of what sizes make."""
        raise self._no_number("known value")

    def __neg__(self) -> SymFloat:
        return computed("neg", (self,))

    def __pos__(self) -> SymFloat:
        return self

    def __abs__(self) -> SymFloat:
        return computed("abs", (self,))

    def __floordiv__(self, other: Any) -> Any:
        return _float("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _float("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return _float("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _float("mod", other, self)

    def __add__(self, other: Any) -> Any:
        return _float("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _float("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _float("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _float("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _float("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _float("mul", other, self)

    def __pow__(self, other: Any) -> Any:
        return _float("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _float("pow", other, self)

    def _compare(self, relation: str, other: Any) -> bool:
        """Decided where both are quotients, and rounding does not tell."""
        if not isinstance(other, (int, float, np.number, _Symbolic)):
            return NotImplemented  # type: ignore[no-any-return]
        left, right = _ratio(self), _ratio(_plain(other))
        if left is None or right is None or not (_is_short(left[1]) or _is_short(right[1])):
            raise self._no_number("known value to compare")
        below, difference = left[1] * right[1], left[0] * right[1] - right[0] * left[1]
        positive = current().truth(below, ">", 0)
        return current().truth(difference if positive else -difference, relation, 0)

    def __hash__(self) -> int:
        observed("the hash of a number made of sizes is asked for")
        return object.__hash__(self)


class ValuedNumber(SymFloat):
    """A number with a value, which arithmetic does not ask for: whatever else Python asks does.

    ``value``: the one that it has now, if it is known.  ``is_whole``: it is an integer.
    """

    __slots__ = ("is_whole", "value")
    is_number_of_a_trace = True

    @property
    def __class__(self) -> type:
        """What ``isinstance`` sees: our own code this class, the user's an int or a float."""
        frame = asker()
        if frame is None:
            return type(self)
        if asks_for_a_class(frame):
            self.type_is_asked()
        return int if self.is_whole else float

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a number cannot be set")

    def settle(self) -> Any:
        """Its value: from here on the trace holds for that alone."""
        raise NotImplementedError

    def __hash__(self) -> int:
        return hash(self.settle())

    def __float__(self) -> float:
        return float(self.settle())

    def __int__(self) -> int:
        return int(self.settle())

    def __index__(self) -> int:
        return operator.index(self.settle())

    def __complex__(self) -> complex:
        return complex(self.settle())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.settle(), digits)

    def __trunc__(self) -> Any:
        return math.trunc(self.settle())

    def __floor__(self) -> Any:
        return math.floor(self.settle())

    def __ceil__(self) -> Any:
        return math.ceil(self.settle())

    def __repr__(self) -> str:
        return repr(self.settle())

    def __str__(self) -> str:
        return str(self.settle())

    def __format__(self, spec: str) -> str:
        return format(self.settle(), spec)

    def is_integer(self) -> bool:
        """As of a float."""
        return float(self.settle()).is_integer()

    def as_integer_ratio(self) -> tuple[int, int]:
        """As of a number."""
        found: tuple[int, int] = self.settle().as_integer_ratio()
        return found

    def hex(self) -> str:
        """As of a float."""
        return float(self.settle()).hex()

    def __copy__(self) -> ValuedNumber:
        return self

    def __deepcopy__(self, memo: Any) -> ValuedNumber:
        return self

    def __reduce__(self) -> Any:
        value = self.settle()
        return type(value), (value,)

    def __getattr__(self, name: str) -> Any:
        kind = int if self.is_whole else float
        if hasattr(int, name) != hasattr(float, name):
            self.type_is_asked()
        if not hasattr(kind, name):
            raise AttributeError(f"'{kind.__name__}' object has no attribute {name!r}")
        return getattr(self.settle(), name)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "true_divide": operator.truediv, "power": operator.pow,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "negative": operator.neg,
    "sqrt": lambda size: size.sqrt(), "log": lambda size: size.log(),
    "exp": lambda size: size.exp(), "square": lambda size: size * size,
    "floor": lambda size: math.floor(size) / 1, "ceil": lambda size: math.ceil(size) / 1,
    "trunc": lambda size: math.trunc(size) / 1, "rint": lambda size: round(size) / 1,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip


_OF_FLOATS = ("divide", "true_divide", "power", "sqrt", "log", "exp")
"""Those that give NaN or infinities where Python raises."""


# -- math's functions of sizes, during a trace


_UNARY = {"sqrt": "sqrt", "exp": "exp", "log": "log", "log2": "log2", "log10": "log10",
          "log1p": "log1p", "tanh": "tanh", "sin": "sin", "cos": "cos", "fabs": "abs"}  # fmt: skip
"""Functions that are operations of the same meaning, of plain numbers and JAX's sizes, too."""
_ALIKE = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "erf", "erfc", "exp2",
    "expm1", "lgamma", "sinh", "tan",
))  # fmt: skip
"""Functions that are operations of their names."""
_ROUNDING = ("ceil", "floor", "trunc")
"""Functions that ask their argument by a method."""
_ORIGINALS: dict[str, Callable[..., Any]] = {
    name: function for name, function in vars(math).items()
    if callable(function) and not name.startswith("_") and name not in _ROUNDING
}  # fmt: skip
_lock = threading.Lock()
_depth = 0


@contextmanager
def symbolic_math() -> Iterator[None]:
    """A block in which ``math``'s functions take symbolic sizes; who asks for frames is noted."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            for name, wrapped in _WRAPPED.items():
                setattr(math, name, wrapped)
            for name, original in _OF_FRAMES.items():
                setattr(inspect, name, _noted(name, original))
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                for name, original in _ORIGINALS.items():
                    setattr(math, name, original)
                for name, original in _OF_FRAMES.items():
                    setattr(inspect, name, original)


FRAMES = ("currentframe", "stack", "trace", "getframeinfo", "getouterframes", "getmodule")
"""Functions of ``inspect`` by which a program learns who calls it."""
_OF_FRAMES = {name: getattr(inspect, name) for name in FRAMES}


def _noted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not importing():
            observed(f"inspect.{name}() is called")
        return original(*args, **kwargs)

    return call


def _taking_sizes(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if name == "prod":
            return _product(original, *args, **kwargs)
        if name in _OF_LISTS:
            args = tuple(map(tuple, args))  # of generators, too
        values = [one for arg in args for one in (arg if name in _OF_LISTS else (arg,))]
        symbols = [one for one in values if isinstance(one, (SymInt, SymFloat))]
        if not symbols or (name not in _SHARED and _have_values(symbols)):
            theirs = next((arg for arg in args if hasattr(type(arg), SIZE_MATH)), None)
            if theirs is not None and name in _SHARED:
                return getattr(theirs, SIZE_MATH)(name, args)
            return original(*args, **kwargs)
        found = _of_sizes(name, original, args) if not kwargs else None
        if found is None:
            raise symbols[0]._no_number(f"value that math.{name} could take")
        return found

    return call


_OF_LISTS = ("fsum", "dist")
_SHARED = frozenset((*_UNARY, "pow"))


def _have_values(symbols: Iterable[Any]) -> bool:
    """Are all of them numbers with values, which the functions may ask for?"""
    return all(issubclass(type(one), ValuedNumber) for one in symbols)


def _of_sizes(name: str, original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """A function of symbolic numbers; None where it has no symbolic value."""
    if name == "log" and len(args) == 2:
        return computed("log", (args[0],)) / original(args[1])
    if name in _UNARY or name in _ALIKE:
        return computed(_UNARY.get(name, name), args)
    own = _OWN.get(name)
    try:
        return None if own is None else own(*args)
    except TypeError:  # another argument is a symbol, too
        return None


def _greatest_divisor(*numbers: Any) -> Any:
    found: Any = 0
    for one in numbers:
        symbolic, other = (one, found) if isinstance(one, SymInt) else (found, one)
        if isinstance(symbolic, SymInt) and not isinstance(other, int):
            return None
        found = (
            greatest_divisor(symbolic, other) if isinstance(symbolic, SymInt)
            else math.gcd(symbolic, other)
        )  # fmt: skip
        if found is None:
            return None
    return found


def _least_multiple(left: Any, right: Any) -> Any:
    divisor = _greatest_divisor(left, right)
    return None if divisor is None else abs(left * right) // divisor


def _of_count(compute: Callable[[Any, int], Any]) -> Callable[[Any, Any], Any]:
    """A function of a size and a number of factors."""
    return lambda size, count: compute(size, count) if type(count) is int else None


_OWN: dict[str, Callable[..., Any]] = {
    "pow": operator.pow,
    "isfinite": lambda x: True, "isnan": lambda x: False, "isinf": lambda x: False,
    "fsum": sum,
    "hypot": lambda *xs: computed("sqrt", (sum(x * x for x in xs),)),
    "dist": lambda xs, ys: computed(
        "sqrt", (sum((x - y) * (x - y) for x, y in zip(xs, ys, strict=True)),)
    ),
    "degrees": lambda x: x * (180.0 / math.pi), "radians": lambda x: x * (math.pi / 180.0),
    "ldexp": lambda x, places: x * 2.0**places if type(places) is int else None,
    "gamma": lambda x: computed("exp", (computed("lgamma", (x,)),)) if x > 0 else None,
    "gcd": _greatest_divisor, "lcm": _least_multiple,
    "comb": _of_count(combinations), "perm": _of_count(arrangements),
}  # fmt: skip
"""Functions by what they are made of."""
_WRAPPED = {name: _taking_sizes(name, original) for name, original in _ORIGINALS.items()}


def takes_sizes_for(value: Any, original: Any) -> bool:
    """Does one stand in the place of the other, a function of ``math``, during a trace?"""
    return any(one is original and _WRAPPED[name] is value for name, one in _ORIGINALS.items())


def _product(original: Callable[..., Any], values: Any, *, start: Any = 1) -> Any:
    if isinstance(values, Shape):
        return values.numel() * start
    items = list(values)
    if not any(isinstance(item, (SymInt, SymFloat)) for item in (*items, start)):
        return original(items, start=start)
    return functools.reduce(lambda total, item: total * item, items, start)
