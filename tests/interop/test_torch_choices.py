"""Branches on values: what raises is a condition, and each way that gives something is judged."""

from __future__ import annotations

import contextlib
import inspect
import logging
import pdb
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import ControlFlowError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
log = logging.getLogger(__name__)


def conditions(report: sg.Report) -> list[str]:
    return [one.text.partition(" (demanded")[0] for one in report.conditions]


class Root(Function):
    """The root of what is not negative; ``check`` raises for anything else."""

    factor = 2

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        cls.check(x)
        y = x.sqrt()
        ctx.save_for_backward(y)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g / (cls.factor * y)


def by_any(x: Any) -> None:
    if (x < 0).any():
        raise ValueError("negative")


def by_minimum(x: Any) -> None:
    if x.min() < 0:
        raise ValueError(f"the least is {x.min():.3f}, that is {x.min().item():.1e}")


def by_number(x: Any) -> None:
    if torch.any(torch.lt(x, 0)).item():
        raise RuntimeError


def by_all(x: Any) -> None:
    if not (torch.isfinite(x).all() and (x >= 0).all()):
        raise ValueError(str(x))


def by_function(x: Any) -> None:
    def fail() -> None:
        raise ValueError

    if not bool(x.amin() >= 0):
        fail()


def by_assertion(x: Any) -> None:
    assert not (x < 0).any(), f"{x}"


def by_assertion_of_torch(x: Any) -> None:
    torch._assert((x >= 0).all(), "negative")


def by_error_of_types(x: Any) -> None:
    if (x < 0).any():
        raise TypeError("negative")


def by_long_message(x: Any) -> None:
    if (x < 0).any():
        text = f"{x.min():.3f} {x.min().item():.1e}"
        raise ValueError(text, x[x < 0].tolist(), int(x.sum()))


