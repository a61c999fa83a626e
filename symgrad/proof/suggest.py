"""What is wrong, in words, and what was meant, as tensor code that is itself proved.

In: a ``Subject``, the name of a refuted gradient, what backward returned.  Out: ``Diagnosis``.
Imports: ``symgrad.errors``, ``symgrad.ir``, ``symgrad.proof``: ``adjoints``, ``code``,
``decide``, ``rebuild``, ``subject``.
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.ir.function import FunctionCase, Gradient
from symgrad.proof.subject import Subject


@dataclass(frozen=True)
class Diagnosis:
    """``words``: what is wrong.  ``suggestion``: proved code.  ``derived``: the true gradient."""

    words: tuple[str, ...] = ()
    suggestion: str | None = None
    derived: str | None = None


def diagnose(
    subject: Subject, name: str, gradient: Gradient | None, case: FunctionCase, *, budget: int
) -> Diagnosis:
    """What is wrong with a gradient and how to write it."""
    return Diagnosis()
