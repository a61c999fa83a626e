"""Which writes meet an address: against all places of small rows that are written in parts."""

from __future__ import annotations

import random
from itertools import product

from symgrad.ir.dim import Atom, Axis, Dim, Size
from symgrad.validate.symbolic.integers import Integers, least
from symgrad.validate.symbolic.memory import OUTSIDE, Write, match, open_end

N, M = Dim.size("n"), Dim.size("m")
ROW, OWN, PLACE = Axis("r", N), Axis("o", N), Axis("q", M)


def _value(dim: Dim, known: dict[str, int]) -> int:
    def lookup(atom: Atom) -> int:
        assert isinstance(atom, (Size, Axis))
        return known[atom.name]

    return dim.evaluate(lookup)


def test_an_end_that_is_decided_decides_whether_a_write_meets_an_address() -> None:
    rng, met, missed = random.Random(0), 0, 0
    for _ in range(60):
        start = rng.choice([Dim.of(0), Dim.of(2), least(M, Dim.of(3)), M - least(M, Dim.of(2))])
        extent = rng.choice([Dim.of(1), Dim.of(2), M - start, least(M - start, Dim.of(3))])
        width = rng.choice([M, M, M + 1, 2 * M, Dim.of(4)])
        part = Axis("p", extent)
        write = Write("a", (ROW, part), width * Dim.of(ROW) + start + Dim.of(part), None, 0)
        address = width * Dim.of(OWN) + Dim.of(PLACE)
        integers = Integers()
        ranges = [*integers.range_of(OWN), *integers.range_of(PLACE)]
        with integers.given(*ranges):
            end = open_end(integers, write, address)
        for side in () if end is None else (end, -end - 1):
            with integers.given(side):
                found = match(integers, write, address)
            for n, m in product(range(4), range(6)):
                for own, place in product(range(n), range(m)):
                    known = {"n": n, "m": m, "o": own, "q": place}
                    if found is None or _value(side, known) < 0:
                        continue
                    there = [
                        (r, p) for r in range(n) for p in range(_value(extent, known))
                        if _value(write.address, {**known, "r": r, "p": p})
                        == _value(address, known)
                    ]  # fmt: skip
                    if found is OUTSIDE:
                        missed += 1
                        assert not there, (str(write.address), known)
                    else:
                        assert isinstance(found, dict)
                        met += 1
                        assert (_value(found[ROW], known), _value(found[part], known)) in there
    assert met > 500
    assert missed > 500
