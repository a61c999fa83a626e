"""A classifier with one hidden layer, its gradient by compiled ops, and the Adam optimiser.

In: ops as `symgrad.compile` or `symgrad build` makes them, and images.  Out: class scores,
losses, gradients.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import digits
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass
class Timed:
    """A compiled op, or a module of kernels, that adds up the time spent in its calls."""

    op: Any
    seconds: float = 0.0
    calls: int = 0

    def _timed(self, function: Any, *arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = function(*arguments, **options)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        return result

    def __call__(self, *arrays: Any) -> Any:
        """The outputs alone."""
        return self._timed(self.op.inference, *arrays)

    def forward(self, *arrays: Any) -> Any:
        """The outputs, and what backward needs of the inputs."""
        return self._timed(self.op.forward, *arrays)

    def backward(self, residuals: Any, *cotangents: Any, **options: Any) -> Any:
        """The gradients of the inputs."""
        return self._timed(self.op.backward, residuals, *cotangents, **options)


@dataclass(frozen=True)
class Classifier:
    """``logits = W2 activation(W1 x + b1) + b2``; ``parameters`` are W1, b1, W2, b2."""

    linear: Timed
    activation: Timed
    loss: Timed
    parameters: list[Array]

    @staticmethod
    def initial(width: int, generator: np.random.Generator) -> list[Array]:
        """Weights uniform as Glorot and Bengio (2010) propose, biases zero."""
        parameters = []
        for inputs, outputs in ((digits.PIXELS, width), (width, digits.CLASSES)):
            bound = np.sqrt(6 / (inputs + outputs))
            weight = generator.uniform(-bound, bound, (outputs, inputs))
            parameters += [weight.astype(np.float32), np.zeros(outputs, np.float32)]
        return parameters

    def logits(self, pixels: Array) -> Array:
        """The scores of the classes, f32[n 10], for pixels f32[n 64]."""
        weight1, bias1, weight2, bias2 = self.parameters
        hidden = self.activation(self.linear(pixels, weight1, bias1))
        scores: Array = self.linear(hidden, weight2, bias2)
        return scores

    def accuracy(self, images: digits.Images) -> float:
        """The share of images whose best score is the right one."""
        return float((self.logits(images.pixels).argmax(1) == images.labels).mean())

    def gradients(self, images: digits.Images) -> tuple[float, list[Array]]:
        """The mean loss over the images, and its gradient for each parameter."""
        weight1, bias1, weight2, bias2 = self.parameters
        sums, first = self.linear.forward(images.pixels, weight1, bias1)
        hidden, middle = self.activation.forward(sums)
        scores, last = self.linear.forward(hidden, weight2, bias2)
        loss, end = self.loss.forward(scores, images.labels)

        grad_scores, _ = self.loss.backward(end, np.ones((), np.float32))
        grad_hidden, grad_weight2, grad_bias2 = self.linear.backward(last, grad_scores)
        (grad_sums,) = self.activation.backward(middle, grad_hidden)
        # Nobody asks for the gradient of the images.
        needed = (False, True, True)
        _, grad_weight1, grad_bias1 = self.linear.backward(
            first, grad_sums, needs_input_grad=needed
        )
        return float(loss), [grad_weight1, grad_bias1, grad_weight2, grad_bias2]


@dataclass
class Adam:
    """Adam (Kingma and Ba, 2015) in place on ``parameters``."""

    parameters: list[Array]
    decay: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    steps: int = 0
    _means: list[Array] = field(init=False)
    _squares: list[Array] = field(init=False)

    def __post_init__(self) -> None:
        self._means = [np.zeros_like(parameter) for parameter in self.parameters]
        self._squares = [np.zeros_like(parameter) for parameter in self.parameters]

    def step(self, gradients: list[Array], rate: float) -> None:
        """Move each parameter against its gradient."""
        self.steps += 1
        slow, slower = self.decay
        scale = rate * np.sqrt(1 - slower**self.steps) / (1 - slow**self.steps)
        moving = zip(self.parameters, gradients, self._means, self._squares, strict=True)
        for parameter, gradient, mean, square in moving:
            mean += (1 - slow) * (gradient - mean)
            square += (1 - slower) * (gradient * gradient - square)
            parameter -= (scale * mean / (np.sqrt(square) + self.epsilon)).astype(np.float32)
