"""Long computations of several kinds, with hand-written backwards that are right.

In: how many nodes forward has, about.  Out: Functions, and the shapes that they are judged for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import symgrad as sg

Chain = tuple[type[sg.Function], tuple[str, ...]]


def sums(nodes: int) -> Chain:
    """A sum of sines: each term reads the input."""
    factors = [1.0 + number for number in range(nodes // 3)]

    class Sums(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            total = x
            for factor in factors:
                total = total + sg.sin(x * factor)
            return total

        @staticmethod
        def backward(ctx: Any, grad_y: Any) -> Any:
            (x,) = ctx.saved_tensors
            total = grad_y
            for factor in factors:
                total = total + grad_y * sg.cos(x * factor) * factor
            return total

    return Sums, ("n",)


def sines(nodes: int) -> Chain:
    """``s <- sin(s) * x``: each step reads the one before and the input."""
    steps = nodes // 2

    class Sines(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            states = [x]
            for _ in range(steps):
                states.append(sg.sin(states[-1]) * x)
            ctx.save_for_backward(*states)
            return states[-1]

        @staticmethod
        def backward(ctx: Any, grad_y: Any) -> Any:
            x, *rest = ctx.saved_tensors
            total = sg.zeros_like(x)
            for state in reversed([x, *rest][:-1]):
                total = total + grad_y * sg.sin(state)
                grad_y = grad_y * x * sg.cos(state)
            return total + grad_y

    return Sines, ("n",)


def products(nodes: int) -> Chain:
    """``s <- s @ w``, with one matrix."""

    class Products(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            states = [x]
            for _ in range(nodes):
                states.append(states[-1] @ w)
            ctx.save_for_backward(w, *states[:-1])
            return states[-1]

        @staticmethod
        def backward(ctx: Any, grad_y: Any) -> Any:
            w, *states = ctx.saved_tensors
            grad_w = sg.zeros_like(w)
            for state in reversed(states):
                grad_w = grad_w + state.T @ grad_y
                grad_y = grad_y @ w.T
            return grad_y, grad_w

    return Products, ("n m", "m m")


def perceptron(nodes: int) -> Chain:
    """``s <- tanh(s @ w[i] + b[i])``: a multi-layer perceptron."""
    layers = nodes // 5

    class Perceptron(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, b: Any) -> Any:
            states = [x]
            for layer in range(layers):
                states.append(sg.tanh(states[-1] @ w[layer] + b[layer]))
            ctx.save_for_backward(w, *states)
            return states[-1]

        @staticmethod
        def backward(ctx: Any, grad_y: Any) -> Any:
            w, *states = ctx.saved_tensors
            grad_w, grad_b = [], []
            for layer in reversed(range(layers)):
                grad_y = grad_y * (1 - states[layer + 1] * states[layer + 1])
                grad_w.append(states[layer].T @ grad_y)
                grad_b.append(grad_y.sum(0))
                grad_y = grad_y @ w[layer].T
            return grad_y, sg.stack(grad_w[::-1]), sg.stack(grad_b[::-1])

    return Perceptron, ("n m", f"{layers} m m", f"{layers} m")


def recurrence(nodes: int) -> Chain:
    """``s <- tanh(s @ w)``, with one matrix."""
    steps = nodes // 2

    class Recurrence(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            states = [x]
            for _ in range(steps):
                states.append(sg.tanh(states[-1] @ w))
            ctx.save_for_backward(w, *states)
            return states[-1]

        @staticmethod
        def backward(ctx: Any, grad_y: Any) -> Any:
            w, *states = ctx.saved_tensors
            grad_w = sg.zeros_like(w)
            for step in reversed(range(steps)):
                grad_y = grad_y * (1 - states[step + 1] * states[step + 1])
                grad_w = grad_w + states[step].T @ grad_y
                grad_y = grad_y @ w.T
            return grad_y, grad_w

    return Recurrence, ("n m", "m m")


CHAINS: dict[str, Callable[[int], Chain]] = {
    "sin(s) * x": sines, "a sum of sines": sums, "s @ w": products, "a perceptron": perceptron,
    "tanh(s @ w)": recurrence,
}  # fmt: skip
