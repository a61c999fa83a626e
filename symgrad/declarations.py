"""What users declare of classes that they do not edit: ``symgrad.toml``, ``[tool.symgrad]``.

In: a TOML file, or the nearest one above a source.  Out: ``Config``; for a class, ``Declared``.

    [functions."package.ops.RoundSTE"]      or RoundSTE, or ops.RoundSTE; in pyproject.toml the
    shapes = { x = "n m" }                  table is tool.symgrad.functions
    static = { bits = 4 }
    callables = { act = "ops.swish" }       the function that an argument is
    assume = { x = "positive" }
    surrogate = "identity"                  or a function of torch, or an expression, or
                                            "the fixed point of z = tanh(z @ w + x)"; of single
                                            gradients { weight = "x @ weight.clamp(-1, 1)" }
    verdict = "REFUTED"                     what is expected
    ignore = "a CUDA extension"             why it is not judged
    order = 2
    replace = { "kernels.swish" = "references.swish" }   what is called in the place of a function

A folder's ``symgrad.toml`` counts before its ``pyproject.toml``, and the nearest folder above the
source before those above it; where there is none, the working folder's.  Keys and values that are
unknown are errors with their line.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from symgrad.errors import Location, SpecError
from symgrad.frontend.function import (
    Function,
    class_location,
    fixed_point,
    raw_method,
    surrogate_of,
    surrogates_of,
)
from symgrad.frontend.replaced import reference, replaced
from symgrad.ir.assume import Stated

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OWN_FILE, SHARED_FILE = "symgrad.toml", "pyproject.toml"
VERDICTS = ("PROVED", "UNDECIDED", "SURROGATE?", "REFUTED")
_DERIVATIVE = re.compile(r"^\s*(?:the )?derivative of\s+")
_FIXED = re.compile(r"^(?:the )?fixed point of\s+(?P<z>\w+)\s*=\s*(?P<step>.+)$", re.DOTALL)
_OUTSIDE = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Declared:
    """What is declared of one class; ``where``: the table in the file."""

    key: str
    where: Location
    shapes: Any = ()
    static: Mapping[str, Any] = field(default_factory=dict)
    assume: Stated = ()
    surrogate: str | Mapping[str, str] = ""
    verdict: str = ""
    ignore: str = ""
    order: int | None = None
    replace: Mapping[str, str] = field(default_factory=dict)
    callables: Mapping[str, str] = field(default_factory=dict)

    def values(self, function: Any) -> dict[str, Any]:
        """The plain arguments: values, and functions.  Raises SpecError for names of nothing."""
        own = sys.modules.get(function.__module__)
        functions = {name: reference(given, own)[1] for name, given in self.callables.items()}
        return {**self.static, **functions}

    @property
    def specs(self) -> Any:
        """The shapes as ``verify`` takes them: a sequence, or by name."""
        if isinstance(self.shapes, str):
            return specs_in(self.shapes)
        return _in_tuples(self.shapes)

    @contextmanager
    def applied(self, function: type[Function]) -> Iterator[None]:
        """A block in which the class has the surrogate, and calls the references, of this table.

        Raises SpecError where it has a surrogate of its own, and for names of nothing.
        """
        with self._placed(), replaced(function, self.replace), self._with_surrogate(function):
            yield

    @contextmanager
    def _with_surrogate(self, function: type[Function]) -> Iterator[None]:
        if not self.surrogate:
            yield
            return
        if surrogate_of(function) is not None or surrogates_of(function):
            raise SpecError(
                f"{self.key} has a surrogate of its own", location=self.where,
                hint="leave out surrogate here, or @sg.surrogate beside the class",
            )  # fmt: skip
        name = "symgrad_surrogates"
        meant: Any
        with self._placed():
            if isinstance(self.surrogate, str):
                name = "symgrad_surrogate"
                meant = staticmethod(self._meant(self.surrogate, function))
            else:
                meant = self._by_argument(self.surrogate, function)
        setattr(function, name, meant)
        try:
            yield
        finally:
            delattr(function, name)

    def _by_argument(
        self, texts: Mapping[str, str], function: type[Function]
    ) -> dict[str, Callable[..., Any]]:
        """What single gradients are the derivatives of.  Raises SpecError."""
        known = _arguments(function)
        for name in texts:
            if name not in known:
                raise SpecError(
                    f"surrogate: {name!r} is no argument of forward",
                    hint=f"there are {', '.join(known)}",
                )
        return {name: self._meant(text, function) for name, text in texts.items()}

    def _meant(self, text: str, function: type[Function]) -> Callable[..., Any]:
        meant = _callable(text, function)
        wrapped = vars(function).get("symgrad_meant")
        if wrapped is None:
            return meant
        found: Callable[..., Any] = wrapped.__func__(meant)  # for another library than its tensors
        return found

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """Errors inside are about this table."""
        try:
            yield
        except SpecError as error:
            error.location = error.location or self.where
            raise


@dataclass(frozen=True)
class Config:
    """A file of declarations.  ``prefix``: the tables above ``functions``."""

    path: Path
    prefix: tuple[str, ...] = ()
    functions: Mapping[str, Declared] = field(default_factory=dict)

    def of(self, function: type) -> Declared | None:
        """What is declared of a class.  Raises SpecError where several tables name it."""
        names = {*_names(function, self.path.parent)}
        found = [one for key, one in self.functions.items() if key in names]
        if len(found) > 1:
            keys = " and ".join(one.key for one in found)
            raise SpecError(
                f"{keys} are the same class", location=found[1].where, hint="keep one table"
            )
        return found[0] if found else None

    def error(self, key: str, known: Sequence[str]) -> SpecError:
        """A table that names no class."""
        return SpecError(
            f"there is no Function {key!r}", location=self.functions[key].where,
            hint=f"Functions there: {', '.join(sorted({*known})[:12]) or 'none'}; of an installed"
            " package, write package.module.Class",
        )  # fmt: skip


def _names(function: type, folder: Path) -> Iterator[str]:
    """The names by which a table may call a class: its own, and with modules before it."""
    own = function.__qualname__
    yield own
    dotted = [*function.__module__.split("."), *own.split(".")]
    location = class_location(function)
    if location is not None:
        file = Path(location.file)
        parts = [one for one in file.with_suffix("").parts if one != file.anchor]
        parts = parts[:-1] if parts and parts[-1] == "__init__" else parts
        yield from _ends([*parts, *own.split(".")], own)
    yield from _ends(dotted, own)


def _ends(dotted: Sequence[str], own: str) -> Iterator[str]:
    for start in range(len(dotted) - own.count(".") - 1):
        yield ".".join(dotted[start:])


def specs_in(text: str) -> tuple[Any, ...]:
    """``"n m; m; None"``: one spec a tensor input.

    With quotes they are containers, as ``verify`` takes them: ``{"w": "d m", "b": "m"}, "n d"``.
    Raises SpecError.
    """
    if '"' in text or "'" in text:
        return _containers(text)
    words = [word.strip() for word in text.split(";")]
    if len(words) > 1 and not words[-1]:
        del words[-1]  # what ends with a semicolon states no more
    return tuple(None if word in ("None", "-") else word for word in words)


def _containers(text: str) -> tuple[Any, ...]:
    try:
        found = ast.literal_eval(f"({text.replace(';', ',')},)")
    except (SyntaxError, ValueError) as error:
        raise SpecError(
            f"the shapes {text!r} are not written as Python writes containers",
            hint="""write '{"w": "d m", "b": "m"}, "n d"', or "n k; m k" for tensors alone""",
        ) from error
    if not all(one is None or isinstance(one, (str, dict, list, tuple)) for one in found):
        raise SpecError(f"the shapes {text!r} are not texts", hint='write "n d" in quotes')
    return tuple(found)


# -- finding and reading


def nearest(start: Path) -> Config | None:
    """The declarations for a source: of the nearest folder above it that has some.

    A source that was installed, or that has none above it, has those of the working folder.
    """
    outside = any(part in _OUTSIDE for part in start.parts)
    found = None if outside else _above(start)
    return _above(Path.cwd() / "source") if found is None else found


def _above(start: Path) -> Config | None:
    for folder in start.resolve().parents:
        if (folder / OWN_FILE).is_file():
            return read(folder / OWN_FILE)
        if (folder / SHARED_FILE).is_file():
            found = read(folder / SHARED_FILE)
            if found.functions:
                return found
    return None


def read(path: Path) -> Config:
    """A file of declarations.  Raises SpecError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}") from error
    return _read(path.resolve(), text)


