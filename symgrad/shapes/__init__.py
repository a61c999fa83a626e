"""Shapes found by trying, for a Function of which nobody said what it takes.

In: a Function, shapes, values and assumptions as far as they are stated.  Out: a ``Request``, with
a ``Guess`` where shapes were inferred.

Candidates of every argument have a price (``candidates``); combinations are traced in the order
of their price (``search``).  Every axis begins with a size of its own; where the tracer says that
two sizes meet in *forward*, they become one (``sizes``), so that what is found is as general as
forward allows.  What backward raises makes no sizes equal there, since that would hide mistakes:
shapes that fit backward, too, are a second guess, which is judged where the first is refuted, and
proved under the condition that the shapes are these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symgrad import deadline
from symgrad.frontend.evidence import AnyFunction
from symgrad.frontend.guests import shaped
from symgrad.frontend.request import Request, Specs, bind
from symgrad.frontend.session import told
from symgrad.ir.assume import Stated, joined
from symgrad.shapes.candidates import are_known
from symgrad.shapes.search import find


def requested(
    function: AnyFunction,
    specs: Specs = (),
    static: Mapping[str, Any] | None = None,
    assume: Stated | None = None,
    order: int = 1,
) -> Request:
    """The request for one Function, of the shapes that are stated, or else of inferred ones.

    Raises SpecError for what does not fit the Function, and where no shapes are found.
    """
    function, specs = shaped(function, specs, static)
    if specs or are_known(function, static):
        return bind(function, specs, static, assume, order)
    name = getattr(function, "__name__", type(function).__name__)
    with told(f"finding shapes for {name}"), deadline.step(f"shapes for {name} were looked for"):
        return find(function, static or {}, joined(assume), order)
