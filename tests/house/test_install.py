"""The wheel, the sdist and an editable installation each give a working symgrad.

They are made from a copy of the tree and installed into new environments that borrow the
dependencies of the environment that runs the tests: no network is needed.
"""

from __future__ import annotations

import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.house import readme, tree

pytestmark = pytest.mark.slow

LOCATE = """
import importlib.resources, symgrad, symgrad.generated, symgrad.templates
print(symgrad.__file__)
for package in (symgrad.templates, symgrad.generated):
    for file in sorted(p.name for p in importlib.resources.files(package).iterdir()):
        if not file.startswith("__pycache__"):
            print(package.__name__, file)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree.copy_to(tmp_path_factory.mktemp("source") / "symgrad")


@pytest.fixture(scope="module")
def built(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is made from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    done = tree.run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, cwd=copy)
    assert done.returncode == 0, done.stdout
    return out


def new_environment(folder: Path) -> Path:
    """A virtual environment's Python that sees our dependencies, but not our symgrad."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(tree.run(python, "-c", where, cwd=folder).stdout.strip())
    borrowed = folder / "borrowed"
    borrowed.mkdir()
    for kind in ("purelib", "platlib"):
        for path in Path(sysconfig.get_path(kind)).iterdir():
            if "symgrad" not in path.name and not (borrowed / path.name).exists():
                (borrowed / path.name).symlink_to(path)
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    return python


def install(python: Path, *arguments: str | Path) -> None:
    pip = (sys.executable, "-m", "pip", "--python", str(python))
    options = ("--quiet", "--no-index", "--no-deps")
    done = tree.run(*pip, "install", *options, *arguments, cwd=python.parent)
    assert done.returncode == 0, done.stdout


def located(python: Path) -> list[str]:
    done = tree.run(python, "-c", LOCATE, cwd=python.parent)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def expected_files(copy: Path) -> list[str]:
    """The lines that `LOCATE` prints of a complete installation."""
    lines = []
    for package, folder in tree.MAPPED.items():
        files = sorted(path.name for path in (copy / folder).iterdir())
        lines += [f"{package} {file}" for file in files if not file.startswith("__pycache__")]
    return lines


def test_wheel(built: Path, copy: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    python = new_environment(tmp_path / "environment")
    install(python, wheel)
    where, *files = located(python)
    assert Path(where).is_relative_to(tmp_path)
    assert files == expected_files(copy)

    example = tmp_path / "example.py"
    example.write_text(readme.blocks("python")[0])
    done = tree.run(python, example, cwd=tmp_path)
    assert done.stdout == readme.blocks("text")[0]


def test_wheel_holds_the_tree_and_nothing_else(built: Path, copy: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {"symgrad/py.typed"}
    for package, folder in tree.packages(copy).items():
        for path in folder.iterdir():
            if path.is_file():
                expected.add(f"{package.replace('.', '/')}/{path.name}")
    assert names == expected


def test_sdist_holds_licence_and_readme(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml"} <= names


def test_editable(copy: Path, tmp_path: Path) -> None:
    python = new_environment(tmp_path / "environment")
    install(python, "--no-build-isolation", "--editable", copy)
    where, *files = located(python)
    assert Path(where).is_relative_to(copy)
    assert files == expected_files(copy)
