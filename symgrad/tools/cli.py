"""The command line: verify, build, show, regen.

In: ``sys.argv``.  Out: text, files, an exit status: 0 for success, 1 where a backward is not PROVED
or a generated file differs, 2 for a wrong call.

Each command imports what it needs when it runs, so that help and errors of the call cost little.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from symgrad.budgets import VERDICT_SECONDS
from symgrad.errors import InferredShapesWarning, SpecError, SymgradError
from symgrad.ir.assume import joined
from symgrad.stages import ALLOWED, PREFERENCES, STAGES
from symgrad.tools import watched

if TYPE_CHECKING:
    from rich.console import Console

    from symgrad.accuracy.records import Accuracy
    from symgrad.frontend.function import Function
    from symgrad.proof.report.records import Report
    from symgrad.tools.configured import Configured
    from symgrad.tools.judging import Judged
    from symgrad.validation import Validation


class _Group(click.Group):
    """An error that a user can cause ends in one message and status 2, without a traceback."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Look for ``--json`` first, so that errors of parsing are JSON too."""
        context.obj = _Answer() if "--json" in args else None
        return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # file names need not be text
                stream.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings(), context.obj or nullcontext():
            warnings.showwarning = _warned(warnings.showwarning)
            return self._invoke(context)

    def _invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except SymgradError as error:
            error.hint = _as_option(error.hint)
            raise click.ClickException(f"{type(error).__name__}: {error.shown()}") from error
        except KeyboardInterrupt as end:
            raise click.ClickException("interrupted: there is no verdict") from end
        except SystemExit as end:
            raise click.ClickException(
                f"the program under test ended the process (status {end.code}): there is no verdict"
            ) from end


click.ClickException.exit_code = 2


def _as_option(hint: str) -> str:
    """A hint for callers in Python, for the command line: ``--allow "REFUTED"``."""
    return re.sub(r'\ballow=\(("[^"]+"),\)', r"--allow \1", hint)


def _warned(otherwise: Callable[..., None]) -> Callable[..., None]:
    """A ``showwarning`` that prints only the sentence of a warning of inferred shapes.

    A line of the program is run for many shapes: of equal warnings the first is printed.
    """
    seen = set[Any]()

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        said = category, str(message), where[:2]
        if said in seen:
            return
        seen.add(said)
        if category is InferredShapesWarning:
            click.echo(str(message), err=True)
        else:
            otherwise(message, category, *where)

    return show


def _exit(status: int) -> NoReturn:
    """End with a status; SystemExit would count as the user's."""
    raise click.exceptions.Exit(status)


class _Answer:
    """What ``--json`` prints: only JSON, with an object ``error`` where the call fails.

    Everything else that Python, C or a child process prints goes to stderr.  In a watched process
    the parent writes the answer after the process has ended.
    """

    value: Any = None

    def __enter__(self) -> None:
        self.watched = watched.take_stdout()
        self.meanwhile = nullcontext() if self.watched else _stdout_to_stderr()
        self.meanwhile.__enter__()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.meanwhile.__exit__(None, None, None)
        if error is not None and not isinstance(error, click.exceptions.Exit):
            self.value = {"error": _told(error)}
        if self.value is not None:
            text = json.dumps(_finite(self.value), indent=2, allow_nan=False)
            (watched.answer if self.watched else click.echo)(text)


def _told(error: BaseException) -> dict[str, Any]:
    """An error for ``--json``."""
    cause = error.__cause__ if isinstance(error.__cause__, SymgradError) else error
    found: dict[str, Any] = {"type": type(cause).__name__}
    if isinstance(cause, click.ClickException):
        return {**found, "message": cause.format_message()}
    if not isinstance(cause, SymgradError):
        return {**found, "message": str(cause)}
    found |= {"message": cause.what, "hint": cause.hint}
    if cause.location is not None:
        found |= {"file": cause.location.file, "line": cause.location.line}
    return found


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    sys.stdout.flush()
    before = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        os.dup2(before, 1)
        os.close(before)


