"""Why nothing stands for the arguments of a Function: the errors of the search."""

from __future__ import annotations

import inspect
import itertools

from symgrad.errors import (
    ControlFlowError,
    EscapeError,
    Location,
    ProtocolError,
    SpecError,
    SymgradError,
    UnsupportedOpError,
    counted,
)
from symgrad.frontend.advice import near
from symgrad.frontend.evidence import called, listed
from symgrad.frontend.function import class_location, class_of, raw_method, separate_setup
from symgrad.frontend.session import as_symgrad_error, refuses_sizes
from symgrad.frontend.tensor import SelectedShapeError
from symgrad.shapes.candidates import Unknown, list_of_tensors
from symgrad.shapes.sizes import letters
from symgrad.shapes.tracing import ENDING_ALIKE, Search
from symgrad.shapes.trial import Trial, is_float


def has_parts(
    search: Search, name: str, part: str, method: str, where: Location | None
) -> SpecError:
    """The error for an argument that is no tensor, number or text."""
    guest = search.guest
    meant = "" if guest is None else near(part, guest.public(parameter=False), f"{name}.")
    return SpecError(
        f"{class_of(search.function).__name__}: nothing says what {name} is: "
        f"{method} asks it for {part}, which neither tensors nor numbers have",
        location=where,
        hint=f"{meant and f'{meant} Or '}give it: static of sg.verify takes {{{name!r}: ...}}; a "
        f'module or a function, in symgrad.toml: callables = {{ {name} = "module.name" }}',
    )


def _no_argument(search: Search) -> SpecError:
    cls = class_of(search.function)
    plain, hidden = raw_method(cls, "forward")
    taken = list(inspect.signature(plain).parameters)[:hidden]
    return SpecError(
        f"{cls.__name__}: forward takes no argument"
        f"{f' but {taken[-1]}, which stands for ctx' if taken else ''}",
        location=class_location(cls),
        hint="write forward(ctx, x), or forward(x) together with setup_context",
    )


def _wrong_arguments(search: Search) -> SpecError | None:
    """The error for a forward that takes no argument, or ctx beside a ``setup_context``."""
    cls = class_of(search.function)
    if not search.unknowns and not search.trials:
        return _no_argument(search)
    names = [unknown.name for unknown in search.unknowns]
    if not separate_setup(cls) or names[:1] != ["ctx"]:
        return None
    return SpecError(
        f"{cls.__name__}: forward takes ctx, though there is a setup_context",
        location=class_location(cls),
        hint="take ctx out of forward, or write no setup_context: torch calls forward(x), then "
        "setup_context(ctx, inputs, output)",
    )


def refuse_lists(search: Search) -> None:
    """Nothing stands for a list of tensors that forward is given.  Raises SpecError."""
    names = {one.name for one in search.unknowns}
    for name in listed(search.function):
        if name in names:
            raise list_of_tensors(search.function, name)


def refuse_functions(search: Search) -> None:
    """Nothing stands for a function that forward or backward is given.  Raises SpecError."""
    open_ones = {
        one.name for one in search.unknowns
        if not any(some.absent or (some.value is None and some.is_value)
                   for some in one.candidates)
    }  # fmt: skip
    names = [name for name in called(search.function) if name in open_ones]
    if names:
        several = len(names) > 1
        given = ", ".join(f'{name} = "module.function"' for name in names)
        raise SpecError(
            f"{class_of(search.function).__name__}: {' and '.join(names)} "
            f"{'are' if several else 'is'} called, and nothing says which "
            f"{'functions they are' if several else 'function it is'}",
            location=class_location(class_of(search.function)),
            hint=f"declare it in symgrad.toml: callables = {{ {given} }}; in Python, "
            "static of sg.verify takes a function",
        )


def refuse_branches(search: Search, found: Trial) -> None:
    """Integers or a mask do not stand for what gets a gradient where it has to be branched on.

    Raises the error of the branch.
    """
    errors = list(search.shapeless.values())
    if found.hidden and errors and all(isinstance(one, ControlFlowError) for one in errors):
        raise errors[0]


def nothing_found(search: Search) -> SymgradError:
    """Why forward accepted none of the combinations."""
    cls = class_of(search.function)
    if (wrong := _wrong_arguments(search)) is not None:
        return wrong
    open_ones = {one.name: one for one in search.unknowns if not one.candidates[0].is_value}
    for name, (part, where) in search.parts.items():
        if name in open_ones:
            return has_parts(search, name, part, "forward", where)
    for name, problem in search.with_items.items():
        return SpecError(
            f"{cls.__name__}: nothing says what {name} is, and backward takes no value that "
            f"was tried; the first: {problem.what}",
            location=problem.location,
            hint=f"give it: --static {name}=VALUE, or static = {{ {name} = VALUE }} in "
            "symgrad.toml",
        )
    if search.ending is not None and search.same >= ENDING_ALIKE:
        return search.ending
    if search.first is not None:
        found = as_symgrad_error(search.first, f"{cls.__name__}: forward")
        if search.alike and not refuses_sizes(found):
            return found
    nearest = search.nearest()
    if nearest and isinstance(nearest[0], (SelectedShapeError, EscapeError)):
        return nearest[0]
    if search.missing is not None:  # no shapes help
        return search.missing
    if len(search.shapeless) == 1:  # what fits ends there
        (error,) = search.shapeless.values()
        if isinstance(error, (ProtocolError, UnsupportedOpError)) and _is_last(search, error):
            return error
    wanted = [unknown.name for unknown in search.unknowns]
    settings = [one.name for one in search.unknowns if one.name in _SETTINGS]
    tensors = [one for one in search.unknowns if one.name not in _SETTINGS]
    others = settings or [one.name for one in tensors if not is_float(one.candidates[0])]
    plain = next(iter(others), "NAME")
    came = f"; the nearest, {nearest[1]}: {nearest[0].what}" if nearest else ""
    return SpecError(
        f"{cls.__name__}: nothing says what {', '.join(wanted) or 'an argument'} "
        f"{'are' if len(wanted) > 1 else 'is'}, and {counted(search.trials, 'trial')} found no "
        f"shapes that forward accepts{came}",
        location=(nearest and nearest[0].location) or class_location(cls),
        hint=f'say --shapes "{"; ".join(map(_likely, tensors)) or "n m"}" (2*n: even, 3: '
        f"the number, i64[n]: integers, []: no axes), and --static {plain}=VALUE, or static = "
        f'{{ {plain} = VALUE }} in symgrad.toml, for what is no tensor; or annotate: x: "f32[n m]"'
        + ("" if search.guest is None else search.guest.shapes_hint),
    )


def _is_last(search: Search, error: SymgradError) -> bool:
    """Did no trial come farther than to this error, which is not about sizes?"""
    at = error.location
    return at is not None and not refuses_sizes(error) and not any(
        one is not None and one.file == at.file and one.line > at.line for one in search.places
    )  # fmt: skip


_SETTINGS = frozenset(("training", "train", "eps", "epsilon", "momentum", "inplace", "dim", "axis"))
"""What nobody calls a tensor."""


def _likely(unknown: Unknown) -> str:
    """A spec of as many axes as the cheapest tensor has."""
    ranks = [one.rank for one in unknown.candidates if one.rank]
    return " ".join(itertools.islice(letters(set()), ranks[0] if ranks else 2))
