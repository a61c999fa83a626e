"""The libraries of a package: which there are, and how they are built.

In: the folder of a package.  Out: shared objects, beside its wrappers or where its wheel is made.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from symgrad import abi
from symgrad.abi import Op
from symgrad.errors import BuildError
from symgrad.runtime.build import build_beside

MANIFEST = "MANIFEST.json"


def read_op(wrapper: str) -> Op:
    """The table ``OP`` of a wrapper's text, without running the rest."""
    for statement in ast.parse(wrapper).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "OP":
            expression = ast.Expression(statement.value)
            found = eval(compile(expression, "<OP>", "eval"), dict(vars(abi)))
            assert isinstance(found, Op)
            return found
    raise BuildError("the wrapper has no table OP", hint="run symgrad build again")


def stems(folder: Path) -> list[str]:
    """The names of the ops of a package."""
    return sorted(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["ops"])


def build_package(
    folder: Path,
    wrappers: Sequence[str],
    *,
    target: Path | None = None,
    portable: bool = True,
    built: Callable[[Path], None] = lambda path: None,
) -> list[Path]:
    """Compile a written package: one shared object for each of the modules ``wrappers``.

    They lie beside these, or in the folder ``target``.  ``portable`` libraries run on every x86-64;
    others are for this machine's processor.  ``built`` is told of each as it is done.  Raises
    BuildError where the C cannot be compiled.
    """
    made = []
    for stem in wrappers:
        op = read_op((folder / f"{stem}.py").read_text(encoding="utf-8"))
        texts = {name: (folder / name).read_text(encoding="utf-8") for name in op.texts}
        made.append(build_beside(target or folder, op, texts, portable=portable))
        built(made[-1])
    return made
