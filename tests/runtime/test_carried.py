"""Ops on their way to another process: small, whole, and nothing in them that was altered."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import ops
import pytest

import symgrad as sg
from symgrad.runtime import carried, op
from symgrad.runtime.carried import CarriedError, Machine
from symgrad.runtime.op import CompiledOp

pytestmark = pytest.mark.usefixtures("unoptimised")
X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


class Scaled(sg.Function):
    """Shapes that nobody states, and a plain number."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float = 2.0) -> Any:
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scale, None


_SCRIPT = """
import pickle, sys
import numpy as np
import symgrad as sg
from symgrad.runtime import carried

pieces, data, x = pickle.load(open(sys.argv[1], "rb"))
carried.keep(pieces)
op = pickle.loads(data)
given = sg.from_numpy(x).requires_grad_()
op(given).sum().backward()
out = op(x), given.grad.numpy(), op.module._library.programs is not None
pickle.dump((*out, len(pickle.dumps(op))), open(sys.argv[2], "wb"))
"""


@pytest.fixture(scope="module")
def gelu() -> CompiledOp:
    found = sg.compile(ops.Gelu, "f32[n m]")
    assert isinstance(found, CompiledOp)
    return found


def collected(one: CompiledOp) -> tuple[carried.Pieces, bytes]:
    """An op pickled as its manifest, and its pieces."""
    with carried.collecting() as pieces:
        return pieces, pickle.dumps(one)


def elsewhere(
    tmp_path: Path, pieces: carried.Pieces, data: bytes, **environment: str
) -> tuple[np.ndarray, np.ndarray, bool, int]:  # fmt: skip
    """What an op computes in a process, with a cache, of its own."""
    given, found = tmp_path / "given", tmp_path / "found"
    given.write_bytes(pickle.dumps((pieces, data, X)))
    places = {"PYTHONPATH": ":".join(sys.path), "SYMGRAD_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT, str(given), str(found)], check=True,
        env={"PATH": "/usr/bin:/bin", **places, **environment},
    )  # fmt: skip
    result: tuple[np.ndarray, np.ndarray, bool, int] = pickle.loads(found.read_bytes())
    return result


def expected(one: CompiledOp) -> tuple[np.ndarray, np.ndarray]:
    y, residuals = one.forward(X)
    return y, one.backward(residuals, np.ones_like(y))[0]


def compiled_files(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache").rglob("*.c"))


@pytest.mark.slow
def test_the_library_is_run_where_it_was_built_for(gelu: CompiledOp, tmp_path: Path) -> None:
    pieces, data = collected(gelu)
    y, grad, on_numpy, _ = elsewhere(tmp_path, pieces, data, CC="there-is-no-such-compiler")
    assert not on_numpy
    assert not compiled_files(tmp_path)
    for found, right in zip((y, grad), expected(gelu), strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.slow
def test_without_pieces_the_texts_come_along_and_are_compiled(
    gelu: CompiledOp, tmp_path: Path
) -> None:
    data = pickle.dumps(gelu)
    y, grad, on_numpy, again = elsewhere(tmp_path, {}, data)
    assert not on_numpy
    assert compiled_files(tmp_path)
    assert again == pytest.approx(len(data), rel=0.5)
    for found, right in zip((y, grad), expected(gelu), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5)


@pytest.mark.slow
def test_numpy_computes_where_there_is_neither_library_nor_compiler(
    gelu: CompiledOp, tmp_path: Path
) -> None:
    data = pickle.dumps(gelu)
    y, grad, on_numpy, _ = elsewhere(tmp_path, {}, data, CC="there-is-no-such-compiler")
    assert on_numpy
    for found, right in zip((y, grad), expected(gelu), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5)


def test_an_op_is_small(gelu: CompiledOp) -> None:
    pieces, data = collected(gelu)
    texts = sum(map(len, pieces.values()))
    assert len(data) < 4096
    assert len(data) < len(pickle.dumps(gelu)) < texts / 2


def test_it_is_the_op_that_it_was(gelu: CompiledOp) -> None:
    again = pickle.loads(pickle.dumps(gelu))
    np.testing.assert_array_equal(again(X), gelu(X))
    assert again.name == gelu.name
    assert again.origin.function is ops.Gelu
    assert pickle.loads(pickle.dumps(gelu)).module is again.module


@pytest.mark.filterwarnings("ignore:.*symgrad inferred")
def test_ops_of_inferred_shapes_with_plain_numbers_and_on_numpy_arrive_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = sg.compile(Scaled)
    monkeypatch.setenv("CC", "there-is-no-such-compiler")
    with pytest.warns(sg.NumpyBackendWarning):
        on_numpy = sg.compile(Scaled)
    monkeypatch.undo()
    for one in (made, on_numpy):
        arrived = pickle.loads(pickle.dumps(one))
        assert isinstance(arrived, CompiledOp)
        for scale in (2.0, -0.5):
            np.testing.assert_array_equal(arrived(X, scale), X * np.float32(scale))
        given = sg.from_numpy(X).requires_grad_()
        arrived(given, scale=3.0).sum().backward()
        np.testing.assert_array_equal(given.grad.numpy(), np.full_like(X, 3))


def test_altered_pieces_are_refused(gelu: CompiledOp, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, data = collected(gelu)
    monkeypatch.setattr(carried, "_kept", {})
    monkeypatch.setattr(op, "_there", {})
    for name, piece in pieces.items():
        if piece:
            with pytest.raises(CarriedError, match="altered"):
                carried.keep({name: piece[:-1] + bytes([piece[-1] ^ 1])})
    assert not carried._kept
    with pytest.raises(CarriedError, match="not in this process"):
        pickle.loads(data)


def test_a_library_that_was_altered_in_the_cache_is_not_loaded(
    gelu: CompiledOp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another file of the same name, with its digest in the cache beside it."""
    pieces, data = collected(gelu)
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(op, "_there", {})
    written = carried._write
    monkeypatch.setattr(carried, "_write", lambda path, data: written(path, data + b"\0"))
    carried.keep(pieces)
    arrived = pickle.loads(data)
    assert arrived.library_path.with_name("gelu.c").exists()  # compiled in its place
    np.testing.assert_allclose(arrived(X), gelu(X), rtol=1e-5)


def test_a_library_runs_on_processors_that_have_what_it_uses() -> None:
    built = Machine("linux x86_64", ".abi3.so", frozenset({"avx", "avx2"}))
    assert built.runs_on(replace(built, features=built.features | {"avx512f"}))
    assert not built.runs_on(replace(built, features=frozenset({"avx"})))
    assert not built.runs_on(replace(built, suffix=".cpython-310.so"))
    assert not built.runs_on(replace(built, system="darwin arm64"))
    unknown = replace(built, features=frozenset())
    assert not unknown.runs_on(unknown)
