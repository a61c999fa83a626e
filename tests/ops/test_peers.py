"""Values and gradients as torch has them: ties, kinks, NaN and infinities included.

Tests over the registry: an op that torch calls by its name is compared because it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from symgrad.autodiff import vjp
from symgrad.ops.record import get
from symgrad.passes.evaluate import evaluate
from tests.frontend.test_operations import TorchNames
from tests.ops.cases import OPS, Case, differentiable, for_uses

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

TOLERANCE = {"float32": 3e-5, "float64": 1e-9}


def _over_axes(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction over one axis at a time, from the last."""

    def over(case: Case, x: Any) -> Any:
        for axis in reversed(case.node.attributes["axes"]):
            x = reduce(x, axis)
        return x

    return over


def _slice(case: Case, x: Any) -> Any:
    attrs = case.node.attributes
    for axis, size in enumerate(attrs["sizes"]):
        start, step = case.size(attrs["starts"][axis]), attrs["steps"][axis]
        places = start + step * torch.arange(case.size(size))
        x = x.index_select(axis, places)
    return x


def _unslice(case: Case, x: Any) -> Any:
    attrs = case.node.attributes
    for axis, (start, step) in enumerate(zip(attrs["starts"], attrs["steps"], strict=True)):
        shape = list(x.shape)
        places = case.size(start) + step * torch.arange(shape[axis])
        shape[axis] = case.size(attrs["shape"][axis])
        x = torch.zeros(shape, dtype=x.dtype).index_add(axis, places, x)
    return x


def _index_add(case: Case, x: Any, *places: Any) -> Any:
    shape = [case.size(size) for size in case.node.attributes["shape"]]
    return torch.zeros(shape, dtype=x.dtype).index_put(places, x, accumulate=True)


def _cumulate(name: str) -> Callable[..., Any]:
    def run(case: Case, x: Any) -> Any:
        axis = case.node.attributes["axis"]
        if case.node.attributes["reverse"]:
            return torch.flip(getattr(torch, name)(torch.flip(x, [axis]), axis), [axis])
        return getattr(torch, name)(x, axis)

    return run


def _rank(case: Case, x: Any) -> Any:
    axis, descending = case.node.attributes["axis"], case.node.attributes["descending"]
    order = torch.sort(x, dim=axis, descending=descending, stable=True).indices
    return torch.argsort(order, dim=axis)


STRUCTURAL: Mapping[str, Callable[..., Any]] = {
    "sum": lambda case, x: torch.sum(x, case.node.attributes["axes"]),
    "prod": _over_axes(lambda x, axis: torch.prod(x, axis)),
    "amax": lambda case, x: torch.amax(x, case.node.attributes["axes"]),
    "amin": lambda case, x: torch.amin(x, case.node.attributes["axes"]),
    "any": _over_axes(lambda x, axis: torch.any(x, axis)),
    "all": _over_axes(lambda x, axis: torch.all(x, axis)),
    "max": _over_axes(lambda x, axis: torch.max(x, axis).values),
    "min": _over_axes(lambda x, axis: torch.min(x, axis).values),
    "root": lambda case, x: torch.where(x == 0, 0, torch.sqrt(torch.where(x == 0, 1, x))),
    "argmax": _over_axes(lambda x, axis: torch.argmax(x, axis)),
    "argmin": _over_axes(lambda x, axis: torch.argmin(x, axis)),
    "cumsum": _cumulate("cumsum"),
    "cumprod": _cumulate("cumprod"),
    "expand": lambda case, x: x.expand([case.size(s) for s in case.node.shape]),
    "reshape": lambda case, x: x.reshape([case.size(s) for s in case.node.shape]),
    "permute": lambda case, x: x.permute(case.node.attributes["axes"]),
    "cast": lambda case, x: x.to(getattr(torch, str(case.node.dtype))),
    "slice": _slice,
    "unslice": _unslice,
    "concat": lambda case, *xs: torch.cat(xs, case.node.attributes["axis"]),
    "diagonal": lambda case, x: torch.diagonal(
        x, case.node.attributes["offset"], *case.node.attributes["axes"]
    ),
    "index": lambda case, x, *places: x[places],
    "index_add": _index_add,
    "rank": _rank,
    "inverse": lambda case, x: torch.linalg.inv(x),
    "det": lambda case, x: torch.linalg.det(x),
    "cholesky": lambda case, x: torch.linalg.cholesky(x),
    "solve_triangular": lambda case, a, b: torch.linalg.solve_triangular(
        a, b, upper=case.node.attributes["upper"]
    ),
    "eigenvalues": lambda case, x: torch.linalg.eigvalsh((x + x.mT) / 2),
    "eigenvectors": lambda case, x: _signed(torch.linalg.eigh((x + x.mT) / 2)[1])[0],
    "singular_values": lambda case, x: torch.linalg.svdvals(x),
    "left_vectors": lambda case, x: _singular(x)[0],
    "right_vectors": lambda case, x: _singular(x)[1],
    "orthogonal_factor": lambda case, x: torch.linalg.qr(x)[0],
    "triangular_factor": lambda case, x: torch.linalg.qr(x)[1],
    "einsum": lambda case, x, y: torch.einsum(case.node.attributes["spec"], x, y),
}


