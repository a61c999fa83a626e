"""The campaign: random programs, hostile calls and killed processes, against torch.

    python -m benchmarks.reliability --minutes 5 --jobs 2

In: what to do for how long.  Out: ``results.jsonl`` in ``--folder``, from which a second run goes
on, and a table at the end.  Exits with 1 where anything failed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import Progress

from benchmarks.reliability import results
from benchmarks.reliability.notes import ASKED
from benchmarks.reliability.parts import PARTS, chosen
from benchmarks.reliability.pool import GRACE_SECONDS, ROOT, Schedule, campaign
from benchmarks.reliability.worker import run_unit

FOLDER = ROOT / "build" / "reliability"


@click.command(help=__doc__.splitlines()[0] if __doc__ else "")
@click.option("--minutes", type=float, help="Of running time: 5, or a day where --units is given.")
@click.option("--jobs", type=int, default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--seed", default="0", show_default=True, help="Fixes everything but the time.")
@click.option("--only", type=click.Choice(sorted(PARTS)), multiple=True, help="These parts alone.")
@click.option("--way", "ways", multiple=True, help="Each program goes these ways, and no others.")
@click.option("--units", type=int, help="So many units of each part, whatever the time.")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Results, cache.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the table there too.")
@click.option("--fresh", is_flag=True, help="Forget earlier results of this seed.")
@click.option("--replay", metavar="PART:NUMBER", help="Run one unit here, and show its record.")
def main(
    minutes: float | None, jobs: int, seed: str, only: tuple[str, ...], ways: tuple[str, ...],
    units: int | None, folder: Path, report: Path | None, fresh: bool, replay: str | None,
) -> None:  # fmt: skip
    """Run, show, exit with 1 where anything failed."""
    folder = (folder / "-".join(["seed", seed, *ways])).absolute()
    os.environ[ASKED] = ",".join(ways)
    folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    if replay:
        _replay(replay, seed, folder, console)
        return
    log = folder / "results.jsonl"
    if fresh:
        log.unlink(missing_ok=True)
    records = results.read(log)
    minutes = minutes or (5.0 if units is None else 24 * 60.0)
    _run(records, log, Schedule(
        chosen(only, units, folder), [(one["part"], one["number"]) for one in records],
        time.monotonic() + minutes * 60,
    ), seed, jobs, minutes)  # fmt: skip
    page = results.report(records, seed)
    (folder / "report.md").write_text(page, encoding="utf-8")
    if report is not None:
        report.write_text(page, encoding="utf-8")
    console.print(Markdown(page) if console.is_terminal else page, markup=False, highlight=False)
    sys.exit(bool(results.failures(records)))


def _run(
    records: list[results.Record], log: Path, schedule: Schedule, seed: str, jobs: int,
    minutes: float,
) -> None:  # fmt: skip
    with Progress() as progress:
        bar = progress.add_task("", total=minutes * 60 + GRACE_SECONDS)

        def keep(record: dict[str, Any]) -> None:
            records.append(record)
            results.append(log, record)
            failed = len(results.failures(records))
            left = schedule.end - time.monotonic()
            progress.update(
                bar,
                completed=minutes * 60 - left,
                description=f"{len(records)} units, {failed} failures",
            )

        campaign(schedule, seed, jobs, log.parent, keep)


def _replay(which: str, seed: str, folder: Path, console: Console) -> None:
    """One unit in this process, with the environment of its part."""
    name, _, number = which.partition(":")
    (part,) = chosen((name,), None, folder)
    os.environ.update(part.environment)
    console.print_json(data=run_unit(name, seed, int(number)))


if __name__ == "__main__":
    main()
