"""Kernels compiled for these tests go to a cache of their own, emptied afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from symgrad.runtime.op import CompiledOp
from tests.runtime import examples


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYMGRAD_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def softplus(_own_cache: Path) -> CompiledOp:
    return examples.SOFTPLUS.op()


@pytest.fixture(scope="session")
def matmul(_own_cache: Path) -> CompiledOp:
    return examples.MATMUL.op()


@pytest.fixture(scope="session")
def pick(_own_cache: Path) -> CompiledOp:
    return examples.PICK.op()


@pytest.fixture(scope="session")
def keep(_own_cache: Path) -> CompiledOp:
    return examples.KEEP.op()


@pytest.fixture(scope="session")
def gated(_own_cache: Path) -> CompiledOp:
    return examples.GATED.op()
