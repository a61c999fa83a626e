"""What Python asks in classes of torch is answered as torch does, printed, or UNDECIDED.

torch answers beside each program: on leaves, on computed tensors, of 64 bits, with other strides.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import textwrap
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402
from symgrad.frontend.guests import taken  # noqa: E402
from symgrad.frontend.questions import Questions, questions  # noqa: E402
from symgrad.frontend.trace import trace  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function

HELPER = """
import builtins
import torch

def is_tensor(t): return type(t) is torch.Tensor
def name_of(t): return type(t).__name__
def by_builtins(t): return builtins.type(t) is torch.Tensor
kind_of = type
def renamed(t): return kind_of(t) is torch.Tensor
def mapped(t): return list(map(type, [t])) == [torch.Tensor]
def by_default(t, type=type): return type(t) is torch.Tensor
def made(): return lambda t: type(t) is torch.Tensor
def enabled_inside():
    with torch.enable_grad():
        return torch.is_grad_enabled()
def requires_inside(t):
    with torch.enable_grad():
        return (t * 2).requires_grad
class Kind:
    kind = type
    def __init__(self, t): self.found = type(t)
    def ok(self): return self.found is torch.Tensor
"""

PROGRAM = """
import sys
import torch
import helper as H
from helper import made
from torch.overrides import has_torch_function as asks_torch
IS = made()

class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        {forward}
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (2 if {backward} else 3) * g * x
"""

ANYWHERE = """
IS(x)
H.is_tensor(x)
H.name_of(x) == "Tensor"
H.by_builtins(x)
H.renamed(x)
H.mapped(x)
H.by_default(x)
H.Kind(x).ok()
type(x.shape) is torch.Size
type(x.size()) is torch.Size
type(x.device) is torch.device
type(x.dtype) is torch.dtype
type(x.shape[0]) is int
type(x.numel()).__name__ == "int"
type(x.shape[0] / 2) is float
isinstance(x.shape[0], torch.SymInt)
type(ctx.needs_input_grad) is tuple
torch.overrides.has_torch_function_unary(x)
torch.overrides.has_torch_function((x,))
asks_torch((x,))
torch.overrides.is_tensor_like(x)
torch.is_tensor(x)
torch._C._has_torch_function_unary(x)
torch._C._len_torch_function_stack() == 0
torch._C._is_torch_function_mode_enabled()
torch.overrides._get_current_function_mode() is None
x.__torch_function__ == torch.Tensor.__torch_function__
type(ctx).__name__ == "AskingBackward"
ctx.__class__.__name__ == "AskingBackward"
ctx.name() == "AskingBackward"
hasattr(ctx, "next_functions")
hasattr(ctx, "metadata")
hasattr(ctx, "register_hook")
hasattr(ctx, "_raw_saved_tensors")
ctx._forward_cls is Asking
isinstance(ctx, torch.autograd.function.BackwardCFunction)
isinstance(ctx, torch.autograd.function.FunctionCtx)
isinstance(ctx, torch.autograd.Function)
issubclass(type(ctx), torch.autograd.function.BackwardCFunction)
ctx.__dict__ == {}
x.__dict__ == {}
x.__class__ is torch.Tensor
x.__class__.__module__ == "torch"
type(x).__mro__[1] is torch._C.TensorBase
x._backward_hooks is None
x._version == 0
x.storage().size() > 0
x.untyped_storage().nbytes() > 0
x.layout is torch.strided
str(x.layout) == "torch.strided"
x.is_sparse
x.is_quantized
x.is_inference()
x.is_complex()
x._python_dispatch
x._is_view()
x._base is None
x.output_nr == 0
x.retains_grad
x.H is x
x.data is x
x.type() == "torch.FloatTensor"
x.type() == "torch.DoubleTensor"
isinstance(x, torch.FloatTensor)
isinstance(x, torch.DoubleTensor)
isinstance(x, torch.cuda.FloatTensor)
isinstance(x, (torch.DoubleTensor, torch.cuda.DoubleTensor))
isinstance(x, torch.LongTensor)
isinstance(x, torch.nn.Parameter)
torch.typename(x) == "torch.FloatTensor"
x.dtype is torch.float32
torch.finfo(x.dtype).bits == 32
{torch.float64: 1}.get(x.dtype) == 1
x.device in {torch.device("cpu")}
x.is_contiguous(memory_format=torch.channels_last)
ctx.saved_tensors is ctx.saved_tensors
len(ctx.saved_tensors) == 1
x.device is x.device
x.shape is x.shape
x.data is x.data
x.flatten() is x
x.ravel() is x
torch.as_tensor(x) is x
torch.tensor(x) is x
torch.asarray(x) is x
x.sum_to_size(x.shape) is x
torch.broadcast_tensors(x)[0] is x
x.view(x.dtype) is x
type((1,) + x.shape) is torch.Size
type(x.shape * 2) is torch.Size
type(x.max(0)) is torch.return_types.max
isinstance(x.sort(), torch.return_types.sort)
type(torch.topk(x, 1)).__name__ == "topk"
x.max(0).values.shape == ()
ctx.__module__ == "torch.autograd.function"
torch.is_grad_enabled()
H.enabled_inside()
H.requires_inside(x)
hasattr(x, "strides")
hasattr(x, "node")
hasattr(x, "write")
hasattr(x, "astype")
getattr(x, "steps", None) is None
getattr(x, "_cached", None) is None
hasattr(x, "other")
x.__hash__() == id(x)
sys.getrefcount(x) > 0
""".strip().splitlines()

SURROUNDINGS = {
    "torch.is_anomaly_enabled()": "torch.is_anomaly_enabled() is False",
    "torch.get_default_dtype() == torch.float32": "torch.get_default_dtype() is torch.float32",
    "torch.is_autocast_enabled()": "torch.is_autocast_enabled() is False",
    "torch.get_num_threads() < 10000": "torch.get_num_threads() is",
    "torch.are_deterministic_algorithms_enabled()": "are_deterministic_algorithms_enabled() is",
    "torch.backends.cudnn.deterministic": "torch.backends.cudnn.deterministic is False",
    "torch.backends.cuda.matmul.allow_tf32": "torch.backends.cuda.matmul.allow_tf32 is",
    "torch.cuda.is_available()": "torch.cuda.is_available() is",
    "torch.__version__ > '1'": "torch.__version__ is",
    "torch.version.cuda is None": "torch.version.cuda is",
    "sys.version_info >= (3, 8)": "sys.version_info is",
    "sys.platform != ''": "sys.platform is",
}

_numbers = count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("asking")
    (path / "helper.py").write_text(HELPER)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path))
        yield path


OUTPUT = """
import torch

