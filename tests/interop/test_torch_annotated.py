"""What annotations list is judged: members, literals, dtypes, None; wrong at one is REFUTED."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Literal, Optional

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function

OPTIONAL: Any = Optional
"""As older code writes it."""


class Mode(enum.Enum):
    ONE = 1
    TWO = 2
    THREE = 3


class Text(str, enum.Enum):
    ONE = "one"
    TWO = "two"


class Flags(enum.Flag):
    ONE = 1
    TWO = 2


DTYPES = "torch.float32 or torch.float64 or torch.float16 or torch.bfloat16"
LOOKED_UP = {"a": 1, "b": 2, 3: 3, None: 4}


def scaled(of: Callable[[Any], float], wrong: Callable[[Any], bool], kind: Any, **how: Any) -> Any:
    """The report on a Function that multiplies by what an argument says."""

    def forward(ctx: Any, x: Any, kind: Any) -> Any:
        ctx.kind = kind
        return x * of(kind)

    def backward(ctx: Any, g: Any) -> Any:
        return g * (of(ctx.kind) + wrong(ctx.kind)), None

    forward.__annotations__["kind"] = kind
    if how:
        forward.__defaults__ = (how["default"],)
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return sg.verify(type("Scaled", (Function,), methods), suggest=False)


def of_text(kind: Any) -> float:
    return 2.0 if kind == "one" else 5.0


def of_flags(kind: Any) -> float:
    return 2.0 if kind & Flags.ONE else 5.0


CASES = {
    "enum": (lambda one: one.value, Mode, Mode.THREE, "Mode.ONE or Mode.TWO or Mode.THREE"),
    "written": (lambda one: one.value, "Mode", Mode.TWO, "Mode.ONE or Mode.TWO or Mode.THREE"),
    "text enum": (of_text, Text, Text.TWO, "Text.ONE or Text.TWO"),
    "flags": (of_flags, Flags, Flags.TWO, "Flags.ONE or Flags.TWO"),
    "literal": (LOOKED_UP.__getitem__, Literal["a", "b"], "b", "'a' or 'b'"),
    "mixed": (LOOKED_UP.__getitem__, Literal["a", 3, None], 3, "'a' or 3 or None"),
    "optional": (
        lambda one: 7 if one is None else one.value, OPTIONAL[Mode], None,
        "Mode.ONE or Mode.TWO or Mode.THREE or None",
    ),
    "union": (
        lambda one: 7 if one is None else one.value, "None | Mode", Mode.THREE,
        "None or Mode.ONE or Mode.TWO or Mode.THREE",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_value_that_an_annotation_lists(case: str) -> None:
    of, kind, at, every = CASES[case]
    right = scaled(of, lambda one: False, kind)
    assert right.stated == f"PROVED for kind = {every}", right
    wrong = scaled(of, lambda one: one == at, kind)
    said = f"{type(at).__name__}.{at.name}" if isinstance(at, enum.Enum) else repr(at)
    assert wrong.stated == f"REFUTED for kind = {said}", wrong


@pytest.mark.parametrize("case", CASES)
def test_every_value_beside_a_default(case: str) -> None:
    of, kind, at, every = CASES[case]
    default = next(one for one in (Mode.ONE, Text.ONE, Flags.ONE, "a") if _takes(of, one))
    right = scaled(of, lambda one: False, kind, default=default)
    named = right.stated.removeprefix("PROVED for kind = ").split(" or ")
    assert sorted(named) == sorted(every.split(" or ")), right
    wrong = scaled(of, lambda one: one == at, kind, default=default)
    assert str(wrong.verdict) in ("REFUTED", "SURROGATE?"), wrong


def _takes(of: Callable[[Any], float], value: Any) -> bool:
    try:
        return of(value) in (1, 2)
    except (KeyError, AttributeError, TypeError):
        return False


def test_a_member_without_an_annotation_stands_for_its_class() -> None:
    wrong = scaled(
        lambda one: one.value, lambda one: one is Mode.THREE, Any, default=Mode.ONE
    )  # fmt: skip
    assert str(wrong.verdict) == "REFUTED"
    assert wrong.stated.endswith("for kind = Mode.THREE")


def test_a_member_that_forward_refuses_is_none_and_one_that_backward_refuses_is_wrong() -> None:
    def refusing(refused: Any) -> Callable[[Any], float]:
        def of(kind: Any) -> float:
            if kind is refused:
                raise NotImplementedError(kind)
            return float(kind.value)

        return of

    right = scaled(refusing(Mode.TWO), lambda one: False, Mode)
    assert right.stated == "PROVED for kind = Mode.ONE or Mode.THREE"
    wrong = scaled(lambda one: one.value, lambda one: refusing(Mode.TWO)(one) < 0, Mode)
    assert wrong.stated == "REFUTED for kind = Mode.TWO"
    assert "NotImplementedError" in str(wrong)


def cast(annotation: Any, wrong: Any = None, **how: Any) -> Any:
    """The report on a cast to a dtype, which may be None."""

    def forward(ctx: Any, x: Any, dtype: Any) -> Any:
        ctx.own, ctx.dtype = x.dtype, dtype
        return x * 3 if dtype is None else (x * 3).to(dtype)

    def backward(ctx: Any, g: Any) -> Any:
        factor = 2 if wrong and (ctx.dtype,) == wrong else 3
        return g.to(ctx.own) * factor, None

    if annotation is None:
        del forward.__annotations__["dtype"]
    else:
        forward.__annotations__["dtype"] = annotation
    if how:
        forward.__defaults__ = (how["default"],)
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return sg.verify(type("Cast", (Function,), methods), suggest=False)


@pytest.mark.parametrize(
    ("annotation", "every"),
    [
        (torch.dtype, DTYPES),
        ("torch.dtype", DTYPES),
        (None, DTYPES),
        (OPTIONAL[torch.dtype], f"{DTYPES} or None"),
        (None | torch.dtype, f"None or {DTYPES}"),
    ],
)
def test_a_dtype_is_one_of_floats(annotation: Any, every: str) -> None:
    right = cast(annotation)
    assert right.stated == f"PROVED for dtype = {every}", right
    for dtype in (torch.float16, torch.float64, *([None] if "None" in every else [])):
        wrong = cast(annotation, (dtype,))
        assert wrong.stated == f"REFUTED for dtype = {dtype}", wrong


def test_a_dtype_beside_a_default() -> None:
    assert cast(None, default=torch.float64).stated.startswith(
        "PROVED for dtype = torch.float64 or"
    )
    assert cast(None, (torch.bfloat16,), default=torch.float64).stated == (
        "REFUTED for dtype = torch.bfloat16"
    )
    optional = cast("torch.dtype | None", default=None)
    assert optional.stated == f"PROVED for dtype = None or {DTYPES}"


def test_a_number_is_no_dtype() -> None:
    class Anything(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, what: Any) -> Any:
            return x.to(what) * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, None

    report = sg.verify(Anything, suggest=False)
    assert "real" not in report.stated, report
    assert "what[" in report.inferred


OF_NUMBERS = [OPTIONAL[float], "float | None"]


@pytest.mark.parametrize("annotation", OF_NUMBERS)
@pytest.mark.parametrize("default", [{}, {"default": None}])
def test_any_number_or_none(annotation: Any, default: dict[str, Any]) -> None:
    def of(kind: Any) -> Any:
        return 3.0 if kind is None else kind

    right = scaled(of, lambda one: False, annotation, **default)
    assert right.stated == "PROVED for all real kind; for kind given or absent", right
    for wrong in (lambda one: one is None, lambda one: one is not None):
        report = scaled(of, wrong, annotation, **default)
        assert str(report.verdict) == "REFUTED", report


def test_none_beside_the_default_of_a_number() -> None:
    def of(kind: Any) -> Any:
        return 3.0 if kind is None else kind

    report = scaled(of, lambda one: one is None, OPTIONAL[float], default=2.0)
    assert report.stated == "REFUTED for kind = None", report
    right = scaled(of, lambda one: False, OPTIONAL[float], default=2.0)
    assert right.stated == "PROVED for all real kind"
    assert "for kind = None it is PROVED" in " ".join(right.notes)


def test_numbers_are_judged_on_all_ways_where_python_asks_of_them() -> None:
    def of(kind: Any) -> Any:
        return kind or 3.0

    right = scaled(of, lambda one: False, OPTIONAL[float])
    assert right.stated == "PROVED for all real kind; for kind given or absent", right
    at_zero = scaled(of, lambda one: one is not None and one == 0, OPTIONAL[float])
    assert str(at_zero.verdict) == "REFUTED"
    assert str(scaled(of, lambda one: one is None, OPTIONAL[float]).verdict) == "REFUTED"
    assert str(scaled(of, lambda one: one == 2, OPTIONAL[float]).verdict) == "REFUTED"


@pytest.mark.parametrize(
    ("annotation", "every"),
    [(OPTIONAL[bool], "None or True or False"), (OPTIONAL[int], "None or 1 or 2")],
)
def test_truth_values_and_integers_beside_none(annotation: Any, every: str) -> None:
    def of(kind: Any) -> Any:
        return 5 if kind is None else 2 + kind

    right = scaled(of, lambda one: False, annotation, default=None)
    assert right.stated == f"PROVED for kind = {every}", right
    wrong = scaled(of, lambda one: one is not None and one != 1, annotation, default=None)
    assert str(wrong.verdict) == "REFUTED", wrong


def test_a_text_that_no_literal_is() -> None:
    def of(kind: Any) -> Any:
        return 2 if kind == "two" else 5

    def right(ctx: Any, g: Any) -> Any:
        return g * (2 if ctx.kind == "two" else 5), None

    def wrong(ctx: Any, g: Any) -> Any:
        return g * 2, None

    def forward(ctx: Any, x: Any, kind: str) -> Any:
        ctx.kind = kind
        return x * (2 if kind == "two" else 5)

    for backward, said in ((right, "PROVED for kind = 'two' or 'other'"), (wrong, "'other'")):
        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        report = sg.verify(type("Op", (Function,), methods), suggest=False)
        assert report.stated.endswith(said), report


def test_a_condition_at_other_values_is_said_once_for_all_ranks() -> None:
    class Shaped(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, kind: Mode) -> Any:
            ctx.save_for_backward(x)
            ctx.kind = kind
            return x * 2 if kind is Mode.ONE else x.abs()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (2 if ctx.kind is Mode.ONE else x.sign()), None

    report = sg.verify(Shaped, suggest=False)
    assert report.stated == "PROVED for kind = Mode.ONE or Mode.TWO or Mode.THREE"
    (condition,) = report.inputs["x"].conditions
    assert condition.text.endswith("(for kind = Mode.TWO; for kind = Mode.THREE)")
