"""Reports on classes of torch speak of torch's functions and dtypes."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.peers


class Masked(torch.autograd.Function):
    """The mask is off by one; the conditions compare with numbers of an axis."""

    @staticmethod
    def forward(ctx: Any, x: Any, lengths: Any) -> Any:
        mask = torch.arange(x.shape[1]).unsqueeze(0) < lengths.unsqueeze(1)
        ctx.save_for_backward(x, lengths)
        return (x * x * mask).sum(1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, lengths = ctx.saved_tensors
        mask = torch.arange(x.shape[1]).unsqueeze(0) < lengths.unsqueeze(1)
        return g.unsqueeze(1) * 2 * x * mask, None


def test_conditions_name_dtypes_of_torch() -> None:
    report = sg.verify(Masked, "n m", "n", assume={"lengths": "constant"})
    said = [str(one) for own in report.inputs.values() for one in own.conditions]
    assert any("torch." in one for one in said), said
    assert "sg." not in str(report)


class Learned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, s: Any, low: float = -8.0, high: float = 7.0) -> Any:
        v = x / s
        ctx.save_for_backward(v)
        ctx.limits = low, high
        return v.round().clamp(low, high) * s

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (v,) = ctx.saved_tensors
        low, high = ctx.limits
        below, above = (v < low).to(g.dtype), (v > high).to(g.dtype)
        inside = 1 - below - above
        step = (below * low + above * high + inside * (v.round() - v)) * g
        return g * inside, step.sum(), None, None


def test_a_learned_step_has_a_declaration() -> None:
    found = sg.verify(Learned, "n m", "")
    (line,) = {one.declaration for one in found.inputs.values()}
    first, second = line.splitlines()
    assert first == 'static = { "low" = -8.0, "high" = 7.0 }'
    assert second.startswith('surrogate = "((x / s).clamp(low, high) + ((x / s).round()')


def test_a_mistake_beside_a_declaration_is_confirmed_in_torch() -> None:
    class Doubled(Learned):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            of_x, *others = Learned.backward(ctx, g)
            return 2 * of_x, *others

    meant = sg.surrogate(
        lambda x, s, low, high: (
            (x / s).clamp(-8, 7) + ((x / s).round().clamp(-8, 7) - (x / s).clamp(-8, 7)).detach()
        ) * s
    )  # fmt: skip
    report = sg.verify(meant(Doubled), "n", "", static={"low": -8.0, "high": 7.0})
    assert str(report.inputs["x"].verdict) == "REFUTED"
    assert report.inputs["s"].verdict == sg.PROVED
    assert "by autograd through the surrogate" in " ".join(str(report).split())


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class Batched(Doubled):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return Doubled.apply(x) + 1, in_dims[0]


class Generated(Doubled):
    generate_vmap_rule = True


def test_a_vmap_that_nobody_judged_is_named_once() -> None:
    report = sg.verify(Batched)
    assert str(report.verdict) == "PROVED"
    line = Batched.vmap.__code__.co_firstlineno
    (said,) = (note for note in report.notes if "vmap" in note)
    assert said.startswith(f"vmap ({__file__}:{line}) was not judged.")
    assert not any("vmap" in note for note in sg.verify(Generated).notes)


class Volume(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a)
        return torch.linalg.slogdet(a)[1] + torch.linalg.svdvals(a * b).sum(-1) * 0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (a,) = ctx.saved_tensors
        return g[..., None, None] * torch.linalg.inv(a).mT, torch.zeros_like(a)


def test_conditions_on_matrices_are_words() -> None:
    report = sg.verify(Volume, "n n", "n n")
    assert str(report.verdict) == "PROVED", str(report)
    said = {one.text for one in report.conditions if one.kind != "asked"}
    assert said == {
        "a is invertible", "the singular values of a * b are distinct, and not 0"
    }  # fmt: skip


class OneShort(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x + y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Extended(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        import no_such_extension  # type: ignore[import-not-found]

        return no_such_extension.forward(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def test_what_to_do_stands_on_a_line_of_its_own() -> None:
    lines = [line.strip() for line in str(sg.verify(OneShort)).splitlines()]
    at = next(at for at, line in enumerate(lines) if line.startswith("hint: "))
    assert lines[at].startswith("hint: return one for each argument")
    said = " ".join(lines[:at])
    assert "backward failed: " in said
    assert "backward returned 1 gradient for 2 arguments of forward" in said
    assert lines[at - 1].strip("| ^") == ""  # under the line of source


def test_a_module_that_forward_lacks_is_to_be_installed() -> None:
    with pytest.raises(sg.SymgradError) as caught:
        sg.verify(Extended)
    assert caught.value.hint.startswith("pip install no_such_extension, or put a reference")
