"""Gradients over shards on Dask: those of the whole batch, the same bits on any workers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import ops
import pytest
from hypothesis import given
from hypothesis import strategies as st

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
import dask.bag as db  # noqa: E402

import symgrad as sg  # noqa: E402
from symgrad.errors import SpecError, SymgradError  # noqa: E402
from symgrad.interop import dask as sgd  # noqa: E402
from symgrad.interop.dask.partials import combined, finished, partial_of  # noqa: E402
from symgrad.interop.dask.sending import Program  # noqa: E402
from symgrad.runtime.carried import CarriedError  # noqa: E402
from tests.runtime.layouts import LAYOUTS  # noqa: E402

pytestmark = [
    pytest.mark.peers,
    pytest.mark.usefixtures("unoptimised"),
    pytest.mark.filterwarnings("default"),  # those of Dask and its event loop are its own
]
RNG = np.random.default_rng(7)
X = RNG.normal(size=(23, 3)).astype(np.float32)
Y = RNG.normal(size=(23, 2)).astype(np.float32)
W = RNG.normal(size=(3, 2)).astype(np.float32)


def loss(w: Any, x: Any, y: Any) -> Any:
    return (sg.tanh(x @ w) - y).pow(2).mean()


LONG = RNG.normal(size=(192, 8)).astype(np.float32)
WIDE = RNG.normal(size=(8, 6)).astype(np.float32)


class Product(sg.Function):
    """Its gradient is a product of matrices by NumPy, with ``x`` as it lies."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g


def applied(w: Any, x: Any) -> Any:
    return Product.apply(x, w).pow(2).mean()


def in_one_process(function: Any = loss) -> tuple[Any, Any]:
    value, grad = sg.value_and_grad(function)(*map(sg.from_numpy, (W, X, Y)))
    return value.numpy(), grad.numpy()


def assert_near(found: tuple[Any, Any], right: tuple[Any, Any]) -> None:
    for one, other in zip(found, right, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=2e-6, atol=1e-7)


