"""torch derives no backward: a class without one is wrong where an output is differentiable."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers


class Misspelt(torch.autograd.Function):
    """What is called ``backwards`` is no backward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x, x > 0

    @staticmethod
    def backwards(ctx: Any, grad: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * grad * x


class Detached(torch.autograd.Function):
    """A value is cut off, and nothing says what its gradient is meant to be."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.detach() * 2


class Written(Misspelt):
    """The name that torch calls is inherited by none, and written here."""

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        return Misspelt.backwards(ctx, grad, _)


class Pulled(Misspelt):
    """``vjp`` is torch's other name of ``backward``."""

    @staticmethod
    def vjp(ctx: Any, grad: Any, _: Any) -> Any:
        return Misspelt.backwards(ctx, grad, _)


class Inherited(Written):
    """A backward of a parent is one."""


class Marked(torch.autograd.Function):
    """No output is differentiable: torch asks for no backward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        out = x.round()
        ctx.mark_non_differentiable(out)
        return out


class Compared(torch.autograd.Function):
    """An output of truth values has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x > 0


@pytest.mark.parametrize("function", [Misspelt, Detached])
@pytest.mark.parametrize("shapes", [(), ("n m",)])
@pytest.mark.parametrize("order", [1, 2])
def test_a_missing_backward_is_refuted_with_what_torch_says(
    function: Any, shapes: Any, order: int
) -> None:
    report = sg.verify(function, *shapes, order=order)
    assert report.verdict == sg.REFUTED, str(report)
    assert "there is no backward: torch raises NotImplementedError" in report.inputs["x"].reason
    assert "(You must implement either the backward or vjp method)" in report.inputs["x"].reason
    assert report.inputs["x"].suggestion
    assert not report.derived
    outputs = function.apply(torch.ones(2, 2, dtype=torch.float64, requires_grad=True))
    first = outputs[0] if isinstance(outputs, tuple) else outputs
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp"):
        first.sum().backward()


@pytest.mark.parametrize("function", [Written, Pulled, Inherited, Marked, Compared])
def test_a_backward_that_is_there_or_is_never_called_is_right(function: Any) -> None:
    report = sg.verify(function, "n m")
    assert report.verdict == sg.PROVED, str(report)


def test_symgrads_own_functions_derive_theirs() -> None:
    own = type("Own", (sg.Function,), {"forward": staticmethod(lambda ctx, x: x * x)})
    report = sg.verify(own, "n m")
    assert report.verdict == sg.PROVED
    assert report.derived
