"""Files that are imported by their paths: as modules of packages, and alone; what the rest does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from symgrad.tools.cli import main

SQUARE = """
import symgrad as sg
{imports}

class {name}(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return {two} * x * grad
"""
FILES = {
    "whole/__init__.py": "",
    "whole/numbers.py": "TWO = 2\n",
    "whole/ops.py": SQUARE.format(name="Member", imports="from .numbers import TWO", two="TWO"),
    "whole/loose/inner.py": SQUARE.format(
        name="Loose", imports="from ..numbers import TWO", two="TWO"
    ),
    "whole/missing.py": SQUARE.format(name="Missing", imports="import no_such_library", two="2"),
    "whole/setup.py": "raise SystemExit(1)\n",
    "whole/script.py": "raise ValueError('no arguments')\n",
    "lacking/__init__.py": "import no_such_library\n",
    "lacking/numbers.py": "TWO = 2\n",
    "lacking/ops.py": SQUARE.format(name="Alone", imports="from .numbers import TWO", two="TWO"),
    "either/numbers.py": "TWO = 2\n",
    "either/other.py": "",
    "either/ops.py": SQUARE.format(
        name="Either", two="TWO",
        imports="import other\ntry:\n    from .numbers import TWO\n"
        "except ImportError:\n    from numbers_ import TWO",
    ),
    "either/numbers_.py": "TWO = 2\n",
    "plain.py": SQUARE.format(name="Plain", imports="", two="2"),
}  # fmt: skip
MODULES = {"whole", "lacking", "either", "other", "numbers_"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("importing")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(autouse=True)
def _fresh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder of the files, and no module of them."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in MODULES]:
        del sys.modules[name]


def verify(*arguments: str) -> tuple[Any, int]:
    done = CliRunner().invoke(main, ["verify", *arguments, "--json"], catch_exceptions=False)
    return json.loads(done.stdout), done.exit_code


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("whole/ops.py", "Member"),
        ("whole.ops", "Member"),
        ("whole/loose/inner.py", "Loose"),
        ("whole/loose", "Loose"),
        ("either/ops.py", "Either"),
        ("plain.py", "Plain"),
    ],
)
def test_a_file_has_its_imports(place: str, name: str) -> None:
    (one,), status = verify(place)
    assert (one["function"], one["verdict"], status) == (name, "PROVED", 0)
    assert "imported_alone" not in one


@pytest.mark.parametrize("place", ["lacking/ops.py", "lacking", "lacking/ops.py:Alone"])
def test_a_file_is_imported_without_its_package(place: str) -> None:
    (one,), status = verify(place)
    assert (one["function"], one["verdict"], status) == ("Alone", "PROVED", 0)
    assert "no_such_library" in one["imported_alone"]


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(
    "places", [["whole"], ["whole/", "plain.py"], ["whole/missing.py", "plain.py"]]
)
def test_what_cannot_be_imported_stops_nothing(folder: Path, places: list[str], jobs: str) -> None:
    found, status = verify(*places, "-j", jobs)
    assert status == 1
    verdicts = {one["function"]: one["verdict"] for one in found}
    assert verdicts.pop("whole/missing.py") == "ERROR"
    assert verdicts
    assert set(verdicts.values()) == {"PROVED"}
    (error,) = (one for one in found if one["verdict"] == "ERROR")
    assert "no_such_library" in error["error"]


def test_where_nothing_can_be_imported_the_call_is_wrong() -> None:
    found, status = verify("whole/missing.py")
    assert status == 2
    assert "no_such_library" in found["error"]["message"]
    assert found["error"]["hint"].startswith("pip install no_such_library, or ")


def test_files_of_reports_have_what_cannot_be_imported(tmp_path: Path) -> None:
    sarif, junit = tmp_path / "log.sarif", tmp_path / "log.xml"
    verify("whole", "--sarif", str(sarif), "--junit", str(junit))
    (run,) = json.loads(sarif.read_text())["runs"]
    (result,) = run["results"]
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "whole/missing.py"
    assert place["physicalLocation"]["region"]["startLine"] == 3
    assert 'errors="1"' in junit.read_text()


@pytest.mark.slow
def test_the_program_finds_modules_of_the_working_folder(folder: Path) -> None:
    program = "import sys; sys.path.remove(''); from symgrad.__main__ import main; main()"
    for command in (["verify"], ["scan"]):
        asked = [sys.executable, "-c", program, *command, "whole.ops", "--json"]
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "Member" in done.stdout


INSIDE = """
import symgrad as sg


def make(two):
    class Made(sg.Function):
        @staticmethod
        def forward(ctx, x):
            return two * x

        @staticmethod
        def backward(ctx, grad):
            return two * grad

    return Made


class Holder:
    def method(self):
        class Inner(sg.Function):
            @staticmethod
            def forward(ctx, x):
                return x
{more}
"""


@pytest.mark.parametrize("wanted", ["", ":Made", ":make", ":make.<locals>.Made"])
def test_a_class_inside_of_a_function_is_named(tmp_path: Path, wanted: str) -> None:
    file = tmp_path / "inside.py"
    file.write_text(INSIDE.format(more=""))
    found, status = verify(f"{file}{wanted}")
    assert status == 2
    assert "Made is defined inside make" in found["error"]["message"]
    assert ("so is 1 other" in found["error"]["message"]) == (not wanted)
    assert f"{file}:6" in CliRunner().invoke(main, ["verify", f"{file}{wanted}"]).output
    assert found["error"]["hint"].endswith("or name what the function makes: Made = make(...)")


def test_what_a_function_makes_has_the_name_that_the_file_gives_it(tmp_path: Path) -> None:
    file = tmp_path / "inside.py"
    file.write_text(INSIDE.format(more="Twice = make(2)\n"))
    done = CliRunner().invoke(main, ["verify", f"{file}:Twice"])
    assert done.exit_code == 0, done.output
    said = "".join(CliRunner().invoke(main, ["verify", str(file)]).output.split())  # it is wrapped
    assert f"notjudged:Holder.method.<locals>.Inner({file}:20)" in said
    assert "Made(" not in said.partition("notjudged")[2]
