"""Arguments that are containers: dicts, tuples, NamedTuples, registered dataclasses.

In: parameters, and what each that is a container looks like.  Out: parameters for the leaves, named
by their paths (``params_w`` for ``params["w"]``), and the containers of what is passed for them.

What a container looks like is stated (its shapes stand in such a container), or read in the source
of ``fun``: the keys, places and fields that it asks for.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from symgrad.errors import SpecError
from symgrad.frontend.source_text import source_text
from symgrad.frontend.spec import TensorSpec

flatten = jax.tree_util.tree_flatten
unflatten = jax.tree_util.tree_unflatten
Parameter = inspect.Parameter
_MOST_CALLS = 3
"""How deep calls that a container is passed to are read."""


@dataclass(frozen=True)
class Container:
    """What one argument is made of.  ``paths``: those of its leaves, as parts of names.

    ``stated``: a user said so; it was read in the source otherwise.
    """

    structure: Any
    paths: tuple[str, ...]
    stated: bool = True

    @property
    def keyed(self) -> bool:
        """Has it keys or fields, which no array has?"""
        return not isinstance(unflatten(self.structure, self.paths), (tuple, list)) or any(
            not part.isdigit() for path in self.paths for part in path.split("_")
        )


@dataclass(frozen=True)
class Layout:
    """The arguments of a function, and its parameters where each leaf is one of them."""

    names: tuple[str, ...]
    containers: Mapping[str, Container]
    parameters: tuple[Parameter, ...]

    def grouped(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments, of which these are the leaves."""
        rest, found = list(leaves), list[Any]()
        for name in self.names:
            one = self.containers.get(name)
            if one is not None:
                found.append(unflatten(one.structure, rest[: len(one.paths)]))
                del rest[: len(one.paths)]
            elif rest:
                found.append(rest.pop(0))
        return (*found, *rest)

    def counts(self, given: Sequence[Any]) -> list[int]:
        """How many parameters each argument has."""
        names = [*self.names, *("" for _ in given[len(self.names) :])]
        known = self.containers
        return [
            len(known[name].paths) if name in known else 1
            for name, _ in zip(names, given, strict=False)
        ]  # fmt: skip

    def examples(self) -> dict[str, Any]:
        """For each container one that has its paths for leaves."""
        return {name: unflatten(one.structure, one.paths) for name, one in self.containers.items()}

    def is_read(self, place: int) -> bool:
        """Was the container of an argument read in the source?"""
        one = self.containers.get(self.names[place]) if place < len(self.names) else None
        return one is not None and not one.stated


def laid_out(names: Sequence[str], examples: Mapping[str, Any]) -> Layout:
    """The layout that ``examples`` are of."""
    found = {name: of_stated(one)[0] for name, one in examples.items()}
    return Layout(tuple(names), found, ())


def layout(parameters: Sequence[Parameter], containers: Mapping[str, Container]) -> Layout:
    """The parameters with one for each leaf of a container."""
    used = {one.name for one in parameters if one.name not in containers}
    found = list[Parameter]()
    for one in parameters:
        if one.name not in containers:
            found.append(one)
            continue
        for path in containers[one.name].paths:
            name = f"{one.name}_{path}"
            while name in used:
                name += "_"
            used.add(name)
            found.append(Parameter(name, Parameter.POSITIONAL_ONLY))
    names = [one.name for one in parameters if one.kind is not Parameter.VAR_POSITIONAL]
    return Layout(tuple(names), dict(containers), tuple(found))


# -- as they are stated


def is_container(spec: Any) -> bool:
    """Is it a container of shapes, and not a shape?"""
    if spec is None or isinstance(spec, (str, bool, int, float, TensorSpec)):
        return False
    leaves = jax.tree_util.tree_leaves(spec, is_leaf=_is_spec)
    return not (len(leaves) == 1 and leaves[0] is spec)


def _is_spec(value: Any) -> bool:
    return isinstance(value, TensorSpec)


def of_stated(spec: Any) -> tuple[Container, list[Any]]:
    """The container that shapes stand in, and these."""
    pairs, structure = jax.tree_util.tree_flatten_with_path(spec, is_leaf=_is_spec)
    return Container(structure, tuple(map(_path, (path for path, _ in pairs)))), [
        leaf for _, leaf in pairs
    ]


