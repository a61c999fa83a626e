"""What is validated says so, wherever users meet it; what is not is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad import compiler, kept, validation
from symgrad.deadline import TimeUp
from symgrad.emission import EmittedOp
from symgrad.errors import CodegenError, NotValidatedError
from symgrad.manifest import proof_line
from symgrad.proof.report.records import Condition
from symgrad.proof.report.rendering import supposing, worded
from symgrad.runtime.libraries import MANIFEST
from symgrad.tools.certificate import check
from symgrad.tools.cli import main

SOURCE = '''
import symgrad as sg


class Scale(sg.Function):
    """Rows scaled by a power of a weight."""

    @staticmethod
    def forward(ctx, x: "n k", weight: "k", power=2):
        ctx.save_for_backward(x, weight)
        ctx.power = power
        return x * weight**power

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        inner = (grad * x).sum(0) * ctx.power * weight ** (ctx.power - 1)
        return grad * weight**ctx.power, inner, None
'''
LINE = "This C VALIDATED against what was traced, for all sizes and over the reals."


class Square(sg.Function):
    """The square of each element."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


Plant = Callable[[str, str], None]


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Plants a fault in all C that is emitted from now on."""

    def planted(old: str, new: str) -> None:
        def emit(*given, **named) -> EmittedOp:
            found = made(*given, **named)
            for name, text in found.texts.items():
                found.texts[name] = text.replace(old, new)
            assert any(new in text for text in found.texts.values())
            return found

        made = validation.emit
        monkeypatch.setattr(validation, "emit", emit)

    return planted


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, which counts."""
    tmp_path.chmod(0o700)
    monkeypatch.delenv(kept.OFF)
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "scaling.py"
    path.write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return path


def built(*options: str) -> str:
    done = CliRunner().invoke(main, ["build", "scaling.py", "-o", "kernels", *options])
    assert done.exit_code == 0, done.output
    return done.output


def test_compile_validates_where_it_is_asked_to() -> None:
    op = sg.compile(Square, "n", validate=True)
    assert "This wrapper VALIDATED against the C" in op.source
    assert "VALIDATED" not in sg.compile(Square, "n").source
    assert np.allclose(op(np.ones(3, "f")), 1)


def test_wrong_c_is_refused_with_a_call_and_its_line(plant: Plant) -> None:
    plant("x_i * x_i", "x_i + x_i")
    with pytest.raises(NotValidatedError, match="square_forward: WRONG") as caught:
        sg.compile(Square, "n", validate=True, allow=("NOT VALIDATED",))
    assert "output[i] = x_i + x_i;" in str(caught.value)
    assert "for n = " in str(caught.value)
    assert ", with x = [" in str(caught.value)
    assert "defect of symgrad" in str(caught.value)


def test_what_is_not_understood_is_refused_unless_allowed(plant: Plant) -> None:
    plant("    (void)workspace;\n", "    (void)workspace;\n    goto end; end:\n")
    with pytest.raises(NotValidatedError, match="NOT VALIDATED") as caught:
        sg.compile(Square, "n", validate=True)
    assert "goto end" in str(caught.value)
    assert 'allow=("NOT VALIDATED",)' in str(caught.value)
    planned, report = compiler.judged_plan(compiler.requested(Square, ("n",)), ())
    emitted, found = compiler.texts(planned, report, ("NOT VALIDATED",), validate=True)
    assert found is not None
    assert found.verdict == "NOT VALIDATED"
    text = emitted.texts["square.c"]
    assert "This C NOT VALIDATED: no kernel was shown to compute what was traced." in text
    assert "VALIDATED against" not in text
    assert text.count(" * NOT VALIDATED: ") == 2


def test_a_reason_stands_at_the_kernel_that_it_is_of(plant: Plant) -> None:
    plant("2.0f*grad_output[i]", "2.0*grad_output[i]")
    planned, report = compiler.judged_plan(compiler.requested(Square, ("n",)), ())
    emitted, found = compiler.texts(planned, report, ("NOT VALIDATED",), validate=True)
    assert found is not None
    verdicts = {one.name: one.verdict for one in found.kernels}
    assert verdicts == {"square_forward": "VALIDATED", "square_backward": "NOT VALIDATED"}
    assert "what was traced but for square_backward, for all sizes" in emitted.texts["square.c"]
    wrapper = emitted.wrapper()
    assert "header of its C and what was traced; the C NOT VALIDATED for square_ba" in wrapper
    assert "against the C and" not in wrapper


