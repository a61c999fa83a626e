"""Convolutions, pooling and their like give what torch gives, for sizes that one trace covers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from tests.frontend.support import run

pytestmark = pytest.mark.peers

Case = tuple[str, list[str], dict[str, Any], list[dict[str, int]]]


def _sizes(**bases: int) -> list[dict[str, int]]:
    return [{name: base + more for name, base in bases.items()} for more in (0, 1, 3)]


def _convolutions() -> Iterator[Case]:
    for stride, padding, dilation in itertools.product((1, 2), (0, 1), (1, 2)):
        how = {"stride": stride, "padding": padding, "dilation": dilation}
        yield "conv1d", ["b c n", "o c 3"], how, _sizes(b=1, c=2, o=1, n=6)
        yield "conv_transpose1d", ["b c n", "c o 3"], how, _sizes(b=1, c=2, o=1, n=3)
    several: list[dict[str, Any]] = [{"padding": (1, 0)}, {"stride": (1, 2)}, {"padding": "same"}]
    for one in several:
        yield "conv2d", ["b c n m", "o c 3 2"], one, _sizes(b=1, c=1, o=2, n=4, m=5)
    yield "conv2d", ["c n m", "o c 3 3"], {}, _sizes(c=1, o=2, n=4, m=5)
    yield "conv2d", ["b 4 n m", "6 2 2 2", "6"], {"groups": 2}, _sizes(b=1, n=4, m=5)
    yield "conv2d", ["b 3 n m", "3 1 3 3", "3"], {"groups": 3, "padding": 1}, _sizes(b=1, n=4, m=5)
    yield "conv2d", ["b c n+2 m+1", "o c n m"], {}, _sizes(b=1, c=1, o=2, n=2, m=3)
    yield "conv3d", ["b c n 4 3", "o c 2 2 2"], {}, _sizes(b=1, c=1, o=2, n=3)
    how = {"stride": 2, "output_padding": 1, "groups": 2}
    yield "conv_transpose2d", ["b 4 n m", "4 3 2 3", "6"], how, _sizes(b=1, n=2, m=3)


def _pooling() -> Iterator[Case]:
    for name, how in (
        ("avg_pool2d", {"kernel_size": 2}), ("max_pool2d", {"kernel_size": 2}),
        ("avg_pool2d", {"kernel_size": 3, "stride": 2, "padding": 1}),
        ("avg_pool2d", {"kernel_size": 3, "padding": 1, "count_include_pad": False}),
        ("avg_pool2d", {"kernel_size": (2, 3), "divisor_override": 5}),
        ("max_pool2d", {"kernel_size": 3, "stride": (1, 2), "padding": 1}),
        ("max_pool2d", {"kernel_size": 2, "dilation": 2, "stride": 1}),
        ("max_pool2d", {"kernel_size": (2, 3), "padding": 1, "return_indices": True}),
        ("unfold", {"kernel_size": (2, 3), "padding": 1, "stride": (1, 2), "dilation": 1}),
        ("interpolate", {"scale_factor": 2}), ("interpolate", {"scale_factor": (1.0, 3.0)}),
        ("adaptive_avg_pool2d", {"output_size": 1}),
        ("adaptive_avg_pool2d", {"output_size": (None, 1)}),
    ):  # fmt: skip
        yield name, ["b c n m"], how, _sizes(b=1, c=2, n=5, m=5)
    yield "adaptive_avg_pool1d", ["b c 3*n"], {"output_size": 3}, _sizes(b=1, c=2, n=2)
    yield "interpolate", ["b c 2*n"], {"scale_factor": 3, "mode": "nearest"}, _sizes(b=1, c=2, n=2)
    yield "interpolate", ["b c 6"], {"size": 3, "mode": "area"}, _sizes(b=1, c=2)
    yield "interpolate", ["b c 6"], {"size": 2}, _sizes(b=1, c=2)
    yield "interpolate", ["b c n"], {"scale_factor": 2, "mode": "linear"}, _sizes(b=1, c=2, n=1)
    placed: dict[str, Any]
    for corners in (False, True):
        placed = {"size": (3, 7), "mode": "bilinear", "align_corners": corners}
        yield "interpolate", ["b c n m"], placed, _sizes(b=1, c=1, n=2, m=5)
        placed = {"scale_factor": 3, "mode": "trilinear", "align_corners": corners}
        yield "interpolate", ["b c n 1 m"], placed, _sizes(b=1, c=1, n=1, m=2)
        for mode, beyond in itertools.product(("bilinear", "nearest"), ("zeros", "border")):
            placed = {"mode": mode, "padding_mode": beyond, "align_corners": corners}
            sizes = _sizes(b=1, c=2, n=3, m=2, k=4, l=3)
            yield "grid_sample", ["b c n m", "b k l 2"], placed, sizes
    how = {"output_size": (5, 6), "kernel_size": (2, 3), "padding": 1, "stride": (1, 2)}
    yield "fold", ["b 6*c 18"], how, _sizes(b=1, c=2)


def _shape(spec: str, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(eval(word, {}, sizes) for word in spec.split())


@pytest.mark.filterwarnings("ignore:Using padding")
@pytest.mark.parametrize("case", [*_convolutions(), *_pooling()], ids=str)
def test_as_torch(case: Case) -> None:
    import torch

    name, specs, how, every = case
    draw = np.random.default_rng(0).standard_normal
    names = [f"x{place}" for place in range(len(specs))]
    points = [
        (sizes, {one: draw(_shape(spec, sizes)) for one, spec in zip(names, specs, strict=True)})
        for sizes in every
    ]
    arguments = ", ".join(names)
    forward = eval(f"lambda {arguments}: call({arguments})", {
        "call": lambda *tensors: getattr(sg, name)(*tensors, **how),
    })  # fmt: skip
    for (_, arrays), found in zip(points, run(forward, specs, points), strict=True):
        tensors = map(torch.tensor, arrays.values())
        wanted = getattr(torch.nn.functional, name)(*tensors, **how)
        several = wanted if isinstance(wanted, tuple) else (wanted,)
        assert len(found) == len(several)
        for one, other in zip(found, several, strict=True):
            assert one.shape == tuple(other.shape)
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-12, atol=1e-12)


def test_what_was_taken_goes_back_to_its_place() -> None:
    """``max_unpool2d`` of ``max_pool2d``."""
    import torch

    def ours(x: Any) -> Any:
        return sg.max_unpool2d(*sg.max_pool2d(x, 2, return_indices=True), 2, output_size=x.shape)

    sizes = {"b": 2, "c": 1, "n": 5, "m": 4}
    x = np.random.default_rng(0).standard_normal((2, 1, 5, 4))
    ((found,),) = run(ours, ["b c n m"], [(sizes, {"x": x})])
    call = torch.nn.functional
    values, indices = call.max_pool2d(torch.tensor(x), 2, return_indices=True)
    wanted = call.max_unpool2d(values, indices, 2, output_size=x.shape)
    np.testing.assert_allclose(found, wanted.numpy())


def _spread(x: Any, *bias: Any, **how: Any) -> Any:
    return sg.conv_transpose2d(x, sg.ones(x.shape[1], 1, 2, 2, dtype=x.dtype), *bias, **how)


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: sg.conv2d(x, x[..., ::2, :]), "gone through"),
    (lambda x: sg.avg_pool2d(x, 2, padding=1, ceil_mode=True), "ceil_mode"),
    (lambda x: sg.interpolate(x, scale_factor=0.3), "fraction"),
    (lambda x: sg.interpolate(x, scale_factor=1.5), "multiple of the other"),
    (lambda x: sg.interpolate(x, scale_factor=2, mode="bicubic", antialias=True), "bicubic"),
    (lambda x: sg.grid_sample(x, x[..., :2], mode="bicubic"), "bicubic"),
    (lambda x: sg.grid_sample(x, x[0], align_corners=True), "images of two axes"),
    (lambda x: sg.max_pool2d(x.long(), 2), "takes floats"),
    (lambda x: sg.conv2d(x[0, 0], x), "takes 3 or 4 axes"),
    (lambda x: sg.avg_pool2d(x, 2, stride=0), "stride is at least 1"),
    (lambda x: sg.max_pool2d(x, 2, dilation=0), "dilation is at least 1"),
    (lambda x: sg.unfold(x, 2, padding=-1), "padding is at least 0"),
    (lambda x: _spread(x, output_padding=1), "smaller than stride"),
    (lambda x: _spread(x[..., :2, :2], padding=9), "leaves no elements"),
    (lambda x: _spread(x, sg.zeros(2, dtype=x.dtype)), "2 channels where there are 1"),
    (lambda x: _spread(x, sg.zeros(1, 1, dtype=x.dtype)), "bias of one axis"),
    (lambda x: _spread(x, sg.zeros(1, dtype=sg.float32)), "of one dtype"),
    (lambda x: sg.interpolate(x, scale_factor=41), "other elements"),
    (lambda x: sg.interpolate(x, scale_factor=2, align_corners=False), "align_corners"),
    (lambda x: sg.interpolate(x, size=2 * x.shape[-1], recompute_scale_factor=True), "goes with"),
])  # fmt: skip
def test_the_rest_says_what_it_does_not_take(call: Any, message: str) -> None:
    with pytest.raises(sg.errors.SymgradError, match=message):
        run(call, ["n n m m"], [])