@cache
def _read(path: Path, text: str) -> Config:
    table = _parsed(path, text)
    prefix: tuple[str, ...] = ()
    if path.name == SHARED_FILE:
        prefix = ("tool", "symgrad")
        for part in prefix:
            table = table.get(part, {})
    reader = _Reader(path, text, prefix)
    for key in table:
        if key != "functions" and not (prefix and key == "build"):  # which setuptools reads
            raise reader.error((key,), f"unknown key {key!r}", 'the one table is "functions"')
    functions = table.get("functions", {})
    if not isinstance(functions, dict):
        raise reader.error(("functions",), "functions is a table of classes")
    found = {key: reader.declared(key, value) for key, value in functions.items()}
    return Config(path, prefix, found)


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return dict(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        line = re.search(r"\(at line (\d+), column \d+\)", said)
        number = int(line[1]) if line else len(text.splitlines())
        raise SpecError(f"it is not TOML: {said}", location=Location(str(path), number)) from error


class _Reader:
    """Checks the tables of a file; errors have the line of the key."""

    def __init__(self, path: Path, text: str, prefix: tuple[str, ...]) -> None:
        self.path, self.prefix = path, prefix
        self.lines = dict(_lines(text))

    def place(self, keys: Sequence[str]) -> Location:
        """The line of a key, or of the nearest table around it."""
        whole = (*self.prefix, *keys)
        while whole and whole not in self.lines:
            whole = whole[:-1]
        return Location(str(self.path), self.lines.get(whole, 1))

    def error(self, keys: Sequence[str], what: str, hint: str = "") -> SpecError:
        """An error at a key."""
        return SpecError(what, location=self.place(keys), hint=hint)

    def declared(self, key: str, table: Any) -> Declared:
        """What one table declares.  Raises SpecError."""
        at = ("functions", key)
        if not isinstance(table, dict):
            raise self.error(at, f"{key} is not a table", f'write [functions."{key}"]')
        if any(isinstance(value, dict) for name, value in table.items() if name not in _KINDS):
            hint = f'put the whole name in quotes: [functions."{key}.{next(iter(table))}"]'
            raise self.error(at, f"{key!r} is no class", hint)
        for name, value in table.items():
            if name not in _KINDS:
                known = ", ".join(_KINDS)
                raise self.error((*at, name), f"unknown key {name!r}", f"there are {known}")
            said = _KINDS[name](value)
            if said:
                raise self.error((*at, name), f"{name} = {value!r} is wrong", said)
        return Declared(key, self.place(at), **table)


def _lines(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """The line of each table and key, by its path."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[[^\[].*\]\s*(#.*)?$", line)
        key = re.match(r"""\s*((?:[\w.-]|"[^"]*"|'[^']*'|\s)+?)\s*=""", line)
        try:
            if header:
                table = _path(tomllib.loads(line))
                yield table, number
            elif key:
                yield (*table, *_path(tomllib.loads(f"{key[1]} = {{}}"))), number
        except tomllib.TOMLDecodeError:
            continue  # a line of a longer text


def _path(nested: Any) -> tuple[str, ...]:
    found = []
    while isinstance(nested, dict) and len(nested) == 1:
        ((key, nested),) = nested.items()
        found.append(key)
    return tuple(found)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _shapes(value: Any) -> str:
    fine = isinstance(value, str) or (isinstance(value, (list, dict)) and _nested(value))
    return "" if fine else 'write "n m; m", ["n m", "m"] or { x = "n m" }'


def _nested(value: Any) -> bool:
    """Are they shapes, or containers of shapes?"""
    if isinstance(value, dict):
        return all(isinstance(one, str) or _within(one) for one in value.values())
    return all(isinstance(one, (str, int, float)) or _within(one) for one in value)


def _within(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value
    return isinstance(value, (dict, list)) and all(
        isinstance(one, str) or _within(one) for one in inner
    )


def _in_tuples(value: Any) -> Any:
    """The same with tuples for lists."""
    if isinstance(value, dict):
        return {name: _in_tuples(one) for name, one in value.items()}
    return tuple(map(_in_tuples, value)) if isinstance(value, list) else value


def _facts(value: Any) -> bool:
    several = value.values() if isinstance(value, dict) else [value]
    return all(
        isinstance(one, str) or (isinstance(one, list) and all(isinstance(t, str) for t in one))
        for one in several
    )


def _plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_plain, value))
    return isinstance(value, (str, bool, int, float)) and value == value


_KINDS: dict[str, Callable[[Any], str]] = {
    "shapes": _shapes,
    "static": lambda value: "" if isinstance(value, dict) and all(map(_plain, value.values()))
    else "write { name = value }, with numbers, texts, booleans or lists",
    "assume": lambda value: "" if _facts(value)
    else 'write { x = "positive" }, or ["x=positive", "x < y"]',
    "surrogate": lambda value: "" if (isinstance(value, str) and value.strip()) or _texts(value)
    else 'write "identity", the name of a function, an expression in quotes, or'
    ' { x = "an expression" } for the gradient of x alone',
    "verdict": lambda value: "" if value in VERDICTS else f"one of {', '.join(VERDICTS)}",
    "ignore": lambda value: "" if isinstance(value, str) and value.strip()
    else "write the reason in quotes",
    "replace": lambda value: "" if _texts(value)
    else 'write { "module.function" = "module.reference" }',
    "callables": lambda value: "" if _texts(value)
    else 'write { argument = "module.function" }',
    "order": lambda value: "" if value in (1, 2) and type(value) is int else "1 or 2",
}  # fmt: skip
"""What each key takes: the hint where a value does not fit, empty where it does."""


# -- surrogates in words


def _callable(text: str, function: type[Function]) -> Callable[..., Any]:
    """``identity``, the name of a function, or an expression in the parameters of forward."""
    text = _DERIVATIVE.sub("", text).strip()
    if text == "identity":
        return lambda x, *others: x
    known = _modules(function)
    grouped = vars(function).get("symgrad_layout")
    plain = raw_method(function, "forward")[0]
    names = _arguments(function)
    step = _FIXED.match(text)
    if step is not None:
        if step["z"] in names:
            raise SpecError(
                f"surrogate: {step['z']} is an argument of forward", hint="another name"
            )
        made: Any = _expression(step["step"], [step["z"], *names], known)
        made.__defaults__ = plain.__defaults__
        return fixed_point(made)
    if re.fullmatch(r"\w+", text) and text not in names:
        for module in known.values():
            found = getattr(module, text, None)
            if callable(found):
                return lambda x, *others, found=found: found(x)
        raise SpecError(
            f"surrogate: there is no function {text!r}",
            hint='"identity", a function of torch or JAX, or an expression such as'
            ' "torch.sigmoid(4 * x)"',
        )
    made = _expression(text, names, known)
    if grouped is None:
        made.__defaults__ = plain.__defaults__  # of the last arguments, as forward has them
    return made  # type: ignore[no-any-return]


def _arguments(function: type[Function]) -> list[str]:
    """The names of what forward takes."""
    grouped = vars(function).get("symgrad_layout")
    if grouped is not None:
        return list(grouped.names)
    plain, hidden = raw_method(function, "forward")
    return list(plain.__code__.co_varnames[: plain.__code__.co_argcount])[hidden:]


def _expression(text: str, names: Sequence[str], known: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of arguments of these names, and others.  Raises SpecError."""
    try:
        code = compile(f"lambda {', '.join(names)}, *others: ({text})", "<surrogate>", "eval")
    except SyntaxError as error:
        raise SpecError(f"surrogate: {text!r} is no expression: {error.msg}") from error
    made: Callable[..., Any] = eval(code, {**known, "math": math})
    return made


def _modules(function: type[Function]) -> dict[str, Any]:
    """The modules whose functions a surrogate may name: those of the library of the class."""
    if "symgrad_original" in vars(function):
        torch: Any = sys.modules["torch"]
        return {"F": torch.nn.functional, "torch": torch, "special": torch.special}
    if "symgrad_layout" in vars(function):
        jax: Any = sys.modules["jax"]
        return {"nn": jax.nn, "jnp": jax.numpy, "lax": jax.lax, "jax": jax}
    return {"sg": sys.modules["symgrad"]}


# -- writing


def table_of(
    config: Config, key: str, values: Mapping[str, Mapping[str, Any]], comments: Sequence[str] = ()
) -> str:
    """A table as text, to be appended to a file."""
    path = ".".join([*config.prefix, "functions", json.dumps(key)])
    lines = [f"[{path}]", *(f"# {line}" for line in comments)]
    lines += [f"{name} = {inline(table)}" for name, table in values.items() if table]
    return "\n".join(lines) + "\n"


def inline(values: Mapping[str, Any]) -> str:
    """An inline table of TOML."""
    inner = ", ".join(f"{json.dumps(name)} = {_value(value)}" for name, value in values.items())
    return f"{{ {inner} }}"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=True)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def appended(config: Config, tables: Sequence[str]) -> str:
    """The text of a file with tables at its end.  Raises SpecError where it is none then."""
    before = config.path.read_text(encoding="utf-8") if config.path.exists() else ""
    parts = [before.rstrip("\n") + "\n" if before.strip() else "", *tables]
    text = "\n".join(part for part in parts if part)
    _read(config.path, text)
    return text
