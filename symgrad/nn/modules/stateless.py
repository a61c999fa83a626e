"""A module called with other tensors in the place of its parameters and buffers.

In: a module, tensors by their dotted names.  Out: what it returns with these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from symgrad.nn.modules.module import Module
from symgrad.tensor.errors import AutogradError, TensorTypeError, TensorValueError
from symgrad.tensor.trace.symbolic import is_tensor

Place = tuple[dict[str, Any], str]


def functional_call(
    module: Module, parameter_and_buffer_dicts: Any, args: Any = None,
    kwargs: Mapping[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """``module(*args, **kwargs)`` with other parameters and buffers, as ``torch.func`` has it.

    ``parameter_and_buffer_dicts``: tensors by dotted names, or several such dicts.
    ``tie_weights``: what the module holds under several names is replaced under all of them.
    ``strict``: raise AutogradError unless the names are those of the module.  Raises
    TensorTypeError, TensorValueError for other values.
    """
    given = _joined(parameter_and_buffer_dicts)
    places = _places(module)
    unexpected, missing = sorted(given.keys() - places), sorted(places.keys() - given)
    if strict and (unexpected or missing):
        said = [("Unexpected", unexpected), ("Missing", missing)]
        raise AutogradError(
            f"Error(s) in reparametrizing for {type(module).__name__}: "
            + " ".join(f"{what} key(s): {', '.join(map(repr, names))}." for what, names in said)
        )
    chosen = {name: value for name, value in given.items() if name in places}
    if tie_weights:
        chosen |= _tied(places, chosen)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced([(places[name], value) for name, value in chosen.items()]):
        return module(*arguments, **(kwargs or {}))


def _joined(dicts: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in (dicts,) if isinstance(dicts, Mapping) else dicts:
        twice = sorted(found.keys() & one.keys())
        if twice:
            raise TensorValueError(
                f"{twice} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous"
            )
        found |= one
    for name, value in found.items():
        if not is_tensor(value):
            raise TensorTypeError(f"{name}: {value!r} is not an instance of Tensor")
    return found


def _places(module: Module) -> dict[str, Place]:
    """Where each parameter and buffer stands, under all of its names."""
    return {
        f"{path}.{name}" if path else name: (table, name)
        for path, inner in module.named_modules(remove_duplicate=False)
        for table in (inner._parameters, inner._buffers)
        for name in table
    }


def _tied(places: Mapping[str, Place], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The same values under the other names of what they replace."""
    names: dict[int, list[str]] = {}
    for name, (table, key) in places.items():
        if table[key] is not None:
            names.setdefault(id(table[key]), []).append(name)
    found: dict[str, Any] = {}
    for same in names.values():
        values = [chosen[name] for name in same if name in chosen]
        if any(value is not values[0] for value in values):
            raise TensorValueError(
                f"functional_call got multiple values for keys {same}, which are tied. Consider "
                "using tie_weights=False"
            )
        found |= dict.fromkeys(same, values[0]) if values else {}
    return found


@contextmanager
def _replaced(changes: Sequence[tuple[Place, Any]]) -> Iterator[None]:
    """A block in which other values stand in these places."""
    before = [(table, name, table[name]) for (table, name), _ in changes]
    try:
        for (table, name), value in changes:
            table[name] = value
        yield
    finally:
        for table, name, value in before:
            table[name] = value
