"""symgrad scan: every class of a package, whatever one of them does to its process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import symgrad as sg
from symgrad.tools.scan import Scanned
from symgrad.tools.sources import Source

OPS = {
    "__init__.py": "",
    "right.py": """
        import symgrad as sg

        class Right(sg.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 2 * x * grad

        class Wrong(Right):
            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 3 * x * grad

        class Straight(sg.Function):
            @staticmethod
            def forward(ctx, x):
                return x.round()

            @staticmethod
            def backward(ctx, grad):
                return grad
        """,
    "crashes.py": """
        import os
        import symgrad as sg
        os.kill(os.getpid(), 11)

        class Lost(sg.Function):
            forward = backward = None
        """,
    "ends.py": """
        import symgrad as sg
        raise SystemExit(3)

        class Ended(sg.Function):
            forward = backward = None
        """,
    "grows.py": """
        import symgrad as sg
        kept = bytearray(1 << 33)

        class Greedy(sg.Function):
            forward = backward = None
        """,
    "missing.py": """
        import no_such_library
        import symgrad as sg

        class Missing(sg.Function):
            forward = backward = None

        def make():
            class Inner(sg.Function):
                forward = backward = None
        """,
    "broken/__init__.py": "import no_such_library\n",
    "broken/constants.py": "FACTOR = 2\n",
    "broken/deep/__init__.py": "raise RuntimeError('no device')\n",
    "broken/deep/fine.py": """
        import symgrad as sg
        from ..constants import FACTOR

        class Fine(sg.Function):
            @staticmethod
            def forward(ctx, x):
                return FACTOR * x

            @staticmethod
            def backward(ctx, grad):
                return FACTOR * grad
        """,
    "prints.py": "print('not <json>')\n",
}


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, int]:
    folder = tmp_path_factory.mktemp("scan")
    for name, text in OPS.items():
        (folder / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "lib" / name).write_text(re.sub(r"(?m)^ {8}", "", text))
    command = [sys.executable, "-m", "symgrad", "scan", "lib", "-j", "2", "--memory", "2", "--json"]
    command += ["--html", "page.html", "--sarif", "log.sarif", "--write-tests", "replays"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return folder, json.loads(found.stdout), found.returncode


def test_each_class_has_its_verdict(scanned: tuple[Path, Any, int]) -> None:
    _, found, status = scanned
    assert status == 1
    said = {one["class"]: (one["category"], one["why"]) for one in found["functions"]}
    assert said["lib.right.Right"][0] == "proved"
    assert said["lib.right.Wrong"][0] == "refuted"
    assert "grad_x" in said["lib.right.Wrong"][1]
    assert said["lib.right.Straight"][0] == "surrogate"
    assert said["lib.broken.deep.fine.Fine"] == ("proved", "")
    (note,) = found["notes"]
    assert note.startswith("imported alone: Fine, since ")
    assert "no_such_library" in note
    for name, why in (
        ("crashes.Lost", "SIGSEGV"), ("ends.Ended", "ends the program"),
        ("grows.Greedy", "MemoryError"), ("missing.Missing", "no_such_library"),
        ("missing.make.<locals>.Inner", "no import has it"),
    ):  # fmt: skip
        category, text = said[f"lib.{name}"]
        assert category == "not traceable"
        assert why in text
    assert found["counts"] == {"refuted": 1, "surrogate": 1, "not traceable": 5, "proved": 2}
    files = [one["file"] for one in found["functions"]]
    assert files == sorted(files)


class Labelled(sg.Function):
    """A label of floats, for which backward returns no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, target: Any) -> Any:
        ctx.save_for_backward(target)
        return x * target

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (target,) = ctx.saved_tensors
        return grad * target, None


def test_a_gradient_that_is_left_out_may_be_declared() -> None:
    source = Source(Path("ops.py"), 1, "Labelled", "ops")
    why = Scanned(source, sg.verify(Labelled, "n; n")).why
    assert why.startswith("target: n = 1: x = [1], target = [1]")
    assert "--assume target=constant" in why


