"""What was PROVED is not proved again, and nothing else is taken for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import symgrad as sg
from symgrad import compiler, kept, verdicts
from symgrad.proof.report.records import Report
from symgrad.proof.report.rendering import as_html
from symgrad.proof.report.stored import restored, stored
from symgrad.proof.report.verdict import Verdict
from symgrad.runtime import cache
from symgrad.runtime.digests import digest
from symgrad.tools import outputs
from symgrad.tools.discover import defined
from symgrad.tools.importing import load_file
from symgrad.tools.judging import Judged, judge

SOURCE = """
import symgrad as sg

RATE = 2.5


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx, x, beta: float = 1.5, mode: str = "sum"):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return sg.relu(x) * x * 3.0 * RATE + beta * x

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * (6.0 * RATE * sg.relu(x) + ctx.beta), None, None
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, which counts."""
    tmp_path.chmod(0o700)
    monkeypatch.delenv(kept.OFF)
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / verdicts.LAYOUT


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The proofs that are made."""
    made: list[str] = []
    prove = compiler._proved

    def counted(request: Any, graphs: Any, *rest: Any) -> Report:
        made.append(graphs.name)
        return prove(request, graphs, *rest)

    monkeypatch.setattr(compiler, "_proved", counted)
    return made


def judged(tmp_path: Path, source: str = SOURCE, **asked: Any) -> Judged:
    """The verdict on a file, imported anew each time, in the same place."""
    path = tmp_path / "ops.py"
    path.write_text(source)
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(path):
            del sys.modules[name]
    import linecache

    linecache.cache.pop(str(path), None)
    (function,) = defined(load_file(path))
    return judge(function, **{"specs": ("n",), **asked})


def everything(one: Judged, root: Path) -> list[Any]:
    assert one.report is not None
    still = replace(one.report, seconds=0.0)
    same = replace(one, report=still)
    return [
        one.text, still.to_dict(), as_html(still), outputs.sarif([same], root), still,
        outputs.junit([same]), one.inferred, one.given, one.location, one.diff,
        [(found.conditions, found.location) for found in still.inputs.values()],
        [condition.about for condition in still.conditions], still.formulas is not None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"specs": ()}, {"order": 2}, {"audit": True}, {"assume": {"x": "positive"}},
        {"specs": ("*batch n",)}, {"static": {"beta": 2.0, "mode": "mean"}},
    ],
    ids=str,
)  # fmt: skip
def test_the_report_is_the_same_in_full(
    folder: Path, proofs: list[str], tmp_path: Path, asked: dict[str, Any]
) -> None:
    first = judged(tmp_path, **asked)
    assert first.proved
    assert proofs
    before = everything(first, tmp_path)
    proofs.clear()
    second = judged(tmp_path, **asked)
    assert not proofs
    assert str(second.report) == first.text
    assert not proofs  # also to be printed
    assert everything(second, tmp_path) == before
    proofs.clear()
    assert everything(judged(tmp_path, **asked, cached=False), tmp_path) == before
    assert proofs


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "constant": (SOURCE.replace("3.0", "4.0").replace("6.0", "8.0"), {}),
    "op": (SOURCE.replace("sg.relu(x) * x", "sg.relu(x) * sg.relu(x)"), {}),
    "order of factors": (SOURCE.replace("6.0 * RATE", "RATE * 6.0"), {}),
    "global": (SOURCE.replace("RATE = 2.5", "RATE = 3.5"), {}),
    "default": (SOURCE.replace("= 1.5", "= 1.25"), {}),
    "default text": (SOURCE.replace('"sum"', '"mean"'), {}),
    "a line before": ("\n" + SOURCE, {}),
    "a word in a quoted line": (SOURCE.replace("+ beta * x", "+ beta * x  # here"), {}),
    "name of the class": (SOURCE.replace("Scaled", "Rescaled"), {}),
    "name of an input": (SOURCE.replace("forward(ctx, x,", "forward(ctx, t,").replace(
        "backward(x)\n", "backward(t)\n").replace(
        "sg.relu(x) * x * 3.0", "sg.relu(t) * t * 3.0").replace("+ beta * x", "+ beta * t"), {}),
    "shapes": (SOURCE, {"specs": ("m",)}),
    "rank": (SOURCE, {"specs": ("n m",)}),
    "number as a size": (SOURCE, {"specs": ("3",)}),
    "batch": (SOURCE, {"specs": ("*batch n",)}),
    "dtype": (SOURCE, {"specs": ("f64[n]",)}),
    "assumption": (SOURCE, {"assume": {"x": "positive"}}),
    "interval": (SOURCE, {"assume": {"x": "(0, 2)"}}),
    "plain value": (SOURCE, {"static": {"beta": 2.0}}),
    "plain text": (SOURCE, {"static": {"mode": "mean"}}),
    "order": (SOURCE, {"order": 2}),
    "audit": (SOURCE, {"audit": True}),
}  # fmt: skip