@pytest.mark.parametrize("verdict", ["REFUTED", "NOT VALIDATED"])
def test_hints_name_the_option_on_the_command_line(
    tmp_path: Path, plant: Plant, verdict: str
) -> None:
    backward = "2 * x * g" if verdict == "NOT VALIDATED" else "3 * x * g"
    if verdict == "NOT VALIDATED":
        plant("    (void)workspace;\n", "    (void)workspace;\n    goto end; end:\n")
    source = tmp_path / "square_ops.py"
    source.write_text(
        f"""import symgrad as sg


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {backward}
"""
    )
    arguments = ["build", str(source), "-o", str(tmp_path / "kernels"), "--no-compile"]
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 2
    assert f'--allow "{verdict}"' in found.output
    assert "allow=(" not in found.output
    assert ("report it" in found.output) == (verdict == "NOT VALIDATED")


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("kink", "PROVED, at the kink: x == 0."),
        ("ties", "PROVED, except at ties: x == 0."),
        ("domain", "PROVED if x == 0."),
        ("nonzero", "PROVED, except where x == 0."),
        ("literal", "PROVED, literal: x == 0."),
    ],
)
def test_texts_say_what_a_condition_does(condition: str, words: str) -> None:
    report = sg.verify(Square, "n")
    of_x = replace(report.inputs["x"], conditions=(Condition(condition, "x == 0"),))
    found = replace(report, inputs={"x": of_x})
    assert proof_line(found).endswith(words)
    assert worded(found.conditions[0]) in str(found)


def test_conditions_of_each_kind_stand_in_one_line() -> None:
    kinds = {"kink": "x == 0", "domain": "x > -1", "index": "0 <= i < n", "ties": "x == y"}
    said = supposing([Condition(kind, text) for kind, text in kinds.items()])
    assert said == " if x > -1 and 0 <= i < n, at the kink: x == 0; except at ties: x == y"


@pytest.mark.usefixtures("notes")
def test_what_is_wrong_is_never_taken_from_the_notes(plant: Plant) -> None:
    planned, report = compiler.judged_plan(compiler.requested(Square, ("n",)), ())
    for _ in range(2):
        _, found = compiler.texts(planned, report, validate=True)
        assert found is not None
        assert found.verdict == "VALIDATED"
    plant("i < i1", "i < i1 - 1")
    for _ in range(2):
        with pytest.raises(NotValidatedError, match="WRONG"):
            compiler.texts(planned, report, validate=True)


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize("passing", [False, True])
def test_what_is_not_validated_is_kept_unless_another_time_may_do(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, passing: bool
) -> None:
    """A reason that is the C's is found once; lack of time, memory or stack is not remembered."""
    plant("    (void)workspace;\n", "    (void)workspace;\n    goto end; end:\n")
    judged, validate = [], validation.validate_kernel

    def counted(*given: Any) -> Any:
        judged.append(given)
        return replace(validate(*given), passing=passing)

    monkeypatch.setattr(validation, "validate_kernel", counted)
    planned, report = compiler.judged_plan(compiler.requested(Square, ("n",)), ())
    found = [
        compiler.texts(planned, report, ("NOT VALIDATED",), validate=True)[1] for _ in range(2)
    ]
    assert found[0] == found[1]
    assert found[0] is not None
    assert all("goto" in one.source for one in found[0].kernels)
    assert len(judged) == len(planned.kernels) * (2 if passing else 1)


