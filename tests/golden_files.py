"""The ``golden`` fixture: text that a test makes, held against a file that is checked in.

In: ``golden(text, "forward.c")`` in a test.  Out: a pass, or a failure that shows a unified diff.
The file of ``test_emit[softmax]`` in ``tests/codegen/test_schedule.py`` is
``tests/golden/codegen/schedule/emit-softmax.forward.c``.

- A missing file fails, and so does one that its test no longer asks for.
- A session that collects the whole suite fails on files that belong to no test.
- C and headers must compile without a warning, as strictly as `STRICT_FLAGS` says.
- ``pytest --update-golden`` writes what is made, and deletes what is no longer asked for.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from symgrad.codegen.emit.file import PRELUDE, prelude

STRICT_FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
_C_SUFFIXES = (".c", ".h")
_ORPHANS = pytest.StashKey[list[str]]()


def compile_strictly(text: str, *, suffix: str = ".c", flags: Sequence[str] = ()) -> None:
    """Compile ``text`` with `STRICT_FLAGS` and ``flags``; fail with what the compiler says."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "golden" + suffix)
        Path(folder, PRELUDE).write_text(prelude(), encoding="utf-8")
        source.write_text(text, encoding="utf-8")
        # Optimised, since some warnings come from the analyses that optimising needs.
        command = [*compiler, *STRICT_FLAGS, "-O1", "-x", "c", *flags, "-c", str(source)]
        command += ["-o", str(Path(folder, "golden.o"))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.fail(f"no C compiler: {compiler[0]!r} is not on the path", pytrace=False)
    if done.returncode:
        pytest.fail(f"{shlex.join(command)}\n{done.stderr}", pytrace=False)


class Golden:
    """The golden files of one test; calling it compares one of them."""

    def __init__(self, stem: Path, *, update: bool) -> None:
        self._stem = stem
        self._update = update
        self._used: set[Path] = set()

    def __call__(self, text: str, kind: str = "c", *, flags: Sequence[str] = ()) -> None:
        """Hold ``text`` against the file ``<test>.<kind>``; C is compiled too, with ``flags``."""
        path = self._stem.with_name(f"{self._stem.name}.{kind}")
        self._used.add(path)
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        elif not path.exists():
            pytest.fail(f"no golden file {path}: pytest --update-golden writes it", pytrace=False)
        else:
            self._compare(path, text)
        if path.suffix in _C_SUFFIXES:
            compile_strictly(text, suffix=path.suffix, flags=flags)

    def _compare(self, path: Path, text: str) -> None:
        expected = path.read_bytes().decode("utf-8")
        if text != expected:
            diff = difflib.unified_diff(
                expected.splitlines(keepends=True),
                text.splitlines(keepends=True),
                fromfile=str(path),
                tofile="what was made",
            )
            pytest.fail("".join(diff) or "only line ends differ", pytrace=False)

    def finish(self) -> None:
        """Fail on files of this test that it did not ask for (or delete them)."""
        found = set(self._stem.parent.glob(f"{self._stem.name}.*"))
        orphans = sorted(found - self._used)
        if self._update:
            for path in orphans:
                path.unlink()
        elif orphans:
            names = ", ".join(map(str, orphans))
            pytest.fail(f"golden files that the test does not ask for: {names}", pytrace=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    """Compare text with checked-in files; see the module's docstring."""
    files = Golden(_stem(request.node), update=request.config.getoption("--update-golden"))
    yield files
    report = request.node.stash.get(_REPORT, None)
    if report is not None and report.passed:  # a test cut short has not asked for everything
        files.finish()


_REPORT = pytest.StashKey[pytest.TestReport]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_REPORT] = report
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files")
    parser.addini("golden_root", "where golden files lie", default="tests/golden")


def _root(config: pytest.Config) -> Path:
    return config.rootpath / str(config.getini("golden_root"))


def _stem(item: pytest.Item) -> Path:
    """The path of a test's golden files, without what comes after the first dot."""
    root = _root(item.config)
    module = item.path.relative_to(root.parent).with_suffix("")
    folder = module.with_name(module.name.removeprefix("test_"))
    function = item.nodeid.partition("::")[2].removeprefix("test_")
    name = re.sub(r"[^A-Za-z0-9_]+", "-", function).strip("-")
    return root / folder / name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Find the orphans, before anything is deselected, where the whole suite was collected."""
    stems: dict[Path, str] = {}
    for item in items:
        if "golden" in getattr(item, "fixturenames", ()):
            other = stems.setdefault(_stem(item), item.nodeid)
            if other != item.nodeid:
                raise pytest.UsageError(f"{other} and {item.nodeid} share their golden files")
    if _whole_suite(config):
        files = sorted(path for path in _root(config).rglob("*") if path.is_file())
        orphans = [path for path in files if _without_kind(path) not in stems]
        if config.getoption("--update-golden"):
            for path in orphans:
                path.unlink()
        else:
            config.stash[_ORPHANS] = [str(path.relative_to(config.rootpath)) for path in orphans]


def _without_kind(path: Path) -> Path:
    return path.with_name(path.name.partition(".")[0])


def _whole_suite(config: pytest.Config) -> bool:
    """Whether the session's arguments cover all of the suite."""
    suite = [config.rootpath / path for path in config.getini("testpaths") or ["."]]
    given = [config.invocation_params.dir / argument for argument in config.args]
    everything = all(any(path.is_relative_to(folder) for folder in given) for path in suite)
    narrowed = any(config.getoption(name, None) for name in ("lf", "ignore", "quick"))
    return everything and not narrowed


def pytest_testnodedown(node: Any) -> None:
    """Take over what a pytest-xdist worker found."""
    node.config.stash[_ORPHANS] = getattr(node, "workeroutput", {}).get("golden_orphans", [])


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    orphans = session.config.stash.get(_ORPHANS, [])
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["golden_orphans"] = orphans
    elif orphans:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    orphans = config.stash.get(_ORPHANS, [])
    if orphans:
        terminalreporter.section("golden files of no test", red=True)
        for path in orphans:
            terminalreporter.line(path)
        terminalreporter.line("pytest --update-golden deletes them")
