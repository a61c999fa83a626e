"""What an elementwise backward multiplies the incoming gradient by, and the integral of that.

In: a gradient, the incoming gradient, the input.  Out: a node, or None where the gradient is not
made of one product for each element, or the integral is not that of a sum of bells.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import mul, truediv

from symgrad.ir.graph import Node, ancestors
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.judge.protocol import is_zero


def multiplier(gradient: Node, weight: Node, given: Node) -> Node | None:
    """``c`` of ``gradient == c * weight``, each element of it computed from that of ``given``."""
    found = _Factor(weight).of(gradient) if gradient.shape == weight.shape == given.shape else None
    if found is None or not _is_elementwise(found, given):
        return None
    return found


def _is_elementwise(node: Node, given: Node) -> bool:
    """Is each element computed from one element of ``given``, and from what is constant in it?"""
    below = ancestors([node])
    moving = {given}
    for one in below:
        if one.op == "draw" and one.shape != given.shape:
            return False
        if any(arg in moving for arg in one.args):
            moving.add(one)
            if get(one.op).kind != "elementwise" or one.shape != given.shape:
                return False
    return given in below


class _Factor:
    """The factors of nodes that are linear in a weight, for how they are built."""

    def __init__(self, weight: Node) -> None:
        self.weight = weight

    def of(self, node: Node) -> Node | None:
        """The factor of the weight in a node; None where it does not show."""
        if node == self.weight:
            return node.graph.lift(1, node)
        if node.shape != self.weight.shape:
            return None
        if node.op in ("neg", "cast"):
            inner = self.of(node.args[0])
            return inner if inner is None or node.op == "cast" else -inner
        if node.op in ("mul", "div"):
            return self._of_product(node)
        if node.op in ("add", "sub"):
            left, right = map(self.of, node.args)
            if left is None or right is None or left.dtype != right.dtype:
                return None
            return left + right if node.op == "add" else left - right
        return self._of_choice(node) if node.op == "where" else None

    def _depends(self, node: Node) -> bool:
        return self.weight in ancestors([node])

    def _of_product(self, node: Node) -> Node | None:
        left, right = node.args
        if self._depends(right):
            swapped = node.op == "mul" and not self._depends(left)
            left, right = (right, left) if swapped else (left, right)
        if self._depends(right):
            return None
        inner = self.of(left)
        if inner is None:
            return None
        if node.op == "mul" and left == self.weight:
            return right
        if inner.dtype != right.dtype:
            return None
        return inner * right if node.op == "mul" else inner / right

    def _of_choice(self, node: Node) -> Node | None:
        asked, *arms = node.args
        if self._depends(asked):
            return None
        found = [arm if is_zero(arm) else self.of(arm) for arm in arms]
        if found[0] is None or found[1] is None or found[0].dtype != found[1].dtype:
            return None
        return node.graph.apply("where", asked, found[0], found[1])


# -- integrals: proposals, which are judged as any other


def integral(node: Node, given: Node) -> Node | None:
    """What a node is the derivative of.

    A sum of numbers times ``exp(-(given - b) ** 2 / d)``, or times the slope of a tanh, a sigmoid,
    an arc tangent or a softsign of ``t * given``, for any t that does not depend on the input.
    """
    known = _of_slope(node, given)
    if known is not None:
        return known
    moving = [place for place, arg in enumerate(node.args) if given in ancestors([arg])]
    inner = [integral(node.args[place], given) for place in moving] if node.op != "exp" else []
    if None in inner or not moving or node.shape != given.shape:
        return None
    if node.op == "exp":
        return _of_bell(node.args[0], given)
    linear = node.op in ("neg", "cast", "add", "sub")
    scaled = (node.op == "mul" and len(moving) == 1) or (node.op == "div" and moving == [0])
    if len(moving) < len(node.args) and not scaled:
        return None
    if not (linear or scaled):
        return None
    args = [*node.args]
    for place, one in zip(moving, inner, strict=True):
        assert one is not None
        args[place] = one
    return args[0] if node.op == "cast" else node.graph.apply(node.op, *args)


def _of_bell(exponent: Node, given: Node) -> Node | None:
    """The integral of ``exp(-v ** 2 / d)``, where ``v`` is the input, or that but for a number."""
    node, up, down, negative = _scaled(exponent, given)
    square = node.op == "square" or (node.op == "mul" and node.args[0] is node.args[1])
    v, inner_up, inner_down, _ = _scaled(node.args[0], given) if square else (node, [], [], False)
    up, down = [*up, *inner_up, *inner_up], [*down, *inner_down, *inner_down]
    others = [arg for arg in v.args if given not in ancestors([arg])]
    shifted = v.op in ("sub", "add") and given in v.args and len(others) == 1
    if not square or not (v is given or shifted) or not negative:
        return None
    if shifted and is_zero(others[0]):
        v = given
    if any(one.rank for one in (*down, *up)):
        return None
    one = given.graph.constant(1.0, given.dtype)
    width = reduce(truediv, up, reduce(mul, down) if down else one)
    root = given.graph.expand(given.graph.apply("sqrt", width), given.shape)
    return given.graph.apply("erf", v / root) * root * (math.sqrt(math.pi) / 2)


def _scaled(node: Node, given: Node) -> tuple[Node, list[Node], list[Node], bool]:
    """What is scaled by numbers, those it is multiplied with and divided by, and is it negated?"""
    up, down, negative = list[Node](), list[Node](), False
    while node.op in ("neg", "mul", "div") and len({*node.args}) == len(node.args):
        free = [place for place, arg in enumerate(node.args) if given not in ancestors([arg])]
        if node.op == "neg":
            node, negative = node.args[0], not negative
            continue
        if len(free) != 1 or (node.op == "div" and free == [0]):
            break
        number = node.args[free[0]]
        number = number.args[0] if number.op == "expand" else number
        if number.op == "constant" and number.attributes["value"].value < 0:
            value = -number.attributes["value"].value
            number, negative = given.graph.constant(value, number.dtype), not negative
        (up if node.op == "mul" else down).append(number)
        node = node.args[1 - free[0]]
    return node, up, down, negative


def _of_slope(node: Node, given: Node) -> Node | None:
    """The integral of ``k * f'(t * given)`` for a known f: ``k / t * f(t * given)``."""
    above, below = _factors(node)
    moving, under = ([one for one in part if given in ancestors([one])] for part in (above, below))
    known = _primitive(moving, under)
    if known is None:
        return None
    (name, argument), graph = known, given.graph
    inner, up, down, negative = _scaled(argument, given)
    if inner is not given:
        return None
    above, below = [one for one in above if one not in moving], [*below]
    below = [one for one in below if one not in under]
    for scale, same, other in ((up, above, below), (down, below, above)):
        for one in scale:
            found = next((it for it in same if _origin(it) is _origin(one)), None)
            if found is None:
                other.append(graph.expand(one, given.shape))
            else:
                same.remove(found)
    whole = graph.apply(name, argument) if name != "softsign" else argument / (
        graph.apply("abs", argument) + 1
    )  # fmt: skip
    for one in above:
        whole = one * whole if literal(one) != 1 else whole
    for one in below:
        whole = whole / one
    return -whole if negative else whole


