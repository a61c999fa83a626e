"""``symgrad build --package``: a project that pip, setuptools and pytest take as any other."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from rich.console import Console

import symgrad as sg
from symgrad import compiler, project
from symgrad.errors import BuildError, NotProvedError
from symgrad.frontend.request import bind
from symgrad.runtime.cache import beginning
from symgrad.runtime.digests import STABLE, SUFFIX, library_name, source_digest, stamp
from symgrad.runtime.libraries import read_op
from symgrad.samples import samples
from symgrad.tools.building import in_turn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Product(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f32[n k]"], w: Annotated[Any, "f32[k m]"]) -> Any:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad_y @ w.t(), x.t() @ grad_y


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f64[n]"], alpha: float = 2.0) -> Any:
        ctx.alpha = alpha
        return alpha * x

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        return ctx.alpha * grad_y, None


class Taken(sg.Function):
    """Integers among its inputs, and a logarithm, which not every number has."""

    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f64[n m]"], labels: Annotated[Any, "i64[n]"]) -> Any:
        chosen = x.gather(1, labels.unsqueeze(1))
        ctx.save_for_backward(x, labels)
        return sg.log(chosen).sum()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, labels = ctx.saved_tensors
        _, classes = x.shape
        one_hot = labels.unsqueeze(1) == sg.arange(classes)
        return sg.where(one_hot, grad / x, 0.0), None


def built(folder: Path, *functions: Any, **options: Any) -> Path:
    compiler.build(functions, folder, package="kit", compiled=False, validate=False, **options)
    return folder


def texts(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


def test_dependencies_are_those_that_are_needed(tmp_path: Path) -> None:
    found = {}
    for name, function in (("with", Product), ("without", Scaled)):
        text = (built(tmp_path / name, function) / "pyproject.toml").read_text(encoding="utf-8")
        table = tomllib.loads(text)
        found[name] = table["project"]["dependencies"]
        assert {*table["build-system"]["requires"]} >= {*found[name]} - {project.NUMPY}
    assert found["with"] == [project.NUMPY, project.CFFI, project.OPENBLAS]
    assert found["without"] == [project.NUMPY, project.CFFI]


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_git_takes_the_sources_and_nothing_that_builds_leave(tmp_path: Path) -> None:
    folder = built(tmp_path, Scaled)
    made = ("build/lib/kit/scaled.c", "src/kit.egg-info/PKG-INFO")
    for name in made:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("", encoding="utf-8")
    sources = {name for name in texts(folder) if name not in made}
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    listed = ["git", "ls-files", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=folder, check=True, capture_output=True, text=True)
    assert {*done.stdout.split()} == {name for name in sources if not name.startswith(".git/")}


def test_the_readme_says_what_holds_for_which_arguments(tmp_path: Path) -> None:
    text = (built(tmp_path, Scaled, Taken) / "README.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    assert "; `alpha`, a number, 2.0 by default |" in rows["scaled"]
    assert "| PROVED for all real alpha |" in rows["scaled"]
    assert "| PROVED if " in rows["taken"]
    assert all(row.count(" | ") == 4 for row in rows.values())
    assert all(row.endswith("| not validated: it was not asked for |") for row in rows.values())


def test_the_same_texts_each_time(tmp_path: Path) -> None:
    one, other = (texts(built(tmp_path / name, Taken, Scaled)) for name in ("a", "b/c"))
    assert one == other
    assert str(tmp_path) not in "".join(one.values())


def test_a_file_that_is_the_user_s_stays(tmp_path: Path) -> None:
    folder = built(tmp_path, Scaled)
    mine = (folder / "pyproject.toml").read_text(encoding="utf-8").replace("0.1.0", "7.0")
    mine = "".join(mine.splitlines(keepends=True)[1:])
    (folder / "pyproject.toml").write_text(mine, encoding="utf-8")
    (folder / "README.md").write_text(f"<!-- {project.MARK} -->\nan older text\n", encoding="utf-8")
    built(tmp_path, Scaled)
    assert (folder / "pyproject.toml").read_text(encoding="utf-8") == mine
    assert "older" not in (folder / "README.md").read_text(encoding="utf-8")


def test_what_a_killed_build_has_left_is_deleted(tmp_path: Path) -> None:
    folder = built(tmp_path, Scaled)
    wanted = texts(folder)
    for name in ("pyproject.toml", "tests/values.json", "src/kit/scaled.c"):
        beginning(folder / name).write_text("half", encoding="utf-8")
    assert texts(built(tmp_path, Scaled)) == wanted


def test_check_looks_at_libraries(tmp_path: Path) -> None:
    """Each library against its note; with ``compiled=False`` at texts alone."""
    place = project.source_folder(built(tmp_path, Scaled), "kit")
    op = read_op((place / "scaled.py").read_text(encoding="utf-8"))
    sources = {name: (place / name).read_text(encoding="utf-8") for name in op.texts}
    library = place / library_name(op)
    library.write_bytes(b"kernels")
    note = json.dumps(stamp(b"kernels", source_digest(op, sources)))
    library.with_name(f"{library.name}.json").write_text(note, encoding="utf-8")
    check = partial(compiler.build, [Scaled], tmp_path, package="kit", validate=False, check=True)
    assert check() == ""
    library.write_bytes(b"kernel")
    assert check() == f"kit/{library.name} was changed, or was built from other sources\n"
    assert check(compiled=False) == ""


@pytest.mark.parametrize("name", ["my-kernels", "class", "_kit", "", "größe", "a.b"])
def test_names_that_no_package_can_have(name: str) -> None:
    with pytest.raises(BuildError, match="cannot be the name of a package"):
        project.check_name(name)


@pytest.mark.parametrize("name", ["numpy", "cffi", "NumPy", "symgrad", "json", "sys", "filelock"])
def test_names_that_are_those_of_other_packages(name: str) -> None:
    with pytest.raises(BuildError, match=f"called {name} would be imported in the place of"):
        project.check_name(name)
    project.check_name(f"{name}_kernels")


def test_what_a_package_requires_is_not_its_name(tmp_path: Path) -> None:
    """Of the requirements that are written, none is the name of a module that may be asked for."""
    text = (built(tmp_path, Product) / "pyproject.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    stated = [*table["build-system"]["requires"], *table["project"]["dependencies"]]
    stated += [one for group in table["project"]["optional-dependencies"].values() for one in group]
    for one in stated:
        with pytest.raises(BuildError, match="in the place of another one"):
            project.check_name(re.split("[<>=~!]", one)[0].strip().replace("-", "_"))


def test_an_empty_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="'' cannot be the name of a package"):
        compiler.build([Scaled], tmp_path / "kit", package="")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("function", [Product, Scaled, Taken])
def test_samples_are_what_the_op_computes(function: Any) -> None:
    """By the compiled kernels, which the samples were not computed by; and they are not all 0."""
    planned, _ = compiler.judged_plan(bind(function), ())
    (one,) = samples(planned)
    op = sg.compile(function)
    inputs = [_array(table) for table in one["inputs"]]
    found, residuals = op.forward(*inputs, **one["numbers"])
    np.testing.assert_allclose(found, _array(one["outputs"][0]), rtol=1e-4)
    gradients = op.backward(residuals, *map(_array, one["cotangents"]))
    for place, table in one["gradients"].items():
        np.testing.assert_allclose(
            np.asarray(gradients[int(place)]), _array(table), rtol=1e-4, atol=1e-5
        )
        assert np.any(_array(table))


def _array(table: Any) -> Any:
    return np.array(table["values"], table["dtype"]).reshape(table["shape"])


def _run(folder: Path, *command: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env={**os.environ, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_wheel_and_its_tests(tmp_path: Path) -> None:
    """Twice, from two folders: the same bytes.  What is in it passes the tests of the project."""
    pytest.importorskip("setuptools", "77")
    wheels: list[Path] = []
    for name in ("one", "two"):
        folder = built(tmp_path / name, Product, Scaled, Taken)
        made = folder / "made"
        _run(
            folder, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-q", "-w",
            str(made), ".",
            SOURCE_DATE_EPOCH="1700000000", SYMGRAD_CACHE_DIR=str(tmp_path / "cache"),
        )  # fmt: skip
        wheels += made.iterdir()
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    if SUFFIX == STABLE:
        assert wheels[0].name.startswith("kit-0.1.0-cp310-abi3-")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(installed)
    assert len(list((installed / "kit").glob(f"*{SUFFIX}"))) == 3
    tests = tmp_path / "one" / "tests"
    (tmp_path / "conftest.py").write_text(BLOCKED, encoding="utf-8")
    said = _run(
        tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
        f"--rootdir={tmp_path}", str(tests), PYTHONPATH=str(installed), CC="/nonexistent",
        SYMGRAD_CACHE_DIR="/nonexistent", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )  # fmt: skip
    cases = json.loads((tests / "values.json").read_text(encoding="utf-8"))["ops"]
    assert f"{len(cases) + sum(map(len, cases.values()))} passed" in said


class Wrong(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f32[n]"]) -> Any:
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        return grad_y


PROCESSES = partial(in_turn, console=Console(stderr=True), jobs=2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_several_processes_make_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def told(name: str, *_: object) -> None:
        os.write(1, f"{name}\n".encode())

    one = texts(built(tmp_path / "one", Product, Scaled, Taken, told=told))
    first = capfd.readouterr().out
    other = texts(built(tmp_path / "two", Product, Scaled, Taken, told=told, each=PROCESSES))
    assert one == other
    assert first == capfd.readouterr().out == "product\nscaled\ntaken\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_several_processes_fail_as_one_does(tmp_path: Path) -> None:
    said = set()
    for each in (map, PROCESSES):
        with pytest.raises(NotProvedError, match="the backward of Wrong is REFUTED") as error:
            built(tmp_path, Scaled, Wrong, each=each)
        said.add((error.value.what.partition("\n")[0], error.value.hint))
    assert len(said) == 1
    assert not list(tmp_path.iterdir())


def test_what_was_proved_is_not_proved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second build takes the verdict from the cache, and writes the same."""
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    first = texts(built(tmp_path / "a", Scaled, cached=True))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("proved again")

    monkeypatch.setattr("symgrad.verdicts._keep", refuse)
    assert texts(built(tmp_path / "b", Scaled, cached=True)) == first