def _answer(value: Any) -> None:
    """Set what ``--json`` prints; NaN and infinities become strings."""
    click.get_current_context().obj.value = value


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="symgrad")
def main() -> None:
    """Judge hand-written backwards, and turn them into C."""


def _pairs(values: Sequence[str], option: str) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise SpecError(f"{option} {value!r} is not NAME=VALUE")
        found[name.strip()] = text.strip()
    return found


def _static(texts: Sequence[str], functions: Sequence[type[Function]]) -> dict[str, Any]:
    """``beta=2.5``: values of non-tensor arguments."""
    from symgrad.tools.shell import values

    return values(_pairs(texts, "--static"), functions)


def _specs(shapes: str | None) -> tuple[str | None, ...]:
    """``"n m; m; None"``: one spec a tensor input."""
    if shapes is None:
        return ()
    from symgrad.declarations import specs_in

    return specs_in(shapes)


def _arguments(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say what a Function is called with."""
    for option in reversed(
        (
            click.option(
                "--shapes",
                help='One spec a tensor input: "n k; m k; m" or "f32[n]; []"; with quotes, '
                'containers as in Python: {"w": "d m", "b": "m"}, "n d".',
            ),
            click.option(
                "--static",
                multiple=True,
                metavar="NAME=VALUE",
                help="A non-tensor argument: alpha=0.5, flag=True, reduction=mean, "
                "dtype=torch.float64, mode=Mode.FAST.",
            ),
            click.option(
                "--assume",
                multiple=True,
                help='NAME=FACT, as "x=positive", or a relation, "x < y"; all of them hold.',
            ),
        )
    ):
        command = option(command)
    return command


_timeout = click.option(
    "--timeout", type=click.FloatRange(0), metavar="SECONDS", default=VERDICT_SECONDS,
    show_default=True,
    help="Processor time for each verdict; what is not decided by then is UNDECIDED.  0: no limit.",
)  # fmt: skip


def _file_option(name: str, text: str) -> Callable[..., Any]:
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option(name, type=path, metavar="FILE", help=text)


_config = _file_option(
    "--config", "Declarations, in the place of the nearest symgrad.toml or pyproject.toml."
)
_no_config = click.option("--no-config", is_flag=True, help="Read no declarations.")


@main.command()
@click.argument("targets", nargs=-1, metavar="FILE|PACKAGE[:CLASS]...")
@_arguments
@click.option(
    "--order", type=click.IntRange(1, 2), default=1, help="2: judge the derivative of backward too."
)
@click.option(
    "--replace", multiple=True, metavar="MODULE.FN=REF.FN",
    help="Call another function in the place of one that cannot be traced, such as a kernel; that"
    " it computes the same is printed as a condition.",
)  # fmt: skip
@click.option(
    "--audit", is_flag=True, help="Evaluate both sides of what is PROVED at random points as well."
)
@_timeout
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=1, metavar="N",
    help="Judge so many Functions at the same time, each in a process of its own.",
)  # fmt: skip
@click.option("--no-cache", is_flag=True, help="Prove again what was PROVED before.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Reports on what passes, too.")
@click.option("--quiet", is_flag=True, help="Only the table, no reports.")
@click.option("--suggest", is_flag=True, help="Print a diff that fixes the backward: patch -p1.")
@_config
@_no_config
@click.option(
    "--write-config", is_flag=True,
    help="Append the shapes and values that were found by trying to symgrad.toml.",
)  # fmt: skip
@_file_option(
    "--sarif",
    "Write what is not PROVED, and conditions of what is, as SARIF 2.1.0, for annotations in CI.",
)
@_file_option("--junit", "Write a JUnit report: one test case a Function.")
@_file_option("--write-test", "Write the counterexamples as a pytest file that fails until fixed.")
@click.option(
    "--certificate",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Prove a built package again, and compare every file in it.  The sources that its"
    " manifest names are imported, so their code runs; the package's code does not.",
)
@click.option(
    "--root",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="The folder of the sources that the manifest names.",
)
def verify(
    targets: Sequence[str], shapes: str | None, static: Sequence[str], assume: Sequence[str],
    order: int, replace: Sequence[str], audit: bool, timeout: float, jobs: int, no_cache: bool,
    as_json: bool, verbose: bool, quiet: bool, suggest: bool, config: Path | None, no_config: bool,
    write_config: bool, sarif: Path | None, junit: Path | None, write_test: Path | None,
    certificate: Path | None, root: Path | None,
) -> None:  # fmt: skip
    """Is the backward right?  Exit status: 0 if all are PROVED, 1 if not, 2 for a wrong call.

    FILE is imported, so its code runs: do not verify a file that you would not run.

    Shapes come from --shapes, else from the annotations of forward (x: "f32[n m]", or
    jaxtyping's types), else they are inferred from what forward accepts, which the report then
    says: the verdict is the worst of those for the shapes that it names.

    What the nearest symgrad.toml above a file, or [tool.symgrad] in pyproject.toml, declares of a
    class counts where nothing is said here.
    """
    if certificate is not None:
        _certificate(certificate, root, targets, as_json)
    if not targets:
        raise click.UsageError("name a FILE or a PACKAGE, or --certificate DIR")
    from rich.console import Console
    from rich.markup import escape

    from symgrad.tools import discover
    from symgrad.tools.configured import Configured
    from symgrad.tools.judging import Asked, alone_notes, judge_all, summary

    console = Console(stderr=as_json, highlight=False)
    found = discover.read(*targets)
    files = Configured(config, read=not no_config)
    functions, _ = discover.parted(found)
    files.check(functions)
    asked = Asked(
        _specs(shapes), _static(static, functions), joined(assume), order, audit, timeout or None,
        suggest, cached=not no_cache, config=files.of, references=_pairs(replace, "--replace"),
    )  # fmt: skip
    alone = write_test is not None or write_config
    judged = judge_all(found, console, asked, jobs=1 if alone else jobs)
    if as_json:
        _answer([one.to_dict() | (_diff(one) if suggest else {}) for one in judged])
    else:
        console.print(summary(judged))
        for note in [*alone_notes(judged), *discover.not_made(targets, found)]:
            console.print(note, markup=False)
        for one in [] if quiet else judged:
            if audit or verbose or not one.passes:
                console.print(escape(one.text), soft_wrap=True)
        if suggest:
            _print_diffs(judged)
    _write_files(judged, sarif, junit, write_test)
    if write_config:
        for line in files.write(judged):
            click.echo(line, err=True)
    _exit(0 if all(one.passes for one in judged) else 1)


def _diff(one: Judged) -> dict[str, str]:
    """The repair for ``--json``, or why there is none."""
    return {"diff": one.diff, **({"no_diff": one.no_diff} if one.no_diff else {})}


def _print_diffs(judged: Sequence[Judged]) -> None:
    """Print repairs of REFUTED backwards as unified diffs; each was applied and proved."""
    for one in judged:
        if one.diff:
            click.echo(one.diff.encode(errors="surrogateescape"), nl=False)
        elif one.no_diff:
            click.echo(f"{one.name}: no diff: {one.no_diff}", err=True)


def _certificate(
    folder: Path, root: Path | None, targets: Sequence[str], as_json: bool
) -> NoReturn:
    """Exit status 0 if the package is what its manifest says, 1 if not."""
    from symgrad.tools.certificate import check

    if targets:
        raise click.UsageError("--certificate DIR takes no FILE: the manifest names the files")
    found = check(folder, root)
    if as_json:
        _answer(found.to_dict())
    else:
        click.echo(str(found))
    _exit(0 if found.holds else 1)


def _write_files(
    judged: Sequence[Judged], sarif: Path | None, junit: Path | None, write_test: Path | None
) -> None:
    """Write the requested files."""
    if sarif is junit is write_test is None:
        return
    from symgrad.tools import outputs

    if sarif is not None:
        outputs.write(sarif, outputs.sarif(judged, Path.cwd()))
    if junit is not None:
        outputs.write(junit, outputs.junit(judged))
    if write_test is None:
        return
    from symgrad.tools.regression import regression_tests

    written = regression_tests(judged, write_test)
    if written.text:
        outputs.write(write_test, written.text)
        click.echo(f"written: {write_test}, {len(written.tests)} failing", err=True)
    else:
        click.echo("no counterexample to write a test for", err=True)
    for line in written.left_out:
        click.echo(f"no test for {line}", err=True)


@main.command("scan")
@click.argument("place", metavar="FILE|FOLDER|PACKAGE")
@_timeout
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=lambda: os.cpu_count() or 1, metavar="N",
    show_default="one a processor", help="Judge so many classes at the same time.",
)  # fmt: skip
@click.option(
    "--memory", type=click.FloatRange(0), default=4.0, metavar="GB", show_default=True,
    help="Memory that each class may take beside torch.  0: no limit.",
)  # fmt: skip
@_config
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_file_option(
    "--sarif",
    "Write what is not PROVED, and conditions of what is, as SARIF 2.1.0, for annotations in CI.",
)
@_file_option("--html", "Write one HTML file, with formulas, counterexamples, diffs and pictures.")
@click.option(
    "--write-tests", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Write a pytest file for each class that is refuted, or a surrogate: it replays the "
    "counterexample, and fails until backward is fixed.",
)  # fmt: skip
def scan_command(
    place: str, timeout: float, jobs: int, memory: float, config: Path | None, as_json: bool,
    sarif: Path | None, html: Path | None, write_tests: Path | None,
) -> None:  # fmt: skip
    """Find every Function of a package by reading its source, and judge each of them.

    Each class is imported and judged in a process of its own, with limits on time and memory.
    IMPORTING A MODULE RUNS ITS CODE, and that of whatever it imports; a class that is refuted, or
    of which no shapes are found by tracing, is run as well.  A process is no sandbox: do not scan
    a package that you would not use.

    Exit status: 0 if all are PROVED (or what symgrad.toml expects), 1 if not, 2 for a wrong call.
    Ctrl-C ends with 130, and SIGTERM with 143, once what was judged is written; it is marked as
    incomplete.
    """
    import time

    from rich.console import Console

    from symgrad.tools import outputs, scan
    from symgrad.tools.configured import Configured
    from symgrad.tools.importing import look_here
    from symgrad.tools.sources import sources

    started = time.perf_counter()
    console = Console(stderr=as_json, highlight=False)
    look_here()
    found = sources(place)
    files = Configured(config)
    files.check_sources(found)
    if write_tests is not None:
        write_tests.mkdir(parents=True, exist_ok=True)
    limits = scan.Limits(timeout or None, int(memory * 2**30) or None, write_tests)
    pages = html is not None
    found_out = scan.scan(found, console, limits, files, jobs, pages=pages)
    scanned, incomplete = found_out.judged, found_out.incomplete
    seconds = time.perf_counter() - started
    if sarif is not None:
        outputs.write(sarif, outputs.sarif(scanned, Path.cwd(), incomplete, found_out.status))
    if html is not None:
        from symgrad.tools.page import page

        counts, notes = scan.counts(scanned), scan.notes(scanned)
        outputs.write(html, page(place, scanned, counts, notes, seconds, incomplete))
    if as_json:
        _answer(scan.as_dict(place, found_out, seconds))
    else:
        console.print(scan.summary(scanned, Path.cwd()))
        for note in scan.notes(scanned):
            console.print(note, markup=False)
        said = ", ".join(f"{number} {name}" for name, number in scan.counts(scanned).items())
        click.echo(f"{len(scanned)} Functions in {seconds:.0f} s: {said or 'none'}")
    if incomplete:
        click.echo(f"incomplete: {incomplete}", err=True)
    _exit(found_out.status)


@main.command("accuracy")
@click.argument("targets", nargs=-1, required=True, metavar="OPERATION|FILE|PACKAGE[:CLASS]...")
@_arguments
@click.option(
    "--dtype", type=click.Choice(("float32", "float64", "both")), default="both", show_default=True
)
@click.option(
    "--sizes", multiple=True, metavar="n=100,m=30",
    help="Sizes at which ops with reductions are looked at, instead of all sizes alike.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_file_option("--plot", "Draw the worst errors of the one op over its inputs: FILE.svg.")
@_config
@_no_config
def accuracy_command(
    targets: Sequence[str], shapes: str | None, static: Sequence[str], assume: Sequence[str],
    dtype: str, sizes: Sequence[str], as_json: bool, plot: Path | None, config: Path | None,
    no_config: bool,
) -> None:  # fmt: skip
    """Print how far compiled kernels are from their formulas, by ball arithmetic.

    Elementwise kernels: over all exponents, in units of the last place.  Others: at random inputs,
    relative to the sum of magnitudes.  Gradients are those of backward as it is written.
    """
    from rich.console import Console

    from symgrad import compiler
    from symgrad.ir.dtype import float32, float64
    from symgrad.tools import accuracy, plots
    from symgrad.tools.configured import Configured

    console = Console(stderr=as_json, highlight=False)
    files = Configured(config, read=not no_config)
    found = []
    for function, own in [one for target in targets for one in accuracy.chosen(target)]:
        found.append(compiler.accuracy(
            function, *(own or _specs(shapes)), static=_static(static, [function]),
            assume=joined(assume) or None, config=files.of,
            dtypes=[one for one in (float32, float64) if dtype in (str(one), "both")],
            sizes=accuracy.sizes(sizes),
        ))  # fmt: skip
        if not as_json:
            _print_accuracy(console, found[-1])
    if plot is not None:
        plot.write_text(plots.errors([one for each in found for one in each.results]))
        click.echo(f"written: {plot}", err=True)
    if as_json:
        _answer([one.to_dict() for one in found])
    _exit(1 if any(one.failed for one in found) else 0)


def _print_accuracy(console: Console, found: Accuracy) -> None:
    """Tables of one op."""
    from symgrad.tools import accuracy

    if found.failed:
        console.print(f"{found.name}: {found.failed}", markup=False)
        return
    console.print(accuracy.table(found))
    special = accuracy.special_table(found)
    if special is not None:
        console.print(special)
    for note in found.notes:
        console.print(note, markup=False)


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="FILE|PACKAGE[:CLASS]...")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option(
    "--package",
    metavar="NAME",
    help="Write a project to DIR, with pyproject.toml and tests, whose package has this name.",
)
@_arguments
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(ALLOWED),
)
@click.option(
    "--prefer",
    type=click.Choice(PREFERENCES),
    default="hand",
    show_default=True,
    help="The backward of the kernels: as written, the derivative in its place, or the cheaper.",
)
@click.option("--no-validate", is_flag=True, help="Do not validate the C against what was traced.")
@click.option("--check", is_flag=True, help="Write nothing; fail if DIR would change.")
@click.option(
    "--report", is_flag=True,
    help="Write DIR/report.html: errors, costs, workspace and proofs of all kernels.",
)  # fmt: skip
@click.option("--scaling", is_flag=True, help="Measure times on more threads for the report: -j 1.")
@click.option("--no-compile", is_flag=True, help="Write the sources only.")
@click.option("--no-cache", is_flag=True, help="Prove again what was PROVED before.")
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=lambda: os.cpu_count() or 1, metavar="N",
    show_default="one a processor", help="Make so many ops at the same time.",
)  # fmt: skip
@_config
@_no_config
@_timeout
def build(
    targets: Sequence[str], output: Path, package: str | None, shapes: str | None,
    static: Sequence[str], assume: Sequence[str], allow: Sequence[str], prefer: str,
    no_validate: bool, check: bool, report: bool, scaling: bool, no_compile: bool, no_cache: bool,
    jobs: int, config: Path | None, no_config: bool, timeout: float,
) -> None:  # fmt: skip
    """Write C, header, wrapper and manifest: a package that needs no symgrad to import.

    Each kernel and wrapper is validated against what was traced.
    """
    from rich.console import Console

    from symgrad import compiler
    from symgrad.tools import discover, sheets
    from symgrad.tools.building import in_turn
    from symgrad.tools.configured import Configured

    files = Configured(config, read=not no_config)
    found = discover.functions(*targets)
    files.check(found)
    chosen = files.built(found, partial(click.echo, err=True))
    difference = compiler.build(
        chosen, output, specs=_specs(shapes), static=_static(static, chosen),
        assume=joined(assume) or None, allow=tuple(allow), check=check,
        compiled=not no_compile, root=Path.cwd(), timeout=timeout or None, config=files.of,
        validate=not no_validate, package=package, told=_built, cached=not no_cache,
        each=partial(in_turn, console=Console(stderr=True), jobs=1 if scaling else jobs),
        sheets=partial(sheets.write, output, package or output.name) if report else None,
        scaling=scaling, prefer=prefer,
    )  # fmt: skip
    _finish(difference, check, output)


def _built(name: str, report: Report, validation: Validation | None) -> None:
    """What became of an op that is being built."""
    said = "" if validation is None else f", its C {validation.verdict}"
    click.echo(f"{name}: {report.verdict}{said}")
    for one in validation.findings if validation is not None else ():
        if one.verdict != "VALIDATED":
            click.echo(f"  {one}")


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; fail if a file would change.")
def regen(check: bool) -> None:
    """Regenerate generated/, the kernels of operations and sg.nn, and what sympy says of ops."""
    from symgrad import compiler
    from symgrad.tensor.plans.shippedplan import SHIPPED

    root = Path(__file__).resolve().parents[2]
    target = root / "generated"
    if not target.is_dir():
        raise SpecError(f"{root} is not a checkout of symgrad", hint="run regen in a checkout")
    names = {function: name for name, function in SHIPPED.items()}
    difference = _regenerate(root / TABLES, check)
    difference += compiler.build(
        list(names),
        target,
        check=check,
        compiled=False,
        root=root,
        names=names,
        fixed=True,
        on_numpy=False,
    )
    _finish(difference, check, target)


TABLES = Path("symgrad", "proof", "scalars", "tables.py")


def _regenerate(path: Path, check: bool) -> str:
    """Write what sympy says of the ops; return the difference."""
    from difflib import unified_diff

    from symgrad.proof.scalars.symbolic import tables

    before, after = path.read_text(encoding="utf-8"), tables()
    if not check:
        path.write_text(after, encoding="utf-8")
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(unified_diff(old, new, str(path), str(path)))


def _finish(difference: str, check: bool, folder: Path) -> None:
    if check:
        click.echo(difference or f"{folder} is up to date", nl=not difference)
        _exit(1 if difference else 0)
    click.echo(f"written: {folder}")


@main.command()
@click.argument("target", metavar="FILE|PACKAGE:CLASS")
@click.option("--stage", type=click.Choice(STAGES), default="graph", show_default=True)
@click.option(
    "--draw",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg",
    help="Draw forward, backward and what is saved, instead.",
)
@_arguments
@_config
@_no_config
def show(
    target: str, stage: str, draw: Path | None, shapes: str | None, static: Sequence[str],
    assume: Sequence[str], config: Path | None, no_config: bool,
) -> None:  # fmt: skip
    """Print a stage of the compiler, in the names of the user's source."""
    from symgrad.tools.configured import Configured

    files = Configured(config, read=not no_config)
    if draw is not None:
        _draw(target, draw, shapes, static, files)
        return
    from symgrad import compiler
    from symgrad.tools import discover

    for function in discover.functions(target):
        text = compiler.show(
            function, *_specs(shapes), stage=stage, static=_static(static, [function]),
            assume=joined(assume) or None, config=files.of,
        )  # fmt: skip
        click.echo(text)


def _draw(
    target: str, path: Path, shapes: str | None, static: Sequence[str], files: Configured
) -> None:
    from symgrad.compiler import asked_for
    from symgrad.drawing import draw
    from symgrad.frontend.trace import trace_request
    from symgrad.tools import discover

    chosen = discover.functions(target)
    if len(chosen) != 1:
        names = ", ".join(function.__qualname__ for function in chosen)
        raise SpecError(f"{target} has {len(chosen)} Functions: {names}", hint="add :Class")
    (function,), specs, values = chosen, _specs(shapes), _static(static, chosen)
    declared = files.of(function)
    if declared is None:
        draw(function, *specs, static=values).save(path)
    else:
        with declared.applied(function):
            graphs = trace_request(asked_for(function, declared, specs, values))
        draw(graphs).save(path)
    click.echo(f"written: {path}")
