"""``type`` as a traced program calls it.

In: the modules of a Function whose code is not plain.  Out: the same modules with a ``type`` that
gives the classes of real values: ``int`` for a size, symgrad's Tensor for a tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from symgrad.frontend.caller import here
from symgrad.frontend.questions import questions
from symgrad.frontend.sizes import SymFloat, SymInt
from symgrad.frontend.tensor import SymbolicTensor, public_class


class _Asking(type):
    """What makes ``Type`` answer as ``type`` does."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return type(*args, **kwargs)
        found = _class_of(args[0])
        return Type if found is type else found

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, value: Any) -> bool:
        return issubclass(value, type)


class Type(type, metaclass=_Asking):
    """``type``, to a program that is traced."""


def _class_of(value: Any) -> type:
    if isinstance(value, SymInt):
        return int
    if isinstance(value, SymFloat):
        return int if value.is_whole else float
    if not isinstance(value, SymbolicTensor):
        return type(value)
    found = public_class(parameter=value.is_parameter)
    known = questions()
    if known is not None:
        package = found.__module__.partition(".")[0]
        known.assume(f"the classes of tensors are those of the module {package}", here())
    return found


@contextmanager
def real_types(modules: Iterable[dict[str, Any]]) -> Iterator[None]:
    """A block in which ``type`` gives the classes of real values in these modules."""
    changed = [names for names in modules if "type" not in names]
    for names in changed:
        names["type"] = Type
    try:
        yield
    finally:
        for names in changed:
            if names.get("type") is Type:
                del names["type"]
