"""``symgrad accuracy``: Functions, or operations by their names, and what was measured of them.

In: names.  Out: ``Accuracy`` records as tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from symgrad.accuracy.records import Accuracy, Measured, Place, Special
from symgrad.errors import SpecError
from symgrad.frontend.function import Function
from symgrad.ir.registry import registered
from symgrad.ops.record import get
from symgrad.tools import discover


def chosen(target: str) -> list[tuple[type[Function], tuple[str, ...]]]:
    """The Functions that a target names, with specs; or an elementwise operation, as one.

    Raises SpecError.
    """
    import symgrad

    if Path(target).exists() or not registered(target):
        return [(function, ()) for function in discover.functions(target)]
    arity = get(target).arity or 1
    if get(target).kind != "elementwise" or not hasattr(symgrad, target):
        raise SpecError(
            f"{target} is no elementwise operation", hint="name a Function of a file that calls it"
        )
    return [(_operation(target), ("n",) * arity)]


def _operation(name: str) -> type[Function]:
    """An operation as a Function without a backward of its own."""
    import symgrad

    call: Any = getattr(symgrad, name)

    def one(ctx: Any, x: Any) -> Any:
        return call(x)

    def two(ctx: Any, x: Any, y: Any) -> Any:
        return call(x, y)

    forward = two if get(name).arity == 2 else one
    return type(name, (Function,), {"forward": staticmethod(forward), "__module__": __name__})


def sizes(texts: Sequence[str]) -> list[dict[str, int]]:
    """``n=100,m=30`` as sizes.  Raises SpecError."""
    try:
        return [
            {
                name.strip(): int(value)
                for name, value in (one.split("=") for one in text.split(","))
            }
            for text in texts
        ]
    except ValueError:
        raise SpecError(f"--sizes {' '.join(texts)!r}", hint="as in --sizes n=100,m=30") from None


def table(found: Accuracy) -> Table:
    """The worst errors."""
    shown = Table(title=found.name, title_justify="left", title_style="bold")
    for name in ("result", "dtype", "worst", "at", "kernel", "true"):
        shown.add_column(name, justify="right" if name == "worst" else "left", overflow="fold")
    rows = [row(one) for one in found.results]
    if any(broken for *_, broken in rows):
        shown.add_column("not finite", overflow="fold")
    for name, dtype, error, measure, *others in rows:
        shown.add_row(name, dtype, f"{error} {measure}".strip(), *others[: len(shown.columns) - 3])
    return shown


def row(one: Measured) -> tuple[str, ...]:
    """One result as texts."""
    worst = one.worst
    said = ("", "", "", "") if worst is None else (
        f"{worst.error:.3g}", where(worst), number(worst.kernel), number(worst.true),
    )  # fmt: skip
    return one.name, one.dtype, said[0], unit(one), *said[1:], broken(one)


def unit(one: Measured) -> str:
    """The unit of an error, short."""
    return one.measure.split(" ")[0] if one.worst is not None else f"{one.points} points"


def broken(one: Measured) -> str:
    """Where the kernel is not finite though the true value is."""
    if one.first_broken is None:
        return ""
    return f"{number(one.first_broken.kernel)} at {where(one.first_broken)}"


def where(place: Place) -> str:
    """The inputs of a point."""
    return ", ".join(f"{name}={number(value)}" for name, value in place.at.items())


def number(value: float) -> str:
    """A number for a reader."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e6 else f"{value:.8g}"


def special_table(found: Accuracy) -> Table | None:
    """Special values: each kernel, and the limit where it is another; None for no kernels."""
    if not found.special:
        return None
    shown = Table(title="special values", title_justify="left")
    dtypes = list(dict.fromkeys(one.dtype for one in found.special))
    for name in ("result", "input", "value", *dtypes):
        shown.add_column(name)
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in found.special:
        rows.setdefault((one.name, one.input, one.value), {})[one.dtype] = special(one)
    for key, cells in rows.items():
        shown.add_row(*key, *(cells.get(dtype, "") for dtype in dtypes))
    return shown


def special_rows(found: Accuracy) -> list[tuple[str, ...]]:
    """A row for each result and input."""
    texts = list(dict.fromkeys(one.value for one in found.special))
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in found.special:
        rows.setdefault((one.name, one.dtype, one.input), {})[one.value] = special(one)
    return [(*key, *(cells.get(text, "") for text in texts)) for key, cells in rows.items()]


def special(one: Special) -> str:
    """What a kernel gives, and the limit where it is another."""
    other = not one.agrees and not math.isnan(one.limit)
    return f"{one.kernel:.4g}" + (f" (limit {one.limit:.4g})" if other else "")
