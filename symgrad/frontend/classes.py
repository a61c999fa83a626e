"""``type`` as a traced program calls it.

In: the modules of a Function whose code is not plain.  Out: the same modules with a ``type`` that
gives the classes of real values: ``int`` for a size, symgrad's or torch's Tensor for a tensor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
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
    frame = sys._getframe(2)
    parameter = value.is_parameter
    word = "Parameter" if parameter else "Tensor"
    found = _tensor_class(frame.f_globals, word) or public_class(parameter=parameter)
    known = questions()
    if known is not None:
        package = found.__module__.partition(".")[0]
        known.assume(f"the classes of tensors are those of the module {package}", here())
    return found


def _tensor_class(names: Mapping[str, Any], word: str) -> type | None:
    """The class that a module knows as Tensor or Parameter: torch's if it imports torch."""
    torch = any(
        isinstance(one, ModuleType) and one.__name__.partition(".")[0] == "torch"
        for one in names.values()
    )
    homes = {"Tensor": "symgrad.tensor.tensor", "Parameter": "symgrad.nn.parameter"}
    home = "torch.nn" if torch and word == "Parameter" else "torch" if torch else homes[word]
    found = getattr(sys.modules.get(home), word, None)
    return found if isinstance(found, type) else None


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