def _signed(vectors: Any, *others: Any) -> tuple[Any, ...]:
    """Columns whose largest elements are positive, and others with their signs."""
    if not vectors.numel():
        return (vectors, *others)
    largest = vectors.detach().abs().argmax(-2, keepdim=True)
    signs = torch.where(vectors.detach().gather(-2, largest) < 0, -1, 1).to(vectors.dtype)
    return tuple(one * signs for one in (vectors, *others))


def _singular(x: Any) -> tuple[Any, Any]:
    left, _, right = torch.linalg.svd(x, full_matrices=False)
    turned, other = _signed(right.mT, left)
    return other, turned


def _peer(name: str) -> Callable[..., Any]:
    """Torch's function for an op, called with the case and tensors: how its record writes it."""
    if name in STRUCTURAL:
        return STRUCTURAL[name]
    code = get(name).code
    assert code is not None, f"{name} has no row in the comparison"
    places = range(get(name).arity or 0)
    text = code.format(*(f"xs[{place}]" for place in places), sg="sg")
    call: Callable[..., Any] = eval(f"lambda case, *xs: {text}", {"sg": TorchNames()})
    return call


def _same(found: Any, wanted: Any, dtype: str) -> None:
    wanted = wanted.detach().numpy()
    assert found.dtype == wanted.dtype
    tolerance = TOLERANCE.get(dtype, 0.0)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def _torch_differs(case: Case) -> bool:
    """Where torch raises, or is exact only to rounding at a pole or beside an infinity."""
    name, arrays = case.node.op, case.arrays
    if name in ("amax", "amin", "max", "min", "argmax", "argmin"):
        return not arrays[0].size
    if name == "copysign":  # infinity / infinity, and the slope of what is not a number
        return not np.all(np.isfinite(arrays[0]))
    if name in ("floordiv", "mod", "fmod"):
        return case.node.dtype.is_integer and bool(np.any(arrays[1] == 0))
    if name in ("prod", "cumprod"):  # infinity / infinity, where torch has a special case
        return arrays[0].dtype.kind == "f" and not np.all(np.isfinite(arrays[0]))
    if name in ("digamma", "trigamma", "tetragamma"):
        return bool(np.any((arrays[0] <= 0) | np.isinf(arrays[0])))
    return False


@pytest.mark.parametrize("special", [False, True], ids=["ordinary", "special"])
@pytest.mark.parametrize("name", OPS)
def test_value(name: str, special: bool) -> None:
    @for_uses(name, special=special)
    def check(case: Case) -> None:
        if _torch_differs(case):
            return
        wanted = _peer(name)(case, *map(torch.from_numpy, map(np.array, case.arrays)))
        _same(case.numpy(), wanted, str(case.node.dtype))

    check()


@pytest.mark.parametrize("special", [False, True], ids=["ordinary", "special"])
@pytest.mark.parametrize("name", [name for name in OPS if differentiable(name)])
def test_gradient(name: str, special: bool) -> None:
    @for_uses(name, floats=True, special=special)
    def check(case: Case) -> None:
        if _torch_differs(case) or not case.node.dtype.is_float:
            return
        g = np.asarray(case.source().uniform(-1, 1, case.numpy().shape), case.numpy().dtype)
        tensors = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in case.arrays]
        _peer(name)(case, *tensors).backward(torch.from_numpy(g))
        cotangent = case.node.graph.input("g", case.node.type)
        for arg, tensor in zip(case.args, tensors, strict=True):
            if not tensor.requires_grad:
                continue
            (back,) = vjp([case.node], [cotangent], [arg])
            if back is None:
                assert not tensor.grad.any()
                continue
            (found,) = evaluate([back], {**case.feeds, "g": g}, case.sizes)
            _same(found, tensor.grad, str(arg.dtype))

    check()


def test_every_op_has_a_peer() -> None:
    for name in OPS:
        assert callable(_peer(name)), name
    assert all(get(name) for name in STRUCTURAL)
