"""Functions found by reading the source: nothing is imported.

In: a file, a folder, or the name of a package.  Out: ``Source`` records: the classes that derive
from ``torch.autograd.Function`` or ``symgrad.Function``, and what ``jax.custom_vjp`` decorates or
is called with, in the order of the files.

Bases are followed through imports and through other classes of the same sources.  A class that
another library derives from its own Function, outside of these sources, is not found.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from symgrad.errors import SpecError

ROOTS = frozenset(
    f"{module}.{name}"
    for module, names in (
        ("torch.autograd", ("Function",)),
        ("torch.autograd.function", ("Function", "InplaceFunction", "NestedIOFunction")),
        ("symgrad", ("Function",)),
        ("symgrad.frontend.function", ("Function",)),
    )
    for name in names
)
"""The base classes."""
JAX = frozenset(
    f"jax.{module}custom_vjp"
    for module in ("", "custom_derivatives.", "_src.custom_derivatives.", "_src.api.")
)
"""The names of what makes functions of JAX with a rule for their derivative."""
LOCAL = "<locals>"
_DEFINES = re.compile(rb"(?m)^\s*class\b|\bcustom_vjp\b")
_RELATIVE = re.compile(rb"(?m)^\s*from\s+\.")
SCRIPTS = ("setup.py", "__main__.py", "conftest.py")
"""Files of a folder that do something when they are imported."""


@dataclass(frozen=True)
class Source:
    """A class statement, or what gives a function of JAX its name.

    ``module``: its dotted name from the first folder that is no package.  ``others``: the lines of
    further statements of this name, one of which may be what an import has.
    """

    file: Path
    line: int
    qualname: str
    module: str
    torch: bool = True
    jax: bool = False
    others: tuple[int, ...] = ()

    def loaded(self, line: int) -> Source:
        """The statement at this line, if it is one of these."""
        every = (self.line, *self.others)
        if line == self.line or line not in every:
            return self
        return replace(self, line=line, others=tuple(one for one in every if one != line))

    @property
    def name(self) -> str:
        """``module.Class``."""
        return f"{self.module}.{self.qualname}"

    @property
    def place(self) -> Path:
        """The file as seen from the folder that has its package."""
        depth = self.module.count(".") + 1 + (self.file.name == "__init__.py")
        return Path(*self.file.parts[-depth:])

    @property
    def inside(self) -> bool:
        """Is it made when a function runs, so that no import has it?"""
        return LOCAL in self.qualname


_Statement = ast.ClassDef | ast.FunctionDef | ast.Assign


@dataclass(frozen=True)
class _Class:
    """A class statement with its bases as dotted names.  ``forward``: it has methods to judge."""

    source: Source
    bases: tuple[str, ...]
    forward: bool


def sources(place: str) -> list[Source]:
    """The Functions of a file, a folder or a package.  Raises SpecError where there is no such."""
    files = list(files_of(place))
    if not files:
        raise SpecError(f"there is no Python file in {place}")
    return in_files(files)


def in_files(files: Sequence[Path]) -> list[Source]:
    """The Functions that files define, themselves or through classes of each other."""
    read = [one for file in files for one in _definitions(file)]
    classes = [one for one in read if isinstance(one, _Class)]
    known = {one.source.name: one for one in classes}
    kinds: dict[str, bool] = {}
    for _ in range(len(known) + 1):
        before = len(kinds)
        for name, one in known.items():
            kind = _kind(one, kinds)
            if kind is not None:
                kinds[name] = kind
        if len(kinds) == before:
            break
    found: list[Source] = []
    for definition in read:
        if isinstance(definition, Source):
            found.append(definition)
            continue
        source, name = definition.source, definition.source.name
        if (
            known[name] is definition and name in kinds
            and _has_forward(definition, known, set())
        ):  # fmt: skip
            found.append(replace(source, torch=kinds[name]))
    return found


def _kind(one: _Class, kinds: dict[str, bool]) -> bool | None:
    """Is it torch's?  None where it is no Function, as far as is known."""
    for base in one.bases:
        if base in ROOTS:
            return base.startswith("torch")
        if base in kinds:
            return kinds[base]
    return None


def _has_forward(one: _Class, known: dict[str, _Class], seen: set[str]) -> bool:
    if one.forward:
        return True
    bases = [known[base] for base in one.bases if base in known and base not in seen]
    seen |= {*one.bases}
    return any(_has_forward(base, known, seen) for base in bases)


# -- files


def files_of(place: str) -> Iterator[Path]:
    """The Python files of a file, a folder or a package.  Raises SpecError where there is none."""
    path = Path(place)
    if path.is_dir():
        yield from _inside(path)
    elif path.is_file():
        yield path
    elif place.endswith(".py") or "/" in place:
        raise SpecError(f"no such file: {place}")
    else:
        yield from _of_package(place)


