"""The examples that most of these tests call, compiled once a session."""

from __future__ import annotations

import pytest

from symgrad.runtime.op import CompiledOp
from tests.runtime import examples


@pytest.fixture(scope="session")
def softplus() -> CompiledOp:
    return examples.SOFTPLUS.op()


@pytest.fixture(scope="session")
def matmul() -> CompiledOp:
    return examples.MATMUL.op()


@pytest.fixture(scope="session")
def pick() -> CompiledOp:
    return examples.PICK.op()


@pytest.fixture(scope="session")
def keep() -> CompiledOp:
    return examples.KEEP.op()


@pytest.fixture(scope="session")
def gated() -> CompiledOp:
    return examples.GATED.op()