def _path(keys: Sequence[Any]) -> str:
    """``layer_0_w`` for ``["layer"][0].w``."""
    said = [
        getattr(one, "key", getattr(one, "idx", getattr(one, "name", one))) for one in keys
    ]  # fmt: skip
    return "_".join(re.sub(r"\W", "_", str(one)) for one in said)


def expanded(
    parameters: Sequence[Parameter], specs: Any, values: Mapping[str, Any]
) -> tuple[dict[str, Container], Any]:
    """The containers that shapes are stated in, and the shapes of all leaves.

    ``values``: plain arguments that are stated.  Raises SpecError for two shapes of one leaf.
    """
    if isinstance(specs, Mapping):
        pairs = list(specs.items())
    else:
        pairs = list(_by_parameter(parameters, specs, values))
    containers, flat = dict[str, Container](), list[tuple[str, Any]]()
    for name, spec in pairs:
        if not is_container(spec):
            flat.append((name, spec))
            continue
        containers[name], leaves = of_stated(spec)
        flat += [(f"{name}_{path}", leaf) for path, leaf in
                 zip(containers[name].paths, leaves, strict=True)]  # fmt: skip
    if not isinstance(specs, Mapping):
        return containers, tuple(spec for _, spec in flat)
    if len(dict(flat)) < len(flat):
        raise SpecError("two leaves have the same name", hint="give the shapes by position")
    return containers, dict(flat)


