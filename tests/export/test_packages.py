"""Generated packages are exported without symgrad and without a compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.export.programs import SPECS, Weighted

pytest.importorskip("torch")
jax = pytest.importorskip("jax")
pytestmark = pytest.mark.peers

PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("symgrad", "jinja2", "cffi", "setuptools"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Absent())

import kernels
assert not {"torch", "jax"} & set(sys.modules)
import jax, pickle, torch

op = kernels.export_torch.custom_op(kernels.weighted, name="prod::weighted")
x = torch.ones(2, 3, requires_grad=True)
op(x, 0.5, k=3)[1].sum().backward()
assert torch.equal(x.grad, torch.full((2, 3), 3.0)), x.grad
assert pickle.loads(pickle.dumps(op)) is op
try:
    op(x.double())
except kernels._runtime.errors.KernelTypeError as error:
    assert "to(torch.float32)" in str(error)
function = kernels.export_jax.function(kernels.weighted)
text = jax.jit(function).lower(jax.numpy.ones((2, 3))).as_text()
assert "custom_call @weighted_" in text and "callback" not in text, text
found = jax.grad(lambda x: function(x, 0.5, k=3)[1].sum())(jax.numpy.ones((2, 3)))
assert (found == 3).all(), found
"""


@pytest.mark.slow
def test_a_package_needs_neither_symgrad_nor_a_compiler(tmp_path: Path) -> None:
    from symgrad.compiler import build

    build([Weighted], tmp_path / "kernels", specs=SPECS[Weighted])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, text=True, capture_output=True,
        env={"PATH": "/nonexistent", "CC": "/bin/false", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
