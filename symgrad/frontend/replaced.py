"""References in the place of what cannot be traced: kernels, extensions.

In: the names of functions, and of what stands for each.  Out: a block in which the program calls
the references; each that a trace calls is printed as a condition.

A reference takes the arguments of what it stands for.  In the place of an object that is launched
(``kernel[grid](...)``), it takes those of the launch.  It stands wherever a module has the
function by a name, so that ``from kernels import swish`` is replaced as well.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any

from symgrad.errors import SpecError
from symgrad.frontend.caller import here
from symgrad.frontend.questions import questions

Replace = Mapping[str, "str | Callable[..., Any]"]
_active: ContextVar[tuple[Callable[..., Any], ...]] = ContextVar("references", default=())


def references() -> tuple[Callable[..., Any], ...]:
    """What stands in the place of something here."""
    return _active.get()


@contextmanager
def replaced(function: Any, wanted: Replace | None) -> Iterator[None]:
    """A block in which a program calls references.  Raises SpecError for names of nothing.

    ``function``: the class whose module has the names without dots.
    """
    if not wanted:
        yield
        return
    if not isinstance(wanted, Mapping):
        raise SpecError(
            f"replace={wanted!r} is no dictionary",
            hint='give names of functions and references: replace={"kernels.fused": reference}',
        )
    own = sys.modules.get(function.__module__)
    found = [(name, *_place(name, own), reference(ref, own)) for name, ref in wanted.items()]
    token = _active.set((*references(), *(one[-1][1] for one in found)))
    try:
        with ExitStack() as stack:
            for name, owner, attribute, (said, stand_in) in found:
                old = getattr(owner, attribute)
                new = _standing(old, f"{name} computes what {said} does", stand_in)
                for place, key in _bindings(owner, attribute, old):
                    stack.callback(setattr, place, key, old)
                    setattr(place, key, new)
            yield
    finally:
        _active.reset(token)


def _place(name: str, own: ModuleType | None) -> tuple[Any, str]:
    """What has an attribute, and the attribute.  Raises SpecError."""
    path, _, attribute = name.rpartition(".")
    owner: Any = own if not path else _found(path, own)
    if owner is None or not hasattr(owner, attribute):
        raise SpecError(
            f"there is no {name} to replace",
            hint="write module.function, as Python imports it; a name without dots is one of the "
            "module of the class",
        )
    return owner, attribute


def reference(given: Any, own: ModuleType | None) -> tuple[str, Callable[..., Any]]:
    """A function, by its dotted name or itself, and what it is called.  Raises SpecError.

    A name without dots is one of the module ``own``.
    """
    if callable(given):
        return getattr(given, "__qualname__", type(given).__name__), given
    if isinstance(given, str):
        path, _, attribute = given.rpartition(".")
        owner = own if not path else _found(path, own)
        found = getattr(owner, attribute, None)
        if callable(found):
            return given, found
    raise SpecError(
        f"there is no function {given!r}",
        hint="write module.function, or pass the function itself",
    )


def _found(path: str, own: ModuleType | None) -> Any:
    """A module, or what stands in one, by its dotted name; None where there is none."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        module = _module(".".join(parts[:length]), own)
        if module is not None:
            found: Any = module
            for part in parts[length:]:
                found = getattr(found, part, None)
            return found
    return None


def _module(name: str, own: ModuleType | None) -> ModuleType | None:
    if own is not None and name == own.__name__:
        return own
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is not None and not f"{name}.".startswith(f"{error.name}."):
            raise SpecError(f"{name} cannot be imported: {error}") from error
        return None


def _bindings(owner: Any, attribute: str, old: Any) -> list[tuple[Any, str]]:
    """Where the same object has a name: there, and in modules."""
    found = [(owner, attribute)]
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if not isinstance(module, ModuleType) or names is None or _is_ours(module.__name__):
            continue
        found += [
            (module, key) for key, value in list(names.items())
            if value is old and (module is not owner or key != attribute)
        ]  # fmt: skip
    return found


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == "symgrad"


class _Launched:
    """In the place of an object that is no plain function: it may be launched on a grid."""

    def __init__(self, called: Callable[..., Any]) -> None:
        self.called = called

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.called(*args, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return self.called


def _standing(old: Any, condition: str, reference: Callable[..., Any]) -> Any:
    """What stands in the place of an object, and says so where a trace calls it."""

    @functools.wraps(reference)
    def called(*args: Any, **kwargs: Any) -> Any:
        known = questions()
        if known is not None:
            known.assume(condition, here())
        return reference(*args, **kwargs)

    launched = hasattr(type(old), "__getitem__") and not isinstance(old, FunctionType)
    if launched:
        return _Launched(called)
    return staticmethod(called) if isinstance(old, staticmethod) else called