def assert_same(found: tuple[Any, Any], right: tuple[Any, Any]) -> None:
    for one, other in zip(found, right, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.fixture
def here() -> Iterator[None]:
    """Dask computes in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers that are processes."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 2}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as found,
        distributed.Client(found) as client,
    ):
        yield client


# -- sums


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40),
    st.integers(1, 9),
    st.sampled_from([2, 4, 8, 16]),
)
def test_sums_are_near_the_exact_ones_and_do_not_depend_on_the_tree(
    values: list[float], rows: int, split_every: int
) -> None:
    """The bound of docs/dask.md, in exact arithmetic."""
    row: list[Any] = [
        partial_of(np.float64(one), rows + place % 2, True) for place, one in enumerate(values)
    ]
    whole = combined(row)
    while len(row) > 1:
        row = [combined(row[at : at + split_every]) for at in range(0, len(row), split_every)]
    assert finished(row[0], True, False) == (found := finished(whole, True, False))
    weights = [rows + place % 2 for place in range(len(values))]
    weighted = [
        weight * Fraction(one) for weight, one in zip(weights, values, strict=True)
    ]  # fmt: skip
    steps = (len(values) - 1).bit_length() + 2
    size = sum((abs(one) for one in weighted), Fraction(0))
    bound = steps * Fraction(1, 2**53) * (1 + Fraction(1, 2**40)) * size
    right = sum(weighted, Fraction(0)) / sum(weights)
    assert abs(Fraction(float(found)) - right) <= bound / sum(weights)


def test_integers_are_added_exactly() -> None:
    row = [partial_of({"right": np.int32(2**31 - 1)}, 1, False) for _ in range(5)]
    assert finished(combined(row), False, False)["right"] == 5 * (2**31 - 1)


# -- batches


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("rows", [(23,), (10, 13), (1, 0, 22), (7, 7, 7, 2)])
def test_uneven_chunks_count_as_many_as_they_are(rows: tuple[int, ...]) -> None:
    x, y = da.from_array(X, chunks=(rows, 3)), da.from_array(Y, chunks=((11, 12), 2))
    assert_near(sgd.value_and_grad(loss)(W, x, y), in_one_process())


@pytest.mark.usefixtures("here")
def test_sums_tensors_and_other_ways_to_give_shards() -> None:
    def total(w: Any, shard: Any) -> Any:
        return (sg.tanh(shard["x"] @ w) - shard["y"]).pow(2).sum()

    shards = [{"x": X[at : at + 5], "y": Y[at : at + 5]} for at in range(0, 23, 5)]
    value, grad = in_one_process()
    right = value * Y.size, grad * Y.size
    step = sgd.value_and_grad(total, reduction="sum")
    tasks = [dask.delayed(dict)(one) for one in shards]
    for batch in (db.from_sequence(shards, npartitions=2), tasks):
        assert_near(step(W, batch), right)
    given_tensor = step(sg.from_numpy(W), tasks)
    assert isinstance(given_tensor[1], sg.Tensor)
    assert_near(step(dask.delayed(W), tasks), right)
    whole = {"x": da.from_array(X, chunks=(6, 3)), "y": da.from_array(Y, chunks=(6, 2))}
    assert_near(step(W, whole), right)


@pytest.mark.usefixtures("here")
def test_chunks_of_unknown_length_are_counted_where_they_are() -> None:
    x, y = da.from_array(X, chunks=(6, 3)), da.from_array(Y, chunks=(6, 2))
    kept = X[:, 0] > 0
    mask = da.from_array(kept, chunks=6)
    found = sgd.value_and_grad(loss)(W, x[mask], y[mask])
    right = sg.value_and_grad(loss)(*map(sg.from_numpy, (W, X[kept], Y[kept])))
    assert_near(found, (right[0].numpy(), right[1].numpy()))


@pytest.mark.usefixtures("here")
def test_counts_of_the_users_own() -> None:
    """A mean over what a mask leaves."""
    mask = (X[:, :1] > 0).astype(np.float32)

    def masked(w: Any, x: Any, mask: Any) -> Any:
        return ((x @ w) * mask).sum() / mask.sum()

    x, m = da.from_array(X, chunks=(6, 3)), da.from_array(mask, chunks=(6, 1))
    step = sgd.value_and_grad(masked, count=lambda w, x, mask: mask.sum().item())
    right = sg.value_and_grad(masked)(*map(sg.from_numpy, (W, X, mask)))
    assert_near(step(W, x, m), (right[0].numpy(), right[1].numpy()))


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_metrics_beside_gradients_of_a_jitted_step() -> None:
    graded = sg.jit(sg.value_and_grad(loss))

    def step(w: Any, x: Any, y: Any) -> Any:
        value, grad = graded(w, x, y)
        return {"loss": value, "grad": grad, "rows": x.shape[0]}

    x, y = da.from_array(X, chunks=(6, 3)), da.from_array(Y, chunks=(6, 2))
    found = sgd.sharded(step, reduction="sum")(W, x, y)
    assert found["rows"] == 23


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("layout", [one for one in LAYOUTS if one != "byte-swapped"])
def test_bits_do_not_depend_on_how_shards_lie_in_memory(layout: str) -> None:
    lie = LAYOUTS[layout]

    def found(put: Any, w: Any) -> Any:
        shards = [dask.delayed(put)(LONG[at : at + 64]) for at in range(0, 192, 64)]
        return sgd.value_and_grad(applied)(w, shards)

    right = found(np.array, WIDE)
    assert_same(found(lie, lie(WIDE)), right)
    assert_same(found(lambda shard: sg.from_numpy(lie(shard)), WIDE), right)


@pytest.mark.usefixtures("here")
def test_a_tensor_that_is_computed_keeps_what_is_asked_of_it() -> None:
    def step(w: Any, x: Any) -> Any:
        applied(w, x).backward()
        return w.grad, w.requires_grad, x.requires_grad

    shards = [dask.delayed(sg.from_numpy)(np.asfortranarray(LONG))]
    weight = dask.delayed(sg.tensor)(WIDE.tolist(), requires_grad=True)
    grad, *asked = sgd.sharded(step, reduction="sum")(weight, shards)
    assert asked == [True, False]
    assert grad.any()


CALLS: dict[str, Any] = {
    "no argument is split": lambda x: (W, X, Y),
    "not chunked along axis 0 alone": lambda x: (W, x.rechunk((23, 1)), Y),
    "are not one batch": lambda x: (W, x, da.from_array(Y[1:], chunks=(6, 2))),
    "is differentiated by": lambda x: (x, X, Y),
    "beside another kind": lambda x: (W, x, db.from_sequence([Y])),
    "split into 4, 1 shards": lambda x: (W, x, [dask.delayed(Y)]),
    "has no rows": lambda x: (W, x[:0], da.from_array(Y[:0])),
    "how many rows a shard has": lambda x: (W, [dask.delayed(3)], 1.0),
}  # fmt: skip


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("told", CALLS)
def test_what_is_no_batch_is_an_error(told: str) -> None:
    with pytest.raises(sgd.ShardError, match=told):
        sgd.value_and_grad(loss)(*CALLS[told](da.from_array(X, chunks=(6, 3))))


@pytest.mark.usefixtures("here")
def test_what_cannot_be_added_or_sent_is_an_error() -> None:
    x = da.from_array(X, chunks=(6, 3))
    with pytest.raises(sgd.ShardError, match="cannot be added"):
        sgd.sharded(lambda x: "text")(x)
    with pytest.raises(sgd.ShardError, match=r"shapes \[\(6, 3\)\] and \[\(5, 3\)\]"):
        sgd.sharded(lambda x: x)(x)
    lock = threading.Lock()
    with pytest.raises(sgd.ShardError, match="cannot be sent"):
        sgd.sharded(lambda x: lock)(x)
    for wrong in ({"reduction": "max"}, {"split_every": 6}):
        with pytest.raises(SpecError):
            sgd.sharded(loss, **wrong)


def test_a_program_that_was_altered_is_not_unpickled() -> None:
    program = Program(loss)
    program.data = program.data[:-1] + b"?"
    with pytest.raises(CarriedError, match="altered"):
        program.function()


# -- workers


@pytest.mark.slow
def test_the_same_bits_on_any_number_of_workers(cluster: Any) -> None:
    op = sg.compile(ops.Gelu, "f32[n m]")

    def through_op(w: Any, x: Any, y: Any) -> Any:
        return (op(x @ w) * y).mean()

    x, y = da.from_array(X, chunks=(5, 3)), da.from_array(Y, chunks=(5, 2))
    found = sgd.value_and_grad(through_op)(W, x, y)
    assert_near(found, in_one_process(through_op))
    parted = sgd.value_and_grad(through_op, split_every=2)
    with dask.config.set(scheduler="synchronous"):
        assert_same(found, parted(W, x, y))
    assert_same(found, parted(cluster.scatter(W), x, y))


@pytest.mark.slow
def test_a_function_that_is_applied_has_the_same_bits_on_workers(cluster: Any) -> None:
    step = sgd.value_and_grad(applied)
    apart = da.from_array(np.repeat(LONG, 2, axis=1)[:, ::2], chunks=(64, 8))
    with dask.config.set(scheduler="synchronous"):
        right = step(WIDE, apart)
    for _ in range(3):  # what is sent lies at other bytes each time
        assert_same(step(WIDE, apart), right)


@pytest.mark.slow
def test_kernels_are_sent_ahead(cluster: Any) -> None:
    op: Any = sg.compile(ops.Gelu, "f32[n m]")
    cluster.register_plugin(sgd.Kernels(op))
    x = da.from_array(X, chunks=(12, 3))
    np.testing.assert_array_equal(x.map_blocks(op, dtype=np.float32).compute(), op(X))
    found = cluster.submit(lambda: str(op.library_path), pure=False).result()
    assert Path(found).parent != Path(op.library_path).parent  # that which came along


def deadly(number: int, folder: str, deaths: int) -> Any:
    """A shard whose worker dies as it is made, so many times."""
    if number == 2:
        for death in range(deaths):
            mark = Path(folder) / str(death)
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
    return X[number::4], Y[number::4]


@pytest.mark.slow
def test_a_killed_worker_is_survived_unless_all_are(cluster: Any, tmp_path: Path) -> None:
    def pair(w: Any, shard: Any) -> Any:
        return loss(w, *shard)

    def shards(folder: Path, deaths: int) -> list[Any]:
        folder.mkdir()
        return [dask.delayed(deadly)(number, str(folder), deaths) for number in range(4)]

    step = sgd.value_and_grad(pair)
    found = step(W, shards(tmp_path / "once", 1))
    assert (tmp_path / "once" / "0").exists()
    assert_near(found, in_one_process())
    with dask.config.set(scheduler="synchronous"):
        assert_same(found, step(W, shards(tmp_path / "never", 0)))
    with pytest.raises(sgd.ClusterError, match="died again and again"):
        step(W, shards(tmp_path / "always", 100))
    assert issubclass(sgd.ClusterError, SymgradError)


@pytest.mark.slow
def test_progress(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = da.from_array(X, chunks=(12, 3)), da.from_array(Y, chunks=(12, 2))
    step = sgd.value_and_grad(loss, progress=True)
    found = step(W, x, y)
    assert "100%" in capsys.readouterr().out
    with dask.config.set(scheduler="synchronous"):
        assert_same(step(W, x, y), found)
    assert "100%" in capsys.readouterr().out
