"""``verify -j``: many processes, and the output of one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from symgrad.errors import SymgradError
from symgrad.tools import parallel
from symgrad.tools.cli import main

FORWARD = """
class {name}(sg.Function):
    @staticmethod
    def forward(ctx, x):
        print("{name} is traced")
        {first}
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * {factor}
"""
MIXED = "import os, sys, time, warnings\nimport symgrad as sg\n" + "".join(
    FORWARD.format(name=name, first=first, factor=factor)
    for name, first, factor in (
        ("Right", "pass", "2 * x"), ("Half", "pass", "x"), ("Refuses", "x.nonsense", "x"),
        ("Asks", "assert type(x).__name__", "2 * x"), ("Last", "warnings.warn('here')", "2 * x"),
    )
)  # fmt: skip


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments], catch_exceptions=False)


def timeless(text: str) -> str:
    text = re.sub(r"\b[0-9.]+ s\b", "", text)
    return re.sub(r'("?(seconds|time)"?[:=] ?"?)[0-9.e-]+', r"\1", text)


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    path = tmp_path / "mixed.py"
    path.write_text(MIXED)
    return str(path)


def everything(mixed: str, folder: Path, jobs: str) -> list[Any]:
    files = [folder / "one.sarif", folder / "one.xml"]
    options = ("--shapes", "n", "--suggest", "--sarif", str(files[0]), "--junit", str(files[1]))
    text = run(mixed, *options, "-j", jobs)
    command = [sys.executable, "-m", "symgrad", "verify", mixed, "--json", "--suggest", "-j", jobs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [
        text.exit_code, timeless(text.stdout), text.stderr,
        *(timeless(file.read_text()) for file in files),
        done.returncode, timeless(done.stdout), done.stderr,
    ]  # fmt: skip


@pytest.mark.slow
def test_the_output_is_that_of_one_process(mixed: str, tmp_path: Path) -> None:
    alone = everything(mixed, tmp_path, "1")
    assert "Half is traced" in alone[1]
    assert alone[0] == alone[5] == 1
    assert everything(mixed, tmp_path, "3") == alone


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_process_that_ends_has_no_verdict(tmp_path: Path, end: str) -> None:
    path = tmp_path / "ends.py"
    path.write_text(MIXED + FORWARD.format(name="Ends", first=end, factor="x"))
    done = run(str(path), "--shapes", "n", "-j", "2")
    assert done.exit_code == 2
    assert "there is no verdict" in done.output


def test_a_program_that_ends_itself_is_told_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "ends.py"
    path.write_text(MIXED + FORWARD.format(name="Ends", first="sys.exit(3)", factor="x"))
    alone, together = (run(str(path), "--shapes", "n", "-j", jobs) for jobs in ("1", "2"))
    assert "(status 3): there is no verdict" in alone.stderr
    assert (alone.stdout, alone.stderr) == (together.stdout, together.stderr)


def test_a_wrong_call_is_told_once(mixed: str) -> None:
    texts = {run(mixed, "--shapes", "n; n", "-j", jobs).output for jobs in ("1", "2")}
    assert len({text.partition("SpecError")[2] for text in texts}) == 1
    assert run(mixed, "-j", "0").exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_the_command(tmp_path: Path, number: signal.Signals) -> None:
    """The pipe is closed only when every process has ended."""
    wait = "print('up', file=up, flush=True); time.sleep(900)"
    text = MIXED.replace("warnings.warn('here')", wait)
    path = tmp_path / "long.py"
    path.write_text(f"import os\nup = os.fdopen(os.dup(1), 'w')\n{text}")
    command = [sys.executable, "-m", "symgrad", "verify", str(path), "--shapes", "n", "-j", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert "up\n" in iter(process.stdout.readline, "")
        if number == signal.SIGINT:  # as a terminal sends it
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        process.stdout.read()
    assert process.returncode != 0


@pytest.mark.parametrize(("count", "jobs"), [(1, 1), (2, 2), (7, 3), (20, 4)])
def test_results_come_in_order_and_every_end_is_told(count: int, jobs: int) -> None:
    told: list[int] = []

    def begin() -> Callable[[], None]:
        return lambda: told.append(1)

    found = list(parallel.in_processes(lambda number: number**2, count, jobs, begin))
    assert found == [number**2 for number in range(count)]
    assert len(told) == count


def test_an_exception_passes_through() -> None:
    def fail(number: int) -> int:
        raise SymgradError(f"no {number}", hint="a hint")

    with pytest.raises(SymgradError, match="no 0"):
        list(parallel.in_processes(fail, 3, 2, lambda: lambda: None))


def test_json_is_one_list(mixed: str) -> None:
    done = run(mixed, "--shapes", "n", "-j", "2", "--json")
    assert [one["function"] for one in json.loads(done.stdout)] == [
        "Right", "Half", "Refuses", "Asks", "Last",
    ]  # fmt: skip
