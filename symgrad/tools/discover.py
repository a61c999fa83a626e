"""Finding the Functions that a command line names.

In: ``path/to/file.py``, ``path/to/folder``, ``package.module``, each with ``:Class`` after it or
not.  Out: Function classes, in the order of their source.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from symgrad.errors import Location, SpecError, counted
from symgrad.frontend.function import Function, class_location
from symgrad.frontend.guests import adapter_of, taken
from symgrad.tools.importing import load_file, look_here
from symgrad.tools.sources import LOCAL, SCRIPTS, Source, files_of, in_files, may_define


@dataclass(frozen=True)
class Unread:
    """A file that cannot be imported, and why; ``name``: a class in it that its library refuses."""

    path: Path
    error: SpecError
    name: str = ""


def functions(*targets: str) -> list[type[Function]]:
    """The Functions of files, folders and packages, or the one class named after a colon.

    Raises SpecError where there is none, none of that name, or a file that cannot be imported.
    """
    classes, unread = parted(read(*targets))
    for one in unread:
        raise one.error
    return classes


def read(*targets: str) -> list[type[Function] | Unread]:
    """The same, with files that cannot be imported; raises where there is nothing else."""
    look_here()
    found = [one for target in targets for one in _read(target)]
    classes, unread = parted(found)
    for one in [] if classes else unread:
        raise one.error
    return found


def parted(
    found: Sequence[type[Function] | Unread],
) -> tuple[list[type[Function]], list[Unread]]:
    """The classes, and the files that cannot be imported, or classes that are refused."""
    unread = [one for one in found if isinstance(one, Unread)]
    return [one for one in found if not isinstance(one, Unread)], unread


def _read(target: str) -> list[type[Function] | Unread]:
    place, _, wanted = (target, "", "") if Path(target).exists() else target.partition(":")
    wanted = wanted.removeprefix(":")  # `ops.py::Class` is the name of the test
    modules = list(_modules(place))
    found: list[type[Function] | Unread] = []
    for one in modules:
        found += [one] if isinstance(one, Unread) else [*defined(one), *refused_of(one)]
    classes, unread = parted(found)
    for refused in unread:
        if wanted and refused.name == wanted:
            raise refused.error
    named = [one for one in classes if one.__qualname__ == wanted or _is_at(one, wanted, modules)]
    if named or (found and not wanted):
        return [*named] or found
    if unread and not (wanted and all(one.name for one in unread)):
        return [*unread]
    for module in modules:
        for cls in [] if isinstance(module, Unread) else _without_forward(module):
            if wanted in ("", cls.__qualname__):
                raise _no_forward(cls)
    local = [one for one in in_files(list(files_of(place))) if one.inside]
    asked = [one for one in local if wanted in ("", one.qualname, *_names_of(one))]
    if asked:
        raise _made_in_a_function(asked)
    if wanted:
        known = ", ".join(cls.__qualname__ for cls in classes) or "none"
        raise SpecError(f"{place} has no Function {wanted!r}", hint=f"its Functions: {known}")
    raise SpecError(
        f"{place} defines no Function",
        hint="subclass symgrad.Function or torch.autograd.Function, or use jax.custom_vjp",
    )


def _is_at(cls: type[Function], name: str, modules: Sequence[ModuleType | Unread]) -> bool:
    """Does a module call a class so, which a function has made under another name?"""
    values = [vars(one).get(name) for one in modules if not isinstance(one, Unread)]
    return any(
        inspect.isclass(one) and not _why_refused(one) and taken(one) is cls
        for one in values if one is not None
    )  # fmt: skip


def _names_of(local: Source) -> tuple[str, str]:
    """What a class in a function may be asked for by: its own name, and that of the function."""
    outer, _, name = local.qualname.partition(f".{LOCAL}.")
    return name.rpartition(".")[2], outer


def _made_in_a_function(local: Sequence[Source]) -> SpecError:
    """The error for classes that an import does not make."""
    one = local[0]
    name, outer = _names_of(one)
    others = f"; so {'are' if local[2:] else 'is'} {counted(len(local) - 1, 'other')}"
    called = "" if "." in outer else f"; or name what the function makes: {name} = {outer}(...)"
    return SpecError(
        f"{name} is defined inside {outer}, so that it exists only once that has run"
        f"{others if local[1:] else ''}",
        location=Location(str(one.file), one.line),
        hint=f"move it to the top of the file{called}",
    )


def not_made(targets: Sequence[str], found: Sequence[type[Function] | Unread]) -> list[str]:
    """A note on the classes inside of functions, none of which an import makes."""
    places = [place for place in targets if Path(place).exists()]
    known = {str(class_location(one)) for one in parted(found)[0]}
    local = [
        f"{one.qualname} ({where})" for place in places for one in in_files(list(files_of(place)))
        if one.inside and not one.jax and (where := f"{one.file.resolve()}:{one.line}") not in known
    ]  # fmt: skip
    if not local:
        return []
    said = f"not judged: {', '.join(local)}, defined inside of functions"
    return [f"{said}; to judge a class, move it to the top of its file"]


def _modules(place: str) -> Iterator[ModuleType | Unread]:
    """The modules of a place; scripts of a folder are not run."""
    files = list(files_of(place))
    for file in files:
        if file.name in SCRIPTS and str(file) != place:
            continue
        try:
            yield load_file(file)
        except SpecError as error:
            if str(file) == place or may_define(file):
                yield Unread(file, error)
    if not files and not Path(place).exists():
        yield _without_file(place)


def _without_file(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and not name.startswith(error.name):
            raise
        raise SpecError(f"there is neither a file nor a module {name!r}") from None


def _without_forward(module: ModuleType) -> list[type[Function]]:
    """The Function classes that a module itself defines and that have no forward."""
    return [cls for cls in _own(module) if cls.forward is Function.forward]


def _own(module: ModuleType) -> list[type[Function]]:
    """The Functions that a module itself defines, those of torch and JAX adapted.

    Without those that their library refuses.
    """
    return [taken(value) for value in _stated(module) if not _why_refused(value)]


def _stated(module: ModuleType) -> Iterator[Any]:
    """The Functions that a module itself defines, as it has them."""
    for value in _values(module, module.__name__, set()):
        own = inspect.isclass(value) and issubclass(value, Function)
        if (own or adapter_of(value)) and module.__name__ in _modules_of(value):
            yield value


def _why_refused(value: Any) -> SpecError | None:
    """Why the library of a Function does not run it; None where it does."""
    try:
        taken(value)
    except SpecError as error:
        return error
    return None


def refused_of(module: ModuleType) -> Iterator[Unread]:
    """The Functions of a module that their library refuses."""
    for value in dict.fromkeys(_stated(module)):
        error = _why_refused(value)
        if error is not None:
            yield Unread(Path(module.__file__ or ""), error, value.__qualname__)


def _values(holder: Any, module: str, seen: set[int]) -> Iterator[Any]:
    """What a module, or a class, holds, and what the classes of the module in it hold."""
    for value in list(vars(holder).values()):
        if isinstance(value, (staticmethod, classmethod)):  # also of a class in a class
            value = value.__func__
        yield value
        if inspect.isclass(value) and value.__module__ == module and id(value) not in seen:
            seen.add(id(value))
            yield from _values(value, module, seen)


def _modules_of(value: Any) -> set[str]:
    """Where a Function is defined: a function of JAX where its rule is, whatever it is made of."""
    rule = None if isinstance(value, type) else getattr(value, "fwd", None)
    return {value.__module__, getattr(rule, "__module__", None) or value.__module__}


def _no_forward(cls: type[Function]) -> SpecError:
    return SpecError(
        f"{cls.__qualname__}: a Function needs a forward", location=class_location(cls),
        hint="write forward(ctx, x), a staticmethod",
    )  # fmt: skip


def defined(module: ModuleType) -> list[type[Function]]:
    """The Function classes that a module itself defines and that have a forward."""
    own = [
        cls for cls in _own(module)
        if cls.forward is not Function.forward and not inspect.isabstract(cls)
    ]  # fmt: skip
    return sorted(dict.fromkeys(own), key=_line)


def _line(cls: type[Function]) -> int:
    try:
        return inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return 0
