"""``pytest --symgrad``: every Function that a file defines is a test, as doctests are.

In: the files that pytest collects.  Out: one item for each Function, which passes if PROVED and
fails with the report otherwise; one that fails for a file that cannot be imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from symgrad.declarations import Declared
    from symgrad.errors import SpecError
    from symgrad.frontend.function import Function
    from symgrad.tools.judging import Judged

_SHAPES = "symgrad_shapes"
_VALUES = "symgrad_values"
_ALONE = "symgrad_alone"
_SECTIONS = {
    _SHAPES: "symgrad: inferred shapes",
    _VALUES: "symgrad: values of arguments that verdicts hold for, derived backwards",
    _ALONE: "symgrad: files imported without the packages around them",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--symgrad``, ``-allow``, ``-order``, ``-timeout``, also as ini options; ``-no-cache``."""
    group = parser.getgroup("symgrad", "hand-written backwards, proved")
    group.addoption(
        "--symgrad", action="store_true", default=None,
        help="collect every symgrad.Function of the .py files as a test: PROVED passes",
    )  # fmt: skip
    group.addoption(
        "--symgrad-allow", action="append", choices=["UNDECIDED"], metavar="VERDICT",
        help="let UNDECIDED pass too",
    )  # fmt: skip
    group.addoption(
        "--symgrad-order", type=int, choices=[1, 2], default=None,
        help="2: judge the backward of the backward too",
    )  # fmt: skip
    group.addoption(
        "--symgrad-timeout", type=float, default=None, metavar="SECONDS",
        help="processor time for each verdict, 30 by default; 0: no limit",
    )  # fmt: skip
    group.addoption(
        "--symgrad-config", default=None, metavar="FILE",
        help="declarations, in the place of the nearest symgrad.toml or pyproject.toml",
    )  # fmt: skip
    group.addoption(
        "--symgrad-no-cache", action="store_true", help="prove again what was PROVED before"
    )
    parser.addini("symgrad", "collect every symgrad.Function as a test", type="bool", default=False)
    parser.addini("symgrad_allow", "verdicts other than PROVED that pass: UNDECIDED", type="args")
    parser.addini("symgrad_order", "1, or 2 to judge the backward of the backward too", default="1")
    parser.addini("symgrad_timeout", "seconds of processor time for each verdict; 0: no limit")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A collector for a file that may define Functions."""
    config = parent.config
    wanted = config.getoption("symgrad")
    if not (config.getini("symgrad") if wanted is None else wanted):
        return None
    from symgrad.tools.sources import SCRIPTS, may_define

    if file_path.suffix != ".py" or file_path.name in SCRIPTS or not may_define(file_path):
        return None
    while isinstance(parent, pytest.Package) and parent.parent is not None:
        parent = parent.parent  # a proof needs no set-up of the package, which may fail
    found: FunctionFile = FunctionFile.from_parent(parent, path=file_path)
    return found


class FunctionFile(pytest.Module):
    """A file, imported as pytest imports test modules; its items are the Functions it defines.

    What pytest cannot import is imported as ``symgrad verify`` does, without the packages around
    it where these fail.
    """

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """The Functions, in the order of the source."""
        from symgrad.errors import SpecError
        from symgrad.tools.discover import defined, refused_of
        from symgrad.tools.importing import load_file

        try:
            module = self.obj
        except (Exception, SystemExit):  # a test that fails; an error would end the whole run
            try:
                module = load_file(self.path)
            except SpecError as error:
                yield UnreadItem.from_parent(self, name="import", error=error)
                return
        for function in defined(module):
            yield FunctionItem.from_parent(self, name=function.__qualname__, function=function)
        for one in refused_of(module):
            yield UnreadItem.from_parent(self, name=one.name, error=one.error)


class _Item(pytest.Item):
    """A test that fails with a report."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_marker("symgrad")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report; a traceback where symgrad itself fails."""
        if isinstance(excinfo.value, NotPassed):
            return excinfo.value.judged.text
        return super().repr_failure(excinfo, style)


