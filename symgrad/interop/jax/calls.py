"""Primitives that hold jaxprs of their own: calls, nested custom derivatives, loops, branches.

In: an ``Equation``.  Out: the nodes of its results.  Fills ``RULES``.

The derivative of what is called is that of its values: a custom rule of a nested function is not
used.  A scan of few steps is written out; both branches of a ``cond`` are computed, and chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symgrad.budgets import MOST_STEPS
from symgrad.frontend.functions import linalg
from symgrad.frontend.tensor import fresh
from symgrad.frontend.windows import part
from symgrad.interop.jax.equations import Equation, evaluate, note_cut, rule, run
from symgrad.interop.jax.primitives import known_number
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node

_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "xla_call",
          "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin")  # fmt: skip


@rule(*_CALLS)
def _call(equation: Equation) -> Sequence[Node]:
    inner = next(
        (equation.params[name] for name in _INNER if name in equation.params), None
    )  # fmt: skip
    if inner is None:
        raise equation.refused()
    if equation.name.startswith("custom_"):
        note_cut(equation)
    name = str(equation.params.get("name", ""))
    if name in _MATRICES and _is_of_linalg(inner):
        return _MATRICES[name](*map(fresh, equation.args))
    if hasattr(inner, "consts"):
        return evaluate(inner, equation.args, name)
    return run(inner, (), equation.args, name)


def _is_of_linalg(inner: Any) -> bool:
    """Is it a function of ``jax.numpy.linalg``?"""
    said = str(getattr(getattr(inner, "jaxpr", inner).debug_info, "func_src_info", ""))
    return "/jax/_src/numpy/linalg.py" in said.replace("\\", "/")


def _sign_and_log(matrix: Any) -> list[Node]:
    found = linalg.det(matrix)
    return [found.sign().node, found.abs().log().node]


_MATRICES: dict[str, Callable[..., Sequence[Node]]] = {
    "inv": lambda a: [linalg.inverse(a).node],
    "det": lambda a: [linalg.det(a).node],
    "slogdet": _sign_and_log,
    "solve": lambda a, b: [(linalg.inverse(a) @ b).node],
}
"""Functions of ``jax.numpy.linalg`` that it computes by ``lu``, which has no operation here."""


@rule("cond")
def _cond(equation: Equation) -> Sequence[Node]:
    which, *given = equation.args
    branches, session = equation.params["branches"], equation.session
    number = known_number(which)
    if number is not None:
        return evaluate(branches[min(max(int(number), 0), len(branches) - 1)], given)
    if which.op == "cast" and which.args[0].dtype == bool_ and len(branches) == 2:
        which = which.args[0]
    found = evaluate(branches[0], given)
    for place, branch in enumerate(branches[1:], 1):
        chosen = which
        if which.dtype != bool_:
            edge = "ge" if place == len(branches) - 1 else "eq"
            chosen = session.apply(edge, which, session.constant(place, which.dtype))
        found = [
            session.apply("where", session.expand(chosen, one.shape), one, other)
            for one, other in zip(evaluate(branch, given), found, strict=True)
        ]
    return found


@rule("scan")
def _scan(equation: Equation) -> Sequence[Node]:
    params, session = equation.params, equation.session
    length = sizes().ours(params["length"]).constant
    if length is None or length > MOST_STEPS:
        raise equation.refused(f"of {'more than ' if length else ''}{_told(length)}")
    consts = equation.args[: params["num_consts"]]
    carry = list(equation.args[len(consts) : len(consts) + params["num_carry"]])
    rows = equation.args[len(consts) + len(carry) :]
    stacked: dict[int, list[Node]] = {}
    for step in reversed(range(length)) if params["reverse"] else range(length):
        taken = [_row(equation, one, step) for one in rows]
        found = evaluate(params["jaxpr"], (*consts, *carry, *taken))
        carry = found[: len(carry)]
        stacked[step] = found[len(carry) :]
    outputs = []
    for place, shape in enumerate(equation.shapes[len(carry) :]):
        pieces = [
            session.reshape(stacked[step][place], (1, *shape[1:])) for step in sorted(stacked)
        ]
        if not pieces:
            raise equation.refused("of no step")
        outputs.append(pieces[0] if len(pieces) == 1 else session.apply("concat", *pieces, axis=0))
    return [*carry, *outputs]


def _told(length: int | None) -> str:
    return "a symbolic number of steps" if length is None else f"{MOST_STEPS} steps"


def _row(equation: Equation, node: Node, step: int) -> Node:
    starts = [Dim.of(step), *(Dim.of(0) for _ in node.shape[1:])]
    row = part(equation.session, node, starts, (Dim.of(1), *node.shape[1:]))
    return equation.session.reshape(row, node.shape[1:])


def _refused(why: str) -> Any:
    def found(equation: Equation) -> Node:
        raise equation.refused(why)

    return found


_WHY = {
    "while": "a loop whose number of steps depends on values",
    **dict.fromkeys(
        ("random_bits", "random_wrap", "random_unwrap", "random_seed", "random_fold_in",
         "random_split", "threefry2x32", "rng_bit_generator", "rng_uniform"),
        "it draws random numbers: pass the draw as an input",
    ),
    **dict.fromkeys(
        ("pure_callback", "io_callback", "ffi_call", "custom_call", "pallas_call"),
        "it leaves JAX",
    ),
}  # fmt: skip
for _name, _said in _WHY.items():
    rule(_name)(_refused(f"({_said})"))