class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = y = x * x
        ctx.t = t = x.clone()
        ctx.save_for_backward(x, t, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, t, y = ctx.saved_tensors
        return (2 if {question} else 3) * g * x
"""

OF_SAVED = (
    "y is ctx.y", "t is ctx.t", "ctx.saved_tensors[0] is x", "ctx.saved_tensors[2] is y",
    "y.grad_fn is ctx", "y.grad_fn == ctx", "y.grad_fn is not None", "ctx.y.grad_fn is ctx",
    "y.requires_grad", "t.requires_grad", "y.is_leaf", "t.is_leaf", "ctx.y.is_leaf",
)  # fmt: skip


HANDLING = """
import torch

class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        k = 3
        {body}
        return k * g * x
"""

HANDLED = (
    "try: x.sum(5)\nexcept IndexError: k = 2",
    "try: x @ torch.zeros(99991)\nexcept RuntimeError: k = 2",
    "try: x.reshape(-1, 0)\nexcept Exception as e: k = 2 if type(e) is RuntimeError else 3",
    "try: x.sum(5)\nexcept Exception as e: k = 2 if e.__class__ is IndexError else 3",
    "try: x.other\nexcept AttributeError as e: k = 2 if 'Tensor' in str(e) else 3",
    "try: ctx.other\nexcept AttributeError as e: k = 2 if 'AskingBackward' in str(e) else 3",
    "import json\nk = 2 if json.dumps(list(x.shape)) else 3",
    "k = 2 if divmod(x.shape[0], 1)[1] == 0 else 3",
    "k = 2 if not x.detach().requires_grad else 3",
    "k = 2 if not x.data.requires_grad and x.detach().is_leaf else 3",
    "k = 2 if not x[:].requires_grad else 3",
    "k = 2 if x.detach().requires_grad_().requires_grad else 3",
    "k = 2 if isinstance(torch.nn.Parameter(x.detach()), torch.nn.Parameter) else 3",
)


def _loaded(text: str, folder: Path) -> Any:
    path = folder / f"asking_{next(_numbers)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Asking


def _program(question: str, folder: Path, *, inside_forward: bool) -> Any:
    forward = f"ctx.answer = bool({question})" if inside_forward else "pass"
    backward = "ctx.answer" if inside_forward else question
    text = textwrap.dedent(PROGRAM)
    return _loaded(text.format(forward=forward, backward=backward), folder)


def _ways() -> Any:
    x = torch.arange(1.0, 4).requires_grad_()
    yield x, torch.ones(3)
    yield x * 1, torch.ones(3)
    wide = torch.arange(1.0, 4, dtype=torch.float64).requires_grad_()
    yield wide, torch.ones(3, dtype=torch.float64)
    yield torch.arange(6.0)[::2].requires_grad_(), torch.ones(6)[::2]
    yield torch.nn.Parameter(torch.arange(1.0, 4)), torch.ones(3)


def _answers(function: Any) -> list[bool]:
    """Is the gradient right, each way of calling it?"""
    found = []
    for x, g in _ways():
        try:
            (grad,) = torch.autograd.grad(function.apply(x), x, g)
            found.append(bool(torch.allclose(grad, 2 * g * x)))
        except (RuntimeError, AttributeError, IndexError):
            found.append(False)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inside_forward", [False, True], ids=["backward", "forward"])
@pytest.mark.parametrize("question", ANYWHERE)
def test_answers_are_those_of_torch(question: str, inside_forward: bool, folder: Path) -> None:
    """Both a program that needs the answer and one that needs the opposite."""
    told: list[Any] = []
    for asked in (question, f"not ({question})"):
        function = _program(asked, folder, inside_forward=inside_forward)
        right = _answers(function)
        try:
            report = sg.verify(function, "n", suggest=False)
        except SymgradError as error:
            told.append(error.location)
            continue
        verdict, said = str(report.verdict), str(report)
        if verdict == "PROVED":
            assert all(right) or report.conditions, said
            assert right[0], said
        elif verdict != "UNDECIDED":
            assert not all(right) or "on a GPU" in said, said
        else:
            assert "asking_" in said or "helper.py" in said, said
    assert all(one is not None and one.file.startswith(str(folder)) for one in told)


@pytest.mark.parametrize("question", OF_SAVED)
def test_saved_tensors_are_those_of_torch(question: str, folder: Path) -> None:
    for asked in (question, f"not ({question})"):
        function = _loaded(OUTPUT.format(question=asked), folder)
        right = _answers(function)
        report = sg.verify(function, "n", suggest=False)
        if str(report.verdict) != "UNDECIDED":
            assert (str(report.verdict) == "PROVED") == all(right), str(report)


HOOKED = """
import operator
import torch

class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y, z = x * 1, x * x
        {forward}
        ctx.x, ctx.y, ctx.z = x, y, z
        ctx.save_for_backward(x, y, z)
        return z

    @staticmethod
    def backward(ctx, g):
        x, y, z = ctx.saved_tensors
        return (2 if {question} else 3) * g * x
"""
WHICH_SAVED = (
    "ctx.x is x", "ctx.y is y", "ctx.z is z", "operator.is_(ctx.x, x)", "ctx.x in [y, x]",
    "(ctx.y,) == (y,)", "[x, y].index(ctx.y) == 1", "[ctx.x].count(x) == 1",
    "any(one is y for one in (ctx.x, ctx.y))", "ctx.saved_tensors[1] is y",
    "ctx.saved_tensors[0] is ctx.saved_tensors[0]", "id(ctx.x) == id(x)", "x in {ctx.x: 1}",
    "{id(ctx.y): True}.get(id(y), False)", "ctx.x.data_ptr() == x.data_ptr()",
    "__import__('weakref').ref(x)() is ctx.x", "getattr(y, 'tag', 0) == 1", "hasattr(ctx.y, 'tag')",
)  # fmt: skip


def _checkpointed(function: Any, x: Any) -> Any:
    from torch.utils.checkpoint import checkpoint

    return checkpoint(function.apply, x, use_reentrant=False)


def _on_cpu(function: Any, x: Any) -> Any:
    with torch.autograd.graph.save_on_cpu():
        return function.apply(x)


@pytest.mark.parametrize("forward", ["pass", "y.tag = 1"])
@pytest.mark.parametrize("question", WHICH_SAVED)
def test_hooks_of_saved_tensors_do_not_falsify_a_proof(
    question: str, forward: str, folder: Path
) -> None:
    for asked in (question, f"not ({question})"):
        function = _loaded(HOOKED.format(question=asked, forward=forward), folder)
        report = sg.verify(function, "n", suggest=False)
        if str(report.verdict) == "UNDECIDED":
            continue
        right = all(_answers(function))
        assert (str(report.verdict) == "PROVED") == right, str(report)
        for call in (_checkpointed, _on_cpu):
            x = torch.arange(1.0, 4).requires_grad_()
            try:
                (grad,) = torch.autograd.grad(call(function, x), x, torch.ones(3))
            except RuntimeError:  # checkpoint gives a saved tensor once
                continue
            hooked = bool(torch.allclose(grad, 2 * x))
            assert hooked or not right or any("were saved" in str(one) for one in report.conditions)


def _views() -> Any:
    """Cotangents that are real and strided, views of complex ones among them."""
    z = torch.tensor([1 + 1j, 2 + 2j, 3 + 3j])
    yield torch.ones(3)
    yield z.conj().imag
    yield z.real


OF_KINDS = sorted(
    name for name in {*dir(torch.Tensor), *dir(torch)}
    if name.startswith("is_") and not name.endswith(("_enabled", "_available"))
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_KINDS)
def test_what_a_tensor_is_is_asked_alike_by_methods_and_functions(name: str, folder: Path) -> None:
    """A proof holds for all real tensors, or prints a condition."""
    other = "g" if name in ("is_same_size", "is_set_to") else ""
    shown = getattr(torch.Tensor, name, None)
    asked = [f"g.{name}({other})" if callable(shown) else f"g.{name}"] if shown is not None else []
    asked += [f"torch.{name}({', '.join(('g', *other))})"] if hasattr(torch, name) else []
    verdicts = []
    for question in asked:
        for text in (question, f"not {question}"):
            function = _loaded(HOOKED.format(question=text, forward="pass"), folder)
            report = sg.verify(function, "n", suggest=False)
            verdicts.append(str(report.verdict))
            x = torch.arange(1.0, 4).requires_grad_()
            for g in _views() if verdicts[-1] == "PROVED" and not report.conditions else ():
                (grad,) = torch.autograd.grad(function.apply(x), x, g)
                assert torch.allclose(grad, 2 * g * x), str(report)
    assert verdicts[: len(verdicts) // len(asked)] * len(asked) == verdicts


OPTIMISED = """
import torch

def note(ctx):
    ctx.k = 2
    return True

class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.k = {before}
        {statement}
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {factor} * g * x
"""


@pytest.mark.parametrize(
    ("statement", "before", "factor", "told"),
    [
        ("pass", 2, "(2 if __debug__ else 3)", True),
        ("if __debug__: ctx.k = 2", 3, "ctx.k", True),
        ("assert note(ctx)", 3, "ctx.k", True),
        ("assert (k := 2); ctx.k = k", 3, "ctx.k", True),
        ("assert not [].append(2)", 2, "ctx.k", True),
        ("assert isinstance(x, torch.Tensor) and x.dim() == 1", 2, "ctx.k", False),
    ],
)
def test_what_python_leaves_out_is_printed(
    statement: str, before: int, factor: str, told: bool, folder: Path
) -> None:
    text = OPTIMISED.format(statement=statement, before=before, factor=factor)
    report = sg.verify(_loaded(text, folder), "n", suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert any("__debug__ is True" in str(one) for one in report.conditions) == told


def test_what_chance_answers_is_never_refuted(folder: Path) -> None:
    for bit in range(8):
        text = HOOKED.format(question=f"(id(g) >> {bit + 4}) % 2", forward="pass")
        assert str(sg.verify(_loaded(text, folder), "n", suggest=False).verdict) == "UNDECIDED"


def test_what_torch_asks_for_itself_is_no_question(folder: Path) -> None:
    """In a process of its own, where torch has yet to import what it needs."""
    text = OPTIMISED.format(statement="pass", before=2, factor="torch.float_power(x, 0) * 2")
    path = folder / f"asking_{next(_numbers)}.py"
    path.write_text(text.replace("* g * x", "* torch.vmap(torch.mul)(g, x) + 0 * FIRST"
                                 ).replace("FIRST", "torch.float_power(x, 2)"))  # fmt: skip
    run = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); import symgrad as sg; "
        f"from {path.stem} import Asking; print(sg.verify(Asking, 'n', suggest=False))"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Asking: PROVED"), done.stdout


def test_a_program_that_looks_at_frames_is_not_proved(folder: Path) -> None:
    text = HOOKED.format(question="inspect.currentframe() is not None", forward="pass")
    report = sg.verify(_loaded("import inspect" + text, folder), "n", suggest=False)
    assert str(report.verdict) == "UNDECIDED"


@pytest.mark.parametrize("body", HANDLED)
def test_errors_and_flags_are_those_of_torch(body: str, folder: Path) -> None:
    for text in (body, f"{body}\nk = 5 - k"):
        lines = text.replace("\n", "\n        ")
        function = _loaded(HANDLING.format(body=lines), folder)
        right = _answers(function)
        report = sg.verify(function, "n", suggest=False)
        if str(report.verdict) == "PROVED":
            assert right[0], str(report)
        elif str(report.verdict) != "UNDECIDED":
            assert not all(right), str(report)


@pytest.mark.parametrize("question", SURROUNDINGS)
def test_what_the_machine_and_settings_answer_is_printed(question: str, folder: Path) -> None:
    plain = _program(question, folder, inside_forward=False)
    negated = _program(f"not ({question})", folder, inside_forward=False)
    reports = [sg.verify(one, "n", suggest=False) for one in (plain, negated)]
    proved = [one for one in reports if str(one.verdict) == "PROVED"]
    assert len(proved) == 1, [str(one) for one in reports]
    said = [str(condition) for condition in proved[0].conditions]
    assert any(SURROUNDINGS[question] in one and "asking_" in one for one in said), said


@pytest.mark.parametrize(
    "line",
    ["torch.set_num_threads(1)", "torch.set_default_dtype(torch.float64)",
     "torch.autograd.set_detect_anomaly(True)", "torch.backends.cuda.matmul.allow_tf32 = False",
     "torch.use_deterministic_algorithms(True)"],
)  # fmt: skip
def test_settings_that_are_changed_are_not_proved(line: str, folder: Path) -> None:
    function = _loaded(PROGRAM.format(forward=line, backward="True"), folder)
    before = torch.get_num_threads(), torch.get_default_dtype()
    try:
        report = sg.verify(function, "n", suggest=False)
    finally:
        torch.set_num_threads(before[0])
        torch.set_default_dtype(before[1])
        torch.autograd.set_detect_anomaly(False)
        torch.use_deterministic_algorithms(False)
    assert str(report.verdict) == "UNDECIDED", str(report)


def test_what_makes_an_error_of_a_nan_is_printed(folder: Path) -> None:
    line = "torch.set_anomaly_enabled(torch.is_anomaly_enabled())"
    report = sg.verify(_loaded(PROGRAM.format(forward=line, backward="True"), folder), "n")
    assert str(report.verdict) == "PROVED", str(report)
    assert "torch.set_anomaly_enabled makes no error of a nan" in str(report)


# -- all attributes of tensors

_PLAIN = (bool, int, float, str, type(None), torch.Size, torch.dtype, torch.device, torch.layout)
_NOT_ASKED = ("__init__",)


def _plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (
        isinstance(value, (tuple, list, dict)) and type(value) in (tuple, list, dict)
        and all(map(_plain, value))
    )  # fmt: skip


def _in_torch(asked: Any, where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    class Real(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            for name in dir(torch.Tensor):
                one = g if where == "cotangent" else x
                one = one.detach().clone() if _writes(name) else one
                try:
                    found[name] = asked(one, name)
                except Exception as error:
                    found[name] = error
            return 2 * g * x

    x = torch.randn(3, 4, requires_grad=True)
    Real.apply(x).backward(torch.randn(3, 4))
    return found


def _writes(name: str) -> bool:
    return (name.endswith("_") and not name.endswith("__")) or name.startswith("__i")


def _count(known: Questions) -> int:
    return len(known.observed) + len(known.answers) + len(known.assumed) + len(known.marks)


def _in_trace(asked: Any, where: str, kept: Path) -> dict[str, Any]:
    """What is answered in a trace without a word: not printed, split, observed or refused.

    ``kept``: a file, since a list that backward changes is put back.
    """
    file = os.open(kept, os.O_CREAT | os.O_WRONLY)

    class Traced(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            known = questions()
            assert known is not None
            for name in dir(torch.Tensor):
                one = g if where == "cotangent" else x
                one = one.clone() if _writes(name) else one
                before = _count(known)
                try:
                    value = asked(one, name)
                except Exception as error:
                    value = error
                if _count(known) == before and not isinstance(value, SymgradError):
                    one = (name, value if _plain(value) else type(value).__name__)
                    os.write(file, pickle.dumps(one))
                known.answers.clear()
                known.assumed.clear()
            return 2 * g * x

    trace(taken(Traced), "f32[3 4]")
    found = []
    with open(kept, "rb") as text, suppress(EOFError):
        while True:
            found.append(pickle.load(text))
    return dict(reversed(found))


def _alike(value: Any, real: Any) -> bool:
    if isinstance(real, torch.Size):
        return tuple(value) == tuple(real)
    return str(value) == str(real) if isinstance(real, torch.device) else bool(value == real)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["input", "cotangent"])
def test_no_attribute_of_a_tensor_is_answered_falsely(where: str, folder: Path) -> None:
    path = folder / "asks.py"
    path.write_text(
        "def asked(tensor, name):\n"
        "    found = getattr(tensor, name)\n"
        "    return found() if callable(found) and not isinstance(found, type) else found\n"
    )
    asked = __import__("asks").asked
    real, silent = _in_torch(asked, where), _in_trace(asked, where, folder / "kept")
    assert len(silent) > 100
    false = {
        name: (real[name], value) for name, value in silent.items()
        if name not in _NOT_ASKED and _plain(real.get(name, NotImplemented))
        and not _alike(value, real[name])
    }  # fmt: skip
    assert not false


class Feedback(Function):
    """Another matrix leads back; where bias has no gradient, one question of sizes is not asked."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, other: Any, bias: Any) -> Any:
        ctx.save_for_backward(x, other)
        return x.mm(weight.t()) + bias

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, other = ctx.saved_tensors
        by_bias = g.sum(0).squeeze(0) if ctx.needs_input_grad[3] else None
        return g.mm(other), g.t().mm(x), None, by_bias


def test_what_is_wrong_anyway_is_not_said_to_depend_on_the_call() -> None:
    report = sg.verify(Feedback, "n m", "k m", "k m", "k", suggest=False)
    assert report.inputs["x"].verdict == sg.SURROGATE, str(report)
    assert report.inputs["weight"].verdict == sg.PROVED
    (about,) = [one for one in report.protocol if one.name == "needs_input_grad variants agree"]
    assert about.verdict == sg.PROVED, str(report)


KINDS = {
    "x.is_sparse": "no tensor is sparse", "x.layout == torch.sparse_coo": "is strided",
    "x.is_quantized": "no tensor is quantized", "x.is_mkldnn": "no tensor is of MKL-DNN",
    "x.is_nested": "no tensor is nested", "x.is_meta": "on the CPU or on a GPU",
    "x.is_sparse_csr": "no tensor is sparse",
}  # fmt: skip


@pytest.mark.parametrize("question", KINDS)
def test_that_no_tensor_is_of_another_kind_is_printed(question: str, folder: Path) -> None:
    report = sg.verify(
        _loaded(PROGRAM.format(forward="pass", backward=f"not {question}"), folder), "n"
    )
    assert KINDS[question] in str(report)
