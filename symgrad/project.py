"""A package of kernels as an ordinary project: what ``pip wheel``, ``pytest`` and ``cmake`` read.

In: the ops of a package and their samples.  Out: the texts around ``src/<package>``.

Each text says at its top that symgrad wrote it.  One that says so no more is the user's, and stays.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symgrad.abi import ALIGNMENT, OUT_OF_RANGE, STATUSES, TOO_LARGE, Op, Value
from symgrad.calls_in_c import SampleView, views
from symgrad.codegen.environment import environment
from symgrad.errors import BuildError
from symgrad.manifest import proved, shown
from symgrad.runtime.blas import FUNCTIONS
from symgrad.runtime.compiler import ARITHMETIC, WRAP
from symgrad.runtime.libraries import read_op, stems
from symgrad.runtime.package import PackagedOp, abandoned, replace_file
from symgrad.runtime.team_c import TEAM

MARK = "Written by symgrad build; without this line it is yours, and is not written again."
VERSION = "0.1.0"
NUMPY, CFFI, OPENBLAS = "numpy>=1.26", "cffi>=1.16", "scipy-openblas32>=0.3.27"
COMPILE = ("platformdirs>=4", "filelock>=3.13")  # where no library was built, and a compiler is

# What a package and its build import from elsewhere: one of these names would be in the way.
_TAKEN = {
    *(re.split(r"\W", one, maxsplit=1)[0] for one in (NUMPY, CFFI, *COMPILE)),
    *("scipy_openblas32", "symgrad", "jax", "torch", "pycparser", "setuptools", "pip", "pytest"),
}
_LEFT = "/build/\n/src/*.egg-info/\n"  # what pip wheel and cmake leave
_CONSTANTS = {OUT_OF_RANGE: "OUT_OF_RANGE", TOO_LARGE: "TOO_LARGE"}  # in C, behind the macro


@dataclass(frozen=True)
class OpView:
    """A row of the table of ops: what it takes and gives, what was proved, and of the C shown.

    ``values``: its plain arguments, each with its value in words.
    """

    name: str
    inputs: str
    values: tuple[str, ...]
    outputs: str
    proof: str
    validation: str


@dataclass(frozen=True)
class StatusView:
    """What a number that a kernel returns is called, and what it means."""

    number: int
    name: str
    text: str


@dataclass(frozen=True)
class ProjectView:
    """All that the templates are shown.

    ``macro``: what macros of C begin with; ``flags``: options that the arithmetic rests on;
    ``wrap``: the option of the linker that ``team.c`` needs; ``blas``: the functions of the BLAS
    that are called.
    """

    mark: str
    name: str
    version: str
    ops: tuple[OpView, ...]
    requires: tuple[str, ...]
    build_requires: tuple[str, ...]
    compile_requires: tuple[str, ...]
    macro: str
    sources: tuple[str, ...]
    headers: tuple[str, ...]
    flags: tuple[str, ...]
    wrap: str
    blas: tuple[str, ...]
    alignment: int
    samples: tuple[SampleView, ...]
    statuses: tuple[StatusView, ...]


def check_name(name: str) -> None:
    """Can it be the name of a package?  Raises BuildError."""
    plain = name.isascii() and name.isidentifier() and not name.startswith("_")
    if not plain or keyword.iskeyword(name):
        raise BuildError(
            f"{name!r} cannot be the name of a package", hint="letters, digits and _: my_kernels"
        )
    if name.lower() in _TAKEN or name in sys.stdlib_module_names:
        raise BuildError(
            f"a package called {name} would be imported in the place of another one",
            hint=f"choose another name: {name}_kernels",
        )


def source_folder(folder: Path, name: str) -> Path:
    """Where the package lies in its project."""
    return folder / "src" / name


def project_files(
    name: str, made: Sequence[tuple[PackagedOp, Sequence[Mapping[str, Any]]]]
) -> dict[str, str]:
    """The texts of a project by their paths; the same bytes for the same input.

    ``made``: ops, and calls of each with the values that they give.
    """
    made = sorted(made, key=lambda one: one[0].stem)
    view = _view(name, made)
    load = environment().get_template
    texts = {
        path: load(f"project_{template}.j2").render(project=view)
        for path, template in (
            ("pyproject.toml", "pyproject.toml"), ("setup.py", "setup.py"),
            ("MANIFEST.in", "manifest.in"), ("README.md", "readme.md"),
            (f"tests/test_{name}.py", "test.py"),
            (f"tests/test_{name}.c", "test.c"), ("CMakeLists.txt", "cmakelists.txt"),
            (f"cmake/{name}Config.cmake.in", "config.cmake"),
            (f"cmake/{name}.pc.in", "pkgconfig.pc"), (f"include/{name}.h", "header.h"),
        )
    }  # fmt: skip
    texts["cmake/team.c"] = f"/* {MARK} */\n#include <omp.h>\n{TEAM}"
    texts[".gitignore"] = f"# {MARK}\n{_LEFT}"
    values = {"mark": MARK, "ops": {op.stem: list(samples) for op, samples in made}}
    texts["tests/values.json"] = json.dumps(values, indent=1, sort_keys=True) + "\n"
    return texts


def needed(folder: Path) -> tuple[str, ...]:
    """What a written package requires."""
    names = (folder / f"{stem}.py" for stem in stems(folder))
    return _needed(read_op(name.read_text(encoding="utf-8")) for name in names)


def _needed(records: Iterable[Op]) -> tuple[str, ...]:
    return (NUMPY, CFFI, *((OPENBLAS,) if any(one.blas for one in records) else ()))


def _view(name: str, made: Sequence[tuple[PackagedOp, Sequence[Mapping[str, Any]]]]) -> ProjectView:
    ops = [op for op, _ in made]
    records = {op.stem: read_op(op.wrapper) for op in ops}
    needed = _needed(records.values())
    text = "".join(one for op in ops if records[op.stem].blas for one in op.texts.values())
    return ProjectView(
        mark=MARK,
        name=name,
        version=VERSION,
        ops=tuple(_row(op, records[op.stem]) for op in ops),
        requires=needed,
        build_requires=needed[1:],
        compile_requires=COMPILE,
        macro=name.upper(),
        sources=tuple(file for one in records.values() for file in one.files),
        headers=tuple(one.header for one in records.values()),
        flags=ARITHMETIC,
        wrap=" ".join(WRAP),
        blas=tuple(function for function in FUNCTIONS if f"{function}(" in text),
        alignment=ALIGNMENT,
        samples=tuple(one for op, samples in made for one in views(records[op.stem], samples)),
        statuses=tuple(
            StatusView(number, _CONSTANTS[said], said) for number, said in enumerate(STATUSES, 1)
        ),
    )


def _row(op: PackagedOp, record: Op) -> OpView:
    case = record.cases[0]
    inputs, outputs = (", ".join(map(str, arrays)) for arrays in (case.inputs, case.outputs))
    values = tuple(map(_worded, record.values))
    return OpView(op.stem, inputs, values, outputs, proved(op.record), shown(op.record))


def _worded(value: Value) -> str:
    """``k=2`` fixed; ``alpha``, 2.0 by default."""
    if not value.number:
        return f"`{value.name}={value.text}` fixed"
    default = f", {value.text} by default" if value.text else ""
    return f"`{value.name}`, a number{default}{value.condition and f', {value.condition}'}"


def write_project(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write what is not there, or was written by symgrad; return what was left alone."""
    kept = []
    try:
        for path in abandoned(folder, files):
            path.unlink(missing_ok=True)
        for name, text in files.items():
            path = folder / name
            before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
            if before is not None and before != text and MARK not in before:
                kept.append(path)
            elif before != text:
                replace_file(path, text)
    except OSError as error:
        raise BuildError(
            f"{folder} cannot be written: {error.strerror or error}",
            hint="choose a folder that can be written",
        ) from error
    return kept
