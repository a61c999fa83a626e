"""Which values of an integer input meet what operations demand of integers.

In: demands, sizes.  Out: a test of values, for the sampler: an element at a time, as if all of
them were that value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from symgrad.ir.dtype import bool_
from symgrad.ir.function import Demanded
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.values import DomainError, Evaluator

_DOUBLE = Double()


class Admitted:
    """The demands of one case that are on integers computed from one input alone."""

    def __init__(self, demanded: Iterable[Demanded]) -> None:
        self._demanded: dict[Node, list[Demanded]] = {}
        for one in demanded:
            nodes = ancestors([one.node])
            inputs = [node for node in nodes if node.op == "input"]
            if len(inputs) == 1 and all(n.dtype.is_integer or n.dtype == bool_ for n in nodes):
                self._demanded.setdefault(inputs[0], []).append(one)
        self._evaluators = {
            node: Evaluator([one.node for one in every]) for node, every in self._demanded.items()
        }

    def of(self, node: Node, values: Sequence[int], sizes: Mapping[str, int]) -> list[int]:
        """Those of some values of an input that meet all of them; all where there are none."""
        if node not in self._demanded:
            return list(values)
        return [value for value in values if self._meets(node, value, sizes)]

    def _meets(self, node: Node, value: int, sizes: Mapping[str, int]) -> bool:
        filled = np.full([size.at(sizes) for size in node.shape], value, np.int64)
        feeds = {node.attributes["name"]: filled}
        try:
            found = self._evaluators[node].run(_DOUBLE, feeds, sizes)
        except DomainError:
            return False
        return all(
            (one.low is None or bool((found[one.node] >= one.low.at(sizes)).all()))
            and (one.high is None or bool((found[one.node] < one.high.at(sizes)).all()))
            and (one.apart is None or bool((found[one.node] != one.apart).all()))
            for one in self._demanded[node]
        )  # fmt: skip
