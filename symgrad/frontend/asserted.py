"""Assertions on tensors: ``assert alpha > 0`` is a condition of the verdict.

In: the truth value of a tensor that Python asks for.  Out: whether an assertion asks, outside of
which nothing handles its error.  Then forward or backward is left where it does not hold, and what
is traced is what is computed where it does.

The line is read from the bytecode: a bare ``assert`` jumps to, or falls into, the instruction that
loads ``AssertionError``.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType

from symgrad.frontend.caller import here, may_handle, user_frame
from symgrad.frontend.session import active
from symgrad.ir.graph import Node
from symgrad.ops.integers import truth

_LOADS = ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")


def asserted(node: Node) -> bool:
    """Does an assertion ask for a truth value?  Then the trace goes on where it is true."""
    frame, session = user_frame(), active()
    if frame is None or session is None or may_handle():
        return False
    if not _is_asserted(frame.f_code, frame.f_lasti):
        return False
    session.demanded.note(truth(node), here())
    return True


def _is_asserted(code: CodeType, place: int) -> bool:
    """Does the instruction there leave by an assertion where what it asks is False?"""
    every = list(dis.get_instructions(code))
    at = next((number for number, one in enumerate(every) if one.offset >= place), len(every))
    while at < len(every) and every[at].opname in ("TO_BOOL", "CACHE", "NOT_TAKEN"):
        at += 1
    if at + 1 >= len(every):
        return False
    asked, after = every[at], every[at + 1 :]
    if "IF_TRUE" in asked.opname:
        return _raises(after[0])
    if "IF_FALSE" in asked.opname:
        return any(_raises(one) for one in after if one.offset == asked.argval)
    return False


def _raises(one: dis.Instruction) -> bool:
    own = sys.version_info < (3, 14) or one.argval is AssertionError
    return one.opname in _LOADS and own
