"""Zeros, ties, infinities, NaN and empty domains: values and gradients are torch's.

Every function is called eagerly and compiled, in both precisions, on the same points.  ``DIFFERS``
says where that is not so, and why.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.record import get
from tests.ops.cases import ELEMENTWISE as ELEMENTWISE_OPS

pytestmark = pytest.mark.peers
torch: Any = pytest.importorskip("torch")

Array = Any
INF, NAN = float("inf"), float("nan")
EACH = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, 20.0, -20.0, 1000.0, -1000.0,
        6.0, 1 / 3, INF, -INF, NAN)  # fmt: skip
PAIRED = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 2.5, INF, -INF, NAN)
ROWS = (
    (1, 2, 3), (3, 1, 3), (2, 2, 2), (0, 0, 0), (0, 1, 2), (0, 0, 1), (-0.0, 0, 1), (-1, 0, 1),
    (INF, 1, 2), (INF, 1000, 2), (INF, INF, 1), (-INF, -INF, -INF), (-INF, 1, 2), (NAN, 1, 2),
    (1, NAN, NAN), (INF, -INF, NAN), (INF, -INF, 0), (-1000, 0, 1), (-2, -2, -1), (30, -30, 0),
)  # fmt: skip
FUNCTIONAL = {torch: torch.nn.functional, sg: sg.nn.functional}


ELEMENTWISE = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg2rad",
    "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "lgamma", "log",
    "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "rad2deg", "reciprocal", "relu",
    "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
    "isfinite", "isinf", "isnan",
]  # fmt: skip
ACTIVATIONS = [
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "logsigmoid", "mish", "relu", "relu6", "selu", "silu", "softplus", "softshrink", "softsign",
    "tanhshrink",
]  # fmt: skip
OF_TWO = [
    "add", "sub", "mul", "div", "pow", "atan2", "fmod", "remainder", "maximum", "minimum", "fmax",
    "fmin", "hypot", "logaddexp", "xlogy", "copysign",
]  # fmt: skip


COMPARED_ELSEWHERE = ("logical_not", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
                      "logical_or", "logical_xor")  # fmt: skip
"""Functions that give bools: ``tests/ops/test_peers.py`` compares them."""


def test_every_elementwise_op_that_torch_has_is_here() -> None:
    """A new op is compared at these points, or it stands in a list that says why not."""
    here = {*ELEMENTWISE, *ACTIVATIONS, *OF_TWO, *COMPARED_ELSEWHERE}
    public = {
        name for name in ELEMENTWISE_OPS
        if get(name).arity in (1, 2) and hasattr(sg, name) and hasattr(torch, name)
    }  # fmt: skip
    assert public <= here, public - here


def _home(lib: Any, name: str) -> Any:
    """The library's part in which a function is."""
    return FUNCTIONAL[lib] if hasattr(FUNCTIONAL[lib], name) else lib


def _named(*names: str, functional: bool = False) -> dict[str, Callable[..., Any]]:
    """Functions under the names that both libraries have for them."""

    def one(name: str) -> Callable[..., Any]:
        def call(lib: Any, *args: Any) -> Any:
            return getattr(_home(lib, name) if functional else lib, name)(*args)

        return call

    return {name: one(name) for name in names}