def _factors(node: Node) -> tuple[list[Node], list[Node]]:
    """What a node is a product of, and what it is divided by; what is spread as it was."""
    above, below = list[Node](), list[Node]()
    todo = [(node, True)]
    while todo:
        one, up = todo.pop()
        if one.op == "mul":
            todo += [(arg, up) for arg in one.args]
        elif one.op == "div":
            todo += [(one.args[0], up), (one.args[1], not up)]
        elif one.op == "reciprocal":
            todo.append((one.args[0], not up))
        elif one.op in ("expand", "reshape") and one.args[0].op in ("mul", "div"):
            inner = one.args[0]
            spread = [one.graph.apply(one.op, arg, **one.attributes) for arg in inner.args]
            todo.append((one.graph.apply(inner.op, *spread), up))
        else:
            (above if up else below).append(_bare(one))
    return above, below


def _primitive(above: list[Node], below: list[Node]) -> tuple[str, Node] | None:
    """The name and the argument of the function whose slope it is."""
    if len(above) == 1 and not below:
        square = _less_one(above[0])
        base = None if square is None else _squared(square)
        return ("tanh", base.args[0]) if base is not None and base.op == "tanh" else None
    if len(above) == 2 and not below:
        for one, other in (above, above[::-1]):
            if one.op == "sigmoid" and _less_one(other) is one:
                return "sigmoid", one.args[0]
    if not above and len(below) in (1, 2):
        roots = below if len(below) == 2 and below[0] is below[1] else [_squared(below[0])]
        inner = None if roots[0] is None else _more_than_one(roots[0])
        if inner is not None and inner.op == "abs":
            return "softsign", inner.args[0]
        square = _more_than_one(below[0]) if len(below) == 1 else None
        base = None if square is None else _squared(square)
        return None if base is None else ("atan", base)
    return None


def _squared(node: Node) -> Node | None:
    """What is squared, however it is written."""
    if node.op == "square" or (node.op == "mul" and node.args[0] is node.args[1]):
        return node.args[0]
    return node.args[0] if node.op == "pow" and literal(node.args[1]) == 2 else None


def _less_one(node: Node) -> Node | None:
    """What is subtracted from 1."""
    return node.args[1] if node.op == "sub" and literal(node.args[0]) == 1 else None


def _more_than_one(node: Node) -> Node | None:
    """What is added to 1."""
    if node.op != "add":
        return None
    pairs = node.args, node.args[::-1]
    return next((one for one, other in pairs if literal(other) == 1), None)


def _origin(node: Node) -> Node:
    """What is spread along axes."""
    while node.op in ("expand", "reshape"):
        node = node.args[0]
    return node


def _bare(node: Node) -> Node:
    while node.op == "expand" and literal(node) is not None:
        node = node.args[0]
    return node


def literal(node: Node) -> float | None:
    """The number that a node is everywhere."""
    node = bare(node)
    value = node.attributes["value"].value if node.op == "constant" else None
    return float(value) if isinstance(value, (int, float)) else None
