"""The golden fixture fails when it should: each test runs pytest on a small suite of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
GOOD = "int twice(int x) {\\n    return 2 * x;\\n}\\n"
NARROWING = "int narrow(long x) {\\n    return x;\\n}\\n"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.syspath_prepend(str(REPOSITORY))
    pytester.makeini("[pytest]\ntestpaths = tests\naddopts = --import-mode=importlib")
    return pytester


def write_test(suite: pytest.Pytester, body: str) -> None:
    folder = suite.path / "tests" / "emit"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test_c.py").write_text(body)


def emitting(text: str, kind: str = "c") -> str:
    return f'def test_twice(golden):\n    golden("{text}", {kind!r})\n'


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest("-p", "tests.golden_files", *arguments)


def golden_file(suite: pytest.Pytester, name: str = "twice.c") -> Path:
    return suite.path / "tests" / "golden" / "emit" / "c" / name


def test_missing_then_written_then_equal(suite: pytest.Pytester) -> None:
    write_test(suite, emitting(GOOD))
    result = run(suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no golden file*twice.c*--update-golden*"])

    run(suite, "--update-golden").assert_outcomes(passed=1)
    assert golden_file(suite).read_text() == GOOD.encode().decode("unicode_escape")
    run(suite).assert_outcomes(passed=1)


def test_difference_is_shown_as_a_unified_diff(suite: pytest.Pytester) -> None:
    write_test(suite, emitting(GOOD))
    run(suite, "--update-golden")
    write_test(suite, emitting(GOOD.replace("2 * x", "x + x")))
    result = run(suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*--- *twice.c", "*+++ what was made", "*-*2 * x;", "*+*x + x;"])


def test_line_ends_count(suite: pytest.Pytester) -> None:
    write_test(suite, emitting(GOOD))
    run(suite, "--update-golden")
    path = golden_file(suite)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    run(suite).assert_outcomes(failed=1)


@pytest.mark.parametrize("kind", ["c", "h"])
def test_warnings_of_the_compiler_fail(suite: pytest.Pytester, kind: str) -> None:
    write_test(suite, emitting(NARROWING, kind))
    result = run(suite, "--update-golden")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*-Wconversion*"])


def test_other_texts_are_not_compiled(suite: pytest.Pytester) -> None:
    write_test(suite, emitting("not C", "py"))
    run(suite, "--update-golden").assert_outcomes(passed=1)
    run(suite).assert_outcomes(passed=1)


def test_flags_reach_the_compiler(suite: pytest.Pytester) -> None:
    write_test(suite, f'def test_twice(golden):\n    golden("{GOOD}", flags=["-Dint=nonsense"])\n')
    run(suite, "--update-golden").assert_outcomes(failed=1)


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_file_of_no_test_fails_the_whole_suite(
    suite: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_test(suite, emitting(GOOD))
    run(suite, "--update-golden")
    orphan = golden_file(suite, "thrice.c")
    orphan.write_text("")
    result = run(suite, *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*golden files of no test*", "tests/golden/emit/c/thrice.c"])
    # Nothing can be said where only a part was collected.
    assert run(suite, "tests/emit/test_c.py").ret == pytest.ExitCode.OK
    run(suite, "--update-golden")
    assert not orphan.exists()
    assert golden_file(suite).exists()


def test_orphans_are_found_though_tests_are_deselected(suite: pytest.Pytester) -> None:
    write_test(suite, emitting(GOOD) + "\n\ndef test_other():\n    pass\n")
    run(suite, "--update-golden")
    assert run(suite, "-k", "other").ret == pytest.ExitCode.OK
    golden_file(suite, "thrice.c").write_text("")
    assert run(suite, "-k", "other").ret == pytest.ExitCode.TESTS_FAILED


def test_file_that_its_test_asks_for_no_more_fails(suite: pytest.Pytester) -> None:
    write_test(suite, emitting(GOOD))
    run(suite, "--update-golden")
    left_over = golden_file(suite, "twice.backward.c")
    left_over.write_text("")
    result = run(suite)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*does not ask for*twice.backward.c*"])
    run(suite, "--update-golden")
    assert not left_over.exists()


def test_parameters_have_files_of_their_own(suite: pytest.Pytester) -> None:
    write_test(
        suite,
        "import pytest\n"
        '@pytest.mark.parametrize("n", ["a.b", "c d"])\n'
        'def test_it(golden, n):\n    golden(n, "txt")\n',
    )
    run(suite, "--update-golden").assert_outcomes(passed=2)
    files = sorted(path.name for path in golden_file(suite).parent.iterdir())
    assert files == ["it-a-b.txt", "it-c-d.txt"]


def test_two_tests_never_share_a_file(suite: pytest.Pytester) -> None:
    write_test(
        suite,
        "import pytest\n"
        '@pytest.mark.parametrize("n", ["a.b", "a-b"])\n'
        'def test_it(golden, n):\n    golden("", "txt")\n',
    )
    result = run(suite, "--update-golden")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*share their golden files*"])
