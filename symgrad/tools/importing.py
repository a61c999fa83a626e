"""Files imported by their paths, as modules of the packages that they lie in.

In: a path.  Out: the module; a SpecError, with the line, for a mistake of the user.

Where a package around the file cannot be imported, an empty one stands in its place, so that the
file is imported alone; ``alone`` says why.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from symgrad.errors import Location, SpecError, SymgradError
from symgrad.frontend.session import blame
from symgrad.tools.sources import root_of

OWN_MODULES = "_symgrad_"
"""How the names of modules begin that were imported by their paths."""
_alone: dict[str, str] = {}
_without: dict[str, tuple[str, ...]] = {}


def alone(module: str) -> str:
    """Why a module was imported without the packages around it; empty where it was not."""
    return _alone.get(module, "")


def without(module: str) -> tuple[str, ...]:
    """The packages in whose place empty ones stood while a module was imported."""
    return _without.get(module, ())


def look_here() -> None:
    """Let modules be found in the working folder, after all other places."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def load_file(path: Path) -> ModuleType:
    """Import a file, with its folder on ``sys.path``, as when it is run.

    A file of a package is imported as a module of it, so that its relative imports work.  Raises
    SpecError.
    """
    resolved = path.resolve()
    _drop_empty()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file) == resolved and getattr(module, "__spec__", None) is not None:
            return module
    if (resolved.parent / "__init__.py").is_file():
        return _member(path, resolved) or _by_path(path, resolved)
    try:
        return _by_path(path, resolved)
    except SpecError:  # of a folder that is a package without saying so
        found = _member(path, resolved)
        if found is None:
            raise
        return found


class _AsItIs(SourceFileLoader):
    """Compiles the text of a file: an edit within a second may leave its bytecode in place."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file as it is now."""
        return self.source_to_code(self.get_data(self.path), self.path)


def _by_path(path: Path, resolved: Path) -> ModuleType:
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
    root, parts = root_of(resolved)
    name = ".".join(parts)
    if root == resolved.parent or any("." in part for part in parts):
        return None
    with _importable(root):
        try:
            spec = importlib.util.find_spec(name)
            if spec is None or spec.origin is None or Path(spec.origin).resolve() != resolved:
                return None  # another package of this name is there already
            return importlib.import_module(name)
        except BaseException as error:
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing and f"{name}.".startswith(f"{missing}."):
                return None
            wrong = _import_error(path, error)
            if not isinstance(wrong, SpecError):
                raise wrong from error
            found = _imported_alone(root, parts, wrong.what)
            if found is None:
                raise wrong from error
            return found


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
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    said = f"the module {missing} is missing" if missing else f"{type(error).__name__}: {said}"
    return SpecError(
        f"{path} cannot be imported: {said}", location=where, hint=_missing_hint(missing or "")
    )


def _missing_hint(name: str) -> str:
    """What to do about a module that is not there; empty where a package lacks a part of itself."""
    if not name or "." in name:
        return ""
    return (
        f"pip install {name}, or the package that has it under another name; if the module is your "
        "own, add its folder to PYTHONPATH"
    )


# -- without the packages around it


class _Empty(ModuleType):
    """What stands in the place of a package that cannot be imported, until the next import."""


def _drop_empty() -> None:
    for name in [name for name, module in sys.modules.items() if isinstance(module, _Empty)]:
        del sys.modules[name]


def _imported_alone(root: Path, parts: Sequence[str], why: str) -> ModuleType | None:
    """The module with empty packages for those that fail; None where it fails itself."""
    empty: list[str] = []
    for end in range(1, len(parts)):
        name = ".".join(parts[:end])
        if name in sys.modules:
            continue
        if empty:  # the first that is not there has failed; those in it have not been tried
            try:
                importlib.import_module(name)
                continue
            except (Exception, SystemExit):
                pass
        empty.append(name)
        package = _Empty(name)
        package.__path__ = [str(root.joinpath(*parts[:end]))]
        sys.modules[name] = package
    if not empty:
        return None
    name = ".".join(parts)
    try:
        found = importlib.import_module(name)
    except (Exception, SystemExit):
        return None
    _alone[name], _without[name] = why, tuple(empty)
    return found
