"""The text of a wrapper, read: what its names stand for, and its functions.

In: Python text.  Out: ``Program``.  A statement that is not among those that wrappers consist of
raises NotShown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_args, get_origin, get_type_hints

from symgrad import abi
from symgrad.validate.wrappers.values import (
    CArray,
    Defined,
    DTypeValue,
    KeptClass,
    KernelName,
    Known,
    NotShown,
    Path,
    Table,
)

_IMPORTS: dict[tuple[str, str], Any] = {
    ("__future__", "annotations"): Known("annotations"),
    ("typing", "Any"): Known("Any"),
    ("math", "prod"): Known("prod"),
    **{("numpy", name): Known(name) for name in ("dtype", "empty", "ndarray", "zeros")},
    **{("abi", name): Known(name) for name in (
        "Array", "Backward", "Binding", "Case", "Kernel", "Op", "Residual", "Value",
    )},
    ("load", "beside"): Known("beside"),
    ("pool", "leased"): Known("leased"),
    ("quick", "Quick"): Known("Quick"),
    ("residuals", "Residuals"): Known("Residuals"),
    ("support", "UNUSUAL"): Known("UNUSUAL"),
    ("support", "Unusual"): Known("Unusual"),
    ("support", "Caller"): Known("Caller"),
    ("support", "by_name"): Known("by_name"),
    ("values", "AS_COMPILED"): Known("AS_COMPILED"),
    ("workspace", "workspace"): Path("workspace"),
}  # fmt: skip
_RUNTIMES = {"symgrad.runtime.": "symgrad.abi", "._runtime.": "._runtime.abi"}
"""Where the modules of the runtime lie, and where the records do; a text takes all from one."""
_OUTSIDE = ("__future__", "typing", "math", "numpy")
_ENTRIES = ("inference", "forward", "backward")
_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=]")
_RECORDS = ("Array", "Backward", "Binding", "Case", "Kernel", "Op", "Residual", "Value")
_PYTHON = ("type", "tuple", "len", "float", "int", "min", "max")


@dataclass
class Program:
    """What a text defines.

    ``op``: the record ``OP``, of ``line``; ``functions``: by name; ``fields``: the names and the
    numbers that a class of what is kept states, by case.
    """

    globals: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    fields: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    op: abi.Op | None = None
    line: int = 0
    lines: dict[str, int] = field(default_factory=dict)


def read(text: str) -> Program:
    """A wrapper.  Raises NotShown."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.isprintable() or (number <= 2 and _COOKIE.match(line)):
            raise NotShown("characters, or a coding, that other readers read otherwise", number)
    try:
        tree = ast.parse(text)
        compile(text, "wrapper", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as problem:
        raise NotShown(f"it is no Python: {problem}", getattr(problem, "lineno", 0) or 0) from None
    reader = _Reader()
    for statement in tree.body:
        reader.statement(statement)
    reader.finish()
    return reader.program


class _Reader:
    def __init__(self) -> None:
        self.program = Program({name: Known(name) for name in _PYTHON})
        self._classes: list[str] = []
        self._runtime: str | None = None

    def statement(self, node: ast.stmt) -> None:
        """One statement of the module."""
        if isinstance(node, ast.ImportFrom):
            self._import(node)
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, ast.FunctionDef):
            self._function(node)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if not isinstance(target, ast.Name):
                raise NotShown(f"an assignment to {ast.unparse(target)}", node.lineno)
            if target.id == "__all__":
                if ast.unparse(node.value) != "['OP', 'backward', 'forward', 'inference']":
                    raise NotShown("it offers other names", node.lineno)
                return
            self._name(target.id, self._value(node.value), node.lineno)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise NotShown(f"the statement {ast.unparse(node).splitlines()[0]}", node.lineno)

    def _function(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise NotShown(f"{node.name} is defined in another way", node.lineno)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is None or isinstance(default, ast.Constant):
                continue
            if self._value(default) != Known("AS_COMPILED"):
                raise NotShown(f"a default of {node.name}", node.lineno)
        self.program.functions[node.name] = node
        self._name(node.name, Defined(node.name), node.lineno)

    def finish(self) -> None:
        """All has been read."""
        program = self.program
        if "annotations" not in program.globals:
            raise NotShown("its annotations are evaluated", 1)
        tables = [one for one in program.globals.values() if isinstance(one, Table)]
        held = [each for one in tables for _, value in one.entries for each in _flat(value)]
        known = {*_ENTRIES, *(one.name for one in held if isinstance(one, Defined))}
        for name, node in program.functions.items():
            found = program.globals[name]
            if name not in known or not isinstance(found, Defined) or found.name != name:
                raise NotShown(f"{name} is a function that no call reaches", node.lineno)

    def _name(self, name: str, value: Any, line: int) -> None:
        old = self.program.globals.get(name)
        renames = isinstance(value, Defined) and value.renamed and old == Defined(value.name)
        if (name in self.program.globals and not (renames and value.name == name)) or (
            name.startswith("__")
        ):
            raise NotShown(f"{name} is assigned twice", line)
        if isinstance(value, abi.Op):
            if name != "OP" or self.program.op is not None:
                raise NotShown("a second record", line)
            self.program.op, self.program.line = value, line
        self.program.globals[name] = value
        self.program.lines[name] = line

    def _import(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for one in node.names:
            found = _IMPORTS.get((self._module(module), one.name))
            if found is None:
                raise NotShown(f"{one.name} is imported from {module}", node.lineno)
            self._name(one.asname or one.name, found, node.lineno)

    def _module(self, module: str) -> str:
        """A module of the runtime by its last name, and no module of two runtimes."""
        if module in _OUTSIDE:
            return module
        for prefix, records in _RUNTIMES.items():
            if self._runtime in (None, prefix) and (
                module == records or (module.startswith(prefix) and not module.endswith("abi"))
            ):
                self._runtime = prefix
                return "abi" if module == records else module.removeprefix(prefix)
        return ""

    def _class(self, node: ast.ClassDef) -> None:
        """What forward keeps, which is a tuple with names."""
        bases = [self._value(one) for one in node.bases]
        if bases != [Known("Residuals")] or node.keywords or node.decorator_list:
            raise NotShown(f"the class {node.name}", node.lineno)
        said: dict[str, Any] = {}
        for one in node.body:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                continue
            targets = one.targets if isinstance(one, ast.Assign) else []
            if not isinstance(one, ast.Assign) or len(targets) != 1:
                raise NotShown(f"the class {node.name} defines something else", one.lineno)
            (target,) = targets
            if not isinstance(target, ast.Name) or target.id in said:
                raise NotShown(f"the class {node.name} defines something else", one.lineno)
            said[target.id] = self._value(one.value)
        known = {"__slots__": (), "op": self.program.op and self.program.op.name}
        if not said.keys() <= {*known, "fields", "numbers"} or any(
            said.get(name) != value for name, value in known.items()
        ):
            raise NotShown(f"the class {node.name} defines something else", node.lineno)
        place = len(self._classes)
        self._classes.append(node.name)
        self.program.fields[place] = (said.get("fields"), said.get("numbers", ()))
        self._name(node.name, KeptClass(place), node.lineno)

    # -- values

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(self._value(one) for one in node.elts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._value(node.operand)
            if type(value) in (int, float):
                return -value
        if isinstance(node, ast.Dict) and all(node.keys):
            keys = [self._value(one) for one in node.keys if one is not None]
            return Table(tuple(zip(keys, map(self._value, node.values), strict=True)))
        if isinstance(node, ast.Name) and node.id in self.program.globals:
            return self.program.globals[node.id]
        if isinstance(node, ast.Attribute):
            return self._attribute(self._value(node.value), node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)

    @staticmethod
    def _attribute(value: Any, node: ast.Attribute) -> Any:
        if isinstance(value, abi.Op) and node.attr == "name":
            return value.name
        if value == Path("library.lib") and node.attr.startswith("call_"):
            return KernelName(node.attr.removeprefix("call_"))
        if isinstance(value, Path):
            return Path(f"{value.name}.{node.attr}")
        raise NotShown(f"the expression {ast.unparse(node)}", node.lineno)

    def _call(self, node: ast.Call) -> Any:
        function = self._value(node.func)
        name = function.name if isinstance(function, (Known, Path)) else ""
        if node.keywords and name not in _RECORDS:
            raise NotShown(f"the expression {ast.unparse(node)[:80]}", node.lineno)
        if name == "beside" and len(node.args) == 2 and ast.unparse(node.args[0]) == "__file__":
            if self._value(node.args[1]) is self.program.op and self.program.op is not None:
                return Path("library")
        given = [] if name == "beside" else [self._value(one) for one in node.args]
        named = {one.arg or "": self._value(one.value) for one in node.keywords}
        made = _MADE.get(name)
        if name in _RECORDS:
            made = getattr(abi, name)
        if name in ("Caller", "Quick") and len(given) == 3:
            classes = tuple(KeptClass(i) for i in range(len(self._classes)))
            if given[0] is self.program.op and given[1:] == [Path("library"), classes]:
                return Path("careful" if name == "Caller" else "quick")
        elif made is not None:
            try:
                return _well_typed(made(*given, **named))
            except (TypeError, KeyError):
                pass
        raise NotShown(f"the expression {ast.unparse(node)[:80]}", node.lineno)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def _well_typed(value: Any) -> Any:
    """A record whose fields have the types that they are declared with.  Raises TypeError."""
    if isinstance(value, abi.Record):
        hints = get_type_hints(type(value))
        for one in fields(value):  # type: ignore[arg-type]
            if not _is(getattr(value, one.name), hints[one.name]):
                raise TypeError(one.name)
    return value


def _is(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple and isinstance(value, tuple):
        if inner[-1] is Ellipsis:
            return all(_is(one, inner[0]) for one in value)
        return len(value) == len(inner) and all(map(_is, value, inner))
    if inner and origin is not tuple:
        return any(_is(value, one) for one in inner)
    return type(value) is hint


def _dtype(name: str) -> DTypeValue:
    return DTypeValue({one: one for one in abi.C_TYPES}[name])


def _typeof(name: str) -> CArray:
    return CArray({f"{one}[]": one for one in abi.C_TYPES.values()}[name])


def _by_name(function: Any, names: Any) -> Defined:
    if not isinstance(function, Defined) or function.renamed or not isinstance(names, Table):
        raise TypeError
    return Defined(function.name, names.entries)


_MADE: Mapping[str, Callable[..., Any]] = {
    "dtype": _dtype, "library.ffi.typeof": _typeof, "by_name": _by_name,
}  # fmt: skip
