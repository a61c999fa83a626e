"""What stands around the trace of a function of JAX: questions that a program asks of sizes.

In: a trace.  Out: a block in which JAX's symbolic sizes answer as ours do, in this thread.

JAX decides what follows for all sizes.  Where it does not follow, JAX takes two sizes for unequal,
or raises an error: here the program is answered by the trace, which splits, and what JAX itself
could not decide is decided so too.  What it may not know (the text or the hash of a size, that a
value is traced) is noted, so that no handler of the program hides it.

JAX has no hook for this: methods of its class of sizes, and the constructor of its errors, are
replaced in the whole process while a trace is in progress anywhere, and do for whoever is not
traced what they did before.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import custom_derivatives

from symgrad.errors import ControlFlowError
from symgrad.frontend.caller import asker, frame_location, is_in, user_frame
from symgrad.frontend.guests import Call, Measured, NotMeasured
from symgrad.frontend.questions import note_limit, observed, text_asked
from symgrad.frontend.request import Request
from symgrad.frontend.session import Session, active
from symgrad.frontend.sizes import SIZE_MATH, as_size
from symgrad.interop.jax.quotients import number_of, with_number
from symgrad.interop.jax.sizes import JaxDim, sizes

_ERRORS: Any = next(
    base for base in jax.errors.ConcretizationTypeError.__mro__ if base.__name__ == "_JAXErrorMixin"
)
_INCONCLUSIVE: Any = jax.errors.InconclusiveDimensionOperation
_FOR_TRACERS = "_check_for_tracers"
_ABSENT: Any = object()
_DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "truediv": operator.truediv, "floordiv": operator.floordiv, "mod": operator.mod,
    "divmod": divmod,
}  # fmt: skip
_ASKING = ("jax._src.core.", "jax._src.errors.")
"""Modules of JAX that ask a value on behalf of their callers."""


class JaxGuest:
    """JAX, while one of its functions is traced."""

    repairs = True
    library = "JAX"
    divides_by_zero = True
    narrow: tuple[str, ...] = ("float16", "bfloat16")
    watches_dtypes = False
    values: tuple[Any, ...] = ()
    removed: Mapping[str, str] = MappingProxyType({})
    spawns = True
    strided = False
    shapes_hint = (
        '; those of a container in sg.verify or symgrad.toml, as in {w = "n m"}, or'
        ' [("n m", "m"), ("m k", "k")] for a list'
    )

    def variant(self, kind: type) -> type:
        """The class to make tensors and numbers of: the program sees none of them."""
        return kind

    def public(self, *, parameter: bool) -> type:
        """``jax.Array``."""
        found: type = jax.Array
        return found

    def context(self, function: Any) -> type | None:
        """The program sees no ctx."""
        return None

    def stand_in(self, value: Any) -> Any:
        """Nothing stands in the place of a class."""
        return None

    def measured(self, original: Any, call: Call) -> Measured:
        """No call in a fork: JAX has threads."""
        raise NotMeasured("functions of JAX are not run in a fork")

    def measured_all(self, original: Any, calls: Sequence[Call]) -> list[Measured | str]:
        """What real calls give, each, in a process of their own."""
        from symgrad.interop.jax.spawned import measured_all

        return measured_all(original, calls)

    def shape(self) -> type:
        """A shape is a tuple."""
        return tuple

    def device(self) -> type:
        """``jax.Device``."""
        found: type = jax.Device
        return found

    @contextmanager
    def running(self, session: Session) -> Iterator[None]:
        """A block in which JAX's sizes answer as the trace does."""
        with ExitStack() as stack:
            stack.enter_context(_patches)
            yield

    def worded(self, text: str) -> str:
        """The text as it is: JAX has no functions under symgrad's names."""
        return text

    def kinds_of(self, name: str) -> Mapping[int | str, str]:
        """Nothing: its functions have no signatures that say it."""
        return {}

    def returned(self, value: Any) -> Any:
        """What forward or backward returned."""
        return value

    def attempts(self, original: Any) -> Any:
        """None of its Functions is run to find shapes: every call is made by another program."""
        raise NotImplementedError

    def completed(self, request: Request, report: Any, rank: int | None) -> Any:
        """The report, with whether ``fwd`` returns what ``fun`` returns."""
        from symgrad.interop.jax.agreement import completed

        return completed(request, report, rank)


GUEST = JaxGuest()


def is_traced_here() -> bool:
    """Is a function of JAX traced in this thread?"""
    session = active()
    return session is not None and session.guest is GUEST


def _sized(value: Any) -> Any:
    """A size as ours; anything else as it is."""
    return as_size(sizes().ours(value)) if isinstance(value, JaxDim) else value


