"""What a trace of a function of complex tensors computes is what torch computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from symgrad.frontend.trace import trace  # noqa: E402
from symgrad.passes.evaluate import evaluate  # noqa: E402
from tests.frontend.support import case_for  # noqa: E402

pytestmark = pytest.mark.peers

SPECS = {"x": "f64[n m]", "y": "f64[n m]", "v": "f64[m k]", "w": "f64[m k]", "t": "f64[n m 2]"}
SIZES = ({"n": 2, "m": 3, "k": 2}, {"n": 4, "m": 4, "k": 3}, {"n": 1, "m": 1, "k": 1})
CONSTANT = torch.tensor(0.5 - 2j, dtype=torch.complex128)
TEXTS = """
z + u
z + x
x + z
x - z
z - 2
2j - z
torch.add(z, u, alpha=2)
torch.sub(z, x, alpha=3j)
z * u
z * x
x * z
x * 1j
x + 0j
x * 0j
(1 + 2j) * z
z * CONSTANT
CONSTANT - z
x * CONSTANT
z / u
z / x
x / z
1j / z
z / (2 + 1j)
x / 2j
-z
z.neg()
z.conj()
z.conj().conj()
torch.conj(z) * z
z.conj().imag
z.conj().resolve_conj()
z.conj_physical()
z.real
z.imag
torch.real(z) + torch.imag(z)
z.abs()
abs(z)
z.angle()
x.angle()
torch.angle(x[0]) * y
(x > 0).angle()
z ** 2
z ** 0
z ** 0.5
z ** 2.5
z ** -1.5
z ** 6
z ** -3
z ** 11
z.norm()
z.norm(dim=-1)
z.norm(p=1)
z.norm(2, (0, 1), keepdim=True)
torch.norm(z, dim=0, keepdim=True)
z.norm(float("inf"), 0)
z.norm("fro")
torch.linalg.norm(z)
torch.linalg.norm(z, dim=1)
torch.linalg.norm(z, "fro", dim=(-1, 0))
torch.linalg.norm(z[0], 3)
torch.linalg.vector_norm(z, 3, dim=-1)
torch.linalg.vector_norm(z, ord=1)
torch.linalg.matrix_norm(z)
z ** -1
z.pow(3)
z.square()
z.reciprocal()
torch.exp(z)
torch.exp(1j * x)
torch.log(z)
torch.polar(x.abs(), y)
z.sqrt()
torch.sin(z)
torch.cos(z)
z.sinh()
z.cosh()
torch.tanh(z)
torch.sigmoid(z)
torch.sgn(z)
torch.sgn(z * (x > 0))
torch.nn.functional.linear(z, c.T, c[0])
torch.nn.functional.linear(z, c.T)
torch.view_as_complex(t)
torch.view_as_real(z)
torch.view_as_real(z * u).flatten(-2)
torch.view_as_complex(x.reshape(-1)[:1].repeat(2))
z @ c
torch.matmul(z.mH, u)
torch.mm(z, c)
torch.einsum("nm,mk->nk", z, c)
torch.einsum("nm,mk,nm->k", z, c, u)
torch.outer(z[0], u[0])
torch.vdot(z[0], u[0])
torch.dot(z[0], u[0])
z.sum()
z.sum(-1)
z.sum((0, 1), keepdim=True)
z.mean(0)
z.cumsum(1)
z.flip(0)
z.roll(1, 1)
z.tril()
torch.cat([z, x, u], 0)
torch.cat([z, u], dim=-1)
torch.stack([z, u])
torch.stack([z, u], -1)
torch.where(x > 0, z, u)
torch.where(x > 0, z, 0)
torch.where(x > 0, 1j, z)
z.masked_fill(x > 0, 2)
torch.nn.functional.pad(z, (1, 0))
z.t()
z.T
z.mT
z.H
z.mH
z.transpose(-1, 0)
torch.transpose(z, 0, 1)
z.permute(1, 0)
z.permute((-1, 0))
z[None].movedim(0, -1)
z.unsqueeze(-1)
z.unsqueeze(0)
z.unsqueeze(-1).squeeze(-1)
z[0]
z[:, 0]
z[..., 0]
z[..., None]
z[None, ..., :1]
z[:, torch.zeros(2, dtype=torch.long)]
z.select(-1, 0)
z.narrow(-1, 0, 1)
z.chunk(1, -1)[0]
torch.stack([z, u]).unbind()[1]
torch.stack([z, u], -1).split(1, dim=-1)[1]
z.reshape(-1)
z.view(-1)
z.reshape(z.shape[1], z.shape[0])
z.flatten()
z.view_as(x)
z[None].expand(3, -1, -1)
z[0].expand_as(z)
z.repeat(2, 1)
z.contiguous()
z.clone()
z.detach()
z.to(torch.complex128)
x.to(torch.complex128)
z.to(u)
x.cdouble()
torch.zeros_like(z) + 1
torch.ones_like(z)
torch.zeros_like(z, dtype=torch.float64)
torch.zeros(3, dtype=torch.complex128) + x[0, 0]
x.new_zeros(2, dtype=torch.complex128)
torch.fft.fft(z)
torch.fft.fft(x)
torch.fft.fft(z, dim=0)
torch.fft.fft(z, n=2)
torch.fft.fft(z, n=5, norm="ortho")
torch.fft.ifft(z)
torch.fft.ifft(z, norm="forward")
torch.fft.fft(z, norm="forward")
torch.fft.ifft(z, 3, 0, "ortho")
torch.fft.rfft(x)
torch.fft.rfft(x, n=4)
torch.fft.rfft(x, n=2 * x.shape[-1], norm="ortho")
torch.fft.rfft(x, dim=0, norm="forward")
torch.fft.irfft(z, n=x.shape[-1])
torch.fft.irfft(z, n=4, norm="ortho")
torch.fft.irfft(z, n=5, dim=0)
torch.fft.irfft(x, n=3, norm="forward")
torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1])
torch.fft.irfft(torch.cat([z, u], -1))
torch.fft.hfft(z, n=4)
torch.fft.hfft(z, n=5, norm="ortho")
torch.fft.ihfft(x)
torch.fft.ihfft(x, n=3, norm="forward")
torch.fft.fft2(z)
torch.fft.ifft2(z, norm="ortho")
torch.fft.rfft2(x)
torch.fft.rfft2(x, s=(3, 4))
torch.fft.irfft2(z, s=(2, 3))
torch.fft.irfftn(z, s=(4,), norm="forward")
torch.fft.fftn(t)
torch.fft.rfftn(t, dim=(0, 1))
torch.fft.ifftn(z, s=(2, -1))
torch.fft.fftfreq(x.shape[0])
torch.fft.fftfreq(2 * x.shape[0], d=0.5, dtype=torch.float64) * torch.ones_like(z[0, 0])
torch.fft.rfftfreq(x.shape[1], 2.0)
1j * torch.fft.rfftfreq(x.shape[1], dtype=torch.float64) * torch.fft.rfft(x)
torch.fft.fftshift(z)
torch.fft.fftshift(x, dim=-1)
torch.fft.ifftshift(z, dim=(0,))
""".strip().splitlines()
WRITES = """
z += u
z -= 1j
z *= x
z /= u
z.mul_(2j)
z.add_(u, alpha=2)
z.copy_(u)
z.copy_(x)
z.zero_()
z.fill_(1 - 1j)
z[..., 0] = u[..., 0]
z[0] = 1j
z[:, 0] += u[:, 0]
z.real.mul_(3)
z.real = y
z.imag = 2.0
z.imag += x
z.copy_(torch.empty_like(z).fill_(1j))
w = torch.empty(2, dtype=torch.complex128); w.real = x[0, :1]; w.imag = w.real; z += w[0]
z.imag[0] = 2
z.conj().imag.copy_(y)
z.conj().mul_(1j)
z.t()[0] = 4
torch.view_as_real(z)[..., 0].add_(1)
torch.view_as_real(z).flatten()[0] = 7
""".strip().splitlines()


def _function(body: str) -> Any:
    given = ", ".join(SPECS)
    space: dict[str, Any] = {"torch": torch, "CONSTANT": CONSTANT}
    exec(f"def run({given}):\n"
         "    z, u, c = torch.complex(x, y), torch.complex(y, x - 1), torch.complex(v, w)\n"
         f"{body}\n"
         "    return torch.view_as_real(out.resolve_conj()) if out.is_complex() else out.clone()",
         space)  # fmt: skip
    exec(f"def forward(ctx, {given}):\n    return run({given})", space)
    members = {
        "forward": staticmethod(space["forward"]),
        "backward": staticmethod(lambda ctx, g: (None,) * len(SPECS)),
    }
    return type("Run", (torch.autograd.Function,), members)


def _is_as_torch(function: Any) -> None:
    graphs = trace(function, *SPECS.values())
    for sizes in SIZES:
        random = np.random.default_rng(7)
        shapes = [[sizes.get(one) or int(one) for one in spec[4:-1].split()]
                  for spec in SPECS.values()]  # fmt: skip
        arrays = {
            name: random.normal(size=shape) for name, shape in zip(SPECS, shapes, strict=True)
        }
        wanted = function.forward(None, *(torch.tensor(one) for one in arrays.values())).numpy()
        (found,) = evaluate(case_for(graphs, sizes).outputs, arrays, sizes)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("text", TEXTS)
def test_as_torch(text: str) -> None:
    _is_as_torch(_function(f"    out = {text}"))


@pytest.mark.parametrize("text", WRITES)
def test_what_is_written_is_written_as_in_torch(text: str) -> None:
    lines = ["shown, turned = z.real, z.conj()", text, "out = torch.stack([z, turned, shown + 0j])"]
    _is_as_torch(_function("".join(f"    {line}\n" for line in lines)))
