"""A module of another file that counts."""

from __future__ import annotations

N = 0
M = 0
HID = [0]


def tick() -> int:
    global N
    N += 1
    return N


class K:
    n = 0
