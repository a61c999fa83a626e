"""The tensor of an any-rank trace: every look at it is either known to be harmless or recorded.

In: what the program does with a tensor.  Out: what the symbolic tensor gives, or an observation.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import symgrad.frontend.functions  # noqa: F401  (attaches the methods that are guarded here)
from symgrad.frontend.anyrank.session import AnyRankSession, layout_of
from symgrad.frontend.anyrank.shape import AnyRankShape, rank_of
from symgrad.frontend.session import active
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.views import contiguous_strides

_OURS = "symgrad.frontend."
_FRAMEWORK = frozenset(
    _OURS + name
    for name in (
        "case", "function", "gradients", "history", "questions", "tensor", "anyrank.call",
        "anyrank.tensor",
    )
)  # fmt: skip
"""Modules that look at tensors on behalf of no operation of the program's."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HARMLESS = _words(
    """dtype requires_grad is_leaf is_cuda is_sparse is_quantized grad grad_fn device layout is_cpu
    __class__ __array_priority__ __doc__ __copy__"""
)
"""Attributes that say the same for every number of axes."""

_COMPUTED = _words("T H mT mH data")
"""Properties that are operations."""


class AnyRankTensor(SymbolicTensor):
    """A symbolic tensor in an any-rank trace, whether or not it has one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        session = active()
        if session is not None:
            self.strides = tuple(map(session.flat, self.strides))

    @property
    def lies_contiguous(self) -> bool:
        """Do its elements follow one another in memory?"""
        session = active()
        assert session is not None
        shape = tuple(map(session.flat, self.node.shape))
        plain = contiguous_strides(shape)
        return all(
            size == 1 or stride == wanted
            for size, stride, wanted in zip(shape, self.strides, plain, strict=True)
        )

    def __getattribute__(self, name: str) -> Any:
        session = active()
        if name in _HARMLESS or not isinstance(session, AnyRankSession):
            return object.__getattribute__(self, name)
        if _internal(session, sys._getframe(1).f_globals.get("__name__")):
            return object.__getattribute__(self, name)
        found = inspect.getattr_static(SymbolicTensor, name, None)
        if isinstance(found, FunctionType):
            return session.bound(name, found, self)
        if isinstance(found, property) and name in _COMPUTED:
            return session.call(name, found.fget, (self,), {})  # type: ignore[arg-type]
        if layout_of(object.__getattribute__(self, "node").shape) is None:
            return object.__getattribute__(self, name)
        if name == "shape":
            return AnyRankShape.of(object.__getattribute__(self, "node").shape)
        if name == "ndim":
            return rank_of(object.__getattribute__(self, "node").shape)
        value = object.__getattribute__(self, name)  # raises for what no tensor has
        session.observe(f".{name} is read")
        return value


def _internal(session: AnyRankSession, module: str | None) -> bool:
    """Is it a module of ours that looks, for an operation that is known or for none?"""
    return module in _FRAMEWORK or (session.inside > 0 and (module or "").startswith(_OURS))


def _guarded(name: str, raw: Callable[..., Any]) -> Callable[..., Any]:
    """An operator or another special method, which Python looks up on the class."""

    def method(self: AnyRankTensor, *args: Any, **kwargs: Any) -> Any:
        session = active()
        if not isinstance(session, AnyRankSession) or _internal(
            session, sys._getframe(1).f_globals.get("__name__")
        ):
            return raw(self, *args, **kwargs)
        return session.call(name, raw, (self, *args), kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = raw.__doc__
    return method


_OWN = _words(
    "__new__ __init__ __getattr__ __getattribute__ __setattr__ __delattr__ __getstate__ __dir__ "
    "__hash__"
)
for _name, _value in list(vars(SymbolicTensor).items()):
    if _name.startswith("__") and isinstance(_value, FunctionType) and _name not in _OWN:
        setattr(AnyRankTensor, _name, _guarded(_name, _value))
