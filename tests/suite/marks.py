"""What the corpus says about a Function: is its backward right, and under which assumptions?

In: the decorators ``right`` and ``wrong`` beside each class of ``tests/suite/corpus``.
Out: a ``Case`` in the class's attribute ``suite_case``.

Assumptions (by the name of forward's parameter), beside the interval notation ``(0, 1)``:
``positive``, ``symmetric``, ``index v`` (integers in range(v)), ``unique index v`` (and all
different), ``one-hot`` (rows), ``{0, 1}`` (each element is one of these), ``constant`` (a float
tensor that no gradient is wanted for, such as a target; backward may return None).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

PROVED = "PROVED"
REFUTED = "REFUTED"

# How a wrong backward fails: its values differ; its shape cannot be summed down; it raises;
# a second call differs; it writes into its cotangent or into an input; it is not linear in the
# cotangents; it is wrong where only some gradients are asked for; its own derivative is wrong.
KINDS = (
    "value", "shape", "error", "reentrant", "mutates", "nonlinear", "guards", "second order"
)  # fmt: skip

Spec = str | None


@dataclass(frozen=True)
class Case:
    """One Function and what is known of it.

    ``specs``: one shape a tensor input, None for one that is absent.  ``static``: the other
    arguments.  ``assume``: declared assumptions; ``needed``: without them it is wrong.
    ``surrogate``: the function that backward is the derivative of, where that is not forward.
    ``order``: 2 where the derivative of backward is judged as well.  ``bug``: what is wrong;
    ``kind``: how it shows, one of ``KINDS``; ``right_if``: the condition on the sizes under which
    it is right nevertheless; of several joined by ``or``, it is enough to find one.
    ``shown_by``: sizes (numbers) and assumptions on inputs (text) at which a bug that hides shows.
    """

    name: str
    function: Any
    specs: tuple[Spec, ...]
    verdict: str
    category: str
    static: dict[str, Any] = field(default_factory=dict)
    assume: dict[str, str] = field(default_factory=dict)
    needed: bool = False
    surrogate: Callable[..., Any] | None = None
    order: int = 1
    bug: str = ""
    kind: str = "value"
    right_if: str = ""
    base: str = ""
    shown_by: dict[str, Any] = field(default_factory=dict)


def right(*specs: Spec, **about: Any) -> Callable[[Any], Any]:
    """Mark a Function whose backward is right.  ``about``: the fields of ``Case`` by name.

    Marked so, a class may be a variant of another: ``right(Softmax)`` takes over what is said
    about ``Softmax``.
    """
    return _mark(specs, about, PROVED)


def wrong(*specs: Spec, bug: str, **about: Any) -> Callable[[Any], Any]:
    """Mark a Function whose backward is wrong; ``wrong(Right, bug=...)`` is a variant of Right."""
    if about.get("kind", "value") not in KINDS:
        raise ValueError(f"unknown kind of failure: {about['kind']}")
    return _mark(specs, {"bug": bug, **about}, REFUTED)


def case_of(function: Any) -> Case:
    """What is said about a class of the corpus."""
    case: Case = vars(function)["suite_case"]
    return case


def without_assumptions(case: Case) -> Case:
    """The same Function, of whose arguments only the index ranges are known."""
    kept = {
        name: text.removeprefix("unique ")
        for name, text in case.assume.items()
        if "index" in text or text == "constant"
    }
    return replace(case, assume=kept, verdict=REFUTED, needed=False)


def _mark(specs: tuple[Any, ...], about: dict[str, Any], verdict: str) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        named = {
            "name": function.__name__,
            "function": function,
            "verdict": verdict,
            "category": function.__module__.rpartition(".")[2],
        }
        if len(specs) == 1 and isinstance(specs[0], type):
            base = case_of(specs[0])
            fresh = {"kind": "value", "right_if": "", "bug": "", "needed": False, "shown_by": {}}
            case = replace(base, **{**fresh, "base": base.name, **named, **about})
        else:
            case = Case(specs=specs, **named, **about)
        function.suite_case = case
        return function

    return decorate
