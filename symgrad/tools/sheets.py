"""``symgrad build --report``: the sheets of a package as one HTML file without anything beside it.

In: sheets.  Out: ``report.html``.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from symgrad.codegen.environment import html_environment
from symgrad.errors import BuildError
from symgrad.manifest import versions
from symgrad.runtime.package import replace_file
from symgrad.sheet import Sheet
from symgrad.tools import accuracy, plots

NAME = "report.html"
MARK = '<meta name="generator" content="symgrad">'


def write(folder: Path, name: str, found: Sequence[Sheet]) -> None:
    """Write the file.  Raises BuildError where another one has its name."""
    path = folder / NAME
    if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
        raise BuildError(
            f"{path} is in the way, and was not written by symgrad", hint="move the file"
        )
    replace_file(path, html(name, found))


def html(name: str, found: Sequence[Sheet]) -> str:
    """The page."""
    environment = html_environment()
    environment.globals |= {
        "row": accuracy.row, "special": accuracy.special_rows, "errors": plots.errors,
        "worst": worst, "special_values": special_values,
    }  # fmt: skip
    scaled = [(one.name, one.scaling.ratios) for one in found if one.scaling is not None]
    template = environment.get_template("report.html.j2")
    return template.render(
        mark=MARK, name=name, sheets=found, versions=versions(), machine=machine(),
        scaling=plots.times("times faster than one thread", scaled) if scaled else "",
    )  # fmt: skip


def worst(one: Sheet, backward: bool) -> str:
    """The worst error of an op's outputs, or of its gradients."""
    chosen = [m for m in one.accuracy.results if m.name.startswith("grad_") == backward]
    found = [m for m in chosen if m.worst is not None]
    if not found:
        return "-"
    most = max(found, key=lambda m: m.worst.error if m.worst else 0.0)
    assert most.worst is not None
    said = f"{most.worst.error:.3g} {accuracy.unit(most)}"
    return f"{said}, not finite at some" if any(m.broken for m in chosen) else said


def special_values(one: Sheet) -> list[str]:
    """The special values of an op, in order."""
    return list(dict.fromkeys(special.value for special in one.accuracy.special))


def machine() -> str:
    """The machine that everything was measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}"
