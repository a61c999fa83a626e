"""A ``torch.autograd.Function`` as a ``symgrad.Function``.

In: a class.  Out: a class of the same name, with the user's own methods.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from types import FunctionType
from typing import Any

import torch

from symgrad.errors import Location, SpecError
from symgrad.frontend.function import METHODS, Function, once_differentiable
from symgrad.interop.torch.running import GUEST

_BASE = torch.autograd.Function
_WRAPPERS = {
    "decorate_fwd": "torch.amp.autocast_mode",
    "decorate_bwd": "torch.amp.autocast_mode",
    "wrapper": "torch.autograd.function",
}
"""What torch's own decorators of methods make: ``custom_fwd``, ``custom_bwd``,
``once_differentiable``."""
_UNWRITTEN = (
    "there is no backward: torch raises NotImplementedError (You must implement either the"
    " backward or vjp method)"
)

_known: weakref.WeakKeyDictionary[Any, type[Function]] = weakref.WeakKeyDictionary()


class _Adapted(type):
    """The metaclass of adapted classes: what they lack is looked up on the class of the user's."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or "symgrad_original" not in vars(cls):
            raise AttributeError(name)
        return getattr(vars(cls)["symgrad_original"], name)


class _OfOriginal(classmethod):  # type: ignore[type-arg]
    """A class method that is called on the class of the user's, for ``super()`` in it."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The method, bound."""
        return functools.partial(self.__func__, vars(owner)["symgrad_original"])


def adapted(cls: Any) -> type[Function]:
    """The class as a Function, always the same one.

    Raises SpecError where torch does not run it.
    """
    found = _known.get(cls)
    if found is None:
        found = _known[cls] = _adapted(cls)
    return found


def _adapted(cls: Any) -> type[Function]:
    members: dict[str, Any] = {
        "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
        "symgrad_guest": GUEST, "symgrad_original": cls, "symgrad_unwritten": _UNWRITTEN,
        "symgrad_unjudged": _unjudged(cls),
    }  # fmt: skip
    for name in (*METHODS, "vjp"):
        raw = inspect.getattr_static(cls, name)
        if raw is not inspect.getattr_static(_BASE, name):
            members[name] = _method(cls, name, raw)
    found: Any = _Adapted(cls.__name__, (Function,), members)
    return found  # type: ignore[no-any-return]


def _unjudged(cls: Any) -> str:
    """That nothing compares a hand-written ``vmap`` with forward; empty where there is none."""
    raw = inspect.getattr_static(cls, "vmap")
    if raw is inspect.getattr_static(_BASE, "vmap"):
        return ""
    code = getattr(inspect.unwrap(getattr(raw, "__func__", raw)), "__code__", None)
    where = f" ({Location(code.co_filename, code.co_firstlineno)})" if code is not None else ""
    return (
        f"vmap{where} was not judged. torch.func.vmap calls it in the place of forward: compare "
        "both yourself, or write generate_vmap_rule = True in its place"
    )


def _method(cls: Any, name: str, raw: Any) -> Any:
    """A method without torch's decorators; a plain function is called on the class, as torch does.

    Its ``self`` is then the ctx.  Raises SpecError where the class is to be made with arguments:
    torch calls no instance, and ``apply`` makes none.
    """
    kind: Any = _OfOriginal if isinstance(raw, classmethod) else staticmethod
    plain: Any = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
    if (
        isinstance(raw, FunctionType)
        and cls.__init__ is not _BASE.__init__
        and next(iter(inspect.signature(raw).parameters), "") == "self"
    ):
        raise SpecError(
            f"{cls.__name__}: {name} is a method of an instance that __init__ makes, which torch no"
            " longer calls",
            location=Location(raw.__code__.co_filename, raw.__code__.co_firstlineno),
            hint="write @staticmethod above it, ctx in the place of self, and what __init__ takes "
            "among the arguments",
        )
    once = False
    while _is_wrapper(plain):
        once = once or plain.__code__.co_name == "wrapper"
        plain = plain.__wrapped__
    return kind(once_differentiable(plain) if once else plain)


def _is_wrapper(function: Any) -> bool:
    """Is it what one of torch's decorators made?  Autocast is off, so that it does nothing."""
    code = getattr(function, "__code__", None)
    names = getattr(function, "__globals__", {})
    return (
        code is not None
        and hasattr(function, "__wrapped__")
        and _WRAPPERS.get(code.co_name) == names.get("__name__")
    )
