"""A ``jax.custom_vjp`` function as a ``symgrad.Function``.

In: the object.  Out: a class of the name of its function.

Forward is ``fun``; beside it ``fwd`` runs, whose residuals are what ctx keeps; backward is ``bwd``.
Each argument that is an array is a tensor, and so is each leaf of one that is a container
(``containers``); the leaves of what ``fun`` returns are the outputs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

import symgrad.interop.jax.calls
import symgrad.interop.jax.convolutions
import symgrad.interop.jax.places
import symgrad.interop.jax.windows  # noqa: F401
from symgrad.errors import Location, ProtocolError, ShapeError, UnsupportedOpError
from symgrad.frontend.function import Function
from symgrad.frontend.questions import note_limit, questions
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.interop.jax.containers import Container, Layout, expanded, layout, of_source
from symgrad.interop.jax.running import GUEST
from symgrad.interop.jax.spawned import Real, known_as
from symgrad.interop.jax.tracing import (
    Tree,
    as_array,
    as_symbol,
    check_rank,
    flatten,
    precision,
    run,
    unflatten,
)

_known: WeakKeyDictionary[Any, tuple[Any, type[Function]]] = WeakKeyDictionary()
_SURROGATE = "symgrad_surrogate"
_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Zero:
    """What stands for a cotangent that is None, or of no float."""


_ZERO = _Zero()


def adapted(function: Any) -> type[Function]:
    """The function as a Function, the same one as long as its rules are the same."""
    declared = vars(function)
    rules = (
        function.fun, function.fwd, function.bwd, declared.get(_SURROGATE), declared.get("assume"),
    )  # fmt: skip
    found = _known.get(function)
    if found is None or any(old is not new for old, new in zip(found[0], rules, strict=True)):
        own = _own_parameters(function)
        read = of_source(function.fun, own, _plain_names(function, own))
        found = _known[function] = rules, _adapted(function, read)
    return found[1]


def shaped(
    cls: type[Function], specs: Any, values: Mapping[str, Any]
) -> tuple[type[Function], Any]:  # fmt: skip
    """The class for arguments of the containers that shapes are stated in, and those of the leaves.

    Where none stands in a container, and there are no more than arguments, each is an array.
    """
    function = cls.symgrad_function  # type: ignore[attr-defined]
    own = _own_parameters(function)
    containers, flat = expanded(own, specs, values)
    known: Layout = cls.symgrad_layout  # type: ignore[attr-defined]
    if not containers and known.containers:
        wanted = set(specs) if isinstance(specs, Mapping) else len(specs)
        names = {one.name for one in own} - {*values}
        fits = wanted <= names if isinstance(wanted, set) else wanted <= len(names)
        if not specs or not fits or any(one.keyed for one in known.containers.values()):
            return cls, specs
    if {**containers} == {**known.containers}:
        return cls, flat
    made = _adapted(function, containers)
    if _SURROGATE in vars(cls):
        made.symgrad_surrogate = vars(cls)[_SURROGATE]  # type: ignore[attr-defined]
    return made, flat


def _own_parameters(function: Any) -> list[inspect.Parameter]:
    return _by_position(list(inspect.signature(function.fun).parameters.values()))


def _plain_names(function: Any, parameters: Sequence[inspect.Parameter]) -> frozenset[str]:
    fixed = frozenset(function.nondiff_argnums)
    return frozenset(one.name for place, one in enumerate(parameters) if place in fixed)


@dataclass
class _Call:
    """One call: what forward keeps for backward.

    ``flat``: what forward was given, and defaults; ``given``: the arguments; ``outputs``: the
    structure of what ``fun`` returned, and its leaves;
    ``residuals``: what ``fwd`` keeps.
    """

    flat: tuple[Any, ...]
    given: tuple[Any, ...]
    outputs: Tree
    residuals: Tree


_NO_COTANGENT = np.zeros((), jax.dtypes.float0)
"""What JAX passes for an output of integers."""


def _rewritten(
    function: Any, bwd: Any, containers: Mapping[str, Container]
) -> type[Function]:  # fmt: skip
    """The function with another ``bwd``, and all that is declared of it."""
    other = jax.custom_vjp(function.fun, nondiff_argnums=function.nondiff_argnums)
    other.defvjp(function.fwd, bwd)
    for name in (_SURROGATE, "assume"):
        if name in vars(function):
            setattr(other, name, vars(function)[name])
    return _adapted(other, containers)


def _adapted(
    function: Any, containers: Mapping[str, Container], told: Callable[..., None] | None = None
) -> type[Function]:
    """``told`` is called with what ``bwd`` is."""
    rules = (function.fun, function.fwd, function.bwd)
    leaves_of = layout(_own_parameters(function), containers)
    fixed = frozenset(function.nondiff_argnums)
    lazy = bool(getattr(function, "symbolic_zeros", False))

    def forward(ctx: Any, *args: Any, **passed: Any) -> Any:
        fun, fwd, _ = rules
        check_rank()
        _check_identity()
        _check(fun, fwd, lazy)
        flat = list(map(as_symbol, _every(names, defaults, args, passed)))
        given = leaves_of.grouped(flat)
        trees = [Tree.of(one) for one in given]
        with precision(args):
            numbers = [one for place, one in enumerate(given) if place in fixed]
            outputs = run(lambda *values: _arrays(fun(*values)), trees, "fun", numbers)
            pair = run(lambda *values: _pair(fwd, values), trees, "fwd", numbers)
        own, residuals = pair.parts()
        _check_alike(outputs, own, fwd)
        ctx.fwd_outputs = own.leaves
        ctx.save_for_backward(*_tensors(residuals))
        ctx.call = _Call(tuple(flat), given, outputs, residuals)
        return outputs.leaves[0] if len(outputs.leaves) == 1 else outputs.leaves

    def backward(ctx: Any, *cotangents: Any) -> Any:
        call: _Call = ctx.call
        leaves = tuple(_NO_COTANGENT if one is None else one for one in cotangents)
        plain = [Tree.of(call.given[place]) for place in sorted(fixed)]
        trees = [Tree.of(one) for place, one in enumerate(call.given) if place not in fixed]
        taken = [*plain, call.residuals, Tree(leaves, call.outputs.structure)]
        bwd = rules[2]
        if told is not None:
            told(*(unflatten(one.structure, one.leaves) for one in taken))
        read = [leaves_of.is_read(at) for at in range(len(call.given)) if at not in fixed]
        with precision([leaf for one in trees for leaf in one.leaves]):
            numbers = [call.given[place] for place in sorted(fixed)]
            found = run(
                lambda *values: _fitting(bwd(*values), trees, bwd, read), taken, "bwd", numbers
            )
        return tuple(_gradients(leaves_of, names, call.given, fixed, found.leaves, bwd))

    given_parameters = leaves_of.parameters
    defaults = _defaults(given_parameters)
    names = [one.name for one in given_parameters]
    ctx = "ctx" if "ctx" not in names else "symgrad_ctx"
    _described(forward, rules[0], [inspect.Parameter(ctx, _KINDS[0]), *given_parameters])
    _described(backward, rules[2], _cotangents(rules[2], ctx, len(fixed)))

    members = _members(function, containers, leaves_of) | {
        "forward": staticmethod(forward), "backward": staticmethod(backward),
    }  # fmt: skip
    return type(members["__qualname__"].rpartition(".")[2], (Function,), members)


def _members(
    function: Any, containers: Mapping[str, Container], leaves_of: Layout
) -> dict[str, Any]:
    """What the class of a function holds, beside its methods."""

    def watched(told: Callable[..., None]) -> type[Function]:
        return _adapted(function, containers, told)

    # a gradient for each parameter
    whole = not function.nondiff_argnums and not leaves_of.containers
    return _declared(function, leaves_of) | {
        "__module__": function.__module__,
        "__qualname__": known_as(function) or _name(function.__qualname__),
        "__doc__": function.__doc__, "symgrad_guest": GUEST,
        "symgrad_rules": (function.fun, function.fwd, function.bwd),
        "symgrad_shaped": staticmethod(shaped),
        "symgrad_plain": _plain_names(function, _own_parameters(function)),
        "symgrad_function": function, "symgrad_layout": leaves_of,
        "symgrad_real": Real(function, leaves_of),
        "symgrad_rewritten": staticmethod(lambda bwd: _rewritten(function, bwd, containers)),
        "symgrad_watched": staticmethod(watched) if whole else None,
        "symgrad_meant": staticmethod(lambda surrogate: _meant(surrogate, leaves_of)),
    }  # fmt: skip


def _defaults(given: Iterable[inspect.Parameter]) -> list[tuple[Any, ...]]:
    """The default of each parameter, which JAX passes; nothing where there is none."""
    return [() if one.default is inspect.Parameter.empty else (one.default,) for one in given]


def _every(
    names: Sequence[str], defaults: Sequence[tuple[Any, ...]], args: Sequence[Any],
    passed: Mapping[str, Any],
) -> Iterator[Any]:  # fmt: skip
    """What is passed for each parameter, by position or by name, or its default, as in JAX."""
    yield from args
    for name, left in zip(names[len(args) :], defaults[len(args) :], strict=True):
        yield from (passed[name],) if name in passed else left


def _gradients(
    leaves_of: Layout, names: Sequence[str], given: Sequence[Any], fixed: frozenset[int],
    found: Sequence[Any], bwd: Any,
) -> Iterator[Any]:  # fmt: skip
    """What backward returns: one for each parameter."""
    rest, at = iter(found), 0
    for place, (one, count) in enumerate(zip(given, leaves_of.counts(given), strict=True)):
        tree = flatten(one)[0]
        mine = [] if place in fixed else [next(rest) for _ in tree]
        if len(mine) != count:  # a plain value
            yield from [None] * count
        else:
            for name, leaf, gradient in zip(_from(names, at, count), tree, mine, strict=True):
                yield _gradient(name, leaf, gradient, bwd)
        at += count


def _from(names: Sequence[str], first: int, count: int) -> list[str]:
    """The names of so many parameters; the last one is that of all after it."""
    return [names[min(place, len(names) - 1)] for place in range(first, first + count)]


def _declared(function: Any, leaves_of: Layout) -> dict[str, Any]:
    """What ``sg.surrogate`` and ``sg.assume`` have said of a function."""
    said, found = vars(function), dict[str, Any]()
    if _SURROGATE in said:
        found[_SURROGATE] = staticmethod(_meant(said[_SURROGATE], leaves_of))
    if "assume" in said:
        found["assume"] = said["assume"]
    return found


def _meant(surrogate: Callable[..., Any], leaves_of: Layout) -> Callable[..., Any]:
    """A declared surrogate, which is written for JAX too."""

    def call(*args: Any) -> Any:
        trees = [Tree.of(one) for one in leaves_of.grouped(list(map(as_symbol, args)))]
        with precision(args):
            found = run(lambda *values: _arrays(surrogate(*values)), trees, "the surrogate").leaves
        return found[0] if len(found) == 1 else found

    call.symgrad_real = surrogate  # type: ignore[attr-defined]
    return call


def _name(name: str) -> str:
    return name.replace("<lambda>", "function")


def _by_position(given: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters that JAX can pass: all by position."""
    kinds = (*_KINDS, inspect.Parameter.VAR_POSITIONAL)
    return [
        one if one.kind is kinds[2] else one.replace(kind=_KINDS[0])
        for one in given if one.kind in kinds
    ]  # fmt: skip


