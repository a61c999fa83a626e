"""A slice of the campaign of ``benchmarks.reliability``: it runs, goes on, and finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

pytestmark = [pytest.mark.slow, pytest.mark.peers]

SEED = "tests"
MINUTES = 60  # a limit that is never met: the units are


def run(folder: Path, part: str, units: int, jobs: int = 1) -> str:
    """The page of the results; each job is a process that imports the peers."""
    from benchmarks.reliability.__main__ import main

    done = CliRunner().invoke(
        main,
        [
            *("--seed", SEED, "--folder", str(folder), "--jobs", str(jobs), "--only", part),
            *("--minutes", str(MINUTES), "--units", str(units)),
        ],
    )
    assert done.exit_code == 0, f"{done.output[-4000:]}\n{done.exception}"
    return (folder / f"seed-{SEED}" / "report.md").read_text(encoding="utf-8")


def test_programs_and_going_on(tmp_path: Path) -> None:
    """A kill in the middle of a line of the results loses that unit alone."""
    run(tmp_path, "programs", 8, jobs=2)
    log = tmp_path / f"seed-{SEED}" / "results.jsonl"
    text = log.read_text(encoding="utf-8")
    log.write_text(text[:-20], encoding="utf-8")
    assert "| programs | 9 |" in run(tmp_path, "programs", 9)
    assert len(log.read_text(encoding="utf-8").splitlines()) == 10  # a broken one among them


@pytest.mark.parametrize(("part", "units"), [("calls", 2), ("processes", 1), ("coverage", 1)])
def test_other_parts(tmp_path: Path, part: str, units: int) -> None:
    assert f"| {part} | {units} |" in run(tmp_path, part, units)


def test_a_failure_is_found_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign would see a derivative that is wrong."""
    from benchmarks.reliability import programs
    from symgrad.ops.record import get

    square = get("square")
    monkeypatch.setitem(square.__dict__, "vjp", lambda node, g: (g * node.args[0],))
    monkeypatch.setattr(programs, "WAYS", {"reference": programs.WAYS["reference"]})
    units = (programs.unit("square", number)["failures"] for number in range(60))
    found = next(failures for failures in units if failures)
    assert found[0]["program"].count("\n") < 8