def test_what_is_refuted_is_replayed_by_a_file(scanned: tuple[Path, Any, int]) -> None:
    folder, _, _ = scanned
    written = sorted(one.name for one in (folder / "replays").iterdir())
    assert written == ["test_lib_right_Straight.py", "test_lib_right_Wrong.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "replays"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert "2 failed" in done.stdout, done.stdout


def test_repairs_are_shown(scanned: tuple[Path, Any, int]) -> None:
    _, found, _ = scanned
    (wrong,) = (one for one in found["functions"] if one["category"] == "refuted")
    assert re.search(r"^\+ +return .*2", wrong["diff"], re.MULTILINE)


def test_the_page_is_one_file_of_well_formed_text(scanned: tuple[Path, Any, int]) -> None:
    folder, _, _ = scanned
    text = (folder / "page.html").read_text(encoding="utf-8")
    for name in ("Right", "Wrong", "Straight", "Lost"):
        assert f'<span class="name">{name}</span>' in text
    assert not re.search(r"(src|href)=[\"']?http", text)
    assert "@import" not in text
    assert "imported alone: Fine, since " in text
    assert "lib/broken/deep/fine.py:5" in text
    assert "the derivative of <code>x</code> in place of" in text
    body = re.sub(r"<!doctype html>|<meta[^>]*>", "", text).replace(" open>", ' open="">')
    body = re.sub(r"&(?!#|amp;|lt;|gt;|quot;)(\w+);", "", body)
    ElementTree.fromstring(body)


def test_the_log_names_what_is_not_proved(scanned: tuple[Path, Any, int]) -> None:
    folder, _, _ = scanned
    (run,) = json.loads((folder / "log.sarif").read_text())["runs"]
    results = {one["properties"]["function"]: one for one in run["results"]}
    assert set(results) == {"Wrong", "Straight", "Lost", "Ended", "Greedy", "Missing"} | {
        "make.<locals>.Inner"
    }
    (place,) = results["Wrong"]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "lib/right.py"


def test_a_table_for_no_class_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(re.sub(r"(?m)^ {8}", "", OPS["crashes.py"]))
    (tmp_path / "symgrad.toml").write_text("[functions.Lost]\norder = 2\n[functions.Found]\n")
    command = [sys.executable, "-m", "symgrad", "scan", "ops.py", "--json"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 2
    said = json.loads(found.stdout)["error"]
    assert said["message"] == "there is no Function 'Found'"
    assert said["line"] == 3


TWICE = """
    import symgrad as sg

    class Named(sg.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 3 * grad

    Before = Named

    class Named(sg.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad
    """


def test_a_name_of_two_classes_is_that_of_the_one_which_an_import_has(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(re.sub(r"(?m)^ {4}", "", TWICE))
    command = [sys.executable, "-m", "symgrad", "scan", "twice.py", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert [(one["verdict"], one["line"]) for one in found["functions"]] == [("PROVED", 15)]
    (note,) = found["notes"]
    assert note.startswith("Named was judged as an import has it, from line 15; line 4 of twice.py")


SLOW = """
    import time
    import subprocess
    import symgrad as sg

    class Early(sg.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    class Late(Early):
        @staticmethod
        def forward(ctx, x):
            subprocess.run(["sleep", "900"])
            return 2 * x

    class Later(Early):
        @staticmethod
        def forward(ctx, x):
            time.sleep(900)
            return 2 * x
    """


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_scan_that_is_ended_tells_what_was_judged(tmp_path: Path, ending: int) -> None:
    """No process is left; a pipe that all of them have is closed at the end of the last one."""
    (tmp_path / "late.py").write_text(re.sub(r"(?m)^ {4}", "", SLOW))
    command = [sys.executable, "-m", "symgrad", "scan", "late.py", "-j", "1", "--json"]
    command += ["--html", "page.html", "--sarif", "log.sarif"]
    read, write = os.pipe()
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, pass_fds=[write],
        preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),  # nohup ignores it
    ) as process:  # fmt: skip
        os.close(write)
        while not _runs("sleep", process.pid):
            time.sleep(0.05)
        if ending == signal.SIGINT:
            os.killpg(process.pid, ending)  # as a terminal does
        else:
            process.send_signal(ending)
        printed, said = process.communicate()
    assert os.read(read, 1) == b""
    os.close(read)
    assert process.returncode == (-ending if ending == signal.SIGKILL else 128 + ending)
    what = "the end of its parent" if ending == signal.SIGKILL else signal.Signals(ending).name
    told = f"{what} ended the scan: 2 of 3 were not judged"
    assert f"incomplete: {told}" in said
    if ending != signal.SIGKILL:  # who would write is gone
        found = json.loads(printed)
        assert (found["incomplete"], found["not_judged"]) == (told, ["late.Late", "late.Later"])
        assert [one["verdict"] for one in found["functions"]] == ["PROVED"]
    assert f"incomplete: {told}" in (tmp_path / "page.html").read_text()
    (run,) = json.loads((tmp_path / "log.sarif").read_text())["runs"]
    assert [one["function"] for one in run["properties"]["judged"]] == ["Early"]
    assert run["invocations"][0]["executionSuccessful"] is False


def _runs(program: str, session: int) -> bool:
    """Does a program run in the session?"""
    for one in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = one.read_text().partition("(")[2].rpartition(")")
            if name == program and int(rest.split()[3]) == session:
                return True
    return False