UNARY: dict[str, Callable[..., Any]] = {
    **_named(*ELEMENTWISE),
    **_named(*ACTIVATIONS, functional=True),
    **{
        f"pow {p!r}": lambda lib, x, p=p: x**p
        for p in (0, 0.0, 1, 2, 3, -1, -2, -3, 0.5, -0.5, 2.5, -2.5, 10, -9)
    },
    **{f"{b!r} pow": lambda lib, x, b=b: b**x for b in (0.0, 1.0, 2.0, -1.0)},
    "clamp": lambda lib, x: x.clamp(0, 1),
    "threshold": lambda lib, x: _home(lib, "threshold").threshold(x, 0.5, 7.0),
    "remainder": lambda lib, x: x % 2.0,
    "fmod": lambda lib, x: lib.fmod(x, 2.0),
    "div": lambda lib, x: x / 0.0,
    "celu of 2": lambda lib, x: FUNCTIONAL[lib].celu(x, 2.0),
    "elu of 2": lambda lib, x: FUNCTIONAL[lib].elu(x, 2.0),
    "sg.elu": lambda lib, x: (sg if lib is sg else torch.nn.functional).elu(x),
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    **_named(*OF_TWO),
    **{
        name: lambda lib, x, y, name=name: getattr(FUNCTIONAL[lib], name)(x, y, reduction="none")
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits")
    },
}  # fmt: skip
ALONG: dict[str, Callable[..., Any]] = {
    **{
        name: lambda lib, x, name=name: getattr(lib, name)(x, -1)
        for name in (
            "amax", "amin", "sum", "mean", "logsumexp", "argmax", "argmin", "var", "std", "softmax",
            "log_softmax", "cumsum", "nansum", "nanmean",
        )
    },
    **{
        name: lambda lib, x, name=name: getattr(lib, name.split()[0])(x, -1)[0]
        for name in ("max of one axis", "min of one axis", "sort")
    },
    "std of all": lambda lib, x: lib.std(x[:, :1] * 0 + 2.0) + lib.zeros(len(x), dtype=x.dtype),
    "std, biased": lambda lib, x: lib.std(x, -1, correction=0),
    "std_mean": lambda lib, x: lib.std_mean(x, -1)[0],
    **{
        f"norm {p}": lambda lib, x, p=p: lib.linalg.vector_norm(x, p, -1)
        for p in (0.5, 1, 1.5, 2, 3, 4, INF)
    },
    "norm of both": lambda lib, x: lib.norm(x[2:7] * 0) + lib.zeros(len(x), dtype=x.dtype),
    "logsumexp of both": lambda lib, x: (
        lib.logsumexp(x[:8], (0, 1)) + lib.zeros(len(x), dtype=x.dtype)
    ),
    "normalize": lambda lib, x: (
        lib.nn.functional if lib is torch else lib
    ).normalize(x, dim=-1),
    "cosine_similarity": lambda lib, x: FUNCTIONAL[lib].cosine_similarity(
        x, lib.ones_like(x), -1, 10.0
    ),
    "norm 0": lambda lib, x: lib.linalg.vector_norm(x, 0, -1),
    "cross_entropy": lambda lib, x: FUNCTIONAL[lib].cross_entropy(
        x, lib.zeros(len(x), dtype=lib.int64), reduction="none"
    ),
}  # fmt: skip

DIFFERS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "digamma": ("torch rounds at the poles", lambda p: (p <= 0) & (np.floor(p) == p)),
    "logit": ("outside of its domain torch masks the gradient", lambda p: (p <= 0) | (p > 1)),
    "gelu": ("torch is inexact in f32", lambda p: (p <= -3) | (p == INF)),
    "softsign": ("torch divides infinities", np.isinf),
    "pow -0.5": ("of what is not positive", lambda p: p <= 0),
    "pow 2.5": ("at minus infinity torch takes roots", lambda p: p == -INF),
    "copysign": ("torch divides infinities", lambda p: np.isinf(p[:, 0])),
    "xlogy": ("the slope of 0 log 0", lambda p: (p[:, 0] == 0) & np.isin(p[:, 1], (0, INF))),
    "cosine_similarity": (
        "where eps counts torch differentiates the length all the same",
        lambda p: ~(np.square(p).sum(-1) > 100),
    ),
    "var": ("of infinities", lambda p: np.isinf(p).any(-1)),
    "norm 0.5": ("of infinities", lambda p: np.isinf(p).any(-1)),
}  # fmt: skip
"""Why, and at which points."""


AT_NAN: dict[str, str] = {
    "clamp": "torch asks which bound holds; NaN is returned, so that it passes",
    "copysign": "torch divides",
    "norm inf": "torch asks which elements are the greatest",
}
"""Where the gradient at NaN is not torch's, and why."""


def _nothing_counts(name: str, points: Array) -> Array:
    """The points at which a gradient says nothing."""
    nan = np.isnan(points)
    nan = nan if points.ndim == 1 else nan.any(-1)
    return nan if name in AT_NAN else np.zeros_like(nan)