def _described(made: Any, of: Any, parameters: Sequence[inspect.Parameter]) -> None:
    """Let a method stand for the user's own function, and have these parameters."""
    made.__wrapped__ = of
    made.__module__ = getattr(of, "__module__", None) or made.__module__
    made.__name__ = getattr(of, "__name__", made.__name__)
    made.__signature__ = inspect.Signature(list(parameters))


def _cotangents(bwd: Any, ctx: str, fixed: int) -> list[inspect.Parameter]:
    """The parameters of backward: ctx, and what ``bwd`` calls the cotangent."""
    first = inspect.Parameter(ctx, _KINDS[0])
    try:
        own = [one for one in inspect.signature(bwd).parameters.values() if one.kind in _KINDS]
    except (TypeError, ValueError):
        own = []
    name = own[fixed + 1].name if len(own) > fixed + 1 else "g"
    return [first, inspect.Parameter(name if name != ctx else "g", _KINDS[0])]


# -- what the rules of JAX ask


def _check_identity() -> None:
    """What asks which object an array is has no answer: JAX makes others of what it is given."""
    known = questions()
    if known is not None and known.identity:
        known.observe("it is asked which object an array is", None)


def _check(fun: Any, fwd: Any, lazy: bool) -> None:
    """Raises ProtocolError without rules, UnsupportedOpError for rules with symbolic zeros."""
    where = location_of(fun)
    if fwd is None:
        name = getattr(fun, "__name__", "the function")
        raise ProtocolError(
            f"{name} has no rule for its derivative", location=where,
            hint=f"call {name}.defvjp(fwd, bwd)",
        )  # fmt: skip
    if lazy:
        said = "defvjp with symbolic_zeros=True is not supported"
        raise note_limit(UnsupportedOpError(said, location=where))


