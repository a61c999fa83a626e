"""``sg.draw``: from what the user has to an SVG.

In: tensors, Functions, traced Functions.  Out: ``Drawing``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from symgrad.drawing.function import function_picture
from symgrad.drawing.layout import place
from symgrad.drawing.picture import DrawingError, Picture
from symgrad.drawing.render import svg
from symgrad.drawing.tape import Names, tape_picture
from symgrad.errors import SpecError
from symgrad.frontend.function import Function
from symgrad.frontend.trace import trace_request
from symgrad.ir.function import FunctionGraphs
from symgrad.kernels import with_backward
from symgrad.shapes import requested
from symgrad.tensor.tensor import Tensor


class Drawing:
    """A picture as SVG: shown by notebooks, written by ``save``, ``str`` is its text."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.svg = svg(place(picture))

    def save(self, path: str | Path) -> Path:
        """Write it to a file, as SVG; the path.  Raises SpecError for what ends otherwise."""
        target = Path(path)
        if target.suffix.lower() not in ("", ".svg"):
            raise SpecError(
                f"{target} cannot be written: pictures are SVG, not {target.suffix}",
                hint="call it .svg; browsers show it, and rsvg-convert or Inkscape convert it",
            )
        try:
            target.write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise SpecError(f"{target} cannot be written: {error.strerror or error}") from error
        return target

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        vertices, edges = len(self.picture.vertices), len(self.picture.edges)
        return f"<Drawing of {self.picture.title}: {vertices} boxes, {edges} arrows>"


def draw(
    target: Any, *specs: str | None, static: Mapping[str, Any] | None = None,
    params: Mapping[str, Tensor] | None = None, case: int = 0, title: str = "",
) -> Drawing:  # fmt: skip
    """A picture of a graph: forward, backward, and the saved tensors that cross between them.

    ``target``: a tensor with history, or several; a Function, with its shapes in ``specs`` as
    for ``sg.verify``; or a traced one.  ``params``: names of tensors, which are then marked as
    parameters; others are called as the caller's variables are.  ``case``: which case of sizes
    of a Function.  Raises SpecError, DrawingError, and what tracing forward raises.
    """
    tensors = _tensors(target)
    if tensors:
        names = Names(params or {}, sys._getframe(1))
        picture = tape_picture(tensors, names, title or names.of(tensors[0]) or "tensor")
        return Drawing(picture)
    graphs = target
    if not isinstance(graphs, FunctionGraphs):
        if not issubclass(target if isinstance(target, type) else type(target), Function):
            raise SpecError(
                f"sg.draw takes tensors or a Function, not {type(target).__name__}",
                hint='sg.draw(y), or sg.draw(Softplus, "n m")',
            )
        graphs = trace_request(requested(target, specs, static))
    graphs = with_backward(graphs)
    if not 0 <= case < len(graphs.cases):
        raise DrawingError(f"{graphs.name} has {len(graphs.cases)} cases of sizes, no case {case}")
    return Drawing(function_picture(graphs, case))


def _tensors(target: Any) -> Sequence[Tensor]:
    if isinstance(target, Tensor):
        return [target]
    several = isinstance(target, (list, tuple)) and all(isinstance(one, Tensor) for one in target)
    return list(target) if several else []
