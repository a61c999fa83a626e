"""The example of Dask: a worker is killed, and the gradient is that of one process."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")

import dask_gradient

pytestmark = [
    pytest.mark.peers,
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # those of Dask and its event loop are its own
]


def test_the_gradient_has_no_more_error_than_is_stated(capsys: pytest.CaptureFixture[str]) -> None:
    assert dask_gradient.main(["--gigabytes", "0.0011", "--megabytes", "0.2"]) <= 1
    out = capsys.readouterr().out
    assert "1074 rows in 6 shards, 2 workers, one killed" in out
    assert out.endswith("in one process: True\n")
