"""Functions whose backward keeps or loses histories, as source over symgrad or torch.

In: a hypothesis draw.  Out: ``Program``: the text of a chain of scalar functions and of its
backward, which is right to first order; each value that backward needs comes from somewhere.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

# A value computed from {0}, and its derivative, from {0} or the value itself, {1}.
STEPS = {
    "sin": ("{0}.sin()", "{0}.cos()"),
    "exp": ("(0.3 * {0}).exp()", "0.3 * (0.3 * {0}).exp()"),
    "square": ("{0} * {0}", "2 * {0}"),
    "tanh": ("{0}.tanh()", "(1 - {0}.tanh() ** 2)"),
    "tanh by its value": ("{0}.tanh()", "(1 - {1} ** 2)"),
    "exp by its value": ("(0.3 * {0}).exp()", "0.3 * {1}"),
    "double": ("2 * {0}", "2"),
    "shift": ("{0} + w", "1"),
    "weigh": ("{0} * w", "w"),
}
# Where backward has a value from: ``{0}`` its number, ``{1}`` how it is computed from others.
SOURCES = {
    "computed again": "v{0} = {1}",
    "saved": "v{0} = ctx.saved_tensors[{2}]",
    "attribute": "v{0} = ctx.kept[{0}][0]",
    "detached": "v{0} = ({1}).detach()",
    "data": "v{0} = ({1}).data",
    "unrecorded": "with sg.no_grad():\n            v{0} = {1}",
    "copied": "v{0} = sg.zeros_like(x)\n        v{0} += {1}",
    "applied": "v{0} = Identity.apply({1})",
    "applied wrongly": "v{0} = Doubled.apply({1}) / 1",
    "applied to a constant": "v{0} = Identity.apply(({1}).detach())",
}
_TEXT = """
class Identity(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g


class Doubled(Identity):
    @staticmethod
    def backward(ctx, g):
        return 2 * g


class Chain(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        {forward}
        ctx.save_for_backward(x, w, {saved})
        ctx.kept = {kept}
        return v{last}

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors[:2]
        {values}
        grad_w = sg.zeros_like(w)
        {chain}
        return g, grad_w
"""


@dataclass(frozen=True)
class Program:
    """``text`` defines ``Chain``, a Function of two vectors."""

    text: str

    def over(self, sg: Any) -> Any:
        """The Function, over symgrad or what stands for torch."""
        module = types.ModuleType("chain")
        module.__dict__["sg"] = sg
        exec(compile(self.text, "<chain>", "exec"), module.__dict__)
        return module.__dict__["Chain"]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Chains of two to four steps; most values are computed again or read from the output."""
    names = draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=4))
    sources = [draw(st.sampled_from(list(SOURCES))) for _ in names]
    last = len(names)
    forward = ["v0 = x", *(f"v{n + 1} = {STEPS[name][0].format(f'v{n}')}"
                           for n, name in enumerate(names))]  # fmt: skip
    values = ["v0 = x"]
    for number in range(1, last + 1):
        again = STEPS[names[number - 1]][0].format(f"v{number - 1}")
        values.append(SOURCES[sources[number - 1]].format(number, again, number + 1))
    chain = []
    for number in reversed(range(last)):
        name, value = names[number], f"v{number}"
        if name == "weigh":
            chain.append(f"grad_w = grad_w + g * {value}")
        elif name == "shift":
            chain.append("grad_w = grad_w + g")
        chain.append(f"g = g * ({STEPS[name][1].format(value, f'v{number + 1}')})")
    join = "\n        ".join
    inner = [f"v{n}" for n in range(1, last + 1)]
    return Program(
        _TEXT.format(
            forward=join(forward), saved=", ".join(inner), last=last, values=join(values),
            kept="{" + ", ".join(f"{n}: [v{n}]" for n in range(1, last + 1)) + "}",
            chain=join(chain),
        )
    )  # fmt: skip