def _run(
    lib: Any, call: Callable[..., Any], columns: list[Array]
) -> list[tuple[Array, list[Array]]]:
    """For each output its value and the gradients of the inputs that are its own."""
    tensors = [lib.tensor(column, requires_grad=True) for column in columns]
    outputs = call(*tensors)
    smooth = [y for y in outputs if y.requires_grad]
    weights = [np.linspace(1, 2, y.numel()).reshape(tuple(y.shape)) for y in smooth]
    lib.autograd.backward(smooth, [lib.tensor(w.astype(columns[0].dtype)) for w in weights])
    gradients = [
        np.zeros_like(column) if tensor.grad is None else np.array(tensor.grad.numpy(force=True))
        for tensor, column in zip(tensors, columns, strict=True)
    ]
    each = len(columns) // len(outputs)
    return [
        (
            y.detach().numpy(),
            gradients[each * place : each * (place + 1)] if y.requires_grad else [],
        )
        for place, y in enumerate(outputs)
    ]


def _compare(name: str, columns: list[Array], found: Any, function: Callable[..., Any]) -> None:
    points = columns[0] if len(columns) == 1 else np.stack(columns, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (wanted,) = _run(torch, lambda *x: [function(torch, *x)], columns)
    tolerance = 3e-5 if columns[0].dtype == np.float32 else 1e-7
    excused = DIFFERS[name][1](points) if name in DIFFERS else np.zeros(len(points), bool)
    pairs = zip([found[0], *found[1]], [wanted[0], *wanted[1]], strict=True)
    for place, (one, other) in enumerate(pairs):
        assert one.shape == other.shape
        skipped = excused | (_nothing_counts(name, points) if place else False)
        np.testing.assert_allclose(
            one[~skipped], other[~skipped], rtol=tolerance, atol=tolerance,
            err_msg=f"{name}, {'value' if not place else f'gradient {place}'}",
        )  # fmt: skip


PAIRS = np.array(list(itertools.product(PAIRED, PAIRED)))
TABLES: list[tuple[dict[str, Callable[..., Any]], list[Array]]] = [
    (UNARY, [np.array(EACH)]), (BINARY, list(PAIRS.T)), (ALONG, [np.array(ROWS, float)]),
]  # fmt: skip
CASES = [(name, call, columns) for table, columns in TABLES for name, call in table.items()]


@pytest.mark.parametrize("case", CASES, ids=[name for name, _, _ in CASES])
def test_eager(case: Any) -> None:
    name, function, columns = case
    for dtype in (np.float64, np.float32):
        typed = [column.astype(dtype) for column in columns]
        (found,) = _run(sg, lambda *x: [function(sg, *x)], typed)
        _compare(name, typed, found, function)


TOGETHER = 6
"""Functions in one kernel."""
COMPOSED = [
    ({name: call for name, call in table.items() if name not in ELEMENTWISE}, columns)
    for table, columns in TABLES
]
"""Those of the registry are compiled in tests/codegen/test_matrix.py."""
GROUPS = [
    (dict(list(table.items())[start : start + TOGETHER]), columns)
    for table, columns in COMPOSED
    for start in range(0, len(table), TOGETHER)
]


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids=[next(iter(table)) for table, _ in GROUPS])
def test_compiled(group: Any) -> None:
    table, columns = group
    typed = [column.astype(np.float32) for column in columns]
    each = len(columns)

    @sg.jit
    def kernel(*given: Any) -> list[Any]:
        """Each function of inputs of its own: what flows back elsewhere does not count."""
        return [
            function(sg, *given[each * place :][:each])
            for place, function in enumerate(table.values())
        ]

    found = _run(sg, kernel, typed * len(table))
    for (name, function), one in zip(table.items(), found, strict=True):
        _compare(name, typed, one, function)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_running_logsumexp_is_torchs_or_nan(dtype: Any) -> None:
    """What lies more than 708 below the greatest element is lost, and says so."""
    rows = np.array([*ROWS, (-300, 0, 1), (0, -300, 300), (1e4, 0, -1e4)], dtype)
    wanted = torch.logcumsumexp(torch.tensor(rows), 1).numpy()
    found = sg.logcumsumexp(sg.tensor(rows), 1).numpy()
    lost = rows[:, None, :] == [[-1000, 0, 1]]
    lost = lost.all(-1) & (np.arange(3) == 0)
    np.testing.assert_allclose(found[~lost], wanted[~lost], rtol=1e-6, atol=1e-7)
    assert np.isnan(found[lost]).all()


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_running_extrema_are_torchs(name: str, dtype: Any) -> None:
    """Ties, NaN and infinities included: of equal elements the last one counts."""
    special = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    rows = np.array(list(itertools.product(special, repeat=3)), dtype)
    for dim in (0, 1, -1):
        wanted = getattr(torch, name)(torch.tensor(rows), dim)
        found = getattr(sg, name)(sg.tensor(rows), dim)
        np.testing.assert_array_equal(found.values.numpy(), wanted.values.numpy())
        np.testing.assert_array_equal(found.indices.numpy(), wanted.indices.numpy())


