"""Graphs of well-known computations, forward and backward in one: what the goldens hold.

In: a dtype.  Out: graphs.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, float32, int64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType

B, N, M, K = (Dim.size(name) for name in "bnmk")
ONE = Dim.of(1)


class Builder:
    """A graph under construction: ``self.exp(x)`` applies the op ``exp``."""

    def __init__(self, dtype: DType = float32) -> None:
        self.graph = Graph()
        self.dtype = dtype

    def input(self, name: str, *shape: Dim, dtype: DType | None = None) -> Node:
        return self.graph.input(name, TensorType(dtype or self.dtype, shape))

    def apply(self, op: str, *args: Node, **attrs: Any) -> Node:
        return self.graph.apply(op, *args, **attrs)

    def named(self, name: str, node: Node) -> Node:
        node.name = name
        return node

    def spread(self, node: Node, like: Node, axis: int = -1) -> Node:
        """A reduction over one axis, put back along it."""
        at = axis % like.rank
        kept = tuple(ONE if place == at else size for place, size in enumerate(like.shape))
        return self.graph.expand(self.apply("reshape", node, shape=kept), like.shape)

    def total(self, node: Node, axis: int = -1) -> Node:
        return self.apply("sum", node, axes=(axis % node.rank,))

    def mean(self, node: Node, axis: int = -1) -> Node:
        return self.graph.binary("div", self.total(node, axis), node.shape[axis])

    def outputs(self, **nodes: Node) -> Graph:
        for name, node in nodes.items():
            self.graph.output(name, node)
        return self.graph


def gelu(dtype: DType = float32) -> Graph:
    b = Builder(dtype)
    x, grad = b.input("x", N, M), b.input("grad_y", N, M)
    cdf = b.named("cdf", (b.apply("erf", x * (1 / math.sqrt(2))) + 1.0) * 0.5)
    density = b.named("density", b.apply("exp", x * x * -0.5) * (1 / math.sqrt(2 * math.pi)))
    return b.outputs(y=x * cdf, grad_x=grad * (cdf + x * density))


def softmax_forward(dtype: DType = float32) -> Graph:
    b = Builder(dtype)
    x = b.input("x", N, M)
    top = b.named("top", b.apply("amax", x, axes=(1,)))
    e = b.named("e", b.apply("exp", x - b.spread(top, x)))
    return b.outputs(y=e / b.spread(b.named("total", b.total(e)), x))


def softmax_backward(dtype: DType = float32) -> Graph:
    b = Builder(dtype)
    y, grad = b.input("y", N, M), b.input("grad_y", N, M)
    inner = b.named("inner", b.total(grad * y))
    return b.outputs(grad_x=y * (grad - b.spread(inner, y)))


def softmax(dtype: DType = float32) -> Graph:
    b = Builder(dtype)
    x, grad = b.input("x", N, M), b.input("grad_y", N, M)
    top = b.named("top", b.apply("amax", x, axes=(1,)))
    e = b.named("e", b.apply("exp", x - b.spread(top, x)))
    y = e / b.spread(b.named("total", b.total(e)), x)
    inner = b.named("inner", b.total(grad * y))
    return b.outputs(y=y, grad_x=y * (grad - b.spread(inner, y)))


def layer_norm(dtype: DType = float32) -> Graph:
    b = Builder(dtype)
    x, grad = b.input("x", N, M), b.input("grad_y", N, M)
    weight, bias = b.input("weight", M), b.input("bias", M)
    wide = b.graph.expand(weight, x.shape)
    mean = b.named("mean", b.mean(x))
    centred = b.named("centred", x - b.spread(mean, x))
    var = b.named("var", b.mean(centred * centred))
    rstd = b.named("rstd", b.apply("rsqrt", var + 1e-5))
    xhat = b.named("xhat", centred * b.spread(rstd, x))
    gw = b.named("gw", grad * wide)
    c1, c2 = b.named("c1", b.mean(gw)), b.named("c2", b.mean(gw * xhat))
    grad_x = (gw - b.spread(c1, x) - xhat * b.spread(c2, x)) * b.spread(rstd, x)
    return b.outputs(
        y=xhat * wide + b.graph.expand(bias, x.shape), grad_x=grad_x,
        grad_weight=b.total(grad * xhat, 0), grad_bias=b.total(grad, 0),
    )  # fmt: skip


def cross_entropy(dtype: DType = float32) -> Graph:
    """Softmax cross entropy of rows against the index of the right column, averaged."""
    b = Builder(dtype)
    x, target = b.input("x", N, M), b.input("target", N, dtype=int64)
    top = b.named("top", b.apply("amax", x, axes=(1,)))
    e = b.named("e", b.apply("exp", x - b.spread(top, x)))
    total = b.named("total", b.total(e))
    row = b.apply("iota", length=N)
    picked = b.named("picked", b.apply("index", x, row, target))
    ones = b.graph.expand(b.graph.constant(1.0, dtype), (N,))
    hot = b.apply("index_add", ones, row, target, shape=(N, M))
    grad_x = b.graph.binary("div", e / b.spread(total, x) - hot, N)
    return b.outputs(loss=b.mean(top + b.apply("log", total) - picked, 0), grad_x=grad_x)


def linear(dtype: DType = float32) -> Graph:
    """``tanh(x w^T + b)`` and its gradients."""
    b = Builder(dtype)
    x, weight, bias = b.input("x", N, K), b.input("weight", M, K), b.input("bias", M)
    grad = b.input("grad_y", N, M)
    y = b.apply(
        "tanh", b.apply("einsum", x, weight, spec="ik,jk->ij") + b.graph.expand(bias, (N, M))
    )
    inner = b.named("inner", grad * (1.0 - y * y))
    return b.outputs(
        y=y, grad_x=b.apply("einsum", inner, weight, spec="ij,jk->ik"),
        grad_weight=b.apply("einsum", inner, x, spec="ij,ik->jk"), grad_bias=b.total(inner, 0),
    )  # fmt: skip


def attention(dtype: DType = float32) -> Graph:
    b = Builder(dtype)
    q, k, v = b.input("q", B, N, K), b.input("k", B, M, K), b.input("v", B, M, K)
    scores = b.named("scores", b.apply("einsum", q, k, spec="bid,bjd->bij"))
    top = b.named("top", b.apply("amax", scores, axes=(2,)))
    e = b.named("e", b.apply("exp", scores - b.spread(top, scores)))
    p = b.named("p", e / b.spread(b.named("total", b.total(e)), scores))
    return b.outputs(y=b.apply("einsum", p, v, spec="bij,bjd->bid"))


def batch_norm(dtype: DType = float32) -> Graph:
    b = Builder(dtype)
    x, grad, weight = b.input("x", N, M), b.input("grad_y", N, M), b.input("weight", M)

    def wide(node: Node) -> Node:
        return b.graph.expand(node, x.shape)

    centred = b.named("centred", x - wide(b.named("mean", b.mean(x, 0))))
    rstd = b.named("rstd", b.apply("rsqrt", b.mean(centred * centred, 0) + 1e-5))
    xhat = b.named("xhat", centred * wide(rstd))
    grad_weight, grad_bias = b.total(grad * xhat, 0), b.total(grad, 0)
    inner = grad - wide(b.graph.binary("div", grad_bias, N))
    inner = inner - xhat * wide(b.graph.binary("div", grad_weight, N))
    return b.outputs(
        y=xhat * wide(weight), grad_x=wide(weight * rstd) * inner, grad_weight=grad_weight,
        grad_bias=grad_bias,
    )  # fmt: skip


def group_norm(dtype: DType = float32) -> Graph:
    """In groups of three channels, and the gradient as it is derived."""
    b, (channels, groups, size) = Builder(dtype), map(Dim.of, (6, 2, 3))
    x, grad = b.input("x", N, channels, M), b.input("grad_y", N, channels, M)

    def grouped(node: Node) -> Node:
        return b.apply("reshape", node, shape=(N, groups, size, M))

    def whole(node: Node) -> Node:
        return b.apply("reshape", node, shape=(N, channels, M))

    def wide(node: Node) -> Node:
        kept = b.apply("reshape", node, shape=(N, groups, ONE, ONE))
        return b.graph.expand(kept, (N, groups, size, M))

    def mean(node: Node) -> Node:
        return b.graph.binary("div", b.apply("sum", node, axes=(2, 3)), size * M)

    centred = b.named("centred", grouped(x) - wide(mean(grouped(x))))
    rstd = b.named("rstd", b.apply("rsqrt", mean(centred * centred) + 1e-5))
    slope = b.named("slope", mean(grouped(grad) * centred) * (rstd * rstd * rstd))
    inner = grouped(grad) * wide(rstd) - wide(slope) * centred
    return b.outputs(y=whole(centred * wide(rstd)), grad_x=whole(inner - wide(mean(inner))))


def pairs(dtype: DType = float32) -> Graph:
    """A function of the distance of each pair of rows, and its mean over one of them."""
    b = Builder(dtype)
    x, y = b.input("x", N, K), b.input("y", M, K)
    wide = b.graph.expand(y, (N, M, K))
    difference = b.spread(x, wide, 1) - wide
    kernel = b.named("kernel", b.apply("exp", -b.total(difference * difference)))
    return b.outputs(kernel=kernel, mean=b.mean(kernel))


def convolution(dtype: DType = float32) -> Graph:
    """Along one axis, of three places with zeros beyond the ends, and both gradients."""
    b, (c, d) = Builder(dtype), map(Dim.of, (4, 3))
    x, weight, grad = b.input("x", N, c, M), b.input("weight", d, c, d), b.input("grad_y", N, d, M)
    ones = (1, 1, 1)

    def at(place: int) -> tuple[Dim, ...]:
        return Dim.of(0), Dim.of(0), Dim.of(place)

    wide = b.apply("unslice", x, shape=(N, c, M + 2), starts=at(1), steps=ones)
    y, grad_x, grad_weight = [], [], []
    for place in range(3):
        there = {"starts": at(place), "steps": ones}
        seen = b.apply("slice", wide, sizes=(N, c, M), **there)
        here = b.apply("slice", weight, sizes=(d, c, ONE), **there)
        flat = b.apply("reshape", here, shape=(d, c))
        y.append(b.apply("einsum", seen, flat, spec="xya,wy->xwa"))
        back = b.apply("einsum", grad, flat, spec="xwa,wy->xya")
        grad_x.append(b.apply("unslice", back, shape=(N, c, M + 2), **there))
        met = b.apply("einsum", grad, seen, spec="xwa,xya->wy")
        one = b.apply("reshape", met, shape=(d, c, ONE))
        grad_weight.append(b.apply("unslice", one, shape=(d, c, d), **there))
    inner = b.apply("slice", _sum(grad_x), sizes=(N, c, M), starts=at(1), steps=ones)
    return b.outputs(y=_sum(y), grad_x=inner, grad_weight=_sum(grad_weight))


def _sum(nodes: list[Node]) -> Node:
    return reduce(lambda one, other: one + other, nodes)


def each_sample(dtype: DType = float32) -> Graph:
    """The gradient of a layer's weight for each row: a product, its slope, times the row."""
    b = Builder(dtype)
    x, weight = b.input("x", N, M), b.input("weight", M, K)
    y = b.apply("tanh", b.apply("einsum", x, weight, spec="nm,mk->nk"))
    slope = b.graph.lift(1.0, y) - b.apply("square", y)
    return b.outputs(grad_weight=b.apply("einsum", slope, x, spec="nk,nm->nmk"))


PROGRAMS = {
    program.__name__: program
    for program in (
        gelu, softmax_forward, softmax_backward, softmax, layer_norm, cross_entropy, linear,
        attention, batch_norm, group_norm, pairs, convolution,
    )
}  # fmt: skip
