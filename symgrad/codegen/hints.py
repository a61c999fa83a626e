"""Names for values that the user did not name: after what they are a part of.

In: a program.  Out: a name for some expressions.
"""

from __future__ import annotations

from symgrad.codegen.accumulate import DEFAULT_NAMES
from symgrad.codegen.order import bodies
from symgrad.codegen.program import Program
from symgrad.ir.expr import Call, Expr, Reduce, postorder


def hints(program: Program) -> dict[Expr, str]:
    """The output that a value is, and ``mean_total`` for the sum that is divided to ``mean``."""
    found: dict[Expr, str] = {}
    for definition in program.definitions:
        if definition.outputs and isinstance(definition.body, (Call, Reduce)):
            found.setdefault(definition.body, definition.outputs[0])
    named = {**found, **program.names}
    roots = [root for definition in program.definitions for root in bodies(definition)]
    for expr in postorder(roots):
        for arg in expr.args if isinstance(expr, Call) else ():
            if isinstance(arg, Reduce) and arg not in named and expr in named:
                found.setdefault(arg, f"{named[expr]}_{DEFAULT_NAMES[arg.kind]}")
    return found
