"""One way of calling a function that is compiled: its traces, by the pattern of its sizes.

In: a function, its arguments.  Out: ``Prepared``: kernels, and the tensors that it closes over.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symgrad.budgets import MOST_PATTERNS
from symgrad.frontend.plain import PlainNumber
from symgrad.frontend.regions import Region
from symgrad.frontend.session import activate, as_symgrad_error
from symgrad.frontend.sizes import SymFloat, SymInt, symbolic_math
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.tensor import pytree
from symgrad.tensor.jit.captures import Path, find_paths, follow
from symgrad.tensor.jit.traced import NUMBER, Entry, Family, Sizes, Traced, agree
from symgrad.tensor.modes import enable_grad, state
from symgrad.tensor.tape import kernelnode
from symgrad.tensor.tensor import Tensor
from symgrad.tensor.trace.lifting import LiftingSession, NeedsNumbers, Untraceable

Pattern = tuple[tuple[int, ...] | float | None, ...]
"""For each tensor its sizes: a number, or -1 - k for the k-th symbol.

For a float that is passed it is None, or its value where the trace needs that.
"""


class StaleCapture(Exception):
    """A tensor that the function closes over was replaced, or has another dtype or shape."""


@dataclass(frozen=True)
class Prepared:
    """Kernels for arguments of certain dtypes, shapes and values.

    ``paths``: where the tensors are that the function closes over; ``pattern``: of the arguments.
    """

    entry: Entry
    paths: tuple[Path, ...]
    pattern: Pattern

    def serves(self, tensors: Sequence[Tensor], numbers: Sequence[int]) -> bool:
        """Is it for these floats, which stand at ``numbers``?"""
        for place in numbers:
            value, known = tensors[place]._array.item(), self.pattern[place]
            if known is not None and (value != known or str(value) != str(known)):
                return False
        return self.entry.admits({number_name(p): tensors[p]._array.item() for p in numbers})

    def inputs(self, tensors: Sequence[Tensor], roots: Sequence[Any]) -> list[Tensor]:
        """Everything that the kernels take.  Raises StaleCapture."""
        found = list(tensors)
        for path, before in zip(self.paths, self.entry.traced.captured, strict=True):
            now = follow(roots, path)
            if now is not before and not _alike(now, before):
                raise StaleCapture
            found.append(now)
        return found

    def needs(self, inputs: Sequence[Tensor]) -> tuple[bool, ...]:
        """Which of the inputs a gradient is recorded for."""
        if not state.grad_enabled:
            return (False,) * len(inputs)
        return tuple([tensor.requires_grad for tensor in inputs])

    def run(self, kernels: kernelnode.Kernels, inputs: Sequence[Tensor]) -> Any:
        """What the function returns."""
        return self.entry.traced.rebuild(kernelnode.call(kernels, inputs))


def _alike(tensor: Any, other: Tensor) -> bool:
    return (
        isinstance(tensor, Tensor)
        and tensor._array.dtype == other._array.dtype
        and tensor._array.shape == other._array.shape
    )


class Variant:
    """The traces for arguments of certain dtypes, ranks and values.

    ``floats``: the places among its tensors where a float is passed, a symbol of the trace;
    ``fixed``: those of which the trace needs the value.  ``numbers``: sizes that are written as
    numbers; ``exact``: all of them.
    """

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any,
        floats: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        self.function = function
        self.template = pytree.emptied((args, kwargs), floats is not None)
        self.floats = frozenset(floats or ())
        self.fixed: frozenset[int] = frozenset()
        self.numbers: frozenset[int] = frozenset((0, 1))
        self.exact = False
        self.hopeless = False
        self.dtype = state.dtype
        self._families: dict[Pattern, tuple[Family, list[tuple[Path, ...]]]] = {}

    def prepare(self, tensors: Sequence[Tensor], roots: Sequence[Any]) -> Prepared:
        """Kernels for these arguments.

        Raises whatever the function raises while it is traced, and Untraceable.
        """
        if any(0 in tensor._array.shape for tensor in tensors):
            raise EmptyTensor("a tensor has no elements")
        while True:
            try:
                return self._prepare(tensors, roots)
            except NeedsNumbers as wanted:
                self.numbers |= wanted.sizes
            except NeedsValues as needed:
                self.fixed |= needed.places
            except Exception:
                if self.floats - self.fixed:
                    self.fixed = self.floats
                    continue
                if self.exact or not any(map(_symbols, self.pattern(tensors))):
                    raise
                self.exact = True
                prepared = self._or_general(tensors, roots)
                if prepared is not None:
                    return prepared

    def _or_general(self, tensors: Sequence[Tensor], roots: Sequence[Any]) -> Prepared | None:
        """With all sizes as numbers; not for good where that fails as well."""
        try:
            return self._prepare(tensors, roots)
        except NeedsNumbers:
            return None
        except Exception:
            self.exact = False
            raise

    def _prepare(self, tensors: Sequence[Tensor], roots: Sequence[Any]) -> Prepared:
        pattern = self.pattern(tensors)
        if pattern not in self._families:
            shapes = [_shapes(one) for one in self._families if _values(one) == _values(pattern)]
            if len(shapes) >= MOST_PATTERNS:
                raise Untraceable(f"it is called with over {MOST_PATTERNS} patterns of sizes")
            kinds = [tensor.dtype for tensor in tensors]
            paths: list[tuple[Path, ...]] = []
            trace = functools.partial(self._checked, pattern, kinds, list(roots), paths)
            family = Family(trace, functools.partial(sizes_of, pattern))
            family.entry(family.sizes_of(tensors))
            self._families[pattern] = family, paths
        family, paths = self._families[pattern]
        entry = family.entry(family.sizes_of(tensors))
        return Prepared(entry, paths[0], pattern)

    def pattern(self, tensors: Sequence[Tensor]) -> Pattern:
        """Which sizes are numbers, and which of the others are equal."""
        names: dict[int, int] = {}
        found: list[tuple[int, ...] | float | None] = []
        for place, tensor in enumerate(tensors):
            if place in self.floats:
                found.append(tensor._array.item() if place in self.fixed else None)
                continue
            sizes = []
            for size in tensor._array.shape:
                known = self.exact or size in self.numbers
                sizes.append(size if known else -1 - names.setdefault(size, len(names)))
            found.append(tuple(sizes))
        return tuple(found)

    # -- tracing

    def _checked(
        self, pattern: Pattern, kinds: Sequence[DType], roots: Sequence[Any],
        paths: list[tuple[Path, ...]], sizes: Sizes,
    ) -> Traced:  # fmt: skip
        """The trace, whose symbols agree with the values at hand where floats are passed."""
        found = self._trace(pattern, kinds, roots, paths, sizes)
        symbols = [place for place, one in enumerate(pattern) if one is None]
        if not symbols:
            return found
        plain = tuple(
            sizes[number_name(place)] if one is None else one for place, one in enumerate(pattern)
        )
        other = self._trace(plain, kinds, roots, [], sizes)
        if not agree(found, other, sizes):
            raise NeedsValues(frozenset(symbols))
        return found

    def _trace(
        self, pattern: Pattern, kinds: Sequence[DType], roots: Sequence[Any],
        paths: list[tuple[Path, ...]], sizes: Sizes,
    ) -> Traced:  # fmt: skip
        session = LiftingSession(
            {name: size for name, size in sizes.items() if not name.startswith(NUMBER)}, self.dtype
        )
        session.namer.start(sys._getframe())
        with activate(session), symbolic_math(), enable_grad(), lifting():
            names = self._names()
            symbols = [
                self._symbol(session, place, *one, sizes)
                for place, one in enumerate(zip(names, kinds, pattern, strict=True))
            ]
            args, kwargs = pytree.filled(self.template, iter(symbols))
            try:
                result = self.function(*args, **kwargs)
            except Exception as error:
                raise as_symgrad_error(error, "the function") from error
            found: list[SymbolicTensor] = []
            rebuild = pytree.results(_known(result), found)
            outputs = tuple(tensor.node for tensor in found)
            session.check_unwritten()
            session.namer.finish(session)
        asked = [name for name, region in session.regions.items() if region.settled]
        if asked:
            raise NeedsValues(frozenset(int(name.removeprefix(NUMBER)) for name in asked))
        if not outputs:
            raise Untraceable("it returns no tensor")
        captured = tuple(tensor for tensor, _ in session.captured)
        self._note_paths(session, captured, roots, paths)
        inputs = tuple(node for _, node in session.given)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return Traced(_word(name), session, inputs, outputs, captured, rebuild)

    def _symbol(
        self, session: LiftingSession, place: int, name: str, kind: DType,
        shape: tuple[int, ...] | float | None, sizes: Sizes,
    ) -> Any:  # fmt: skip
        """What stands for an argument in the trace."""
        if isinstance(shape, tuple):
            return session.take(name, kind, [_dim(size) for size in shape])
        session.take(name, kind, ())
        if shape is not None:
            return shape
        region = Region(name, sizes[number_name(place)])
        session.regions[number_name(place)] = region
        session.plain[name] = session.given[-1][1]
        return PlainNumber.of(region)

    def _note_paths(
        self, session: LiftingSession, captured: Sequence[Tensor], roots: Sequence[Any],
        paths: list[tuple[Path, ...]],
    ) -> None:  # fmt: skip
        """Find where the tensors are that were met, and name them after that."""
        found = []
        for (_, symbol), path in zip(
            session.captured, find_paths(roots, captured), strict=True
        ):  # fmt: skip
            if path is None:
                raise Untraceable(
                    "it closes over a tensor that is found neither from its variables nor from "
                    "its arguments"
                )
            found.append(path)
            words = [key for _, key in path[1] if isinstance(key, str)]
            symbol.storage.node.name = session.namer.unique(_word(words[-1] if words else "w"))
        if paths and paths[0] != tuple(found):
            raise Untraceable("which tensors it closes over depends on sizes")
        paths[:] = [tuple(found)]

    def _names(self) -> Iterator[str]:
        """A name for each tensor: that of the parameter, numbered where it holds several."""
        args, kwargs = self.template
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):
            bound = {"x": (args, kwargs)}
        taken: set[str] = set()
        for parameter, value in bound.items():
            count = pytree.holes(value)
            for place in range(count):
                name = _word(parameter) if count == 1 else f"{_word(parameter)}_{place}"
                while name in taken:
                    name += "_"
                taken.add(name)
                yield name


class NeedsValues(BaseException):
    """The values of these floats have to be known: the trace is to be done again.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """

    def __init__(self, places: frozenset[int]) -> None:
        self.places = places
        super().__init__(sorted(places))


class EmptyTensor(Untraceable):
    """A tensor has no elements: the call runs eagerly, without a warning."""


class lifting:
    """A block in which operations on tensors become part of the trace in progress."""

    def __enter__(self) -> None:
        self._before, state.lifting = state.lifting, True

    def __exit__(self, *error: object) -> None:
        state.lifting = self._before


def sizes_of(pattern: Pattern, tensors: Sequence[Tensor]) -> dict[str, Any]:
    """The numbers behind the symbols of a pattern."""
    found: dict[str, Any] = {}
    for place, (shape, tensor) in enumerate(zip(pattern, tensors, strict=False)):
        if not isinstance(shape, tuple):
            found[number_name(place)] = tensor._array.item()
            continue
        for size, number in zip(shape, tensor._array.shape, strict=True):
            if size < 0:
                found[_symbol(size)] = number
    return found


def number_name(place: int) -> str:
    """What a float is called among the sizes."""
    return f"{NUMBER}{place}"


def _shapes(pattern: Pattern) -> tuple[Any, ...]:
    return tuple(one for one in pattern if isinstance(one, tuple))


def _values(pattern: Pattern) -> tuple[str, ...]:
    return tuple(str(one) for one in pattern if not isinstance(one, tuple))


def _symbols(shape: Any) -> bool:
    return isinstance(shape, tuple) and any(size < 0 for size in shape)


def _symbol(size: int) -> str:
    return f"n{-1 - size}"


def _dim(size: int) -> Dim:
    return Dim.size(_symbol(size)) if size < 0 else Dim.of(size)


def _known(result: Any) -> Any:
    """The result.  Raises Untraceable where it holds a symbolic size."""
    if type(result) is PlainNumber:
        return result.settle()
    if isinstance(result, (SymInt, SymFloat)):
        raise Untraceable("it returns a size")
    if isinstance(result, (tuple, list)):
        for item in result:
            _known(item)
    elif isinstance(result, Mapping):
        for item in result.values():
            _known(item)
    return result


def _word(name: str) -> str:
    """The name as one that a variable can have."""
    word = "".join(letter if letter.isalnum() else "_" for letter in name).strip("_")
    return word if word.isidentifier() else f"f_{word}"
