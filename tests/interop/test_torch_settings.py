"""Arguments that hold settings, judged at a few values of the keys and attributes that are read."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class ByKey(Function):
    """A number and a flag by their keys."""

    @staticmethod
    def forward(ctx: Any, x: Any, cfg: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.cfg = cfg
        return x * x * cfg["scale"] if cfg["square"] else x * cfg["scale"]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        found = g * ctx.cfg["scale"]
        return (2 * found * x if ctx.cfg["square"] else found), None


class WrongForOne(ByKey):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x * ctx.cfg["scale"], None


class ByDefault(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, opts: Any) -> Any:
        ctx.k = opts.get("k", 3)
        return x * ctx.k

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.k, None


class ByAttribute(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, args: Any) -> Any:
        ctx.args = args
        return x * 2**args.bits + args.offset

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2**ctx.args.bits, None


class ByText(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, cfg: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.cfg = cfg
        return x.sin() if cfg["mode"] == "sin" else x.exp()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * (x.cos() if ctx.cfg["mode"] == "sin" else x.sin()), None


class MaybeThere(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, kw: Any) -> Any:
        ctx.s = kw["scale"] if "scale" in kw else 1.0  # noqa: SIM401
        return x * ctx.s

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.s, None


def _scaled(x: Any, spec: Any) -> Any:
    return x * spec["scale"] * spec["power"]


class ReadElsewhere(Function):
    """The keys stand in another function."""

    @staticmethod
    def forward(ctx: Any, x: Any, spec: Any) -> Any:
        ctx.spec = spec
        return _scaled(x, spec)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _scaled(g, ctx.spec), None


class ByDefaultNone(Function):
    """None is no dictionary here."""

    @staticmethod
    def forward(ctx: Any, x: Any, spec: Any = None) -> Any:
        ctx.scale = spec["scale"]
        return x * ctx.scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.scale, None


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (ByKey, ["{'square': True, 'scale': 0.5}", "'square': False"]),
        (ByDefault, ["{'k': 3}", "{'k': 0.5}"]),
        (ByAttribute, ["(bits=2, offset=0.5)", "bits=1"]),
        (MaybeThere, ["{'scale': 0.5}", "{}"]),
        (ReadElsewhere, ["{'scale': 0.5, 'power': 0.5}"]),
        (ByDefaultNone, ["{'scale': 0.5}"]),
    ],
)
def test_what_is_read_has_values_that_the_verdict_names(function: Any, values: list[str]) -> None:
    report = sg.verify(function, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    said = " ".join(text for _, text in report.values) + " ".join(report.notes)
    for value in values:
        assert value in said


@pytest.mark.parametrize(
    ("function", "value"), [(WrongForOne, "'square': False"), (ByText, "'mode': 'other'")]
)
def test_what_is_wrong_for_a_setting_is_refuted_there(function: Any, value: str) -> None:
    report = sg.verify(function, suggest=False)
    assert report.verdict == sg.REFUTED, str(report)
    assert value in dict(report.values)[next(iter(dict(report.values)))]


class Tensors(Function):
    """Attributes that tensors have show no settings."""

    @staticmethod
    def forward(ctx: Any, x: Any, other: Any) -> Any:
        ctx.shape = other.shape
        return x * other.dtype.itemsize

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 4, None


class Nested(Function):
    """Settings in settings: nothing stands for these."""

    @staticmethod
    def forward(ctx: Any, x: Any, cfg: Any) -> Any:
        return x * cfg["inner"].scale


def test_attributes_of_tensors_are_no_settings() -> None:
    from symgrad.frontend.guests import taken
    from symgrad.frontend.settings import settings_of

    assert settings_of(taken(Tensors)) == {}
    assert not settings_of(taken(Nested))["cfg"].known
    assert [*settings_of(taken(ByKey))["cfg"].known] == ["square", "scale"]
    assert not settings_of(taken(ByAttribute))["args"].by_key


def test_what_is_the_only_argument_is_a_tensor() -> None:
    class Misspelt(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.no_such_name

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(SymgradError, match="no_such_name"):
        sg.verify(Misspelt)


class InSections(Function):
    """Settings in dictionaries of settings, one of them under another name."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, cfg: Any) -> Any:
        ctx.cfg = cfg
        ctx.save_for_backward(x)
        act = cfg["act"]
        y = x.tanh() if act["name"] == "tanh" else x
        return y * cfg["out"].get("scale", 2) * (3 if cfg["out"]["tripled"] else 1)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        g = g * ctx.cfg["out"].get("scale", 2) * (3 if ctx.cfg["out"]["tripled"] else 1)
        if ctx.cfg["act"]["name"] == "tanh":
            return cls.factor * g * (1 - x.tanh() ** 2), None
        return g, None


def test_settings_may_be_dictionaries_of_settings() -> None:
    report = sg.verify(InSections)
    assert report == sg.PROVED, str(report)
    said = dict(report.values)["cfg"]
    assert all(one in said for one in ("{'name': 'tanh'}", "{'name': 'other'}", "'tripled': False"))
    wrong = sg.verify(type("Twice", (InSections,), {"factor": 2}))
    assert wrong == sg.REFUTED
    assert "'tanh'" in wrong.stated