def test_powers_with_exponent_0_are_constants_of_every_order() -> None:
    for exponent in (0, 0.0, sg.zeros(3, dtype=sg.float64)):

        def power(x: Any, exponent: Any = exponent) -> Any:
            return (x**exponent).sum()

        def slope(x: Any, power: Any = power) -> Any:
            return sg.grad(power)(x).sum()

        x = sg.tensor([0.0, 2.0, -1.0], dtype=sg.float64)
        np.testing.assert_array_equal(sg.grad(power)(x).numpy(), 0)
        np.testing.assert_array_equal(sg.grad(slope)(x).numpy(), 0)


FAR = [-700.0, -100.0, -50.0, -20.0, -3.0, -1.0, -1e-9, 0.0, 1.0, 50.0, -INF, INF, NAN]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [1.0, 2.0, 0.5, -1.0])
@pytest.mark.parametrize("name", ["celu", "elu"])
def test_slopes_far_below_zero_keep_their_digits(name: str, alpha: float, dtype: str) -> None:
    """``exp(x / alpha)`` is not 1 more than the value."""

    def slopes(lib: Any) -> Any:
        x = lib.tensor(FAR, dtype=getattr(lib, dtype), requires_grad=True)
        getattr(FUNCTIONAL[lib], name)(x, alpha).sum().backward()
        return x.grad.numpy()

    found, wanted = slopes(sg), slopes(torch)
    tiny = float(np.finfo(dtype).tiny)  # less than that is flushed, or is not
    rtol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=tiny)
    twin = sg.tensor(FAR, dtype=getattr(sg, dtype), requires_grad=True)
    if alpha == 1:
        sg.celu(twin).sum().backward()
        np.testing.assert_array_equal(twin.grad.numpy(), found)


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
@pytest.mark.parametrize("label", [0, 2, -100])
def test_rows_that_weigh_nothing(name: str, label: int) -> None:
    def gradient(lib: Any) -> Any:
        x = lib.tensor([[0.5, -1.0, 2.0]], dtype=lib.float64, requires_grad=True)
        weight = lib.tensor([1.0, 1.0, 0.0], dtype=lib.float64)
        getattr(FUNCTIONAL[lib], name)(x, lib.tensor([label]), weight).backward()
        return x.grad.numpy()

    np.testing.assert_allclose(gradient(sg), gradient(torch), rtol=1e-12)


def test_the_target_of_a_flat_loss_has_its_slope() -> None:
    """At 0 and 1 the logarithms are -100; torch returns the slope of the infinite ones."""
    x, target = sg.tensor([0.0, 1.0, 0.3]), sg.tensor([0.25, 0.5, 0.5], requires_grad=True)
    loss = sg.binary_cross_entropy(x, target, reduction="sum")
    (slope,) = sg.autograd.grad(loss, target)
    higher = sg.binary_cross_entropy(x, target + 0.25, reduction="none")
    lower = sg.binary_cross_entropy(x, target - 0.25, reduction="none")
    np.testing.assert_allclose(slope.numpy(), ((higher - lower) / 0.5).detach().numpy(), rtol=1e-5)