def _by_parameter(
    parameters: Sequence[Parameter], specs: Sequence[Any], values: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """The specs with the names of their parameters, which those with plain values have none of."""
    waiting = [
        one.name for one in parameters
        if one.name not in values
        and (one.default is Parameter.empty or one.default is None)
        and one.kind is not Parameter.VAR_POSITIONAL
    ]  # fmt: skip
    for place, spec in enumerate(specs):
        yield (waiting[place] if place < len(waiting) else ""), spec


# -- as the source asks for them


@dataclass
class _Parts:
    """What is known of a value: the keys, the number of elements, the fields that are asked for.

    ``array``: what only an array has is asked for, so that one that is unpacked is no tuple.
    """

    kind: str = ""
    array: bool = False
    parts: dict[Any, _Parts] = field(default_factory=dict)

    def part(self, kind: str, key: Any) -> _Parts:
        """One part, which makes it a container of this kind."""
        self.kind = self.kind if self.kind not in ("", kind) else kind
        return self.parts.setdefault(key, _Parts())


_ARRAY = frozenset(dir(jax.Array)) | {"at", "T", "mT"}
_OF_DICTS = frozenset(("keys", "values", "items", "get", "copy", "_replace", "_asdict", "replace"))


def of_source(
    fun: Any, parameters: Sequence[Parameter], skipped: frozenset[str]
) -> dict[str, Container]:
    """The containers that the source of ``fun`` asks for; ``skipped`` are no arrays."""
    known = {
        one.name: _Parts() for one in parameters
        if one.name not in skipped and one.default is Parameter.empty
        and one.kind is not Parameter.VAR_POSITIONAL
    }  # fmt: skip
    _read(fun, known, _MOST_CALLS)
    space = getattr(inspect.unwrap(fun), "__globals__", {})
    hints = {one.name: _class(one.annotation, space) for one in parameters}
    found = dict[str, Container]()
    for name, parts in known.items():
        made = _made(parts, hints[name], space)
        if made is None or not is_container(made):
            continue
        one = of_stated(made)[0]
        found[name] = dataclasses.replace(one, stated=False)
    return found


def _class(annotation: Any, space: Mapping[str, Any]) -> Any:
    """The class of an annotation; None for anything else."""
    if isinstance(annotation, str):
        annotation = space.get(annotation)
    return annotation if isinstance(annotation, type) and _fields(annotation) else None


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a NamedTuple or a dataclass; none of other classes."""
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    if dataclasses.is_dataclass(kind):
        return tuple(one.name for one in dataclasses.fields(kind))
    return ()


def _made(parts: _Parts, kind: type | None, space: Mapping[str, Any]) -> Any:
    """A container with texts for its leaves; a text for a leaf; None for what is not known."""
    if kind is None and parts.kind == "field":
        fitting = {
            one for one in space.values()
            if isinstance(one, type) and {*parts.parts} <= {*_fields(one)}
        }  # fmt: skip
        kind = fitting.pop() if len(fitting) == 1 else None
        if kind is None:
            return None
    if kind is not None:
        return _instance(parts, kind, space)
    if not parts.kind:
        return "_"
    inner = {key: _made(one, None, space) for key, one in parts.parts.items()}
    if any(one is None for one in inner.values()):
        return None
    if parts.kind == "key":
        return inner
    known = sorted(inner) == list(range(len(inner))) and not parts.array
    return tuple(inner[place] for place in sorted(inner)) if known else None


def _instance(parts: _Parts, kind: type, space: Mapping[str, Any]) -> Any:
    hints = inspect.get_annotations(kind)
    inner = {
        name: _made(parts.parts.get(name, _Parts()), _class(hints.get(name), space), space)
        for name in _fields(kind)
    }
    try:
        found = kind(**inner)
        return found if jax.tree_util.tree_leaves(found) != [found] else None
    except Exception:  # a class that checks what it is given
        return None


def _read(function: Any, known: Mapping[str, _Parts], depth: int) -> None:
    """Note what a function asks of values, those of its own names and of what it calls."""
    plain = inspect.unwrap(function)
    try:
        tree = ast.parse(source_text(plain))
    except (OSError, TypeError, SyntaxError, ValueError):
        return
    defined = [one for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    if not defined:
        return
    _Reader(dict(known), getattr(plain, "__globals__", {}), depth).visit(defined[0])


class _Reader(ast.NodeVisitor):
    """Reads one function, in the order of its text."""

    def __init__(self, known: dict[str, _Parts], space: Mapping[str, Any], depth: int) -> None:
        self.known, self.space, self.depth = known, space, depth

    def visit_Assign(self, node: ast.Assign) -> None:
        """``w = params["w"]``; ``w, b = params``."""
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, node.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        several = (ast.Tuple, ast.List)
        if (
            isinstance(target, several) and isinstance(value, several)
            and len(target.elts) == len(value.elts)
        ):  # fmt: skip
            for one, other in zip(target.elts, value.elts, strict=True):
                self._bind(one, other)
        else:
            self._named(target, self._parts(value))

    def _named(self, target: ast.expr, found: _Parts | None) -> None:
        if isinstance(target, ast.Name):
            if found is None:
                self.known.pop(target.id, None)
            else:
                self.known[target.id] = found
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = any(isinstance(one, ast.Starred) for one in target.elts)
            for place, one in enumerate(target.elts):
                inner = None if found is None or starred else found.part("place", place)
                self._named(one, inner)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """``params["w"]``."""
        if self._parts(node) is None:
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """``params.w``; ``x.shape``."""
        if node.attr in _ARRAY:
            self._mark(node.value)
        if self._parts(node) is None:
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """``x * y``."""
        self._mark(node.left)
        self._mark(node.right)
        self.generic_visit(node)

    def _mark(self, node: ast.expr) -> None:
        found = self._parts(node)
        if found is not None:
            found.array = True

    def visit_Call(self, node: ast.Call) -> None:
        """What a value is passed to is read too."""
        self.generic_visit(node)
        called = self.space.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if not self.depth or not callable(called):
            return
        try:
            own = [
                one.name for one in inspect.signature(called).parameters.values()
                if one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
            ]  # fmt: skip
        except (TypeError, ValueError):
            return
        pairs = [*zip(own, node.args, strict=False),
                 *((one.arg, one.value) for one in node.keywords if one.arg)]  # fmt: skip
        passed = {name: found for name, one in pairs if (found := self._parts(one)) is not None}
        if passed:
            _read(called, passed, self.depth - 1)

    def _parts(self, node: ast.expr) -> _Parts | None:
        """What an expression is a part of; None for anything else."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Subscript):
            around = self._parts(node.value)
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if around is None:
                return None
            if isinstance(key, str):
                return around.part("key", key)
            known = isinstance(key, int) and around.kind == "place" and key >= 0
            return around.part("place", key) if known else None
        if isinstance(node, ast.Attribute) and node.attr not in _ARRAY | _OF_DICTS:
            around = self._parts(node.value)
            return None if around is None else around.part("field", node.attr)
        return None
