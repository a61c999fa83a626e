"""``[tool.symgrad.build]``: setuptools puts the kernels of a project's ops into its wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from setuptools.dist import Distribution
from setuptools.errors import SetupError

from symgrad.declarations import read as declarations
from symgrad.errors import SpecError
from symgrad.runtime.digests import STABLE, SUFFIX
from symgrad.tools import hook
from tests.house import tree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GROUP = "setuptools.finalize_distribution_options"
PROJECT = """
[build-system]
requires = ["setuptools>=77", "symgrad"]
build-backend = "setuptools.build_meta"

[project]
name = "mylib"
version = "1.0"
dependencies = ["numpy>=1.26", "CFFI >= 1.16"]

[tool.setuptools.packages.find]
where = ["src"]

[tool.symgrad.build]
package = "mylib.kernels"
ops = ["src/mylib/ops.py:Scaled"]
"""
OPS = """
import symgrad as sg

class Scaled(sg.Function):
    @staticmethod
    def forward(ctx, x: "f64[n]"):
        return 3 * x

    @staticmethod
    def backward(ctx, grad_y):
        return 3 * grad_y

class Unused(sg.Function):
    @staticmethod
    def forward(ctx, x: "f64[n]"):
        return 3 * x

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y
"""


@pytest.fixture
def mylib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project of a user, in the working folder."""
    source = tmp_path / "src" / "mylib"
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "ops.py").write_text(OPS, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = dict(sys.modules)
    yield tmp_path
    for name in sys.modules.keys() - before.keys():
        if name.partition(".")[0] == "mylib":
            del sys.modules[name]


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def distribution() -> Any:
    found = Distribution({"script_name": "setup.py"})
    found.parse_config_files()
    hook.finalize(found)
    return found


def test_a_project_without_ops_is_left_alone(mylib: Path) -> None:
    replaced(mylib / "pyproject.toml", "[tool.symgrad.build]", "[tool.other]")
    assert distribution().ext_modules is None
    (mylib / "pyproject.toml").unlink()
    assert hook.read(mylib / "pyproject.toml") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ops = [", "opps = ["),
        ('ops = ["src/mylib/ops.py:Scaled"]', 'ops = "src/mylib/ops.py"'),
        ('"mylib.kernels"', "1"),
        ('"mylib.kernels"', '"my-lib"'),
        ('package = "mylib.kernels"', ""),
    ],
)
def test_a_table_that_is_wrong(mylib: Path, old: str, new: str) -> None:
    replaced(mylib / "pyproject.toml", old, new)
    with pytest.raises(SpecError, match=r"pyproject\.toml: "):
        hook.read(mylib / "pyproject.toml")
    with pytest.raises(SetupError):
        distribution()


def test_declarations_may_stand_beside_it(mylib: Path) -> None:
    assert not declarations(mylib / "pyproject.toml").functions


def test_what_the_kernels_need_is_required(mylib: Path) -> None:
    replaced(mylib / "pyproject.toml", ', "CFFI >= 1.16"', "")
    with pytest.raises(SetupError, match=r"mylib\.kernels needs cffi>=1\.16: list it"):
        distribution().run_command("build")


def test_what_is_refuted_makes_no_wheel(mylib: Path) -> None:
    replaced(mylib / "pyproject.toml", ":Scaled", "")
    with pytest.raises(SetupError, match="the backward of Unused is REFUTED"):
        distribution().run_command("build")


def test_beside_the_sources_and_into_the_wheel(
    mylib: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place, then built: what was copied from beside the sources is made anew."""
    monkeypatch.setenv("SYMGRAD_PURE", "1")
    command = distribution().get_command_obj("build_py")
    command.editable_mode = True
    command.ensure_finalized()
    command.run()
    place = mylib / "src" / "mylib" / "kernels"
    kernels = (place / "scaled.c").read_text(encoding="utf-8")
    assert not list(place.glob("*.so"))
    replaced(place / "scaled.py", "import", "import  ")
    found = distribution()
    found.run_command("build")
    built = Path(found.get_command_obj("build").build_lib, "mylib", "kernels")
    assert (built / "scaled.c").read_text(encoding="utf-8") == kernels
    assert "import  " not in (built / "scaled.py").read_text(encoding="utf-8")


def test_a_package_of_the_user_is_not_written_over(
    mylib: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYMGRAD_PURE", "1")
    place = mylib / "src" / "mylib" / "kernels"
    place.mkdir()
    (place / "__init__.py").write_text("mine = 1\n", encoding="utf-8")
    with pytest.raises(SetupError, match="is in the way"):
        distribution().run_command("build")


@pytest.mark.slow
def test_a_wheel(mylib: Path, tmp_path: Path) -> None:
    """By pip, which finds the entry point; the kernels run where symgrad is not."""
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    entry = project["project"]["entry-points"][GROUP]["symgrad"]
    about = tmp_path / "site" / "symgrad_hook-0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: symgrad-hook\nVersion: 0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\nsymgrad = {entry}\n")
    (tmp_path / "site" / "sitecustomize.py").write_text(
        f"import sys\nsys.path.insert(1, {str(tree.ROOT)!r})\n"
    )
    command = (sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w")
    done = subprocess.run(
        [*command, "made", str(mylib)], cwd=mylib, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (mylib / "made").iterdir()
    if SUFFIX == STABLE:
        assert wheel.name.startswith("mylib-1.0-cp310-abi3-")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    assert (tmp_path / "installed" / "mylib" / "kernels" / f"_scaled{SUFFIX}").exists()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", USE], cwd=tmp_path / "installed",
        capture_output=True, text=True, check=False, env={**os.environ, "CC": "/nonexistent"},
    )  # fmt: skip
    assert done.stdout == "[3. 3.]\n", done.stderr


USE = """
import sys
for name in ("symgrad", "sympy", "jinja2"):
    sys.modules[name] = None
import numpy as np
from mylib.kernels import scaled
print(scaled.inference(np.ones(2)))
"""
