"""Each call of ``torch_calls.txt`` has the values and the gradients that torch gives."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.interop.torch_calls import check, texts

pytestmark = [
    pytest.mark.peers, pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of torch, about unusual settings
]  # fmt: skip


@pytest.mark.parametrize("text", texts())
def test_as_torch(text: str) -> None:
    check(text)