def location_of(function: Any) -> Location | None:
    """The line of a function; None where it has none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return None
    return Location(code.co_filename, code.co_firstlineno, code.co_name)


def _arrays(returned: Any) -> Any:
    return jax.tree_util.tree_map(as_array, returned)


def _pair(fwd: Callable[..., Any], values: Sequence[Any]) -> Any:
    """The output and the residuals.  Raises ProtocolError where fwd returns no pair."""
    returned = fwd(*values)
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise ProtocolError(
            "fwd returns no pair of the output and the residuals", location=location_of(fwd),
            hint="return output, residuals",
        )  # fmt: skip
    return _arrays(returned[0]), returned[1]


def _check_alike(outputs: Tree, own: Tree, fwd: Any) -> None:
    """Raises ProtocolError where ``fun`` and ``fwd`` return other containers or shapes."""
    said = ""
    if outputs.structure != own.structure:
        said = f"fwd returns the output {own.structure}, and fun {outputs.structure}"
    for one, other in zip(_tensors(outputs), _tensors(own), strict=False):
        if not said and (one.node.shape, one.dtype) != (other.node.shape, other.dtype):
            said = f"fwd returns an output of {other.node.type}, and fun one of {one.node.type}"
    if said:
        raise ProtocolError(said, location=location_of(fwd), hint="JAX refuses that")


def _tensors(tree: Tree) -> list[SymbolicTensor]:
    return [leaf for leaf in tree.leaves if isinstance(leaf, SymbolicTensor)]


def _fitting(
    returned: Any, trees: Sequence[Tree], bwd: Any, read: Sequence[bool]
) -> list[Any]:  # fmt: skip
    """What ``bwd`` returned, one value for each leaf of the arguments, ``_ZERO`` for None.

    As JAX has it: one array may stand for all leaves of a container.  Raises ProtocolError where it
    is no tuple of the arguments' structure; a limit is noted where a container that does not fit
    was ``read`` in the source, and not stated.
    """
    if isinstance(returned, list) and len(returned) == len(trees):
        returned = tuple(returned)
    if not isinstance(returned, tuple) or len(returned) != len(trees):
        count = len(returned) if isinstance(returned, tuple) else f"a {type(returned).__name__}"
        raise ProtocolError(
            f"bwd returned {count}, and fun has {len(trees)} arguments to differentiate by",
            location=location_of(bwd), hint="return a tuple with one cotangent for each of them",
        )  # fmt: skip
    found: list[Any] = []
    for one, tree, guessed in zip(returned, trees, read, strict=True):
        try:
            found += _spread(one, tree)
        except ValueError as error:
            own = jax.tree_util.tree_structure(one)
            said = f"bwd returned {_text(own)} for an argument that is {_text(tree.structure)}"
            where, hint = location_of(bwd), "return the containers of the argument"
            if guessed:
                hint = "state the shapes of that argument in the container that it is"
                raise note_limit(
                    UnsupportedOpError(f"{said}, as far as its source shows", location=where,
                                       hint=hint)
                ) from error  # fmt: skip
            raise ProtocolError(said, location=where, hint=hint) from error
    return found


def _text(structure: Any) -> str:
    """``{'w': *, 'b': *}`` of a structure."""
    return re.sub(r"^PyTreeDef\((.*)\)$", r"\1", str(structure))


def _spread(returned: Any, tree: Tree) -> list[Any]:
    """One value for each leaf of an argument.  Raises ValueError for other containers."""
    found: list[Any] = []

    def add(value: Any, part: Any) -> None:
        count = len(flatten(part)[0])
        if value is None and part is not None:
            found.extend([_ZERO] * count)
        elif value is not None:
            found.extend([_cotangent(value)] * count)

    marks = unflatten(tree.structure, [object() for _ in tree.leaves])
    jax.tree_util.tree_map(add, returned, marks, is_leaf=lambda value: value is None)
    return found


def _cotangent(leaf: Any) -> Any:
    kind = getattr(leaf, "dtype", None)
    if leaf is None or type(leaf).__name__ == "SymbolicZero" or kind == jax.dtypes.float0:
        return _ZERO
    return as_array(leaf)


def _gradient(name: str, argument: Any, found: Any, bwd: Any) -> Any:
    """What backward returns for one argument.

    Raises ShapeError for another shape than the argument's, which JAX refuses; dtypes it does not.
    """
    if not isinstance(argument, SymbolicTensor) or not argument.dtype.is_float or found is _ZERO:
        return None
    own, wanted = found.node.type, argument.node.type
    if own == wanted:
        return found
    if own.shape == wanted.shape:
        return found.to(argument.dtype)
    where = found.node.location or location_of(bwd)
    said = f"bwd returned {own} for {name}, which is {wanted}: JAX refuses that"
    pairs = zip(own.shape, wanted.shape, strict=True) if own.rank == wanted.rank else ()
    raise ShapeError(said, location=where, gradient=name, equal=pairs, rank=own.rank)