CHECKS = [
    by_any, by_minimum, by_number, by_all, by_function, by_assertion, by_assertion_of_torch,
    by_error_of_types, by_long_message,
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_what_raises_is_a_condition(check: Any) -> None:
    right = type("Right", (Root,), {"check": staticmethod(check)})
    report = sg.verify(right, "n m", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert conditions(report)[0] == "x >= 0"
    wrong = type("Wrong", (Root,), {"check": staticmethod(check), "factor": 3})
    report = sg.verify(wrong, "n m", suggest=False)
    assert report.verdict == sg.REFUTED, str(report)
    found = report.inputs["x"].counterexample
    assert found is not None
    assert torch.tensor(found.inputs["x"]).min() >= 0


class Modulus(Function):
    """Right where nothing is negative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.abs()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class GuardedModulus(Modulus):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.min() < 0:
            raise ValueError
        return x.abs()


class LooselyGuarded(Modulus):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.min() < -1:
            raise ValueError
        return x.abs()


class TruncatingGuard(Modulus):
    """What is above -1 has a whole part that is not negative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.int().min() < 0:
            raise ValueError
        return x.abs()


def test_the_proof_uses_what_a_check_leaves() -> None:
    report = sg.verify(GuardedModulus, "n", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert sg.verify(Modulus, "n", suggest=False).verdict == sg.REFUTED
    assert sg.verify(LooselyGuarded, "n", suggest=False).verdict == sg.REFUTED
    assert sg.verify(TruncatingGuard, "n", suggest=False).verdict != sg.PROVED


class Square(Function):
    factor = 2

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        if (x < 0).any():
            print("negative:", x)
        if x.max() > 100:
            log.warning("large: %s", x)
        ctx.save_for_backward(x)
        return x * x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        if g.abs().max() > 1e3:
            warnings.warn(f"large: {g.abs().max().item():.3f}", stacklevel=2)
        if x.min() < -9:
            raise ValueError("too small")
        return cls.factor * g * x


class WrongSquare(Square):
    factor = 3


@pytest.mark.filterwarnings("default")
def test_what_only_says_something_is_no_condition(capsys: Any, recwarn: Any) -> None:
    report = sg.verify(Square, "n", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert conditions(report) == ["x >= -9"]
    assert sg.verify(WrongSquare, "n", suggest=False).verdict == sg.REFUTED
    assert "negative" not in capsys.readouterr().out
    assert not [one for one in recwarn if "large" in str(one.message)]


class Bounded(Square):
    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        if (g > 9).any():
            raise ValueError
        return cls.factor * g * x


class WronglyBounded(Bounded):
    factor = 3


def test_a_check_of_the_incoming_gradient() -> None:
    report = sg.verify(Bounded, "n", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert conditions(report) == ["grad_output <= 9"]
    report = sg.verify(WronglyBounded, "n", suggest=False)
    assert report.verdict == sg.REFUTED
    assert report.inputs["x"].counterexample is not None


TEXTS = [
    str, repr, "{}".format, "{:.3f}".format, lambda x: f"{x:.3f}", lambda x: "%s" % x,  # noqa: UP031
    lambda x: format(x, ".3f"), lambda x: str([x]), lambda x: "".join(map(str, [x])),
]  # fmt: skip


class Tells(Bounded):
    """What is kept of a text may be anything."""

    text: Any = str
    number = False

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        total = x.sum()
        ctx.text = cls.text(total.item() if cls.number else total)
        return x * x


@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_kept_is_told(text: Any, number: bool) -> None:
    function = type("Keeps", (Tells,), {"text": staticmethod(text), "number": number})
    assert sg.verify(function, "n", suggest=False).verdict == sg.UNDECIDED


class Both(Bounded):
    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        if (x < 0).any() and (x > 1).any():
            raise ValueError
        ctx.save_for_backward(x)
        return x * x


def test_what_several_questions_lead_to_is_one_condition() -> None:
    report = sg.verify(Both, "n", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert conditions(report) == ["grad_output <= 9", "(x >= 0).all(0) | (x <= 1).all(0)"]


class Never(Bounded):
    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        if (x * x + 1 > 0).any():
            raise ValueError
        ctx.save_for_backward(x)
        return x * x


def test_what_raises_for_all_inputs_is_no_proof() -> None:
    assert sg.verify(Never, "n", suggest=False).verdict == sg.UNDECIDED


class Two(Function):
    """Raises where either of two conditions holds."""

    raises: Any

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        first, second = cls.raises
        if first(x):
            raise ValueError
        if second(x):
            raise ValueError
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


def raising(first: Any, second: Any) -> Any:
    return type("Raising", (Two,), {"raises": (first, second)})


CONTRADICTING = [
    (lambda x: x.max() > 1, lambda x: x.max() <= 1),
    (lambda x: (x > 1).any(), lambda x: (x <= 1).all()),
    (lambda x: x.max() > 1, lambda x: x.min() < 2),
    (lambda x: x.sum() > 1, lambda x: x.sum() <= 1),
    (lambda x: not (x > 2).all(), lambda x: not (x < 1).all()),
    (lambda x: x.min() < 0, lambda x: x.sum() > -1),
    (lambda x: torch.equal(x, x.relu()), lambda x: not torch.equal(x.relu(), x)),
]
AGREEING = [
    (lambda x: x.max() > 1, lambda x: x.min() < 1),  # x == 1 alone
    (lambda x: x.max() > 1, lambda x: x.max() <= -1),
    (lambda x: x.min() < 0, lambda x: x.sum() != 1),
    (lambda x: x.min() <= 0, lambda x: x.max() >= 1e-8),
    (lambda x: (x.norm() - 1).abs() > 1e-6, lambda x: x.sum() > 1),
    (lambda x: x.square().sum() > 1, lambda x: x.sum() <= 1.2),
    (lambda x: not torch.allclose(x.sum(), torch.tensor(1.0)), lambda x: (x < 0).any()),
    (lambda x: torch.equal(x, x.relu()), lambda x: x.max() >= 5),
]


@pytest.mark.parametrize("conditions", CONTRADICTING)
def test_conditions_that_no_input_meets_are_no_proof(conditions: Any) -> None:
    report = sg.verify(raising(*conditions), "n 2", suggest=False)
    assert report.verdict == sg.UNDECIDED, str(report)
    assert "no input was found with" in str(report)
    assert "(demanded in line" in str(report)


@pytest.mark.parametrize("conditions", AGREEING)
def test_conditions_that_some_input_meets_are_printed(conditions: Any) -> None:
    report = sg.verify(raising(*conditions), "n 2", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert sum("demanded in line" in one.text for one in report.conditions) == 2


@pytest.mark.parametrize("alike", [torch.equal, torch.allclose])
@pytest.mark.parametrize(("factor", "verdict"), [(None, sg.PROVED), (-1, sg.REFUTED)])
def test_what_two_tensors_that_are_equal_decide(
    alike: Any, factor: int | None, verdict: Any
) -> None:
    class Asking(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            other = x if factor is None else factor * x
            return x if alike(x, x.relu()) else other

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    assert sg.verify(Asking, "n", suggest=False).verdict == verdict


class Handled(Bounded):
    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        try:
            by_any(x)
        except ValueError:
            return 2 * x * x
        return x * x


class Halved(Bounded):
    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        while x.sum() > 1:
            x = x / 2
        return x


class Shrunk(Bounded):
    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x if x.sum() > 0 else x.sum()


def test_what_gives_no_one_result_is_refused_with_its_line() -> None:
    with pytest.raises(ControlFlowError, match="cannot branch on a tensor") as error:
        sg.verify(Shrunk, "n", suggest=False)
    assert error.value.location is not None
    assert error.value.location.function == "forward"


def test_a_loop_that_ends_by_a_value_is_judged_for_few_rounds() -> None:
    report = sg.verify(Halved, "n", suggest=False)
    assert report.verdict == sg.REFUTED
    assert "one a round of its loop" in str(report)


def test_what_handles_the_error_is_judged() -> None:
    assert sg.verify(Handled, "n", suggest=False).verdict == sg.REFUTED


class Forgets(Bounded):
    """An error that nobody raises on purpose: backward misses what forward has not saved."""

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        if (x < 0).any():
            return x * x
        ctx.save_for_backward(x)
        return x * x


class AddsOne(Bounded):
    """A check with an error of its own in a block that handles it."""

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        with contextlib.suppress(ValueError):
            if (x < 0).any():
                raise ValueError
            x = x + 1
        return x * x


@pytest.mark.parametrize(("function", "verdict"), [(Forgets, sg.UNDECIDED), (AddsOne, sg.REFUTED)])
def test_what_is_not_raised_on_purpose_is_no_condition(function: Any, verdict: Any) -> None:
    report = sg.verify(function, "n", suggest=False)
    assert report.verdict == verdict
    assert "x >= 0" not in conditions(report)


class Ways(Function):
    """Forward and backward of the subclass, with the numbers of a mistake in one way."""

    factor = 2.0

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return cls.way(x)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return cls.back(x, g)


class AllPositive(Ways):
    """A leaky ramp with a shortcut in forward alone."""

    @classmethod
    def way(cls, x: Any) -> Any:
        return 2 * x if (x > 0).all() else torch.where(x <= 0, 0.1 * x, 2 * x)

    @classmethod
    def back(cls, x: Any, g: Any) -> Any:
        return torch.where(x > 0, cls.factor * g, 0.1 * g)


class NoneAbove(Ways):
    """A shortcut in backward alone."""

    @classmethod
    def way(cls, x: Any) -> Any:
        return torch.where(x > 1, 2 * x - 1, x)

    @classmethod
    def back(cls, x: Any, g: Any) -> Any:
        mask = x > 1
        return torch.where(mask, cls.factor * g, g) if mask.any() else g


class ByNorm(Ways):
    """What is longer than 1 is scaled to 1."""

    @classmethod
    def way(cls, x: Any) -> Any:
        n = x.norm()
        return x / n if n > 1 else 2 * x / 2

    @classmethod
    def back(cls, x: Any, g: Any) -> Any:
        n = x.norm()
        return g / n - x * (g * x).sum() / n ** (1 + cls.factor) if n > 1 else g


class OfNothing(Ways):
    """A gradient that is 0 is not multiplied."""

    limit = 0.0

    @classmethod
    def way(cls, x: Any) -> Any:
        return x * x

    @classmethod
    def back(cls, x: Any, g: Any) -> Any:
        return torch.zeros_like(x) if (g == cls.limit).all() else cls.factor * g * x


class Closed(Ways):
    """Two functions, one behind a jump, with both derivatives."""

    @classmethod
    def way(cls, x: Any) -> Any:
        return 2 * x if (x >= 0).all() else x + 1

    @classmethod
    def back(cls, x: Any, g: Any) -> Any:
        return cls.factor * g if (x >= 0).all() else g


RIGHT = [
    (AllPositive, ["x == 0"]), (NoneAbove, ["x == 1"]),
    (ByNorm, ["x.square().sum().sqrt() == 1"]), (OfNothing, []), (Closed, ["x == 0"]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kinks"), RIGHT)
def test_each_way_is_judged(function: Any, kinks: list[str]) -> None:
    report = sg.verify(function, "n", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert [one.text.partition(" (")[0] for one in report.conditions] == kinks
    wrong = type("Wrong", (function,), {"factor": 3.0})
    report = sg.verify(wrong, "n", suggest=False)
    assert report.verdict == sg.REFUTED, str(report)


def test_a_way_that_is_wrong_at_some_gradients_is_refuted() -> None:
    wrong = type("Wrong", (OfNothing,), {"limit": 1.0})
    report = sg.verify(wrong, "n", suggest=False)
    assert report.verdict != sg.PROVED, str(report)


class OnOnePoint(Ways):
    """At 0 alone forward is another one, whose slope is not that of forward there."""

    @classmethod
    def way(cls, x: Any) -> Any:
        return 3 * x if (x == 0).all() else x * 1

    @classmethod
    def back(cls, x: Any, g: Any) -> Any:
        return 3 * g if (x == 0).all() else g


def test_the_slope_of_a_way_is_none_where_it_is_taken_at_a_point() -> None:
    assert sg.verify(OnOnePoint, "n", suggest=False).verdict == sg.REFUTED


class AfterAnother(Ways):
    """One of the ways reads what an earlier call left."""

    last: Any = 1.0

    @classmethod
    def way(cls, x: Any) -> Any:
        if x.sum() > 0:
            return x * 1
        found, AfterAnother.last = x * AfterAnother.last, AfterAnother.last + 1
        return found

    @classmethod
    def back(cls, x: Any, g: Any) -> Any:
        return g


def test_state_of_one_way_is_told() -> None:
    assert sg.verify(AfterAnother, "n", suggest=False).verdict != sg.PROVED


kept = {"calls": 0, "factor": 1}


class Counts(Bounded):
    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        kept["calls"] += 1
        by_any(x)
        ctx.save_for_backward(x)
        return x * x


class Remembers(Bounded):
    """A call that raises leaves another factor to those that follow."""

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        factor = kept["factor"]
        if (x < 0).any():
            kept["factor"] = 3
            raise ValueError
        ctx.save_for_backward(x)
        return factor * x * x


class Forgives(Bounded):
    """Each way puts back what the other one leaves."""

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        factor = kept["factor"]
        kept["factor"] = 3 if (x < 0).any() else 1
        ctx.save_for_backward(x)
        return factor * x * x


def test_state_of_all_ways() -> None:
    report = sg.verify(Counts, "n", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert conditions(report) == ["x >= 0", "grad_output <= 9"]
    assert sg.verify(Remembers, "n", suggest=False).verdict == sg.UNDECIDED
    assert sg.verify(Forgives, "n", suggest=False).verdict == sg.UNDECIDED


class Warned(Function):
    """Something is said once."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if (x < 0).any() and not kept.get("said"):
            kept["said"] = 1
            print("negative")
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


SAID = [
    'log.debug(f"{x.shape=}")',
    "print(x.shape, x.shape[0], x.shape[0] / 2, file=sys.stderr)",
    'print("%s" % (x.shape,), "{}".format(x.shape[0]), f"{x.shape[0]:d}")',
    'logging.getLogger("own").info("of " + str(x.shape[0]))',
    'warnings.warn(f"of {x.shape[-1]}", stacklevel=2)',
    'sys.stdout.write(f"{x.shape[0] / 2:.1f}")',
]
KEPT = [
    "ctx.kept = str(x.shape)", 'ctx.kept = log.debug(f"{x.shape}")', "print(len(str(x.shape)))",
    'print(f"{x.shape}", file=kept.setdefault("file", io.StringIO()))',
]  # fmt: skip


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("statement", [*SAID, *KEPT])
def test_a_text_of_sizes_that_ends_in_a_message_says_nothing(
    statement: str, tmp_path: Path
) -> None:  # fmt: skip
    file = tmp_path / "speaking.py"
    source = textwrap.dedent(inspect.getsource(Speaks)).replace("pass", statement)
    file.write_text(f"import io\nimport sys\n{source}")
    space = dict(globals())
    exec(compile(file.read_text(), str(file), "exec"), space)
    verdict = sg.verify(space["Speaks"], "n m", suggest=False).verdict
    assert verdict == (sg.PROVED if statement in SAID else sg.UNDECIDED)


class Speaks(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        pass
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class Stops(Warned):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if (x > 9).any():
            pdb.Pdb().set_trace()
        ctx.save_for_backward(x)
        return x * x


def test_no_trace_stops_for_a_debugger() -> None:
    assert sg.verify(Stops, "n", suggest=False).verdict != sg.REFUTED
    assert sg.verify(Warned, "n", suggest=False).verdict in (sg.PROVED, sg.UNDECIDED)


class ByLimit(Function):
    """The number of a tensor is compared with a plain number, and with that of another tensor."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, limit: float) -> Any:
        n = x.norm()
        ctx.save_for_backward(x, n)
        ctx.limit = limit
        return x * (limit / n) if n.item() > limit else x * 1

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, n = ctx.saved_tensors
        if 2 * n.item() > n.item() + ctx.limit:
            return cls.factor * ctx.limit * (g / n - x * (g * x).sum() / n**3), None
        return g, None


def test_numbers_of_tensors_are_compared_with_plain_numbers() -> None:
    report = sg.verify(ByLimit, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert report.quantified == ("all real limit",)
    wrong = type("Wrong", (ByLimit,), {"factor": 2})
    assert sg.verify(wrong, suggest=False).verdict == sg.REFUTED
