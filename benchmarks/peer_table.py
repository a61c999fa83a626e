"""The log of a comparison with peers as a table.

In: the lines of the log, and the machine.  Out: ``benchmarks/PEERS.md``.
"""

from __future__ import annotations

import platform
import statistics
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.peer_rows import ROWS

Cell = dict[str, Any]
TABLE = Path(__file__).with_name("PEERS.md")
FORMS = "symgrad", "symgrad out="  # what is ours in a line: fresh outputs, or in place
LEVEL = 0.97  # a ratio below which a row is lost
OUT_OF_CACHE = 10**6  # elements from which a time is compared with the limit of the memory
HEAD = """# Forward + backward beside torch and JAX

Each line: the median of rounds in turn, in µs; the best of the peers; how many times longer it
takes than symgrad, with fresh outputs and with `out=`; for large arrays, how many times longer
symgrad takes than the limit of the machine, which is the larger of the time for the bytes that are
read and written at least and the time for the multiplications of products. One thread is measured
in processor time, more in wall time.

"""
COLUMNS = (
    "| op | elements | dtype | threads | symgrad | `out=` | best peer | ratio | `out=` | limit |\n"
    "|---|--:|---|--:|--:|--:|---|--:|--:|--:|\n"
)


def write(lines: Sequence[Cell]) -> None:
    """Write the table of a log."""
    machines = {line["cell"][1]: line for line in lines if line["cell"][0] == "machine"}
    cells = sorted((line for line in lines if line["cell"][0] != "machine"), key=_place)
    done = [line for line in cells if "times" in line]
    parts = [HEAD, _machine(machines), _summary(done), COLUMNS]
    parts += [_line(line, machines[line["cell"][3]]) for line in done]
    parts += [f"\nNot measured: {_named(line)}: {line['failed']}\n" for line in cells
              if "failed" in line]  # fmt: skip
    TABLE.write_text("".join(parts))


def _place(line: Cell) -> tuple[int, str, int, int]:
    """By threads and dtypes, then as rows are listed, then by sizes."""
    name, elements, dtype, threads = line["cell"]
    return threads, dtype, [row.name for row in ROWS].index(name), elements


def _machine(machines: dict[int, Cell]) -> str:
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in info.split("\n") if "model name" in line]
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "jax", "numpy"))
    text = f"{names[0] if names else platform.processor()}, {len(names)} cores; {versions}.\n"
    for threads, line in sorted(machines.items()):
        text += (
            f"With {threads} thread{'s' * (threads > 1)}: {line['bytes'] / 1e9:.1f} GB/s of"
            f" `a + b`, {line['flops'] / 1e9:.0f} Gflop/s of a product (torch, f32),"
            f" at a load of {line['load']:.1f}.\n"
        )
    return text + "\n"


def _ratios(line: Cell) -> tuple[str, float, float]:
    """The best peer, and its time over ours: fresh, and with ``out=``."""
    fresh, out = (line["times"][name] for name in FORMS)
    peers = {name: time for name, time in line["times"].items() if name not in FORMS}
    best = min(peers, key=lambda name: peers[name])
    return best, peers[best] / fresh, peers[best] / out


def _summary(done: Sequence[Cell]) -> str:
    ratios = {_named(line): _ratios(line) for line in done}
    if not ratios:
        return ""
    fresh = statistics.geometric_mean(ratio for _, ratio, _ in ratios.values())
    out = statistics.geometric_mean(ratio for _, _, ratio in ratios.values())
    counts = Counter(name for line in done for name in line["times"] if name not in FORMS)
    beside = ", ".join(f"{name} in {count}" for name, count in counts.items())
    behind = [f"{name} {one[1]:.2f}" for name, one in ratios.items() if one[1] < LEVEL]
    return (
        f"Geometric mean over {len(ratios)} lines: {fresh:.2f} fresh, {out:.2f} with `out=`."
        f" Peers: {beside} of them. Behind the best: {'; '.join(behind) or 'none'}.\n\n"
    )


def _line(line: Cell, machine: Cell) -> str:
    name, elements, dtype, threads = line["cell"]
    times = line["times"]
    best, fresh, out = _ratios(line)
    slower = 2 if dtype == "float64" else 1
    limit = max(line["bytes"] / machine["bytes"], slower * line["flops"] / machine["flops"])
    above = f"{times[FORMS[0]] / limit:.2f}" if elements >= OUT_OF_CACHE else ""
    return (
        f"| {name} | {elements:.0e} | {dtype} | {threads} | {times[FORMS[0]] * 1e6:.1f}"
        f" | {times[FORMS[1]] * 1e6:.1f} | {best} {times[best] * 1e6:.1f}"
        f" | {fresh:.2f} | {out:.2f} | {above} |\n"
    )


def _named(line: Cell) -> str:
    name, elements, dtype, threads = line["cell"]
    return f"{name} ({elements:.0e}, {dtype}, {threads})"