def test_a_search_for_a_wrong_call_that_does_not_end_may_end_another_time(
    monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant("2.0f*grad_output[i]", "2.0*grad_output[i]")
    planned, report = compiler.judged_plan(compiler.requested(Square, ("n",)), ())

    def late(*given: Any) -> Any:
        raise TimeUp(20.0, "executing")

    monkeypatch.setattr(validation.bounded, "check", late)
    _, found = compiler.texts(planned, report, ("NOT VALIDATED",), validate=True)
    assert found is not None
    assert [one.passing for one in found.kernels] == [False, True]


def test_validated_text_is_the_text_that_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Emitted a second time, with what is said of it, the code is the same."""
    made, texts = validation.emit, iter(("x_i * x_i", "x_i + x_i"))

    def emit(*given, **named) -> EmittedOp:
        found, text = made(*given, **named), next(texts)
        for name in found.texts:
            found.texts[name] = found.texts[name].replace("x_i * x_i", text)
        return found

    monkeypatch.setattr(validation, "emit", emit)
    with pytest.raises(CodegenError, match="depend on what is said of them"):
        sg.compile(Square, "n", validate=True)


def test_build_says_it_in_every_text_and_the_certificate_repeats_it(source: Path) -> None:
    assert "scale: PROVED, its C VALIDATED" in built("--no-compile")
    folder = source.parent / "kernels"
    for name in ("scale.c", "scale_pruned.c", "scale.h"):
        assert LINE in (folder / name).read_text()
    assert "This wrapper VALIDATED" in (folder / "scale.py").read_text()
    said = json.loads((folder / MANIFEST).read_text())["ops"]["scale"]["validation"]
    assert said["wrapper"] == {"verdict": "VALIDATED"}
    assert all(one["verdict"] == "VALIDATED" for one in said["kernels"].values())
    found = check(folder)
    assert found.holds, str(found)
    assert "the validation of the C" in str(found)


@pytest.mark.usefixtures("notes")
def test_what_is_not_evaluated_as_written_is_said_above_each_kernel(source: Path) -> None:
    folder = source.parent / "kernels"
    for _ in range(2):
        built("--no-compile")
        said = json.loads((folder / MANIFEST).read_text())["ops"]["scale"]["validation"]["kernels"]
        assert said["scale_forward"] == {"verdict": "VALIDATED", "written": []}
        assert "sums of floats in double" in said["scale_backward"]["written"]
        text = (folder / "scale.c").read_text()
        assert " * Evaluated as written.\n" in text
        assert " * Evaluated as written but for: sums in" in text
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["ops"]["scale"]["validation"]["kernels"]["scale_backward"]["written"] = []
    (folder / MANIFEST).write_text(json.dumps(manifest))
    assert "the validation of the C" in str(check(folder))
    assert not check(folder).holds


@pytest.mark.slow
def test_the_readme_of_a_package_says_what_is_not_validated(source: Path, plant: Plant) -> None:
    readme, options = source.parent / "kernels/README.md", ("--no-compile", "--package", "kit")
    row = "| `scale` | `float32[n, k], float32[k]`; `power=2` fixed | `float32[n, k]` | PROVED for"
    built(*options)
    assert f"{row} power = 2 | VALIDATED |\n" in readme.read_text()
    plant("total_all[j]*2.0f", "total_all[j]*2.0")
    built(*options, "--allow", "NOT VALIDATED")
    failed = "scale_backward, scale_backward_01"
    assert f"{row} power = 2 | NOT VALIDATED: {failed} |\n" in readme.read_text()
    wrapper = (source.parent / "kernels/src/kit/scale.py").read_text()
    assert f"what was traced; the C NOT VALIDATED for {failed}." in wrapper


def test_a_certificate_that_claims_a_validation_does_not_hold(source: Path, plant: Plant) -> None:
    built("--no-compile")
    folder = source.parent / "kernels"
    plant("    (void)workspace;\n", "    (void)workspace;\n    goto end; end:\n")
    found = check(folder)
    assert not found.holds
    assert "differs: the validation of the C" in str(found)


def test_without_validation_nothing_is_said_of_it(source: Path) -> None:
    assert "VALIDATED" not in built("--no-compile", "--no-validate")
    folder = source.parent / "kernels"
    assert all("VALIDATED" not in one.read_text() for one in folder.glob("scale*"))
    assert "validation" not in json.loads((folder / MANIFEST).read_text())["ops"]["scale"]
    assert check(folder).holds


class Probit(sg.Function):
    """An op that no C library has, as a function of its own."""

    @staticmethod
    def forward(ctx, x):
        y = sg.erfinv(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * 0.8862269254527580 * sg.exp(y * y)


@pytest.mark.usefixtures("notes")
def test_functions_taken_for_their_ops_are_named(tmp_path: Path) -> None:
    for _ in range(2):
        compiler.build([Probit], tmp_path / "kernels", specs=("n",), compiled=False)
        said = json.loads((tmp_path / "kernels" / MANIFEST).read_text())["ops"]["probit"]
        kernels = said["validation"]["kernels"]
        assert kernels["probit_forward"]["taken"] == ["symgrad_erfinv"]
        assert "taken" not in kernels["probit_backward"]
        text = (tmp_path / "kernels" / "probit.c").read_text()
        assert "VALIDATED with symgrad_erfinv as defined above." in text


class Times(sg.Function):
    """Products of matrices, of which no array has as many elements as they add."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.transpose(1, 2), x.transpose(1, 2) @ grad


@pytest.mark.usefixtures("notes")
def test_limits_on_sizes_are_said(tmp_path: Path) -> None:
    for _ in range(2):
        compiler.build([Times], tmp_path / "kernels", specs=("b n k", "b k m"), compiled=False)
        said = json.loads((tmp_path / "kernels" / MANIFEST).read_text())["ops"]["times"]
        assert said["validation"]["kernels"]["times_forward"]["limits"] == ["b*k*m*n < 2**63"]
        text = (tmp_path / "kernels" / "times.c").read_text()
        said_once = " ".join(text.replace("\n *", " ").split())
        assert "for all sizes within the limits stated and over the reals." in said_once
        assert "VALIDATED for b*k*m*n < 2**63." in text
    found = check(tmp_path / "kernels", Path(__file__).parent)
    assert "validated for: b*k*m*n < 2**63" in str(found)


def test_a_function_that_is_not_the_one_of_its_record_is_not_taken(plant: Plant) -> None:
    plant("0.425", "0.426")
    with pytest.raises(NotValidatedError, match="probit_forward: NOT VALIDATED"):
        sg.compile(Probit, "n", validate=True)