class UnreadItem(_Item):
    """A file that cannot be imported, or a class in it that its library refuses."""

    def __init__(self, *, error: SpecError, **options: Any) -> None:
        super().__init__(**options)
        self.error = error

    def runtest(self) -> None:
        """Raises NotPassed, which holds the error."""
        from symgrad.frontend.function import Function
        from symgrad.tools.judging import OfFile

        raise NotPassed(OfFile(Function, error=self.error, path=Path(self.nodeid.split("::")[0])))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file, and the line of it that fails."""
        where = self.error.location
        own = where is not None and Path(where.file) == self.path
        return self.path, where.line - 1 if own and where is not None else None, "[symgrad] import"


class FunctionItem(_Item):
    """The proof of one Function as a test."""

    def __init__(self, *, function: type[Function], **options: Any) -> None:
        super().__init__(**options)
        self.function = function

    def runtest(self) -> None:
        """Judge it.  Raises NotPassed, which holds the report."""
        from symgrad.tools.judging import judge

        judged = judge(
            self.function, order=_order(self.config), timeout=_timeout(self.config) or None,
            cached=not self.config.getoption("symgrad_no_cache"),
            declared=_declared(self.config, self.function),
        )  # fmt: skip
        if judged.verdict == "IGNORED":
            pytest.skip(judged.expectation)
        if judged.alone:
            self.user_properties.append((_ALONE, judged.alone))
        if judged.inferred:
            self.user_properties.append((_SHAPES, judged.inferred))
        report = judged.report
        if report is not None and (judged.given or judged.derived or report.declared):
            under = f", declared: {report.declared}" if report.declared else ""
            notes = "".join(f"; note: {note}" for note in judged.reservations)
            self.user_properties.append((_VALUES, f"{report.stated}{under}{notes}"))
        if not judged.passes and judged.verdict not in _allowed(self.config):
            raise NotPassed(judged)
        self.add_report_section("call", "symgrad", judged.text)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file, the line of the class, the name."""
        from symgrad.frontend.function import class_location

        location = class_location(self.function)
        return self.path, location.line - 1 if location else None, f"[symgrad] {self.name}"


class NotPassed(Exception):
    """A verdict that is neither PROVED nor allowed."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(judged.text)
        self.judged = judged


def _order(config: pytest.Config) -> int:
    given = config.getoption("symgrad_order")
    text = str(config.getini("symgrad_order") if given is None else given)
    if text not in ("1", "2"):
        raise pytest.UsageError(f"symgrad_order is 1 or 2, not {text!r}")
    return int(text)


def _declared(config: pytest.Config, function: type[Function]) -> Declared | None:
    """What ``--symgrad-config``, or the nearest file above the class, declares of it."""
    from symgrad.errors import SymgradError
    from symgrad.tools.configured import Configured

    given = config.getoption("symgrad_config")
    try:
        files = Configured(Path(given) if given else None)
        files.check([function])
        return files.of(function)
    except SymgradError as error:
        raise pytest.UsageError(error.shown()) from error


def _timeout(config: pytest.Config) -> float:
    from symgrad.budgets import VERDICT_SECONDS

    given = config.getoption("symgrad_timeout")
    text = str(config.getini("symgrad_timeout") or VERDICT_SECONDS if given is None else given)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < math.inf:
        raise pytest.UsageError(f"symgrad_timeout is a number of seconds, not {text!r}")
    return seconds


def _allowed(config: pytest.Config) -> list[str]:
    allowed = [*(config.getoption("symgrad_allow") or ()), *config.getini("symgrad_allow")]
    if not set(allowed) <= {"UNDECIDED"}:
        raise pytest.UsageError(f"symgrad_allow can only be UNDECIDED, not {', '.join(allowed)}")
    return allowed


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker ``symgrad``, for ``-m``."""
    config.addinivalue_line("markers", "symgrad: the proof of a Function (--symgrad)")


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    """``PASSED for alpha = 1.0``: a verdict is printed with the values that it holds for."""
    values = [text for name, text in getattr(report, "user_properties", ()) if name == _VALUES]
    if report.when != "call" or not report.passed or not values:
        return None
    return "passed", ".", f"PASSED, {values[0]}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print inferred shapes and plain values, of passed tests too."""
    for key, title in _SECTIONS.items():
        lines = [
            f"{report.nodeid}: {text}"
            for reports in terminalreporter.stats.values() for report in reports
            if getattr(report, "when", "") == "call"
            for name, text in report.user_properties if name == key
        ]  # fmt: skip
        if lines:
            terminalreporter.section(title)
            for line in sorted(lines):
                terminalreporter.line(line)
