"""What is compared with peers: operations, and their shapes for a number of elements.

Out: ``ROWS``.  ``forward`` takes the library first, of which torch and symgrad have the same names;
``jax`` is written where JAX has others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

Sizes = dict[str, int]
VOCABULARY = 50_000
GROUPS, CHANNELS, HEAD, FEATURES = 8, 32, 64, 16


@dataclass(frozen=True)
class Row:
    """One operation.

    ``specs``: the shapes of its inputs; ``n:v`` are n indices below v.  ``products``: how many
    multiplications its products of matrices take, forward.  ``backward``: is it differentiated?
    """

    name: str
    specs: str
    sizes: Callable[[int], Sizes]
    forward: Callable[..., Any]
    jax: Callable[..., Any] | None = None
    products: str = ""
    backward: bool = True

    @cached_property
    def inputs(self) -> list[tuple[str, str]]:
        """Shapes and what indices are below, "" for numbers."""
        parts = (spec.strip().partition(":") for spec in self.specs.split(";"))
        return [(shape, below) for shape, _, below in parts]

    def shapes(self, elements: int) -> list[tuple[int, ...]]:
        """The shapes of the inputs."""
        sizes = self.sizes(elements)
        return [tuple(_number(word, sizes) for word in shape.split()) for shape, _ in self.inputs]

    def flops(self, elements: int) -> int:
        """What products take: one forward, two backward."""
        sizes = self.sizes(elements)
        terms = (term.split() for term in self.products.split("+") if term.strip())
        return 6 * sum(prod(_number(word, sizes) for word in term) for term in terms)


def _number(word: str, sizes: Sizes) -> int:
    return int(word) if word.isdigit() else sizes[word]


def _square(elements: int, most: int = 1 << 20) -> Sizes:
    side = min(max(2, round(elements**0.5)), most)
    return {"n": side, "m": side}


def _words(elements: int) -> Sizes:
    vocabulary = min(VOCABULARY, elements)
    return {"n": max(1, elements // vocabulary), "m": vocabulary}


def _lengths(elements: int, unit: int, most: int = 1 << 30) -> Sizes:
    return {"n": min(max(8, elements // unit), most)}


def _jax() -> Any:
    import jax

    return jax


def _linear(lib: Any, x: Any, w: Any, b: Any) -> Any:
    return lib.tanh(x @ w.T + b)


def _mlp(lib: Any, x: Any, w: Any, b: Any, v: Any) -> Any:
    return lib.silu(x @ w.T + b) @ v.T


def _squared_distances(x: Any, y: Any) -> Any:
    return ((x[:, None] - y[None]) ** 2).sum(-1)


def _gaussian(lib: Any, x: Any, y: Any) -> Any:
    return lib.exp(-0.5 * _squared_distances(x, y))


def _gru(lib: Any, x: Any, h: Any, w: Any, u: Any) -> Any:
    m = h.shape[-1]
    a, b = x @ w.T, h @ u.T
    keep = lib.sigmoid(a[:, :m] + b[:, :m])
    reset = lib.sigmoid(a[:, m : 2 * m] + b[:, m : 2 * m])
    new = lib.tanh(a[:, 2 * m :] + reset * b[:, 2 * m :])
    return keep * h + (1 - keep) * new


def _adam(lib: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (lib.sqrt(v) + 1e-8), m, v


def _attention(lib: Any, q: Any, k: Any, v: Any) -> Any:
    return lib.scaled_dot_product_attention(q, k, v)


def _attention_in_jax(q: Any, k: Any, v: Any) -> Any:
    return _jax().nn.softmax(q @ k.swapaxes(-1, -2) / HEAD**0.5, -1) @ v


def _cross_entropy_in_jax(x: Any, target: Any) -> Any:
    logs = _jax().nn.log_softmax(x, -1)
    return -_jax().numpy.take_along_axis(logs, target[:, None], -1).mean()


def _normalised(x: Any, axes: Any, centred: bool = True) -> Any:
    x = x - x.mean(axes, keepdims=True) if centred else x
    return x * _jax().lax.rsqrt((x * x).mean(axes, keepdims=True) + 1e-5)


def _group_norm_in_jax(x: Any, w: Any, b: Any) -> Any:
    grouped = x.reshape(x.shape[0], GROUPS, CHANNELS // GROUPS, -1)
    return _normalised(grouped, (2, 3)).reshape(x.shape) * w[:, None] + b[:, None]


def _cosine_in_jax(x: Any, y: Any) -> Any:
    return (x * y).sum(-1) / ((x * x).sum(-1) * (y * y).sum(-1)) ** 0.5


def _huber_in_jax(x: Any, y: Any) -> Any:
    jnp, error = _jax().numpy, abs(x - y)
    return jnp.where(error < 1, 0.5 * error * error, error - 0.5).mean()


def _convolution_in_jax(x: Any, w: Any) -> Any:
    return _jax().lax.conv_general_dilated(x, w, (1,) * (x.ndim - 2), "VALID")


_two = partial(_square, most=4096)
_matrices = partial(_square, most=2048)

ROWS = (
    Row("GELU, erf", "n m", _square, lambda lib, x: lib.gelu(x),
        lambda x: _jax().nn.gelu(x, approximate=False)),
    Row("GELU, tanh", "n m", _square, lambda lib, x: lib.gelu(x, approximate="tanh"),
        lambda x: _jax().nn.gelu(x)),
    Row("SwiGLU", "n m; n m", _square, lambda lib, x, y: lib.silu(x) * y),
    Row("softmax", "n m", _square, lambda lib, x: lib.softmax(x, -1)),
    Row("logsumexp", "n m", _square, lambda lib, x: lib.logsumexp(x, -1)),
    Row("cross-entropy, 50,000 words", "n m; n:m", _words,
        lambda lib, x, y: lib.cross_entropy(x, y), _cross_entropy_in_jax),
    Row("layer norm", "n m; m; m", _square,
        lambda lib, x, w, b: lib.layer_norm(x, (x.shape[-1],), w, b),
        lambda x, w, b: _normalised(x, -1) * w + b),
    Row("RMS norm", "n m; m", _square,
        lambda lib, x, w: lib.rms_norm(x, (x.shape[-1],), w, 1e-5),
        lambda x, w: _normalised(x, -1, centred=False) * w),
    Row("batch norm", "n m; m; m", _square,
        lambda lib, x, w, b: lib.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: _normalised(x, 0) * w + b),
    Row("group norm", f"n {CHANNELS} 64; {CHANNELS}; {CHANNELS}",
        lambda n: {"n": max(1, n // (CHANNELS * 64))},
        lambda lib, x, w, b: lib.group_norm(x, GROUPS, w, b), _group_norm_in_jax),
    Row("tanh(x Wᵀ + b)", "n m; m m; m", _matrices, _linear, products="n m m"),
    Row("MLP block", "n m; 256 m; 256; m 256", _matrices, _mlp, products="n m 512"),
    Row("attention", f"8 n {HEAD}; 8 n {HEAD}; 8 n {HEAD}",
        partial(_lengths, unit=8 * HEAD, most=2048), _attention, _attention_in_jax,
        products=f"8 n n {2 * HEAD}"),
    Row("cosine similarity", "n m; n m", _square,
        lambda lib, x, y: lib.cosine_similarity(x, y, -1), _cosine_in_jax),
    Row("Gaussian kernel", f"n {FEATURES}; m {FEATURES}", _two, _gaussian),
    Row("distances", f"n {FEATURES}; m {FEATURES}", _two, lambda lib, x, y: lib.cdist(x, y),
        lambda x, y: _squared_distances(x, y) ** 0.5),
    Row("convolution, 1-D", "4 8 n; 8 8 5", partial(_lengths, unit=32),
        lambda lib, x, w: lib.conv1d(x, w), _convolution_in_jax, products="4 n 320"),
    Row("convolution, 2-D", "2 8 n m; 8 8 3 3",
        lambda n: _square(max(64, n // 16)),
        lambda lib, x, w: lib.conv2d(x, w), _convolution_in_jax, products="2 n m 576"),
    Row("embedding", "v 64; n:v", lambda n: {"v": 1000, "n": max(1, n // 64)},
        lambda lib, w, index: lib.embedding(index, w), lambda w, index: w[index]),
    Row("Huber loss", "n m; n m", _square, lambda lib, x, y: lib.huber_loss(x, y), _huber_in_jax),
    Row("GRU step", "n 64; n 64; 192 64; 192 64", partial(_lengths, unit=64), _gru,
        products="n 64 384"),
    Row("Adam update", "n; n; n; n", partial(_lengths, unit=1), _adam, backward=False),
)  # fmt: skip
