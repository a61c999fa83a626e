"""``x.view(*x.shape[:-1], h, d)``: where do the items of an iteration over a shape go?

In: the code object and the place of the instruction that iterates.  Out: the call that takes the
items, if nothing but that call can see them.

An iteration over a shape with a batch axis would show how many axes there are.  It does not where a
star puts the items straight into the arguments of one call, between parentheses or brackets at
most, and that call is an operation of ours.  The first half is read off the bytecode here; the
second half is the ticket, which only an operation that is called from that very place can redeem.
"""

from __future__ import annotations

import dis
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PUSHES = _words(
    """LOAD_CONST LOAD_SMALL_INT LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_FAST_LOAD_FAST
    LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_NAME LOAD_GLOBAL LOAD_DEREF LOAD_CLASSDEREF PUSH_NULL"""
)
_NOTHING = frozenset(["NOP", "CACHE", "EXTENDED_ARG", "PRECALL", "KW_NAMES"])
_ATTRIBUTES = frozenset(["LOAD_ATTR", "LOAD_METHOD"])
_ONE_RESULT = ("BINARY_", "UNARY_", "BUILD_SLICE", "BUILD_MAP", "BUILD_CONST_KEY_MAP")
_CALLS = _words("CALL CALL_KW CALL_FUNCTION CALL_FUNCTION_KW CALL_METHOD")


@dataclass
class Ticket:
    """The call that an iteration's items go to: a frame and the range of its instruction.

    ``origin``: the instruction that iterates, which may then ask once how long it will be.
    """

    frame: FrameType
    origin: int
    start: int
    stop: int
    redeemed: bool = False
    measured: bool = False

    def fits(self, frame: FrameType | None) -> bool:
        """Is the frame at that call?"""
        return (
            not self.redeemed
            and frame is self.frame
            and self.start <= self.frame.f_lasti < self.stop
        )


@lru_cache(maxsize=256)
def _instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


def consumer(code: CodeType, place: int) -> tuple[int, int] | None:
    """The range of the call that takes what is iterated over at ``place``; None where unknown."""
    instructions = _instructions(code)
    at = next((n for n, one in enumerate(instructions) if one.offset == place), None)
    if at is None:
        return None
    if instructions[at].opname == "CALL_FUNCTION_EX":
        return _range(instructions, at)
    if instructions[at].opname != "LIST_EXTEND" or instructions[at].arg != 1:
        return None
    above = 0  # how many values lie on the stack above the list
    for number in range(at + 1, len(instructions)):
        one = instructions[number]
        if one.is_jump_target:
            return None
        if _takes(one, above):
            return _range(instructions, number)
        after = _above(one, above)
        if after is None:
            return None
        above = after
    return None


def _range(instructions: tuple[dis.Instruction, ...], number: int) -> tuple[int, int]:
    start = instructions[number].offset
    behind = instructions[number + 1 :]
    return start, behind[0].offset if behind else start + 2


def _effect(one: dis.Instruction) -> int:
    if one.opname == "CALL":  # 3.11 says it of PRECALL and CALL together
        return -((one.arg or 0) + 1)
    return dis.stack_effect(one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None)


def _takes(one: dis.Instruction, above: int) -> bool:
    """Is it a call that has the list, or the tuple made of it, among its arguments?"""
    if one.opname == "CALL_FUNCTION_EX":
        return above == (1 if (one.arg or 0) & 1 else 0)
    return one.opname in _CALLS and 1 - _effect(one) > above


def _above(one: dis.Instruction, above: int) -> int | None:
    """How many values lie above the list afterwards; None where the list may be seen."""
    name = one.opname
    if name in _NOTHING:
        return above
    if name in _PUSHES:
        return above + _effect(one)
    if name == "LIST_TO_TUPLE" or (name == "CALL_INTRINSIC_1" and "LIST_TO_TUPLE" in one.argrepr):
        return above if above == 0 else None
    if name in ("LIST_APPEND", "LIST_EXTEND"):
        return 0 if above == 1 and one.arg == 1 else None
    if name in _ATTRIBUTES:
        return above + _effect(one) if above >= 1 else None
    if name in _CALLS or name.startswith(_ONE_RESULT):
        return above + _effect(one) if above >= 1 - _effect(one) else None
    return None