def test_every_change_is_proved_anew_and_kept_beside_the_others(
    folder: Path, proofs: list[str], tmp_path: Path
) -> None:
    judged(tmp_path)
    for what, (source, asked) in CHANGES.items():
        proofs.clear()
        assert judged(tmp_path, source, **asked).proved, what
        assert proofs, what
        proofs.clear()
        assert judged(tmp_path, source, **asked).proved
        assert not proofs, what
    judged(tmp_path)
    assert not proofs


def test_a_file_is_judged_as_it_is_and_not_as_its_bytecode_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "edited.py"
    for value in (1, 2):
        path.write_text(f"VALUE = {value}\n")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        found = load_file(path).VALUE
        assert found == value
        for name in [name for name in sys.modules if "_edited_" in name]:
            del sys.modules[name]


def test_another_version_proves_anew(
    folder: Path, proofs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(tmp_path)
    proofs.clear()
    monkeypatch.setattr(kept, "_version", lambda *given: "another")
    assert judged(tmp_path).proved
    assert proofs


def test_the_version_is_a_digest_of_source_and_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version() -> str:
        return kept._version.__wrapped__(verdicts._ROOMS, verdicts._LIBRARIES)

    found = {version()}
    home = tmp_path / "symgrad"
    for part in ("proof/judge/decide.py", "ops/exponential.py", "compiler.py"):
        path = home / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
        monkeypatch.setattr(kept, "__file__", str(home / "kept.py"))
        found.add(version())
        path.write_text("2")
        found.add(version())
    assert len(found) == 7
    monkeypatch.setattr(kept, "_LIBRARIES", {**kept._LIBRARIES, "sympy": "__init__.py"})
    assert version() not in found


WRONG = SOURCE.replace("6.0 * RATE", "5.0 * RATE")
UNKNOWN = """
import symgrad as sg

class Odd(sg.Function):
    @staticmethod
    def forward(ctx, x, how=FUNCTION):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_y, None
"""


@pytest.mark.parametrize("value", ["len", "lambda: 1", "object()", "sg.relu"])
def test_what_is_no_data_is_proved_each_time(
    folder: Path, proofs: list[str], tmp_path: Path, value: str
) -> None:
    for _ in range(2):
        proofs.clear()
        assert judged(tmp_path, UNKNOWN.replace("FUNCTION", value)).proved
        assert proofs
    assert not folder.exists()


def test_only_what_is_proved_is_kept(folder: Path, proofs: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        proofs.clear()
        assert judged(tmp_path, WRONG).verdict == "REFUTED"
        assert proofs
    assert not folder.exists()


def test_an_op_of_the_user_is_proved_each_time(
    folder: Path, proofs: list[str], tmp_path: Path
) -> None:
    from symgrad.custom.define import undeclare

    double = "double kept_twice(double x) { return 2.0 * x; }"
    sg.custom_op("kept_twice", c=double, meaning=lambda sp, x: 2 * x)
    source = UNKNOWN.replace("FUNCTION", "1").replace("x * x", "sg.kept_twice(x)")
    try:
        for _ in range(2):
            proofs.clear()
            assert judged(tmp_path, source.replace("2 * x * grad_y", "2 * grad_y")).proved
            assert proofs
        assert not folder.exists()
    finally:
        undeclare("kept_twice")


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.note"))


def rewritten(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """A note whose digest fits."""

    def spoil(path: Path) -> None:
        text, _, _ = path.read_text().partition("\n")
        new = json.dumps(change(json.loads(text)))
        path.write_text(f"{new}\n{digest(new)}")

    return spoil


def refuted(entry: Any) -> Any:
    text = json.dumps(entry).replace("PROVED", "REFUTED")
    return json.loads(text)


def in_the_way(path: Path) -> None:
    path.unlink()
    path.mkdir()


def linked(path: Path) -> None:
    path.symlink_to(path.rename(path.with_suffix(".old")))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-70]),
    "a bit": lambda path: path.write_bytes(path.read_bytes().replace(b"PROVED", b"PROVEE", 1)),
    "bytes": lambda path: path.write_bytes(b"\xff" * 200),
    "no entry": rewritten(lambda entry: []),
    "no report": rewritten(lambda entry: {**entry, "report": None}),
    "a part": rewritten(lambda entry: {**entry, "report": entry["report"][:4]}),
    "another class": rewritten(lambda entry: {**entry, "report": ["Popen", "true"]}),
    "REFUTED": rewritten(refuted),
    "another trace": rewritten(lambda entry: {**entry, "asked": [["wide", [], "0"]]}),
    "no trace": rewritten(lambda entry: {**entry, "asked": [["system", ["true"], "0"]]}),
    "others may write": lambda path: path.chmod(0o666),
    "a link": linked,
    "a folder": in_the_way,
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_does_not_count(
    folder: Path, proofs: list[str], tmp_path: Path, damage: str
) -> None:
    before = everything(judged(tmp_path), tmp_path)
    found = entries(folder)
    assert found
    for path in found:
        DAMAGES[damage](path)
    proofs.clear()
    assert everything(judged(tmp_path), tmp_path) == before
    assert proofs


def test_a_folder_that_others_can_write_to_does_not_count(
    folder: Path, proofs: list[str], tmp_path: Path
) -> None:
    judged(tmp_path)
    folder.chmod(0o777)
    proofs.clear()
    assert judged(tmp_path).proved
    assert proofs


def test_a_folder_that_cannot_be_made_is_no_error(
    proofs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv(kept.OFF)
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "file"))
    assert judged(tmp_path).proved
    assert judged(tmp_path).proved
    assert len(proofs) > 1


