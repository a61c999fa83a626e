"""setuptools asks this module whether a project has ops: then its wheel holds their kernels.

In: ``[tool.symgrad.build]`` of the ``pyproject.toml`` in the working folder.  Out: a command that
writes the package of kernels beside the project's own, and compiles it.

    [tool.symgrad.build]
    package = "mylib.kernels"
    ops = ["src/mylib/ops.py", "src/mylib/layers.py:Norm"]
    allow = ["UNDECIDED"]                  as for symgrad build

With SYMGRAD_PURE=1 the wheel has no libraries and is for every platform.  Every project that is
built where symgrad is installed comes here, so that little is imported until there is such a table.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from symgrad.errors import SpecError, SymgradError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Table:
    """What a project says of its kernels."""

    package: str
    ops: tuple[str, ...]
    allow: tuple[str, ...] = ()


def finalize(distribution: Any) -> None:
    """The entry point ``setuptools.finalize_distribution_options``."""
    from setuptools.errors import SetupError

    try:
        table = read(Path("pyproject.toml"))
    except SymgradError as error:
        raise SetupError(str(error)) from error
    if table is not None and not hasattr(distribution, "symgrad_kernels"):
        distribution.symgrad_kernels = table
        _add(distribution, table)


def read(path: Path) -> Table | None:
    """The table; None where there is none.  Raises SpecError for one that is wrong."""
    try:
        tools = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
        found = tools.get("symgrad", {}).get("build")
    except (OSError, ValueError, AttributeError):
        return None  # setuptools says what is wrong with the file
    if found is None:
        return None
    known = isinstance(found, dict) and {"package", "ops"} <= found.keys() <= _KEYS
    if not known or not isinstance(found["package"], str) or not found["package"]:
        raise SpecError(f"{path}: tool.symgrad.build is wrong", hint=_HINT)
    lists = {key: found.get(key, []) for key in ("ops", "allow")}
    for key, value in lists.items():
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise SpecError(f"{path}: tool.symgrad.build.{key} is no list of texts", hint=_HINT)
    if not all(part.isidentifier() for part in found["package"].split(".")):
        raise SpecError(f"{path}: {found['package']!r} cannot be the name of a package")
    return Table(found["package"], tuple(lists["ops"]), tuple(lists["allow"]))


_KEYS = {"package", "ops", "allow"}
_HINT = 'it says package = "mylib.kernels" and ops = ["mylib/ops.py"], and allow where it must'


def _add(distribution: Any, table: Table) -> None:
    """The command, and a wheel for this platform where it holds libraries."""
    from setuptools import Extension
    from setuptools.command.build_ext import build_ext
    from setuptools.command.build_py import build_py

    from symgrad.runtime.digests import STABLE, SUFFIX

    commands = distribution.cmdclass
    if os.environ.get("SYMGRAD_PURE", "") not in ("", "0"):
        commands["build_py"] = _writing(commands.get("build_py", build_py), table)
        return
    commands["build_ext"] = _compiling(commands.get("build_ext", build_ext), table)
    others = distribution.ext_modules or []
    if SUFFIX == STABLE and not others:
        wheel = distribution.get_option_dict("bdist_wheel")
        wheel.setdefault("py_limited_api", ("symgrad", "cp310"))
    distribution.ext_modules = [*others, Extension(_name(table), [])]


def _name(table: Table) -> str:
    """Of the extension that stands for all kernels: setuptools sees that there are some."""
    return f"{table.package}._kernels"


def _writing(base: Any, table: Table) -> Any:
    class BuildPy(base):  # type: ignore[misc]
        """The project's own files, and those of its kernels."""

        def run(self) -> None:
            super().run()
            in_place = getattr(self, "editable_mode", False)
            _written(_folder(self, table, in_place=in_place), table, self.distribution)

    return BuildPy


def _compiling(base: Any, table: Table) -> Any:
    class BuildExt(base):  # type: ignore[misc]
        """The project's own extensions, and its kernels with their libraries."""

        def finalize_options(self) -> None:
            super().finalize_options()
            own = _name(table)
            self.extensions: Any = [one for one in self.extensions if one.name != own]

        def run(self) -> None:
            super().run()
            folder = _folder(self, table, in_place=self.inplace)
            _written(folder, table, self.distribution)
            _compiled(folder)

    return BuildExt


def _folder(command: Any, table: Table, *, in_place: bool) -> Path:
    """Where the kernels go: beside the sources, or to where the wheel is made.

    There lies what was copied from beside the sources, or made before: it is deleted.
    """
    from symgrad.runtime.libraries import MANIFEST

    source = Path(command.get_finalized_command("build_py").get_package_dir(table.package))
    if in_place:
        return source
    folder = Path(command.build_lib, *table.package.split("."))
    if not source.exists() or (source / MANIFEST).exists():
        shutil.rmtree(folder, ignore_errors=True)
    return folder


def _written(folder: Path, table: Table, distribution: Any) -> None:
    """The texts of the package; the project depends on what they import."""
    from rich.console import Console
    from setuptools.errors import SetupError

    from symgrad import compiler, project
    from symgrad.tools import discover
    from symgrad.tools.building import in_turn
    from symgrad.tools.configured import Configured

    each = partial(in_turn, console=Console(stderr=True), jobs=os.cpu_count() or 1)

    try:
        files = Configured()
        found = discover.functions(*table.ops)
        files.check(found)
        compiler.build(
            files.built(found, print), folder, allow=table.allow, compiled=False, root=Path.cwd(),
            config=files.of, cached=True, each=each,
            told=lambda name, report, _: print(f"{name}: {report.verdict}", flush=True),
        )  # fmt: skip
        needed = project.needed(folder)
    except SymgradError as error:
        raise SetupError(str(error)) from error
    stated = {_project(one) for one in distribution.install_requires or ()}
    missing = [one for one in needed if _project(one) not in stated]
    if missing:
        raise SetupError(
            f"{table.package} needs {', '.join(missing)}: list it in project.dependencies"
        )


def _project(requirement: str) -> str:
    """The name of what is required, as package indices compare it."""
    found = re.match(r"[\w.-]+", requirement.strip())
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def _compiled(folder: Path) -> None:
    from setuptools.errors import SetupError

    from symgrad.runtime.libraries import build_package, stems

    try:
        build_package(folder, stems(folder))
    except SymgradError as error:
        raise SetupError(str(error)) from error
