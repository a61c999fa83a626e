"""The command line, as a user runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from symgrad.stages import STAGES
from symgrad.tools.cli import main

ROOT = Path(__file__).parent.parent.parent
OPS = str(ROOT / "examples" / "ops.py")
WRONG = """
import symgrad as sg


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * x
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    return path


def test_verify_proves_the_examples() -> None:
    done = run("verify", OPS)
    assert done.exit_code == 0, done.output
    assert "PROVED" in done.output
    assert "REFUTED" not in done.output


def test_verify_refutes(wrong: Path) -> None:
    done = run("verify", str(wrong), "--shapes", "n")
    assert done.exit_code == 1
    assert "REFUTED" in done.output


def test_a_warning_of_a_line_that_is_run_for_many_shapes_is_printed_once(wrong: Path) -> None:
    line = "        return x * x\n"
    wrong.write_text(WRONG.replace(line, f"        warnings.warn('old')\n{line}", 1))
    wrong.write_text(f"import warnings\n{wrong.read_text()}")
    with pytest.warns(UserWarning, match="old") as said:
        run("verify", str(wrong), "--no-cache")
    assert [str(one.message) for one in said].count("old") == 1


def test_verify_prints_json(wrong: Path) -> None:
    done = run("verify", f"{wrong}:Square", "--shapes", "n m", "--json")
    assert done.exit_code == 1
    (report,) = json.loads(done.stdout)
    assert report["verdict"] == "REFUTED"
    assert report["inputs"]["x"]["verdict"] == "REFUTED"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "nowhere.py"), "no such file:"),
        (("verify", "no_such_module_at_all"), "neither a file nor a module"),
        (("verify", f"{OPS}:Nothing"), "has no Function 'Nothing'"),
        (("verify", OPS, "--static", "oops"), "NAME=VALUE"),
        (("build", OPS, "-o", "x", "--shapes", "n n n; ["), "Error"),
        (("verify", OPS, "--shapes", "n ["), "'[' in 'n [' is not a size"),
        (("verify", f"{OPS}:Tanh", "--shapes", "n; m"), "Tanh: 1 shape spec too many"),
        (("verify", f"{OPS}:LayerNorm", "--shapes", "n"), "nothing says what the argument"),
        (("verify", f"{OPS}:Tanh", "--assume", "x=positiv"), "'positiv' about 'x' cannot be read"),
        (("verify", f"{OPS}:Tanh", "--assume", "z=positive"), "'z'"),
        (("verify", f"{OPS}:Tanh", "--assume", "x=symmetric"), "symmetric"),
        (("show", f"{OPS}:Tanh", "--draw", "x.png"), "pictures are SVG, not .png"),
        (("show", f"{OPS}:Tanh", "--draw", "/nowhere/x.svg"), "cannot be written"),
    ],
)
def test_wrong_calls_end_in_a_message(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("stage", STAGES)
def test_show_every_stage(stage: str) -> None:
    done = run("show", f"{OPS}:LayerNorm", "--stage", stage)
    assert done.exit_code == 0, done.output
    assert "normalized" in done.output


def test_build_refuses_what_is_not_proved(wrong: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    done = run("build", str(wrong), "-o", str(folder), "--shapes", "n")
    assert done.exit_code == 2
    assert "NotProvedError" in done.output
    assert not folder.exists()


def test_build_writes_a_package(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    assert run("build", f"{OPS}:Tanh", "-o", str(folder), "--no-compile").exit_code == 0
    names = {path.name for path in folder.iterdir()}
    assert {"__init__.py", "tanh.py", "tanh.c", "tanh.h", "MANIFEST.json"} <= names
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    assert manifest["ops"]["tanh"]["proof"]["verdict"] == "PROVED"
    again = run("build", f"{OPS}:Tanh", "-o", str(folder), "--check")
    assert again.exit_code == 0, again.output
    (folder / "tanh.c").write_text("changed")
    assert run("build", f"{OPS}:Tanh", "-o", str(folder), "--check").exit_code == 1


def test_generated_is_up_to_date() -> None:
    done = run("regen", "--check")
    assert done.exit_code == 0, done.output


SURROGATE = """
import symgrad as sg


@sg.surrogate(lambda x, slope=2.0: slope * sg.clamp(x, -1, 1))
class Sign(sg.Function):
    @staticmethod
    def forward(ctx, x, slope=2.0):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return sg.sign(x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return ctx.slope * grad_y * (x.abs() <= 1), None
"""


def test_what_a_verdict_is_against_stands_in_the_table(tmp_path: Path, wrong: Path) -> None:
    path = tmp_path / "sign.py"
    path.write_text(SURROGATE)
    done = run("verify", str(path), "--quiet")
    assert done.exit_code == 0, done.output
    assert "declared surrogate" in done.output
    assert "declared surrogate" not in run("verify", str(wrong), "--quiet").output


@pytest.mark.parametrize("shapes", [(), ("--shapes", "n")])
def test_an_argument_that_is_not_there_is_named(wrong: Path, shapes: tuple[str, ...]) -> None:
    done = run("verify", str(wrong), "--static", "beta=3", *shapes)
    assert done.exit_code == 2
    assert "Square has no argument 'beta'" in done.output
    assert "its arguments: x" in done.output


def test_the_table_says_what_a_condition_does(tmp_path: Path) -> None:
    path = tmp_path / "inverse.py"
    path.write_text("""
import symgrad as sg


class Inverse(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]", index: "i64[k]"):
        ctx.save_for_backward(x, index)
        return (x.abs() / x)[index]

    @staticmethod
    def backward(ctx, grad_y):
        x, index = ctx.saved_tensors
        return sg.zeros(x.shape[0]), None
""")
    done = run("verify", str(path), "--quiet")
    assert done.exit_code == 0, done.output
    assert "if 0 <= index < n" in done.output
    assert "at the kink: x == 0" in done.output


def written(path: Path, text: str, forward: str = "return x * x") -> str:
    """A file with a Function: ``text`` before it, ``forward`` in it."""
    path.write_text(text + WRONG.replace("return x * x", forward))
    return str(path)


NOISE = """
import os, subprocess, sys
from sys import stdout

def noise(where):
    print(where)
    print(where, file=sys.__stdout__)
    stdout.write(where)
    os.write(1, where.encode())
    subprocess.run(["echo", where])

noise("at import")
"""


def test_json_alone_is_on_stdout(tmp_path: Path) -> None:
    """Whatever Python, C or a child process prints meanwhile."""
    path = written(tmp_path / "noisy.py", NOISE, "noise('in forward'); return x * x")
    command = [sys.executable, "-m", "symgrad", "verify", path, "--shapes", "n", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)[0]["verdict"] == "UNDECIDED"  # what the system answers
    assert done.stderr.count("at import") == 5
    assert done.stderr.count("in forward") >= 5
    assert done.returncode == 1


LATE = """
import atexit, contextlib, os, subprocess, sys, threading

def noise(where):
    print(where)
    print(where, file=sys.__stdout__)
    for descriptor in range(1, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, where.encode())
    subprocess.run(["echo", where])

class Late:
    def __del__(self):
        os.write(1, b"deleted")

def after_main():
    threading.main_thread().join()
    os.write(1, b"from a thread")

sys.late = Late()
threading.Thread(target=after_main).start()
atexit.register(noise, "at exit")
"""


def status_of(path: str, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "symgrad", "verify", path, "--shapes", "n", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def test_what_is_printed_at_exit_is_not_in_the_json(tmp_path: Path) -> None:
    done = status_of(written(tmp_path / "late.py", LATE), "--json")
    assert (json.loads(done.stdout)[0]["verdict"], done.returncode) == ("REFUTED", 1)
    assert "at exit" in done.stderr
    assert "from a thread" in done.stderr


ENDS = {
    "os._exit(0)": "status 0",
    "os._exit(7)": "status 7",
    "os.kill(os.getpid(), 11)": "signal 11",
    "os.closerange(3, 256); os._exit(0)": "status 0",
    "atexit._clear(); os.execv('/bin/true', ['true'])": "status 0",
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_process_that_ends_without_a_report_has_no_verdict(tmp_path: Path, end: str) -> None:
    said = f"ended the process ({ENDS[end]}): there is no verdict"
    path = written(tmp_path / "ends.py", f"import atexit, os\n{end}\n")
    done = status_of(path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    if end.startswith("os._exit"):
        done = status_of(written(tmp_path / "later.py", "import os\n", end), "--json")
        assert done.returncode == 2
        assert said in json.loads(done.stdout)["error"]["message"]


@pytest.mark.slow
def test_a_verdict_stays_whatever_happens_at_exit(tmp_path: Path) -> None:
    text = "import atexit, os\natexit.register(os._exit, 0)\n"
    assert status_of(written(tmp_path / "late.py", text), "--quiet").returncode == 1
    forked = "import os\nif os.fork() == 0: os._exit(0)\n"
    assert status_of(written(tmp_path / "forked.py", forked), "--quiet").returncode == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_command(tmp_path: Path, number: int) -> None:
    """Its pipe is closed only when the judging process has ended, too."""
    path = written(tmp_path / "long.py", "import time\nprint('up', flush=True)\ntime.sleep(900)\n")
    command = [sys.executable, "-m", "symgrad", "verify", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.stdout.read() == ""
    assert process.returncode == -number


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("{file}", "--shapes", "n; n"), "SpecError", "1 shape spec too many"),
        (("{file}:Absent",), "SpecError", "no Function 'Absent'"),
        (("nowhere.py",), "SpecError", "no such file: nowhere.py"),
        (("{file}", "--order", "3"), "BadParameter", "--order"),
        (("{file}", "--absent"), "NoSuchOption", "--absent"),
        ((), "UsageError", "name a FILE"),
        (("--certificate", "nowhere"), "SpecError", "has no manifest"),
    ],
)
def test_wrong_calls_are_told_in_json(
    wrong: Path, arguments: tuple[str, ...], kind: str, message: str
) -> None:
    done = run("verify", "--json", *(one.format(file=wrong) for one in arguments))
    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["type"]) == (2, kind)
    assert message in error["message"]
    path = wrong.with_name("broken.py")
    path.write_text("import symgrad\n\ndef f(:\n")
    error = json.loads(run("verify", "--json", str(path)).stdout)["error"]
    assert (error["file"], error["line"]) == (str(path), 3)


GIVEN = """
import symgrad as sg

class Annotated(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n m]", b: "f32[m]" = None, k=2):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        return ctx.k * grad, None, None

class Plain(sg.Function):
    @staticmethod
    def forward(ctx, x, k=2):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        return ctx.k * grad, None
"""


def test_a_value_for_what_must_be_a_tensor_is_a_wrong_call(tmp_path: Path) -> None:
    path = tmp_path / "given.py"
    path.write_text(GIVEN)
    for static, message in {
        "Annotated --static x=3": "x is a tensor, annotated f32[n m], and static gives it a value",
        "Annotated --static b=3": "b is a tensor, annotated f32[m], and static gives it a value",
        "Plain --static x=3": "nothing is left that is a tensor; its arguments: x, k",
        "Plain --static k=2 --static x=3": "nothing is left that is a tensor",
    }.items():
        name, *options = static.split()
        done = run("verify", f"{path}:{name}", *options)
        assert done.exit_code == 2, done.output
        assert message in done.output.replace("\n", " ")
    for name, static in (("Annotated", "b=None"), ("Annotated", "k=2"), ("Plain", "k=2")):
        done = run("verify", f"{path}:{name}", "--static", static, "--quiet")
        assert done.exit_code == 0, done.output


def test_numbers_that_json_does_not_have_are_texts() -> None:
    from symgrad.tools.cli import _finite

    assert _finite({"a": [float("nan"), 1.5, (float("-inf"),)]}) == {"a": ["nan", 1.5, ["-inf"]]}


@pytest.mark.parametrize("status", [0, 3])
def test_a_program_that_ends_itself_is_not_proved(tmp_path: Path, status: int) -> None:
    path = written(tmp_path / "ends.py", f"import sys\nsys.exit({status})\n")
    done = run("verify", path, "--shapes", "n")
    assert (done.exit_code, "ends the program while it is imported" in done.output) == (2, True)
    assert f"{path}:2" in done.output
    path = written(tmp_path / "later.py", "import sys\n", f"sys.exit({status})")
    done = run("verify", path, "--shapes", "n")
    assert (done.exit_code, "there is no verdict" in done.output) == (2, True)


def test_a_syntax_error_is_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import symgrad\n\ndef f(:\n")
    done = run("verify", str(path))
    assert done.exit_code == 2
    assert f"{path}:3: " in done.output
    assert "  3 | def f(:\n    |       ^\n" in done.output
    assert "<frozen" not in done.output
    assert "<frozen" not in run("verify", written(tmp_path / "no.py", "import nothing\n")).output


@pytest.mark.parametrize(
    ("lines", "carets"),
    [
        ('        ä = "é"; y = x @ x * 2', "                     ^^^^^"),
        ("        y = sg.exp(x) + (x @\\\n                x)", "                         ^^^^"),
        ("        y = x\n        assert False, y.shape", "        ^" + "^" * 20),
    ],
)
def test_errors_show_the_line_with_carets(tmp_path: Path, lines: str, carets: str) -> None:
    text = f"""import symgrad as sg

class Product(sg.Function):
    @staticmethod
    def forward(ctx, x):
{lines}
        return y
"""
    done = run("verify", written(tmp_path / "carets.py", text), "--shapes", "n 3")
    numbered = text.splitlines()[6 if "assert" in lines else 5]
    number = text.splitlines().index(numbered) + 1
    assert f"  {number} | {numbered.strip()}\n    | {carets[8:]}\n" in done.output


def test_a_file_without_functions_gets_a_hint(tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("class Exp:\n    pass\n")
    done = run("verify", str(tmp_path / "none.py"))
    assert done.exit_code == 2
    assert "subclass symgrad.Function or torch.autograd.Function" in done.output


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        ("return x if x.sum() > 0 else -x", "cannot branch on a tensor"),
        ("return sg.tanhh(x)", "tanhh"),
    ],
)
def test_the_error_of_all_trials_is_the_error(tmp_path: Path, forward: str, message: str) -> None:
    path = written(tmp_path / "alike.py", "", forward)
    done = run("verify", path)
    line = Path(path).read_text().splitlines().index(f"        {forward}") + 1
    assert done.exit_code == 1
    assert f"{path}:{line}: " in done.output.replace("\n", "")
    assert message in done.output
    assert "found no shapes" not in done.output


def test_a_forward_without_ctx_is_told(tmp_path: Path) -> None:
    path = tmp_path / "without.py"
    path.write_text(WRONG.replace("forward(ctx, x)", "forward(x)"))
    done = run("verify", str(path))
    assert done.exit_code == 1
    assert "forward takes no argument but x, which stands for ctx" in done.output.replace("\n", " ")
    assert "found no shapes" not in done.output


def test_one_size_is_an_annotation(tmp_path: Path) -> None:
    path = tmp_path / "bias.py"
    path.write_text("""
import symgrad as sg


class Bias(sg.Function):
    @staticmethod
    def forward(ctx, x: "n m", b: "m"):
        return x + b

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y, grad_y.sum(0)
""")
    for text in (path.read_text(), f"from __future__ import annotations\n{path.read_text()}"):
        path.with_name(f"bias{len(text)}.py").write_text(text)
        done = run("verify", str(path.with_name(f"bias{len(text)}.py")), "--json")
        assert done.exit_code == 0, done.output
        assert "inferred_shapes" not in json.loads(done.stdout)[0]


def test_file_names_need_not_be_text(tmp_path: Path) -> None:
    path = written(tmp_path / "wr\udc80ng.py", "")
    sarif, junit = tmp_path / "out.sarif", tmp_path / "out.xml"
    done = run("verify", path, "--shapes", "n", "--sarif", str(sarif), "--junit", str(junit))
    assert done.exit_code == 1, done.output
    assert "%80" in sarif.read_text(encoding="utf-8")
    assert ElementTree.parse(junit).getroot().tag == "testsuites"
    done = run("build", path, "-o", str(tmp_path / "k"), "--no-compile", "--shapes", "n",
               "--allow", "REFUTED")  # fmt: skip
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "k" / "MANIFEST.json").read_text(encoding="utf-8"))
    assert manifest["ops"]["square"]["file"].endswith("wr\udc80ng.py")


def test_of_files_with_the_same_text_each_is_named(tmp_path: Path) -> None:
    sarif = tmp_path / "out.sarif"
    for name in ("one.py", "other.py"):
        run("verify", written(tmp_path / name, ""), "--shapes", "n", "--sarif", str(sarif))
        assert f"/{name}" in sarif.read_text(encoding="utf-8")


def test_the_error_of_a_refused_report_holds_it(wrong: Path) -> None:
    from symgrad import verify
    from symgrad.errors import NotProvedError
    from symgrad.tools import discover

    (square,) = discover.functions(str(wrong))
    report = verify(square, "n", suggest=False)
    with pytest.raises(NotProvedError) as found:
        report.raise_for_verdict()
    assert str(report) in str(found.value)


def saved(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


FORWARDS = {
    "softmax": ("return sg.softmax(x, 17)", "sg.softmax(x, 17)"),
    "raise": ("y = x * 2; raise RuntimeError('no luck')", "raise RuntimeError('no luck')"),
    "recursion": ("return again(x)", "again(x)"),
    "name": ("return x * missing", "missing"),
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no columns")
@pytest.mark.parametrize("name", FORWARDS)
def test_what_fails_for_all_shapes_is_shown_where_it_does(tmp_path: Path, name: str) -> None:
    line, expression = FORWARDS[name]
    text = f"""import symgrad as sg


def again(x):
    return again(x)


class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        {line}

    @staticmethod
    def backward(ctx, g):
        return g
"""
    done = run("verify", saved(tmp_path / "fails.py", text))
    assert done.exit_code == 1
    number = 5 if name == "recursion" else 11
    shown = "return again(x)" if name == "recursion" else line
    before = " " * shown.index(expression)
    assert f"  {number} | {shown}\n" in done.output
    assert f"| {before}{'^' * len(expression)}\n" in done.output


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no columns")
@pytest.mark.parametrize(
    ("word", "columns"), [("ab", 2), ("日本", 4), ("ｆｕ", 4), ("é", 1), ("e\u0301", 1)]
)
def test_carets_count_columns(tmp_path: Path, word: str, columns: int) -> None:
    text = f"""import symgrad as sg


class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = "{word}"; return x.no_such_name
"""
    done = run("verify", saved(tmp_path / "wide.py", text))
    before = " " * (len('y = ""; return ') + columns)
    assert f"\n    | {before}{'^' * len('x.no_such_name')}\n" in done.output


PROTOCOL = {
    "def backward(ctx): return 2": "backward does not take ctx and 1 gradient, one for each output",
    "def backward(ctx, a, b): return a": "hint: write backward(ctx, grad_output)",
    "def backward(): return 2": "backward does not take ctx and 1 gradient",
}


@pytest.mark.parametrize("backward", PROTOCOL)
def test_backward_takes_ctx_and_gradients(tmp_path: Path, backward: str) -> None:
    text = f"""import symgrad as sg


class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    {backward}
"""
    path = saved(tmp_path / "taken.py", text)
    done = run("verify", path)
    assert done.exit_code == 1
    told = " ".join(done.output.split())
    assert "REFUTED" in told
    assert PROTOCOL[backward] in told
    assert "taken.py:10" in told
    shown = run("show", f"{path}:Op", "--stage", "graph", "--shapes", "n")
    assert "taken.py:10" in shown.output


def test_a_function_needs_a_forward(tmp_path: Path) -> None:
    text = "import symgrad as sg\n\n\nclass Op(sg.Function):\n    pass\n"
    path = saved(tmp_path / "none.py", text)
    for target in (path, f"{path}:Op"):
        done = run("verify", target)
        assert done.exit_code == 2
        assert "none.py:4: Op: a Function needs a forward" in done.output


def test_forward_with_self_and_ctx_is_no_staticmethod(tmp_path: Path) -> None:
    text = """import symgrad as sg


class Op(sg.Function):
    def forward(self, ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(self, ctx, g):
        return 2 * ctx.saved_tensors[0] * g
"""
    path = saved(tmp_path / "method.py", text)
    for shapes in ((), ("--shapes", "n m")):
        done = run("verify", path, *shapes)
        assert "forward is not a staticmethod" in done.output
        assert "write @staticmethod above forward(ctx, ...)" in done.output


@pytest.mark.parametrize("end", ["raise KeyboardInterrupt", "raise SystemExit(0)"])
def test_no_verdict_is_status_2(tmp_path: Path, end: str) -> None:
    path = saved(tmp_path / "ends.py", f"{end}\n")
    assert run("verify", path).exit_code == 2
    done = run("verify", path, "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["message"]


def test_a_trailing_semicolon_states_no_tensor(tmp_path: Path) -> None:
    text = """import symgrad as sg


class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, w=None):
        ctx.given = w is not None
        return x * 2 if w is None else x * 2 + w

    @staticmethod
    def backward(ctx, g):
        return g * 2, g if ctx.given else None
"""
    path = saved(tmp_path / "optional.py", text)
    reports = [json.loads(run("verify", path, "--json", "--shapes", shapes).stdout)
               for shapes in ("n m", "n m;", "n m ; ")]  # fmt: skip
    inputs = [list(report[0]["inputs"]) for report in reports]
    assert inputs == [["x"]] * 3


def test_a_division_by_zero_is_infinite(tmp_path: Path) -> None:
    text = """import symgrad as sg


class Op(sg.Function):
    forward = staticmethod(lambda ctx, x: x * 1)
    backward = staticmethod(lambda ctx, g: g * 1 / 0)
"""
    done = run("verify", saved(tmp_path / "infinite.py", text), "--shapes", "n")
    assert "yours inf, true 1" in done.output


def test_what_is_right_for_the_default_alone_is_no_pass(tmp_path: Path) -> None:
    file = tmp_path / "fixed.py"
    file.write_text(
        "import symgrad as sg\n"
        "class Fixed(sg.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, beta=1.0):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x * x * beta\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        (x,) = ctx.saved_tensors\n"
        "        return 2 * g * x, None\n"
    )
    done = run("verify", str(file), "--shapes", "n")
    assert done.exit_code == 1
    assert "Fixed: REFUTED for beta = 0.5" in done.stdout
    assert "with the defaults it is PROVED for beta = 1.0" in done.stdout
    assert "write instead" in done.stdout
    stated = run("verify", str(file), "--shapes", "n", "--static", "beta=1.0")
    assert stated.exit_code == 0


def test_what_limits_the_second_order_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bent.py"
    body = WRONG.replace("x * x\n", "x * x.abs()\n").replace("grad_y * x", "2 * grad_y * x.abs()")
    path.write_text(body)
    told = run("verify", str(path), "--shapes", "n", "--order", "2")
    assert told.exit_code == 0
    assert "(second order)" in told.output
    assert "x == 0" in told.output
    assert "second order" not in run("verify", str(path), "--shapes", "n").output


def test_a_class_in_a_class_is_found_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "inside.py"
    inner = WRONG.replace("import symgrad as sg\n\n\n", "").replace("\n", "\n    ")
    path.write_text(f"import symgrad as sg\n\n\nclass Outer:\n    @staticmethod{inner}\n")
    done = run("verify", f"{path}:Outer.Square")
    assert "REFUTED" in done.output


def test_the_table_is_short_and_the_report_has_the_rest(tmp_path: Path, wrong: Path) -> None:
    right = tmp_path / "right.py"
    right.write_text(WRONG.replace("grad_y * x", "2 * grad_y * x"))
    table = run("verify", str(right), "--quiet").output
    assert "shapes inferred: x[n, m]; also" in table.replace("\n", "")
    assert "No shapes were given" not in table
    assert "No shapes were given" not in run("verify", str(right)).output
    assert "No shapes were given" in run("verify", str(right), "-v").output
    assert "No shapes were given" in run("verify", str(wrong)).output
    assert "No shapes were given" not in run("verify", str(wrong), "--quiet").output


UNREPAIRED = """
import symgrad as sg


class Kept(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad *= 2
        return grad * x


class Straight(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad
"""


def test_where_there_is_no_diff_the_reason_is_said(tmp_path: Path, wrong: Path) -> None:
    path = tmp_path / "unrepaired.py"
    path.write_text(UNREPAIRED)
    found = json.loads(run("verify", str(path), str(wrong), "--suggest", "--json").stdout)
    diffs = {one["function"]: (bool(one["diff"]), one.get("no_diff", "")) for one in found}
    assert diffs["Square"] == (True, "")
    assert diffs["Straight"] == (False, "it is a surrogate")
    has, why = diffs["Kept"]
    assert not has
    assert "the incoming gradients are left alone is refuted" in why