def _compared(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    compare: Callable[[Any, Any], Any] = getattr(operator, name.strip("_"))

    def method(self: Any, other: Any) -> Any:
        if not is_traced_here():
            return original(self, other)
        if asker(2) is not None:
            left, right = _sized(self), _sized(other)
            if isinstance(left, int) or isinstance(right, (int, float)) or right is not other:
                return compare(left, right)
            return original(self, other)
        try:
            answer = original(self, other)
        except _INCONCLUSIVE:
            return compare(_sized(self), _sized(other))
        if name == "__eq__" and answer is False:
            sizes().unequal.append((self, other))
        return answer

    return method


def _noted(note: Callable[[], None], original: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        if is_traced_here() and asker(2) is not None:
            note()
        return original(self, *args)

    return method


def _truth(self: Any) -> bool:
    """``if n``: a size of JAX's has no truth value of its own, so that it would always be true."""
    if is_traced_here() and asker(2) is not None:
        return bool(_sized(self) != 0)
    return True


def _number(self: Any) -> Any:
    """A size as a Python float of JAX's, which takes the dtype of what it meets."""
    return jnp.multiply(self, 1.0)


_MATH: dict[str, Callable[..., Any]] = {
    "sqrt": jnp.sqrt, "exp": jnp.exp, "log": jnp.log, "log2": jnp.log2, "log10": jnp.log10,
    "log1p": jnp.log1p, "tanh": jnp.tanh, "sin": jnp.sin, "cos": jnp.cos, "fabs": jnp.abs,
    "pow": jnp.power,
}  # fmt: skip


def _math(self: Any, name: str, args: Any) -> Any:
    """What a function of ``math`` gives for sizes.  Raises what Python raises."""
    known = [number_of(one) for one in args]
    found = None if any(one is None for one in known) else getattr(math, name)(*known)
    traced = _MATH[name](*(_number(one) if isinstance(one, JaxDim) else one for one in args))
    return with_number(traced, found)


def _power(original: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, power: Any, modulo: Any = None) -> Any:
        if is_traced_here() and isinstance(power, (int, float)) and (power < 0 or power % 1):
            return with_number(_number(self) ** power, _sized(self) ** power)
        return original(self, power, modulo)

    return method


def _divided(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A division of sizes, which raises what Python raises."""
    is_reflected = name.startswith("r")
    compute: Callable[[Any, Any], Any] = _DIVISIONS[name.removeprefix("r")]

    def method(self: Any, other: Any) -> Any:
        sides = (_sized(self), number_of(other)) if is_traced_here() and asker(2) else (None, None)
        if sides[1] is None:
            return original(self, other)
        found = compute(*(sides[::-1] if is_reflected else sides))
        return with_number(original(self, other), found)

    return method


def _attribute(original: Callable[..., Any]) -> Callable[..., Any]:
    """What ``isinstance`` asks: the program's sizes are integers."""

    def method(self: Any, name: str) -> Any:
        if name == "__class__" and is_traced_here() and asker(2) is not None:
            return int
        return original(self, name)

    return method


def _constructor(original: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, message: str) -> None:
        original(self, message)
        if is_traced_here() and _asked_by_the_program():
            first = message.strip().splitlines()[0]
            frame = user_frame()
            note_limit(ControlFlowError(f"JAX: {first}", location=frame_location(frame)))

    return method


def _unless_traced(original: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's check that a rule's plain arguments are known: a symbol stands for each number here."""

    def check(value: Any) -> None:
        if not is_traced_here():
            original(value)

    return check


def _asked_by_the_program() -> bool:
    """Is an error of JAX about what the program asks, and not about what JAX tries itself?"""
    frame = sys._getframe(2)
    while frame.f_back is not None and is_in(frame, _ASKING):
        frame = frame.f_back
    return not is_in(frame, ("jax.", "symgrad."))


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """What is replaced: where, its name, by what."""
    for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        yield JaxDim, name, _compared(name, getattr(JaxDim, name))
    hashed = functools.partial(observed, "the hash of a size is asked for")
    yield JaxDim, "__hash__", _noted(hashed, JaxDim.__hash__)
    for name in ("__str__", "__repr__", "__format__"):
        yield JaxDim, name, _noted(functools.partial(text_asked, "a size"), getattr(JaxDim, name))
    yield JaxDim, "__bool__", _truth
    for name in _DIVISIONS:
        for known in (name, f"r{name}"):
            yield JaxDim, f"__{known}__", _divided(known, getattr(JaxDim, f"__{known}__"))
    yield JaxDim, "__pow__", _power(JaxDim.__pow__)
    yield JaxDim, "__getattribute__", _attribute(JaxDim.__getattribute__)
    yield JaxDim, SIZE_MATH, _math
    for name in ("sqrt", "exp", "log"):
        yield JaxDim, name, lambda self, known=name: _math(self, known, (self,))
    yield _ERRORS, "__init__", _constructor(_ERRORS.__init__)
    yield custom_derivatives, _FOR_TRACERS, _unless_traced(vars(custom_derivatives)[_FOR_TRACERS])


class _Patches:
    """The replaced methods of JAX's; the last trace to end puts them back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> None:
        with self.lock:
            if not self.depth:
                for owner, name, new in list(_replacements()):
                    self.before.append((owner, name, vars(owner).get(name, _ABSENT)))
                    setattr(owner, name, new)
            self.depth += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth:
                return
            while self.before:
                owner, name, old = self.before.pop()
                if old is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, old)


_patches = _Patches()
