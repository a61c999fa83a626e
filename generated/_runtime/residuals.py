"""What forward keeps for backward, and whether that is what backward is given.

In: an op's ``Case`` and whatever a caller passed.  Out: the arrays and sizes, checked, or an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from .abi import Array, Case, Sizes, all_sizes, evaluate
from .errors import KernelArgumentError, KernelTypeError, counted
from .arguments import NDArray, as_array, checked_shape, describe


class Residuals(tuple[Any, ...]):
    """What forward of ``op`` keeps for backward: arrays, then sizes, named by ``fields``.

    What is called ``*batch`` is the tuple of these axes.  Plain numbers, which ``numbers`` names,
    stand among the arrays.

    Inputs and outputs among the arrays are the caller's own, not copies.  Backward checks their
    shapes and dtypes; what is written into them before it runs is what it computes with.
    """

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()
    numbers: ClassVar[tuple[str, ...]] = ()
    op: ClassVar[str] = "another op"

    @property
    def arrays(self) -> dict[str, NDArray]:
        """The arrays by name."""
        return {n: v for n, v in self._named() if not isinstance(v, (int, tuple))}

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name."""
        return {n: v for n, v in self._named() if isinstance(v, int)}

    def _named(self) -> Iterator[tuple[str, Any]]:
        """All but the plain numbers."""
        pairs = zip(self.fields, self, strict=True)
        return (pair for pair in pairs if pair[0] not in self.numbers)

    def __repr__(self) -> str:
        shapes = [f"{name}: {array.dtype}{array.shape}" for name, array in self.arrays.items()]
        named = dict(zip(self.fields, self, strict=True))
        shapes += [f"{name} = {named[name]}" for name in self.numbers]
        return f"<residuals of {self.op}: {', '.join(shapes) or 'sizes alone'}>"


def serves(case: Case, sizes: Sizes) -> bool:
    """Is the case one for these sizes?"""
    if any(len(sizes[name]) in case.apart for name in case.batches):
        return False
    try:
        return all(evaluate(condition, sizes) for condition in case.conditions)
    except ZeroDivisionError:
        return False


def taken_apart(
    where: str, case: Case, residuals: Any, batch: tuple[int, ...] = ()
) -> tuple[list[Any], Sizes]:
    """The arrays, numbers and sizes of ``residuals``, if they are what forward can have kept.

    ``batch``: the leading axes that forward was called over.

    Raises KernelTypeError or KernelArgumentError where they are not: they were made by hand, or an
    array among them has another shape or dtype since.
    """
    values = tuple(residuals)
    given = values[len(case.residuals) :]
    complete = len(values) == len(case.residuals) + len(case.sizes)
    if not (complete and all(map(_is_size, case.sizes, given))):
        raise KernelArgumentError(
            f"{where}: the residuals hold {_listed(values)}, expected"
            f" {counted(len(case.residuals), 'array')} and {counted(len(case.sizes), 'size')}",
            hint=f"pass the second result of {where.removesuffix('backward')}forward",
        )
    sizes = all_sizes(case, given)
    if not serves(case, sizes):
        raise KernelArgumentError(
            f"{where}: these residuals are for {' and '.join(case.conditions)}, and hold"
            f" {describe(sizes)}",
            hint=f"pass the second result of {where.removesuffix('backward')}forward",
        )
    arrays: list[Any] = []
    for residual, value in zip(case.residuals, values, strict=False):
        wanted = residual.array
        if wanted.by_value:
            arrays.append(_number(where, wanted, value))
            continue
        array = as_array(f"{where}: the residual {wanted.name}", value, wanted, leading=bool(batch))
        shape = checked_shape(where, wanted, sizes)
        more = array.ndim - len(wanted.dims) if batch else 0
        if array.shape[more:] != shape or not _fits(array.shape[:more], batch):
            raise KernelArgumentError(
                f"{where}: the residual {wanted.name} has the shape {array.shape}, but forward"
                f" kept {shape}",
                hint="inputs and outputs of forward are not copied: leave them as they are until"
                " backward has run",
            )
        arrays.append(array)
    return arrays, sizes


def _fits(axes: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    """Are these leading axes some of a batch's, or of length 1?"""
    behind = batch[len(batch) - len(axes) :]
    return len(axes) <= len(batch) and all(
        own in (1, extent) for own, extent in zip(axes, behind, strict=True)
    )


def _number(where: str, wanted: Array, value: object) -> Any:
    """A plain number that forward was given.  Raises KernelTypeError for anything else."""
    if type(value) is (int if wanted.dtype == "int64" else float):
        return value
    raise KernelTypeError(
        f"{where}: the residual {wanted.name} is a {type(value).__name__}, not the number that "
        "forward was given",
        hint=f"pass the second result of {where.removesuffix('backward')}forward",
    )


def _is_size(name: str, value: object) -> bool:
    """A size, or for ``*name`` a tuple of sizes."""
    if name.startswith("*"):
        return type(value) is tuple and all(_is_size("", one) for one in value)
    return type(value) is int and value >= 0


def _listed(values: Sequence[object]) -> str:
    return ", ".join(v.__class__.__name__ if not isinstance(v, int) else str(v) for v in values)