@pytest.mark.parametrize("strict", [False, True])
def test_without_libraries(tmp_path: Path, strict: bool) -> None:
    """NumPy computes, and each op says so once, and why; a strict caller gets an error."""
    folder = built(tmp_path / "project", Product, Scaled, Taken)
    (folder / "tests" / "conftest.py").write_text(BLOCKED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default"],
        cwd=folder, capture_output=True, text=True, check=False,
        env={
            **os.environ, "PYTHONPATH": str(folder / "src"), "CC": "/nonexistent",
            "SYMGRAD_CACHE_DIR": "/nonexistent", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "SYMGRAD_STRICT": str(int(strict)),
        },
    )  # fmt: skip
    assert (done.returncode != 0) == strict, done.stdout
    lines = done.stdout.splitlines()
    if strict:
        assert any("ImportError: scaled: the library _scaled" in line for line in lines)
    else:
        said = [line for line in lines if "NumpyBackendWarning: " in line]
        assert len(said) == 3
        assert all("is not there, and none can be compiled" in line for line in said)


def test_the_same_refusals_on_numpy(tmp_path: Path) -> None:
    """Wrong shapes, dtypes and places are refused as by a compiled op; ``out`` is written to."""
    folder = built(tmp_path / "project", Product, Scaled, Taken)
    said = _run(folder, "-c", ON_NUMPY, PYTHONPATH=str(folder / "src"), CC="/nonexistent")
    assert said.splitlines() == ["KernelArgumentError", "KernelTypeError", "KernelArgumentError"]


ON_NUMPY = """
import sys, warnings
for name in ("symgrad", "sympy", "jinja2"):
    sys.modules[name] = None
warnings.simplefilter("ignore")
import numpy as np
from kit import get_num_threads, product, scaled, taken
x, w = np.arange(6, dtype="f4").reshape(2, 3), np.ones((3, 4), "f4")
out = np.empty((2, 4), "f4")
assert product.inference(x, w, out=out) is out and (out == x @ w).all()
y, residuals = product.forward(np.asfortranarray(x), w)
gx, gw = product.backward(residuals, out, needs_input_grad=(True, False))
assert gw is None and (gx == out @ w.T).all()
assert (scaled.inference(np.ones(3), alpha=-1.5) == -1.5).all()
assert get_num_threads() >= 1
for call in (
    lambda: product.inference(x, x), lambda: product.inference(x, w.astype("f8")),
    lambda: taken.inference(np.ones((2, 3)), np.array([0, -1])),
):
    try:
        call()
    except Exception as error:
        print(type(error).__name__)
"""

BLOCKED = """
import sys
for name in ("symgrad", "sympy", "jinja2", "cffi"):
    sys.modules[name] = None
"""