def _inside(folder: Path) -> Iterator[Path]:
    """The Python files of a folder, but of hidden ones and of environments in it."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__pycache__")):
            continue
        if path.is_dir() and not (path / "pyvenv.cfg").exists():
            yield from _inside(path)
        elif path.suffix == ".py" and path.is_file():
            yield path


def _of_package(name: str) -> Iterator[Path]:
    """The files of a package by its name; its first part alone is looked up, which runs no code."""
    first, *others = name.split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise SpecError(f"there is neither a file nor a module {name!r}")
    for location in spec.submodule_search_locations or ():
        path = Path(location, *others)
        if path.is_dir():
            yield from _inside(path)
        elif path.with_suffix(".py").is_file():
            yield path.with_suffix(".py")
    origin = Path(spec.origin or "")
    if not spec.submodule_search_locations and origin.suffix == ".py" and not others:
        yield origin


# -- one file


def may_define(file: Path) -> bool:
    """Has a file what defines a Function?  Raises OSError."""
    return _DEFINES.search(file.read_bytes()) is not None


def _definitions(file: Path) -> Iterator[_Class | Source]:
    """The classes of a file, and its functions of JAX."""
    try:
        if not may_define(file):
            return
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return  # a file of no Python: a template, say
    module, package = module_of(file)
    names = _imports(tree, package)
    done: set[str] = set()
    statements = list(_statements(tree, ()))
    lines: dict[str, list[int]] = {}
    for qualname, node in statements:
        if isinstance(node, ast.ClassDef):
            lines.setdefault(qualname, []).append(node.lineno)
    for qualname, node in statements:
        if qualname in done:
            continue
        if not isinstance(node, ast.ClassDef):
            if _is_of_jax(node, names, module):
                done.add(qualname)
                yield Source(file, node.lineno, qualname, module, torch=False, jax=True)
            continue
        done.add(qualname)
        bases = tuple(_resolved(base, names, module) for base in node.bases)
        forward = any(
            isinstance(one, (ast.FunctionDef, ast.Assign)) and "forward" in _bound(one)
            for one in node.body
        )
        line, *others = lines[qualname]
        source = Source(file, line, qualname, module, others=tuple(others))
        yield _Class(source, bases, forward)


def _is_of_jax(node: _Statement, names: dict[str, str], module: str) -> bool:
    """Is it ``@jax.custom_vjp``, or ``f = jax.custom_vjp(fun)``, also by ``partial``?"""
    if isinstance(node, ast.FunctionDef):
        return bool(node.decorator_list) and _makes(node.decorator_list[0], names, module)
    return (
        isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        and bool(node.value.args) and _makes(node.value.func, names, module)
    )  # fmt: skip


def _makes(node: ast.expr, names: dict[str, str], module: str) -> bool:
    """Is it ``jax.custom_vjp``, or ``partial(jax.custom_vjp, ...)``?"""
    if not isinstance(node, ast.Call):
        return _resolved(node, names, module) in JAX
    by_parts = _resolved(node.func, names, module) == "functools.partial"
    return by_parts and bool(node.args) and _makes(node.args[0], names, module)


def _bound(statement: ast.FunctionDef | ast.Assign) -> list[str]:
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    return [one.id for one in statement.targets if isinstance(one, ast.Name)]


def module_of(file: Path) -> tuple[str, str]:
    """The dotted name of a file, and of the package that its relative imports start from."""
    _, parts = root_of(file)
    around = parts if file.name == "__init__.py" else parts[:-1]
    return ".".join(parts), ".".join(around)


def root_of(file: Path) -> tuple[Path, tuple[str, ...]]:
    """The folder from which a file is imported, and its dotted name from there, in parts.

    A package is a folder with an ``__init__.py``, or one that relative imports of the file need.
    """
    resolved = file.resolve()
    parts: tuple[str, ...] = (resolved.stem,)
    root = resolved.parent
    levels = _levels(resolved)
    while (len(parts) <= levels and root.name) or (
        root.name.isidentifier() and (root / "__init__.py").is_file()
    ):
        parts, root = (root.name, *parts), root.parent
    return root, parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts


def _levels(file: Path) -> int:
    """How many packages the relative imports of a file lead out of."""
    try:
        text = file.read_bytes()
        if not _RELATIVE.search(text):
            return 0
        nodes = ast.walk(ast.parse(text))
        return max((node.level for node in nodes if isinstance(node, ast.ImportFrom)), default=0)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return 0


def _imports(tree: ast.AST, package: str) -> dict[str, str]:
    """What names stand for, wherever in the file they are imported."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                first = one.name.partition(".")[0]
                found[one.asname or first] = one.name if one.asname else first
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if node.level else []
            parts = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            for one in node.names:
                found[one.asname or one.name] = f"{base}.{one.name}"
    return found


def _statements(node: ast.AST, around: tuple[str, ...]) -> Iterator[tuple[str, _Statement]]:
    """The statements below a node that define a name, with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield ".".join((*around, child.name)), child
            yield from _statements(child, (*around, child.name))
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(child, ast.FunctionDef):
                yield ".".join((*around, child.name)), child
            yield from _statements(child, (*around, child.name, LOCAL))
        elif isinstance(child, ast.Assign):
            yield from ((".".join((*around, name)), child) for name in _bound(child)[:1])
        else:
            yield from _statements(child, around)


def _resolved(base: ast.expr, names: dict[str, str], module: str) -> str:
    """The dotted name of a base class."""
    parts: list[str] = []
    node: ast.expr = base
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    first = names.get(node.id, f"{module}.{node.id}")
    return ".".join([first, *parts])
