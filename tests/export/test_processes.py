"""Exported ops in two processes that average their gradients."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = [pytest.mark.peers, pytest.mark.slow]

PROGRAM = """
import sys, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from symgrad import generated
from symgrad.export import torch as export

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 2)
        self.scale = torch.nn.Parameter(torch.ones(8))
        self.gelu = export.custom_op(generated.nn_gelu)
        self.norm = export.function(generated.nn_rms_norm).apply

    def forward(self, x):
        return self.last(self.norm(self.gelu(self.first(x)), self.scale))

rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
torch.manual_seed(0)
net, data = Net(), torch.randn(8, 6)
spread = DistributedDataParallel(net)
for _ in range(2):
    net.zero_grad()
    spread(data[rank::2]).square().mean().backward()
mean = [one.grad.clone() for one in net.parameters()]
net.zero_grad()
net(data).square().mean().backward()
torch.testing.assert_close(mean, [one.grad for one in net.parameters()])
dist.barrier()
dist.destroy_process_group()
"""


def test_two_processes_average_their_gradients(tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), str(tmp_path / "store")],
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [one.communicate()[1] for one in running]
    assert [one.returncode for one in running] == [0, 0], "\n".join(said)