def test_the_environment_and_sg_verify_do_without(
    folder: Path, proofs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = judged(tmp_path)
    proofs.clear()
    assert sg.verify(one.function, "n").ok
    assert proofs
    proofs.clear()
    monkeypatch.setenv(kept.OFF, "1")
    assert judged(tmp_path).proved
    assert proofs


def test_sg_verify_uses_it_where_that_is_asked_for(
    folder: Path, proofs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = judged(tmp_path).function
    first = sg.verify(function, "n", cache=True)
    proofs.clear()
    again = sg.verify(function, "n", cache=True)
    assert not proofs
    assert replace(again, seconds=0.0) == replace(first, seconds=0.0)
    assert sg.verify(function, "n", cache=True, assume={"x": "positive"}).ok
    assert proofs  # other facts are another proof
    proofs.clear()
    wrong = judged(tmp_path, SOURCE.replace("6.0", "5.0")).function
    for _ in range(2):
        assert not sg.verify(wrong, "n", suggest=False, cache=True)
    assert len(proofs) >= 2
    proofs.clear()
    monkeypatch.setenv(kept.OFF, "1")
    assert sg.verify(function, "n", cache=True).ok
    assert proofs


def test_the_number_of_entries_is_bounded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "MOST_VERDICTS", 4)
    for number in range(7):
        judged(
            tmp_path, SOURCE.replace("3.0", f"{number + 3}.0").replace("6.0", f"{2 * number + 6}.0")
        )
        assert 0 < len(entries(folder)) <= 4


def test_notes_are_kept_beside_each_other(folder: Path) -> None:
    cache.write_note("one", "text", verdicts.LAYOUT)
    assert cache.read_note("one", verdicts.LAYOUT) == "text"
    assert cache.read_note("one") is None


def test_many_processes_may_use_it(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(SOURCE)
    command = [sys.executable, "-m", "symgrad", "verify", str(path), "--json"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
        for _ in range(3)
    ]
    texts = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len({json.loads(text)[0]["verdict"] for text in texts}) == 1
    assert all(cache.read_note(one.stem, verdicts.LAYOUT) for one in entries(folder))


def test_calls_that_trace_alike_are_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Centred(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, dim: int = -1) -> Any:
            ctx.dim = dim
            return x - x.mean(dim, keepdim=True)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad - grad.mean(ctx.dim, keepdim=True), None

    made: list[Any] = []
    prove = compiler._judged_by_proof

    def counted(request: Any, graphs: Any, *rest: Any) -> Report:
        made.append(graphs.texts)
        return prove(request, graphs, *rest)

    monkeypatch.setattr(compiler, "_judged_by_proof", counted)
    report = sg.verify(Centred, "n m")
    assert dict(report.values)["dim"] == "-2 or -1 or 0 or 1"
    assert len(made) == 2  # of rows, and of columns


# -- what a proof traces on the way

REPORT = Report("Some", None, {}, seconds=1.5)


def asked_of(answers: dict[str, Any], log: list[str]) -> Report:
    """The report of a proof that asks for ``first``, and then for what that says."""

    def prove(traces: Any) -> Report:
        log.append("proved")
        traces[traces["first"](frozenset("ba"))]("word", 3)
        return REPORT

    def answer(name: str) -> Callable[..., Any]:
        return lambda *args: answers[name]

    with verdicts.used():
        return verdicts.report_on((1, "seen"), {name: answer(name) for name in answers}, prove)


def test_traces_on_the_way_are_compared(folder: Path) -> None:
    log: list[str] = []
    same = {"first": "second", "second": (1, 2), "third": 3}
    assert asked_of(same, log) == asked_of(same, log) == REPORT
    assert log == ["proved"]
    asked_of({**same, "third": 4}, log)  # nobody asked
    assert log == ["proved"]
    for changed in ({"second": (1, 3)}, {"first": "third"}, {"second": [1, 2]}):
        log.clear()
        asked_of({**same, **changed}, log)
        assert log == ["proved"], changed


def test_a_trace_that_has_no_bytes_keeps_nothing(folder: Path) -> None:
    log: list[str] = []
    for _ in range(2):
        asked_of({"first": "second", "second": len}, log)
    assert log == ["proved"] * 2


def test_a_trace_that_fails_keeps_nothing(folder: Path) -> None:
    log: list[str] = []

    def fails(*_: Any) -> Any:
        raise sg.SymgradError("no")

    def prove(traces: Any) -> Report:
        log.append("proved")
        with pytest.raises(sg.SymgradError):
            traces["first"]()
        return REPORT

    for _ in range(2):
        with verdicts.used():
            verdicts.report_on((), {"first": fails}, prove)
    assert log == ["proved"] * 2


def test_reports_are_stored_in_full(tmp_path: Path) -> None:
    for source in (SOURCE, WRONG):
        report = judged(tmp_path, source).report
        assert report is not None
        plain = replace(report, details={}, repair=None)
        data = json.loads(json.dumps(stored(plain)))
        assert restored(data) == plain
        assert stored(restored(data)) == stored(plain)
    assert stored(Verdict.PROVED) == ["verdict", "PROVED"]
