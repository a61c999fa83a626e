"""``symgrad accuracy``: Functions, or operations by their names, and what was measured of them.

In: names.  Out: ``Accuracy`` records as tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from symgrad.accuracy.records import Accuracy, Measured, Place
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
    for name in ("result", "dtype", "worst", "", "at", "kernel", "true", "not finite"):
        shown.add_column(name, justify="right" if name == "worst" else "left", overflow="fold")
    for one in found.results:
        shown.add_row(*row(one))
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
    texts = list(dict.fromkeys(one.value for one in found.special))
    for name in ("result", "dtype", "input", *texts):
        shown.add_column(name)
    for cells in special_rows(found):
        shown.add_row(*cells)
    return shown


def special_rows(found: Accuracy) -> list[tuple[str, ...]]:
    """A row for each result and input."""
    texts = list(dict.fromkeys(one.value for one in found.special))
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in found.special:
        said = f"{one.kernel:.4g}"
        if not one.agrees:
            said += f" (limit {one.limit:.4g})" if not math.isnan(one.limit) else ""
        rows.setdefault((one.name, one.dtype, one.input), {})[one.value] = said
    return [(*key, *(cells.get(text, "") for text in texts)) for key, cells in rows.items()]
