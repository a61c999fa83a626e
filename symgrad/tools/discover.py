"""Finding the Functions that a command line names.

In: ``path/to/file.py``, ``path/to/folder``, ``package.module``, each with ``:Class`` after it or
not.  Out: Function classes, in the order of their source.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from symgrad.errors import Location, SpecError, SymgradError
from symgrad.frontend.function import Function, class_location
from symgrad.frontend.guests import adapter_of, taken
from symgrad.frontend.session import blame

OWN_MODULES = "_symgrad_"
"""How the names of modules begin that were imported by their paths."""


def functions(target: str) -> list[type[Function]]:
    """The Functions of a file, folder or package, or the one class named after a colon.

    Raises SpecError where there is none, none of that name, or a file that cannot be imported.
    """
    place, _, wanted = (target, "", "") if Path(target).exists() else target.partition(":")
    found = [cls for module in _modules(place) for cls in defined(module)]
    if wanted:
        named = [cls for cls in found if cls.__qualname__ == wanted]
        if not named:
            for module in _modules(place):
                for cls in _without_forward(module):
                    if cls.__qualname__ == wanted:
                        raise _no_forward(cls)
            known = ", ".join(cls.__qualname__ for cls in found) or "none"
            raise SpecError(f"{place} has no Function {wanted!r}", hint=f"its Functions: {known}")
        return named
    if not found:
        for module in _modules(place):
            for cls in _without_forward(module):
                raise _no_forward(cls)
        raise SpecError(
            f"{place} defines no Function",
            hint="subclass symgrad.Function or torch.autograd.Function, or use jax.custom_vjp",
        )
    return found


def _modules(place: str) -> Iterator[ModuleType]:
    path = Path(place)
    if path.is_dir():
        files = (file for file in sorted(path.rglob("*.py")) if not _hidden(file, path))
        yield from (load_file(file) for file in files)
    elif path.is_file():
        yield load_file(path)
    elif place.endswith(".py") or "/" in place:
        raise SpecError(f"no such file: {place}")
    else:
        yield from _package(place)


def _hidden(file: Path, root: Path) -> bool:
    return any(part.startswith((".", "__pycache__")) for part in file.relative_to(root).parts)


class _AsItIs(SourceFileLoader):
    """Compiles the text of a file: an edit within a second may leave its bytecode in place."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file as it is now."""
        return self.source_to_code(self.get_data(self.path), self.path)


def load_file(path: Path) -> ModuleType:
    """Import a file by its path, with its folder on ``sys.path``, as when it is run.

    A file of a package is imported as a module of it, so that its relative imports work.
    """
    resolved = path.resolve()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file) == resolved and getattr(module, "__spec__", None) is not None:
            return module
    member = _member(path, resolved)
    if member is not None:
        return member
    name = f"{OWN_MODULES}{resolved.stem}_{sha256(os.fsencode(resolved)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} is not a Python file")
    if isinstance(spec.loader, SourceFileLoader):
        spec.loader = _AsItIs(name, str(resolved))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _importable(resolved.parent):
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            raise _import_error(path, error) from error
    return module


def _member(path: Path, resolved: Path) -> ModuleType | None:
    """The file as a module of the package that it lies in; None where it lies in none."""
    root, names = resolved.parent, [resolved.stem]
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        names.insert(0, root.name)
        root = root.parent
    if len(names) == 1 or not resolved.stem.isidentifier():
        return None
    name = ".".join(names[:-1] if resolved.stem == "__init__" else names)
    with _importable(root):
        try:
            spec = importlib.util.find_spec(name)
            if spec is None or spec.origin is None or Path(spec.origin).resolve() != resolved:
                return None  # another package of this name is there already
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and f"{name}.".startswith(f"{error.name}."):
                return None
            raise _import_error(path, error) from error
        except BaseException as error:
            raise _import_error(path, error) from error


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _import_error(path: Path, error: BaseException) -> BaseException:
    """The error to raise where an import fails: a SpecError for a mistake of the user."""
    if isinstance(error, SystemExit):
        return SpecError(
            f"{path} ends the program while it is imported", location=blame(error)[0],
            hint='call sys.exit() only under if __name__ == "__main__":',
        )  # fmt: skip
    if isinstance(error, SymgradError) or not isinstance(error, Exception):
        return error
    (where, _), said = blame(error), str(error)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        begin = max(error.offset or 1, 1) - 1
        end = max((error.end_offset or 0) - 1, begin + 1)
        text = error.text or ""
        columns = len(text[:begin].encode()), len(text[:end].encode())
        where = Location(error.filename, error.lineno, columns=columns)
        said = error.msg
    return SpecError(f"{path} cannot be imported: {type(error).__name__}: {said}", location=where)


def _package(name: str) -> Iterator[ModuleType]:
    try:
        root = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and not name.startswith(error.name):
            raise
        raise SpecError(f"there is neither a file nor a module {name!r}") from None
    yield root
    for info in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{name}."):
        yield importlib.import_module(info.name)


def _without_forward(module: ModuleType) -> list[type[Function]]:
    """The Function classes that a module itself defines and that have no forward."""
    return [cls for cls in _own(module) if cls.forward is Function.forward]


def _own(module: ModuleType) -> list[type[Function]]:
    """The Functions that a module itself defines, those of torch and JAX adapted."""
    found = []
    for value in _values(module, module.__name__, set()):
        own = inspect.isclass(value) and issubclass(value, Function)
        if (own or adapter_of(value)) and module.__name__ in _modules_of(value):
            found.append(taken(value))
    return found


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
